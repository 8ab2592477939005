/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Output that is in nobody's hurry: that of many watches that are told of a change
 * which does not concern it. It goes out some connections at a time, a
 * millisecond apart, and all of it within some tens of milliseconds. Whatever is written to one of
 * them meanwhile takes it along, so each reads its frames in order.
 */
#include "daemon/clients/internal.h"

#define PAUSE_US 1000
#define AT_ONCE 8
/* All that waits goes out within about so many pauses. */
#define PARTS 16

static void wait_a_moment(struct clients *clients)
{
    const struct timeval pause = {.tv_usec = PAUSE_US};

    if (event_add(clients->late_event, &pause))
        event_active(clients->late_event, EV_TIMEOUT, 0); /* without memory at once */
}

void clients_put_off(struct clients_connection *connection)
{
    struct clients *clients = connection->clients;

    if (!connection->is_dirty)
        return; /* nothing was written to it after all */
    LIST_REMOVE(connection, next_dirty);
    connection->is_dirty = false;
    if (connection->is_late)
        return;
    if (TAILQ_EMPTY(&clients->late))
        wait_a_moment(clients);
    connection->is_late = true;
    TAILQ_INSERT_TAIL(&clients->late, connection, next_late);
    clients->late_count++;
}

void clients_not_late(struct clients_connection *connection)
{
    struct clients *clients = connection->clients;

    if (!connection->is_late)
        return;
    connection->is_late = false;
    TAILQ_REMOVE(&clients->late, connection, next_late);
    clients->late_count--;
}

void clients_write_late(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;
    size_t count = clients->late_count / PARTS;
    struct clients_connection *connection;

    (void)fd;
    (void)what;
    if (count < AT_ONCE)
        count = AT_ONCE;
    for (; count > 0 && (connection = TAILQ_FIRST(&clients->late)); count--) {
        clients_not_late(connection);
        connection->is_dirty = true;
        LIST_INSERT_HEAD(&clients->dirty, connection, next_dirty);
    }
    clients_flush(clients);
    if (!TAILQ_EMPTY(&clients->late))
        wait_a_moment(clients);
}
