/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/watch.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_same_process(const struct process_id *a, const struct process_id *b)
{
    return a->pid == b->pid && a->pid_ns == b->pid_ns && a->start_ticks == b->start_ticks &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

static void ready(struct gavel *gavel, struct source *source)
{
    struct watch *watch = (struct watch *)source;

    (void)gavel;
    /* Nobody new may join it: each report takes its candidate off the list, so the list runs empty. */
    watch->is_buried = true;
    while (watch->waiting) {
        struct gavel_candidate *candidate = watch->waiting;

        watch_clear(candidate);
        candidate->holder_died = true;
        lib_candidate_settle(candidate);
    }
}

static struct watch *find(struct gavel *gavel, const struct process_id *process)
{
    for (struct watch *watch = gavel->watches.first; watch; watch = watch->next)
        if (!watch->is_buried && is_same_process(&watch->process, process))
            return watch;
    return NULL;
}

/* A watch of a live process, or NULL; then *ret_fate says what is known. */
static struct watch *open_watch(struct gavel *gavel, const struct process_id *process,
                                enum process_fate *ret_fate)
{
    struct watch *watch = calloc(1, sizeof *watch);

    *ret_fate = PROCESS_UNSEEN;
    if (!watch)
        return NULL;
    watch->source = (struct source){.fd = -1, .ready = ready};
    watch->process = *process;
    *ret_fate = process_look(process, &gavel->self, &watch->source.fd);
    if (*ret_fate != PROCESS_ALIVE) {
        free(watch);
        return NULL;
    }
    if (loop_add(gavel, &watch->source) != GAVEL_OK) {
        (void)close(watch->source.fd); /* a pidfd holds no data */
        free(watch);
        *ret_fate = PROCESS_UNSEEN; /* the lease decides then */
        return NULL;
    }
    watch->next = gavel->watches.first;
    gavel->watches.first = watch;
    return watch;
}

void watch_set(struct gavel_candidate *candidate, const struct process_id *process, struct nonce nonce)
{
    struct gavel *gavel = candidate->gavel;
    enum process_fate fate = PROCESS_ALIVE;
    struct watch *watch;

    watch_clear(candidate);
    candidate->watched_nonce = nonce;
    watch = find(gavel, process);
    if (!watch)
        watch = open_watch(gavel, process, &fate);
    if (fate == PROCESS_DEAD)
        candidate->holder_died = true;
    if (!watch)
        return;
    candidate->watch = watch;
    candidate->next_waiting = watch->waiting;
    candidate->previous_waiting = NULL;
    if (watch->waiting)
        watch->waiting->previous_waiting = candidate;
    watch->waiting = candidate;
}

void watch_clear(struct gavel_candidate *candidate)
{
    struct watch *watch = candidate->watch;

    candidate->holder_died = false;
    if (!watch)
        return;
    if (candidate->previous_waiting)
        candidate->previous_waiting->next_waiting = candidate->next_waiting;
    else
        watch->waiting = candidate->next_waiting;
    if (candidate->next_waiting)
        candidate->next_waiting->previous_waiting = candidate->previous_waiting;
    candidate->watch = NULL;
    if (!watch->waiting)
        watch->is_buried = true;
}

void watches_bury(struct gavel *gavel)
{
    struct watch **link = &gavel->watches.first;

    while (*link) {
        struct watch *watch = *link;

        if (!watch->is_buried) {
            link = &watch->next;
            continue;
        }
        *link = watch->next;
        loop_remove(gavel, &watch->source);
        (void)close(watch->source.fd); /* a pidfd holds no data */
        free(watch);
    }
}
