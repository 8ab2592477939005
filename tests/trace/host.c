/* SPDX-License-Identifier: Apache-2.0 */

#include "trace/host.h"

#include <stdlib.h>
#include <string.h>

struct host *host_find(struct cluster *cluster, raft_id id)
{
    return id >= 1 && id <= NODES_MAX && cluster->hosts[id].is_made ? &cluster->hosts[id] : NULL;
}

static gavel_ns clock_at(const struct host *host, gavel_ns real)
{
    gavel_ns since = real - host->clock_from;

    return host->clock_base + since + since / 1000 * host->clock_ppm / 1000;
}

gavel_ns host_clock(const struct cluster *cluster, const struct host *host)
{
    return clock_at(host, cluster->now);
}

/* The first real instant at which the node's clock shows `local`, or now if it already does. */
gavel_ns host_real(const struct cluster *cluster, const struct host *host, gavel_ns local)
{
    gavel_ns ahead = local - host_clock(cluster, host);
    gavel_ns real = cluster->now;

    if (local == NEVER)
        return NEVER;
    if (ahead <= 0)
        return real;
    real += ahead - ahead / 1000000 * host->clock_ppm;
    while (clock_at(host, real) >= local && real > cluster->now)
        real -= 2 * NS_PER_US;
    while (clock_at(host, real) < local)
        real++;
    return real;
}

struct raft_entry word_entry(uint64_t number, const char *word, uint8_t bytes[WORD_BYTES_MAX])
{
    char key[24];
    struct table_command command = {.kind = TABLE_PUT, .key = (const uint8_t *)key};
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes};

    command.key_size = (size_t)snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    command.value = (const uint8_t *)word;
    command.value_size = strlen(word);
    entry.size = (uint32_t)table_command_size(&command);
    if (entry.size == 0 || entry.size > WORD_BYTES_MAX)
        abort();
    table_command_encode(&command, bytes);
    return entry;
}

const char *word_of(const struct raft_entry *entry, int *ret_size)
{
    struct table_command command;

    if (table_command_decode(entry->data, entry->size, &command) != GAVEL_OK)
        abort();
    if (command.kind == TABLE_OPS) {
        *ret_size = (int)strlen("(request)");
        return "(request)";
    }
    if (member_record_is_key(command.key, command.key_size)) { /* of nodes with names */
        const char *text = command.kind == TABLE_PUT ? "(record of a member)" : "(a record goes)";

        *ret_size = (int)strlen(text);
        return text;
    }
    *ret_size = (int)command.value_size;
    return (const char *)command.value;
}

static int by_revision(const void *a, const void *b)
{
    const struct table_item *left = *(struct table_item *const *)a, *right = *(struct table_item *const *)b;

    return (left->revision > right->revision) - (left->revision < right->revision);
}

void host_tell_words(struct host *host, FILE *out)
{
    struct table_item **items = calloc(host->table.count + 1, sizeof(struct table_item *));

    if (!items)
        abort();
    for (size_t i = 0; i < host->table.count; i++)
        items[i] = host->table.items[i];
    qsort(items, host->table.count, sizeof(struct table_item *), by_revision);
    for (size_t i = 0; i < host->table.count; i++)
        fprintf(out, "%s%.*s", i > 0 ? " " : "", (int)items[i]->value_size,
                (const char *)table_item_value(items[i]));
    free(items);
}

void host_start(struct cluster *cluster, struct host *host)
{
    struct disk *disk = &host->disk;
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
        .seed = cluster->seed * 1000 + host->id * 100 + disk->state.incarnation,
    };
    node_done(&host->node);
    table_done(&host->table);
    host->is_alive = node_init(&host->node, &host->table, &host->settings, &restore,
                               host_clock(cluster, host), &error) == GAVEL_OK;
    if (!host->is_alive) {
        fprintf(cluster->out, "refused: %s\n", error.message);
        return;
    }
    order_introduce(cluster, host);
    host->applied = disk->snapshot.index;
    host->stopped_at = NEVER;
}

void host_crash(struct cluster *cluster, struct host *host, bool is_kept)
{
    if (host->is_working)
        tell(cluster, host, "crashes, and its work with it");
    else
        tell(cluster, host, "crashes");
    while (is_kept && host->disk.write_count > 0)
        (void)disk_sync(&host->disk); /* what it wrote is there, but it never learned so */
    disk_forget(&host->disk);
    host->is_alive = host->is_hung = host->is_working = false;
    host->stopped_at = NEVER;
}

static void apply(struct cluster *cluster, struct host *host, raft_index first, raft_index last)
{
    char *line = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&line, &size);
    bool is_load_only = true;

    for (raft_index i = first; i <= last; i++) {
        const struct raft_entry *entry = raft_log_at(&host->node.raft.log, i);
        int length = 0;
        const char *word = entry && entry->kind == RAFT_ENTRY_DATA ? word_of(entry, &length) : "";
        bool is_load = word[0] == '.';

        referee_applied(cluster, host, i, entry);
        if (!entry)
            continue;
        is_load_only = is_load_only && is_load;
        fprintf(text, " %llu", (unsigned long long)i);
        if (entry->kind == RAFT_ENTRY_DATA) {
            fprintf(text, ":%.*s", length, word);
        } else {
            fprintf(text, ":%s", entry->kind == RAFT_ENTRY_NOOP ? "(no-op)" : "(members)");
        }
    }
    fclose(text);
    if (last - first >= 8 && !is_load_only)
        tell(cluster, host, "applies %llu … %llu", (unsigned long long)first, (unsigned long long)last);
    else if (!is_load_only)
        tell(cluster, host, "applies%s", line);
    free(line);
}

static void take_snapshot(struct cluster *cluster, struct host *host)
{
    const struct raft_snapshot *snapshot = &host->node.raft.snapshot;

    host->applied = snapshot->index;
    tell(cluster, host, "its table is the snapshot up to %llu:%llu", (unsigned long long)snapshot->index,
         (unsigned long long)snapshot->term);
}

static void claim(struct cluster *cluster, struct host *host, const struct raft_action *action)
{
    gavel_ns deadline = host_real(cluster, host, raft_deadline(&host->node.raft));

    host->is_working = true;
    host->work_term = action->claim.term;
    host->work_epoch = action->claim.lease_epoch;
    if (deadline == NEVER)
        tell(cluster, host, "CLAIMS: works with token %llu/%llu, alone and for ever",
             (unsigned long long)action->claim.term, (unsigned long long)action->claim.lease_epoch);
    else
        tell(cluster, host, "CLAIMS: works with token %llu/%llu, for now until %.4f",
             (unsigned long long)action->claim.term, (unsigned long long)action->claim.lease_epoch,
             seconds(deadline));
    referee_claim(cluster, host);
}

void host_carry(struct cluster *cluster, struct host *host, const struct raft_action *action)
{
    switch (action->kind) {
    case RAFT_PERSIST:
        disk_write(cluster, host, &action->persist);
        break;
    case RAFT_SEND:
        break;
    case RAFT_APPLY:
        apply(cluster, host, action->apply.first, action->apply.last);
        break;
    case RAFT_RESTORE:
        take_snapshot(cluster, host);
        break;
    case RAFT_CLAIM:
        claim(cluster, host, action);
        break;
    case RAFT_STOP_WORK:
        tell(cluster, host, "STOPS its work: %s", raft_stop_name(action->stop.reason));
        host->stopped_at = cluster->now + host->stop_takes;
        break;
    case RAFT_TELL:
        tell_news(cluster, host, action);
        break;
    }
}

gavel_ns host_due_at(const struct cluster *cluster, const struct host *host)
{
    gavel_ns at;

    if (!host->is_alive)
        return NEVER;
    if (host->is_hung)
        return host->is_working ? host->must_stop_by : NEVER;
    at = ns_min(host->stopped_at, host_real(cluster, host, raft_wake_at(&host->node.raft)));
    if (host->disk.write_count > 0)
        at = ns_min(at, host->disk.writes[0].at);
    if (cluster->clients || cluster->has_names)
        at = ns_min(at, ns_min(host->tick_at, host_real(cluster, host, node_tick_at(&host->node))));
    return at;
}

static void finish_write(struct cluster *cluster, struct host *host)
{
    const gavel_ns at = host->disk.writes[0].at;

    if (host->disk.fails) {
        tell(cluster, host, "its disk fails");
        disk_forget(&host->disk);
        (void)host_feed(cluster, host, (struct raft_event){.kind = RAFT_DISK_FAILED});
        return;
    }
    do {
        if (!disk_sync(&host->disk))
            alarm_raise(cluster, host, "its log on disk has a gap");
    } while (host->disk.batches && host->disk.write_count > 0 && host->disk.writes[0].at == at);
    (void)host_feed(cluster, host, (struct raft_event){.kind = RAFT_PERSISTED, .seq = host->disk.synced});
}

void host_do_due(struct cluster *cluster, struct host *host)
{
    if (host->is_hung) {
        host->is_working = false;
        tell(cluster, host, "hangs beyond its deadline: its guard has ended the work");
    } else if (host->disk.write_count > 0 && host->disk.writes[0].at <= cluster->now) {
        finish_write(cluster, host);
    } else if (host->stopped_at <= cluster->now) {
        host->stopped_at = NEVER;
        referee_stopped(cluster, host);
        host->is_working = false;
        tell(cluster, host, "its work has stopped");
        (void)host_feed(cluster, host, (struct raft_event){.kind = RAFT_WORK_STOPPED});
    } else if ((cluster->clients || cluster->has_names) &&
               (host->tick_at <= cluster->now || node_tick_at(&host->node) <= host_clock(cluster, host))) {
        host->tick_at = cluster->now + TICK_EVERY;
        (void)host_step(cluster, host, (struct node_event){.kind = NODE_TICK});
        order_tell_status(cluster, host);
    } else {
        (void)host_feed(cluster, host, (struct raft_event){.kind = RAFT_TIMER});
    }
}

void host_free(struct host *host)
{
    node_done(&host->node);
    table_done(&host->table);
    disk_free(&host->disk);
    if (host->copy.is_made)
        disk_free(&host->copy);
}
