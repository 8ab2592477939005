/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections of an agent: how many there may be, and who has to go.
 *
 * evhttp does not know slow clients: each byte starts its time-out again, and
 * it tells nobody of a connection before its first request is complete. So
 * each one is known here from the moment it is accepted: evhttp asks for a
 * bufferevent, which is looked at again, within the same turn of the loop,
 * once evhttp has tied it to a connection. From then on a request must be
 * complete AGENT_IDLE_S after the one before it, and when there are too many,
 * the one that was quiet for longest goes.
 */
#include "cli/agent/agent.h"

#include "os/clock.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <unistd.h>

/* evhttp goes on reading while an answer is written, and would keep all of it. */
#define READ_AHEAD_MAX (2 * AGENT_BODY_MAX + AGENT_HEADERS_MAX)
#define PAUSE_MS 100 /* of the listener, when no descriptor is left */

/* The listener's callbacks carry a pointer of evhttp's; a process has but one agent. */
static struct agent *own_agent;

static void cut(struct agent_connection *connection)
{
    connection->agent->cut++;
    evhttp_connection_free(connection->http); /* calls on_close */
}

static void on_close(struct evhttp_connection *http, void *user)
{
    struct agent_connection *connection = user;
    struct agent *agent = connection->agent;

    (void)http;
    if (connection->stream)
        agent_stream_gone(connection->stream);
    TAILQ_REMOVE(&agent->connections, connection, next);
    agent->connection_count--;
    free(connection);
}

/* The one that was quiet for longest goes; streams and answers under way stay. */
static bool make_room(struct agent *agent, const struct agent_connection *newcomer)
{
    struct agent_connection *connection;

    for (connection = TAILQ_FIRST(&agent->connections); connection; connection = TAILQ_NEXT(connection, next))
        if (connection != newcomer && !connection->is_answering && !connection->stream) {
            cut(connection);
            return true;
        }
    return false;
}

static void welcome(struct agent *agent, struct bufferevent *bev)
{
    struct agent_connection *connection;
    bufferevent_data_cb readable, writable;
    bufferevent_event_cb happened;
    void *owner = NULL;

    /* The owner of the callbacks is evhttp's connection; none if evhttp has given it up already. */
    bufferevent_getcb(bev, &readable, &writable, &happened, &owner);
    if (!owner)
        return;
    connection = calloc(1, sizeof *connection);
    if (!connection) {
        evhttp_connection_free(owner);
        return;
    }
    *connection = (struct agent_connection){.agent = agent, .http = owner, .quiet_since = clock_now()};
    TAILQ_INSERT_TAIL(&agent->connections, connection, next);
    agent->connection_count++;
    evhttp_connection_set_closecb(owner, on_close, connection);
    bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD_MAX);
    if (agent->connection_count > AGENT_CONNECTIONS_MAX && !make_room(agent, connection))
        cut(connection);
}

static void on_newborns(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    struct agent_newborn *newborn;

    (void)fd;
    (void)what;
    while ((newborn = agent->newborns)) {
        agent->newborns = newborn->next;
        if (!agent->newborns)
            agent->newborns_end = &agent->newborns;
        welcome(agent, newborn->bev);
        (void)bufferevent_decref(newborn->bev);
        free(newborn);
    }
}

/* evhttp wants a bufferevent for a connection that it has accepted. NULL: it makes one itself, unknown
 * here. */
static struct bufferevent *on_accept(struct event_base *base, void *user)
{
    struct agent *agent = user;
    struct agent_newborn *newborn = calloc(1, sizeof *newborn);
    struct bufferevent *bev = newborn ? bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE) : NULL;

    if (!bev) {
        free(newborn);
        return NULL;
    }
    bufferevent_incref(bev);
    newborn->bev = bev;
    *agent->newborns_end = newborn;
    agent->newborns_end = &newborn->next;
    event_active(agent->newborn_event, EV_TIMEOUT, 0);
    return bev;
}

/* Without a pause the loop would spin: the connection that cannot be accepted stays readable. */
static void on_accept_failed(struct evconnlistener *listener, void *user)
{
    struct timeval pause = {.tv_usec = PAUSE_MS * 1000};

    (void)user; /* evhttp's */
    (void)evconnlistener_disable(listener);
    (void)event_add(own_agent->resume_event, &pause); /* if not, it stays as it is: nothing is accepted */
    (void)make_room(own_agent, NULL);
}

static void on_resume(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;

    (void)fd;
    (void)what;
    if (!agent->is_closed)
        (void)evconnlistener_enable(agent->listener);
}

static void on_sweep(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    struct agent_connection *connection, *next;
    gavel_ns now = clock_now();

    (void)fd;
    (void)what;
    for (connection = TAILQ_FIRST(&agent->connections); connection; connection = next) {
        next = TAILQ_NEXT(connection, next);
        if (!connection->is_answering && !connection->stream &&
            now - connection->quiet_since > AGENT_IDLE_S * NS_PER_S)
            cut(connection);
    }
}

struct agent_connection *agent_connection_of(struct agent *agent, struct evhttp_request *http)
{
    const struct evhttp_connection *wanted = evhttp_request_get_connection(http);
    struct agent_connection *connection;

    for (connection = TAILQ_FIRST(&agent->connections); connection; connection = TAILQ_NEXT(connection, next))
        if (connection->http == wanted)
            return connection;
    return NULL;
}

bool agent_is_answering(const struct agent *agent)
{
    const struct agent_connection *connection;

    for (connection = TAILQ_FIRST(&agent->connections); connection; connection = TAILQ_NEXT(connection, next))
        if (connection->is_answering)
            return true;
    return false;
}

enum gavel_status agent_http_open(struct agent *agent)
{
    struct timeval second = {.tv_sec = 1};
    struct event *sweep;

    own_agent = agent;
    agent->newborns_end = &agent->newborns;
    TAILQ_INIT(&agent->connections);
    LIST_INIT(&agent->streams);
    agent->http = evhttp_new(agent->base);
    agent->newborn_event = event_new(agent->base, -1, 0, on_newborns, agent);
    agent->resume_event = event_new(agent->base, -1, 0, on_resume, agent);
    sweep = event_new(agent->base, -1, EV_PERSIST, on_sweep, agent);
    if (sweep)
        agent->events[agent->event_count++] = sweep;
    if (!agent->http || !agent->newborn_event || !agent->resume_event || !sweep || event_add(sweep, &second))
        return GAVEL_ERR_NO_MEMORY;
    agent->listener = evconnlistener_new(
        agent->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, agent->endpoint.fd);
    if (!agent->listener)
        return GAVEL_ERR_NO_MEMORY;
    agent->endpoint.fd = -1; /* the listener has it */
    if (!evhttp_bind_listener(agent->http, agent->listener)) {
        evconnlistener_free(agent->listener);
        return GAVEL_ERR_NO_MEMORY;
    }
    evconnlistener_set_error_cb(agent->listener, on_accept_failed);
    evhttp_set_bevcb(agent->http, on_accept, agent);
    evhttp_set_timeout(agent->http, AGENT_IDLE_S);
    /* What is a little too large is answered in words by agent_dispatch(); what is more is not read at
     * all. */
    evhttp_set_max_headers_size(agent->http, 2 * AGENT_HEADERS_MAX);
    evhttp_set_max_body_size(agent->http, 2 * AGENT_BODY_MAX);
    evhttp_set_allowed_methods(agent->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                                EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                                EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH);
    evhttp_set_gencb(agent->http, agent_dispatch, agent);
    return GAVEL_OK;
}

void agent_http_stop_listening(struct agent *agent) { (void)evconnlistener_disable(agent->listener); }

void agent_http_close(struct agent *agent)
{
    if (agent->base && agent->newborn_event)
        on_newborns(-1, 0, agent); /* so that each is known, and freed with the rest */
    if (agent->http)
        evhttp_free(agent->http); /* with listener and connections */
    if (agent->newborn_event)
        event_free(agent->newborn_event);
    if (agent->resume_event)
        event_free(agent->resume_event);
    if (agent->endpoint.fd >= 0)
        (void)close(agent->endpoint.fd); /* nothing was accepted */
    agent->endpoint.fd = -1;
    agent->http = NULL;
    agent->newborn_event = agent->resume_event = NULL;
}
