/* SPDX-License-Identifier: Apache-2.0 */

#include "core/node/internal.h"

#include "base/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A learner that lacks no more than this is as good as level: the rest comes while it is made a voter. */
#define LEVEL_ENTRIES 100

/* ---- what is known ---- */

/* The first record of the table that is a member's may come with any entry, or with a snapshot. */
static bool read_records(struct node *node)
{
    struct node_members *m = &node->members;

    m->record_count = member_records(node->table, m->records);
    for (size_t i = 0; i < m->record_count; i++)
        m->records[i].id = m->id_of_name(m->records[i].name);
    node_version_read(node);
    return node_addresses_take_records(&m->addresses, m->records, m->record_count);
}

void node_read_records(struct node *node)
{
    if (node->members.id_of_name && read_records(node))
        (void)node_act(node, NODE_ADDRESSES); /* it says all there is to say */
}

void node_applied_record(struct node *node, const struct raft_entry *entry)
{
    struct table_command command;

    if (node->members.id_of_name && entry->kind == RAFT_ENTRY_DATA &&
        table_command_decode(entry->data, entry->size, &command) == GAVEL_OK &&
        (member_record_is_key(command.key, command.key_size) ||
         version_record_is_key(command.key, command.key_size))) {
        node_read_records(node);
        node_reconcile_soon(node); /* records are written one after the other */
    }
}

/*
 * Entries that are in the log, but not known to be committed, say where members are, too. An address is only
 * a hint and does no harm; without it, members that were added later could not find each other again after
 * all were killed, and nothing would ever be committed.
 */
static void read_hints(struct node *node)
{
    for (raft_index index = node->raft.log.base + 1; index <= raft_log_last(&node->raft.log); index++) {
        const struct raft_entry *entry = raft_log_at(&node->raft.log, index);
        struct member_record record;

        if (entry->kind != RAFT_ENTRY_DATA || !member_record_of_command(entry->data, entry->size, &record))
            continue;
        record.id = node->members.id_of_name(record.name);
        (void)node_addresses_take_records(&node->members.addresses, &record, 1);
    }
}

void node_introduce(struct node *node, node_id_of_name *id_of_name, const struct node_described *nodes,
                    size_t count)
{
    node->members.id_of_name = id_of_name;
    for (size_t i = 0; i < count; i++) {
        node_addresses_take_file(&node->members.addresses, &nodes[i]);
        if (nodes[i].id == node->raft.state.id && nodes[i].table_version > 0)
            node->members.knows = nodes[i].table_version;
    }
    (void)read_records(node); /* nobody is dialled yet */
    read_hints(node);
}

/*
 * Strangers come and go, and any of them may turn out to lead us: one that joined while we were away. So all
 * are noted, and those that do not matter are forgotten when there is no room.
 */
void node_take_greeting(struct node *node, const struct node_described *said)
{
    struct node_members *m = &node->members;

    if (m->addresses.count == NODE_ADDRESSES_MAX && !node_addresses_find(&m->addresses, said->id))
        node_addresses_keep(&m->addresses, &node->raft.config, node->raft.leader, m->records,
                            m->record_count);
    if (node_addresses_take_greeting(&m->addresses, said))
        (void)node_act(node, NODE_ADDRESSES); /* likewise */
    node_reconcile_soon(node);
}

const struct member_record *node_record_of(const struct node *node, raft_id id)
{
    for (size_t i = 0; i < node->members.record_count; i++)
        if (node->members.records[i].id == id)
            return &node->members.records[i];
    return NULL;
}

void node_describe_member(const struct node *node, const struct raft_member *member, const char *name,
                          struct member_record *ret_record)
{
    const struct node_address *entry = node_addresses_find(&node->members.addresses, member->id);

    *ret_record = (struct member_record){.id = member->id,
                                         .priority = member->priority,
                                         .is_witness = member->is_witness,
                                         .is_voter = member->is_voter};
    (void)snprintf(ret_record->name, sizeof ret_record->name, "%s", name);
    if (entry) {
        (void)snprintf(ret_record->address, sizeof ret_record->address, "%s", entry->address);
        (void)snprintf(ret_record->api, sizeof ret_record->api, "%s", entry->api);
    }
}

/* ---- changes ---- */

/*
 * Also without work: a leader that cannot hold a lease with the members as they are can take a change back,
 * and Raft lets nobody be added with whom it could not.
 */
bool node_may_change(const struct node *node)
{
    const struct raft *raft = &node->raft;

    return raft->role == RAFT_LEADER && raft->commit >= raft->noop_index &&
           raft->change == RAFT_CHANGE_NONE && !raft->config.is_joint && raft->config_index <= raft->commit &&
           raft->transfer.phase == RAFT_TRANSFER_NONE && !raft->steps_down && !node->leaving.is_stopping;
}

enum gavel_status node_change(struct node *node, const struct node_moment *moment,
                              const struct raft_config *target)
{
    node->actions->change = *target; /* it stays with the event */
    raft_config_sort(&node->actions->change);
    return node_step_raft(node, moment,
                          &(struct raft_event){.kind = RAFT_CHANGE, .change = &node->actions->change});
}

enum gavel_status node_propose_command(struct node *node, const struct node_moment *moment, uint8_t *bytes,
                                       size_t size)
{
    const struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes, .size = (uint32_t)size};
    enum gavel_status status;

    status = node_step_raft(node, moment,
                            &(struct raft_event){.kind = RAFT_PROPOSE, .propose = {&entry, .count = 1}});
    node->actions->event.propose.entries = NULL; /* it was on our stack */
    if (status == GAVEL_OK) {
        node->members.written = raft_log_last(&node->raft.log);
        node->members.written_in = node->raft.state.term;
    }
    free(bytes);
    return status;
}

static struct raft_member *find(struct raft_config *config, raft_id id)
{
    for (size_t i = 0; i < config->count; i++)
        if (config->members[i].id == id)
            return &config->members[i];
    return NULL;
}

void node_take_out(struct raft_config *config, raft_id id)
{
    struct raft_member *member = find(config, id);

    if (!member)
        return;
    config->count--;
    memmove(member, member + 1, (size_t)(&config->members[config->count] - member) * sizeof *member);
}

static bool is_level(const struct raft *raft, raft_id id)
{
    for (size_t i = 0; i < raft->peer_count; i++)
        if (raft->peers[i].id == id)
            return raft->peers[i].match + LEVEL_ENTRIES >= raft->commit && raft->peers[i].match > 0 &&
                   raft->now - raft->peers[i].heard_at < raft->settings.election_max;
    return false;
}

/* The configuration with this one difference made; false if there is none, or it cannot be made yet. */
static bool next_step(const struct node *node, const struct member_record *record, struct raft_config *target)
{
    struct raft_member *member = find(target, record->id);

    if (!member) {
        if (target->count == RAFT_MEMBERS_MAX)
            return false;
        target->members[target->count++] = (struct raft_member){
            .id = record->id, .priority = record->priority, .is_witness = record->is_witness};
        return true;
    }
    if (record->is_voter && !member->is_voter && is_level(&node->raft, record->id) &&
        node->raft.now >= node->members.promotes_from) {
        member->is_voter = true;
        member->is_witness = record->is_witness;
        return true;
    }
    if (PLANTED(DEMOTION_FORGOTTEN))
        return false;
    if (!record->is_voter && member->is_voter) {
        node_take_out(target, record->id);
        return true;
    }
    return false;
}

/* ---- records of members that no operator has named ---- */

static bool is_elsewhere(const struct member_record *record, const struct node_address *entry)
{
    return record->is_learned &&
           (strcmp(record->address, entry->address) != 0 || strcmp(record->api, entry->api) != 0);
}

/* The record of the member as it should be, by its addresses and by what its program knows; false if it is.
 * An operator's word stays one. */
static bool should_write(const struct node *node, const struct raft_member *member,
                         struct member_record *ret_record)
{
    const struct node_address *entry = node_addresses_find(&node->members.addresses, member->id);
    const struct member_record *old = node_record_of(node, member->id);
    struct member_record record = {0};
    bool has_changed = false;

    if (!entry || !entry->name[0] || !entry->address[0] || node_is_being_removed(node, member->id) ||
        node->members.id_of_name(entry->name) != member->id) /* it would be the record of another */
        return false;
    if (old)
        record = *old;
    if (!old || is_elsewhere(old, entry)) {
        node_describe_member(node, member, entry->name, &record);
        record.is_voter = old ? old->is_voter : member->is_voter;
        record.is_learned = true;
        record.generation = node->raft.state.generation;
        record.table_version = old ? old->table_version : 0;
        record.incarnation = old ? old->incarnation : 0;
        has_changed = true;
    }
    has_changed = node_version_note(node, &record) || has_changed;
    *ret_record = record;
    return has_changed;
}

/* Nobody wishes this any more. */
static bool is_void(const struct node *node, const struct member_record *record)
{
    return !raft_config_find(&node->raft.config, record->id) &&
           (record->is_learned || record->generation != node->raft.state.generation);
}

/* Brings the records up to date; one at a time, and the next when it is applied. True: one is under way. */
static bool write_down(struct node *node, const struct node_moment *moment)
{
    const struct node_members *m = &node->members;
    uint8_t *bytes;
    size_t size;

    /* Only for records: a log in which clients write is never applied to its end. */
    if (m->written_in == node->raft.state.term && m->written > node->raft.applied)
        return true;
    for (size_t i = 0; i < m->record_count; i++)
        if (is_void(node, &m->records[i]) &&
            member_record_delete(m->records[i].name, &bytes, &size) == GAVEL_OK) {
            (void)node_propose_command(node, moment, bytes, size); /* refused: the next tick tries again */
            return true;
        }
    for (size_t i = 0; i < node->raft.config.count; i++) {
        struct member_record record;

        if (should_write(node, &node->raft.config.members[i], &record) &&
            member_record_put(&record, &bytes, &size) == GAVEL_OK) {
            (void)node_propose_command(node, moment, bytes, size); /* likewise */
            return true;
        }
    }
    return node_version_raise(node, moment);
}

/* ---- the comparison ---- */

void node_reconcile_soon(struct node *node)
{
    node->members.is_due = node->members.id_of_name && node->raft.role == RAFT_LEADER;
    node->members.next = 0;
}

bool node_reconcile(struct node *node, const struct node_moment *moment)
{
    struct node_members *m = &node->members;

    if (!m->is_due)
        return false;
    if (!node_may_change(node) || (m->next == 0 && write_down(node, moment)))
        m->next = m->record_count;
    while (m->next < m->record_count) {
        const struct member_record *record = &m->records[m->next++];
        struct raft_config target = node->raft.config;

        if (!next_step(node, record, &target))
            continue;
        m->is_due = node_change(node, moment, &target) != GAVEL_OK;
        return true; /* the next record, if this was refused: a step is one step of Raft */
    }
    m->is_due = false;
    return true;
}
