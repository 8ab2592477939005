/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Members as operators want them. A record in the table says what a member
 * shall be (member_record.h); whoever leads compares the records with the
 * configuration of Raft, a few times a second, and makes one change at a time
 * until they agree:
 *
 *     has a record and is no member            add it as a learner; or, if the record is of an earlier
 *                                              generation or was not an operator's word, delete the record
 *     shall be a voter, is a learner, level    make it a voter
 *     shall be a learner, is a voter           take it out; then the first line applies
 *
 * So a change survives the death of the leader that began it. Of members without
 * a record (those the cluster began with) it writes one, so that whoever joins
 * later knows where they are. To remove a member, its record goes first, and
 * then the member itself.
 */
#include "daemon/node/consensus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A learner that lacks no more than this is as good as level: the rest comes while it is made a voter. */
#define LEVEL_ENTRIES 100

/*
 * Also without work: a leader that cannot hold a lease with the members as they are can take a change back,
 * and Raft lets nobody be added with whom it could not.
 */
static bool may_change(const struct consensus *c)
{
    const struct raft *raft = &c->node.raft;

    return raft->role == RAFT_LEADER && raft->commit >= raft->noop_index &&
           raft->change == RAFT_CHANGE_NONE && !raft->config.is_joint && raft->config_index <= raft->commit &&
           raft->transfer.phase == RAFT_TRANSFER_NONE && !raft->steps_down && !c->is_stopping;
}

static enum gavel_status change(struct consensus *c, struct raft_config *target)
{
    raft_config_sort(target);
    return consensus_ask(c, (struct raft_event){.kind = RAFT_CHANGE, .change = target});
}

static struct raft_member *find(struct raft_config *config, raft_id id)
{
    for (size_t i = 0; i < config->count; i++)
        if (config->members[i].id == id)
            return &config->members[i];
    return NULL;
}

static void take_out(struct raft_config *config, raft_id id)
{
    struct raft_member *member = find(config, id);

    if (!member)
        return;
    config->count--;
    memmove(member, member + 1, (size_t)(&config->members[config->count] - member) * sizeof *member);
}

static bool is_level(const struct consensus *c, raft_id id)
{
    for (size_t i = 0; i < c->node.raft.peer_count; i++)
        if (c->node.raft.peers[i].id == id)
            return c->node.raft.peers[i].match + LEVEL_ENTRIES >= c->node.raft.commit &&
                   c->node.raft.peers[i].match > 0 &&
                   c->node.raft.now - c->node.raft.peers[i].heard_at < c->node.raft.settings.election_max;
    return false;
}

/* The configuration with this one difference made; false if there is none, or it cannot be made yet. */
static bool next_step(const struct consensus *c, const struct member_record *record,
                      struct raft_config *target)
{
    struct raft_member *member = find(target, record->id);

    if (!member) {
        if (target->count == RAFT_MEMBERS_MAX)
            return false;
        target->members[target->count++] = (struct raft_member){
            .id = record->id, .priority = record->priority, .is_witness = record->is_witness};
        return true;
    }
    if (record->is_voter && !member->is_voter && is_level(c, record->id) &&
        c->node.raft.now >= c->promotes_from) {
        member->is_voter = true;
        member->is_witness = record->is_witness;
        return true;
    }
    if (!record->is_voter && member->is_voter) {
        take_out(target, record->id);
        return true;
    }
    return false;
}

void consensus_read_records(struct consensus *c)
{
    c->record_count = member_records(c->table, c->records);
    for (size_t i = 0; i < c->record_count; i++)
        c->records[i].id = seal_id_of_name("node", c->records[i].name);
    if (node_addresses_take_records(&c->addresses, c->records, c->record_count) && c->transport)
        consensus_set_peers(c);
}

/* What is known of a member that has no record yet. */
static void describe(const struct consensus *c, const struct raft_member *member, const char *name,
                     struct member_record *ret_record)
{
    const struct node_address *entry = node_addresses_find(&c->addresses, member->id);

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

/*
 * Entries that are in the log, but not known to be committed, say where members are, too. An address is only
 * a hint and does no harm; without it, members that were added later could not find each other again after
 * all were killed, and nothing would ever be committed.
 */
void consensus_read_hints(struct consensus *c)
{
    for (raft_index index = c->node.raft.log.base + 1; index <= raft_log_last(&c->node.raft.log); index++) {
        const struct raft_entry *entry = raft_log_at(&c->node.raft.log, index);
        struct member_record record;

        if (entry->kind != RAFT_ENTRY_DATA || !member_record_of_command(entry->data, entry->size, &record))
            continue;
        record.id = seal_id_of_name("node", record.name);
        (void)node_addresses_take_records(&c->addresses, &record, 1);
    }
}

static bool is_being_removed(const struct consensus *c, raft_id id)
{
    for (const struct pending *p = c->pending; p; p = p->next)
        if (p->request && p->request->kind == REQUEST_MEMBER_REMOVE &&
            seal_id_of_name("node", p->request->target) == id)
            return true;
    return false;
}

static const struct member_record *record_of(const struct consensus *c, raft_id id)
{
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i].id == id)
            return &c->records[i];
    return NULL;
}

/* What the record of a member should say of its addresses, and does not; false if it is as it should be. */
static bool should_write(const struct consensus *c, const struct raft_member *member,
                         struct member_record *ret_record)
{
    const struct node_address *entry = node_addresses_find(&c->addresses, member->id);
    const struct member_record *old = record_of(c, member->id);

    if (!entry || !entry->name[0] || !entry->address[0] || is_being_removed(c, member->id))
        return false;
    if (old && (!old->is_learned ||
                (strcmp(old->address, entry->address) == 0 && strcmp(old->api, entry->api) == 0)))
        return false;
    describe(c, member, entry->name, ret_record);
    ret_record->is_voter = old ? old->is_voter : member->is_voter;
    ret_record->is_learned = true;
    ret_record->generation = c->node.raft.state.generation;
    return true;
}

/* Takes the bytes. */
static void write_command(struct consensus *c, uint8_t *bytes, size_t size)
{
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes, .size = (uint32_t)size};

    consensus_feed(c, (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}});
    free(bytes);
}

/* Nobody wishes this any more. */
static bool is_void(const struct consensus *c, const struct member_record *record)
{
    return !raft_config_find(&c->node.raft.config, record->id) &&
           (record->is_learned || record->generation != c->node.raft.state.generation);
}

/* Brings the records up to date; one at a time, and the next when it is applied. True if one was written. */
static bool write_down(struct consensus *c)
{
    uint8_t *bytes;
    size_t size;

    if (raft_log_last(&c->node.raft.log) > c->node.raft.applied)
        return true;
    for (size_t i = 0; i < c->record_count; i++)
        if (is_void(c, &c->records[i]) &&
            member_record_delete(c->records[i].name, &bytes, &size) == GAVEL_OK) {
            write_command(c, bytes, size);
            return true;
        }
    for (size_t i = 0; i < c->node.raft.config.count; i++) {
        struct member_record record;

        if (should_write(c, &c->node.raft.config.members[i], &record) &&
            member_record_put(&record, &bytes, &size) == GAVEL_OK) {
            write_command(c, bytes, size);
            return true;
        }
    }
    return false;
}

void consensus_reconcile(struct consensus *c)
{
    if (!may_change(c) || write_down(c))
        return;
    for (size_t i = 0; i < c->record_count; i++) {
        struct raft_config target = c->node.raft.config;

        if (next_step(c, &c->records[i], &target) && change(c, &target) == GAVEL_OK)
            return;
    }
}

static enum gavel_status propose(struct consensus *c, struct pending *pending, uint8_t *bytes, size_t size)
{
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .data = bytes, .size = (uint32_t)size};
    enum gavel_status status;

    status = consensus_ask(
        c, (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}});
    free(bytes);
    if (status == GAVEL_OK)
        pending->index = raft_log_last(&c->node.raft.log);
    else
        consensus_answer(c, pending->request, GAVEL_ERR_STATE,
                         "the leader cannot do this now (%s); try again in a moment",
                         gavel_status_text(status));
    return status;
}

static enum gavel_status put_record(struct consensus *c, struct pending *pending,
                                    struct member_record *record)
{
    uint8_t *bytes;
    size_t size;

    record->is_learned = false; /* from now on it is an operator's word */
    record->generation = c->node.raft.state.generation;
    if (member_record_put(record, &bytes, &size) != GAVEL_OK) {
        consensus_answer(c, pending->request, GAVEL_ERR_NO_MEMORY, "out of memory");
        return GAVEL_ERR_NO_MEMORY;
    }
    return propose(c, pending, bytes, size);
}

/* Whether the cluster could still have a leader without this voter; says so if not. */
static enum gavel_status refuse_last(struct consensus *c, struct request *request, raft_id id)
{
    struct raft_config target = c->node.raft.config;
    const char *reason = "";

    take_out(&target, id);
    for (size_t i = 0; i < c->record_count;
         i++) /* those that are to be voters no more, and go sooner or later */
        if (!c->records[i].is_voter)
            take_out(&target, c->records[i].id);
    for (const struct pending *p = c->pending; p; p = p->next)
        if (p->request &&
            (p->request->kind == REQUEST_MEMBER_DEMOTE || p->request->kind == REQUEST_MEMBER_REMOVE))
            take_out(&target, seal_id_of_name("node", p->request->target));
    if (raft_config_check(&target, &reason) == GAVEL_OK)
        return GAVEL_OK;
    consensus_answer(c, request, GAVEL_ERR_INVALID, "without %s nobody could lead: %s", request->target,
                     reason);
    return GAVEL_ERR_INVALID;
}

/* Two nodes cannot be at one address; says so. */
static bool is_taken(struct consensus *c, struct request *request)
{
    char name[NODE_ADDRESSES_NAME_BYTES];

    for (size_t i = 0; i < c->node.raft.config.count; i++) {
        const struct node_address *entry =
            node_addresses_find(&c->addresses, c->node.raft.config.members[i].id);

        if (entry && strcmp(entry->address, request->address) == 0) {
            consensus_answer(c, request, GAVEL_ERR_INVALID, "%s is the address of %s", request->address,
                             node_addresses_name(&c->addresses, entry->id, name));
            return true;
        }
    }
    return false;
}

static enum gavel_status add(struct consensus *c, struct pending *pending, const struct raft_member *member)
{
    struct request *request = pending->request;
    struct member_record record = {.id = seal_id_of_name("node", request->target),
                                   .priority = request->priority,
                                   .is_witness = request->is_witness,
                                   .is_voter = !request->is_learner};

    if (member) {
        consensus_answer(c, request, GAVEL_ERR_STATE, "%s is a member already", request->target);
        return GAVEL_ERR_STATE;
    }
    if (is_taken(c, request))
        return GAVEL_ERR_INVALID;
    if (c->node.raft.config.count == RAFT_MEMBERS_MAX) {
        consensus_answer(c, request, GAVEL_ERR_STATE, "there are %d members already, which is the most",
                         RAFT_MEMBERS_MAX);
        return GAVEL_ERR_STATE;
    }
    (void)snprintf(record.name, sizeof record.name, "%s", request->target);
    (void)snprintf(record.address, sizeof record.address, "%s", request->address);
    (void)snprintf(record.api, sizeof record.api, "%s", request->api);
    return put_record(c, pending, &record);
}

static enum gavel_status remove_member(struct consensus *c, struct pending *pending,
                                       const struct raft_member *member)
{
    struct request *request = pending->request;
    uint8_t *bytes;
    size_t size;

    if (member && member->is_voter && refuse_last(c, request, member->id) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (member_record_delete(request->target, &bytes, &size) != GAVEL_OK) {
        consensus_answer(c, request, GAVEL_ERR_NO_MEMORY, "out of memory");
        return GAVEL_ERR_NO_MEMORY;
    }
    return propose(c, pending, bytes, size);
}

static enum gavel_status set_voter(struct consensus *c, struct pending *pending,
                                   const struct raft_member *member, bool is_voter)
{
    struct member_record record = {0};
    bool has_record = member_record_find(c->table, pending->request->target, &record); /* or it is a member */

    if (member && member->is_voter == is_voter && (!has_record || record.is_voter == is_voter))
        pending->is_already = true; /* written down all the same: now it is somebody's wish */
    if (!is_voter && member && member->is_voter && refuse_last(c, pending->request, member->id) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    if (member && !has_record)
        describe(c, member, pending->request->target, &record);
    record.is_voter = is_voter;
    return put_record(c, pending, &record);
}

/* Begins it; an answer was given if it is not OK. */
enum gavel_status consensus_member_request(struct consensus *c, struct pending *pending)
{
    struct request *request = pending->request;
    const struct raft_member *member =
        raft_config_find(&c->node.raft.config, seal_id_of_name("node", request->target));
    struct member_record record; /* one that is about to be a member has only that */

    if (request->kind == REQUEST_MEMBER_ADD)
        return add(c, pending, member);
    if (!member && !member_record_find(c->table, request->target, &record)) {
        consensus_answer(c, request, GAVEL_ERR_NOT_FOUND,
                         "there is no member \"%s\"; `gavel member list` names them all", request->target);
        return GAVEL_ERR_NOT_FOUND;
    }
    if (request->kind == REQUEST_MEMBER_REMOVE)
        return remove_member(c, pending, member);
    c->promotes_from = 0; /* an operator asks: no waiting after the last try */
    return set_voter(c, pending, member, request->kind == REQUEST_MEMBER_PROMOTE);
}

/* The record is gone: now the member. Tried again until it is taken. */
static void begin_removal(struct consensus *c, struct pending *pending, raft_id id)
{
    struct raft_config target = c->node.raft.config;

    if (!may_change(c))
        return;
    take_out(&target, id);
    pending->has_begun = true; /* before the change, whose step looks at what is pending, too */
    pending->has_begun = change(c, &target) == GAVEL_OK;
}

bool consensus_member_is_done(struct consensus *c, struct pending *pending)
{
    const struct raft *raft = &c->node.raft;
    raft_id id = seal_id_of_name("node", pending->request->target);
    const struct raft_member *member = raft_config_find(&raft->config, id);
    bool is_settled = !raft->config.is_joint && raft->config_index <= raft->commit &&
                      raft->change == RAFT_CHANGE_NONE && raft->applied >= pending->index;

    if (raft->applied < pending->index)
        return false;
    switch (pending->request->kind) {
    case REQUEST_MEMBER_ADD:
        return is_settled && member;
    case REQUEST_MEMBER_PROMOTE:
        return is_settled && member && member->is_voter;
    case REQUEST_MEMBER_DEMOTE:
        return is_settled && member && !member->is_voter;
    case REQUEST_MEMBER_REMOVE:
        if (member && !pending->has_begun)
            begin_removal(c, pending, id);
        return is_settled && !member;
    default:
        return true;
    }
}
