/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/ghost.h"

#include "base/assert.h"
#include "sim/common/memory.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

#include <stdlib.h>
#include <string.h>

/* Its disk is as fast as its memory: what it forgets it has forgotten before it began. */
struct ghost {
    enum ghost_kind { GHOST_EMPTY, GHOST_OTHER, GHOST_OLD, GHOST_REFOUNDED } kind;
    uint64_t incarnation;
    struct raft raft;
    struct raft_actions actions;
};

/* What clients of a cluster of ghosts ask for. */
static const uint8_t mark[] = {'g', 'h', 'o', 's', 't'};

static unsigned draw(struct cluster *cluster, unsigned bound)
{
    return cluster_below(cluster, STREAM_FAULTS + FAULT_LOST, bound);
}

void ghost_copy(struct cluster *cluster, struct host *host, unsigned rarity)
{
    if (cluster_has(cluster, FAULT_LOST) && host->disk.state.incarnation > 0 && draw(cluster, rarity) == 0 &&
        !host->keeps_copy)
        disk_copy(&host->copy, &host->disk);
}

static raft_index end_of(const struct disk *disk) { return disk->snapshot.index + disk->entry_count; }

static const struct host *host_of(const struct cluster *cluster, raft_id id)
{
    return id > 0 && id <= cluster->used ? &cluster->hosts[id - 1] : NULL;
}

bool ghost_is_old(const struct cluster *cluster, raft_id id)
{
    const struct host *host = host_of(cluster, id);

    return host && host->ghost && host->ghost->kind == GHOST_OLD;
}

static const struct raft_peer *peer_of(const struct raft *raft, raft_id id)
{
    for (size_t i = 0; i < raft->peer_count; i++)
        if (raft->peers[i].id == id)
            return &raft->peers[i];
    return NULL;
}

/* No original is ever in such an incarnation: nothing that is signed for it is about them. */
#define INCARNATION_OF_FOUNDERS (UINT64_C(1) << 32)

/* No original has such a start. */
#define START_OF_COPY (UINT64_C(1) << 62)

static bool is_of_copy(const struct cluster *cluster, const struct raft_message *message)
{
    return ghost_is_old(cluster, message->from) && message->start >= START_OF_COPY;
}

/* What is known of a member counts for the directory that it is bound to, and for the first that spoke for
 * it as long as it is a voter without a binding. */
static bool counts(const struct raft_config *config, raft_id id, uint64_t directory)
{
    const struct raft_member *member = raft_config_find(config, id);

    if (!member || directory == 0)
        return false;
    return member->directory == directory || (member->directory == 0 && raft_config_votes(config, id));
}

/* Only what is more than it knew: to forget is what it must not. */
void ghost_note(struct cluster *cluster, struct host *host)
{
    if (!cluster_has(cluster, FAULT_LOST) || !host_is_up(host))
        return;
    for (size_t i = 0; i < host->node.raft.peer_count; i++) {
        const struct raft_peer *peer = &host->node.raft.peers[i];
        struct ghost_known *known = &host->known[peer->id - 1];
        struct raft_met *now = &known->now;
        bool is_other = now->directory != peer->directory;
        bool is_later = peer->incarnation > now->incarnation;

        if (!counts(&host->node.raft.config, peer->id, peer->directory) ||
            (!is_other && !is_later && peer->acked <= now->acked))
            continue;
        if (is_other)
            *known = (struct ghost_known){0};
        if (is_other || is_later) {
            now->incarnation = peer->incarnation;
            now->start = peer->start;
        }
        now->directory = peer->directory;
        now->acked = peer->acked > now->acked ? peer->acked : now->acked;
        known->seq = 0;
    }
}

void ghost_writes(struct host *host, uint64_t seq)
{
    for (size_t i = 0; i < RAFT_MEMBERS_MAX; i++)
        if (host->known[i].seq == 0)
            host->known[i].seq = seq;
}

void ghost_wrote(struct host *host, uint64_t seq)
{
    for (size_t i = 0; i < RAFT_MEMBERS_MAX; i++)
        if (host->known[i].seq != 0 && host->known[i].seq <= seq)
            host->known[i].sure = host->known[i].now;
}

void ghost_recalls(struct host *host)
{
    for (size_t i = 0; i < RAFT_MEMBERS_MAX; i++) {
        host->known[i].now = host->known[i].sure;
        host->known[i].seq = 0;
    }
}

/* Rule 4 of "Directories" in PROTOCOL, from what the node has known and what it has in its log. */
bool ghost_is_hidden(const struct cluster *cluster, const struct host *host,
                     const struct raft_message *message)
{
    const struct raft_peer *peer = peer_of(&host->node.raft, message->from);
    const struct raft_member *member = raft_config_find(&host->node.raft.config, message->from);
    const struct raft_met *known;

    if (!is_of_copy(cluster, message))
        return false;
    if (!peer || !member || message->kind == RAFT_MSG_CERTIFICATE)
        return true;
    if (peer->is_refused || member->is_refused)
        return false;
    known = &host->known[message->from - 1].now;
    if (known->directory != message->directory ||
        !counts(&host->node.raft.config, message->from, message->directory))
        return true;
    return message->incarnation > known->incarnation && message->began_at >= known->acked &&
           (host->node.raft.role != RAFT_LEADER || message->term > host->node.raft.state.term ||
            message->began_at >= peer->match);
}

/* The directories of nodes that are founded again: id * 1000 is that of the node, and one more an empty
 * one's. */
#define IS_REFOUNDED(directory) ((directory) % 1000 > 1)

/* What nobody whose founding is committed takes from a log with another one: rules 1 and 2 of "Foundings" in
 * PROTOCOL. The rest of what is said by a log whose founding may still be replaced is heard. */
static bool tells_other_founding(const struct raft *raft, const struct raft_message *message)
{
    bool leads = message->kind == RAFT_MSG_APPEND || message->kind == RAFT_MSG_SNAPSHOT ||
                 message->kind == RAFT_MSG_TIMEOUT_NOW;
    bool asks = message->kind == RAFT_MSG_VOTE || message->kind == RAFT_MSG_PRE_VOTE ||
                message->kind == RAFT_MSG_TAKE_OVER;

    return raft->founding != 0 && message->founding != raft->founding &&
           (message->is_founded || leads || (asks && message->founding != 0));
}

/*
 * Two things are promised of a directory that was founded again.
 *
 *   - It is not taken for a member that has another directory: every disk knew that one (all_know() in
 *     refound.c), and a binding ends only when the member is removed. If the member is added again, it is a
 *     learner without a directory, and the first that speaks for it is its own, by rule 1 of "Directories"
 *     in PROTOCOL: also this one, and also by a message from before the removal that comes late. A leader
 *     that hears it binds it in the same step, and the others get that entry. This is safe. What the
 *     directory said to our cluster before, it said as nobody's, and it votes only when it is bound and has
 *     our log, as any empty one that is added.
 *   - What it says with its other founding is refused, even if it is bound.
 */
static void check_refounded(struct cluster *cluster, const struct host *host,
                            const struct raft_message *message, bool is_heard)
{
    const struct raft *raft = &host->node.raft;
    const struct raft_peer *peer = peer_of(raft, message->from);
    bool is_taken = peer && peer->directory == message->directory;

    if (!IS_REFOUNDED(message->directory) || raft_founding(raft) == 0)
        return;
    if ((is_taken && peer->bound != 0 && peer->bound != message->directory) ||
        (is_heard && tells_other_founding(raft, message)))
        cluster_violate(
            cluster, RAFT_INVARIANT_FOUNDING,
            "%s hears node %llu, which was emptied and founded again (founding %llu, its own %llu)",
            host->label, (unsigned long long)message->from, (unsigned long long)message->founding,
            (unsigned long long)raft_founding(raft));
    if (raft->leader == message->from && raft->leader_incarnation == message->incarnation)
        cluster_violate(cluster, RAFT_INVARIANT_FOUNDING,
                        "%s follows node %llu, which was emptied and founded again", host->label,
                        (unsigned long long)message->from);
}

/* And the other way round: those that were founded again, and know it, take nothing of the others. */
static void judge_applied(struct cluster *cluster, const struct host *host, raft_index first, raft_index last)
{
    const struct raft *raft = &host->ghost->raft;

    if (host->ghost->kind != GHOST_REFOUNDED || !IS_REFOUNDED(raft->founding))
        return;
    for (raft_index i = first; i <= last; i++) {
        const struct raft_entry *entry = raft_log_at(&raft->log, i);

        if (entry->kind == RAFT_ENTRY_DATA &&
            (entry->size != sizeof mark || memcmp(entry->data, mark, sizeof mark) != 0))
            cluster_violate(cluster, RAFT_INVARIANT_FOUNDING,
                            "%s was founded again, and applies at %llu what is not its cluster's",
                            host->label, (unsigned long long)i);
    }
}

/* Another directory under the name of a member whose own the node has met. Guards have none. */
static void check_other(struct cluster *cluster, const struct host *host, const struct raft_message *message)
{
    const struct raft_peer *peer = peer_of(&host->node.raft, message->from);
    uint64_t known;

    if (!peer || message->directory == 0 || peer->directory != message->directory)
        return;
    known = host->known[message->from - 1].now.directory;
    if (known != message->directory && counts(&host->node.raft.config, message->from, known))
        cluster_violate(cluster, RAFT_INVARIANT_DISOWNED,
                        "%s hears directory %llu of node %llu, although it has met %llu", host->label,
                        (unsigned long long)message->directory, (unsigned long long)message->from,
                        (unsigned long long)known);
}

/* Everything that a leader writes down in between has been written down. */
static bool could_write(const struct raft *r)
{
    return r->role == RAFT_LEADER && !r->config.is_joint && r->config_index <= r->commit &&
           r->commit >= r->noop_index && r->transfer.phase == RAFT_TRANSFER_NONE && !r->steps_down &&
           !r->is_commit_frozen && r->change == RAFT_CHANGE_NONE && raft_is_voter(r);
}

void ghost_check(struct cluster *cluster, const struct host *host, const struct raft_message *message,
                 bool is_heard)
{
    const struct raft_peer *peer;
    const struct raft_member *member;

    if (!host_is_up(host))
        return;
    check_refounded(cluster, host, message, is_heard);
    check_other(cluster, host, message);
    if (!is_of_copy(cluster, message))
        return;
    peer = peer_of(&host->node.raft, message->from);
    member = raft_config_find(&host->node.raft.config, message->from);
    if (!peer || !member || member->is_refused ||
        !counts(&host->node.raft.config, message->from, peer->directory))
        return;
    if (!peer->is_refused && peer->start == message->start)
        cluster_violate(
            cluster, RAFT_INVARIANT_DISOWNED,
            "%s hears an older copy of node %llu, incarnation %llu, log to %llu; it has met incarnation %llu, which had acknowledged %llu",
            host->label, (unsigned long long)message->from, (unsigned long long)message->incarnation,
            (unsigned long long)message->began_at,
            (unsigned long long)host->known[message->from - 1].now.incarnation,
            (unsigned long long)host->known[message->from - 1].now.acked);
    if (peer->is_refused && could_write(&host->node.raft))
        cluster_violate(cluster, RAFT_INVARIANT_DISOWNED,
                        "%s leads and does not write down that node %llu is refused", host->label,
                        (unsigned long long)message->from);
}

/* Who knows that its directory is not the member's leads nobody, and elects nobody. */
static void judge_own(struct cluster *cluster, const struct host *host, const struct raft_message *message)
{
    const struct raft *raft = &host->ghost->raft;
    const struct raft_member *self = raft_config_find(&raft->config, host->id);
    bool is_vote = message->kind == RAFT_MSG_VOTE || message->kind == RAFT_MSG_PRE_VOTE ||
                   message->kind == RAFT_MSG_APPEND;

    if (is_vote && self &&
        (self->is_refused || (self->directory && self->directory != raft->state.directory)))
        cluster_violate(cluster, RAFT_INVARIANT_DISOWNED,
                        "%s stands with another directory than its configuration says", host->label);
}

/* Whether its disk knows the directory of a voter that its log does not bind. */
static bool has_met(const struct host *self, const struct host *lost, const struct raft_config *config)
{
    const struct raft_member *member = raft_config_find(config, lost->id);
    uint64_t directory = lost->disk.state.directory;

    return member && member->directory == 0 && counts(config, lost->id, directory) &&
           self->known[lost->slot].sure.directory == directory;
}

bool ghost_may_come(const struct cluster *cluster, const struct host *host)
{
    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *other = &cluster->hosts[i];
        const struct raft_member *member;
        struct raft_config config;
        raft_index index;

        if (other == host || (other->state != HOST_UP && other->state != HOST_DOWN))
            continue;
        disk_config(&other->disk, &config, &index);
        member = raft_config_find(&config, host->id);
        if (config.count > 0 && (!member || member->directory != host->disk.state.directory) &&
            !has_met(other, host, &config))
            return false;
    }
    return true;
}

bool ghost_is_unbound(const struct cluster *cluster, const struct host *host)
{
    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *other = &cluster->hosts[i];
        struct raft_config config;
        raft_index index;

        disk_config(&other->disk, &config, &index);
        if (other != host && other->state != HOST_UNUSED && has_met(other, host, &config))
            return true;
    }
    return false;
}

static void feed(struct cluster *cluster, struct host *host, struct raft_event event)
{
    struct ghost *ghost = host->ghost;
    bool is_stopping = false;
    uint64_t seq = 0;

    event.now = cluster->now;
    (void)raft_step(&ghost->raft, &event, &ghost->actions); /* a refusal is as good as anything */
    for (size_t i = 0; i < ghost->actions.count; i++) {
        const struct raft_action *action = &ghost->actions.items[i];

        if (action->kind == RAFT_SEND)
            judge_own(cluster, host, &action->send.message);
        if (action->kind == RAFT_SEND)
            net_send(cluster, net_copy(cluster, &action->send.message), host->slot);
        else if (action->kind == RAFT_APPLY)
            judge_applied(cluster, host, action->apply.first, action->apply.last);
        else if (action->kind == RAFT_PERSIST)
            seq = action->persist.seq;
        else if (action->kind == RAFT_STOP_WORK)
            is_stopping = true;
    }
    if (seq > 0)
        feed(cluster, host, (struct raft_event){.kind = RAFT_PERSISTED, .seq = seq});
    if (is_stopping)
        feed(cluster, host, (struct raft_event){.kind = RAFT_WORK_STOPPED});
}

static void arm(struct cluster *cluster, struct host *host)
{
    gavel_ns wake = raft_wake_at(&host->ghost->raft);

    if (wake != NEVER)
        cluster_push(cluster, ns_max(wake, cluster->now + NS_PER_MS), EVENT_GHOST, host->slot)->number =
            ++host->timer;
}

/* A directory that was never the member's: empty, or with the log of another node. */
static void make_other(struct cluster *cluster, const struct host *host, const struct disk *log,
                       struct raft_restore *ret_restore)
{
    unsigned later = draw(cluster, 4);
    bool joins = draw(cluster, 4) == 0;

    ret_restore->state =
        (struct raft_state){.cluster = host->disk.state.cluster,
                            .generation = host->disk.state.generation,
                            .id = host->id,
                            .directory = host->disk.state.directory + 1,
                            .incarnation = later == 0 ? 1 : host->disk.state.incarnation + later - 1};
    if (log) {
        ret_restore->state.term = log->state.term;
        ret_restore->snapshot = log->snapshot;
        ret_restore->entries = log->entries;
        ret_restore->entry_count = log->entry_count;
        return;
    }
    if (!joins)
        ret_restore->snapshot.config = cluster->profile.first;
    ret_restore->snapshot.config.binds = !joins;
}

/* The log of somebody that knows the directory of the member; NULL: nobody was found. */
static const struct disk *find_log(struct cluster *cluster, const struct host *host)
{
    const struct host *other = &cluster->hosts[draw(cluster, cluster->used)];

    return other != host && (other->state == HOST_UP || other->state == HOST_DOWN) ? &other->disk : NULL;
}

static void begin(struct cluster *cluster, struct host *host, const struct raft_restore *restore)
{
    struct raft_settings settings = cluster->profile.settings[host->slot];
    struct gavel_error error;

    settings.context = cluster;
    host->ghost->incarnation = restore->state.incarnation;
    if (raft_init(&host->ghost->raft, &settings, restore, cluster->now, &error) != GAVEL_OK) {
        free(host->ghost);
        host->ghost = NULL;
        return;
    }
    arm(cluster, host);
}

/* From the copy, as it is, and however often. */
static void begin_old(struct cluster *cluster, struct host *host, uint64_t incarnation)
{
    struct raft_restore restore = {.state = host->copy.state,
                                   .snapshot = host->copy.snapshot,
                                   .entries = host->copy.entries,
                                   .entry_count = host->copy.entry_count,
                                   .seed = incarnation};

    restore.state.incarnation = incarnation;
    restore.state.start = START_OF_COPY | incarnation;
    TRACE(cluster, host, "an older copy of its directory speaks for it, incarnation %llu, log to %llu",
          (unsigned long long)incarnation, (unsigned long long)end_of(&host->copy));
    cluster_see(cluster, SIGHT_OLD_GHOSTS);
    begin(cluster, host, &restore);
}

void ghost_begin(struct cluster *cluster, struct host *host)
{
    struct raft_restore restore = {.seed = host->disk.state.directory};
    unsigned drawn = draw(cluster, 6);
    enum ghost_kind kind = drawn > 2 || host->keeps_copy ? GHOST_OLD : (enum ghost_kind)drawn;
    const struct disk *log = kind == GHOST_OTHER ? find_log(cluster, host) : NULL;

    host->ghost = zeroed(1, sizeof *host->ghost);
    host->ghost->kind = kind;
    if (kind == GHOST_OLD && host->copy.state.directory == host->disk.state.directory) {
        begin_old(cluster, host, host->copy.state.incarnation + 1);
        return;
    }
    host->ghost->kind = log ? GHOST_OTHER : GHOST_EMPTY;
    make_other(cluster, host, log, &restore);
    TRACE(cluster, host, "its directory is lost; %s speaks for it, incarnation %llu",
          log ? "another" : "an empty one", (unsigned long long)restore.state.incarnation);
    cluster_see(cluster, log ? SIGHT_STRANGE_GHOSTS : SIGHT_GHOSTS);
    begin(cluster, host, &restore);
}

void ghost_found(struct cluster *cluster, struct host *host)
{
    struct raft_restore restore = {.seed = host->disk.state.directory + ++host->foundings};

    host->ghost = calloc(1, sizeof *host->ghost);
    ASSERT(host->ghost);
    host->ghost->kind = GHOST_REFOUNDED;
    restore.state = (struct raft_state){.cluster = host->disk.state.cluster,
                                        .generation = host->disk.state.generation,
                                        .id = host->id,
                                        .directory = host->disk.state.directory + 1 + host->foundings,
                                        .incarnation = INCARNATION_OF_FOUNDERS + host->foundings};
    restore.snapshot.config = cluster->profile.first;
    restore.snapshot.config.binds = true;
    TRACE(cluster, host, "its directory is not there; an empty one is founded again");
    begin(cluster, host, &restore);
}

void ghost_end(struct host *host)
{
    if (!host->ghost)
        return;
    raft_done(&host->ghost->raft);
    free(host->ghost);
    host->ghost = NULL;
}

void ghost_receive(struct cluster *cluster, struct host *host, const struct raft_message *message)
{
    if (!host->ghost || cluster->healed != 0)
        return;
    feed(cluster, host, (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
    arm(cluster, host);
}

void ghost_take(struct cluster *cluster, const struct event *event)
{
    struct host *host = &cluster->hosts[event->slot];

    if (!host->ghost || cluster->healed != 0 || event->number != host->timer)
        return;
    if (host->ghost->kind == GHOST_OLD && draw(cluster, 32) == 0) {
        raft_done(&host->ghost->raft);
        begin_old(cluster, host, host->ghost->incarnation + 1);
        return;
    }
    feed(cluster, host, (struct raft_event){.kind = RAFT_TIMER});
    if (host->ghost->kind == GHOST_REFOUNDED && host->ghost->raft.work == RAFT_WORK_RUNNING) {
        const struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = sizeof mark, .data = mark};

        feed(cluster, host,
             (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}});
    }
    arm(cluster, host);
}
