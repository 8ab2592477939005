/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of a client, for its own files.
 *
 *     client.c          a step: one event to its part, then everything that can be sent is sent
 *     client_action.c   what a step gives out
 *     client_link.c     which address, how long to wait, greeting, and when a connection counts as dead
 *     client_session.c  opening, keep-alives, the deadline, loss and end of the session
 *     client_request.c  submits, gathered into requests that are applied once
 *     client_ask.c      questions
 *     client_watch.c    watches that outlive connections
 *
 * Numbers. Tags of questions and the numbers of watches on the wire come from
 * one counter that never repeats. An answer to a number that was not given out
 * on this connection is a lie; one to a number that nobody waits for any more
 * is only late.
 */
#ifndef CORE_SESSION_CLIENT_INTERNAL_H
#define CORE_SESSION_CLIENT_INTERNAL_H

#include "core/session/client.h"
#include "core/table/history.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

#define CLIENT_DRIFT_PPM_MAX 100000

/* What waits is bounded; more is refused. */
#define CLIENT_WAITING_MAX 65536u
#define CLIENT_WAITING_BYTES_MAX (64u << 20)
#define CLIENT_WATCHES_MAX 65536u
/* Submits are gathered up to this. */
#define CLIENT_REQUEST_BYTES (512u * 1024)
#define CLIENT_TROUBLE_BYTES 256

/* Something that is asked again until it is answered. */
struct client_try {
    uint64_t tag;      /* under way; 0: not */
    gavel_ns sent_at;  /* the newest time */
    gavel_ns first_at; /* on this connection; 0: not yet */
    gavel_ns retry_at;
    unsigned refusals; /* in a row */
};

struct client_submit {
    TAILQ_ENTRY(client_submit) entry;
    uint64_t token;
    Gavel__Op **ops;
    size_t count;
    size_t bytes;
    gavel_ns give_up_at;
    bool goes_alone; /* a node will refuse it */
    bool is_close;   /* our own CloseSession */
    bool campaigns;  /* nothing else */
    bool was_sent;   /* at least once, with an opening perhaps; the cluster may have done it */
};
TAILQ_HEAD(client_submits, client_submit);

struct client_ask {
    TAILQ_ENTRY(client_ask) entry;
    uint64_t token;
    Gavel__ClientFrame *frame; /* owned */
    gavel_ns sent_at;
    gavel_ns first_at; /* on this connection; 0: not yet */
    gavel_ns give_up_at;
};
TAILQ_HEAD(client_asks, client_ask);

struct client_watch {
    RB_ENTRY(client_watch) by_number;
    RB_ENTRY(client_watch) by_wire;  /* while it runs */
    TAILQ_ENTRY(client_watch) entry; /* while it does not */
    uint64_t number;                 /* the caller's */
    uint64_t wire;                   /* 0: does not run on this connection */
    char *group;
    char *prefix;
    bool is_of_session;
    struct table_cursor cursor; /* what the caller knows; revision 0: from now on */
    struct table_cursor from;   /* where the node was asked to begin */
    struct table_cursor told;   /* the newest change on this connection; revision 0: none */
    bool has_begun;             /* on this connection */
    bool has_run;               /* ever */
    gavel_ns retry_at;
    unsigned refusals;
};
TAILQ_HEAD(client_idle_watches, client_watch);
RB_HEAD(client_watches, client_watch);
RB_HEAD(client_wires, client_watch);

/* A frame on its way out, with all that it may consist of. */
struct client_outgoing {
    STAILQ_ENTRY(client_outgoing) entry;
    Gavel__ClientFrame frame;
    union {
        Gavel__ClientHello hello;
        Gavel__Request request;
        Gavel__KeepAlive keep_alive;
        Gavel__Watch watch;
        Gavel__Unwatch unwatch;
    };
    uint64_t session;
    Gavel__Op **ops; /* the array is owned, what it points to is not */
    Gavel__Op op;
    Gavel__OpenSession open;
    Gavel__Process process;
};
STAILQ_HEAD(client_outgoing_list, client_outgoing);

struct client {
    struct client_settings settings;
    char *name;
    char *program;
    struct prng prng;
    gavel_ns now; /* of the step */
    enum client_state state;
    uint64_t numbers; /* the newest that was given out */
    char trouble[CLIENT_TROUBLE_BYTES];

    struct {
        uint8_t order[CLIENT_ADDRESSES_MAX];
        size_t at;           /* in it */
        unsigned failures;   /* in a row */
        bool is_dialling;    /* CONNECT was given out, and WELCOME has not come */
        size_t refusals;     /* in a row, by words of a node */
        bool has_greeted;    /* a node, at any time */
        bool has_answered;   /* something of use came over this connection */
        gavel_ns retry_at;   /* while there is none */
        gavel_ns welcome_by; /* while is_dialling */
        gavel_ns up_at;
        uint64_t first; /* numbers of this connection are higher */
        char *cluster;  /* of the first node that answered; NULL */
        int drift_ppm;  /* the most that a node has told, and no less than our own */
    } link;

    struct {
        uint64_t id;
        uint64_t last_request; /* id of the newest */
        uint64_t revision;     /* that has opened it; 0: not told */
        uint64_t number;       /* for the caller: the same, or one of our own; 0: it is not open */
        uint64_t own;          /* so many have been made */
        bool is_open;
        bool is_closing;
        gavel_ns close_by;
        gavel_ns deadline;
        struct client_try open;
        uint64_t open_request; /* id; 0: none yet */
        size_t open_ops;       /* campaigns that go with it; they are in request.sent */
        /* Campaigns wait for it: some were refused with it by a leader of before 0.7.0, or given up. */
        bool opens_alone;
        gavel_ns opened_from; /* when it was first asked for; 0: never */
        struct client_try keep;
        gavel_ns keep_due;
        bool is_paced;
        bool is_untaken; /* the caller has not taken the deadline yet */
    } session;

    struct {
        struct client_submits waiting;
        size_t waiting_count;
        size_t waiting_bytes;
        struct client_submits sent; /* the request that is under way; empty: none */
        size_t ops;                 /* of it */
        uint64_t id;
        struct client_try attempt;
    } request;

    struct {
        struct client_asks waiting;
        struct client_asks sent; /* in the order of sending */
        size_t count;
        gavel_ns retry_at;
        unsigned refusals;
    } asks;

    struct {
        struct client_watches all;
        struct client_wires running;
        struct client_idle_watches idle;
        size_t count;
    } watches;

    gavel_ns give_up_at; /* no submit or ask gives up before it */

    struct client_actions actions;
    struct client_outgoing_list outgoing; /* of this step */
    struct client_submits old_submits;    /* done; freed by the next step, for a frame may borrow from them */
    struct client_asks old_asks;
};

/* client.c */
char *client_text_copy(const char *text); /* NULL without memory */

/* client_action.c */
/* Makes room for the actions of a step with `more` further submits, asks, watches or changes. False: no
 * memory. */
bool client_reserve(struct client *client, size_t more);
struct client_action *client_act(struct client *client, enum client_action_kind kind);
/* NULL without memory. It belongs to the step. */
struct client_outgoing *client_outgoing_new(struct client *client);
void client_send(struct client *client, Gavel__ClientFrame *frame);
void client_forget_step(struct client *client);
void client_tell_result(struct client *client, uint64_t token, enum gavel_status status, const char *message);
void client_tell_answer(struct client *client, uint64_t token, enum gavel_status status, const char *message);

/* client_link.c */
/* For people: what a node has said is cut, and made harmless. */
void client_trouble_write(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void client_link_init(struct client *client);
bool client_is_welcome(const struct client *client); /* greeted: it may be sent to */
void client_link_connected(struct client *client);
/* The connection is over, by itself or (is_ours) because we end it. */
void client_link_lost(struct client *client, bool is_ours, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void client_link_take(struct client *client, const Gavel__ClientFrame *frame);
void client_link_timer(struct client *client);
void client_link_pump(struct client *client);
gavel_ns client_link_wake(const struct client *client);
void client_link_close(struct client *client);
uint64_t client_number(struct client *client);
bool client_was_given(const struct client *client, uint64_t number);
gavel_ns client_back_off(const struct client *client, unsigned times); /* on one connection */
void client_become(struct client *client, enum client_state state);
/* Ends a connection whose node does not keep to the protocol. */
void client_hostile(struct client *client, const char *what);

void client_try_sent(struct client *client, struct client_try *attempt, uint64_t tag);
/* It was refused for the moment. */
void client_try_refused(struct client *client, struct client_try *attempt);
bool client_try_is_due(const struct client *client, const struct client_try *attempt);
/* A status that says nothing of what was asked: another node, or the same one later, may do better. */
bool client_is_passing(enum gavel_status status);
/* Whether what was first asked then has been refused for too long on this connection. */
bool client_is_fruitless(const struct client *client, gavel_ns first_at);
gavel_ns client_patience(const struct client *client); /* for an answer to a request or a question */

/* client_session.c */
bool client_session_is_valid(uint32_t ttl_ms, uint64_t id);
gavel_ns client_silence_of(uint32_t ttl_ms); /* by default */
void client_session_begin(struct client *client, const struct client_open *open);
void client_session_taken(struct client *client);
void client_session_welcome(struct client *client);
void client_session_unlinked(struct client *client);
/* Whether the reply was that of the opening. */
bool client_session_opened(struct client *client, const Gavel__Reply *reply);
void client_session_kept(struct client *client, const Gavel__Kept *kept);
void client_session_lost(struct client *client);
void client_session_close(struct client *client);
/* The campaigns that went with the opening wait again, and it is asked for without them, under a higher id:
 * should the request before come late, it is refused as the older one. */
void client_session_open_alone(struct client *client);
/* A watch tells that a session with our id has ended in this revision. */
void client_session_ended(struct client *client, uint64_t revision);
void client_session_timer(struct client *client);
void client_session_pump(struct client *client);
gavel_ns client_session_wake(const struct client *client);
void client_finish(struct client *client); /* CLOSED */

/* client_request.c */
/* Campaigns that wait go with the opening of the session: returns how many. They are sent and shared out, put
 * back to wait, or given up. */
size_t client_request_join_opening(struct client *client);
void client_request_add(struct client *client, Gavel__Op **ops); /* to a frame that is sent */
void client_request_opened(struct client *client, const Gavel__Reply *reply);
void client_request_put_back(struct client *client);
void client_request_end_sent(struct client *client, enum gavel_status status, const char *message);
void client_request_submit(struct client *client, const struct client_event *event);
bool client_request_close(struct client *client); /* puts CloseSession at the end; false: no memory */
void client_request_reply(struct client *client, const Gavel__Reply *reply);
void client_request_unlinked(struct client *client);
void client_request_end_all(struct client *client, enum gavel_status status, const char *message);
void client_request_give_up(struct client *client);
void client_request_timer(struct client *client);
void client_request_pump(struct client *client);
gavel_ns client_request_wake(const struct client *client);
void client_submits_free(struct client_submits *submits);

/* client_ask.c */
void client_ask_begin(struct client *client, const struct client_event *event);
void client_ask_answer(struct client *client, const Gavel__Answer *answer);
void client_ask_unlinked(struct client *client);
void client_ask_patience(struct client *client); /* another one: what is under way has all of it */
void client_ask_end_all(struct client *client, enum gavel_status status, const char *message);
void client_ask_give_up(struct client *client);
void client_ask_timer(struct client *client);
void client_ask_pump(struct client *client);
gavel_ns client_ask_wake(const struct client *client);
void client_asks_free(struct client_asks *asks);

/* client_watch.c */
void client_watch_begin(struct client *client, const struct client_event *event);
void client_watch_end(struct client *client, uint64_t number);
void client_watch_changes(struct client *client, const Gavel__Changes *changes);
void client_watch_ended(struct client *client, const Gavel__WatchEnded *ended);
void client_watch_unlinked(struct client *client);
void client_watch_session(struct client *client); /* another session: those of the session begin again */
void client_watch_pump(struct client *client);
gavel_ns client_watch_wake(const struct client *client);
void client_watch_free_all(struct client *client);

#endif
