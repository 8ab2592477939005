/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/loop/worker.h"

#include "lib/candidate.h"
#include "lib/handle.h"
#include "lib/loop/loop.h"
#include "os/clock.h"
#include "os/thread.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Large enough for every group of a busy process, small enough that one batch stays short. */
#define BATCH_MAX 512

/* There a request costs less than a round trip, and thousands may come at one instant. */
#define SESSION_BATCH_MAX 1024

/* How long the thread may take to come back from the store after its last time-out. */
#define STOP_GRACE NS_PER_S

struct batch {
    struct store_request requests[SESSION_BATCH_MAX];
    struct store_reply replies[SESSION_BATCH_MAX];
};

_Static_assert(BATCH_MAX <= SESSION_BATCH_MAX, "a batch has room for both");

void job_queue_add(struct job_queue *queue, struct job *job)
{
    job->next = NULL;
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
}

void job_queue_move(struct job_queue *from, struct job_queue *to)
{
    if (!from->first)
        return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    *from = (struct job_queue){0};
}

void job_free(struct job *job)
{
    if (!job)
        return;
    store_reply_done(job->reply);
    free(job->reply);
    free(job);
}

/* How much of a request says something, without what it points to. */
static size_t used_by(const struct store_request *request)
{
    switch (request->op) {
    case STORE_READ:
    case STORE_GROUPS:
        return offsetof(struct store_request, record);
    case STORE_HEARTBEAT:
    case STORE_LEAVE:
    case STORE_CANDIDATES:
        return offsetof(struct store_request, registration) + sizeof request->registration;
    default:
        return sizeof *request;
    }
}

/* NULL without memory. */
static struct job *job_new(const struct store_request *request)
{
    size_t used = used_by(request);
    size_t size = strlen(request->group) + 1;
    struct job *job = calloc(1, sizeof *job + used + size);

    if (!job)
        return NULL;
    job->give_up_at = request->give_up_at;
    job->op = request->op;
    job->used = used;
    memcpy(job->bytes, request, used);
    memcpy(job->bytes + used, request->group, size);
    return job;
}

static void fill_request(const struct job *job, struct store_request *ret_request)
{
    memset(ret_request, 0, sizeof *ret_request);
    memcpy(ret_request, job->bytes, job->used);
    ret_request->group = job->bytes + job->used;
}

/* Takes the oldest jobs out of the queue, as many as fit in a batch. Mutex held. */
static struct job *take(struct worker *worker, size_t most)
{
    struct job *first = worker->queue.first;
    struct job *last = first;

    for (size_t n = 1; last && last->next && n < most; n++)
        last = last->next;
    if (!last)
        return NULL;
    worker->queue.first = last->next;
    if (!worker->queue.first)
        worker->queue.last = NULL;
    last->next = NULL;
    return first;
}

/* Hands the answer over; what it owns goes with it. */
static void answer(struct job *job, struct store_reply *reply)
{
    job->reply = malloc(sizeof *job->reply);
    if (job->reply)
        *job->reply = *reply;
    else
        store_reply_done(reply);
}

static void answer_late(struct job *job)
{
    struct store_reply reply = {.status = GAVEL_ERR_TIMEOUT};

    (void)snprintf(
        reply.message, sizeof reply.message,
        "the %s of group \"%.100s\" waited too long for its turn; the store is slow or the machine overloaded",
        store_op_name(job->op), job->bytes + job->used);
    answer(job, &reply);
}

/* What a session gives up is always said: nobody else would, and the store says it until it is answered. */
static void grant_time(struct job *job, gavel_ns now)
{
    struct store_request request;

    if (now <= job->give_up_at || (job->op != STORE_RELEASE && job->op != STORE_LEAVE))
        return;
    fill_request(job, &request);
    if (request.session == 0)
        return;
    request.give_up_at = now + (job->give_up_at - job->queued_at);
    job->give_up_at = request.give_up_at;
    memcpy(job->bytes, &request, job->used);
}

/* Carries out one batch. A request whose time is over already is answered without troubling the store. */
static void carry_out(struct store *store, struct batch *batch, struct job *jobs)
{
    gavel_ns now = clock_now();
    size_t count = 0;

    for (struct job *job = jobs; job; job = job->next) {
        grant_time(job, now);
        if (now <= job->give_up_at)
            fill_request(job, &batch->requests[count++]);
    }
    if (count > 0)
        store_run(store, batch->requests, batch->replies, count);
    count = 0;
    for (struct job *job = jobs; job; job = job->next) {
        if (now <= job->give_up_at)
            answer(job, &batch->replies[count++]);
        else
            answer_late(job);
    }
}

static void free_jobs(struct job *jobs)
{
    while (jobs) {
        struct job *next = jobs->next;

        job_free(jobs);
        jobs = next;
    }
}

/* One batch after the other, until it is told to stop. Mutex held. */
static void serve(struct gavel *gavel)
{
    size_t most = gavel->capabilities.has_sessions ? SESSION_BATCH_MAX : BATCH_MAX;
    struct worker *worker = &gavel->worker;

    while (!worker->is_stopping) {
        struct job *jobs = take(worker, most);

        if (!jobs) {
            pthread_cond_wait(&worker->wanted, &gavel->mutex);
            continue;
        }
        worker->running = jobs;
        pthread_mutex_unlock(&gavel->mutex);
        carry_out(gavel->store, worker->batch, jobs);
        pthread_mutex_lock(&gavel->mutex);
        worker->running = NULL;
        while (jobs) {
            struct job *next = jobs->next;

            job_queue_add(&gavel->finished, jobs);
            jobs = next;
        }
        if (!worker->is_stopping)
            loop_wake(gavel);
    }
}

static void free_handle(struct gavel *gavel);

static void *run(void *argument)
{
    struct gavel *gavel = argument;
    struct worker *worker = &gavel->worker;
    bool is_left_behind;

    pthread_mutex_lock(&gavel->mutex);
    serve(gavel);
    is_left_behind = worker->is_left_behind;
    worker->has_ended = true;
    pthread_cond_broadcast(&worker->ended);
    pthread_mutex_unlock(&gavel->mutex);
    if (is_left_behind)
        free_handle(gavel);
    return NULL;
}

enum gavel_status worker_start(struct gavel *gavel)
{
    struct worker *worker = &gavel->worker;

    worker->batch = calloc(1, sizeof *worker->batch);
    if (!worker->batch)
        return GAVEL_ERR_NO_MEMORY;
    pthread_cond_init(&worker->wanted, NULL);
    condition_init(&worker->ended);
    worker->has_thread = thread_start(&worker->thread, NULL, "gavel-store", run, gavel) == 0;
    return worker->has_thread ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

/*
 * Until when a store that works must have answered: every call under way has
 * a time-out, and a moment more for a loaded machine. Mutex held.
 */
static gavel_ns patience(const struct worker *worker)
{
    gavel_ns until = clock_now();

    for (const struct job *job = worker->running; job; job = job->next)
        until = ns_max(until, job->give_up_at);
    return until + STOP_GRACE;
}

void worker_stop(struct gavel *gavel)
{
    struct worker *worker = &gavel->worker;
    gavel_ns until;

    if (!worker->has_thread)
        return;
    pthread_mutex_lock(&gavel->mutex);
    worker->is_stopping = true;
    pthread_cond_signal(&worker->wanted);
    until = patience(worker);
    while (!worker->has_ended && condition_wait(&worker->ended, &gavel->mutex, until))
        continue;
    pthread_mutex_unlock(&gavel->mutex);
}

static void free_handle(struct gavel *gavel)
{
    struct worker *worker = &gavel->worker;

    free_jobs(worker->queue.first);
    free_jobs(gavel->finished.first);
    free_jobs(gavel->answers.first);
    if (worker->batch) {
        pthread_cond_destroy(&worker->wanted);
        pthread_cond_destroy(&worker->ended);
        free(worker->batch);
    }
    store_close(gavel->store);
    if (!gavel->is_guarded) /* else it is the caller's */
        on_death_free(gavel->on_death);
    pthread_cond_destroy(&gavel->changed);
    pthread_mutex_destroy(&gavel->mutex);
    free(gavel);
}

void worker_free_handle(struct gavel *gavel)
{
    struct worker *worker = &gavel->worker;
    pthread_t thread = worker->thread;

    if (worker->has_thread) {
        pthread_mutex_lock(&gavel->mutex);
        worker->is_left_behind = !worker->has_ended;
        if (worker->is_left_behind) {
            (void)pthread_detach(thread); /* ours and not joined, so it cannot fail */
            pthread_mutex_unlock(&gavel->mutex);
            return;
        }
        pthread_mutex_unlock(&gavel->mutex);
        pthread_join(thread, NULL);
    }
    free_handle(gavel);
}

static void enqueue(struct gavel *gavel, struct job *job)
{
    gavel->jobs++;
    job->queued_at = clock_now();
    pthread_mutex_lock(&gavel->mutex);
    job_queue_add(&gavel->worker.queue, job);
    pthread_mutex_unlock(&gavel->mutex);
}

void worker_submit(struct gavel_candidate *candidate, uint64_t call, const struct store_request *request)
{
    struct job *job = job_new(request);

    if (!job)
        return;
    candidate->jobs++;
    job->candidate = candidate;
    job->call = call;
    enqueue(candidate->gavel, job);
}

void worker_leave_for(struct gavel *gavel, const struct job *beat)
{
    bool has_joined = beat->op == STORE_HEARTBEAT && beat->reply && beat->reply->status == GAVEL_OK;
    struct store_request request;
    struct job *job;

    if (!has_joined || beat->reply->session == 0)
        return;
    fill_request(beat, &request);
    if (request.session != 0)
        return;
    request.op = STORE_LEAVE;
    request.session = beat->reply->session;
    request.give_up_at = clock_now() + (beat->give_up_at - beat->queued_at);
    job = job_new(&request);
    if (job)
        enqueue(gavel, job);
}

void worker_flush(struct gavel *gavel)
{
    if (!gavel->worker.has_thread)
        return;
    pthread_mutex_lock(&gavel->mutex);
    if (gavel->worker.queue.first && !gavel->worker.running)
        pthread_cond_signal(&gavel->worker.wanted);
    pthread_mutex_unlock(&gavel->mutex);
}

static void forget_in(struct job *jobs, const struct gavel_candidate *candidate)
{
    for (struct job *job = jobs; job; job = job->next)
        if (job->candidate == candidate)
            job->candidate = NULL;
}

void worker_forget(struct gavel_candidate *candidate)
{
    struct gavel *gavel = candidate->gavel;

    if (candidate->jobs == 0)
        return;
    candidate->jobs = 0;
    pthread_mutex_lock(&gavel->mutex);
    forget_in(gavel->worker.queue.first, candidate);
    forget_in(gavel->worker.running, candidate);
    forget_in(gavel->finished.first, candidate);
    forget_in(gavel->answers.first, candidate);
    pthread_mutex_unlock(&gavel->mutex);
}
