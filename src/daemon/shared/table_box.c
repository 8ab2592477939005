/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/table_box.h"

#include "daemon/shared/lock.h"
#include "os/wakeup.h"

#include <stdint.h>

enum gavel_status table_box_init(struct table_box *box)
{
    *box = (struct table_box){0};
    for (size_t i = 0; i < TABLE_BOX_BELLS; i++)
        box->bells[i] = -1;
    return lock_init(&box->mutex);
}

void table_box_done(struct table_box *box)
{
    table_done(&box->table);
    (void)pthread_mutex_destroy(&box->mutex); /* nobody holds it any more */
}

void table_box_lock(struct table_box *box) { (void)pthread_mutex_lock(&box->mutex); }

void table_box_unlock(struct table_box *box) { (void)pthread_mutex_unlock(&box->mutex); }

/* Puts `to` where `from` stood. */
static bool exchange(struct table_box *box, int from, int to)
{
    bool is_done = false;

    table_box_lock(box);
    for (size_t i = 0; i < TABLE_BOX_BELLS && !is_done; i++)
        if (box->bells[i] == from) {
            box->bells[i] = to;
            is_done = true;
        }
    table_box_unlock(box);
    return is_done;
}

bool table_box_add_bell(struct table_box *box, int eventfd) { return exchange(box, -1, eventfd); }

void table_box_remove_bell(struct table_box *box, int eventfd) { (void)exchange(box, eventfd, -1); }

void table_box_ring(struct table_box *box)
{
    table_box_lock(box); /* a bell must not be taken away, and its descriptor used anew, in between */
    for (size_t i = 0; i < TABLE_BOX_BELLS; i++)
        if (box->bells[i] >= 0)
            wakeup_ring(box->bells[i]);
    table_box_unlock(box);
}
