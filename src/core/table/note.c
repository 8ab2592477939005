/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notes: small values of a group, in order of group and key. A write that
 * names an epoch is refused once there is a newer one, so a former leader
 * cannot overwrite what its successor has written.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { NOTE_WEIGHT = 64 };

static int compare(const struct table_note *a, const struct table_note *b)
{
    int order = a->group == b->group ? 0 : strcmp(a->group->name, b->group->name);

    return order != 0 ? order : strcmp(a->key, b->key);
}

RB_GENERATE_INTERNAL(table_notes, table_note, by_key, compare, __attribute__((unused)) static)

struct table_note *table_note_from(const struct table *table, const struct table_group *group,
                                   const char *key)
{
    struct table_note *note = RB_ROOT(&table->notes);
    struct table_note *best = NULL;

    while (note) {
        int order = note->group == group ? 0 : strcmp(group->name, note->group->name);

        if (order == 0)
            order = strcmp(key, note->key);
        if (order <= 0) {
            best = note;
            note = RB_LEFT(note, by_key);
        } else {
            note = RB_RIGHT(note, by_key);
        }
    }
    return best && best->group == group ? best : NULL;
}

struct table_note *note_first(const struct table *table)
{
    struct table_note *note = RB_ROOT(&table->notes);

    while (note && RB_LEFT(note, by_key))
        note = RB_LEFT(note, by_key);
    return note;
}

struct table_note *note_next(struct table_note *note) { return RB_NEXT(table_notes, NULL, note); }

struct table_note *table_note_next(struct table_note *note)
{
    struct table_note *next = note_next(note);

    return next && next->group == note->group ? next : NULL;
}

static struct table_note *find(const struct table *table, const struct table_group *group, const char *key)
{
    struct table_note *note = group ? table_note_from(table, group, key) : NULL;

    return note && strcmp(note->key, key) == 0 ? note : NULL;
}

struct table_note *table_note_find(const struct table *table, const char *group, const char *key)
{
    return find(table, table_group_find(table, group), key);
}

void note_changed(struct table *table, struct table_note *note)
{
    uint64_t hash = hash_string(HASH_BEGIN, note->group->name);

    hash = hash_string(hash, note->key);
    hash = hash_bytes(hash_number(hash, note->value_size), note->value, note->value_size);
    hash = hash_number(hash, note->create_revision);
    hash = hash_number(hash, note->mod_revision);
    hash = hash_number(hash, note->epoch);
    table_account(table, &note->hash, &note->weight, hash_mix(hash),
                  NOTE_WEIGHT + strlen(note->group->name) + strlen(note->key) + note->value_size);
}

static void note_free(struct table_note *note)
{
    text_drop(note->key);
    free(note->value);
    free(note);
}

/* One that is in no table yet; NULL: no memory. */
static struct table_note *note_new(const char *key, const uint8_t *value, size_t value_size)
{
    struct table_note *note = calloc(1, sizeof *note);

    if (!note)
        return NULL;
    note->key = text_new(key);
    note->value = malloc(value_size > 0 ? value_size : 1);
    if (!note->key || !note->value) {
        note_free(note);
        return NULL;
    }
    if (value_size > 0)
        memcpy(note->value, value, value_size);
    note->value_size = value_size;
    return note;
}

static bool insert(struct table *table, struct table_group *group, struct table_note *note)
{
    note->group = group;
    if (RB_INSERT(table_notes, &table->notes, note))
        return false;
    group->note_count++;
    table->note_count++;
    return true;
}

struct table_note *note_add(struct table *table, struct table_group *group, const char *key,
                            const uint8_t *value, size_t value_size)
{
    struct table_note *note = note_new(key, value, value_size);

    if (note && !insert(table, group, note)) {
        note_free(note);
        return NULL;
    }
    return note;
}

static void note_remove(struct table *table, struct table_note *note)
{
    ASSERT(note->group->note_count > 0);
    ASSERT(table->note_count > 0);
    RB_REMOVE(table_notes, &table->notes, note);
    note->group->note_count--;
    table->note_count--;
    table_account(table, &note->hash, &note->weight, 0, 0);
    note_free(note);
}

size_t notes_free_some(struct table *table, size_t count)
{
    size_t freed = 0;

    for (; freed < count && !RB_EMPTY(&table->notes); freed++)
        note_remove(table, RB_ROOT(&table->notes));
    return freed;
}

void notes_done(struct table *table)
{
    (void)notes_free_some(table, SIZE_MAX);
    ASSERT(table->note_count == 0);
}

static enum gavel_status check_fence(struct step *step, const struct table_group *group, uint64_t epoch)
{
    uint64_t newest = group ? group->epoch : 0;

    if (PLANTED(OLD_NOTE))
        return GAVEL_OK;
    if (epoch == 0 || epoch == newest)
        return GAVEL_OK;
    if (epoch < newest)
        return step_refuse(step, GAVEL_ERR_TERM_STALE, "the group has a newer epoch");
    return step_refuse(step, GAVEL_ERR_INVALID, "the group has no such epoch yet");
}

static enum gavel_status check_expected(struct step *step, const struct table_note *note, bool has_expected,
                                        uint64_t expected)
{
    if (PLANTED(NOTE_OVER_NEWER))
        return GAVEL_OK;
    if (!has_expected || expected == (note ? note->mod_revision : 0))
        return GAVEL_OK;
    return step_refuse(step, GAVEL_ERR_CONFLICT, "the note has changed, or was created or deleted");
}

/* Whether one more note of this size fits. */
static enum gavel_status check_room(struct step *step, const struct table_group *group,
                                    const struct table_note *old, const Gavel__PutNote *put)
{
    size_t more = NOTE_WEIGHT + strlen(put->group) + strlen(put->key) + put->value.len;

    if (!old && group && group->note_count >= TABLE_NOTES_MAX)
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the group has reached its limit of notes");
    if (old)
        more = more > old->weight ? more - old->weight : 0;
    if (more > 0 && !table_has_room(step->table, more))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    return GAVEL_OK;
}

static void tell_put(struct step *step, const struct table_note *note)
{
    Gavel__Change change = step_change(GAVEL__CHANGE__KIND__NOTE_PUT, note->group);

    change.key = note->key;
    change.value.data = note->value;
    change.value.len = note->value_size;
    change.create_revision = note->create_revision;
    change.epoch = note->epoch;
    step_tell(step, &change);
}

enum gavel_status note_put(struct step *step, const Gavel__PutNote *put)
{
    struct table_group *group = table_group_find(step->table, put->group);
    struct table_note *old = find(step->table, group, put->key);
    struct table_note *note;
    enum gavel_status status = check_fence(step, group, put->epoch);
    bool is_free;

    if (status == GAVEL_OK)
        status = check_expected(step, old, put->has_expected, put->expected);
    if (status == GAVEL_OK)
        status = check_room(step, group, old, put);
    if (status != GAVEL_OK)
        return status;
    note = note_new(put->key, put->value.data, put->value.len);
    if (!note)
        return GAVEL_ERR_NO_MEMORY;
    if (!group)
        status = group_create(step, put->group, &group);
    if (status != GAVEL_OK) {
        note_free(note);
        return status;
    }
    note->create_revision = old ? old->create_revision : step->revision;
    note->mod_revision = step->revision;
    note->epoch = put->epoch;
    ASSERT(note->create_revision <= note->mod_revision);
    if (old)
        note_remove(step->table, old);
    is_free = insert(step->table, group, note);
    ASSERT(is_free); /* the old one is gone */
    note_changed(step->table, note);
    tell_put(step, note);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}

void note_end(struct step *step, struct table_note *note)
{
    Gavel__Change change = step_change(GAVEL__CHANGE__KIND__NOTE_DELETED, note->group);

    change.key = note->key;
    step_tell(step, &change);
    note_remove(step->table, note);
}

enum gavel_status note_delete(struct step *step, const Gavel__DeleteNote *delete_note)
{
    struct table_group *group = table_group_find(step->table, delete_note->group);
    struct table_note *note = find(step->table, group, delete_note->key);
    enum gavel_status status = check_fence(step, group, delete_note->epoch);

    if (status == GAVEL_OK)
        status = check_expected(step, note, delete_note->has_expected, delete_note->expected);
    if (status != GAVEL_OK)
        return status;
    if (!note)
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "the group has no such note");
    ASSERT(note->group == group);
    note_end(step, note);
    group_settle(step, group, NULL);
    return GAVEL_OK;
}
