/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/world.h"

#include "base/assert.h"
#include "sim/common/assertion.h"
#include "sim/raft/chaos.h"
#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quorum *quorum_new(void)
{
    struct quorum *quorum = calloc(1, sizeof *quorum);

    ASSERT(quorum); /* a simulator without memory has nothing to tell */
    quorum->referee = raft_referee_new();
    ASSERT(quorum->referee);
    return quorum;
}

void quorum_free(struct quorum *quorum)
{
    if (!quorum)
        return;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        node_done(&quorum->nodes[i]);
    net_done(&quorum->network);
    heap_done(&quorum->heap);
    raft_referee_free(quorum->referee);
    free(quorum);
}

struct event *quorum_push(struct quorum *quorum, gavel_ns at, enum event_kind kind, unsigned slot)
{
    struct event *event;

    ASSERT(at >= quorum->now);
    event = heap_push(&quorum->heap, at, kind, slot);
    event->incarnation = quorum->nodes[slot].life;
    return event;
}

void quorum_defer(struct quorum *quorum, const struct event *event, gavel_ns at)
{
    struct event *later = quorum_push(quorum, at, (enum event_kind)event->kind, event->slot);
    uint64_t sequence = later->sequence;

    *later = *event;
    later->at = at;
    later->sequence = sequence;
}

_Noreturn void quorum_violate(struct quorum *quorum, enum raft_invariant invariant, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(quorum->what, sizeof quorum->what, format, arguments); /* cut off if too long */
    va_end(arguments);
    quorum->broken = invariant;
    TRACE(quorum, NULL, "VIOLATION of %s: %s", raft_invariant_name(invariant), quorum->what);
    longjmp(quorum->escape, 1);
}

static void tell_violation(void *context, enum raft_invariant invariant, const char *what)
{
    quorum_violate(context, invariant, "%s", what);
}

static void tell_assertion(void *context, const char *what)
{
    quorum_violate(context, RAFT_INVARIANT_ASSERT, "%s", what);
}

struct node *quorum_leader(struct quorum *quorum)
{
    struct node *leader = NULL;

    for (unsigned i = 0; i < quorum->used; i++) {
        struct node *node = &quorum->nodes[i];

        if (node_is_up(node) && node->raft.role == RAFT_LEADER &&
            (!leader || node->raft.state.term > leader->raft.state.term))
            leader = node;
    }
    return leader;
}

struct node *quorum_some_leader(struct quorum *quorum, unsigned stream)
{
    unsigned first = quorum_below(quorum, stream, SLOTS_MAX);
    bool is_any = quorum_chance(quorum, stream, 300);

    for (unsigned i = 0; i < SLOTS_MAX && is_any; i++) {
        struct node *node = &quorum->nodes[(first + i) % SLOTS_MAX];

        if (node_is_up(node) && node->raft.role == RAFT_LEADER)
            return node;
    }
    return quorum_leader(quorum);
}

struct node *quorum_worker(struct quorum *quorum)
{
    for (unsigned i = 0; i < quorum->used; i++) {
        struct node *node = &quorum->nodes[i];

        if (node_is_up(node) && raft_is_working(&node->raft, node_clock(quorum, node)))
            return node;
    }
    return NULL;
}

gavel_ns quorum_length(struct quorum *quorum, unsigned stream, gavel_ns low, gavel_ns high)
{
    uint64_t drawn = prng_next(&quorum->streams[stream]);
    unsigned doublings = 0;
    gavel_ns length;

    while (low << (doublings + 1) <= high)
        doublings++;
    length = low << (drawn & 0xffff) % (doublings + 1);
    length += (gavel_ns)((drawn >> 16) % (uint64_t)length);
    return ns_min(length, high);
}

static void empty(struct quorum *quorum)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        node_clear(quorum, &quorum->nodes[i]);
    net_recycle_all(quorum);
    heap_clear(&quorum->heap);
    quorum->now = 0;
    quorum->used = 0;
    quorum->obituary_count = 0;
    quorum->target_count = 0;
    quorum->replaced = 0;
    quorum->healed = 0;
    quorum->quiet_at = NEVER;
    quorum->rest = 0;
    memset(&quorum->resource, 0, sizeof quorum->resource);
    memset(&quorum->counts, 0, sizeof quorum->counts);
    quorum->broken = RAFT_INVARIANT_NONE;
    quorum->what[0] = '\0';
    quorum->is_over = false;
    quorum->events = 0;
    quorum->hash = HASH_START;
}

static void begin(struct quorum *quorum)
{
    const struct profile *p = &quorum->profile;
    const struct raft_referee_options options = {
        .is_within_bound = !(p->faults & FAULT_BIT(FAULT_BEYOND)),
        .has_forgeries = p->faults & FAULT_BIT(FAULT_FORGED),
        .is_calm = p->mood == MOOD_CALM && p->heal_at != NEVER,
        .violate = tell_violation,
        .context = quorum,
    };

    raft_referee_begin(quorum->referee, &options);
    net_begin(quorum);
    for (unsigned i = 0; i < p->nodes; i++) {
        gavel_ns delay = quorum_length(quorum, STREAM_NODE, NS_PER_MS, NS_PER_S);

        node_create(quorum, &quorum->nodes[i], &p->first);
        (void)quorum_push(quorum, quorum_has(quorum, FAULT_STAGGER) ? delay : 0, EVENT_START, i);
    }
    client_begin(quorum);
}

void quorum_begin(struct quorum *quorum, const struct profile *profile, uint64_t seed)
{
    struct prng root;

    empty(quorum);
    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 2);
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        prng_seed(&quorum->streams[i], prng_next(&root));
    quorum->key = prng_next(&root) | 1;
    quorum->profile = *profile;
    assertion_watch(tell_assertion, quorum);
    if (setjmp(quorum->escape) == 0)
        begin(quorum);
    assertion_watch(NULL, NULL);
}

static void probe(struct quorum *quorum)
{
    raft_referee_probe(quorum->referee, quorum->now);
    if (quorum->now >= quorum->quiet_at) {
        raft_referee_over(quorum->referee, quorum->now);
        quorum->is_over = true;
        return;
    }
    (void)quorum_push(quorum, quorum->now + NS_PER_MS, EVENT_PROBE, 0);
}

static void take(struct quorum *quorum, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_ARRIVE:
        net_take(quorum, event);
        break;
    case EVENT_WATCHDOG:
        node_work_watch(quorum, event);
        break;
    case EVENT_WRITE:
        node_work_write(quorum, event);
        break;
    case EVENT_OBITUARY:
        guard_take(quorum, event);
        break;
    case EVENT_PROPOSE:
    case EVENT_READ:
        client_take(quorum, event);
        break;
    case EVENT_STRIKE:
    case EVENT_CUT:
    case EVENT_FREEZE:
    case EVENT_CAMPAIGN:
    case EVENT_INSIST:
    case EVENT_FAULT:
        chaos_take(quorum, event);
        break;
    case EVENT_REPLACE:
        members_replace(quorum);
        break;
    case EVENT_HEAL:
        heal_take(quorum);
        break;
    case EVENT_DISTANT:
        order_distant(quorum);
        break;
    case EVENT_PROBE:
        probe(quorum);
        break;
    case EVENT_GHOST:
        ghost_take(quorum, event);
        break;
    case EVENT_GUEST:
        quorum->watch.guest(quorum->watch.context, quorum, event);
        break;
    default:
        node_take(quorum, event);
        break;
    }
}

bool quorum_advance(struct quorum *quorum, gavel_ns until)
{
    struct event event;

    assertion_watch(tell_assertion, quorum);
    if (quorum->broken == RAFT_INVARIANT_NONE && setjmp(quorum->escape) == 0) {
        while (!quorum->is_over && quorum->heap.count > 0 && quorum->heap.items[0].at <= until) {
            (void)heap_pop(&quorum->heap, &event); /* there is one */
            quorum->now = event.at;
            quorum->events++;
            quorum->hash = hash_add(quorum->hash, (uint64_t)event.at);
            quorum->hash = hash_add(quorum->hash, event.slot * 64U + event.kind);
            take(quorum, &event);
            if (quorum->watch.after)
                quorum->watch.after(quorum->watch.context, quorum);
        }
        if (!quorum->is_over && until != NEVER)
            quorum->now = ns_max(quorum->now, until);
    }
    assertion_watch(NULL, NULL);
    return !quorum->is_over && quorum->broken == RAFT_INVARIANT_NONE;
}
