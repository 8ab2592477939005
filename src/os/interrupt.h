/* SPDX-License-Identifier: Apache-2.0 */

/* Ctrl-C for what runs until somebody ends it: seen, and obeyed in order. */
#ifndef OS_INTERRUPT_H
#define OS_INTERRUPT_H

#include <signal.h>

/* Whether to come to an end. There is one, since signal handlers know no context. */
extern volatile sig_atomic_t is_interrupted;

/* From now on SIGINT and SIGTERM set it instead of ending the process, and `also`, unless that is 0. */
void interrupt_catch(int also);

#endif
