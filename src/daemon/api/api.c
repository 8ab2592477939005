/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of the API thread. Other threads reach it by orders and wake-ups;
 * everything else in struct api is its own. It is an ordinary thread, whatever the
 * consensus thread is. Nor has it a lower priority: a process is not dead until its
 * last thread has been given the time to die.
 */
#include "daemon/api/internal.h"

#include "base/error.h"
#include "net/tls.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void say(const struct api *api, enum log_level level, const char *message, const char *reason)
{
    log_line(&api->shared->log, clock_wall_ms(), level, message, LOG_STR("reason", reason), LOG_END);
}

static enum gavel_status read_tls(const struct daemon_config *config, SSL_CTX **ret_tls,
                                  struct gavel_error *error)
{
    struct tls_files files = {.ca = config->tls_ca,
                              .cert = config->tls_cert,
                              .key = config->tls_key,
                              .revoked = config->tls_revoked};

    if (!config->has_api_tls) {
        *ret_tls = NULL;
        return GAVEL_OK;
    }
    return tls_context_make(&files, TLS_API, ret_tls, error);
}

/* Connections that are open keep the certificate they began with. */
static void reload(struct api *api)
{
    struct gavel_error error = {0};
    struct api_token token;
    SSL_CTX *tls;

    if (read_tls(api->shared->config, &tls, &error) == GAVEL_OK) {
        SSL_CTX_free(api->tls);
        api->tls = tls;
    } else {
        say(api, LOG_ERROR, "the API keeps its old certificate", error.message);
    }
    if (api_token_read(api->shared->config->token, &token, &error) == GAVEL_OK)
        api->token = token;
    else
        say(api, LOG_ERROR, "the API keeps its old token", error.message);
}

/* What is under way may end; the sweeper closes the rest when stop_at has come. */
static void begin_to_stop(struct api *api)
{
    api->is_stopping = true;
    api->stop_at = clock_now() + ns_from_ms(API_STOP_MS);
    (void)evconnlistener_disable(api->listener); /* whoever comes later is refused when it is closed */
    api_streams_end(api);
    api_forwardings_end(api);
    if (api->pending_count == 0)
        (void)event_base_loopexit(api->base, NULL);
}

static void on_orders(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;
    unsigned orders = loop_orders_take(&api->orders);

    (void)fd;
    (void)what;
    if (orders & API_ORDER_RELOAD)
        reload(api);
    if ((orders & API_ORDER_LEAVE) && !api->is_leaving)
        api_campaigns_leave(api);
    if ((orders & API_ORDER_STOP) && !api->is_stopping)
        begin_to_stop(api);
}

static void on_replies(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;

    (void)fd;
    (void)what;
    api_answer_replies(api);
    if (api->is_stopping && api->pending_count == 0)
        (void)event_base_loopexit(api->base, NULL);
}

static void on_bell(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    wakeup_clear(fd);
    api_streams_pump(user);
}

static void on_forwardings(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    api_forwardings_answer(user);
}

static void on_table(evutil_socket_t fd, short what, void *user)
{
    struct api *api = user;

    (void)what;
    wakeup_clear(fd);
    api_groups_count(api);
    api_transfers_look(api);
    api_streams_pump(api);
}

static void on_heartbeat(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    api_streams_heartbeat(user);
}

static bool is_anyone_answered(const struct api *api)
{
    const struct api_connection *connection;

    for (connection = TAILQ_FIRST(&api->connections); connection; connection = TAILQ_NEXT(connection, next))
        if (connection->is_answering)
            return true;
    return false;
}

static void *thread_main(void *user)
{
    struct sched_param parameters = {0};
    struct timeval moment = {.tv_usec = 1000};
    struct api *api = user;

    /* A thread inherits real-time priority from whoever made it. It does not matter much if this fails. */
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters);
    api_connections_begin(api);
    (void)event_base_dispatch(api->base);
    /* What was answered last is still to be written. */
    for (gavel_ns limit = clock_now() + ns_from_ms(API_FLUSH_MS);
         is_anyone_answered(api) && clock_now() < limit;) {
        (void)event_base_loopexit(api->base, &moment);
        (void)event_base_dispatch(api->base);
    }
    return NULL;
}

/* As many connections as the system allows; the limit is the process's, and children get it too. */
static int raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit wanted = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
            limit = wanted;
    }
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int)limit.rlim_cur;
}

static enum gavel_status build(struct api *api, int listening)
{
    struct timeval beat = {.tv_sec = API_HEARTBEAT_S};
    int fd = listening;

    api->base = loop_new();
    api->http = api->base ? evhttp_new(api->base) : NULL;
    api->orders.fd = wakeup_open();
    api->bell_fd = wakeup_open();
    api->table_fd = wakeup_open();
    if (!api->http || api_connections_init(api, listening) != GAVEL_OK)
        goto failed;
    fd = -1; /* the listener has it */
    api->heartbeat_event = event_new(api->base, -1, EV_PERSIST, on_heartbeat, api);
    if (!api->heartbeat_event || event_add(api->heartbeat_event, &beat))
        goto failed;
    api->orders_event = loop_watch(api->base, api->orders.fd, on_orders, api);
    api->replies_event = loop_watch(api->base, api->replies.fd, on_replies, api);
    api->forwardings_event = loop_watch(api->base, api->answers.fd, on_forwardings, api);
    api->table_event = loop_watch(api->base, api->table_fd, on_table, api);
    api->bell_event = loop_watch(api->base, api->bell_fd, on_bell, api);
    if (!api->orders_event || !api->replies_event || !api->forwardings_event || !api->table_event ||
        !api->bell_event)
        goto failed;
    evhttp_set_gencb(api->http, api_dispatch, api);
    return GAVEL_OK;
failed:
    if (fd >= 0 && !api->listener)
        (void)close(fd); /* nothing was sent on it */
    return GAVEL_ERR_NO_MEMORY;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    loop_drop(&api->orders_event);
    loop_drop(&api->replies_event);
    loop_drop(&api->bell_event);
    loop_drop(&api->heartbeat_event);
    loop_drop(&api->forwardings_event);
    loop_drop(&api->table_event);
    api->is_stopping = true; /* nothing is sent any more, whoever goes */
    api_connections_done(api);
    api_campaigns_done(api);
    api_forwardings_done(api);
    if (api->base)
        event_base_free(api->base);
    wakeup_close(&api->orders.fd);
    wakeup_close(&api->bell_fd);
    wakeup_close(&api->table_fd);
    SSL_CTX_free(api->tls);
    explicit_bzero(&api->token, sizeof api->token);
    /* A request that never came back would be answered into memory that is gone: then this little stays. */
    if (api->pending_count > 0)
        return;
    if (api->replies.fd >= 0)
        mailbox_done(&api->replies);
    free(api);
}

enum gavel_status api_new(struct node_shared *shared, int listening, struct api **ret_api,
                          struct gavel_error *error)
{
    struct api *api = calloc(1, sizeof *api);
    enum gavel_status status = api ? mailbox_init(&api->replies) : GAVEL_ERR_NO_MEMORY;

    if (status == GAVEL_OK) {
        status = mailbox_init(&api->answers);
        if (status != GAVEL_OK)
            mailbox_done(&api->replies);
    }
    if (status != GAVEL_OK) {
        free(api);
        (void)close(listening); /* nothing was sent on it */
        return error_set(error, status, "api: %s", gavel_status_text(status));
    }
    api->shared = shared;
    api->orders.fd = api->bell_fd = api->table_fd = -1;
    api->fd_limit = raise_fd_limit();
    status = build(api, listening);
    if (status != GAVEL_OK) {
        api_free(api);
        return error_set(error, status, "api: no room for the server's own parts");
    }
    status = api_token_read(shared->config->token, &api->token, error);
    if (status == GAVEL_OK)
        status = read_tls(shared->config, &api->tls, error);
    if (status != GAVEL_OK) {
        api_free(api);
        return status;
    }
    *ret_api = api;
    return GAVEL_OK;
}

enum gavel_status api_start(struct node_shared *shared, struct api **ret_api, struct gavel_error *error)
{
    enum gavel_status status;
    struct api *api;
    uint16_t port;
    int failure;
    int fd;

    status = api_bind(shared->config, &fd, &port, error);
    if (status == GAVEL_OK)
        status = api_new(shared, fd, &api, error);
    if (status != GAVEL_OK)
        return status;
    api->port = port;
    api->is_open = api_is_open(fd);
    journal_set_bell(shared->journal, api->bell_fd);
    if (!table_box_add_bell(&shared->table, api->table_fd)) {
        journal_set_bell(shared->journal, -1);
        api_free(api);
        return error_set(error, GAVEL_ERR_STATE, "api: the table has no bell left");
    }
    failure = thread_start(&api->thread, NULL, "gaveld-api", thread_main, api);
    api->has_thread = failure == 0;
    if (failure) {
        journal_set_bell(shared->journal, -1);
        table_box_remove_bell(&shared->table, api->table_fd);
        api_free(api);
        return error_set(error, GAVEL_ERR_NO_MEMORY, "api: no thread: %s", strerror(failure));
    }
    *ret_api = api;
    return GAVEL_OK;
}

uint16_t api_port(const struct api *api) { return api->port; }

void api_reload(struct api *api) { loop_orders_give(&api->orders, API_ORDER_RELOAD); }

void api_leave(struct api *api)
{
    if (api)
        loop_orders_give(&api->orders, API_ORDER_LEAVE);
}

bool api_has_left(const struct api *api) { return !api || atomic_load(&api->campaign_count) == 0; }

/* Whoever stops the API reads no requests any more: those that lie there go back unread. */
static void give_back_requests(struct api *api)
{
    struct mail_link *message;

    while ((message = mailbox_take(&api->shared->requests))) {
        struct request *request = (struct request *)(void *)message;

        request->status = GAVEL_ERR_STOPPED;
        (void)strncpy(request->message, "this node is stopping; ask another one",
                      sizeof request->message - 1);
        mailbox_put(request->reply_to, &request->link);
    }
}

void api_stop(struct api *api)
{
    if (!api)
        return;
    journal_set_bell(api->shared->journal, -1);
    table_box_remove_bell(&api->shared->table, api->table_fd);
    loop_orders_give(&api->orders, API_ORDER_STOP);
    give_back_requests(api);
    if (api->has_thread)
        (void)pthread_join(api->thread, NULL);
    give_back_requests(api);
    api_answer_replies(api);
    api_free(api);
}
