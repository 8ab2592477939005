/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer that we dial: when we do so, and the outcome.
 *
 * The first attempts follow each other quickly, each after twice the delay of
 * the one before, with jitter so that two nodes do not stay in step. After
 * `failures` in a row the breaker opens: only one attempt per retry_max. It
 * closes with the next WELCOME. A peer that dials us is alive, so it is dialled
 * back at once.
 */

#include "net/internal.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

static struct timeval timeval_of(gavel_ns ns)
{
    return (struct timeval){.tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / NS_PER_US};
}

struct link *link_find(const struct transport *transport, raft_id id)
{
    struct link *link;

    for (link = LIST_FIRST(&transport->links); link; link = LIST_NEXT(link, entry))
        if (link->where.id == id)
            return link;
    return NULL;
}

static void dial_now(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    dial_begin(context);
}

void link_limit(struct link *link)
{
    struct timeval limit = timeval_of(link->transport->settings.connect_timeout);

    (void)event_add(&link->give_up, &limit); /* fails only without memory, and then the others time out */
}

static void too_late(evutil_socket_t fd, short events, void *context)
{
    struct link *link = context;
    const char *waits_for = !link->out                      ? "the connection"
                            : link->out->phase == PHASE_TLS ? "the TLS handshake"
                                                            : "the greeting";
    char reason[PEER_TEXT_MAX + 1];

    (void)fd;
    (void)events;
    text_write(reason, sizeof reason, "no answer within %lld ms (%s)",
               (long long)ms_from_ns(link->transport->settings.connect_timeout), waits_for);
    link_failed(link, TRANSPORT_FAILED, reason, NULL);
}

struct link *link_new(struct transport *transport, const struct transport_address *where)
{
    struct link *link = calloc(1, sizeof *link);

    if (!link)
        return NULL;
    link->transport = transport;
    link->where = *where;
    link->fd = -1;
    (void)evtimer_assign(&link->retry, transport->base, dial_now, link); /* fails only for signals */
    (void)evtimer_assign(&link->give_up, transport->base, too_late, link);
    LIST_INSERT_HEAD(&transport->links, link, entry);
    return link;
}

/* Whatever there is of a connection out, or of the attempt to make one. */
void link_drop_out(struct link *link)
{
    (void)event_del(&link->retry); /* harmless if it is not pending */
    (void)event_del(&link->give_up);
    dial_stop(link);
    snapshot_forget(&link->snapshot);
    if (link->out) {
        link->out->link = NULL;
        connection_close(link->out);
        link->out = NULL;
    }
}

void link_free(struct link *link)
{
    link_drop_out(link);
    if (link->in && link->transport->settings.takes_strangers)
        link->in->link = NULL;
    else if (link->in)
        connection_close(link->in); /* it comes again, and is looked at again */
    LIST_REMOVE(link, entry);
    free(link);
}

static void dial_after(struct link *link, gavel_ns delay)
{
    struct timeval limit = timeval_of(delay);

    (void)event_del(&link->retry);
    (void)event_add(&link->retry, &limit); /* see link_limit() */
}

void link_dial_soon(struct link *link)
{
    if (link->out || link->fd >= 0 || link->resolve)
        return;
    dial_after(link, 0);
}

static gavel_ns back_off(struct link *link)
{
    const struct transport_settings *settings = &link->transport->settings;
    gavel_ns delay = settings->retry_max;

    if (!link->is_breaker_open && link->failed < 30)
        delay = ns_min(delay, settings->retry_min << link->failed);
    return prng_between(&link->transport->prng, delay / 2, delay);
}

void link_failed(struct link *link, enum transport_news news, const char *reason,
                 const struct peer_hello *hello)
{
    struct transport *transport = link->transport;
    char text[NEWS_TEXT_MAX + 1];
    bool was_up = link->out && link->out->phase == PHASE_UP;
    raft_id id = link->where.id;
    bool opens, is_new;

    link_drop_out(link);
    link->failures++;
    opens = !link->is_breaker_open && link->failed + 1 >= transport->settings.failures;
    is_new = strcmp(link->told, reason) != 0;
    dial_after(link, back_off(link));
    link->failed++;
    link->is_breaker_open = link->is_breaker_open || opens;
    text_write(link->trouble, sizeof link->trouble, "%s", reason);
    text_write(link->told, sizeof link->told, "%s", reason);
    text_write(text, sizeof text, "%s (%s): %s", link->where.name, link->where.address, link->trouble);
    /* Last, because the caller may change the peers from here, and this one may be gone. */
    if (was_up)
        tell(transport, TRANSPORT_LOST, id, text, NULL);
    if (is_new)
        tell(transport, news, id, text, hello);
    if (opens)
        tell(transport, TRANSPORT_OPENED, id, text, NULL);
}

void link_lost(struct link *link, const char *reason)
{
    char text[NEWS_TEXT_MAX + 1];

    link_drop_out(link);
    text_write(link->trouble, sizeof link->trouble, "%s", reason);
    text_write(text, sizeof text, "%s (%s): %s", link->where.name, link->where.address, link->trouble);
    dial_after(link, back_off(link));
    tell(link->transport, TRANSPORT_LOST, link->where.id, text, NULL);
}

void link_up(struct link *link, const struct peer_hello *hello)
{
    struct transport *transport = link->transport;
    raft_id id = link->where.id;
    bool closes = link->is_breaker_open;

    (void)event_del(&link->give_up);
    link->failed = 0;
    link->is_breaker_open = false;
    link->connects++;
    link->trouble[0] = '\0';
    link->told[0] = '\0';
    link->told_in[0] = '\0';
    tell(transport, TRANSPORT_GREETED, id, link->where.name, hello);
    if (closes)
        tell(transport, TRANSPORT_CLOSED, id, "", NULL);
    tell(transport, TRANSPORT_UP, id, "", hello);
}
