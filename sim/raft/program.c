/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/program.h"

#include "sim/raft/members.h"
#include "sim/raft/operator.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

#define STREAM (STREAM_FAULTS + FAULT_ORDERS)

/* What they know besides is the same: only who uses it when matters here. */
enum { OLD = TABLE_VERSION, NEW = TABLE_VERSION + 1 };

/* The version that an entry says the cluster uses from now on; 0: it says nothing of that. */
static uint32_t version_of(const struct raft_entry *entry)
{
    static const char key[] = "gavel/version", field[] = "\"table_version\":";
    struct table_command command;
    char text[128] = "";
    const char *at;

    if (entry->kind != RAFT_ENTRY_DATA ||
        table_command_decode(entry->data, entry->size, &command) != GAVEL_OK || command.kind != TABLE_PUT ||
        command.key_size != strlen(key) || memcmp(command.key, key, command.key_size) != 0 ||
        command.value_size >= sizeof text)
        return 0;
    memcpy(text, command.value, command.value_size);
    at = strstr(text, field);
    return at ? (uint32_t)strtoul(at + strlen(field), NULL, 10) : 0;
}

static void install(struct host *host, uint32_t program)
{
    host->program = program;
    if (program > host->newest_program)
        host->newest_program = program;
}

void program_choose(struct cluster *cluster, struct host *host)
{
    bool is_old = cluster_below(cluster, STREAM, 2) == 0;
    bool is_other = cluster_below(cluster, STREAM, 3) == 0;

    if (!(cluster->profile.faults & FAULT_BIT(FAULT_CRASH)) || cluster->healed != 0)
        install(host, NEW); /* it must not be restarted, or nothing is tried out any more */
    else if (host->program == 0)
        install(host, is_old ? OLD : NEW);
    else if (is_other)
        install(host, host->program == OLD ? NEW : OLD);
    if (host->node.members.version > host->program)
        install(host, NEW); /* the old one does not start: its data say that it is too old */
}

/* A connection is made some time after both are up; and a node hears only members. */
void program_greet(struct cluster *cluster, struct host *host, const struct host *from)
{
    const struct raft_state *state = &from->disk.state;
    uint64_t *greeted = &host->operator.greeted[from->slot];
    const struct node_described said = {.id = from->id,
                                        .name = from->label,
                                        .address = "",
                                        .api = "",
                                        .table_version = from->program,
                                        .directory = state->directory,
                                        .incarnation = state->incarnation};
    bool is_late = cluster_below(cluster, STREAM, 2) == 0;

    if (!host_is_up(from) || *greeted == state->incarnation || is_late ||
        !raft_config_find(&host->node.raft.config, from->id))
        return;
    *greeted = state->incarnation;
    (void)host_feed(cluster, host,
                    (struct node_event){.kind = NODE_GREETED, .greeting = &said}); /* likewise */
}

void program_check_proposed(struct cluster *cluster, const struct host *host)
{
    const struct raft *raft = &host->node.raft;
    const struct raft_entry *entry = raft_log_at(&raft->log, raft_log_last(&raft->log));
    uint32_t version = entry ? version_of(entry) : 0;

    for (unsigned i = 0; i < raft->config.count && version > 0; i++) {
        const struct host *member = &cluster->hosts[raft->config.members[i].id - 1];

        if (member->newest_program < version)
            cluster_violate(cluster, RAFT_INVARIANT_VERSION,
                            "%s has the cluster use version %u of the table, and %s has never known it",
                            host->label, version, member->label);
    }
    if (version == NEW)
        cluster_see(cluster, SIGHT_RAISED);
}

void program_check_applied(struct cluster *cluster, const struct host *host, const struct raft_entry *entry)
{
    uint32_t version = version_of(entry);

    if (version > host->program)
        cluster_violate(cluster, RAFT_INVARIANT_VERSION,
                        "%s goes on by version %u of the table, and its program knows %u", host->label,
                        version, host->program);
}

void program_fail(struct cluster *cluster, struct host *host)
{
    gavel_ns down_for = cluster_length(cluster, STREAM, NS_PER_MS, NS_PER_S);

    if (host->program == NEW)
        cluster_violate(cluster, RAFT_INVARIANT_VERSION, "%s calls the newest program too old", host->label);
    cluster_see(cluster, SIGHT_TOO_OLD);
    host_die(cluster, host, true, "ends, because its program is too old");
    install(host, NEW);
    (void)cluster_push(cluster, cluster->now + down_for, EVENT_START, host->slot);
}

bool program_is_old(const struct cluster *cluster, const struct host *host)
{
    return operators_exist(cluster) && host->program == OLD;
}

void program_check_used(struct cluster *cluster, const struct host *leader)
{
    const struct raft_config *config = &leader->node.raft.config;

    for (unsigned i = 0; i < config->count; i++) {
        const struct host *member = &cluster->hosts[config->members[i].id - 1];
        bool is_healed = cluster->healed & 1U << member->slot;

        if (!is_healed || !host_is_up(member) || config->members[i].is_refused || member->ghost)
            return; /* who has not been heard holds it up */
    }
    if (leader->node.members.version != NEW)
        cluster_violate(cluster, RAFT_INVARIANT_USED,
                        "all members know version %d of the table, and %s has the cluster use %u", NEW,
                        leader->label, leader->node.members.version);
}
