/* SPDX-License-Identifier: Apache-2.0 */

/* The largest answers, as large as names can make them: each must fit into a frame between nodes, for one
 * that does not would never arrive. */
#include "frontend_fixture.h"

#include "wire/peer.h"

#define NAME_BYTES 255
#define BATCH 256 /* operations of one request: with all that is in them below what a command may have */
#define GROUPS 1001
/* What the tests leave empty of one group: the successor, the successor that is wished, the holder before,
 * the process (a boot id and numbers); and numbers that are as long as they can be. */
#define GROUP_REST (3 * (NAME_BYTES + 4) + 128 + 200)
/* And of one candidate: only those with a session have metadata. */
#define CANDIDATE_REST (TABLE_METADATA_BYTES_MAX + 4 + 128 + 100)

struct room {
    char names[GROUPS][NAME_BYTES + 1];
    char name[NAME_BYTES + 1];
    char value[1025];
};

/* Names of full length, which differ in their first bytes. */
static struct room *make_room(void)
{
    struct room *room = calloc(1, sizeof *room);

    assert_non_null(room);
    memset(room->names, 'n', sizeof room->names);
    for (size_t i = 0; i < GROUPS; i++) {
        char number[8];

        (void)snprintf(number, sizeof number, "%06zu", i);
        memcpy(room->names[i], number, 6);
        room->names[i][NAME_BYTES] = '\0';
    }
    memset(room->name, 'h', NAME_BYTES);
    memset(room->value, 'v', sizeof room->value - 1);
    return room;
}

static void all_good(const Gavel__Reply *reply)
{
    assert_string_equal(reply->message, "");
    for (size_t i = 0; i < reply->n_results; i++)
        assert_int_equal(reply->results[i]->status, GAVEL_OK);
}

static size_t packed(const struct fixture *f)
{
    return gavel__client_frame__get_packed_size(f->replies[f->reply_count - 1]);
}

static const Gavel__Answer *ask(struct fixture *f, Gavel__Ask__Kind kind, char *group)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask question;

    gavel__ask__init(&question);
    question.tag = ++f->tags;
    question.kind = kind;
    question.group = group;
    question.limit = UINT32_MAX;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &question;
    take_frame(f, f->tags, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->what_case, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->status, GAVEL_OK);
    return f->replies[f->reply_count - 1]->answer;
}

static void claim_all(struct fixture *f, struct room *room, size_t from, size_t count, uint64_t version)
{
    Gavel__Op *ops[TABLE_OPS_MAX];

    for (size_t i = 0; i < count; i++) {
        ops[i] = op_claim(f, room->names[from + i], room->name, 1, version);
        ops[i]->claim->address = room->name;
    }
    (void)request_all(f, 0, 0, count, ops);
}

static void test_a_page_of_groups_fits(void **state)
{
    struct fixture *f = *state;
    struct room *room = make_room();
    const Gavel__Answer *answer;

    for (size_t i = 0; i < GROUPS; i += BATCH) {
        claim_all(f, room, i, GROUPS - i < BATCH ? GROUPS - i : BATCH, 0);
        all_good(last_reply(f));
    }
    answer = ask(f, GAVEL__ASK__KIND__GROUPS, room->names[0]);
    assert_int_equal(answer->n_groups, GROUPS - 1); /* the most there can be */
    assert_true(answer->has_more);
    assert_true(packed(f) > answer->n_groups * 3 * NAME_BYTES);
    assert_true(packed(f) + answer->n_groups * GROUP_REST <= PEER_FORWARDING_MAX);
    free(room);
}

static void test_a_reply_that_shows_a_group_for_each_operation_fits(void **state)
{
    struct fixture *f = *state;
    struct room *room = make_room();

    claim_all(f, room, 0, BATCH, 0);
    all_good(last_reply(f));
    claim_all(f, room, 0, BATCH, 99); /* another version: each is refused, in words */
    assert_int_equal(last_reply(f)->n_results, BATCH);
    assert_true(last_reply(f)->results[0]->status != GAVEL_OK);
    assert_true(TABLE_OPS_MAX / BATCH * packed(f) + TABLE_OPS_MAX * GROUP_REST <= PEER_FORWARDING_MAX);
    free(room);
}

static void test_all_candidates_of_a_group_fit(void **state)
{
    struct fixture *f = *state;
    struct room *room = make_room();
    const Gavel__Answer *answer;

    for (size_t i = 0; i < GROUPS - 1; i += BATCH / 2) {
        Gavel__Op *ops[BATCH / 2];
        size_t count = GROUPS - 1 - i < BATCH / 2 ? GROUPS - 1 - i : BATCH / 2;

        for (size_t j = 0; j < count; j++) {
            ops[j] = op_register(f, room->name, room->names[i + j], i + j + 1, 1);
            ops[j]->register_candidate->address = room->name;
        }
        all_good(request_all(f, 0, 0, count, ops));
    }
    answer = ask(f, GAVEL__ASK__KIND__CANDIDATES, room->name);
    assert_int_equal(answer->n_groups, 1);
    assert_int_equal(answer->groups[0]->n_candidates, GROUPS - 1);
    assert_true(packed(f) / (GROUPS - 1) > 2 * NAME_BYTES);
    assert_true((packed(f) / (GROUPS - 1) + 1 + CANDIDATE_REST) * TABLE_CANDIDATES_MAX + GROUP_REST <=
                PEER_FORWARDING_MAX);
    free(room);
}

static void test_a_page_of_notes_fits(void **state)
{
    struct fixture *f = *state;
    struct room *room = make_room();
    const Gavel__Answer *answer;

    for (size_t i = 0; i < GROUPS; i += BATCH) {
        Gavel__Op *ops[BATCH];
        size_t count = GROUPS - i < BATCH ? GROUPS - i : BATCH;

        for (size_t j = 0; j < count; j++)
            ops[j] = op_put(f, room->name, room->names[i + j], room->value);
        all_good(request_all(f, 0, 0, count, ops));
    }
    answer = ask(f, GAVEL__ASK__KIND__NOTES, room->name);
    assert_int_equal(answer->n_notes, GROUPS - 1);
    assert_true(packed(f) > answer->n_notes * (1024 + 2 * NAME_BYTES)); /* most keys and, nearly, bytes */
    assert_true(packed(f) + (64 << 10) + answer->n_notes * 40 <= PEER_FORWARDING_MAX);
    free(room);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_page_of_groups_fits),
        TEST(test_a_reply_that_shows_a_group_for_each_operation_fits),
        TEST(test_all_candidates_of_a_group_fit),
        TEST(test_a_page_of_notes_fits),
    };

    return cmocka_run_group_tests_name("session frontend size", tests, NULL, NULL);
}
