/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each pipe has a buffer of one line, each output one of a line with its
 * label. A turn of the thread reads once from every pipe that has something,
 * moves the whole lines to the output and writes them.
 *
 * It writes only what fits without waiting, so that prefix_finish() can always
 * end it; a terminal that is held by its user may still make it wait, and is
 * then left to the end of the process.
 */
#include "cli/run/prefix.h"

#include "base/error.h"
#include "cli/output.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES_MAX 255
#define STOP_MS 1000 /* for a thread that was told to end */

/* Cyan, yellow, green, magenta, blue; not red, which would look like an error. */
static const int colors[] = {36, 33, 32, 35, 34};
#define COLOR_COUNT (sizeof colors / sizeof colors[0])

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The sources of a child lie next to each other, in the order of the outputs. */
static struct prefix_output *output_of(const struct prefix *prefix, size_t source)
{
    return &prefix->outputs[source % 2];
}

static void close_all(struct prefix *prefix)
{
    for (size_t i = 0; prefix->sources && i < prefix->source_count; i++) {
        close_fd(&prefix->sources[i].read_fd);
        close_fd(&prefix->sources[i].write_fd);
    }
    close_fd(&prefix->stop_fd);
    close_fd(&prefix->done_fd);
    free(prefix->sources);
    free(prefix->outputs);
    free(prefix->polls);
    *prefix = (struct prefix){.stop_fd = -1, .done_fd = -1};
}

/* Names are aligned for people who watch a terminal; programs get them as they are. */
static void make_labels(struct prefix *prefix, const char *const *names, bool color)
{
    bool is_terminal[2] = {isatty(STDOUT_FILENO), isatty(STDERR_FILENO)};
    /* If stdout gets colours without being a terminal, they were asked for by all means. */
    bool has_color[2] = {color, color && (is_terminal[1] || !is_terminal[0])};
    size_t widest = 0;

    for (size_t i = 0; i < prefix->source_count; i++)
        widest = text_columns(names[i / 2]) > widest ? text_columns(names[i / 2]) : widest;
    for (size_t i = 0; i < prefix->source_count; i++) {
        struct prefix_source *source = &prefix->sources[i];
        const char *name = names[i / 2];
        size_t padding = is_terminal[i % 2] ? widest - text_columns(name) : 0;
        char begin[16] = "";

        if (has_color[i % 2])
            snprintf(begin, sizeof begin, "\033[%dm", colors[i / 2 % COLOR_COUNT]);
        if (padding > PREFIX_LABEL_MAX - NAME_BYTES_MAX - sizeof begin - 8)
            padding = 0; /* names that do not fit a line of a terminal anyway */
        snprintf(source->label, sizeof source->label, "%s%.*s%*s |%s ", begin, NAME_BYTES_MAX, name,
                 (int)padding, "", begin[0] ? "\033[0m" : "");
    }
}

static enum gavel_status open_pipes(struct prefix *prefix, struct gavel_error *error)
{
    for (size_t i = 0; i < prefix->source_count; i++) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC))
            return error_set(
                error, GAVEL_ERR_IO,
                "no pipe for the output of the children: %s; raise the limit of open files or leave out --prefix",
                strerror(errno));
        prefix->sources[i].read_fd = fds[0];
        prefix->sources[i].write_fd = fds[1];
    }
    prefix->stop_fd = wakeup_open();
    prefix->done_fd = wakeup_open();
    if (prefix->stop_fd < 0 || prefix->done_fd < 0)
        return error_set(error, GAVEL_ERR_IO, "no event descriptor: %s; raise the limit of open files",
                         strerror(errno));
    return GAVEL_OK;
}

enum gavel_status prefix_open(struct prefix *prefix, const char *const *names, size_t count, bool color,
                              struct gavel_error *error)
{
    enum gavel_status status;

    *prefix = (struct prefix){
        .source_count = 2 * count,
        .sources = calloc(2 * count, sizeof *prefix->sources),
        .outputs = calloc(2, sizeof *prefix->outputs),
        .polls = calloc(2 * count + 1, sizeof *prefix->polls),
        .partial_after = ns_from_ms(PREFIX_PARTIAL_MS),
        .stop_fd = -1,
        .done_fd = -1,
    };
    if (!prefix->sources || !prefix->outputs || !prefix->polls) {
        prefix->source_count = 0;
        close_all(prefix);
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory for the output of the children");
    }
    for (size_t i = 0; i < prefix->source_count; i++) {
        prefix->sources[i].read_fd = prefix->sources[i].write_fd = -1;
        prefix->sources[i].since = NEVER;
    }
    prefix->outputs[0].fd = STDOUT_FILENO;
    prefix->outputs[1].fd = STDERR_FILENO;
    make_labels(prefix, names, color);
    status = open_pipes(prefix, error);
    if (status != GAVEL_OK)
        close_all(prefix);
    return status;
}

int prefix_stdout(const struct prefix *prefix, size_t child) { return prefix->sources[2 * child].write_fd; }

int prefix_stderr(const struct prefix *prefix, size_t child)
{
    return prefix->sources[2 * child + 1].write_fd;
}

void prefix_close_readers(struct prefix *prefix)
{
    for (size_t i = 0; i < prefix->source_count; i++)
        close_fd(&prefix->sources[i].read_fd);
}

/* Nobody reads this output any more; whoever writes to its pipes is to know. */
static void close_sources_of(struct prefix *prefix, const struct prefix_output *output)
{
    for (size_t i = 0; i < prefix->source_count; i++) {
        if (output_of(prefix, i) != output)
            continue;
        close_fd(&prefix->sources[i].read_fd);
        prefix->sources[i].used = 0;
        prefix->sources[i].since = NEVER;
    }
}

/* Waits until the output takes something; false if the thread is to end instead. */
static bool await_room(const struct prefix *prefix, const struct prefix_output *output)
{
    struct pollfd fds[] = {
        {.fd = output->fd, .events = POLLOUT},
        {.fd = prefix->stop_fd, .events = POLLIN},
    };

    while (poll(fds, 2, -1) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            return false;
    }
    return fds[0].revents != 0;
}

/* What is lost is noted, and the children go on: a full disk is no reason to stop them. */
static void flush(struct prefix *prefix, struct prefix_output *output)
{
    size_t done = 0;

    while (done < output->used) {
        size_t left = output->used - done;
        ssize_t written;

        if (!await_room(prefix, output)) {
            output->error = output->error ? output->error : ETIMEDOUT;
            break;
        }
        /* A pipe that has room takes this much at once. */
        written = write(output->fd, output->buffer + done, left < PIPE_BUF ? left : PIPE_BUF);
        if (written >= 0) {
            done += (size_t)written;
        } else if (errno == EPIPE) {
            close_sources_of(prefix, output);
            break;
        } else if (errno != EINTR && errno != EAGAIN) {
            output->error = output->error ? output->error : errno;
            break;
        }
    }
    output->used = 0;
}

static void put(struct prefix *prefix, size_t index, const char *text, size_t length)
{
    struct prefix_output *output = output_of(prefix, index);
    size_t label = strlen(prefix->sources[index].label);

    if (sizeof output->buffer - output->used < label + length + 1)
        flush(prefix, output);
    memcpy(output->buffer + output->used, prefix->sources[index].label, label);
    memcpy(output->buffer + output->used + label, text, length);
    output->used += label + length;
    output->buffer[output->used++] = '\n';
}

/* How much of a full buffer to write so that no character of UTF-8 is cut in two. */
static size_t piece_of(const char *text, size_t length)
{
    size_t end = length;

    for (int i = 0; i < 4 && end > 0; i++) {
        unsigned char c = (unsigned char)text[--end];
        size_t bytes = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if ((c & 0xc0) != 0x80)
            return end + bytes > length ? end : length;
    }
    return length; /* not UTF-8 */
}

static void put_whole_lines(struct prefix *prefix, size_t index, gavel_ns now)
{
    struct prefix_source *source = &prefix->sources[index];
    size_t start = 0;
    const char *end;

    while ((end = memchr(source->line + start, '\n', source->used - start))) {
        size_t length = (size_t)(end - source->line) - start;

        put(prefix, index, source->line + start, length);
        start += length + 1;
        if (start > source->used) /* the reader of our output has gone meanwhile */
            return;
    }
    if (start == 0 && source->used == sizeof source->line) {
        start = piece_of(source->line, source->used);
        put(prefix, index, source->line, start);
    }
    if (source->used == 0)
        return;
    source->used -= start;
    memmove(source->line, source->line + start, source->used);
    source->since = source->used ? now : NEVER;
}

static void put_rest(struct prefix *prefix, size_t index)
{
    struct prefix_source *source = &prefix->sources[index];

    if (source->used)
        put(prefix, index, source->line, source->used);
    source->used = 0;
    source->since = NEVER;
}

static void take(struct prefix *prefix, size_t index, gavel_ns now)
{
    struct prefix_source *source = &prefix->sources[index];
    ssize_t count = read(source->read_fd, source->line + source->used, sizeof source->line - source->used);

    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (count <= 0) {
        put_rest(prefix, index);
        close_fd(&source->read_fd);
        return;
    }
    source->used += (size_t)count;
    put_whole_lines(prefix, index, now);
}

/* Until something can be read; false if everything has ended or the thread is to end. */
static bool await_input(struct prefix *prefix)
{
    gavel_ns wake_at = NEVER, now;
    bool has_any = false;
    int timeout = -1;

    for (size_t i = 0; i < prefix->source_count; i++) {
        prefix->polls[i] = (struct pollfd){.fd = prefix->sources[i].read_fd, .events = POLLIN};
        has_any |= prefix->sources[i].read_fd >= 0;
        if (prefix->sources[i].since != NEVER)
            wake_at = ns_min(wake_at, prefix->sources[i].since + prefix->partial_after);
    }
    if (!has_any)
        return false;
    prefix->polls[prefix->source_count] = (struct pollfd){.fd = prefix->stop_fd, .events = POLLIN};
    if (wake_at != NEVER) {
        now = clock_now();
        timeout = (int)ns_min(ms_from_ns(ns_max(wake_at - now, 0)) + 1, INT_MAX);
    }
    if (poll(prefix->polls, prefix->source_count + 1, timeout) < 0)
        return errno == EINTR || errno == EAGAIN;
    return !prefix->polls[prefix->source_count].revents;
}

static void *run(void *argument)
{
    struct prefix *prefix = argument;

    while (await_input(prefix)) {
        gavel_ns now = clock_now();

        for (size_t i = 0; i < prefix->source_count; i++) {
            struct prefix_source *source = &prefix->sources[i];

            if (source->read_fd >= 0 && prefix->polls[i].revents)
                take(prefix, i, now);
            else if (source->since != NEVER && now - source->since >= prefix->partial_after)
                put_rest(prefix, i);
        }
        flush(prefix, &prefix->outputs[0]);
        flush(prefix, &prefix->outputs[1]);
    }
    for (size_t i = 0; i < prefix->source_count; i++)
        put_rest(prefix, i);
    flush(prefix, &prefix->outputs[0]);
    flush(prefix, &prefix->outputs[1]);
    wakeup_ring(prefix->done_fd);
    return NULL;
}

enum gavel_status prefix_start(struct prefix *prefix, struct gavel_error *error)
{
    int failure;

    for (size_t i = 0; i < prefix->source_count; i++)
        close_fd(&prefix->sources[i].write_fd);
    failure = thread_start(&prefix->thread, NULL, "gavel-prefix", run, prefix);
    if (failure)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no thread for the output of the children: %s",
                         strerror(failure));
    prefix->has_thread = true;
    return GAVEL_OK;
}

/* Whether the thread has ended by then. */
static bool await_done(const struct prefix *prefix, gavel_ns until)
{
    struct pollfd fd = {.fd = prefix->done_fd, .events = POLLIN};

    for (;;) {
        gavel_ns left = ns_max(until - clock_now(), 0);
        int timeout = (int)ns_min((left + NS_PER_MS - 1) / NS_PER_MS, INT_MAX);

        if (poll(&fd, 1, timeout) > 0)
            return true;
        if (left == 0)
            return false;
    }
}

enum gavel_status prefix_finish(struct prefix *prefix, gavel_ns until, struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;
    int lost;

    if (!prefix->sources)
        return GAVEL_OK;
    if (prefix->has_thread && !await_done(prefix, until)) {
        status = error_set(error, GAVEL_ERR_TIMEOUT,
                           "output of the children may be lost: it did not end, or nobody reads our output");
        wakeup_ring(prefix->stop_fd);
        if (!await_done(prefix, clock_now() + ns_from_ms(STOP_MS))) {
            /* It waits inside of the system; what it uses must stay until the process ends. */
            pthread_detach(prefix->thread);
            *prefix = (struct prefix){.stop_fd = -1, .done_fd = -1};
            return status;
        }
    }
    if (prefix->has_thread)
        pthread_join(prefix->thread, NULL);
    lost = prefix->outputs[0].error ? prefix->outputs[0].error : prefix->outputs[1].error;
    close_all(prefix);
    if (status == GAVEL_OK && lost)
        status = error_set(error, GAVEL_ERR_IO, "output of the children was lost: %s", strerror(lost));
    return status;
}
