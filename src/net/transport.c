/* SPDX-License-Identifier: Apache-2.0 */

/* The transport as its caller sees it; the parts are in the files that internal.h names. */

#include "net/internal.h"
#include "net/prove.h"
#include "net/tls.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void set_defaults(struct transport_settings *settings)
{
    if (settings->connect_timeout == 0)
        settings->connect_timeout = NS_PER_S;
    if (settings->retry_min == 0)
        settings->retry_min = 10 * NS_PER_MS;
    if (settings->retry_max == 0)
        settings->retry_max = NS_PER_S;
    if (settings->failures == 0)
        settings->failures = 5;
    if (settings->waiting_max == 0)
        settings->waiting_max = (size_t)8 << 20;
    if (settings->accepted_max == 0)
        settings->accepted_max = 64;
}

static void set_self(struct transport *transport, const struct peer_hello *self)
{
    struct peer_hello *own = &transport->settings.self;

    *own = *self;
    own->process = transport->process;
    prove_generation(transport->settings.key, own);
    if (own->version_max == 0) {
        own->version_min = PEER_VERSION_MIN;
        own->version_max = PEER_VERSION_MAX;
    }
}

/* Neither libevent nor OpenSSL can write to a socket without it. */
static void ignore_broken_pipes(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        return;
    action = (struct sigaction){.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &action, NULL); /* cannot fail with a valid signal */
}

enum gavel_status transport_new(struct event_base *base, const struct transport_settings *settings,
                                const struct transport_events *events, struct transport **ret_transport,
                                struct gavel_error *error)
{
    struct transport *transport = calloc(1, sizeof *transport);
    gavel_ns now = clock_now();
    enum gavel_status status;

    if (!transport)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    ignore_broken_pipes();
    transport->base = base;
    transport->settings = *settings;
    transport->events = *events;
    transport->listener = transport->datagrams = -1;
    transport->stranger_news =
        (struct bucket){.tokens = 10, .most = 10, .interval = NS_PER_S, .filled_at = now};
    transport->obituaries =
        (struct bucket){.tokens = 200, .most = 200, .interval = NS_PER_S / 200, .filled_at = now};
    LIST_INIT(&transport->links);
    LIST_INIT(&transport->dialled);
    LIST_INIT(&transport->accepted);
    LIST_INIT(&transport->dead);
    prng_seed(&transport->prng, entropy_u64());
    transport->process = settings->self.process ? settings->self.process : entropy_u64();
    set_defaults(&transport->settings);
    set_self(transport, &settings->self);
    (void)evtimer_assign(&transport->reaper, base, connection_reap, transport); /* fails only for signals */
    transport_set_tls(transport, settings->tls);
    status = accept_open(transport, error);
    if (status != GAVEL_OK) {
        transport_free(transport);
        return status;
    }
    transport->settings.listen = NULL; /* it was borrowed */
    *ret_transport = transport;
    return GAVEL_OK;
}

static void close_all(struct connections *connections)
{
    struct connection *connection;

    while ((connection = LIST_FIRST(connections)))
        connection_close(connection);
}

void transport_free(struct transport *transport)
{
    struct link *link;

    if (!transport)
        return;
    accept_close(transport);
    while ((link = LIST_FIRST(&transport->links)))
        link_free(link);
    close_all(&transport->dialled);
    close_all(&transport->accepted);
    (void)event_del(&transport->reaper);
    connection_reap(-1, 0, transport);
    SSL_CTX_free(transport->tls);
    free(transport);
}

uint16_t transport_port(const struct transport *transport) { return transport->port; }

static const struct transport_address *find_address(const struct transport_address *peers, size_t count,
                                                    raft_id id)
{
    for (size_t i = 0; i < count; i++)
        if (peers[i].id == id)
            return &peers[i];
    return NULL;
}

/* One that came before we knew it. */
static void adopt_accepted(struct link *link)
{
    struct connection *connection;

    for (connection = LIST_FIRST(&link->transport->accepted); connection;
         connection = LIST_NEXT(connection, entry)) {
        if (connection->phase == PHASE_UP && connection->peer == link->where.id) {
            connection->link = link;
            link->in = connection;
        }
    }
}

void transport_set_peers(struct transport *transport, const struct transport_address *peers, size_t count)
{
    struct link *link, *next;

    for (link = LIST_FIRST(&transport->links); link; link = next) {
        const struct transport_address *where = find_address(peers, count, link->where.id);

        next = LIST_NEXT(link, entry);
        if (!where) {
            link_free(link);
        } else if (strcmp(where->address, link->where.address) != 0 ||
                   strcmp(where->name, link->where.name) != 0) {
            link_drop_out(link);
            link->failed = 0;
            link->where = *where;
            link->resolved_to.ss_family = AF_UNSPEC;
            link_dial_soon(link);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (peers[i].id == transport->settings.self.node || link_find(transport, peers[i].id))
            continue;
        link = link_new(transport, &peers[i]);
        if (!link)
            continue; /* without memory: the next change of the list tries again */
        adopt_accepted(link);
        link_dial_soon(link);
    }
}

void transport_set_members(struct transport *transport, const raft_id *members, size_t count, uint64_t as_of)
{
    if (count > sizeof transport->members / sizeof transport->members[0])
        count = sizeof transport->members / sizeof transport->members[0];
    if (count > 0)
        memcpy(transport->members, members, count * sizeof *members);
    transport->member_count = count;
    transport->members_as_of = as_of;
}

void transport_set_self(struct transport *transport, const struct peer_hello *self)
{
    set_self(transport, self);
}

/* What the old list let in and the new one does not. */
static void drop_revoked(struct transport *transport)
{
    struct connection *connection, *next;
    struct link *link;

    for (connection = LIST_FIRST(&transport->accepted); connection; connection = next) {
        next = LIST_NEXT(connection, entry);
        if (connection->phase != PHASE_LEAVING && tls_is_revoked(transport->tls, connection->ssl))
            connection_refuse(connection, "the certificate was revoked", false);
    }
    for (link = LIST_FIRST(&transport->links); link; link = LIST_NEXT(link, entry))
        if (link->out && tls_is_revoked(transport->tls, link->out->ssl))
            link_lost(link, "its certificate was revoked");
}

void transport_set_tls(struct transport *transport, SSL_CTX *tls)
{
    if (tls)
        (void)SSL_CTX_up_ref(tls); /* fails only for NULL */
    SSL_CTX_free(transport->tls);
    transport->tls = tls;
    if (tls)
        drop_revoked(transport);
}

static bool is_up(const struct link *link) { return link->out && link->out->phase == PHASE_UP; }

void transport_send(struct transport *transport, const struct raft_message *message)
{
    struct link *link = link_find(transport, message->to);
    struct peer_frame frame;

    if (!link)
        return;
    if (!is_up(link)) {
        link->dropped++;
    } else if (message->kind == RAFT_MSG_SNAPSHOT) {
        snapshot_send(link, message);
    } else {
        frame.kind = PEER_MESSAGE; /* the rest of it is not looked at */
        frame.message = *message;
        if (connection_waiting(link->out) >= transport->settings.waiting_max ||
            !connection_write(link->out, &frame))
            link->dropped++;
    }
}

/*
 * Forwardings have half of the room, and Raft goes before them: no number of clients may hold up a heartbeat.
 * An answer that waits its turn is kept, since nobody else has it. A forwarded request is refused sooner: its
 * forwarder has it still, and knows better which is to go first.
 */
static bool has_room(const struct link *link, bool has_half)
{
    size_t most = link->transport->settings.waiting_max / 2;

    if (!has_half && most > FORWARDINGS_AHEAD_BYTES)
        most = FORWARDINGS_AHEAD_BYTES;
    return connection_waiting(link->out) + connection_waiting_late(link->out) < most;
}

bool transport_send_forwarding(struct transport *transport, raft_id peer, enum peer_frame_kind kind,
                               const struct peer_forwarding *forwarding)
{
    struct link *link = link_find(transport, peer);
    struct peer_frame frame;

    if (!link || !is_up(link))
        return false;
    frame.kind = kind; /* the rest of it is not looked at */
    frame.forwarding = *forwarding;
    if (!has_room(link, kind != PEER_FORWARDING) || !connection_write_late(link->out, &frame)) {
        link->dropped++;
        return false;
    }
    return true;
}

void transport_send_status(struct transport *transport, const struct peer_status *status)
{
    struct peer_frame frame = {.kind = PEER_STATUS, .status = *status};
    struct link *link;

    for (link = LIST_FIRST(&transport->links); link; link = LIST_NEXT(link, entry)) {
        if (!is_up(link))
            continue;
        if (connection_waiting(link->out) >= transport->settings.waiting_max ||
            !connection_write(link->out, &frame))
            link->dropped++;
    }
}

void transport_flush(struct transport *transport)
{
    struct link *link;

    for (link = LIST_FIRST(&transport->links); link; link = LIST_NEXT(link, entry))
        if (is_up(link))
            connection_flush(link->out);
}

bool transport_link_of(const struct transport *transport, raft_id peer, struct transport_link *ret_link)
{
    const struct link *link = link_find(transport, peer);

    if (!link)
        return false;
    *ret_link = (struct transport_link){.is_up = is_up(link),
                                        .is_heard = link->in != NULL,
                                        .is_breaker_open = link->is_breaker_open,
                                        .heard_at = link->heard_at,
                                        .connects = link->connects,
                                        .failures = link->failures,
                                        .dropped = link->dropped,
                                        .sent_bytes = link->sent_bytes,
                                        .received_bytes = link->received_bytes};
    memcpy(ret_link->trouble, link->trouble, sizeof ret_link->trouble);
    return true;
}

bool transport_address_of(const struct transport *transport, raft_id peer,
                          struct sockaddr_storage *ret_address)
{
    const struct link *link = link_find(transport, peer);

    if (!link || link->resolved_to.ss_family == AF_UNSPEC)
        return false;
    *ret_address = link->resolved_to;
    return true;
}
