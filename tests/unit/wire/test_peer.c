/* SPDX-License-Identifier: Apache-2.0 */

/* Frames between nodes: what goes in comes out, and nothing that is not ours gets in. */
#include "samples.h"

#include "peer.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct peer_frame decode(const uint8_t *bytes, size_t size)
{
    struct peer_frame frame;
    const char *reason = "nothing";

    if (peer_frame_decode(bytes, size, &frame, &reason) != GAVEL_OK)
        fail_msg("refused: %s", reason);
    return frame;
}

static void assert_refused(const uint8_t *bytes, size_t size, const char *expected)
{
    struct peer_frame frame;
    const char *reason = "nothing";

    if (peer_frame_decode(bytes, size, &frame, &reason) == GAVEL_OK) {
        peer_frame_done(&frame);
        fail_msg("not refused: %s", expected);
    }
    assert_string_equal(reason, expected);
}

static void assert_same_entries(const struct raft_append *a, const struct raft_append *b)
{
    assert_int_equal(a->entry_count, b->entry_count);
    for (uint32_t i = 0; i < a->entry_count; i++) {
        assert_int_equal(a->entries[i].term, b->entries[i].term);
        assert_int_equal(a->entries[i].kind, b->entries[i].kind);
        assert_int_equal(a->entries[i].size, b->entries[i].size);
        if (a->entries[i].size > 0)
            assert_memory_equal(a->entries[i].data, b->entries[i].data, a->entries[i].size);
    }
}

/* The samples are zeroed before they are filled in, so that what is padding is the same. */
static void assert_same_message(struct raft_message a, struct raft_message b)
{
    if (a.kind == RAFT_MSG_APPEND) {
        assert_same_entries(&a.append, &b.append);
        a.append.entries = b.append.entries = NULL;
    }
    assert_memory_equal(&a, &b, offsetof(struct raft_message, append));
    switch (a.kind) {
    case RAFT_MSG_APPEND:
        assert_memory_equal(&a.append, &b.append, sizeof a.append);
        break;
    case RAFT_MSG_APPEND_REPLY:
        assert_memory_equal(&a.append_reply, &b.append_reply, sizeof a.append_reply);
        break;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        assert_memory_equal(&a.vote, &b.vote, sizeof a.vote);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        assert_memory_equal(&a.vote_reply, &b.vote_reply, sizeof a.vote_reply);
        break;
    case RAFT_MSG_SNAPSHOT:
        assert_memory_equal(&a.snapshot, &b.snapshot, sizeof a.snapshot);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_CERTIFICATE:
        assert_memory_equal(&a.certificate, &b.certificate, sizeof a.certificate);
        break;
    case RAFT_MSG_TAKE_OVER:
        break;
    }
}

static void assert_same_frame(const struct peer_frame *a, const struct peer_frame *b)
{
    assert_int_equal(a->kind, b->kind);
    switch (a->kind) {
    case PEER_HELLO:
    case PEER_WELCOME:
        assert_memory_equal(&a->hello, &b->hello, sizeof a->hello);
        break;
    case PEER_REFUSAL:
        assert_memory_equal(&a->hello, &b->hello, sizeof a->hello);
        assert_string_equal(a->text, b->text);
        break;
    case PEER_MESSAGE:
        assert_same_message(a->message, b->message);
        break;
    case PEER_CHUNK:
        assert_int_equal(a->chunk.transfer, b->chunk.transfer);
        assert_int_equal(a->chunk.offset, b->chunk.offset);
        assert_int_equal(a->chunk.total, b->chunk.total);
        assert_int_equal(a->chunk.size, b->chunk.size);
        if (a->chunk.size > 0)
            assert_memory_equal(a->chunk.data, b->chunk.data, a->chunk.size);
        if (a->chunk.offset == 0)
            assert_same_message(a->chunk.head, b->chunk.head);
        break;
    case PEER_STATUS:
        assert_memory_equal(&a->status, &b->status, sizeof a->status);
        break;
    case PEER_FORWARDING:
    case PEER_ANSWER:
    case PEER_SILENCE:
        assert_int_equal(a->forwarding.number, b->forwarding.number);
        assert_int_equal(a->forwarding.incarnation, b->forwarding.incarnation);
        assert_int_equal(a->forwarding.size, b->forwarding.size);
        if (a->forwarding.size > 0)
            assert_memory_equal(a->forwarding.data, b->forwarding.data, a->forwarding.size);
        break;
    case PEER_PROOF:
        assert_memory_equal(a->proof, b->proof, sizeof a->proof);
        break;
    case PEER_UNKNOWN:
        fail();
    }
}

static void test_every_kind_of_frame_comes_out_as_it_went_in(void **state)
{
    struct sample *sample = malloc(sizeof *sample);

    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        struct peer_frame frame;
        uint8_t *bytes;
        size_t size;

        sample_make(i, sample);
        assert_int_equal(peer_frame_encode(&sample->frame, &bytes, &size), GAVEL_OK);
        assert_int_equal(peer_frame_length(bytes), size - PEER_LENGTH_BYTES);
        frame = decode(bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
        assert_same_frame(&sample->frame, &frame);
        peer_frame_done(&frame);
        peer_frame_done(&frame); /* once more does no harm */
        free(bytes);
    }
    free(sample);
}

static void test_a_frame_that_is_cut_short_at_any_byte_is_refused(void **state)
{
    struct sample *sample = malloc(sizeof *sample);
    size_t refused = 0, tried = 0;

    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        uint8_t *bytes;
        size_t size;

        sample_make(i, sample);
        assert_int_equal(peer_frame_encode(&sample->frame, &bytes, &size), GAVEL_OK);
        for (size_t length = 0; length < size - PEER_LENGTH_BYTES; length++) {
            /* In memory of just that size, where a sanitizer sees the first byte beyond. */
            uint8_t *cut = malloc(length > 0 ? length : 1);
            struct peer_frame frame;
            const char *reason;

            memcpy(cut, bytes + PEER_LENGTH_BYTES, length);
            tried++;
            if (peer_frame_decode(cut, length, &frame, &reason) == GAVEL_OK)
                peer_frame_done(&frame);
            else
                refused++;
            free(cut);
        }
        free(bytes);
    }
    /* The length of the one part that a frame has is at its head, so that every cut is seen. */
    assert_int_equal(refused, tried);
    free(sample);
}

/* Appends a field of bytes to a message: the wire's own form, below 128 in number and length. */
static size_t add_field(uint8_t *bytes, size_t size, unsigned number, const void *data, size_t length)
{
    assert_true(number < 2048 && length < 128);
    bytes[size++] = (uint8_t)((number << 3 | 2) & 0x7f) | 0x80;
    bytes[size++] = (uint8_t)(number >> 4);
    bytes[size++] = (uint8_t)length;
    memcpy(bytes + size, data, length);
    return size + length;
}

static void test_fields_and_frames_of_a_newer_program_are_skipped(void **state)
{
    struct sample *sample = malloc(sizeof *sample);
    uint8_t *bytes, longer[512];
    size_t size;
    struct peer_frame frame;

    (void)state;
    sample_make(RAFT_MSG_APPEND_REPLY, sample);
    assert_int_equal(peer_frame_encode(&sample->frame, &bytes, &size), GAVEL_OK);
    size -= PEER_LENGTH_BYTES;
    memcpy(longer, bytes + PEER_LENGTH_BYTES, size);
    size = add_field(longer, size, 900, "something new", 13);
    frame = decode(longer, size);
    assert_same_frame(&sample->frame, &frame);
    peer_frame_done(&frame);
    free(bytes);

    size = add_field(longer, 0, 77, "a new kind of frame", 19);
    frame = decode(longer, size);
    assert_int_equal(frame.kind, PEER_UNKNOWN);
    peer_frame_done(&frame);
    free(sample);
}

static void pack_and_refuse(Pb__Frame *frame, const char *expected)
{
    size_t size = pb__frame__get_packed_size(frame);
    uint8_t *bytes = malloc(size);

    pb__frame__pack(frame, bytes);
    assert_refused(bytes, size, expected);
    free(bytes);
}

static void test_a_new_kind_of_message_of_raft_is_skipped(void **state)
{
    uint8_t inner[64], outer[128];
    size_t size = add_field(inner, 0, 99, "news", 4);
    struct peer_frame frame;

    (void)state;
    outer[0] = 4 << 3 | 2; /* Frame.message */
    outer[1] = (uint8_t)size;
    memcpy(outer + 2, inner, size);
    frame = decode(outer, size + 2);
    assert_int_equal(frame.kind, PEER_UNKNOWN);
    peer_frame_done(&frame);
}

static void test_what_no_node_of_ours_would_say_is_refused(void **state)
{
    Pb__Frame frame = PB__FRAME__INIT;
    Pb__Message message = PB__MESSAGE__INIT;
    Pb__Append append = PB__APPEND__INIT;
    Pb__Install install = PB__INSTALL__INIT;
    uint64_t terms[2] = {1, 1};
    uint32_t kinds[2] = {RAFT_ENTRY_DATA, RAFT_ENTRY_DATA}, sizes[2] = {1, 200};

    (void)state;
    assert_refused((const uint8_t *)"", 0, "a frame that says nothing");
    assert_refused((const uint8_t *)"\xff\xff\xff\xff", 4, "bytes that are not a frame");

    frame.what_case = PB__FRAME__WHAT_MESSAGE;
    frame.message = &message;
    pack_and_refuse(&frame, "a message that says nothing");
    message.what_case = PB__MESSAGE__WHAT_APPEND;
    message.append = &append;
    message.from = 1;
    pack_and_refuse(&frame, "a message to nobody");
    message.to = 2;
    pack_and_refuse(&frame, "a leader without a term");
    message.term = RAFT_NUMBER_MAX;
    pack_and_refuse(&frame, "a number is out of range");
    message.term = 1;
    append.n_entry_terms = append.n_entry_kinds = 2;
    append.entry_terms = terms;
    append.entry_kinds = kinds;
    pack_and_refuse(&frame, "entries of which a part is missing");
    append.n_entry_sizes = 2;
    append.entry_sizes = sizes;
    append.entry_data.data = (uint8_t *)terms;
    append.entry_data.len = 5;
    pack_and_refuse(&frame, "an entry without its bytes");
    sizes[1] = 1;
    pack_and_refuse(&frame, "bytes of no entry");
    kinds[0] = 9;
    pack_and_refuse(&frame, "an entry of an unknown kind");
    message.what_case = PB__MESSAGE__WHAT_SNAPSHOT;
    message.snapshot = &install;
    pack_and_refuse(&frame, "a snapshot in one piece");
}

static void test_greetings_chunks_and_states_that_cannot_be_are_refused(void **state)
{
    Pb__Frame frame = PB__FRAME__INIT;
    Pb__Chunk chunk = PB__CHUNK__INIT;
    Pb__Status status = PB__STATUS__INIT;
    uint8_t data[3] = {0};
    Pb__Hello hello;

    (void)state;
    pb__hello__init(&hello);
    frame.what_case = PB__FRAME__WHAT_HELLO;
    frame.hello = &hello;
    pack_and_refuse(&frame, "a greeting without proper names");
    hello.cluster_name = hello.name = (char *)(uintptr_t) "x";
    pack_and_refuse(&frame, "a greeting from nobody");
    hello.node = 1;
    pack_and_refuse(&frame, "a greeting without a version");
    hello.program = (char *)(uintptr_t) "line\nbreak";
    pack_and_refuse(&frame, "a greeting with text that is too long or not plain");

    frame.what_case = PB__FRAME__WHAT_CHUNK;
    frame.chunk = &chunk;
    chunk.total = PEER_SNAPSHOT_MAX + 1;
    pack_and_refuse(&frame, "the snapshot is too long");
    chunk.total = 10;
    pack_and_refuse(&frame, "a chunk without bytes");
    chunk.offset = 8;
    chunk.data.data = data;
    chunk.data.len = sizeof data;
    pack_and_refuse(&frame, "a chunk beyond its snapshot");
    chunk.offset = 0;
    pack_and_refuse(&frame, "a snapshot that begins without its head");

    frame.what_case = PB__FRAME__WHAT_STATUS;
    frame.status = &status;
    pack_and_refuse(&frame, "the status of nobody");
}

static void test_forwardings_that_cannot_be_are_refused(void **state)
{
    Pb__Frame frame = PB__FRAME__INIT;
    Pb__Forwarding forwarding = PB__FORWARDING__INIT;
    uint8_t data[1] = {0};

    (void)state;
    frame.forwarding = &forwarding;
    for (int i = 0; i < 2; i++) {
        frame.what_case = i == 0 ? PB__FRAME__WHAT_FORWARDING : PB__FRAME__WHAT_ANSWER;
        forwarding = (Pb__Forwarding)PB__FORWARDING__INIT;
        pack_and_refuse(&frame, "a forwarded request that says nothing");
        forwarding.data.data = data;
        forwarding.data.len = sizeof data;
        forwarding.incarnation = RAFT_NUMBER_MAX;
        pack_and_refuse(&frame, "a forwarded request with a number out of range");
    }
}

static void test_the_largest_forwarding_fits_into_a_frame(void **state)
{
    uint8_t *data = calloc(1, PEER_FRAME_MAX), *bytes = NULL;
    struct peer_frame frame = {.kind = PEER_ANSWER,
                               .forwarding = {.number = UINT64_MAX,
                                              .incarnation = RAFT_NUMBER_MAX - 1,
                                              .data = data,
                                              .size = PEER_FORWARDING_MAX}};
    size_t size = 0;

    (void)state;
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_OK);
    frame = decode(bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
    assert_int_equal(frame.forwarding.size, PEER_FORWARDING_MAX);
    peer_frame_done(&frame);
    free(bytes);
    frame = (struct peer_frame){.kind = PEER_ANSWER,
                                .forwarding = {.number = 1, .data = data, .size = PEER_FRAME_MAX}};
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_ERR_INVALID);
    free(data);
}

static void test_a_refusal_is_shown_without_what_would_upset_a_terminal(void **state)
{
    struct peer_frame refusal = {.kind = PEER_REFUSAL}, frame;
    uint8_t *bytes;
    size_t size;

    (void)state;
    strcpy(refusal.text, "go\033[2J away\n");
    assert_int_equal(peer_frame_encode(&refusal, &bytes, &size), GAVEL_OK);
    frame = decode(bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
    assert_string_equal(frame.text, "go?[2J away?");
    peer_frame_done(&frame);
    free(bytes);
}

static void test_a_frame_of_a_million_parts_is_refused(void **state)
{
    size_t size = 1 << 20;
    uint8_t *bytes = malloc(size);

    (void)state;
    /* Empty fields that nobody knows, two bytes each; protobuf-c would keep every one. */
    for (size_t i = 0; i < size; i += 2) {
        bytes[i] = 15 << 3 | 0;
        bytes[i + 1] = 0;
    }
    assert_refused(bytes, size, "a frame of too many parts");
    free(bytes);
}

static void test_a_frame_that_would_be_too_long_is_not_written(void **state)
{
    size_t count = 5;
    uint8_t *data = calloc(1, RAFT_ENTRY_BYTES_MAX);
    struct raft_entry entries[5];
    struct peer_frame frame = {.kind = PEER_MESSAGE,
                               .message = {.kind = RAFT_MSG_APPEND,
                                           .from = 1,
                                           .to = 2,
                                           .term = 1,
                                           .append = {.entries = entries, .entry_count = 5}}};
    uint8_t *bytes = NULL;
    size_t size = 0;

    (void)state;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct raft_entry){
            .term = 1, .kind = RAFT_ENTRY_DATA, .size = RAFT_ENTRY_BYTES_MAX, .data = data};
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_ERR_INVALID);
    frame.message.append.entry_count = 3;
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_OK);
    frame = decode(bytes + PEER_LENGTH_BYTES, size - PEER_LENGTH_BYTES);
    assert_int_equal(frame.message.append.entries[2].size, RAFT_ENTRY_BYTES_MAX);
    peer_frame_done(&frame);
    free(bytes);

    frame = (struct peer_frame){.kind = PEER_MESSAGE, .message = {.kind = RAFT_MSG_SNAPSHOT}};
    assert_int_equal(peer_frame_encode(&frame, &bytes, &size), GAVEL_ERR_INVALID);
    free(data);
}

static void test_names_of_nodes(void **state)
{
    char longest[PEER_NAME_MAX + 2];

    (void)state;
    assert_true(peer_name_is_good("n1"));
    assert_true(peer_name_is_good("Node_3.example-b"));
    assert_false(peer_name_is_good(""));
    assert_false(peer_name_is_good("-n1"));
    assert_false(peer_name_is_good(".n1"));
    assert_false(peer_name_is_good("n 1"));
    assert_false(peer_name_is_good("n/1"));
    assert_false(peer_name_is_good("n\xc3\xa9"));
    memset(longest, 'a', sizeof longest);
    longest[PEER_NAME_MAX] = '\0';
    assert_true(peer_name_is_good(longest));
    longest[PEER_NAME_MAX] = 'a';
    longest[PEER_NAME_MAX + 1] = '\0';
    assert_false(peer_name_is_good(longest));
}

static void test_an_obituary_comes_out_as_it_went_in_and_nothing_else_does(void **state)
{
    struct raft_certificate certificate = {.kind = RAFT_CERT_OBITUARY, .node = UINT64_MAX, .incarnation = 5},
                            read;
    uint8_t bytes[OBITUARY_BYTES + 1] = {0};
    uint64_t cluster, generation;

    (void)state;
    memset(certificate.mac, 0xa5, sizeof certificate.mac);
    assert_int_equal(obituary_encode(7, 8, &certificate, bytes), OBITUARY_BYTES);
    assert_true(obituary_decode(bytes, OBITUARY_BYTES, &cluster, &generation, &read));
    assert_int_equal(cluster, 7);
    assert_int_equal(generation, 8);
    assert_memory_equal(&read, &certificate, sizeof read);
    for (size_t size = 0; size < OBITUARY_BYTES; size++)
        assert_false(obituary_decode(bytes, size, &cluster, &generation, &read));
    assert_false(obituary_decode(bytes, OBITUARY_BYTES + 1, &cluster, &generation, &read));
    for (size_t i = 0; i < 8; i++) {
        bytes[i] ^= 1;
        assert_false(obituary_decode(bytes, OBITUARY_BYTES, &cluster, &generation, &read));
        bytes[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_frame_comes_out_as_it_went_in),
        cmocka_unit_test(test_a_frame_that_is_cut_short_at_any_byte_is_refused),
        cmocka_unit_test(test_fields_and_frames_of_a_newer_program_are_skipped),
        cmocka_unit_test(test_a_new_kind_of_message_of_raft_is_skipped),
        cmocka_unit_test(test_what_no_node_of_ours_would_say_is_refused),
        cmocka_unit_test(test_greetings_chunks_and_states_that_cannot_be_are_refused),
        cmocka_unit_test(test_forwardings_that_cannot_be_are_refused),
        cmocka_unit_test(test_the_largest_forwarding_fits_into_a_frame),
        cmocka_unit_test(test_a_refusal_is_shown_without_what_would_upset_a_terminal),
        cmocka_unit_test(test_a_frame_of_a_million_parts_is_refused),
        cmocka_unit_test(test_a_frame_that_would_be_too_long_is_not_written),
        cmocka_unit_test(test_names_of_nodes),
        cmocka_unit_test(test_an_obituary_comes_out_as_it_went_in_and_nothing_else_does),
    };

    return cmocka_run_group_tests_name("peer frames", tests, NULL, NULL);
}
