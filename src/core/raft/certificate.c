/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Certificates: proofs that a promise no longer binds.
 *
 * An obituary is signed by the guard of a node after it has confirmed that the
 * node's process, and with it its work, is dead. A release is signed by a
 * leader after its work has stopped. A lost one costs only time. A false one
 * can let a new leader begin while the old one works (S4); it can never harm
 * consensus, because votes and logs do not rest on it.
 */

#include "core/raft/internal.h"

#include <string.h>

bool raft_certificate_is_genuine(const struct raft *r, const struct raft_certificate *certificate)
{
    if (certificate->kind == RAFT_CERT_NONE)
        return false;
    if (PLANTED(CERTIFICATE_UNCHECKED))
        return true;
    return r->settings.verify && r->settings.verify(r->settings.context, certificate);
}

bool raft_certificate_covers(const struct raft_certificate *c, const struct raft_promise *promise)
{
    if (c->kind == RAFT_CERT_NONE || c->node != promise->leader)
        return false;
    if (PLANTED(OBITUARY_ANY_INCARNATION) && c->kind == RAFT_CERT_OBITUARY)
        return true;
    if (c->kind == RAFT_CERT_OBITUARY)
        return c->incarnation >= promise->incarnation;
    return c->incarnation == promise->incarnation && c->term == promise->term &&
           c->lease_epoch >= promise->lease_epoch;
}

/*
 * Whether the leader of our term is known to be dead, so that its appends, which may still be under way, bind
 * nobody. Who is elected in a later term than the one in which we heard of its death is alive, and its
 * obituary was false: it must be possible to follow it, or a forged obituary could keep a group without a
 * leader for ever.
 */
bool raft_is_dead(const struct raft *r, raft_id leader, uint64_t incarnation)
{
    const struct raft_peer *peer = raft_peer_at(r, leader);

    return peer && peer->dead_incarnation >= incarnation && peer->dead_term >= r->state.term;
}

/*
 * Nobody leads, and everybody may know: the first successor stands at once, the others in their order. A
 * witness that has led, and that no worker has answered then, leaves it to the others. Otherwise two that the
 * workers cannot reach would follow each other, although a third could hand over to a worker.
 */
static void hurry(struct raft *r)
{
    gavel_ns at = r->now + raft_rank(r) * raft_rank_step(r);

    if (raft_is_witness(r) && r->idle_turns > 0)
        return;
    if ((r->role != RAFT_FOLLOWER && r->role != RAFT_PRE_CANDIDATE) || at >= r->election_at)
        return;
    ASSERT(at >= r->now);
    r->election_at = at;
    r->stands_directly = at == r->now;
}

/* A release that came late, or again: a transfer was given up, and its leader has gone on since with a later
 * lease epoch. */
bool raft_is_outdated(const struct raft *r, const struct raft_certificate *c)
{
    const struct raft_promise *promise = &r->state.promise;

    return promise->leader == c->node && promise->term == c->term && promise->lease_epoch > c->lease_epoch;
}

/* Whether it speaks of the leader we follow, as we know it. */
static bool is_about_leader(const struct raft *r, const struct raft_certificate *c)
{
    if (r->leader == 0 || r->leader != c->node || r->leader == r->state.id)
        return false;
    if (c->kind == RAFT_CERT_OBITUARY)
        return c->incarnation >= r->leader_incarnation;
    return c->incarnation == r->leader_incarnation && c->term == r->state.term && !raft_is_outdated(r, c);
}

bool raft_take_certificate(struct raft *r, const struct raft_certificate *c)
{
    bool is_useful = false;
    struct raft_peer *peer;

    if (!raft_certificate_is_genuine(r, c))
        return false;
    peer = raft_peer_find(r, c->node);
    if (c->kind == RAFT_CERT_OBITUARY && peer && peer->dead_incarnation < c->incarnation) {
        peer->dead_incarnation = c->incarnation;
        peer->dead_term = r->state.term;
        raft_tell(r, RAFT_NEWS_OBITUARY_TAKEN, c->node);
        if (r->transfer.target == c->node)
            r->transfer.is_target_dead = true;
    }
    if (r->state.promise.leader != 0 && raft_certificate_covers(c, &r->state.promise)) {
        raft_promise_clear(r); /* not marked: should we crash, holding it for longer harms nobody */
        is_useful = true;
    }
    if (is_about_leader(r, c)) {
        raft_set_leader(r, 0, 0);
        hurry(r);
        is_useful = true;
    }
    if (is_useful)
        r->certificate = *c;
    if (raft_is_promised(r, r->now))
        ASSERT(!raft_certificate_covers(c, &r->state.promise));
    return true;
}

void raft_make_release(struct raft *r, raft_id forced_target, struct raft_certificate *ret_certificate)
{
    ASSERT(r->work == RAFT_WORK_NONE || PLANTED(RELEASE_EARLY));
    ASSERT(r->led_term == r->state.term);
    ASSERT(r->lease_epoch > 0);
    ASSERT(forced_target != r->state.id);
    *ret_certificate = (struct raft_certificate){
        .kind = forced_target ? RAFT_CERT_FORCE : RAFT_CERT_RELEASE,
        .node = r->state.id,
        .incarnation = r->state.incarnation,
        .term = r->state.term,
        .lease_epoch = r->lease_epoch,
        .target = forced_target,
        .commit = forced_target ? r->commit : 0,
    };
    if (r->settings.sign)
        r->settings.sign(r->settings.context, ret_certificate);
    r->is_lease_given_up = true;
}

void raft_receive_certificate(struct raft *r, const struct raft_message *m)
{
    if (!raft_take_certificate(r, &m->certificate))
        raft_refuse(r, m->from, "a certificate that is not genuine");
}
