/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/mailbox.h"

#include "daemon/shared/lock.h"
#include "os/wakeup.h"

enum gavel_status mailbox_init(struct mailbox *box)
{
    int fd = wakeup_open();

    if (fd < 0)
        return GAVEL_ERR_IO;
    *box = (struct mailbox){.fd = fd};
    box->last = &box->first;
    if (lock_init(&box->mutex) != GAVEL_OK) {
        wakeup_close(&fd);
        return GAVEL_ERR_NO_MEMORY;
    }
    return GAVEL_OK;
}

void mailbox_done(struct mailbox *box)
{
    if (!box || !box->last)
        return;
    wakeup_close(&box->fd);
    (void)pthread_mutex_destroy(&box->mutex);
    *box = (struct mailbox){.fd = -1};
}

void mailbox_put(struct mailbox *box, struct mail_link *message)
{
    bool was_empty;

    message->next = NULL;
    (void)pthread_mutex_lock(&box->mutex);
    was_empty = !box->first;
    *box->last = message;
    box->last = &message->next;
    box->count++;
    if (was_empty)
        wakeup_ring(box->fd);
    (void)pthread_mutex_unlock(&box->mutex);
}

struct mail_link *mailbox_take(struct mailbox *box)
{
    struct mail_link *message;

    (void)pthread_mutex_lock(&box->mutex);
    message = box->first;
    if (message) {
        box->first = message->next;
        box->count--;
        if (!box->first) {
            box->last = &box->first;
            wakeup_clear(box->fd);
        }
    }
    (void)pthread_mutex_unlock(&box->mutex);
    return message;
}

bool mailbox_is_empty(struct mailbox *box)
{
    bool is_empty;

    (void)pthread_mutex_lock(&box->mutex);
    is_empty = !box->first;
    (void)pthread_mutex_unlock(&box->mutex);
    return is_empty;
}

struct mail_link *mailbox_take_all(struct mailbox *box)
{
    struct mail_link *first;

    (void)pthread_mutex_lock(&box->mutex);
    first = box->first;
    if (first)
        wakeup_clear(box->fd);
    box->first = NULL;
    box->last = &box->first;
    box->count = 0;
    (void)pthread_mutex_unlock(&box->mutex);
    return first;
}
