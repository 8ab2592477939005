/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy `balanced`: who leads the fewest groups is granted a vacant one.
 * A group that somebody leads is never taken from it; the leader of the cluster
 * asks it to hand over (core/session/balance.c), if that leads at least two more
 * than the other. So each hand-over brings the two nearer to each other, and
 * none is ever undone by another.
 *
 * How many a session leads is counted over all its groups, of whatever policy.
 * The counts follow from the rest: they are in no snapshot and no digest.
 */
#include "core/table/step.h"

static int compare(const struct table_group *a, const struct table_group *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(table_balanced, table_group, in_balanced, compare, __attribute__((unused)) static)

static bool is_balanced(const struct table_group *group)
{
    return group->policy == GAVEL__POLICY__POLICY_BALANCED && group->is_held && group->session &&
           election_has_waiting(group);
}

static void attend(struct table *table, struct table_group *group)
{
    bool is_wanted = is_balanced(group);

    if (is_wanted && !group->has_balance)
        (void)RB_INSERT(table_balanced, &table->balanced, group); /* no other has its name */
    else if (!is_wanted && group->has_balance)
        RB_REMOVE(table_balanced, &table->balanced, group);
    group->has_balance = is_wanted;
}

void balance_count(struct table *table, struct table_group *group)
{
    struct table_session *leader = group->is_held ? group->session : NULL;
    bool is_wished = leader && group->wish_epoch != 0;

    if (group->counted)
        group->counted->lead_count--;
    if (group->counted && group->counts_wish)
        group->counted->wish_count--;
    group->counted = leader;
    group->counts_wish = is_wished;
    if (leader)
        leader->lead_count++;
    if (is_wished)
        leader->wish_count++;
    attend(table, group);
    if (!RB_EMPTY(&table->balanced))
        table->balance_changes++;
}

void balance_forget(struct table *table, struct table_group *group)
{
    if (group->has_balance)
        RB_REMOVE(table_balanced, &table->balanced, group);
    group->has_balance = false;
}

struct table_group *table_balanced_from(const struct table *table, const char *name)
{
    struct table_group *at = RB_ROOT(&table->balanced);
    struct table_group *found = NULL;

    while (at) {
        int order = strcmp(at->name, name);

        if (order >= 0)
            found = at;
        at = order >= 0 ? RB_LEFT(at, in_balanced) : RB_RIGHT(at, in_balanced);
    }
    return found;
}

struct table_group *table_balanced_next(struct table_group *group)
{
    return RB_NEXT(table_balanced, NULL, group);
}

const struct table_candidate *table_group_lighter(const struct table_group *group)
{
    const struct table_candidate *next;

    if (!group->has_balance || group->wish_epoch != 0)
        return NULL;
    next = table_group_next_in_line(group);
    return next && next->session->lead_count + 2 <= group->session->lead_count ? next : NULL;
}
