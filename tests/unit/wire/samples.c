/* SPDX-License-Identifier: Apache-2.0 */

#include "samples.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static const struct raft_config three = {
    .count = 3,
    .members = {{.id = 1, .is_voter = true, .priority = 9},
                {.id = 2, .is_voter = true},
                {.id = UINT64_MAX, .is_voter = true, .is_witness = true}},
};

static void make_hello(struct peer_hello *hello)
{
    *hello = (struct peer_hello){.version_min = 1,
                                 .version_max = 3,
                                 .cluster = UINT64_C(0xFEDCBA9876543210),
                                 .generation = 2,
                                 .node = 1,
                                 .to = 2,
                                 .incarnation = 77,
                                 .bootstrap = UINT64_C(0x8000000000000001)};
    strcpy(hello->cluster_name, "prod");
    strcpy(hello->name, "n-1.example");
    strcpy(hello->api, "[::1]:7500");
    strcpy(hello->program, "gaveld 0.4.0");
    strcpy(hello->address, "10.0.0.1:7400");
    hello->process = 99;
    hello->directory = 98;
    hello->bound_at = 5;
    hello->began_at = 7;
    hello->founding = UINT64_C(0x8877665544332211);
    hello->is_founded = true;
    hello->table_version = 2;
}

static void make_certificate(struct raft_certificate *certificate, enum raft_certificate_kind kind)
{
    *certificate = (struct raft_certificate){
        .kind = kind, .node = 1, .incarnation = 6, .term = 7, .lease_epoch = 3, .target = 2, .commit = 12};
    for (size_t i = 0; i < RAFT_MAC_BYTES; i++)
        certificate->mac[i] = (uint8_t)(i * 7);
}

static void make_append(struct sample *s, struct raft_append *append)
{
    s->entries[0] =
        (struct raft_entry){.term = 4, .kind = RAFT_ENTRY_DATA, .size = sizeof s->data, .data = s->data};
    s->entries[1] = (struct raft_entry){.term = 5, .kind = RAFT_ENTRY_NOOP};
    s->entries[2] = (struct raft_entry){.term = 5, .kind = RAFT_ENTRY_DATA};
    s->entries[3] = (struct raft_entry){.term = 7, .kind = RAFT_ENTRY_CONFIG, .data = s->config};
    s->entries[3].size = (uint32_t)raft_config_encode(&three, s->config);
    *append = (struct raft_append){.prev_index = 10,
                                   .prev_term = 4,
                                   .commit = RAFT_NUMBER_MAX - 1,
                                   .lease_epoch = 2,
                                   .round = 123456789012345,
                                   .entries = s->entries,
                                   .entry_count = 4,
                                   .successor_count = 2,
                                   .successors = {2, UINT64_MAX}};
}

static void make_message(struct sample *s, struct raft_message *m, enum raft_message_kind kind)
{
    *m = (struct raft_message){
        .kind = kind, .from = 1, .to = 2, .cluster = 77, .generation = 1, .incarnation = 6, .term = 7};
    m->directory = 98;
    m->bound_at = 5;
    m->began_at = 7;
    m->start = 97;
    m->founding = UINT64_C(0x1122334455667788);
    m->is_founded = true;
    switch (kind) {
    case RAFT_MSG_APPEND:
        make_append(s, &m->append);
        break;
    case RAFT_MSG_APPEND_REPLY:
        m->append_reply = (struct raft_append_reply){.is_success = true,
                                                     .match = 14,
                                                     .prev_index = 10,
                                                     .conflict_term = 3,
                                                     .conflict_index = 4,
                                                     .round = 5,
                                                     .lease_epoch = 2,
                                                     .promise = 150 * NS_PER_MS,
                                                     .seen_term = 9,
                                                     .refused = 10,
                                                     .refused_directory = 11};
        break;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        m->vote = (struct raft_vote){.term = kind == RAFT_MSG_VOTE ? 7 : 8,
                                     .round = 3,
                                     .last_index = 14,
                                     .last_term = 6,
                                     .priority = 255};
        make_certificate(&m->vote.certificate, RAFT_CERT_OBITUARY);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        m->vote_reply = (struct raft_vote_reply){
            .term = 7, .round = 3, .reason = RAFT_VOTED, .voted_for = 9, .wait = 42 * NS_PER_MS};
        break;
    case RAFT_MSG_SNAPSHOT:
        m->snapshot = (struct raft_install){
            .index = 20, .index_term = 6, .config = three, .config_index = 20, .lease_epoch = 1, .round = 8};
        break;
    case RAFT_MSG_TIMEOUT_NOW:
        make_certificate(&m->certificate, RAFT_CERT_FORCE);
        break;
    case RAFT_MSG_CERTIFICATE:
        make_certificate(&m->certificate, RAFT_CERT_RELEASE);
        break;
    case RAFT_MSG_TAKE_OVER:
        break;
    }
}

static void make_chunk(struct sample *s, uint64_t offset)
{
    struct peer_chunk *chunk = &s->frame.chunk;

    s->frame.kind = PEER_CHUNK;
    *chunk = (struct peer_chunk){.transfer = 5,
                                 .offset = offset,
                                 .total = 2 * sizeof s->data,
                                 .data = s->data,
                                 .size = sizeof s->data};
    if (offset > 0)
        return;
    make_message(s, &chunk->head, RAFT_MSG_SNAPSHOT);
    chunk->head.snapshot.size = chunk->total;
}

static void make_status(struct sample *s)
{
    s->frame.kind = PEER_STATUS;
    s->frame.status = (struct peer_status){.node = 1,
                                           .disk_hangs_ms = 1234,
                                           .commit_hangs_ms = PEER_HANGS_MS_MAX,
                                           .cluster = 77,
                                           .generation = 1,
                                           .incarnation = 6,
                                           .term = 7,
                                           .leader = 2,
                                           .is_leader = true,
                                           .is_working = true,
                                           .lease_epoch = 3,
                                           .commit = 12,
                                           .founding = UINT64_C(0x1122334455667788)};
}

/* Those that are no plain message of Raft. */
static void make_other(struct sample *s, size_t which)
{
    static const char *const names[] = {"hello",        "welcome",    "refusal",    "refusal-hello",
                                        "chunk-first",  "chunk-next", "chunk-none", "status",
                                        "heartbeat",    "vote-plain", "forwarding", "answer",
                                        "hello-proven", "proof",      "silence"};

    (void)snprintf(s->name, sizeof s->name, "%s", names[which]);
    switch (which) {
    case 0:
    case 1:
        s->frame.kind = which == 0 ? PEER_HELLO : PEER_WELCOME;
        make_hello(&s->frame.hello);
        break;
    case 2:
    case 3:
        s->frame.kind = PEER_REFUSAL;
        strcpy(s->frame.text, "a belongs to cluster \"x\", b to cluster \"y\"");
        if (which == 3)
            make_hello(&s->frame.hello);
        break;
    case 4:
        make_chunk(s, 0);
        break;
    case 5:
        make_chunk(s, sizeof s->data);
        break;
    case 6: /* of an empty snapshot */
        make_chunk(s, 0);
        s->frame.chunk.total = s->frame.chunk.head.snapshot.size = s->frame.chunk.size = 0;
        s->frame.chunk.data = NULL;
        break;
    case 7:
        make_status(s);
        break;
    case 8:
        make_message(s, &s->frame.message, RAFT_MSG_APPEND);
        s->frame.message.append.entries = NULL;
        s->frame.message.append.entry_count = 0;
        break;
    case 9:
        make_message(s, &s->frame.message, RAFT_MSG_VOTE);
        s->frame.message.vote.certificate = (struct raft_certificate){0};
        break;
    case 12:
        s->frame.kind = PEER_WELCOME;
        make_hello(&s->frame.hello);
        s->frame.hello.config_index = 12;
        s->frame.hello.has_nonce = s->frame.hello.has_proof = s->frame.hello.has_generation_seal = true;
        memset(s->frame.hello.nonce, 1, PEER_NONCE_BYTES);
        memset(s->frame.hello.proof, 2, PEER_PROOF_BYTES);
        memset(s->frame.hello.generation_seal, 3, PEER_PROOF_BYTES);
        break;
    case 13:
        s->frame.kind = PEER_PROOF;
        memset(s->frame.proof, 4, PEER_PROOF_BYTES);
        break;
    default:
        s->frame.kind = which == 10 ? PEER_FORWARDING : which == 14 ? PEER_SILENCE : PEER_ANSWER;
        s->frame.forwarding = (struct peer_forwarding){
            .number = UINT64_MAX, .incarnation = 6, .data = s->data, .size = sizeof s->data};
        break;
    }
}

void sample_make(size_t which, struct sample *s)
{
    ASSERT(which < SAMPLE_COUNT);
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < sizeof s->data; i++)
        s->data[i] = (uint8_t)(i * 13 + 1);
    s->frame.kind = PEER_MESSAGE;
    /* A snapshot is never a message by itself; its place is taken by a heartbeat. */
    if (which == RAFT_MSG_SNAPSHOT) {
        make_other(s, 8);
    } else if (which < RAFT_MESSAGE_KIND_COUNT) {
        (void)snprintf(s->name, sizeof s->name, "%s", raft_message_name((enum raft_message_kind)which));
        make_message(s, &s->frame.message, (enum raft_message_kind)which);
    } else {
        make_other(s, which - RAFT_MESSAGE_KIND_COUNT);
    }
}
