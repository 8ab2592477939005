/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frame to bytes. The struct is laid out as protobuf-c wants it, on the stack and
 * pointing into the input, and packed once, directly into its destination. Only
 * entries need memory, for their columns.
 */

#include "wire/peer.h"

#include "base/assert.h"
#include "peer.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* Everything a frame can consist of. */
struct packing {
    Pb__Frame frame;
    Pb__Hello hello;
    Pb__Proof proof;
    Pb__Refusal refusal;
    Pb__Message message;
    union {
        Pb__Append append;
        Pb__AppendReply append_reply;
        Pb__Vote vote;
        Pb__VoteReply vote_reply;
        Pb__Install install;
        Pb__TakeOver take_over;
    };
    Pb__Certificate certificate;
    Pb__Chunk chunk;
    Pb__Status status;
    Pb__Forwarding forwarding;
    uint64_t echo_nodes[RAFT_MEMBERS_MAX];
    uint64_t echo_numbers[RAFT_MEMBERS_MAX];
    uint8_t config[RAFT_CONFIG_BYTES_MAX];
    void *columns; /* of entries; freed at the end */
};

/* protobuf-c has no const; packing does not write. */
static uint8_t *bytes_of(const void *bytes) { return (uint8_t *)(uintptr_t)bytes; }
static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

static void lay_hello(struct packing *p, const struct peer_hello *hello)
{
    pb__hello__init(&p->hello);
    p->hello.version_min = hello->version_min;
    p->hello.version_max = hello->version_max;
    p->hello.cluster = hello->cluster;
    p->hello.generation = hello->generation;
    p->hello.node = hello->node;
    p->hello.to = hello->to;
    p->hello.incarnation = hello->incarnation;
    p->hello.bootstrap = hello->bootstrap;
    p->hello.cluster_name = text_of(hello->cluster_name);
    p->hello.name = text_of(hello->name);
    p->hello.api = text_of(hello->api);
    p->hello.program = text_of(hello->program);
    p->hello.address = text_of(hello->address);
    p->hello.process = hello->process;
    p->hello.directory = hello->directory;
    p->hello.bound_at = hello->bound_at;
    p->hello.began_at = hello->began_at;
    p->hello.founding = hello->founding;
    p->hello.table_version = hello->table_version;
    p->hello.is_founded = hello->is_founded;
    p->hello.config_index = hello->config_index;
    if (hello->has_nonce)
        p->hello.nonce = (ProtobufCBinaryData){PEER_NONCE_BYTES, bytes_of(hello->nonce)};
    if (hello->has_proof)
        p->hello.proof = (ProtobufCBinaryData){PEER_PROOF_BYTES, bytes_of(hello->proof)};
    if (hello->has_generation_seal)
        p->hello.generation_seal = (ProtobufCBinaryData){PEER_PROOF_BYTES, bytes_of(hello->generation_seal)};
}

static Pb__Certificate *lay_certificate(struct packing *p, const struct raft_certificate *certificate)
{
    pb__certificate__init(&p->certificate);
    p->certificate.kind = certificate->kind;
    p->certificate.node = certificate->node;
    p->certificate.incarnation = certificate->incarnation;
    p->certificate.term = certificate->term;
    p->certificate.lease_epoch = certificate->lease_epoch;
    p->certificate.target = certificate->target;
    p->certificate.commit = certificate->commit;
    p->certificate.mac.data = bytes_of(certificate->mac);
    p->certificate.mac.len = sizeof certificate->mac;
    return &p->certificate;
}

/* The columns of the entries, in one piece of memory. */
static enum gavel_status lay_entries(struct packing *p, const struct raft_append *append)
{
    size_t count = append->entry_count, total = 0;
    uint64_t *terms;
    uint32_t *kinds, *sizes;
    uint8_t *data;

    ASSERT(count > 0);
    for (size_t i = 0; i < count; i++)
        total += append->entries[i].size;
    if (count > RAFT_APPEND_ENTRIES_MAX || total > PEER_FRAME_MAX)
        return GAVEL_ERR_INVALID;
    p->columns = malloc(count * (sizeof *terms + sizeof *kinds + sizeof *sizes) + total);
    if (!p->columns)
        return GAVEL_ERR_NO_MEMORY;
    terms = p->columns;
    kinds = (uint32_t *)(terms + count);
    sizes = kinds + count;
    data = (uint8_t *)(sizes + count);
    p->append.n_entry_terms = p->append.n_entry_kinds = p->append.n_entry_sizes = count;
    p->append.entry_terms = terms;
    p->append.entry_kinds = kinds;
    p->append.entry_sizes = sizes;
    p->append.entry_data.data = data;
    p->append.entry_data.len = total;
    for (size_t i = 0; i < count; i++) {
        const struct raft_entry *entry = &append->entries[i];

        terms[i] = entry->term;
        kinds[i] = entry->kind;
        sizes[i] = entry->size;
        if (entry->size > 0)
            memcpy(data, entry->data, entry->size);
        data += entry->size;
    }
    return GAVEL_OK;
}

static enum gavel_status lay_append(struct packing *p, const struct raft_append *append)
{
    pb__append__init(&p->append);
    p->append.prev_index = append->prev_index;
    p->append.prev_term = append->prev_term;
    p->append.commit = append->commit;
    p->append.lease_epoch = append->lease_epoch;
    p->append.round = append->round;
    p->append.n_successors = append->successor_count;
    p->append.successors = (uint64_t *)(uintptr_t)append->successors;
    return append->entry_count > 0 ? lay_entries(p, append) : GAVEL_OK;
}

static void lay_append_reply(struct packing *p, const struct raft_append_reply *reply)
{
    pb__append_reply__init(&p->append_reply);
    p->append_reply.is_success = reply->is_success;
    p->append_reply.match = reply->match;
    p->append_reply.prev_index = reply->prev_index;
    p->append_reply.conflict_term = reply->conflict_term;
    p->append_reply.conflict_index = reply->conflict_index;
    p->append_reply.round = reply->round;
    p->append_reply.lease_epoch = reply->lease_epoch;
    p->append_reply.promise_ns = (uint64_t)reply->promise;
    p->append_reply.seen_term = reply->seen_term;
    p->append_reply.refused = reply->refused;
    p->append_reply.refused_directory = reply->refused_directory;
}

static void lay_vote(struct packing *p, const struct raft_vote *vote)
{
    pb__vote__init(&p->vote);
    p->vote.term = vote->term;
    p->vote.round = vote->round;
    p->vote.last_index = vote->last_index;
    p->vote.last_term = vote->last_term;
    p->vote.priority = vote->priority;
    if (vote->certificate.kind != RAFT_CERT_NONE)
        p->vote.certificate = lay_certificate(p, &vote->certificate);
}

static void lay_vote_reply(struct packing *p, const struct raft_vote_reply *reply)
{
    pb__vote_reply__init(&p->vote_reply);
    p->vote_reply.term = reply->term;
    p->vote_reply.round = reply->round;
    p->vote_reply.reason = reply->reason;
    p->vote_reply.voted_for = reply->voted_for;
    p->vote_reply.wait_ns = (uint64_t)reply->wait;
}

static void lay_install(struct packing *p, const struct raft_install *install)
{
    pb__install__init(&p->install);
    p->install.index = install->index;
    p->install.index_term = install->index_term;
    p->install.config.data = p->config;
    p->install.config.len = raft_config_encode(&install->config, p->config);
    p->install.config_index = install->config_index;
    p->install.lease_epoch = install->lease_epoch;
    p->install.round = install->round;
}

/* Field numbers of the oneof follow the kinds of Raft. */
_Static_assert((int)PB__MESSAGE__WHAT_APPEND + (int)RAFT_MSG_TAKE_OVER == (int)PB__MESSAGE__WHAT_TAKE_OVER,
               "peer.proto and core/raft/message.h name different kinds");

static enum gavel_status lay_message(struct packing *p, const struct raft_message *message)
{
    pb__message__init(&p->message);
    p->message.from = message->from;
    p->message.to = message->to;
    p->message.cluster = message->cluster;
    p->message.generation = message->generation;
    p->message.incarnation = message->incarnation;
    p->message.directory = message->directory;
    p->message.bound_at = message->bound_at;
    p->message.began_at = message->began_at;
    p->message.start = message->start;
    p->message.founding = message->founding;
    p->message.is_founded = message->is_founded;
    p->message.term = message->term;
    p->message.what_case = (Pb__Message__WhatCase)(PB__MESSAGE__WHAT_APPEND + (int)message->kind);
    /* All members of the oneof are one pointer. */
    p->message.append = &p->append;
    switch (message->kind) {
    case RAFT_MSG_APPEND:
        return lay_append(p, &message->append);
    case RAFT_MSG_APPEND_REPLY:
        lay_append_reply(p, &message->append_reply);
        return GAVEL_OK;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        lay_vote(p, &message->vote);
        return GAVEL_OK;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        lay_vote_reply(p, &message->vote_reply);
        return GAVEL_OK;
    case RAFT_MSG_SNAPSHOT:
        lay_install(p, &message->snapshot);
        return GAVEL_OK;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_CERTIFICATE:
        p->message.certificate = lay_certificate(p, &message->certificate);
        return GAVEL_OK;
    case RAFT_MSG_TAKE_OVER:
        pb__take_over__init(&p->take_over);
        return GAVEL_OK;
    }
    return GAVEL_ERR_INVALID;
}

static enum gavel_status lay_chunk(struct packing *p, const struct peer_chunk *chunk)
{
    pb__chunk__init(&p->chunk);
    p->chunk.transfer = chunk->transfer;
    p->chunk.offset = chunk->offset;
    p->chunk.total = chunk->total;
    p->chunk.data.data = bytes_of(chunk->data);
    p->chunk.data.len = chunk->size;
    if (chunk->offset > 0)
        return GAVEL_OK;
    if (chunk->head.kind != RAFT_MSG_SNAPSHOT)
        return GAVEL_ERR_INVALID;
    p->chunk.head = &p->message;
    return lay_message(p, &chunk->head);
}

static void lay_status(struct packing *p, const struct peer_status *status)
{
    pb__status__init(&p->status);
    p->status.node = status->node;
    p->status.cluster = status->cluster;
    p->status.generation = status->generation;
    p->status.incarnation = status->incarnation;
    p->status.term = status->term;
    p->status.leader = status->leader;
    p->status.is_leader = status->is_leader;
    p->status.is_working = status->is_working;
    p->status.lease_epoch = status->lease_epoch;
    p->status.commit = status->commit;
    p->status.digest_index = status->digest_index;
    p->status.digest = status->digest;
    p->status.founding = status->founding;
    p->status.number = status->number;
    p->status.disk_hangs_ms = status->disk_hangs_ms;
    p->status.commit_hangs_ms = status->commit_hangs_ms;
    for (unsigned i = 0; i < status->echo_count && i < RAFT_MEMBERS_MAX; i++) {
        p->echo_nodes[i] = status->echoes[i].node;
        p->echo_numbers[i] = status->echoes[i].number;
        p->status.n_echo_nodes = p->status.n_echo_numbers = i + 1;
    }
    p->status.echo_nodes = p->echo_nodes;
    p->status.echo_numbers = p->echo_numbers;
}

static void lay_forwarding(struct packing *p, const struct peer_forwarding *forwarding)
{
    pb__forwarding__init(&p->forwarding);
    p->forwarding.number = forwarding->number;
    p->forwarding.incarnation = forwarding->incarnation;
    p->forwarding.data.data = bytes_of(forwarding->data);
    p->forwarding.data.len = forwarding->size;
}

static void lay_refusal(struct packing *p, const struct peer_frame *frame)
{
    pb__refusal__init(&p->refusal);
    p->refusal.text = text_of(frame->text);
    p->refusal.is_directory = frame->is_directory;
    if (frame->hello.node == 0)
        return;
    lay_hello(p, &frame->hello);
    p->refusal.hello = &p->hello;
}

static enum gavel_status lay_frame(struct packing *p, const struct peer_frame *frame)
{
    pb__frame__init(&p->frame);
    switch (frame->kind) {
    case PEER_HELLO:
    case PEER_WELCOME:
        p->frame.what_case = frame->kind == PEER_HELLO ? PB__FRAME__WHAT_HELLO : PB__FRAME__WHAT_WELCOME;
        p->frame.hello = &p->hello;
        lay_hello(p, &frame->hello);
        return GAVEL_OK;
    case PEER_REFUSAL:
        p->frame.what_case = PB__FRAME__WHAT_REFUSAL;
        p->frame.refusal = &p->refusal;
        lay_refusal(p, frame);
        return GAVEL_OK;
    case PEER_MESSAGE:
        p->frame.what_case = PB__FRAME__WHAT_MESSAGE;
        p->frame.message = &p->message;
        return frame->message.kind == RAFT_MSG_SNAPSHOT ? GAVEL_ERR_INVALID : lay_message(p, &frame->message);
    case PEER_CHUNK:
        p->frame.what_case = PB__FRAME__WHAT_CHUNK;
        p->frame.chunk = &p->chunk;
        return lay_chunk(p, &frame->chunk);
    case PEER_STATUS:
        p->frame.what_case = PB__FRAME__WHAT_STATUS;
        p->frame.status = &p->status;
        lay_status(p, &frame->status);
        return GAVEL_OK;
    case PEER_FORWARDING:
    case PEER_ANSWER:
    case PEER_SILENCE:
        p->frame.what_case = frame->kind == PEER_FORWARDING ? PB__FRAME__WHAT_FORWARDING
                             : frame->kind == PEER_ANSWER   ? PB__FRAME__WHAT_ANSWER
                                                            : PB__FRAME__WHAT_SILENCE;
        p->frame.forwarding = &p->forwarding;
        lay_forwarding(p, &frame->forwarding);
        return GAVEL_OK;
    case PEER_PROOF:
        p->frame.what_case = PB__FRAME__WHAT_PROOF;
        p->frame.proof = &p->proof;
        pb__proof__init(&p->proof);
        p->proof.proof = (ProtobufCBinaryData){PEER_PROOF_BYTES, bytes_of(frame->proof)};
        return GAVEL_OK;
    case PEER_UNKNOWN:
        break;
    }
    return GAVEL_ERR_INVALID;
}

enum gavel_status peer_frame_encode_into(const struct peer_frame *frame, peer_reserve_cb reserve,
                                         void *context)
{
    struct packing packing;
    enum gavel_status status;
    uint8_t *bytes;
    size_t size;

    packing.columns = NULL; /* the rest is laid out as far as it is used */
    status = lay_frame(&packing, frame);
    if (status != GAVEL_OK)
        goto out;
    size = pb__frame__get_packed_size(&packing.frame);
    if (size > PEER_FRAME_MAX) {
        status = GAVEL_ERR_INVALID;
        goto out;
    }
    bytes = reserve(context, PEER_LENGTH_BYTES + size);
    if (!bytes) {
        status = GAVEL_ERR_NO_MEMORY;
        goto out;
    }
    for (int i = 0; i < PEER_LENGTH_BYTES; i++)
        bytes[i] = (uint8_t)(size >> (8 * (PEER_LENGTH_BYTES - 1 - i)));
    (void)pb__frame__pack(&packing.frame, bytes + PEER_LENGTH_BYTES); /* the size is known */
out:
    free(packing.columns);
    return status;
}

struct fresh {
    uint8_t *bytes;
    size_t size;
};

static uint8_t *allocate(void *context, size_t size)
{
    struct fresh *fresh = context;

    fresh->bytes = malloc(size);
    fresh->size = size;
    return fresh->bytes;
}

enum gavel_status peer_frame_encode(const struct peer_frame *frame, uint8_t **ret_bytes, size_t *ret_size)
{
    struct fresh fresh = {0};
    enum gavel_status status = peer_frame_encode_into(frame, allocate, &fresh);

    if (status != GAVEL_OK)
        return status;
    ASSERT(fresh.size > PEER_LENGTH_BYTES);
    *ret_bytes = fresh.bytes;
    *ret_size = fresh.size;
    return GAVEL_OK;
}
