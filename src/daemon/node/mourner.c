/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/mourner.h"

#include "base/assert.h"
#include "os/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mourner_watch {
    RB_ENTRY(mourner_watch) by_process;
    struct mourner *mourner;
    struct table_process process;
    struct event *event; /* NULL: it is dead */
    int pidfd;           /* -1 likewise */
    bool is_named;       /* by the table, when the dead were last looked for */
};

static int compare(const struct mourner_watch *a, const struct mourner_watch *b)
{
    if (a->process.pid != b->process.pid)
        return a->process.pid < b->process.pid ? -1 : 1;
    if (a->process.start_ticks != b->process.start_ticks)
        return a->process.start_ticks < b->process.start_ticks ? -1 : 1;
    return 0;
}

RB_GENERATE_INTERNAL(mourner_watches, mourner_watch, by_process, compare, static __attribute__((unused)))

static bool is_same(const struct table_process *a, const struct table_process *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks && a->pid_ns == b->pid_ns &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

/* Whether life and death of it can be seen from here. */
static bool is_ours(const struct mourner *mourner, const struct table_process *process)
{
    return process->pid > 0 && mourner->self.pid > 0 && process->pid_ns == mourner->self.pid_ns &&
           strcmp(process->boot_id, mourner->self.boot_id) == 0;
}

/* Operations are gathered and handed on in portions of what one command takes. */
struct sermon {
    struct mourner *mourner;
    size_t count;
    union {
        Gavel__CloseSession close;
        Gavel__Release release;
        Gavel__Leave leave;
    } bodies[TABLE_OPS_MAX];
    Gavel__Op ops[TABLE_OPS_MAX];
    const Gavel__Op *list[TABLE_OPS_MAX];
};

static void hand_on(struct sermon *sermon)
{
    if (sermon->count > 0)
        sermon->mourner->callback(sermon->mourner->user, sermon->list, sermon->count);
    sermon->count = 0;
}

static size_t next_place(struct sermon *sermon)
{
    size_t at;

    if (sermon->count == TABLE_OPS_MAX)
        hand_on(sermon);
    at = sermon->count++;
    gavel__op__init(&sermon->ops[at]);
    sermon->list[at] = &sermon->ops[at];
    return at;
}

/* Whether the process that the table names is one of the dead. */
static bool is_of_the_dead(struct mourner *mourner, const struct table_process *process)
{
    struct mourner_watch *watch = NULL;

    if (process->pid > 0)
        watch = RB_FIND(mourner_watches, &mourner->watches, &(struct mourner_watch){.process = *process});
    if (!watch || watch->event || !is_same(&watch->process, process))
        return false;
    watch->is_named = true;
    return true;
}

static void mourn_session(struct sermon *sermon, const struct table_session *session)
{
    size_t at;
    Gavel__CloseSession *close;

    if (!is_of_the_dead(sermon->mourner, &session->process))
        return;
    at = next_place(sermon);
    close = &sermon->bodies[at].close;
    gavel__close_session__init(close);
    close->session = session->id;
    close->ending = GAVEL__ENDING__ENDING_DEAD;
    sermon->ops[at].what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    sermon->ops[at].close_session = close;
}

static void mourn_group(struct sermon *sermon, const struct table_group *group)
{
    const struct table_candidate *candidate;

    if (group->is_held && !group->session && is_of_the_dead(sermon->mourner, &group->process)) {
        size_t at = next_place(sermon);
        Gavel__Release *release = &sermon->bodies[at].release;

        gavel__release__init(release);
        release->group = group->name;
        release->epoch = group->epoch;
        release->is_dead = true;
        sermon->ops[at].what_case = GAVEL__OP__WHAT_RELEASE;
        sermon->ops[at].release = release;
    }
    TAILQ_FOREACH(candidate, &group->candidates, in_group)
    {
        size_t at;
        Gavel__Leave *leave;

        if (candidate->session || !is_of_the_dead(sermon->mourner, &candidate->process))
            continue;
        at = next_place(sermon);
        leave = &sermon->bodies[at].leave;
        gavel__leave__init(leave);
        leave->group = group->name;
        leave->id = candidate->id;
        leave->instance = candidate->instance;
        sermon->ops[at].what_case = GAVEL__OP__WHAT_LEAVE;
        sermon->ops[at].leave = leave;
    }
}

/* Tells of all that are dead what the table has of them, in one walk: many may die at once, and the table may
 * be large. False: there is no memory for it now. */
static bool mourn(struct mourner *mourner)
{
    struct sermon *sermon = malloc(sizeof *sermon);
    struct mourner_watch *watch;

    if (!sermon)
        return false;
    sermon->mourner = mourner;
    sermon->count = 0;
    RB_FOREACH(watch, mourner_watches, &mourner->watches) { watch->is_named = false; }
    for (struct table_session *session = table_session_first(mourner->table); session;
         session = table_session_next(session))
        mourn_session(sermon, session);
    for (struct table_group *group = table_group_from(mourner->table, ""); group;
         group = table_group_next(group))
        mourn_group(sermon, group);
    hand_on(sermon);
    free(sermon);
    return true;
}

static void lay_to_rest(struct mourner_watch *watch)
{
    if (watch->event)
        event_free(watch->event);
    if (watch->pidfd >= 0)
        (void)close(watch->pidfd); /* a pidfd holds nothing that could be lost */
    watch->event = NULL;
    watch->pidfd = -1;
}

static void on_death(evutil_socket_t fd, short what, void *user)
{
    struct mourner_watch *watch = user;
    struct mourner *mourner = watch->mourner;

    (void)fd;
    (void)what;
    lay_to_rest(watch);
    mourner->dead_count++;
    if (mourner->deaths) /* others may have died at the same moment; and without it the tick tells */
        event_active(mourner->deaths, EV_TIMEOUT, 0);
}

static void on_deaths(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    (void)mourn(user); /* the tick looks whether it was heard */
}

static void forget(struct mourner *mourner, struct mourner_watch *watch)
{
    if (!watch->event)
        mourner->dead_count--;
    lay_to_rest(watch);
    (void)RB_REMOVE(mourner_watches, &mourner->watches, watch);
    mourner->count--;
    free(watch);
}

/* Watches it if it lives; a dead one is told of by the next tick. */
static void look(struct mourner *mourner, struct mourner_watch *watch)
{
    struct process_id id = {.pid = watch->process.pid,
                            .pid_ns = watch->process.pid_ns,
                            .start_ticks = watch->process.start_ticks};
    enum process_fate fate;

    memcpy(id.boot_id, watch->process.boot_id, sizeof id.boot_id);
    fate = process_look(&id, &mourner->self, &watch->pidfd);
    if (fate == PROCESS_ALIVE)
        watch->event = event_new(mourner->base, watch->pidfd, EV_READ, on_death, watch);
    if (fate == PROCESS_DEAD)
        mourner->dead_count++;
    else if (!watch->event || event_add(watch->event, NULL)) {
        mourner->dead_count++; /* as forget() counts */
        if (watch->event)
            event_free(watch->event);
        watch->event = NULL;
        forget(mourner, watch);
    }
}

void mourner_meet(struct mourner *mourner, const struct table_process *process)
{
    struct mourner_watch *watch;

    if (!is_ours(mourner, process) || mourner->count == MOURNER_WATCHES_MAX)
        return;
    if (RB_FIND(mourner_watches, &mourner->watches, &(struct mourner_watch){.process = *process}))
        return;
    watch = calloc(1, sizeof *watch);
    if (!watch)
        return; /* then only time tells */
    watch->mourner = mourner;
    watch->process = *process;
    watch->pidfd = -1;
    (void)RB_INSERT(mourner_watches, &mourner->watches, watch);
    mourner->count++;
    look(mourner, watch);
}

static void meet_all(struct mourner *mourner)
{
    for (struct table_session *session = table_session_first(mourner->table); session;
         session = table_session_next(session))
        mourner_meet(mourner, &session->process);
    for (struct table_group *group = table_group_from(mourner->table, ""); group;
         group = table_group_next(group)) {
        const struct table_candidate *candidate;

        if (group->is_held && !group->session)
            mourner_meet(mourner, &group->process);
        TAILQ_FOREACH(candidate, &group->candidates, in_group)
        if (!candidate->session)
            mourner_meet(mourner, &candidate->process);
    }
}

void mourner_tick(struct mourner *mourner)
{
    struct mourner_watch *watch;
    struct mourner_watch *next;

    if (mourner->is_rescan_due) {
        mourner->is_rescan_due = false;
        meet_all(mourner);
    }
    if (mourner->dead_count == 0 || !mourn(mourner))
        return;
    RB_FOREACH_SAFE(watch, mourner_watches, &mourner->watches, next)
    {
        if (!watch->event && !watch->is_named)
            forget(mourner, watch);
    }
}

void mourner_init(struct mourner *mourner, struct event_base *base, const struct table *table,
                  mourner_cb callback, void *user)
{
    *mourner = (struct mourner){
        .base = base, .table = table, .callback = callback, .user = user, .is_rescan_due = true};
    RB_INIT(&mourner->watches);
    mourner->deaths = event_new(base, -1, 0, on_deaths, mourner);
    if (process_self(&mourner->self) != GAVEL_OK)
        mourner->self.pid = 0;
}

void mourner_done(struct mourner *mourner)
{
    struct mourner_watch *watch;

    while ((watch = RB_MIN(mourner_watches, &mourner->watches)))
        forget(mourner, watch);
    if (mourner->deaths)
        event_free(mourner->deaths);
    mourner->deaths = NULL;
}
