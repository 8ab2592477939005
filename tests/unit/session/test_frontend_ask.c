/* SPDX-License-Identifier: Apache-2.0 */

/* Questions: what is listed, in which pages, and what only the leader of the cluster knows. */
#include "frontend_fixture.h"

/* Asks the frontend; the answer is good until the test ends. */
static const Gavel__Answer *ask(struct fixture *f, const Gavel__Ask *question)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Ask copy = *question;

    copy.tag = ++f->tags;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &copy;
    take_frame(f, f->tags, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->what_case, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(f->replies[f->reply_count - 1]->answer->tag, copy.tag);
    return f->replies[f->reply_count - 1]->answer;
}

static Gavel__Ask about(Gavel__Ask__Kind kind, const char *group)
{
    Gavel__Ask question;

    gavel__ask__init(&question);
    question.kind = kind;
    question.group = (char *)(uintptr_t)group;
    return question;
}

static char *text(const char *string) { return (char *)(uintptr_t)string; }

static void test_a_group_is_shown_with_what_is_left_of_its_lease(void **state)
{
    struct fixture *f = *state;
    const Gavel__Ask question = about(GAVEL__ASK__KIND__GROUP, "g");
    const Gavel__Answer *answer = ask(f, &question);

    assert_int_equal(answer->status, GAVEL_OK);
    assert_int_equal(answer->n_groups, 0);
    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    run_until(f, f->now + MS(400));
    answer = ask(f, &question);
    assert_int_equal(answer->n_groups, 1);
    assert_int_equal(answer->revision, f->table.revision);
    assert_string_equal(answer->groups[0]->holder, "one");
    assert_int_equal(answer->groups[0]->remaining_ms, 602);
    assert_int_equal(answer->groups[0]->renewed_wall_ms, 1);
    assert_false(answer->groups[0]->is_expired);
    run_until(f, f->now + MS(602));
    answer = ask(f, &question);
    assert_int_equal(answer->groups[0]->remaining_ms, 0);
    assert_true(answer->groups[0]->is_expired);
    assert_true(answer->groups[0]->is_held);
    must(f, 0, 0, op_release(f, "g", "one", 1));
    answer = ask(f, &question);
    assert_true(answer->groups[0]->is_expired);
    assert_false(answer->groups[0]->is_held);
}

static void test_a_session_mandate_is_never_expired(void **state)
{
    struct fixture *f = *state;
    const Gavel__Ask question = about(GAVEL__ASK__KIND__GROUP, "g");

    must(f, 7, 1, op_open(f, 7, 1000));
    must(f, 7, 2, op_campaign(f, "g", "one"));
    assert_int_equal(ask(f, &question)->groups[0]->remaining_ms, 1002);
    run_until(f, f->now + MS(2000));
    assert_int_equal(ask(f, &question)->groups[0]->remaining_ms, 0);
    assert_false(ask(f, &question)->groups[0]->is_expired); /* its end is not applied yet */
}

static void test_other_nodes_do_not_know_what_is_left(void **state)
{
    struct fixture *f = *state;
    const Gavel__Ask question = about(GAVEL__ASK__KIND__CANDIDATES, "g");
    Gavel__Answer answer;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    must(f, 0, 0, op_register(f, "g", "one", 1, 1));
    run_until(f, f->now + MS(5000));
    assert_int_equal(frontend_answer(NULL, &f->table, f->now, &question, &answer), GAVEL_OK);
    assert_int_equal(answer.groups[0]->remaining_ms, -1);
    assert_false(answer.groups[0]->is_expired);
    assert_int_equal(answer.groups[0]->n_candidates, 1);
    assert_int_equal(answer.groups[0]->candidates[0]->age_ms, -1);
    frontend_answer_done(&answer);
}

static void test_candidates_are_listed_unless_they_are_silent(void **state)
{
    struct fixture *f = *state;
    Gavel__Ask question = about(GAVEL__ASK__KIND__CANDIDATES, "g");
    const Gavel__Answer *answer;

    must(f, 7, 1, op_open(f, 7, 60000));
    must(f, 0, 0, op_register(f, "g", "silent", 11, 1));
    must(f, 7, 2, op_campaign(f, "g", "of-session"));
    run_until(f, f->now + MS(800));
    must(f, 0, 0, op_register(f, "g", "heard", 12, 9));
    run_until(f, f->now + MS(201));
    question.timeout_ms = 1000;
    answer = ask(f, &question);
    assert_int_equal(answer->groups[0]->n_candidates, 2);
    assert_string_equal(answer->groups[0]->candidates[0]->id, "of-session");
    assert_string_equal(answer->groups[0]->candidates[1]->id, "heard");
    assert_int_equal(answer->groups[0]->candidates[1]->age_ms, 201);
    assert_int_equal(answer->groups[0]->candidates[1]->beats, 9);
    assert_int_equal(answer->n_silent, 1);
    assert_true(answer->silent[0] != 0 && answer->silent[0] != 11); /* as it is listed to others */
    question.timeout_ms = 300;
    assert_int_equal(ask(f, &question)->n_silent, 0); /* for so long that it is old news */
    question.timeout_ms = 0;
    assert_int_equal(ask(f, &question)->groups[0]->n_candidates, 3);
}

static void test_a_group_whose_candidates_are_all_silent(void **state)
{
    struct fixture *f = *state;
    Gavel__Ask question = about(GAVEL__ASK__KIND__CANDIDATES, "g");
    const Gavel__Answer *answer;

    must(f, 0, 0, op_register(f, "g", "silent", 11, 1));
    run_until(f, f->now + MS(2000));
    question.timeout_ms = 1000;
    answer = ask(f, &question);
    assert_int_equal(answer->n_groups, 1);
    assert_int_equal(answer->groups[0]->n_candidates, 0);
    assert_int_equal(answer->n_silent, 1);
    assert_int_equal(ask(f, &(Gavel__Ask){.base = question.base,
                                          .kind = GAVEL__ASK__KIND__CANDIDATES,
                                          .group = text("nowhere"),
                                          .key = text(""),
                                          .prefix = text(""),
                                          .after = text("")})
                         ->n_groups,
                     0);
}

/* Collects a listing page by page; returns how many pages there were. */
static size_t list_groups(struct fixture *f, const char *prefix, uint32_t limit, char *names, size_t size)
{
    Gavel__Ask question = about(GAVEL__ASK__KIND__GROUPS, "");
    const Gavel__Answer *answer;
    size_t pages = 0;

    names[0] = '\0';
    question.prefix = text(prefix);
    question.limit = limit;
    do {
        answer = ask(f, &question);
        assert_int_equal(answer->status, GAVEL_OK);
        assert_true(answer->n_groups <= limit);
        for (size_t i = 0; i < answer->n_groups; i++)
            (void)snprintf(names + strlen(names), size - strlen(names), "%s ", answer->groups[i]->name);
        if (answer->n_groups > 0)
            question.after = answer->groups[answer->n_groups - 1]->name;
        pages++;
    } while (answer->has_more);
    return pages;
}

static void test_groups_are_listed_in_pages_by_prefix(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"b", "web/2", "a", "web/1", "web", "web/3", "wec"};
    char listed[256];

    assert_int_equal(list_groups(f, "", 2, listed, sizeof listed), 1);
    assert_string_equal(listed, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        must(f, 0, 0, op_claim(f, names[i], "one", 1, 0));
    assert_int_equal(list_groups(f, "", 2, listed, sizeof listed), 4);
    assert_string_equal(listed, "a b web web/1 web/2 web/3 wec ");
    assert_int_equal(list_groups(f, "web/", 3, listed, sizeof listed), 1);
    assert_string_equal(listed, "web/1 web/2 web/3 ");
    assert_int_equal(list_groups(f, "web", 1000, listed, sizeof listed), 1);
    assert_string_equal(listed, "web web/1 web/2 web/3 ");
    assert_int_equal(list_groups(f, "x", 3, listed, sizeof listed), 1);
    assert_string_equal(listed, "");
}

static void test_a_page_has_a_hundred_unless_it_is_told(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 120 };
    char names[MANY][8];
    Gavel__Op *ops[MANY];
    Gavel__Ask question = about(GAVEL__ASK__KIND__GROUPS, "");

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "g%zu", i);
        ops[i] = op_claim(f, names[i], "one", 1, 0);
    }
    assert_int_equal(request_all(f, 0, 0, MANY, ops)->status, GAVEL_OK);
    assert_int_equal(ask(f, &question)->n_groups, 100);
    assert_true(ask(f, &question)->has_more);
    question.limit = UINT32_MAX; /* is cut */
    assert_int_equal(ask(f, &question)->n_groups, MANY);
    assert_false(ask(f, &question)->has_more);
}

static void test_notes_are_found_and_listed(void **state)
{
    struct fixture *f = *state;
    Gavel__Ask one = about(GAVEL__ASK__KIND__NOTE, "g");
    Gavel__Ask all = about(GAVEL__ASK__KIND__NOTES, "g");
    const Gavel__Answer *answer;

    one.key = text("b/1");
    assert_int_equal(ask(f, &one)->n_notes, 0);
    assert_int_equal(ask(f, &all)->n_notes, 0);
    must(f, 0, 0, op_put(f, "g", "b/1", "x"));
    must(f, 0, 0, op_put(f, "g", "a", "y"));
    must(f, 0, 0, op_put(f, "g", "b/2", "z"));
    must(f, 0, 0, op_put(f, "h", "b/3", "other"));
    answer = ask(f, &one);
    assert_int_equal(answer->n_notes, 1);
    assert_memory_equal(answer->notes[0]->value.data, "x", 1);
    all.prefix = text("b/");
    answer = ask(f, &all);
    assert_int_equal(answer->n_notes, 2);
    assert_string_equal(answer->notes[1]->key, "b/2");
    all.after = text("b/1");
    all.limit = 1;
    answer = ask(f, &all);
    assert_int_equal(answer->n_notes, 1);
    assert_string_equal(answer->notes[0]->key, "b/2");
    assert_false(answer->has_more);
}

static void test_large_notes_come_in_more_pages(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 20 };
    char *value = malloc(TABLE_NOTE_BYTES_MAX + 1);
    char keys[MANY][8];
    Gavel__Ask question = about(GAVEL__ASK__KIND__NOTES, "g");
    const Gavel__Answer *answer;

    memset(value, 'x', TABLE_NOTE_BYTES_MAX);
    value[TABLE_NOTE_BYTES_MAX] = '\0';
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%02zu", i);
        must(f, 0, 0, op_put(f, "g", keys[i], value));
    }
    free(value);
    answer = ask(f, &question);
    assert_int_equal(answer->n_notes, 16);
    assert_true(answer->has_more);
    question.after = answer->notes[15]->key;
    answer = ask(f, &question);
    assert_int_equal(answer->n_notes, 4);
    assert_false(answer->has_more);
}

static void test_bad_questions_are_refused_in_words(void **state)
{
    struct fixture *f = *state;
    Gavel__Ask question = about(GAVEL__ASK__KIND__GROUP, "");
    const Gavel__Answer *answer = ask(f, &question);

    assert_int_equal(answer->status, GAVEL_ERR_INVALID);
    assert_string_equal(
        answer->message,
        "the group name is not valid: it has 1 to 255 bytes of UTF-8 without control characters");
    question = about(GAVEL__ASK__KIND__NOTE, "g");
    question.key = text("a\nb");
    assert_int_equal(ask(f, &question)->status, GAVEL_ERR_INVALID);
    question = about((Gavel__Ask__Kind)77, "g");
    assert_string_equal(ask(f, &question)->message,
                        "this kind of question is not known; is the client newer than the node?");
    question = about(GAVEL__ASK__KIND__CANDIDATES, "g");
    question.timeout_ms = -1;
    assert_int_equal(ask(f, &question)->status, GAVEL_ERR_INVALID);
}

static void test_a_leader_without_a_lease_answers_no_question(void **state)
{
    struct fixture *f = *state;
    const Gavel__Ask question = about(GAVEL__ASK__KIND__GROUP, "g");

    f->is_working = false;
    assert_int_equal(ask(f, &question)->status, GAVEL_ERR_NOT_LEADER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_group_is_shown_with_what_is_left_of_its_lease),
        TEST(test_a_session_mandate_is_never_expired),
        TEST(test_other_nodes_do_not_know_what_is_left),
        TEST(test_candidates_are_listed_unless_they_are_silent),
        TEST(test_a_group_whose_candidates_are_all_silent),
        TEST(test_groups_are_listed_in_pages_by_prefix),
        TEST(test_a_page_has_a_hundred_unless_it_is_told),
        TEST(test_notes_are_found_and_listed),
        TEST(test_large_notes_come_in_more_pages),
        TEST(test_bad_questions_are_refused_in_words),
        TEST(test_a_leader_without_a_lease_answers_no_question),
    };

    return cmocka_run_group_tests_name("frontend_ask", tests, NULL, NULL);
}
