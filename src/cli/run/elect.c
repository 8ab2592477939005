/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel elect: takes part in a group and says what happens.
 *
 *     library's thread ── on_event ──► line queue ──► main thread ──► stdout
 *                                                         ▲
 *                                     SIGTERM, SIGINT ────┘ signalfd
 *
 * Whatever state the candidate is in, a signal makes it leave in order.
 */
#include "base/record.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/run/beginning.h"
#include "cli/run/candidate_id.h"
#include "cli/run/event_json.h"
#include "cli/run/leaving.h"
#include "cli/run/line_queue.h"
#include "cli/settings/store_location.h"
#include "os/clock.h"
#include "store/store.h"

#include <gavel/gavel.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* After leaving: how long a slow reader of stdout may take for what is left. */
#define DRAIN_MS 1000

struct elect {
    const struct cli *cli;
    struct line_queue queue;
    unsigned events;             /* bit set of those to print */
    size_t offset;               /* of the line that is being written */
    atomic_bool has_ended;       /* the candidate has stopped, asked or not */
    enum gavel_status ended;     /* why; written before has_ended */
    char ended_message[256];     /* the store's words on it, "" if it has none; likewise */
    char id[NAME_MAX_BYTES + 1]; /* of the candidate */
    int write_error;             /* errno of stdout; 0 as long as it works */

    /* The store's last trouble, on its way to the log: the callback must not wait for stderr either. */
    pthread_mutex_t mutex;
    bool has_trouble;
    enum gavel_status trouble;
    char trouble_message[256];
};

static void note_trouble(struct elect *elect, const struct gavel_event *event)
{
    pthread_mutex_lock(&elect->mutex);
    elect->has_trouble = true;
    elect->trouble = event->status;
    snprintf(elect->trouble_message, sizeof elect->trouble_message, "%s",
             event->message[0] ? event->message : gavel_status_text(event->status));
    pthread_mutex_unlock(&elect->mutex);
    line_queue_wake(&elect->queue);
}

static void log_trouble(struct elect *elect)
{
    char message[sizeof elect->trouble_message];
    enum gavel_status status;
    bool has_trouble;

    pthread_mutex_lock(&elect->mutex);
    has_trouble = elect->has_trouble;
    elect->has_trouble = false;
    status = elect->trouble;
    memcpy(message, elect->trouble_message, sizeof message);
    pthread_mutex_unlock(&elect->mutex);
    if (has_trouble)
        log_line(&elect->cli->log, clock_wall_ms(), LOG_WARNING, "the store fails",
                 LOG_STR("group", elect->cli->config.group), LOG_STR("candidate", elect->id),
                 LOG_STR("status", gavel_status_name(status)), LOG_STR("reason", message), LOG_END);
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct elect *elect = user;

    (void)candidate;
    if (elect->events & 1U << event->kind)
        line_queue_put(&elect->queue, json_line(event_json(event, clock_now(), clock_wall_ms())));
    if (event->kind == GAVEL_EVENT_BREAKER_OPEN)
        note_trouble(elect, event);
    if (event->kind == GAVEL_EVENT_STOPPED) {
        elect->ended = event->status;
        snprintf(elect->ended_message, sizeof elect->ended_message, "%s", event->message);
        atomic_store(&elect->has_ended, true);
        line_queue_wake(&elect->queue);
    }
}

/*
 * Writes once, after poll() has said that there is room: a pipe then takes a
 * page without blocking, and a line is shorter than that.
 */
static void write_some(struct elect *elect)
{
    const char *line = line_queue_peek(&elect->queue);
    size_t length;
    ssize_t written;

    if (!line)
        return;
    length = strlen(line);
    written = write(STDOUT_FILENO, line + elect->offset, length - elect->offset);
    if (written < 0) {
        if (errno != EAGAIN && errno != EINTR)
            elect->write_error = errno;
        return;
    }
    elect->offset += (size_t)written;
    if (elect->offset < length)
        return;
    elect->offset = 0;
    line_queue_drop(&elect->queue);
}

/* Serves the queue until a signal, the end of the candidate or of stdout. Returns the signal, or 0. */
static int serve(struct elect *elect, int signal_fd)
{
    while (!elect->write_error) {
        bool has_lines = line_queue_peek(&elect->queue) != NULL;
        struct pollfd fds[] = {
            {.fd = signal_fd, .events = POLLIN},
            {.fd = elect->queue.fd, .events = POLLIN},
            {.fd = STDOUT_FILENO, .events = has_lines ? POLLOUT : 0},
        };
        struct signalfd_siginfo info;
        uint64_t woken;

        log_trouble(elect);
        if (!has_lines && atomic_load(&elect->has_ended))
            return 0;
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return 0;
        if (fds[0].revents && read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            return (int)info.ssi_signo;
        if (fds[1].revents && read(elect->queue.fd, &woken, sizeof woken) < 0 && errno != EAGAIN)
            return 0;
        if (fds[2].revents & POLLOUT)
            write_some(elect);
        else if (fds[2].revents & (POLLERR | POLLNVAL))
            elect->write_error = EPIPE;
    }
    return 0;
}

static void drain(struct elect *elect)
{
    gavel_ns until = clock_now() + ns_from_ms(DRAIN_MS);

    while (!elect->write_error && line_queue_peek(&elect->queue)) {
        struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
        gavel_ns now = clock_now();

        if (now >= until)
            return;
        if (poll(&fd, 1, (int)ms_from_ns(until - now) + 1) == 1)
            write_some(elect);
    }
}

static enum gavel_status join(struct elect *elect, struct gavel *gavel, struct gavel_error *error)
{
    const struct config *config = &elect->cli->config;
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;

    options.group = config->group;
    options.candidate = elect->id;
    options.settings = &config->settings;
    options.priority = config->priority;
    options.eligible = config->eligible;
    options.enabled = config->enabled;
    options.overrun = GAVEL_OVERRUN_REPORT; /* there is no work here that could overrun */
    options.subscriber.on_event = on_event;
    options.subscriber.user = elect;
    return gavel_join(gavel, &options, &candidate, error);
}

/* Why it ended, for people, and the exit code. */
static int conclude(const struct elect *elect, int signal_number)
{
    const struct cli *cli = elect->cli;

    if (elect->write_error)
        return cli_fail(cli, GAVEL_ERR_IO, "cannot write to stdout: %s; left the group",
                        strerror(elect->write_error));
    return leaving_conclude(cli, elect->id, signal_number, elect->ended, elect->ended_message);
}

static int take_part(struct elect *elect, const sigset_t *signals, int signal_fd)
{
    const struct cli *cli = elect->cli;
    const struct gavel_options options = {
        .store = beginning_store(&cli->config), .threaded = true, .doorbell = cli->config.doorbell};
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;
    struct store_location location;
    int signal_number;

    store_location_look(options.store, &location);
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (join(elect, gavel, &error) != GAVEL_OK) {
        (void)gavel_close(gavel); /* nothing was joined */
        return cli_fail(cli, error.status, "%s", error.message);
    }
    beginning_log(cli, elect->id, &location);
    signal_number = serve(elect, signal_fd);
    leaving_let_through(signals);
    line_queue_close(&elect->queue);
    (void)gavel_close(gavel); /* not from a callback, so it does not fail */
    drain(elect);
    return conclude(elect, signal_number);
}

int command_elect(const struct cli *cli, int argc, char **argv)
{
    const char *names = cli_flag_text(cli, "events");
    struct elect *elect = NULL;
    struct gavel_error error = {0};
    int signal_fd = -1, code;
    sigset_t signals;

    (void)argc;
    (void)argv;
    elect = calloc(1, sizeof *elect);
    if (!elect)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    elect->cli = cli;
    elect->events = ~0U;
    pthread_mutex_init(&elect->mutex, NULL);
    candidate_id_choose(&cli->config, elect->id);
    if (names && event_set_parse(names, &elect->events, &error) != GAVEL_OK) {
        free(elect);
        return cli_fail(cli, error.status, "--events: %s", error.message);
    }
    signal_fd = leaving_begin(&signals);
    if (signal_fd < 0 || !line_queue_init(&elect->queue)) {
        code = cli_fail(cli, GAVEL_ERR_IO, "cannot get a descriptor: %s; raise the limit (ulimit -n)",
                        strerror(errno));
    } else {
        code = take_part(elect, &signals, signal_fd);
        line_queue_done(&elect->queue);
    }
    if (signal_fd >= 0)
        close(signal_fd);
    free(elect);
    return code;
}
