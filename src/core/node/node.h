/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node of the cluster, whole and pure: Raft, the table that its log builds,
 * the forwarder for the clients of this node, the front end that answers them
 * while this node leads, what operators order (orders.h) and the members as
 * their records say (members.h), composed into one step function.
 *
 *     a message, time, a durable write   a client's frame   a peer's forwarded request   deaths   an order
 *                          │                    │                       │                  │          │
 *                          └────────────────────┴──── node_step() ──────┴──────────────────┴──────────┘
 *                                                          │
 *     PERSIST   SEND   FORWARD   ANSWER   APPLIED   WORK_START   WORK_STOP   WATCH   ORDERED   TELL
 *
 * gaveld, the simulators and the trace tests run this function. Their part is
 * to move bytes between it and sockets, disks and clocks.
 *
 * One event can leave more to do: committed entries for the table, answers of
 * our own front end to our own forwarder, commands for the log. That waits in
 * the node, and each step with the event NODE_NEXT does one piece of it. The
 * caller feeds NODE_NEXT while node_has_next(), before any other event but
 * RAFT_WORK_STOPPED, which need not wait once node_has_todo() is over:
 *
 *     node_step(node, event, actions);             carry out the actions
 *     while (node_has_next(node))
 *         node_step(node, &next, actions);         carry out the actions
 *
 * So a step is at most one step of Raft, or one entry for the table. What the
 * actions borrow stays valid until the next step, a program whose threads read
 * the table locks only the steps that change it (node_changes_table()), and a
 * simulator can look, and end the node, between any two pieces.
 *
 * Messages that must not leave before a write is durable are held inside, and
 * come out as SEND after the write was reported durable. Actions are in the
 * order in which they must be carried out.
 *
 * Ownership: the node borrows the table, which others may read; everything else
 * it owns. Events are borrowed for the call, actions until the next step. The
 * caller may take the frame of an ANSWER: it sets the pointer to NULL.
 */
#ifndef CORE_NODE_NODE_H
#define CORE_NODE_NODE_H

#include "core/node/members.h"
#include "core/node/orders.h"
#include "core/raft/raft.h"
#include "core/session/forwarder.h"
#include "core/session/frontend.h"

/* Messages that wait for the disk. One more, and the oldest is lost: Raft repeats itself. */
#define NODE_HELD_MAX 1024
/* Between nodes: a forwarded request without an answer, which reports deaths. Requests begin with 1. */
#define NODE_NUMBER_OF_DEATHS 0

enum node_event_kind {
    NODE_NEXT,        /* does what an earlier event has left to do; only if node_has_next() */
    NODE_RAFT,        /* anything that Raft takes: a message, time, a durable write */
    NODE_CLIENT,      /* a client of this node asks: a Request, a KeepAlive or an Ask */
    NODE_CLIENT_GONE, /* its answers are for nobody */
    NODE_FORWARDED,   /* a peer forwards what a client of its own asks, or answers what we forwarded */
    NODE_UNSENT,      /* requests of ours (FORWARD), by their numbers, could not be sent */
    NODE_DEATHS,      /* processes of this machine are dead: what that ends, as operations */
    NODE_ORDER,       /* an operator orders something; answered by ORDERED, exactly once */
    NODE_GREETED,     /* a node says its name and its addresses */
    NODE_SAID,        /* a peer says whether it works */
    NODE_WORK_FAILED, /* the work of this claim cannot go on: the node steps down */
    NODE_STOP,        /* the node is to end: it hands over; see node_has_left() */
    NODE_TICK,        /* at least every 100 ms, and at node_tick_at() */
};

struct node_forwarded {
    raft_id peer; /* from whom, or to whom */
    bool is_answer;
    bool is_silence; /* neither a request nor an answer: a message of wire/silence.h */
    uint64_t number;
    uint64_t incarnation; /* of the node that asks; of silence: of who says it */
    const uint8_t *bytes; /* a packed frame, without a length before it */
    size_t size;
};

struct node_event {
    enum node_event_kind kind;
    gavel_ns now;    /* never runs backwards */
    int64_t wall_ms; /* for people to read */
    /*
     * With a snapshot (RAFT_RECEIVE): the table that it stands for, decoded where it holds nobody up. If Raft
     * takes the snapshot this becomes our table, and has our old one instead once node_has_todo() is over;
     * whatever it has is the caller's. NULL: the snapshot is decoded here.
     */
    struct table *decoded;
    union {
        struct raft_event raft; /* `now` is filled in */
        struct {
            uint64_t id; /* comes back with the answer */
            const Gavel__ClientFrame *frame;
            /* Instead of the frame: it is packed already, and the bytes are taken. NULL: it is not. */
            struct forwarder_question *question;
            bool has_more; /* others ask, too, at once: what they ask for is proposed together */
        } client;
        struct node_forwarded forwarded;
        struct {
            const uint64_t *numbers;
            size_t count;
        } unsent;
        struct {
            const Gavel__Op *const *ops; /* see frontend_report_deaths() */
            size_t count;
        } deaths;
        const struct node_order *order;
        const struct node_described *greeting;
        struct node_said said;
        struct {
            raft_term term;
            uint64_t lease_epoch;
        } failed;
        struct {
            gavel_ns timeout; /* after this it ends, whatever it still leads */
        } stop;
        struct {
            bool is_stalled; /* clients could not be heard for a while: their thread did not run */
        } tick;
    };
};

enum node_action_kind {
    NODE_PERSIST,    /* write it; entries and snapshot are in node->raft */
    NODE_SEND,       /* this message may leave now */
    NODE_FORWARD,    /* to a peer; a request that cannot be sent comes back as UNSENT */
    NODE_ANSWER,     /* to a client of this node */
    NODE_APPLIED,    /* the table has this entry now */
    NODE_RESTORED,   /* the table is that of the snapshot now */
    NODE_WORK_START, /* work may begin, until raft_deadline() */
    NODE_WORK_STOP,  /* it must stop; answer with RAFT_WORK_STOPPED */
    NODE_WATCH,      /* tell of the death of this process, if it is of this machine */
    NODE_ORDERED,    /* the answer to an order */
    NODE_ADDRESSES,  /* something new is known of names and addresses: node->members.addresses */
    NODE_TELL,       /* something people want to know */
    /* The node cannot go on: ERR_NO_MEMORY, ERR_STORE_DAMAGED for a snapshot, or ERR_STORE_UNSUPPORTED: the
     * cluster uses rules of the table that we do not know. */
    NODE_FAIL,
};

struct node_action {
    enum node_action_kind kind;
    union {
        const struct raft_persist *persist;
        const struct raft_message *message;
        struct node_forwarded forward;
        struct forwarder_answer *answer;
        struct {
            raft_index index;
            const struct raft_entry *entry;
            enum gavel_status status;           /* of table_apply_ops(), for an entry of data */
            const struct table_result *results; /* likewise */
            size_t count;
        } applied;
        struct {
            raft_term term;
            uint64_t lease_epoch;
        } work;
        enum raft_stop stop_reason;
        struct table_process watch;
        struct {
            uint64_t id;
            /* OK, ERR_NO_LEADER, ERR_NOT_LEADER, ERR_LEADER_TRANSFER_FAILED, ERR_STATE, ERR_INVALID,
             * ERR_NOT_FOUND, ERR_TIMEOUT, ERR_NO_MEMORY */
            enum gavel_status status;
            const char *text; /* one sentence: what happened, why, what to do next */
        } ordered;
        const struct raft_action *tell;
        enum gavel_status failure;
    };
};

/* A message that waits for a write, or has waited. It has no pointers (raft.h). */
struct node_held {
    STAILQ_ENTRY(node_held) next;
    uint64_t after;
    struct raft_message message;
};
STAILQ_HEAD(node_helds, node_held);

struct node_actions {
    size_t count;
    struct node_action *items;
    /* What Raft said to the event, or forwarder_take() to a client's frame; OK for an order taken on. */
    enum gavel_status status;

    /* For those who watch Raft: the event that this step gave it, and what it said. */
    bool has_stepped;
    struct raft_event event;
    struct raft_actions raft;

    /* what the actions borrow */
    size_t capacity;
    struct node_helds released;
    struct frontend_replies replies;
    struct forwarder_answers answers;
    struct table_outcome outcome;
    struct node_pendings ordered;
    char refusal[NODE_ORDER_TEXT_BYTES];
    struct raft_config change;
    uint8_t *deaths;
};

/* ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status node_actions_init(struct node_actions *actions);
void node_actions_done(struct node_actions *actions); /* safe on a zeroed struct */

/* What a step of Raft has left to do. */
struct node_todo {
    enum raft_action_kind kind; /* APPLY, RESTORE, CLAIM or STOP_WORK */
    union {
        struct {
            raft_index next;
            raft_index last;
        } apply;
        struct {
            raft_term term;
            uint64_t lease_epoch;
        } claim;
        enum raft_stop stop_reason;
    };
};
#define NODE_TODO_MAX 16

/* The newest claim of the work. */
struct node_claim {
    bool is_held; /* between WORK_START and WORK_STOP */
    raft_term term;
    uint64_t lease_epoch;
};

struct node_leaving {
    bool must_step_down; /* the work cannot go on */
    bool is_stopping;
    gavel_ns stop_at; /* at the latest */
    bool is_due;
};

struct node {
    struct raft raft;
    struct table *table; /* borrowed */
    struct forwarder forwarder;
    struct frontend frontend;
    struct silence silence;
    struct marks marks;
    /* The caller's to set: it leads as if some voter did not know marks. */
    bool never_marks;
    struct node_helds held; /* in their order */
    size_t held_count;
    uint64_t durable; /* the newest write that is known to be */
    struct node_todo todo[NODE_TODO_MAX];
    size_t todo_first;
    size_t todo_count;
    struct table *decoded;               /* of the event before, see there */
    struct frontend_replies own_replies; /* of our front end, for our forwarder */
    struct node_members members;
    struct node_orders orders;
    struct node_claim claim;
    struct node_leaving leaving;
    bool is_gathering;            /* more clients ask at once: nothing is proposed yet */
    unsigned turns;               /* of NODE_NEXT since the last event, but for entries */
    struct node_actions *actions; /* only during a step */
};

/*
 * Begins, or begins again after a crash: raft_init(), and the table is that of the snapshot. The table must
 * be empty, and outlives the node. On failure the node need not be done.
 */
GAVEL_CHECKED enum gavel_status node_init(struct node *node, struct table *table,
                                          const struct raft_settings *settings,
                                          const struct raft_restore *restore, gavel_ns now,
                                          struct gavel_error *error);
void node_done(struct node *node); /* safe on a zeroed struct; leaves the table alone */

/*
 * Names for the node: those of the configuration file, with ourselves. Before the first step, and once.
 * Without it there are neither orders about members nor records of them, and all nodes are taken for such
 * that know what we do.
 */
void node_introduce(struct node *node, node_id_of_name *id_of_name, const struct node_described *nodes,
                    size_t count);

/*
 * Whether we know the rules of the table that the cluster uses, as far as our data tell. A node that does not
 * must not be started: its table would become another one. After node_introduce(), with whose version it
 * compares.
 */
bool node_version_is_known(const struct node *node);

/* Feeds one event; actions is what the caller must do, in order. */
void node_step(struct node *node, const struct node_event *event, struct node_actions *actions);

bool node_has_next(const struct node *node);
/* Whether of that something is left that Raft has decided. */
static inline bool node_has_todo(const struct node *node) { return node->todo_count > 0; }
/* Whether the next NODE_NEXT changes the table; no other event does. */
bool node_changes_table(const struct node *node);

/* When a TIMER for Raft is due, and when a TICK; NEVER if nothing is. */
static inline gavel_ns node_timer_at(const struct node *node) { return raft_wake_at(&node->raft); }
gavel_ns node_tick_at(const struct node *node);

/* After NODE_STOP: whether nothing is left to hand over or to stop, or the time is up. */
bool node_has_left(const struct node *node, gavel_ns now);

#endif
