/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/common/memory.h"
#include "sim/raft/chaos.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define KIND_BITS 8
/* After a heal: for what is left of sessions to end, for connections to be found, for whoever leads to see
 * it.
 */
#define HEAL_SLACK (2 * NS_PER_S)

const char *session_sight_name(unsigned sight)
{
    static const char *const names[] = {
#define SIGHT_ROW(name, text) [SESSION_SIGHT_##name] = text,
        SESSION_SIGHT_MAP(SIGHT_ROW)
#undef SIGHT_ROW
    };

    return names[sight];
}

const char *testbed_group_name(unsigned group)
{
    static const char *const names[GROUPS_MAX] = {"north", "east", "south", "west"};

    return names[group];
}

unsigned testbed_group_of(const char *name)
{
    unsigned group = 0;

    while (group < GROUPS_MAX && strcmp(name, testbed_group_name(group)) != 0)
        group++;
    return group;
}

/* ---- packets and events ---- */

struct packet *packet_new(struct testbed *testbed, const uint8_t *bytes, size_t size)
{
    struct packet *packet = zeroed(1, sizeof *packet);

    if (bytes) {
        packet->bytes = malloc(size > 0 ? size : 1);
        ASSERT(packet->bytes);
        memcpy(packet->bytes, bytes, size);
        packet->size = size;
    }
    TAILQ_INSERT_TAIL(&testbed->packets, packet, link);
    return packet;
}

void packet_free(struct testbed *testbed, struct packet *packet)
{
    TAILQ_REMOVE(&testbed->packets, packet, link);
    free(packet->bytes);
    free(packet);
}

static bool is_of_program(enum testbed_event kind)
{
    switch (kind) {
    case TESTBED_FRAME_DOWN:
    case TESTBED_CONNECTED:
    case TESTBED_DISCONNECTED:
    case TESTBED_CLIENT_TIMER:
    case TESTBED_ACT:
    case TESTBED_TAKE:
    case TESTBED_RESUME:
    case TESTBED_START:
        return true;
    default:
        return false;
    }
}

void testbed_push(struct testbed *testbed, gavel_ns at, enum testbed_event kind, unsigned slot,
                  uint64_t number)
{
    struct event *event = cluster_push(testbed->cluster, at, EVENT_SERVICE, is_of_program(kind) ? 0 : slot);

    event->nonce = (struct nonce){.high = (uint64_t)slot << KIND_BITS | (uint64_t)kind, .low = number};
}

void testbed_push_packet(struct testbed *testbed, gavel_ns at, enum testbed_event kind, unsigned slot,
                         struct packet *packet)
{
    testbed_push(testbed, at, kind, slot, (uint64_t)(uintptr_t)packet);
}

/* ---- what the nodes tell ---- */

static void stopped(void *context, struct cluster *cluster, struct host *host)
{
    (void)cluster;
    service_stopped(context, host);
}

static void started(void *context, struct cluster *cluster, struct host *host)
{
    (void)cluster;
    service_started(context, host);
}

static void ended(void *context, struct cluster *cluster, struct host *host)
{
    (void)cluster;
    service_ended(context, host);
}

static void applied(void *context, struct cluster *cluster, struct host *host,
                    const struct node_action *action)
{
    struct testbed *testbed = context;
    const struct raft_entry *entry = action->applied.entry;

    session_referee_applied(testbed->referee, cluster->now, action->applied.index, &host->table, entry->data,
                            entry->size, action->applied.status, action->applied.results,
                            action->applied.count);
}

/* A keep-alive that is answered by a leader without a lease. */
static void check_lease(struct testbed *testbed, struct host *host, const uint8_t *bytes, size_t size)
{
    Gavel__ClientFrame *frame;
    const char *reason;

    if (raft_is_working(&host->node.raft, host_clock(testbed->cluster, host)) ||
        client_frame_unpack(bytes, size, &frame, &reason) != GAVEL_OK)
        return;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT && frame->kept->status == GAVEL_OK)
        session_referee_has_no_lease(testbed->referee, host->label);
    client_frame_free(frame);
}

static void looked(void *context, struct cluster *cluster, struct host *host)
{
    const struct frontend_reply *reply;

    (void)cluster;
    STAILQ_FOREACH(reply, &host->node.own_replies, next)
        check_lease(context, host, reply->bytes + CLIENT_LENGTH_BYTES, reply->size - CLIENT_LENGTH_BYTES);
}

static bool forward(void *context, struct cluster *cluster, struct host *host,
                    const struct node_forwarded *forwarded)
{
    struct testbed *testbed = context;

    (void)cluster;
    if (forwarded->is_answer)
        check_lease(testbed, host, forwarded->bytes, forwarded->size);
    return forwarded_send(&testbed->services[host->slot], forwarded);
}

static void answer(void *context, struct cluster *cluster, struct host *host,
                   const struct forwarder_answer *answer)
{
    (void)cluster;
    service_answer(context, host, answer);
}

static void stepped(void *context, struct cluster *cluster, struct host *host)
{
    struct testbed *testbed = context;

    (void)cluster;
    service_settle(&testbed->services[host->slot]);
}

static void healed(void *context, struct cluster *cluster)
{
    struct testbed *testbed = context;
    gavel_ns lasting = ns_from_ms(testbed->profile.ttl_max_ms) * 5 / 2 + HEAL_SLACK;

    testbed->is_healed = true;
    testbed->healed_at = cluster->now;
    client_faults_heal(testbed);
    testbed_push(testbed, ns_max(raft_referee_leader_by(cluster->referee), cluster->now) + lasting,
                 TESTBED_END, 0, 0);
}

/*
 * A node that was removed, and still runs, learns of nothing any more: its programs do not learn by their
 * watches what they are granted. Operators have to stop it.
 */
static bool is_told(struct testbed *testbed, const struct program *program)
{
    struct cluster *cluster = testbed->cluster;
    const struct host *leader = cluster_leader(cluster);

    if (!program->connection || !leader)
        return true;
    return raft_config_find(&leader->node.raft.config, cluster->hosts[program->connection->slot].id);
}

static void judge_hanging(struct testbed *testbed, const struct program *program)
{
    gavel_ns since = ns_max(raft_referee_leader_by(testbed->cluster->referee), program->hangs_since);

    if (session_referee_has_expired(testbed->referee, client_session(program->client)))
        testbed_see(testbed, SESSION_SIGHT_HUNG);
    session_referee_wants_hung_ended(testbed->referee, testbed->cluster->now, program->index, program->pid,
                                     since, ns_from_ms(program->open.ttl_ms));
}

bool testbed_is_reachable(struct testbed *testbed)
{
    struct cluster *cluster = testbed->cluster;
    const struct host *leader = cluster_leader(cluster);

    for (unsigned i = 0; i < testbed->profile.cluster.nodes; i++)
        if (cluster->healed & 1U << i &&
            (!leader || raft_config_find(&leader->node.raft.config, cluster->hosts[i].id)))
            return true;
    return false;
}

/* The last look: everybody has had time to find a leader, and to hear of it. */
static void end(struct testbed *testbed)
{
    gavel_ns now = testbed->cluster->now;
    bool is_reachable = testbed_is_reachable(testbed);
    unsigned alive = 0;
    unsigned leased = 0;

    for (unsigned i = 0; i < testbed->profile.programs; i++) {
        const struct program *program = &testbed->programs[i];

        if (program->is_alive && program->is_hanging_for_good)
            judge_hanging(testbed, program);
        if (!program->is_alive || program->is_closing || program->is_hanging_for_good || !is_reachable ||
            !is_told(testbed, program))
            continue;
        alive |= 1U << i;
        for (unsigned group = 0; group < testbed->profile.groups; group++)
            leased |= (testbed->profile.program[i].roles[group] == ROLE_LEASE) << group;
        for (unsigned group = 0; group < testbed->profile.groups; group++)
            if (program->up_since != 0 && now - program->up_since > 3 * NS_PER_S)
                session_referee_has_seen_all(testbed->referee, i, group, now - 2 * NS_PER_S);
    }
    session_referee_wants_leaders(testbed->referee, now, now - NS_PER_S, alive, leased);
    session_referee_over(testbed->referee);
    testbed->cluster->is_over = true;
}

static void run_service(void *context, struct cluster *cluster, const struct event *event)
{
    struct testbed *testbed = context;
    enum testbed_event kind = (enum testbed_event)(event->nonce.high & ((1U << KIND_BITS) - 1));
    struct event own = *event;

    own.kind = kind;
    own.slot = (unsigned)(event->nonce.high >> KIND_BITS);
    own.number = event->nonce.low;
    cluster->hash = hash_add(cluster->hash, kind * 64U + own.slot);
    switch (kind) {
    case TESTBED_FORWARDED:
    case TESTBED_SERVICE_TIMER:
    case TESTBED_SERVICE_TICK:
    case TESTBED_SESSIONLESS:
    case TESTBED_DEATH:
        service_take(testbed, event);
        break;
    case TESTBED_FRAME_UP:
    case TESTBED_FRAME_DOWN:
    case TESTBED_CONNECTED:
    case TESTBED_DISCONNECTED:
    case TESTBED_HUNG_UP:
        connection_take(testbed, event);
        break;
    case TESTBED_CLIENT_TIMER:
    case TESTBED_ACT:
    case TESTBED_TAKE:
    case TESTBED_RESUME:
    case TESTBED_START:
        program_take(testbed, &own);
        break;
    case TESTBED_WRITE:
        session_referee_writes(testbed->referee, own.slot, own.number);
        break;
    case TESTBED_FAULT:
        client_faults_take(testbed, own.number);
        break;
    case TESTBED_LOSS:
        host_loss_take(testbed, own.number);
        break;
    case TESTBED_END:
        end(testbed);
        break;
    }
}

static void after(void *context, struct cluster *cluster)
{
    struct testbed *testbed = context;

    if (testbed->broken != SESSION_INVARIANT_NONE)
        cluster_violate(cluster, RAFT_INVARIANT_SERVICE, "%s: %s", session_invariants[testbed->broken].name,
                        testbed->what);
}

/* Not at once: whoever is at work has memory in his hands. */
static void violate(void *context, enum session_invariant invariant, const char *what)
{
    struct testbed *testbed = context;

    if (testbed->broken != SESSION_INVARIANT_NONE)
        return;
    testbed->broken = invariant;
    (void)snprintf(testbed->what, sizeof testbed->what, "%s", what); /* cut off if too long */
}

/* ---- life ---- */

static void clear(struct testbed *testbed)
{
    for (unsigned i = 0; i < PROGRAMS_MAX; i++)
        program_clear(&testbed->programs[i]);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        service_clear(&testbed->services[i]);
    connection_clear(testbed);
    while (!TAILQ_EMPTY(&testbed->packets))
        packet_free(testbed, TAILQ_FIRST(&testbed->packets));
    memset(testbed->openings, 0, sizeof testbed->openings);
}

struct testbed *testbed_new(void)
{
    struct testbed *testbed = zeroed(1, sizeof *testbed);

    testbed->cluster = cluster_new();
    testbed->referee = session_referee_new();
    LIST_INIT(&testbed->connections);
    LIST_INIT(&testbed->old_connections);
    TAILQ_INIT(&testbed->packets);
    return testbed;
}

void testbed_free(struct testbed *testbed)
{
    if (!testbed)
        return;
    clear(testbed);
    cluster_free(testbed->cluster);
    session_referee_free(testbed->referee);
    free(testbed);
}

static void begin(struct testbed *testbed, uint64_t seed)
{
    struct prng root;

    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 7);
    for (unsigned i = 0; i < TESTBED_STREAM_COUNT; i++)
        prng_seed(&testbed->streams[i], prng_next(&root));
    testbed->connection_count = 0;
    testbed->sessionless_count = 0;
    testbed->pids = 100;
    testbed->is_healed = false;
    testbed->healed_at = NEVER;
    testbed->broken = SESSION_INVARIANT_NONE;
    testbed->what[0] = '\0';
    memset(testbed->seen, 0, sizeof testbed->seen);
    memset(testbed->programs, 0, sizeof testbed->programs);
    memset(testbed->forwarded_newest, 0, sizeof testbed->forwarded_newest);
    session_referee_begin(testbed->referee, testbed->profile.is_quiet, testbed->profile.retention, violate,
                          testbed);
}

static void take_counts(struct testbed *testbed)
{
    const struct session_referee_counts *counts = session_referee_counts(testbed->referee);

    testbed->seen[SESSION_SIGHT_SESSIONS] = counts->sessions;
    testbed->seen[SESSION_SIGHT_EXPIRED] = counts->expired;
    testbed->seen[SESSION_SIGHT_CLOSED] = counts->closed;
    testbed->seen[SESSION_SIGHT_DEATHS] = counts->deaths;
    testbed->seen[SESSION_SIGHT_GRANTS] = counts->grants;
    testbed->seen[SESSION_SIGHT_CLAIMS] = counts->claims;
    testbed->seen[SESSION_SIGHT_TAKE_OVERS] = counts->take_overs;
    testbed->seen[SESSION_SIGHT_LAPSES] = counts->lapses;
    testbed->seen[SESSION_SIGHT_HAND_OVERS] = counts->hand_overs;
    testbed->seen[SESSION_SIGHT_FINISHED] = counts->finished;
    testbed->seen[SESSION_SIGHT_ROLLBACKS] = counts->rollbacks;
    testbed->seen[SESSION_SIGHT_STALE] = counts->stale;
    testbed->seen[SESSION_SIGHT_REMOVALS] = counts->removals;
    testbed->seen[SESSION_SIGHT_PARTED] = counts->parted;
    testbed->seen[SESSION_SIGHT_ANEW] = counts->anew;
    testbed->seen[SESSION_SIGHT_RENEWED] = counts->renewed;
    testbed->seen[SESSION_SIGHT_REOPENED] = counts->reopened;
}

void testbed_play(struct testbed *testbed, const struct session_profile *profile, uint64_t seed,
                  struct trace *trace)
{
    struct cluster *cluster = testbed->cluster;

    clear(testbed);
    testbed->profile = *profile;
    begin(testbed, seed);
    cluster->trace = trace;
    cluster->watch = (struct cluster_watch){.stopped = stopped,
                                            .started = started,
                                            .ended = ended,
                                            .looked = looked,
                                            .applied = applied,
                                            .forward = forward,
                                            .answer = answer,
                                            .stepped = stepped,
                                            .service = run_service,
                                            .healed = healed,
                                            .after = after,
                                            .context = testbed};
    raft_referee_ignore(cluster->referee, 0);
    cluster_begin(cluster, &profile->cluster, seed);
    if (trace)
        cluster_trace_profile(cluster, seed);
    chaos_begin(cluster);
    for (unsigned i = 0; i < profile->programs; i++) {
        testbed->programs[i] = (struct program){.testbed = testbed, .index = i};
        testbed_push(testbed, testbed_between(testbed, TESTBED_STREAM_PROGRAM, 0, NS_PER_S), TESTBED_START, i,
                     0);
    }
    client_faults_begin(testbed);
    host_loss_begin(testbed);
    (void)cluster_advance(cluster, NEVER); /* the result is read from it */
    take_counts(testbed);
}
