/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What only the leader can decide, because it takes a clock or a memory of who
 * was heard: whether a lease still runs, whether the minimum mandate is over,
 * whether an id is in use, whether nobody uses a group. The table would carry these operations out without
 * asking. A refused one becomes Refused: it keeps its place in the request.
 *
 * What is decided here may be out of date when the log gets to it. A claim
 * that passes is bound to the version that was looked at; the others do no
 * harm then.
 */
#include "core/session/frontend_internal.h"

#include "base/error.h"
#include "base/planted.h"

#include <string.h>

/* Those silent for so many time-outs are of no use to anybody. */
#define FORGET_TIMES 10
#define FORGET_MAX 64 /* at a time */
/* A candidate that was silent for so long does not keep an operator from removing its group. If it is alive
 * it registers again, and the group is there again. */
#define SILENT_MS 60000
/* Candidates and notes that the removals of one request may delete, unless a single group has more: all of it
 * is one entry of the log, and nobody else has a turn meanwhile. */
#define REMOVED_PARTS_MAX 8192
/* Why something must wait until the cluster is upgraded. */
#define NOT_ALL_KNOW                                                                                         \
    "a node of the cluster does not know how, or was never heard to; "                                       \
    "upgrade all nodes, and start each of them"

/* ---- claims ---- */

static void decide_claim(struct frontend *frontend, gavel_ns now, Gavel__Claim *claim,
                         struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, claim->group);

    if (!claim->must_be_expired)
        return;
    if (!group || !group->is_held) {
        claim->must_be_expired = false; /* there is nothing to run out: the version decides */
        return;
    }
    /* Only the mandate that is there now was looked at; one that comes before the log has it is another. */
    if (!group->session && claim->expected_version == group->version &&
        now >= frontend_lease_ends_at(frontend, group))
        return;
    verdict->status = GAVEL_ERR_CONFLICT;
    verdict->message = frontend_sentence(
        "the claim on group \"%.100s\" came too late: its record has changed or its lease runs",
        claim->group);
}

/* ---- releases ---- */

/*
 * For a holder that was killed, by whoever ended its work and so knows the nonce. What goes into the log is
 * what a node says of a dead process; it is bound to the epoch that was looked at.
 */
static void decide_release(const struct frontend *frontend, Gavel__Release *release)
{
    const struct table_group *group = table_group_find(frontend->table, release->group);
    bool is_killed = release->is_killed;

    release->is_killed = false;
    if (!is_killed || release->is_done || !group || !group->is_held || group->session ||
        group->nonce_high != release->nonce_high || group->nonce_low != release->nonce_low ||
        strcmp(group->holder, release->holder) != 0 ||
        (release->epoch != 0 && release->epoch != group->epoch))
        return; /* the table says what is wrong */
    release->is_dead = true;
    release->epoch = group->epoch;
}

/* ---- wishes ---- */

/* Those that beat instead of having a session claim for themselves, if they are named. */
static bool is_eligible(const struct table_group *group, const struct table_candidate *candidate)
{
    return candidate->is_eligible && (!candidate->session || candidate->session != group->session);
}

static bool has_other(const struct table_group *group)
{
    const struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session && is_eligible(group, candidate))
            return true;
    }
    return false;
}

static void refuse_successor(const struct table_group *group, const Gavel__Wish *wish,
                             struct frontend_verdict *verdict)
{
    const struct table_candidate *candidate = table_candidate_find(group, wish->successor);

    if (wish->successor[0] == '\0') {
        if (has_other(group))
            return;
        verdict->status = GAVEL_ERR_NOT_FOUND;
        verdict->message = frontend_sentence(
            "group \"%.100s\" has no other eligible candidate that could take over", wish->group);
        return;
    }
    if (candidate && is_eligible(group, candidate))
        return;
    if (strcmp(group->holder, wish->successor) == 0) {
        verdict->status = GAVEL_ERR_STATE;
        verdict->message =
            frontend_sentence("\"%.100s\" leads group \"%.100s\" already", wish->successor, wish->group);
        return;
    }
    verdict->status = GAVEL_ERR_NOT_FOUND;
    verdict->message = frontend_sentence(candidate ? "\"%.100s\" is not eligible in group \"%.100s\""
                                                   : "\"%.100s\" is not a candidate of group \"%.100s\"",
                                         wish->successor, wish->group);
}

/* A hand-over of a session mandate. Those of lease mandates are the business of their candidates, as on every
 * store. */
static void decide_transfer(struct frontend *frontend, gavel_ns now, const struct table_group *group,
                            Gavel__Wish *wish, struct frontend_verdict *verdict)
{
    gavel_ns over_at = frontend_granted_at(frontend, group) + ns_from_ms(group->min_mandate_ms);

    if (wish->epoch != group->epoch)
        return; /* of another mandate: the table says so */
    refuse_successor(group, wish, verdict);
    if (verdict->status != GAVEL_OK)
        return;
    if (!wish->is_forced && now < over_at) {
        verdict->status = GAVEL_ERR_STATE;
        verdict->message = frontend_sentence(
            "the minimum mandate of \"%.80s\" in group \"%.80s\" runs for another %lld ms; wait, or force it",
            group->holder, wish->group, (long long)ms_from_ns(over_at - now + NS_PER_MS - 1));
        return;
    }
    if (wish->timeout_ms == 0)
        wish->timeout_ms = FRONTEND_DRAIN_MS;
}

static void decide_wish(struct frontend *frontend, gavel_ns now, Gavel__Wish *wish,
                        struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, wish->group);

    if (wish->epoch == 0 && !group) {
        verdict->status = GAVEL_ERR_NOT_FOUND;
        verdict->message = frontend_sentence("there is no group \"%.100s\"", wish->group);
        return;
    }
    if (wish->epoch == 0 && !group->is_held) {
        verdict->status = GAVEL_ERR_NO_LEADER;
        verdict->message =
            frontend_sentence("group \"%.100s\" has no leader that could hand over", wish->group);
        return;
    }
    if (wish->epoch == 0)
        wish->epoch = group->epoch;
    if (group && group->is_held && group->session && !wish->is_over)
        decide_transfer(frontend, now, group, wish, verdict);
}

/* ---- registrations ---- */

/*
 * Whether this one may have the place of another that beats. Clients say who is dead: they see the processes
 * of their machine. That is believed until the dead one beats: then it has its place back, and nobody is
 * believed any more who says the same of it.
 */
static bool may_replace(struct frontend *frontend, gavel_ns now, const Gavel__Register *registration,
                        const struct table_candidate *other)
{
    struct heard_candidate *heard = heard_of_candidate(&frontend->heard, other);
    bool is_named =
        registration->replaces_instance != 0 && (registration->replaces_instance == other->instance ||
                                                 registration->replaces_instance == other->joined_revision);

    if (!heard)
        return false; /* no memory: it is asked again */
    if (heard->displaced != 0 && heard->displaced == registration->instance)
        return true;
    if (ms_from_ns(now - frontend_beat_at(frontend, other)) > registration->timeout_ms)
        return true;
    if (is_named && !heard->was_displaced)
        heard->is_called_dead = true;
    return is_named && !heard->was_displaced;
}

static void decide_register(struct frontend *frontend, gavel_ns now, Gavel__Register *registration,
                            struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, registration->group);
    const struct table_candidate *other = group ? table_candidate_find(group, registration->id) : NULL;

    if (!other || (!other->session && other->instance == registration->instance))
        return;
    if (!other->session && may_replace(frontend, now, registration, other)) {
        registration->replaces_instance = other->instance;
        return;
    }
    verdict->status = GAVEL_ERR_ID_IN_USE;
    verdict->other_instance = other->joined_revision; /* as lists have it */
    verdict->other_beats = frontend_beats(frontend, other);
    verdict->message = frontend_sentence(
        "the id \"%.60s\" is used by another live candidate of group \"%.60s\" (process %d); choose another id or stop that process",
        other->id, registration->group,
        (int)(other->session ? other->session->process.pid : other->process.pid));
}

/* Leaves that the leader proposes by itself. */
struct leaves {
    Gavel__Leave bodies[FORGET_MAX];
    Gavel__Op ops[FORGET_MAX];
    Gavel__Op *list[FORGET_MAX];
    size_t count;
};

/* Nothing if that is under way already, or there is no memory: then it is done another time. */
static void add_leave(struct frontend *frontend, struct leaves *leaves, struct table_candidate *candidate)
{
    struct heard_candidate *heard = heard_of_candidate(&frontend->heard, candidate);
    size_t at = leaves->count;

    if (!heard || heard->beat_at == FRONTEND_LEAVING)
        return;
    gavel__leave__init(&leaves->bodies[at]);
    leaves->bodies[at].group = candidate->group->name;
    leaves->bodies[at].id = candidate->id;
    leaves->bodies[at].instance = candidate->instance;
    gavel__op__init(&leaves->ops[at]);
    leaves->ops[at].what_case = GAVEL__OP__WHAT_LEAVE;
    leaves->ops[at].leave = &leaves->bodies[at];
    leaves->list[at] = &leaves->ops[at];
    leaves->count++;
    heard->beat_at = FRONTEND_LEAVING;
}

static void draft_leaves(struct frontend *frontend, const struct frontend_moment *moment,
                         const struct leaves *leaves)
{
    const struct frontend_ops ops = {.list = leaves->list, .count = leaves->count};
    struct frontend_waiting *waiting;

    if (leaves->count > 0) /* without memory they are forgotten another time */
        (void)!frontend_draft(frontend, moment, NULL, &ops, NULL, &waiting);
}

static void forget_silent(struct frontend *frontend, const struct frontend_moment *moment,
                          const Gavel__Register *registration)
{
    struct table_group *group = table_group_find(frontend->table, registration->group);
    struct table_candidate *candidate;
    struct leaves leaves;

    leaves.count = 0;
    if (!group || registration->timeout_ms <= 0 || table_candidate_find(group, registration->id))
        return; /* only when one is added, as otherwise their number does not grow */
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        gavel_ms age_ms = ms_from_ns(moment->now - frontend_beat_at(frontend, candidate));

        if (!candidate->session && age_ms > FORGET_TIMES * registration->timeout_ms)
            add_leave(frontend, &leaves, candidate);
        if (leaves.count == FORGET_MAX)
            break;
    }
    draft_leaves(frontend, moment, &leaves);
}

/* The id of a candidate that beat, and has fallen silent: nobody but a registration could replace it. */
static void forget_former(struct frontend *frontend, const struct frontend_moment *moment,
                          const Gavel__Campaign *campaign)
{
    const struct table_group *group = table_group_find(frontend->table, campaign->group);
    struct table_candidate *former = group ? table_candidate_find(group, campaign->id) : NULL;
    gavel_ms timeout_ms = campaign->timeout_ms > 0 ? campaign->timeout_ms : SILENT_MS;
    struct leaves leaves;

    leaves.count = 0;
    if (!former || former->session ||
        ms_from_ns(moment->now - frontend_beat_at(frontend, former)) <= timeout_ms)
        return;
    add_leave(frontend, &leaves, former);
    draft_leaves(frontend, moment, &leaves);
}

void frontend_forget(struct frontend *frontend, const struct frontend_moment *moment, const Gavel__Op *op)
{
    if (op->what_case == GAVEL__OP__WHAT_REGISTER_CANDIDATE)
        forget_silent(frontend, moment, op->register_candidate);
    else if (op->what_case == GAVEL__OP__WHAT_CAMPAIGN)
        forget_former(frontend, moment, op->campaign);
}

/* ---- candidates with a session ---- */

/* Another session has the id, and its end is not under way. */
static void refuse_taken(const struct frontend *frontend, const Gavel__Campaign *campaign,
                         const struct table_candidate *other, struct frontend_verdict *verdict)
{
    verdict->status = GAVEL_ERR_ID_IN_USE;
    verdict->other_instance = other->joined_revision; /* as lists have it */
    verdict->other_beats = frontend_beats(frontend, other);
    verdict->message = frontend_sentence(
        "another candidate of group \"%.80s\" has the id \"%.80s\"; choose another, or campaign again when that one is gone",
        campaign->group, campaign->id);
}

static void decide_campaign(const struct frontend *frontend, struct frontend_asker asker,
                            Gavel__Campaign *campaign, struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, campaign->group);
    const struct table_candidate *candidate = group ? table_candidate_find(group, campaign->id) : NULL;
    bool is_alone = !group || group->candidate_count == (candidate ? 1u : 0u);
    bool yields = campaign->yields;

    campaign->yields = false;
    if (candidate && candidate->session && candidate->session->id != asker.session && !asker.is_opening &&
        !frontend_is_closing_session(frontend, candidate->session)) {
        refuse_taken(frontend, campaign, candidate, verdict);
        return;
    }
    if (yields && !is_alone && group->policy != GAVEL__POLICY__POLICY_UNSET) {
        campaign->policy = GAVEL__POLICY__POLICY_UNSET;
        campaign->min_mandate_ms = 0;
        campaign->preempts = false;
    }
    if (asker.is_opening)
        campaign->renews_epoch = 0; /* a session that is not open yet leads nothing */
    if (frontend->table->revision >= campaign->epoch_at_least)
        campaign->epoch_at_least = 0; /* it is so already */
    if (frontend->table_version >= TABLE_VERSION_0_7)
        return;
    campaign->is_patient = false; /* hints */
    campaign->instance = 0;
    if (campaign->policy == GAVEL__POLICY__POLICY_BALANCED) {
        verdict->status = GAVEL_ERR_STORE_UNSUPPORTED;
        verdict->message = frontend_sentence(
            "group \"%.80s\" cannot have the policy balanced yet: " NOT_ALL_KNOW, campaign->group);
        return;
    }
    if (campaign->renews_epoch != 0) {
        verdict->status = GAVEL_ERR_STORE_UNSUPPORTED;
        verdict->message = frontend_sentence(
            "the mandate of group \"%.80s\" cannot go on under a new epoch yet: " NOT_ALL_KNOW,
            campaign->group);
        return;
    }
    if (campaign->epoch_at_least == 0)
        return;
    verdict->status = GAVEL_ERR_STORE_UNSUPPORTED;
    verdict->message =
        frontend_sentence("epochs of group \"%.80s\" cannot begin above %llu yet: " NOT_ALL_KNOW,
                          campaign->group, (unsigned long long)campaign->epoch_at_least);
}

/*
 * Whether nobody should wait for the one that shall be next: a candidate of a store that is not eligible, or
 * that was not heard for a lease, would leave the group vacant for another one. What is not the name of a
 * candidate at all (base/outcome.h) is left to the table.
 */
static bool is_of_no_use(const struct frontend *frontend, gavel_ns now, const Gavel__Withdraw *withdraw)
{
    const struct table_group *group = table_group_find(frontend->table, withdraw->group);
    const struct table_candidate *next = group ? table_candidate_find(group, withdraw->successor) : NULL;

    if (!next)
        return false;
    return !next->is_eligible ||
           (!next->session && ms_from_ns(now - frontend_beat_at(frontend, next)) > group->lease_ms);
}

/* The candidate of a session in a group; NULL: there is none. */
static const struct table_candidate *candidate_of(const struct frontend *frontend, const char *name,
                                                  uint64_t session)
{
    const struct table_group *group = table_group_find(frontend->table, name);
    const struct table_candidate *candidate = group ? TAILQ_FIRST(&group->candidates) : NULL;

    while (candidate && (!candidate->session || candidate->session->id != session))
        candidate = TAILQ_NEXT(candidate, in_group);
    return candidate;
}

/*
 * By older rules hints are left out, and what changes the outcome is refused. Whose withdrawal it is, these
 * rules skip: so it passes only if that is the candidate which the session has there now.
 */
static void decide_withdraw(const struct frontend *frontend, gavel_ns now, struct frontend_asker asker,
                            Gavel__Withdraw *withdraw, struct frontend_verdict *verdict)
{
    const struct table_candidate *candidate = candidate_of(frontend, withdraw->group, asker.session);

    if (is_of_no_use(frontend, now, withdraw))
        withdraw->successor = (char *)(uintptr_t)protobuf_c_empty_string;
    if (frontend->table_version >= TABLE_VERSION_0_7)
        return;
    withdraw->successor = (char *)(uintptr_t)protobuf_c_empty_string;
    withdraw->ending = GAVEL__ENDING__ENDING_CLOSED;
    if (withdraw->is_done) {
        verdict->status = GAVEL_ERR_STORE_UNSUPPORTED;
        verdict->message = frontend_sentence(
            "the work of group \"%.100s\" cannot be recorded as done yet: " NOT_ALL_KNOW, withdraw->group);
    } else if (withdraw->id[0] && candidate && strcmp(candidate->id, withdraw->id) != 0) {
        verdict->status = GAVEL_ERR_STORE_UNSUPPORTED;
        verdict->message = frontend_sentence(
            "\"%.60s\" cannot withdraw from group \"%.60s\" while the session is there as \"%.60s\": " NOT_ALL_KNOW,
            withdraw->id, withdraw->group, candidate->id);
    }
    withdraw->id = (char *)(uintptr_t)protobuf_c_empty_string;
    withdraw->instance = 0;
}

/*
 * Whether who asks can have seen a process end, and may say so: it takes part in the group, and its own
 * process is of the same machine and sees the same processes. Everybody is shown the process of a leader, so
 * to name it proves nothing; and elsewhere, or in another namespace, that pid is another's, or nobody's.
 */
static bool can_have_seen(const struct frontend *frontend, struct frontend_asker asker,
                          const struct table_group *group)
{
    const struct table_session *session = table_session_find(frontend->table, asker.session);
    const struct table_process *process = &group->session->process;

    if (PLANTED(STRANGERS_DEATH))
        return true;
    return session && session->process.pid != 0 && session->process.pid_ns == process->pid_ns &&
           process->boot_id[0] && strcmp(session->process.boot_id, process->boot_id) == 0 &&
           candidate_of(frontend, group->name, asker.session);
}

/*
 * A candidate has seen the process of the leader die, as it would before it claims on any store. The end of
 * the session is what goes into the log. A session that names no process goes on when one dies.
 */
static void decide_died(const struct frontend *frontend, struct frontend_asker asker, const Gavel__Died *died,
                        struct frontend_op *op, struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, died->group);
    bool is_led = group && group->is_held && group->session && group->epoch == died->epoch;
    bool is_its = is_led && group->session->process.pid != 0 &&
                  frontend_is_same_process(&group->session->process, died->process);

    if (PLANTED(DIED_UNCHECKED))
        is_its = is_led = group && group->is_held && group->session;
    if (!is_led) {
        verdict->status = GAVEL_ERR_NOT_HOLDER;
        verdict->message = frontend_sentence(
            "the mandate of group \"%.100s\" is not held as the call says; read it again", died->group);
    } else if (!is_its) {
        verdict->status = GAVEL_ERR_STATE;
        verdict->message =
            frontend_sentence("the mandate of group \"%.100s\" does not end with that process", died->group);
    } else if (!can_have_seen(frontend, asker, group)) {
        verdict->status = GAVEL_ERR_DENIED;
        verdict->message = frontend_sentence(
            "only a candidate of group \"%.100s\" whose own process runs on the leader's machine, in the same pid namespace, may report that it is dead",
            died->group);
    }
    if (verdict->status != GAVEL_OK)
        return;
    gavel__close_session__init(&op->body.close);
    op->body.close.session = group->session->id;
    op->body.close.ending = GAVEL__ENDING__ENDING_DEAD;
    op->op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op->op.close_session = &op->body.close;
}

/* ---- removals ---- */

/* Who takes part, in the sense of an operator who wants to remove the group; NULL: nobody. */
static const struct table_candidate *who_takes_part(const struct frontend *frontend, gavel_ns now,
                                                    const struct table_group *group)
{
    const struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session || ms_from_ns(now - frontend_beat_at(frontend, candidate)) <= SILENT_MS)
            return candidate;
    }
    return NULL;
}

static char *why_not_removed(const struct frontend *frontend, gavel_ns now, const struct table_group *group,
                             bool is_forced)
{
    const struct table_candidate *candidate = who_takes_part(frontend, now, group);

    if (group->is_held && (group->session || now < frontend_lease_ends_at(frontend, group)))
        return frontend_sentence("\"%.80s\" leads group \"%.80s\"; stop it first", group->holder,
                                 group->name);
    if (candidate)
        return frontend_sentence("\"%.80s\" takes part in group \"%.80s\"; stop it first", candidate->id,
                                 group->name);
    if (group->note_count > 0 && !is_forced)
        return frontend_sentence("group \"%.80s\" has %zu note%s, which would be deleted, too; force it",
                                 group->name, group->note_count, group->note_count == 1 ? "" : "s");
    if (group->is_done && !is_forced)
        return frontend_sentence(
            "the work of group \"%.80s\" is done for good, and without the group it could be done again; force it",
            group->name);
    return NULL;
}

/* Of the group as it is now: the revision keeps what comes before this in the log. */
static void decide_remove(const struct frontend *frontend, gavel_ns now, size_t *parts,
                          Gavel__RemoveGroup *remove, struct frontend_verdict *verdict)
{
    const struct table_group *group = table_group_find(frontend->table, remove->group);

    if (!group) {
        verdict->status = GAVEL_ERR_NOT_FOUND;
        verdict->message = frontend_sentence("there is no group \"%.100s\"", remove->group);
        return;
    }
    if (frontend->table_version < TABLE_VERSION_0_7) {
        verdict->status = GAVEL_ERR_STATE;
        verdict->message =
            frontend_sentence("group \"%.100s\" cannot be removed yet: " NOT_ALL_KNOW, remove->group);
        return;
    }
    verdict->message = why_not_removed(frontend, now, group, remove->is_forced);
    if (verdict->message) {
        verdict->status = GAVEL_ERR_STATE;
        return;
    }
    if (remove->revision > frontend->table->revision) { /* it would be older than whatever comes before it */
        verdict->status = GAVEL_ERR_INVALID;
        verdict->message = frontend_sentence(
            "group \"%.100s\" cannot have been seen at revision %llu, which is still to come; leave it out",
            remove->group, (unsigned long long)remove->revision);
        return;
    }
    if (*parts > 0 && *parts + group->candidate_count + group->note_count > REMOVED_PARTS_MAX) {
        verdict->status = GAVEL_ERR_TOO_LARGE;
        verdict->message = frontend_sentence(
            "the groups before \"%.100s\" have so many notes and candidates that it must be removed by another request",
            remove->group);
        return;
    }
    *parts += group->candidate_count + group->note_count;
    if (remove->revision == 0)
        remove->revision = frontend->table->revision;
    remove->has_lapsed = group->is_held;
}

/* ---- any ---- */

/* Whether it has, or must have, a session behind it. */
static void decide_session_less(const Gavel__Op *op, struct frontend_verdict *verdict)
{
    if (op->what_case != GAVEL__OP__WHAT_CAMPAIGN && op->what_case != GAVEL__OP__WHAT_WITHDRAW)
        return;
    verdict->status = GAVEL_ERR_INVALID;
    verdict->message = frontend_sentence("taking part in group \"%.100s\" needs a session; open one first",
                                         table_op_group(op));
}

static void become_refused(const Gavel__Op *op, const struct frontend_verdict *verdict,
                           struct frontend_op *ret_op)
{
    gavel__refused__init(&ret_op->body.refused);
    /* Whoever asked about a mandate is shown the group; whoever registers is not. */
    if (op->what_case != GAVEL__OP__WHAT_REGISTER_CANDIDATE)
        ret_op->body.refused.group = (char *)(uintptr_t)table_op_group(op);
    ret_op->body.refused.status = verdict->status;
    gavel__op__init(&ret_op->op);
    ret_op->op.what_case = GAVEL__OP__WHAT_REFUSED;
    ret_op->op.refused = &ret_op->body.refused;
}

static bool is_same(const void *asked, const void *decided, size_t size)
{
    return memcmp(asked, decided, size) == 0;
}

/*
 * Whether what was decided upon is what was asked for, word for word. Operations that nothing is decided of
 * are not copied. Of a copy that is not compared here, or that padding makes look different, it is taken that
 * it differs: it would only be packed once more.
 */
static bool is_as_asked(const Gavel__Op *op, const struct frontend_op *decided)
{
    const union frontend_body *body = &decided->body;

    if (op->what_case != decided->op.what_case)
        return false;
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CLAIM:
        return is_same(op->claim, &body->claim, sizeof body->claim);
    case GAVEL__OP__WHAT_RELEASE:
        return is_same(op->release, &body->release, sizeof body->release);
    case GAVEL__OP__WHAT_WISH:
        return is_same(op->wish, &body->wish, sizeof body->wish);
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        return is_same(op->register_candidate, &body->registration, sizeof body->registration);
    case GAVEL__OP__WHAT_CAMPAIGN:
        return is_same(op->campaign, &body->campaign, sizeof body->campaign);
    case GAVEL__OP__WHAT_WITHDRAW:
        return is_same(op->withdraw, &body->withdraw, sizeof body->withdraw);
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        return is_same(op->remove_group, &body->remove, sizeof body->remove);
    default:
        return op->claim == decided->op.claim; /* all of them are pointers in one union */
    }
}

bool frontend_decide(struct frontend *frontend, gavel_ns now, const Gavel__Op *op,
                     struct frontend_asker asker, struct frontend_op *ret_op,
                     struct frontend_verdict *ret_verdict)
{
    struct frontend_verdict verdict = {.status = GAVEL_OK};

    ret_op->op = *op;
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CLAIM:
        ret_op->body.claim = *op->claim;
        ret_op->op.claim = &ret_op->body.claim;
        decide_claim(frontend, now, ret_op->op.claim, &verdict);
        break;
    case GAVEL__OP__WHAT_RELEASE:
        ret_op->body.release = *op->release;
        ret_op->op.release = &ret_op->body.release;
        decide_release(frontend, ret_op->op.release);
        break;
    case GAVEL__OP__WHAT_WISH:
        ret_op->body.wish = *op->wish;
        ret_op->op.wish = &ret_op->body.wish;
        decide_wish(frontend, now, ret_op->op.wish, &verdict);
        break;
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        ret_op->body.registration = *op->register_candidate;
        ret_op->op.register_candidate = &ret_op->body.registration;
        decide_register(frontend, now, ret_op->op.register_candidate, &verdict);
        break;
    case GAVEL__OP__WHAT_CAMPAIGN:
        ret_op->body.campaign = *op->campaign;
        ret_op->op.campaign = &ret_op->body.campaign;
        if (asker.session != 0)
            decide_campaign(frontend, asker, ret_op->op.campaign, &verdict);
        break;
    case GAVEL__OP__WHAT_WITHDRAW:
        ret_op->body.withdraw = *op->withdraw;
        ret_op->op.withdraw = &ret_op->body.withdraw;
        if (asker.session != 0)
            decide_withdraw(frontend, now, asker, ret_op->op.withdraw, &verdict);
        break;
    case GAVEL__OP__WHAT_DIED:
        decide_died(frontend, asker, op->died, ret_op, &verdict);
        break;
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        ret_op->body.remove = *op->remove_group;
        ret_op->op.remove_group = &ret_op->body.remove;
        decide_remove(frontend, now, asker.parts, ret_op->op.remove_group, &verdict);
        break;
    default:
        break;
    }
    if (asker.session == 0 && verdict.status == GAVEL_OK)
        decide_session_less(op, &verdict);
    *ret_verdict = verdict;
    if (verdict.status == GAVEL_OK)
        return is_as_asked(op, ret_op);
    become_refused(op, &verdict, ret_op);
    return false;
}
