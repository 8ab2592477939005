/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/world.h"

#include "base/assert.h"
#include "sim/common/assertion.h"
#include "sim/common/memory.h"
#include "sim/raft/chaos.h"
#include "sim/raft/ghost.h"
#include "sim/raft/members.h"
#include "sim/raft/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cluster *cluster_new(void)
{
    struct cluster *cluster = zeroed(1, sizeof *cluster);
    enum gavel_status status = node_actions_init(&cluster->actions);

    ASSERT(status == GAVEL_OK);
    cluster->referee = raft_referee_new();
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    if (!cluster)
        return;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        host_done(&cluster->hosts[i]);
    net_done(&cluster->network);
    heap_done(&cluster->heap);
    raft_referee_free(cluster->referee);
    node_actions_done(&cluster->actions);
    free(cluster->unsent);
    free(cluster);
}

struct event *cluster_push(struct cluster *cluster, gavel_ns at, enum event_kind kind, unsigned slot)
{
    struct event *event;

    ASSERT(at >= cluster->now);
    event = heap_push(&cluster->heap, at, kind, slot);
    event->incarnation = cluster->hosts[slot].life;
    return event;
}

_Noreturn void cluster_violate(struct cluster *cluster, enum raft_invariant invariant, const char *format,
                               ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(cluster->what, sizeof cluster->what, format, arguments); /* cut off if too long */
    va_end(arguments);
    cluster->broken = invariant;
    TRACE(cluster, NULL, "VIOLATION of %s: %s", raft_invariants[invariant].name, cluster->what);
    longjmp(cluster->escape, 1);
}

static void tell_violation(void *context, enum raft_invariant invariant, const char *what)
{
    cluster_violate(context, invariant, "%s", what);
}

static void tell_assertion(void *context, const char *what)
{
    cluster_violate(context, RAFT_INVARIANT_ASSERT, "%s", what);
}

struct host *cluster_leader(struct cluster *cluster)
{
    struct host *leader = NULL;

    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[i];

        if (host_is_up(host) && host->node.raft.role == RAFT_LEADER &&
            (!leader || host->node.raft.state.term > leader->node.raft.state.term))
            leader = host;
    }
    return leader;
}

struct host *cluster_some_leader(struct cluster *cluster, unsigned stream)
{
    unsigned first = cluster_below(cluster, stream, SLOTS_MAX);
    bool is_any = cluster_chance(cluster, stream, 300);

    for (unsigned i = 0; i < SLOTS_MAX && is_any; i++) {
        struct host *host = &cluster->hosts[(first + i) % SLOTS_MAX];

        if (host_is_up(host) && host->node.raft.role == RAFT_LEADER)
            return host;
    }
    return cluster_leader(cluster);
}

struct host *cluster_worker(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->used; i++) {
        struct host *host = &cluster->hosts[i];

        if (host_is_up(host) && raft_is_working(&host->node.raft, host_clock(cluster, host)))
            return host;
    }
    return NULL;
}

static void empty(struct cluster *cluster)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        host_clear(cluster, &cluster->hosts[i]);
    net_recycle_all(cluster);
    heap_clear(&cluster->heap);
    cluster->now = 0;
    cluster->used = 0;
    cluster->obituary_count = 0;
    cluster->target_count = 0;
    cluster->replaced = 0;
    cluster->operators = (struct cluster_operators){0};
    cluster->healed = 0;
    cluster->quiet_at = NEVER;
    cluster->rest = 0;
    memset(&cluster->resource, 0, sizeof cluster->resource);
    memset(&cluster->counts, 0, sizeof cluster->counts);
    cluster->broken = RAFT_INVARIANT_NONE;
    cluster->what[0] = '\0';
    cluster->is_over = false;
    cluster->events = 0;
    cluster->hash = HASH_START;
}

static void begin(struct cluster *cluster)
{
    const struct profile *p = &cluster->profile;
    const struct raft_referee_options options = {
        .is_within_bound = !(p->faults & FAULT_BIT(FAULT_BEYOND)),
        .has_forgeries = p->faults & FAULT_BIT(FAULT_FORGED),
        .is_calm = p->mood == MOOD_CALM && p->heal_at != NEVER,
        .violate = tell_violation,
        .context = cluster,
    };

    raft_referee_begin(cluster->referee, &options);
    net_begin(cluster);
    for (unsigned i = 0; i < p->nodes; i++) {
        gavel_ns delay = cluster_length(cluster, STREAM_NODE, NS_PER_MS, NS_PER_S);

        host_create(cluster, &cluster->hosts[i], &p->first);
        (void)cluster_push(cluster, cluster_has(cluster, FAULT_STAGGER) ? delay : 0, EVENT_START, i);
    }
    client_begin(cluster);
}

void cluster_begin(struct cluster *cluster, const struct profile *profile, uint64_t seed)
{
    struct prng root;

    empty(cluster);
    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 2);
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        prng_seed(&cluster->streams[i], prng_next(&root));
    cluster->key = prng_next(&root) | 1;
    cluster->profile = *profile;
    assertion_watch(tell_assertion, cluster);
    if (setjmp(cluster->escape) == 0)
        begin(cluster);
    assertion_watch(NULL, NULL);
}

static void probe(struct cluster *cluster)
{
    raft_referee_probe(cluster->referee, cluster->now);
    if (cluster->now >= cluster->quiet_at) {
        raft_referee_over(cluster->referee, cluster->now);
        operator_check_records(cluster);
        cluster->is_over = true;
        return;
    }
    (void)cluster_push(cluster, cluster->now + NS_PER_MS, EVENT_PROBE, 0);
}

static void take(struct cluster *cluster, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_ARRIVE:
        net_take(cluster, event);
        break;
    case EVENT_WATCHDOG:
        host_work_watch(cluster, event);
        break;
    case EVENT_WRITE:
        host_work_write(cluster, event);
        break;
    case EVENT_OBITUARY:
        guard_take(cluster, event);
        break;
    case EVENT_PROPOSE:
        client_take(cluster, event);
        break;
    case EVENT_STRIKE:
    case EVENT_CUT:
    case EVENT_FREEZE:
    case EVENT_CAMPAIGN:
    case EVENT_INSIST:
    case EVENT_FAULT:
        chaos_take(cluster, event);
        break;
    case EVENT_REPLACE:
        members_replace(cluster);
        break;
    case EVENT_HEAL:
        heal_take(cluster);
        break;
    case EVENT_DISTANT:
        order_distant(cluster);
        break;
    case EVENT_PROBE:
        probe(cluster);
        break;
    case EVENT_GHOST:
        ghost_take(cluster, event);
        break;
    case EVENT_MOUNT:
        refound_take(cluster, event);
        break;
    case EVENT_RETURN:
        revenant_take(cluster, event);
        break;
    case EVENT_UNBOUND:
        unbound_take(cluster, event);
        break;
    case EVENT_SERVICE:
        cluster->watch.service(cluster->watch.context, cluster, event);
        break;
    default:
        host_take(cluster, event);
        break;
    }
}

bool cluster_advance(struct cluster *cluster, gavel_ns until)
{
    struct event event;

    assertion_watch(tell_assertion, cluster);
    if (cluster->broken == RAFT_INVARIANT_NONE && setjmp(cluster->escape) == 0) {
        while (!cluster->is_over && cluster->heap.count > 0 && cluster->heap.items[0].at <= until) {
            (void)heap_pop(&cluster->heap, &event); /* there is one */
            cluster->now = event.at;
            cluster->events++;
            cluster->hash = hash_add(cluster->hash, (uint64_t)event.at);
            cluster->hash = hash_add(cluster->hash, event.slot * 64U + event.kind);
            take(cluster, &event);
            if (cluster->watch.after)
                cluster->watch.after(cluster->watch.context, cluster);
        }
        if (!cluster->is_over && until != NEVER)
            cluster->now = ns_max(cluster->now, until);
    }
    assertion_watch(NULL, NULL);
    return !cluster->is_over && cluster->broken == RAFT_INVARIANT_NONE;
}
