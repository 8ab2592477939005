/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch of requests, in waves. A wave is one round trip: the scripts of the
 * calls that are not answered yet, in their order, as one text. An error ends
 * it at the statement that met it; the calls behind that were not begun and go
 * with the next wave.
 *
 * Calls on one group that would see each other's half-done work go one after
 * the other: a listing waits for a heartbeat that may need a second step.
 *
 * When the connection is lost on the way, calls that say the same when said
 * twice are said again; of the others the row is read, and if it does not show
 * what became of them, the caller is told that nobody knows.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/mysql/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAVE_BYTES (256 * 1024)   /* about; a packet may have 1 MiB on the smallest servers */
#define TOGETHER (50 * NS_PER_MS) /* deadlines that go in one wave */
#define TRIES 5                   /* of what another transaction was in the way of */
#define PREPARATIONS 2
#define LOOK_FIRST (4 * NS_PER_MS) /* pauses between looks of whoever waits for a change */
#define LOOK_LAST (64 * NS_PER_MS)

struct wave {
    struct mysql_store *mysql;
    struct mysql_call *calls;
    size_t count;
    size_t first; /* all before it are answered */
    struct text_buffer *text;
    gavel_ns until;   /* the earliest deadline in it */
    int preparations; /* of the tables, in this run */
    bool *is_in;      /* which calls are in it */
};

static bool is_about_registry(const struct store_request *request)
{
    return request->op == STORE_HEARTBEAT || request->op == STORE_LEAVE || request->op == STORE_CANDIDATES;
}

static const struct mysql_script *script_of(const struct mysql_call *call)
{
    return is_about_registry(call->request) ? mysql_registry_script(call) : mysql_mandate_script(call);
}

static void conclude(struct mysql_store *mysql, struct mysql_call *call, const struct mysql_answer *answer)
{
    if (is_about_registry(call->request))
        mysql_registry_conclude(mysql, call, answer);
    else
        mysql_mandate_conclude(mysql, call, answer);
}

static void fail_call(struct mysql_call *call, enum gavel_status status, const char *message)
{
    call->is_answered = true;
    if (call->is_lost && request_writes(call->request))
        reply_fail(call->reply, status, "%.180s; it is unknown whether it was carried out before", message);
    else
        reply_fail(call->reply, status, "%s", message);
}

/* Two steps of a heartbeat must not have another's look or leave between them. */
static bool must_wait(const struct wave *wave, size_t index)
{
    const struct store_request *request = wave->calls[index].request;

    if (!is_about_registry(request))
        return false;
    for (size_t i = wave->first; i < index; i++) {
        const struct store_request *before = wave->calls[i].request;

        if (wave->calls[i].is_answered || !is_about_registry(before) ||
            strcmp(before->group, request->group) != 0)
            continue;
        if (before->op == STORE_CANDIDATES && request->op == STORE_CANDIDATES)
            continue;
        if (before->op == STORE_CANDIDATES || request->op == STORE_CANDIDATES ||
            strcmp(before->registration.id, request->registration.id) == 0)
            return true;
    }
    return false;
}

static void add_call(struct wave *wave, size_t index)
{
    const struct mysql_script *script = script_of(&wave->calls[index]);

    for (int i = 0; script->statements[i]; i++) {
        if (wave->text->length > 0)
            text_buffer_print(wave->text, ";");
        mysql_text_fill(wave->text, wave->mysql, &wave->calls[index], script->statements[i]);
    }
    wave->is_in[index] = true;
}

/* Puts what may go into the wave; false if all is answered. */
static bool build(struct wave *wave)
{
    bool is_empty = true;

    wave->text->length = 0;
    memset(wave->is_in, 0, wave->count * sizeof *wave->is_in);
    while (wave->first < wave->count && wave->calls[wave->first].is_answered)
        wave->first++;
    for (size_t i = wave->first; i < wave->count && wave->text->length < WAVE_BYTES; i++) {
        struct mysql_call *call = &wave->calls[i];
        gavel_ns give_up_at = call->request->give_up_at;

        if (call->is_answered)
            continue;
        if (!is_empty && ns_max(give_up_at, wave->until) - ns_min(give_up_at, wave->until) > TOGETHER)
            break;
        if (must_wait(wave, i))
            continue;
        wave->until = is_empty ? give_up_at : ns_min(wave->until, give_up_at);
        is_empty = false;
        add_call(wave, i);
    }
    return !is_empty;
}

/* The connection broke, or was given up, before this call was answered. */
static void lose(struct mysql_store *mysql, struct mysql_call *call, const struct gavel_error *error)
{
    if (clock_now() >= call->request->give_up_at) {
        call->is_answered = true;
        reply_fail(call->reply, GAVEL_ERR_TIMEOUT, "%s did not answer in time%s", mysql->shown,
                   request_writes(call->request) ? "; it is unknown whether it did what was asked" : "");
    } else if (++call->tries > TRIES || call->is_lost) {
        fail_call(call, error->status, error->message);
    } else {
        call->is_lost = true;
        if (call->request->op == STORE_CLAIM && call->stage == MYSQL_STAGE_FIRST)
            call->stage = MYSQL_STAGE_READ; /* a claim is not made twice */
    }
}

static void lose_all(struct wave *wave)
{
    struct gavel_error error = {0};

    mysql_trouble_explain(wave->mysql, &error);
    mysql_link_drop(wave->mysql);
    for (size_t i = 0; i < wave->count; i++)
        if (wave->is_in[i] && !wave->calls[i].is_answered)
            lose(wave->mysql, &wave->calls[i], &error);
}

/* Makes the tables, or what is missing of them; if that cannot be, the call has failed. */
static void prepare(struct wave *wave, struct mysql_call *call, const struct gavel_error *missing)
{
    struct gavel_error error = *missing;
    struct mysql_store *mysql = wave->mysql;

    if (wave->preparations++ < PREPARATIONS && mysql_table_prepare(mysql, wave->until, &error) == GAVEL_OK)
        return;
    fail_call(call, error.status, error.message);
    if (mysql->link.is_late || mysql_trouble_is_loss(mysql->link.trouble.code))
        mysql_link_drop(mysql);
}

static bool only_looks(const struct mysql_call *call)
{
    enum store_op op = call->request->op;

    return call->stage != MYSQL_STAGE_ABSORB && op != STORE_CLAIM && op != STORE_HEARTBEAT;
}

/*
 * A statement of this call was refused; those of the calls behind it were not begun. What those before it
 * have locked must not wait for the next run: it may come late, or never.
 */
static void settle_trouble(struct wave *wave, struct mysql_call *call)
{
    static const struct mysql_answer nothing = {0};
    struct mysql_store *mysql = wave->mysql;
    unsigned code = mysql->link.trouble.code;
    struct gavel_error error = {0};

    mysql_trouble_explain(mysql, &error);
    if (!mysql_link_do(mysql, "ROLLBACK", wave->until, NULL))
        mysql_link_drop(mysql);
    if (mysql_trouble_is_missing_table(code) && only_looks(call)) {
        conclude(mysql, call, &nothing); /* where there is no table, nothing was ever written */
    } else if (mysql_trouble_is_missing_table(code) || mysql_trouble_is_missing_column(code)) {
        if (mysql->link.mysql) /* else it shows again on the next one */
            prepare(wave, call, &error);
    } else if (mysql_trouble_is_denial(code) && call->stage == MYSQL_STAGE_ABSORB) {
        call->stage = MYSQL_STAGE_READ; /* who may only look sees it all the same */
        call->absorbs = INT32_MAX;
    } else if (!mysql_trouble_passes(code) || ++call->tries > TRIES ||
               clock_now() >= call->request->give_up_at) {
        fail_call(call, error.status, error.message);
    }
}

/* Takes the results of one call. */
static bool take_answer(struct wave *wave, struct mysql_call *call, bool is_first)
{
    const struct mysql_script *script = script_of(call);
    struct mysql_answer answer = {0};

    for (int i = 0; script->statements[i]; i++) {
        MYSQL_RES *rows = NULL;
        uint64_t changed = 0;

        if (!mysql_link_take(wave->mysql, is_first && i == 0, wave->until, &changed, &rows)) {
            /* If only the look at the end has failed, what was decided before it stands. */
            if (!script->statements[i + 1] && script->write >= 0 && !is_about_registry(call->request)) {
                call->is_applied = call->is_applied || answer.changed > 0;
                call->stage = MYSQL_STAGE_READ;
            }
            return false;
        }
        if (i == script->write)
            answer.changed = changed;
        answer.rows = rows; /* only the last statement of a script gives any */
    }
    conclude(wave->mysql, call, &answer);
    mysql_free_result(answer.rows); /* safe on NULL */
    return true;
}

static void take_answers(struct wave *wave)
{
    struct mysql_link *link = &wave->mysql->link;
    bool is_first = true;
    bool is_good = mysql_link_send(wave->mysql, wave->text->bytes, wave->text->length, wave->until);

    for (size_t i = 0; i < wave->count; i++) {
        if (!wave->is_in[i])
            continue;
        is_good = is_good && take_answer(wave, &wave->calls[i], is_first);
        is_first = false;
        if (is_good)
            continue;
        if (link->is_late || mysql_trouble_is_loss(link->trouble.code))
            lose_all(wave);
        else
            settle_trouble(wave, &wave->calls[i]);
        return;
    }
}

static void run_wave(struct wave *wave)
{
    struct gavel_error error = {0};

    if (wave->text->is_short) {
        for (size_t i = 0; i < wave->count; i++)
            if (wave->is_in[i])
                fail_call(&wave->calls[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the server");
        return;
    }
    if (!mysql_link_is_up(wave->mysql) && mysql_link_open(wave->mysql, wave->until, &error) != GAVEL_OK) {
        /* What was good when the store was opened is wrong now: an option file that is being rewritten. */
        if (error.status == GAVEL_ERR_INVALID)
            error.status = GAVEL_ERR_STORE_DENIED;
        for (size_t i = 0; i < wave->count; i++)
            if (wave->is_in[i])
                fail_call(&wave->calls[i], error.status, error.message);
        return;
    }
    take_answers(wave);
}

static void refuse_late(struct wave *wave)
{
    gavel_ns now = clock_now();

    for (size_t i = 0; i < wave->count; i++)
        if (!wave->calls[i].is_answered && now > wave->calls[i].request->give_up_at)
            fail_call(&wave->calls[i], GAVEL_ERR_TIMEOUT,
                      "the server needed too long; it may be tried again");
}

static void run_all(struct wave *wave, const struct store_request *requests, struct store_reply *replies)
{
    gavel_ns now = clock_now();

    for (size_t i = 0; i < wave->count; i++) {
        wave->calls[i].request = &requests[i];
        wave->calls[i].reply = &replies[i];
        if (requests[i].op == STORE_HEARTBEAT)
            wave->calls[i].replaces = requests[i].replaces_instance;
        wave->calls[i].is_answered = request_refuse(&requests[i], now, &replies[i]);
    }
    while (build(wave)) {
        run_wave(wave);
        refuse_late(wave);
    }
}

void mysql_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count)
{
    struct mysql_store *mysql = (struct mysql_store *)store;
    struct text_buffer text = {0};
    struct wave wave = {.mysql = mysql, .count = count, .text = &text};

    if (mysql->pid != getpid()) {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_STATE,
                       "%s was opened before this process was forked; open it again in the child",
                       mysql->shown);
        return;
    }
    wave.calls = calloc(count, sizeof *wave.calls);
    wave.is_in = calloc(count, sizeof *wave.is_in);
    if (wave.calls && wave.is_in) {
        run_all(&wave, requests, replies);
    } else {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the server");
    }
    text_buffer_done(&text);
    free(wave.is_in);
    free(wave.calls);
}

void mysql_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    const struct store_request read = {.op = STORE_READ, .group = group, .give_up_at = until};
    gavel_ns pause = LOOK_FIRST;

    while (clock_now() < until) {
        gavel_ns left = ns_min(pause, until - clock_now());
        const struct timespec rest = {.tv_sec = left / NS_PER_S, .tv_nsec = left > 0 ? left % NS_PER_S : 0};
        struct store_reply reply = {0};
        bool differs;

        mysql_run(store, &read, &reply, 1);
        differs = reply.status == GAVEL_OK && reply.record.version != version;
        store_reply_done(&reply);
        if (differs)
            return;
        (void)nanosleep(&rest, NULL); /* waking early does no harm */
        pause = ns_min(2 * pause, LOOK_LAST);
    }
}
