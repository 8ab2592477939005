/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The testbed: a simulated cluster (sim/raft), what its nodes run for clients,
 * and programs that use it.
 *
 *     program ── connection ──► service of a node ── forwarded request ──► service of the leader
 *     (a real client)           (a real forwarder)                         (a real frontend and table)
 *
 * A service is what src/daemon puts around a node for its clients; the rest is
 * node_step() with its forwarder, frontend and table. A connection carries
 * frames in order and breaks; forwarded requests are lost, late and doubled. A
 * program has its own clock, is stopped, killed and started again, and works in
 * groups while it leads them.
 */
#ifndef SIM_SESSION_WORLD_H
#define SIM_SESSION_WORLD_H

#include "core/session/client.h"
#include "core/table/history.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"
#include "sim/session/profile.h"
#include "sim/session/referee.h"

enum testbed_event {
    TESTBED_FORWARDED,     /* arrives at a node; packet */
    TESTBED_FRAME_UP,      /* a frame arrives at a node; packet */
    TESTBED_FRAME_DOWN,    /* a frame arrives at a program; packet */
    TESTBED_CONNECTED,     /* a program learns that its connection is up; packet without bytes */
    TESTBED_DISCONNECTED,  /* a program learns that it is gone */
    TESTBED_HUNG_UP,       /* a node learns that */
    TESTBED_SERVICE_TIMER, /* the timer of a service; number */
    TESTBED_SERVICE_TICK,  /* of a service */
    TESTBED_SESSIONLESS,   /* a caller without a session asks a node something */
    TESTBED_DEATH,         /* a node learns that a process has died; number is the pid */
    TESTBED_CLIENT_TIMER,  /* of a client; number */
    TESTBED_ACT,           /* a program does something; number is its life */
    TESTBED_TAKE,          /* a program takes the deadline of its session; number is its life */
    TESTBED_WRITE,         /* of a leader, reaches the resource of a group; number is the epoch */
    TESTBED_RESUME,        /* a stopped program runs again; number */
    TESTBED_START,         /* a program starts */
    TESTBED_FAULT,         /* number is its kind */
    TESTBED_LOSS,          /* of a host; number is what of it (host_loss.c) */
    TESTBED_END,           /* the last look */
};

enum testbed_stream {
    TESTBED_STREAM_NET,
    TESTBED_STREAM_SERVICE,
    TESTBED_STREAM_PROGRAM,
    TESTBED_STREAM_SESSIONLESS,
    TESTBED_STREAM_FAULTS,
    TESTBED_STREAM_THIEF = TESTBED_STREAM_FAULTS + CLIENT_FAULT_COUNT,
    TESTBED_STREAM_REMOVAL,
    TESTBED_STREAM_FORMER,
    TESTBED_STREAM_REOPEN,
    TESTBED_STREAM_RENEW,
    TESTBED_STREAM_PACE,
    TESTBED_STREAM_LOSS,
    TESTBED_STREAM_COUNT
};

struct testbed;
struct connection;

/* Bytes on their way. */
struct packet {
    TAILQ_ENTRY(packet) link;
    unsigned from; /* slot, of a forwarded request or its answer */
    bool is_answer;
    bool is_silence;
    uint64_t number;
    uint64_t incarnation; /* of the node that asked; of silence: that said it */
    struct connection *connection;
    uint8_t *bytes; /* of a frame, without its length; NULL: none */
    size_t size;
};
TAILQ_HEAD(packets, packet);

/* A watch at a node. */
struct watch {
    LIST_ENTRY(watch) link;
    uint64_t number;
    char *group; /* "" all */
    struct table_cursor cursor;
};

/* A connection of a program to a node. */
struct connection {
    LIST_ENTRY(connection) link; /* of all */
    uint64_t number;
    unsigned program;
    uint64_t program_life;
    unsigned slot;
    uint64_t host_life;
    bool is_up;   /* the node has it */
    bool is_held; /* the program has it */
    bool is_retired;
    gavel_ns up_newest; /* frames keep their order */
    gavel_ns down_newest;
    gavel_ns mute_until;
    LIST_HEAD(, watch) watches;
};

#define DEAD_MAX 64

struct service {
    struct testbed *testbed;
    struct host *host;
    bool is_up;
    uint64_t timer;
    gavel_ns timer_at; /* real */
    gavel_ns alive_at; /* the thread of its clients ran; on its clock */
    gavel_ns numb_until;
    int32_t dead[DEAD_MAX]; /* processes of its machine; a ring */
    unsigned dead_count;
};

/* What a program has asked without an answer yet. */
enum pending_kind {
    PENDING_NONE,
    PENDING_CAMPAIGN,
    PENDING_WITHDRAW,
    PENDING_WISH,
    PENDING_REOPEN,
    PENDING_DIED,
    PENDING_LATE, /* a withdrawal of one that has left */
    PENDING_NOTE,
    PENDING_COUNT,
    PENDING_CLAIM,
    PENDING_RENEW,
    PENDING_RELEASE,
    PENDING_LOOK,       /* a question about a group */
    PENDING_READ_COUNT, /* about the counter */
};
struct pending {
    enum pending_kind kind;
    uint64_t token;
    unsigned group;
    gavel_ns asked_at;   /* on its clock */
    gavel_ns give_up_at; /* likewise, of a submit; NEVER */
    uint64_t value;      /* of a note */
    uint64_t epoch;
    uint64_t nonce; /* of a lease */
};
#define PENDING_MAX 64

/* As whom a program takes part in a group. */
struct identity {
    char id[24];
    uint64_t instance; /* 0: some say none */
};

/* The state of a program in a group. */
struct candidacy {
    struct identity own;
    struct identity former; /* that has left, in the same session perhaps; id "": none */
    bool has_joined;        /* as far as it knows */
    bool is_asking;         /* a campaign or a claim is under way */
    bool is_leaving;        /* a withdrawal or a release is under way */
    bool is_looking;
    bool must_look; /* again, soon: there was no room to, or the last look showed nothing, or what is old */
    uint64_t told;  /* the newest revision that its watch has told */
    bool is_ineligible;
    int32_t priority;
    uint64_t void_up_to; /* mandates up to this epoch have been given up */
    uint64_t epoch;      /* that it leads with; 0 */
    bool works;
    gavel_ns drain_at;     /* it was asked to go: when it does, on its clock; 0: not asked */
    gavel_ns patience;     /* how long it waits before it replaces a leader that was lost; 0: not at all */
    bool is_patient;       /* as it campaigns */
    gavel_ns impatient_at; /* when it has waited, on its clock; 0: nobody was lost */
    bool is_done;          /* as far as it knows: the group is closed */
    int32_t dead_pid;      /* a process that led and has died; 0: none */
    uint64_t nonce;        /* of a lease */
    gavel_ns deadline;     /* of a lease, on its clock */
    gavel_ns renew_at;
    bool is_renewing;
    uint64_t looked_after; /* revision of the newest look at a lease group */
};

struct program {
    struct testbed *testbed;
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
    struct connection *connection;
    uint64_t timer;
    gavel_ns timer_at; /* real */
    gavel_ns woken_at;
    unsigned wakes;
    gavel_ns deadline; /* of the session, on its clock; 0: none */
    struct client_open open;
    gavel_ns open_at; /* on its clock, it asks for its session; 0: it has */
    bool is_untaken;  /* the deadline, of one that is paced */
    bool is_hanging;
    bool is_hanging_for_good;
    gavel_ns hangs_since; /* real */
    gavel_ns hangs_until;
    bool is_taking; /* this very step */
    uint64_t tokens;
    struct pending pending[PENDING_MAX];
    struct candidacy candidacies[GROUPS_MAX];
    gavel_ns up_since; /* real; 0: it is not */
    gavel_ns kept_at;  /* real: when the opening of a session, or a keep-alive, was sent last; 0: never */
};

#define SESSION_SIGHT_MAP(X)                                                                                 \
    X(SESSIONS, "sessions opened")                                                                           \
    X(EXPIRED, "sessions expired")                                                                           \
    X(CLOSED, "sessions closed")                                                                             \
    X(DEATHS, "sessions of the dead ended")                                                                  \
    X(GRANTS, "session mandates")                                                                            \
    X(CLAIMS, "lease mandates")                                                                              \
    X(TAKE_OVERS, "leases taken over")                                                                       \
    X(LAPSES, "leases lapsed")                                                                               \
    X(HAND_OVERS, "hand-overs")                                                                              \
    X(FINISHED, "groups done for good")                                                                      \
    X(REPORTED, "deaths reported by candidates")                                                             \
    X(IMPATIENT, "patient candidates that have waited")                                                      \
    X(ROLLBACKS, "wishes rolled back")                                                                       \
    X(REPEATS, "requests repeated")                                                                          \
    X(STALE, "writes refused as stale")                                                                      \
    X(CHANGES, "changes watched")                                                                            \
    X(GAPS, "gaps of watches")                                                                               \
    X(UNKNOWN, "outcomes unknown")                                                                           \
    X(WORKS, "works begun")                                                                                  \
    X(STALLS, "stalls noticed by frontends")                                                                 \
    X(REMOVALS, "groups removed")                                                                            \
    X(ANEW, "groups led anew after a removal")                                                               \
    X(RENEWED, "mandates that went on under a new epoch")                                                    \
    X(PARTED, "ends of sessions that left groups for later")                                                 \
    X(REOPENED, "sessions opened anew under their id")                                                       \
    X(LATER, "sessions asked for on a connection that was up")                                               \
    X(OVERDUE, "keep-alives that waited for their caller")                                                   \
    X(HUNG, "sessions expired while their caller hung")                                                      \
    X(LOST, "hosts lost with the leader and a program")                                                      \
    X(KNOWN, "sessions of those whose silence the next leader could know")

#define SESSION_SIGHT_ENUM(name, text) SESSION_SIGHT_##name,
enum session_sight { SESSION_SIGHT_MAP(SESSION_SIGHT_ENUM) SESSION_SIGHT_COUNT };
#undef SESSION_SIGHT_ENUM

/* The leader of the cluster is lost, and with it a program (host_loss.c). */
enum loss_kind {
    LOSS_KILLED,    /* the program dies */
    LOSS_LATE,      /* it is stopped, and only a bare majority has the newest marks … */
    LOSS_FORGOTTEN, /* … and has restarted */
    LOSS_UNMARKED,  /* it is stopped, and that leader made no marks … */
    LOSS_MISSED,    /* … and the next one is lost soon */
    LOSS_KINDS,
};

struct host_loss {
    enum loss_kind kind;
    unsigned program;
    unsigned leader; /* when the loss was prepared */
    gavel_ns hidden_until;
    gavel_ns kept_at;
    gavel_ns ttl;
    uint64_t session;
    uint64_t term; /* of the leader that was lost */
};

struct testbed {
    struct cluster *cluster;
    struct session_profile profile;
    struct prng streams[TESTBED_STREAM_COUNT];
    struct service services[SLOTS_MAX];
    struct program programs[PROGRAMS_MAX];
    LIST_HEAD(, connection) connections;
    LIST_HEAD(, connection) old_connections; /* closed at both ends; packets may still refer to them */
    uint64_t connection_count;
    struct packets packets;
    struct packet *openings[PROGRAMS_MAX];           /* a copy of the newest that was forwarded; NULL: none */
    uint64_t opened[PROGRAMS_MAX];                   /* the session that it opens */
    gavel_ns forwarded_newest[SLOTS_MAX][SLOTS_MAX]; /* arrival, for those that keep their order */
    uint64_t sessionless_count;
    int32_t pids;
    struct host_loss loss;
    struct session_referee *referee;
    bool is_healed;
    gavel_ns healed_at;
    uint64_t seen[SESSION_SIGHT_COUNT];
    enum session_invariant broken;
    char what[256];
};

struct testbed *testbed_new(void);
void testbed_free(struct testbed *testbed);
/* One run of this profile, from its beginning to its end or a violation. */
void testbed_play(struct testbed *testbed, const struct session_profile *profile, uint64_t seed,
                  struct trace *trace);
const char *session_sight_name(unsigned sight);

/* Something happens at `at` in this slot (of a node, or of a program). */
void testbed_push(struct testbed *testbed, gavel_ns at, enum testbed_event kind, unsigned slot,
                  uint64_t number);
void testbed_push_packet(struct testbed *testbed, gavel_ns at, enum testbed_event kind, unsigned slot,
                         struct packet *packet);
struct packet *packet_new(struct testbed *testbed, const uint8_t *bytes, size_t size);
void packet_free(struct testbed *testbed, struct packet *packet);

static inline bool testbed_has(const struct testbed *testbed, enum client_fault fault)
{
    return !testbed->is_healed && testbed->profile.faults & CLIENT_FAULT_BIT(fault);
}
static inline bool testbed_chance(struct testbed *testbed, unsigned stream, unsigned per_mille)
{
    return prng_chance(&testbed->streams[stream], per_mille);
}
static inline gavel_ns testbed_between(struct testbed *testbed, unsigned stream, gavel_ns low, gavel_ns high)
{
    return prng_between(&testbed->streams[stream], low, high);
}
static inline unsigned testbed_below(struct testbed *testbed, unsigned stream, unsigned bound)
{
    return (unsigned)prng_below(&testbed->streams[stream], bound);
}
static inline void testbed_see(struct testbed *testbed, enum session_sight sight) { testbed->seen[sight]++; }
static inline gavel_ns testbed_length(struct testbed *testbed, unsigned stream, gavel_ns low, gavel_ns high)
{
    return fault_length(&testbed->streams[stream], low, high);
}

/*
 * After the heal: whether programs can find the cluster. They know the nodes that it began with, and nobody
 * tells them of others; so one of these must have healed, and be a member still.
 */
bool testbed_is_reachable(struct testbed *testbed);
/* The name of a group. */
const char *testbed_group_name(unsigned group);
/* By its name; GROUPS_MAX: none of ours. */
unsigned testbed_group_of(const char *name);

/* service.c */
void service_clear(struct service *service);
void service_started(struct testbed *testbed, struct host *host);
void service_ended(struct testbed *testbed, struct host *host);
void service_stopped(struct testbed *testbed, const struct host *host);
void service_answer(struct testbed *testbed, struct host *host, const struct forwarder_answer *answer);
void service_settle(struct service *service);
void service_take(struct testbed *testbed, const struct event *event);
/* An event for its node. The service is down afterwards if its node has died. */
void service_feed(struct service *service, struct node_event event);
void service_ask(struct service *service, uint64_t client, const Gavel__ClientFrame *frame);
gavel_ns service_clock(const struct service *service);
/* Not while it is stopped or late. */
enum put_off { NOT_PUT_OFF, PUT_OFF, VOID };
enum put_off service_put_off(struct testbed *testbed, const struct event *event, bool is_lost_in_sleep);

/* Instead of the number of a connection: requests without a session. */
#define SESSIONLESS_BIT (UINT64_C(1) << 62)
#define THIEF (UINT64_C(1) << 61) /* a caller that uses the session of another */

/* forwarded.c: requests from node to node, and their answers */
bool forwarded_send(struct service *from, const struct node_forwarded *forwarded);
void forwarded_take(struct testbed *testbed, const struct event *event);
/* If the session of a program has expired, and the program does not know it: a copy of its opening comes. */
void forwarded_reopen(struct testbed *testbed, const struct program *program);

/* deaths.c: what a node tells the leader about processes of its machine */
void deaths_report(struct service *service);

/* sessionless.c: requests without a session, as of the API */
void sessionless_ask(struct service *service);
void sessionless_keep(struct service *service, const Gavel__KeepAlive *of_owner);
void sessionless_answered(struct service *service, uint64_t number, const Gavel__ClientFrame *frame);

/* connection.c */
void connection_dial(struct program *program, size_t which);
void connection_drop(struct program *program); /* by the program */
void connection_send_up(struct program *program, const Gavel__ClientFrame *frame);
void connection_send_down(struct testbed *testbed, struct connection *connection,
                          const Gavel__ClientFrame *frame);
void connection_break(struct testbed *testbed, struct connection *connection);
void connection_node_died(struct testbed *testbed, unsigned slot);
void connection_program_died(struct program *program);
void connection_take(struct testbed *testbed, const struct event *event);
struct connection *connection_find(struct testbed *testbed, uint64_t number);
void connection_clear(struct testbed *testbed);

/* watch.c */
void watch_begin(struct service *service, struct connection *connection, const Gavel__Watch *ask);
void watch_end(struct connection *connection, uint64_t number);
void watch_end_all(struct connection *connection);
void watch_pump(struct service *service);

/* program.c */
gavel_ns program_clock(const struct program *program);
const char *program_boot_id(const struct program *program); /* of the machine that it is on: there are two */
void program_start(struct testbed *testbed, struct program *program);
void program_kill(struct program *program, const char *why);
void program_freeze(struct program *program, gavel_ns length);
void program_resume(struct program *program);
/* Its client goes on, and nobody takes what that tells. */
void program_hang(struct program *program, gavel_ns length);
void program_recover(struct program *program); /* the heal: from now on it hangs for good, or never again */
void program_step(struct program *program, struct client_event *event);
void program_take(struct testbed *testbed, const struct event *event);
bool program_is_frozen(const struct program *program);
void program_clear(struct program *program);

/* pending.c: what programs ask, and the outcome */
/* Whether one more can wait for its outcome: what is refused for want of room was never asked. */
bool pending_has_room(const struct program *program);
uint64_t pending_submit(struct program *program, enum pending_kind kind, unsigned group, const Gavel__Op *op,
                        uint64_t value);
void pending_ask(struct program *program, enum pending_kind kind, unsigned group);
/* After the client was woken: nothing that waits for a session has waited for too long. */
void pending_check(struct program *program);
void pending_result(struct program *program, const struct client_action *action);
void pending_answer(struct program *program, const struct client_action *action);

/* campaign.c: what a program does in a group with its session, and its work */
void campaign_act(struct program *program, unsigned group);
void campaign_elected(struct program *program, unsigned group, uint64_t epoch);
void campaign_change(struct program *program, const Gavel__Change *change);
void campaign_session_lost(struct program *program);
void campaign_deadline(struct program *program);
void campaign_stop_all(struct program *program);
void campaign_result(struct program *program, const struct pending *pending, enum gavel_status status,
                     const Gavel__OpResult *result);
/* As of that revision of the table. */
void campaign_looked(struct program *program, unsigned group, const Gavel__Group *shown, uint64_t revision);
void campaign_write_note(struct program *program, unsigned group);
void campaign_wish(struct program *program, unsigned group);
void campaign_reopen(struct program *program, unsigned group, uint64_t version);
/* By its own clock, which it must check before it acts. */
bool candidacy_may_work(const struct program *program, const struct candidacy *candidacy, unsigned group);
void candidacy_work(struct program *program, unsigned group);
void candidacy_rest(struct program *program, unsigned group);

/* lease.c: likewise with leases */
void lease_act(struct program *program, unsigned group);
void lease_result(struct program *program, const struct pending *pending, enum gavel_status status,
                  const Gavel__OpResult *result);
void lease_looked(struct program *program, unsigned group, const Gavel__Group *shown);
/* The guaranteed time of a lease or a time to live, on the slowest clock. */
gavel_ns lease_sure(const struct program *program, int64_t lease_ms);

/* host_loss.c */
void host_loss_begin(struct testbed *testbed);
void host_loss_take(struct testbed *testbed, uint64_t number);
/* Whether marks of this node do not reach that one. */
bool host_loss_hides(const struct testbed *testbed, unsigned from, unsigned to);

/* client_faults.c */
void client_faults_begin(struct testbed *testbed);
void client_faults_take(struct testbed *testbed, uint64_t fault);
void client_faults_heal(struct testbed *testbed);

#endif
