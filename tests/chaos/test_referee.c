/* SPDX-License-Identifier: Apache-2.0 */

/* The referee on logs whose lies are known, one for each rule: one that finds nothing proves nothing. */
#include "referee.h"

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    *state = referee_new();
    return 0;
}

static int tear_down(void **state)
{
    referee_free(*state);
    return 0;
}

static void leads(struct referee *r, const char *node, int term, int epoch, int at_ms)
{
    char line[256];

    snprintf(line, sizeof line,
             "ts=2026-01-01T00:00:00.000Z level=info msg=leads term=%d lease_epoch=%d at_ns=%d000000\n", term,
             epoch, at_ms);
    referee_log_line(r, node, node, line);
}

static void lease(struct referee *r, const char *node, int term, int epoch, int at_ms, int until_ms)
{
    char line[256];

    snprintf(line, sizeof line,
             "ts=x level=debug msg=lease until_ns=%d000000 term=%d lease_epoch=%d at_ns=%d000000\n", until_ms,
             term, epoch, at_ms);
    referee_log_line(r, node, node, line);
}

static void stopped(struct referee *r, const char *node, int term, int epoch, int at_ms)
{
    char line[256];

    snprintf(
        line, sizeof line,
        "ts=x level=info msg=\"work stopped\" term=%d lease_epoch=%d at_ns=%d000000 reason=\"it is so\"\n",
        term, epoch, at_ms);
    referee_log_line(r, node, node, line);
}

static void died(struct referee *r, const char *node, int at_ms)
{
    char line[256];

    snprintf(line, sizeof line, "ts=x level=info msg=\"node died\" incarnation=2 at_ns=%d000000\n", at_ms);
    referee_log_line(r, node, node, line);
}

static void deed(struct referee *r, const char *what, const char *node, int at_ms)
{
    char line[256];

    snprintf(line, sizeof line, "msg=%s node=%s at_ns=%d000000\n", what, node, at_ms);
    referee_deed_line(r, "deeds", line);
}

static void status(struct referee *r, const char *node, int at_ms, int term, const char *has_lease,
                   int commit, const char *digest)
{
    char line[512];

    snprintf(line, sizeof line,
             "msg=status node=%s at_ns=%d000000 term=%d lease_epoch=1 has_lease=%s generation=1 commit=%d "
             "applied=%d revision=%d digest=%s\n",
             node, at_ms, term, has_lease, commit, commit, commit, digest);
    referee_deed_line(r, "deeds", line);
}

/* Exactly this rule, and no other, was broken so many times. */
static void finds(struct referee *r, enum referee_rule rule, uint64_t times)
{
    referee_judge(r);
    if (referee_found(r, rule) != times || referee_found_all(r) != times)
        referee_print(r, stderr);
    assert_int_equal(referee_found(r, rule), times);
    assert_int_equal(referee_found_all(r), times);
}

static void test_claims_one_after_the_other_are_fine(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    lease(r, "n1", 3, 1, 150, 300);
    stopped(r, "n1", 3, 1, 200);
    leads(r, "n1", 3, 2, 210); /* a hand-over that failed */
    lease(r, "n1", 3, 2, 210, 300);
    died(r, "n1", 250);
    leads(r, "n2", 4, 1, 251);
    lease(r, "n2", 4, 1, 251, 400);
    leads(r, "n3", 6, 1, 401); /* n2 was lost without a word: its lease is over */
    lease(r, "n3", 6, 1, 401, 500);
    status(r, "n2", 300, 4, "true", 10, "aa");
    status(r, "n3", 402, 6, "true", 10, "aa");
    finds(r, RULE_TERM, 0);
    assert_int_equal(referee_claims(r), 4);
}

static void test_a_paused_leader_ends_with_its_lease(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    deed(r, "paused", "n1", 120);
    leads(r, "n2", 4, 1, 300);
    lease(r, "n2", 4, 1, 300, 450);
    deed(r, "resumed", "n1", 2000);
    stopped(r, "n1", 3, 1, 2001);
    finds(r, RULE_LATE, 0);
}

static void test_a_death_that_only_the_test_saw_ends_a_claim(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    deed(r, "killed", "n1", 120);
    leads(r, "n2", 4, 1, 130);
    lease(r, "n2", 4, 1, 130, 280);
    finds(r, RULE_OVERLAP, 0);
}

/* What it logged last is lost with it, also that its work had stopped before it handed over. */
static void test_a_node_that_was_struck_works_no_more(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    deed(r, "struck", "n1", 120);
    leads(r, "n2", 4, 1, 125);
    lease(r, "n2", 4, 1, 125, 280);
    died(r, "n1", 133);
    deed(r, "struck", "n2", 140);
    leads(r, "n1", 5, 1, 139); /* not yet */
    stopped(r, "n1", 5, 1, 150);
    finds(r, RULE_OVERLAP, 1);
}

static void test_a_node_that_denies_its_lease_is_believed(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    status(r, "n1", 130, 3, "true", 4, "aa");
    status(r, "n1", 140, 3, "false", 4, "aa");
    leads(r, "n2", 4, 1, 141);
    lease(r, "n2", 4, 1, 141, 300);
    status(r, "n2", 142, 4, "false", 4, "aa"); /* before its first word of it: it has one later */
    status(r, "n2", 150, 4, "true", 4, "aa");
    leads(r, "n3", 5, 1, 149);
    stopped(r, "n3", 5, 1, 150);
    finds(r, RULE_OVERLAP, 1);
}

static void test_two_leaders_of_one_term_are_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    stopped(r, "n1", 3, 1, 110);
    leads(r, "n2", 3, 2, 200);
    stopped(r, "n2", 3, 2, 210);
    finds(r, RULE_TERM, 1);
}

static void test_a_claim_before_the_work_of_another_stopped_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    stopped(r, "n1", 3, 1, 200);
    leads(r, "n2", 4, 1, 199);
    stopped(r, "n2", 4, 1, 300);
    finds(r, RULE_OVERLAP, 1);
}

static void test_a_claim_within_the_lease_of_a_silent_leader_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    leads(r, "n2", 4, 1, 249);
    stopped(r, "n2", 4, 1, 300);
    finds(r, RULE_OVERLAP, 1);
}

static void test_the_first_lease_may_be_told_with_the_claim(void **state)
{
    struct referee *r = *state;

    referee_log_line(r, "n1", "n1", "msg=leads term=3 lease_epoch=1 at_ns=100000000 until_ns=250000000");
    leads(r, "n2", 4, 1, 250);
    stopped(r, "n2", 4, 1, 260);
    referee_log_line(r, "n3", "n3", "msg=leads term=5 lease_epoch=1 at_ns=300000000 until_ns=400000000");
    leads(r, "n2", 6, 1, 399);
    stopped(r, "n2", 6, 1, 410);
    finds(r, RULE_OVERLAP, 1);
}

static void test_a_claim_before_a_death_is_proven_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    died(r, "n1", 150);
    leads(r, "n2", 4, 1, 149);
    stopped(r, "n2", 4, 1, 300);
    finds(r, RULE_OVERLAP, 1);
}

static void test_an_overlap_hidden_by_short_claims_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 900);
    leads(r, "n2", 4, 1, 910);
    stopped(r, "n2", 4, 1, 920);
    leads(r, "n3", 5, 1, 930);
    lease(r, "n3", 5, 1, 930, 2000);
    leads(r, "n2", 6, 1, 1500);
    stopped(r, "n2", 6, 1, 1501);
    leads(r, "n4", 7, 1, 1600);
    finds(r, RULE_OVERLAP, 2); /* both with n3 */
}

static void test_without_an_end_a_claim_goes_on_for_ever(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    leads(r, "n2", 4, 1, 10000);
    finds(r, RULE_OVERLAP, 1);
}

static void test_a_token_that_does_not_grow_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 5, 1, 100);
    stopped(r, "n1", 5, 1, 110);
    leads(r, "n2", 4, 7, 200);
    stopped(r, "n2", 4, 7, 210);
    leads(r, "n3", 6, 2, 220);
    stopped(r, "n3", 6, 2, 230);
    leads(r, "n3", 6, 2, 240); /* the same again */
    stopped(r, "n3", 6, 2, 250);
    finds(r, RULE_TOKEN, 2);
}

static void test_a_claim_without_an_end_before_the_next_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 200);
    leads(r, "n1", 4, 1, 300);
    deed(r, "killed", "n1", 310); /* too late for the first */
    leads(r, "n1", 5, 1, 400);
    finds(r, RULE_UNENDED, 1);
}

static void test_a_lease_without_a_claim_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 2, 100, 200);
    stopped(r, "n1", 4, 1, 110);
    stopped(r, "n1", 3, 1, 120);
    finds(r, RULE_STRAY, 2);
}

static void test_work_that_goes_on_after_the_lease_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    stopped(r, "n1", 3, 1, 351);
    deed(r, "paused", "n2", 200); /* not this one */
    leads(r, "n1", 4, 1, 1000);
    lease(r, "n1", 4, 1, 1000, 1100);
    stopped(r, "n1", 4, 1, 1199); /* late, but within what a busy machine may need */
    finds(r, RULE_LATE, 1);
}

static void test_a_pause_that_was_over_is_no_excuse(void **state)
{
    struct referee *r = *state;

    deed(r, "paused", "n1", 10);
    deed(r, "resumed", "n1", 50);
    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    stopped(r, "n1", 3, 1, 400);
    finds(r, RULE_LATE, 1);
}

static void test_a_machine_that_slept_is_an_excuse(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 1100);
    lease(r, "n1", 3, 1, 1100, 1250);
    stopped(r, "n1", 3, 1, 1400);
    referee_deed_line(r, "deeds", "msg=slept at_ns=1200000000 until_ns=1399000000");
    leads(r, "n1", 4, 1, 3000);
    lease(r, "n1", 4, 1, 3000, 3100);
    stopped(r, "n1", 4, 1, 3201); /* and this is none */
    finds(r, RULE_LATE, 1);
}

static void waited(struct referee *r, const char *node, int from_ms, int until_ms, int wait_ms)
{
    char line[256];

    snprintf(line, sizeof line, "msg=waited %s at_ns=%d000000 until_ns=%d000000 wait_ns=%d000000\n", node,
             from_ms, until_ms, wait_ms);
    referee_deed_line(r, "waits", line);
}

static void test_waiting_for_a_processor_excuses_what_it_took(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 1000);
    lease(r, "n1", 3, 1, 1000, 1250);
    waited(r, "node=n1", 900, 1300, 40);
    waited(r, "node=n2", 1250, 1550, 300); /* not this one */
    waited(r, "", 1300, 1500, 160);        /* everybody */
    stopped(r, "n1", 3, 1, 1550);          /* 300 ms late, and 200 of them it waited */
    leads(r, "n1", 4, 1, 3000);
    lease(r, "n1", 4, 1, 3000, 3100);
    waited(r, "node=n1", 3100, 3400, 199);
    stopped(r, "n1", 4, 1, 3400);
    waited(r, "node=n1", 3500, 3600, 100); /* afterwards */
    finds(r, RULE_LATE, 1);
}

static void test_a_node_that_only_says_it_leads_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    lease(r, "n1", 3, 1, 100, 250);
    stopped(r, "n1", 3, 1, 200);
    status(r, "n1", 150, 3, "true", 4, "aa");
    status(r, "n1", 201, 3, "true", 4, "aa"); /* after it stopped */
    status(r, "n2", 150, 3, "true", 4, "aa"); /* another node */
    status(r, "n1", 150, 4, "true", 4, "aa"); /* another term */
    status(r, "n1", 202, 3, "false", 4, "aa");
    finds(r, RULE_BOAST, 3);
}

/* The log of its last moments is lost with a node that is killed; what it said counts as much. */
static void test_a_claim_that_was_only_seen_is_a_claim(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    stopped(r, "n1", 3, 1, 200);
    status(r, "n2", 300, 4, "true", 4, "aa");
    status(r, "n2", 310, 4, "true", 4, "aa");
    died(r, "n2", 311);
    leads(r, "n1", 5, 1, 305); /* while n2 said that it leads */
    stopped(r, "n1", 5, 1, 400);
    leads(r, "n3", 6, 1, 500);
    stopped(r, "n3", 6, 1, 501);
    status(r, "n2", 700, 8, "true", 4, "aa"); /* nobody killed it soon after that */
    deed(r, "killed", "n2", 1000);
    referee_judge(r);
    assert_int_equal(referee_found(r, RULE_OVERLAP), 1);
    assert_int_equal(referee_found(r, RULE_BOAST), 1);
    assert_int_equal(referee_found_all(r), 2);
}

static void test_an_answer_is_true_of_some_time_until_it_is_heard(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    stopped(r, "n1", 3, 1, 200);
    referee_deed_line(
        r, "deeds",
        "msg=status node=n1 at_ns=99000000 heard_ns=101000000 term=3 lease_epoch=1 has_lease=true "
        "generation=1 commit=1 applied=1 revision=1 digest=aa");
    referee_deed_line(
        r, "deeds",
        "msg=status node=n1 at_ns=98000000 heard_ns=99000000 term=3 lease_epoch=1 has_lease=true "
        "generation=1 commit=1 applied=1 revision=1 digest=aa");
    finds(r, RULE_BOAST, 1);
}

static void test_tables_that_differ_are_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    stopped(r, "n1", 3, 1, 200);
    status(r, "n1", 150, 3, "false", 4, "aa");
    status(r, "n2", 160, 3, "false", 4, "ab");
    status(r, "n3", 170, 3, "false", 5, "ac");
    finds(r, RULE_DIGEST, 1);
}

static void test_a_leader_that_lost_what_was_committed_is_found(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 100);
    stopped(r, "n1", 3, 1, 200);
    leads(r, "n2", 4, 1, 300);
    stopped(r, "n2", 4, 1, 400);
    status(r, "n1", 150, 3, "true", 9, "aa");
    status(r, "n3", 250, 3, "false", 5, "ab"); /* a follower may know less */
    status(r, "n2", 350, 4, "true", 8, "ac");
    finds(r, RULE_LOST, 1);
}

static void test_a_clock_that_is_ahead_is_allowed_for(void **state)
{
    struct referee *r = *state;

    leads(r, "n1", 3, 1, 1100);
    lease(r, "n1", 3, 1, 1100, 1250);
    stopped(r, "n1", 3, 1, 1200);
    referee_deed_line(r, "deeds", "msg=clock node=n1 offset_ns=1000000000");
    leads(r, "n2", 4, 1, 201);
    stopped(r, "n2", 4, 1, 210);
    finds(r, RULE_OVERLAP, 0);
}

static void test_lines_that_lack_something_are_found(void **state)
{
    struct referee *r = *state;

    referee_log_line(r, "n1", "n1", "level=info msg=leads term=3 at_ns=1");
    referee_log_line(r, "n1", "n1", "level=info msg=lease term=3 lease_epoch=1 at_ns=1");
    referee_log_line(r, "n1", "n1", "level=info msg=\"node died\"");
    referee_log_line(r, "n1", "n1", "level=info msg=leads term=x lease_epoch=1 at_ns=1");
    referee_deed_line(r, "deeds", "msg=killed node=n1");
    finds(r, RULE_BAD_LINE, 5);
}

static void test_words_in_quotes_are_no_fields(void **state)
{
    struct referee *r = *state;

    referee_log_line(r, "n1", "n1", "level=info text=\" msg=leads term=1 lease_epoch=1 at_ns=5\" msg=other");
    referee_log_line(r, "n1", "n1",
                     "level=info text=\"\\\" msg=leads term=1 lease_epoch=1 at_ns=5\" msg=other");
    finds(r, RULE_BAD_LINE, 0);
    assert_int_equal(referee_claims(r), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_claims_one_after_the_other_are_fine),
        CASE(test_a_paused_leader_ends_with_its_lease),
        CASE(test_a_death_that_only_the_test_saw_ends_a_claim),
        CASE(test_a_node_that_was_struck_works_no_more),
        CASE(test_a_node_that_denies_its_lease_is_believed),
        CASE(test_two_leaders_of_one_term_are_found),
        CASE(test_a_claim_before_the_work_of_another_stopped_is_found),
        CASE(test_a_claim_within_the_lease_of_a_silent_leader_is_found),
        CASE(test_the_first_lease_may_be_told_with_the_claim),
        CASE(test_a_claim_before_a_death_is_proven_is_found),
        CASE(test_an_overlap_hidden_by_short_claims_is_found),
        CASE(test_without_an_end_a_claim_goes_on_for_ever),
        CASE(test_a_token_that_does_not_grow_is_found),
        CASE(test_a_claim_without_an_end_before_the_next_is_found),
        CASE(test_a_lease_without_a_claim_is_found),
        CASE(test_work_that_goes_on_after_the_lease_is_found),
        CASE(test_a_pause_that_was_over_is_no_excuse),
        CASE(test_a_machine_that_slept_is_an_excuse),
        CASE(test_waiting_for_a_processor_excuses_what_it_took),
        CASE(test_a_node_that_only_says_it_leads_is_found),
        CASE(test_a_claim_that_was_only_seen_is_a_claim),
        CASE(test_an_answer_is_true_of_some_time_until_it_is_heard),
        CASE(test_tables_that_differ_are_found),
        CASE(test_a_leader_that_lost_what_was_committed_is_found),
        CASE(test_a_clock_that_is_ahead_is_allowed_for),
        CASE(test_lines_that_lack_something_are_found),
        CASE(test_words_in_quotes_are_no_fields),
    };

    return cmocka_run_group_tests_name("referee", tests, NULL, NULL);
}
