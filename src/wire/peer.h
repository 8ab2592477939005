/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frames that nodes exchange on a connection.
 *
 *     ┌─────────────────────┬──────────────────────────────┐
 *     │ length, 4 bytes, BE │ a protobuf Frame (peer.proto) │
 *     └─────────────────────┴──────────────────────────────┘
 *
 * Each node dials every other and speaks on the connections it dialled; on
 * those it accepted it only answers HELLO and listens. The first frame of a
 * connection is HELLO, answered by WELCOME or REFUSAL, and WELCOME by PROOF;
 * everything else follows.
 *
 * Converts bytes to a struct and back. No received byte is trusted: a decoded
 * message has passed raft_message_check(), too. Older nodes skip new fields and
 * new kinds of frames, so that a cluster can be upgraded node by node. A change
 * in the meaning of old ones raises PEER_VERSION.
 */
#ifndef WIRE_PEER_H
#define WIRE_PEER_H

#include "core/raft/message.h"

#include <string.h>

/* The versions of the protocol that this program speaks; both sides use the highest that they share. */
#define PEER_VERSION_MIN 1
#define PEER_VERSION_MAX 1

#define PEER_LENGTH_BYTES 4
/* The largest frame before HELLO is answered, and after. */
#define PEER_FIRST_FRAME_MAX (4u * 1024)
#define PEER_FRAME_MAX (4u << 20)
/* A snapshot travels in chunks, so that heartbeats pass between them. */
#define PEER_CHUNK_BYTES (128u * 1024)
/* The data of a forwarded request: whatever fits into a frame. */
#define PEER_FORWARDING_MAX (PEER_FRAME_MAX - 64)
#define PEER_SNAPSHOT_MAX ((size_t)1 << 30)

#define PEER_NAME_MAX 63     /* of a node or a cluster: letters, digits, '.', '-', '_' */
#define PEER_ADDRESS_MAX 255 /* "host:port", "[v6]:port" */
#define PEER_TEXT_MAX 255
#define PEER_NONCE_BYTES 16
#define PEER_PROOF_BYTES 32

enum peer_frame_kind {
    PEER_HELLO,
    PEER_WELCOME,    /* as HELLO, from the other side, with the chosen version */
    PEER_REFUSAL,    /* `text` says why; the connection is closed after it */
    PEER_MESSAGE,    /* of Raft */
    PEER_CHUNK,      /* a part of a Raft SNAPSHOT message */
    PEER_STATUS,     /* a node's view of itself, for the split-brain detector */
    PEER_FORWARDING, /* a client's frame, carried to the leader … */
    PEER_ANSWER,     /* … and the answer on its way back */
    PEER_SILENCE,    /* what the leader and its voters tell each other about sessions (silence.h) */
    PEER_PROOF,      /* of the dialling side, after WELCOME: it has the secret */
    PEER_UNKNOWN,    /* from a newer program: skip it */
};

struct peer_hello {
    uint32_t version_min;
    uint32_t version_max; /* WELCOME: both are the chosen version */
    uint64_t cluster;
    uint64_t generation;
    raft_id node; /* who speaks */
    raft_id to;   /* whom it believes it speaks to */
    uint64_t incarnation;
    uint64_t bootstrap; /* a digest of the members this cluster began with; 0 if no longer known */
    char cluster_name[PEER_NAME_MAX + 1];
    char name[PEER_NAME_MAX + 1];
    char address[PEER_ADDRESS_MAX + 1]; /* where its peers reach it; "" if unknown */
    char api[PEER_ADDRESS_MAX + 1];     /* where its HTTP API is; "" if unknown */
    char program[32];                   /* "gaveld 0.4.0" */
    /* A random number of this process, filled in by the transport: distinguishes a node that reconnects from
     * another one of the same name. */
    uint64_t process;
    uint64_t config_index; /* of the configuration in force; 0: none yet */
    /* Filled in by the transport (net/prove.c). */
    bool has_nonce; /* false: a node from before 0.7.0 */
    bool has_proof;
    bool has_generation_seal;
    uint8_t nonce[PEER_NONCE_BYTES];
    uint8_t proof[PEER_PROOF_BYTES];
    uint8_t generation_seal[PEER_PROOF_BYTES];
    /* Its data directory, as in every message (core/raft/message.h). */
    uint64_t directory;
    raft_index bound_at;
    raft_index began_at;
    uint64_t founding;
    bool is_founded;
    uint32_t table_version; /* the operations that it knows (core/table/table.h); 0: not told */
};

/* A hundred years; far from where milliseconds as nanoseconds overflow. */
#define PEER_HANGS_MS_MAX (UINT64_C(100) * 366 * 86400 * 1000)

struct peer_status {
    raft_id node;
    uint64_t cluster;
    uint64_t generation;
    uint64_t incarnation;
    raft_term term;
    raft_id leader;  /* whom it follows; 0 none */
    bool is_leader;  /* by its role … */
    bool is_working; /* … and with a lease */
    uint64_t lease_epoch;
    raft_index commit;
    raft_index digest_index; /* the digest is of the table after this entry; 0: unknown */
    uint64_t digest;
    uint64_t founding;        /* of the cluster, committed; 0: not known to be committed */
    uint64_t disk_hangs_ms;   /* how long its disk has not answered; 0: it does */
    uint64_t commit_hangs_ms; /* of a leader: how long it has committed nothing; 0: all is well */
    uint64_t number;          /* of this status, growing; others echo it … */
    uint8_t echo_count;
    struct {
        raft_id node;
        uint64_t number; /* … to prove that they had read that one when they sent theirs */
    } echoes[RAFT_MEMBERS_MAX];
};

/* One part of the message SNAPSHOT: the first chunk (offset 0) carries the message without its data. */
struct peer_chunk {
    uint64_t transfer; /* a number per snapshot sent; a new one ends an unfinished one */
    uint64_t offset;
    uint64_t total;
    const uint8_t *data;
    size_t size;
    struct raft_message head; /* only of the first: MSG_SNAPSHOT with data NULL and size = total */
};

/* A client's request or its answer: bytes that are not inspected here (client.h). */
struct peer_forwarding {
    uint64_t number;      /* given by the node that carries it, same in the answer. 0: none is wanted */
    uint64_t incarnation; /* of that node: answers to an earlier one are dropped. SILENCE: of the sender */
    const uint8_t *data;  /* at least one byte */
    size_t size;          /* at most PEER_FORWARDING_MAX */
};

struct peer_frame {
    enum peer_frame_kind kind;
    union {
        struct {
            struct peer_hello hello;      /* HELLO, WELCOME; REFUSAL: of who refuses, node 0 if unknown */
            char text[PEER_TEXT_MAX + 1]; /* REFUSAL */
            bool is_directory; /* REFUSAL: because of the data directory, so it will happen again */
        };
        struct raft_message message;
        struct peer_chunk chunk;
        struct peer_status status;
        struct peer_forwarding forwarding; /* FORWARDING, ANSWER, SILENCE */
        uint8_t proof[PEER_PROOF_BYTES];
    };
    void *memory; /* what the pointers above point into; freed by peer_frame_done() */
};

/*
 * Encodes a whole frame, with its length, into bytes that are handed over to the caller, who frees them. A
 * MESSAGE must not be a SNAPSHOT: that goes in chunks. ERR_NO_MEMORY; ERR_INVALID if the frame would be
 * larger than PEER_FRAME_MAX.
 */
GAVEL_CHECKED enum gavel_status peer_frame_encode(const struct peer_frame *frame, uint8_t **ret_bytes,
                                                  size_t *ret_size);

/*
 * The same into memory of the caller: reserve(context, size) is called once, with the size of the whole
 * frame, and returns where it goes, or NULL for ERR_NO_MEMORY.
 */
typedef uint8_t *(*peer_reserve_cb)(void *context, size_t size);
GAVEL_CHECKED enum gavel_status peer_frame_encode_into(const struct peer_frame *frame,
                                                       peer_reserve_cb reserve, void *context);

/* The length that the first four bytes announce. */
uint32_t peer_frame_length(const uint8_t bytes[PEER_LENGTH_BYTES]);

/*
 * Decodes the payload of one frame (without its length). ERR_INVALID, with a reason (static), for what
 * peer_frame_encode() cannot have written; ERR_NO_MEMORY. The result borrows from `bytes` and from
 * frame->memory; pass it to peer_frame_done().
 */
GAVEL_CHECKED enum gavel_status peer_frame_decode(const uint8_t *bytes, size_t size,
                                                  struct peer_frame *ret_frame, const char **ret_reason);

/* Safe on a zeroed struct. */
void peer_frame_done(struct peer_frame *frame);

/* Whether this may name a node or a cluster: 1 to PEER_NAME_MAX letters, digits, '.', '-' and '_', beginning
 * with a letter or a digit. */
static inline bool peer_name_is_good(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(name, letters);

    return length > 0 && length <= PEER_NAME_MAX && !name[length] && !strchr("._-", name[0]);
}

/*
 * An obituary travels alone, as one datagram to the port that peers listen on: the node and its connections
 * are dead, and a new connection would take time. Its mac makes it genuine, not the way it came. Fixed
 * layout, in obituary.c. Encode returns the size; decode returns false for anything else.
 */
#define OBITUARY_BYTES 80
size_t obituary_encode(uint64_t cluster, uint64_t generation, const struct raft_certificate *certificate,
                       uint8_t bytes[OBITUARY_BYTES]);
bool obituary_decode(const uint8_t *bytes, size_t size, uint64_t *ret_cluster, uint64_t *ret_generation,
                     struct raft_certificate *ret_certificate);

#endif
