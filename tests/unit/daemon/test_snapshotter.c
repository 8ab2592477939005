/* SPDX-License-Identifier: Apache-2.0 */

/* The threads of snapshots: building is for later, and decoding waits for none of it. */
#include "daemon/node/snapshotter.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define NOBODY 99
#define MANY 5000
#define TRIES 100

/* The nice value of our thread of that name; NOBODY if there is none. */
static int nice_of(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int found = NOBODY;

    assert_non_null(tasks);
    while ((task = readdir(tasks))) {
        char path[300], line[64] = "";
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (file && fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) == 0)
            found = getpriority(PRIO_PROCESS, (id_t)atoi(task->d_name));
        if (file)
            (void)fclose(file);
    }
    (void)closedir(tasks);
    return found;
}

/* A thread sets its priority when it runs. */
static int nice_that_becomes(const char *name, int wanted)
{
    for (int i = 0; i < LIMIT_MS && nice_of(name) != wanted; i++)
        (void)poll(NULL, 0, 1);
    return nice_of(name);
}

static struct snapshotter_job *await_job(struct snapshotter *snapshotter)
{
    struct pollfd done = {.fd = snapshotter->done.fd, .events = POLLIN};

    assert_int_equal(poll(&done, 1, LIMIT_MS), 1);
    return snapshotter_take(snapshotter);
}

static struct snapshotter_job *new_job(void)
{
    struct snapshotter_job *job = calloc(1, sizeof *job);

    assert_non_null(job);
    job->blob = blob_copy((const uint8_t *)"no snapshot", 11);
    assert_non_null(job->blob);
    return job;
}

static void bury(struct snapshotter_job *job)
{
    assert_int_not_equal(job->status, GAVEL_OK);
    table_done(&job->table);
    snapshotter_job_free(job);
}

/* As many jobs as keep the thread busy for a while. Returns the nice value with which it was seen. */
static int keep_busy(struct snapshotter *builder)
{
    int seen = NOBODY;

    for (int i = 0; i < MANY; i++) {
        snapshotter_put(builder, new_job());
        if (i % 100 == 0 && seen != 15)
            seen = nice_of("gaveld-build");
    }
    for (int i = 0; i < MANY; i++)
        bury(await_job(builder));
    return seen;
}

static void test_only_building_has_a_low_priority(void **state)
{
    struct snapshotter builder, decoder;
    int ours = getpriority(PRIO_PROCESS, 0);
    int seen = NOBODY;

    (void)state;
    assert_int_equal(snapshotter_start(&builder, SNAPSHOTTER_BUILDS, false), GAVEL_OK);
    assert_int_equal(snapshotter_start(&decoder, SNAPSHOTTER_DECODES, false), GAVEL_OK);
    for (int i = 0; i < TRIES && seen != 15; i++)
        seen = keep_busy(&builder);
    assert_int_equal(seen, 15);
    assert_int_equal(nice_that_becomes("gaveld-decode", ours), ours);
    assert_true(snapshotter_stop(&builder));
    assert_true(snapshotter_stop(&decoder));
}

/* Or a process that is killed on a busy machine is dead only when that thread gets its turn. */
static void test_nobody_has_a_low_priority_while_nothing_is_built(void **state)
{
    struct snapshotter builder;

    (void)state;
    assert_int_equal(snapshotter_start(&builder, SNAPSHOTTER_BUILDS, false), GAVEL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nice_that_becomes("gaveld-build", NOBODY), NOBODY);
        snapshotter_put(&builder, new_job());
        bury(await_job(&builder));
    }
    assert_int_equal(nice_that_becomes("gaveld-build", NOBODY), NOBODY);
    assert_true(snapshotter_stop(&builder));
}

static void test_a_snapshot_comes_back_decoded(void **state)
{
    struct snapshotter decoder;
    struct snapshotter_job *job = calloc(1, sizeof *job);
    struct table table = {0};
    uint8_t *bytes;
    size_t size;

    (void)state;
    assert_non_null(job);
    assert_int_equal(table_snapshot_encode(&table, &bytes, &size), GAVEL_OK);
    job->blob = blob_own(bytes, size);
    assert_non_null(job->blob);
    assert_int_equal(snapshotter_start(&decoder, SNAPSHOTTER_DECODES, false), GAVEL_OK);
    snapshotter_put(&decoder, job);
    assert_ptr_equal(await_job(&decoder), job);
    assert_int_equal(job->status, GAVEL_OK);
    assert_int_equal(table_digest(&job->table), table_digest(&table));
    table_done(&job->table);
    snapshotter_job_free(job);
    table_done(&table);
    assert_true(snapshotter_stop(&decoder));
}

/* One that is not a snapshot ends nothing: whoever asked decides. */
static void test_what_cannot_be_read_comes_back_as_that(void **state)
{
    struct snapshotter decoder;
    struct snapshotter_job *job = new_job();

    (void)state;
    assert_int_equal(snapshotter_start(&decoder, SNAPSHOTTER_DECODES, false), GAVEL_OK);
    snapshotter_put(&decoder, job);
    assert_ptr_equal(await_job(&decoder), job);
    bury(job);
    assert_true(snapshotter_stop(&decoder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_building_has_a_low_priority),
        cmocka_unit_test(test_nobody_has_a_low_priority_while_nothing_is_built),
        cmocka_unit_test(test_a_snapshot_comes_back_decoded),
        cmocka_unit_test(test_what_cannot_be_read_comes_back_as_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
