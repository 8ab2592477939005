/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee's own idea of what operations do to groups, sessions and notes,
 * from the words of table.proto and table.h. Whether an operation was refused
 * it hears from the table, and where the rule is simple it has its own opinion.
 */
#include "sim/session/referee_shadow.h"
#include "sim/session/world.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static void set(char to[SHADOW_ID], const char *from)
{
    size_t length = strnlen(from, SHADOW_ID - 1);

    memmove(to, from, length);
    to[length] = '\0';
}

static struct shadow_group *group_of(struct session_referee *referee, const char *name)
{
    unsigned group = testbed_group_of(name);

    return group < GROUPS_MAX ? &referee->groups[group] : NULL;
}

static const char *name_of(const struct session_referee *referee, const struct shadow_group *group)
{
    return testbed_group_name((unsigned)(group - referee->groups));
}

static struct shadow_candidate *candidate_by_id(struct shadow_group *group, const char *id)
{
    for (size_t i = 0; i < group->candidate_count; i++)
        if (strcmp(group->candidates[i].id, id) == 0)
            return &group->candidates[i];
    return NULL;
}

static struct shadow_candidate *candidate_of(struct shadow_group *group, uint64_t session)
{
    for (size_t i = 0; i < group->candidate_count; i++)
        if (group->candidates[i].session == session)
            return &group->candidates[i];
    return NULL;
}

static void remove_candidate(struct shadow_group *group, const struct shadow_candidate *candidate)
{
    size_t at = (size_t)(candidate - group->candidates);

    group->candidate_count--;
    memmove(&group->candidates[at], &group->candidates[at + 1],
            (group->candidate_count - at) * sizeof *group->candidates);
}

/* ---- who leads ---- */

/* How many groups its session leads. */
static unsigned lead_count(const struct session_referee *referee, const struct shadow_candidate *candidate)
{
    unsigned count = 0;

    for (unsigned i = 0; i < GROUPS_MAX; i++)
        count += referee->groups[i].is_held && referee->groups[i].session == candidate->session;
    return count;
}

static bool is_before(const struct session_referee *referee, const struct shadow_group *group,
                      const struct shadow_candidate *a, const struct shadow_candidate *b)
{
    unsigned a_leads = lead_count(referee, a), b_leads = lead_count(referee, b);

    if (group->policy == GAVEL__POLICY__POLICY_BALANCED && a_leads != b_leads)
        return a_leads < b_leads;
    if (group->policy == GAVEL__POLICY__POLICY_LEXICOGRAPHIC)
        return strcmp(a->id, b->id) < 0;
    if (group->policy == GAVEL__POLICY__POLICY_PRIORITY && a->priority != b->priority)
        return a->priority > b->priority;
    return a->joined < b->joined;
}

/* Whoever is patient does not take the place of another that was lost. */
static bool may_take(const struct shadow_group *group, const struct shadow_candidate *candidate)
{
    return candidate->is_eligible && !candidate->is_ending &&
           !(candidate->is_patient && group->was_lost && strcmp(candidate->id, group->holder) != 0);
}

static struct shadow_candidate *best(const struct session_referee *referee, struct shadow_group *group,
                                     const char *but)
{
    struct shadow_candidate *found = NULL;

    for (size_t i = 0; i < group->candidate_count; i++) {
        struct shadow_candidate *candidate = &group->candidates[i];

        if (may_take(group, candidate) && strcmp(candidate->id, but) != 0 &&
            (!found || is_before(referee, group, candidate, found)))
            found = candidate;
    }
    return found;
}

static void begin_mandate(struct session_referee *referee, struct shadow_group *group, const char *holder,
                          uint64_t session, uint64_t epoch)
{
    uint64_t floor = referee->floor[group - referee->groups];
    uint64_t last = group->epoch > floor ? group->epoch : floor;

    if (epoch <= last)
        session_referee_violate(referee, SESSION_INVARIANT_EPOCHS,
                                "%s: a mandate with epoch %llu after one with %llu", name_of(referee, group),
                                (ull)epoch, (ull)last);
    if (epoch <= referee->passed[group - referee->groups])
        session_referee_violate(referee, SESSION_INVARIANT_EPOCHS,
                                "%s: a mandate with epoch %llu, after a campaign for epochs above %llu",
                                name_of(referee, group), (ull)epoch,
                                (ull)referee->passed[group - referee->groups]);
    referee->counts.anew += group->epoch == 0 && floor != 0;
    group->is_held = true;
    group->session = session;
    set(group->holder, holder);
    group->epoch = group->version = group->first_epoch = epoch;
    group->successor[0] = group->wish_successor[0] = '\0';
    group->wish_epoch = 0;
    group->lease_until = 0;
    group->ordinal++;
    referee->grants =
        grow(referee->grants, referee->grant_count, &referee->grant_capacity, sizeof *referee->grants);
    referee->grants[referee->grant_count++] = (struct shadow_grant){
        .group = (unsigned)(group - referee->groups), .epoch = epoch, .ordinal = group->ordinal};
    if (session != 0)
        referee->counts.grants++;
    else
        referee->counts.claims++;
}

static void end_mandate(struct session_referee *referee, struct shadow_group *group, Gavel__Ending why,
                        const char *successor, uint64_t revision)
{
    if (referee->is_quiet && (why == GAVEL__ENDING__ENDING_EXPIRED || why == GAVEL__ENDING__ENDING_LAPSED))
        session_referee_violate(referee, SESSION_INVARIANT_CALM,
                                "%s is demoted in %s, and only the cluster had troubles", group->holder,
                                name_of(referee, group));
    group->is_held = false;
    group->has_died = why == GAVEL__ENDING__ENDING_DEAD;
    group->was_lost = why == GAVEL__ENDING__ENDING_DEAD || why == GAVEL__ENDING__ENDING_EXPIRED ||
                      why == GAVEL__ENDING__ENDING_LAPSED;
    group->session = 0;
    group->version = revision;
    group->wish_epoch = 0;
    set(group->successor, successor); /* may be the wish's own, so that goes last */
    group->wish_successor[0] = '\0';
}

/* Whoever leads a lease must not count on it any more. */
static void check_lease_over(struct session_referee *referee, const struct shadow_group *group,
                             const char *what)
{
    if (group->lease_until > referee->now && !referee->is_dead[group->pid])
        session_referee_violate(referee, SESSION_INVARIANT_DEADLINE,
                                "%s: %s the lease of %c (epoch %llu) that it counts on for another %.3f ms",
                                name_of(referee, group), what, session_referee_letter(referee, group->pid),
                                (ull)group->epoch, (double)(group->lease_until - referee->now) / 1e6);
}

static void settle(struct session_referee *referee, struct shadow_group *group, const char *leaver,
                   uint64_t revision)
{
    struct shadow_candidate *chosen = NULL;

    if (!group->is_held && !group->is_done) {
        if (group->successor[0])
            chosen = candidate_by_id(group, group->successor);
        if (!chosen || !may_take(group, chosen) || strcmp(chosen->id, leaver) == 0)
            chosen = best(referee, group, leaver);
        if (!chosen)
            chosen = best(referee, group, "");
        if (chosen)
            begin_mandate(referee, group, chosen->id, chosen->session, revision);
    }
    if (group->epoch == 0 && group->candidate_count == 0 && group->note_count == 0)
        *group = (struct shadow_group){.ordinal = group->ordinal}; /* one was removed before, perhaps */
}

/* ---- sessions ---- */

static void open_session(struct session_referee *referee, const Gavel__OpenSession *open, uint64_t revision)
{
    const struct shadow_session *former = shadow_session_find(referee, open->session);

    if (former && former->is_open)
        return;
    referee->counts.reopened += former != NULL;
    referee->sessions = grow(referee->sessions, referee->session_count, &referee->session_capacity,
                             sizeof *referee->sessions);
    referee->sessions[referee->session_count++] =
        (struct shadow_session){.id = open->session,
                                .revision = revision,
                                .opened_at = referee->now,
                                .is_open = true,
                                .pid = open->process ? open->process->pid : 0};
    referee->counts.sessions++;
}

static void check_ending(struct session_referee *referee, const struct shadow_session *session,
                         Gavel__Ending ending)
{
    char letter = session_referee_letter(referee, session->pid);
    bool is_dead = referee->is_dead[session->pid];

    if (ending == GAVEL__ENDING__ENDING_DEAD && !is_dead)
        session_referee_violate(referee, SESSION_INVARIANT_DEATH,
                                "the session of %c is ended as that of a dead process", letter);
    if (ending == GAVEL__ENDING__ENDING_CLOSED && !is_dead && !session->is_given_up)
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "the session of %c is closed, and it did not ask for it", letter);
    if (ending == GAVEL__ENDING__ENDING_EXPIRED && !is_dead && !session->is_given_up &&
        referee->now < session->until)
        session_referee_violate(referee, SESSION_INVARIANT_DEADLINE,
                                "the session of %c expires, and it counts on it for another %.3f ms", letter,
                                (double)(session->until - referee->now) / 1e6);
    if (ending == GAVEL__ENDING__ENDING_EXPIRED && referee->is_quiet && session->until != 0)
        session_referee_violate(referee, SESSION_INVARIANT_CALM,
                                "the session of %c expires, and only the cluster had troubles", letter);
    referee->counts.expired += ending == GAVEL__ENDING__ENDING_EXPIRED;
    referee->counts.deaths += ending == GAVEL__ENDING__ENDING_DEAD;
    referee->counts.closed += ending == GAVEL__ENDING__ENDING_CLOSED;
}

/* The group that it has been in for longest; NULL: it is in none. */
static struct shadow_group *first_group(struct session_referee *referee, const struct shadow_session *session)
{
    struct shadow_group *first = NULL;
    uint64_t joined = 0;

    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        const struct shadow_candidate *candidate = candidate_of(&referee->groups[i], session->id);

        if (!candidate || (first && candidate->joined > joined))
            continue;
        first = &referee->groups[i];
        joined = candidate->joined;
    }
    return first;
}

static void leave(struct session_referee *referee, struct shadow_group *group,
                  const struct shadow_session *session, uint64_t revision)
{
    if (group->is_held && group->session == session->id)
        end_mandate(referee, group, session->ending, group->wish_successor, revision);
    remove_candidate(group, candidate_of(group, session->id));
    group->touched_at = referee->now;
    settle(referee, group, "", revision);
}

/* It is over for everybody, also for groups that it leaves later. */
static void begin_ending(struct session_referee *referee, struct shadow_session *session)
{
    session->is_ending = true;
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct shadow_candidate *candidate = candidate_of(&referee->groups[i], session->id);

        if (candidate)
            candidate->is_ending = true;
    }
}

static void close_session(struct session_referee *referee, const Gavel__CloseSession *close,
                          uint64_t revision)
{
    struct shadow_session *session = shadow_session_find(referee, close->session);
    uint32_t left = close->groups_max > 0 ? close->groups_max : UINT32_MAX;
    struct shadow_group *group = NULL;

    if (!session || (!session->is_open && !session->is_ending))
        return;
    if (session->is_open) {
        check_ending(referee, session, close->ending);
        session->is_open = false;
        session->ended_at = referee->now;
        session->ending = close->ending;
        session->has_expired = close->ending == GAVEL__ENDING__ENDING_EXPIRED;
        begin_ending(referee, session);
    }
    for (; left > 0 && (group = first_group(referee, session)); left--)
        leave(referee, group, session, revision);
    session->is_ending = first_group(referee, session) != NULL;
    referee->counts.parted += session->is_ending;
}

/* ---- candidates ---- */

/* Whether it is the one with that number; who has said none may be any. */
static bool is_instance(const struct shadow_candidate *candidate, uint64_t instance)
{
    return instance == 0 || candidate->instance == 0 || candidate->instance == instance;
}

/* The same leads on, under a new epoch: its mandate before has ended, and nobody else had a turn. */
static void go_on(struct session_referee *referee, struct shadow_group *group, uint64_t epoch)
{
    uint64_t first = group->first_epoch;
    char holder[SHADOW_ID];

    set(holder, group->holder);
    begin_mandate(referee, group, holder, group->session, epoch);
    group->first_epoch = first;
    referee->counts.renewed++;
}

static void campaign(struct session_referee *referee, const struct shadow_session *session,
                     const Gavel__Campaign *campaign, uint64_t revision)
{
    struct shadow_group *group = group_of(referee, campaign->group);
    struct shadow_candidate *candidate = candidate_by_id(group, campaign->id);
    size_t which = (size_t)(group - referee->groups);

    if (!session || !session->is_open || (candidate && candidate->session != session->id)) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "%s campaigns in %s, without a session or with another's id", campaign->id,
                                campaign->group);
        return;
    }
    if (!candidate) {
        if (group->candidate_count == SHADOW_CANDIDATES)
            abort(); /* there are fewer programs than that */
        candidate = &group->candidates[group->candidate_count++];
        *candidate = (struct shadow_candidate){.session = session->id, .joined = revision};
        set(candidate->id, campaign->id);
    }
    candidate->priority = campaign->priority;
    candidate->is_eligible = !campaign->is_ineligible;
    candidate->is_patient = campaign->is_patient;
    if (!is_instance(candidate, campaign->instance))
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "%s campaigns in %s in the place of another one with its id", campaign->id,
                                campaign->group);
    candidate->instance = campaign->instance != 0 ? campaign->instance : candidate->instance;
    if (campaign->epoch_at_least > referee->passed[which])
        referee->passed[which] = campaign->epoch_at_least;
    group->exists = true;
    if (campaign->policy != GAVEL__POLICY__POLICY_UNSET &&
        (group->policy == GAVEL__POLICY__POLICY_UNSET || group->candidate_count == 1))
        group->policy = campaign->policy;
    settle(referee, group, "", revision);
    if (campaign->renews_epoch != 0 && group->is_held && group->session == session->id &&
        group->epoch == campaign->renews_epoch && candidate->is_eligible && group->wish_epoch == 0)
        go_on(referee, group, revision);
}

static void withdraw(struct session_referee *referee, const struct shadow_session *session,
                     const Gavel__Withdraw *withdraw, bool is_done, uint64_t revision)
{
    struct shadow_group *group = group_of(referee, withdraw->group);
    struct shadow_candidate *candidate = session ? candidate_of(group, session->id) : NULL;
    bool leads = candidate && group->is_held && group->session == candidate->session;
    bool is_meant = candidate && is_instance(candidate, withdraw->instance) &&
                    (!withdraw->id[0] || strcmp(candidate->id, withdraw->id) == 0);
    bool is_due = is_meant && (withdraw->epoch == 0 || (leads && withdraw->epoch == group->epoch));
    char leaver[SHADOW_ID] = "";

    if (is_done != is_due) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "a withdrawal from %s with epoch %llu is %s", withdraw->group,
                                (ull)withdraw->epoch, is_done ? "done" : "refused");
        return;
    }
    if (!is_done)
        return;
    if (leads) {
        referee->counts.hand_overs += group->wish_epoch != 0 || withdraw->successor[0];
        end_mandate(referee, group,
                    withdraw->ending != GAVEL__ENDING__ENDING_CLOSED ? withdraw->ending
                                                                     : GAVEL__ENDING__ENDING_RESIGNED,
                    withdraw->successor[0] ? withdraw->successor : group->wish_successor, revision);
    }
    if (withdraw->is_done) {
        group->is_done = true;
        referee->counts.finished++;
    }
    if (withdraw->stays && !withdraw->is_done) {
        candidate->joined = revision;
        set(leaver, candidate->id);
    } else {
        remove_candidate(group, candidate);
    }
    settle(referee, group, leaver, revision);
}

static void reopen(struct session_referee *referee, const Gavel__Reopen *reopen, bool is_done,
                   uint64_t revision)
{
    struct shadow_group *group = group_of(referee, reopen->group);

    if (is_done != (group->is_done && group->version == reopen->expected_version)) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "%s is %s anew at version %llu",
                                reopen->group, is_done ? "opened" : "not opened",
                                (ull)reopen->expected_version);
        return;
    }
    if (!is_done)
        return;
    group->is_done = false;
    group->version = revision;
    settle(referee, group, "", revision);
}

/* ---- leases ---- */

static void claim(struct session_referee *referee, const Gavel__Claim *claim, bool is_done, uint64_t revision)
{
    struct shadow_group *group = group_of(referee, claim->group);
    /* Who saw a death by itself does not come too late because the death is written down already. */
    bool is_known = claim->expected_version == group->version ||
                    (!group->is_held && group->has_died && claim->expected_version == group->epoch);
    bool is_due = !(group->is_held && group->session != 0) && is_known && !group->is_done;

    if (is_done != is_due) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "a claim of %s by %s at version %llu is %s",
                                claim->group, claim->holder, (ull)claim->expected_version,
                                is_done ? "granted" : "refused");
        return;
    }
    if (!is_done)
        return;
    if (group->is_held) {
        check_lease_over(referee, group, "somebody claims");
        referee->counts.take_overs++;
        end_mandate(referee, group, GAVEL__ENDING__ENDING_LAPSED, "", revision);
    }
    begin_mandate(referee, group, claim->holder, 0, revision);
    group->exists = true;
    group->nonce = claim->nonce_low;
    group->lease_ms = claim->lease_ms;
    group->pid = claim->process ? claim->process->pid : 0;
}

static bool is_holder(const struct shadow_group *group, const char *holder, uint64_t nonce, uint64_t epoch)
{
    return group->is_held && group->session == 0 && group->nonce == nonce && group->epoch == epoch &&
           strcmp(group->holder, holder) == 0;
}

static void renew(struct session_referee *referee, const Gavel__Renew *renew, bool is_done)
{
    struct shadow_group *group = group_of(referee, renew->group);

    if (is_done != is_holder(group, renew->holder, renew->nonce_low, renew->epoch))
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "a renewal of %s by %s is %s", renew->group,
                                renew->holder, is_done ? "done" : "refused");
    else if (is_done)
        group->lease_ms = renew->lease_ms;
}

static void release(struct session_referee *referee, const Gavel__Release *release, bool is_done,
                    uint64_t revision)
{
    struct shadow_group *group = group_of(referee, release->group);
    bool is_due = release->is_dead ? group->is_held && group->session == 0 && group->epoch == release->epoch
                                   : is_holder(group, release->holder, release->nonce_low, release->epoch);

    if (is_done != is_due) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "a release of %s with epoch %llu is %s",
                                release->group, (ull)release->epoch, is_done ? "done" : "refused");
        return;
    }
    if (!is_done)
        return;
    if (release->is_dead && !referee->is_dead[group->pid])
        session_referee_violate(referee, SESSION_INVARIANT_DEATH,
                                "%s: the mandate of %c is ended as that of a dead process", release->group,
                                session_referee_letter(referee, group->pid));
    referee->counts.hand_overs += group->wish_epoch != 0;
    end_mandate(referee, group,
                release->is_dead ? GAVEL__ENDING__ENDING_DEAD : GAVEL__ENDING__ENDING_RELEASED,
                release->successor[0] ? release->successor : group->wish_successor, revision);
    settle(referee, group, "", revision);
}

static void lapse(struct session_referee *referee, const Gavel__Lapse *lapse, uint64_t revision)
{
    struct shadow_group *group = group_of(referee, lapse->group);

    if (group->epoch != lapse->epoch || (group->is_held && group->session != 0)) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "a mandate of %s lapses that is none by lease", lapse->group);
        return;
    }
    if (group->is_held) {
        check_lease_over(referee, group, "the cluster ends");
        referee->counts.lapses++;
        end_mandate(referee, group, GAVEL__ENDING__ENDING_LAPSED, group->wish_successor, revision);
    } else {
        group->successor[0] = '\0';
    }
    settle(referee, group, "", revision);
}

static void wish(struct session_referee *referee, const Gavel__Wish *wish)
{
    struct shadow_group *group = group_of(referee, wish->group);

    if (!group->is_held || group->epoch != wish->epoch) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                "a wish of %s with epoch %llu is taken, which is not in force", wish->group,
                                (ull)wish->epoch);
        return;
    }
    if (wish->is_over) {
        referee->counts.rollbacks += group->wish_epoch != 0;
        group->wish_epoch = 0;
        group->wish_successor[0] = '\0';
        return;
    }
    group->wish_epoch = wish->epoch;
    set(group->wish_successor, wish->successor);
    group->wished_at = referee->now;
    group->wish_timeout_ms = wish->timeout_ms;
}

/* ---- notes ---- */

static struct shadow_note *note_of(struct shadow_group *group, const char *key)
{
    for (size_t i = 0; i < group->note_count; i++)
        if (strcmp(group->notes[i].key, key) == 0)
            return &group->notes[i];
    return NULL;
}

/* Values that nobody writes twice; those of the counter are one more than before. */
static void look_at_value(struct session_referee *referee, struct shadow_group *group,
                          const Gavel__PutNote *put)
{
    char text[24] = "";
    struct shadow_value *value;
    uint64_t number;

    memcpy(text, put->value.data, put->value.len < sizeof text ? put->value.len : sizeof text - 1);
    number = strtoull(text, NULL, 10);
    if (strcmp(put->key, "count") == 0) {
        if (number != group->counter + 1)
            session_referee_violate(referee, SESSION_INVARIANT_COUNTER, "%s counts from %llu to %llu",
                                    put->group, (ull)group->counter, (ull)number);
        group->counter = number;
        return;
    }
    value = shadow_value_find(referee, number);
    if (++value->times > 1)
        session_referee_violate(referee, SESSION_INVARIANT_ONCE,
                                "the note %llu is written to %s a second time", (ull)number, put->group);
}

static void put_note(struct session_referee *referee, const Gavel__PutNote *put,
                     const struct table_result *result)
{
    struct shadow_group *group = group_of(referee, put->group);
    struct shadow_note *note = note_of(group, put->key);
    bool is_due = (put->epoch == 0 || put->epoch == group->epoch) &&
                  (!put->has_expected || put->expected == (note ? note->revision : 0));

    referee->counts.stale += result->status == GAVEL_ERR_TERM_STALE;
    if ((result->status == GAVEL_OK) != is_due) {
        session_referee_violate(referee, SESSION_INVARIANT_NOTES,
                                "a note in %s with epoch %llu (it is %llu), expecting revision %llu, is %s",
                                put->group, (ull)put->epoch, (ull)group->epoch, (ull)put->expected,
                                result->status == GAVEL_OK ? "written" : "refused");
        return;
    }
    if (!is_due)
        return;
    if (!note) {
        if (group->note_count == SHADOW_NOTES)
            abort(); /* there are fewer keys than that */
        note = &group->notes[group->note_count++];
        set(note->key, put->key);
    }
    note->revision = result->revision;
    group->exists = true;
    look_at_value(referee, group, put);
}

/* ---- removals ---- */

static bool is_newer(const struct shadow_group *group, uint64_t revision)
{
    bool is_newer = group->version > revision;

    for (size_t i = 0; i < group->note_count; i++)
        is_newer = is_newer || group->notes[i].revision > revision;
    return is_newer;
}

/* An operator may remove any group at any time, the cluster after the retention time, without notes. */
static void check_removal(struct session_referee *referee, const struct shadow_group *group,
                          const Gavel__RemoveGroup *remove)
{
    gavel_ns lease_until = group->is_held ? group->lease_until : 0; /* it may be given up before */
    gavel_ns idle = referee->now - ns_max(group->touched_at, lease_until);

    if (group->candidate_count > 0 || (group->is_held && group->session != 0))
        session_referee_violate(referee, SESSION_INVARIANT_REMOVAL,
                                "%s is removed, and %zu take part in it, %s leads", remove->group,
                                group->candidate_count, group->is_held ? group->holder : "nobody");
    if (is_newer(group, remove->revision))
        session_referee_violate(referee, SESSION_INVARIANT_REMOVAL,
                                "%s is removed as of revision %llu, and has changed since", remove->group,
                                (ull)remove->revision);
    if (group->is_held)
        check_lease_over(referee, group, "with the group the cluster removes");
    if (!remove->is_forced && group->note_count > 0)
        session_referee_violate(referee, SESSION_INVARIANT_REMOVAL,
                                "%s is removed by time, and has %zu notes", remove->group, group->note_count);
    if (!remove->is_forced && (referee->retention == 0 || idle < referee->retention))
        session_referee_violate(referee, SESSION_INVARIANT_REMOVAL,
                                "%s is removed %.3f ms after its last use, and is to be kept for %.3f ms",
                                remove->group, (double)idle / 1e6, (double)referee->retention / 1e6);
}

static void remove_group(struct session_referee *referee, const Gavel__RemoveGroup *remove, bool is_done)
{
    struct shadow_group *group = group_of(referee, remove->group);
    unsigned which = (unsigned)(group - referee->groups);
    bool is_due = group->exists && group->candidate_count == 0 && (!group->is_held || remove->has_lapsed) &&
                  !(group->is_held && group->session != 0) && !is_newer(group, remove->revision);

    if (!is_done && is_due)
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "the removal of %s is refused",
                                remove->group);
    if (!is_done)
        return;
    if (!group->exists)
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "%s is removed, and is not there",
                                remove->group);
    check_removal(referee, group, remove);
    referee->counts.removals++;
    if (group->epoch > referee->floor[which])
        referee->floor[which] = group->epoch;
    referee->counter[which].removed += group->counter;
    *group = (struct shadow_group){.ordinal = group->ordinal};
}

/* ---- any ---- */

/* A renewal lasts from when it was asked for, however late the log has it: lease_until. */
static void touch(struct session_referee *referee, const Gavel__Op *op)
{
    struct shadow_group *group = group_of(referee, table_op_group(op));

    if (group && op->what_case != GAVEL__OP__WHAT_RENEW)
        group->touched_at = referee->now;
}

void shadow_apply(struct session_referee *referee, struct shadow_session *session, const Gavel__Op *op,
                  const struct table_result *result)
{
    bool is_done = result->status == GAVEL_OK;
    uint64_t revision = result->revision;

    if (is_done && op->what_case != GAVEL__OP__WHAT_REMOVE_GROUP)
        touch(referee, op);
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
        if (is_done)
            open_session(referee, op->open_session, revision);
        break;
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        if (is_done)
            close_session(referee, op->close_session, revision);
        break;
    case GAVEL__OP__WHAT_CAMPAIGN:
        if (is_done)
            campaign(referee, session, op->campaign, revision);
        break;
    case GAVEL__OP__WHAT_REOPEN:
        reopen(referee, op->reopen, is_done, revision);
        break;
    case GAVEL__OP__WHAT_WITHDRAW:
        withdraw(referee, session, op->withdraw, is_done, revision);
        break;
    case GAVEL__OP__WHAT_CLAIM:
        claim(referee, op->claim, is_done, revision);
        break;
    case GAVEL__OP__WHAT_RENEW:
        renew(referee, op->renew, is_done);
        break;
    case GAVEL__OP__WHAT_RELEASE:
        release(referee, op->release, is_done, revision);
        break;
    case GAVEL__OP__WHAT_LAPSE:
        if (is_done)
            lapse(referee, op->lapse, revision);
        break;
    case GAVEL__OP__WHAT_WISH:
        if (is_done)
            wish(referee, op->wish);
        break;
    case GAVEL__OP__WHAT_PUT_NOTE:
        put_note(referee, op->put_note, result);
        break;
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        remove_group(referee, op->remove_group, is_done);
        break;
    default:
        break;
    }
}

static void compare(struct session_referee *referee, const struct shadow_group *group,
                    const struct table_group *there)
{
    const char *name = name_of(referee, group);
    uint64_t session = there->session ? there->session->id : 0;
    const struct shadow_candidate *other;

    if (group->is_held && there->is_held && group->epoch == there->epoch &&
        strcmp(group->holder, there->holder) != 0) {
        other = candidate_by_id((struct shadow_group *)(uintptr_t)group, there->holder);
        session_referee_violate(referee, SESSION_INVARIANT_CHOICE,
                                "%s: the mandate %llu is granted to %s%s, and it is %s's turn", name,
                                (ull)there->epoch, there->holder,
                                !other                ? ", no candidate,"
                                : !other->is_eligible ? ", not eligible,"
                                                      : "",
                                group->holder);
    }
    if (group->epoch != there->epoch && there->is_held)
        session_referee_violate(referee, SESSION_INVARIANT_EPOCHS,
                                "%s: a mandate has epoch %llu, and should have %llu", name, (ull)there->epoch,
                                (ull)group->epoch);
    if (group->is_held != there->is_held || group->is_done != there->is_done ||
        group->version != there->version || (group->is_held && group->session != session) ||
        group->wish_epoch != there->wish_epoch || group->candidate_count != there->candidate_count ||
        group->note_count != there->note_count)
        session_referee_violate(
            referee, SESSION_INVARIANT_TABLE,
            "%s: held %d, version %llu, wish %llu, %zu candidates, %zu notes; it should be %d, %llu, %llu, %zu, %zu",
            name, there->is_held, (ull)there->version, (ull)there->wish_epoch, there->candidate_count,
            there->note_count, group->is_held, (ull)group->version, (ull)group->wish_epoch,
            group->candidate_count, group->note_count);
}

void shadow_compare(struct session_referee *referee, const struct table *table)
{
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        const struct table_group *there = table_group_find(table, testbed_group_name(i));

        if (referee->groups[i].exists != (there != NULL))
            session_referee_violate(referee, SESSION_INVARIANT_TABLE, "%s is %s", testbed_group_name(i),
                                    there ? "there, and should not be" : "not there, and should be");
        else if (there)
            compare(referee, &referee->groups[i], there);
    }
}
