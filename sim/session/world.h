/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hall: what runs on the nodes of a simulated quorum (sim/raft), and the
 * programs before it.
 *
 *     program ── wire ──► station of a node ── errand ──► station of the leader
 *     (a real client)     (a real forwarder)               (a real frontend, a real table)
 *
 * A station is what src/daemon makes of a forwarder, a frontend and the table of a
 * node. A wire carries frames in order and breaks; errands are lost, late and
 * doubled. A program has a clock of its own, is stopped, killed and started
 * again, and works in groups while it leads them.
 */
#ifndef SIM_SESSION_WORLD_H
#define SIM_SESSION_WORLD_H

#include "core/session/client.h"
#include "core/session/forwarder.h"
#include "core/session/frontend.h"
#include "core/table/history.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"
#include "sim/session/profile.h"
#include "sim/session/referee.h"

enum hall_event {
    HALL_ERRAND,  /* arrives at a node; packet */
    HALL_UP,      /* a frame arrives at a node; packet */
    HALL_DOWN,    /* a frame arrives at a program; packet */
    HALL_WIRED,   /* a program learns that its connection is there; packet without bytes */
    HALL_UNWIRED, /* a program learns that it is gone */
    HALL_HUNG_UP, /* a node learns that */
    HALL_STATION, /* the timer of a station; number */
    HALL_TICK,    /* of a station */
    HALL_VISIT,   /* somebody without a session asks a node something */
    HALL_DEATH,   /* a node learns that a process has died; number is the pid */
    HALL_TIMER,   /* of a client; number */
    HALL_ACT,     /* a program does something; number is its life */
    HALL_WRITE,   /* of a leader, reaches the resource of a group; number is the epoch */
    HALL_RESUME,  /* a stopped program runs again; number */
    HALL_BORN,    /* a program starts */
    HALL_FAULT,   /* number is its kind */
    HALL_END,     /* the last look */
};

enum hall_stream {
    HALL_STREAM_NET,
    HALL_STREAM_STATION,
    HALL_STREAM_PROGRAM,
    HALL_STREAM_VISIT,
    HALL_STREAM_FAULTS,
    HALL_STREAM_COUNT = HALL_STREAM_FAULTS + HALL_FAULT_COUNT
};

struct hall;
struct wire;

/* Bytes on their way. */
struct packet {
    TAILQ_ENTRY(packet) link;
    unsigned from; /* slots, of an errand */
    bool is_answer;
    uint64_t number;
    uint64_t incarnation; /* of whoever asked */
    struct wire *wire;
    uint8_t *bytes; /* of a frame, without its length; NULL: none */
    size_t size;
};
TAILQ_HEAD(packets, packet);

/* A watch at a node. */
struct lookout {
    LIST_ENTRY(lookout) link;
    uint64_t number;
    char *group; /* "" all */
    struct table_cursor cursor;
};

/* A connection of a program to a node. */
struct wire {
    LIST_ENTRY(wire) link; /* of all */
    uint64_t number;
    unsigned program;
    uint64_t program_life;
    unsigned slot;
    uint64_t node_life;
    bool is_up;   /* the node has it */
    bool is_held; /* the program has it */
    bool is_retired;
    gavel_ns up_newest; /* frames keep their order */
    gavel_ns down_newest;
    gavel_ns mute_until;
    LIST_HEAD(, lookout) lookouts;
};

/* An answer of a frontend for the forwarder of the same node. */
struct own_answer {
    STAILQ_ENTRY(own_answer) link;
    uint64_t number;
    Gavel__ClientFrame *frame;
};

#define DEAD_MAX 64

struct station {
    struct hall *hall;
    struct node *node;
    bool is_up;
    bool is_over; /* its node has died while it was busy */
    unsigned depth;
    bool is_settling;
    struct forwarder forwarder;
    struct frontend frontend;
    gavel_ns applying_at;
    STAILQ_HEAD(, own_answer) own_answers;
    uint64_t timer;
    gavel_ns timer_at; /* real */
    gavel_ns alive_at; /* the thread of its clients ran; on its clock */
    gavel_ns numb_until;
    int32_t dead[DEAD_MAX]; /* processes of its machine; a ring */
    unsigned dead_count;
};

/* What a program has asked and not heard of. */
enum matter_kind {
    MATTER_NONE,
    MATTER_CAMPAIGN,
    MATTER_WITHDRAW,
    MATTER_WISH,
    MATTER_NOTE,
    MATTER_COUNT,
    MATTER_CLAIM,
    MATTER_RENEW,
    MATTER_RELEASE,
    MATTER_LOOK,       /* a question about a group */
    MATTER_READ_COUNT, /* about the counter */
};
struct matter {
    enum matter_kind kind;
    uint64_t token;
    unsigned group;
    gavel_ns asked_at; /* on its clock */
    uint64_t value;    /* of a note */
    uint64_t epoch;
    uint64_t nonce; /* of a lease */
};
#define MATTERS_MAX 64

/* How a program stands in a group. */
struct seat {
    bool has_joined; /* as far as it knows */
    bool is_asking;  /* a campaign or a claim is under way */
    bool is_leaving; /* a withdrawal or a release is under way */
    bool is_looking;
    bool is_ineligible;
    int32_t priority;
    uint64_t void_up_to; /* mandates up to this epoch were given up */
    uint64_t epoch;      /* that it leads with; 0 */
    bool works;
    gavel_ns drain_at; /* somebody wishes that it goes: on its clock; 0 */
    uint64_t nonce;    /* of a lease */
    gavel_ns deadline; /* of a lease, on its clock */
    gavel_ns renew_at;
    bool is_renewing;
    uint64_t looked_after; /* revision of the newest look at a lease group */
};

struct program {
    struct hall *hall;
    unsigned index;
    char label[4];
    char id[16];
    bool is_alive;
    bool is_closing;
    uint64_t life;
    int32_t pid;
    struct clock clock;
    gavel_ns frozen_until; /* real */
    uint64_t freezes;
    struct client *client;
    struct wire *wire;
    uint64_t timer;
    gavel_ns timer_at; /* real */
    gavel_ns woken_at;
    unsigned wakes;
    gavel_ns deadline; /* of the session, on its clock; 0: none */
    uint64_t tokens;
    struct matter matters[MATTERS_MAX];
    struct seat seats[HALL_GROUPS_MAX];
    gavel_ns up_since; /* real; 0: it is not */
};

#define HALL_SIGHT_MAP(X)                                                                                    \
    X(SESSIONS, "sessions opened")                                                                           \
    X(EXPIRED, "sessions expired")                                                                           \
    X(CLOSED, "sessions closed")                                                                             \
    X(DEATHS, "sessions of the dead ended")                                                                  \
    X(GRANTS, "session mandates")                                                                            \
    X(CLAIMS, "lease mandates")                                                                              \
    X(TAKE_OVERS, "leases taken over")                                                                       \
    X(LAPSES, "leases lapsed")                                                                               \
    X(HAND_OVERS, "hand-overs")                                                                              \
    X(ROLLBACKS, "wishes rolled back")                                                                       \
    X(REPEATS, "requests repeated")                                                                          \
    X(STALE, "writes refused as stale")                                                                      \
    X(CHANGES, "changes watched")                                                                            \
    X(GAPS, "gaps of watches")                                                                               \
    X(UNKNOWN, "outcomes unknown")                                                                           \
    X(WORKS, "works begun")                                                                                  \
    X(STALLS, "stalls noticed by frontends")

#define HALL_SIGHT_ENUM(name, text) HALL_SIGHT_##name,
enum hall_sight { HALL_SIGHT_MAP(HALL_SIGHT_ENUM) HALL_SIGHT_COUNT };
#undef HALL_SIGHT_ENUM

struct hall {
    struct quorum *quorum;
    struct hall_profile profile;
    struct prng streams[HALL_STREAM_COUNT];
    struct station stations[SLOTS_MAX];
    struct program programs[PROGRAMS_MAX];
    LIST_HEAD(, wire) wires;
    LIST_HEAD(, wire) old_wires; /* nobody has them any more, but something on its way may be of them */
    uint64_t wire_count;
    struct packets packets;
    gavel_ns errand_newest[SLOTS_MAX][SLOTS_MAX]; /* arrival, for those that keep their order */
    uint64_t visits;
    int32_t pids;
    struct judge *judge;
    bool is_healed;
    gavel_ns healed_at;
    uint64_t seen[HALL_SIGHT_COUNT];
    enum hall_invariant broken;
    char what[256];
};

struct hall *hall_new(void);
void hall_free(struct hall *hall);
/* One run of this profile, from its beginning to its end or a violation. */
void hall_play(struct hall *hall, const struct hall_profile *profile, uint64_t seed, struct trace *trace);
const char *hall_sight_name(unsigned sight);

/* Something happens at `at` in this slot (of a node, or of a program). */
void hall_push(struct hall *hall, gavel_ns at, enum hall_event kind, unsigned slot, uint64_t number);
void hall_push_packet(struct hall *hall, gavel_ns at, enum hall_event kind, unsigned slot,
                      struct packet *packet);
struct packet *packet_new(struct hall *hall, const uint8_t *bytes, size_t size);
void packet_free(struct hall *hall, struct packet *packet);

static inline bool hall_has(const struct hall *hall, enum hall_fault fault)
{
    return !hall->is_healed && hall->profile.faults & HALL_FAULT_BIT(fault);
}
static inline bool hall_chance(struct hall *hall, unsigned stream, unsigned per_mille)
{
    return prng_chance(&hall->streams[stream], per_mille);
}
static inline gavel_ns hall_between(struct hall *hall, unsigned stream, gavel_ns low, gavel_ns high)
{
    return prng_between(&hall->streams[stream], low, high);
}
static inline unsigned hall_below(struct hall *hall, unsigned stream, unsigned bound)
{
    return (unsigned)prng_below(&hall->streams[stream], bound);
}
static inline void hall_see(struct hall *hall, enum hall_sight sight) { hall->seen[sight]++; }
/* Short more often than long. */
gavel_ns hall_length(struct hall *hall, unsigned stream, gavel_ns low, gavel_ns high);

/* The name of a group. */
const char *hall_group_name(unsigned group);
/* By its name; HALL_GROUPS_MAX: none of ours. */
unsigned hall_group_of(const char *name);
int64_t hall_wall_ms(const struct hall *hall);

/* station.c */
void station_clear(struct station *station);
void station_started(struct hall *hall, struct node *node);
void station_ended(struct hall *hall, struct node *node);
void station_claimed(struct hall *hall, struct node *node);
void station_stopped(struct hall *hall, struct node *node);
void station_apply(struct hall *hall, struct node *node, raft_index index, const struct raft_entry *entry);
void station_settle(struct station *station);
void station_take(struct hall *hall, const struct event *event);
gavel_ns station_clock(const struct station *station);
/* Not while it is stopped or late. */
enum put_off { NOT_PUT_OFF, PUT_OFF, VOID };
enum put_off station_put_off(struct hall *hall, const struct event *event, bool is_lost_in_sleep);

/* Instead of a wire: whoever came without a session. */
#define VISIT_BIT (UINT64_C(1) << 62)
#define THIEF (UINT64_C(1) << 61) /* a visit of somebody who uses the session of another */

/* errand.c: errands between nodes, deaths, visits */
bool errand_send(struct station *from, uint64_t to, bool is_answer, uint64_t number, uint64_t incarnation,
                 const uint8_t *bytes, size_t size, bool may_double);
void errand_take(struct hall *hall, const struct event *event);
void errand_mourn(struct station *station);
void errand_visit(struct station *station);
void errand_visited(struct station *station, uint64_t visit, const Gavel__ClientFrame *frame);

/* wire.c */
void wire_dial(struct program *program, size_t which);
void wire_drop(struct program *program); /* by the program */
void wire_send_up(struct program *program, const Gavel__ClientFrame *frame);
void wire_send_down(struct hall *hall, struct wire *wire, const Gavel__ClientFrame *frame);
void wire_break(struct hall *hall, struct wire *wire);
void wire_node_died(struct hall *hall, unsigned slot);
void wire_program_died(struct program *program);
void wire_take(struct hall *hall, const struct event *event);
struct wire *wire_find(struct hall *hall, uint64_t number);
void wire_clear(struct hall *hall);

/* lookout.c */
void lookout_begin(struct station *station, struct wire *wire, const Gavel__Watch *ask);
void lookout_end(struct wire *wire, uint64_t number);
void lookout_end_all(struct wire *wire);
void lookout_pump(struct station *station);

/* program.c */
gavel_ns program_clock(const struct program *program);
void program_start(struct hall *hall, struct program *program);
void program_kill(struct program *program, const char *why);
void program_freeze(struct program *program, gavel_ns length);
void program_resume(struct program *program);
void program_step(struct program *program, struct client_event *event);
void program_take(struct hall *hall, const struct event *event);
bool program_is_frozen(const struct program *program);
void program_clear(struct program *program);

/* matter.c: what programs ask, and what comes of it */
uint64_t matter_submit(struct program *program, enum matter_kind kind, unsigned group, const Gavel__Op *op,
                       uint64_t value);
void matter_ask(struct program *program, enum matter_kind kind, unsigned group);
void matter_result(struct program *program, const struct client_action *action);
void matter_answer(struct program *program, const struct client_action *action);

/* office.c: what a program does in a group with its session, and its work */
void office_act(struct program *program, unsigned group);
void office_elected(struct program *program, unsigned group, uint64_t epoch);
void office_change(struct program *program, const Gavel__Change *change);
void office_session_lost(struct program *program);
void office_deadline(struct program *program);
void office_stop_all(struct program *program);
void office_result(struct program *program, const struct matter *matter, enum gavel_status status,
                   const Gavel__OpResult *result);
void office_looked(struct program *program, unsigned group, const Gavel__Group *shown);
void office_write_note(struct program *program, unsigned group);
void office_wish(struct program *program, unsigned group);
/* By its own clock: it must look before it acts. */
bool seat_may_work(const struct program *program, const struct seat *seat, unsigned group);
void seat_work(struct program *program, unsigned group);
void seat_rest(struct program *program, unsigned group);

/* lease.c: likewise with leases */
void lease_act(struct program *program, unsigned group);
void lease_result(struct program *program, const struct matter *matter, enum gavel_status status,
                  const Gavel__OpResult *result);
void lease_looked(struct program *program, unsigned group, const Gavel__Group *shown);
/* The time that is sure of a lease, or a time to live, on the slowest clock. */
gavel_ns lease_sure(const struct program *program, int64_t lease_ms);

/* trouble.c */
void trouble_begin(struct hall *hall);
void trouble_take(struct hall *hall, uint64_t fault);
void trouble_heal(struct hall *hall);

#endif
