/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/raft/chaos.h"

#include <stdlib.h>
#include <string.h>

#define KIND_BITS 8
/* After a heal: for what is left of sessions to end, for connections to be found, for whoever leads to see
 * it.
 */
#define HEAL_SLACK (2 * NS_PER_S)

const char *hall_sight_name(unsigned sight)
{
    static const char *const names[] = {
#define SIGHT_ROW(name, text) [HALL_SIGHT_##name] = text,
        HALL_SIGHT_MAP(SIGHT_ROW)
#undef SIGHT_ROW
    };

    return names[sight];
}

const char *hall_group_name(unsigned group)
{
    static const char *const names[HALL_GROUPS_MAX] = {"north", "east", "south", "west"};

    return names[group];
}

unsigned hall_group_of(const char *name)
{
    unsigned group = 0;

    while (group < HALL_GROUPS_MAX && strcmp(name, hall_group_name(group)) != 0)
        group++;
    return group;
}

int64_t hall_wall_ms(const struct hall *hall) { return 1700000000000 + hall->quorum->now / NS_PER_MS; }

gavel_ns hall_length(struct hall *hall, unsigned stream, gavel_ns low, gavel_ns high)
{
    uint64_t drawn = prng_next(&hall->streams[stream]);
    unsigned doublings = 0;
    gavel_ns length;

    while (low << (doublings + 1) <= high)
        doublings++;
    length = low << (drawn & 0xffff) % (doublings + 1);
    return ns_min(length + (gavel_ns)((drawn >> 16) % (uint64_t)length), high);
}

/* ---- packets and events ---- */

struct packet *packet_new(struct hall *hall, const uint8_t *bytes, size_t size)
{
    struct packet *packet = calloc(1, sizeof *packet);

    ASSERT(packet);
    if (bytes) {
        packet->bytes = malloc(size > 0 ? size : 1);
        ASSERT(packet->bytes);
        memcpy(packet->bytes, bytes, size);
        packet->size = size;
    }
    TAILQ_INSERT_TAIL(&hall->packets, packet, link);
    return packet;
}

void packet_free(struct hall *hall, struct packet *packet)
{
    TAILQ_REMOVE(&hall->packets, packet, link);
    free(packet->bytes);
    free(packet);
}

static bool is_of_program(enum hall_event kind)
{
    switch (kind) {
    case HALL_DOWN:
    case HALL_WIRED:
    case HALL_UNWIRED:
    case HALL_TIMER:
    case HALL_ACT:
    case HALL_RESUME:
    case HALL_BORN:
        return true;
    default:
        return false;
    }
}

void hall_push(struct hall *hall, gavel_ns at, enum hall_event kind, unsigned slot, uint64_t number)
{
    struct event *event = quorum_push(hall->quorum, at, EVENT_GUEST, is_of_program(kind) ? 0 : slot);

    event->nonce = (struct nonce){.high = (uint64_t)slot << KIND_BITS | (uint64_t)kind, .low = number};
}

void hall_push_packet(struct hall *hall, gavel_ns at, enum hall_event kind, unsigned slot,
                      struct packet *packet)
{
    hall_push(hall, at, kind, slot, (uint64_t)(uintptr_t)packet);
}

/* ---- what the nodes tell ---- */

static void claimed(void *context, struct quorum *quorum, struct node *node)
{
    (void)quorum;
    station_claimed(context, node);
}

static void stopped(void *context, struct quorum *quorum, struct node *node)
{
    (void)quorum;
    station_stopped(context, node);
}

static void started(void *context, struct quorum *quorum, struct node *node)
{
    (void)quorum;
    station_started(context, node);
}

static void ended(void *context, struct quorum *quorum, struct node *node)
{
    (void)quorum;
    station_ended(context, node);
}

static void apply(void *context, struct quorum *quorum, struct node *node, raft_index index,
                  const struct raft_entry *entry)
{
    (void)quorum;
    station_apply(context, node, index, entry);
}

static void stepped(void *context, struct quorum *quorum, struct node *node)
{
    struct hall *hall = context;

    (void)quorum;
    station_settle(&hall->stations[node->slot]);
}

static void healed(void *context, struct quorum *quorum)
{
    struct hall *hall = context;
    gavel_ns lasting = ns_from_ms(hall->profile.ttl_max_ms) * 5 / 2 + HEAL_SLACK;

    hall->is_healed = true;
    hall->healed_at = quorum->now;
    trouble_heal(hall);
    hall_push(hall, ns_max(raft_referee_leader_by(quorum->referee), quorum->now) + lasting, HALL_END, 0, 0);
}

/* The last look: everybody has had time to find a leader, and to hear of it. */
static void end(struct hall *hall)
{
    gavel_ns now = hall->quorum->now;
    unsigned alive = 0;
    unsigned leased = 0;

    for (unsigned i = 0; i < hall->profile.programs; i++) {
        const struct program *program = &hall->programs[i];

        if (!program->is_alive || program->is_closing)
            continue;
        alive |= 1U << i;
        for (unsigned group = 0; group < hall->profile.groups; group++)
            leased |= (hall->profile.program[i].roles[group] == ROLE_LEASE) << group;
        for (unsigned group = 0; group < hall->profile.groups; group++)
            if (program->up_since != 0 && now - program->up_since > 3 * NS_PER_S)
                judge_has_seen_all(hall->judge, i, group, now - 2 * NS_PER_S);
    }
    judge_wants_leaders(hall->judge, now, now - NS_PER_S, alive, leased);
    judge_over(hall->judge);
    hall->quorum->is_over = true;
}

static void guest(void *context, struct quorum *quorum, const struct event *event)
{
    struct hall *hall = context;
    enum hall_event kind = (enum hall_event)(event->nonce.high & ((1U << KIND_BITS) - 1));
    struct event own = *event;

    own.kind = kind;
    own.slot = (unsigned)(event->nonce.high >> KIND_BITS);
    own.number = event->nonce.low;
    quorum->hash = hash_add(quorum->hash, kind * 64U + own.slot);
    switch (kind) {
    case HALL_ERRAND:
    case HALL_STATION:
    case HALL_TICK:
    case HALL_VISIT:
    case HALL_DEATH:
        station_take(hall, event);
        break;
    case HALL_UP:
    case HALL_DOWN:
    case HALL_WIRED:
    case HALL_UNWIRED:
    case HALL_HUNG_UP:
        wire_take(hall, event);
        break;
    case HALL_TIMER:
    case HALL_ACT:
    case HALL_RESUME:
    case HALL_BORN:
        program_take(hall, &own);
        break;
    case HALL_WRITE:
        judge_writes(hall->judge, own.slot, own.number);
        break;
    case HALL_FAULT:
        trouble_take(hall, own.number);
        break;
    case HALL_END:
        end(hall);
        break;
    }
}

static void after(void *context, struct quorum *quorum)
{
    struct hall *hall = context;

    if (hall->broken != HALL_INVARIANT_NONE)
        quorum_violate(quorum, RAFT_INVARIANT_GUEST, "%s: %s", hall_invariant_name(hall->broken), hall->what);
}

/* Not at once: whoever is at work has memory in his hands. */
static void violate(void *context, enum hall_invariant invariant, const char *what)
{
    struct hall *hall = context;

    if (hall->broken != HALL_INVARIANT_NONE)
        return;
    hall->broken = invariant;
    (void)snprintf(hall->what, sizeof hall->what, "%s", what); /* cut off if too long */
}

/* ---- life ---- */

static void clear(struct hall *hall)
{
    for (unsigned i = 0; i < PROGRAMS_MAX; i++)
        program_clear(&hall->programs[i]);
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        station_clear(&hall->stations[i]);
    wire_clear(hall);
    while (!TAILQ_EMPTY(&hall->packets))
        packet_free(hall, TAILQ_FIRST(&hall->packets));
}

struct hall *hall_new(void)
{
    struct hall *hall = calloc(1, sizeof *hall);

    ASSERT(hall); /* a simulator without memory has nothing to tell */
    hall->quorum = quorum_new();
    hall->judge = judge_new();
    LIST_INIT(&hall->wires);
    LIST_INIT(&hall->old_wires);
    TAILQ_INIT(&hall->packets);
    return hall;
}

void hall_free(struct hall *hall)
{
    if (!hall)
        return;
    clear(hall);
    quorum_free(hall->quorum);
    judge_free(hall->judge);
    free(hall);
}

static void begin(struct hall *hall, uint64_t seed)
{
    struct prng root;

    prng_seed(&root, seed * UINT64_C(0x9e3779b97f4a7c15) + 7);
    for (unsigned i = 0; i < HALL_STREAM_COUNT; i++)
        prng_seed(&hall->streams[i], prng_next(&root));
    hall->wire_count = 0;
    hall->visits = 0;
    hall->pids = 100;
    hall->is_healed = false;
    hall->healed_at = NEVER;
    hall->broken = HALL_INVARIANT_NONE;
    hall->what[0] = '\0';
    memset(hall->seen, 0, sizeof hall->seen);
    memset(hall->programs, 0, sizeof hall->programs);
    memset(hall->errand_newest, 0, sizeof hall->errand_newest);
    judge_begin(hall->judge, hall->profile.is_quiet, violate, hall);
}

static void take_counts(struct hall *hall)
{
    const struct judge_counts *counts = judge_counts(hall->judge);

    hall->seen[HALL_SIGHT_SESSIONS] = counts->sessions;
    hall->seen[HALL_SIGHT_EXPIRED] = counts->expired;
    hall->seen[HALL_SIGHT_CLOSED] = counts->closed;
    hall->seen[HALL_SIGHT_DEATHS] = counts->deaths;
    hall->seen[HALL_SIGHT_GRANTS] = counts->grants;
    hall->seen[HALL_SIGHT_CLAIMS] = counts->claims;
    hall->seen[HALL_SIGHT_TAKE_OVERS] = counts->take_overs;
    hall->seen[HALL_SIGHT_LAPSES] = counts->lapses;
    hall->seen[HALL_SIGHT_HAND_OVERS] = counts->hand_overs;
    hall->seen[HALL_SIGHT_ROLLBACKS] = counts->rollbacks;
    hall->seen[HALL_SIGHT_STALE] = counts->stale;
}

void hall_play(struct hall *hall, const struct hall_profile *profile, uint64_t seed, struct trace *trace)
{
    struct quorum *quorum = hall->quorum;

    clear(hall);
    hall->profile = *profile;
    begin(hall, seed);
    quorum->trace = trace;
    quorum->watch = (struct quorum_watch){.claimed = claimed,
                                          .stopped = stopped,
                                          .started = started,
                                          .ended = ended,
                                          .apply = apply,
                                          .stepped = stepped,
                                          .guest = guest,
                                          .healed = healed,
                                          .after = after,
                                          .context = hall};
    raft_referee_ignore(quorum->referee, 0);
    quorum_begin(quorum, &profile->quorum, seed);
    if (trace)
        quorum_trace_profile(quorum, seed);
    chaos_begin(quorum);
    for (unsigned i = 0; i < profile->programs; i++) {
        hall->programs[i] = (struct program){.hall = hall, .index = i};
        hall_push(hall, hall_between(hall, HALL_STREAM_PROGRAM, 0, NS_PER_S), HALL_BORN, i, 0);
    }
    trouble_begin(hall);
    (void)quorum_advance(quorum, NEVER); /* the result is read from it */
    take_counts(hall);
}
