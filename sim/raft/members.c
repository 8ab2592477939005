/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/members.h"

#include "sim/raft/chaos.h"
#include "sim/raft/operator.h"
#include "sim/raft/trace.h"
#include "sim/raft/world.h"

static bool has_slot(const void *context, raft_id id)
{
    const unsigned *slots = context;

    return *slots & 1U << (id - 1);
}

/* Somebody of the set may lead for work. */
static bool has_worker(const struct raft_config *config, unsigned slots)
{
    for (unsigned i = 0; i < config->count; i++) {
        const struct raft_member *member = &config->members[i];

        if (member->is_voter && !member->is_witness && has_slot(&slots, member->id))
            return true;
    }
    return false;
}

static bool decides(const struct raft_config *config, unsigned slots)
{
    return config->count == 0 || (raft_config_decides(config, has_slot, &slots) && has_worker(config, slots));
}

unsigned members_sound(const struct cluster *cluster)
{
    unsigned slots = 0;

    for (unsigned i = 0; i < cluster->used; i++)
        if ((cluster->hosts[i].state == HOST_UP || cluster->hosts[i].state == HOST_DOWN) &&
            !cluster->hosts[i].ghost)
            slots |= 1U << i;
    return slots;
}

/* The index of the newest configuration that is known to be committed: older ones cannot win any more. */
static raft_index committed_config(const struct cluster *cluster)
{
    raft_index newest = 0;

    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *host = &cluster->hosts[i];
        struct raft_config config;
        raft_index index = 0;

        if (host_is_up(host) && host->node.raft.config_index <= host->node.raft.commit &&
            host->node.raft.config_index > newest)
            newest = host->node.raft.config_index;
        disk_config(&host->disk, &config, &index);
        if (host->state != HOST_UNUSED && index <= host->disk.state.commit && index > newest)
            newest = index;
    }
    return newest;
}

/* A configuration may be under way in a message only, while its leader has died and forgotten it. */
#define UNDERWAY_MAX (4 * NS_PER_S)

static bool decides_targets(const struct cluster *cluster, unsigned slots)
{
    for (unsigned i = 0; i < cluster->target_count && i < TARGETS_KEPT; i++)
        if (cluster->now < cluster->targets[i].at + UNDERWAY_MAX &&
            !decides(&cluster->targets[i].config, slots))
            return false;
    return true;
}

bool members_decide(struct cluster *cluster, unsigned slots)
{
    raft_index newest = committed_config(cluster);

    if (!decides_targets(cluster, slots))
        return false;

    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *host = &cluster->hosts[i];
        struct raft_config config;
        raft_index index = 0;

        if (host->state == HOST_UNUSED || host->state == HOST_DAMAGED)
            continue;
        disk_config(&host->disk, &config, &index);
        if (index >= newest && !decides(&config, slots))
            return false;
        if (!host_is_up(host))
            continue;
        if (host->node.raft.config_index >= newest && !decides(&host->node.raft.config, slots))
            return false;
        if (host->node.raft.change != RAFT_CHANGE_NONE && !decides(&host->node.raft.change_target, slots))
            return false;
    }
    return true;
}

/* What a node would stand for election with, now or after its next start. */
struct claim {
    raft_term last_term;
    raft_index last_index;
    struct raft_config config;
    bool may_stand;
};

static struct claim claim_of(const struct host *host)
{
    const struct disk *disk = &host->disk;
    struct claim claim = {0};
    raft_index index;

    if (host_is_up(host) && !host->is_failed) {
        claim.last_term = raft_log_last_term(&host->node.raft.log);
        claim.last_index = raft_log_last(&host->node.raft.log);
        claim.config = host->node.raft.config;
        claim.may_stand = raft_is_voter(&host->node.raft) || host->node.raft.is_leaving;
        return claim;
    }
    claim.last_term = disk->entry_count ? disk->entries[disk->entry_count - 1].term : disk->snapshot.term;
    claim.last_index = disk->snapshot.index + disk->entry_count;
    disk_config(disk, &claim.config, &index);
    claim.may_stand = raft_config_votes(&claim.config, host->id);
    return claim;
}

/* Whether the votes of those of the set whose logs are not newer decide for this node. */
static bool could_win(const struct cluster *cluster, const struct host *host, unsigned slots)
{
    struct claim own = claim_of(host);
    unsigned votes = 0;

    for (unsigned i = 0; i < cluster->used; i++) {
        struct claim other;

        if (!(slots & 1U << i))
            continue;
        other = claim_of(&cluster->hosts[i]);
        if (other.last_term < own.last_term ||
            (other.last_term == own.last_term && other.last_index <= own.last_index))
            votes |= 1U << i;
    }
    return own.may_stand && own.config.count > 0 && raft_config_decides(&own.config, has_slot, &votes);
}

bool members_can_elect(const struct cluster *cluster, unsigned slots)
{
    for (unsigned i = 0; i < cluster->used; i++)
        if (slots & 1U << i && could_win(cluster, &cluster->hosts[i], slots))
            return true;
    return false;
}

bool members_can_spare(struct cluster *cluster, const struct host *host)
{
    unsigned slots = members_sound(cluster) & ~(1U << host->slot);

    return members_decide(cluster, slots);
}

/* A node that is no member: a new one, or one that was removed; NULL if all ids are used up. */
struct host *members_outsider(struct cluster *cluster, const struct raft_config *config)
{
    unsigned first = cluster_below(cluster, STREAM_MEMBERS, SLOTS_MAX);

    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        struct host *host = &cluster->hosts[(first + i) % SLOTS_MAX];

        if (host->state == HOST_DAMAGED || host->ghost || host->slot > cluster->used ||
            raft_config_find(config, host->id))
            continue;
        return host;
    }
    return NULL;
}

void members_bring_up(struct cluster *cluster, struct host *host)
{
    if (host->state == HOST_UNUSED) {
        TRACE(cluster, host, "is a new node");
        host_create(cluster, host, NULL);
    }
    host_start(cluster, host);
}

static void remove_member(struct raft_config *config, raft_id id)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < config->count; i++)
        if (config->members[i].id != id)
            config->members[kept++] = config->members[i];
    config->count = (uint8_t)kept;
}

static void add_member(struct raft_config *config, raft_id id, bool is_voter, bool is_witness)
{
    if (config->count == RAFT_MEMBERS_MAX)
        return;
    config->members[config->count++] =
        (struct raft_member){.id = id, .is_voter = is_voter, .is_witness = is_witness};
    raft_config_sort(config);
}

bool members_may_become(struct cluster *cluster, const struct raft_config *target)
{
    const char *reason;

    if (raft_config_check(target, &reason) != GAVEL_OK || !decides(target, members_sound(cluster)))
        return false;
    cluster->targets[cluster->target_count++ % TARGETS_KEPT] =
        (struct cluster_target){.at = cluster->now, .config = *target};
    return true;
}

static bool ask(struct cluster *cluster, struct host *leader, const struct raft_config *target)
{
    struct raft_event event = {.kind = RAFT_CHANGE, .change = target};
    char text[160];
    enum gavel_status status;

    if (!members_may_become(cluster, target))
        return false;
    TRACE(cluster, leader, "is asked to change the members to %s",
          cluster_describe_config(cluster, target, text, sizeof text));
    status = host_step(cluster, leader, &event);
    if (status != GAVEL_OK) {
        TRACE(cluster, leader, "refuses: %s", gavel_status_name(status));
        cluster->target_count--;
    }
    return status == GAVEL_OK;
}

/* The leader, or one that still believes to be it, if it can be asked now. */
static struct host *find_leader(struct cluster *cluster)
{
    struct host *leader = cluster_some_leader(cluster, STREAM_MEMBERS);

    if (!leader || host_is_frozen(cluster, leader) || cluster->now < leader->stalled_until)
        return NULL;
    return leader;
}

/* A change is at its most dangerous when the leader is cut off, or dies, with its entry half spread. */
static void disturb(struct cluster *cluster, struct host *leader)
{
    unsigned what = cluster_below(cluster, STREAM_MEMBERS, 8);
    int fuse = 1 + (int)cluster_below(cluster, STREAM_MEMBERS, 30);

    if (what < 3 && cluster_has(cluster, FAULT_PARTIAL))
        chaos_split(cluster, leader);
    else if (what == 3 && cluster_has(cluster, FAULT_CRASH) && leader->fuse == 0)
        leader->fuse = fuse;
}

/* Any of the nodes there are, and now and then new ones: the old and the new majority may have nobody in
 * common. */
static void rebuild(struct cluster *cluster, struct raft_config *target)
{
    unsigned sound = members_sound(cluster);
    unsigned voters = cluster_below(cluster, STREAM_MEMBERS, 1U << SLOTS_MAX);
    bool grows = cluster_chance(cluster, STREAM_MEMBERS, 500);
    struct raft_config old = *target;

    if (grows && cluster->used < SLOTS_MAX) {
        voters |= 1U << cluster->used;
        sound |= 1U << cluster->used;
        members_bring_up(cluster, &cluster->hosts[cluster->used]);
    }
    *target = (struct raft_config){0};
    for (unsigned i = 0; i < cluster->used && target->count < RAFT_VOTERS_MAX; i++) {
        const struct raft_member *member = raft_config_find(&old, i + 1);

        if (!(voters & sound & 1U << i))
            continue;
        host_start(cluster, &cluster->hosts[i]);
        add_member(target, i + 1, true, member && member->is_witness);
    }
}

void order_members(struct cluster *cluster)
{
    unsigned what = cluster_below(cluster, STREAM_MEMBERS, 10);
    unsigned which = cluster_below(cluster, STREAM_MEMBERS, SLOTS_MAX);
    bool is_witness = cluster_chance(cluster, STREAM_MEMBERS, 150);
    struct host *leader = find_leader(cluster);
    struct raft_config target;
    struct raft_member *member;
    struct host *outsider;

    if (!leader || leader->node.raft.config.is_joint)
        return;
    if (operators_exist(cluster)) {
        disturb(cluster, leader);
        operator_members(cluster, leader);
        return;
    }
    target = leader->node.raft.config;
    member = &target.members[which % target.count];
    outsider = members_outsider(cluster, &target);
    switch (what) {
    case 0: /* a new voter */
    case 1:
        if (outsider) {
            members_bring_up(cluster, outsider);
            add_member(&target, outsider->id, true, is_witness);
        }
        break;
    case 2: /* one goes, also the leader */
        remove_member(&target, member->id);
        break;
    case 3: /* one for another */
        if (outsider) {
            remove_member(&target, member->id);
            members_bring_up(cluster, outsider);
            add_member(&target, outsider->id, true, false);
        }
        break;
    case 4: /* voter or learner */
        member->is_voter = !member->is_voter;
        break;
    case 5: /* the leader itself goes */
    case 6:
        remove_member(&target, leader->id);
        break;
    case 7:
    case 8:
        rebuild(cluster, &target);
        break;
    default: /* witness or not */
        member->is_witness = !member->is_witness;
        break;
    }
    disturb(cluster, leader);
    (void)ask(cluster, leader, &target); /* a refusal is an answer, too */
}

bool members_ask(struct cluster *cluster, const struct host *host, bool is_wanted)
{
    struct host *leader = find_leader(cluster);
    struct raft_config target;
    bool is_member;

    if (!leader || leader == host || leader->node.raft.config.is_joint ||
        leader->node.raft.change != RAFT_CHANGE_NONE)
        return false;
    target = leader->node.raft.config;
    is_member = raft_config_find(&target, host->id) != NULL;
    if (is_member == is_wanted)
        return false;
    if (operators_exist(cluster))
        return operator_want(cluster, leader, host, is_wanted);
    if (is_wanted)
        add_member(&target, host->id, true, false);
    else
        remove_member(&target, host->id);
    return ask(cluster, leader, &target);
}

/* A node that shall take the place of a damaged one. */
static struct host *find_new(struct cluster *cluster)
{
    struct host *host;

    if (cluster->used == SLOTS_MAX)
        return NULL;
    host = &cluster->hosts[cluster->used];
    members_bring_up(cluster, host);
    return host;
}

/* First the new one comes, then the old one goes: two orders, of which each may fail. */
static void replace_by_order(struct cluster *cluster, struct host *leader, const struct host *damaged)
{
    struct host *fresh = cluster->replaced & 1U << damaged->slot ? NULL : find_new(cluster);
    uint64_t life = leader->life;

    cluster->replaced |= 1U << damaged->slot;
    if (fresh && operator_want(cluster, leader, fresh, true))
        cluster_see(cluster, SIGHT_REPLACED);
    if (leader->life == life && leader->node.raft.role == RAFT_LEADER)
        (void)operator_want(cluster, leader, damaged, false); /* refused: it is tried again */
}

void members_replace(struct cluster *cluster)
{
    struct host *leader = find_leader(cluster);
    bool is_done = true;

    if (operators_exist(cluster) && cluster->healed != 0)
        return;

    for (unsigned i = 0; i < cluster->used; i++) {
        const struct host *host = &cluster->hosts[i];
        struct raft_config target;
        struct host *fresh;

        if (host->state != HOST_DAMAGED)
            continue;
        if (!leader || !raft_config_find(&leader->node.raft.config, host->id)) {
            is_done &= leader != NULL;
            continue;
        }
        is_done = false;
        if (leader->node.raft.config.is_joint || leader->node.raft.change != RAFT_CHANGE_NONE)
            continue;
        if (operators_exist(cluster)) {
            replace_by_order(cluster, leader, host);
            break;
        }
        target = leader->node.raft.config;
        remove_member(&target, host->id);
        fresh = cluster->replaced & 1U << i ? NULL : find_new(cluster);
        if (fresh)
            add_member(&target, fresh->id, true, false);
        cluster->replaced |= 1U << i;
        if (ask(cluster, leader, &target)) {
            cluster_see(cluster, SIGHT_REPLACED);
            break;
        }
        leader = find_leader(cluster); /* a step may have killed it */
    }
    if (!is_done && cluster->healed == 0)
        (void)cluster_push(cluster, cluster->now + 200 * NS_PER_MS, EVENT_REPLACE, 0);
}
