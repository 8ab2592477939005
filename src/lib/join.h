/* SPDX-License-Identifier: Apache-2.0 */

/* What closing a handle needs of joining and leaving. */
#ifndef LIB_JOIN_H
#define LIB_JOIN_H

struct gavel;

/* Makes every candidate leave at the same time, waits for all, and frees them. Not from the loop. */
void join_leave_all(struct gavel *gavel);

#endif
