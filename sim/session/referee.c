/* SPDX-License-Identifier: Apache-2.0 */

/* What the judge is told, and what it compares: see judge.h. The shadow of the table is in shadow.c. */

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

static const struct {
    const char *name;
    const char *what;
} invariants[] = {[HALL_INVARIANT_NONE] = {"none", "nothing is broken"},
#define INVARIANT_ROW(name, text, what) [HALL_INVARIANT_##name] = {text, what},
                  HALL_INVARIANT_MAP(INVARIANT_ROW)
#undef INVARIANT_ROW
};

const char *hall_invariant_name(enum hall_invariant invariant) { return invariants[invariant].name; }
const char *hall_invariant_what(enum hall_invariant invariant) { return invariants[invariant].what; }

void *judge_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity > 0 ? *capacity * 2 : 64;
    items = realloc(items, *capacity * size);
    if (!items) {
        (void)fputs("gavel-sim: out of memory\n", stderr);
        exit(1);
    }
    return items;
}

struct judge *judge_new(void)
{
    struct judge *judge = calloc(1, sizeof *judge);

    if (!judge) {
        (void)fputs("gavel-sim: out of memory\n", stderr);
        exit(1);
    }
    return judge;
}

void judge_free(struct judge *judge)
{
    if (!judge)
        return;
    free(judge->sessions);
    free(judge->grants);
    free(judge->changes);
    free(judge->values);
    free(judge);
}

void judge_begin(struct judge *judge, bool is_quiet, judge_cb violate, void *context)
{
    free(judge->sessions);
    free(judge->grants);
    free(judge->changes);
    free(judge->values);
    *judge = (struct judge){.is_quiet = is_quiet, .violate = violate, .context = context};
}

const struct judge_counts *judge_counts(const struct judge *judge) { return &judge->counts; }

void judge_violate(struct judge *judge, enum hall_invariant invariant, const char *format, ...)
{
    char what[256];
    va_list arguments;

    if (judge->is_over)
        return;
    judge->is_over = true;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments); /* cut off if too long */
    va_end(arguments);
    judge->violate(judge->context, invariant, what);
}

void judge_has_no_lease(struct judge *judge, const char *label)
{
    judge_violate(judge, HALL_INVARIANT_LEASE,
                  "the frontend of %s answers a keep-alive, and its lease has lapsed", label);
}

void judge_stuck(struct judge *judge, const char *label)
{
    judge_violate(judge, HALL_INVARIANT_STUCK,
                  "the client of %s wants to be woken again and again at one instant", label);
}

struct shadow_session *shadow_session_find(struct judge *judge, uint64_t id)
{
    for (size_t i = judge->session_count; i > 0; i--)
        if (judge->sessions[i - 1].id == id)
            return &judge->sessions[i - 1];
    return NULL;
}

/* ---- values ---- */

static struct shadow_value *place_of(const struct judge *judge, uint64_t value)
{
    size_t at = (size_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (judge->value_capacity - 1);

    while (judge->values[at].value != 0 && judge->values[at].value != value)
        at = (at + 1) & (judge->value_capacity - 1);
    return &judge->values[at];
}

static void grow_values(struct judge *judge)
{
    struct shadow_value *old = judge->values;
    size_t capacity = judge->value_capacity;

    judge->value_capacity = capacity > 0 ? 2 * capacity : 256;
    judge->values = calloc(judge->value_capacity, sizeof *judge->values);
    if (!judge->values) {
        (void)fputs("gavel-sim: out of memory\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < capacity; i++)
        if (old[i].value != 0)
            *place_of(judge, old[i].value) = old[i];
    free(old);
}

struct shadow_value *shadow_value_find(struct judge *judge, uint64_t value)
{
    struct shadow_value *place;

    if (2 * judge->value_count >= judge->value_capacity)
        grow_values(judge);
    place = place_of(judge, value);
    if (place->value == 0) {
        place->value = value;
        judge->value_count++;
    }
    return place;
}

void judge_note_answered(struct judge *judge, uint64_t value, enum gavel_status status, bool is_known)
{
    unsigned times = shadow_value_find(judge, value)->times;

    if (is_known && status == GAVEL_OK && times != 1)
        judge_violate(judge, HALL_INVARIANT_ONCE,
                      "the note %llu is answered as written, and was written %u times", (ull)value, times);
    if (is_known && status != GAVEL_OK && times != 0)
        judge_violate(judge, HALL_INVARIANT_ONCE, "the note %llu is answered as refused, and was written",
                      (ull)value);
}

void judge_counts_more(struct judge *judge, unsigned group) { judge->counter[group].asked++; }

void judge_counted(struct judge *judge, unsigned group, enum gavel_status status, bool is_known)
{
    judge->counter[group].done += is_known && status == GAVEL_OK;
    judge->counter[group].refused += is_known && status != GAVEL_OK;
    if (judge->counter[group].done > judge->groups[group].counter)
        judge_violate(judge, HALL_INVARIANT_COUNTER,
                      "%s: %llu were answered as counted, and the counter is %llu", hall_group_name(group),
                      (ull)judge->counter[group].done, (ull)judge->groups[group].counter);
}

/* ---- the log ---- */

static bool is_opening(const Gavel__Command *command)
{
    return command->n_ops == 1 && command->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           command->ops[0]->open_session->session == command->session;
}

/* Whether the command is to be carried out; what is known, or of nobody, is not. */
static bool is_effective(struct judge *judge, const Gavel__Command *command, enum gavel_status status)
{
    struct shadow_session *session =
        command->session != 0 ? shadow_session_find(judge, command->session) : NULL;
    bool is_open = session && session->is_open;

    if (command->session != 0 && !is_open && !is_opening(command)) {
        if (status == GAVEL_OK)
            judge_violate(judge, HALL_INVARIANT_TABLE,
                          "a request of a session that is not open is carried out");
        return false;
    }
    if (is_open && command->id <= session->last_id)
        return false;
    if (status != GAVEL_OK) {
        judge_violate(judge, HALL_INVARIANT_TABLE, "a request is refused as a whole: %s",
                      gavel_status_name(status));
        return false;
    }
    return true;
}

static void remember_changes(struct judge *judge, const struct table *table)
{
    struct table_cursor cursor = {judge->revision, UINT32_MAX};
    const struct table_change *change = NULL;

    while (table_history_after(table, cursor, &change) == GAVEL_OK && change) {
        Gavel__Change *whole = gavel__change__unpack(NULL, change->size, change->bytes);

        cursor = change->at;
        judge->changes =
            judge_grow(judge->changes, judge->change_count, &judge->change_capacity, sizeof *judge->changes);
        judge->changes[judge->change_count++] = (struct shadow_change){.at = judge->now,
                                                                       .revision = change->at.revision,
                                                                       .part = change->at.part,
                                                                       .group = hall_group_of(change->group),
                                                                       .kind = change->kind,
                                                                       .epoch = whole ? whole->epoch : 0};
        if (whole)
            gavel__change__free_unpacked(whole, NULL);
    }
}

static void apply(struct judge *judge, const struct table *table, const Gavel__Command *command,
                  enum gavel_status status, const struct table_result *results, size_t count)
{
    struct shadow_session *session;

    if (is_effective(judge, command, status)) {
        if (count != command->n_ops) {
            judge_violate(judge, HALL_INVARIANT_TABLE, "%zu operations have %zu results", command->n_ops,
                          count);
            return;
        }
        for (size_t i = 0; i < count && !judge->is_over; i++)
            shadow_apply(judge, command->session ? shadow_session_find(judge, command->session) : NULL,
                         command->ops[i], &results[i]);
        session = command->session != 0 ? shadow_session_find(judge, command->session) : NULL;
        if (session && session->is_open)
            session->last_id = command->id;
    } else if (table->revision != judge->revision) {
        judge_violate(judge, HALL_INVARIANT_ONCE,
                      "a request that was known, or is nobody's, changes the table");
    }
    remember_changes(judge, table);
    shadow_compare(judge, table);
}

void judge_applied(struct judge *judge, gavel_ns at, uint64_t index, const struct table *table,
                   const uint8_t *bytes, size_t size, enum gavel_status status,
                   const struct table_result *results, size_t count)
{
    struct table_command head;
    Gavel__Command *command;

    if (index <= judge->index || judge->is_over)
        return;
    judge->index = index;
    judge->now = at;
    if (table_command_decode(bytes, size, &head) == GAVEL_OK && head.kind == TABLE_OPS) {
        command = gavel__command__unpack(NULL, head.value_size, head.value);
        if (command) {
            apply(judge, table, command, status, results, count);
            gavel__command__free_unpacked(command, NULL);
        }
    }
    judge->revision = table->revision;
}

/* ---- programs ---- */

char judge_letter(const struct judge *judge, int32_t pid) { return (char)('P' + judge->program_of[pid]); }

bool judge_is_dead(const struct judge *judge, int32_t pid)
{
    return pid > 0 && pid < SHADOW_PIDS && judge->is_dead[pid];
}

void judge_born(struct judge *judge, unsigned program, int32_t pid)
{
    if (pid >= SHADOW_PIDS)
        abort(); /* a run is not that long */
    judge->program_of[pid] = program;
    memset(judge->watches[program], 0, sizeof judge->watches[program]);
}

void judge_died(struct judge *judge, unsigned program, int32_t pid)
{
    judge->is_dead[pid] = true;
    memset(judge->watches[program], 0, sizeof judge->watches[program]);
}

void judge_counts_on(struct judge *judge, gavel_ns at, unsigned program, uint64_t session, gavel_ns until)
{
    struct shadow_session *shadow = shadow_session_find(judge, session);

    judge->now = at;
    if (!shadow) {
        judge_violate(judge, HALL_INVARIANT_ONCE,
                      "the session of %c is answered as open, and the log has none", (char)('P' + program));
        return;
    }
    shadow->until = until;
    if (!shadow->is_open && !shadow->is_given_up && until > at)
        judge_violate(judge, HALL_INVARIANT_DEADLINE,
                      "%c is told that it may count on its session for %.3f ms, and it has ended",
                      (char)('P' + program), (double)(until - at) / 1e6);
}

void judge_gives_up(struct judge *judge, uint64_t session)
{
    struct shadow_session *shadow = shadow_session_find(judge, session);

    if (shadow)
        shadow->is_given_up = true;
}

void judge_counts_on_lease(struct judge *judge, gavel_ns at, unsigned program, unsigned group, uint64_t nonce,
                           uint64_t epoch, gavel_ns until)
{
    struct shadow_group *shadow = &judge->groups[group];
    bool is_own = shadow->is_held && shadow->session == 0 && shadow->nonce == nonce;

    judge->now = at;
    if (is_own)
        shadow->lease_until = until;
    if (until > at && (!is_own || shadow->epoch != epoch))
        judge_violate(
            judge, HALL_INVARIANT_DEADLINE,
            "%c is told that it may count on its lease of %s (epoch %llu) for %.3f ms, and it has ended",
            (char)('P' + program), hall_group_name(group), (ull)epoch, (double)(until - at) / 1e6);
}

/* ---- work ---- */

void judge_works(struct judge *judge, gavel_ns at, unsigned program, unsigned group, uint64_t epoch,
                 gavel_ns until)
{
    const struct shadow_group *shadow = &judge->groups[group];
    struct shadow_work *work = &judge->works[group][program];

    judge->now = at;
    if (until <= at)
        return;
    *work = (struct shadow_work){.is_on = true, .epoch = epoch, .until = until};
    judge->worked_until[group] = ns_max(judge->worked_until[group], until);
    for (unsigned other = 0; other < PROGRAMS_MAX; other++)
        if (other != program && judge->works[group][other].is_on && judge->works[group][other].until > at)
            judge_violate(judge, HALL_INVARIANT_WORK, "%c (epoch %llu) and %c (epoch %llu) work in %s",
                          (char)('P' + program), (ull)epoch, (char)('P' + other),
                          (ull)judge->works[group][other].epoch, hall_group_name(group));
    if (!shadow->is_held || shadow->epoch != epoch)
        judge_violate(judge, HALL_INVARIANT_DEADLINE, "%c works in %s with epoch %llu, which is over",
                      (char)('P' + program), hall_group_name(group), (ull)epoch);
}

void judge_rests(struct judge *judge, gavel_ns at, unsigned program, unsigned group)
{
    struct shadow_work *work = &judge->works[group][program];

    judge->now = at;
    if (!work->is_on)
        return;
    work->is_on = false;
    judge->worked_until[group] = ns_min(judge->worked_until[group], at);
}

static uint64_t ordinal_of(const struct judge *judge, unsigned group, uint64_t epoch)
{
    uint64_t ordinal = 0;

    for (size_t i = 0; i < judge->grant_count; i++)
        if (judge->grants[i].group == group && judge->grants[i].epoch == epoch)
            ordinal = judge->grants[i].ordinal;
    return ordinal;
}

void judge_writes(struct judge *judge, unsigned group, uint64_t epoch)
{
    uint64_t ordinal = ordinal_of(judge, group, epoch);

    if (epoch < judge->written[group])
        return; /* the resource refuses it */
    judge->written[group] = epoch;
    if (ordinal < judge->written_ordinal[group])
        judge_violate(judge, HALL_INVARIANT_FENCE,
                      "%s: a write of mandate number %llu (epoch %llu) is taken after one of number %llu",
                      hall_group_name(group), (ull)ordinal, (ull)epoch, (ull)judge->written_ordinal[group]);
    judge->written_ordinal[group] = ordinal;
}

/* ---- watches ---- */

void judge_watches(struct judge *judge, unsigned program, unsigned group, uint64_t revision, bool is_gap)
{
    struct shadow_watch *watch = &judge->watches[program][group];

    if (watch->is_on && !is_gap)
        return; /* it goes on where it was */
    watch->is_on = true;
    while (watch->at < judge->change_count && judge->changes[watch->at].revision <= revision)
        watch->at++;
}

static const struct shadow_change *next_change(const struct judge *judge, struct shadow_watch *watch,
                                               unsigned group)
{
    while (watch->at < judge->change_count && judge->changes[watch->at].group != group)
        watch->at++;
    return watch->at < judge->change_count ? &judge->changes[watch->at] : NULL;
}

void judge_sees(struct judge *judge, unsigned program, unsigned group, const Gavel__Change *change)
{
    struct shadow_watch *watch = &judge->watches[program][group];
    const struct shadow_change *next = next_change(judge, watch, group);

    if (!watch->is_on || !next || next->revision != change->revision || next->part != change->part ||
        next->kind != change->kind || next->epoch != change->epoch)
        judge_violate(judge, HALL_INVARIANT_WATCH, "%c is told change %llu.%u of %s, and %llu.%u comes next",
                      (char)('P' + program), (ull)change->revision, change->part, hall_group_name(group),
                      next ? (ull)next->revision : 0, next ? next->part : 0);
    watch->at++;
}

void judge_has_seen_all(struct judge *judge, unsigned program, unsigned group, gavel_ns before)
{
    struct shadow_watch *watch = &judge->watches[program][group];
    const struct shadow_change *next = watch->is_on ? next_change(judge, watch, group) : NULL;

    if (next && next->at < before)
        judge_violate(judge, HALL_INVARIANT_WATCH, "%c was never told of change %llu.%u of %s",
                      (char)('P' + program), (ull)next->revision, next->part, hall_group_name(group));
}

/* ---- the end ---- */

static bool has_candidate(struct judge *judge, const struct shadow_group *group, unsigned programs)
{
    for (size_t i = 0; i < group->candidate_count; i++) {
        const struct shadow_session *session = shadow_session_find(judge, group->candidates[i].session);

        if (group->candidates[i].is_eligible && session && !judge->is_dead[session->pid] &&
            programs & 1U << judge->program_of[session->pid])
            return true;
    }
    return false;
}

void judge_wants_leaders(struct judge *judge, gavel_ns at, gavel_ns since, unsigned programs, unsigned groups)
{
    for (unsigned i = 0; i < HALL_GROUPS_MAX; i++) {
        const struct shadow_group *group = &judge->groups[i];

        if (judge->worked_until[i] < since && (groups & 1U << i || has_candidate(judge, group, programs)))
            judge_violate(judge, HALL_INVARIANT_LEADER, "nobody works in %s, which is %s%s%s",
                          hall_group_name(i), group->is_held ? "held by " : "vacant",
                          group->is_held ? group->holder : "",
                          group->is_held && group->session == 0 ? " by lease" : "");
        if (group->wish_epoch != 0 && group->wish_timeout_ms != 0 &&
            at > group->wished_at + ns_from_ms(group->wish_timeout_ms) + WISH_SLACK)
            judge_violate(judge, HALL_INVARIANT_LEADER, "%s: a wish lasts for ever", hall_group_name(i));
    }
}

void judge_over(struct judge *judge)
{
    for (unsigned i = 0; i < HALL_GROUPS_MAX; i++)
        if (judge->groups[i].counter > judge->counter[i].asked - judge->counter[i].refused)
            judge_violate(judge, HALL_INVARIANT_COUNTER,
                          "%s: %llu were asked for, %llu refused, and %llu counted", hall_group_name(i),
                          (ull)judge->counter[i].asked, (ull)judge->counter[i].refused,
                          (ull)judge->groups[i].counter);
}
