/* SPDX-License-Identifier: Apache-2.0 */

#include "members_fixture.h"

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

static raft_id id_of_name(const char *name) { return (raft_id)(name[0] - 'a' + 1); }

void introduce(struct node *node)
{
    static const struct node_described nodes[NODES] = {{.id = 1, .name = "a", .address = "a:1", .api = ""},
                                                       {.id = 2, .name = "b", .address = "b:1", .api = ""},
                                                       {.id = 3, .name = "c", .address = "c:1", .api = ""},
                                                       {.id = 4, .name = "d", .address = "d:1", .api = ""}};

    node_introduce(node, id_of_name, nodes, NODES);
}

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct raft_settings settings;

    if (!f)
        return -1;
    raft_settings_default(&settings);
    settings.verify = verify_cb;
    settings.sign = sign_cb;
    settings.auto_failover = true;
    f->now = 1000 * NS_PER_S;
    assert_int_equal(node_actions_init(&f->actions), GAVEL_OK);
    for (unsigned i = 0; i < NODES; i++) {
        struct raft_restore restore = {.seed = i + 1};
        struct gavel_error error = {0};

        restore.state = (struct raft_state){.cluster = 7, .generation = 1, .id = i + 1, .incarnation = 1};
        for (unsigned k = 0; k < 3 && i < 3; k++)
            restore.snapshot.config.members[restore.snapshot.config.count++] =
                (struct raft_member){.id = k + 1, .is_voter = true};
        assert_int_equal(
            node_init(&f->nodes[i].node, &f->nodes[i].table, &settings, &restore, f->now, &error), GAVEL_OK);
        introduce(&f->nodes[i].node);
    }
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < NODES; i++) {
        node_done(&f->nodes[i].node);
        table_done(&f->nodes[i].table);
    }
    node_actions_done(&f->actions);
    free(f);
    return 0;
}

static void send(struct fixture *f, const struct one *one, const struct raft_message *message)
{
    struct packet *packet = &f->packets[(f->first + f->count) % PACKETS_MAX];

    if (one->is_cut || f->nodes[message->to - 1].is_cut)
        return;
    assert_true(f->count < PACKETS_MAX);
    packet->to = (unsigned)message->to - 1;
    packet->message = *message;
    if (message->kind == RAFT_MSG_APPEND && message->append.entry_count > 0) {
        assert_true(message->append.entry_count <= 64);
        memcpy(packet->entries, message->append.entries,
               message->append.entry_count * sizeof *message->append.entries);
        packet->message.append.entries = packet->entries;
    }
    f->count++;
}

static void carry_out(struct fixture *f, struct one *one)
{
    for (size_t i = 0; i < f->actions.count; i++) {
        const struct node_action *action = &f->actions.items[i];

        if (action->kind == NODE_PERSIST)
            one->written = action->persist->seq;
        else if (action->kind == NODE_SEND)
            send(f, one, action->message);
        else if (action->kind == NODE_WORK_STOP)
            one->must_stop = true;
        else if (action->kind == NODE_FAIL)
            one->failure = action->failure;
        else if (action->kind == NODE_ORDERED) {
            one->answers++;
            one->status = action->ordered.status;
            (void)snprintf(one->text, sizeof one->text, "%s", action->ordered.text);
        }
    }
}

enum gavel_status step(struct fixture *f, struct one *one, struct node_event event)
{
    enum gavel_status status;

    event.now = f->now;
    node_step(&one->node, &event, &f->actions);
    status = f->actions.status;
    carry_out(f, one);
    while (one->failure == GAVEL_OK && node_has_next(&one->node)) {
        node_step(&one->node, &(struct node_event){.kind = NODE_NEXT, .now = f->now}, &f->actions);
        carry_out(f, one);
    }
    return status;
}

/* Disks, and work that stops at once. */
static bool settle(struct fixture *f)
{
    bool has_done = false;

    for (unsigned i = 0; i < NODES; i++) {
        struct one *one = &f->nodes[i];

        if (one->failure != GAVEL_OK)
            continue;
        if (one->synced < one->written) {
            one->synced = one->written;
            (void)step(
                f, one,
                (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_PERSISTED, .seq = one->synced}});
            has_done = true;
        }
        if (one->must_stop && !one->stops_late) {
            one->must_stop = false;
            (void)step(f, one, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_WORK_STOPPED}});
            has_done = true;
        }
    }
    return has_done;
}

enum gavel_status feed(struct fixture *f, unsigned which, struct node_event event)
{
    enum gavel_status status = step(f, &f->nodes[which], event);

    while (f->count > 0 || settle(f)) {
        static struct packet packet;

        if (f->count == 0)
            continue;
        packet = f->packets[f->first];
        f->first = (f->first + 1) % PACKETS_MAX;
        f->count--;
        if (packet.message.kind == RAFT_MSG_APPEND)
            packet.message.append.entries = packet.entries;
        if (!f->nodes[packet.to].is_cut && f->nodes[packet.to].failure == GAVEL_OK)
            (void)step(f, &f->nodes[packet.to],
                       (struct node_event){.kind = NODE_RAFT,
                                           .raft = {.kind = RAFT_RECEIVE, .message = &packet.message}});
    }
    return status;
}

void run(struct fixture *f, gavel_ns length)
{
    for (gavel_ns until = f->now + length; f->now < until; f->now += NS_PER_MS)
        for (unsigned i = 0; i < NODES; i++) {
            if (f->nodes[i].failure != GAVEL_OK)
                continue;
            if (f->now >= node_timer_at(&f->nodes[i].node))
                (void)feed(f, i, (struct node_event){.kind = NODE_RAFT, .raft = {.kind = RAFT_TIMER}});
            if (f->now / NS_PER_MS % 100 == 0)
                (void)feed(f, i, (struct node_event){.kind = NODE_TICK});
        }
}

unsigned leader_of(const struct fixture *f)
{
    for (unsigned i = 0; i < NODES; i++)
        if (f->nodes[i].node.claim.is_held)
            return i;
    fail_msg("nobody works");
    return 0;
}

enum gavel_status order(struct fixture *f, unsigned which, enum node_order_kind kind, const char *name)
{
    struct node_order order = {.id = 1, .kind = kind};

    (void)snprintf(order.name, sizeof order.name, "%s", name);
    (void)snprintf(order.address, sizeof order.address, "%s:1", name);
    return feed(f, which, (struct node_event){.kind = NODE_ORDER, .order = &order});
}

const char *name_of(unsigned which)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    return names[which];
}

const struct raft_member *member(const struct fixture *f, unsigned which)
{
    return raft_config_find(&f->nodes[leader_of(f)].node.raft.config, which + 1);
}

bool has_record(const struct fixture *f, unsigned which, struct member_record *ret_record)
{
    return member_record_find(&f->nodes[leader_of(f)].table, name_of(which), ret_record);
}
