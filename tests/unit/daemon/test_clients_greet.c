/* SPDX-License-Identifier: Apache-2.0 */

/* Who comes in, by which door, and what the others are told. */

#include "clients_frontend.h"

#include "../net/certs.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void test_a_hello_is_answered_with_who_we_are(void **state)
{
    struct clients_frontend *frontend = *state;
    uint64_t revision = play_put(frontend, "g", "k", "v", 1);
    struct talker talker;
    Gavel__ClientFrame *frame;
    struct process_id self;
    char address[32];

    talk_tcp(&talker, frontend);
    talk_say_hello(&talker, 1, 7);
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_WELCOME);
    assert_int_equal(frame->welcome->version, CLIENT_VERSION_MAX);
    assert_string_equal(frame->welcome->cluster, "test");
    assert_string_equal(frame->welcome->node, "n1");
    assert_string_equal(frame->welcome->program, "gaveld " GAVEL_VERSION);
    assert_int_equal(frame->welcome->revision, revision);
    assert_int_equal(frame->welcome->drift_ppm, 10000);
    assert_int_equal(frame->welcome->n_addresses, 1);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", clients_port(frontend->clients));
    assert_string_equal(frame->welcome->addresses[0], address);
    assert_int_equal(process_self(&self), GAVEL_OK);
    assert_string_equal(frame->welcome->sees->boot_id, self.boot_id);
    assert_int_equal(frame->welcome->sees->pid_ns, self.pid_ns);
    assert_int_equal(frame->welcome->sees->pid, 0);
    client_frame_free(frame);
    talk_end(&talker);
}

/* Whoever has the URL of a store finds the API, too. */
static void test_a_welcome_tells_where_the_api_of_each_node_is(void **state)
{
    struct clients_frontend *frontend = *state;
    struct view *view = &frontend->frontend.view.view;
    struct talker talker;
    Gavel__ClientFrame *frame;

    (void)snprintf(frontend->config->api_advertise, sizeof frontend->config->api_advertise, "h1:7500");
    talk_tcp(&talker, frontend);
    talk_say_hello(&talker, 1, 7);
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_WELCOME);
    assert_int_equal(frame->welcome->n_api_urls, 1); /* no member is known yet */
    assert_string_equal(frame->welcome->api_urls[0], "http://h1:7500");
    client_frame_free(frame);
    talk_end(&talker);

    frontend->config->has_api_tls = true;
    view->member_count = 3;
    (void)snprintf(view->members[0].api, sizeof view->members[0].api, "h1:7500");
    (void)snprintf(view->members[2].api, sizeof view->members[2].api, "[::1]:7503");
    talk_tcp(&talker, frontend);
    talk_say_hello(&talker, 1, 7);
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_WELCOME);
    assert_int_equal(frame->welcome->n_api_urls, 2); /* of the second it is not known */
    assert_string_equal(frame->welcome->api_urls[0], "https://h1:7500");
    assert_string_equal(frame->welcome->api_urls[1], "https://[::1]:7503");
    client_frame_free(frame);
    talk_end(&talker);
}

static void test_versions_that_do_not_meet_are_refused_in_words(void **state)
{
    struct talker talker;

    talk_tcp(&talker, *state);
    talk_say_hello(&talker, CLIENT_VERSION_MAX + 1, CLIENT_VERSION_MAX + 3);
    talk_refused(&talker, "upgrade the node");
    talk_end(&talker);
    talk_tcp(&talker, *state);
    talk_say_hello(&talker, 0, 0);
    talk_refused(&talker, "upgrade the client");
    talk_end(&talker);
    assert_int_equal(play_cut(*state), 2);
}

static void test_whoever_does_not_say_hello_is_refused(void **state)
{
    struct talker talker;

    talk_tcp(&talker, *state);
    talk_keep_alive(&talker, 1, 5);
    talk_refused(&talker, "does not begin with a hello");
    talk_end(&talker);
}

static void test_a_second_hello_is_refused(void **state)
{
    struct talker talker;

    talk_tcp(&talker, *state);
    talk_hello(&talker);
    talk_say_hello(&talker, CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
    talk_refused(&talker, "second hello");
    talk_end(&talker);
}

static void test_whoever_says_nothing_is_cut_off_after_a_while(void **state)
{
    struct talker silent, slow;

    clients_frontend_start_with(*state, (struct clients_patience){NS_PER_S / 10, NS_PER_S, NS_PER_S});
    talk_tcp(&silent, *state);
    talk_unix(&slow, *state);
    talk_bytes(&slow, "\0\0", 2); /* half a length */
    talk_refused(&silent, "no hello has come in time");
    talk_refused(&slow, "no hello has come in time");
    talk_end(&silent);
    talk_end(&slow);
}

static void test_the_unix_socket_is_for_owner_and_group(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;
    struct stat found;

    assert_int_equal(lstat(frontend->config->socket, &found), 0);
    assert_true(S_ISSOCK(found.st_mode));
    assert_int_equal(found.st_mode & 0777, 0660);
    talk_unix(&talker, frontend);
    talk_hello(&talker);
    talk_end(&talker);
}

static int bind_socket(const char *path, bool listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listens)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void test_a_socket_that_a_dead_node_left_is_replaced(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;

    (void)close(bind_socket(frontend->config->socket, true));
    assert_int_equal(access(frontend->config->socket, F_OK), 0);
    clients_frontend_start(frontend);
    talk_unix(&talker, frontend);
    talk_hello(&talker);
    talk_end(&talker);
}

static void expect_no_start(struct clients_frontend *frontend, enum gavel_status status, const char *words)
{
    struct gavel_error error = {0};

    assert_int_equal(clients_start(&frontend->frontend, &frontend->clients, &error), status);
    if (!strstr(error.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    assert_null(frontend->clients);
}

static void test_a_socket_on_which_somebody_answers_is_left_alone(void **state)
{
    struct clients_frontend *frontend = *state;
    int fd = bind_socket(frontend->config->socket, true);

    expect_no_start(frontend, GAVEL_ERR_IO, "another process listens there");
    assert_int_equal(access(frontend->config->socket, F_OK), 0);
    (void)close(fd);
    (void)unlink(frontend->config->socket);
}

static void test_a_file_of_that_name_is_left_alone(void **state)
{
    struct clients_frontend *frontend = *state;
    FILE *file = fopen(frontend->config->socket, "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    expect_no_start(frontend, GAVEL_ERR_IO, "it exists and is not a socket");
    assert_int_equal(access(frontend->config->socket, F_OK), 0);
    (void)unlink(frontend->config->socket);
}

static void test_a_path_that_is_too_long_is_refused(void **state)
{
    struct clients_frontend *frontend = *state;
    size_t length = strlen(frontend->config->socket);

    memset(frontend->config->socket + length, 'x', 120);
    expect_no_start(frontend, GAVEL_ERR_INVALID, "the system allows 107");
    frontend->config->socket[0] = '\0';
}

static void test_the_socket_of_another_is_not_taken_away_at_the_end(void **state)
{
    struct clients_frontend *frontend = *state;
    int fd;

    clients_frontend_start(frontend);
    assert_int_equal(unlink(frontend->config->socket), 0);
    fd = bind_socket(frontend->config->socket, true);
    clients_stop(frontend->clients);
    frontend->clients = NULL;
    assert_int_equal(access(frontend->config->socket, F_OK), 0);
    (void)close(fd);
    (void)unlink(frontend->config->socket);
}

static void test_without_an_address_there_is_no_thread(void **state)
{
    struct clients_frontend *frontend = *state;
    struct gavel_error error = {0};
    struct clients_counts counts;

    frontend->config->clients_listen[0] = frontend->config->socket[0] = '\0';
    assert_int_equal(clients_start(&frontend->frontend, &frontend->clients, &error), GAVEL_OK);
    assert_null(frontend->clients);
    assert_int_equal(clients_port(NULL), 0);
    clients_count(NULL, &counts);
    assert_int_equal(counts.accepted, 0);
}

static void test_plain_tcp_is_for_loopback_only(void **state)
{
    struct clients_frontend *frontend = *state;

    (void)snprintf(frontend->config->clients_listen, sizeof frontend->config->clients_listen, "0.0.0.0:0");
    expect_no_start(frontend, GAVEL_ERR_INVALID, "Set `tls:`");
}

static void test_a_port_that_is_taken_is_named(void **state)
{
    struct clients_frontend *frontend = *state;
    struct clients_frontend other = {.config = frontend->config};

    other.frontend.config = frontend->config;
    clients_frontend_start(frontend);
    (void)snprintf(frontend->config->clients_listen, sizeof frontend->config->clients_listen, "127.0.0.1:%u",
                   clients_port(frontend->clients));
    expect_no_start(&other, GAVEL_ERR_IO, "Another program uses this port");
}

/* ---- TLS ---- */

struct tls_world {
    struct certs certs;
    struct paths server;
    struct paths client;
    SSL_CTX *context; /* of the client */
};

static void tls_begin(struct clients_frontend *frontend, struct tls_world *world, const struct issue *client)
{
    struct tls_files files;
    struct gavel_error error = {0};

    certs_init(&world->certs);
    files = certs_issue(&world->certs, &(struct issue){.node = "n1"}, &world->server);
    frontend->config->has_tls = true;
    (void)snprintf(frontend->config->tls_ca, sizeof frontend->config->tls_ca, "%s", files.ca);
    (void)snprintf(frontend->config->tls_cert, sizeof frontend->config->tls_cert, "%s", files.cert);
    (void)snprintf(frontend->config->tls_key, sizeof frontend->config->tls_key, "%s", files.key);
    clients_frontend_start(frontend);
    if (client) {
        files = certs_issue(&world->certs, client, &world->client);
        assert_int_equal(tls_context_make(&files, TLS_PEER, &world->context, &error), GAVEL_OK);
    } else {
        world->context = SSL_CTX_new(TLS_client_method());
    }
    assert_non_null(world->context);
}

static void tls_end(struct tls_world *world)
{
    SSL_CTX_free(world->context);
    certs_done(&world->certs);
}

static void test_a_certificate_of_the_cluster_opens_the_door(void **state)
{
    struct clients_frontend *frontend = *state;
    struct tls_world world;
    struct talker talker;

    tls_begin(frontend, &world, &(struct issue){.node = "whoever"});
    assert_true(talk_tls(&talker, frontend, world.context));
    talk_hello(&talker);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g"});
    talk_change(&talker, 1, GAVEL__CHANGE__KIND__NOTE_PUT, "g", play_put(frontend, "g", "k", "v", 1));
    talk_expect_silence(&talker);
    talk_end(&talker);
    tls_end(&world);
}

static void test_a_certificate_of_another_cluster_does_not(void **state)
{
    struct clients_frontend *frontend = *state;
    struct tls_world world;
    struct talker talker;

    tls_begin(frontend, &world, &(struct issue){.node = "whoever", .cluster = "other"});
    assert_true(talk_tls(&talker, frontend, world.context));
    talk_refused(&talker, "the certificate is for cluster \"other\"");
    talk_end(&talker);
    tls_end(&world);
}

static void test_without_a_certificate_the_handshake_fails(void **state)
{
    struct clients_frontend *frontend = *state;
    struct tls_world world;
    struct talker talker;

    tls_begin(frontend, &world, NULL);
    if (talk_tls(&talker, frontend, world.context)) /* the client is done before it was looked at */
        assert_null(talk_next(&talker));
    WAIT_UNTIL(play_cut(frontend) == 1);
    talk_end(&talker);
    tls_end(&world);
}

static void test_who_speaks_plainly_to_tls_is_told_so(void **state)
{
    struct clients_frontend *frontend = *state;
    struct tls_world world;
    struct talker talker;

    tls_begin(frontend, &world, &(struct issue){.node = "whoever"});
    talk_tcp(&talker, frontend);
    talk_say_hello(&talker, CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
    talk_refused(&talker, "speaks TLS with its clients");
    talk_end(&talker);
    talk_unix(&talker, frontend); /* where permissions do what certificates do */
    talk_hello(&talker);
    talk_end(&talker);
    tls_end(&world);
}

static int64_t expiry_of_server(struct clients_frontend *frontend, SSL_CTX *context)
{
    struct tls_identity identity;
    struct talker talker;

    assert_true(talk_tls(&talker, frontend, context));
    assert_true(tls_identity_of(talker.ssl, &identity));
    talk_end(&talker);
    return identity.expires_wall_s;
}

static void test_new_certificates_are_read_while_it_runs(void **state)
{
    struct clients_frontend *frontend = *state;
    struct tls_world world;
    struct talker before;
    int64_t expiry;

    tls_begin(frontend, &world, &(struct issue){.node = "whoever"});
    talk_tls(&before, frontend, world.context);
    talk_hello(&before);
    expiry = expiry_of_server(frontend, world.context);
    (void)certs_issue(&world.certs, &(struct issue){.node = "n1", .until_s = 7200}, &world.server);
    clients_reload(frontend->clients);
    WAIT_UNTIL(expiry_of_server(frontend, world.context) > expiry + 1800);
    talk_expect_silence(&before); /* goes on */
    talk_end(&before);
    tls_end(&world);
}

/* ---- many ---- */

#define MANY 1000

static void test_a_thousand_connections_are_served(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker *talkers = calloc(MANY, sizeof *talkers);
    struct clients_counts counts;
    uint64_t revision;

    assert_non_null(talkers);
    for (int i = 0; i < MANY; i++) {
        if (i % 2)
            talk_tcp(&talkers[i], frontend);
        else
            talk_unix(&talkers[i], frontend);
        talk_hello(&talkers[i]);
        talk_watching(&talkers[i], (struct watch_wish){.watch = 7, .prefix = "a"});
    }
    revision = play_put(frontend, "abc", "k", "v", 1);
    for (int i = 0; i < MANY; i++)
        talk_change(&talkers[i], 7, GAVEL__CHANGE__KIND__NOTE_PUT, "abc", revision);
    clients_count(frontend->clients, &counts);
    assert_int_equal(counts.connections, MANY);
    assert_int_equal(counts.watches, MANY);
    assert_int_equal(counts.changes, MANY);
    for (int i = 0; i < MANY; i++)
        talk_end(&talkers[i]);
    WAIT_UNTIL((clients_count(frontend->clients, &counts), counts.connections == 0 && counts.watches == 0));
    free(talkers);
}

/* The lowest that is free. */
static int free_descriptor(void)
{
    int fd = dup(STDERR_FILENO);

    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

/* So many more than are open now; what was before. */
static struct rlimit leave_descriptors(int more)
{
    struct rlimit before, few;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)(free_descriptor() + more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

static void test_beyond_the_limit_of_descriptors_the_next_is_refused(void **state)
{
    struct clients_frontend *frontend = *state;
    struct rlimit before;
    struct talker first, second;

    talk_unix(&first, frontend);
    talk_hello(&first);
    before = leave_descriptors(8);
    talk_unix(&second, frontend);
    talk_refused(&second, "as many connections as it can");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    talk_end(&second);
    talk_unix(&second, frontend);
    talk_hello(&second);
    talk_expect_silence(&first);
    talk_end(&first);
    talk_end(&second);
}

#define TOO_MANY 200

/* As many as the node lets in; the last of them is the first that is refused. */
static int let_in(struct clients_frontend *frontend, struct talker *talkers)
{
    for (int i = 0; i < TOO_MANY; i++) {
        Gavel__ClientFrame *frame;
        bool is_refused;

        talk_unix(&talkers[i], frontend);
        talk_say_hello(&talkers[i], CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
        frame = talk_next(&talkers[i]);
        assert_non_null(frame);
        is_refused = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REFUSAL;
        client_frame_free(frame);
        if (is_refused)
            return i + 1;
    }
    fail_msg("%d clients were let in", TOO_MANY);
    return 0;
}

/* Whoever was refused and has not left yet makes no room for the next: the reserve is for the node itself. */
static void test_the_reserve_of_descriptors_is_not_given_away(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker *talkers = calloc(TOO_MANY, sizeof *talkers);
    struct rlimit before, limit;
    int count, fd;

    assert_non_null(talkers);
    before = leave_descriptors(200); /* client and server are one process here: each connection takes two */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    count = let_in(frontend, talkers);
    assert_in_range(count, 10, 100);
    for (int i = 0; i < 40; i++, count++) { /* they stay, and are refused, or shut out without a word */
        Gavel__ClientFrame *frame;

        talk_unix(&talkers[count], frontend);
        frame = talk_next(&talkers[count]);
        assert_true(!frame || frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REFUSAL);
        client_frame_free(frame);
    }
    fd = free_descriptor();
    assert_in_range(fd, 0, limit.rlim_cur - 20);
    for (int i = 0; i < count; i++)
        talk_end(&talkers[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(talkers);
}

/* Who has come and not said who they are goes at once, so that the next gets a place and not the reserve. */
static void test_whoever_has_not_said_hello_makes_room(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker *talkers = calloc(TOO_MANY, sizeof *talkers);
    struct talker mute;
    struct rlimit before;
    int count;

    assert_non_null(talkers);
    before = leave_descriptors(200);
    talk_unix(&mute, frontend);
    count = let_in(frontend, talkers);
    assert_null(talk_next(&mute)); /* its place was taken by one of them */
    for (int i = 0; i < count; i++)
        talk_end(&talkers[i]);
    talk_end(&mute);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(talkers);
}

/* A newcomer keeps its own descriptor when another makes room for it, and the one that became free goes to
 * the next: repeated, that would take the reserve. */
static void test_newcomers_do_not_creep_into_the_reserve(void **state)
{
    enum { MUTES = 45 };
    struct clients_frontend *frontend = *state;
    struct talker *talkers = calloc(TOO_MANY, sizeof *talkers);
    struct talker mutes[MUTES];
    struct rlimit before;
    int count;

    assert_non_null(talkers);
    before = leave_descriptors(240);
    for (int i = 0; i < MUTES; i++)
        talk_unix(&mutes[i], frontend);
    count = let_in(frontend, talkers);
    assert_in_range(count, 2, MUTES); /* some of them took the place of a mute one, not all that could */
    for (int i = 0; i < count; i++)
        talk_end(&talkers[i]);
    for (int i = 0; i < MUTES; i++)
        talk_end(&mutes[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(talkers);
}

/* Its table stands still: whoever waits there for changes would wait in vain. */
static void test_a_node_whose_disk_hangs_sends_its_clients_elsewhere(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker before, after;

    talk_unix(&before, frontend);
    talk_hello(&before);
    atomic_store(&frontend->frontend.is_blind, true);
    talk_refused(&before, "the disk of this node does not answer");
    talk_tcp(&after, frontend);
    talk_say_hello(&after, CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
    talk_refused(&after, "ask another one");
    talk_end(&after);
    atomic_store(&frontend->frontend.is_blind, false);
    talk_tcp(&after, frontend);
    talk_hello(&after);
    talk_end(&before);
    talk_end(&after);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, clients_frontend_setup, clients_frontend_teardown)
#define STOPPED(test)                                                                                        \
    cmocka_unit_test_setup_teardown(test, clients_frontend_setup_stopped, clients_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_a_hello_is_answered_with_who_we_are),
        WITH(test_a_welcome_tells_where_the_api_of_each_node_is),
        WITH(test_versions_that_do_not_meet_are_refused_in_words),
        WITH(test_whoever_does_not_say_hello_is_refused),
        WITH(test_a_second_hello_is_refused),
        STOPPED(test_whoever_says_nothing_is_cut_off_after_a_while),
        WITH(test_the_unix_socket_is_for_owner_and_group),
        STOPPED(test_a_socket_that_a_dead_node_left_is_replaced),
        STOPPED(test_a_socket_on_which_somebody_answers_is_left_alone),
        STOPPED(test_a_file_of_that_name_is_left_alone),
        STOPPED(test_a_path_that_is_too_long_is_refused),
        STOPPED(test_the_socket_of_another_is_not_taken_away_at_the_end),
        STOPPED(test_without_an_address_there_is_no_thread),
        STOPPED(test_plain_tcp_is_for_loopback_only),
        STOPPED(test_a_port_that_is_taken_is_named),
        STOPPED(test_a_certificate_of_the_cluster_opens_the_door),
        STOPPED(test_a_certificate_of_another_cluster_does_not),
        STOPPED(test_without_a_certificate_the_handshake_fails),
        STOPPED(test_who_speaks_plainly_to_tls_is_told_so),
        STOPPED(test_new_certificates_are_read_while_it_runs),
        WITH(test_a_thousand_connections_are_served),
        WITH(test_beyond_the_limit_of_descriptors_the_next_is_refused),
        WITH(test_the_reserve_of_descriptors_is_not_given_away),
        WITH(test_newcomers_do_not_creep_into_the_reserve),
        WITH(test_whoever_has_not_said_hello_makes_room),
        WITH(test_a_node_whose_disk_hangs_sends_its_clients_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
