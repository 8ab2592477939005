/* SPDX-License-Identifier: Apache-2.0 */

/* Publishing what the consensus thread knows. Scalars after every step; the members when they change and a
 * few times a second, for their health. */
#include "daemon/node/consensus.h"

#include "os/clock.h"

#include <stdio.h>
#include <string.h>

static void take_scalars(struct consensus *c, struct view *v)
{
    const struct raft *raft = &c->node.raft;

    v->at = clock_now();
    v->role = raft->role;
    v->term = raft->state.term;
    v->vote = raft->state.vote;
    v->leader = raft->leader;
    v->heard_at = raft->heard_at;
    v->is_leader = raft->role == RAFT_LEADER;
    v->is_claimed = c->node.claim.is_held && raft->work == RAFT_WORK_RUNNING;
    v->deadline = raft_deadline(raft);
    v->lease_epoch = c->node.claim.lease_epoch;
    v->claim_term = c->node.claim.term;
    v->is_caretaker = raft_is_caretaker(raft);
    v->last = raft_log_last(&raft->log);
    v->last_term = raft_log_last_term(&raft->log);
    v->commit = raft->commit;
    v->applied = raft->applied;
    v->snapshot = raft->log.base;
    v->revision = c->table->revision;
    v->digest = table_digest(c->table);
    v->is_handing_over = raft->transfer.phase != RAFT_TRANSFER_NONE;
    v->is_changing = raft->change != RAFT_CHANGE_NONE || raft->config.is_joint;
    v->is_disk_full = c->disk_state == WRITER_FULL;
    v->write_since = backlog_is_empty(&raft->writes) ? 0 : v->at - backlog_age(&raft->writes, v->at);
    v->uncommitted_since =
        backlog_is_empty(&raft->uncommitted) ? 0 : v->at - backlog_age(&raft->uncommitted, v->at);
    v->is_disk_hung = c->hang.is_disk_hung;
    v->is_commit_hung = c->hang.is_commit_hung;
    v->is_in_vain = raft_is_in_vain(raft);
    v->round_trip_limit = raft_round_trip_limit(raft);
    v->waits_for_operator = !raft->settings.auto_failover && raft->leader == 0 && raft->commit > 0;
    v->is_stopping = c->ending.is_stopping;
    v->counters.refused_messages = raft->refused_messages;
    v->counters.dropped_votes = raft->dropped_votes;
    v->counters.disk_writes = atomic_load(&c->writer.writes);
    v->counters.client_requests = c->node.frontend.counts.requests;
    v->counters.client_repeated = c->node.frontend.counts.repeated;
    v->counters.client_refused = c->node.frontend.counts.refused;
    v->counters.keep_alives = c->node.frontend.counts.keep_alives;
    v->counters.sessions_expired = c->node.frontend.counts.expired;
    v->counters.mandates_lapsed = c->node.frontend.counts.lapsed;
    v->counters.frontend_stalls = c->node.frontend.counts.stalls;
    v->counters.forwardings = c->node.forwarder.counts.taken;
    v->counters.forwardings_again = c->node.forwarder.counts.again;
    v->counters.forwardings_timed_out = c->node.forwarder.counts.timed_out;
}

void consensus_publish(struct consensus *c)
{
    take_scalars(c, &c->draft);
    view_publish(&c->shared->view, &c->draft);
}

static void take_link(struct consensus *c, struct view_member *member)
{
    const struct peer_status *said = detector_status_of(&c->detector, member->id);
    struct transport_link link;

    for (size_t i = 0; i < c->node.raft.peer_count; i++)
        if (c->node.raft.peers[i].id == member->id) {
            member->match = c->node.raft.role == RAFT_LEADER ? c->node.raft.peers[i].match : 0;
            member->round_trip = c->node.raft.peers[i].round_trip;
        }
    if (said) {
        member->status = *said;
        member->incarnation = said->incarnation;
    }
    if (member->is_refused)
        (void)snprintf(
            member->trouble, sizeof member->trouble,
            "its data directory is older than what it has acknowledged: it does not count; replace the member: gavel member remove, an empty directory, gavel member add, --join");
    else if (raft_awaits_directory(&c->node.raft, member->id))
        (void)snprintf(member->trouble, sizeof member->trouble, "%s", CONSENSUS_AWAITED_TEXT);
    else if (consensus_is_of_other_founding(c, member->id))
        (void)snprintf(member->trouble, sizeof member->trouble, "%s", CONSENSUS_FOUNDING_TEXT);
    else if (detector_is_other(&c->detector, member->id))
        (void)snprintf(member->trouble, sizeof member->trouble,
                       "their tables differ: one of them has lost or changed what was committed");
    if (!transport_link_of(c->transport, member->id, &link))
        return;
    member->is_connected = link.is_up && link.is_heard;
    member->is_breaker_open = link.is_breaker_open;
    member->heard_at = link.heard_at;
    if (!member->trouble[0])
        (void)snprintf(member->trouble, sizeof member->trouble, "%s", link.trouble);
}

void consensus_refresh_members(struct consensus *c)
{
    const struct raft_config *config = &c->node.raft.config;

    c->draft.member_count = config->count;
    for (size_t i = 0; i < config->count; i++) {
        const struct raft_member *from = &config->members[i];
        const struct node_address *entry = node_addresses_find(&c->node.members.addresses, from->id);
        struct view_member *member = &c->draft.members[i];

        *member = (struct view_member){
            .id = from->id,
            .priority = from->priority,
            .is_voter = from->is_voter,
            .was_voter = from->was_voter,
            .is_witness = from->is_witness,
            .is_refused = from->is_refused,
            .directory = from->directory,
            .is_self = from->id == c->config->id,
        };
        (void)node_addresses_name(&c->node.members.addresses, from->id, member->name);
        if (entry) {
            (void)snprintf(member->address, sizeof member->address, "%s", entry->address);
            (void)snprintf(member->api, sizeof member->api, "%s", entry->api);
        }
        if (member->is_self)
            member->incarnation = c->node.raft.state.incarnation;
        else
            take_link(c, member);
    }
}
