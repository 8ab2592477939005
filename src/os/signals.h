/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program inherits ignored and blocked signals across exec(2). Some of that is
 * intended, some an accident.
 */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

/*
 * Undoes the accidents; the first call of main(). SIGCHLD gets its default back,
 * without which wait(2) does not report children. No signal is blocked, neither
 * for us nor for the commands we start, except `held` (0: none). Ignored signals
 * stay ignored: nohup(1) and a shell with a background job mean it, so code that
 * handles a signal checks first.
 */
void signals_begin(int held);

#endif
