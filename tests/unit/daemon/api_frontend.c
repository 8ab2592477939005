/* SPDX-License-Identifier: Apache-2.0 */

#include "api_frontend.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 60

static void member(struct view *view, size_t i, const char *name, int port)
{
    struct view_member *m = &view->members[i];

    m->id = 100 + i;
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    (void)snprintf(m->address, sizeof m->address, "127.0.0.1:%d", 7400 + port);
    (void)snprintf(m->api, sizeof m->api, "127.0.0.1:%d", 7500 + port);
    m->priority = (uint8_t)(10 * i);
    m->is_voter = true;
    m->is_connected = true;
    m->heard_at = 1;
    m->incarnation = 3 + i;
    m->status = (struct peer_status){.node = m->id, .term = 7, .leader = 100, .commit = 42};
}

static void make_view(struct view *view)
{
    member(view, 0, "n1", 1);
    member(view, 1, "n2", 2);
    member(view, 2, "n3", 3);
    view->member_count = 3;
    view->members[0].is_self = true;
    view->members[2].is_witness = true;
    view->members[2].status.node = 0;
    (void)snprintf(view->cluster_name, sizeof view->cluster_name, "test");
    (void)snprintf(view->name, sizeof view->name, "n1");
    view->generation = 1;
    view->id = 100;
    view->incarnation = 3;
    view->pid = getpid();
    view->started_wall_ms = clock_wall_ms() - 1000;
    view->role = RAFT_LEADER;
    view->term = 7;
    view->leader = 100;
    view->is_leader = view->is_claimed = true;
    view->lease_epoch = 2;
    view->last = 43;
    view->commit = view->applied = 42;
    view->snapshot = 30;
    view->revision = 12;
    view->digest = 0x1234abcd5678ef00;
    view->heartbeat = 50 * NS_PER_MS;
    view->election_max = 300 * NS_PER_MS;
    view->counters =
        (struct view_counters){.elections = 4, .elections_won = 3, .candidacies = 2, .failovers = 1};
    view->counters.duration_buckets[3] = 3;
    view->counters.duration_buckets[12] = 1;
    view->counters.duration_sum = 5200 * NS_PER_MS;
}

/* As a consensus thread does: everything that was heard, was heard just now. */
static void publish(struct api_frontend *frontend)
{
    gavel_ns now = clock_now();

    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.at = now;
    frontend->view.heard_at = now;
    frontend->view.deadline = now + 60 * NS_PER_S;
    frontend->view.members[1].heard_at = now;
    view_publish(&frontend->frontend.view, &frontend->view);
    (void)pthread_mutex_unlock(&frontend->mutex);
}

static void answer_one(struct api_frontend *frontend, struct request *request)
{
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->last = *request;
    request->status = frontend->answer.status;
    memcpy(request->message, frontend->answer.message, sizeof request->message);
    memcpy(request->old_leader, frontend->answer.old_leader, sizeof request->old_leader);
    memcpy(request->new_leader, frontend->answer.new_leader, sizeof request->new_leader);
    memcpy(request->leader_api, frontend->answer.leader_api, sizeof request->leader_api);
    (void)pthread_mutex_unlock(&frontend->mutex);
    mailbox_put(request->reply_to, &request->link);
}

static void *consensus_main(void *user)
{
    struct api_frontend *frontend = user;
    struct mail_link *held = NULL;

    while (!frontend->is_ending) {
        struct pollfd poll_fds[] = {{.fd = frontend->frontend.requests.fd, .events = POLLIN},
                                    {.fd = frontend->frontend.forwardings.fd, .events = POLLIN}};
        struct mail_link *message;

        (void)poll(poll_fds, frontend->cluster.holds ? 1 : 2, 10);
        api_cluster_turn(&frontend->cluster);
        if (!frontend->is_silent)
            publish(frontend);
        while ((message = mailbox_take(&frontend->frontend.requests))) {
            message->next = held;
            held = message;
            frontend->asked++;
        }
        while (held && !frontend->holds) {
            message = held;
            held = held->next;
            answer_one(frontend, (struct request *)(void *)message);
        }
    }
    while (held) { /* as node.c does before it stops the API */
        struct mail_link *message = held;

        held = held->next;
        answer_one(frontend, (struct request *)(void *)message);
    }
    return NULL;
}

int api_frontend_setup_stopped(void **state)
{
    struct api_frontend *frontend = calloc(1, sizeof *frontend);

    assert_non_null(frontend);
    frontend->config = calloc(1, sizeof *frontend->config);
    assert_non_null(frontend->config);
    assert_int_equal(curl_global_init(CURL_GLOBAL_DEFAULT), 0);
    (void)snprintf(frontend->directory, sizeof frontend->directory, "/tmp/gavel-api-XXXXXX");
    assert_non_null(mkdtemp(frontend->directory));
    (void)snprintf(frontend->config->api_listen, sizeof frontend->config->api_listen, "127.0.0.1:0");
    (void)snprintf(frontend->config->api_advertise, sizeof frontend->config->api_advertise, "127.0.0.1:7501");
    frontend->config->raft.drift_ppm = 1000;
    frontend->frontend.config = frontend->config;
    frontend->frontend.log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .format = LOG_LOGFMT};
    assert_int_equal(view_box_init(&frontend->frontend.view), GAVEL_OK);
    assert_int_equal(journal_new(3, &frontend->frontend.journal), GAVEL_OK);
    assert_int_equal(mailbox_init(&frontend->frontend.requests), GAVEL_OK);
    assert_int_equal(mailbox_init(&frontend->frontend.forwardings), GAVEL_OK);
    assert_int_equal(table_box_init(&frontend->frontend.table), GAVEL_OK);
    api_cluster_init(&frontend->cluster, &frontend->frontend);
    assert_int_equal(pthread_mutex_init(&frontend->mutex, NULL), 0);
    make_view(&frontend->view);
    api_frontend_answer(frontend, GAVEL_OK, "n2 leads", "");
    *state = frontend;
    return 0;
}

void api_frontend_start(struct api_frontend *frontend)
{
    struct gavel_error error = {0};

    publish(frontend);
    if (api_start(&frontend->frontend, &frontend->api, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(pthread_create(&frontend->consensus, NULL, consensus_main, frontend), 0);
}

int api_frontend_setup(void **state)
{
    if (api_frontend_setup_stopped(state))
        return -1;
    api_frontend_start(*state);
    return 0;
}

int api_frontend_teardown(void **state)
{
    struct api_frontend *frontend = *state;
    char command[128];

    frontend->is_ending = true;
    if (frontend->api)
        (void)pthread_join(frontend->consensus, NULL);
    api_stop(frontend->api);
    api_cluster_done(&frontend->cluster);
    mailbox_done(&frontend->frontend.requests);
    mailbox_done(&frontend->frontend.forwardings);
    table_box_done(&frontend->frontend.table);
    journal_free(frontend->frontend.journal);
    view_box_done(&frontend->frontend.view);
    (void)pthread_mutex_destroy(&frontend->mutex);
    (void)snprintf(command, sizeof command, "rm -r '%s'", frontend->directory);
    assert_int_equal(system(command), 0);
    free(frontend->config);
    free(frontend);
    return 0;
}

void api_frontend_follow(struct api_frontend *frontend)
{
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.role = RAFT_FOLLOWER;
    frontend->view.leader = 101;
    frontend->view.is_leader = frontend->view.is_claimed = false;
    frontend->view.members[1].status.is_leader = frontend->view.members[1].status.is_working = true;
    (void)pthread_mutex_unlock(&frontend->mutex);
    publish(frontend);
}

void api_frontend_orphan(struct api_frontend *frontend)
{
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->view.role = RAFT_FOLLOWER;
    frontend->view.leader = 0;
    frontend->view.is_leader = frontend->view.is_claimed = false;
    (void)pthread_mutex_unlock(&frontend->mutex);
    publish(frontend);
}

void api_frontend_answer(struct api_frontend *frontend, enum gavel_status status, const char *message,
                         const char *leader_api)
{
    (void)pthread_mutex_lock(&frontend->mutex);
    frontend->answer.status = status;
    (void)snprintf(frontend->answer.message, sizeof frontend->answer.message, "%s", message);
    (void)snprintf(frontend->answer.old_leader, sizeof frontend->answer.old_leader, "n1");
    (void)snprintf(frontend->answer.new_leader, sizeof frontend->answer.new_leader, "n2");
    (void)snprintf(frontend->answer.leader_api, sizeof frontend->answer.leader_api, "%s", leader_api);
    (void)pthread_mutex_unlock(&frontend->mutex);
}

void api_frontend_last(struct api_frontend *frontend, struct request *ret_request)
{
    (void)pthread_mutex_lock(&frontend->mutex);
    *ret_request = frontend->last;
    (void)pthread_mutex_unlock(&frontend->mutex);
}

void api_frontend_wait_asked(struct api_frontend *frontend, int count)
{
    gavel_ns limit = clock_now() + LIMIT_S * NS_PER_S;

    while (frontend->asked < count) {
        assert_true(clock_now() < limit);
        (void)poll(NULL, 0, 1);
    }
}

uint64_t api_frontend_put(struct api_frontend *frontend, enum journal_event event, const char *node,
                          const char *text)
{
    struct journal_entry entry = {.event = event, .wall_ms = clock_wall_ms(), .at = clock_now(), .term = 7};

    (void)snprintf(entry.node, sizeof entry.node, "%s", node);
    (void)snprintf(entry.text, sizeof entry.text, "%s", text);
    return journal_put(frontend->frontend.journal, &entry);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *user)
{
    struct http_answer *answer = user;

    assert_true(answer->length + size * count < sizeof answer->body);
    memcpy(answer->body + answer->length, bytes, size * count);
    answer->length += size * count;
    answer->body[answer->length] = '\0';
    return size * count;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *user)
{
    struct http_answer *answer = user;
    size_t length = strlen(answer->headers);

    assert_true(length + size * count < sizeof answer->headers);
    memcpy(answer->headers + length, bytes, size * count);
    answer->headers[length + size * count] = '\0';
    return size * count;
}

static void set_target(CURL *curl, const struct api_frontend *frontend, const char *path)
{
    char url[8192];

    (void)snprintf(url, sizeof url, "%s://localhost:%u%s", frontend->config->has_api_tls ? "https" : "http",
                   api_port(frontend->api), path);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V4);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)LIMIT_S);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    if (frontend->config->has_api_tls)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, frontend->config->tls_ca);
}

struct http_answer *http_ask_method(struct api_frontend *frontend, const char *method, const char *path,
                                    const char *body, const char *header)
{
    static _Thread_local struct http_answer answer;
    struct curl_slist *headers = header[0] ? curl_slist_append(NULL, header) : NULL;
    CURL *curl = curl_easy_init();
    CURLcode result;

    assert_non_null(curl);
    memset(&answer, 0, sizeof answer);
    set_target(curl, frontend, path);
    if (body) {
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    }
    if (strcmp(method, "HEAD") == 0)
        (void)curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else
        (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
    result = curl_easy_perform(curl);
    if (result != CURLE_OK)
        fail_msg("%s %.100s: %s", method, path, curl_easy_strerror(result));
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.code);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return &answer;
}

struct http_answer *http_ask(struct api_frontend *frontend, const char *path, const char *body,
                             const char *header)
{
    return http_ask_method(frontend, body ? "POST" : "GET", path, body, header);
}

bool http_header(const struct http_answer *answer, const char *name, char *buffer, size_t size)
{
    for (const char *line = answer->headers; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            const char *value = line + strlen(name) + 1;

            value += strspn(value, " ");
            (void)snprintf(buffer, size, "%.*s", (int)strcspn(value, "\r\n"), value);
            return true;
        }
    }
    return false;
}

json_t *http_json(const struct http_answer *answer)
{
    json_error_t error;
    json_t *json = json_loadb(answer->body, answer->length, 0, &error);

    if (!json)
        fail_msg("not JSON (%s): %s", error.text, answer->body);
    return json;
}

const char *http_expect_error(struct api_frontend *frontend, const char *path, const char *body, long code,
                              enum gavel_status status)
{
    static char message[1024];
    struct http_answer *answer = http_ask(frontend, path, body, "");
    json_t *json = http_json(answer);
    json_t *error = json_object_get(json, "error");

    if (answer->code != code)
        fail_msg("%.200s: %ld instead of %ld: %s", path, answer->code, code, answer->body);
    assert_int_equal(json_object_size(json), 1);
    assert_int_equal(json_object_size(error), 3);
    assert_int_equal(json_integer_value(json_object_get(error, "code")), status);
    assert_string_equal(json_string_value(json_object_get(error, "name")), gavel_status_name(status));
    (void)snprintf(message, sizeof message, "%s", json_string_value(json_object_get(error, "message")));
    json_decref(json);
    return message;
}

int raw_open(const struct api_frontend *frontend)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(api_port(frontend->api))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        fail_msg("connect: %s", strerror(errno));
    return fd;
}

void raw_say(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text),
                MSG_NOSIGNAL); /* the other side may have closed: that shows when reading */
}

size_t raw_hear(int fd, char *buffer, size_t size, const char *until, int limit_ms, bool *ret_is_closed)
{
    gavel_ns limit = clock_now() + ns_from_ms(limit_ms);
    size_t length = 0;
    bool is_closed = false;

    buffer[0] = '\0';
    while (!is_closed && length < size - 1 && !(until && strstr(buffer, until)) && clock_now() < limit) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&poll_fd, 1, (int)ms_from_ns(ns_max(limit - clock_now(), 0)) + 1) <= 0)
            continue;
        n = recv(fd, buffer + length, size - 1 - length, MSG_DONTWAIT);
        if (n <= 0)
            is_closed = true;
        else
            length += (size_t)n;
        buffer[length] = '\0';
    }
    if (ret_is_closed)
        *ret_is_closed = is_closed;
    return length;
}
