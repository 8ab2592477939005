/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the files of the clients thread share. Everything here belongs to that
 * thread alone, except `orders` and the counts.
 *
 *     listener ──► connection ──► hello ──► frames ──┬─► look-up ──► the table, under its lock
 *                                                    ├─► forwarding ──► the consensus thread ──► `replies`
 *                                                    └─► watch ──► interest in a topic
 *     bell of the table ──► pump ──► topics ──► interests ──► frames of changes
 *
 * No connection is freed while code may be walking a list: one that ends is only
 * marked and taken out, and freed on the next turn of the loop (clients_reap).
 */
#ifndef DAEMON_CLIENTS_INTERNAL_H
#define DAEMON_CLIENTS_INTERNAL_H

#include "base/record.h"
#include "daemon/clients/clients.h"
#include "daemon/node/reload.h"
#include "daemon/shared/forwarding.h"
#include "daemon/shared/loop.h"
#include "os/clock.h"
#include "os/process.h"

#include <bsd/sys/tree.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <sys/queue.h>
#include <sys/stat.h>

#define CLIENTS_LEAVING_MS 500 /* for a refusal to be read */
#define CLIENTS_LEAVING_MAX 16 /* refusals that wait to be read, where descriptors are short */
#define CLIENTS_LENT_MAX 16    /* connections on descriptors of the reserve, for which others had to go */
#define CLIENTS_IDLE_MS 30000
#define CLIENTS_TICK_MS 50
#define CLIENTS_SWEEP_TICKS 10
#define CLIENTS_PAUSE_MS 100 /* of the listeners, when no descriptor is left */
#define CLIENTS_FLUSH_MS 100 /* for the last answers, when the node ends */
/* Descriptors reserved for the node itself and for HTTP, which has a margin of its own; half of all if there
 * are fewer than twice as many. */
#define CLIENTS_SPARE_FDS 256
#define CLIENTS_OUTPUT_PAUSE (1u << 20) /* with more output unread than this, nothing new is taken up … */
#define CLIENTS_OUTPUT_GO (256u * 1024) /* … until there is less than this */
#define CLIENTS_OUTPUT_MAX (32u << 20)  /* more than this, from work already under way: cut off */
#define CLIENTS_WATCHES_MAX 65536u      /* of one connection */
#define CLIENTS_INTERESTS_MAX 262144u   /* of one connection: a watch of a session has many */
#define CLIENTS_FORWARDINGS_MAX 1024    /* of one connection, under way; beyond that it is not read … */
#define CLIENTS_FORWARDINGS_GO 512      /* … until this many are left */
#define CLIENTS_SLICE_CHANGES 256       /* copied from the history while the table is locked */
#define CLIENTS_SLICE_BYTES (1u << 20)  /* likewise */
#define CLIENTS_SLICES_PER_TURN 16      /* then others have their turn */
#define CLIENTS_SESSIONS_KNOWN 64       /* session ids that a connection has named */
#define CLIENTS_LIMIT_MAX 256           /* entries of one look-up, while the table is locked */

/* The reader of this message has to act. */
#define CLIENTS_REVOKED                                                                                      \
    "the certificate is revoked; have another issued (gavel cert issue --client), and start again with it"

/* What clients are told while node_shared.is_blind. */
#define CLIENTS_BLIND                                                                                        \
    "the disk of this node does not answer, and what it says is out of date; ask another one"

/* Not RB_GENERATE_STATIC: it needs a macro that Linux headers may undefine. */
#define CLIENTS_TREE(name, type, field, compare)                                                             \
    RB_GENERATE_INTERNAL(name, type, field, compare, __attribute__((unused)) static)

/* For messages that are only packed: protobuf-c has no const strings. */
static inline char *clients_text(const char *text) { return (char *)(uintptr_t)text; }

/* Orders from other threads to this one. */
enum clients_order { CLIENTS_ORDER_RELOAD = 1, CLIENTS_ORDER_STOP = 2 };

enum clients_phase {
    CLIENTS_TLS,
    CLIENTS_HELLO,
    CLIENTS_UP,
    CLIENTS_LEAVING, /* it was refused: its input is discarded until it has read why */
    CLIENTS_DEAD,
};

enum clients_topic_kind { CLIENTS_GROUP, CLIENTS_PREFIX, CLIENTS_SESSION };

/* Something that is watched: a group by its name, all groups with a prefix, or a session. */
struct clients_topic {
    RB_ENTRY(clients_topic) by_key;
    RB_HEAD(clients_interests, clients_interest) interests; /* in order of client, then watch */
    uint64_t hash;                                          /* of the name; or the session */
    enum clients_topic_kind kind;
    size_t length;
    char name[];
};
RB_HEAD(clients_topics, clients_topic);

struct clients_interest {
    RB_ENTRY(clients_interest) in_topic;
    LIST_ENTRY(clients_interest) in_watch;
    struct clients_topic *topic;
    struct clients_watch *watch;
};

/*
 * A watch is told each change after `from`, once and in order, by the pump of its connection. A watch of a
 * session has an interest in the session and in each group where that is a candidate. The set of those groups
 * is tracked from `known_at` on.
 */
struct clients_watch {
    RB_ENTRY(clients_watch) by_number;
    LIST_ENTRY(clients_watch) next_behind;
    STAILQ_ENTRY(clients_watch) next_touched;
    LIST_HEAD(, clients_interest) interests;
    struct clients_connection *connection;
    uint64_t number;
    struct table_cursor from;
    struct table_cursor known_at;
    bool is_behind;   /* has not yet been told all that the connection's other watches have */
    uint16_t *picked; /* changes of the current slice for this watch, by their positions */
    size_t picked_count;
    size_t picked_capacity;
    bool is_concerned; /* one of these changes is about its own session */
};
RB_HEAD(clients_watches, clients_watch);

struct clients_connection {
    RB_ENTRY(clients_connection) by_number;
    TAILQ_ENTRY(clients_connection) next;      /* of all, the oldest first; or of the dead */
    TAILQ_ENTRY(clients_connection) next_work; /* while has_work */
    LIST_ENTRY(clients_connection) next_dirty; /* while is_dirty */
    TAILQ_ENTRY(clients_connection) next_late; /* while is_late */
    LIST_ENTRY(clients_connection) next_full;  /* while is_filling */
    struct clients *clients;
    uint64_t number; /* never reused */
    enum clients_phase phase;
    struct bufferevent *stream;
    SSL *ssl;     /* NULL: plain; the stream owns it */
    bool is_unix; /* else TCP */
    bool is_lent; /* its descriptor is of the reserve: another one, below the limit, became free for it */
    char remote[64];
    uint64_t principal;                        /* its owner, by principal.c; 0: unknown */
    uint64_t sessions[CLIENTS_SESSIONS_KNOWN]; /* that it has named itself, a ring: it may see them */
    size_t session_count;
    gavel_ns made_at;
    gavel_ns heard_at;    /* the last whole frame */
    gavel_ns leave_at;    /* LEAVING */
    uint64_t taken;       /* bytes taken by the other side … */
    uint64_t taken_then;  /* … at the last sweep that saw progress, … */
    gavel_ns progress_at; /* … and when that was */
    bool has_work;
    bool is_dirty;
    bool is_late; /* what was written to it goes out a moment later */
    bool is_reading;
    bool is_full;         /* more than OUTPUT_PAUSE waits, and not yet less than OUTPUT_GO again */
    bool is_overfull;     /* the same for forwardings */
    bool is_tired;        /* its requests took long: others go first */
    const char *doom;     /* NULL, or why to cut it off on the next turn of the loop */
    size_t forwardings;   /* under way */
    bool has_forwardings; /* there has been one */
    /* Allocated at the beginning, so that sending it needs no memory; NULL: sent. */
    struct forwarding *farewell;

    struct clients_watches watches;
    size_t watch_count;
    size_t interest_count;
    /*
     * Live: it gets changes as the shared pump reads them, but none up to `high`. Otherwise it reads the
     * history itself, from `cursor` on; changes up to `high` are then only for the watches in `behind`, since
     * the others have been told these.
     */
    bool is_live;
    struct table_cursor cursor;
    struct table_cursor high;
    LIST_HEAD(, clients_watch) behind;
    bool is_filling;  /* the current slice is more than it can take … */
    size_t collected; /* … bytes of it so far */
    uint64_t full_of; /* the slice (by number) of which it took only … */
    size_t full_at;   /* … up to this change */
};
TAILQ_HEAD(clients_queue, clients_connection);
RB_HEAD(clients_by_number, clients_connection);

/* Changes copied from the history, to be told without the lock. */
struct clients_slice {
    uint64_t number;
    size_t count;
    struct {
        struct table_cursor at;
        Gavel__Change__Kind kind;
        uint64_t session;
        const char *group;
        const uint8_t *bytes;
        size_t size;
        Gavel__Change *change; /* unpacked when first wanted; NULL: not yet */
    } changes[CLIENTS_SLICE_CHANGES];
    uint8_t *arena;
    size_t used;
    size_t capacity;
    struct table_cursor end; /* the position after all of it has been told */
    uint64_t told;           /* all changes up to this revision are in it, or before it */
    bool is_last;            /* there are no more for now */
};

/* A listening socket. */
struct clients_door {
    struct clients *clients;
    struct event *event;
    int fd; /* -1 none */
    bool is_unix;
};

/* How long a client may take; tests are less patient. */
struct clients_patience {
    gavel_ns greeting; /* for TLS and the hello together */
    gavel_ns idle;     /* silent, unless it watches; or leaving output unread */
    gavel_ns slow;     /* taking nothing while more than OUTPUT_PAUSE waits */
};

struct clients {
    struct node_shared *shared;
    struct clients_patience patience;
    struct process_id self; /* pid 0: not known */
    struct event_base *base;
    pthread_t thread;
    bool has_thread;
    size_t leaving; /* connections in CLIENTS_LEAVING */
    size_t lent;    /* connections with is_lent */
    int bell_fd;
    struct loop_orders orders;
    bool is_stopping;

    struct clients_door tcp;
    struct clients_door local;
    uint16_t port;
    char path[sizeof(((struct daemon_config *)0)->socket)]; /* of the unix socket that is ours; "" none */
    dev_t path_device;
    ino_t path_inode;
    struct certificates certificates;
    struct reload reload;
    struct event *resume_event; /* of the listeners */

    struct event *orders_event;
    struct event *bell_event;
    struct event *replies_event;
    struct event *reload_event;
    struct event *tick_event;
    struct event *work_event;
    struct event *reap_event;
    unsigned ticks;

    uint64_t numbers;
    struct clients_queue connections;
    struct clients_queue dead;
    struct clients_queue work;
    LIST_HEAD(, clients_connection) dirty;
    struct clients_queue late;
    size_t late_count;
    struct event *late_event;
    LIST_HEAD(, clients_connection) filling;
    struct clients_by_number by_number;
    struct mailbox replies; /* of struct forwarding */

    struct clients_topics topics;
    size_t prefixes[NAME_MAX_BYTES + 1]; /* the number of topics that are prefixes of that length */
    size_t watch_count;
    struct table_cursor cursor; /* of all connections that are live; means nothing while there is no watch */
    bool is_hungry;             /* there was no memory for the pump */
    STAILQ_HEAD(, clients_watch) touched;
    size_t touched_count;
    struct clients_slice slice;

    /* Read by any thread. */
    struct {
        _Atomic uint64_t connections;
        _Atomic uint64_t accepted;
        _Atomic uint64_t cut;
        _Atomic uint64_t watches;
        _Atomic uint64_t changes;
        _Atomic uint64_t lookups;
    } counts;
};

/* clients.c: clients_start() with other patience. */
GAVEL_CHECKED enum gavel_status clients_start_with(struct node_shared *shared,
                                                   const struct clients_patience *patience,
                                                   struct clients **ret_clients, struct gavel_error *error);

/* listen.c */
GAVEL_CHECKED enum gavel_status clients_listen(struct clients *clients, struct gavel_error *error);
GAVEL_CHECKED enum gavel_status clients_listen_begin(struct clients *clients); /* once there is a base */
void clients_listen_end(struct clients *clients); /* also removes the name of the unix socket */

/* connection.c */
/* Takes the descriptor over, also on failure (NULL). */
struct clients_connection *clients_connection_new(struct clients *clients, int fd, bool is_unix,
                                                  const char *remote);
void clients_connection_close(struct clients_connection *connection); /* twice is harmless */
/* Tells the other side why, and closes when it has read that, or soon after. */
void clients_connection_refuse(struct clients_connection *connection, const char *text);
/* Ends it because of a fault of the other side; counted. */
void clients_connection_cut(struct clients_connection *connection, const char *reason);
/* The same on the next turn of the loop, for code that walks lists; the reason is static. */
void clients_connection_doom(struct clients_connection *connection, const char *reason);
void clients_reap(evutil_socket_t fd, short what, void *user);
struct clients_connection *clients_find(struct clients *clients, uint64_t number);

/* flow.c: bytes in and out, within bounds. */
size_t clients_waiting(const struct clients_connection *connection); /* bytes the other side has not read */
/* The frame goes out, or the connection ends. */
void clients_write(struct clients_connection *connection, const Gavel__ClientFrame *frame);
void clients_write_bytes(struct clients_connection *connection, const uint8_t *bytes, size_t size);
void clients_flush(struct clients *clients); /* what this turn of the loop has written */
/* late.c */
/* What this turn has written to it goes out a moment later, with the output of some others. */
void clients_put_off(struct clients_connection *connection);
void clients_not_late(struct clients_connection *connection); /* it has gone out, or never will */
void clients_write_late(evutil_socket_t fd, short what, void *user);

/* Pauses or resumes reading from it and telling it changes, by its limits. */
void clients_look(struct clients_connection *connection);
void clients_need_work(struct clients_connection *connection); /* clients_work() soon */
void clients_work(evutil_socket_t fd, short what, void *user);
void clients_readable(struct bufferevent *stream, void *user);
void clients_writable(struct bufferevent *stream, void *user);
void clients_sweep(struct clients *clients, gavel_ns now); /* cuts off the slow and the silent */

/* greet.c */
void clients_greet(struct clients_connection *connection, const Gavel__ClientFrame *frame);
void clients_greet_tls(struct clients_connection *connection); /* after the handshake: whether it may go on */
const char *clients_explain(const uint8_t bytes[CLIENT_LENGTH_BYTES]);

/* principal.c: who owns a connection, and what it may see. */
void clients_principal_find(struct clients_connection *connection, const Gavel__ClientHello *hello);
/* Writes the owner into the frame, over whatever the client has written there. */
void clients_principal_stamp(struct clients_connection *connection, Gavel__ClientFrame *frame);
bool clients_principal_knows(const struct clients_connection *connection, uint64_t session);
/* Whether this node knows that the session belongs to another owner. */
bool clients_principal_is_foreign(struct clients_connection *connection, uint64_t session);

/* answer.c: takes the frame. */
void clients_take(struct clients_connection *connection, Gavel__ClientFrame *frame);
void clients_take_replies(struct clients *clients);

/* topic.c */
/* NULL: nobody is interested. The hash is that of the name (base/hash.h); for a session, the name is "" and
 * the hash is its id. */
struct clients_topic *clients_topic_find(struct clients *clients, enum clients_topic_kind kind, uint64_t hash,
                                         const char *name, size_t length);
/* OK also if it is there already. ERR_NO_MEMORY, ERR_TOO_LARGE. */
GAVEL_CHECKED enum gavel_status clients_interest_add(struct clients_watch *watch,
                                                     enum clients_topic_kind kind, uint64_t session,
                                                     const char *name);
struct clients_interest *clients_interest_find(struct clients_topic *topic, struct clients_watch *watch);
void clients_interest_drop(struct clients_interest *interest); /* and its topic, if it was the last */
/* The first interest of this client (0: of any) in a topic, and the next; NULL at the end. */
struct clients_interest *clients_interest_first(struct clients_topic *topic, uint64_t client);
struct clients_interest *clients_interest_next(struct clients_interest *interest, uint64_t client);

/* watch.c */
void clients_watch(struct clients_connection *connection, const Gavel__Watch *ask);
void clients_unwatch(struct clients_connection *connection, uint64_t number);
void clients_watch_end(struct clients_watch *watch, enum gavel_status status, const char *message,
                       uint64_t revision);
void clients_watches_done(struct clients_connection *connection); /* without telling the client */
bool clients_is_after(struct table_cursor a, struct table_cursor b);

#define CLIENTS_FORGOTTEN "changes that it was not told are forgotten already; look at the whole"

/* survey.c: adds an interest in each group in which the session was a candidate at watch->from, or is now if
 * watch->from is in the future; sets known_at. ERR_NO_MEMORY, ERR_TOO_LARGE, ERR_FORGOTTEN. */
GAVEL_CHECKED enum gavel_status clients_survey(struct clients_watch *watch, uint64_t session);

/* slice.c */
/* Reads changes after the cursor, maybe none. ERR_FORGOTTEN: only `told` is set, to the table's revision. */
GAVEL_CHECKED enum gavel_status clients_slice_read(struct clients *clients, struct table_cursor after);
/* The change as a message, borrowed until the next slice; NULL: no memory. */
Gavel__Change *clients_slice_change(struct clients_slice *slice, size_t which);
/* The revision up to which all changes have been told once those up to `which` have. */
uint64_t clients_slice_told(const struct clients_slice *slice, size_t which);
void clients_slice_clear(struct clients_slice *slice);

/* pump.c */
void clients_pump(struct clients *clients);                   /* for all that are live */
void clients_pump_one(struct clients_connection *connection); /* for one that is not */

#endif
