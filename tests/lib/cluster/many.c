/* SPDX-License-Identifier: Apache-2.0 */

#include "many.h"

#include "os/clock.h"
#include "store/store.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void); /* its header is not installed everywhere */
#endif

void many_pause_ms(gavel_ms ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&t, &t) < 0)
        continue;
}

/* ---- what they are told ---- */

static void elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct many_member *member = user;
    struct many *many = member->many;

    (void)candidate;
    pthread_mutex_lock(&many->mutex);
    many->wrong += member->elected != member->demoted || epoch <= member->epoch;
    member->elected++;
    member->epoch = epoch;
    many->elected++;
    pthread_cond_broadcast(&many->changed);
    pthread_mutex_unlock(&many->mutex);
    if (many->on_elected)
        many->on_elected(member);
}

static void demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct many_member *member = user;
    struct many *many = member->many;
    gavel_ms hang_ms;

    (void)reason;
    pthread_mutex_lock(&many->mutex);
    many->wrong += member->elected != member->demoted + 1 || gavel_is_leader(candidate);
    member->demoted++;
    member->demoted_at_ns = gavel_now_ns();
    member->place = ++many->demoted;
    hang_ms = member->hang_ms;
    pthread_cond_broadcast(&many->changed);
    pthread_mutex_unlock(&many->mutex);
    if (hang_ms > 0)
        many_pause_ms(hang_ms);
}

static void event_came(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct many_member *member = user;
    struct many *many = member->many;

    (void)candidate;
    if (event->kind != GAVEL_EVENT_OVERRUN && event->kind != GAVEL_EVENT_BREAKER_OPEN)
        return;
    pthread_mutex_lock(&many->mutex);
    if (event->kind == GAVEL_EVENT_OVERRUN) {
        member->overruns++;
        many->overruns++;
    } else {
        many->troubled += !member->trouble[0];
        (void)snprintf(member->trouble, sizeof member->trouble, "%s", event->message);
    }
    pthread_cond_broadcast(&many->changed);
    pthread_mutex_unlock(&many->mutex);
}

/* ---- joining, and waiting for them ---- */

struct gavel_settings many_settings(gavel_ms lease_ms, gavel_ms grace_ms)
{
    struct gavel_settings settings;

    assert_int_equal(gavel_settings_preset("local", &settings), GAVEL_OK);
    settings.lease_ms = lease_ms;
    settings.stop_grace_ms = grace_ms;
    settings.stop_margin_ms = 500;
    settings.call_timeout_ms = lease_ms - grace_ms - 2000 < 10000 ? lease_ms - grace_ms - 2000 : 10000;
    settings.election_interval_ms = 200;
    return settings;
}

void many_open(struct many *many, const char *url, const char *id, size_t count)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};

    *many = (struct many){.count = count, .id = id};
    pthread_mutex_init(&many->mutex, NULL);
    pthread_cond_init(&many->changed, NULL);
    many->members = calloc(count, sizeof *many->members);
    assert_non_null(many->members);
    options.store = url;
    if (gavel_open(&options, &many->gavel, &error) != GAVEL_OK)
        fail_msg("cannot open %s: %s", url, error.message);
}

void many_join(struct many *many, size_t number, const struct gavel_settings *settings)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct many_member *member = &many->members[number];
    struct gavel_error error = {0};
    char group[24];

    (void)snprintf(group, sizeof group, "g%zu", number);
    member->many = many;
    member->number = number;
    member->grace_ms = settings->stop_grace_ms;
    options.group = group;
    options.candidate = many->id;
    options.settings = settings;
    options.overrun = GAVEL_OVERRUN_REPORT;
    options.eligible = !many->is_ineligible;
    options.subscriber = (struct gavel_subscriber){
        .on_elected = elected, .on_demoted = demoted, .on_event = event_came, .user = member};
    if (gavel_join(many->gavel, &options, &member->candidate, &error) != GAVEL_OK)
        fail_msg("cannot join %s: %s", group, error.message);
}

void many_join_all(struct many *many, const struct gavel_settings *settings)
{
    for (size_t i = 0; i < many->count; i++)
        many_join(many, i, settings);
}

void many_hang(struct many *many, size_t number, gavel_ms hang_ms)
{
    pthread_mutex_lock(&many->mutex);
    many->members[number].hang_ms = hang_ms;
    pthread_mutex_unlock(&many->mutex);
}

void many_close(struct many *many)
{
    assert_int_equal(gavel_close(many->gavel), GAVEL_OK);
    assert_int_equal(many->wrong, 0);
    free(many->members);
    pthread_cond_destroy(&many->changed);
    pthread_mutex_destroy(&many->mutex);
}

static struct timespec limit_from_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail */
    t.tv_sec += MANY_LIMIT_MS / 1000;
    return t;
}

void many_await(struct many *many, const size_t *counter, size_t least)
{
    struct timespec until = limit_from_now();
    size_t count;

    pthread_mutex_lock(&many->mutex);
    while (*counter < least && pthread_cond_timedwait(&many->changed, &many->mutex, &until) == 0)
        continue;
    count = *counter;
    pthread_mutex_unlock(&many->mutex);
    if (count < least)
        fail_msg("only %zu of %zu after %d s", count, least, MANY_LIMIT_MS / 1000);
}

size_t many_count(struct many *many, const size_t *counter)
{
    size_t count;

    pthread_mutex_lock(&many->mutex);
    count = *counter;
    pthread_mutex_unlock(&many->mutex);
    return count;
}

/* How many that joined do not lead, and one of them. */
static size_t without_mandate(struct many *many, const struct many_member **ret_one)
{
    size_t count = 0;

    pthread_mutex_lock(&many->mutex);
    for (size_t i = 0; i < many->count; i++) {
        const struct many_member *member = &many->members[i];

        if (!member->candidate || member->elected == member->demoted + 1)
            continue;
        *ret_one = member;
        count++;
    }
    pthread_mutex_unlock(&many->mutex);
    return count;
}

void many_await_all(struct many *many)
{
    int64_t until = gavel_now_ns() + MANY_LIMIT_MS * INT64_C(1000000);
    const struct many_member *one = NULL;
    size_t count;

    while ((count = without_mandate(many, &one)) > 0) {
        if (gavel_now_ns() >= until)
            fail_msg("%zu of %zu, such as %zu, do not lead after %d s: %s", count, many->count, one->number,
                     MANY_LIMIT_MS / 1000, one->trouble);
        many_pause_ms(5); /* between two looks */
    }
}

static void expect_record(const struct many_member *member, const struct store_reply *reply)
{
    if (reply->status != GAVEL_OK)
        fail_msg("group %zu: %s", member->number, reply->message);
    assert_true(reply->found);
    assert_true(reply->record.held);
    assert_string_equal(reply->record.holder, member->many->id);
    assert_int_equal(reply->record.epoch, member->epoch);
    assert_int_equal(gavel_epoch(member->candidate), member->epoch);
    assert_true(gavel_is_leader(member->candidate));
    assert_int_equal(member->elected, member->demoted + 1);
}

void many_expect_mandates(struct many *many, const char *url)
{
    struct store_request *requests = calloc(many->count, sizeof *requests);
    struct store_reply *replies = calloc(many->count, sizeof *replies);
    char(*groups)[24] = calloc(many->count, sizeof *groups);
    struct store *store = NULL;

    assert_non_null(requests);
    assert_non_null(replies);
    assert_non_null(groups);
    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    for (size_t i = 0; i < many->count; i++) {
        (void)snprintf(groups[i], sizeof groups[i], "g%zu", i);
        requests[i] = (struct store_request){
            .op = STORE_READ, .group = groups[i], .give_up_at = clock_now() + MANY_LIMIT_MS * NS_PER_MS};
    }
    store_run(store, requests, replies, many->count);
    for (size_t i = 0; i < many->count; i++) {
        if (many->members[i].candidate)
            expect_record(&many->members[i], &replies[i]);
        store_reply_done(&replies[i]);
    }
    assert_int_equal(many_count(many, &many->wrong), 0);
    store_close(store);
    free(groups);
    free(replies);
    free(requests);
}

void many_expect_none(const struct many *many)
{
    for (size_t i = 0; i < many->count; i++)
        assert_false(gavel_is_leader(many->members[i].candidate));
}

static int by_place(const void *a, const void *b)
{
    const struct many_member *one = a, *other = b;

    return (one->place > other->place) - (one->place < other->place);
}

void many_expect_order(struct many *many)
{
    struct many_member *sorted = calloc(many->count, sizeof *sorted);

    assert_non_null(sorted);
    pthread_mutex_lock(&many->mutex);
    memcpy(sorted, many->members, many->count * sizeof *sorted);
    pthread_mutex_unlock(&many->mutex);
    qsort(sorted, many->count, sizeof *sorted, by_place);
    for (size_t i = 0; i < many->count; i++) {
        assert_int_equal(sorted[i].demoted, 1);
        assert_int_equal(sorted[i].place, i + 1);
        if (i > 0)
            assert_true(sorted[i].grace_ms <= sorted[i - 1].grace_ms);
    }
    free(sorted);
}

size_t many_heap_mib(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __sanitizer_get_current_allocated_bytes() >> 20;
#else
    struct mallinfo2 info = mallinfo2();

    return (info.uordblks + info.hblkhd) >> 20;
#endif
}

/* ---- a cluster ---- */

int many_set_up(void **state)
{
    struct test_cluster *cluster = calloc(1, sizeof *cluster);

    assert_non_null(cluster);
    *state = cluster; /* what there is of it is taken down, also if there is no more */
    test_cluster_start(cluster);
    (void)test_cluster_leader(cluster);
    return 0;
}

int many_tear_down(void **state)
{
    struct test_cluster *cluster = *state;

    test_cluster_stop(cluster);
    free(cluster);
    return 0;
}

void many_freeze(struct test_cluster *cluster)
{
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_freeze(cluster, node);
}

void many_thaw(struct test_cluster *cluster)
{
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_thaw(cluster, node);
}
