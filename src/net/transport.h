/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections between nodes: dial, accept, greet, send and receive frames.
 * All of it runs on one event base, which the caller owns. Nothing blocks, and
 * callbacks come from the loop of that base, never from within a call.
 *
 *     dial ──► connect ──► TLS ──► HELLO ──► WELCOME ──► up ──► lost ──► back-off ──► dial
 *                                       └──► REFUSAL ──► refused ─────────┘
 *
 * Each peer has a breaker: after `failures` in a row the back-off is long, and
 * messages to that peer are meanwhile dropped at once. A message that cannot be
 * sent is dropped: Raft repeats itself. So is a message to a peer that does not
 * read, since the output that waits for a peer is bounded. Snapshots do not count
 * towards that bound; they go one chunk at a time.
 *
 * Obituaries arrive as datagrams on the same port and are passed on as
 * CERTIFICATE messages; Raft checks whether they are genuine.
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include "base/time.h"
#include "net/seal.h"
#include "wire/peer.h"

#include <event2/event.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

struct transport;

struct transport_address {
    raft_id id;
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1];
};

enum transport_news {
    TRANSPORT_UP, /* we can send to `peer` */
    /* The connection that we dialled to `peer`, or the one that it dialled to us, closed after it was up. */
    TRANSPORT_LOST,
    TRANSPORT_DISOWNED, /* the other side refused us because of our data directory, and will again */
    TRANSPORT_REFUSED,  /* one side refused the other; `text` says who, whom and why */
    TRANSPORT_FAILED,   /* could not connect; reported once until the reason changes */
    TRANSPORT_OPENED,   /* the breaker of `peer` opened */
    TRANSPORT_CLOSED,   /* … and closed */
    TRANSPORT_GREETED,  /* `hello` is what the peer said of itself */
    TRANSPORT_BAD,      /* bytes that are no frame, from `text`; the connection was closed */
};

/* What the node says to a greeting. Whoever is refused for its directory may end. */
enum transport_verdict { TRANSPORT_ADMITS, TRANSPORT_REFUSES, TRANSPORT_REFUSES_DIRECTORY };

struct transport_events {
    void (*message)(void *user, const struct raft_message *message); /* borrowed for the call */
    void (*status)(void *user, const struct peer_status *status);
    /* NULL: not wanted. From `peer`; is_answer tells which of the two. Borrowed for the call. */
    /* FORWARDING, ANSWER or SILENCE. */
    void (*forwarding)(void *user, raft_id peer, enum peer_frame_kind kind,
                       const struct peer_forwarding *forwarding);
    /* peer may be 0, text "", hello NULL */
    void (*news)(void *user, enum transport_news news, raft_id peer, const char *text,
                 const struct peer_hello *hello);
    /* NULL: everybody. Whether the data directory in `hello` may be the peer's, and its program take part; a
     * refusal with a reason in text. is_proven: the sender has proved that it is a member. */
    enum transport_verdict (*admit)(void *user, const struct peer_hello *hello, bool is_proven,
                                    char text[PEER_TEXT_MAX + 1]);
    /* NULL: not wanted. The peer is there with its own directory, but in an earlier state. */
    void (*distrust)(void *user, raft_id peer);
    void *user;
};

struct transport_settings {
    struct peer_hello self;   /* what we say of ourselves; `to` is filled in */
    const char *listen;       /* "host:port"; port 0: any, see transport_port() */
    SSL_CTX *tls;             /* NULL: plain TCP, for loopback only; borrowed, takes a reference of its own */
    gavel_ns connect_timeout; /* 0: 1 s, for connect, TLS and HELLO together */
    gavel_ns retry_min;       /* 0: 10 ms */
    gavel_ns retry_max;       /* 0: 1 s */
    int failures;             /* that open the breaker; 0: 5 */
    size_t waiting_max;       /* bytes that may wait for one peer; 0: 8 MiB */
    int accepted_max;         /* connections accepted at once; 0: 64 */
    uint8_t key[SEAL_KEY_BYTES]; /* for the proofs between nodes (prove.h) */
    bool has_secret;             /* the key comes from a secret, not merely from the cluster's name */
    bool takes_strangers;        /* for tests: anybody who greets properly may send */
};

/*
 * Listens (TCP and UDP on the same port). ERR_INVALID for an impossible address or for plain TCP beyond
 * loopback, ERR_IO if the port is taken and so on, with the next step. SIGPIPE is ignored from then on,
 * unless the caller handles it; code that starts programs must reset it for them.
 */
GAVEL_CHECKED enum gavel_status transport_new(struct event_base *base,
                                              const struct transport_settings *settings,
                                              const struct transport_events *events,
                                              struct transport **ret_transport, struct gavel_error *error);

/* Closes everything at once. Safe on NULL; not from a callback. */
void transport_free(struct transport *transport);

uint16_t transport_port(const struct transport *transport);

/* Replaces the list of peers to dial. Connections to peers that stay are kept; those to a changed address are
 * made anew. */
void transport_set_peers(struct transport *transport, const struct transport_address *peers, size_t count);

/*
 * Who may send to us, besides the peers that we dial: members of a configuration that is not committed yet,
 * or of the one before it. `as_of` is the index of the newest configuration known to be committed. A node
 * that is not listed is let in only if it proves by the secret that it knows a newer one. So members that a
 * node has never heard of can find it after it was away while the members changed, and a node that is no
 * longer a member, or not yet, is refused. With TLS but without a secret nobody can prove that, and only
 * listed nodes are let in.
 */
void transport_set_members(struct transport *transport, const raft_id *members, size_t count, uint64_t as_of);

/* Replaces what HELLO says, after a change of incarnation, generation or configuration. */
void transport_set_self(struct transport *transport, const struct peer_hello *self);

/* For new connections. Existing ones stay, unless the certificate of the other side is now revoked. */
void transport_set_tls(struct transport *transport, SSL_CTX *tls);

/* To message->to. Encodes or drops it; what it points to is not needed afterwards. A SNAPSHOT is copied and
 * goes in chunks; while one is under way to that peer, another one is dropped. */
void transport_send(struct transport *transport, const struct raft_message *message);

/*
 * False if the peer is not up, too much waits for it already, or the data is larger than
 * PEER_FORWARDING_MAX. Too much is 256 KiB for a request (FORWARDING), which may itself be larger, and half
 * of waiting_max for an ANSWER, which nobody would send again, and for SILENCE, for which answers wait. What
 * is accepted goes behind messages: at most 256 KiB and one frame are queued before a heartbeat.
 */
bool transport_send_forwarding(struct transport *transport, raft_id peer, enum peer_frame_kind kind,
                               const struct peer_forwarding *forwarding);

/* To every peer that is up. */
void transport_send_status(struct transport *transport, const struct peer_status *status);

/* Writes what waits now, not on the next turn of the loop: the last words of a node that ends. */
void transport_flush(struct transport *transport);

struct transport_link {
    bool is_up;    /* we can send to it */
    bool is_heard; /* it has a connection to us */
    bool is_breaker_open;
    gavel_ns heard_at; /* the last frame from it on a connection that is up; 0 never */
    uint64_t connects;
    uint64_t failures;
    uint64_t dropped; /* messages */
    uint64_t sent_bytes;
    uint64_t received_bytes;
    char trouble[PEER_TEXT_MAX + 1]; /* why it is not up; "" */
};

/* False if it is no peer of ours. */
bool transport_link_of(const struct transport *transport, raft_id peer, struct transport_link *ret_link);

/* Where datagrams to that peer go: its address as last resolved. False if unknown yet. Never looks anything
 * up. */
bool transport_address_of(const struct transport *transport, raft_id peer,
                          struct sockaddr_storage *ret_address);

/* "host:port" to a socket address, numeric or by name. Also used by the guard and the check of the
 * configuration. */
GAVEL_CHECKED enum gavel_status address_resolve(const char *address, struct sockaddr_storage *ret_address,
                                                socklen_t *ret_length, struct gavel_error *error);
bool address_is_loopback(const struct sockaddr_storage *address);

#endif
