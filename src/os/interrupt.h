/* SPDX-License-Identifier: Apache-2.0 */

/* Ctrl-C for commands that run until interrupted: it sets a flag, so that they can end in order. */
#ifndef OS_INTERRUPT_H
#define OS_INTERRUPT_H

#include <signal.h>

/* Whether to end. It is global, since signal handlers have no context. */
extern volatile sig_atomic_t is_interrupted;

/* From now on SIGINT, SIGTERM and `also` (unless 0) set it instead of ending the process. */
void interrupt_catch(int also);

#endif
