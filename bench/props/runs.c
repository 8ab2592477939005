/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A `gavel run` says on stderr that another leads, with its epoch. That line
 * in its log is how the driver knows that it stands by: registered in the
 * store, and past its look at who leads.
 */
#include "bench/props/runs.h"

#include "base/error.h"
#include "cli/companion.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_AGAIN_NS (5 * NS_PER_MS)

/* The newest part of a log is enough: what is waited for has just happened. */
#define TAIL_BYTES 8192

enum gavel_status runs_init(struct runs *runs, struct rig *rig, struct gavel_error *error)
{
    if (!companion_find("gavel", runs->gavel) || !companion_find("gavel-beat", runs->beat))
        return error_set(error, GAVEL_ERR_NOT_FOUND,
                         "gavel or gavel-beat is not where this program expects it; install all of gavel");
    runs->rig = rig;
    return GAVEL_OK;
}

void runs_beat_words(const struct runs *runs, uint32_t member, gavel_ns every, struct beat_words *text,
                     char *ret_argv[RUNS_BEAT_WORDS])
{
    (void)snprintf(text->shared_log, sizeof text->shared_log, "%d", runs->rig->shared_log_fd);
    (void)snprintf(text->member, sizeof text->member, "%u", (unsigned)member);
    (void)snprintf(text->every, sizeof text->every, "%lld", (long long)(every / NS_PER_US));
    /* exec(3) takes words that may be written to, and does not. */
    ret_argv[0] = (char *)(uintptr_t)runs->beat;
    ret_argv[1] = text->shared_log;
    ret_argv[2] = text->member;
    ret_argv[3] = text->every;
}

#define WORD(text) ((char *)(uintptr_t)(text)) /* as above */

enum gavel_status runs_start(const struct runs *runs, uint32_t member, const char *name, gavel_ns every,
                             struct gavel_error *error)
{
    struct beat_words text = {0};
    char *argv[] = {WORD(runs->gavel),
                    WORD("run"),
                    WORD("--store"),
                    WORD(runs->rig->store),
                    WORD("--group"),
                    WORD(RUNS_GROUP),
                    WORD("--id"),
                    WORD(name),
                    WORD("--log"),
                    WORD("logfmt"),
                    WORD("--"),
                    NULL,
                    NULL,
                    NULL,
                    NULL,
                    NULL};
    size_t count = sizeof argv / sizeof argv[0];

    runs_beat_words(runs, member, every, &text, argv + count - 1 - RUNS_BEAT_WORDS);
    return rig_start_program(runs->rig, member, name, argv, error);
}

enum gavel_status runs_handover(const struct runs *runs, uint32_t member, gavel_ns *ret_sent_at)
{
    char *argv[] = {WORD(runs->gavel),
                    WORD("handover"),
                    WORD("--store"),
                    WORD(runs->rig->store),
                    WORD("--group"),
                    WORD(RUNS_GROUP),
                    NULL};

    *ret_sent_at = clock_now();
    return rig_start_program(runs->rig, member, "handover", argv, NULL);
}

/* The last bytes of a log, from the beginning of a line on. */
static void read_tail(const struct runs *runs, uint32_t member, char ret_text[TAIL_BYTES + 1])
{
    char path[RIG_DIRECTORY_MAX + 32];
    struct stat about;
    ssize_t size = 0;

    rig_log(runs->rig, member, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &about) == 0) {
        off_t from = about.st_size > TAIL_BYTES ? about.st_size - TAIL_BYTES : 0;
        size = pread(fd, ret_text, TAIL_BYTES, from);
    }
    if (fd >= 0)
        (void)close(fd); /* only read from */
    ret_text[size > 0 ? size : 0] = '\0';
}

/* The epoch of the last line that says that another leads; 0 if there is none. */
static uint64_t known_epoch(const struct runs *runs, uint32_t member)
{
    char text[TAIL_BYTES + 1];
    uint64_t epoch = 0;

    read_tail(runs, member, text);
    for (const char *line = text; (line = strstr(line, "msg=\"another leads\"")); line++) {
        const char *end = strchr(line, '\n'), *number = strstr(line, " epoch=");
        if (end && number && number < end)
            epoch = strtoull(number + strlen(" epoch="), NULL, 10);
    }
    return epoch;
}

enum gavel_status runs_await_standby(const struct runs *runs, uint32_t member, uint64_t epoch, gavel_ns until)
{
    const struct rig *rig = runs->rig;

    while (known_epoch(runs, member) < epoch) {
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log),
                        ns_min(until, clock_now() + LOOK_AGAIN_NS));
    }
    return GAVEL_OK;
}

const char *run_part_name(enum run_part part)
{
    static const char *const names[] = {
        [PART_ELECTOR] = "elector", [PART_GUARD] = "guard", [PART_COMMAND] = "command"};
    return names[part];
}

/* Its guard, as the command has written it down; 0 if it has not. */
static pid_t guard_of(const struct runs *runs, const struct mark *leader)
{
    size_t count;
    const struct mark *marks = shared_log_marks(runs->rig->shared_log, &count);

    while (count--)
        if (mark_kind(&marks[count]) == MARK_GUARD && marks[count].member == leader->member &&
            marks[count].epoch == leader->epoch)
            return (pid_t)marks[count].value;
    return 0;
}

enum gavel_status runs_kill(const struct runs *runs, const struct mark *leader, enum run_part part,
                            gavel_ns *ret_sent_at)
{
    pid_t pid = part == PART_ELECTOR ? runs->rig->members[leader->member].pid
                : part == PART_GUARD ? guard_of(runs, leader)
                                     : (pid_t)leader->value;
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    if (pidfd < 0)
        return GAVEL_ERR_STATE;
    gavel_ns sent_at = clock_now();
    bool is_sent = syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
    (void)close(pidfd); /* nothing was written to it */
    if (!is_sent)
        return GAVEL_ERR_STATE;
    *ret_sent_at = sent_at;
    return GAVEL_OK;
}

enum gavel_status runs_bury(const struct runs *runs, uint32_t member, gavel_ns until)
{
    enum gavel_status status;

    do
        status = rig_await(runs->rig, member, ns_min(until, clock_now() + LOOK_AGAIN_NS));
    while (status == GAVEL_ERR_TIMEOUT && clock_now() < until && !rig_is_interrupted());
    if (!runs->rig->members[member].pid)
        return GAVEL_OK;
    return rig_is_interrupted() ? GAVEL_ERR_STOPPED : status;
}

void runs_print_logs(const struct runs *runs, uint32_t count, FILE *file)
{
    char text[TAIL_BYTES + 1];

    for (uint32_t i = 0; i < count; i++) {
        read_tail(runs, i, text);
        if (text[0])
            (void)fprintf(file, "member %u said last:\n%s", (unsigned)i, text);
    }
}
