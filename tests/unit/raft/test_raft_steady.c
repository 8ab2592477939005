/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The steady state: a leader, its followers, and heartbeats, which is what a
 * cluster does nearly all of its life. It must cost nothing that can fail or
 * take long: no allocation, no write.
 *
 * Five nodes are driven by hand. Messages are delivered at once, in the order
 * in which they were sent; disks are as fast.
 */

#include "allocator.h"
#include "core/raft/raft.h"

#include <gavel/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 5
#define QUEUE 256
#define ENTRIES 8
#define ROUNDS 1000

struct packet {
    struct raft_message message;
    struct raft_entry entries[ENTRIES]; /* without bytes: only no-ops are sent here */
};

struct fixture {
    struct raft nodes[NODES];
    gavel_ns now;
    struct packet queue[QUEUE];
    size_t head;
    size_t tail;
    struct raft_actions actions;
    unsigned writes;
    unsigned claims;
    unsigned sends;
};

static bool verify_cb(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
    return true;
}

static void enqueue(struct fixture *f, const struct raft_message *message)
{
    struct packet *packet = &f->queue[f->tail++ % QUEUE];

    assert_true(f->tail - f->head <= QUEUE);
    packet->message = *message;
    if (message->kind == RAFT_MSG_APPEND) {
        assert_true(message->append.entry_count <= ENTRIES);
        for (uint32_t i = 0; i < message->append.entry_count; i++) {
            assert_int_equal(message->append.entries[i].size, 0);
            packet->entries[i] = message->append.entries[i];
        }
        packet->message.append.entries = message->append.entry_count > 0 ? packet->entries : NULL;
    }
    f->sends++;
}

/* One step; what it wants written is so at once. */
static void step(struct fixture *f, struct raft *raft, struct raft_event event)
{
    uint64_t written = 0;

    event.now = f->now;
    assert_int_equal(raft_step(raft, &event, &f->actions), GAVEL_OK);
    for (size_t i = 0; i < f->actions.count; i++) {
        const struct raft_action *action = &f->actions.items[i];

        if (action->kind == RAFT_SEND)
            enqueue(f, &action->send.message);
        if (action->kind == RAFT_PERSIST)
            written = action->persist.seq;
        f->claims += action->kind == RAFT_CLAIM;
    }
    if (written == 0)
        return;
    f->writes++;
    step(f, raft, (struct raft_event){.kind = RAFT_PERSISTED, .seq = written});
}

static void deliver_all(struct fixture *f)
{
    while (f->head < f->tail) {
        struct packet *packet = &f->queue[f->head++ % QUEUE];

        step(f, &f->nodes[packet->message.to - 1],
             (struct raft_event){.kind = RAFT_RECEIVE, .message = &packet->message});
    }
}

/* Sets the clock to the next instant at which somebody is to be woken, and wakes who is. */
static void go_on(struct fixture *f)
{
    gavel_ns next = NEVER;

    for (unsigned i = 0; i < NODES; i++)
        next = ns_min(next, raft_wake_at(&f->nodes[i]));
    assert_true(next != NEVER);
    f->now = ns_max(f->now, next);
    for (unsigned i = 0; i < NODES; i++)
        if (raft_wake_at(&f->nodes[i]) <= f->now)
            step(f, &f->nodes[i], (struct raft_event){.kind = RAFT_TIMER});
    deliver_all(f);
}

static struct raft *leader_of(struct fixture *f)
{
    for (unsigned i = 0; i < NODES; i++)
        if (raft_is_working(&f->nodes[i], f->now))
            return &f->nodes[i];
    return NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct raft_settings settings;

    assert_non_null(f);
    raft_settings_default(&settings);
    settings.verify = verify_cb;
    f->now = NS_PER_S;
    for (unsigned i = 0; i < NODES; i++) {
        struct raft_restore restore = {.seed = i + 1};
        struct gavel_error error = {0};

        restore.state = (struct raft_state){.cluster = 7, .generation = 1, .id = i + 1, .incarnation = 1};
        restore.snapshot.config.count = NODES;
        for (unsigned k = 0; k < NODES; k++)
            restore.snapshot.config.members[k] = (struct raft_member){.id = k + 1, .is_voter = true};
        assert_int_equal(raft_init(&f->nodes[i], &settings, &restore, f->now, &error), GAVEL_OK);
    }
    for (unsigned i = 0; i < 100 && !leader_of(f); i++)
        go_on(f);
    assert_non_null(leader_of(f));
    for (unsigned i = 0; i < 10; i++) /* everybody knows what is committed */
        go_on(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < NODES; i++)
        raft_done(&f->nodes[i]);
    free(f);
    return 0;
}

static void test_heartbeats_allocate_nothing(void **state)
{
    struct fixture *f = *state;
    const struct raft *leader = leader_of(f);
    uint64_t first_round = leader->lead_round;
    uint64_t calls = allocator.calls;
    unsigned sends = f->sends;

    for (unsigned i = 0; i < ROUNDS; i++)
        go_on(f);
    assert_int_equal(allocator.calls, calls);
    /* And they were heartbeats: a round each time, to everybody, with an answer. */
    assert_int_equal(leader->lead_round - first_round, (uint64_t)(ROUNDS * leader->settings.heartbeat));
    assert_int_equal(f->sends - sends, ROUNDS * 2 * (NODES - 1));
}

static void test_heartbeats_write_nothing(void **state)
{
    struct fixture *f = *state;
    unsigned writes = f->writes;

    for (unsigned i = 0; i < ROUNDS; i++)
        go_on(f);
    assert_int_equal(f->writes, writes);
}

static void test_heartbeats_keep_the_leader_at_work(void **state)
{
    struct fixture *f = *state;
    const struct raft *leader = leader_of(f);
    raft_term term = leader->state.term;
    unsigned claims = f->claims;

    for (unsigned i = 0; i < ROUNDS; i++)
        go_on(f);
    assert_ptr_equal(leader_of(f), leader);
    assert_int_equal(leader->state.term, term);
    assert_int_equal(f->claims, claims);
}

/* So that the first test means something: the counter sees the allocation of a proposal. */
static void test_a_proposal_allocates_and_is_counted(void **state)
{
    struct fixture *f = *state;
    const uint8_t byte = 1;
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = 1, .data = &byte};
    struct raft_event event = {
        .kind = RAFT_PROPOSE, .now = f->now, .propose = {.entries = &entry, .count = 1}};
    uint64_t calls = allocator.calls;

    assert_int_equal(raft_step(leader_of(f), &event, &f->actions), GAVEL_OK);
    assert_true(allocator.calls > calls);
}

/* Whoever proposed them is told that they failed, and must not find one of them applied. */
static void test_proposals_for_which_there_is_no_memory_leave_nothing_in_the_log(void **state)
{
    struct fixture *f = *state;
    struct raft *leader = leader_of(f);
    const uint8_t bytes[ENTRIES] = {0};
    struct raft_entry entries[ENTRIES];
    struct raft_event event = {
        .kind = RAFT_PROPOSE, .now = f->now, .propose = {.entries = entries, .count = ENTRIES}};
    const raft_index last = raft_log_last(&leader->log);
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;
    unsigned failures = 0;

    for (unsigned i = 0; i < ENTRIES; i++)
        entries[i] = (struct raft_entry){.kind = RAFT_ENTRY_DATA, .size = i + 1, .data = bytes};
    for (uint64_t calls = 0; status != GAVEL_OK; calls++) {
        allocator.fail_after = calls;
        status = raft_step(leader, &event, &f->actions);
        allocator.fail_after = UINT64_MAX;
        if (status == GAVEL_OK)
            break;
        failures++;
        assert_int_equal(status, GAVEL_ERR_NO_MEMORY);
        assert_int_equal(raft_log_last(&leader->log), last);
        for (size_t i = 0; i < f->actions.count; i++)
            assert_int_not_equal(f->actions.items[i].kind, RAFT_PERSIST);
    }
    assert_true(failures >= ENTRIES);
    assert_int_equal(raft_log_last(&leader->log), last + ENTRIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heartbeats_allocate_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heartbeats_write_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heartbeats_keep_the_leader_at_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_proposal_allocates_and_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_proposals_for_which_there_is_no_memory_leave_nothing_in_the_log,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
