/* SPDX-License-Identifier: Apache-2.0 */

/* The session of a link that was made without, over a real socket, against a node on the same loop. */

#include "client/cluster.h"
#include "fake_node.h"
#include "os/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Far more than anything here takes, also on a machine that is busy. */
#define LIMIT (60 * NS_PER_S)

struct world {
    struct event_base *base;
    struct event *pulse; /* so that the limit is looked at */
    struct fake_node node;
    struct cluster_link *cluster;
    _Atomic uint64_t noted;

    bool takes;      /* each deadline, when it is told */
    bool is_in_call; /* a callback now would come from within a call */
    gavel_ns deadline;
    uint64_t number; /* of the newest deadline */
    size_t deadlines;
    size_t lost;
    uint64_t lost_number;
    size_t answers;
    size_t begun;
    size_t closed;
};

static void on_pulse(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    (void)context;
}

static void on_deadline(void *user, uint64_t number, gavel_ns deadline)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->number = number;
    world->deadline = deadline;
    world->deadlines += deadline != 0;
    if (world->takes)
        cluster_link_taken(world->cluster);
}

static void on_lost(void *user, uint64_t number)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->lost++;
    world->lost_number = number;
}

static void on_closed(void *user)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->closed++;
}

static void on_answer(void *user, enum gavel_status status, const char *message, const Gavel__Answer *answer)
{
    struct world *world = user;

    (void)message;
    (void)answer;
    assert_int_equal(status, GAVEL_OK);
    world->answers++;
}

static void on_change(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct world *world = user;

    (void)revision;
    world->begun += !change && !is_gap;
}

static int set_up(void **state)
{
    const struct timeval pulse = {.tv_usec = 20000};
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    (void)signal(SIGPIPE, SIG_IGN);
    world->base = event_base_new();
    world->pulse = event_new(world->base, -1, EV_PERSIST, on_pulse, NULL);
    assert_int_equal(event_add(world->pulse, &pulse), 0);
    fake_node_on_tcp(&world->node, world->base, NULL);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    cluster_link_free(world->cluster);
    fake_node_stop(&world->node);
    event_free(world->pulse);
    event_base_free(world->base);
    free(world);
    return 0;
}

/* The loop runs until the condition holds. */
#define UNTIL(world, condition)                                                                              \
    do {                                                                                                     \
        gavel_ns until_ = clock_now() + LIMIT;                                                               \
        while (!(condition)) {                                                                               \
            if (clock_now() > until_)                                                                        \
                fail_msg("not within the limit: %s; the trouble is \"%s\"", #condition,                      \
                         cluster_link_trouble((world)->cluster));                                            \
            (void)event_base_loop((world)->base, EVLOOP_ONCE);                                               \
        }                                                                                                    \
    } while (0)

/* Without a session, whatever the options of the target say of one. */
static void make_link(struct world *world, const char *options)
{
    const struct cluster_link_events events = {
        .deadline = on_deadline, .session_lost = on_lost, .closed = on_closed, .user = world};
    struct gavel_error error = {0};
    struct cluster_link_target target;
    char text[64];

    (void)snprintf(text, sizeof text, "127.0.0.1:%u%s", (unsigned)world->node.port, options);
    assert_int_equal(cluster_link_target_parse(text, &target, &error), GAVEL_OK);
    assert_int_equal(
        cluster_link_new(world->base, &target, 0, "test", NULL, &events, &world->cluster, &error), GAVEL_OK);
    assert_int_equal(cluster_link_session(world->cluster), 0);
    assert_int_equal(cluster_link_session_lasts(world->cluster), 0);
}

static enum gavel_status open_session(struct world *world, uint32_t ttl_ms, bool is_paced,
                                      struct gavel_error *error)
{
    /* No connection is given up since the machine is busy. */
    const struct cluster_link_session_options options = {
        .ttl_ms = ttl_ms, .silence = LIMIT, .is_paced = is_paced, .noted = &world->noted};
    enum gavel_status status;

    world->is_in_call = true;
    status = cluster_link_open_session(world->cluster, &options, error);
    world->is_in_call = false;
    return status;
}

static void expect_open(struct world *world, uint32_t ttl_ms, bool is_paced)
{
    struct gavel_error error = {0};

    if (open_session(world, ttl_ms, is_paced, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    assert_int_not_equal(world->noted, 0);
    assert_int_equal(world->noted, cluster_link_session(world->cluster));
    world->node.noted = &world->noted;
}

static void ask(struct world *world)
{
    Gavel__Ask question;

    gavel__ask__init(&question);
    question.group = (char *)(uintptr_t) "g";
    cluster_link_ask(world->cluster, &question, NEVER, on_answer, world);
}

static void test_a_session_is_opened_later_on_the_same_connection(void **state)
{
    struct world *world = *state;

    make_link(world, "");
    ask(world);
    (void)cluster_link_watch(world->cluster, "g", NULL, 0, on_change, world);
    UNTIL(world, world->answers == 1 && world->begun == 1);
    assert_int_equal(world->node.opened, 0);
    expect_open(world, 2000, false);
    assert_int_equal(cluster_link_session_lasts(world->cluster), INT64_C(1996003) * NS_PER_US);
    (void)cluster_link_watch(world->cluster, NULL, NULL, 0, on_change, world);
    UNTIL(world, world->deadlines == 1 && world->begun == 2);
    assert_int_equal(world->node.hellos, 1);
    assert_int_equal(world->node.opened, 1);
    assert_int_equal(world->node.ttl_ms, 2000);
    assert_int_equal(world->node.session, world->noted);
    assert_int_equal(world->node.watch_session, world->noted);
    assert_int_equal(world->number, 1001);
    assert_int_equal(cluster_link_session_number(world->cluster), 1001);
    assert_int_equal(world->deadline, cluster_link_deadline(world->cluster));
    UNTIL(world, world->deadlines == 2);
    cluster_link_close(world->cluster);
    UNTIL(world, world->closed == 1);
    assert_int_equal(world->node.closed, 1);
    assert_int_equal(world->deadline, 0);
    assert_int_equal(world->number, 1001);
}

static void test_the_target_says_how_long_the_session_lives(void **state)
{
    struct world *world = *state;

    make_link(world, "?ttl_ms=5000");
    ask(world);
    UNTIL(world, world->answers == 1);
    assert_int_equal(world->node.opened, 0);
    expect_open(world, 2000, false);
    UNTIL(world, world->deadlines == 1);
    assert_int_equal(world->node.ttl_ms, 5000);
}

static void test_a_session_that_cannot_be_had_is_refused(void **state)
{
    struct world *world = *state;
    struct gavel_error error = {0};

    make_link(world, "");
    assert_int_equal(open_session(world, 99, false, &error), GAVEL_ERR_INVALID);
    assert_string_equal(error.message,
                        "the time to live of a session is 99 ms; it must be from 100 to 86400000 ms");
    assert_int_equal(open_session(world, 0, false, &error), GAVEL_ERR_INVALID);
    assert_int_equal(world->noted, 0);
    expect_open(world, 2000, false);
    assert_int_equal(open_session(world, 2000, false, &error), GAVEL_ERR_STATE);
    assert_non_null(strstr(error.message, "has a session already"));
    cluster_link_free(world->cluster);
    make_link(world, "");
    cluster_link_close(world->cluster);
    assert_int_equal(open_session(world, 2000, false, &error), GAVEL_ERR_STATE);
    assert_non_null(strstr(error.message, "closed"));
}

/* The node itself compares what is noted with each opening that comes. */
static void test_each_session_is_noted_before_it_is_opened(void **state)
{
    struct world *world = *state;
    uint64_t before;

    make_link(world, "");
    expect_open(world, 300, false);
    UNTIL(world, world->deadlines == 1);
    before = world->noted;
    world->node.denies_session = true;
    UNTIL(world, world->lost == 1);
    assert_int_equal(world->lost_number, 1001);
    UNTIL(world, world->node.opened == 2 && world->number == 1002);
    assert_int_not_equal(world->noted, before);
    assert_int_equal(world->noted, cluster_link_session(world->cluster));
    assert_int_equal(world->noted, world->node.session);
}

static void test_a_paced_session_is_kept_only_while_its_deadlines_are_taken(void **state)
{
    struct world *world = *state;
    gavel_ns deadline;

    make_link(world, "");
    world->takes = true;
    expect_open(world, 300, true);
    UNTIL(world, world->deadlines == 4);
    assert_in_range(world->node.kept, 3, 4);
    world->takes = false;
    UNTIL(world, world->deadlines == 5);
    deadline = world->deadline;
    UNTIL(world, clock_now() > deadline);
    fake_node_cut(&world->node); /* the next connection changes nothing */
    UNTIL(world, world->node.hellos == 2);
    ask(world);
    UNTIL(world, world->answers == 1);
    assert_int_equal(world->node.kept, 4);
    assert_int_equal(world->deadline, deadline);
    cluster_link_taken(world->cluster);
    UNTIL(world, world->deadlines == 6);
    assert_int_equal(world->node.kept, 5);
}

static void test_the_secret_of_a_link_without_a_session_is_sent_and_may_be_chosen(void **state)
{
    static const uint8_t chosen[CLIENT_SECRET_BYTES] = {1, 2, 3};
    static const uint8_t none[CLIENT_SECRET_BYTES];
    struct world *world = *state;
    uint8_t secret[CLIENT_SECRET_BYTES];

    make_link(world, "");
    cluster_link_secret(world->cluster, secret);
    assert_memory_not_equal(secret, none, sizeof secret);
    UNTIL(world, world->node.hellos == 1);
    assert_memory_equal(world->node.secret, secret, sizeof secret);
    cluster_link_free(world->cluster);
    make_link(world, "");
    cluster_link_set_secret(world->cluster, chosen);
    cluster_link_secret(world->cluster, secret);
    assert_memory_equal(secret, chosen, sizeof secret);
    UNTIL(world, world->node.hellos == 2);
    assert_memory_equal(world->node.secret, chosen, sizeof secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_a_session_is_opened_later_on_the_same_connection),
        T(test_the_target_says_how_long_the_session_lives),
        T(test_a_session_that_cannot_be_had_is_refused),
        T(test_each_session_is_noted_before_it_is_opened),
        T(test_a_paced_session_is_kept_only_while_its_deadlines_are_taken),
        T(test_the_secret_of_a_link_without_a_session_is_sent_and_may_be_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
