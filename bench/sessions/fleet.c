/* SPDX-License-Identifier: Apache-2.0 */

/* Connections, letters of the driver, and the loop. */
#include "bench/sessions/fleet_internal.h"

#include "base/assert.h"
#include "os/clock.h"
#include "os/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct fleet_board *fleet_board_new(void)
{
    void *memory =
        mmap(NULL, sizeof(struct fleet_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    struct fleet_board *board = memory;
    atomic_store(&board->since, NEVER);
    return board;
}

void fleet_board_free(struct fleet_board *board)
{
    if (board)
        (void)munmap(board, sizeof(*board)); /* fails only for an address that is none */
}

void fleet_fail(struct fleet *fleet, enum gavel_status status, const char *what, const char *message)
{
    if (fleet->has_failed)
        return;
    fleet->has_failed = true;
    (void)fprintf(stderr, "gavel bench: %s: %s: %s%s%s\n", fleet->post->name, what, gavel_status_text(status),
                  message[0] ? ": " : "", message);
    post_mark(fleet->post, MARK_FAILED, 0, clock_now(), status);
    (void)event_base_loopbreak(fleet->base);
}

void fleet_tell(const struct fleet *fleet, enum fleet_news news, int64_t value)
{
    post_mark(fleet->post, MARK_RESULT, news, clock_now(), value);
}

static void campaign_all(struct fleet *fleet, size_t set)
{
    for (size_t i = 0; i < fleet->plan->connections; i++)
        fleet_campaign(&fleet->seats[i], &fleet->groups[set]);
}

static void on_change(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct fleet_seat *seat = user;
    struct fleet *fleet = seat->fleet;

    (void)revision;
    if (is_gap && fleet->plan->board)
        atomic_fetch_add(&fleet->plan->board->gaps, 1); /* what was missed shows when the cluster is asked */
    if (change) {
        fleet_heard(seat, change);
        return;
    }
    if (seat->is_watching)
        return;
    seat->is_watching = true;
    if (++fleet->watching < fleet->plan->connections)
        return;
    post_mark(fleet->post, MARK_JOINED, 0, clock_now(), getpid());
    if (fleet->plan->is_candidate)
        campaign_all(fleet, FLEET_OWN);
}

static void on_session_lost(void *user)
{
    const struct fleet_seat *seat = user;

    if (seat->fleet->plan->board)
        atomic_fetch_add(&seat->fleet->plan->board->lost, 1);
    if (seat->fleet->plan->is_candidate)
        post_mark(seat->fleet->post, MARK_STOPPED, 0, clock_now(), 0);
}

static void on_pace(evutil_socket_t fd, short events, void *user)
{
    struct fleet_seat *seat = user;

    (void)fd;
    (void)events;
    if (seat->fleet->is_writing)
        fleet_write(seat);
}

static void obey(struct fleet *fleet, char letter)
{
    switch (letter) {
    case FLEET_CAMPAIGN:
        campaign_all(fleet, FLEET_OWN);
        break;
    case FLEET_STAND_BY:
        campaign_all(fleet, FLEET_OTHERS);
        break;
    case FLEET_LEAVE:
        for (size_t i = 0; i < fleet->plan->connections; i++)
            fleet_leave(&fleet->seats[i], &fleet->groups[FLEET_OTHERS]);
        break;
    case FLEET_WRITE:
        fleet->is_writing = true;
        for (size_t i = 0; i < fleet->plan->connections; i++)
            if (!fleet->seats[i].sent_at)
                fleet_write(&fleet->seats[i]);
        break;
    case FLEET_REST:
        fleet->is_writing = false;
        break;
    case FLEET_VERIFY:
        fleet_verify(fleet);
        break;
    case CREW_RESIGN:
        fleet_resign(&fleet->seats[0]);
        break;
    default:
        (void)event_base_loopbreak(fleet->base);
        break;
    }
}

static void on_letter(evutil_socket_t fd, short events, void *user)
{
    struct fleet *fleet = user;
    char letters[16];
    ssize_t count = read(fd, letters, sizeof(letters));

    (void)events;
    if (count <= 0)
        (void)event_base_loopbreak(fleet->base); /* the driver is gone */
    for (ssize_t i = 0; i < count; i++)
        obey(fleet, letters[i]);
}

static enum gavel_status take_seat(struct fleet *fleet, size_t number, const struct table_process *process)
{
    const struct fleet_plan *plan = fleet->plan;
    struct fleet_seat *seat = &fleet->seats[number];
    struct cluster_link_events events = {.session_lost = on_session_lost, .user = seat};
    struct cluster_link_place place;
    struct gavel_error error = {0};

    seat->fleet = fleet;
    seat->number = number;
    for (size_t i = 0; i < FLEET_SETS; i++)
        seat->jobs[i] = (struct fleet_job){.seat = seat, .groups = &fleet->groups[i], .next = number};
    seat->pace = evtimer_new(fleet->base, on_pace, seat);
    enum gavel_status status =
        cluster_link_place_parse(plan->places[number % plan->place_count], &place, &error);
    if (!status)
        status = cluster_link_new(fleet->base, &place, plan->ttl_ms, fleet->post->name,
                                  plan->tells_process ? process : NULL, &events, &seat->cluster, &error);
    if (!status && (!seat->pace || !cluster_link_watch(seat->cluster, NULL, NULL, 0, on_change, seat)))
        status = GAVEL_ERR_NO_MEMORY;
    if (status)
        fleet_fail(fleet, status, "cannot connect", error.message);
    return status;
}

/* As the nodes are told of it. */
static enum gavel_status tell_self(struct table_process *ret_process)
{
    struct process_id self;
    enum gavel_status status = process_self(&self);

    if (status)
        return status;
    *ret_process =
        (struct table_process){.pid = self.pid, .pid_ns = self.pid_ns, .start_ticks = self.start_ticks};
    memcpy(ret_process->boot_id, self.boot_id, sizeof(ret_process->boot_id));
    return GAVEL_OK;
}

static enum gavel_status set_up(struct fleet *fleet)
{
    const struct fleet_set *sets[FLEET_SETS] = {&fleet->plan->own, &fleet->plan->others};
    struct table_process process;
    enum gavel_status status = tell_self(&process);

    fleet->base = event_base_new();
    if (!fleet->base)
        return GAVEL_ERR_NO_MEMORY;
    fleet->control = event_new(fleet->base, fleet->post->control, EV_READ | EV_PERSIST, on_letter, fleet);
    if (!fleet->control || event_add(fleet->control, NULL) < 0)
        return GAVEL_ERR_NO_MEMORY;
    for (size_t i = 0; i < FLEET_SETS; i++) {
        fleet->groups[i] = (struct fleet_groups){
            .fleet = fleet, .set = *sets[i], .epochs = calloc(sets[i]->count + 1, sizeof(uint64_t))};
        if (!fleet->groups[i].epochs)
            return GAVEL_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < fleet->plan->connections && !status; i++)
        status = take_seat(fleet, i, &process);
    return status;
}

static void tear_down(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->plan->connections; i++) {
        cluster_link_free(fleet->seats[i].cluster);
        if (fleet->seats[i].pace)
            event_free(fleet->seats[i].pace);
    }
    for (size_t i = 0; i < FLEET_SETS; i++)
        free(fleet->groups[i].epochs);
    if (fleet->control)
        event_free(fleet->control);
    if (fleet->base)
        event_base_free(fleet->base);
    free(fleet);
}

int fleet_run(const struct post *post, void *user)
{
    const struct fleet_plan *plan = user;
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    ASSERT(plan->connections > 0 && plan->connections <= FLEET_CONNECTIONS_MAX);
    ASSERT(plan->place_count > 0 && plan->place_count <= FLEET_PLACES_MAX);
    (void)signal(SIGPIPE, SIG_IGN);
    if (fleet) {
        fleet->post = post;
        fleet->plan = plan;
        status = set_up(fleet);
        if (!status)
            (void)event_base_dispatch(fleet->base); /* ends by a letter, or by a failure that is told */
        if (fleet->has_failed)
            status = GAVEL_ERR_IO;
        tear_down(fleet);
    }
    return status ? 1 : 0;
}
