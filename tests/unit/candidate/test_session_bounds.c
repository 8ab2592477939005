/* SPDX-License-Identifier: Apache-2.0 */

/* The sums of a store that grants mandates to sessions: what settings come to there. */
#include "core/candidate/session_bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct gavel_settings preset(const char *name)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset(name, &settings), GAVEL_OK);
    return settings;
}

static struct session_terms terms_of(const struct gavel_settings *settings)
{
    struct session_terms terms;

    session_terms_of(settings, 0, &terms);
    return terms;
}

static void test_a_session_lasts_for_a_lease_and_hardly_longer(void **state)
{
    struct gavel_settings s = preset("local");

    (void)state;
    assert_int_equal(session_ttl_ms(&s),
                     2006); /* 2000 * 1.001 / 0.999 = 2004.004, rounded up, and one more */
    for (int ppm = 0; ppm <= 100000; ppm += 777) {
        struct session_terms terms;

        s.drift_ppm = ppm;
        for (s.lease_ms = 1; s.lease_ms < 2000; s.lease_ms += 97) {
            terms = terms_of(&s);
            assert_true(terms.lasts_ms >= s.lease_ms);
            session_terms_of(&s, terms.ttl_ms - 2, &terms);
            assert_true(terms.lasts_ms < s.lease_ms);
        }
    }
    s = preset("local");
    s.lease_ms = INT64_C(30) * 24 * 3600 * 1000; /* the longest there is */
    s.drift_ppm = 100000;
    assert_true(terms_of(&s).lasts_ms >= s.lease_ms);
}

static void test_every_preset_adds_up_in_a_session(void **state)
{
    (void)state;
    for (size_t i = 0; gavel_preset_names[i]; i++) {
        struct gavel_settings s = preset(gavel_preset_names[i]);
        struct session_terms terms = terms_of(&s);
        struct gavel_bounds bounds;
        struct gavel_error error;

        assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
        session_bounds(&s, &terms, &bounds);
        assert_true(bounds.renew_slack_ms > 0);
        assert_int_equal(bounds.overlap_ms, 0);
        assert_int_equal(bounds.stopped_by_ms - bounds.stop_begins_ms, s.stop_grace_ms);
        assert_true(bounds.stopped_by_ms + s.stop_margin_ms <= terms.lasts_ms);
        assert_true(terms.lasts_ms < terms.ttl_ms);
        assert_true(bounds.takeover_after_ms > terms.ttl_ms);
        assert_true(bounds.gap_resign_ms <= bounds.gap_killed_ms);
        assert_true(bounds.gap_killed_ms < bounds.gap_loss_ms);
        assert_true(bounds.gap_loss_ms >= bounds.takeover_after_ms + bounds.gap_killed_ms);
        assert_true(bounds.gap_loss_ms < bounds.gap_outage_ms);
    }
}

static void test_a_longer_time_to_live_is_later_noticed(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms;
    struct gavel_bounds bounds, longer;

    (void)state;
    terms = terms_of(&s);
    session_bounds(&s, &terms, &bounds);
    session_terms_of(&s, 10 * terms.ttl_ms, &terms);
    session_bounds(&s, &terms, &longer);
    assert_true(longer.gap_loss_ms > bounds.gap_loss_ms + 8 * s.lease_ms);
    assert_int_equal(longer.gap_resign_ms, bounds.gap_resign_ms); /* nobody waits for it to end */
    assert_int_equal(longer.gap_killed_ms, bounds.gap_killed_ms);
}

static void test_a_takeover_delay_counts_after_a_loss_only(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms = terms_of(&s);
    struct gavel_bounds bounds, delayed;

    (void)state;
    session_bounds(&s, &terms, &bounds);
    s.takeover_delay_ms = 1000;
    session_bounds(&s, &terms, &delayed);
    assert_int_equal(delayed.gap_resign_ms, bounds.gap_resign_ms);
    assert_true(delayed.gap_killed_ms >= bounds.gap_killed_ms + 1000);
    assert_true(delayed.gap_loss_ms >= bounds.gap_loss_ms + 1000);
}

static void test_a_session_that_is_too_short_to_stop_in_is_refused(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms;
    struct gavel_error error = {0};

    (void)state;
    session_terms_of(&s, 552, &terms); /* 550 ms by our clock, and 500 + 50 to stop */
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(error.message, "500 + stop_margin 50 = 550 ms"));
    assert_non_null(strstr(error.message, "; ttl_ms=1600 in the URL would do"));
    session_terms_of(&s, 553, &terms);
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
}

/* As every mandate would end on a cluster that is well. */
static void test_work_that_is_told_to_stop_before_an_answer_can_come_is_refused(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms;
    struct gavel_error error = {0};

    (void)state;
    s.stop_grace_ms = 4000;
    s.lease_ms = 6000;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_OK); /* of a store of leases */
    terms = terms_of(&s);
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(error.message, "stop_grace 4000 = 1951 ms"));
    assert_non_null(strstr(error.message, "keep-alive 2004 (a third) + answer 50 = 2054 ms"));
    assert_non_null(strstr(error.message, "; a lease of 6900 ms would do"));
    s = preset("local");
    s.lease_ms = 8000;
    session_terms_of(&s, 6000, &terms); /* 5988 by our clock, 2000 until the next keep-alive */
    s.stop_grace_ms = 5988 - 2050 - s.stop_margin_ms;
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(error.message, "ttl_ms="));
    s.stop_grace_ms--;
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
    s.call_timeout_ms = 5; /* which makes no cluster faster */
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
    s.stop_grace_ms++;
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
    session_terms_of(&s, session_ttl_for(&s), &terms);
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
}

/* Whatever was asked for: what is proposed is enough without a warning, and is not far more than that. */
static void test_the_lease_and_the_time_to_live_that_are_proposed_add_up(void **state)
{
    static const gavel_ms graces[] = {0, 250, 3000, 4000, 60000, 3600000};
    static const int drifts[] = {0, 1000, 20000, 100000};

    (void)state;
    for (size_t i = 0; gavel_preset_names[i]; i++)
        for (size_t j = 0; j < sizeof graces / sizeof *graces; j++)
            for (size_t k = 0; k < sizeof drifts / sizeof *drifts; k++) {
                struct gavel_settings s = preset(gavel_preset_names[i]);
                struct session_terms terms;
                struct gavel_bounds bounds;
                struct gavel_error error;

                s.stop_grace_ms = graces[j];
                s.drift_ppm = drifts[k];
                s.max_mandate_ms = 0;
                s.lease_ms = session_lease_for(&s);
                assert_true(s.lease_ms > 0);
                assert_int_equal(gavel_settings_check(&s, &error), GAVEL_OK);
                terms = terms_of(&s);
                assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
                session_bounds(&s, &terms, &bounds);
                assert_true(bounds.renew_slack_ms > 0);
                session_terms_of(&s, session_ttl_for(&s), &terms);
                session_bounds(&s, &terms, &bounds);
                assert_true(bounds.renew_slack_ms > 0);
                session_terms_of(&s, session_ttl_for(&s) - 120, &terms);
                session_bounds(&s, &terms, &bounds);
                assert_true(bounds.renew_slack_ms <= 0);
                s.lease_ms -= 120;
                terms = terms_of(&s);
                session_bounds(&s, &terms, &bounds);
                assert_true(bounds.renew_slack_ms <= 0 || gavel_settings_check(&s, &error) != GAVEL_OK);
            }
}

static void test_nothing_is_proposed_where_nothing_would_do(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms = terms_of(&s);
    struct gavel_error error = {0};

    (void)state;
    s.stop_grace_ms = INT64_C(20) * 3600 * 1000; /* a session of more than a day */
    assert_int_equal(session_lease_for(&s), 0);
    assert_int_equal(session_ttl_for(&s), 0);
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(error.message, "; shorten the stop grace"));
    assert_null(strstr(error.message, "would do"));
}

/* A heartbeat may be far more frequent than a third of the lease; keep-alives are not. */
static void test_settings_that_fit_a_lease_may_be_tight_in_a_session(void **state)
{
    struct gavel_settings s = preset("local");
    struct session_terms terms;
    struct gavel_error error;
    struct gavel_bounds bounds;

    (void)state;
    s.heartbeat_ms = 100;
    s.call_timeout_ms = 800;
    s.stop_grace_ms = 900;
    assert_int_equal(gavel_settings_check(&s, &error), GAVEL_OK);
    terms = terms_of(&s);
    assert_int_equal(session_terms_check(&s, &terms, &error), GAVEL_OK);
    session_bounds(&s, &terms, &bounds);
    assert_true(bounds.renew_slack_ms < 0);
    assert_int_equal(bounds.renew_slack_ms, bounds.stopped_by_ms - session_needed_ms(&s, &terms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_lasts_for_a_lease_and_hardly_longer),
        cmocka_unit_test(test_every_preset_adds_up_in_a_session),
        cmocka_unit_test(test_a_longer_time_to_live_is_later_noticed),
        cmocka_unit_test(test_a_takeover_delay_counts_after_a_loss_only),
        cmocka_unit_test(test_a_session_that_is_too_short_to_stop_in_is_refused),
        cmocka_unit_test(test_work_that_is_told_to_stop_before_an_answer_can_come_is_refused),
        cmocka_unit_test(test_the_lease_and_the_time_to_live_that_are_proposed_add_up),
        cmocka_unit_test(test_nothing_is_proposed_where_nothing_would_do),
        cmocka_unit_test(test_settings_that_fit_a_lease_may_be_tight_in_a_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
