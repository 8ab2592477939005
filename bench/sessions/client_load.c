/* SPDX-License-Identifier: Apache-2.0 */

/* Connections, letters of the driver, and the loop. */
#include "bench/sessions/client_load_internal.h"

#include "base/assert.h"
#include "os/clock.h"
#include "os/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct client_load_board *client_load_board_new(void)
{
    void *memory = mmap(NULL, sizeof(struct client_load_board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    struct client_load_board *board = memory;
    atomic_store(&board->since, NEVER);
    return board;
}

void client_load_board_free(struct client_load_board *board)
{
    if (board)
        (void)munmap(board, sizeof *board); /* fails only for an address that is none */
}

void client_load_fail(struct client_load *client_load, enum gavel_status status, const char *what,
                      const char *message)
{
    if (client_load->has_failed)
        return;
    client_load->has_failed = true;
    (void)fprintf(stderr, "gavel bench: %s: %s: %s%s%s\n", client_load->context->name, what,
                  gavel_status_text(status), message[0] ? ": " : "", message);
    member_mark(client_load->context, MARK_FAILED, 0, clock_now(), status);
    (void)event_base_loopbreak(client_load->base);
}

void client_load_tell(const struct client_load *client_load, enum client_load_news news, int64_t value)
{
    member_mark(client_load->context, MARK_RESULT, news, clock_now(), value);
}

static void campaign_all(struct client_load *client_load, size_t set)
{
    for (size_t i = 0; i < client_load->plan->connections; i++)
        client_load_campaign(&client_load->connections[i], &client_load->groups[set]);
}

static void on_change(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct client_load_connection *connection = user;
    struct client_load *client_load = connection->client_load;

    (void)revision;
    if (is_gap && client_load->plan->board)
        atomic_fetch_add(&client_load->plan->board->gaps,
                         1); /* what was missed shows when the cluster is asked */
    if (change) {
        client_load_heard(connection, change);
        return;
    }
    if (connection->is_watching)
        return;
    connection->is_watching = true;
    if (++client_load->watching < client_load->plan->connections)
        return;
    member_mark(client_load->context, MARK_JOINED, 0, clock_now(), getpid());
    if (client_load->plan->is_candidate)
        campaign_all(client_load, CLIENT_LOAD_OWN);
}

static void on_session_lost(void *user, uint64_t number)
{
    const struct client_load_connection *connection = user;

    (void)number;
    if (connection->client_load->plan->board)
        atomic_fetch_add(&connection->client_load->plan->board->lost, 1);
    if (connection->client_load->plan->is_candidate)
        member_mark(connection->client_load->context, MARK_STOPPED, 0, clock_now(), 0);
}

static void on_pace(evutil_socket_t fd, short events, void *user)
{
    struct client_load_connection *connection = user;

    (void)fd;
    (void)events;
    if (connection->client_load->is_writing && !connection->sent_at)
        client_load_write(connection);
}

/* Those with a pace begin one after the other, so that they do not write all at once ever after. */
static void write_all(struct client_load *client_load, bool is_hurried)
{
    const struct client_load_plan *plan = client_load->plan;

    client_load->is_writing = true;
    client_load->is_hurried = is_hurried;
    for (size_t i = 0; i < plan->connections; i++) {
        struct client_load_connection *connection = &client_load->connections[i];

        if (connection->sent_at)
            continue; /* it goes on when that is answered */
        if (plan->pace && !is_hurried)
            client_load_write_later(connection, plan->pace * (gavel_ns)i / (gavel_ns)plan->connections);
        else
            client_load_write(connection);
    }
}

static void obey(struct client_load *client_load, char letter)
{
    switch (letter) {
    case CLIENT_LOAD_CAMPAIGN:
        campaign_all(client_load, CLIENT_LOAD_OWN);
        break;
    case CLIENT_LOAD_STAND_BY:
        campaign_all(client_load, CLIENT_LOAD_OTHERS);
        break;
    case CLIENT_LOAD_LEAVE:
        for (size_t i = 0; i < client_load->plan->connections; i++)
            client_load_leave(&client_load->connections[i], &client_load->groups[CLIENT_LOAD_OTHERS]);
        break;
    case CLIENT_LOAD_WRITE:
        write_all(client_load, false);
        break;
    case CLIENT_LOAD_HURRY:
        write_all(client_load, true);
        break;
    case CLIENT_LOAD_REST:
        client_load->is_writing = false;
        break;
    case CLIENT_LOAD_VERIFY:
        client_load_verify(client_load);
        break;
    case RIG_RESIGN:
        client_load_resign(&client_load->connections[0]);
        break;
    default:
        (void)event_base_loopbreak(client_load->base);
        break;
    }
}

static void on_letter(evutil_socket_t fd, short events, void *user)
{
    struct client_load *client_load = user;
    char letters[16];
    ssize_t count = read(fd, letters, sizeof letters);

    (void)events;
    if (count <= 0)
        (void)event_base_loopbreak(client_load->base); /* the driver is gone */
    for (ssize_t i = 0; i < count; i++)
        obey(client_load, letters[i]);
}

static enum gavel_status take_connection(struct client_load *client_load, size_t number,
                                         const struct table_process *process)
{
    const struct client_load_plan *plan = client_load->plan;
    struct client_load_connection *connection = &client_load->connections[number];
    struct cluster_link_events events = {.session_lost = on_session_lost, .user = connection};
    struct cluster_link_target target;
    struct gavel_error error = {0};

    connection->client_load = client_load;
    connection->number = number;
    for (size_t i = 0; i < CLIENT_LOAD_SETS; i++)
        connection->jobs[i] = (struct client_load_job){
            .connection = connection, .groups = &client_load->groups[i], .next = number};
    connection->pace = evtimer_new(client_load->base, on_pace, connection);
    enum gavel_status status =
        cluster_link_target_parse(plan->targets[number % plan->target_count], &target, &error);
    if (status == GAVEL_OK)
        status =
            cluster_link_new(client_load->base, &target, plan->ttl_ms, client_load->context->name,
                             plan->tells_process ? process : NULL, &events, &connection->cluster, &error);
    if (status == GAVEL_OK &&
        (!connection->pace || !cluster_link_watch(connection->cluster, NULL, NULL, 0, on_change, connection)))
        status = GAVEL_ERR_NO_MEMORY;
    if (status != GAVEL_OK)
        client_load_fail(client_load, status, "cannot connect", error.message);
    return status;
}

/* As the nodes are told of it. */
static enum gavel_status tell_self(struct table_process *ret_process)
{
    struct process_id self;
    enum gavel_status status = process_self(&self);

    if (status != GAVEL_OK)
        return status;
    *ret_process =
        (struct table_process){.pid = self.pid, .pid_ns = self.pid_ns, .start_ticks = self.start_ticks};
    memcpy(ret_process->boot_id, self.boot_id, sizeof ret_process->boot_id);
    return GAVEL_OK;
}

static enum gavel_status set_up(struct client_load *client_load)
{
    const struct client_load_set *sets[CLIENT_LOAD_SETS] = {&client_load->plan->own,
                                                            &client_load->plan->others};
    struct table_process process;
    enum gavel_status status = tell_self(&process);

    client_load->base = event_base_new();
    if (!client_load->base)
        return GAVEL_ERR_NO_MEMORY;
    client_load->control = event_new(client_load->base, client_load->context->control, EV_READ | EV_PERSIST,
                                     on_letter, client_load);
    if (!client_load->control || event_add(client_load->control, NULL) < 0)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < CLIENT_LOAD_SETS; i++) {
        client_load->groups[i] =
            (struct client_load_groups){.client_load = client_load,
                                        .set = *sets[i],
                                        .epochs = calloc(sets[i]->count + 1, sizeof(uint64_t))};
        if (!client_load->groups[i].epochs)
            return GAVEL_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < client_load->plan->connections && status == GAVEL_OK; i++)
        status = take_connection(client_load, i, &process);
    return status;
}

static void tear_down(struct client_load *client_load)
{
    for (size_t i = 0; i < client_load->plan->connections; i++) {
        cluster_link_free(client_load->connections[i].cluster);
        if (client_load->connections[i].pace)
            event_free(client_load->connections[i].pace);
    }
    for (size_t i = 0; i < CLIENT_LOAD_SETS; i++)
        free(client_load->groups[i].epochs);
    if (client_load->control)
        event_free(client_load->control);
    if (client_load->base)
        event_base_free(client_load->base);
    free(client_load);
}

int client_load_run(const struct member_context *context, void *user)
{
    const struct client_load_plan *plan = user;
    struct client_load *client_load = calloc(1, sizeof *client_load);
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    ASSERT(plan->connections > 0 && plan->connections <= CLIENT_LOAD_CONNECTIONS_MAX);
    ASSERT(plan->target_count > 0 && plan->target_count <= CLIENT_LOAD_TARGETS_MAX);
    (void)signal(SIGPIPE, SIG_IGN);
    if (client_load) {
        client_load->context = context;
        client_load->plan = plan;
        status = set_up(client_load);
        if (status == GAVEL_OK)
            (void)event_base_dispatch(client_load->base); /* ends by a letter, or by a failure that is told */
        if (client_load->has_failed)
            status = GAVEL_ERR_IO;
        tear_down(client_load);
    }
    return status != GAVEL_OK ? 1 : 0;
}
