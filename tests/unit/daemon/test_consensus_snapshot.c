/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots around the node: one of the leader is decoded and staged before Raft hears of it, and neither
 * bytes that nobody can read, nor a full disk, nor a build that takes long holds the node up. The threads of
 * snapshots are real; the disk thread, the log and the step of the node are played by the test.
 */
#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define INDEX 10

struct fixture {
    struct consensus c; /* first */
    struct daemon_config config;
    size_t steps;          /* snapshots that Raft was told of */
    struct raft_message m; /* the newest of them */
    size_t stages;
    size_t errors; /* in the log */
    size_t ends;   /* of the node */
};

/* ---- what is played; the linker takes these, and not those of the library ---- */

static struct fixture *fixture_of(struct consensus *c) { return (struct fixture *)(void *)c; }

enum gavel_status consensus_step(struct consensus *c, struct node_event event)
{
    assert_int_equal(event.kind, NODE_RAFT);
    assert_int_equal(event.raft.kind, RAFT_RECEIVE);
    assert_non_null(event.decoded);
    fixture_of(c)->m = *event.raft.message;
    fixture_of(c)->steps++;
    return GAVEL_OK;
}

void consensus_feed(struct consensus *c, struct raft_event event)
{
    (void)c;
    (void)event;
    fail_msg("Raft was told of a snapshot that was neither decoded nor staged");
}

void consensus_end(struct consensus *c, int exit_code)
{
    (void)exit_code;
    fixture_of(c)->ends++;
    c->ending.is_over = true;
}

void logger_write(struct logger *logger, enum log_level level, const char *message,
                  const struct log_field *fields)
{
    struct fixture *f = (struct fixture *)(void *)((char *)logger - offsetof(struct fixture, c) -
                                                   offsetof(struct consensus, logger));

    (void)message;
    (void)fields;
    f->errors += level == LOG_ERROR;
}

/* A disk that has staged nothing before the test says so. */
uint64_t writer_stage(struct writer *writer, struct blob *blob)
{
    struct fixture *f = (struct fixture *)(void *)((char *)writer - offsetof(struct fixture, c) -
                                                   offsetof(struct consensus, writer));

    assert_non_null(blob);
    f->stages++;
    return ++writer->stages;
}

void writer_unstage(struct writer *writer, uint64_t number) { assert_true(number <= writer->stages); }

/* A build that takes as long as the test wants. */
static _Atomic bool is_building;
static _Atomic bool may_end;

/* The linker's --wrap decides this name. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
enum gavel_status __wrap_node_build_run(struct node_build *build);
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
enum gavel_status __wrap_node_build_run(struct node_build *build)
{
    assert_non_null(build);
    atomic_store(&is_building, true);
    for (int i = 0; i < LIMIT_MS && !atomic_load(&may_end); i++)
        (void)poll(NULL, 0, 1);
    return GAVEL_ERR_NO_MEMORY;
}

/* ---- the fixture ---- */

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->config.snapshot_entries = 10000;
    f->config.snapshot_bytes = 64u << 20;
    f->c.config = &f->config;
    assert_int_equal(snapshotter_start(&f->c.builder, SNAPSHOTTER_BUILDS, false), GAVEL_OK);
    assert_int_equal(snapshotter_start(&f->c.decoder, SNAPSHOTTER_DECODES, false), GAVEL_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    consensus_end_snapshots(&f->c);
    assert_false(f->c.ending.is_thread_left);
    free(f);
    return 0;
}

/* Hands the blob over. */
static void receive(struct fixture *f, struct blob *blob, raft_index index)
{
    struct raft_message message = {.kind = RAFT_MSG_SNAPSHOT,
                                   .from = 2,
                                   .term = 1,
                                   .snapshot = {.index = index, .round = 5, .blob = blob}};

    assert_non_null(blob);
    consensus_receive_snapshot(&f->c, &message);
    blob_drop(blob);
}

static struct blob *unreadable(void) { return blob_copy((const uint8_t *)"no snapshot", 11); }

static struct blob *readable(void)
{
    struct table table = {0};
    uint8_t *bytes;
    size_t size;

    assert_int_equal(table_snapshot_encode(&table, &bytes, &size), GAVEL_OK);
    table_done(&table);
    return blob_own(bytes, size);
}

static void await_decoder(struct fixture *f)
{
    struct pollfd done = {.fd = f->c.decoder.done.fd, .events = POLLIN};

    assert_int_equal(poll(&done, 1, LIMIT_MS), 1);
    consensus_take_snapshots(&f->c);
}

/* ---- the tests ---- */

static void test_raft_hears_of_a_snapshot_that_is_decoded_and_staged(void **state)
{
    struct fixture *f = *state;

    receive(f, readable(), INDEX);
    await_decoder(f);
    assert_int_equal(f->stages, 1);
    assert_int_equal(f->steps, 0);
    atomic_store(&f->c.writer.staged, 1);
    consensus_look_at_incoming(&f->c);
    assert_int_equal(f->steps, 1);
    assert_int_equal(f->m.snapshot.index, INDEX);
    assert_int_equal(f->m.snapshot.round, 0); /* it is late: no promise for its leader */
    assert_null(f->c.incoming.job);
}

/* Raft has not judged who sent it, and the node must go on voting. */
static void test_a_snapshot_that_cannot_be_read_ends_nothing(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        receive(f, unreadable(), INDEX);
        await_decoder(f);
        assert_int_equal(f->ends, 0);
        assert_null(f->c.incoming.job);
    }
    assert_int_equal(f->steps, 0);
    assert_int_equal(f->errors, 1); /* it is sent again and again, and told once a minute */
    atomic_store(&f->c.writer.staged, 4);
    receive(f, readable(), INDEX + 1);
    await_decoder(f);
    assert_int_equal(f->steps, 1);
    assert_int_equal(f->m.snapshot.index, INDEX + 1);
}

/* Nothing is applied beyond the snapshot in force, so the node has none of its own to make room with. */
static void test_a_snapshot_waits_for_no_full_disk(void **state)
{
    struct fixture *f = *state;

    f->c.disk_state = WRITER_FULL;
    assert_int_equal(f->c.node.raft.applied, f->c.node.raft.log.base);
    receive(f, readable(), INDEX);
    await_decoder(f);
    assert_int_equal(f->steps, 1);
    assert_int_equal(f->stages, 0);
}

static void test_a_snapshot_goes_on_when_the_disk_is_full_meanwhile(void **state)
{
    struct fixture *f = *state;

    receive(f, readable(), INDEX);
    await_decoder(f);
    consensus_compact(&f->c);
    assert_int_equal(f->steps, 0);
    f->c.disk_state = WRITER_FULL;
    consensus_compact(&f->c);
    assert_int_equal(f->steps, 1);
}

static void test_the_end_waits_for_no_build(void **state)
{
    struct fixture *f = *state;
    struct snapshotter_job *job = calloc(1, sizeof *job);

    assert_non_null(job);
    job->build = calloc(1, sizeof *job->build);
    assert_non_null(job->build);
    f->c.building.phase = BUILDING_BUILDS;
    snapshotter_put(&f->c.builder, job);
    for (int i = 0; i < LIMIT_MS && !atomic_load(&is_building); i++)
        (void)poll(NULL, 0, 1);
    assert_true(atomic_load(&is_building));
    consensus_end_snapshots(&f->c);
    assert_true(f->c.ending.is_thread_left); /* so that the process ends without freeing what it has */
    atomic_store(&may_end, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_raft_hears_of_a_snapshot_that_is_decoded_and_staged),
        TEST(test_a_snapshot_that_cannot_be_read_ends_nothing),
        TEST(test_a_snapshot_waits_for_no_full_disk),
        TEST(test_a_snapshot_goes_on_when_the_disk_is_full_meanwhile),
        TEST(test_the_end_waits_for_no_build),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
