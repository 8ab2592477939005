/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel store ping: how long a store takes, measured by what a candidate does.
 * Each round is the life of a mandate on a group of its own:
 *
 *     read ── claim ── renew ── release
 *
 * Where the store grants mandates to sessions it is another, see ping_session.c.
 * The mandate is given up after each round and at the end, also when a signal
 * comes in between, and then nothing of the group stays in the store. Another ping on the same store takes
 * turns with this one; one that was killed is waited out like any other leader.
 */
#include "cli/store/ping_state.h"

#include "base/error.h"
#include "cli/run/leaving.h"
#include "cli/settings/store_location.h"
#include "cli/store/store_cli.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 100000
#define ROUNDS 100          /* if nobody says how many, */
#define ROUNDS_LEAST 5      /* but */
#define LONG_ENOUGH_MS 5000 /* is enough */
#define FAILURES_MAX 3      /* in a row: it is not slow, it is gone; */
#define GONE_MS 6000        /* likewise, if they take long */
#define PROGRESS_EVERY_MS 100

bool ping_is_told_to_end(struct ping *ping)
{
    struct signalfd_siginfo signal;

    if (!ping->result->signal_number && ping->signals >= 0 &&
        read(ping->signals, &signal, sizeof signal) == sizeof signal) {
        ping->result->signal_number = (int)signal.ssi_signo;
        leaving_let_through(&ping->signal_set);
    }
    return ping->result->signal_number != 0;
}

/* One line on a terminal, which the results then replace. */
static void show_progress(struct ping *ping)
{
    gavel_ns now = clock_now();
    size_t rounds = ping->result->rounds;

    if (!isatty(STDERR_FILENO) || now - ping->shown_at < ns_from_ms(PROGRESS_EVERY_MS))
        return;
    ping->shown_at = now;
    fprintf(stderr, "\r\033[Kmeasuring: %zu of %s%zu rounds, %" PRId64 " s", rounds,
            ping->rounds_wanted ? "" : "at most ", ping->rounds_wanted ? ping->rounds_wanted : (size_t)ROUNDS,
            (now - ping->began_at) / NS_PER_S);
}

static void hide_progress(const struct ping *ping)
{
    if (ping->shown_at)
        fputs("\r\033[K", stderr);
}

static struct store_request mandate_request(const struct ping *ping, enum store_op op)
{
    struct store_request request = {.op = op, .group = PING_GROUP};

    request.record.lease_ms = PING_LEASE_MS;
    request.record.nonce = ping->nonce;
    request.record.process = ping->self;
    (void)snprintf(request.record.holder, sizeof request.record.holder, PING_GROUP);
    return request;
}

enum gavel_status ping_call(struct ping *ping, struct store_request *request, gavel_ms patience_ms,
                            struct store_reply *ret_reply)
{
    request->give_up_at = clock_now() + ns_from_ms(patience_ms);
    return store_call(ping->store, request, ret_reply);
}

/* ERR_STORE_UNAVAILABLE and its like count, and after some in a row the measurement is over. */
enum gavel_status ping_measured(struct ping *ping, enum ping_op op, gavel_ns began, enum gavel_status status,
                                const char *message)
{
    struct ping_result *result = ping->result;
    gavel_ns now = clock_now();

    samples_add(&result->series[op], status != GAVEL_OK ? PING_FAILED : now - began);
    if (status == GAVEL_OK) {
        ping->failures = 0;
        ping->good_at = now;
        return GAVEL_OK;
    }
    ping->failures++;
    result->failed[op]++;
    (void)snprintf(result->message, sizeof result->message, "%s",
                   message[0] ? message : gavel_status_text(status));
    return error_set(ping->error, status, "%s", result->message);
}

/*
 * One call, measured. ERR_CONFLICT and ERR_NOT_HOLDER are not measured: they
 * say that somebody else was faster, not that the store is slow.
 */
static enum gavel_status timed_call(struct ping *ping, enum ping_op op, struct store_request *request,
                                    struct store_reply *ret_reply)
{
    gavel_ns began = clock_now();
    enum gavel_status status = ping_call(ping, request, PING_PATIENCE_MS, ret_reply);

    if (status == GAVEL_ERR_CONFLICT || status == GAVEL_ERR_NOT_HOLDER)
        return status;
    return ping_measured(ping, op, began, status, ret_reply->message);
}

enum gavel_status ping_read(struct ping *ping, struct store_reply *ret_reply)
{
    struct store_request request = {.op = STORE_READ, .group = PING_GROUP};
    enum gavel_status status = timed_call(ping, PING_READ, &request, ret_reply);

    if (status == GAVEL_OK && !ping->has_looked)
        ping->is_foreign = ret_reply->found && strcmp(ret_reply->record.holder, PING_GROUP) != 0;
    ping->has_looked = ping->has_looked || status == GAVEL_OK;
    if (status == GAVEL_OK && ret_reply->record.done && !ping->result->only_reads)
        return error_set(ping->error, GAVEL_ERR_DONE,
                         "somebody has used the group \"" PING_GROUP
                         "\" for `gavel once`; reopen it with `gavel once --forget --key " PING_GROUP
                         "`, or measure with --read-only");
    return status;
}

/* Gives up what may be held: the nonce says whether it is ours. */
static enum gavel_status let_go(struct ping *ping, struct gavel_error *error)
{
    struct store_request request = mandate_request(ping, STORE_RELEASE);
    struct store_reply reply = {0};
    enum gavel_status status = GAVEL_OK;

    if (ping->may_hold)
        status = ping_call(ping, &request, PING_TIDY_MS, &reply);
    if (status == GAVEL_ERR_NOT_HOLDER)
        status = GAVEL_OK;
    if (status != GAVEL_OK)
        status = error_set(error, status, "%s", reply.message[0] ? reply.message : gavel_status_text(status));
    ping->may_hold = status != GAVEL_OK;
    store_reply_done(&reply);
    return status;
}

/* Whether nobody plays on the group: it is not held, or by one that is gone. */
static bool is_free(const struct ping *ping, const struct store_reply *reply, uint64_t *seen_version,
                    gavel_ns *seen_at)
{
    if (!reply->record.held || reply->expired)
        return true;
    if (process_look(&reply->record.process, &ping->self, NULL) == PROCESS_DEAD)
        return true;
    if (*seen_version != reply->record.version) {
        *seen_version = reply->record.version;
        *seen_at = clock_now();
    }
    return clock_now() - *seen_at > ns_from_ms(reply->record.lease_ms + reply->record.lease_ms / 10);
}

/* Reads until the group is free. *ret_version is what a claim has to expect. */
static enum gavel_status read_until_free(struct ping *ping, gavel_ns until, uint64_t *ret_version)
{
    const struct timespec pause = {.tv_nsec = PING_LOOK_AGAIN_MS * NS_PER_MS};
    uint64_t seen_version = 0;
    gavel_ns seen_at = 0;

    for (;;) {
        struct store_reply reply = {0};
        enum gavel_status status = ping_read(ping, &reply);
        bool free = status == GAVEL_OK && is_free(ping, &reply, &seen_version, &seen_at);

        *ret_version = reply.record.version;
        store_reply_done(&reply);
        if (status != GAVEL_OK)
            return status;
        if (free || ping->result->only_reads)
            return GAVEL_OK;
        if (ping_is_told_to_end(ping))
            return GAVEL_ERR_STOPPED;
        ping->is_busy = clock_now() >= until;
        if (ping->is_busy)
            return error_set(ping->error, GAVEL_ERR_TIMEOUT,
                             "another `gavel store ping` has been using the group \"" PING_GROUP
                             "\" of this store all the time; try again when it has ended");
        (void)nanosleep(&pause, NULL); /* looks again a little early if a signal cuts it short */
    }
}

/* Claims it; another that was faster is waited for. */
static enum gavel_status read_and_claim(struct ping *ping)
{
    gavel_ns until = clock_now() + ns_from_ms(PING_WAIT_FOR_OTHERS_MS);
    enum gavel_status status;

    do {
        struct store_reply reply = {0};
        struct store_request request;
        uint64_t version;

        status = read_until_free(ping, until, &version);
        if (status != GAVEL_OK || ping->result->only_reads)
            return status;
        ping->nonce = (struct nonce){.high = entropy_u64(), .low = entropy_u64()};
        request = mandate_request(ping, STORE_CLAIM);
        request.expected_version = version;
        ping->may_hold = true;
        status = timed_call(ping, PING_CLAIM, &request, &reply);
        store_reply_done(&reply);
        if (status == GAVEL_ERR_CONFLICT)
            ping->may_hold = false;
    } while (status == GAVEL_ERR_CONFLICT && clock_now() < until && !ping_is_told_to_end(ping));
    return status;
}

static enum gavel_status renew_and_release(struct ping *ping)
{
    struct store_request request = mandate_request(ping, STORE_RENEW);
    struct store_reply reply = {0};
    enum gavel_status status = timed_call(ping, PING_RENEW, &request, &reply);

    store_reply_done(&reply);
    if (status != GAVEL_OK)
        return status;
    request = mandate_request(ping, STORE_RELEASE);
    status = timed_call(ping, PING_RELEASE, &request, &reply);
    store_reply_done(&reply);
    ping->may_hold = status != GAVEL_OK;
    return status;
}

/* What no further try will change. */
static bool is_final(enum gavel_status status)
{
    return status == GAVEL_ERR_STORE_DENIED || status == GAVEL_ERR_STORE_TOO_NEW ||
           status == GAVEL_ERR_STORE_DAMAGED || status == GAVEL_ERR_STORE_UNSUPPORTED ||
           status == GAVEL_ERR_STORE_FULL || status == GAVEL_ERR_INVALID || status == GAVEL_ERR_DONE;
}

/* Fails again and again. */
static bool is_gone(const struct ping *ping)
{
    return ping->failures >= FAILURES_MAX ||
           (ping->failures > 0 && clock_now() - ping->good_at > ns_from_ms(GONE_MS));
}

static bool wants_more(const struct ping *ping)
{
    size_t rounds = ping->result->rounds;

    if (ping->rounds_wanted)
        return rounds < ping->rounds_wanted;
    return rounds < ROUNDS_LEAST ||
           (rounds < ROUNDS && clock_now() - ping->began_at < ns_from_ms(LONG_ENOUGH_MS));
}

static bool has_session(const struct ping *ping)
{
    return ping->result->store && ping->result->store->has_sessions && !ping->result->only_reads;
}

static enum gavel_status play_round(struct ping *ping)
{
    enum gavel_status status;

    if (has_session(ping))
        return ping_session_round(ping);
    status = read_and_claim(ping);
    return status == GAVEL_OK && !ping->result->only_reads ? renew_and_release(ping) : status;
}

/* What an operation that failed may have left behind. */
static enum gavel_status let_go_of_all(struct ping *ping, struct gavel_error *error)
{
    return has_session(ping) ? ping_session_leave(ping, error) : let_go(ping, error);
}

static enum gavel_status measure(struct ping *ping)
{
    enum gavel_status status = GAVEL_OK;
    struct gavel_error ignored; /* the call before it has said why */

    ping->began_at = ping->good_at = clock_now();
    while (wants_more(ping) && !ping_is_told_to_end(ping)) {
        show_progress(ping);
        status = play_round(ping);
        if (status == GAVEL_ERR_STOPPED)
            return GAVEL_OK; /* what has been measured so far is told */
        if (is_final(status) || is_gone(ping) || ping->is_busy)
            return status;
        /* A claim that failed may have been carried out. */
        if (status != GAVEL_OK && !ping_is_told_to_end(ping) && let_go_of_all(ping, &ignored) != GAVEL_OK &&
            is_gone(ping))
            return status;
        ping->result->rounds++;
    }
    return GAVEL_OK;
}

/* Opens the store as a candidate would, or as somebody who only looks. */
static enum gavel_status begin(struct ping *ping)
{
    const struct cli *cli = ping->cli;
    struct ping_result *result = ping->result;
    gavel_ns began = clock_now();
    enum gavel_status status;
    struct store_location location;

    store_location_look(cli->config.store, &location);
    if (cli_flag_is_set(cli, "read-only") && location.is_new)
        return error_set(ping->error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "there is no store %.150s; without --read-only it is created, as by a candidate",
                         location.shown);
    status = store_open(cli->config.store, &ping->store, ping->error);
    if (status != GAVEL_OK)
        return status;
    result->store = store_capabilities(ping->store);
    result->open_took = clock_now() - began;
    result->probe_took = -1;
    if (cli_flag_is_set(cli, "read-only"))
        result->only_reads = "--read-only was given; writes may take longer";
    else if (result->store->is_fixed)
        result->only_reads = "the leader is assigned, so nothing is ever claimed";
    if (location.is_new)
        log_line(&cli->log, clock_wall_ms(), LOG_INFO, "created the store", LOG_STR("store", location.shown),
                 LOG_END);
    if (result->only_reads || !ping->store->driver->probe)
        return GAVEL_OK;
    began = clock_now();
    status = store_probe(ping->store, ping->error);
    result->probe_took = clock_now() - began;
    return status;
}

/* As a candidate does before it campaigns. */
static enum gavel_status begin_session(struct ping *ping)
{
    gavel_ns began = clock_now();
    enum gavel_status status = GAVEL_OK;

    ping->result->session_took = -1;
    if (!has_session(ping))
        return GAVEL_OK;
    status = ping_session_begin(ping);
    ping->result->session_took = clock_now() - began;
    return status;
}

/* Whether the group is seen not to be ours: a claim that was refused has changed nothing. */
static bool is_others(struct ping *ping)
{
    struct store_request request = {.op = STORE_READ, .group = PING_GROUP, .record.nonce = ping->nonce};
    struct store_reply reply = {0};
    bool is_known = ping_call(ping, &request, PING_TIDY_MS, &reply) == GAVEL_OK;
    bool is_ours = reply.record.held && nonce_equal(reply.record.nonce, ping->nonce);

    store_reply_done(&reply);
    return is_known && !is_ours;
}

/* The last ping of several removes the record. A store with sessions removes groups that nobody uses by
 * itself. */
static enum gavel_status remove_record(struct ping *ping, struct gavel_error *error)
{
    struct store_request request = {.op = STORE_READ, .group = PING_GROUP};
    struct store_reply reply = {0};
    enum gavel_status status;

    if (ping->result->only_reads || has_session(ping) || !ping->has_looked || ping->is_foreign)
        return GAVEL_OK;
    status = ping_call(ping, &request, PING_TIDY_MS, &reply);
    if (status != GAVEL_OK)
        status = error_set(error, status, "%s", reply.message[0] ? reply.message : gavel_status_text(status));
    else if (reply.found && !reply.record.held && !reply.record.done &&
             strcmp(reply.record.holder, PING_GROUP) == 0)
        status = store_remove(ping->store, PING_GROUP, reply.record.version,
                              clock_now() + ns_from_ms(PING_TIDY_MS), error);
    store_reply_done(&reply);
    return status;
}

/* Nothing of it is to stay held, whatever happened, nor to stay at all. */
static void tidy_up(struct ping *ping)
{
    struct gavel_error error = {0};
    bool is_gone;

    hide_progress(ping);
    is_gone = !ping->store || let_go_of_all(ping, &error) == GAVEL_OK;
    if (ping->store && is_gone && remove_record(ping, &error) != GAVEL_OK)
        fprintf(stderr,
                "gavel store: the record of the group " PING_GROUP
                " could not be removed, which does no harm: %s\n",
                error.message);
    if (!is_gone && (has_session(ping) || !is_others(ping)))
        fprintf(stderr,
                "gavel store: the group " PING_GROUP
                " could not be released and is free again when its %s of %d s has run out: %s\n",
                has_session(ping) ? "session" : "lease", PING_LEASE_MS / 1000, error.message);
    store_close(ping->store);
    if (ping->signals >= 0)
        (void)close(ping->signals); /* nothing is kept in it */
}

int store_ping(const struct cli *cli)
{
    int64_t count = cli_flag_number(cli, "count", 0);
    struct ping_result result = {0};
    struct gavel_error error = {0};
    struct ping ping = {.cli = cli, .result = &result, .error = &error};
    enum gavel_status status;
    int code = CLI_EXIT_OK;

    if (cli_flag_is_set(cli, "count") && (count < 1 || count > ROUNDS_MAX))
        return cli_fail(cli, GAVEL_ERR_INVALID, "--count: from 1 to %d", ROUNDS_MAX);
    ping.rounds_wanted = (size_t)count;
    if (process_self(&ping.self) != GAVEL_OK)
        ping.self = (struct process_id){0}; /* then nobody's death can be proven, and the lease decides */
    ping.signals = leaving_begin(&ping.signal_set);
    status = begin(&ping);
    if (status == GAVEL_OK)
        status = begin_session(&ping);
    if (status == GAVEL_OK)
        status = measure(&ping);
    tidy_up(&ping);
    if (status != GAVEL_OK)
        code = cli_fail(cli, status, "%s", error.message[0] ? error.message : gavel_status_text(status));
    if (code == CLI_EXIT_FAILURE || (code == CLI_EXIT_TIMEOUT && !ping.is_busy))
        code = CLI_EXIT_STORE; /* whatever kept it from being measured, it cannot be used */
    else if (status == GAVEL_OK && !ping_report(cli, &result))
        code = CLI_EXIT_BUDGET;
    for (size_t i = 0; i < PING_OPS; i++)
        samples_done(&result.series[i]);
    if (status != GAVEL_OK)
        return code;
    return cli_finish(cli, result.signal_number ? 128 + result.signal_number : code);
}
