/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An assertion that fails under simulation is a finding like any other, with
 * its seed and its story: assert_failed() of base is replaced by one that
 * notifies the current run.
 */
#ifndef SIM_COMMON_ASSERTION_H
#define SIM_COMMON_ASSERTION_H

/* Ends the run of `context`; does not return. */
typedef void (*assertion_cb)(void *context, const char *what);

/* The callback from now on; NULL: none, the process ends. */
void assertion_watch(assertion_cb tell, void *context);

#endif
