/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three nodes, and what their step functions say to each other: the test is the
 * network, the disks and the clock. What is sent arrives at once; what is
 * written is durable when the test says so.
 */
#include "core/node/node.h"
#include "wire/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 3
#define STEPS_MAX 100000

struct one {
    struct node node;
    struct table table;
    uint64_t written; /* seq of the newest write */
    uint64_t synced;
    bool works;
    bool holds_disk; /* writes do not become durable */
    bool has_more;   /* its next client's frame is followed by another at once */
    bool is_cut;     /* neither sends nor receives, and forwards nothing */
    unsigned answers;
    enum gavel_status status; /* of the newest answer */
    uint64_t epoch;           /* of its first result */
    unsigned sends;
    unsigned watched;
    unsigned applied;
    unsigned forwards;
};

struct fixture {
    struct one nodes[NODES];
    unsigned count;
    gavel_ns now;
    struct node_actions actions;
    bool changed_table_unasked;
};

static bool verify_cb(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    (void)certificate;
    return true;
}

static void sign_cb(void *context, struct raft_certificate *certificate)
{
    (void)context;
    memset(certificate->mac, 1, sizeof certificate->mac);
}

static void begin(struct fixture *f, unsigned count)
{
    struct raft_settings settings;

    raft_settings_default(&settings);
    settings.verify = verify_cb;
    settings.sign = sign_cb;
    f->count = count;
    f->now = 1000 * NS_PER_S;
    assert_int_equal(node_actions_init(&f->actions), GAVEL_OK);
    for (unsigned i = 0; i < count; i++) {
        struct raft_restore restore = {.seed = i + 1};
        struct gavel_error error = {0};

        restore.state = (struct raft_state){.cluster = 7, .generation = 1, .id = i + 1, .incarnation = 1};
        restore.snapshot.config.count = (uint8_t)count;
        for (unsigned k = 0; k < count; k++)
            restore.snapshot.config.members[k] = (struct raft_member){.id = k + 1, .is_voter = true};
        assert_int_equal(
            node_init(&f->nodes[i].node, &f->nodes[i].table, &settings, &restore, f->now, &error), GAVEL_OK);
    }
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < f->count; i++) {
        node_done(&f->nodes[i].node);
        table_done(&f->nodes[i].table);
    }
    node_actions_done(&f->actions);
    free(f);
    return 0;
}

/* What goes to another node waits here until the step is over: nothing calls back. */
struct packet {
    unsigned to;
    struct node_event event;
    struct raft_message message;
    struct raft_entry *entries;
    uint8_t *bytes;
    uint64_t number;
};
#define PACKETS_MAX 4096

struct packets {
    struct packet items[PACKETS_MAX];
    size_t count;
};

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

static void send(struct fixture *f, struct one *one, const struct raft_message *message,
                 struct packets *packets)
{
    struct packet *packet = &packets->items[packets->count];
    unsigned to = (unsigned)message->to - 1;

    one->sends++;
    if (one->is_cut || to >= f->count || f->nodes[to].is_cut)
        return;
    assert_true(packets->count < PACKETS_MAX);
    *packet = (struct packet){.to = to, .message = *message};
    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        packet->entries = (struct raft_entry *)(void *)copy_of((const uint8_t *)message->append.entries,
                                                               message->append.entry_count *
                                                                   sizeof *message->append.entries);
        packet->message.append.entries = packet->entries;
    }
    packet->event = (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_RECEIVE}};
    packets->count++;
}

static void forward(struct fixture *f, struct one *one, const struct node_forwarded *forwarded,
                    struct packets *packets)
{
    struct packet *packet = &packets->items[packets->count];
    unsigned to = (unsigned)forwarded->peer - 1;

    one->forwards += !forwarded->is_silence;
    assert_true(to < f->count);
    assert_true(packets->count < PACKETS_MAX);
    *packet = (struct packet){.to = to, .bytes = copy_of(forwarded->bytes, forwarded->size)};
    packet->event = (struct node_event){.kind = NODE_FORWARDED, .forwarded = *forwarded};
    packet->event.forwarded.peer = (raft_id)(one - f->nodes) + 1;
    packet->event.forwarded.bytes = packet->bytes;
    if ((forwarded->is_answer || forwarded->is_silence) && (one->is_cut || f->nodes[to].is_cut)) {
        free(packet->bytes);
        return;
    }
    if (one->is_cut || f->nodes[to].is_cut) { /* it comes back */
        packet->to = (unsigned)(one - f->nodes);
        packet->number = forwarded->number;
        packet->event = (struct node_event){.kind = NODE_UNSENT, .unsent.count = 1};
    }
    packets->count++;
}

static void answered(struct one *one, const struct forwarder_answer *answer)
{
    one->answers++;
    assert_non_null(answer->frame);
    assert_int_equal(answer->frame->what_case, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    one->status = (enum gavel_status)answer->frame->reply->status;
    if (one->status == GAVEL_OK) {
        one->status = (enum gavel_status)answer->frame->reply->results[0]->status;
        one->epoch = answer->frame->reply->results[0]->epoch;
    }
}

static void carry_out(struct fixture *f, struct one *one, struct packets *packets)
{
    for (size_t i = 0; i < f->actions.count; i++) {
        const struct node_action *action = &f->actions.items[i];

        switch (action->kind) {
        case NODE_PERSIST:
            assert_int_equal(action->persist->seq, one->written + 1);
            one->written = action->persist->seq;
            break;
        case NODE_SEND:
            send(f, one, action->message, packets);
            break;
        case NODE_FORWARD:
            forward(f, one, &action->forward, packets);
            break;
        case NODE_ANSWER:
            answered(one, action->answer);
            break;
        case NODE_APPLIED:
            one->applied++;
            break;
        case NODE_WORK_START:
            assert_false(one->works);
            one->works = true;
            break;
        case NODE_WORK_STOP:
            assert_true(one->works);
            one->works = false;
            break;
        case NODE_WATCH:
            one->watched++;
            break;
        default:
            break;
        }
    }
}

/* One event with all that it leaves to do, at one node. */
static void step(struct fixture *f, struct one *one, struct node_event *event, struct packets *packets)
{
    struct node_event next = {.kind = NODE_NEXT};

    event->now = next.now = f->now;
    event->wall_ms = next.wall_ms = 1;
    node_step(&one->node, event, &f->actions);
    carry_out(f, one, packets);
    for (unsigned i = 0; node_has_next(&one->node); i++) {
        bool may_change = node_changes_table(&one->node);
        uint64_t index = one->table.index;

        assert_true(i < STEPS_MAX);
        node_step(&one->node, &next, &f->actions);
        f->changed_table_unasked |= one->table.index != index && !may_change;
        carry_out(f, one, packets);
    }
}

/* The disks write, if they do. False: there is nothing to write. */
static bool sync_disks(struct fixture *f, struct packets *packets)
{
    bool has_written = false;

    for (unsigned i = 0; i < f->count; i++) {
        struct one *one = &f->nodes[i];
        struct node_event durable = {.kind = NODE_RAFT,
                                     .raft = {.kind = RAFT_PERSISTED, .seq = one->written}};

        if (one->holds_disk || one->synced == one->written)
            continue;
        one->synced = one->written;
        step(f, one, &durable, packets);
        has_written = true;
    }
    return has_written;
}

/* The same, with all that follows from it at the others, and the disks. */
static void feed(struct fixture *f, unsigned which, struct node_event event)
{
    static struct packets packets; /* too large for a stack */
    size_t next = 0;

    packets.count = 0;
    step(f, &f->nodes[which], &event, &packets);
    while (next < packets.count || sync_disks(f, &packets)) {
        if (next == packets.count)
            continue;
        struct packet packet = packets.items[next++];

        if (packet.event.kind == NODE_RAFT)
            packet.event.raft.message = &packet.message;
        else if (packet.event.kind == NODE_UNSENT)
            packet.event.unsent.numbers = &packet.number;
        step(f, &f->nodes[packet.to], &packet.event, &packets);
        free(packet.entries);
        free(packet.bytes);
    }
}

/* Time goes on, in steps of a millisecond. */
static void run(struct fixture *f, gavel_ns length)
{
    for (gavel_ns until = f->now + length; f->now < until; f->now += NS_PER_MS)
        for (unsigned i = 0; i < f->count; i++) {
            if (f->now >= node_timer_at(&f->nodes[i].node))
                feed(f, i, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_TIMER}});
            if (f->now >= node_tick_at(&f->nodes[i].node) || f->now / NS_PER_MS % 20 == 0)
                feed(f, i, (struct node_event){.kind = NODE_TICK});
        }
}

static unsigned leader_of(const struct fixture *f)
{
    unsigned leader = NODES;

    for (unsigned i = 0; i < f->count; i++)
        if (f->nodes[i].works) {
            assert_int_equal(leader, NODES);
            leader = i;
        }
    assert_true(leader < NODES);
    return leader;
}

static void ask(struct fixture *f, unsigned which, uint64_t session, uint64_t id, Gavel__Op *op)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    request.tag = id;
    request.session = session;
    request.id = session ? id : 0;
    request.n_ops = 1;
    request.ops = &op;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    feed(f, which,
         (struct node_event){.kind = NODE_CLIENT,
                             .client = {.id = 5, .frame = &frame, .has_more = f->nodes[which].has_more}});
}

static void open_session(struct fixture *f, unsigned which, uint64_t session, int32_t pid)
{
    Gavel__OpenSession open;
    Gavel__Process process;
    Gavel__Op op;

    gavel__open_session__init(&open);
    gavel__process__init(&process);
    gavel__op__init(&op);
    process.pid = pid;
    process.boot_id = (char *)(uintptr_t) "01234567-0123-0123-0123-0123456789ab";
    open.session = session;
    open.ttl_ms = 60000;
    open.process = pid ? &process : NULL;
    op.what_case = GAVEL__OP__WHAT_OPEN_SESSION;
    op.open_session = &open;
    ask(f, which, session, 1, &op);
}

static void campaign(struct fixture *f, unsigned which, uint64_t session)
{
    Gavel__Campaign message;
    Gavel__Op op;

    gavel__campaign__init(&message);
    gavel__op__init(&op);
    message.group = (char *)(uintptr_t) "jobs";
    message.id = (char *)(uintptr_t) "web";
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &message;
    ask(f, which, session, 2, &op);
}

/* ---- tests ---- */

static void test_a_request_at_the_leader_goes_through_the_log_and_is_answered(void **state)
{
    struct fixture *f = *state;

    begin(f, 1);
    run(f, NS_PER_S);
    assert_int_equal(leader_of(f), 0);
    open_session(f, 0, 77, 0);
    assert_int_equal(f->nodes[0].answers, 1);
    assert_int_equal(f->nodes[0].status, GAVEL_OK);
    campaign(f, 0, 77);
    assert_int_equal(f->nodes[0].answers, 2);
    assert_int_equal(f->nodes[0].status, GAVEL_OK);
    assert_true(f->nodes[0].epoch > 0);
    assert_false(f->changed_table_unasked);
    assert_int_equal(f->nodes[0].forwards, 0);
}

static void test_a_request_at_a_follower_is_forwarded_and_all_tables_are_the_same(void **state)
{
    struct fixture *f = *state;
    unsigned follower;

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    follower = (leader_of(f) + 1) % 3;
    open_session(f, follower, 77, 0);
    campaign(f, follower, 77);
    assert_int_equal(f->nodes[follower].answers, 2);
    assert_int_equal(f->nodes[follower].status, GAVEL_OK);
    run(f, 200 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++) {
        assert_non_null(table_group_find(&f->nodes[i].table, "jobs"));
        assert_int_equal(table_digest(&f->nodes[i].table), table_digest(&f->nodes[0].table));
    }
    assert_false(f->changed_table_unasked);
}

static void test_an_answer_waits_for_the_write_that_it_promises(void **state)
{
    struct fixture *f = *state;
    unsigned leader;

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    leader = leader_of(f);
    for (unsigned i = 0; i < 3; i++)
        f->nodes[i].holds_disk = true;
    open_session(f, leader, 77, 0);
    assert_int_equal(f->nodes[leader].answers, 0);
    assert_true(f->nodes[(leader + 1) % 3].node.held_count > 0);
    for (unsigned i = 0; i < 3; i++)
        f->nodes[i].holds_disk = i == leader; /* the others are a majority */
    run(f, 100 * NS_PER_MS);
    assert_int_equal(f->nodes[leader].answers, 1);
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
    f->nodes[leader].holds_disk = false;
    run(f, 10 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f->nodes[i].node.held_count, 0);
}

static void test_what_is_asked_together_is_one_write(void **state)
{
    struct fixture *f = *state;
    uint64_t written;

    begin(f, 1);
    run(f, NS_PER_S);
    f->nodes[0].has_more = true;
    written = f->nodes[0].written;
    open_session(f, 0, 77, 0);
    open_session(f, 0, 78, 0);
    assert_int_equal(f->nodes[0].written, written); /* nothing is proposed yet */
    f->nodes[0].has_more = false;
    open_session(f, 0, 79, 0);
    assert_int_equal(f->nodes[0].written, written + 1);
    assert_int_equal(f->nodes[0].answers, 3);
    assert_int_equal(f->nodes[0].table.session_count, 3);
}

static void test_a_request_that_cannot_be_sent_is_sent_later(void **state)
{
    struct fixture *f = *state;
    unsigned leader, follower;

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    leader = leader_of(f);
    follower = (leader + 1) % 3;
    f->nodes[follower].is_cut = true;
    open_session(f, follower, 77, 0);
    run(f, 20 * NS_PER_MS);
    assert_int_equal(f->nodes[follower].answers, 0);
    assert_true(f->nodes[follower].forwards > 1);
    f->nodes[follower].is_cut = false;
    run(f, 50 * NS_PER_MS);
    assert_int_equal(f->nodes[follower].answers, 1);
    assert_int_equal(f->nodes[follower].status, GAVEL_OK);
}

static void test_processes_are_watched_and_their_deaths_end_their_sessions(void **state)
{
    struct fixture *f = *state;
    Gavel__CloseSession close;
    Gavel__Op op;
    const Gavel__Op *ops[] = {&op};
    unsigned follower;

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    follower = (leader_of(f) + 1) % 3;
    open_session(f, follower, 77, 4711);
    run(f, 200 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f->nodes[i].watched, 1);
    gavel__close_session__init(&close);
    gavel__op__init(&op);
    close.session = 77;
    close.ending = GAVEL__ENDING__ENDING_DEAD;
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    feed(f, follower, (struct node_event){.kind = NODE_DEATHS, .deaths = {.ops = ops, .count = 1}});
    run(f, 200 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        assert_null(table_session_find(&f->nodes[i].table, 77));
}

static void test_a_leader_that_steps_down_answers_whoever_waits(void **state)
{
    struct fixture *f = *state;
    unsigned leader;

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    leader = leader_of(f);
    for (unsigned i = 0; i < 3; i++)
        f->nodes[i].holds_disk = i != leader;
    open_session(f, leader, 77, 0);
    assert_int_equal(f->nodes[leader].answers, 0);
    feed(f, leader, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_STEP_DOWN}});
    assert_false(f->nodes[leader].works);
    feed(f, leader, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_WORK_STOPPED}});
    for (unsigned i = 0; i < 3; i++)
        f->nodes[i].holds_disk = false;
    run(f, 3 * NS_PER_S);
    assert_int_equal(f->nodes[leader].answers, 1); /* by the next leader: a session's request is carried on */
    assert_int_equal(f->nodes[leader].status, GAVEL_OK);
    assert_non_null(table_session_find(&f->nodes[leader].table, 77));
}

static void test_bytes_that_are_no_frame_change_nothing(void **state)
{
    struct fixture *f = *state;
    const uint8_t bytes[] = {0xff, 0x01, 0x02};

    begin(f, 3);
    run(f, 2 * NS_PER_S);
    for (unsigned is_answer = 0; is_answer < 2; is_answer++)
        feed(f, leader_of(f),
             (struct node_event){.kind = NODE_FORWARDED,
                                 .forwarded = {.peer = 2,
                                               .is_answer = is_answer,
                                               .number = 3,
                                               .incarnation = 1,
                                               .bytes = bytes,
                                               .size = sizeof bytes}});
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(f->nodes[i].answers, 0);
        assert_int_equal(f->nodes[i].forwards, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_at_the_leader_goes_through_the_log_and_is_answered),
        TEST(test_a_request_at_a_follower_is_forwarded_and_all_tables_are_the_same),
        TEST(test_an_answer_waits_for_the_write_that_it_promises),
        TEST(test_what_is_asked_together_is_one_write),
        TEST(test_a_request_that_cannot_be_sent_is_sent_later),
        TEST(test_processes_are_watched_and_their_deaths_end_their_sessions),
        TEST(test_a_leader_that_steps_down_answers_whoever_waits),
        TEST(test_bytes_that_are_no_frame_change_nothing),
    };

    return cmocka_run_group_tests_name("node step", tests, NULL, NULL);
}
