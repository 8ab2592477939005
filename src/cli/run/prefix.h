/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The output of several children, line by line, each line prefixed with the
 * name of its child:
 *
 *     child ── pipe ──►┐                  ┌─► stdout    web | ready
 *     child ── pipe ──►┼── one thread ────┤
 *     child ── pipe ──►┘   per program    └─► stderr    db | no such table
 *
 * A line is written when it is whole, so that two children never share one.
 * Text without an end of line is written as a line of its own once nothing has
 * followed for a moment. A line longer than PREFIX_LINE_MAX is written in
 * pieces, so no child makes us buffer more than that.
 *
 * A slow reader of our stdout or stderr slows down the children and nothing
 * else: only this thread waits. If the reader is gone, the children get the
 * SIGPIPE that they would get without us.
 *
 * In order: prefix_open(), fork the guard, prefix_close_readers() in the guard
 * and prefix_start() in the elector, prefix_finish().
 */
#ifndef CLI_RUN_PREFIX_H
#define CLI_RUN_PREFIX_H

#include "base/time.h"

#include <gavel/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define PREFIX_LINE_MAX 16384
#define PREFIX_LABEL_MAX 320 /* bytes of the longest name with its colours */
#define PREFIX_PARTIAL_MS 200

/* One stream of one child. */
struct prefix_source {
    int read_fd;  /* -1 when it has ended */
    int write_fd; /* -1 once it is the guard's alone */
    char label[PREFIX_LABEL_MAX];
    size_t used;
    gavel_ns since; /* when the last bytes of an unfinished line came; NEVER if there are none */
    char line[PREFIX_LINE_MAX];
};

/* Our stdout or stderr. */
struct prefix_output {
    int fd;
    int error; /* errno of the first loss of output; 0: none */
    size_t used;
    char buffer[PREFIX_LABEL_MAX + PREFIX_LINE_MAX + 1];
};

struct prefix {
    size_t source_count;           /* two for each child: stdout, stderr */
    struct prefix_source *sources; /* NULL: not open */
    struct prefix_output *outputs; /* two: stdout, stderr */
    gavel_ns partial_after;        /* an unfinished line is written after this long */
    struct pollfd *polls;          /* one for each source, and one for stop_fd */
    int stop_fd;                   /* readable: the thread must end */
    int done_fd;                   /* readable: the thread has ended */
    bool has_thread;
    pthread_t thread;
};

/*
 * Makes the pipes; names are copied. `color`: stdout gets colours, and stderr
 * too if it is as capable a terminal. Starts no thread, since the guard has not
 * been forked yet. ERR_IO without descriptors, ERR_NO_MEMORY; after a failure
 * it is as if it had never been opened.
 */
GAVEL_CHECKED enum gavel_status prefix_open(struct prefix *prefix, const char *const *names, size_t count,
                                            bool color, struct gavel_error *error);

/* What a child gets as its stdout and stderr; close-on-exec. */
int prefix_stdout(const struct prefix *prefix, size_t child);
int prefix_stderr(const struct prefix *prefix, size_t child);

/* In the guard: a reading end left open there would hide from the children that nobody reads. */
void prefix_close_readers(struct prefix *prefix);

/*
 * In the elector, after the fork: gives up the writing ends, so that the end
 * of the guard and its tree is the end of the input, and starts the thread.
 * ERR_IO, ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status prefix_start(struct prefix *prefix, struct gavel_error *error);

/*
 * Waits until all input has ended and is written, but not beyond `until`; then
 * ends the thread and frees everything. Safe on a zeroed struct and without a
 * thread. ERR_TIMEOUT if something still held a pipe open or was not read,
 * ERR_IO if something could not be written; *error says what to do. The guard
 * must not call it.
 */
GAVEL_CHECKED enum gavel_status prefix_finish(struct prefix *prefix, gavel_ns until,
                                              struct gavel_error *error);

#endif
