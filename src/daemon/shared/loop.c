/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/shared/loop.h"

#include "os/wakeup.h"

#include <stdatomic.h>
#include <stddef.h>

/*
 * Changes of what epoll watches are put together: evhttp changes its mind several times for each request,
 * and that would cost more than the request itself.
 */
struct event_base *loop_new(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config &&
        event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST | EVENT_BASE_FLAG_NOLOCK) == 0)
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    return base;
}

struct event *loop_watch(struct event_base *base, int fd, event_callback_fn callback, void *user)
{
    struct event *event = fd < 0 ? NULL : event_new(base, fd, EV_READ | EV_PERSIST, callback, user);

    if (event && event_add(event, NULL))
        loop_drop(&event);
    return event;
}

void loop_drop(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

void loop_orders_give(struct loop_orders *orders, unsigned set)
{
    (void)atomic_fetch_or(&orders->set, set);
    wakeup_ring(orders->fd);
}

unsigned loop_orders_take(struct loop_orders *orders)
{
    wakeup_clear(orders->fd);
    return atomic_exchange(&orders->set, 0);
}
