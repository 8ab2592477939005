/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of this node, shared between its threads. The consensus thread changes
 * it; the others read it under the lock, and a ring tells them of a change. The
 * lock has priority inheritance and is held for microseconds only: long listings
 * are read in pages.
 */
#ifndef DAEMON_SHARED_TABLE_BOX_H
#define DAEMON_SHARED_TABLE_BOX_H

#include "core/table/history.h"

#include <pthread.h>

#define TABLE_BOX_BELLS 4

struct table_box {
    pthread_mutex_t mutex;
    struct table table;
    int bells[TABLE_BOX_BELLS]; /* eventfds of other threads, -1 none; written to after a change */
};

GAVEL_CHECKED enum gavel_status table_box_init(struct table_box *box);
void table_box_done(struct table_box *box);
void table_box_lock(struct table_box *box);
void table_box_unlock(struct table_box *box);
/* Any thread, without the lock. From now on the eventfd is written to after each change. False: there are too
 * many. */
bool table_box_add_bell(struct table_box *box, int eventfd);
void table_box_remove_bell(struct table_box *box, int eventfd);
void table_box_ring(struct table_box *box); /* consensus thread, without the lock */

#endif
