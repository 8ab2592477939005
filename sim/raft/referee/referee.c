/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee: beginning and end of a run and of nodes, and what is looked at
 * around every step. The checks themselves are in the other files, by subject:
 * disk, log, vote, promise, lease, config, heal.
 */

#include "sim/raft/referee/referee_shadow.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct named raft_invariants[] = {[RAFT_INVARIANT_NONE] = {"none", "nothing is broken"},
#define INVARIANT_ROW(name, text, what) [RAFT_INVARIANT_##name] = {text, what},
                                        RAFT_INVARIANT_MAP(INVARIANT_ROW)
#undef INVARIANT_ROW
};

struct raft_referee *raft_referee_new(void) { return zeroed(1, sizeof(struct raft_referee)); }

void raft_referee_free(struct raft_referee *referee)
{
    if (!referee)
        return;
    for (raft_id id = 0; id < RAFT_REFEREE_IDS; id++) {
        free(referee->shadows[id].memory.items);
        free(referee->shadows[id].disk_log.items);
    }
    free(referee->slots);
    free(referee->pool);
    free(referee);
}

/* Empties a shadow, but keeps its memory. */
static void forget(struct shadow *shadow, raft_id id)
{
    struct terms memory = shadow->memory;
    struct terms disk_log = shadow->disk_log;

    memset(shadow, 0, sizeof *shadow);
    shadow->id = id;
    shadow->memory = memory;
    shadow->disk_log = disk_log;
    terms_restart(&shadow->memory, 0, 0);
    terms_restart(&shadow->disk_log, 0, 0);
}

void raft_referee_begin(struct raft_referee *referee, const struct raft_referee_options *options)
{
    size_t kept = offsetof(struct raft_referee, options);

    for (raft_id id = 0; id < RAFT_REFEREE_IDS; id++)
        if (referee->shadows[id].is_known || referee->shadows[id].id != id)
            forget(&referee->shadows[id], id);
    memset((char *)referee + kept, 0, sizeof *referee - kept);
    referee->options = *options;
    referee->leader_by = referee->peace_by = NEVER;
}

void raft_referee_ignore(struct raft_referee *referee, uint64_t ignored) { referee->ignored = ignored; }

const uint64_t raft_invariants_promised =
    RAFT_INVARIANT_BIT(RAFT_INVARIANT_ELECTION) | RAFT_INVARIANT_BIT(RAFT_INVARIANT_MACHINE) |
    RAFT_INVARIANT_BIT(RAFT_INVARIANT_LEASES) | RAFT_INVARIANT_BIT(RAFT_INVARIANT_TOKENS) |
    RAFT_INVARIANT_BIT(RAFT_INVARIANT_CALM) | RAFT_INVARIANT_BIT(RAFT_INVARIANT_LEADER) |
    RAFT_INVARIANT_BIT(RAFT_INVARIANT_CONVERGE) | RAFT_INVARIANT_BIT(RAFT_INVARIANT_PEACE) |
    RAFT_INVARIANT_BIT(RAFT_INVARIANT_STUCK) | RAFT_INVARIANT_BIT(RAFT_INVARIANT_ASSERT);

const struct raft_referee_counts *raft_referee_counts(const struct raft_referee *referee)
{
    return &referee->counts;
}

void raft_referee_violate(struct raft_referee *referee, enum raft_invariant invariant, const char *format,
                          ...)
{
    char what[512];
    va_list arguments;

    if (referee->ignored & RAFT_INVARIANT_BIT(invariant))
        return;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments); /* cut off if too long */
    va_end(arguments);
    referee->options.violate(referee->options.context, invariant, what);
    abort(); /* it must not return */
}

void raft_referee_started(struct raft_referee *referee, gavel_ns at, const struct raft *raft,
                          const struct raft_restore *restore)
{
    struct shadow *shadow = shadow_of(referee, restore->state.id);

    referee->now = at;
    shadow->raft = raft;
    referee_disk_started(referee, shadow, restore);
    shadow->is_known = true;
    shadow->incarnation = restore->state.incarnation;
    shadow->applied = restore->snapshot.index;
    referee_config_started(referee, shadow, restore);
    shadow->before = (struct view){.commit = raft->commit};
    referee_promise_started(referee, shadow);
    if (raft->commit > 0)
        referee_commit_moved(referee, shadow);
}

void raft_referee_ended(struct raft_referee *referee, gavel_ns at, raft_id id)
{
    struct shadow *shadow = shadow_of(referee, id);

    referee->now = at;
    shadow->raft = NULL;
    shadow->is_working = false;
}

void raft_referee_before(struct raft_referee *referee, gavel_ns at, raft_id id)
{
    struct shadow *shadow = shadow_of(referee, id);
    const struct raft *raft = shadow->raft;

    referee->now = at;
    referee->counts.checks++;
    ASSERT(raft);
    if (shadow->incarnation <= shadow->dead_incarnation)
        raft_referee_violate(referee, RAFT_INVARIANT_OBITUARY, "node %llu takes a step after its death",
                             (ull)id);
    shadow->before = (struct view){
        .term = raft->state.term,
        .vote = raft->state.vote,
        .promise = raft->state.promise,
        .promise_until = raft->promise_until,
        .election_at = raft->election_at,
        .heard_at = raft->heard_at,
        .wake_at = raft_wake_at(raft),
        .lease_until = raft->lease_until,
        .role = raft->role,
        .work = raft->work,
        .leader = raft->leader,
        .commit = raft->commit,
        .last = raft_log_last(&raft->log),
        .last_term = raft_log_last_term(&raft->log),
        .round = raft->round,
        .lead_round = raft->lead_round,
        .dropped_votes = raft->dropped_votes,
        .is_writing = raft->state_seq > raft->durable_seq,
        .failures = raft->failures,
    };
}

/* What a step has changed of what must survive is in its PERSIST actions, and nowhere else. */
static void check_handed(struct raft_referee *referee, const struct shadow *shadow)
{
    const struct raft *raft = shadow->raft;
    const struct raft_state *state = &raft->state;
    const struct raft_state *handed = &shadow->handed;
    const char *what = NULL;

    if (state->term != handed->term)
        what = "its term";
    else if (state->vote != handed->vote)
        what = "its vote";
    else if (state->promise.leader != 0 && (state->promise.leader != handed->promise.leader ||
                                            state->promise.incarnation != handed->promise.incarnation ||
                                            state->promise.term != handed->promise.term ||
                                            state->promise.lease_epoch != handed->promise.lease_epoch))
        what = "its promise"; /* one that is void may go without: to hold it for longer harms nobody */
    else if (raft_log_last(&raft->log) != terms_last(&shadow->memory) ||
             raft->log.base != shadow->memory.base)
        what = "its log";
    if (what)
        raft_referee_violate(referee, RAFT_INVARIANT_ORDER, "node %llu changes %s and does not write it",
                             (ull)shadow->id, what);
}

static void look_at_writes(struct raft_referee *referee, struct shadow *shadow,
                           const struct raft_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct raft_action *action = &actions->items[i];

        if (action->kind != RAFT_PERSIST)
            continue;
        if (action->persist.has_state)
            shadow->handed = action->persist.state;
        referee_check_config(referee, shadow, &action->persist);
        referee_log_changed(referee, shadow, &action->persist);
    }
    check_handed(referee, shadow);
}

/* AppendEntries 5: the lesser of what the leader has committed and the last entry that this append is
 * about. */
static void check_vouched(struct raft_referee *referee, const struct shadow *shadow,
                          const struct raft_event *event)
{
    const struct raft_append *append;

    if (event->kind != RAFT_RECEIVE || event->message->kind != RAFT_MSG_APPEND ||
        shadow->raft->role == RAFT_LEADER)
        return;
    append = &event->message->append;
    if (shadow->raft->commit > append->commit ||
        shadow->raft->commit > append->prev_index + append->entry_count)
        raft_referee_violate(referee, RAFT_INVARIANT_VOUCHED,
                             "node %llu commits %llu by an append up to %llu that says %llu is committed",
                             (ull)shadow->id, (ull)shadow->raft->commit,
                             (ull)(append->prev_index + append->entry_count), (ull)append->commit);
}

static bool may_carry_certificate(const struct raft_event *event)
{
    if (event->kind != RAFT_RECEIVE)
        return false;
    return event->message->kind == RAFT_MSG_CERTIFICATE || event->message->kind == RAFT_MSG_TIMEOUT_NOW ||
           event->message->kind == RAFT_MSG_VOTE || event->message->kind == RAFT_MSG_PRE_VOTE;
}

void raft_referee_after(struct raft_referee *referee, gavel_ns at, raft_id id, const struct raft_event *event,
                        enum gavel_status status, const struct raft_actions *actions)
{
    struct shadow *shadow = shadow_of(referee, id);
    const struct raft *raft = shadow->raft;

    referee->now = at;
    look_at_writes(referee, shadow, actions);
    referee_check_votes(referee, shadow, event, status, actions);
    referee_check_promise(referee, shadow, event, actions);
    if (raft->role == RAFT_LEADER &&
        (shadow->before.role != RAFT_LEADER || shadow->before.term != raft->state.term))
        referee_check_elected(referee, shadow);
    if (raft->commit != shadow->before.commit) {
        check_vouched(referee, shadow, event);
        referee_commit_moved(referee, shadow);
    }
    referee_check_lease(referee, shadow, event, actions);
    if (may_carry_certificate(event))
        referee_check_obituaries(referee, shadow);
    if (raft->config_index != shadow->config_index || raft->config.count != shadow->config.count) {
        shadow->config = raft->config;
        shadow->config_index = raft->config_index;
    }
    referee_check_calm(referee, shadow);
    referee_check_idle(referee, shadow);
}
