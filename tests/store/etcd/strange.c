/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words and answers that no etcd gives: of a server that is something else, or
 * is out of its mind. Nothing is taken at its word, nothing hangs.
 */
#include "store/conformance/conformance.h"
#include "store/etcd/etcd.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S)

/* A server that answers the same to everything. */
struct server {
    pthread_t thread;
    pthread_mutex_t lock;
    int fd;
    int port;
    int status;
    const char *body;
    unsigned requests;
    unsigned streams; /* how often somebody wanted to watch */
};

static void answer(struct server *server, int fd)
{
    char request[8192] = "";
    char head[200];
    size_t size = 0;
    size_t wanted = SIZE_MAX;
    ssize_t got;

    while (size < wanted && (got = read(fd, request + size, sizeof request - 1 - size)) > 0) {
        const char *end;
        const char *length;

        size += (size_t)got;
        request[size] = '\0';
        end = strstr(request, "\r\n\r\n");
        length = strstr(request, "Content-Length: ");
        if (end && length)
            wanted = (size_t)(end - request) + 4 + strtoul(length + 16, NULL, 10);
    }
    pthread_mutex_lock(&server->lock);
    server->requests++;
    server->streams += strncmp(request, "POST /v3/watch", 14) == 0;
    (void)snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                   server->status, strlen(server->body));
    (void)!write(fd, head, strlen(head)); /* who does not listen has its reasons */
    (void)!write(fd, server->body, strlen(server->body));
    pthread_mutex_unlock(&server->lock);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

static void *serve(void *user)
{
    struct server *server = user;
    int fd;

    while ((fd = accept(server->fd, NULL, NULL)) >= 0)
        answer(server, fd);
    return NULL;
}

static void say(struct server *server, int status, const char *body)
{
    pthread_mutex_lock(&server->lock);
    server->status = status;
    server->body = body;
    pthread_mutex_unlock(&server->lock);
}

static unsigned count_requests(struct server *server)
{
    unsigned requests;

    pthread_mutex_lock(&server->lock);
    requests = server->requests;
    pthread_mutex_unlock(&server->lock);
    return requests;
}

static int set_up(void **state)
{
    struct server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    assert_non_null(server);
    (void)pthread_mutex_init(&server->lock, NULL);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->fd, 64), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    say(server, 200, "{}");
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    *state = server;
    return 0;
}

static int tear_down(void **state)
{
    struct server *server = *state;

    (void)shutdown(server->fd, SHUT_RDWR); /* ends accept() */
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    assert_int_equal(close(server->fd), 0);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
    return 0;
}

static struct store *open_here(const struct server *server)
{
    char url[100];
    struct store *store;

    (void)snprintf(url, sizeof url, "etcd://127.0.0.1:%d/p", server->port);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    return store;
}

#define KV(key, revision, value) "{\"key\":\"" key "\",\"mod_revision\":" revision ",\"value\":\"" value "\"}"
#define READ(kv) "{\"responses\":[{\"response_range\":{\"kvs\":[" kv "]}},{\"response_range\":{}}]}"
#define GROUP "cC9ncm91cHMvZw==" /* p/groups/g */

static void test_a_write_or_a_look_is_not_taken_for_done(void **state)
{
    static const char *const bodies[] = {
        "",
        "null",
        "[]",
        "5",
        "{}",
        "{\"succeeded\":true}",
        "{\"succeeded\":true,\"responses\":7}",
        "{\"succeeded\":true,\"responses\":[]}",
        "{\"succeeded\":true,\"responses\":[7,null,{\"response_put\":{}}]}",
        READ(KV(GROUP, "\"0\"", "")),
        READ(KV(GROUP, "\"-1\"", "")),
        READ(KV(GROUP, "\"99999999999999999999\"", "")),
        READ(KV(GROUP, "\"7\"", "!!!")),
        READ(KV(GROUP, "\"7\"", "e30=")),
        READ(KV(GROUP, "\"9223372036854775807\"", "e30=")),
        READ(KV("!", "\"7\"", "e30=")),
        READ("7"),
        READ("{}"),
        "{\"responses\":[{\"response_range\":{\"kvs\":[" KV(GROUP, "7", "e30=") "]}}]}",
        "<html>this is not etcd</html>",
    };
    struct server *server = *state;
    struct store *store = open_here(server);
    const struct store_request requests[] = {
        ask_read("g"),
        ask_claim("g", "one", 1, 0),
        ask_claim("g", "one", 1, 7),
        ask_renew("g", "one", 1, 7),
        ask_release("g", "one", 1, 7),
        ask_wish("g", 7, "two"),
        {.op = STORE_REOPEN, .group = "g", .give_up_at = NEVER, .expected_version = 7},
        ask_heartbeat("g", "one", 1, 1),
    };

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
            struct store_reply reply;
            enum gavel_status status;

            say(server, 200, bodies[i]);
            status = store_call(store, &requests[k], &reply);
            if (status == GAVEL_OK || !reply.message[0])
                fail_msg("%s was believed by %s", bodies[i], store_op_name(requests[k].op));
            store_reply_done(&reply);
        }
    }
    store_close(store);
}

static void test_errors_are_told_in_words(void **state)
{
    static const struct {
        int http;
        const char *body;
        enum gavel_status status;
        const char *words;
    } cases[] = {
        {500, "", GAVEL_ERR_STORE_UNAVAILABLE, "failed: "},
        {502, "<html>bad gateway</html>", GAVEL_ERR_STORE_UNAVAILABLE, "failed: "},
        {503, "{\"error\":\"etcdserver: no leader\",\"code\":14}", GAVEL_ERR_STORE_UNAVAILABLE, "no leader"},
        {503, "{\"error\":\"etcdserver: leader changed\",\"code\":14}", GAVEL_ERR_STORE_UNAVAILABLE,
         "leader changed"},
        {404, "404 page not found", GAVEL_ERR_STORE_UNSUPPORTED, "3.4"},
        {400, "{\"error\":\"unknown field\",\"code\":3}", GAVEL_ERR_STORE_UNSUPPORTED, "unknown field"},
        {403, "{\"error\":\"etcdserver: permission denied\",\"code\":7}", GAVEL_ERR_STORE_DENIED, "role"},
        {401, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}", GAVEL_ERR_STORE_DENIED,
         "auth token"},
        {429, "{\"error\":\"etcdserver: too many requests\",\"code\":8}", GAVEL_ERR_STORE_UNAVAILABLE,
         "too many"},
        {301, "{\"error\":7}", GAVEL_ERR_STORE_UNSUPPORTED, "301"},
    };
    struct server *server = *state;
    struct store *store = open_here(server);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct store_request requests[] = {ask_read("g"), ask_claim("g", "one", 1, 0)};

        say(server, cases[i].http, cases[i].body);
        for (size_t k = 0; k < 2; k++) {
            struct store_reply reply;

            assert_int_equal(store_call(store, &requests[k], &reply), cases[i].status);
            if (!strstr(reply.message, cases[i].words))
                fail_msg("\"%s\" does not say \"%s\"", reply.message, cases[i].words);
            store_reply_done(&reply);
        }
    }
    store_close(store);
}

/* A member whose disk grew full meanwhile carries a transaction out and then says so. */
static void test_a_write_that_found_no_space_is_looked_for(void **state)
{
    struct server *server = *state;
    struct store *store = open_here(server);
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    unsigned before;

    say(server, 429, "{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}");
    before = count_requests(server);
    assert_int_equal(store_call(store, &claim, &reply), GAVEL_ERR_STORE_FULL);
    assert_non_null(strstr(reply.message, "defragment"));
    assert_true(count_requests(server) - before >= 2);
    store_reply_done(&reply);
    store_close(store);
}

/* The same page for ever, and one that says that there is more and has nothing. */
static void test_a_listing_without_end_ends(void **state)
{
    static const char *const pages[] = {
        "{\"more\":true}",
        "{\"more\":true,\"kvs\":[]}",
        "{\"more\":true,\"kvs\":[" KV(GROUP, "\"7\"", "e30=") "]}",
        "{\"more\":true,\"kvs\":[7,null,{\"key\":\"\"}]}",
    };
    struct server *server = *state;
    struct store *store = open_here(server);

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct store_request requests[] = {ask_candidates("g"),
                                           {.op = STORE_GROUPS, .give_up_at = clock_now() + LIMIT}};
        struct store_reply replies[2];

        say(server, 200, pages[i]);
        store_run(store, requests, replies, 2);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(replies[k].status, GAVEL_OK);
            assert_int_equal(replies[k].registration_count + replies[k].group_count, 0);
            store_reply_done(&replies[k]);
        }
    }
    store_close(store);
}

/* Whoever watches is not driven mad by a stream that says nonsense, or begins and ends at once. */
static void test_a_stream_of_nonsense_is_tried_again_with_pauses(void **state)
{
    static const char *const streams[] = {
        "nonsense\n\n\n{}\n",
        "{\"result\":{\"created\":true}}\n{\"result\":{\"created\":true}}\n",
        "{\"result\":{\"created\":true,\"events\":[7,null,{\"kv\":7},{\"kv\":{\"key\":\"!\"}}]}}\n",
        "{\"error\":{\"message\":\"etcdserver: no leader\"}}",
    };
    struct server *server = *state;

    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct store *store = open_here(server);
        struct pollfd fd = {.fd = store_push_fd(store), .events = POLLIN};
        gavel_ns until = clock_now() + 500 * NS_PER_MS;
        char group[NAME_MAX_BYTES + 1];

        say(server, 200, streams[i]);
        server->streams = 0;
        store_watch(store, "g", true);
        while (clock_now() < until) {
            while (store_changed(store, group))
                assert_string_equal(group, "g");
            (void)poll(&fd, 1, 50); /* the loop looks again */
        }
        store_close(store);
        assert_in_range(server->streams, 1, 12);
        say(server, 200, "{}");
    }
}

static void test_only_what_is_ours_is_read_out_of_a_key(void **state)
{
    static const char *const bad[] = {
        "",
        "p",
        "p/groups",
        "p/groups/",
        "p/groups/a/b",
        "p/groups/a%2fb",
        "p/groups/a%2",
        "p/groups/%",
        "p/groups/%41",
        "p/groupsa",
        "q/groups/a",
        "p/wishes/a",
        "p/groups/a\n",
        "p/groups/\xff",
        "p/candidates/g/x",
    };
    struct server *server = *state;
    struct store *store = open_here(server);
    struct etcd_store *etcd = (struct etcd_store *)store;
    char key[ETCD_KEY_SIZE];
    char name[NAME_MAX_BYTES + 1];
    char longest[NAME_MAX_BYTES + 1];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (etcd_key_read(etcd, ETCD_GROUPS, NULL, bad[i], name))
            fail_msg("%s was taken for a key of ours", bad[i]);
    memset(longest, '/', NAME_MAX_BYTES);
    longest[NAME_MAX_BYTES] = '\0';
    etcd_key(etcd, ETCD_GROUPS, longest, NULL, key);
    assert_true(etcd_key_read(etcd, ETCD_GROUPS, NULL, key, name));
    assert_string_equal(name, longest);
    etcd_key(etcd, ETCD_CANDIDATES, longest, longest, key);
    assert_true(strlen(key) < ETCD_KEY_SIZE);
    assert_true(etcd_key_read(etcd, ETCD_CANDIDATES, longest, key, name));
    assert_string_equal(name, longest);
    assert_false(etcd_key_read(etcd, ETCD_CANDIDATES, "g", key, name));
    store_close(store);
}

#define WISH(format, epoch, force, successor)                                                                \
    "{\"format\":" format ",\"epoch\":" epoch ",\"force\":" force ",\"successor\":\"" successor              \
    "\",\"write\":\"00000000000000010000000000000002\"}"

static struct record read_wish(const char *text, struct nonce *ret_write)
{
    struct etcd_kv kv = {.is_found = true, .value = strdup(text), .size = strlen(text)};
    struct record record = {.wish_epoch = 99, .wish_force = true, .wish_successor = "before"};

    assert_non_null(kv.value);
    etcd_wish_read(&kv, &record, ret_write);
    etcd_kv_done(&kv);
    return record;
}

static void test_a_wish_that_makes_no_sense_is_none(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"format\":1,\"epoch\":7,\"force\":true,\"successor\":\"two\"}",
        WISH("2", "7", "true", "two"),
        WISH("1", "-7", "true", "two"),
        WISH("1", "7", "1", "two"),
        WISH("1", "7", "true", "t\\nwo"),
    };
    struct nonce write;
    struct record record = read_wish(WISH("1", "7", "true", "two"), &write);

    (void)state;
    assert_int_equal(record.wish_epoch, 7);
    assert_true(record.wish_force);
    assert_string_equal(record.wish_successor, "two");
    assert_int_equal(write.high, 1);
    assert_int_equal(write.low, 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        record = read_wish(bad[i], &write);
        assert_int_equal(record.wish_epoch, 0);
        assert_false(record.wish_force);
        assert_string_equal(record.wish_successor, "");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_write_or_a_look_is_not_taken_for_done),
        TEST(test_errors_are_told_in_words),
        TEST(test_a_write_that_found_no_space_is_looked_for),
        TEST(test_a_listing_without_end_ends),
        TEST(test_a_stream_of_nonsense_is_tried_again_with_pauses),
        TEST(test_only_what_is_ours_is_read_out_of_a_key),
        cmocka_unit_test(test_a_wish_that_makes_no_sense_is_none),
    };

    return cmocka_run_group_tests_name("etcd, strange answers", tests, NULL, NULL);
}
