/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The consensus thread, from the inside. Whatever happens (a message, a timer,
 * a durable write, a client's request) becomes an event of node_step(); what
 * comes out is carried out at once. Nothing here blocks: the disk, the log and
 * the API have threads of their own.
 */
#ifndef DAEMON_NODE_CONSENSUS_H
#define DAEMON_NODE_CONSENSUS_H

#include "core/node/node.h"
#include "daemon/api/api.h"
#include "daemon/clients/clients.h"
#include "daemon/commands/leader_commands.h"
#include "daemon/logger.h"
#include "daemon/node/detector.h"
#include "daemon/node/process_watch.h"
#include "daemon/node/reload.h"
#include "daemon/node/snapshotter.h"
#include "daemon/node/writer.h"
#include "daemon/shared/forwarding.h"
#include "daemon/shared/request.h"
#include "net/seal.h"
#include "net/transport.h"

#define REFUSALS_KEPT RAFT_MEMBERS_MAX
#define WISHES_KEPT 8
#define CLIENT_BOXES_MAX 4

/* What wakes the thread (consensus_events.c, consensus_sessions.c). */
struct loop_events {
    struct event_base *base;
    struct event *timer_event;
    struct event *tick_event;
    struct event *writer_event;
    struct event *request_event;
    struct event *forwarding_event;
    struct event *commands_event;
    struct event *reload_event;
    struct event *builder_event;
    struct event *decoder_event;
    struct event *sessions_event;
    struct event *signal_events[3];
    int timer_fd;
    gavel_ns armed_at;
    gavel_ns sessions_armed_at;
};

/* Requests that the transport did not take, by number. */
struct unsent_requests {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

/* Certificates, and that they expire. */
struct certificate_state {
    struct certificates certificates;
    struct reload reload;
    bool is_expiry_told;
    bool is_expired_told;
};

/* The work of the claim that the node holds (consensus_work.c). */
struct work_state {
    uint64_t epoch;    /* of the claim as one number, for the children; 0: they cannot be fenced */
    gavel_ns deadline; /* as it was last told */
    bool has_stopped;  /* WORK_STOPPED is due */
    bool has_failed;   /* WORK_FAILED is due */
};

/* What peers, the transport and people were last told, so that they are told what is new. */
struct told_state {
    raft_index config_index;  /* of the members that were last told to the transport */
    uint64_t generation;      /* that was last told */
    bool has_members;         /* to the transport: who may send … */
    bool is_committed;        /* … and whether those were committed … */
    raft_index members_index; /* … and of which configuration they were */
    uint64_t founding;        /* that our greeting says is committed */
    bool is_member;           /* by the configuration in force */
    raft_id last_leader;      /* the newest that was known */
    raft_term released_term;  /* an election of this term follows a release, not a death */
    gavel_ns status_at;       /* when the next status goes to the peers */
    bool is_status_due;
    gavel_ns term_refused_at; /* 0 never */
    bool is_awaited_told;     /* that members have not told their data directories */
    uint32_t table_version;   /* that the cluster uses */
    struct {
        raft_id peer;
        gavel_ns at;
    } refusals[REFUSALS_KEPT];
};

/* What stands still without an error, and was told (consensus_hang.c). */
struct hang_state {
    bool is_disk_hung;
    gavel_ns hung_at;    /* since then */
    bool is_commit_hung; /* of what we as leader have to commit */
    gavel_ns uncommitted_at;
};

/* Who belongs, or belonged, to another founding of this cluster (consensus_founding.c). */
struct foreign_nodes {
    struct {
        raft_id peer;
        uint64_t founding; /* 0: it belongs to another no more */
        gavel_ns told_at;
    } items[RAFT_MEMBERS_MAX];
    size_t count;
};

/* Something that was refused, and may be asked for again at once. */
struct wish {
    char text[PEER_NAME_MAX + 32]; /* "" none */
    gavel_ns at;                   /* of the newest try */
    unsigned times;                /* refused since it was told */
};

/* What operators ask (consensus_request.c). */
struct operator_requests {
    struct mail_link *waiting;  /* the node has an order of each */
    struct mail_link *answered; /* and not sent back yet */
    struct wish wishes[WISHES_KEPT];
};

/* What clients ask (consensus_sessions.c). */
struct client_requests {
    struct process_watch process_watch;
    struct mailbox *boxes[CLIENT_BOXES_MAX];
    struct forwarding_stock messages;
};

/* The end of the process. */
struct ending_state {
    bool is_stopping;     /* asked to end */
    gavel_ns leave_until; /* for the candidates at the API to be let go */
    bool is_over;
    bool is_disk_left;   /* the disk thread did not come back */
    bool is_thread_left; /* nor a snapshot thread, in the middle of its work */
    int exit_code;
};

struct consensus {
    const struct daemon_config *config;
    struct node_shared *shared;
    struct shared_memory *memory;
    struct api *api;
    struct clients *clients; /* NULL: none are served but by HTTP */
    struct logger logger;
    struct loop_events loop;

    struct node node;
    struct node_actions actions;
    struct table *table; /* the one in shared->table: changed here, under its lock */
    struct unsent_requests unsent;
    bool has_stepped; /* Raft: others must hear of it */

    struct seal seal;
    struct writer writer;
    enum writer_state disk_state;
    struct transport *transport;
    struct certificate_state tls;
    struct detector detector;
    struct leader_commands *commands; /* NULL: no children */
    struct work_state work;

    struct view draft; /* for people */
    struct told_state told;
    struct hang_state hang;
    struct foreign_nodes foreign;
    struct operator_requests requests;
    struct client_requests sessions;

    /* snapshots (consensus_snapshot.c) */
    struct snapshotter builder;
    struct snapshotter decoder;
    struct {
        enum { BUILDING_NONE, BUILDING_COLLECTS, BUILDING_BUILDS, BUILDING_STAGES, BUILDING_READY } phase;
        struct node_build *build; /* unless its thread has it */
        size_t log_bytes;         /* when it began */
        gavel_ns began_at;
        uint64_t stage;        /* that the disk thread must have done */
        raft_index not_before; /* the last one was not to be used */
    } building;                /* one of our own */
    struct {
        struct snapshotter_job *job; /* NULL: none */
        struct raft_message message;
        bool is_decoded;
        uint64_t stage;
        gavel_ns tell_at; /* not before this is one told that cannot be read */
    } incoming;           /* one of the leader */
    struct table garbage; /* that was replaced, freed bit by bit */
    bool has_garbage;

    struct ending_state ending;
};

/* consensus.c */
void consensus_feed(struct consensus *c, struct raft_event event);
enum gavel_status consensus_ask(struct consensus *c, struct raft_event event); /* the same, with its status */
/* Any event of the node, with all that it leaves to do; `now` and `wall_ms` are filled in. */
enum gavel_status consensus_step(struct consensus *c, struct node_event event);
void consensus_end(struct consensus *c, int exit_code);

/* consensus_events.c */
GAVEL_CHECKED enum gavel_status consensus_begin_events(struct consensus *c, struct gavel_error *error);
void consensus_end_events(struct consensus *c); /* safe however far it came */

/* consensus_act.c */
void consensus_carry_out(struct consensus *c);

/* consensus_snapshot.c */
void consensus_compact(struct consensus *c); /* in each tick */
void consensus_receive_snapshot(struct consensus *c, const struct raft_message *message);
void consensus_look_at_incoming(struct consensus *c); /* the disk thread is done with something */
void consensus_take_snapshots(struct consensus *c);   /* a snapshot thread is */
void consensus_end_snapshots(struct consensus *c);    /* safe however far it came */

/* consensus_work.c: between CLAIM and WORK_STOPPED */
void consensus_begin_work(struct consensus *c, raft_term term, uint64_t lease_epoch);
void consensus_stop_work(struct consensus *c, enum raft_stop reason);
void consensus_extend_work(struct consensus *c);
void consensus_work_stopped(struct consensus *c);

/* consensus_news.c */
void consensus_tell(struct consensus *c, const struct raft_action *action);
void consensus_note(struct consensus *c, enum journal_event event, raft_id node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for an entry that has more to say; id and times are filled in. */
void consensus_put(struct consensus *c, struct journal_entry *entry);

/* consensus_hang.c */
void consensus_check_hangs(struct consensus *c);

/* consensus_bind.c: told, as leader, of members that keep a cluster of 0.6.0 from being bound */
#define CONSENSUS_AWAITED_TEXT                                                                               \
    "it has not told its data directory since the upgrade from 0.6.0, so no member is bound to one yet and " \
    "a lost one is not noticed: start it with 0.7.0, or gavel member remove it; after 10 minutes of "        \
    "silence the others are bound without it"
void consensus_check_bindings(struct consensus *c);

/* Of a node whose program was replaced by an older one. */
#define CONSENSUS_TOO_OLD_TEXT                                                                               \
    "this gaveld is too old: since all nodes of the cluster were upgraded, its data follow rules that only " \
    "newer releases know; install the release of the other nodes and start it on the same directory"

/* consensus_founding.c: nodes of another founding of this cluster */
#define CONSENSUS_FOUNDING_TEXT                                                                              \
    "it belongs to another founding of this cluster: one of the two was bootstrapped again on empty data "   \
    "directories, and neither follows the other; see OPERATIONS, founded twice"
bool consensus_is_other_founding(const struct consensus *c, uint64_t founding);
bool consensus_is_of_other_founding(const struct consensus *c, raft_id peer);
void consensus_meet_founding(struct consensus *c, raft_id peer,
                             uint64_t founding); /* a committed one, or 0 */
void consensus_forget_founding(struct consensus *c, raft_id peer);
void consensus_tell_founding(struct consensus *c); /* in our greeting: it is committed */

/* consensus_view.c */
void consensus_publish(struct consensus *c);
void consensus_refresh_members(struct consensus *c);

/* node_disk.c: ERR_NOT_FOUND if the directory is not the one that this guard's node had */
GAVEL_CHECKED enum gavel_status node_open_disk(const struct daemon_config *config,
                                               const struct shared_memory *memory, struct disk **ret_disk,
                                               struct gavel_error *error);

/* consensus_peers.c */
extern const struct transport_events consensus_transport_events;
void consensus_make_status(const struct consensus *c, struct peer_status *ret_status);
void consensus_send_status(struct consensus *c);

/* consensus_transport.c */
void consensus_make_hello(struct consensus *c, struct peer_hello *ret_hello);
void consensus_set_peers(struct consensus *c);
void consensus_tell_members(struct consensus *c);     /* to the transport, if they are others */
void consensus_members_in_force(struct consensus *c); /* others than before, or another generation */
void consensus_publish_peers(struct consensus *c);    /* to the guard */
void consensus_check_certificate(struct consensus *c);

/* consensus_request.c */
void consensus_take_requests(struct consensus *c);
void consensus_ordered(struct consensus *c, uint64_t id, enum gavel_status status, const char *text);
void consensus_send_answers(struct consensus *c);
void consensus_answer_all(struct consensus *c); /* that this node is stopping */

/* consensus_sessions.c */
GAVEL_CHECKED enum gavel_status consensus_begin_sessions(struct consensus *c, struct gavel_error *error);
void consensus_end_sessions(struct consensus *c); /* safe however far it came */
void consensus_take_forwardings(struct consensus *c);
void consensus_forwarding(struct consensus *c, raft_id peer, enum peer_frame_kind kind,
                          const struct peer_forwarding *forwarding);
void consensus_forward(struct consensus *c, const struct node_forwarded *forwarded);
void consensus_answer_client(struct consensus *c, struct forwarder_answer *answer);
void consensus_tick_sessions(struct consensus *c);
void consensus_arm_sessions(struct consensus *c);

#endif
