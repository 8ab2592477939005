/* SPDX-License-Identifier: Apache-2.0 */

/* What `gavel check` tells of a store with sessions, and that it tells nothing of them of others. */
#include "cli/check/check.h"
#include "cli/json_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
    struct store_capabilities store;
    struct cli cli;
    struct findings findings;
    struct gavel_error error;
    char text[16384]; /* see printed() */
};

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    scene->store = (struct store_capabilities){.name = "gavel", .preset = "local", .has_sessions = true};
    scene->store.clock = STORE_CLOCK_STEADY;
    scene->cli.config.store = "gavel://h1:7600,h2:7600";
    scene->cli.config.preset = "local";
    scene->cli.config.enabled = true;
    assert_int_equal(gavel_settings_preset("local", &scene->cli.config.settings), GAVEL_OK);
    scene->findings = (struct findings){.store = &scene->store, .candidates = 3};
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static int64_t number(const json_t *json, const char *object, const char *key)
{
    const json_t *value = json_object_get(json_object_get(json, object), key);

    if (!json_is_integer(value))
        fail_msg("%s.%s is no number", object, key);
    return json_integer_value(value);
}

/* What check_print() prints. */
static const char *printed(struct scene *scene)
{
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);

    assert_non_null(file);
    assert_int_equal(fflush(stdout), 0);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    check_print(&scene->cli, &scene->findings);
    assert_int_equal(fflush(stdout), 0);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    (void)close(saved);
    rewind(file);
    memset(scene->text, 0, sizeof scene->text);
    assert_true(fread(scene->text, 1, sizeof scene->text - 1, file) > 0);
    (void)fclose(file); /* it was only read */
    return scene->text;
}

/* The instants of the picture: their letters, and their times. */
static void assert_in_order(const char *text)
{
    long long before = -1;

    for (char letter = 'A'; letter <= 'F'; letter++) {
        char line[8] = {'\n', ' ', ' ', letter, ' '};
        const char *at = strstr(text, line);
        long long ms;

        assert_non_null(at);
        assert_int_equal(sscanf(at + strlen(line), "%lld ms", &ms), 1);
        assert_true(ms >= before);
        before = ms;
    }
}

static void test_a_session_is_told_with_its_bounds(void **state)
{
    struct scene *scene = *state;
    json_t *json;
    const char *text;

    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    json = check_json(&scene->cli, &scene->findings);
    assert_int_equal(number(json, "session", "ttl_ms"), 2006);
    assert_int_equal(number(json, "session", "lasts_ms"), 2001);
    assert_int_equal(number(json, "session", "keep_every_ms"), 668);
    assert_int_equal(number(json, "bounds", "available_ms"), 1951); /* less the stop margin */
    assert_int_equal(number(json, "bounds", "needed_ms"), 668 + 500 + 500);
    assert_int_equal(number(json, "bounds", "takeover_after_ms"), 2009);
    assert_int_equal(number(json, "bounds", "gap_killed_ms"), 1000); /* two calls */
    assert_int_equal(number(json, "bounds", "gap_loss_ms"), 3009);
    assert_true(json_is_true(json_object_get(json_object_get(json, "store"), "has_sessions")));
    assert_true(json_real_value(json_object_get(json_object_get(json, "load"), "renewals_per_minute")) == 0);
    assert_true(json_real_value(json_object_get(json_object_get(json, "load"), "calls_per_minute")) > 0);
    json_decref(json);

    text = printed(scene);
    assert_non_null(
        strstr(text, "Session, one for all groups of a process\n  time to live            2 s 6 ms"));
    assert_non_null(strstr(text, "there is   session 2006 - drift 5 - stop margin 50 = 1951 ms"));
    assert_non_null(strstr(text, "needed     keep-alive 668 + call time-out 500\n"));
    assert_non_null(strstr(text, "the times add up"));
    assert_non_null(strstr(text, "after a freeze, a cut connection or a lost host"));
    assert_non_null(strstr(text, "have a new time to live"));
    assert_non_null(strstr(text, "keep-alives"));
    assert_null(strstr(text, "renewal"));
    assert_in_order(text);
}

static void test_the_url_may_say_how_long_a_session_lives(void **state)
{
    struct scene *scene = *state;
    const char *text;

    scene->cli.config.store = "gavel://h1:7600?ttl_ms=6000";
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    assert_int_equal(scene->findings.session.ttl_ms, 6000);
    assert_int_equal(scene->findings.session.keep_every_ms, 2000);
    text = printed(scene);
    assert_non_null(strstr(text, "6 s, by ttl_ms of the URL"));
    scene->cli.config.store = "gavel://h1:7600?ttl_ms=500";
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(scene->error.message, "never lead"));
    assert_non_null(strstr(scene->error.message, "; ttl_ms=1600 in the URL would do"));
    scene->cli.config.store = "gavel://h1:7600?ttl_ms=800";
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(scene->error.message, "keep-alive 266 (a third) + answer 50 = 316 ms"));
    assert_non_null(strstr(scene->error.message, "; ttl_ms=1600 in the URL would do"));
    scene->cli.config.store = "gavel://h1:7600?ttl_ms=1500";
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    assert_non_null(strstr(printed(scene), "ends the mandate; ttl_ms=1600 in the URL helps\n"));
    scene->cli.config.store = "gavel://h1:7600?ttl_ms=1600";
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    assert_non_null(strstr(printed(scene), "the times add up"));
}

/* It fits a lease; but each keep-alive would be sent only after the work is told to stop. */
static void test_a_session_whose_mandates_would_all_lapse_is_refused(void **state)
{
    struct scene *scene = *state;
    struct gavel_settings *s = &scene->cli.config.settings;

    assert_int_equal(gavel_settings_preset("cluster", s), GAVEL_OK);
    s->stop_grace_ms = 3000;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(scene->error.message, "; --lease 5100ms would do"));
    s->lease_ms = 3700; /* which would do for another store */
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_BUDGET);
    assert_non_null(strstr(scene->error.message, "; a lease of 5100 ms would do"));
    s->lease_ms = 5100;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    assert_non_null(strstr(printed(scene), "the times add up"));
    s->lease_ms = 3700;
    scene->store.has_sessions = false;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
}

static void test_a_lease_beyond_what_a_cluster_keeps_is_refused(void **state)
{
    struct scene *scene = *state;

    scene->cli.config.settings.lease_ms = INT64_C(25) * 3600 * 1000;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(scene->error.message, "86400000 ms"));
}

static void test_a_budget_that_is_tight_is_told(void **state)
{
    struct scene *scene = *state;
    struct gavel_settings *s = &scene->cli.config.settings;
    const char *text;

    s->heartbeat_ms = 100;
    s->call_timeout_ms = 800;
    s->stop_grace_ms = 900;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    text = printed(scene);
    assert_non_null(strstr(text, "takes a whole call time-out ends the mandate; --lease 2700ms helps\n"));
    assert_in_order(text);
    assert_null(strstr(text, "the times add up"));
}

static void test_stores_of_leases_are_told_as_ever(void **state)
{
    struct scene *scene = *state;
    struct gavel_bounds bounds;
    json_t *json;
    const char *text;

    scene->store.has_sessions = false;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    gavel_settings_bounds(&scene->cli.config.settings, 3, &bounds);
    assert_memory_equal(&scene->findings.bounds, &bounds, sizeof bounds);
    json = check_json(&scene->cli, &scene->findings);
    assert_null(json_object_get(json, "session"));
    assert_null(json_object_get(json_object_get(json, "store"), "has_sessions"));
    assert_null(json_object_get(json_object_get(json, "load"), "keep_alives_per_minute"));
    assert_int_equal(number(json, "bounds", "needed_ms"), 1550);
    json_decref(json);
    text = printed(scene);
    assert_non_null(strstr(text, "there is   lease 2000 - drift 3 - stop margin 50 = 1947 ms"));
    assert_null(strstr(text, "keep-alive"));
    assert_null(strstr(text, "\nSession"));
}

/* As gavel_join() refuses it, in the same words. */
static void test_a_policy_that_the_store_does_not_have_is_refused(void **state)
{
    struct scene *scene = *state;

    scene->cli.config.settings.policy = GAVEL_POLICY_BALANCED;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    scene->store.has_sessions = false;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_string_equal(
        scene->error.message,
        "the policy balanced needs a cluster, which knows who leads how many groups; this store does not: use first, lexicographic or priority");
}

static void test_without_an_election_no_session_is_told(void **state)
{
    struct scene *scene = *state;

    scene->cli.config.enabled = false;
    assert_int_equal(check_find(&scene->cli, &scene->findings, &scene->error), GAVEL_OK);
    assert_non_null(scene->findings.no_bounds);
    assert_int_equal(scene->findings.session.ttl_ms, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_session_is_told_with_its_bounds),
        TEST(test_the_url_may_say_how_long_a_session_lives),
        TEST(test_a_session_whose_mandates_would_all_lapse_is_refused),
        TEST(test_a_lease_beyond_what_a_cluster_keeps_is_refused),
        TEST(test_a_budget_that_is_tight_is_told),
        TEST(test_stores_of_leases_are_told_as_ever),
        TEST(test_a_policy_that_the_store_does_not_have_is_refused),
        TEST(test_without_an_election_no_session_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
