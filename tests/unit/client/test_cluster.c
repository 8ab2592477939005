/* SPDX-License-Identifier: Apache-2.0 */

/* A cluster over real sockets, against nodes on the same loop: TCP on loopback, unix sockets, TLS. */

#include "client/cluster.h"
#include "fake_node.h"
#include "net/certs.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Far more than anything here takes, also on a machine that is busy. */
#define LIMIT (60 * NS_PER_S)

struct world {
    struct event_base *base;
    struct event *pulse; /* so that the limit is looked at */
    struct fake_node near;
    struct fake_node far;
    struct cluster_link *cluster;

    /* what was called back */
    bool is_in_call; /* a callback now would come from within a call */
    gavel_ns deadline;
    size_t deadlines;
    size_t lost;
    size_t closed;
    enum client_state state;
    char trouble[256];
    size_t results;
    size_t result_count; /* entries of the newest */
    enum gavel_status result_status;
    size_t answers;
    enum gavel_status answer_status;
    size_t begun;
    size_t gaps;
    size_t changes;
    uint64_t change_revision;
    uint64_t unwatches; /* a watch that the callback ends */
    size_t submits_again;
};

static void on_pulse(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    (void)context;
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
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    cluster_link_free(world->cluster);
    fake_node_stop(&world->near);
    fake_node_stop(&world->far);
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

static void on_deadline(void *user, uint64_t number, gavel_ns deadline)
{
    struct world *world = user;

    (void)number;
    assert_false(world->is_in_call);
    world->deadline = deadline;
    world->deadlines++;
}

static void on_lost(void *user, uint64_t number)
{
    struct world *world = user;

    (void)number;
    assert_false(world->is_in_call);
    world->lost++;
}

static void on_state(void *user, enum client_state state, const char *trouble)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->state = state;
    (void)snprintf(world->trouble, sizeof world->trouble, "%s", trouble);
}

static void on_closed(void *user)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->closed++;
}

static void submit(struct world *world, gavel_ns give_up_at);

static void on_result(void *user, enum gavel_status status, const char *message,
                      const Gavel__OpResult *const *results, size_t count)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    assert_non_null(message);
    if (status == GAVEL_OK)
        assert_int_equal(results[count - 1]->revision, 77);
    world->results++;
    world->result_status = status;
    world->result_count = count;
    if (world->submits_again > 0) {
        world->submits_again--;
        submit(world, NEVER);
    }
}

static void on_answer(void *user, enum gavel_status status, const char *message, const Gavel__Answer *answer)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    assert_non_null(message);
    assert_int_equal(answer != NULL, status == GAVEL_OK);
    world->answers++;
    world->answer_status = status;
}

static void on_change(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct world *world = user;

    assert_false(world->is_in_call);
    world->begun += !change && !is_gap;
    world->gaps += is_gap;
    world->changes += change != NULL;
    if (change)
        world->change_revision = revision;
    if (change && world->unwatches != 0)
        cluster_link_unwatch(world->cluster, world->unwatches);
}

static void submit(struct world *world, gavel_ns give_up_at)
{
    Gavel__PutNote put;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops[] = {&op, &op};
    bool was_in_call = world->is_in_call;

    gavel__put_note__init(&put);
    put.group = (char *)(uintptr_t) "g";
    put.key = (char *)(uintptr_t) "k";
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    world->is_in_call = true;
    cluster_link_submit(world->cluster, ops, 2, give_up_at, on_result, world);
    world->is_in_call = was_in_call;
}

static void ask(struct world *world, const char *group, gavel_ns give_up_at)
{
    Gavel__Ask question;

    gavel__ask__init(&question);
    question.group = (char *)(uintptr_t)group;
    world->is_in_call = true;
    cluster_link_ask(world->cluster, &question, give_up_at, on_answer, world);
    world->is_in_call = false;
}

static void open_target(struct world *world, const char *text, uint32_t ttl_ms)
{
    const struct cluster_link_events events = {.deadline = on_deadline,
                                               .session_lost = on_lost,
                                               .state = on_state,
                                               .closed = on_closed,
                                               .user = world};
    const struct table_process process = {.boot_id = "11111111-2222-3333-4444-555555555555", .pid = 42};
    struct gavel_error error = {0};
    struct cluster_link_target target;

    if (cluster_link_target_parse(text, &target, &error) != GAVEL_OK)
        fail_msg("%s: %s", text, error.message);
    world->is_in_call = true;
    if (cluster_link_new(world->base, &target, ttl_ms, "test", &process, &events, &world->cluster, &error) !=
        GAVEL_OK)
        fail_msg("%s: %s", text, error.message);
    world->is_in_call = false;
}

static void open_port(struct world *world, uint16_t port, uint32_t ttl_ms)
{
    char text[64];

    (void)snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)port);
    open_target(world, text, ttl_ms);
}

static void test_a_session_opens_and_everything_is_answered_over_tcp(void **state)
{
    struct world *world = *state;
    gavel_ns begin = clock_now();

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 2000);
    UNTIL(world, world->state == CLIENT_UP);
    assert_string_equal(world->trouble, "");
    assert_true(world->deadline > begin + NS_PER_S);
    assert_int_equal(world->deadline, cluster_link_deadline(world->cluster));
    assert_int_equal(world->far.session, cluster_link_session(world->cluster));
    submit(world, NEVER);
    ask(world, "g", NEVER);
    assert_int_not_equal(cluster_link_watch(world->cluster, NULL, "", 0, on_change, world), 0);
    UNTIL(world, world->results == 1 && world->answers == 1 && world->begun == 1);
    assert_int_equal(world->result_status, GAVEL_OK);
    assert_int_equal(world->result_count, 2);
    assert_int_equal(world->answer_status, GAVEL_OK);
    fake_node_change(&world->far, 78);
    UNTIL(world, world->changes == 1);
    assert_int_equal(world->change_revision, 78);
    UNTIL(world, world->far.kept > 0);
    UNTIL(world, world->deadlines > 1);
}

static void test_a_unix_socket_is_preferred_wherever_it_stands(void **state)
{
    struct world *world = *state;
    char path[64], text[128];

    (void)snprintf(path, sizeof path, "/tmp/gavel-test-cluster-%d.sock", (int)getpid());
    fake_node_on_tcp(&world->far, world->base, NULL);
    fake_node_on_unix(&world->near, world->base, path);
    (void)snprintf(text, sizeof text, "127.0.0.1:%u,%s", (unsigned)world->far.port, path);
    open_target(world, text, 2000);
    UNTIL(world, world->state == CLIENT_UP);
    assert_int_equal(world->near.opened, 1);
    assert_int_equal(world->far.hellos, 0);

    /* That node goes away: the other one has the same session, and the request goes there. */
    world->near.is_mute = true;
    submit(world, NEVER);
    UNTIL(world, world->near.requests == 2);
    fake_node_stop(&world->near);
    UNTIL(world, world->results == 1);
    assert_int_equal(world->far.opened, 0);
    assert_int_equal(world->far.session, world->near.session);
    assert_int_equal(world->far.request, world->near.request);
    assert_int_equal(world->lost, 0);
}

static void test_a_silent_node_is_left_for_another(void **state)
{
    struct world *world = *state;
    char path[64], text[128];

    (void)snprintf(path, sizeof path, "/tmp/gavel-test-cluster-%d.sock", (int)getpid());
    fake_node_on_tcp(&world->far, world->base, NULL);
    fake_node_on_unix(&world->near, world->base, path);
    (void)snprintf(text, sizeof text, "%s,127.0.0.1:%u", path, (unsigned)world->far.port);
    open_target(world, text, 300);
    UNTIL(world, world->state == CLIENT_UP);
    world->near.is_mute = true;
    UNTIL(world, world->far.kept > 0);
    assert_int_equal(world->far.opened, 0); /* there is a session already */
}

static void test_a_session_that_is_gone_is_told_and_replaced(void **state)
{
    struct world *world = *state;
    uint64_t before;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 300);
    UNTIL(world, world->state == CLIENT_UP);
    (void)cluster_link_watch(world->cluster, NULL, NULL, 0, on_change, world);
    UNTIL(world, world->begun == 1);
    before = cluster_link_session(world->cluster);
    assert_int_equal(world->far.watch_session, before);
    world->far.denies_session = true;
    UNTIL(world, world->lost == 1);
    UNTIL(world, world->far.opened == 2 && world->deadline > 0 && world->begun == 2);
    assert_int_not_equal(cluster_link_session(world->cluster), before);
    assert_int_equal(world->far.watch_session, cluster_link_session(world->cluster));
}

static void test_callbacks_may_call(void **state)
{
    struct world *world = *state;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 2000);
    world->submits_again = 3;
    submit(world, NEVER);
    UNTIL(world, world->results == 4);
    world->unwatches = cluster_link_watch(world->cluster, "g", NULL, 0, on_change, world);
    UNTIL(world, world->begun == 1);
    fake_node_change(&world->far, 78);
    fake_node_change(&world->far, 79);
    ask(world, "g", NEVER);
    UNTIL(world, world->answers == 1);
    assert_int_equal(world->changes, 1);
}

static void test_what_is_refused_at_once_is_told_from_the_loop(void **state)
{
    struct world *world = *state;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 0);
    submit(world, NEVER);
    assert_int_equal(world->results, 0);
    UNTIL(world, world->results == 1);
    assert_int_equal(world->result_status, GAVEL_ERR_STATE);
    ask(world, "g", NEVER);
    UNTIL(world, world->answers == 1);
    assert_int_equal(cluster_link_session(world->cluster), 0);
    world->is_in_call = true;
    cluster_link_close(world->cluster);
    world->is_in_call = false;
    UNTIL(world, world->closed == 1);
}

static void test_close_ends_the_session_at_the_node(void **state)
{
    struct world *world = *state;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 2000);
    UNTIL(world, world->state == CLIENT_UP);
    submit(world, NEVER);
    cluster_link_close(world->cluster);
    UNTIL(world, world->closed == 1);
    assert_int_equal(world->results, 1);
    assert_int_equal(world->result_status, GAVEL_OK);
    assert_int_equal(world->far.closed, 1);
    assert_int_equal(world->deadline, 0);
}

static void test_close_without_any_node_ends_at_the_deadline(void **state)
{
    struct world *world = *state;
    gavel_ns deadline;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 300);
    UNTIL(world, world->state == CLIENT_UP);
    fake_node_stop(&world->far);
    deadline = cluster_link_deadline(world->cluster);
    UNTIL(world, world->state == CLIENT_AWAY);
    submit(world, NEVER);
    cluster_link_close(world->cluster);
    UNTIL(world, world->closed == 1);
    assert_true(clock_now() >= deadline);
    assert_int_equal(world->result_status, GAVEL_ERR_STOPPED);
}

static void test_free_leaves_nothing_behind_while_everything_is_under_way(void **state)
{
    struct world *world = *state;

    fake_node_on_tcp(&world->far, world->base, NULL);
    open_port(world, world->far.port, 2000);
    UNTIL(world, world->state == CLIENT_UP);
    world->far.is_mute = true;
    submit(world, NEVER);
    submit(world, NEVER);
    ask(world, "g", NEVER);
    (void)cluster_link_watch(world->cluster, "g", NULL, 0, on_change, world);
    cluster_link_free(world->cluster);
    world->cluster = NULL;
    assert_int_equal(event_base_loop(world->base, EVLOOP_NONBLOCK), 0);
    assert_int_equal(world->results + world->answers, 0);
}

static void test_what_cannot_be_asked_in_time_is_given_up(void **state)
{
    struct world *world = *state;

    open_target(world, "/tmp/gavel-test-nobody-listens-here.sock", 2000);
    submit(world, clock_now() + 50 * NS_PER_MS);
    ask(world, "g", clock_now() + 50 * NS_PER_MS);
    UNTIL(world, world->results == 1 && world->answers == 1);
    assert_int_equal(world->result_status, GAVEL_ERR_TIMEOUT);
    assert_int_equal(world->answer_status, GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(cluster_link_trouble(world->cluster), "nobody-listens-here.sock: cannot connect"));
}

static void test_names_are_looked_up_beside_the_loop(void **state)
{
    struct world *world = *state;
    char text[128];

    fake_node_on_tcp(&world->far, world->base, NULL);
    (void)snprintf(text, sizeof text, "no-such-host.invalid:7600,localhost:%u", (unsigned)world->far.port);
    open_target(world, text, 2000);
    UNTIL(world, world->state == CLIENT_UP);
}

static void test_bytes_that_are_no_frames_end_the_connection(void **state)
{
    const struct {
        const char *says;
        const char *trouble;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "this is an HTTP port"},
        {"\x15\x03\x03\x01", "the node speaks TLS"},
        {"\xff\xff\xff\xff", "not a frame"},
        {"\x01\x01\x01\x01zzzz", "not a frame"},
    };
    struct world *world = *state;

    fake_node_on_tcp(&world->far, world->base, NULL);
    world->far.says = cases[0].says;
    open_port(world, world->far.port, 2000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world->far.says = cases[i].says;
        UNTIL(world, strstr(cluster_link_trouble(world->cluster), cases[i].trouble));
    }
    world->far.says = NULL;
    UNTIL(world, world->state == CLIENT_UP);
}

static void test_a_node_that_does_not_read_is_left(void **state)
{
    struct world *world = *state;
    char group[513];

    memset(group, 'g', sizeof group - 1);
    group[sizeof group - 1] = '\0';
    fake_node_on_tcp(&world->far, world->base, NULL);
    world->far.is_blind = true;
    open_port(world, world->far.port, 0);
    UNTIL(world, world->state == CLIENT_UP);
    for (size_t i = 0; i < 45000; i++)
        ask(world, group, NEVER);
    UNTIL(world, strstr(world->trouble, "reads too slowly"));
}

static void secure_target(char *text, size_t size, uint16_t port, const struct tls_files *files)
{
    (void)snprintf(text, size, "127.0.0.1:%u?ca=%s&cert=%s&key=%s", (unsigned)port, files->ca, files->cert,
                   files->key);
}

static void test_tls_asks_both_sides_for_certificates(void **state)
{
    struct world *world = *state;
    struct paths node_paths, client_paths, other_paths;
    struct certs certs;
    struct tls_files node, client, other;
    char text[512];

    certs_init(&certs);
    node = certs_issue(&certs, &(struct issue){.node = "n1"}, &node_paths);
    client = certs_issue(&certs, &(struct issue){.node = "app", .kind = "client"}, &client_paths);
    other = certs_issue(&certs, &(struct issue){.node = "stranger", .is_of_other_ca = true}, &other_paths);
    fake_node_on_tcp(&world->far, world->base, &node);
    secure_target(text, sizeof text, world->far.port, &client);
    open_target(world, text, 2000);
    submit(world, NEVER);
    UNTIL(world, world->results == 1);
    assert_int_equal(world->result_status, GAVEL_OK);
    cluster_link_free(world->cluster);

    /* Plain bytes to a node that speaks TLS. */
    open_port(world, world->far.port, 2000);
    UNTIL(world, cluster_link_trouble(world->cluster)[0] != '\0');
    cluster_link_free(world->cluster);
    world->cluster = NULL;

    /* A certificate of somebody else is found before anything is dialled. */
    {
        struct cluster_link_target target;
        struct gavel_error error;

        secure_target(text, sizeof text, world->far.port, &other);
        assert_int_equal(cluster_link_target_parse(text, &target, &error), GAVEL_OK);
        assert_int_equal(
            cluster_link_new(world->base, &target, 2000, "test", NULL, NULL, &world->cluster, &error),
            GAVEL_ERR_INVALID);
        assert_non_null(strstr(error.message, "not signed by the CA"));
        assert_null(world->cluster);
    }

    /* TLS to a node that speaks plainly. */
    fake_node_on_tcp(&world->near, world->base, NULL);
    world->near.says = "";
    secure_target(text, sizeof text, world->near.port, &client);
    open_target(world, text, 2000);
    UNTIL(world, cluster_link_trouble(world->cluster)[0] != '\0');
    certs_done(&certs);
}

static void test_a_node_with_a_certificate_of_another_cluster_is_refused(void **state)
{
    struct world *world = *state;
    struct paths node_paths, client_paths;
    struct certs certs;
    struct tls_files node, client;
    char text[512];

    certs_init(&certs);
    client = certs_issue(&certs, &(struct issue){.node = "app", .kind = "client"}, &client_paths);
    node = certs_issue(&certs, &(struct issue){.cluster = "production", .node = "n1"}, &node_paths);
    fake_node_on_tcp(&world->far, world->base, &node);
    secure_target(text, sizeof text, world->far.port, &client);
    open_target(world, text, 2000);
    UNTIL(world,
          strstr(cluster_link_trouble(world->cluster), "for cluster \"production\", ours for \"test\""));
    assert_int_equal(world->far.hellos, 0);
    certs_done(&certs);
}

/* Somebody at the address of a node, with this certificate, is refused for this reason and told nothing. */
static void expect_no_node(struct world *world, const struct issue *issue, const char *reason)
{
    struct paths node_paths, client_paths;
    struct certs certs;
    struct tls_files node, client;
    char text[512];

    certs_init(&certs);
    client = certs_issue(&certs, &(struct issue){.node = "app", .kind = "client"}, &client_paths);
    node = certs_issue(&certs, issue, &node_paths);
    fake_node_on_tcp(&world->far, world->base, &node);
    secure_target(text, sizeof text, world->far.port, &client);
    open_target(world, text, 2000);
    UNTIL(world, strstr(cluster_link_trouble(world->cluster), reason));
    assert_int_equal(world->far.hellos, 0);
    certs_done(&certs);
}

static void test_another_client_is_no_node(void **state)
{
    expect_no_node(*state, &(struct issue){.node = "n1", .kind = "client"}, "is a client's, not a node's");
}

static void test_a_certificate_of_before_is_no_node(void **state)
{
    expect_no_node(*state, &(struct issue){.node = "n1", .kind = ""}, "gavel cert issue n1 --force");
}

static void test_a_node_elsewhere_is_not_the_one_that_was_dialled(void **state)
{
    expect_no_node(*state, &(struct issue){.node = "n1", .is_nowhere = true},
                   "its certificate is not for this name or address");
}

static void test_a_node_with_a_certificate_of_another_ca_is_refused(void **state)
{
    struct world *world = *state;
    struct paths node_paths, client_paths;
    struct certs certs;
    struct tls_files node, client;
    char text[512];

    certs_init(&certs);
    client = certs_issue(&certs, &(struct issue){.node = "app", .kind = "client"}, &client_paths);
    node = certs_issue(&certs, &(struct issue){.node = "n1", .is_of_other_ca = true}, &node_paths);
    fake_node_on_tcp(&world->far, world->base, NULL);
    /* As a stranger would: whose CA it is, it does not ask. */
    world->far.tls = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(world->far.tls, node.cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(world->far.tls, node.key, SSL_FILETYPE_PEM), 1);
    secure_target(text, sizeof text, world->far.port, &client);
    open_target(world, text, 2000);
    UNTIL(world, strstr(cluster_link_trouble(world->cluster), "TLS failed"));
    assert_int_equal(world->far.hellos, 0);
    certs_done(&certs);
}

static void test_places_are_read_as_people_write_them(void **state)
{
    struct cluster_link_target target;
    struct gavel_error error;

    (void)state;
    assert_int_equal(cluster_link_target_parse("h1:7600,[fe80::1]:7601?ca=/a%26b&cert=c&key=k&ttl_ms=5000",
                                               &target, &error),
                     GAVEL_OK);
    assert_int_equal(target.count, 2);
    assert_string_equal(target.addresses[1], "[fe80::1]:7601");
    assert_string_equal(target.ca, "/a&b");
    assert_string_equal(target.key, "k");
    assert_int_equal(target.ttl_ms, 5000);
    assert_int_equal(
        cluster_link_target_parse("/run/g.sock,127.0.0.1:1,[::1]:2,localhost:3", &target, &error), GAVEL_OK);
    assert_int_equal(target.count, 4);
    assert_int_equal(target.ttl_ms, 0);
    assert_string_equal(target.ca, "");
}

static void test_places_that_are_wrong_are_refused_with_the_part_that_is(void **state)
{
    const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "empty"},
        {",", "empty"},
        {"127.0.0.1:1,", "empty"},
        {"?ttl_ms=2000", "empty"},
        {"127.0.0.1", "127.0.0.1"},
        {"127.0.0.1:99999", "99999"},
        {"127.0.0.1:0", "port 0"},
        {"n1:00?ca=a&cert=b&key=c", "port 0"},
        {"me@127.0.0.1:7600", "no users"},
        {"10.0.0.1:7600", "add ca, cert and key"},
        {"127.0.0.1:1,[2001:db8::1]:7600", "2001:db8::1"},
        {"127.0.0.1:1?ca=a", "all three"},
        {"127.0.0.1:1?ca=a&cert=b&key=c&ca=d", "twice"},
        {"127.0.0.1:1?ca=", "no valid value"},
        {"127.0.0.1:1?ca", "no valid value"},
        {"127.0.0.1:1?ca=%2", "no valid value"},
        {"127.0.0.1:1?ca=%00", "no valid value"},
        {"127.0.0.1:1?ca=%zz", "no valid value"},
        {"127.0.0.1:1?", "no option"},
        {"127.0.0.1:1?tls=yes", "\"tls\""},
        {"127.0.0.1:1?ttl_ms=99", "from 100"},
        {"127.0.0.1:1?ttl_ms=-1", "from 100"},
        {"127.0.0.1:1?ttl_ms=99999999999999999999", "from 100"},
        {"127.0.0.1:1?ttl_ms=2s", "from 100"},
        {"1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8,1:9,1:10,1:11,1:12,1:13,1:14,1:15,1:16,1:17", "more than 16"},
    };
    struct cluster_link_target target = {.count = 99};
    struct gavel_error error;
    char path[300];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cluster_link_target_parse(cases[i].text, &target, &error) != GAVEL_ERR_INVALID)
            fail_msg("%s was taken", cases[i].text);
        if (!strstr(error.message, cases[i].says))
            fail_msg("%s: \"%s\" without \"%s\"", cases[i].text, error.message, cases[i].says);
        assert_int_equal(target.count, 99);
    }
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(cluster_link_target_parse(path, &target, &error), GAVEL_ERR_INVALID);
    path[200] = '\0';
    assert_int_equal(cluster_link_target_parse(path, &target, &error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(error.message, "longer than"));
    assert_int_equal(cluster_link_target_parse(path, &target, NULL), GAVEL_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_a_session_opens_and_everything_is_answered_over_tcp),
        T(test_a_unix_socket_is_preferred_wherever_it_stands),
        T(test_a_silent_node_is_left_for_another),
        T(test_a_session_that_is_gone_is_told_and_replaced),
        T(test_callbacks_may_call),
        T(test_what_is_refused_at_once_is_told_from_the_loop),
        T(test_close_ends_the_session_at_the_node),
        T(test_close_without_any_node_ends_at_the_deadline),
        T(test_free_leaves_nothing_behind_while_everything_is_under_way),
        T(test_what_cannot_be_asked_in_time_is_given_up),
        T(test_names_are_looked_up_beside_the_loop),
        T(test_bytes_that_are_no_frames_end_the_connection),
        T(test_a_node_that_does_not_read_is_left),
        T(test_tls_asks_both_sides_for_certificates),
        T(test_a_node_with_a_certificate_of_another_ca_is_refused),
        T(test_another_client_is_no_node),
        T(test_a_certificate_of_before_is_no_node),
        T(test_a_node_elsewhere_is_not_the_one_that_was_dialled),
        T(test_a_node_with_a_certificate_of_another_cluster_is_refused),
        cmocka_unit_test(test_places_are_read_as_people_write_them),
        cmocka_unit_test(test_places_that_are_wrong_are_refused_with_the_part_that_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
