/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/guard/own_guard.h"

#include "base/error.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Takes the place of the one that is compiled in, for a library that was moved. */
#define PROGRAM_VARIABLE "GAVEL_GUARD"

/* Another guard at most so often: one that dies at once must not become a load. */
#define START_EVERY (10 * NS_PER_S)

/* How long a guard may take to open the store before gavel_open() gives up. */
#define READY_LIMIT_MS 10000

static void hang_up(struct own_guard *guard)
{
    if (guard->line.fd >= 0)
        (void)close(guard->line.fd); /* nothing is kept in it */
    guard->line.fd = -1;
}

/* Its socket says something, or ends with it. */
static void ready(struct gavel *gavel, struct source *source)
{
    struct own_guard *guard = &gavel->own_guard;
    struct guard_message message;
    ssize_t got = recv(source->fd, &message, sizeof message, MSG_DONTWAIT);

    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return; /* ready; or it failed, then the end of the line follows */
    loop_remove(gavel, source);
    hang_up(guard);
    guard->start_at = guard->started_at + START_EVERY;
}

enum gavel_status own_guard_prepare(struct gavel *gavel, const char *program, struct gavel_error *error)
{
    struct own_guard *guard = &gavel->own_guard;
    enum gavel_status status;

    if (!program)
        program = secure_getenv(PROGRAM_VARIABLE);
    if (!program || *program == '\0')
        program = GAVEL_GUARD_PROGRAM;
    *guard = (struct own_guard){.is_wanted = true, .on_death_fd = -1, .pid_fd = -1};
    guard->line = (struct source){.fd = -1, .ready = ready};
    guard->started_at = guard->start_at = NEVER;
    guard->program = strdup(program);
    if (!guard->program)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    guard->pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (guard->pid_fd < 0)
        return error_set(
            error, GAVEL_ERR_IO,
            "cannot give the guard a hold on this process: %s; guard = true needs pidfd_open(2), check the kernel, its filters and the limit on descriptors",
            strerror(errno));
    status = on_death_new_file(&gavel->on_death, &guard->on_death_fd);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot make the memory that the guard shares: %s; check the limits",
                         gavel_status_text(status));
    return GAVEL_OK;
}

/* Starts one and has a line to it. 0, or an errno. */
static int spawn(struct own_guard *guard)
{
    int ends[2];
    int problem;

    guard->started_at = clock_now();
    guard->start_at = NEVER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno;
    problem = own_guard_spawn(guard->program, (const int[]){guard->on_death_fd, guard->pid_fd, ends[1]});
    (void)close(ends[1]); /* it is the guard's now */
    if (problem != 0) {
        (void)close(ends[0]); /* nothing was said */
        return problem;
    }
    guard->line.fd = ends[0];
    return 0;
}

static enum gavel_status refuse(const struct own_guard *guard, int problem, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_IO,
        "cannot start the guard %s: %s; install gavel, name the program in guard_program or in " PROGRAM_VARIABLE
        ", or set guard = false",
        guard->program, strerror(problem));
}

static enum gavel_status wait_until_ready(const struct own_guard *guard, struct gavel_error *error)
{
    struct guard_message message = {0};
    struct pollfd fd = {.fd = guard->line.fd, .events = POLLIN};
    gavel_ns until = clock_now() + ns_from_ms(READY_LIMIT_MS);
    ssize_t got;
    int count;

    do {
        gavel_ms left = ms_from_ns(ns_max(until - clock_now(), 0));

        count = poll(&fd, 1, (int)left);
    } while (count < 0 && errno == EINTR);
    got = count > 0 ? recv(fd.fd, &message, sizeof message, MSG_DONTWAIT) : -1;
    message.text[sizeof message.text - 1] = '\0';
    if (got > 0 && message.word == GUARD_READY)
        return GAVEL_OK;
    if (got > 0 && message.number != 0)
        return refuse(guard, message.number, error);
    if (got > 0)
        return error_set(error, GAVEL_ERR_IO, "the guard %s cannot begin: %s", guard->program, message.text);
    return error_set(
        error, GAVEL_ERR_IO,
        "the guard %s %s; see that it is the gavel-guard of this release (%s), or set guard = false",
        guard->program, count == 0 ? "does not answer" : "ended without a word", GAVEL_VERSION);
}

enum gavel_status own_guard_start(struct gavel *gavel, struct gavel_error *error)
{
    struct own_guard *guard = &gavel->own_guard;
    int problem;

    if (!guard->is_wanted || !gavel->store || !gavel->capabilities.is_shared)
        return GAVEL_OK;
    problem = spawn(guard);
    return problem != 0 ? refuse(guard, problem, error) : wait_until_ready(guard, error);
}

gavel_ns own_guard_tend(struct gavel *gavel, gavel_ns now)
{
    struct own_guard *guard = &gavel->own_guard;

    if (!guard->is_wanted || guard->start_at > now)
        return guard->is_wanted ? guard->start_at : NEVER;
    if (spawn(guard) == 0 && loop_add(gavel, &guard->line) == GAVEL_OK)
        return NEVER; /* should it fail after all, its line ends */
    hang_up(guard);
    guard->start_at = now + START_EVERY;
    return guard->start_at;
}

void own_guard_close(struct gavel *gavel)
{
    const struct guard_message bye = {.word = GUARD_BYE};
    struct own_guard *guard = &gavel->own_guard;

    if (!guard->is_wanted)
        return;
    if (guard->line.fd >= 0)
        (void)send(guard->line.fd, &bye, sizeof bye, MSG_DONTWAIT | MSG_NOSIGNAL); /* or it is dead already */
    hang_up(guard);
    if (guard->pid_fd >= 0)
        (void)close(guard->pid_fd); /* a pidfd holds no data */
    if (guard->on_death_fd >= 0)
        (void)close(guard->on_death_fd); /* memory */
    free(guard->program);
    *guard = (struct own_guard){0};
}
