/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client of the cluster: one session, its keep-alives, its requests and its
 * watches, over one connection at a time to any of the nodes. Pure: one event
 * in, with the time in it, actions out.
 *
 *                       hello         welcome           OpenSession answered
 *     [AWAY] ─ connect ─► [GREETING] ───────► [OPENING] ────────────────► [UP]
 *        ▲                                                                 │ connection lost, refused, silent
 *        └──────────── back-off, the next address ◄────────────────────────┘  (the session lives on)
 *
 * The deadline. Until it, the session is known to be open: the send time of the
 * newest keep-alive (or opening) that was answered, plus the time to live less
 * the drift on both sides. Mandates of this session hold no longer than it. A
 * client that passes it without news must have stopped its work: the caller
 * compares the deadline with the clock itself, whenever it acts.
 *
 * Requests. One at a time is under way; more wait, and those that wait when one
 * is answered go together (up to TABLE_OPS_MAX). Without an answer it is sent
 * again on the next connection with the same id; it is applied once. If the
 * session is gone meanwhile the outcome is told as ERR_SESSION_GONE: unknown.
 * Campaigns that wait for the session go with its opening, in one request.
 *
 * Without a session (ttl_ms 0) a client only asks and watches, until OPEN asks for one.
 *
 * Paced keep-alives. A client that runs in a thread of its own would keep the session of a process that does
 * nothing any more. If it is paced, it sends the next keep-alive only after the caller has TAKEN the deadline
 * that the one before, or the opening, gave; on another connection, too. One that gave none leaves nothing to
 * take: it goes on.
 */
#ifndef CORE_SESSION_CLIENT_H
#define CORE_SESSION_CLIENT_H

#include "base/prng.h"
#include "base/time.h"
#include "core/table/table.h"
#include "wire/client.pb-c.h"

#define CLIENT_ADDRESSES_MAX 16
#define CLIENT_SECRET_BYTES 16

struct client_settings {
    uint32_t ttl_ms;          /* 0: no session; else 2000 is a good choice */
    int drift_ppm;            /* 1000; or what the nodes tell, if that is more */
    gavel_ns connect_timeout; /* 0: 1 s, until WELCOME */
    /* An answer that takes longer means that the connection is dead; 0: ttl / 2, but 500 ms to 5 s. */
    gavel_ns silence;
    gavel_ns retry_min; /* 0: 5 ms */
    gavel_ns retry_max; /* 0: 500 ms */
    size_t address_count;
    size_t near_count; /* how many of the first are tried before the others: unix sockets */
    uint64_t session;  /* the id for it: random, not 0 */
    /* Random: who does not know it may not use the session; zeroes: none. */
    uint8_t secret[CLIENT_SECRET_BYTES];
    uint64_t seed;
    const char *name;             /* of the program; copied */
    const char *program;          /* "libgavel 0.5.0" */
    struct table_process process; /* pid 0: not told */
};

/* A session for a client that was made without; see struct client_settings. */
struct client_open {
    uint32_t ttl_ms;  /* not 0 */
    gavel_ns silence; /* 0: as the default there, by this time to live */
    uint64_t session;
    struct table_process process;
    bool is_paced;
};

enum client_state { CLIENT_AWAY, CLIENT_GREETING, CLIENT_OPENING, CLIENT_UP, CLIENT_CLOSED };

enum client_event_kind {
    CLIENT_TIMER,
    CLIENT_CONNECTED, /* the connection that CONNECT asked for is there */
    CLIENT_LOST,      /* it could not be made, or is gone */
    CLIENT_RECEIVED,  /* a frame */
    CLIENT_SUBMIT,    /* ops, to be answered by RESULT with `token`; copied */
    CLIENT_ASK,       /* answered by ANSWER with `token`; copied */
    CLIENT_WATCH,     /* begins; `watch` is a number of the caller's; kept over reconnects */
    CLIENT_UNWATCH,
    /* A session from now on; once, and only if the client was made without. What is under way goes on. */
    CLIENT_OPEN,
    CLIENT_TAKEN, /* the caller has the newest deadline that was told */
    CLIENT_CLOSE, /* ends the session: CLOSED comes when the cluster has it, or the deadline has passed */
};

struct client_event {
    enum client_event_kind kind;
    gavel_ns now;
    union {
        const Gavel__ClientFrame *frame; /* borrowed until the actions of this step are carried out */
        const char *reason;              /* of LOST, for people; copied. NULL: none */
        struct {
            uint64_t token;
            const Gavel__Op *const *ops;
            size_t count;
            /* Not sent for the first time after this instant, ERR_TIMEOUT. NEVER: no limit. Of campaigns that
             * went with an opening, and had no answer by then, the outcome is unknown, also if they wait to
             * be sent again: the message says so, and a caller that does not ask again withdraws them. */
            gavel_ns give_up_at;
        } submit;
        struct {
            uint64_t token;
            const Gavel__Ask *ask;
            gavel_ns give_up_at; /* ERR_TIMEOUT */
        } ask;
        struct {
            uint64_t watch; /* not 0 */
            const char *group;
            const char *prefix;
            bool is_of_session;
            uint64_t after_revision; /* 0: from now on */
        } watch;
        struct client_open open; /* must be valid as settings are */
    };
};

enum client_action_kind {
    CLIENT_DO_CONNECT, /* to addresses[which]; drops the one there is */
    CLIENT_DO_DISCONNECT,
    CLIENT_DO_SEND,     /* the frame, now */
    CLIENT_DO_RESULT,   /* of a submit: status (OK: results has count entries), or a failure; message */
    CLIENT_DO_ANSWER,   /* of an ask: answer is NULL if status is not OK */
    CLIENT_DO_CHANGE,   /* one change of a watch */
    CLIENT_DO_WATCHING, /* a watch has begun at `revision` … */
    /* … or changes may have been missed before `revision`: look at the whole. status and message if the
     * node would not go on for another reason; it is asked again. */
    CLIENT_DO_GAP,
    CLIENT_DO_DEADLINE, /* it is `at` now */
    /* Expired or closed at the cluster: all mandates of it are over; a new one, with another id, is opened
     * by itself. */
    CLIENT_DO_SESSION_LOST,
    CLIENT_DO_CLOSED,
};

struct client_action {
    enum client_action_kind kind;
    size_t which;
    Gavel__ClientFrame *frame; /* SEND; borrowed until the next step */
    uint64_t token;            /* RESULT, ANSWER; WATCHING, CHANGE, GAP: the watch */
    enum gavel_status status;
    const char *message; /* "" or a sentence; lives as long as the frame of the event */
    const Gavel__OpResult *const *results;
    size_t count;
    const Gavel__Answer *answer;
    const Gavel__Change *change;
    uint64_t revision;
    gavel_ns at;
    uint64_t number; /* DEADLINE, SESSION_LOST: the session that it is about, as in client_session_number() */
};

struct client_actions {
    size_t count;
    size_t capacity;
    struct client_action *items;
};

struct client;

/* ERR_INVALID (settings), ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status client_new(const struct client_settings *settings, gavel_ns now,
                                           struct client **ret_client);
void client_free(struct client *client); /* safe on NULL */

/*
 * Feeds one event; the actions are owned by the client and live until the next step. They are carried out in
 * order. After CONNECT or DISCONNECT nothing of the connection before may be fed any more. What a step tells
 * of a submit, an ask or a watch borrows from the frame of the event or is static: a caller that keeps the
 * frame may copy the actions and feed the next event before it has told them.
 */
const struct client_actions *client_step(struct client *client, const struct client_event *event);

/* Before the first connection is made; see struct client_settings. */
void client_set_secret(struct client *client, const uint8_t secret[CLIENT_SECRET_BYTES]);
const uint8_t *client_secret(const struct client *client); /* CLIENT_SECRET_BYTES of them */

gavel_ns client_wake_at(const struct client *client);
enum client_state client_state(const struct client *client);
uint64_t client_session(const struct client *client);
/*
 * Which session is open, 0: none. Another number is another session, also if the id is the same, and what the
 * former one had is over: it never repeats. It is the create_revision; if no node has told that, one of our
 * own.
 */
uint64_t client_session_number(const struct client *client);
/*
 * Whether a change, or an answer from the table, of that revision means our session by this id. One that is
 * older than our session is of a former one: an opening that had no answer for long may have been carried
 * out, and the session have expired, before it was opened by the copy that was answered.
 */
bool client_is_own(const struct client *client, uint64_t session, uint64_t revision);
/* From the send of a keep-alive to the deadline that its answer gives; it shrinks if a node tells of clocks
 * that differ more. 0: it is to have no session. */
gavel_ns client_session_lasts(const struct client *client);
gavel_ns client_deadline(const struct client *client);   /* 0: there is no open session */
const char *client_trouble(const struct client *client); /* why it is not up, for people; "" */
/* Every node that there is has refused us, one after the other; the trouble is what the last of them said. It
 * goes on trying. */
bool client_is_refused(const struct client *client);

#endif
