/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is granted the mandate of a vacant group.
 *
 *     named or wished for ──► it, if it is eligible
 *                             (a candidate without a session: the group is left to its claim;
 *                             if it is not eligible nobody waits for it)
 *     else by policy among those with a session
 *     else who has just given it up and stays
 *
 * A store's candidates claim for themselves, so they are never granted
 * anything here. A patient candidate is left out as long as the group has no
 * leader because the last one was lost: it waits, and then campaigns without
 * its patience.
 *
 * Epochs are revisions. Who claims or campaigns and knows of a higher epoch than
 * the counter has reached makes the counter jump, but not out of what belongs
 * to the generation of the cluster, nor into its upper half: otherwise the next
 * generation would begin below what a lost majority may have counted, and give
 * the same epochs again.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

static bool may_lead(const struct table_candidate *candidate)
{
    if (PLANTED(GRANTS_INELIGIBLE))
        return candidate->session;
    return candidate->session && !candidate->session->is_ending && candidate->is_eligible;
}

/* Whether the last mandate of the group ended with its holder, and not because that gave it up. */
static bool was_lost(const struct table_group *group)
{
    return group->epoch != 0 && (group->last_ending == GAVEL__ENDING__ENDING_EXPIRED ||
                                 group->last_ending == GAVEL__ENDING__ENDING_DEAD ||
                                 group->last_ending == GAVEL__ENDING__ENDING_LAPSED);
}

/* Whether it may be granted the mandate as things are. To come back is not to replace anybody. */
static bool may_take(const struct table_candidate *candidate)
{
    const struct table_group *group = candidate->group;
    bool waits = candidate->is_patient && !group->is_held && was_lost(group) &&
                 strcmp(candidate->id, group->holder) != 0;

    if (PLANTED(PATIENCE_FORGOTTEN))
        waits = false;
    return may_lead(candidate) && !waits;
}

/* Whether `a` comes before `b` by the policy of their group. */
static bool is_before(const struct table_candidate *a, const struct table_candidate *b)
{
    switch (a->group->policy) {
    case GAVEL__POLICY__POLICY_LEXICOGRAPHIC:
        return strcmp(a->id, b->id) < 0;
    case GAVEL__POLICY__POLICY_PRIORITY:
        if (a->priority != b->priority)
            return a->priority > b->priority;
        return a->joined_revision < b->joined_revision;
    case GAVEL__POLICY__POLICY_BALANCED:
        if (PLANTED(BALANCE_IGNORED))
            return a->joined_revision < b->joined_revision;
        if (a->session->lead_count != b->session->lead_count)
            return a->session->lead_count < b->session->lead_count;
        return a->joined_revision < b->joined_revision;
    default:
        if (PLANTED(QUEUE_BY_ID))
            return strcmp(a->id, b->id) < 0;
        return a->joined_revision < b->joined_revision;
    }
}

/* The best that may take it, other than this one; NULL if there is none. */
static struct table_candidate *best_but(const struct table_group *group, const struct table_candidate *but)
{
    struct table_candidate *best = NULL;
    struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate != but && may_take(candidate) && (!best || is_before(candidate, best)))
            best = candidate;
    }
    return best;
}

static struct table_candidate *leader_of(const struct table_group *group)
{
    return group->is_held && group->session ? candidate_of_session(group, group->session) : NULL;
}

struct table_candidate *table_group_next_in_line(const struct table_group *group)
{
    const struct table_candidate *leader = leader_of(group);
    const char *named = group->wish_epoch != 0 ? group->wish_successor : group->successor;
    struct table_candidate *next = named[0] ? table_candidate_find(group, named) : NULL;

    if (next && next != leader && may_take(next))
        return next;
    return best_but(group, leader);
}

struct table_candidate *table_group_better(const struct table_group *group)
{
    const struct table_candidate *leader = leader_of(group);
    struct table_candidate *best;

    /* In a queue whoever leads is its head; for balanced ones there is table_group_lighter(). */
    if (!leader || !group->preempts ||
        (group->policy != GAVEL__POLICY__POLICY_LEXICOGRAPHIC &&
         group->policy != GAVEL__POLICY__POLICY_PRIORITY))
        return NULL;
    best = best_but(group, leader);
    ASSERT(!best || best != leader);
    return best && is_before(best, leader) ? best : NULL;
}

bool election_has_waiting(const struct table_group *group)
{
    const struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (may_take(candidate) && !candidate_leads(candidate))
            return true;
    }
    return false;
}

void election_drop_wish(struct table_group *group)
{
    group->wish_epoch = 0;
    group->wish_is_forced = false;
    group->wish_timeout_ms = 0;
    text_set(&group->wish_successor, text_new(""));
}

void election_end(struct step *step, struct table_group *group, Gavel__Ending ending, char *successor)
{
    Gavel__Change change = step_change(GAVEL__CHANGE__KIND__VACANT, group);

    ASSERT(group->is_held);
    ASSERT(group->epoch > 0);
    ASSERT(step->revision > group->version);
    ASSERT(successor);
    change.epoch = group->epoch;
    change.holder = group->holder;
    change.why = ending;
    change.session = group->session ? group->session->id : 0;
    change.successor = successor;
    step_tell(step, &change);
    group->is_held = false;
    group->session = NULL;
    group->last_ending = ending;
    group->version = step->revision;
    election_drop_wish(group);
    text_set(&group->successor, successor);
}

void election_finish(struct step *step, struct table_group *group)
{
    Gavel__Change done = step_change(GAVEL__CHANGE__KIND__DONE, group);

    ASSERT(!group->is_held);
    ASSERT(!group->is_done);
    if (PLANTED(FINISH_KEEPS_OPEN))
        return;
    group->is_done = true;
    done.epoch = group->epoch;
    done.holder = group->holder;
    step_tell(step, &done);
}

/* No jump reaches it; what is above in the same generation is more than anybody can use up one by one. */
static uint64_t jumps_end(const struct step *step)
{
    uint64_t generation = step->generation < TABLE_GENERATION_MAX ? step->generation : TABLE_GENERATION_MAX;
    uint64_t begin = generation > 1 ? (generation - 1) << TABLE_GENERATION_BITS : 0;

    return begin + (UINT64_C(1) << (TABLE_GENERATION_BITS - 1));
}

enum gavel_status election_pass(struct step *step, uint64_t epoch)
{
    if (step->revision > epoch)
        return GAVEL_OK;
    if (PLANTED(FLOOR_FORGOTTEN))
        return GAVEL_OK;
    if (epoch >= jumps_end(step))
        return step_refuse(step, GAVEL_ERR_STORE_FULL,
                           "the epoch that must be passed is out of reach of this cluster");
    step->revision = epoch + 1;
    ASSERT(step->revision > epoch);
    return GAVEL_OK;
}

static void begin(struct step *step, struct table_group *group, char *holder, char *address)
{
    Gavel__Change change = step_change(GAVEL__CHANGE__KIND__ELECTED, group);
    uint64_t last_epoch = group->epoch;

    ASSERT(!group->is_done);
    ASSERT(step->revision > group->epoch);
    ASSERT(holder);
    ASSERT(holder[0]);
    ASSERT(address);
    text_set(&group->previous_holder, group->holder);
    group->holder = holder;
    text_set(&group->address, address);
    text_set(&group->successor, text_new(""));
    election_drop_wish(group);
    group->is_held = true;
    group->epoch = step->revision;
    if (PLANTED(EPOCH_AGAIN) && group->last_ending == GAVEL__ENDING__ENDING_RESIGNED && last_epoch != 0)
        group->epoch = last_epoch;
    if (PLANTED(REMOVAL_FORGETS_EPOCH) && last_epoch == 0)
        group->epoch = 1;
    ASSERT(group->epoch > last_epoch || PLANTED(EPOCH_AGAIN)); /* or nothing could be fenced by it */
    group->version = step->revision;
    group->since_wall_ms = step->wall_ms;
    change.epoch = group->epoch;
    change.holder = group->holder;
    change.address = group->address;
    change.previous_holder = group->previous_holder;
    change.session = group->session ? group->session->id : 0;
    step_tell(step, &change);
}

void election_renew(struct step *step, struct table_group *group)
{
    ASSERT(group->is_held);
    ASSERT(group->session);
    ASSERT(group->wish_epoch == 0);
    group->last_ending = GAVEL__ENDING__ENDING_RESIGNED; /* of the mandate before: it was not lost */
    begin(step, group, text_share(group->holder), text_share(group->address));
}

void election_begin(struct step *step, struct table_group *group, char *holder, char *address)
{
    ASSERT(!group->is_held); /* whoever held it was told that it is over */
    begin(step, group, holder, address);
}

void election_grant(struct step *step, struct table_group *group, const struct table_candidate *leaver)
{
    struct table_candidate *chosen = NULL;

    if (group->is_held || group->is_done)
        return;
    if (group->successor[0]) {
        chosen = table_candidate_find(group, group->successor);
        /* It claims for itself. By the rules of version 1 also one that never will is waited for. */
        if (chosen && !chosen->session && (chosen->is_eligible || step->version < TABLE_VERSION_0_7))
            return;
    }
    if (!chosen || !may_take(chosen) || chosen == leaver)
        chosen = best_but(group, leaver);
    if (!chosen)
        chosen = best_but(group, NULL);
    if (PLANTED(LEAVER_FIRST) && leaver && may_lead(leaver))
        chosen = table_candidate_find(group, leaver->id);
    if (!chosen)
        return;
    ASSERT(chosen->group == group);
    ASSERT(chosen->session);
    ASSERT(may_lead(chosen));
    group->session = chosen->session;
    group->nonce_high = group->nonce_low = 0;
    group->lease_ms = chosen->session->ttl_ms;
    group->process = chosen->session->process;
    election_begin(step, group, text_share(chosen->id), text_share(chosen->address));
    ASSERT(candidate_leads(chosen));
}
