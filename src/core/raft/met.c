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
 * No message waits for it.
 *
 * Which directory it counts for:
 *
 *   - For that of a bound member.
 *   - For that of a voter which is not bound yet: a founder that no leader has met,
 *     or whose binding was truncated, or that our log lacks. It may have voted and
 *     acknowledged nevertheless, so the directory that spoke first is the member's,
 *     before and after our restart. No voter that was replaced can be meant: where
 *     members are bound, a member that is added again is a learner until it is bound.
 *   - Not for that of a learner which is not bound. It may be a member that was
 *     removed, emptied and added again, and nothing is counted of it.
 *
 * The knowledge does not end with the binding. A member may be removed and added
 * again with the same directory, and the entry that binds or removes it may be
 * truncated. So what is known of a directory that is not that of a member now is
 * kept, and counts again as soon as it is bound again. There are RAFT_MEMBERS_MAX
 * places: members first, then the newest; the member with the most places gives one
 * up, so that no member can displace what is known of the others.
 *
 * While our log is empty, one record without an id says that a bound member has
 * spoken (directory.c, rule 4). A node that does not know this record takes it for
 * a directory of nobody.
 */

#include "core/raft/internal.h"

#include <string.h>

#define MET_PATIENCE NS_PER_S

static struct raft_met met_of(const struct raft_peer *peer)
{
    return (struct raft_met){.id = peer->id,
                             .directory = peer->directory,
                             .incarnation = peer->incarnation,
                             .start = peer->start,
                             .began_at = peer->began_at,
                             .acked = peer->acked,
                             .is_refused = peer->is_refused};
}

static bool is_same(const struct raft_met *a, const struct raft_met *b)
{
    return a->id == b->id && a->directory == b->directory && a->incarnation == b->incarnation &&
           a->start == b->start && a->began_at == b->began_at && a->acked == b->acked &&
           a->is_refused == b->is_refused;
}

/* Whether the record is to be written that something is committed, after so many others. With a log we know
 * it from that. */
static bool says_begun(const struct raft *r, size_t count)
{
    if (PLANTED(MET_UNBOUND_FORGOTTEN))
        return false;
    return r->has_begun && raft_log_last(&r->log) == 0 && count < RAFT_MEMBERS_MAX;
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
        struct raft_met now = met_of(peer);

        if (peer->directory == 0)
            continue;
        if (at >= r->state.met_count || met->id != peer->id) {
            *ret_is_refusal = *ret_is_refusal || peer->is_refused;
            return true;
        }
        if (peer->is_refused && !met->is_refused)
            *ret_is_refusal = true;
        has = has || !is_same(met, &now);
        at++;
    }
    for (size_t i = 0; i < r->former_count && !has; i++, at++)
        has = at >= r->state.met_count || !is_same(&r->state.met[at], &r->former[i]);
    if (has || !says_begun(r, at))
        return has || at != r->state.met_count;
    return at + 1 != r->state.met_count || r->state.met[at].id != 0;
}

static void gather(struct raft *r)
{
    struct raft_state *state = &r->state;

    state->met_count = 0;
    for (size_t i = 0; i < r->peer_count; i++) {
        const struct raft_peer *peer = &r->peers[i];

        if (peer->directory != 0)
            state->met[state->met_count++] = met_of(peer);
    }
    ASSERT(state->met_count + r->former_count <= RAFT_MEMBERS_MAX);
    for (size_t i = 0; i < r->former_count; i++)
        state->met[state->met_count++] = r->former[i];
    if (says_begun(r, state->met_count))
        state->met[state->met_count++] = (struct raft_met){0};
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

static void drop_former(struct raft *r, size_t at)
{
    ASSERT(at < r->former_count);
    r->former_count--;
    memmove(&r->former[at], &r->former[at + 1], (r->former_count - at) * sizeof *r->former);
}

static size_t count_former(const struct raft *r, raft_id id)
{
    size_t count = 0;

    for (size_t i = 0; i < r->former_count; i++)
        count += r->former[i].id == id;
    return count;
}

/* The oldest of the id that has the most. */
static size_t find_dispensable(const struct raft *r)
{
    size_t found = 0;

    for (size_t i = 1; i < r->former_count; i++)
        if (count_former(r, r->former[i].id) > count_former(r, r->former[found].id))
            found = i;
    return found;
}

static void make_room(struct raft *r, size_t more)
{
    while (r->former_count > 0 && r->peer_count + r->former_count + more > RAFT_MEMBERS_MAX)
        drop_former(r, find_dispensable(r));
}

static void keep(struct raft *r, const struct raft_met *met)
{
    if (PLANTED(MET_ENDS_WITH_BINDING))
        return;
    for (size_t i = 0; i < r->former_count; i++)
        if (r->former[i].id == met->id && r->former[i].directory == met->directory) {
            drop_former(r, i);
            break;
        }
    make_room(r, 1);
    if (r->peer_count + r->former_count < RAFT_MEMBERS_MAX)
        r->former[r->former_count++] = *met;
}

/* It is not a peer any more. Where no member is bound, one that is added again may be an unbound voter: then
 * nothing is held against its next directory. */
void raft_keep_met(struct raft *r, const struct raft_peer *peer)
{
    struct raft_met met = met_of(peer);

    if (peer->directory != 0 && (r->config.binds || peer->directory == peer->bound))
        keep(r, &met);
}

static void recall(struct raft_peer *peer, const struct raft_met *met)
{
    peer->directory = met->directory;
    peer->incarnation = met->incarnation;
    peer->start = met->start;
    peer->began_at = met->began_at;
    peer->is_recalled = true;
}

/* The directory is bound again. It may have spoken in between, as that of a member that is not bound yet. */
static void merge(struct raft *r, struct raft_peer *peer, const struct raft_met *met)
{
    bool is_known = peer->directory == met->directory;
    bool is_later = is_known && peer->incarnation > met->incarnation;
    bool is_refused = met->is_refused || (is_later && peer->began_at < met->acked);
    raft_index acked = is_known && peer->acked > met->acked ? peer->acked : met->acked;

    if (!is_later)
        recall(peer, met);
    peer->acked = acked;
    if (is_refused)
        (void)raft_distrust(r, peer->id, RAFT_ROLLED_BACK); /* it is a peer */
}

/* Whether what is known of a directory counts for the member as it is now. */
static bool is_of(const struct raft *r, const struct raft_peer *peer, const struct raft_met *met)
{
    if (peer->bound != 0)
        return peer->bound == met->directory;
    if (PLANTED(MET_UNBOUND_FORGOTTEN))
        return false;
    return peer->directory == 0 && raft_peer_votes(r, peer);
}

/* What was kept of directories that are those of members again counts again; the newest, if a member is not
 * bound. */
void raft_recall_former(struct raft *r)
{
    for (size_t i = r->former_count; i > 0; i--) {
        struct raft_met met = r->former[i - 1];
        struct raft_peer *peer = raft_peer_find(r, met.id);

        if (peer && is_of(r, peer, &met)) {
            drop_former(r, i - 1);
            merge(r, peer, &met);
        }
    }
    make_room(r, 0);
}

/* Beginning again. What was written of a member comes before what was kept of its former directories. */
void raft_recall_met(struct raft *r)
{
    r->met_from = NEVER;
    for (size_t i = 0; i < r->state.met_count; i++) {
        const struct raft_met *met = &r->state.met[i];
        struct raft_peer *peer = raft_peer_find(r, met->id);

        if (met->id == 0)
            r->has_begun = true;
        else if (peer && is_of(r, peer, met))
            merge(r, peer, met);
        else
            keep(r, met);
    }
}
