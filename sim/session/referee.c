/* SPDX-License-Identifier: Apache-2.0 */

/* What the referee is told, and what it compares: see referee.h. The shadow of the table is in
 * referee_shadow.c. */

#include "sim/session/referee.h"

#include "sim/session/referee_shadow.h"
#include "sim/session/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* For a wish to be taken back, also by a new leader. */
#define WISH_SLACK (2500 * NS_PER_MS)
/* For a session that nobody keeps to end: with clocks that differ by almost a tenth, and the time that a
 * commit takes. */
#define END_SLACK NS_PER_S

const struct named session_invariants[] = {[SESSION_INVARIANT_NONE] = {"none", "nothing is broken"},
#define INVARIANT_ROW(name, text, what) [SESSION_INVARIANT_##name] = {text, what},
                                           SESSION_INVARIANT_MAP(INVARIANT_ROW)
#undef INVARIANT_ROW
};

struct session_referee *session_referee_new(void) { return zeroed(1, sizeof(struct session_referee)); }

void session_referee_free(struct session_referee *referee)
{
    if (!referee)
        return;
    free(referee->sessions);
    free(referee->grants);
    free(referee->changes);
    free(referee->values);
    free(referee);
}

void session_referee_begin(struct session_referee *referee, bool is_quiet, gavel_ns retention,
                           session_referee_cb violate, void *context)
{
    free(referee->sessions);
    free(referee->grants);
    free(referee->changes);
    free(referee->values);
    *referee = (struct session_referee){
        .is_quiet = is_quiet, .retention = retention, .violate = violate, .context = context};
}

const struct session_referee_counts *session_referee_counts(const struct session_referee *referee)
{
    return &referee->counts;
}

void session_referee_violate(struct session_referee *referee, enum session_invariant invariant,
                             const char *format, ...)
{
    char what[256];
    va_list arguments;

    if (referee->is_over)
        return;
    referee->is_over = true;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments); /* cut off if too long */
    va_end(arguments);
    referee->violate(referee->context, invariant, what);
}

void session_referee_has_no_lease(struct session_referee *referee, const char *label)
{
    session_referee_violate(referee, SESSION_INVARIANT_LEASE,
                            "the frontend of %s answers a keep-alive, and its lease has lapsed", label);
}

void session_referee_stuck(struct session_referee *referee, const char *label)
{
    session_referee_violate(referee, SESSION_INVARIANT_STUCK,
                            "the client of %s wants to be woken again and again at one instant", label);
}

void session_referee_waits_too_long(struct session_referee *referee, const char *label, gavel_ns late)
{
    session_referee_violate(referee, SESSION_INVARIANT_LIMIT,
                            "a campaign of %s has no outcome %.3f s after its time was over", label,
                            (double)late / 1e9);
}

void session_referee_not_taken(struct session_referee *referee, unsigned program)
{
    session_referee_violate(referee, SESSION_INVARIANT_PACED,
                            "the session of %c is kept, and its caller has not taken the deadline before",
                            (char)('P' + program));
}

void session_referee_wants_hung_ended(struct session_referee *referee, gavel_ns at, unsigned program,
                                      int32_t pid, gavel_ns since, gavel_ns ttl)
{
    for (size_t i = 0; i < referee->session_count; i++) {
        const struct shadow_session *session = &referee->sessions[i];
        gavel_ns from = ns_max(session->opened_at, since);

        if (session->is_open && session->pid == pid && at > from + ttl * 3 / 2 + END_SLACK)
            session_referee_violate(
                referee, SESSION_INVARIANT_PACED,
                "the session of %c has not ended, and its caller has taken nothing for %.3f s",
                (char)('P' + program), (double)(at - from) / 1e9);
    }
}

struct shadow_session *shadow_session_find(struct session_referee *referee, uint64_t id)
{
    for (size_t i = referee->session_count; i > 0; i--)
        if (referee->sessions[i - 1].id == id)
            return &referee->sessions[i - 1];
    return NULL;
}

/* ---- values ---- */

static struct shadow_value *slot_of(const struct session_referee *referee, uint64_t value)
{
    size_t at = (size_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (referee->value_capacity - 1);

    while (referee->values[at].value != 0 && referee->values[at].value != value)
        at = (at + 1) & (referee->value_capacity - 1);
    return &referee->values[at];
}

static void grow_values(struct session_referee *referee)
{
    struct shadow_value *old = referee->values;
    size_t capacity = referee->value_capacity;

    referee->value_capacity = capacity > 0 ? 2 * capacity : 256;
    referee->values = zeroed(referee->value_capacity, sizeof *referee->values);
    for (size_t i = 0; i < capacity; i++)
        if (old[i].value != 0)
            *slot_of(referee, old[i].value) = old[i];
    free(old);
}

struct shadow_value *shadow_value_find(struct session_referee *referee, uint64_t value)
{
    struct shadow_value *slot;

    if (2 * referee->value_count >= referee->value_capacity)
        grow_values(referee);
    slot = slot_of(referee, value);
    if (slot->value == 0) {
        slot->value = value;
        referee->value_count++;
    }
    return slot;
}

void session_referee_note_answered(struct session_referee *referee, uint64_t value, enum gavel_status status,
                                   bool is_known)
{
    unsigned times = shadow_value_find(referee, value)->times;

    if (is_known && status == GAVEL_OK && times != 1)
        session_referee_violate(referee, SESSION_INVARIANT_ONCE,
                                "the note %llu is answered as written, and was written %u times", (ull)value,
                                times);
    if (is_known && status != GAVEL_OK && times != 0)
        session_referee_violate(referee, SESSION_INVARIANT_ONCE,
                                "the note %llu is answered as refused, and was written", (ull)value);
}

void session_referee_counts_more(struct session_referee *referee, unsigned group)
{
    referee->counter[group].asked++;
}

void session_referee_counted(struct session_referee *referee, unsigned group, enum gavel_status status,
                             bool is_known)
{
    referee->counter[group].done += is_known && status == GAVEL_OK;
    referee->counter[group].refused += is_known && status != GAVEL_OK;
    if (referee->counter[group].done > referee->groups[group].counter + referee->counter[group].removed)
        session_referee_violate(referee, SESSION_INVARIANT_COUNTER,
                                "%s: %llu were answered as counted, and the counter is %llu",
                                testbed_group_name(group), (ull)referee->counter[group].done,
                                (ull)referee->groups[group].counter);
}

/* ---- the log ---- */

static bool is_opening(const Gavel__Command *command)
{
    return command->n_ops == 1 && command->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           command->ops[0]->open_session->session == command->session;
}

/* Whether the command is to be carried out; what is known, or of nobody, is not. */
static bool is_effective(struct session_referee *referee, const Gavel__Command *command,
                         enum gavel_status status)
{
    struct shadow_session *session =
        command->session != 0 ? shadow_session_find(referee, command->session) : NULL;
    bool is_open = session && session->is_open;

    if (command->session != 0 && !is_open && !is_opening(command)) {
        if (status == GAVEL_OK)
            session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                    "a request of a session that is not open is carried out");
        return false;
    }
    if (is_open && command->session_revision != 0 && command->session_revision != session->revision) {
        if (status == GAVEL_OK)
            session_referee_violate(referee, SESSION_INVARIANT_TABLE,
                                    "a request of a former session is carried out in one with its id");
        return false;
    }
    if (is_open && command->id <= session->last_id)
        return false;
    if (status != GAVEL_OK) {
        session_referee_violate(referee, SESSION_INVARIANT_TABLE, "a request is refused as a whole: %s",
                                gavel_status_name(status));
        return false;
    }
    return true;
}

static void remember_changes(struct session_referee *referee, const struct table *table)
{
    struct table_cursor cursor = {referee->revision, UINT32_MAX};
    const struct table_change *change = NULL;

    while (table_history_after(table, cursor, &change) == GAVEL_OK && change) {
        Gavel__Change *whole = gavel__change__unpack(NULL, change->size, change->bytes);

        cursor = change->at;
        referee->changes = grow(referee->changes, referee->change_count, &referee->change_capacity,
                                sizeof *referee->changes);
        referee->changes[referee->change_count++] =
            (struct shadow_change){.at = referee->now,
                                   .revision = change->at.revision,
                                   .part = change->at.part,
                                   .group = testbed_group_of(change->group),
                                   .kind = change->kind,
                                   .epoch = whole ? whole->epoch : 0};
        if (whole)
            gavel__change__free_unpacked(whole, NULL);
    }
}

static void apply(struct session_referee *referee, const struct table *table, const Gavel__Command *command,
                  enum gavel_status status, const struct table_result *results, size_t count)
{
    struct shadow_session *session;

    if (is_effective(referee, command, status)) {
        if (count != command->n_ops) {
            session_referee_violate(referee, SESSION_INVARIANT_TABLE, "%zu operations have %zu results",
                                    command->n_ops, count);
            return;
        }
        for (size_t i = 0; i < count && !referee->is_over; i++)
            shadow_apply(referee, command->session ? shadow_session_find(referee, command->session) : NULL,
                         command->ops[i], &results[i]);
        session = command->session != 0 ? shadow_session_find(referee, command->session) : NULL;
        if (session && session->is_open)
            session->last_id = command->id;
    } else if (table->revision != referee->revision) {
        session_referee_violate(referee, SESSION_INVARIANT_ONCE,
                                "a request that was known, or is nobody's, changes the table");
    }
    remember_changes(referee, table);
    shadow_compare(referee, table);
}

void session_referee_applied(struct session_referee *referee, gavel_ns at, uint64_t index,
                             const struct table *table, const uint8_t *bytes, size_t size,
                             enum gavel_status status, const struct table_result *results, size_t count)
{
    struct table_command head;
    Gavel__Command *command;

    if (index <= referee->index || referee->is_over)
        return;
    referee->index = index;
    referee->now = at;
    if (table_command_decode(bytes, size, &head) == GAVEL_OK && head.kind == TABLE_OPS) {
        command = gavel__command__unpack(NULL, head.value_size, head.value);
        if (command) {
            apply(referee, table, command, status, results, count);
            gavel__command__free_unpacked(command, NULL);
        }
    }
    referee->revision = table->revision;
}

/* ---- programs ---- */

char session_referee_letter(const struct session_referee *referee, int32_t pid)
{
    return (char)('P' + referee->program_of[pid]);
}

bool session_referee_is_dead(const struct session_referee *referee, int32_t pid)
{
    return pid > 0 && pid < SHADOW_PIDS && referee->is_dead[pid];
}

void session_referee_born(struct session_referee *referee, unsigned program, int32_t pid)
{
    if (pid >= SHADOW_PIDS)
        abort(); /* a run is not that long */
    referee->program_of[pid] = program;
    memset(referee->watches[program], 0, sizeof referee->watches[program]);
}

void session_referee_died(struct session_referee *referee, unsigned program, int32_t pid)
{
    referee->is_dead[pid] = true;
    memset(referee->watches[program], 0, sizeof referee->watches[program]);
}

void session_referee_counts_on(struct session_referee *referee, gavel_ns at, unsigned program,
                               uint64_t session, uint64_t number, gavel_ns until)
{
    struct shadow_session *shadow = shadow_session_find(referee, session);

    referee->now = at;
    if (!shadow) {
        session_referee_violate(referee, SESSION_INVARIANT_ONCE,
                                "the session of %c is answered as open, and the log has none",
                                (char)('P' + program));
        return;
    }
    if (shadow->is_open && shadow->revision != number && until > at)
        session_referee_violate(
            referee, SESSION_INVARIANT_DEADLINE,
            "%c counts on its session for another %.3f ms, and that is one which was opened anew",
            (char)('P' + program), (double)(until - at) / 1e6);
    shadow->until = until;
    if (!shadow->is_open && !shadow->is_given_up && until > at)
        session_referee_violate(referee, SESSION_INVARIANT_DEADLINE,
                                "%c is told that it may count on its session for %.3f ms, and it has ended",
                                (char)('P' + program), (double)(until - at) / 1e6);
}

void session_referee_wants_end(struct session_referee *referee, char program, uint64_t session, gavel_ns by)
{
    const struct shadow_session *shadow = shadow_session_find(referee, session);

    if (shadow && (shadow->is_open || shadow->ended_at > by))
        session_referee_violate(
            referee, SESSION_INVARIANT_SILENCE,
            "the session of %c, which died with the leader, %s, %.3f ms later than it should", program,
            shadow->is_open ? "has not ended" : "ended",
            (double)((shadow->is_open ? referee->now : shadow->ended_at) - by) / 1e6);
}

bool session_referee_has_expired(struct session_referee *referee, uint64_t session)
{
    const struct shadow_session *shadow = shadow_session_find(referee, session);

    return shadow && shadow->has_expired;
}

void session_referee_told_gone(struct session_referee *referee, gavel_ns at, unsigned program, gavel_ns until)
{
    referee->now = at;
    if (until > at)
        session_referee_violate(
            referee, SESSION_INVARIANT_DEADLINE,
            "%c is told that its session is gone, and may count on it for another %.3f ms",
            (char)('P' + program), (double)(until - at) / 1e6);
}

void session_referee_gives_up(struct session_referee *referee, uint64_t session)
{
    struct shadow_session *shadow = shadow_session_find(referee, session);

    if (shadow)
        shadow->is_given_up = true;
}

void session_referee_counts_on_lease(struct session_referee *referee, gavel_ns at, unsigned program,
                                     unsigned group, uint64_t nonce, uint64_t epoch, gavel_ns until)
{
    struct shadow_group *shadow = &referee->groups[group];
    bool is_own = shadow->is_held && shadow->session == 0 && shadow->nonce == nonce;

    referee->now = at;
    if (is_own)
        shadow->lease_until = until;
    if (until > at && (!is_own || shadow->epoch != epoch))
        session_referee_violate(
            referee, SESSION_INVARIANT_DEADLINE,
            "%c is told that it may count on its lease of %s (epoch %llu) for %.3f ms, and it has ended",
            (char)('P' + program), testbed_group_name(group), (ull)epoch, (double)(until - at) / 1e6);
}

/* ---- work ---- */

void session_referee_works(struct session_referee *referee, gavel_ns at, unsigned program, unsigned group,
                           uint64_t epoch, gavel_ns until)
{
    const struct shadow_group *shadow = &referee->groups[group];
    struct shadow_work *work = &referee->works[group][program];

    referee->now = at;
    if (until <= at)
        return;
    *work = (struct shadow_work){.is_on = true, .epoch = epoch, .until = until};
    referee->worked_until[group] = ns_max(referee->worked_until[group], until);
    for (unsigned other = 0; other < PROGRAMS_MAX; other++)
        if (other != program && referee->works[group][other].is_on && referee->works[group][other].until > at)
            session_referee_violate(referee, SESSION_INVARIANT_WORK,
                                    "%c (epoch %llu) and %c (epoch %llu) work in %s", (char)('P' + program),
                                    (ull)epoch, (char)('P' + other), (ull)referee->works[group][other].epoch,
                                    testbed_group_name(group));
    /* A leader that goes on under a new epoch may not have heard of it yet. */
    if (!shadow->is_held || epoch < shadow->first_epoch || epoch > shadow->epoch)
        session_referee_violate(referee, SESSION_INVARIANT_DEADLINE,
                                "%c works in %s with epoch %llu, which is over", (char)('P' + program),
                                testbed_group_name(group), (ull)epoch);
}

void session_referee_rests(struct session_referee *referee, gavel_ns at, unsigned program, unsigned group)
{
    struct shadow_work *work = &referee->works[group][program];

    referee->now = at;
    if (!work->is_on)
        return;
    work->is_on = false;
    referee->worked_until[group] = ns_min(referee->worked_until[group], at);
}

static uint64_t ordinal_of(const struct session_referee *referee, unsigned group, uint64_t epoch)
{
    uint64_t ordinal = 0;

    for (size_t i = 0; i < referee->grant_count; i++)
        if (referee->grants[i].group == group && referee->grants[i].epoch == epoch)
            ordinal = referee->grants[i].ordinal;
    return ordinal;
}

void session_referee_writes(struct session_referee *referee, unsigned group, uint64_t epoch)
{
    uint64_t ordinal = ordinal_of(referee, group, epoch);

    if (epoch < referee->written[group])
        return; /* the resource refuses it */
    referee->written[group] = epoch;
    if (ordinal < referee->written_ordinal[group])
        session_referee_violate(
            referee, SESSION_INVARIANT_FENCE,
            "%s: a write of mandate number %llu (epoch %llu) is taken after one of number %llu",
            testbed_group_name(group), (ull)ordinal, (ull)epoch, (ull)referee->written_ordinal[group]);
    referee->written_ordinal[group] = ordinal;
}

/* ---- watches ---- */

void session_referee_watches(struct session_referee *referee, unsigned program, unsigned group,
                             uint64_t revision, bool is_gap)
{
    struct shadow_watch *watch = &referee->watches[program][group];

    if (watch->is_on && !is_gap)
        return; /* it goes on where it was */
    watch->is_on = true;
    while (watch->at < referee->change_count && referee->changes[watch->at].revision <= revision)
        watch->at++;
}

static const struct shadow_change *next_change(const struct session_referee *referee,
                                               struct shadow_watch *watch, unsigned group)
{
    while (watch->at < referee->change_count && referee->changes[watch->at].group != group)
        watch->at++;
    return watch->at < referee->change_count ? &referee->changes[watch->at] : NULL;
}

void session_referee_sees(struct session_referee *referee, unsigned program, unsigned group,
                          const Gavel__Change *change)
{
    struct shadow_watch *watch = &referee->watches[program][group];
    const struct shadow_change *next = next_change(referee, watch, group);

    if (!watch->is_on || !next || next->revision != change->revision || next->part != change->part ||
        next->kind != change->kind || next->epoch != change->epoch)
        session_referee_violate(
            referee, SESSION_INVARIANT_WATCH, "%c is told change %llu.%u of %s, and %llu.%u comes next",
            (char)('P' + program), (ull)change->revision, change->part, testbed_group_name(group),
            next ? (ull)next->revision : 0, next ? next->part : 0);
    watch->at++;
}

void session_referee_has_seen_all(struct session_referee *referee, unsigned program, unsigned group,
                                  gavel_ns before)
{
    struct shadow_watch *watch = &referee->watches[program][group];
    const struct shadow_change *next = watch->is_on ? next_change(referee, watch, group) : NULL;

    if (next && next->at < before)
        session_referee_violate(referee, SESSION_INVARIANT_WATCH, "%c was never told of change %llu.%u of %s",
                                (char)('P' + program), (ull)next->revision, next->part,
                                testbed_group_name(group));
}

/* ---- the end ---- */

static bool has_candidate(struct session_referee *referee, const struct shadow_group *group,
                          unsigned programs)
{
    for (size_t i = 0; i < group->candidate_count; i++) {
        const struct shadow_session *session = shadow_session_find(referee, group->candidates[i].session);

        if (!group->is_done && group->candidates[i].is_eligible &&
            !(group->candidates[i].is_patient && group->was_lost) && session &&
            !referee->is_dead[session->pid] && programs & 1U << referee->program_of[session->pid])
            return true;
    }
    return false;
}

/* Whether somebody else than these holds it: one that nobody tells of its election. */
static bool is_held_by_another(struct session_referee *referee, const struct shadow_group *group,
                               unsigned programs)
{
    const struct shadow_session *session = shadow_session_find(referee, group->session);
    int32_t pid = session ? session->pid : group->pid;

    return group->is_held && !referee->is_dead[pid] && !(programs & 1U << referee->program_of[pid]);
}

void session_referee_wants_leaders(struct session_referee *referee, gavel_ns at, gavel_ns since,
                                   unsigned programs, unsigned groups)
{
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        const struct shadow_group *group = &referee->groups[i];

        if (referee->worked_until[i] < since && !is_held_by_another(referee, group, programs) &&
            (groups & 1U << i || has_candidate(referee, group, programs)))
            session_referee_violate(referee, SESSION_INVARIANT_LEADER, "nobody works in %s, which is %s%s%s",
                                    testbed_group_name(i), group->is_held ? "held by " : "vacant",
                                    group->is_held ? group->holder : "",
                                    group->is_held && group->session == 0 ? " by lease" : "");
        if (group->wish_epoch != 0 && group->wish_timeout_ms != 0 &&
            at > group->wished_at + ns_from_ms(group->wish_timeout_ms) + WISH_SLACK)
            session_referee_violate(referee, SESSION_INVARIANT_LEADER, "%s: a wish lasts for ever",
                                    testbed_group_name(i));
    }
}

void session_referee_over(struct session_referee *referee)
{
    for (unsigned i = 0; i < GROUPS_MAX; i++)
        if (referee->groups[i].counter + referee->counter[i].removed >
            referee->counter[i].asked - referee->counter[i].refused)
            session_referee_violate(referee, SESSION_INVARIANT_COUNTER,
                                    "%s: %llu were asked for, %llu refused, and %llu counted",
                                    testbed_group_name(i), (ull)referee->counter[i].asked,
                                    (ull)referee->counter[i].refused, (ull)referee->groups[i].counter);
}
