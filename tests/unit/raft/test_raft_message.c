/* SPDX-License-Identifier: Apache-2.0 */

/* Messages: the sound ones pass, and each thing that can be wrong with one is found and named. */
#include "core/raft/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A sound message of any kind, and what it points to. */
struct fixture {
    struct raft_message message;
    struct raft_entry entries[4];
    uint8_t config[RAFT_CONFIG_BYTES_MAX];
};

static const struct raft_config three = {
    .count = 3,
    .members = {{.id = 1, .is_voter = true}, {.id = 2, .is_voter = true}, {.id = 3, .is_voter = true}},
};

static void fill_append(struct fixture *f)
{
    f->entries[0] =
        (struct raft_entry){.term = 4, .kind = RAFT_ENTRY_DATA, .size = 3, .data = (const uint8_t *)"abc"};
    f->entries[1] = (struct raft_entry){.term = 5, .kind = RAFT_ENTRY_NOOP};
    f->entries[2] = (struct raft_entry){.term = 5, .kind = RAFT_ENTRY_DATA};
    f->entries[3] = (struct raft_entry){.term = 7, .kind = RAFT_ENTRY_CONFIG, .data = f->config};
    f->entries[3].size = (uint32_t)raft_config_encode(&three, f->config);
    f->message.append = (struct raft_append){
        .prev_index = 10,
        .prev_term = 4,
        .commit = 9,
        .lease_epoch = 2,
        .round = 123456789,
        .entries = f->entries,
        .entry_count = 4,
        .successor_count = 2,
        .successors = {2, 3},
    };
}

static void fill_certificate(struct raft_certificate *certificate, enum raft_certificate_kind kind)
{
    *certificate = (struct raft_certificate){
        .kind = kind, .node = 1, .incarnation = 6, .term = 7, .lease_epoch = 3, .target = 2, .commit = 12};
}

static void sound(struct fixture *f, enum raft_message_kind kind)
{
    struct raft_message *m = &f->message;

    *m = (struct raft_message){
        .kind = kind, .from = 1, .to = 2, .cluster = 77, .generation = 1, .incarnation = 6, .term = 7};
    switch (kind) {
    case RAFT_MSG_APPEND:
        fill_append(f);
        break;
    case RAFT_MSG_APPEND_REPLY:
        m->append_reply = (struct raft_append_reply){.is_success = true,
                                                     .match = 14,
                                                     .prev_index = 10,
                                                     .round = 5,
                                                     .lease_epoch = 2,
                                                     .promise = 150 * NS_PER_MS};
        break;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        m->vote = (struct raft_vote){
            .term = kind == RAFT_MSG_VOTE ? 7 : 8, .round = 3, .last_index = 14, .last_term = 6};
        fill_certificate(&m->vote.certificate, RAFT_CERT_OBITUARY);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        m->vote_reply = (struct raft_vote_reply){.term = 7, .round = 3, .reason = RAFT_GRANTED};
        break;
    case RAFT_MSG_SNAPSHOT:
        m->snapshot = (struct raft_install){.index = 20,
                                            .index_term = 6,
                                            .config = three,
                                            .config_index = 20,
                                            .data = (const uint8_t *)"s",
                                            .size = 1};
        break;
    case RAFT_MSG_TIMEOUT_NOW:
        fill_certificate(&m->certificate, RAFT_CERT_FORCE);
        break;
    case RAFT_MSG_CERTIFICATE:
        fill_certificate(&m->certificate, RAFT_CERT_RELEASE);
        break;
    case RAFT_MSG_TAKE_OVER:
        break;
    }
}

static void assert_sound(const struct raft_message *message)
{
    const char *reason = "nothing";

    if (raft_message_check(message, &reason) != GAVEL_OK)
        fail_msg("a sound %s was refused: %s", raft_message_name(message->kind), reason);
    assert_string_equal(reason, "nothing");
}

static void assert_refused(const struct raft_message *message, const char *expected)
{
    const char *reason = "nothing";

    if (raft_message_check(message, &reason) != GAVEL_ERR_INVALID)
        fail_msg("not refused: %s", expected);
    assert_string_equal(reason, expected);
}

/* A sound message of that kind, with `change` made to it, is refused for that reason; or passes. */
#define REFUSED(kind, expected, change)                                                                      \
    do {                                                                                                     \
        struct fixture f;                                                                                    \
        struct raft_message *m = &f.message;                                                                 \
                                                                                                             \
        sound(&f, kind);                                                                                     \
        change;                                                                                              \
        assert_refused(m, expected);                                                                         \
    } while (0)

#define PASSES(kind, change)                                                                                 \
    do {                                                                                                     \
        struct fixture f;                                                                                    \
        struct raft_message *m = &f.message;                                                                 \
                                                                                                             \
        sound(&f, kind);                                                                                     \
        change;                                                                                              \
        assert_sound(m);                                                                                     \
    } while (0)

static void test_sound_messages_of_every_kind_pass(void **state)
{
    (void)state;
    for (int kind = 0; kind < RAFT_MESSAGE_KIND_COUNT; kind++)
        PASSES((enum raft_message_kind)kind, (void)m);
}

static void test_head_is_checked_for_every_kind(void **state)
{
    (void)state;
    for (int i = 0; i < RAFT_MESSAGE_KIND_COUNT; i++) {
        enum raft_message_kind kind = (enum raft_message_kind)i;

        REFUSED(kind, "a message to nobody", m->to = 0);
        REFUSED(kind, "a message to its sender", m->from = m->to);
        REFUSED(kind, "a number is out of range", m->term = RAFT_NUMBER_MAX);
        REFUSED(kind, "a number is out of range", m->incarnation = UINT64_MAX);
        REFUSED(kind, "a number is out of range", m->generation = RAFT_NUMBER_MAX);
        if (kind != RAFT_MSG_CERTIFICATE)
            REFUSED(kind, "a message from nobody", m->from = 0);
    }
    PASSES(RAFT_MSG_CERTIFICATE, m->from = 0);
    REFUSED(RAFT_MSG_APPEND, "a message of an unknown kind",
            m->kind = (enum raft_message_kind)RAFT_MESSAGE_KIND_COUNT);
    REFUSED(RAFT_MSG_APPEND, "a message of an unknown kind", m->kind = (enum raft_message_kind) - 1);
}

static void test_append_is_checked(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_APPEND;
    static const char *const no_pair = "index and term of the entry before do not belong together";
    static const char *const lease = "the lease epoch or the round is out of range";

    (void)state;
    REFUSED(kind, "a leader without a term", m->term = 0);
    REFUSED(kind, "an index is out of range", m->append.prev_index = RAFT_NUMBER_MAX);
    REFUSED(kind, "an index is out of range", m->append.commit = RAFT_NUMBER_MAX);
    REFUSED(kind, "the entry before is of a later term than the leader", m->append.prev_term = 8);
    REFUSED(kind, no_pair, m->append.prev_term = 0);
    REFUSED(kind, no_pair, m->append.prev_index = 0);
    PASSES(kind, m->append.prev_index = m->append.prev_term = 0);
    REFUSED(kind, lease, m->append.lease_epoch = RAFT_NUMBER_MAX);
    REFUSED(kind, lease, m->append.round = RAFT_NUMBER_MAX);
    REFUSED(kind, "too many successors", m->append.successor_count = RAFT_VOTERS_MAX + 1);
    REFUSED(kind, "nobody as a successor", m->append.successors[1] = 0);
    REFUSED(kind, "a successor twice", m->append.successors[1] = m->append.successors[0]);
    PASSES(kind, m->append.successor_count = 0);
    PASSES(kind, (m->append.entry_count = 0, m->append.entries = NULL));
}

static void test_entries_are_checked(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_APPEND;

    (void)state;
    REFUSED(kind, "entries are missing", m->append.entries = NULL);
    REFUSED(kind, "too many entries", m->append.entry_count = RAFT_APPEND_ENTRIES_MAX + 1);
    REFUSED(kind, "the terms of the entries fall", f.entries[0].term = 3); /* below the entry before */
    REFUSED(kind, "the terms of the entries fall", f.entries[2].term = 4);
    REFUSED(kind, "the terms of the entries fall",
            (m->append.prev_index = m->append.prev_term = 0, f.entries[0].term = 0));
    REFUSED(kind, "an entry is of a later term than its leader", f.entries[3].term = 8);
    REFUSED(kind, "an entry of an unknown kind",
            f.entries[2].kind = (enum raft_entry_kind)RAFT_ENTRY_KIND_COUNT);
    REFUSED(kind, "an entry is too long", f.entries[0].size = RAFT_ENTRY_BYTES_MAX + 1);
    REFUSED(kind, "an entry without its bytes", f.entries[0].data = NULL);
    REFUSED(kind, "a no-op with bytes", (f.entries[1].size = 1, f.entries[1].data = f.config));
    REFUSED(kind, "a configuration cannot be read", f.entries[3].size -= 1);
    REFUSED(kind, "a configuration cannot be read", (f.entries[3].size = 0, f.entries[3].data = NULL));
}

static void test_configuration_that_could_decide_nothing_is_refused(void **state)
{
    struct raft_config learners = {.count = 1, .members = {{.id = 1}}};
    struct raft_config nobody = {0};

    (void)state;
    REFUSED(RAFT_MSG_APPEND, "no voter",
            f.entries[3].size = (uint32_t)raft_config_encode(&learners, f.config));
    REFUSED(RAFT_MSG_APPEND, "no voter", f.entries[3].size = (uint32_t)raft_config_encode(&nobody, f.config));
    REFUSED(RAFT_MSG_SNAPSHOT, "no voter", m->snapshot.config = nobody);
    REFUSED(RAFT_MSG_SNAPSHOT, "too many members", m->snapshot.config.count = 255);
}

static void test_flipped_bits_of_a_configuration_are_refused_or_sound(void **state)
{
    struct fixture f;
    size_t refused = 0;

    (void)state;
    sound(&f, RAFT_MSG_APPEND);
    for (size_t bit = 0; bit < f.entries[3].size * 8; bit++) {
        struct raft_config config;
        const char *reason;

        f.config[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (raft_message_check(&f.message, &reason) == GAVEL_OK) {
            assert_int_equal(raft_config_decode(f.config, f.entries[3].size, &config), GAVEL_OK);
            assert_int_equal(raft_config_check(&config, &reason), GAVEL_OK);
        } else {
            refused++;
        }
        f.config[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(refused > 20);
}

static void test_append_reply_is_checked(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_APPEND_REPLY;

    (void)state;
    REFUSED(kind, "an index is out of range", m->append_reply.match = RAFT_NUMBER_MAX);
    REFUSED(kind, "an index is out of range", m->append_reply.prev_index = RAFT_NUMBER_MAX);
    REFUSED(kind, "an index is out of range", m->append_reply.conflict_index = RAFT_NUMBER_MAX);
    REFUSED(kind, "a term is out of range", m->append_reply.conflict_term = RAFT_NUMBER_MAX);
    REFUSED(kind, "a term is out of range", m->append_reply.seen_term = RAFT_NUMBER_MAX);
    REFUSED(kind, "the lease epoch or the round is out of range",
            m->append_reply.lease_epoch = RAFT_NUMBER_MAX);
    REFUSED(kind, "the lease epoch or the round is out of range", m->append_reply.round = UINT64_MAX);
    REFUSED(kind, "the promise is out of range", m->append_reply.promise = -1);
    REFUSED(kind, "the promise is out of range", m->append_reply.promise = 3600 * NS_PER_S + 1);
    PASSES(kind, m->append_reply.promise = 3600 * NS_PER_S);
}

static void test_votes_are_checked(void **state)
{
    static const char *const no_pair = "index and term of the last entry do not belong together";

    (void)state;
    REFUSED(RAFT_MSG_VOTE, "a vote for another term than the candidate's", m->vote.term = 8);
    REFUSED(RAFT_MSG_VOTE, "the term to lead in is out of range", m->vote.term = m->term = 0);
    REFUSED(RAFT_MSG_PRE_VOTE, "the term to lead in is out of range", m->vote.term = RAFT_NUMBER_MAX);
    REFUSED(RAFT_MSG_PRE_VOTE, "a pre-vote for a term that has begun", m->vote.term = 7);
    PASSES(RAFT_MSG_PRE_VOTE, (m->term = 0, m->vote.term = 1, m->vote.last_index = m->vote.last_term = 0));
    for (int i = 0; i < 2; i++) {
        enum raft_message_kind kind = i ? RAFT_MSG_VOTE : RAFT_MSG_PRE_VOTE;

        REFUSED(kind, "the round is out of range", m->vote.round = RAFT_NUMBER_MAX);
        REFUSED(kind, "an index is out of range", m->vote.last_index = RAFT_NUMBER_MAX);
        REFUSED(kind, no_pair, m->vote.last_index = 0);
        REFUSED(kind, no_pair, m->vote.last_term = 0);
        REFUSED(kind, "the last entry is not older than the term to lead in",
                m->vote.last_term = m->vote.term);
        REFUSED(kind, "a certificate about nobody", m->vote.certificate.node = 0);
        PASSES(kind, memset(&m->vote.certificate, 0, sizeof m->vote.certificate));
    }
}

static void test_vote_replies_are_checked(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        enum raft_message_kind kind = i ? RAFT_MSG_VOTE_REPLY : RAFT_MSG_PRE_VOTE_REPLY;

        REFUSED(kind, "the term of the vote is out of range", m->vote_reply.term = 0);
        REFUSED(kind, "the term of the vote is out of range", m->vote_reply.term = RAFT_NUMBER_MAX);
        REFUSED(kind, "the round is out of range", m->vote_reply.round = RAFT_NUMBER_MAX);
        REFUSED(kind, "an unknown reason", m->vote_reply.reason = (enum raft_reason)RAFT_REASON_COUNT);
        REFUSED(kind, "a vote for nobody", m->vote_reply.reason = RAFT_VOTED);
        PASSES(kind, (m->vote_reply.reason = RAFT_VOTED, m->vote_reply.voted_for = 3));
        REFUSED(kind, "the wait is out of range", m->vote_reply.wait = -1);
        REFUSED(kind, "the wait is out of range", m->vote_reply.wait = NEVER);
        PASSES(kind, (m->vote_reply.reason = RAFT_TERM, m->vote_reply.term = 3));
    }
    REFUSED(RAFT_MSG_VOTE_REPLY, "a vote granted in another term than the voter's", m->vote_reply.term = 8);
    PASSES(RAFT_MSG_PRE_VOTE_REPLY, m->vote_reply.term = 8);
}

static void test_snapshot_is_checked(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_SNAPSHOT;
    static const char *const lease = "the lease epoch or the round is out of range";

    (void)state;
    REFUSED(kind, "a leader without a term", m->term = 0);
    REFUSED(kind, "the index of the snapshot is out of range", m->snapshot.index = 0);
    REFUSED(kind, "the index of the snapshot is out of range", m->snapshot.index = RAFT_NUMBER_MAX);
    REFUSED(kind, "the term of the snapshot is out of range", m->snapshot.index_term = 0);
    REFUSED(kind, "the term of the snapshot is out of range", m->snapshot.index_term = 8);
    REFUSED(kind, "the configuration is newer than the snapshot", m->snapshot.config_index = 21);
    REFUSED(kind, lease, m->snapshot.lease_epoch = RAFT_NUMBER_MAX);
    REFUSED(kind, lease, m->snapshot.round = RAFT_NUMBER_MAX);
    REFUSED(kind, "the snapshot is too long", m->snapshot.size = SIZE_MAX);
    REFUSED(kind, "a snapshot without its bytes", m->snapshot.data = NULL);
    PASSES(kind, (m->snapshot.data = NULL, m->snapshot.size = 0));
}

static void test_certificates_are_checked(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_CERTIFICATE;

    (void)state;
    REFUSED(kind, "a certificate is missing", m->certificate.kind = RAFT_CERT_NONE);
    REFUSED(kind, "a certificate of an unknown kind",
            m->certificate.kind = (enum raft_certificate_kind)(RAFT_CERT_FORCE + 1));
    REFUSED(kind, "a certificate about nobody", m->certificate.node = 0);
    REFUSED(kind, "a certificate's incarnation is out of range",
            m->certificate.incarnation = RAFT_NUMBER_MAX);
    REFUSED(kind, "a certificate's term is out of range", m->certificate.term = 0);
    REFUSED(kind, "a certificate's term is out of range", m->certificate.term = RAFT_NUMBER_MAX);
    REFUSED(kind, "a certificate's lease epoch is out of range",
            m->certificate.lease_epoch = RAFT_NUMBER_MAX);
    /* An obituary tells of a node and an incarnation, and of nothing else. */
    PASSES(kind, (m->certificate.kind = RAFT_CERT_OBITUARY, m->certificate.term = 0));
}

static void test_transfer_comes_with_the_senders_release_for_the_receiver(void **state)
{
    const enum raft_message_kind kind = RAFT_MSG_TIMEOUT_NOW;

    (void)state;
    REFUSED(kind, "a transfer without a release", m->certificate.kind = RAFT_CERT_NONE);
    REFUSED(kind, "a transfer without a release", m->certificate.kind = RAFT_CERT_OBITUARY);
    REFUSED(kind, "a transfer with the release of another", m->certificate.node = 3);
    REFUSED(kind, "a transfer with the release of another", m->certificate.term = 6);
    REFUSED(kind, "a forced transfer to another", m->certificate.target = 3);
    REFUSED(kind, "a certificate's commit index is out of range", m->certificate.commit = RAFT_NUMBER_MAX);
    PASSES(kind, (m->certificate.kind = RAFT_CERT_RELEASE, m->certificate.target = 0));
    REFUSED(RAFT_MSG_CERTIFICATE, "a forced transfer to nobody",
            (m->certificate.kind = RAFT_CERT_FORCE, m->certificate.target = 0));
    REFUSED(RAFT_MSG_CERTIFICATE, "a forced transfer to nobody",
            (m->certificate.kind = RAFT_CERT_FORCE, m->certificate.target = m->certificate.node));
}

static void test_names_are_stable(void **state)
{
    (void)state;
    assert_string_equal(raft_message_name(RAFT_MSG_APPEND), "append");
    assert_string_equal(raft_message_name(RAFT_MSG_TAKE_OVER), "take-over");
    assert_string_equal(raft_message_name((enum raft_message_kind)RAFT_MESSAGE_KIND_COUNT), "unknown");
    assert_string_equal(raft_reason_name(RAFT_GRANTED), "granted");
    assert_string_equal(raft_reason_name(RAFT_LEASE), "LEASE");
    assert_string_equal(raft_reason_name((enum raft_reason) - 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_messages_of_every_kind_pass),
        cmocka_unit_test(test_head_is_checked_for_every_kind),
        cmocka_unit_test(test_append_is_checked),
        cmocka_unit_test(test_entries_are_checked),
        cmocka_unit_test(test_configuration_that_could_decide_nothing_is_refused),
        cmocka_unit_test(test_flipped_bits_of_a_configuration_are_refused_or_sound),
        cmocka_unit_test(test_append_reply_is_checked),
        cmocka_unit_test(test_votes_are_checked),
        cmocka_unit_test(test_vote_replies_are_checked),
        cmocka_unit_test(test_snapshot_is_checked),
        cmocka_unit_test(test_certificates_are_checked),
        cmocka_unit_test(test_transfer_comes_with_the_senders_release_for_the_receiver),
        cmocka_unit_test(test_names_are_stable),
    };

    return cmocka_run_group_tests_name("raft message", tests, NULL, NULL);
}
