/* SPDX-License-Identifier: Apache-2.0 */

#include "trace/node.h"

#include <stdlib.h>
#include <string.h>

struct node *node_find(struct cluster *cluster, raft_id id)
{
    return id >= 1 && id <= NODES_MAX && cluster->nodes[id].is_made ? &cluster->nodes[id] : NULL;
}

static gavel_ns clock_at(const struct node *node, gavel_ns real)
{
    gavel_ns since = real - node->clock_from;

    return node->clock_base + since + since / 1000 * node->clock_ppm / 1000;
}

gavel_ns node_clock(const struct cluster *cluster, const struct node *node)
{
    return clock_at(node, cluster->now);
}

/* The first real instant at which the node's clock shows `local`, or now if it already does. */
gavel_ns node_real(const struct cluster *cluster, const struct node *node, gavel_ns local)
{
    gavel_ns ahead = local - node_clock(cluster, node);
    gavel_ns real = cluster->now;

    if (local == NEVER)
        return NEVER;
    if (ahead <= 0)
        return real;
    real += ahead - ahead / 1000000 * node->clock_ppm;
    while (clock_at(node, real) >= local && real > cluster->now)
        real -= 2 * NS_PER_US;
    while (clock_at(node, real) < local)
        real++;
    return real;
}

/* The bytes of a snapshot as text: it was a table, and has no end of its own. */
static char *text_of(const struct raft_snapshot *snapshot)
{
    char *text = calloc(1, snapshot->size + 1);

    if (text && snapshot->size > 0)
        memcpy(text, snapshot->data, snapshot->size);
    return text;
}

void node_start(struct cluster *cluster, struct node *node)
{
    struct disk *disk = &node->disk;
    struct raft_restore restore;
    struct gavel_error error;

    disk->state.incarnation++; /* durable before anything else */
    disk->state.start = ++cluster->starts;
    disk->synced = 0;
    restore = (struct raft_restore){
        .state = disk->state,
        .snapshot = disk->snapshot,
        .entries = disk->entries,
        .entry_count = disk->entry_count,
        .seed = cluster->seed * 1000 + node->id * 100 + disk->state.incarnation,
    };
    raft_done(&node->raft);
    memset(&node->raft, 0, sizeof node->raft);
    node->is_alive =
        raft_init(&node->raft, &cluster->settings, &restore, node_clock(cluster, node), &error) == GAVEL_OK;
    if (!node->is_alive) {
        fprintf(cluster->out, "refused: %s\n", error.message);
        return;
    }
    free(node->table);
    node->table = text_of(&disk->snapshot);
    node->applied = disk->snapshot.index;
    node->stopped_at = NEVER;
}

void node_crash(struct cluster *cluster, struct node *node, bool is_kept)
{
    if (node->is_working)
        tell(cluster, node, "crashes, and its work with it");
    else
        tell(cluster, node, "crashes");
    while (is_kept && node->disk.write_count > 0)
        (void)disk_sync(&node->disk); /* what it wrote is there, but it never learned so */
    disk_forget(&node->disk);
    packets_free(&node->waiting);
    node->is_alive = node->is_hung = node->is_working = false;
    node->stopped_at = NEVER;
}

/* Of a node before a step. */
struct node_before {
    enum raft_role role;
    raft_term term;
    raft_id leader;
    raft_index config_index;
};

static void apply(struct cluster *cluster, struct node *node, raft_index first, raft_index last)
{
    char *line = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&line, &size);
    bool is_load_only = true;

    for (raft_index i = first; i <= last; i++) {
        const struct raft_entry *entry = raft_log_at(&node->raft.log, i);
        bool is_load = entry && entry->kind == RAFT_ENTRY_DATA && entry->data[0] == '.';

        referee_applied(cluster, node, i, entry);
        if (!entry)
            continue;
        is_load_only = is_load_only && is_load;
        fprintf(text, " %llu", (unsigned long long)i);
        if (entry->kind == RAFT_ENTRY_DATA) {
            char *table = NULL;

            if (asprintf(&table, "%s%s%.*s", node->table, node->table[0] ? " " : "", (int)entry->size,
                         (const char *)entry->data) < 0)
                abort();
            free(node->table);
            node->table = table;
            fprintf(text, ":%.*s", (int)entry->size, (const char *)entry->data);
        } else {
            fprintf(text, ":%s", entry->kind == RAFT_ENTRY_NOOP ? "(no-op)" : "(members)");
        }
    }
    fclose(text);
    if (last - first >= 8 && !is_load_only)
        tell(cluster, node, "applies %llu … %llu", (unsigned long long)first, (unsigned long long)last);
    else if (!is_load_only)
        tell(cluster, node, "applies%s", line);
    free(line);
}

static void take_snapshot(struct cluster *cluster, struct node *node)
{
    const struct raft_snapshot *snapshot = &node->raft.snapshot;

    free(node->table);
    node->table = text_of(snapshot);
    node->applied = snapshot->index;
    tell(cluster, node, "its table is the snapshot up to %llu:%llu", (unsigned long long)snapshot->index,
         (unsigned long long)snapshot->term);
}

static void claim(struct cluster *cluster, struct node *node, const struct raft_action *action)
{
    gavel_ns deadline = node_real(cluster, node, raft_deadline(&node->raft));

    node->is_working = true;
    node->work_term = action->claim.term;
    node->work_epoch = action->claim.lease_epoch;
    if (deadline == NEVER)
        tell(cluster, node, "CLAIMS: works with token %llu/%llu, alone and for ever",
             (unsigned long long)action->claim.term, (unsigned long long)action->claim.lease_epoch);
    else
        tell(cluster, node, "CLAIMS: works with token %llu/%llu, for now until %.4f",
             (unsigned long long)action->claim.term, (unsigned long long)action->claim.lease_epoch,
             seconds(deadline));
    referee_claim(cluster, node);
}

static void carry(struct cluster *cluster, struct node *node, const struct raft_action *action,
                  struct packets *leaving)
{
    struct packet packet;

    switch (action->kind) {
    case RAFT_PERSIST:
        disk_write(cluster, node, &action->persist);
        break;
    case RAFT_SEND:
        packet = (struct packet){.after = action->send.after, .message = action->send.message};
        packets_add(packet.after > node->disk.synced ? &node->waiting : leaving, &packet);
        break;
    case RAFT_APPLY:
        apply(cluster, node, action->apply.first, action->apply.last);
        break;
    case RAFT_RESTORE:
        take_snapshot(cluster, node);
        break;
    case RAFT_CLAIM:
        claim(cluster, node, action);
        break;
    case RAFT_STOP_WORK:
        tell(cluster, node, "STOPS its work: %s", raft_stop_name(action->stop.reason));
        node->stopped_at = cluster->now + node->stop_takes;
        break;
    case RAFT_READ_READY:
        tell(cluster, node, "read %llu may be answered, from index %llu on",
             (unsigned long long)action->read.id, (unsigned long long)action->read.index);
        break;
    case RAFT_READ_LOST:
        tell(cluster, node, "read %llu cannot be answered here", (unsigned long long)action->read.id);
        break;
    case RAFT_TELL:
        tell_news(cluster, node, action);
        break;
    }
}

static void leave(struct cluster *cluster, struct node *node, struct packets *leaving)
{
    tell_sends(cluster, node, leaving);
    for (size_t i = 0; i < leaving->count; i++)
        network_send(cluster, node->id, &leaving->items[i].message);
    packets_free(leaving);
}

/* The packets that waited for no more than what is durable now. */
static void leave_waiting(struct cluster *cluster, struct node *node)
{
    struct packets leaving = {0};

    for (size_t i = 0; i < node->waiting.count;) {
        if (node->waiting.items[i].after <= node->disk.synced) {
            packets_add(&leaving, &node->waiting.items[i]);
            packet_done(&node->waiting.items[i]);
            packets_remove(&node->waiting, i);
        } else {
            i++;
        }
    }
    leave(cluster, node, &leaving);
}

/* What is told once a step, from what has changed. */
static void tell_changes(struct cluster *cluster, const struct node *node, const struct node_before *before)
{
    const struct raft *raft = &node->raft;

    if (raft->role != before->role || raft->state.term != before->term)
        tell(cluster, node, "is %s in term %llu", raft_role_name(raft->role),
             (unsigned long long)raft->state.term);
    else if (raft->leader == 0 && before->leader != 0)
        tell(cluster, node, "has no leader");
    if (raft->leader != before->leader && raft->leader != 0 && raft->leader != node->id)
        tell(cluster, node, "follows %c", name_of(raft->leader));
    if (raft->config_index != before->config_index)
        tell_members(cluster, node, "members from now on:");
}

enum gavel_status node_feed(struct cluster *cluster, struct node *node, struct raft_event event)
{
    struct packets leaving = {0};
    const struct node_before before = {node->raft.role, node->raft.state.term, node->raft.leader,
                                       node->raft.config_index};
    enum gavel_status status;

    event.now = node_clock(cluster, node);
    status = raft_step(&node->raft, &event, &cluster->actions);
    tell_changes(cluster, node, &before);
    for (size_t i = 0; i < cluster->actions.count; i++)
        carry(cluster, node, &cluster->actions.items[i], &leaving);
    leave(cluster, node, &leaving);
    referee_check(cluster, node);
    return status;
}

gavel_ns node_due_at(const struct cluster *cluster, const struct node *node)
{
    gavel_ns at;

    if (!node->is_alive)
        return NEVER;
    if (node->is_hung)
        return node->is_working ? node->must_stop_by : NEVER;
    at = ns_min(node->stopped_at, node_real(cluster, node, raft_wake_at(&node->raft)));
    if (node->disk.write_count > 0)
        at = ns_min(at, node->disk.writes[0].at);
    return at;
}

static void finish_write(struct cluster *cluster, struct node *node)
{
    if (node->disk.fails) {
        tell(cluster, node, "its disk fails");
        disk_forget(&node->disk);
        packets_free(&node->waiting);
        (void)node_feed(cluster, node, (struct raft_event){.kind = RAFT_DISK_FAILED});
        return;
    }
    if (!disk_sync(&node->disk))
        alarm_raise(cluster, node, "its log on disk has a gap");
    leave_waiting(cluster, node);
    (void)node_feed(cluster, node, (struct raft_event){.kind = RAFT_PERSISTED, .seq = node->disk.synced});
}

void node_do_due(struct cluster *cluster, struct node *node)
{
    if (node->is_hung) {
        node->is_working = false;
        tell(cluster, node, "hangs beyond its deadline: its guard has ended the work");
    } else if (node->disk.write_count > 0 && node->disk.writes[0].at <= cluster->now) {
        finish_write(cluster, node);
    } else if (node->stopped_at <= cluster->now) {
        node->stopped_at = NEVER;
        referee_stopped(cluster, node);
        node->is_working = false;
        tell(cluster, node, "its work has stopped");
        (void)node_feed(cluster, node, (struct raft_event){.kind = RAFT_WORK_STOPPED});
    } else {
        (void)node_feed(cluster, node, (struct raft_event){.kind = RAFT_TIMER});
    }
}

void node_free(struct node *node)
{
    raft_done(&node->raft);
    disk_free(&node->disk);
    if (node->copy.is_made)
        disk_free(&node->copy);
    packets_free(&node->waiting);
    free(node->table);
}
