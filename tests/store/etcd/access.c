/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may use an etcd, and how: URLs, TLS, users and passwords, a server that
 * has no space left or is none. Everything that fails says why, and what to do.
 */
#include "raw.h"
#include "servers/server.h"
#include "store/etcd/etcd.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The suite's helpers do not know it. */
static struct test_server server;

#define SECRET "not/in:any%message"

static void clear_environment(void)
{
    (void)unsetenv("GAVEL_ETCD_USER");
    (void)unsetenv("GAVEL_ETCD_PASSWORD");
}

static int set_up(void **state)
{
    (void)state;
    clear_environment();
    return 0;
}

/* Fails to open, with that status and a message that has those words in it. */
static void assert_refused(const char *url, enum gavel_status status, const char *words)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    enum gavel_status got = store_open(url, &store, &error);

    if (got != status)
        fail_msg("%s: %s instead of %s: %s", url, gavel_status_name(got), gavel_status_name(status),
                 error.message);
    if (!strstr(error.message, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", url, error.message, words);
    assert_null(strstr(error.message, SECRET));
    assert_null(store);
}

static void assert_works(const char *url)
{
    struct gavel_error error = {0};
    struct store *store;
    struct record record;

    if (store_open(url, &store, &error) != GAVEL_OK)
        fail_msg("%s: %s", url, error.message);
    record = expect(store, ask_read("g"), GAVEL_OK).record;
    record = expect(store, ask_claim("g", "one", 1, record.version), GAVEL_OK).record;
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_OK);
    (void)expect(store, ask_leave("g", "one", 1), GAVEL_OK);
    (void)expect(store, ask_release("g", "one", 1, record.epoch), GAVEL_OK);
    store_close(store);
}

static void test_a_url_that_makes_no_sense_is_refused(void **state)
{
    static const char *const bad[] = {
        "etcd:",
        "etcd:h1:2379",
        "etcd://",
        "etcd://h1:0/p",
        "etcd://h1,,h2/p",
        "etcd://h1:2379/p?colour=red",
        "etcd://h1/p?tls=perhaps",
        "etcd://h1/p?tls=off&tls=off",
        "etcd://a%2fb/p?tls=off",
        "etcd://h1///?tls=off",
        "etcd://127.0.0.1/p?cert=/etc/hostname",
        "etcd://bob:" SECRET "@h1:2379/p",
        "etcd://bob@127.0.0.1/p",
        "etcd://127.0.0.1/p?user=bob",
        "etcd://h1,h2,h3,h4,h5,h6,h7,h8,h9,h10/p",
    };
    char url[400];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(bad[i], GAVEL_ERR_INVALID, "");
    (void)snprintf(url, sizeof url, "etcd://127.0.0.1/%0300d", 0);
    assert_refused(url, GAVEL_ERR_INVALID, "prefix");
    assert_refused("etcd://127.0.0.1/p?ca=/nowhere/ca.pem", GAVEL_ERR_STORE_DENIED, "/nowhere/ca.pem");
    assert_refused("etcd://127.0.0.1/p?credentials=/nowhere/c", GAVEL_ERR_STORE_DENIED, "/nowhere/c");
}

static void test_nobody_there_is_told_soon(void **state)
{
    gavel_ns began = clock_now();

    (void)state;
    assert_refused("etcd://127.0.0.1:1,localhost:1/p", GAVEL_ERR_STORE_UNAVAILABLE, "cannot be reached");
    assert_true(clock_now() - began < 60 * NS_PER_S); /* a busy machine */
}

/* A port that takes connections and never says a word. */
static void test_a_port_that_says_nothing_is_given_up_on(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    gavel_ns began = clock_now();
    char url[100];

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof url, "etcd://127.0.0.1:%d/p", ntohs(address.sin_port));
    assert_refused(url, GAVEL_ERR_STORE_UNAVAILABLE, "did not answer in time");
    assert_true(clock_now() - began < 60 * NS_PER_S);
    assert_int_equal(close(fd), 0);
}

static void test_tls_is_checked_against_the_authority(void **state)
{
    char url[400];

    (void)state;
    (void)snprintf(url, sizeof url, "etcd://%s/tls?ca=%s", server.tls_address, server.ca);
    assert_works(url);
    (void)snprintf(url, sizeof url, "etcd://%s/tls?tls=on", server.tls_address); /* not known to the system */
    assert_refused(url, GAVEL_ERR_STORE_UNAVAILABLE, "certificate");
    (void)snprintf(url, sizeof url, "etcd://%s/tls", server.tls_address); /* loopback: no TLS */
    assert_refused(url, GAVEL_ERR_STORE_UNAVAILABLE, "tls=on");
    (void)snprintf(url, sizeof url, "etcd://%s/tls?ca=%s", server.address,
                   server.ca); /* TLS to a plain port */
    assert_refused(url, GAVEL_ERR_STORE_UNAVAILABLE, "cannot be reached");
}

static void test_a_path_without_the_api_is_no_etcd(void **state)
{
    char url[200];
    struct store *store;
    struct etcd_store *etcd;
    struct store_request read = ask_read("g");
    struct store_reply reply;

    (void)state;
    test_server_url(&server, "old", NULL, url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    etcd = (struct etcd_store *)store;
    (void)strcat(etcd->endpoints[0].base, "/nothing"); /* answers 404 there, as an older one does at /v3 */
    assert_int_equal(store_call(store, &read, &reply), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(reply.message, "3.4"));
    store_reply_done(&reply);
    store_close(store);
}

/* An alarm as etcd raises it itself when its quota is used up. */
static void raise_alarm(const char *action)
{
    json_t *status = etcd_raw(server.port, NULL, "/v3/maintenance/status", "{}");
    const char *member = NULL;

    assert_int_equal(json_unpack(status, "{s{ss}}", "header", "member_id", &member), 0);
    etcd_raw_do(server.port, NULL, "/v3/maintenance/alarm",
                "{\"action\":\"%s\",\"memberID\":\"%s\",\"alarm\":\"NOSPACE\"}", action, member);
    json_decref(status);
}

static void test_a_full_server_says_so_and_goes_on_when_there_is_room(void **state)
{
    struct store *store;
    struct record record;
    struct store_request renew;
    struct store_reply reply;
    char url[200];

    (void)state;
    test_server_url(&server, "full", NULL, url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    raise_alarm("ACTIVATE");
    renew = ask_renew("g", "one", 1, record.epoch);
    assert_int_equal(store_call(store, &renew, &reply), GAVEL_ERR_STORE_FULL);
    assert_non_null(strstr(reply.message, "space"));
    store_reply_done(&reply);
    (void)expect(store, ask_claim("h", "one", 1, 0), GAVEL_ERR_STORE_FULL);
    (void)expect(store, ask_heartbeat("g", "one", 1, 1), GAVEL_ERR_STORE_FULL);
    (void)expect(store, ask_read("g"), GAVEL_OK); /* looking goes on */
    raise_alarm("DEACTIVATE");
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    store_close(store);
}

/* "root" may do everything, "bob" whatever is below good/. */
static void enable_auth(void)
{
    static const char *const steps[][2] = {
        {"/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"r\"}"},
        {"/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}"},
        {"/v3/auth/user/add", "{\"name\":\"bob\",\"password\":\"" SECRET "\"}"},
        {"/v3/auth/role/add", "{\"name\":\"r\"}"},
        /* good/ to good0 */
        {"/v3/auth/role/grant", "{\"name\":\"r\",\"perm\":{\"permType\":\"READWRITE\",\"key\":\"Z29vZC8=\","
                                "\"range_end\":\"Z29vZDA=\"}}"},
        {"/v3/auth/user/grant", "{\"user\":\"bob\",\"role\":\"r\"}"},
        {"/v3/auth/enable", "{}"},
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        etcd_raw_do(server.port, NULL, steps[i][0], "%s", steps[i][1]);
}

static char *root_token(void)
{
    json_t *answer =
        etcd_raw(server.port, NULL, "/v3/auth/authenticate", "{\"name\":\"root\",\"password\":\"r\"}");
    char *token = strdup(json_string_value(json_object_get(answer, "token")));

    assert_non_null(token);
    json_decref(answer);
    return token;
}

static void change_password(const char *root, const char *password)
{
    etcd_raw_do(server.port, root, "/v3/auth/user/changepw", "{\"name\":\"bob\",\"password\":\"%s\"}",
                password);
}

static void make_url(const char *user, const char *prefix, const char *options, char *url, size_t size)
{
    (void)snprintf(url, size, "etcd://%s%s%s/%s%s", user, *user ? "@" : "", server.address, prefix, options);
}

static void test_a_user_is_let_in_by_each_of_the_ways_to_say_who_it_is(void **state)
{
    char path[] = "/tmp/gavel-etcd-XXXXXX";
    int fd = mkstemp(path);
    char options[100];
    char url[300];

    (void)state;
    make_url("", "good", "", url, sizeof url);
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "name a user");
    (void)setenv("GAVEL_ETCD_PASSWORD", SECRET, 1);
    make_url("bob", "good", "", url, sizeof url);
    assert_works(url);
    make_url("", "good/deep", "?user=bob", url, sizeof url);
    assert_works(url);
    (void)setenv("GAVEL_ETCD_USER", "bob", 1);
    make_url("", "good", "", url, sizeof url);
    assert_works(url);
    clear_environment();
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "bob:" SECRET "\n", strlen(SECRET) + 5), strlen(SECRET) + 5);
    (void)snprintf(options, sizeof options, "?credentials=%s", path);
    make_url("", "good", options, url, sizeof url);
    assert_works(url);
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_refused(url, GAVEL_ERR_INVALID, "user:password");
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_who_is_not_let_in_learns_why(void **state)
{
    char url[300];

    (void)state;
    (void)setenv("GAVEL_ETCD_PASSWORD", "wrong", 1);
    make_url("bob", "good", "", url, sizeof url);
    assert_refused(url, GAVEL_ERR_STORE_DENIED,
                   "refuses the user \"bob\": the name or the password is wrong");
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "then try `gavel store ping`");
    make_url("nobody", "good", "", url, sizeof url);
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "refuses the user \"nobody\"");
    (void)setenv("GAVEL_ETCD_PASSWORD", SECRET, 1);
    make_url("bob", "bad", "", url, sizeof url);
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "refuses the user \"bob\": its role may not do this");
    assert_refused(url, GAVEL_ERR_STORE_DENIED,
                   "readwrite on the prefix with `etcdctl role grant-permission`");
}

/* A role for what one of the families of keys begins with, below "half". */
static void grant(const char *root, const char *permission, const char *first, const char *end)
{
    json_t *words[] = {etcd_encode(first), etcd_encode(end)};
    char *key = json_dumps(words[0], JSON_ENCODE_ANY);
    char *behind = json_dumps(words[1], JSON_ENCODE_ANY);

    etcd_raw_do(server.port, root, "/v3/auth/role/grant",
                "{\"name\":\"r\",\"perm\":{\"permType\":\"%s\",\"key\":%s,\"range_end\":%s}}", permission,
                key, behind);
    free(key);
    free(behind);
    json_decref(words[0]);
    json_decref(words[1]);
}

static void test_who_may_only_read_is_refused_by_the_probe(void **state)
{
    struct gavel_error error = {0};
    char *root = root_token();
    struct store *store;
    char url[300];

    (void)state;
    (void)setenv("GAVEL_ETCD_PASSWORD", SECRET, 1);
    make_url("bob", "half", "", url, sizeof url);
    grant(root, "READ", "half/", "half0");
    assert_int_equal(store_open(url, &store, &error), GAVEL_OK);
    assert_int_equal(store_probe(store, &error), GAVEL_ERR_STORE_DENIED);
    assert_non_null(strstr(error.message, "readwrite"));
    assert_false(expect(store, ask_read("g"), GAVEL_OK).found); /* who looks needs no more */
    grant(root, "READWRITE", "half/groups/", "half/groups0");
    assert_int_equal(store_probe(store, &error), GAVEL_ERR_STORE_DENIED);
    grant(root, "READWRITE", "half/", "half0");
    assert_int_equal(store_probe(store, &error), GAVEL_OK);
    store_close(store);
    free(root);
}

static void test_the_probe_leaves_nothing_behind(void **state)
{
    struct store *store;
    char url[300];

    (void)state;
    make_url("", "probed", "", url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    assert_int_equal(store_probe(store, NULL), GAVEL_OK);
    assert_int_equal(etcd_raw_count(server.port, "probed"), 0);
    store_close(store);
}

/* A pipe would keep whoever opens it waiting for a writer. */
static void test_credentials_in_no_file_are_refused_at_once(void **state)
{
    char directory[] = "/tmp/gavel-etcd-XXXXXX";
    char path[60];
    char url[300];

    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/pipe", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(url, sizeof url, "etcd://127.0.0.1:1/p?credentials=%s", path);
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "it is a pipe");
    (void)snprintf(url, sizeof url, "etcd://127.0.0.1:1/p?credentials=%s", directory);
    assert_refused(url, GAVEL_ERR_STORE_DENIED, "Is a directory");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* Every change of a user makes the tokens of before useless; for the calls, and for the watch. */
static void test_a_token_that_ended_is_renewed(void **state)
{
    char *root = root_token();
    struct store *store;
    struct record record;
    char group[NAME_MAX_BYTES + 1];
    struct pollfd fd = {.events = POLLIN};
    gavel_ns limit = clock_now() + 20 * NS_PER_S;
    char url[300];

    (void)state;
    (void)setenv("GAVEL_ETCD_PASSWORD", SECRET, 1);
    make_url("bob", "good/token", "", url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    change_password(root, SECRET);
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    change_password(root, SECRET);
    store_watch(store, "g", true); /* its first stream has a token that ended */
    fd.fd = store_push_fd(store);
    while (!store_changed(store, group)) {
        assert_true(clock_now() < limit);
        (void)poll(&fd, 1, 1000); /* the loop looks again */
    }
    assert_string_equal(group, "g");
    store_watch(store, "g", false);
    store_close(store);
    free(root);
}

static void test_a_password_that_was_changed_stops_the_holder_until_it_is_known(void **state)
{
    char *root = root_token();
    struct store *store;
    struct record record;
    char url[300];

    (void)state;
    (void)setenv("GAVEL_ETCD_PASSWORD", SECRET, 1);
    make_url("bob", "good/change", "", url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    change_password(root, "new");
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_ERR_STORE_DENIED);
    change_password(root, SECRET);
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    store_close(store);
    free(root);
}

/* A file is read again, so that nothing has to be started anew. */
static void test_a_password_in_a_file_may_be_changed_while_it_runs(void **state)
{
    char path[] = "/tmp/gavel-etcd-XXXXXX";
    char *root = root_token();
    int fd = mkstemp(path);
    struct store *store;
    struct record record;
    char options[100];
    char url[300];

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "bob:" SECRET, strlen(SECRET) + 4), strlen(SECRET) + 4);
    (void)snprintf(options, sizeof options, "?credentials=%s", path);
    make_url("", "good/file", options, url, sizeof url);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    record = expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK).record;
    change_password(root, "new");
    assert_int_equal(ftruncate(fd, 0), 0);
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_ERR_STORE_DENIED); /* half-written */
    assert_int_equal(pwrite(fd, "bob:new\n", 8, 0), 8);
    (void)expect(store, ask_renew("g", "one", 1, record.epoch), GAVEL_OK);
    change_password(root, SECRET);
    store_close(store);
    free(root);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest open_tests[] = {
        cmocka_unit_test_setup(test_a_url_that_makes_no_sense_is_refused, set_up),
        cmocka_unit_test_setup(test_credentials_in_no_file_are_refused_at_once, set_up),
        cmocka_unit_test_setup(test_the_probe_leaves_nothing_behind, set_up),
        cmocka_unit_test_setup(test_nobody_there_is_told_soon, set_up),
        cmocka_unit_test_setup(test_a_port_that_says_nothing_is_given_up_on, set_up),
        cmocka_unit_test_setup(test_tls_is_checked_against_the_authority, set_up),
        cmocka_unit_test_setup(test_a_path_without_the_api_is_no_etcd, set_up),
        cmocka_unit_test_setup(test_a_full_server_says_so_and_goes_on_when_there_is_room, set_up),
    };
    const struct CMUnitTest user_tests[] = {
        cmocka_unit_test_setup(test_a_user_is_let_in_by_each_of_the_ways_to_say_who_it_is, set_up),
        cmocka_unit_test_setup(test_who_is_not_let_in_learns_why, set_up),
        cmocka_unit_test_setup(test_who_may_only_read_is_refused_by_the_probe, set_up),
        cmocka_unit_test_setup(test_a_token_that_ended_is_renewed, set_up),
        cmocka_unit_test_setup(test_a_password_that_was_changed_stops_the_holder_until_it_is_known, set_up),
        cmocka_unit_test_setup(test_a_password_in_a_file_may_be_changed_while_it_runs, set_up),
    };
    int failed;

    test_server_start(&server, TEST_ETCD);
    failed = cmocka_run_group_tests_name("etcd, opening it", open_tests, NULL, NULL);
    enable_auth();
    failed += cmocka_run_group_tests_name("etcd, users", user_tests, NULL, NULL);
    test_server_stop(&server);
    return failed;
}
