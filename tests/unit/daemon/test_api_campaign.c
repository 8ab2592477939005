/* SPDX-License-Identifier: Apache-2.0 */

/* Candidates over HTTP: a session that its client keeps alive, and streams that tell of it. */
#include "api_listener.h"

#include "daemon/api/campaign.h"

#include "os/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000

static void wait_metric(struct api_frontend *frontend, const char *name, long value)
{
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    char line[64];

    (void)snprintf(line, sizeof line, "\ngavel_%s %ld\n", name, value);
    while (!strstr(http_ask(frontend, "/metrics", NULL, "")->body, line))
        if (clock_now() >= limit)
            fail_msg("never was:%s", line);
}

static const char *post(struct api_frontend *frontend, const char *path, const char *session,
                        const char *more, long code)
{
    static char text[4096];
    char body[256];
    struct http_answer *answer;

    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"%s}", session, more);
    answer = http_ask(frontend, path, body, "");
    if (answer->code != code)
        fail_msg("%s %s: %ld instead of %ld: %s", path, body, answer->code, code, answer->body);
    (void)snprintf(text, sizeof text, "%.4000s", answer->body);
    return text;
}

static void test_the_first_leads_and_the_second_follows_when_it_resigns(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"address\":\"host:1\"");
    uint64_t epoch = listener_elected(a);
    struct listener *b = listener_campaign(*state, "g", "b", "");
    json_t *json = listener_next(b, "leader");

    assert_string_equal(json_string_value(json_object_get(json, "leader")), "a");
    assert_string_equal(json_string_value(json_object_get(json, "address")), "host:1");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    json_decref(json);
    listener_resign(*state, a, "g");
    assert_true(listener_elected(b) > epoch);
    wait_metric(*state, "sessions", 1);
    wait_metric(*state, "campaign_streams", 1);
    wait_metric(*state, "group_elections_total", 2);
    listener_resign(*state, b, "g");
    wait_metric(*state, "sessions", 0);
}

/* What an event says of time. */
static json_int_t stamp_of(const json_t *json)
{
    return json_integer_value(json_object_get(json, "sent_at"));
}
static json_int_t valid_of(const json_t *json)
{
    return json_integer_value(json_object_get(json, "valid_ms"));
}

static void test_times_are_counted_from_the_clients_own_send(void **state)
{
    struct listener *a =
        listener_campaign(*state, "g", "a", ",\"ttl_ms\":30000,\"sent_at\":9007199254740991");
    json_t *json = listener_next(a, "session");

    assert_int_equal(json_integer_value(json_object_get(json, "ttl_ms")), 30000);
    assert_int_equal(json_string_length(json_object_get(json, "session")), 16);
    assert_string_equal(json_string_value(json_object_get(json, "keepalive")), "stream");
    assert_int_equal(stamp_of(json), 9007199254740991);
    assert_true(json_integer_value(json_object_get(json, "at_ns")) <= clock_now());
    json_decref(json);
    json = listener_next(a, "elected");
    assert_string_equal(json_string_value(json_object_get(json, "group")), "g");
    assert_string_equal(json_string_value(json_object_get(json, "candidate")), "a");
    assert_int_equal(stamp_of(json), 9007199254740991);
    assert_int_equal(valid_of(json), 29940); /* less the drift of both clocks, however late it is read */
    assert_null(json_object_get(json, "remaining_ms"));
    json_decref(json);
    listener_leave(a);
}

static void test_without_a_stamp_nothing_is_said_of_time(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    json_t *json = listener_next(a, "elected");

    assert_true(json_is_null(json_object_get(json, "sent_at")));
    assert_true(json_is_null(json_object_get(json, "valid_ms")));
    json_decref(json);
    listener_leave(a);
}

static void test_the_node_keeps_the_session_while_the_stream_is_open(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":1500,\"sent_at\":17");
    json_int_t valid_ms = 0;

    (void)listener_elected(a);
    for (int i = 0; i < 6; i++) { /* two whole times to live */
        json_t *json = listener_next(a, "alive");

        assert_int_equal(stamp_of(json), 17);
        assert_true(valid_of(json) > valid_ms);
        valid_ms = valid_of(json);
        json_decref(json);
    }
    assert_true(valid_ms >= 2 * 1497);
    assert_null(strstr(a->text, "event: demoted"));
    assert_true(frontend->cluster.keep_alives >= 6);
    listener_leave(a);
}

/* It may be frozen, with a kernel that acknowledges everything for it. */
static void test_a_client_that_shows_no_life_is_not_kept_for_ever(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":200");

    listener_expect(a, "ended", "reason", "expired");
    listener_wait_end(a);
    listener_leave(a);
}

static void test_a_word_of_the_client_lets_the_node_keep_it_for_longer(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":800,\"sent_at\":1");
    gavel_ns until = clock_now() + ns_from_ms(800 * (CAMPAIGN_VOUCHES + 2));
    char session[17];
    json_t *json;

    listener_session(a, session);
    (void)listener_elected(a);
    while (clock_now() < until) {
        (void)post(*state, "/groups/g/keepalive", session, ",\"sent_at\":2", 200);
        (void)poll(NULL, 0, 4000);
    }
    assert_null(strstr(a->text, "event: ended"));
    do {
        json = listener_next(a, "alive");
        until = stamp_of(json);
        json_decref(json);
    } while (until != 2);
    listener_resign(*state, a, "g");
}

static void test_past_the_deadline_it_leads_no_more_and_again_when_the_cluster_answers(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":400");
    uint64_t epoch = listener_elected(a);

    frontend->cluster.holds = true; /* nobody is heard, and nobody expires */
    listener_expect(a, "demoted", "reason", "deadline");
    frontend->cluster.holds = false;
    assert_int_equal(listener_elected(a), epoch);
    listener_leave(a);
}

static void test_a_session_that_expires_ends_the_stream(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":300,\"keepalive\":\"client\"");

    (void)listener_elected(a);
    listener_expect(a, "demoted", "reason", "expired");
    listener_expect(a, "ended", "reason", "expired");
    listener_wait_end(a);
    listener_leave(a);
}

static void test_a_client_that_keeps_itself_alive_leads_on(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":5000,\"keepalive\":null");
    gavel_ns until = clock_now() + 6 * NS_PER_S;
    char session[17];
    json_t *json;

    listener_session(a, session);
    (void)listener_elected(a);
    while (clock_now() < until) {
        const char *answer = post(*state, "/groups/g/keepalive", session, ",\"sent_at\":5", 200);

        assert_string_equal(answer, "{\"ttl_ms\":5000,\"sent_at\":5,\"valid_ms\":4990}\n");
        json = listener_next(a, "alive"); /* it went through this node */
        assert_int_equal(stamp_of(json), 5);
        assert_int_equal(valid_of(json), 4990);
        json_decref(json);
        (void)poll(NULL, 0, 500);
    }
    assert_null(strstr(a->text, "event: demoted"));
    listener_leave(a); /* the session lives on without the stream */
    (void)post(*state, "/groups/g/keepalive", session, "", 200);
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
}

/* A copy of its opening that comes late, when it has expired, opens another one under its id. */
static void test_a_session_that_is_another_under_the_same_id_is_not_kept(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"ttl_ms\":30000");
    json_t *json = listener_next(a, "session");
    uint64_t revision = (uint64_t)json_integer_value(json_object_get(json, "session_revision"));
    char session[17], own[64], other[64];

    (void)snprintf(session, sizeof session, "%s", json_string_value(json_object_get(json, "session")));
    json_decref(json);
    assert_true(revision > 0);
    (void)snprintf(own, sizeof own, ",\"session_revision\":%" PRIu64, revision);
    (void)snprintf(other, sizeof other, ",\"session_revision\":%" PRIu64, revision + 1);
    (void)post(*state, "/groups/g/keepalive", session, own, 200);
    (void)post(*state, "/groups/g/keepalive", session, ",\"session_revision\":null", 200);
    assert_non_null(strstr(post(*state, "/groups/g/keepalive", session, other, 410), "ERR_SESSION_GONE"));
    assert_non_null(strstr(post(*state, "/groups/g/events", session, other, 410), "ERR_SESSION_GONE"));
    (void)post(*state, "/groups/g/keepalive", session, ",\"session_revision\":0", 400);
    (void)post(*state, "/groups/g/keepalive", session, ",\"session_revision\":\"7\"", 400);
    listener_resign(*state, a, "g");
}

static void test_who_resigns_leaves_and_who_stays_goes_to_the_end_of_the_queue(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];
    char more[64];
    uint64_t epoch;
    struct listener *b;

    listener_session(a, session);
    epoch = listener_elected(a);
    b = listener_campaign(*state, "g", "b", "");
    listener_expect(b, "leader", "leader", "a");
    (void)post(*state, "/groups/g/resign", session, ",\"stay\":true", 400); /* of which mandate? */
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64 ",\"stay\":true", epoch);
    (void)post(*state, "/groups/g/resign", session, more, 200);
    listener_expect(a, "demoted", "reason", "resigned");
    assert_true(listener_elected(b) > epoch);
    listener_expect(a, "leader", "leader", "b");
    listener_resign(*state, b, "g");
    assert_true(listener_elected(a) > epoch); /* it had stayed */
    listener_leave(a);
}

static void test_a_stale_epoch_cannot_resign(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];
    char more[64];
    uint64_t epoch;

    listener_session(a, session);
    epoch = listener_elected(a);
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64, epoch + 1);
    assert_non_null(strstr(post(*state, "/groups/g/resign", session, more, 409), "ERR_NOT_HOLDER"));
    assert_int_equal(http_ask(*state, "/groups/g/leader?candidate=a", NULL, "")->code, 200);
    (void)snprintf(more, sizeof more, ",\"epoch\":%" PRIu64, epoch);
    (void)post(*state, "/groups/g/resign", session, more, 200);
    listener_expect(a, "ended", "reason", "resigned");
    listener_wait_end(a);
    wait_metric(*state, "sessions", 0);
    (void)post(*state, "/groups/g/resign", session, more, 410);
    (void)post(*state, "/groups/g/keepalive", session, "", 410);
    listener_leave(a);
}

static void test_sessions_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "x", "0000000000000000", "123", "00000000000000AB", "0123456789abcdef0"};
    struct listener *a = listener_campaign(*state, "g", "a", "");
    char session[17];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)post(*state, "/groups/g/keepalive", bad[i], "", 400);
        (void)post(*state, "/groups/g/resign", bad[i], "", 400);
    }
    assert_non_null(strstr(post(*state, "/groups/g/keepalive", "0123456789abcdef", "", 410), "4122"));
    assert_non_null(strstr(post(*state, "/groups/g/resign", "0123456789abcdef", "", 410), "4122"));
    listener_session(a, session);
    (void)post(*state, "/groups/other/keepalive", session, "", 409); /* of another group */
    (void)post(*state, "/groups/other/resign", session, "", 409);
    (void)http_expect_error(*state, "/groups/g/keepalive", "{}", 400, GAVEL_ERR_INVALID);
    (void)http_expect_error(*state, "/groups/g/keepalive", "{\"session\":7}", 400, GAVEL_ERR_INVALID);
    (void)post(*state, "/groups/g/keepalive", session, ",\"sent_at\":-1", 400);
    (void)post(*state, "/groups/g/keepalive", session, ",\"sent_at\":9007199254740992", 400);
    (void)post(*state, "/groups/g/keepalive", session, ",\"sent_at\":\"now\"", 400);
    listener_leave(a);
}

static void test_what_cannot_campaign_is_told_why(void **state)
{
    static const char *const bodies[] = {"{}",
                                         "{\"candidate\":\"\"}",
                                         "{\"candidate\":\"a\\nb\"}",
                                         "{\"candidate\":\"a\",\"policy\":\"best\"}",
                                         "{\"candidate\":\"a\",\"keepalive\":\"never\"}",
                                         "{\"candidate\":\"a\",\"ttl_ms\":99}",
                                         "{\"candidate\":\"a\",\"sent_at\":-1}",
                                         "{\"candidate\":\"a\",\"sent_at\":1.5}",
                                         "{\"candidate\":\"a\",\"ttl_ms\":86400001}",
                                         "{\"candidate\":\"a\",\"priority\":2147483648}",
                                         "{\"candidate\":\"a\",\"eligible\":1}",
                                         "{\"candidate\":\"a\",\"nonsense\":1}",
                                         "[]",
                                         "{"};
    char long_body[2048] = "{\"candidate\":\"a\",\"metadata\":\"";

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        (void)http_expect_error(*state, "/groups/g/campaign", bodies[i], 400, GAVEL_ERR_INVALID);
    memset(long_body + strlen(long_body), 'x', TABLE_METADATA_BYTES_MAX + 1);
    strcat(long_body, "\"}");
    assert_true(http_ask(*state, "/groups/g/campaign", long_body, "")->code >= 400);
    assert_int_equal(http_ask(*state, "/groups/g", NULL, "")->code, 404); /* nothing of it stayed */
}

static void test_an_id_is_taken_by_one_session_only(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", "");

    (void)listener_elected(a);
    (void)http_expect_error(*state, "/groups/g/campaign", "{\"candidate\":\"a\"}", 409, GAVEL_ERR_ID_IN_USE);
    wait_metric(*state, "sessions", 1); /* the session of the other was closed again */
    listener_leave(a);
}

static void test_policies_choose_the_next(void **state)
{
    struct listener *a = listener_campaign(*state, "g", "a", ",\"policy\":\"priority\",\"priority\":1");
    struct listener *b;
    struct listener *c;
    struct listener *d;

    (void)listener_elected(a);
    b = listener_campaign(*state, "g", "b", ",\"priority\":2");
    c = listener_campaign(*state, "g", "c", ",\"priority\":-3");
    d = listener_campaign(*state, "g", "d", ",\"priority\":9,\"eligible\":false,\"metadata\":\"x\"");
    listener_expect(d, "leader", "leader", "a");
    listener_expect(c, "leader", "leader", "a");
    listener_resign(*state, a, "g");
    (void)listener_elected(b);
    listener_expect(c, "leader", "leader", "b");
    listener_resign(*state, b, "g");
    (void)listener_elected(c);
    listener_resign(*state, c, "g");
    listener_expect(d, "leader", "leader", "b");
    listener_expect(d, "leader", "leader", "c");
    listener_expect(d, "leader", "leader", "");
    listener_leave(d);
}

/* The answer comes when nobody waits for it any more. */
static void test_a_client_that_leaves_before_the_answer_leaves_no_session(void **state)
{
    struct api_frontend *frontend = *state;
    struct pollfd asked = {.fd = frontend->frontend.forwardings.fd, .events = POLLIN};
    int fd = raw_open(frontend);

    frontend->cluster.holds = true;
    raw_say(fd,
            "POST /groups/g/campaign HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n{\"candidate\":\"a\"}");
    assert_int_equal(poll(&asked, 1, LIMIT_MS), 1);
    (void)close(fd);
    frontend->cluster.holds = false;
    wait_metric(frontend, "group_elections_total", 1); /* it was open for a moment */
    wait_metric(frontend, "sessions", 0);
}

static void test_without_a_cluster_nobody_campaigns(void **state)
{
    struct api_frontend *frontend = *state;

    frontend->cluster.is_leaderless = true;
    (void)http_expect_error(frontend, "/groups/g/campaign", "{\"candidate\":\"a\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(frontend, "/groups/g/keepalive", "{\"session\":\"0123456789abcdef\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(frontend, "/groups/g/transfer", "{}", 503, GAVEL_ERR_NO_LEADER);
    (void)http_expect_error(frontend, "/groups/g/resign", "{\"session\":\"0123456789abcdef\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    frontend->cluster.is_leaderless = false;
}

static void test_a_node_that_ends_says_so(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"sent_at\":7");
    json_t *json;

    (void)listener_elected(a);
    frontend->is_ending = true;
    (void)pthread_join(frontend->consensus, NULL);
    api_stop(frontend->api);
    frontend->api = NULL;
    json = listener_next(a, "stopping");
    assert_int_equal(stamp_of(json), 7);
    json_decref(json);
    listener_wait_end(a);
    listener_leave(a);
}

/* Everything that the API has asked of the cluster before is done then. */
static void wait_cluster(struct api_frontend *frontend)
{
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/other/notes/k", "v", "")->code, 200);
}

static bool leads(struct api_frontend *frontend, const char *candidate)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/groups/g/leader?candidate=%s", candidate);
    return http_ask(frontend, path, NULL, "")->code == 200;
}

/* Told that the node stops a client goes on at another one: nobody else leads before its session ends. */
static void test_a_node_that_leaves_ends_streams_and_no_session(void **state)
{
    struct api_frontend *frontend = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":60000");
    struct listener *b;
    json_t *json;

    (void)listener_elected(a);
    b = listener_campaign(frontend, "g", "b", ",\"ttl_ms\":60000");
    listener_expect(b, "leader", "leader", "a");
    api_leave(frontend->api);
    json = listener_next(a, "stopping");
    json_decref(json);
    listener_wait_end(a);
    assert_non_null(strstr(a->text, "\r\n0\r\n\r\n")); /* a whole answer */
    assert_null(strstr(a->text, "event: demoted"));
    listener_wait_end(b);
    listener_leave(a);
    listener_leave(b);
    while (!api_has_left(frontend->api))
        assert_true(clock_now() < limit);
    wait_cluster(frontend);
    wait_metric(frontend, "sessions", 2);
    assert_true(leads(frontend, "a"));
}

/* A candidate there would not hear that it was elected. It goes on at another node, with the session that it
 * has. */
static void test_a_node_whose_disk_hangs_sends_candidates_elsewhere(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":60000,\"sent_at\":7");
    char session[17];
    json_t *json;

    listener_session(a, session);
    (void)listener_elected(a);
    frontend->frontend.is_blind = true;
    json = listener_next(a, "stale");
    assert_int_equal(stamp_of(json), 7);
    assert_non_null(strstr(json_string_value(json_object_get(json, "reason")), "disk"));
    json_decref(json);
    listener_wait_end(a);
    assert_null(strstr(a->text, "event: demoted"));
    listener_leave(a);
    assert_non_null(strstr(http_expect_error(frontend, "/groups/g/campaign", "{\"candidate\":\"b\"}", 503,
                                             GAVEL_ERR_STORE_UNAVAILABLE),
                           "disk"));
    (void)post(frontend, "/groups/g/events", session, "", 503);
    (void)post(frontend, "/groups/g/keepalive", session, "", 200); /* it is only passed on */
    assert_true(leads(frontend, "a"));
    frontend->frontend.is_blind = false;
    a = listener_campaign(frontend, "g", "c", "");
    listener_expect(a, "leader", "leader", "a");
    listener_leave(a);
}

/* What a node sees of the end of a connection may be the doing of a proxy, whose client works on. */
static void check_an_end_releases_nothing(struct api_frontend *frontend,
                                          void (*end)(struct listener *listener))
{
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":60000");
    struct listener *b;

    (void)listener_elected(a);
    b = listener_campaign(frontend, "g", "b", ",\"ttl_ms\":60000");
    listener_expect(b, "leader", "leader", "a");
    end(a);
    wait_metric(frontend, "campaign_streams", 1);
    wait_cluster(frontend);
    wait_metric(frontend, "sessions", 2);
    assert_true(leads(frontend, "a"));
    assert_null(strstr(b->text, "event: elected"));
    listener_resign(frontend, a, "g"); /* this does */
    (void)listener_elected(b);
    listener_resign(frontend, b, "g");
}

static void send_fin(struct listener *listener) { assert_int_equal(shutdown(listener->fd, SHUT_WR), 0); }

static void send_reset(struct listener *listener)
{
    struct linger linger = {.l_onoff = 1};

    assert_int_equal(setsockopt(listener->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    (void)close(listener->fd);
    listener->fd = dup(STDERR_FILENO); /* for listener_leave() */
    assert_true(listener->fd >= 0);
}

static void test_a_fin_releases_nothing(void **state) { check_an_end_releases_nothing(*state, send_fin); }
static void test_a_reset_releases_nothing(void **state) { check_an_end_releases_nothing(*state, send_reset); }

static struct listener *attach(struct api_frontend *frontend, const char *group, const char *session)
{
    char path[64];
    char body[64];

    (void)snprintf(path, sizeof path, "/groups/%s/events", group);
    (void)snprintf(body, sizeof body, "{\"session\":\"%s\",\"sent_at\":42}", session);
    return listener_post(frontend, path, body);
}

static void test_a_stream_that_was_lost_is_asked_for_again(void **state)
{
    struct api_frontend *frontend = *state;
    struct listener *a = listener_campaign(frontend, "g", "a", ",\"ttl_ms\":60000,\"keepalive\":\"client\"");
    struct listener *again;
    char session[17];
    char other[17];
    uint64_t epoch;
    json_t *json;

    listener_session(a, session);
    epoch = listener_elected(a);
    listener_leave(a);
    wait_metric(frontend, "campaign_streams", 0);
    again = attach(frontend, "g", session);
    listener_session(again, other);
    assert_string_equal(session, other);
    json = listener_next(again, "elected");
    assert_int_equal(json_integer_value(json_object_get(json, "epoch")), epoch);
    assert_string_equal(json_string_value(json_object_get(json, "candidate")), "a");
    assert_int_equal(stamp_of(json), 42);
    assert_int_equal(valid_of(json), 59880);
    json_decref(json);
    (void)post(frontend, "/groups/other/events", session, "", 409);
    (void)post(frontend, "/groups/g/events", "0123456789abcdef", "", 410);
    (void)post(frontend, "/groups/g/events", "x", "", 400);
    a = attach(frontend, "g", session); /* there may be two */
    (void)post(frontend, "/groups/g/resign", session, "", 200);
    json_decref(listener_next(a, "ended")); /* resigned; or closed, if the other was first to see it */
    json_decref(listener_next(again, "ended"));
    wait_metric(frontend, "sessions", 0);
    (void)post(frontend, "/groups/g/events", session, "", 410);
    listener_leave(a);
    listener_leave(again);
}

static void test_events_without_a_cluster_are_refused(void **state)
{
    struct api_frontend *frontend = *state;

    frontend->cluster.is_leaderless = true;
    (void)http_expect_error(frontend, "/groups/g/events", "{\"session\":\"0123456789abcdef\"}", 503,
                            GAVEL_ERR_NO_LEADER);
    frontend->cluster.is_leaderless = false;
    wait_metric(frontend, "campaign_streams", 0);
}

static bool is_kept(struct api_frontend *frontend, const char *session)
{
    char body[64];

    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"}", session);
    return http_ask(frontend, "/groups/g/keepalive", body, "")->code == 200;
}

/* It takes nothing: once the sockets are full its stream is cut. It may work on for as long as it was told,
 * and so the mandate stays until the session expires. */
static void test_a_candidate_that_does_not_read_is_cut_off_and_expires(void **state)
{
    struct api_frontend *frontend = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *mute = listener_campaign(frontend, "g", "mute", ",\"ttl_ms\":60000");
    char session[17];
    int little = 1;

    (void)setsockopt(mute->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    listener_session(mute, session);
    (void)listener_elected(mute);
    while (!strstr(http_ask(frontend, "/metrics", NULL, "")->body, "gavel_http_connections_cut_total 1\n")) {
        for (int i = 0; i < 20; i++)
            assert_true(is_kept(frontend, session)); /* each is told, and not heard */
        assert_true(clock_now() < limit);
    }
    wait_metric(frontend, "campaign_streams", 0);
    wait_cluster(frontend);
    assert_true(leads(frontend, "mute"));
    assert_true(is_kept(frontend, session));
    listener_leave(mute);
}

/* The kernel gives the connection up, for nothing is taken; also then it may be at work. */
static void test_a_connection_that_is_given_up_leaves_the_session_to_expire(void **state)
{
    struct api_frontend *frontend = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    struct listener *mute = listener_campaign(frontend, "g", "mute", ",\"ttl_ms\":1000");
    char session[17];
    int little = 1;

    (void)setsockopt(mute->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    listener_session(mute, session);
    (void)listener_elected(mute);
    while (!strstr(http_ask(frontend, "/metrics", NULL, "")->body, "\ngavel_campaign_streams 0\n")) {
        for (int i = 0; i < 10; i++)
            assert_true(is_kept(frontend, session));
        (void)poll(NULL, 0, 20); /* slowly: before it would be cut */
        assert_true(clock_now() < limit);
    }
    wait_cluster(frontend);
    assert_true(leads(frontend, "mute"));
    listener_leave(mute);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_leads_and_the_second_follows_when_it_resigns),
        TEST(test_times_are_counted_from_the_clients_own_send),
        TEST(test_without_a_stamp_nothing_is_said_of_time),
        TEST(test_the_node_keeps_the_session_while_the_stream_is_open),
        TEST(test_a_client_that_shows_no_life_is_not_kept_for_ever),
        TEST(test_a_word_of_the_client_lets_the_node_keep_it_for_longer),
        TEST(test_past_the_deadline_it_leads_no_more_and_again_when_the_cluster_answers),
        TEST(test_a_session_that_expires_ends_the_stream),
        TEST(test_a_client_that_keeps_itself_alive_leads_on),
        TEST(test_a_session_that_is_another_under_the_same_id_is_not_kept),
        TEST(test_who_resigns_leaves_and_who_stays_goes_to_the_end_of_the_queue),
        TEST(test_a_stale_epoch_cannot_resign),
        TEST(test_sessions_that_are_none_are_refused),
        TEST(test_what_cannot_campaign_is_told_why),
        TEST(test_an_id_is_taken_by_one_session_only),
        TEST(test_policies_choose_the_next),
        TEST(test_a_client_that_leaves_before_the_answer_leaves_no_session),
        TEST(test_without_a_cluster_nobody_campaigns),
        TEST(test_a_node_that_ends_says_so),
        TEST(test_a_node_that_leaves_ends_streams_and_no_session),
        TEST(test_a_node_whose_disk_hangs_sends_candidates_elsewhere),
        TEST(test_a_fin_releases_nothing),
        TEST(test_a_reset_releases_nothing),
        TEST(test_a_stream_that_was_lost_is_asked_for_again),
        TEST(test_events_without_a_cluster_are_refused),
        TEST(test_a_candidate_that_does_not_read_is_cut_off_and_expires),
        TEST(test_a_connection_that_is_given_up_leaves_the_session_to_expire),
    };

    return cmocka_run_group_tests_name("api campaign", tests, NULL, NULL);
}
