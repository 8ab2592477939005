/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes to a frame. protobuf-c unpacks them into an arena with a limit; then every
 * field is checked before it is trusted. Each take_x() returns what is wrong, or
 * NULL.
 */

#include "wire/peer.h"

#include "peer.pb-c.h"
#include "wire/frame_arena.h"

#include <string.h>

/* What protobuf-c may need for a frame of `size` bytes: honest ones need less than four times their
 * length. */
#define MEMORY_OF(size) ((size)*16 + 4096)

static const char unknown[] = "a frame of a newer program";
static const char no_memory[] = "out of memory";
static const char too_many_parts[] = "a frame of too many parts";

uint32_t peer_frame_length(const uint8_t bytes[PEER_LENGTH_BYTES])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Printable ASCII that fits; it will be shown to people and written to logs. */
static bool take_text(const char *from, char *to, size_t size)
{
    size_t length = strnlen(from, size);

    if (length == size)
        return false;
    for (size_t i = 0; i < length; i++)
        if (from[i] < ' ' || from[i] > '~')
            return false;
    memcpy(to, from, length + 1);
    return true;
}

/* False if there is something, and it is not of this length. */
static bool take_bytes(const ProtobufCBinaryData *from, uint8_t *to, size_t size, bool *ret_is_there)
{
    if (from->len != 0 && from->len != size)
        return false;
    *ret_is_there = from->len != 0;
    if (*ret_is_there)
        memcpy(to, from->data, size);
    return true;
}

static const char *take_hello(const Pb__Hello *from, struct peer_hello *to)
{
    if (!peer_name_is_good(from->cluster_name) || !peer_name_is_good(from->name))
        return "a greeting without proper names";
    if (!take_text(from->cluster_name, to->cluster_name, sizeof to->cluster_name) ||
        !take_text(from->name, to->name, sizeof to->name) || !take_text(from->api, to->api, sizeof to->api) ||
        !take_text(from->program, to->program, sizeof to->program) ||
        !take_text(from->address, to->address, sizeof to->address))
        return "a greeting with text that is too long or not plain";
    if (from->node == 0)
        return "a greeting from nobody";
    if (from->version_min == 0 || from->version_min > from->version_max)
        return "a greeting without a version";
    if (from->generation >= RAFT_NUMBER_MAX || from->incarnation >= RAFT_NUMBER_MAX ||
        from->bound_at >= RAFT_NUMBER_MAX || from->began_at >= RAFT_NUMBER_MAX ||
        from->config_index >= RAFT_NUMBER_MAX)
        return "a greeting with a number out of range";
    if (from->is_founded && from->founding == 0)
        return "a greeting with a founding without its number";
    if (!take_bytes(&from->nonce, to->nonce, sizeof to->nonce, &to->has_nonce) ||
        !take_bytes(&from->proof, to->proof, sizeof to->proof, &to->has_proof) ||
        !take_bytes(&from->generation_seal, to->generation_seal, sizeof to->generation_seal,
                    &to->has_generation_seal))
        return "a greeting with a proof of the wrong length";
    to->version_min = from->version_min;
    to->version_max = from->version_max;
    to->cluster = from->cluster;
    to->generation = from->generation;
    to->node = from->node;
    to->to = from->to;
    to->incarnation = from->incarnation;
    to->directory = from->directory;
    to->bound_at = from->bound_at;
    to->began_at = from->began_at;
    to->founding = from->founding;
    to->table_version = from->table_version;
    to->is_founded = from->is_founded;
    to->bootstrap = from->bootstrap;
    to->process = from->process;
    to->config_index = from->config_index;
    return NULL;
}

/* A refusal is for people, so that what cannot be shown of it is left out rather than refused in turn. */
static const char *take_refusal(const Pb__Refusal *from, struct peer_frame *frame)
{
    size_t length = 0;

    for (const char *c = from->text; *c != '\0' && length < PEER_TEXT_MAX; c++)
        frame->text[length++] = (char)(*c >= ' ' && *c <= '~' ? *c : '?');
    frame->text[length] = '\0';
    frame->is_directory = from->is_directory != 0;
    if (!from->hello)
        return NULL;
    return take_hello(from->hello, &frame->hello);
}

static const char *take_certificate(const Pb__Certificate *from, struct raft_certificate *to)
{
    if (from->kind > RAFT_CERT_FORCE)
        return "a certificate of an unknown kind";
    if (from->mac.len != RAFT_MAC_BYTES)
        return "a certificate without its seal";
    to->kind = (enum raft_certificate_kind)from->kind;
    to->node = from->node;
    to->incarnation = from->incarnation;
    to->term = from->term;
    to->lease_epoch = from->lease_epoch;
    to->target = from->target;
    to->commit = from->commit;
    memcpy(to->mac, from->mac.data, RAFT_MAC_BYTES);
    return NULL;
}

/* The columns must be of one length, and the sizes must add up to the bytes that are there. */
static const char *take_entries(struct frame_arena *arena, const Pb__Append *from, struct raft_append *to)
{
    size_t count = from->n_entry_terms, left = from->entry_data.len;
    const uint8_t *data = from->entry_data.data;
    struct raft_entry *entries;

    if (count != from->n_entry_kinds || count != from->n_entry_sizes)
        return "entries of which a part is missing";
    if (count > RAFT_APPEND_ENTRIES_MAX)
        return "too many entries";
    if (count == 0)
        return left == 0 ? NULL : "bytes of no entry";
    entries = frame_arena_take(arena, count * sizeof *entries);
    if (!entries)
        return arena->is_exhausted ? too_many_parts : no_memory;
    for (size_t i = 0; i < count; i++) {
        uint32_t size = from->entry_sizes[i];

        if (size > left)
            return "an entry without its bytes";
        if (from->entry_kinds[i] >= RAFT_ENTRY_KIND_COUNT)
            return "an entry of an unknown kind";
        entries[i] = (struct raft_entry){.term = from->entry_terms[i],
                                         .kind = (enum raft_entry_kind)from->entry_kinds[i],
                                         .size = size,
                                         .data = size > 0 ? data : NULL};
        if (size > 0)
            data += size;
        left -= size;
    }
    if (left > 0)
        return "bytes of no entry";
    to->entries = entries;
    to->entry_count = (uint32_t)count;
    return NULL;
}

static const char *take_append(struct frame_arena *arena, const Pb__Append *from, struct raft_append *to)
{
    if (from->n_successors > RAFT_VOTERS_MAX)
        return "too many successors";
    to->prev_index = from->prev_index;
    to->prev_term = from->prev_term;
    to->commit = from->commit;
    to->lease_epoch = from->lease_epoch;
    to->round = from->round;
    to->successor_count = (uint8_t)from->n_successors;
    for (size_t i = 0; i < from->n_successors; i++)
        to->successors[i] = from->successors[i];
    return take_entries(arena, from, to);
}

/* Beyond the range of gavel_ns it becomes negative, which raft_message_check() refuses. */
static gavel_ns duration(uint64_t ns) { return (gavel_ns)ns; }

static const char *take_append_reply(const Pb__AppendReply *from, struct raft_append_reply *to)
{
    *to = (struct raft_append_reply){.is_success = from->is_success != 0,
                                     .match = from->match,
                                     .prev_index = from->prev_index,
                                     .conflict_term = from->conflict_term,
                                     .conflict_index = from->conflict_index,
                                     .round = from->round,
                                     .lease_epoch = from->lease_epoch,
                                     .promise = duration(from->promise_ns),
                                     .seen_term = from->seen_term,
                                     .refused = from->refused,
                                     .refused_directory = from->refused_directory};
    return NULL;
}

static const char *take_vote(const Pb__Vote *from, struct raft_vote *to)
{
    if (from->priority > UINT8_MAX)
        return "a priority out of range";
    to->term = from->term;
    to->round = from->round;
    to->last_index = from->last_index;
    to->last_term = from->last_term;
    to->priority = (uint8_t)from->priority;
    return from->certificate ? take_certificate(from->certificate, &to->certificate) : NULL;
}

static const char *take_vote_reply(const Pb__VoteReply *from, struct raft_vote_reply *to)
{
    if (from->reason >= RAFT_REASON_COUNT)
        return "an unknown reason";
    *to = (struct raft_vote_reply){.term = from->term,
                                   .round = from->round,
                                   .reason = (enum raft_reason)from->reason,
                                   .voted_for = from->voted_for,
                                   .wait = duration(from->wait_ns)};
    return NULL;
}

static const char *take_install(const Pb__Install *from, struct raft_install *to)
{
    if (raft_config_decode(from->config.data, from->config.len, &to->config) != GAVEL_OK)
        return "a configuration cannot be read";
    to->index = from->index;
    to->index_term = from->index_term;
    to->config_index = from->config_index;
    to->lease_epoch = from->lease_epoch;
    to->round = from->round;
    return NULL;
}

static const char *take_body(struct frame_arena *arena, const Pb__Message *from, struct raft_message *to)
{
    switch (to->kind) {
    case RAFT_MSG_APPEND:
        return take_append(arena, from->append, &to->append);
    case RAFT_MSG_APPEND_REPLY:
        return take_append_reply(from->append_reply, &to->append_reply);
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        return take_vote(from->vote, &to->vote);
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        return take_vote_reply(from->vote_reply, &to->vote_reply);
    case RAFT_MSG_SNAPSHOT:
        return take_install(from->snapshot, &to->snapshot);
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_CERTIFICATE:
        return take_certificate(from->certificate, &to->certificate);
    case RAFT_MSG_TAKE_OVER:
        return NULL;
    }
    return unknown;
}

static const char *take_head(const Pb__Message *from, struct raft_message *to)
{
    if (from->what_case < PB__MESSAGE__WHAT_APPEND || from->what_case > PB__MESSAGE__WHAT_TAKE_OVER)
        return from->base.n_unknown_fields > 0 ? unknown : "a message that says nothing";
    if (!from->append) /* all members of the oneof are one pointer */
        return "a message without its body";
    to->kind = (enum raft_message_kind)(from->what_case - PB__MESSAGE__WHAT_APPEND);
    to->from = from->from;
    to->to = from->to;
    to->cluster = from->cluster;
    to->generation = from->generation;
    to->incarnation = from->incarnation;
    to->directory = from->directory;
    to->bound_at = from->bound_at;
    to->began_at = from->began_at;
    to->start = from->start;
    to->founding = from->founding;
    to->is_founded = from->is_founded;
    to->term = from->term;
    return NULL;
}

static const char *take_message(struct frame_arena *arena, const Pb__Message *from, struct raft_message *to)
{
    const char *reason = take_head(from, to);

    if (!reason && to->kind == RAFT_MSG_SNAPSHOT)
        return "a snapshot in one piece";
    if (!reason)
        reason = take_body(arena, from, to);
    if (!reason && raft_message_check(to, &reason) == GAVEL_OK)
        return NULL;
    return reason;
}

static const char *take_chunk_head(struct frame_arena *arena, const Pb__Message *from, struct peer_chunk *to)
{
    const char *reason;

    if (!from)
        return "a snapshot that begins without its head";
    reason = take_head(from, &to->head);
    if (!reason && to->head.kind != RAFT_MSG_SNAPSHOT)
        return "a chunk of what is no snapshot";
    if (!reason)
        reason = take_body(arena, from, &to->head);
    if (reason)
        return reason;
    to->head.snapshot.size = to->total;
    to->head.snapshot.data = to->data; /* so that it is checked as the whole it will be */
    if (raft_message_check(&to->head, &reason) != GAVEL_OK)
        return reason;
    to->head.snapshot.data = NULL;
    to->head.snapshot.blob = NULL;
    return NULL;
}

static const char *take_chunk(struct frame_arena *arena, const Pb__Chunk *from, struct peer_chunk *to)
{
    if (from->total > PEER_SNAPSHOT_MAX)
        return "the snapshot is too long";
    if (from->data.len > PEER_CHUNK_BYTES)
        return "a chunk is too long";
    if (from->offset > from->total || from->data.len > from->total - from->offset)
        return "a chunk beyond its snapshot";
    if (from->data.len == 0 && from->total > 0)
        return "a chunk without bytes";
    if (from->offset > 0 && from->head)
        return "a second head of a snapshot";
    to->transfer = from->transfer;
    to->offset = from->offset;
    to->total = from->total;
    to->data = from->data.data;
    to->size = from->data.len;
    return from->offset == 0 ? take_chunk_head(arena, from->head, to) : NULL;
}

static const char *take_status(const Pb__Status *from, struct peer_status *to)
{
    if (from->node == 0)
        return "the status of nobody";
    if (from->generation >= RAFT_NUMBER_MAX || from->incarnation >= RAFT_NUMBER_MAX ||
        from->term >= RAFT_NUMBER_MAX || from->lease_epoch >= RAFT_NUMBER_MAX ||
        from->commit >= RAFT_NUMBER_MAX || from->number >= RAFT_NUMBER_MAX ||
        from->digest_index >= RAFT_NUMBER_MAX || from->disk_hangs_ms > PEER_HANGS_MS_MAX ||
        from->commit_hangs_ms > PEER_HANGS_MS_MAX)
        return "a status with a number out of range";
    if (from->n_echo_nodes != from->n_echo_numbers || from->n_echo_nodes > RAFT_MEMBERS_MAX)
        return "a status with echoes that do not go together";
    *to = (struct peer_status){.node = from->node,
                               .cluster = from->cluster,
                               .generation = from->generation,
                               .incarnation = from->incarnation,
                               .term = from->term,
                               .leader = from->leader,
                               .is_leader = from->is_leader != 0,
                               .is_working = from->is_working != 0,
                               .lease_epoch = from->lease_epoch,
                               .commit = from->commit,
                               .digest_index = from->digest_index,
                               .digest = from->digest,
                               .founding = from->founding,
                               .number = from->number,
                               .disk_hangs_ms = from->disk_hangs_ms,
                               .commit_hangs_ms = from->commit_hangs_ms,
                               .echo_count = (uint8_t)from->n_echo_nodes};
    for (size_t i = 0; i < from->n_echo_nodes; i++) {
        to->echoes[i].node = from->echo_nodes[i];
        to->echoes[i].number = from->echo_numbers[i];
    }
    return NULL;
}

/* What the bytes say is for client_frame_unpack() to find out, where they are acted upon. */
static const char *take_forwarding(const Pb__Forwarding *from, struct peer_forwarding *to)
{
    if (from->incarnation >= RAFT_NUMBER_MAX)
        return "a forwarded request with a number out of range";
    if (from->data.len == 0)
        return "a forwarded request that says nothing";
    *to = (struct peer_forwarding){.number = from->number,
                                   .incarnation = from->incarnation,
                                   .data = from->data.data,
                                   .size = from->data.len};
    return NULL;
}

static const char *take_frame(struct frame_arena *arena, const Pb__Frame *from, struct peer_frame *to)
{
    if (from->what_case != PB__FRAME__WHAT__NOT_SET && !from->hello) /* the oneof is one pointer */
        return "a frame without its body";
    switch (from->what_case) {
    case PB__FRAME__WHAT_HELLO:
        to->kind = PEER_HELLO;
        return take_hello(from->hello, &to->hello);
    case PB__FRAME__WHAT_WELCOME:
        to->kind = PEER_WELCOME;
        return take_hello(from->welcome, &to->hello);
    case PB__FRAME__WHAT_REFUSAL:
        to->kind = PEER_REFUSAL;
        return take_refusal(from->refusal, to);
    case PB__FRAME__WHAT_MESSAGE:
        to->kind = PEER_MESSAGE;
        return take_message(arena, from->message, &to->message);
    case PB__FRAME__WHAT_CHUNK:
        to->kind = PEER_CHUNK;
        return take_chunk(arena, from->chunk, &to->chunk);
    case PB__FRAME__WHAT_STATUS:
        to->kind = PEER_STATUS;
        return take_status(from->status, &to->status);
    case PB__FRAME__WHAT_FORWARDING:
        to->kind = PEER_FORWARDING;
        return take_forwarding(from->forwarding, &to->forwarding);
    case PB__FRAME__WHAT_ANSWER:
        to->kind = PEER_ANSWER;
        return take_forwarding(from->answer, &to->forwarding);
    case PB__FRAME__WHAT_SILENCE:
        to->kind = PEER_SILENCE;
        return take_forwarding(from->silence, &to->forwarding);
    case PB__FRAME__WHAT_PROOF:
        to->kind = PEER_PROOF;
        if (from->proof->proof.len != PEER_PROOF_BYTES)
            return "a proof of the wrong length";
        memcpy(to->proof, from->proof->proof.data, PEER_PROOF_BYTES);
        return NULL;
    default:
        return from->base.n_unknown_fields > 0 ? unknown : "a frame that says nothing";
    }
}

/* What protobuf-c makes of these bytes; it tells no reason, so the arena says whether it was the limit. */
static const char *unpack(struct frame_arena *arena, const uint8_t *bytes, size_t size, Pb__Frame **ret_frame)
{
    ProtobufCAllocator allocator = frame_arena_allocator(arena);

    *ret_frame = pb__frame__unpack(&allocator, size, bytes);
    if (*ret_frame)
        return NULL;
    return arena->is_exhausted ? too_many_parts : "bytes that are not a frame";
}

enum gavel_status peer_frame_decode(const uint8_t *bytes, size_t size, struct peer_frame *ret_frame,
                                    const char **ret_reason)
{
    struct peer_frame frame = {.kind = PEER_UNKNOWN};
    struct frame_arena arena;
    const char *reason;
    Pb__Frame *from;

    if (size > PEER_FRAME_MAX) {
        *ret_reason = "a frame that is too long";
        return GAVEL_ERR_INVALID;
    }
    frame_arena_init(&arena, MEMORY_OF(size));
    reason = unpack(&arena, bytes, size, &from);
    if (!reason)
        reason = take_frame(&arena, from, &frame);
    if (reason == unknown) {
        frame_arena_done(&arena);
        *ret_frame = (struct peer_frame){.kind = PEER_UNKNOWN};
        return GAVEL_OK;
    }
    if (reason) {
        frame_arena_done(&arena);
        *ret_reason = reason;
        return reason == no_memory ? GAVEL_ERR_NO_MEMORY : GAVEL_ERR_INVALID;
    }
    frame.memory = frame_arena_hand_over(&arena);
    *ret_frame = frame;
    return GAVEL_OK;
}

void peer_frame_done(struct peer_frame *frame)
{
    frame_arena_block_free(frame->memory);
    frame->memory = NULL;
}
