/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a node knows of the data directories of the others, kept on its disk.
 *
 * An older copy of a directory has the number of the original. A node that has met
 * a later state of it refuses the copy (directory.c, rule 3), which comes in an
 * incarnation that another process had already, or with a log that ends before what
 * was acknowledged. A restart must not forget that: otherwise the copy would be the
 * member again once all nodes have been restarted.
 *
 *   1. The knowledge goes along with every write that is made in any case. So
 *      whatever we vote for, elect by, or append after having met a node is on our
 *      disk together with that meeting.
 *   2. If nothing else is written, it is written alone, MET_PATIENCE later, so that
 *      an election, which waits for its writes, does not wait for this.
 *   3. A refusal is written at once.
 *
 * No message waits for it. What is on disk counts only for the directory that the
 * configuration binds the member to.
 */

#include "core/raft/internal.h"

#define MET_PATIENCE NS_PER_S

static bool is_same(const struct raft_met *met, const struct raft_peer *peer)
{
    return met->id == peer->id && met->directory == peer->directory &&
           met->incarnation == peer->incarnation && met->start == peer->start &&
           met->began_at == peer->began_at && met->acked == peer->acked &&
           met->is_refused == peer->is_refused;
}

/* Whether what was written differs from what we know; *ret_is_refusal: somebody is refused from now on. */
static bool has_changed(const struct raft *r, bool *ret_is_refusal)
{
    bool has = false;
    size_t at = 0;

    *ret_is_refusal = false;
    for (size_t i = 0; i < r->peer_count; i++) {
        const struct raft_peer *peer = &r->peers[i];
        const struct raft_met *met = &r->state.met[at];

        if (peer->directory == 0)
            continue;
        if (at >= r->state.met_count || met->id != peer->id) {
            *ret_is_refusal = *ret_is_refusal || peer->is_refused;
            return true;
        }
        if (peer->is_refused && !met->is_refused)
            *ret_is_refusal = true;
        has = has || !is_same(met, peer);
        at++;
    }
    return has || at != r->state.met_count;
}

static void gather(struct raft *r)
{
    struct raft_state *state = &r->state;

    state->met_count = 0;
    for (size_t i = 0; i < r->peer_count; i++) {
        const struct raft_peer *peer = &r->peers[i];

        if (peer->directory != 0)
            state->met[state->met_count++] = (struct raft_met){.id = peer->id,
                                                               .directory = peer->directory,
                                                               .incarnation = peer->incarnation,
                                                               .start = peer->start,
                                                               .began_at = peer->began_at,
                                                               .acked = peer->acked,
                                                               .is_refused = peer->is_refused};
    }
}

/* When a step ends: whether state.met, which is brought up to date then, is to be written. */
bool raft_met_is_due(struct raft *r, bool is_writing)
{
    bool is_refusal;
    bool is_new = has_changed(r, &is_refusal);

    if (PLANTED(MET_FORGOTTEN))
        is_new = false;
    if (!is_new) {
        r->met_from = NEVER;
        return false;
    }
    if (r->met_from == NEVER)
        r->met_from = r->now;
    if (!is_writing && !is_refusal && r->now < r->met_from + MET_PATIENCE)
        return false;
    gather(r);
    r->met_from = NEVER;
    return true;
}

static void recall(struct raft_peer *peer, const struct raft_met *met)
{
    peer->directory = met->directory;
    peer->incarnation = met->incarnation;
    peer->start = met->start;
    peer->began_at = met->began_at;
    peer->acked = met->acked;
    peer->is_refused = met->is_refused;
    peer->is_recalled = true;
}

/* Beginning again. Of a member that is not bound nothing is held against the next directory. */
void raft_recall_met(struct raft *r)
{
    r->met_from = NEVER;
    for (size_t i = 0; i < r->state.met_count; i++) {
        struct raft_peer *peer = raft_peer_find(r, r->state.met[i].id);

        if (peer && peer->bound != 0 && peer->bound == r->state.met[i].directory)
            recall(peer, &r->state.met[i]);
    }
}
