/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/process_watch.h"

#include "base/assert.h"
#include "os/process.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process_watch_watch {
    RB_ENTRY(process_watch_watch) by_process;
    struct process_watch *process_watch;
    struct table_process process;
    struct event *event; /* NULL: it is dead */
    int pidfd;           /* -1 likewise */
    bool is_named;       /* by the table, when the dead were last looked for */
};

static int compare(const struct process_watch_watch *a, const struct process_watch_watch *b)
{
    if (a->process.pid != b->process.pid)
        return a->process.pid < b->process.pid ? -1 : 1;
    if (a->process.start_ticks != b->process.start_ticks)
        return a->process.start_ticks < b->process.start_ticks ? -1 : 1;
    return 0;
}

RB_GENERATE_INTERNAL(process_watch_watches, process_watch_watch, by_process, compare,
                     static __attribute__((unused)))

static bool is_same(const struct table_process *a, const struct table_process *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->pid_ns == b->pid_ns &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

/* Whether life and death of it can be seen from here. */
static bool is_ours(const struct process_watch *process_watch, const struct table_process *process)
{
    return process->pid > 0 && process_watch->self.pid > 0 && process->pid_ns == process_watch->self.pid_ns &&
           strcmp(process->boot_id, process_watch->self.boot_id) == 0;
}

/* Copies of operations, gathered in a walk over the table and handed on after it: what they lead to may
 * change the table. */
struct batch {
    struct process_watch *process_watch;
    Gavel__Op **ops;
    size_t count;
    size_t capacity;
};

/* Without memory it is not among them, and the next tick tells of it. */
static void add(struct batch *batch, const Gavel__Op *op)
{
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity > 0 ? 2 * batch->capacity : 64;
        Gavel__Op **grown = realloc(batch->ops, capacity * sizeof *grown);

        if (!grown)
            return;
        batch->ops = grown;
        batch->capacity = capacity;
    }
    batch->ops[batch->count] = client_op_copy(op);
    batch->count += batch->ops[batch->count] != NULL;
}

/* In portions of what one command takes. */
static void hand_on(struct batch *batch)
{
    const struct process_watch *process_watch = batch->process_watch;

    for (size_t i = 0; i < batch->count; i += TABLE_OPS_MAX) {
        size_t count = batch->count - i < TABLE_OPS_MAX ? batch->count - i : TABLE_OPS_MAX;

        process_watch->callback(process_watch->user, (const Gavel__Op *const *)batch->ops + i, count);
    }
    for (size_t i = 0; i < batch->count; i++)
        gavel__op__free_unpacked(batch->ops[i], NULL);
    free(batch->ops);
}

/* Whether the process that the table names is one of the dead. */
static bool is_of_the_dead(struct process_watch *process_watch, const struct table_process *process)
{
    struct process_watch_watch *watch = NULL;

    if (process->pid > 0)
        watch = RB_FIND(process_watch_watches, &process_watch->watches,
                        &(struct process_watch_watch){.process = *process});
    if (!watch || watch->event || !is_same(&watch->process, process))
        return false;
    watch->is_named = true;
    return true;
}

static void tell_session(struct batch *batch, const struct table_session *session)
{
    Gavel__CloseSession close = GAVEL__CLOSE_SESSION__INIT;
    Gavel__Op op = GAVEL__OP__INIT;

    if (!is_of_the_dead(batch->process_watch, &session->process))
        return;
    close.session = session->id;
    close.ending = GAVEL__ENDING__ENDING_DEAD;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    add(batch, &op);
}

static void tell_group(struct batch *batch, const struct table_group *group)
{
    const struct table_candidate *candidate;

    if (group->is_held && !group->session && is_of_the_dead(batch->process_watch, &group->process)) {
        Gavel__Release release;
        Gavel__Op op = GAVEL__OP__INIT;

        gavel__release__init(&release);
        release.group = group->name;
        release.epoch = group->epoch;
        release.is_dead = true;
        op.what_case = GAVEL__OP__WHAT_RELEASE;
        op.release = &release;
        add(batch, &op);
    }
    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        Gavel__Leave leave;
        Gavel__Op op = GAVEL__OP__INIT;

        if (candidate->session || !is_of_the_dead(batch->process_watch, &candidate->process))
            continue;
        gavel__leave__init(&leave);
        leave.group = group->name;
        leave.id = candidate->id;
        leave.instance = candidate->instance;
        op.what_case = GAVEL__OP__WHAT_LEAVE;
        op.leave = &leave;
        add(batch, &op);
    }
}

/* Tells of all that are dead what the table has of them, in one walk: many may die at once, and the table may
 * be large. */
static void tell_of_the_dead(struct process_watch *process_watch)
{
    struct batch batch = {.process_watch = process_watch};
    struct process_watch_watch *watch;

    RB_FOREACH(watch, process_watch_watches, &process_watch->watches) {
        watch->is_named = false;
    }
    for (struct table_session *session = table_session_first(process_watch->table); session;
         session = table_session_next(session)) {
        if (!session->is_ending)
            tell_session(&batch, session);
    }
    for (struct table_group *group = table_group_from(process_watch->table, ""); group;
         group = table_group_next(group))
        tell_group(&batch, group);
    hand_on(&batch);
}

static void lay_to_rest(struct process_watch_watch *watch)
{
    if (watch->event)
        event_free(watch->event);
    if (watch->pidfd >= 0)
        (void)close(watch->pidfd); /* a pidfd holds nothing that could be lost */
    watch->event = NULL;
    watch->pidfd = -1;
}

/* Soon: others may have died at the same moment. Without memory for the event the tick tells. */
static void tell_soon(struct process_watch *process_watch)
{
    if (process_watch->deaths)
        event_active(process_watch->deaths, EV_TIMEOUT, 0);
}

static void on_death(evutil_socket_t fd, short what, void *user)
{
    struct process_watch_watch *watch = user;
    struct process_watch *process_watch = watch->process_watch;

    (void)fd;
    (void)what;
    lay_to_rest(watch);
    process_watch->dead_count++;
    tell_soon(process_watch);
}

static void on_deaths(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    tell_of_the_dead(user); /* the tick looks whether it was heard */
}

static void forget(struct process_watch *process_watch, struct process_watch_watch *watch)
{
    if (!watch->event)
        process_watch->dead_count--;
    lay_to_rest(watch);
    (void)RB_REMOVE(process_watch_watches, &process_watch->watches, watch);
    process_watch->count--;
    free(watch);
}

/* Watches it if it lives. One that died while its request was on its way to the log is told of at once. */
static void look(struct process_watch *process_watch, struct process_watch_watch *watch)
{
    struct process_id id = {.pid = watch->process.pid,
                            .pid_ns = watch->process.pid_ns,
                            .start_ticks = watch->process.start_ticks};
    enum process_fate fate;

    memcpy(id.boot_id, watch->process.boot_id, sizeof id.boot_id);
    fate = process_look(&id, &process_watch->self, &watch->pidfd);
    if (fate == PROCESS_ALIVE)
        watch->event = event_new(process_watch->base, watch->pidfd, EV_READ, on_death, watch);
    if (fate == PROCESS_DEAD) {
        process_watch->dead_count++;
        tell_soon(process_watch);
    } else if (!watch->event || event_add(watch->event, NULL)) {
        process_watch->dead_count++; /* as forget() counts */
        if (watch->event)
            event_free(watch->event);
        watch->event = NULL;
        forget(process_watch, watch);
    }
}

void process_watch_meet(struct process_watch *process_watch, const struct table_process *process)
{
    struct process_watch_watch *watch;

    if (!is_ours(process_watch, process) || process_watch->count == PROCESS_WATCH_WATCHES_MAX)
        return;
    if (RB_FIND(process_watch_watches, &process_watch->watches,
                &(struct process_watch_watch){.process = *process}))
        return;
    watch = calloc(1, sizeof *watch);
    if (!watch)
        return; /* then only time tells */
    watch->process_watch = process_watch;
    watch->process = *process;
    watch->pidfd = -1;
    watch->is_named = true;
    (void)RB_INSERT(process_watch_watches, &process_watch->watches, watch);
    process_watch->count++;
    look(process_watch, watch);
}

static void meet_all(struct process_watch *process_watch)
{
    for (struct table_session *session = table_session_first(process_watch->table); session;
         session = table_session_next(session))
        process_watch_meet(process_watch, &session->process);
    for (struct table_group *group = table_group_from(process_watch->table, ""); group;
         group = table_group_next(group)) {
        const struct table_candidate *candidate;

        if (group->is_held && !group->session)
            process_watch_meet(process_watch, &group->process);
        TAILQ_FOREACH(candidate, &group->candidates, in_group)
            if (!candidate->session)
                process_watch_meet(process_watch, &candidate->process);
    }
}

void process_watch_tick(struct process_watch *process_watch)
{
    struct process_watch_watch *watch;
    struct process_watch_watch *next;

    if (process_watch->is_rescan_due) {
        process_watch->is_rescan_due = false;
        meet_all(process_watch);
    }
    if (process_watch->dead_count == 0)
        return;
    tell_of_the_dead(process_watch);
    RB_FOREACH_SAFE(watch, process_watch_watches, &process_watch->watches, next) {
        if (!watch->event && !watch->is_named)
            forget(process_watch, watch);
    }
}

void process_watch_init(struct process_watch *process_watch, struct event_base *base,
                        const struct table *table, process_watch_cb callback, void *user)
{
    *process_watch = (struct process_watch){
        .base = base, .table = table, .callback = callback, .user = user, .is_rescan_due = true};
    RB_INIT(&process_watch->watches);
    process_watch->deaths = event_new(base, -1, 0, on_deaths, process_watch);
    if (process_self(&process_watch->self) != GAVEL_OK)
        process_watch->self.pid = 0;
}

void process_watch_done(struct process_watch *process_watch)
{
    struct process_watch_watch *watch;

    while ((watch = RB_MIN(process_watch_watches, &process_watch->watches)))
        forget(process_watch, watch);
    if (process_watch->deaths)
        event_free(process_watch->deaths);
    process_watch->deaths = NULL;
}
