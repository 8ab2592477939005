/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a candidate that runs until it is told to leave hears of it. The signals
 * are blocked before the library starts its threads, so they only ever reach
 * a descriptor of the main thread. The first one leaves in order; from then on
 * a second one ends the process at once.
 */
#ifndef CLI_RUN_LEAVING_H
#define CLI_RUN_LEAVING_H

#include "cli/cli.h"

#include <signal.h>

/*
 * Blocks SIGTERM, SIGINT and SIGHUP, but for those that whoever started us had
 * ignored, and gives a signalfd for them. -1, with errno, if there is none left.
 */
int leaving_begin(sigset_t *ret_signals);

/* From now on a further signal does not wait for anything. */
void leaving_let_through(const sigset_t *signals);

/*
 * Why the candidate has left, for people, and the exit code: for a signal (0 if
 * there was none), or for what its `stopped` event told. `message` are the
 * store's words on that, "" if it has none.
 */
int leaving_conclude(const struct cli *cli, const char *id, int signal_number, enum gavel_status ended,
                     const char *message);

#endif
