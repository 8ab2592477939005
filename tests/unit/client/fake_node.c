/* SPDX-License-Identifier: Apache-2.0 */

#include "fake_node.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void cut(struct fake_client *client)
{
    LIST_REMOVE(client, entry);
    bufferevent_free(client->bytes);
    free(client);
}

static void say(struct fake_client *client, const Gavel__ClientFrame *frame)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(client_frame_pack(frame, &bytes, &size), GAVEL_OK);
    assert_int_equal(bufferevent_write(client->bytes, bytes, size), 0);
    free(bytes);
}

static void greet(struct fake_client *client)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__ClientWelcome welcome;

    gavel__client_welcome__init(&welcome);
    client->node->hellos++;
    if (client->node->says) {
        assert_int_equal(bufferevent_write(client->bytes, client->node->says, strlen(client->node->says)), 0);
        return;
    }
    welcome.version = CLIENT_VERSION_MAX;
    welcome.cluster = (char *)(uintptr_t) "test";
    welcome.node = (char *)(uintptr_t) "n1";
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WELCOME;
    frame.welcome = &welcome;
    say(client, &frame);
}

static void take_opening(struct fake_node *node, const Gavel__OpenSession *opening)
{
    node->opened++;
    node->ttl_ms = opening->ttl_ms;
    if (node->noted)
        assert_int_equal(*node->noted, opening->session);
}

static void take_hello(struct fake_node *node, const Gavel__ClientHello *hello)
{
    assert_int_equal(hello->secret.len, sizeof node->secret);
    memcpy(node->secret, hello->secret.data, sizeof node->secret);
}

static void reply(struct fake_client *client, const Gavel__Request *request)
{
    struct fake_node *node = client->node;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Reply answer;
    Gavel__OpResult result;
    Gavel__OpResult *results[512];

    gavel__reply__init(&answer);
    gavel__op_result__init(&result);
    assert_true(request->n_ops <= 512);
    result.revision = 77;
    for (size_t i = 0; i < request->n_ops; i++) {
        results[i] = &result;
        if (request->ops[i]->what_case == GAVEL__OP__WHAT_OPEN_SESSION) {
            take_opening(node, request->ops[i]->open_session);
            result.session_revision = 1000 + node->opened;
        }
        node->closed += request->ops[i]->what_case == GAVEL__OP__WHAT_CLOSE_SESSION;
    }
    answer.tag = request->tag;
    answer.n_results = request->n_ops;
    answer.results = results;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
    frame.reply = &answer;
    say(client, &frame);
}

static void take_request(struct fake_client *client, const Gavel__Request *request)
{
    client->node->requests++;
    client->node->session = request->session;
    client->node->request = request->id;
    if (!client->node->is_mute)
        reply(client, request);
}

static void take_keep_alive(struct fake_client *client, const Gavel__KeepAlive *keep_alive)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Kept kept = GAVEL__KEPT__INIT;

    if (client->node->is_mute)
        return;
    client->node->kept++;
    kept.tag = keep_alive->tag;
    if (client->node->denies_session) {
        client->node->denies_session = false;
        kept.n_gone = keep_alive->n_sessions;
        kept.gone = keep_alive->sessions;
    }
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    say(client, &frame);
}

static void take_ask(struct fake_client *client, const Gavel__Ask *ask)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Answer answer;

    gavel__answer__init(&answer);
    client->node->asks++;
    if (client->node->is_mute)
        return;
    answer.tag = ask->tag;
    answer.revision = 77;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
    frame.answer = &answer;
    say(client, &frame);
}

static void take_watch(struct fake_client *client, const Gavel__Watch *watch)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Changes begun = GAVEL__CHANGES__INIT;

    client->node->watches++;
    client->node->watch = watch->watch;
    client->node->watch_session = watch->session;
    begun.watch = watch->watch;
    begun.revision = 77;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &begun;
    say(client, &frame);
}

static void take(struct fake_client *client, const Gavel__ClientFrame *frame)
{
    switch (frame->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_HELLO:
        take_hello(client->node, frame->hello);
        greet(client);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        take_request(client, frame->request);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        take_keep_alive(client, frame->keep_alive);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_ASK:
        take_ask(client, frame->ask);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_WATCH:
        take_watch(client, frame->watch);
        break;
    case GAVEL__CLIENT_FRAME__WHAT_UNWATCH:
        break;
    default:
        fail_msg("a client said %d", (int)frame->what_case);
    }
}

static void on_read(struct bufferevent *bytes, void *context)
{
    struct fake_client *client = context;
    struct evbuffer *input = bufferevent_get_input(bytes);
    uint8_t length[CLIENT_LENGTH_BYTES];

    while (evbuffer_copyout(input, length, sizeof length) == CLIENT_LENGTH_BYTES) {
        size_t size = client_frame_length(length);
        const char *reason = "";
        Gavel__ClientFrame *frame;
        const uint8_t *whole;

        if (evbuffer_get_length(input) < CLIENT_LENGTH_BYTES + size)
            return;
        whole = evbuffer_pullup(input, (ev_ssize_t)(CLIENT_LENGTH_BYTES + size));
        if (client_frame_unpack(whole + CLIENT_LENGTH_BYTES, size, &frame, &reason) != GAVEL_OK)
            fail_msg("no frame of a client: %s", reason);
        (void)evbuffer_drain(input, CLIENT_LENGTH_BYTES + size);
        take(client, frame);
        client_frame_free(frame);
        if (client->node->is_blind)
            (void)bufferevent_disable(bytes, EV_READ);
    }
}

static void on_event(struct bufferevent *bytes, short events, void *context)
{
    (void)bytes;
    if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        cut(context);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *context)
{
    struct fake_node *node = context;
    struct fake_client *client = calloc(1, sizeof *client);

    (void)listener;
    (void)address;
    (void)length;
    assert_non_null(client);
    client->node = node;
    client->bytes = node->tls
                        ? bufferevent_openssl_socket_new(node->base, fd, SSL_new(node->tls),
                                                         BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE)
                        : bufferevent_socket_new(node->base, fd, BEV_OPT_CLOSE_ON_FREE);
    assert_non_null(client->bytes);
    bufferevent_setcb(client->bytes, on_read, NULL, on_event, client);
    (void)bufferevent_enable(client->bytes, EV_READ | EV_WRITE);
    LIST_INSERT_HEAD(&node->clients, client, entry);
}

static void listen_at(struct fake_node *node, struct event_base *base, const struct sockaddr *address,
                      socklen_t length)
{
    node->base = base;
    LIST_INIT(&node->clients);
    node->listener = evconnlistener_new_bind(
        base, on_accept, node, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16, address, (int)length);
    assert_non_null(node->listener);
}

void fake_node_on_tcp(struct fake_node *node, struct event_base *base, const struct tls_files *files)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    *node = (struct fake_node){0};
    if (files)
        assert_int_equal(tls_context_make(files, TLS_PEER, &node->tls, NULL), GAVEL_OK);
    listen_at(node, base, (struct sockaddr *)&address, length);
    assert_int_equal(getsockname(evconnlistener_get_fd(node->listener), (struct sockaddr *)&address, &length),
                     0);
    node->port = ntohs(address.sin_port);
}

void fake_node_on_unix(struct fake_node *node, struct event_base *base, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *node = (struct fake_node){0};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    (void)snprintf(node->path, sizeof node->path, "%s", path);
    listen_at(node, base, (struct sockaddr *)&address, sizeof address);
}

void fake_node_cut(struct fake_node *node)
{
    struct fake_client *client;

    while ((client = LIST_FIRST(&node->clients)))
        cut(client);
}

void fake_node_stop(struct fake_node *node)
{
    fake_node_cut(node);
    if (node->listener)
        evconnlistener_free(node->listener);
    node->listener = NULL;
    if (node->path[0])
        (void)unlink(node->path);
    SSL_CTX_free(node->tls);
    node->tls = NULL;
}

void fake_node_change(struct fake_node *node, uint64_t revision)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Changes changes = GAVEL__CHANGES__INIT;
    Gavel__Change change;
    Gavel__Change *only = &change;
    struct fake_client *client;

    gavel__change__init(&change);
    change.revision = revision;
    change.kind = GAVEL__CHANGE__KIND__ELECTED;
    change.group = (char *)(uintptr_t) "g";
    changes.watch = node->watch;
    changes.revision = revision;
    changes.n_changes = 1;
    changes.changes = &only;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_CHANGES;
    frame.changes = &changes;
    LIST_FOREACH(client, &node->clients, entry)
        say(client, &frame);
}
