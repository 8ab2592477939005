/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ends that are proposed, and not applied yet. Once the end of a session is proposed, or a claim over a
 * mandate that has run out, nothing that is heard of it is taken as a sign of life until the outcome is
 * known: an answer now would promise what the log is about to take away. A renewal goes to the log then,
 * behind the claim.
 */
#include "core/session/frontend_internal.h"

#include "base/assert.h"

bool frontend_is_closing(const struct frontend *frontend, const struct heard_closing *closing)
{
    return closing->term == frontend->term && closing->count > 0;
}

bool frontend_is_closing_session(const struct frontend *frontend, const struct table_session *session)
{
    const struct heard_session *heard = heard_session(&frontend->heard, session);

    return heard && frontend_is_closing(frontend, &heard->closing);
}

bool frontend_is_closing_group(const struct frontend *frontend, const struct table_group *group)
{
    const struct heard_group *heard = heard_group(&frontend->heard, group);

    return heard && frontend_is_closing(frontend, &heard->closing);
}

static void count_up(struct heard_closing *closing, uint64_t term, uint64_t number)
{
    if (closing->term != term)
        closing->count = 0;
    if (closing->count == 0)
        closing->first = number;
    ASSERT(term > 0);
    ASSERT(closing->first <= number);
    closing->term = term;
    closing->count++;
}

/* An older proposal was counted for the mandate before: the end of this one may still be on its way. */
static void count_down(struct heard_closing *closing, uint64_t term, uint64_t number)
{
    if (closing->term != term || closing->count == 0 || number < closing->first)
        return;
    ASSERT(term > 0);
    closing->count--;
}

/* The session or the group whose end, or wish, an operation is. A wish ends nothing; it is counted so that
 * the expiry does not propose it twice. Deaths are told again and again until the table knows of them. */
static void find_closing(const struct frontend *frontend, const Gavel__Op *op,
                         const struct table_session **ret_session, const struct table_group **ret_group)
{
    bool ends_group = op->what_case == GAVEL__OP__WHAT_LAPSE || op->what_case == GAVEL__OP__WHAT_WISH ||
                      op->what_case == GAVEL__OP__WHAT_REMOVE_GROUP ||
                      (op->what_case == GAVEL__OP__WHAT_CLAIM && op->claim->must_be_expired) ||
                      (op->what_case == GAVEL__OP__WHAT_RELEASE && op->release->is_dead);

    *ret_session = op->what_case == GAVEL__OP__WHAT_CLOSE_SESSION
                       ? table_session_find_any(frontend->table, op->close_session->session)
                       : NULL;
    *ret_group = ends_group ? table_group_find(frontend->table, table_op_group(op)) : NULL;
}

bool frontend_is_under_way(const struct frontend *frontend, const Gavel__Op *op)
{
    const struct table_session *session;
    const struct table_group *group;

    find_closing(frontend, op, &session, &group);
    return (session && frontend_is_closing_session(frontend, session)) ||
           (group && frontend_is_closing_group(frontend, group));
}

void frontend_closing_begin(struct frontend *frontend, const Gavel__Op *op, uint64_t number)
{
    const struct table_session *session;
    const struct table_group *group;

    find_closing(frontend, op, &session, &group);
    if (session)
        count_up(&heard_of_session(&frontend->heard, session)->closing, frontend->term, number);
    if (group)
        count_up(&heard_of_group(&frontend->heard, group)->closing, frontend->term, number);
}

void frontend_closing_end(struct frontend *frontend, const Gavel__Op *op, uint64_t term, uint64_t number)
{
    const struct table_session *session;
    const struct table_group *group;

    find_closing(frontend, op, &session, &group);
    /* Another session with its id, and another mandate of the group, are not concerned. */
    if (session && heard_session(&frontend->heard, session))
        count_down(&heard_of_session(&frontend->heard, session)->closing, term, number);
    if (group && heard_group(&frontend->heard, group))
        count_down(&heard_of_group(&frontend->heard, group)->closing, term, number);
}
