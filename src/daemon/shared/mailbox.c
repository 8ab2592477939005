/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/mailbox.h"

#include "base/assert.h"
#include "daemon/shared/lock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum gavel_status mailbox_init(struct mailbox *box)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return GAVEL_ERR_IO;
    *box = (struct mailbox){.fd = fd};
    box->last = &box->first;
    if (lock_init(&box->mutex) != GAVEL_OK) {
        (void)close(fd); /* nothing was ever written to it */
        return GAVEL_ERR_NO_MEMORY;
    }
    return GAVEL_OK;
}

void mailbox_done(struct mailbox *box)
{
    if (!box || !box->last)
        return;
    (void)close(box->fd); /* an eventfd has nothing to lose */
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
    if (was_empty) {
        ssize_t n = write(box->fd, &(uint64_t){1}, sizeof(uint64_t));

        ASSERT(n == sizeof(uint64_t)); /* the count never comes near its limit */
    }
    (void)pthread_mutex_unlock(&box->mutex);
}

static void silence(struct mailbox *box)
{
    uint64_t rings;

    (void)!read(box->fd, &rings, sizeof rings); /* there may be none */
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
            silence(box);
        }
    }
    (void)pthread_mutex_unlock(&box->mutex);
    return message;
}

struct mail_link *mailbox_take_all(struct mailbox *box)
{
    struct mail_link *first;

    (void)pthread_mutex_lock(&box->mutex);
    first = box->first;
    if (first)
        silence(box);
    box->first = NULL;
    box->last = &box->first;
    box->count = 0;
    (void)pthread_mutex_unlock(&box->mutex);
    return first;
}
