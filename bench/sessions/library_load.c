/* SPDX-License-Identifier: Apache-2.0 */

/* The main thread obeys and joins; the callbacks run on libgavel's thread and count. */
#include "bench/sessions/library_load.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LISTEN_NS NS_PER_S
#define LIMIT_NS (60 * NS_PER_S)
#define LIMIT_PER_GROUP_NS (20 * NS_PER_MS)
#define NAME_BYTES (CLIENT_LOAD_PREFIX_BYTES + 24)

struct library_load;

struct library_load_group {
    struct library_load *load;
    bool is_known; /* it has seen another one lead */
};

struct library_load {
    const struct member_context *context;
    const struct library_load_plan *plan;
    struct library_load_group *groups;
    size_t held;  /* for the callbacks only, as what follows */
    size_t known; /* groups */
    bool has_failed;
};

struct library_load_board *library_load_board_new(void)
{
    void *memory = mmap(NULL, sizeof(struct library_load_board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void library_load_board_free(struct library_load_board *board)
{
    if (board)
        (void)munmap(board, sizeof *board); /* fails only for an address that is none */
}

gavel_ns library_load_limit(size_t groups) { return LIMIT_NS + (gavel_ns)groups * LIMIT_PER_GROUP_NS; }

static void tell(const struct library_load *load, enum client_load_news news, gavel_ns at)
{
    member_mark(load->context, MARK_RESULT, news, at, 0);
}

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    gavel_ns at = clock_now(), none = 0;
    struct library_load *load = ((struct library_load_group *)user)->load;

    (void)candidate;
    (void)epoch;
    atomic_compare_exchange_strong(&load->plan->board->first_at, &none, at);
    atomic_fetch_add(&load->plan->board->elected, 1);
    if (++load->held == load->plan->own.count)
        tell(load, CLIENT_LOAD_HOLDS, at);
}

static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct library_load *load = ((struct library_load_group *)user)->load;

    (void)candidate;
    (void)reason;
    load->held--;
    atomic_fetch_add(&load->plan->board->demoted, 1);
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct library_load_group *group = user;
    struct library_load *load = group->load;

    (void)candidate;
    if (event->kind == GAVEL_EVENT_STOPPED && event->status != GAVEL_OK && !load->has_failed) {
        load->has_failed = true;
        member_mark(load->context, MARK_FAILED, 0, clock_now(), event->status);
    }
    if (event->kind != GAVEL_EVENT_LEADER_CHANGED || !event->leader[0] || group->is_known ||
        strcmp(event->leader, load->context->name) == 0)
        return;
    group->is_known = true;
    if (++load->known == load->plan->own.count)
        tell(load, CLIENT_LOAD_STANDS, clock_now());
}

static enum gavel_status join_all(struct library_load *load, struct gavel *gavel, struct gavel_error *error)
{
    const struct client_load_set *own = &load->plan->own;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    char name[NAME_BYTES];
    enum gavel_status status = GAVEL_OK;

    join.group = name;
    join.candidate = load->context->name;
    join.subscriber =
        (struct gavel_subscriber){.on_elected = on_elected, .on_demoted = on_demoted, .on_event = on_event};
    atomic_store(&load->plan->board->began_at, clock_now());
    for (size_t i = 0; i < own->count && status == GAVEL_OK; i++) {
        load->groups[i].load = load;
        join.subscriber.user = &load->groups[i];
        (void)snprintf(name, sizeof name, "%s%06zu", own->prefix, i);
        status = gavel_join(gavel, &join, &candidate, error);
    }
    return status;
}

static enum gavel_status serve(struct library_load *load, struct gavel *gavel, struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;

    member_mark(load->context, MARK_JOINED, 0, clock_now(), getpid());
    while (status == GAVEL_OK) {
        char letter = member_listen(load->context, clock_now() + LISTEN_NS);
        if (letter == RIG_QUIT)
            break;
        if (letter == CLIENT_LOAD_CAMPAIGN)
            status = join_all(load, gavel, error);
    }
    return status;
}

/* A member_run(). */
static int run(const struct member_context *context, void *user)
{
    struct library_load load = {.context = context, .plan = user};
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    options.store = load.plan->url;
    load.groups = calloc(load.plan->own.count, sizeof load.groups[0]);
    if (load.groups)
        status = gavel_open(&options, &gavel, &error);
    if (status == GAVEL_OK)
        status = serve(&load, gavel, &error);
    if (status != GAVEL_OK) {
        (void)fprintf(stderr, "gavel bench: %s cannot take part: %s\n", context->name,
                      error.message[0] ? error.message : gavel_status_text(status));
        member_mark(context, MARK_FAILED, 0, clock_now(), status);
    }
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    free(load.groups);
    return status != GAVEL_OK ? 1 : 0;
}

enum gavel_status library_load_start(struct rig *rig, uint32_t member, const char *name,
                                     struct library_load_plan *plan)
{
    return sessions_start_with(rig, member, name, run, plan);
}
