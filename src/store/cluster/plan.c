/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In which step of a batch each request is carried out. Requests on different
 * groups may go in any order, and ten thousand groups that speak at the same
 * time make one batch; so it is cut into steps, writes in the even ones and
 * reads in the odd ones, each request in the first step that is not before the
 * one it must follow:
 *
 *     claim a · read b · heartbeat c · candidates c · read a · release a
 *        0        1          0             1            1         2
 */
#include "base/hash.h"
#include "os/clock.h"
#include "store/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

/* What was planned before. */
struct planner {
    const struct store_request *requests;
    struct gavel_plan *plans;
    size_t *buckets; /* the newest request in each, plus 1; 0: none */
    size_t mask;
    size_t highest; /* step of all so far */
    size_t listed;  /* step of the newest listing of groups … */
    bool has_list;  /* … if there is one: it concerns all groups */
    bool is_empty;
};

/* The newest request on the same group; NULL: none. */
static const struct gavel_plan *find_before(const struct planner *planner, size_t index)
{
    const struct gavel_plan *plans = planner->plans;
    size_t at = planner->buckets[plans[index].hash & planner->mask];

    while (at != 0 && (plans[at - 1].hash != plans[index].hash ||
                       strcmp(planner->requests[at - 1].group, planner->requests[index].group) != 0))
        at = plans[at - 1].before;
    return at != 0 ? &plans[at - 1] : NULL;
}

/* The lowest step that is not before any that it must follow. */
static size_t not_before(const struct planner *planner, size_t index)
{
    const struct gavel_plan *before;
    size_t step = 0;

    if (planner->requests[index].op == STORE_GROUPS)
        return planner->highest;
    before = find_before(planner, index);
    if (before)
        step = before->step;
    return planner->has_list && planner->listed > step ? planner->listed : step;
}

static void add(struct planner *planner, size_t index)
{
    const struct store_request *request = &planner->requests[index];
    struct gavel_plan *plan = &planner->plans[index];
    bool is_list = request->op == STORE_GROUPS;
    size_t *bucket;

    plan->hash = hash_text(HASH_BEGIN, is_list ? "" : request->group);
    plan->step = not_before(planner, index);
    if (plan->step % 2 != (request_writes(request) ? 0 : 1))
        plan->step++;
    if (plan->step > planner->highest)
        planner->highest = plan->step;
    planner->is_empty = false;
    if (is_list) {
        planner->has_list = true;
        planner->listed = plan->step;
        return;
    }
    bucket = &planner->buckets[plan->hash & planner->mask];
    plan->before = *bucket;
    *bucket = index + 1;
}

/* Where the caller's session is, the death of a process is something to tell; the rules of all stores say
 * that it is not. */
static bool refuse(const struct store_request *request, gavel_ns now, bool has_session,
                   struct store_reply *reply)
{
    struct store_request read = {
        .op = STORE_READ, .group = request->group, .give_up_at = request->give_up_at};

    if (has_session && (request->op == STORE_CLAIM || request->op == STORE_RENEW)) {
        reply_fail(
            reply, GAVEL_ERR_STORE_UNSUPPORTED,
            "mandates are granted to the session of this store object, so nobody claims or renews them");
        return true;
    }
    return request_refuse(has_session && request->op == STORE_DIED ? &read : request, now, reply);
}

static size_t *new_buckets(size_t count, size_t *ret_mask)
{
    size_t size = 1;

    while (size < count)
        size *= 2;
    *ret_mask = size - 1;
    return calloc(size, sizeof(size_t));
}

size_t gavel_plan(const struct store_request *requests, struct store_reply *replies, struct gavel_plan *plans,
                  size_t count, bool has_session)
{
    struct planner planner = {.requests = requests, .plans = plans, .is_empty = true};
    gavel_ns now = clock_now();

    planner.buckets = new_buckets(count, &planner.mask);
    if (!planner.buckets) {
        for (size_t i = 0; i < count; i++)
            reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking the cluster");
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        plans[i] = (struct gavel_plan){.is_answered = refuse(&requests[i], now, has_session, &replies[i])};
        if (!plans[i].is_answered)
            add(&planner, i);
    }
    free(planner.buckets);
    return planner.is_empty ? 0 : planner.highest + 1;
}
