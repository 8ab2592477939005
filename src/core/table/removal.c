/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups that nobody uses any more are removed: by the leader of the cluster
 * after the retention time, if they have no notes, or by an operator.
 *
 * Whoever proposes that has looked at the group at some revision. What came since
 * then, and before this in the log, decides: a mandate, a candidate or a note
 * that is newer keeps the group. A look at a revision that is still to come is
 * none: nothing would be newer than it. Nobody loses a mandate by it. One by session
 * keeps the group in any case; one by lease does so unless the leader of the
 * cluster vouches that it ran out long ago. Candidates without a session are
 * those that it has not heard for long; one that beats after all registers
 * again, and the group is there again.
 *
 * Nothing is kept of the group. Its epoch was a revision of this table, so the
 * next one of any group is higher (table.h).
 */
#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

/* Somebody with a session takes part, or leads. */
static bool is_joined(const struct table_group *group)
{
    const struct table_candidate *candidate;

    if (PLANTED(REMOVED_WHILE_JOINED))
        return false;
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session)
            return true;
    }
    return group->is_held && group->session;
}

static bool is_newer(const struct table *table, const struct table_group *group, uint64_t revision)
{
    const struct table_candidate *newest = TAILQ_LAST(&group->candidates, table_candidates);
    struct table_note *note;

    if (PLANTED(REMOVED_THOUGH_NEWER))
        return false;
    if (group->create_revision > revision || group->version > revision ||
        (newest && newest->joined_revision > revision))
        return true;
    for (note = table_note_from(table, group, ""); note; note = table_note_next(note)) {
        if (note->mod_revision > revision)
            return true;
    }
    return false;
}

enum gavel_status group_end(struct step *step, const Gavel__RemoveGroup *remove)
{
    struct table_group *group = table_group_find(step->table, remove->group);
    bool has_lapsed = remove->has_lapsed;
    struct table_candidate *candidate;
    struct table_note *note;
    Gavel__Change gone;

    if (PLANTED(REMOVED_WHILE_JOINED))
        has_lapsed = true;
    if (!group)
        return step_refuse(step, GAVEL_ERR_NOT_FOUND, "there is no such group");
    if (is_joined(group))
        return step_refuse(step, GAVEL_ERR_STATE, "somebody leads the group, or takes part in it");
    if (remove->revision >= step->revision)
        return step_refuse(step, GAVEL_ERR_INVALID, "nobody can have looked at the group so late");
    if (is_newer(step->table, group, remove->revision))
        return step_refuse(step, GAVEL_ERR_CONFLICT, "the group has changed since it was looked at");
    if (group->is_held && !has_lapsed)
        return step_refuse(step, GAVEL_ERR_STATE, "somebody leads the group");
    ASSERT(group->epoch <= step->table->revision); /* so that the next one is higher */
    if (group->is_held)
        election_end(step, group, GAVEL__ENDING__ENDING_LAPSED, text_new(""));
    while ((candidate = TAILQ_FIRST(&group->candidates)))
        candidate_remove(step, candidate, GAVEL__ENDING__ENDING_EXPIRED);
    while ((note = table_note_from(step->table, group, "")))
        note_end(step, note);
    ASSERT(group->note_count == 0);
    gone = step_change(GAVEL__CHANGE__KIND__GROUP_GONE, group);
    gone.epoch = group->epoch;
    step_tell(step, &gone);
    group_remove(step->table, group);
    step->has_changed = true;
    return GAVEL_OK;
}
