/* SPDX-License-Identifier: Apache-2.0 */

/* The other members: finding them, and keeping what is known of them when the configuration changes. */

#include "core/raft/internal.h"

#include <string.h>

const struct raft_peer *raft_peer_at(const struct raft *r, raft_id id)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].id == id)
            return &r->peers[i];
    return NULL;
}

struct raft_peer *raft_peer_find(struct raft *r, raft_id id)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (r->peers[i].id == id)
            return &r->peers[i];
    return NULL;
}

bool raft_peer_votes(const struct raft *r, const struct raft_peer *peer)
{
    return raft_config_votes(&r->config, peer->id);
}

bool raft_peer_is_witness(const struct raft *r, const struct raft_peer *peer)
{
    const struct raft_member *member = raft_config_find(&r->config, peer->id);

    return member && member->is_witness;
}

/* A peer as a leader begins with it: nothing is known, so it is probed from the end of the log. */
void raft_peer_begin(const struct raft *r, struct raft_peer *peer, raft_id id)
{
    *peer = (struct raft_peer){
        .id = id,
        .vote_tokens = r->settings.vote_burst,
        .vote_tokens_at = r->now,
        .next = raft_log_last(&r->log) + 1,
        .heard_at = r->now,
    };
}

static bool votes(const struct raft_member *member) { return member->is_voter || member->was_voter; }

/*
 * The one that was a member under this id until now, not one that was added after it had been removed: we
 * may have got both changes at once. A voter that is a learner now was removed in between. But if an entry
 * that had bound it is truncated, the member is the same as before, and so is its directory.
 */
static bool is_still(const struct raft_peer *peer, const struct raft_member *member, bool goes_back)
{
    uint64_t known = peer->bound != 0 ? peer->bound : peer->directory;
    bool was_unbound = peer->bound == 0 && (votes(member) || !peer->is_voter);

    if (PLANTED(MET_ENDS_WITH_BINDING))
        goes_back = false;
    return peer->id == member->id && (known == 0 || member->directory == known ||
                                      (member->directory == 0 && (was_unbound || goes_back)));
}

/* Whoever is a member no more, or under another directory. */
static void keep_former(struct raft *r, const struct raft_peer *old, size_t old_count)
{
    for (size_t k = 0; k < old_count; k++) {
        const struct raft_peer *peer = raft_peer_at(r, old[k].id);

        if (!peer || peer->directory != old[k].directory)
            raft_keep_met(r, &old[k]);
    }
}

/* `goes_back`: the configuration in force is an older one, because a later one was truncated. */
void raft_peers_rebuild(struct raft *r, bool goes_back)
{
    struct raft_peer old[RAFT_MEMBERS_MAX];
    size_t old_count = r->peer_count;

    ASSERT(old_count <= RAFT_MEMBERS_MAX);
    ASSERT(r->config.count <= RAFT_MEMBERS_MAX);
    memcpy(old, r->peers, old_count * sizeof *old);
    r->peer_count = 0;
    for (unsigned i = 0; i < r->config.count; i++) {
        const struct raft_member *member = &r->config.members[i];
        struct raft_peer *peer = &r->peers[r->peer_count];
        bool is_known = false;

        if (member->id == r->state.id)
            continue;
        for (size_t k = 0; k < old_count && !is_known; k++) {
            is_known = is_still(&old[k], member, goes_back);
            if (is_known)
                *peer = old[k];
        }
        if (!is_known)
            raft_peer_begin(r, peer, member->id);
        ASSERT(peer->id == member->id);
        peer->bound = member->directory;
        peer->is_voter = votes(member);
        r->peer_count++;
        ASSERT(r->peer_count <= RAFT_MEMBERS_MAX);
    }
    keep_former(r, old, old_count);
    raft_recall_former(r);
}

/*
 * A bucket of tokens per peer, so that a node that asks for votes without end (a fault of its own, or malice)
 * costs the others little. Not answering is always safe. Those who are no members share one bucket.
 */
bool raft_peer_takes_vote(struct raft *r, raft_id from)
{
    struct raft_peer *peer = raft_peer_find(r, from);
    int64_t more;

    if (!peer)
        peer = &r->strangers;
    more = (r->now - peer->vote_tokens_at) / r->settings.vote_refill;
    if (more > 0) {
        peer->vote_tokens_at += more * r->settings.vote_refill;
        if (more + peer->vote_tokens > r->settings.vote_burst)
            peer->vote_tokens = r->settings.vote_burst;
        else
            peer->vote_tokens += (uint32_t)more;
    }
    ASSERT(peer->vote_tokens_at <= r->now);
    if (peer->vote_tokens == 0) {
        r->dropped_votes++;
        return false;
    }
    ASSERT(peer->vote_tokens <= r->settings.vote_burst);
    peer->vote_tokens--;
    return true;
}
