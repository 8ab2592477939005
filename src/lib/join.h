/* SPDX-License-Identifier: Apache-2.0 */

/* The part of joining and leaving that closing a handle needs. */
#ifndef LIB_JOIN_H
#define LIB_JOIN_H

struct gavel;

/* Makes every candidate leave at the same time, waits for all, and frees them. Not from the loop. */
void join_leave_all(struct gavel *gavel);

#endif
