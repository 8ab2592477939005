/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parts of the transport, for its own files.
 *
 *     link        a peer that we dial; it has at most one connection out and one in
 *     connection  a stream of frames: one that we dialled, or one that we accepted
 *
 * A connection that ends is only marked. The reaper frees it on the next turn of
 * the loop, because functions up the stack may still use it. The caller is told
 * of events from the loop only.
 */
#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

#include "base/prng.h"
#include "net/address.h"
#include "net/resolve.h"
#include "net/transport.h"

#include <event2/bufferevent.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

/* A snapshot on its way out: shared, and cut into chunks as the socket takes them. */
struct outgoing {
    struct blob *blob; /* NULL: none */
    size_t size;
    size_t offset;
    uint64_t transfer;
    struct raft_message head;
    bool is_under_way; /* also true for an empty snapshot, which has no bytes */
};

/* A snapshot on its way in. */
struct incoming {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    uint64_t transfer;
    uint64_t total;
    struct raft_message head;
    bool is_under_way;
};

enum phase {
    PHASE_TLS,     /* the handshake is under way */
    PHASE_HELLO,   /* waiting for HELLO, or for the answer to ours */
    PHASE_PROOF,   /* accepted and answered; waiting for the proof that it has the secret */
    PHASE_UP,      /* greeted */
    PHASE_LEAVING, /* refused: output still goes out, input is discarded */
    PHASE_DEAD,    /* waiting for the reaper */
};

struct link;

/* The most that may be queued before a heartbeat on its connection, besides a frame that has begun. */
#define FORWARDINGS_AHEAD_BYTES (256u * 1024)

struct connection {
    LIST_ENTRY(connection) entry;
    struct transport *transport;
    struct bufferevent *stream;
    SSL *ssl;              /* of the stream; NULL for plain TCP */
    struct evbuffer *late; /* whole frames that wait until little is queued before them; NULL: none yet */
    enum phase phase;
    bool is_dialled;
    struct link *link; /* dialled: its link; accepted: the link of the peer that greeted, if known */
    raft_id peer;      /* who greeted; 0 before */
    uint64_t process;  /* its process number */
    gavel_ns heard_at; /* when its last frame came */
    char name[PEER_NAME_MAX + 1];
    char remote[ADDRESS_TEXT_MAX]; /* the other end */
    struct peer_hello own;         /* what we said of ourselves here, with our nonce */
    struct peer_hello greeting;    /* PHASE_PROOF: what it said of itself */
    struct event deadline;
    struct incoming snapshot;
    gavel_ns made_at;
    bool refuses_directory; /* the other side is refused because of its data directory */
};
LIST_HEAD(connections, connection);

struct link {
    uint64_t incarnation;                /* of its last greeting; 0: never … */
    uint64_t directory;                  /* … its data directory */
    gavel_ns remembered_at;              /* … when that was */
    uint64_t process;                    /* … its process */
    uint64_t generation;                 /* … and its generation */
    struct sockaddr_storage resolved_to; /* where it was last dialled; family 0: never */
    LIST_ENTRY(link) entry;
    struct transport *transport;
    struct transport_address where;
    struct connection *out;
    struct connection *in;

    /* dialling */
    struct resolve *resolve;
    int fd; /* of a connect that is under way; -1 */
    struct event connected;
    struct event retry;
    struct event give_up; /* when connect, TLS and HELLO take too long */
    int failed;           /* times in a row */
    bool is_breaker_open;

    struct outgoing snapshot;
    gavel_ns heard_at;
    uint64_t connects;
    uint64_t failures;
    uint64_t dropped;
    uint64_t sent_bytes;
    uint64_t received_bytes;
    char trouble[PEER_TEXT_MAX + 1];
    char told[PEER_TEXT_MAX + 1];    /* the newest trouble reported, of our dialling … */
    char told_in[PEER_TEXT_MAX + 1]; /* … and of its */
};
LIST_HEAD(links, link);

/* A rate limit: `most` at once, then one more per interval. */
struct bucket {
    unsigned tokens;
    unsigned most;
    gavel_ns interval;
    gavel_ns filled_at;
};
bool bucket_take(struct bucket *bucket, gavel_ns now);

/* What was reported about a stranger; the same is not repeated for a while. */
#define STRANGERS_KEPT 8
struct stranger {
    char host[ADDRESS_TEXT_MAX];
    char reason[PEER_TEXT_MAX + 1];
    gavel_ns told_at;
};

struct transport {
    struct event_base *base;
    struct transport_settings settings;
    struct transport_events events;
    SSL_CTX *tls;
    raft_id members[2 * RAFT_MEMBERS_MAX]; /* see transport_set_members() */
    size_t member_count;
    uint64_t members_as_of;
    uint64_t process; /* ours, by a random number */
    struct prng prng;
    int listener;
    int datagrams;
    uint16_t port;
    struct event accepting;
    struct event accept_again; /* after descriptors ran out */
    struct event receiving;
    struct event reaper;
    struct links links;
    struct connections dialled;
    struct connections accepted;
    struct connections dead;
    int accepted_count;
    uint64_t transfers; /* snapshots sent */
    struct bucket stranger_news;
    struct stranger strangers[STRANGERS_KEPT]; /* a ring */
    unsigned stranger_count;
    struct bucket obituaries;
};

/* link.c: the peers that we dial */
struct link *link_find(const struct transport *transport, raft_id id);
struct link *link_new(struct transport *transport, const struct transport_address *where);
void link_free(struct link *link);
void link_dial_soon(struct link *link);
/* From now on connect, TLS and HELLO are limited by connect_timeout. */
void link_limit(struct link *link);
/* The peer cannot be reached, or one side refused the other (news REFUSED): closes what is open and tries
 * again later. */
void link_failed(struct link *link, enum transport_news news, const char *reason,
                 const struct peer_hello *hello);
void link_lost(struct link *link, const char *reason);
void link_up(struct link *link, const struct peer_hello *hello);
void link_drop_out(struct link *link);

/* dial.c */
void dial_begin(struct link *link);
void dial_stop(struct link *link);

/* accept.c: the sockets that we listen on */
GAVEL_CHECKED enum gavel_status accept_open(struct transport *transport, struct gavel_error *error);
void accept_close(struct transport *transport);

/* datagram.c */
void datagram_receive(evutil_socket_t fd, short events, void *transport);

/* connection.c: streams; connection_new() owns the descriptor, also when it fails (NULL) */
struct connection *connection_new(struct transport *transport, int fd, bool is_dialled, const char *remote);
void connection_close(struct connection *connection);
/* Tells the other side why, and closes once that has gone out. */
void connection_refuse(struct connection *connection, const char *text, bool tells_self);
bool connection_write(struct connection *connection, const struct peer_frame *frame);
/* Sends it behind everything else: it waits until little is queued before it. */
bool connection_write_late(struct connection *connection, const struct peer_frame *frame);
size_t connection_waiting(const struct connection *connection);      /* bytes written but not sent */
size_t connection_waiting_late(const struct connection *connection); /* the same, of those written late */
void connection_reap(evutil_socket_t fd, short events, void *transport);
void connection_flush(struct connection *connection);
void socket_tune(int fd);

/* frame.c: what comes in */
void frame_read(struct bufferevent *stream, void *connection);
void frame_bad(struct connection *connection, const char *reason);

/* greet.c: who may speak to whom */
void greet_begin(struct connection *connection);
void greet_hello(struct connection *connection, const struct peer_hello *hello);
void greet_welcome(struct connection *connection, const struct peer_hello *hello);
void greet_proof(struct connection *connection, const uint8_t proof[PEER_PROOF_BYTES]);
void greet_refused(struct connection *connection, const struct peer_frame *refusal);

/* snapshot.c */
void snapshot_send(struct link *link, const struct raft_message *message);
void snapshot_pump(struct link *link);
void snapshot_forget(struct outgoing *snapshot);
void snapshot_drop(struct incoming *snapshot);
/* NULL, or what is wrong with this chunk. */
const char *snapshot_take(struct connection *connection, const struct peer_chunk *chunk);

/* news.c */
/* Text that does not fit is cut off: it is for people. */
void text_write(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define NEWS_TEXT_MAX (2 * PEER_TEXT_MAX)
void tell(struct transport *transport, enum transport_news news, raft_id peer, const char *text,
          const struct peer_hello *hello);
/* About an accepted connection, from a peer or a stranger; the same news is not repeated over and over. */
void tell_accepted(struct connection *connection, enum transport_news news, const char *reason,
                   const struct peer_hello *hello);

#endif
