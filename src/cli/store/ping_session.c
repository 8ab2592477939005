/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel store ping on a store that grants mandates to sessions. Each round is
 * the life of a candidate:
 *
 *     read ── campaign … told that it is elected ── release, and leave
 *
 * All pings take part under one id, so that they take turns. Keep-alives go on
 * only while their news are taken: so they are, between all calls.
 */
#include "cli/store/ping_state.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Whether the record shows a mandate that was granted to us since the last round. */
static void look(struct ping *ping, const struct record *record, bool is_found, bool is_ours,
                 uint64_t session)
{
    if (is_found && is_ours && session == ping->session.number && record->held && ping->is_member &&
        record->epoch > ping->had_epoch && strcmp(record->holder, PING_GROUP) == 0)
        ping->epoch = record->epoch;
}

static void take_news(struct ping *ping)
{
    struct store_news news;

    while (store_news(ping->store, &news)) {
        if (news.session.number != ping->session.number)
            ping->is_member = false; /* it ended with that session */
        ping->session = news.session;
        if (news.kind == STORE_NEWS_RECORD && strcmp(news.group, PING_GROUP) == 0)
            look(ping, &news.record, news.is_found, news.is_ours, news.session.number);
    }
}

/* Until something is told, a signal comes, or it is time to look again. */
static void await_news(struct ping *ping, gavel_ns until)
{
    struct pollfd fds[] = {{.fd = store_push_fd(ping->store), .events = POLLIN},
                           {.fd = ping->signals, .events = POLLIN}};
    gavel_ms left = ms_from_ns(ns_max(until - clock_now(), 0)) + 1;

    (void)poll(fds, 2, (int)(left < 100 ? left : 100)); /* whatever ends it, everything is looked at again */
    take_news(ping);
}

enum gavel_status ping_session_begin(struct ping *ping)
{
    const struct store_session_options options = {
        .lease_ms = PING_LEASE_MS, .drift_ppm = ping->cli->config.settings.drift_ppm, .names_process = true};
    gavel_ns until = clock_now() + ns_from_ms(PING_PATIENCE_MS);
    enum gavel_status status = store_open_session(ping->store, &options, ping->error);

    if (status != GAVEL_OK)
        return status;
    while (ping->session.number == 0 && clock_now() < until && !ping_is_told_to_end(ping))
        await_news(ping, until);
    if (ping->session.number == 0 && !ping_is_told_to_end(ping))
        return error_set(ping->error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "no session was opened within %d s; see whether the cluster has a leader",
                         PING_PATIENCE_MS / 1000);
    return GAVEL_OK;
}

/* A request of this candidate. */
static struct store_request request_of(const struct ping *ping, enum store_op op)
{
    struct store_request request = {.op = op, .group = PING_GROUP, .session = ping->session.number};
    struct registration *registration = &request.registration;

    if (op != STORE_HEARTBEAT && op != STORE_LEAVE)
        return request;
    registration->instance = ping->instance;
    registration->eligible = true;
    registration->process = ping->self;
    (void)snprintf(registration->id, sizeof registration->id, PING_GROUP);
    request.campaign.stands = op == STORE_HEARTBEAT;
    request.candidate_timeout_ms = PING_CANDIDATE_TIMEOUT_MS;
    return request;
}

enum gavel_status ping_session_leave(struct ping *ping, struct gavel_error *error)
{
    struct store_request request = request_of(ping, STORE_LEAVE);
    struct store_reply reply = {0};
    enum gavel_status status = GAVEL_OK;

    if (ping->is_member)
        status = ping_call(ping, &request, PING_TIDY_MS, &reply);
    if (status == GAVEL_ERR_NOT_FOUND || status == GAVEL_ERR_SESSION_GONE)
        status = GAVEL_OK; /* it had left already */
    if (status != GAVEL_OK)
        status = error_set(error, status, "%s", reply.message[0] ? reply.message : gavel_status_text(status));
    ping->is_member = status != GAVEL_OK;
    ping->epoch = ping->is_member ? ping->epoch : 0;
    store_reply_done(&reply);
    return status;
}

/* Waits until the store tells that we are elected. */
static enum gavel_status await_election(struct ping *ping, gavel_ns until)
{
    while (!ping->epoch && clock_now() < until) {
        if (ping_is_told_to_end(ping))
            return GAVEL_ERR_STOPPED;
        await_news(ping, until);
    }
    return ping->epoch ? GAVEL_OK : GAVEL_ERR_TIMEOUT;
}

/*
 * Joins, and waits until it is elected. Not measured are ERR_CONFLICT, somebody
 * else is there, and ERR_STOPPED.
 */
static enum gavel_status campaign(struct ping *ping)
{
    gavel_ns began = clock_now();
    struct store_request request;
    struct store_reply reply = {0};
    enum gavel_status status;

    ping->instance = entropy_u64() | 1;
    ping->epoch = 0;
    ping->is_member = true;
    request = request_of(ping, STORE_HEARTBEAT);
    status = ping_call(ping, &request, PING_PATIENCE_MS, &reply);
    if (status == GAVEL_ERR_ID_IN_USE)
        ping->is_member = false; /* it was refused */
    if (status == GAVEL_OK)
        look(ping, &reply.record, reply.found, reply.is_ours, reply.session);
    if (status == GAVEL_ERR_ID_IN_USE || (status == GAVEL_OK && reply.record.held && !ping->epoch))
        status = GAVEL_ERR_CONFLICT;
    else if (status == GAVEL_OK)
        status = await_election(ping, began + ns_from_ms(PING_PATIENCE_MS));
    if (status != GAVEL_ERR_CONFLICT && status != GAVEL_ERR_STOPPED)
        status = ping_measured(ping, PING_CAMPAIGN, began, status, reply.message);
    store_reply_done(&reply);
    return status;
}

static enum gavel_status release(struct ping *ping)
{
    struct store_request request = request_of(ping, STORE_RELEASE);
    struct store_reply reply = {0};
    gavel_ns began = clock_now();
    enum gavel_status status;

    request.record.epoch = ping->epoch;
    (void)snprintf(request.record.holder, sizeof request.record.holder, PING_GROUP);
    request.leaves = true;
    status = ping_measured(ping, PING_RELEASE, began, ping_call(ping, &request, PING_PATIENCE_MS, &reply),
                           reply.message);
    if (status == GAVEL_OK) {
        ping->had_epoch = ping->epoch;
        ping->epoch = 0;
        ping->is_member = false;
    }
    store_reply_done(&reply);
    return status;
}

/* Another ping was faster: does not stand in its way. False: it has been there for too long, or a signal
 * came. */
static bool wait_for_others(struct ping *ping, gavel_ns until)
{
    const struct timespec pause = {.tv_nsec = PING_LOOK_AGAIN_MS * NS_PER_MS};
    struct gavel_error ignored; /* that it cannot leave shows in the next try */

    (void)ping_session_leave(ping, &ignored);
    (void)nanosleep(&pause, NULL); /* looks again a little early if a signal cuts it short */
    take_news(ping);
    ping->is_busy = clock_now() >= until;
    return !ping->is_busy && !ping_is_told_to_end(ping);
}

enum gavel_status ping_session_round(struct ping *ping)
{
    gavel_ns until = clock_now() + ns_from_ms(PING_WAIT_FOR_OTHERS_MS);
    struct store_reply reply = {0};
    enum gavel_status status;

    take_news(ping);
    status = ping_read(ping, &reply);
    store_reply_done(&reply);
    if (status != GAVEL_OK)
        return status;
    do {
        take_news(ping);
        status = campaign(ping);
    } while (status == GAVEL_ERR_CONFLICT && wait_for_others(ping, until));
    if (status == GAVEL_ERR_CONFLICT && ping->is_busy)
        return error_set(ping->error, GAVEL_ERR_TIMEOUT,
                         "another `gavel store ping` has been using the group \"" PING_GROUP
                         "\" of this store all the time; try again when it has ended");
    if (status == GAVEL_ERR_CONFLICT)
        return GAVEL_ERR_STOPPED;
    return status == GAVEL_OK ? release(ping) : status;
}
