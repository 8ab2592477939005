/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch is cut into steps: as many requests as do not depend on each other
 * go side by side, each on its own way of questions and answers. What stands
 * behind another of the same group waits for the next step.
 */
#include "store/etcd/etcd.h"

#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_MAX 32 /* requests at once: there are as many connections */

struct nonce etcd_new_nonce(struct etcd_store *etcd)
{
    return (struct nonce){prng_next(&etcd->prng), prng_next(&etcd->prng)};
}

bool etcd_job_fail(struct etcd_job *job)
{
    reply_fail(job->reply, job->call->status, "%s", job->call->message);
    return false;
}

void etcd_job_doubt(struct etcd_job *job)
{
    job->doubt = job->call->status;
    (void)snprintf(job->doubt_message, sizeof job->doubt_message, "%s", job->call->message);
}

bool etcd_job_fail_doubt(struct etcd_job *job)
{
    reply_fail(job->reply, job->doubt, "%s", job->doubt_message);
    return false;
}

bool etcd_job_take_page(struct etcd_job *job, bool (*take)(struct etcd_job *job, const struct etcd_kv *kv),
                        bool *ret_is_last)
{
    const json_t *kvs = json_object_get(job->call->answer, "kvs");
    char before[ETCD_KEY_SIZE];
    const json_t *one;
    size_t i;

    if (job->call->status != GAVEL_OK)
        return etcd_job_fail(job);
    name_copy(before, sizeof before, job->after);
    json_array_foreach(kvs, i, one) {
        struct etcd_kv kv;
        bool is_taken = true;

        if (etcd_kv_read(one, &kv) == GAVEL_OK) {
            name_copy(job->after, sizeof job->after, kv.key);
            is_taken = take(job, &kv);
        }
        etcd_kv_done(&kv);
        if (!is_taken)
            return false;
    }
    /* Keys of somebody else that are longer than ours must not make it go round in circles. */
    *ret_is_last =
        !json_is_true(json_object_get(job->call->answer, "more")) || strcmp(job->after, before) <= 0;
    return true;
}

static bool is_about_candidates(const struct store_request *request)
{
    return request->op == STORE_HEARTBEAT || request->op == STORE_LEAVE || request->op == STORE_CANDIDATES;
}

static bool depends(const struct store_request *later, const struct store_request *earlier)
{
    if (later->op == STORE_GROUPS || earlier->op == STORE_GROUPS)
        return true;
    if (is_about_candidates(later) != is_about_candidates(earlier) ||
        strcmp(later->group, earlier->group) != 0)
        return false;
    return !is_about_candidates(later) || later->op == STORE_CANDIDATES || earlier->op == STORE_CANDIDATES ||
           strcmp(later->registration.id, earlier->registration.id) == 0;
}

/* A batch that is being cut. */
struct batch {
    struct etcd_store *etcd;
    const struct store_request *requests;
    struct store_reply *replies;
    size_t count;
    size_t begun; /* requests that a step has had */
};

struct step {
    struct etcd_job *jobs;
    struct etcd_call *calls; /* one more, to keep the lease alive */
    size_t capacity;
    size_t count;
    bool has_heartbeat;
};

/* Whether a request can go with those that are in the step already. */
static bool fits(const struct batch *batch, const struct step *step, const struct store_request *request)
{
    if (step->count == step->capacity)
        return false;
    /* The first gets the lease, for all. */
    if (request->op == STORE_HEARTBEAT && step->has_heartbeat && batch->etcd->lease == 0)
        return false;
    for (size_t i = 0; i < step->count; i++)
        if (depends(request, step->jobs[i].request))
            return false;
    return true;
}

static void fill(struct batch *batch, struct step *step)
{
    step->count = 0;
    step->has_heartbeat = false;
    for (; batch->begun < batch->count; batch->begun++) {
        const struct store_request *request = &batch->requests[batch->begun];
        struct store_reply *reply = &batch->replies[batch->begun];

        if (request_refuse(request, clock_now(), reply))
            continue;
        if (!fits(batch, step, request))
            return;
        step->jobs[step->count] = (struct etcd_job){
            .etcd = batch->etcd, .call = &step->calls[step->count], .request = request, .reply = reply};
        step->has_heartbeat |= request->op == STORE_HEARTBEAT;
        step->count++;
    }
}

static bool on_answer(struct etcd_call *call)
{
    struct etcd_job *job = call->user;

    return job->next(job);
}

static void begin(struct etcd_job *job)
{
    *job->call =
        (struct etcd_call){.give_up_at = job->request->give_up_at, .on_answer = on_answer, .user = job};
    switch (job->request->op) {
    case STORE_HEARTBEAT:
        etcd_begin_heartbeat(job);
        break;
    case STORE_LEAVE:
        etcd_begin_leave(job);
        break;
    case STORE_CANDIDATES:
        etcd_begin_candidates(job);
        break;
    case STORE_GROUPS:
        etcd_begin_groups(job);
        break;
    default:
        etcd_begin_mandate(job);
        break;
    }
}

static void run_step(struct etcd_store *etcd, struct step *step)
{
    size_t call_count = step->count;

    for (size_t i = 0; i < step->count; i++)
        begin(&step->jobs[i]);
    if (step->has_heartbeat && etcd_lease_is_due(etcd))
        etcd_begin_keep_alive(etcd, &step->calls[call_count++], step->jobs[0].request->give_up_at);
    etcd_calls_run(etcd, etcd->http, step->calls, call_count);
    for (size_t i = 0; i < step->count; i++)
        free(step->jobs[i].value);
}

/* False, and all replies say why, if it cannot begin. */
static bool may_begin(struct etcd_store *etcd, const struct step *step, struct store_reply *replies,
                      size_t count)
{
    if (!push_is_forked(&etcd->push) && step->jobs && step->calls)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (push_is_forked(&etcd->push))
            reply_fail(&replies[i], GAVEL_ERR_STATE,
                       "%s was opened before this process was forked; open it again in the child",
                       etcd->where);
        else
            reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking %s", etcd->where);
    }
    return false;
}

void etcd_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
              size_t count)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct batch batch = {.etcd = etcd, .requests = requests, .replies = replies, .count = count};
    struct step step = {.capacity = count < STEP_MAX ? count : STEP_MAX};

    if (count == 0)
        return;
    step.jobs = calloc(step.capacity, sizeof *step.jobs);
    step.calls = calloc(step.capacity + 1, sizeof *step.calls);
    if (may_begin(etcd, &step, replies, count)) {
        while (batch.begun < count) {
            fill(&batch, &step);
            run_step(etcd, &step);
        }
    }
    free(step.jobs);
    free(step.calls);
}
