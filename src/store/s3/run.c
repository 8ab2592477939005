/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carrying out a batch. What concerns the same object, or a list and what it
 * lists, goes in order; all else goes side by side. So the batch is cut into
 * steps, each request in the first one after those that it must follow:
 *
 *     renew a · heartbeat a · candidates a · read b · claim a · heartbeat b
 *        0           0              1           0         1          0
 *
 * The requests of a step are taken by as many channels as there may be
 * connections, mandates first: a renewal never waits for a list.
 */
#include "store/s3/s3.h"

#include "base/hash.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHANNELS 64
#define CHORES_PATIENCE (1 * NS_PER_S)
#define FORGET_EVERY (60 * NS_PER_S)
#define FORGET_AFTER (3600 * NS_PER_S) /* nobody lists a group that seldom and minds */

struct plan {
    uint64_t hash; /* of the group: most pairs differ in it */
    size_t step;
    bool is_answered;
    bool is_taken;
    bool has_created; /* a group */
    struct s3_listing *listing;
};

struct batch {
    struct s3_store *s3;
    const struct store_request *requests;
    struct store_reply *replies;
    struct plan *plans;
    size_t count;
    size_t step;
    size_t next; /* to be taken in this step */
    bool is_second_pass;
};

struct channel {
    struct batch *batch;
    struct http_call *call;
    size_t index; /* of the request */
    struct s3_edit edit;
    struct s3_listing *listing; /* NULL: it is an edit */
    bool is_busy;
};

static bool is_of_mandate(enum store_op op)
{
    return op != STORE_HEARTBEAT && op != STORE_LEAVE && op != STORE_CANDIDATES && op != STORE_GROUPS;
}

static bool is_list(enum store_op op) { return op == STORE_CANDIDATES || op == STORE_GROUPS; }

/* Whether the later of the two must wait for the other. */
static bool is_in_the_way(const struct store_request *a, const struct store_request *b)
{
    if (a->op == STORE_GROUPS || b->op == STORE_GROUPS)
        return is_of_mandate(a->op) || is_of_mandate(b->op);
    if (is_of_mandate(a->op) != is_of_mandate(b->op) || strcmp(a->group, b->group) != 0)
        return false;
    if (is_of_mandate(a->op))
        return true;
    if (is_list(a->op) || is_list(b->op))
        return is_list(a->op) != is_list(b->op);
    return strcmp(a->registration.id, b->registration.id) == 0;
}

static uint64_t hash_of(const struct store_request *request)
{
    return hash_text(HASH_BEGIN, request->op == STORE_GROUPS ? "" : request->group);
}

/* Returns the number of steps. */
static size_t plan(struct batch *batch)
{
    const struct store_request *requests = batch->requests;
    struct plan *plans = batch->plans;
    gavel_ns now = clock_now();
    size_t steps = 0;

    for (size_t i = 0; i < batch->count; i++) {
        plans[i].is_answered = request_refuse(&requests[i], now, &batch->replies[i]);
        if (plans[i].is_answered)
            continue;
        plans[i].hash = hash_of(&requests[i]);
        for (size_t k = 0; k < i; k++)
            if (!plans[k].is_answered && plans[k].step >= plans[i].step &&
                (plans[k].hash == plans[i].hash || requests[i].op == STORE_GROUPS ||
                 requests[k].op == STORE_GROUPS) &&
                is_in_the_way(&requests[k], &requests[i]))
                plans[i].step = plans[k].step + 1;
        if (plans[i].step >= steps)
            steps = plans[i].step + 1;
    }
    return steps;
}

/* The next request of the step that nobody has taken; batch->count: none is left. */
static size_t take(struct batch *batch)
{
    for (;;) {
        for (; batch->next < batch->count; batch->next++) {
            const struct plan *plan = &batch->plans[batch->next];

            if (!plan->is_answered && !plan->is_taken && plan->step == batch->step &&
                (batch->is_second_pass || is_of_mandate(batch->requests[batch->next].op)))
                return batch->next++;
        }
        if (batch->is_second_pass)
            return batch->count;
        batch->is_second_pass = true;
        batch->next = 0;
    }
}

static bool start_list(struct channel *channel)
{
    struct batch *batch = channel->batch;

    channel->listing = calloc(1, sizeof *channel->listing);
    if (!channel->listing) {
        reply_fail(&batch->replies[channel->index], GAVEL_ERR_NO_MEMORY, "out of memory while listing");
        return false;
    }
    batch->plans[channel->index].listing = channel->listing;
    channel->listing->s3 = batch->s3;
    channel->listing->request = &batch->requests[channel->index];
    channel->listing->reply = &batch->replies[channel->index];
    channel->listing->object.call = channel->call;
    return s3_listing_start(channel->listing);
}

static bool start_edit(struct channel *channel)
{
    struct batch *batch = channel->batch;
    const struct store_request *request = &batch->requests[channel->index];
    bool is_worker = !is_of_mandate(request->op);

    channel->edit = (struct s3_edit){
        .object.call = channel->call,
        .s3 = batch->s3,
        .kind = is_worker ? &s3_kind_worker : &s3_kind_mandate,
        .request = request,
        .reply = &batch->replies[channel->index],
        .key = is_worker ? s3_key_worker(&batch->s3->target, request->group, request->registration.id)
                         : s3_key_state(&batch->s3->target, request->group),
    };
    if (channel->edit.key)
        return s3_edit_start(&channel->edit);
    reply_fail(channel->edit.reply, GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
    return false;
}

/* What the channel has in hand is over. The pages of a list are kept: what they list is read later. */
static void put_down(struct channel *channel)
{
    if (!channel->is_busy)
        return;
    if (channel->listing) {
        s3_object_done(&channel->listing->object);
        channel->listing->object.call = NULL;
        if (!channel->listing->is_over)
            reply_fail(channel->listing->reply, GAVEL_ERR_NO_MEMORY, "out of memory while listing");
    } else {
        s3_edit_done(&channel->edit);
        channel->batch->plans[channel->index].has_created = channel->edit.has_created;
    }
    channel->listing = NULL;
    channel->is_busy = false;
}

/* Takes requests until one has something to ask; false: none is left. */
static bool channel_next(struct channel *channel)
{
    struct batch *batch = channel->batch;

    while ((channel->index = take(batch)) < batch->count) {
        batch->plans[channel->index].is_taken = true;
        channel->is_busy = true;
        if (is_list(batch->requests[channel->index].op) ? start_list(channel) : start_edit(channel))
            return true;
        put_down(channel);
    }
    return false;
}

static bool channel_go_on(struct http_call *call)
{
    struct channel *channel = call->user;

    if (channel->listing ? s3_listing_go_on(channel->listing) : s3_edit_go_on(&channel->edit))
        return true;
    put_down(channel);
    return channel_next(channel);
}

static bool is_list_of_step(const struct batch *batch, size_t index)
{
    return batch->plans[index].listing && batch->plans[index].step == batch->step &&
           batch->replies[index].status == GAVEL_OK;
}

static void finish_lists(struct batch *batch)
{
    struct s3_listing **listings;
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++)
        count += is_list_of_step(batch, i);
    if (count == 0)
        return;
    listings = calloc(count, sizeof(struct s3_listing *));
    count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (!is_list_of_step(batch, i))
            continue;
        if (listings)
            listings[count++] = batch->plans[i].listing;
        else
            reply_fail(&batch->replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while listing");
    }
    if (listings)
        s3_listings_finish(batch->s3, listings, count);
    free(listings);
}

static void run_step(struct batch *batch, struct channel *channels, struct http_call *calls)
{
    size_t used = 0;

    batch->next = 0;
    batch->is_second_pass = false;
    for (; used < CHANNELS && used < batch->count; used++) {
        calls[used] = (struct http_call){.user = &channels[used], .on_done = channel_go_on};
        channels[used] = (struct channel){.batch = batch, .call = &calls[used]};
        if (!channel_next(&channels[used]))
            break;
    }
    http_run(batch->s3->http, calls, used);
    for (size_t i = 0; i < used; i++)
        put_down(&channels[i]);
    for (size_t i; (i = take(batch)) < batch->count;) { /* only if http_run() had no memory to begin */
        batch->plans[i].is_taken = true;
        reply_fail(&batch->replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
    }
    finish_lists(batch);
}

/* What is worth doing once the batch is answered. */
static void tidy_up(struct batch *batch)
{
    struct s3_store *s3 = batch->s3;
    struct s3_chores chores = {.s3 = s3};
    gavel_ns now = clock_now();
    gavel_ns until = now;

    for (size_t i = 0; i < batch->count; i++) {
        if (batch->plans[i].is_answered || batch->replies[i].status != GAVEL_OK)
            continue;
        until = ns_max(until, batch->requests[i].give_up_at);
        if (batch->requests[i].op == STORE_HEARTBEAT)
            s3_chores_prune(&chores, &batch->requests[i]);
        if (batch->plans[i].has_created && batch->requests[i].op == STORE_CLAIM)
            s3_chores_describe(&chores, batch->requests[i].group);
    }
    s3_chores_run(&chores, ns_min(until, now + CHORES_PATIENCE));
    s3_chores_done(&chores);
    if (now - s3->forgot_at > FORGET_EVERY) {
        s3->forgot_at = now;
        sightings_prune(&s3->sightings, now - FORGET_AFTER);
    }
    s3_cache_trim(&s3->cache);
}

void s3_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
            size_t count)
{
    struct s3_store *s3 = (struct s3_store *)store;
    struct batch batch = {.s3 = s3, .requests = requests, .replies = replies, .count = count};
    struct channel *channels = calloc(count < CHANNELS ? count : CHANNELS, sizeof *channels);
    struct http_call *calls = calloc(count < CHANNELS ? count : CHANNELS, sizeof *calls);
    size_t steps;

    batch.plans = calloc(count, sizeof *batch.plans);
    if (s3->pid != getpid() || !channels || !calls || !batch.plans) {
        for (size_t i = 0; i < count; i++)
            if (s3->pid != getpid())
                reply_fail(&replies[i], GAVEL_ERR_STATE,
                           "%s was opened before this process was forked; open it again in the child",
                           s3->target.where);
            else
                reply_fail(&replies[i], GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
    } else {
        steps = plan(&batch);
        for (batch.step = 0; batch.step < steps; batch.step++)
            run_step(&batch, channels, calls);
        tidy_up(&batch);
    }
    for (size_t i = 0; batch.plans && i < count; i++)
        s3_listing_done(batch.plans[i].listing);
    free(batch.plans);
    free(calls);
    free(channels);
}
