/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program inherits from whoever starts it which signals are ignored and
 * which are blocked, across exec(2). Some of that is a wish, some an accident.
 */
#ifndef OS_SIGNALS_H
#define OS_SIGNALS_H

/*
 * The first call of main(): undoes the accidents. SIGCHLD has its default
 * again, without which wait(2) tells nothing of children; no signal is
 * blocked, neither for us nor for the commands we start, except `held` (0:
 * none). What is ignored stays ignored: nohup(1) and a shell with a job in the
 * background mean it, and whoever handles a signal asks first.
 */
void signals_begin(int held);

#endif
