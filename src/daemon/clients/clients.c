/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of the clients thread. Other threads reach it by orders, by messages
 * (replies) and by the bell of the table; everything else is its own.
 *
 * It publishes when it last went round its loop. While it does not, clients may
 * have spoken without being heard, and the leader of the cluster lets no session
 * expire for that.
 */
#include "daemon/clients/internal.h"

#include "base/error.h"
#include "daemon/realtime.h"
#include "os/wakeup.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

static void mark_alive(struct clients *clients)
{
    atomic_store(&clients->shared->clients_alive_at, clock_now());
}

static void on_orders(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;
    unsigned orders = loop_orders_take(&clients->orders);

    (void)fd;
    (void)what;
    /* Files may be slow: another thread reads them. */
    if (orders & CLIENTS_ORDER_RELOAD && !reload_begin(&clients->reload))
        log_line(&clients->shared->log, clock_wall_ms(), LOG_ERROR, "clients keep the old certificate",
                 LOG_STR("reason", "no thread could be started to read the new one"), LOG_END);
    if (orders & CLIENTS_ORDER_STOP)
        clients->is_stopping = true;
}

/* What the old list let in and the new one does not. */
static void drop_revoked(struct clients *clients)
{
    struct clients_connection *connection, *next;

    for (connection = TAILQ_FIRST(&clients->connections); connection; connection = next) {
        next = TAILQ_NEXT(connection, next);
        if (connection->phase <= CLIENTS_UP && tls_is_revoked(clients->certificates.context, connection->ssl))
            clients_connection_cut(connection, CLIENTS_REVOKED);
    }
}

/* Connections that are open keep the certificate they began with. */
static void on_reloaded(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;
    struct certificates certificates;

    (void)fd;
    (void)what;
    reload_take(&clients->reload, &certificates);
    if (clients->reload.status == GAVEL_OK) {
        SSL_CTX_free(clients->certificates.context);
        clients->certificates = certificates;
        drop_revoked(clients);
    } else {
        log_line(&clients->shared->log, clock_wall_ms(), LOG_ERROR, "clients keep the old certificate",
                 LOG_STR("reason", clients->reload.error.message), LOG_END);
    }
    if (clients->reload.is_again) {
        clients->reload.is_again = false;
        (void)reload_begin(&clients->reload); /* what was read just now is new enough */
    }
}

static void on_replies(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    clients_take_replies(user);
}

static void on_bell(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    wakeup_clear(fd);
    clients_pump(user);
}

/* Whoever greets again is told the same (greet.c). */
static void send_elsewhere(struct clients *clients)
{
    struct clients_connection *connection;
    struct clients_connection *next;

    for (connection = TAILQ_FIRST(&clients->connections); connection; connection = next) {
        next = TAILQ_NEXT(connection, next);
        if (connection->phase == CLIENTS_UP)
            clients_connection_cut(connection, CLIENTS_BLIND);
    }
    clients_flush(clients);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
    struct clients *clients = user;

    (void)fd;
    (void)what;
    mark_alive(clients);
    if (clients->is_hungry)
        clients_pump(clients);
    if (atomic_load(&clients->shared->is_blind))
        send_elsewhere(clients);
    if (++clients->ticks % CLIENTS_SWEEP_TICKS == 0)
        clients_sweep(clients, clock_now());
}

static bool has_unwritten(const struct clients *clients)
{
    const struct clients_connection *connection;

    TAILQ_FOREACH(connection, &clients->connections, next)
        if (clients_waiting(connection) > 0)
            return true;
    return false;
}

static void *thread_main(void *user)
{
    struct clients *clients = user;
    const struct timeval moment = {.tv_usec = 1000};
    gavel_ns limit;

    while (!clients->is_stopping) {
        (void)event_base_loop(clients->base, EVLOOP_ONCE); /* there are always events */
        mark_alive(clients);
    }
    clients_listen_end(clients);
    clients_take_replies(clients);
    /* What was answered last is still to be written. */
    for (limit = clock_now() + CLIENTS_FLUSH_MS * NS_PER_MS; has_unwritten(clients) && clock_now() < limit;) {
        (void)event_base_loopexit(clients->base, &moment);
        (void)event_base_dispatch(clients->base);
    }
    return NULL;
}

static enum gavel_status build(struct clients *clients)
{
    const struct timeval tick = {.tv_usec = CLIENTS_TICK_MS * 1000};

    clients->base = loop_new();
    clients->orders.fd = wakeup_open();
    clients->bell_fd = wakeup_open();
    if (!clients->base || reload_init(&clients->reload, clients->shared->config) != GAVEL_OK)
        return GAVEL_ERR_NO_MEMORY;
    clients->work_event = event_new(clients->base, -1, 0, clients_work, clients);
    clients->reap_event = event_new(clients->base, -1, 0, clients_reap, clients);
    clients->late_event = event_new(clients->base, -1, 0, clients_write_late, clients);
    clients->tick_event = event_new(clients->base, -1, EV_PERSIST, on_tick, clients);
    clients->orders_event = loop_watch(clients->base, clients->orders.fd, on_orders, clients);
    clients->bell_event = loop_watch(clients->base, clients->bell_fd, on_bell, clients);
    clients->replies_event = loop_watch(clients->base, clients->replies.fd, on_replies, clients);
    clients->reload_event = loop_watch(clients->base, clients->reload.done.fd, on_reloaded, clients);
    if (!clients->work_event || !clients->reap_event || !clients->late_event || !clients->tick_event ||
        event_add(clients->tick_event, &tick) || !clients->orders_event || !clients->bell_event ||
        !clients->replies_event || !clients->reload_event)
        return GAVEL_ERR_NO_MEMORY;
    return clients_listen_begin(clients);
}

static void close_connections(struct clients *clients)
{
    struct clients_connection *connection;

    while ((connection = TAILQ_FIRST(&clients->connections)))
        clients_connection_close(connection);
    if (clients->base)
        clients_reap(-1, 0, clients);
}

/* However far it came. */
static void destroy(struct clients *clients)
{
    struct mail_link *message;

    clients_listen_end(clients);
    close_connections(clients);
    loop_drop(&clients->orders_event);
    loop_drop(&clients->bell_event);
    loop_drop(&clients->replies_event);
    loop_drop(&clients->reload_event);
    loop_drop(&clients->tick_event);
    loop_drop(&clients->work_event);
    loop_drop(&clients->reap_event);
    loop_drop(&clients->late_event);
    if (clients->base)
        event_base_free(clients->base);
    wakeup_close(&clients->orders.fd);
    wakeup_close(&clients->bell_fd);
    reload_done(&clients->reload);
    SSL_CTX_free(clients->certificates.context);
    clients_slice_clear(&clients->slice);
    free(clients->slice.arena);
    while ((message = mailbox_take(&clients->replies)))
        forwarding_free((struct forwarding *)(void *)message);
    mailbox_done(&clients->replies);
    free(clients);
}

static enum gavel_status set_up(struct clients *clients, struct gavel_error *error)
{
    enum gavel_status status = mailbox_init(&clients->replies);

    if (status != GAVEL_OK)
        return error_set(error, status, "clients: %s", gavel_status_text(status));
    if (clients->shared->config->clients_listen[0])
        status = certificates_read(clients->shared->config, &clients->certificates, error);
    if (status == GAVEL_OK)
        status = clients_listen(clients, error);
    if (status != GAVEL_OK)
        return status;
    if (build(clients) != GAVEL_OK || !table_box_add_bell(&clients->shared->table, clients->bell_fd))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "clients: no room for the server's own parts");
    return GAVEL_OK;
}

enum gavel_status clients_start_with(struct node_shared *shared, const struct clients_patience *patience,
                                     struct clients **ret_clients, struct gavel_error *error)
{
    enum realtime realtime = shared->config->realtime ? REALTIME_EAGER : REALTIME_NO;
    struct clients *clients;
    enum gavel_status status;

    if (!shared->config->clients_listen[0] && !shared->config->socket[0]) {
        *ret_clients = NULL;
        return GAVEL_OK;
    }
    clients = calloc(1, sizeof *clients);
    if (!clients)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "clients: out of memory");
    clients->shared = shared;
    clients->patience = *patience;
    if (process_self(&clients->self) != GAVEL_OK)
        clients->self = (struct process_id){0};
    clients->orders.fd = clients->bell_fd = clients->tcp.fd = clients->local.fd = -1;
    TAILQ_INIT(&clients->connections);
    TAILQ_INIT(&clients->dead);
    TAILQ_INIT(&clients->work);
    TAILQ_INIT(&clients->late);
    STAILQ_INIT(&clients->touched);
    status = set_up(clients, error);
    if (status == GAVEL_OK) {
        mark_alive(clients);
        clients->has_thread =
            realtime_thread(&clients->thread, "gaveld-clients", thread_main, clients, realtime) == 0;
        if (!clients->has_thread)
            status = error_set(error, GAVEL_ERR_NO_MEMORY, "clients: no thread could be started");
    }
    if (status != GAVEL_OK) {
        clients_stop(clients);
        return status;
    }
    *ret_clients = clients;
    return GAVEL_OK;
}

enum gavel_status clients_start(struct node_shared *shared, struct clients **ret_clients,
                                struct gavel_error *error)
{
    const struct clients_patience patience = {
        .greeting = 5 * NS_PER_S, .idle = CLIENTS_IDLE_MS * NS_PER_MS, .slow = 5 * NS_PER_S};

    return clients_start_with(shared, &patience, ret_clients, error);
}

void clients_reload(struct clients *clients)
{
    if (clients)
        loop_orders_give(&clients->orders, CLIENTS_ORDER_RELOAD);
}

void clients_stop(struct clients *clients)
{
    if (!clients)
        return;
    if (clients->bell_fd >= 0)
        table_box_remove_bell(&clients->shared->table, clients->bell_fd);
    if (clients->has_thread) {
        loop_orders_give(&clients->orders, CLIENTS_ORDER_STOP);
        (void)pthread_join(clients->thread, NULL); /* fails only for a thread that is none */
    }
    atomic_store(&clients->shared->clients_alive_at, 0);
    destroy(clients);
}

uint16_t clients_port(const struct clients *clients) { return clients ? clients->port : 0; }

void clients_count(struct clients *clients, struct clients_counts *ret_counts)
{
    *ret_counts = (struct clients_counts){0};
    if (!clients)
        return;
    ret_counts->connections = atomic_load(&clients->counts.connections);
    ret_counts->accepted = atomic_load(&clients->counts.accepted);
    ret_counts->cut = atomic_load(&clients->counts.cut);
    ret_counts->watches = atomic_load(&clients->counts.watches);
    ret_counts->changes = atomic_load(&clients->counts.changes);
    ret_counts->lookups = atomic_load(&clients->counts.lookups);
}
