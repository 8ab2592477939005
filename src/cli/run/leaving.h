/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a candidate that runs until it is told to leave learns of it. The signals
 * are blocked before the library starts its threads, so they only ever reach a
 * descriptor of the main thread. The first one makes it leave in order; a
 * second one ends the process at once.
 */
#ifndef CLI_RUN_LEAVING_H
#define CLI_RUN_LEAVING_H

#include "cli/cli.h"

#include <signal.h>

/*
 * Blocks SIGTERM, SIGINT and SIGHUP, except those that were ignored when we
 * started, and returns a signalfd for them; -1 with errno if that fails.
 */
int leaving_begin(sigset_t *ret_signals);

/* From now on a further signal takes effect at once. */
void leaving_let_through(const sigset_t *signals);

/*
 * Tells people why the candidate has left and returns the exit code: for a
 * signal (0: none), or for the status of its `stopped` event. `message` is the
 * store's text for that, "" if it has none.
 */
int leaving_conclude(const struct cli *cli, const char *id, int signal_number, enum gavel_status ended,
                     const char *message);

#endif
