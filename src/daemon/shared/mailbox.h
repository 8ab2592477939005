/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How threads of a node talk: a queue of messages with an eventfd that is
 * readable while there are any. Messages are structs with a mail_link inside;
 * ownership passes with the call. No message is ever lost or reordered.
 */
#ifndef DAEMON_SHARED_MAILBOX_H
#define DAEMON_SHARED_MAILBOX_H

#include <gavel/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct mail_link {
    struct mail_link *next;
};

struct mailbox {
    pthread_mutex_t mutex;
    struct mail_link *first;
    struct mail_link **last;
    size_t count;
    int fd; /* readable while there are messages */
};

GAVEL_CHECKED enum gavel_status mailbox_init(struct mailbox *box);
void mailbox_done(struct mailbox *box); /* the caller takes out any messages first */

/* Any thread. */
void mailbox_put(struct mailbox *box, struct mail_link *message);

/* The oldest, or NULL. One thread only. */
struct mail_link *mailbox_take(struct mailbox *box);

/* Any thread. It may be another when this returns, unless that is prevented otherwise. */
bool mailbox_is_empty(struct mailbox *box);

/* All of them, oldest first, as a list; NULL if there are none. */
struct mail_link *mailbox_take_all(struct mailbox *box);

#endif
