/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups in order of their names. A group comes with the first that is said of
 * it and goes when nothing is left; one that ever had a mandate stays until it is
 * removed (removal.c), so that whoever asks is told who led it last.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { GROUP_WEIGHT = 192 };

static int compare(const struct table_group *a, const struct table_group *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(table_groups, table_group, by_name, compare, __attribute__((unused)) static)
RB_GENERATE_INTERNAL(table_attention, table_group, in_attention, compare, __attribute__((unused)) static)

struct table_group *table_group_find(const struct table *table, const char *name)
{
    struct table_group *group = RB_ROOT(&table->groups);

    while (group) {
        int order = strcmp(name, group->name);

        if (order == 0)
            return group;
        group = order < 0 ? RB_LEFT(group, by_name) : RB_RIGHT(group, by_name);
    }
    return NULL;
}

struct table_group *table_group_from(const struct table *table, const char *name)
{
    struct table_group *group = RB_ROOT(&table->groups);
    struct table_group *best = NULL;

    while (group) {
        if (strcmp(name, group->name) <= 0) {
            best = group;
            group = RB_LEFT(group, by_name);
        } else {
            group = RB_RIGHT(group, by_name);
        }
    }
    return best;
}

struct table_group *table_group_next(struct table_group *group) { return RB_NEXT(table_groups, NULL, group); }

struct table_group *table_attention_from(const struct table *table, const char *name)
{
    struct table_group *group = RB_ROOT(&table->attention);
    struct table_group *best = NULL;

    while (group) {
        bool is_after = strcmp(name, group->name) <= 0;

        if (is_after)
            best = group;
        group = is_after ? RB_LEFT(group, in_attention) : RB_RIGHT(group, in_attention);
    }
    return best;
}

struct table_group *table_attention_next(struct table_group *group)
{
    return RB_NEXT(table_attention, NULL, group);
}

struct table_group *group_new(struct table *table, const char *name)
{
    struct table_group *group = calloc(1, sizeof *group);

    if (!group || !slot_take(&table->group_slots, &group->slot)) {
        free(group);
        return NULL;
    }
    TAILQ_INIT(&group->candidates);
    group->name = text_new(name);
    group->holder = text_new("");
    group->address = text_new("");
    group->successor = text_new("");
    group->previous_holder = text_new("");
    group->wish_successor = text_new("");
    if (!group->name) {
        group_free(table, group);
        return NULL;
    }
    return group;
}

void group_free(struct table *table, struct table_group *group)
{
    struct table_candidate *candidate;

    if (!group)
        return;
    while ((candidate = TAILQ_FIRST(&group->candidates))) {
        TAILQ_REMOVE(&group->candidates, candidate, in_group);
        candidate_free(candidate);
    }
    text_drop(group->name);
    text_drop(group->holder);
    text_drop(group->address);
    text_drop(group->successor);
    text_drop(group->previous_holder);
    text_drop(group->wish_successor);
    slot_give(&table->group_slots, group->slot);
    free(group);
}

bool group_insert(struct table *table, struct table_group *group)
{
    if (RB_INSERT(table_groups, &table->groups, group))
        return false;
    table->group_count++;
    return true;
}

enum gavel_status group_create(struct step *step, const char *name, struct table_group **ret_group)
{
    struct table_group *group;
    bool is_new;

    if (step->table->group_count >= TABLE_GROUPS_MAX)
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the cluster has reached its limit of groups");
    if (!table_has_room(step->table, GROUP_WEIGHT + strlen(name)))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    group = group_new(step->table, name);
    if (!group)
        return GAVEL_ERR_NO_MEMORY;
    group->create_revision = step->revision;
    is_new = group_insert(step->table, group);
    ASSERT(is_new); /* nobody asks for a group that is there */
    *ret_group = group;
    return GAVEL_OK;
}

void group_changed(struct table *table, struct table_group *group)
{
    uint64_t hash = hash_string(HASH_BEGIN, group->name);
    size_t weight = GROUP_WEIGHT + strlen(group->name) + strlen(group->holder) + strlen(group->address) +
                    strlen(group->successor) + strlen(group->previous_holder) + strlen(group->wish_successor);
    const uint64_t numbers[] = {
        group->create_revision,
        group->version,
        group->epoch,
        group->is_held,
        group->is_done,
        group->session ? group->session->id : 0,
        group->nonce_high,
        group->nonce_low,
        (uint64_t)group->lease_ms,
        (uint64_t)group->since_wall_ms,
        (uint64_t)group->last_ending,
        group->wish_epoch,
        group->wish_is_forced,
        group->wish_timeout_ms,
        (uint64_t)group->policy,
        group->min_mandate_ms,
        group->preempts,
    };

    process_ready(&group->process, &group->shown);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_number(hash, numbers[i]);
    hash = hash_string(hash, group->holder);
    hash = hash_string(hash, group->address);
    hash = hash_string(hash, group->successor);
    hash = hash_string(hash, group->previous_holder);
    hash = hash_string(hash, group->wish_successor);
    hash = hash_process(hash, &group->process);
    table_account(table, &group->hash, &group->weight, hash_mix(hash), weight);
}

/* What may come due by time: a drain, a preemption, the end of a lease, a successor that does not come. */
static bool needs_attention(const struct table_group *group)
{
    if (group->wish_epoch != 0)
        return true;
    if (group->is_held && group->session)
        return table_group_better(group) != NULL;
    return !group->is_done && election_has_waiting(group);
}

void group_attend(struct table *table, struct table_group *group)
{
    bool needs = needs_attention(group);

    if (needs && !group->has_attention)
        (void)RB_INSERT(table_attention, &table->attention, group); /* no other has its name */
    else if (!needs && group->has_attention)
        RB_REMOVE(table_attention, &table->attention, group);
    group->has_attention = needs;
    if (needs)
        ASSERT(!RB_EMPTY(&table->attention));
}

void group_remove(struct table *table, struct table_group *group)
{
    if (group->has_attention)
        RB_REMOVE(table_attention, &table->attention, group);
    balance_forget(table, group);
    ASSERT(table->group_count > 0);
    RB_REMOVE(table_groups, &table->groups, group);
    table->group_count--;
    table_account(table, &group->hash, &group->weight, 0, 0);
    group_free(table, group);
}

/* What holds after every operation; a snapshot that says otherwise is refused (snapshot_read.c). */
static void check_after(const struct step *step, const struct table_group *group)
{
    ASSERT(group->create_revision <= step->revision);
    ASSERT(group->version <= step->revision);
    ASSERT(group->epoch <= group->version);
    if (group->is_held) {
        ASSERT(group->epoch > 0);
        ASSERT(!group->is_done);
        ASSERT(group->holder[0]);
        ASSERT(group->wish_epoch == 0 || group->wish_epoch == group->epoch);
    } else {
        ASSERT(!group->session);
        ASSERT(group->wish_epoch == 0);
    }
}

void group_settle(struct step *step, struct table_group *group, const struct table_candidate *leaver)
{
    balance_count(step->table, group);
    election_grant(step, group, leaver);
    balance_count(step->table, group);
    check_after(step, group);
    step->has_changed = true;
    group->touched_revision = step->revision;
    if (group->epoch == 0 && !group->is_done && group->candidate_count == 0 && group->note_count == 0) {
        Gavel__Change gone = step_change(GAVEL__CHANGE__KIND__GROUP_GONE, group);

        step_tell(step, &gone);
        group_remove(step->table, group);
        return;
    }
    group_attend(step->table, group);
    group_changed(step->table, group);
}

size_t groups_free_some(struct table *table, size_t count)
{
    size_t freed = 0;

    for (; freed < count && !RB_EMPTY(&table->groups); freed++)
        group_remove(table, RB_ROOT(&table->groups));
    return freed;
}

void groups_done(struct table *table)
{
    (void)groups_free_some(table, SIZE_MAX);
    ASSERT(table->group_count == 0);
}
