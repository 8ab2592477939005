/* SPDX-License-Identifier: Apache-2.0 */

#include "clients_frontend.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000

static char *text(const char *words) { return (char *)(uintptr_t)(words ? words : ""); }

int clients_frontend_setup_stopped(void **state)
{
    struct clients_frontend *frontend = calloc(1, sizeof *frontend);

    assert_non_null(frontend);
    frontend->config = calloc(1, sizeof *frontend->config);
    assert_non_null(frontend->config);
    (void)snprintf(frontend->directory, sizeof frontend->directory, "/tmp/gavel-clients-XXXXXX");
    assert_non_null(mkdtemp(frontend->directory));
    (void)snprintf(frontend->config->cluster, sizeof frontend->config->cluster, "test");
    (void)snprintf(frontend->config->node, sizeof frontend->config->node, "n1");
    frontend->config->raft.drift_ppm = 10000;
    (void)snprintf(frontend->config->clients_listen, sizeof frontend->config->clients_listen, "127.0.0.1:0");
    (void)snprintf(frontend->config->socket, sizeof frontend->config->socket, "%s/socket",
                   frontend->directory);
    frontend->frontend.config = frontend->config;
    frontend->frontend.log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .format = LOG_LOGFMT};
    assert_int_equal(mailbox_init(&frontend->frontend.forwardings), GAVEL_OK);
    assert_int_equal(table_box_init(&frontend->frontend.table), GAVEL_OK);
    assert_int_equal(table_keep_history(&frontend->frontend.table.table), GAVEL_OK);
    *state = frontend;
    return 0;
}

void clients_frontend_start(struct clients_frontend *frontend)
{
    struct gavel_error error = {0};

    if (clients_start(&frontend->frontend, &frontend->clients, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    assert_non_null(frontend->clients);
}

void clients_frontend_start_with(struct clients_frontend *frontend, struct clients_patience patience)
{
    struct gavel_error error = {0};

    if (clients_start_with(&frontend->frontend, &patience, &frontend->clients, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
}

int clients_frontend_setup(void **state)
{
    if (clients_frontend_setup_stopped(state))
        return -1;
    clients_frontend_start(*state);
    return 0;
}

int clients_frontend_teardown(void **state)
{
    struct clients_frontend *frontend = *state;
    struct mail_link *message;
    char command[128];

    clients_stop(frontend->clients);
    assert_int_equal(atomic_load(&frontend->frontend.clients_alive_at), 0);
    if (frontend->config->socket[0])
        assert_int_equal(access(frontend->config->socket, F_OK), -1); /* taken away */
    while ((message = mailbox_take(&frontend->frontend.forwardings)))
        forwarding_free((struct forwarding *)(void *)message);
    mailbox_done(&frontend->frontend.forwardings);
    table_box_done(&frontend->frontend.table);
    (void)snprintf(command, sizeof command, "rm -r '%s'", frontend->directory);
    assert_int_equal(system(command), 0);
    free(frontend->config);
    free(frontend);
    return 0;
}

/* ---- the consensus thread ---- */

uint64_t play_apply(struct clients_frontend *frontend, uint64_t session, Gavel__Op *const *ops, size_t count)
{
    struct table_box *box = &frontend->frontend.table;
    struct table_outcome outcome = {0};
    Gavel__Command command;
    uint64_t revision;
    uint8_t *bytes;
    size_t size;

    gavel__command__init(&command);
    frontend->index++;
    command.session = session;
    command.id = session ? frontend->index : 0;
    command.table_version = TABLE_VERSION;
    command.n_ops = count;
    command.ops = (Gavel__Op **)(uintptr_t)ops;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    table_box_lock(box);
    assert_int_equal(table_apply_ops(&box->table, frontend->index, bytes, size, &outcome), GAVEL_OK);
    for (size_t i = 0; i < outcome.count; i++)
        if (outcome.results[i].status != GAVEL_OK)
            fail_msg("operation %zu: %s: %s", i, gavel_status_name(outcome.results[i].status),
                     outcome.results[i].why);
    revision = box->table.revision;
    table_box_unlock(box);
    table_box_ring(box);
    table_outcome_done(&outcome);
    free(bytes);
    return revision;
}

uint64_t play_open(struct clients_frontend *frontend, uint64_t session)
{
    Gavel__OpenSession open;
    Gavel__Op op;

    gavel__open_session__init(&open);
    gavel__op__init(&op);
    open.session = session;
    open.ttl_ms = 2000;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    return play_apply(frontend, session, (Gavel__Op *const[]){&op}, 1);
}

uint64_t play_close(struct clients_frontend *frontend, uint64_t session)
{
    Gavel__CloseSession close;
    Gavel__Op op;

    gavel__close_session__init(&close);
    gavel__op__init(&op);
    close.session = session;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    return play_apply(frontend, 0, (Gavel__Op *const[]){&op}, 1);
}

uint64_t play_campaign(struct clients_frontend *frontend, uint64_t session, const char *group, const char *id)
{
    Gavel__Campaign campaign;
    Gavel__Op op;

    gavel__campaign__init(&campaign);
    gavel__op__init(&op);
    campaign.group = text(group);
    campaign.id = text(id);
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &campaign;
    return play_apply(frontend, session, (Gavel__Op *const[]){&op}, 1);
}

uint64_t play_withdraw(struct clients_frontend *frontend, uint64_t session, const char *group)
{
    Gavel__Withdraw withdraw;
    Gavel__Op op;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    withdraw.group = text(group);
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    return play_apply(frontend, session, (Gavel__Op *const[]){&op}, 1);
}

static void make_put(Gavel__Op *op, Gavel__PutNote *put, const char *group, const char *key)
{
    gavel__put_note__init(put);
    gavel__op__init(op);
    put->group = text(group);
    put->key = text(key);
    op->what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op->put_note = put;
}

uint64_t play_put(struct clients_frontend *frontend, const char *group, const char *key, const void *value,
                  size_t size)
{
    Gavel__PutNote put;
    Gavel__Op op;

    make_put(&op, &put, group, key);
    put.value = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)(uintptr_t)value};
    return play_apply(frontend, 0, (Gavel__Op *const[]){&op}, 1);
}

uint64_t play_put_many(struct clients_frontend *frontend, const char *group, size_t count, size_t size)
{
    static uint8_t value[TABLE_NOTE_BYTES_MAX];
    Gavel__PutNote puts[TABLE_OPS_MAX];
    Gavel__Op ops[TABLE_OPS_MAX];
    Gavel__Op *list[TABLE_OPS_MAX];

    assert_true(count <= TABLE_OPS_MAX);
    for (size_t i = 0; i < count; i++) {
        make_put(&ops[i], &puts[i], group, "key");
        puts[i].value = (ProtobufCBinaryData){.len = size, .data = value};
        list[i] = &ops[i];
    }
    return play_apply(frontend, 0, list, count);
}

/* What was packed for the leader, for the test to look at. */
static struct forwarding *unpacked(struct forwarding *forwarding)
{
    const struct forwarder_question *question = &forwarding->question;
    const char *reason;

    if (question->bytes)
        assert_int_equal(client_frame_unpack(question->bytes + CLIENT_LENGTH_BYTES,
                                             question->size - CLIENT_LENGTH_BYTES, &forwarding->frame,
                                             &reason),
                         GAVEL_OK);
    return forwarding;
}

struct forwarding *play_take_forwarding(struct clients_frontend *frontend)
{
    struct pollfd poll_fd = {.fd = frontend->frontend.forwardings.fd, .events = POLLIN};

    assert_int_equal(poll(&poll_fd, 1, LIMIT_MS), 1);
    return unpacked((struct forwarding *)(void *)mailbox_take(&frontend->frontend.forwardings));
}

static Gavel__ClientFrame *make_answer(const Gavel__ClientFrame *question, enum gavel_status status)
{
    Gavel__ClientFrame frame;
    Gavel__Reply reply;
    Gavel__Kept kept;
    Gavel__Answer answer;

    gavel__client_frame__init(&frame);
    gavel__reply__init(&reply);
    gavel__kept__init(&kept);
    gavel__answer__init(&answer);
    switch (question->what_case) {
    case GAVEL__CLIENT_FRAME__WHAT_REQUEST:
        reply.tag = question->request->tag;
        reply.status = status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
        frame.reply = &reply;
        break;
    case GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE:
        kept.tag = question->keep_alive->tag;
        kept.status = status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
        frame.kept = &kept;
        break;
    default:
        assert_int_equal(question->what_case, GAVEL__CLIENT_FRAME__WHAT_ASK);
        answer.tag = question->ask->tag;
        answer.status = status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
        frame.answer = &answer;
        break;
    }
    return client_frame_copy(&frame);
}

void play_answer_forwarding(struct forwarding *forwarding, enum gavel_status status)
{
    struct forwarding *answer =
        forwarding_new(forwarding->client, forwarding->reply_to, make_answer(forwarding->frame, status));

    assert_non_null(answer);
    assert_non_null(answer->frame);
    mailbox_put(answer->reply_to, &answer->link);
    forwarding_free(forwarding);
}

uint64_t play_cut(struct clients_frontend *frontend)
{
    struct clients_counts counts;

    clients_count(frontend->clients, &counts);
    return counts.cut;
}

/* ---- a client ---- */

void talk_tcp(struct talker *talker, struct clients_frontend *frontend)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(clients_port(frontend->clients)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *talker = (struct talker){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(talker->fd >= 0);
    assert_int_equal(connect(talker->fd, (struct sockaddr *)&address, sizeof address), 0);
}

void talk_unix(struct talker *talker, struct clients_frontend *frontend)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", frontend->config->socket);
    *talker = (struct talker){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(talker->fd >= 0);
    assert_int_equal(connect(talker->fd, (struct sockaddr *)&address, sizeof address), 0);
}

bool talk_tls(struct talker *talker, struct clients_frontend *frontend, SSL_CTX *context)
{
    talk_tcp(talker, frontend);
    talker->ssl = SSL_new(context);
    assert_non_null(talker->ssl);
    assert_int_equal(SSL_set_fd(talker->ssl, talker->fd), 1);
    return SSL_connect(talker->ssl) == 1;
}

void talk_end(struct talker *talker)
{
    SSL_free(talker->ssl);
    (void)close(talker->fd);
    free(talker->bytes);
    *talker = (struct talker){.fd = -1};
}

void talk_bytes(struct talker *talker, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = talker->ssl ? SSL_write(talker->ssl, (const char *)bytes + at, (int)(size - at))
                                : send(talker->fd, (const char *)bytes + at, size - at, MSG_NOSIGNAL);

        assert_true(n > 0);
        at += (size_t)n;
    }
}

void talk_send(struct talker *talker, const Gavel__ClientFrame *frame)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(client_frame_pack(frame, &bytes, &size), GAVEL_OK);
    talk_bytes(talker, bytes, size);
    free(bytes);
}

/* What is there, or what comes next; false at the end. */
static bool read_some(struct talker *talker, size_t most)
{
    struct pollfd poll_fd = {.fd = talker->fd, .events = POLLIN};
    ssize_t n;

    if (talker->capacity - talker->count < most) {
        talker->capacity = 2 * talker->capacity + most;
        talker->bytes = realloc(talker->bytes, talker->capacity);
        assert_non_null(talker->bytes);
    }
    if (!talker->ssl || SSL_pending(talker->ssl) == 0)
        assert_int_equal(poll(&poll_fd, 1, LIMIT_MS), 1);
    n = talker->ssl ? SSL_read(talker->ssl, talker->bytes + talker->count, (int)most)
                    : recv(talker->fd, talker->bytes + talker->count, most, 0);
    if (n <= 0)
        return false;
    talker->count += (size_t)n;
    return true;
}

static size_t whole_frame(const struct talker *talker)
{
    size_t size;

    if (talker->count < CLIENT_LENGTH_BYTES)
        return 0;
    size = CLIENT_LENGTH_BYTES + client_frame_length(talker->bytes);
    assert_true(size <= CLIENT_LENGTH_BYTES + CLIENT_FRAME_MAX);
    return talker->count >= size ? size : 0;
}

Gavel__ClientFrame *talk_next(struct talker *talker)
{
    Gavel__ClientFrame *frame;
    const char *reason;
    size_t size;

    while ((size = whole_frame(talker)) == 0)
        if (!read_some(talker, 65536))
            return NULL;
    assert_int_equal(
        client_frame_unpack(talker->bytes + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES, &frame, &reason),
        GAVEL_OK);
    memmove(talker->bytes, talker->bytes + size, talker->count - size);
    talker->count -= size;
    return frame;
}

Gavel__ClientFrame *talk_expect(struct talker *talker, Gavel__ClientFrame__WhatCase what)
{
    Gavel__ClientFrame *frame = talk_next(talker);

    if (!frame)
        fail_msg("the stream has ended");
    else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REFUSAL &&
             what != GAVEL__CLIENT_FRAME__WHAT_REFUSAL)
        fail_msg("refused: %s", frame->refusal->text);
    assert_int_equal(frame->what_case, what);
    return frame;
}

void talk_trickle(struct talker *talker, size_t size)
{
    struct pollfd poll_fd = {.fd = talker->fd, .events = POLLIN};

    if (poll(&poll_fd, 1, 0) == 1)
        assert_true(read_some(talker, size));
}

void talk_expect_silence(struct talker *talker)
{
    Gavel__ClientFrame *frame;

    talk_ask(talker, 999999, true, "nobody");
    frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_ANSWER);
    assert_int_equal(frame->answer->tag, 999999);
    client_frame_free(frame);
}

void talk_say_hello(struct talker *talker, uint32_t version_min, uint32_t version_max)
{
    Gavel__ClientHello hello;
    Gavel__ClientFrame frame;

    gavel__client_hello__init(&hello);
    gavel__client_frame__init(&frame);
    hello.version_min = version_min;
    hello.version_max = version_max;
    hello.program = text("test 1");
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    frame.hello = &hello;
    talk_send(talker, &frame);
}

void talk_hello(struct talker *talker)
{
    talk_say_hello(talker, CLIENT_VERSION_MIN, CLIENT_VERSION_MAX);
    client_frame_free(talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_WELCOME));
}

void talk_refused(struct talker *talker, const char *words)
{
    Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_REFUSAL);

    if (!strstr(frame->refusal->text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, frame->refusal->text);
    client_frame_free(frame);
    assert_null(talk_next(talker));
}

void talk_ask(struct talker *talker, uint64_t tag, bool is_local, const char *group)
{
    Gavel__Ask ask;
    Gavel__ClientFrame frame;

    gavel__ask__init(&ask);
    gavel__client_frame__init(&frame);
    ask.tag = tag;
    ask.is_local = is_local;
    ask.group = text(group);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    talk_send(talker, &frame);
}

void talk_keep_alive(struct talker *talker, uint64_t tag, uint64_t session)
{
    Gavel__KeepAlive keep_alive;
    Gavel__ClientFrame frame;

    gavel__keep_alive__init(&keep_alive);
    gavel__client_frame__init(&frame);
    keep_alive.tag = tag;
    keep_alive.n_sessions = 1;
    keep_alive.sessions = &session;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    talk_send(talker, &frame);
}

void talk_request(struct talker *talker, uint64_t tag, uint64_t session, const char *group)
{
    Gavel__Withdraw withdraw;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    withdraw.group = text(group);
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    request.tag = tag;
    request.session = session;
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    talk_send(talker, &frame);
}

void talk_watch(struct talker *talker, struct watch_wish wish)
{
    Gavel__Watch watch;
    Gavel__ClientFrame frame;

    gavel__watch__init(&watch);
    gavel__client_frame__init(&frame);
    watch.watch = wish.watch;
    watch.group = text(wish.group);
    watch.prefix = text(wish.prefix);
    watch.session = wish.session;
    watch.after_revision = wish.after;
    watch.after_part = wish.part ? wish.part : UINT32_MAX;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WATCH;
    frame.watch = &watch;
    talk_send(talker, &frame);
}

void talk_watching(struct talker *talker, struct watch_wish wish)
{
    Gavel__ClientFrame *frame;

    talk_watch(talker, wish);
    frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_int_equal(frame->changes->watch, wish.watch);
    assert_int_equal(frame->changes->n_changes, 0);
    if (wish.after)
        assert_int_equal(frame->changes->revision, wish.after);
    client_frame_free(frame);
}

void talk_change(struct talker *talker, uint64_t watch, Gavel__Change__Kind kind, const char *group,
                 uint64_t revision)
{
    Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);

    assert_int_equal(frame->changes->watch, watch);
    assert_int_equal(frame->changes->n_changes, 1);
    assert_int_equal(frame->changes->changes[0]->kind, kind);
    assert_string_equal(frame->changes->changes[0]->group, group);
    assert_int_equal(frame->changes->changes[0]->revision, revision);
    assert_true(frame->changes->revision >= revision);
    client_frame_free(frame);
}
