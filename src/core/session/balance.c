/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leaders of groups with the policy `balanced` are asked to hand over to who
 * leads fewer groups. That is never urgent, and so it goes slowly: one wish at
 * a time for the whole cluster, with a pause after it, and none to a session
 * that has not answered one before. A leader that did not hand over in time is left
 * alone for a while, as with a preemption.
 *
 * A round looks at all such groups, some per tick. If it finds nothing, the next
 * begins only when somebody leads another number of groups.
 */
#include "core/session/portion.h"

#include <stdio.h>

#define BALANCE_EVERY (100 * NS_PER_MS)
#define LOOK_MAX 1024
/* The next portion of a round. */
#define MORE (1 * NS_PER_MS)

void balance_open(struct frontend *frontend, gavel_ns now)
{
    frontend->balance.due_at = table_balanced_from(frontend->table, "") ? now + BALANCE_EVERY : NEVER;
    frontend->balance.found_at = NEVER;
    frontend->balance.group[0] = frontend->balance.asked[0] = '\0';
    frontend->balance.changes = frontend->table->balance_changes;
}

void balance_changed(struct frontend *frontend, gavel_ns now)
{
    if (frontend->balance.changes != frontend->table->balance_changes)
        frontend->balance.due_at = ns_min(frontend->balance.due_at, now + BALANCE_EVERY);
}

/* When its leader may be asked; NEVER: it is not to be. */
static gavel_ns due_at(const struct frontend *frontend, const struct table_group *group,
                       const struct table_candidate *lighter)
{
    const struct heard_group *heard = heard_group(&frontend->heard, group);
    gavel_ns at = frontend_granted_at(frontend, group) + ns_from_ms(group->min_mandate_ms);

    if (group->session->is_ending || frontend_is_closing_session(frontend, group->session) ||
        frontend_is_closing_session(frontend, lighter->session) || frontend_is_closing_group(frontend, group))
        return NEVER;
    if (group->session->wish_count > 0)
        return NEVER; /* until that is done */
    if (heard && heard->wished_at != 0)
        at = ns_max(at, heard->wished_at + FRONTEND_WISH_AGAIN);
    return at;
}

static bool ask(struct portion *portion, const struct table_group *group,
                const struct table_candidate *lighter)
{
    union portion_body *body = portion_next(portion, GAVEL__OP__WHAT_WISH);

    if (!body)
        return false;
    gavel__wish__init(&body->wish);
    body->wish.group = group->name;
    body->wish.epoch = group->epoch;
    body->wish.successor = lighter->id;
    body->wish.timeout_ms = FRONTEND_DRAIN_MS;
    (void)snprintf(portion->frontend->balance.asked, sizeof portion->frontend->balance.asked, "%s",
                   group->name);
    portion_add(portion);
    return true;
}

static void begin_round(struct frontend *frontend)
{
    frontend->balance.group[0] = '\0';
    frontend->balance.found_at = NEVER;
    frontend->balance.changes = frontend->table->balance_changes;
}

/* Whether the newest wish is not in the table yet. */
static bool is_asking(const struct frontend *frontend)
{
    const struct table_group *group = table_group_find(frontend->table, frontend->balance.asked);

    return group && frontend_is_closing_group(frontend, group);
}

void balance_tick(struct frontend *frontend, gavel_ns now, struct portion *portion)
{
    struct table_group *group;
    size_t looked = 0;

    if (now < frontend->balance.due_at || frontend->table_version < TABLE_VERSION_0_7)
        return;
    if (is_asking(frontend)) {
        frontend->balance.due_at = now + BALANCE_EVERY;
        return;
    }
    if (!frontend->balance.group[0])
        begin_round(frontend);
    for (group = table_balanced_from(frontend->table, frontend->balance.group); group && looked < LOOK_MAX;
         group = table_balanced_next(group), looked++) {
        const struct table_candidate *lighter = table_group_lighter(group);
        gavel_ns at = lighter ? due_at(frontend, group, lighter) : NEVER;

        if (at <= now && ask(portion, group, lighter)) {
            frontend->balance.due_at = now + BALANCE_EVERY;
            frontend->balance.group[0] = '\0'; /* whoever leads fewest may be another now */
            return;
        }
        frontend->balance.found_at = ns_min(frontend->balance.found_at, at);
    }
    (void)snprintf(frontend->balance.group, sizeof frontend->balance.group, "%s", group ? group->name : "");
    frontend->balance.due_at = group ? now + MORE : ns_max(frontend->balance.found_at, now + BALANCE_EVERY);
    if (!group && frontend->balance.changes != frontend->table->balance_changes)
        frontend->balance.due_at = now + BALANCE_EVERY;
}

gavel_ns balance_wake_at(const struct frontend *frontend)
{
    return frontend->table_version < TABLE_VERSION_0_7 ? NEVER : frontend->balance.due_at;
}
