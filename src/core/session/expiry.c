/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The expiry: what comes due by time, while this node leads the cluster.
 *
 * A session with many groups leaves them by several operations; after each of
 * them the next is proposed, whoever has begun.
 *
 * Sessions are looked at in rounds. A round finds those that have ended, and
 * the earliest instant at which another can end; until then there is nothing
 * to look for, since whatever is heard meanwhile only puts it off. A long round
 * goes in portions, and so do its proposals, so that ten thousand sessions that
 * end at once hold up nobody else.
 *
 * The table knows which groups need attention. They are looked at in rounds,
 * too, whenever something was applied or is due. The next portion begins behind
 * the group that was looked at last, so that everybody has a turn, whatever is
 * applied in between.
 *
 * Groups that nobody uses are looked for among all of them, in rounds that are
 * far apart: nobody minds if one stays for a little longer than the retention
 * time. They go in small portions, one at a time, behind everything else that
 * waits, so that a hundred thousand that come due at once hold up nobody. How long a group is idle is counted
 * from its newest change, which every node has seen, or from the last sign of life of a lease or a
 * registration, which only the leader has heard: of these a new leader counts anew.
 */
#include "core/session/portion.h"

#include "base/assert.h"
#include "base/outcome.h"
#include "base/planted.h"

#include <stdio.h>

/* Sessions in one tick. */
#define LOOK_MAX 8192
/* Groups and their candidates, likewise: a look goes over all of them. */
#define LOOK_GROUPS_MAX 4096
/* Looks for idle groups in one retention time; groups, and their candidates, that go in one portion. */
#define IDLE_ROUNDS 24
#define IDLE_MAX 64
#define IDLE_PARTS_MAX 4096
#define IDLE_PAUSE_MIN (20 * NS_PER_MS)
/* The next portion; the next try, also the second look of FRONTEND_FRESH; and while proposals are under
 * way. */
#define MORE (1 * NS_PER_MS)
#define AGAIN (10 * NS_PER_MS)
#define LATER (100 * NS_PER_MS)

void expiry_open(struct frontend *frontend, gavel_ns now)
{
    ASSERT(frontend->is_open);
    ASSERT(frontend->began_at == now);
    frontend->expiry.is_idle = false;
    frontend->expiry.sessions_due_at = now;
    frontend->expiry.sessions_found_at = NEVER;
    frontend->expiry.session = 0;
    frontend->expiry.endings_due_at = now;
    frontend->expiry.groups_due_at = now;
    frontend->expiry.is_in_round = false;
    frontend->expiry.has_news = true;
    frontend->expiry.idle_due_at = now;
    frontend->expiry.idle[0] = '\0';
    frontend->expiry.has_gone = false;
    frontend->expiry.is_forgetting = false;
    balance_open(frontend, now);
}

void expiry_session_ends(struct frontend *frontend, gavel_ns at)
{
    frontend->expiry.sessions_due_at = ns_min(frontend->expiry.sessions_due_at, at);
    frontend->expiry.sessions_found_at = ns_min(frontend->expiry.sessions_found_at, at);
}

/* Nobody was heard for a while, and nobody is to blame: all have their whole time from now on. */
static void begin_again(struct frontend *frontend, gavel_ns now)
{
    ASSERT(frontend->is_open);
    ASSERT(now >= frontend->began_at);
    frontend->began_at = now;
    frontend->stalled_at = now;
    frontend->ticked_at = now;
    frontend->counts.stalls++;
}

void expiry_notice(struct frontend *frontend, gavel_ns now, bool is_working)
{
    bool was_idle = frontend->expiry.is_idle;

    frontend->expiry.is_idle = !is_working;
    if ((was_idle && is_working) || now - frontend->ticked_at > FRONTEND_STALL)
        begin_again(frontend, now);
}

/* ---- sessions ---- */

/* The first whose id is not below this. */
static struct table_session *session_from(const struct table *table, uint64_t id)
{
    struct table_session *at = RB_ROOT(&table->sessions);
    struct table_session *found = NULL;

    while (at) {
        if (at->id >= id)
            found = at;
        at = at->id >= id ? RB_LEFT(at, by_id) : RB_RIGHT(at, by_id);
    }
    return found;
}

static bool close_session(struct portion *portion, const struct table_session *session)
{
    bool is_enough = portion->leaving > 0 && portion->leaving + session->candidate_count > TABLE_CLOSE_PART;
    union portion_body *body = is_enough ? NULL : portion_next(portion, GAVEL__OP__WHAT_CLOSE_SESSION);

    if (!body)
        return false;
    portion->leaving += session->candidate_count;
    gavel__close_session__init(&body->close);
    body->close.session = session->id;
    body->close.ending = session->is_ending ? session->ending : GAVEL__ENDING__ENDING_EXPIRED;
    body->close.groups_max = portion->frontend->close_part;
    portion_add(portion);
    return true;
}

void expiry_sessions_are_ending(struct frontend *frontend, gavel_ns now)
{
    if (!SLIST_EMPTY(&frontend->table->ending_sessions))
        frontend->expiry.endings_due_at = ns_min(frontend->expiry.endings_due_at, now);
}

/* They go first: others wait for their groups. */
static void go_on_ending(struct frontend *frontend, gavel_ns now, struct portion *portion)
{
    const struct table_session *session = NULL;

    frontend->expiry.endings_due_at = NEVER;
    if (PLANTED(ENDING_FORGOTTEN))
        return;
    SLIST_FOREACH(session, &frontend->table->ending_sessions, in_ending) {
        frontend->expiry.endings_due_at = now + LATER; /* until it is gone */
        if (!frontend_is_closing_session(frontend, session) && !close_session(portion, session)) {
            frontend->expiry.endings_due_at = now + MORE;
            return;
        }
    }
}

static void look_at_sessions(struct frontend *frontend, gavel_ns now, struct portion *portion)
{
    struct table_session *session = session_from(frontend->table, frontend->expiry.session);
    gavel_ns found_at = frontend->expiry.sessions_found_at;

    for (size_t looked = 0; session && looked < LOOK_MAX; session = table_session_next(session), looked++) {
        gavel_ns ends_at = frontend_session_ends_at(frontend, session);
        bool is_closing = ends_at <= now && frontend_is_closing_session(frontend, session);

        if (session->is_ending)
            continue;
        if (ends_at <= now)
            found_at = ns_min(found_at, now + LATER); /* until it is gone */
        else
            found_at = ns_min(found_at, ends_at);
        if (ends_at <= now && !is_closing && !close_session(portion, session))
            break;
    }
    frontend->expiry.session = session ? session->id : 0;
    frontend->expiry.sessions_found_at = session ? found_at : NEVER;
    frontend->expiry.sessions_due_at = session ? now + MORE : found_at;
}

/* ---- groups ---- */

enum need { NEEDS_NOTHING, NEEDS_LAPSE, NEEDS_WISH, NEEDS_NO_WISH };

/* What a group needs first, and when; NEVER: nothing by time. */
static gavel_ns need_of(const struct frontend *frontend, const struct table_group *group, enum need *ret_need)
{
    bool is_of_session = group->is_held && group->session;
    bool is_wished = group->is_held && group->wish_epoch == group->epoch && group->wish_epoch != 0;
    bool is_wish_limited = is_wished && group->wish_timeout_ms > 0;
    const struct heard_group *heard = heard_group(&frontend->heard, group);
    gavel_ns wished_at = heard ? heard->wished_at : 0;
    gavel_ns at = NEVER;

    if (PLANTED(WISH_FOR_EVER))
        is_wish_limited = false;
    *ret_need = NEEDS_NOTHING;
    if (heard && frontend_is_closing(frontend, &heard->closing))
        return NEVER;
    if (!is_of_session && !group->is_done && table_group_next_in_line(group)) {
        at = frontend_lease_ends_at(frontend, group);
        if (PLANTED(LEASE_HALVED))
            at -= ns_from_ms(group->lease_ms / 2);
        *ret_need = NEEDS_LAPSE;
    }
    if (is_wish_limited) {
        gavel_ns over_at = ns_max(wished_at, frontend->began_at) + ns_from_ms(group->wish_timeout_ms);

        if (over_at < at)
            *ret_need = NEEDS_NO_WISH;
        at = ns_min(at, over_at);
    }
    if (!is_wished && is_of_session && table_group_better(group)) {
        at = frontend_granted_at(frontend, group) + ns_from_ms(group->min_mandate_ms);
        if (wished_at != 0) /* there was one, and it is over */
            at = ns_max(at, wished_at + FRONTEND_WISH_AGAIN);
        *ret_need = NEEDS_WISH;
    }
    if (at != NEVER)
        ASSERT(*ret_need != NEEDS_NOTHING);
    return at;
}

static bool tend(struct portion *portion, const struct table_group *group, enum need need)
{
    const struct table_candidate *better;
    union portion_body *body =
        portion_next(portion, need == NEEDS_LAPSE ? GAVEL__OP__WHAT_LAPSE : GAVEL__OP__WHAT_WISH);

    ASSERT(need != NEEDS_NOTHING);
    if (!body)
        return false;
    if (need == NEEDS_LAPSE) {
        ASSERT(!group->is_done);
        gavel__lapse__init(&body->lapse);
        body->lapse.group = group->name;
        body->lapse.epoch = group->epoch;
        portion_add(portion);
        return true;
    }
    gavel__wish__init(&body->wish);
    body->wish.group = group->name;
    body->wish.epoch = group->epoch;
    body->wish.is_over = need == NEEDS_NO_WISH;
    if (need == NEEDS_WISH) {
        better = table_group_better(group);
        ASSERT(better);
        ASSERT(better->session);
        if (frontend_is_closing_session(portion->frontend, better->session))
            return true; /* its session is about to end: there may be another, or none */
        body->wish.successor = better->id;
        body->wish.timeout_ms = FRONTEND_DRAIN_MS;
    }
    portion_add(portion);
    return true;
}

/* Whether it had its turn; else the portion is full. */
static bool look_at_group(struct frontend *frontend, gavel_ns now, bool is_fresh, struct portion *portion,
                          const struct table_group *group)
{
    enum need need;
    gavel_ns at = need_of(frontend, group, &need);

    if (at <= now && need != NEEDS_NOTHING) {
        if (is_fresh && !tend(portion, group, need))
            return false;
        at = now + (is_fresh ? LATER : AGAIN);
    }
    frontend->expiry.groups_found_at = ns_min(frontend->expiry.groups_found_at, at);
    return true;
}

static void look_at_groups(struct frontend *frontend, gavel_ns now, bool is_fresh, struct portion *portion)
{
    struct table_group *group;
    size_t looked = 0;

    if (!frontend->expiry.is_in_round) {
        frontend->expiry.is_in_round = true;
        frontend->expiry.group[0] = '\0';
        frontend->expiry.groups_found_at = NEVER;
        frontend->expiry.has_news = false;
    }
    for (group = table_attention_from(frontend->table, frontend->expiry.group); group;
         group = table_attention_next(group)) {
        if (looked >= LOOK_GROUPS_MAX || !look_at_group(frontend, now, is_fresh, portion, group)) {
            (void)snprintf(frontend->expiry.group, sizeof frontend->expiry.group, "%s", group->name);
            frontend->expiry.groups_due_at = now + MORE;
            return;
        }
        ASSERT(group->has_attention);
        looked += 1 + group->candidate_count;
    }
    frontend->expiry.is_in_round = false;
    frontend->expiry.groups_due_at = frontend->expiry.groups_found_at;
    if (frontend->expiry.has_news) /* since it began: those before may need something sooner */
        frontend->expiry.groups_due_at = ns_min(frontend->expiry.groups_due_at, now + MORE);
}

/* ---- groups that nobody uses ---- */

/* Since when nobody leads it or takes part, never before that is so; NEVER: somebody does. */
static gavel_ns idle_since(const struct frontend *frontend, const struct table_group *group)
{
    gavel_ns since = frontend_touched_at(frontend, group);
    const struct table_candidate *candidate;
    bool is_leased = group->is_held && !group->session;

    if (PLANTED(REMOVED_WHILE_JOINED))
        return since;
    if (PLANTED(REMOVED_WHILE_RENEWED))
        is_leased = false;
    if (group->is_held && group->session)
        return NEVER;
    if (is_leased)
        since = ns_max(since, frontend_lease_ends_at(frontend, group));
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session)
            return NEVER;
        since = ns_max(since, frontend_beat_at(frontend, candidate));
    }
    return since;
}

/*
 * Whether the wall clock says that what is done for good need not be kept any longer. Whoever did it has said
 * how long; if nobody has, it is kept for ever. It counts from the end of the work, on the clock of whoever
 * did it, but not from before its mandate began on the clock of the cluster: that other clock may be years
 * behind.
 */
static bool is_record_over(const struct table_group *group, int64_t wall_ms)
{
    struct outcome outcome;
    int64_t ended;

    if (!outcome_read(group->successor, &outcome))
        return false;
    ended = outcome.ended_wall_ms > group->since_wall_ms ? outcome.ended_wall_ms : group->since_wall_ms;
    return wall_ms >= ended + outcome.keep_s * 1000;
}

/*
 * Whether it is kept because its work is done. That is in wall time, since it outlasts every leader. A clock
 * that is wrong for a while must not delete a record, or the work is done again: the wall clock has to say
 * the same at every look for a whole retention time on our own clock.
 */
static bool is_kept(struct frontend *frontend, const struct frontend_moment *moment,
                    const struct table_group *group)
{
    struct heard_group *heard;

    if (!group->is_done)
        return false;
    heard = heard_of_group(&frontend->heard, group);
    if (!heard)
        return true; /* no memory */
    if (!is_record_over(group, moment->wall_ms)) {
        heard->over_since = 0;
        return true;
    }
    if (heard->over_since == 0)
        heard->over_since = moment->now;
    return moment->now - heard->over_since < ns_stretch(frontend->retention, frontend->drift_ppm);
}

/* Notes are somebody's data: only an operator deletes them. */
static bool is_over(struct frontend *frontend, const struct frontend_moment *moment,
                    const struct table_group *group)
{
    gavel_ns since = idle_since(frontend, group);
    gavel_ns retention = frontend->retention;
    bool has_notes = group->note_count > 0;

    if (PLANTED(REMOVED_WITH_NOTES))
        has_notes = false;
    if (PLANTED(REMOVED_EARLY))
        retention /= 4;
    /* First what remembers each look. */
    return !is_kept(frontend, moment, group) && !has_notes && since != NEVER &&
           moment->now - since >= ns_stretch(retention, frontend->drift_ppm) &&
           !frontend_is_closing_group(frontend, group);
}

static void remove_group(struct portion *portion, const struct table_group *group)
{
    union portion_body *body = portion_next(portion, GAVEL__OP__WHAT_REMOVE_GROUP);

    ASSERT(body);
    gavel__remove_group__init(&body->remove);
    body->remove.group = group->name;
    body->remove.revision = portion->frontend->table->revision;
    body->remove.has_lapsed = group->is_held;
    portion_add(portion);
}

/* Only while no removal is on its way. */
static void look_for_idle(struct frontend *frontend, const struct frontend_moment *moment,
                          struct portion *portion)
{
    struct table_group *group = table_group_from(frontend->table, frontend->expiry.idle);
    size_t parts = 0;

    ASSERT(frontend->cleanings == 0);
    (void)!heard_reserve(&frontend->heard, frontend->table); /* without memory, what has no place is kept */
    portion->is_cleaning = true;
    for (size_t looked = 0;
         group && looked < LOOK_GROUPS_MAX && portion->count < IDLE_MAX && parts < IDLE_PARTS_MAX;
         group = table_group_next(group)) {
        looked += 1 + group->candidate_count;
        if (!is_over(frontend, moment, group))
            continue;
        remove_group(portion, group);
        parts += group->candidate_count;
    }
    portion_put_in_line(portion);
    (void)snprintf(frontend->expiry.idle, sizeof frontend->expiry.idle, "%s", group ? group->name : "");
    frontend->expiry.idle_due_at =
        moment->now + (group ? MORE : ns_max(frontend->retention / IDLE_ROUNDS, IDLE_PAUSE_MIN));
}

/* ---- candidates of removed groups ---- */

/* What was heard of them is forgotten, some at a time; nobody needs it. */
static void forget_gone(struct frontend *frontend)
{
    if (frontend->expiry.has_gone && !frontend->expiry.is_forgetting) {
        frontend->expiry.has_gone = false;
        frontend->expiry.is_forgetting = true;
        frontend->expiry.bucket = 0;
    }
    if (!frontend->expiry.is_forgetting)
        return;
    frontend->expiry.bucket =
        heard_forget(&frontend->heard, frontend->table, frontend->expiry.bucket, LOOK_GROUPS_MAX);
    frontend->expiry.is_forgetting = frontend->expiry.bucket != 0;
}

/* ---- time ---- */

static gavel_ns idle_due_at(const struct frontend *frontend)
{
    bool may_remove = frontend->table_version >= TABLE_VERSION_0_7;

    return frontend->retention > 0 && may_remove ? frontend->expiry.idle_due_at : NEVER;
}

void frontend_tick(struct frontend *frontend, gavel_ns now, bool is_working, bool is_stalled, int64_t wall_ms)
{
    struct portion portion;
    bool is_fresh;

    if (!frontend->is_open)
        return;
    is_fresh = now - frontend->ticked_at <= FRONTEND_FRESH;
    expiry_notice(frontend, now, is_working);
    if (is_stalled)
        begin_again(frontend, now);
    frontend->ticked_at = now;
    if (!is_working)
        return;
    portion.frontend = frontend;
    portion.moment = (struct frontend_moment){.now = now, .wall_ms = wall_ms};
    portion.is_cleaning = false;
    portion.commands = portion.count = portion.leaving = 0;
    if (now >= frontend->expiry.endings_due_at && !is_fresh)
        frontend->expiry.endings_due_at = now + AGAIN;
    else if (now >= frontend->expiry.endings_due_at)
        go_on_ending(frontend, now, &portion);
    if (now >= frontend->expiry.sessions_due_at && !is_fresh)
        frontend->expiry.sessions_due_at = now + AGAIN;
    else if (now >= frontend->expiry.sessions_due_at)
        look_at_sessions(frontend, now, &portion);
    if (now >= frontend->expiry.groups_due_at || frontend->expiry.has_news)
        look_at_groups(frontend, now, is_fresh, &portion);
    if (is_fresh)
        balance_tick(frontend, now, &portion);
    portion_put_in_line(&portion);
    ASSERT(portion.count == 0);
    ASSERT(portion.commands <= PORTION_COMMANDS_MAX);
    portion.commands = 0;
    if (now >= idle_due_at(frontend) && (!is_fresh || frontend->cleanings > 0))
        frontend->expiry.idle_due_at = now + AGAIN;
    else if (now >= idle_due_at(frontend))
        look_for_idle(frontend, &portion.moment, &portion);
    forget_gone(frontend);
}

void frontend_look(struct frontend *frontend, gavel_ns now) { expiry_session_ends(frontend, now); }

gavel_ns frontend_wake_at(const struct frontend *frontend)
{
    if (!frontend->is_open || frontend->expiry.is_idle)
        return NEVER;
    return ns_min(ns_min(ns_min(frontend->expiry.endings_due_at, frontend->expiry.sessions_due_at),
                         frontend->expiry.groups_due_at),
                  ns_min(balance_wake_at(frontend), idle_due_at(frontend)));
}
