/* SPDX-License-Identifier: Apache-2.0 */

/* What happens around the end of a handle, and between threads that want different things of it. */
#include "harness.h"

#include <dirent.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* While shut, nothing of this process reaches the disk, as when a disk has died under a mounted file
 * system. */
static struct disk {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_shut;
    int waiting;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass_disk(void)
{
    pthread_mutex_lock(&disk.mutex);
    disk.waiting++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.is_shut)
        pthread_cond_wait(&disk.changed, &disk.mutex);
    disk.waiting--;
    pthread_mutex_unlock(&disk.mutex);
}

static void set_disk(bool is_shut)
{
    pthread_mutex_lock(&disk.mutex);
    disk.is_shut = is_shut;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.mutex);
}

/* SQLite calls these instead of those of libc. */
GAVEL_API int fdatasync(int fd);
GAVEL_API int fsync(int fd);

GAVEL_API int fdatasync(int fd)
{
    pass_disk();
    return (int)syscall(SYS_fdatasync, fd);
}

GAVEL_API int fsync(int fd)
{
    pass_disk();
    return (int)syscall(SYS_fsync, fd);
}

static bool is_disk_waited_for(void *argument)
{
    bool is_waited_for;

    (void)argument;
    pthread_mutex_lock(&disk.mutex);
    is_waited_for = disk.waiting > 0;
    pthread_mutex_unlock(&disk.mutex);
    return is_waited_for;
}

static bool counts_time_outs(void *argument)
{
    struct gavel_metrics metrics;

    gavel_metrics(argument, &metrics);
    return metrics.call_timeouts > 0 && metrics.heartbeat_failures > 0;
}

/* Nothing of this process has a file of the store open: whoever was left behind is done with it. */
static bool is_store_closed(void *argument)
{
    const struct scene *scene = argument;
    size_t length = strlen(scene->directory);
    DIR *descriptors = opendir("/proc/self/fd");
    const struct dirent *entry;
    bool is_closed = descriptors != NULL;

    while (descriptors && (entry = readdir(descriptors))) {
        char target[256];
        ssize_t size = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target);

        if (size > (ssize_t)length && memcmp(target, scene->directory, length) == 0)
            is_closed = false;
    }
    if (descriptors)
        (void)closedir(descriptors);
    return is_closed;
}

static void test_close_does_not_wait_for_a_store_that_hangs(void **state)
{
    struct scene *scene = *state;
    struct gavel *gavel = open_gavel(scene->url);
    struct gavel_settings settings = quick_settings();
    struct gavel_candidate *first;
    struct recorder recorder;
    int64_t from;

    recorder_init(&recorder);
    first = join_group(gavel, "jobs", "one", &settings, &recorder);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS));
    set_disk(true);
    (void)join_group(gavel, "other", "one", &settings, NULL); /* its claim has to reach the disk */
    assert_true(comes_true(is_disk_waited_for, NULL, LIMIT_MS));
    /* Counted when it is given up, though no answer ever comes. */
    assert_true(comes_true(counts_time_outs, first, LIMIT_MS));
    from = gavel_now_ns();
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    assert_true(gavel_now_ns() - from < INT64_C(10000000000));
    assert_true(is_disk_waited_for(NULL));
    assert_int_equal(recorder.demoted, 1);
    /* The thread that was left behind finds what it needs when it comes back. */
    set_disk(false);
    assert_true(comes_true(is_store_closed, scene, LIMIT_MS));
    recorder_done(&recorder);
}

struct joiner {
    struct gavel *gavel;
    enum gavel_status status;
    struct gavel_error error;
    sem_t elected;
};

static void note_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct joiner *joiner = user;

    (void)candidate;
    (void)epoch;
    (void)sem_post(&joiner->elected);
}

static void join_when_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct joiner *joiner = user;
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *other = NULL;

    (void)candidate;
    (void)reason;
    options.group = "fallback";
    options.candidate = "x";
    joiner->status = gavel_join(joiner->gavel, &options, &other, &joiner->error);
}

static void test_nobody_joins_a_handle_that_is_being_closed(void **state)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct joiner joiner = {.gavel = open_gavel("memory:closing")};
    struct gavel_candidate *candidate;

    (void)state;
    assert_int_equal(sem_init(&joiner.elected, 0, 0), 0);
    options.candidate = "x";
    options.subscriber = (struct gavel_subscriber){
        .on_elected = note_elected, .on_demoted = join_when_demoted, .user = &joiner};
    assert_int_equal(gavel_join(joiner.gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_int_equal(sem_wait(&joiner.elected), 0);
    assert_int_equal(gavel_close(joiner.gavel), GAVEL_OK);
    assert_int_equal(joiner.status, GAVEL_ERR_STATE);
    assert_non_null(strstr(joiner.error.message, "closed"));
    (void)sem_destroy(&joiner.elected);
}

static void *leave(void *argument)
{
    struct gavel_candidate *candidate = argument;

    assert_int_equal(gavel_leave(candidate), GAVEL_OK);
    return NULL;
}

/* The leaver has asked when its on_demoted runs; then the handle is closed, while it still waits. */
static void signal_and_dawdle(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    const struct timespec t = {.tv_nsec = 200000000};
    struct joiner *joiner = user;

    (void)candidate;
    (void)reason;
    (void)sem_post(&joiner->elected);
    (void)nanosleep(&t, NULL); /* so that the close finds it under way; the test holds without it, too */
}

static void test_close_waits_for_whoever_is_leaving(void **state)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct joiner joiner = {.gavel = open_gavel("memory:leaving")};
    struct gavel_candidate *candidate;
    pthread_t thread;

    (void)state;
    assert_int_equal(sem_init(&joiner.elected, 0, 0), 0);
    options.candidate = "x";
    options.subscriber = (struct gavel_subscriber){
        .on_elected = note_elected, .on_demoted = signal_and_dawdle, .user = &joiner};
    assert_int_equal(gavel_join(joiner.gavel, &options, &candidate, NULL), GAVEL_OK);
    assert_int_equal(sem_wait(&joiner.elected), 0);
    assert_int_equal(pthread_create(&thread, NULL, leave, candidate), 0);
    assert_int_equal(sem_wait(&joiner.elected), 0);
    assert_int_equal(gavel_close(joiner.gavel), GAVEL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)sem_destroy(&joiner.elected);
}

/* A thread that waits for a leader that never comes, in dispatch mode. */
struct waiter {
    struct gavel_candidate *candidate;
    enum gavel_status status;
};

static void *wait_in_vain(void *argument)
{
    const struct gavel_ensure_options options = {.desired = "nobody", .timeout_ms = 3000};
    struct waiter *waiter = argument;

    waiter->status = gavel_ensure_leader(waiter->candidate, &options, NULL);
    return NULL;
}

static void test_dispatch_returns_while_another_thread_drives(void **state)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_settings settings = patient_settings(); /* nothing happens that would let the driver go */
    struct gavel *gavel = NULL;
    struct recorder recorder;
    struct waiter waiter;
    int64_t longest = 0;
    pthread_t thread;

    (void)state;
    recorder_init(&recorder);
    options.store = "memory:dispatching";
    options.threaded = false;
    assert_int_equal(gavel_open(&options, &gavel, NULL), GAVEL_OK);
    waiter.candidate = join_group(gavel, "jobs", "x", &settings, &recorder);
    assert_int_equal(pthread_create(&thread, NULL, wait_in_vain, &waiter), 0);
    assert_true(recorder_sees(&recorder, &recorder.elected, 1, LIMIT_MS)); /* it drives */
    for (int i = 0; i < 100; i++) {
        int64_t from = gavel_now_ns();

        assert_int_equal(gavel_dispatch(gavel), GAVEL_OK);
        longest = gavel_now_ns() - from > longest ? gavel_now_ns() - from : longest;
    }
    assert_true(longest < 500000000);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.status, GAVEL_ERR_LEADER_TRANSFER_FAILED);
    assert_int_equal(gavel_close(gavel), GAVEL_OK);
    recorder_done(&recorder);
}

/* Group a is elected while the callback of group b runs; meanwhile somebody who sees no leader forces one. */
static void note_and_dawdle(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    note_elected(candidate, epoch, user);
    signal_and_dawdle(candidate, GAVEL_REASON_NONE, user);
}

static void test_force_spares_a_leader_that_came_after_the_call(void **state)
{
    const struct gavel_ensure_options force = {.force = true};
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;
    struct joiner joiner = {.gavel = open_gavel("memory:forcing")};
    struct gavel_candidate *b, *a;
    struct recorder recorder;

    (void)state;
    recorder_init(&recorder);
    assert_int_equal(sem_init(&joiner.elected, 0, 0), 0);
    options.group = "b";
    options.candidate = "x";
    options.subscriber = (struct gavel_subscriber){.on_elected = note_and_dawdle, .user = &joiner};
    assert_int_equal(gavel_join(joiner.gavel, &options, &b, NULL), GAVEL_OK);
    a = join_group(joiner.gavel, "a", "x", NULL, &recorder);
    assert_int_equal(sem_wait(&joiner.elected), 0);
    if (!gavel_is_leader(a)) /* else this machine was too fast to show anything */
        assert_int_equal(gavel_ensure_leader(a, &force, NULL), GAVEL_OK);
    assert_true(recorder_sees(&recorder, &recorder.events[GAVEL_EVENT_HEARTBEAT], 2, LIMIT_MS));
    assert_int_equal(recorder_count(&recorder, &recorder.demoted), 0);
    assert_true(gavel_is_leader(a));
    assert_int_equal(gavel_close(joiner.gavel), GAVEL_OK);
    (void)sem_destroy(&joiner.elected);
    recorder_done(&recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_close_does_not_wait_for_a_store_that_hangs, scene_setup,
                                        scene_teardown),
        cmocka_unit_test(test_nobody_joins_a_handle_that_is_being_closed),
        cmocka_unit_test(test_close_waits_for_whoever_is_leaving),
        cmocka_unit_test(test_dispatch_returns_while_another_thread_drives),
        cmocka_unit_test(test_force_spares_a_leader_that_came_after_the_call),
    };

    return cmocka_run_group_tests_name("lib closing", tests, NULL, NULL);
}
