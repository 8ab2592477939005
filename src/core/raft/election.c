/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The record of elections: term, candidates, who voted for whom and why not,
 * how long it took and how it ended. A node writes down its own candidacies
 * with all answers, and the votes that others asked it for.
 */

#include "core/raft/internal.h"

#include <string.h>

static struct raft_election *newest(struct raft *r)
{
    return &r->elections[(r->election_count - 1) % RAFT_ELECTIONS_KEPT];
}

const struct raft_election *raft_election_at(const struct raft *r, size_t which)
{
    if (which >= r->election_count || which >= RAFT_ELECTIONS_KEPT)
        return NULL;
    return &r->elections[(r->election_count - 1 - which) % RAFT_ELECTIONS_KEPT];
}

const char *raft_result_name(enum raft_result result)
{
    static const char *const names[] = {
        [RAFT_RUNNING] = "running",     [RAFT_WON] = "won",
        [RAFT_LOST] = "lost",           [RAFT_TIMED_OUT] = "timed out",
        [RAFT_OVERTAKEN] = "overtaken",
    };

    return (size_t)result < sizeof names / sizeof *names ? names[result] : "unknown";
}

static struct raft_election *find(struct raft *r, raft_term term, raft_id candidate)
{
    size_t kept = r->election_count < RAFT_ELECTIONS_KEPT ? r->election_count : RAFT_ELECTIONS_KEPT;

    for (size_t i = 0; i < kept; i++) {
        struct raft_election *e = &r->elections[(r->election_count - 1 - i) % RAFT_ELECTIONS_KEPT];

        if (e->term == term && e->candidate == candidate && !e->is_pre_vote)
            return e;
    }
    return NULL;
}

static struct raft_election *add(struct raft *r, raft_term term, raft_id candidate, bool is_pre_vote)
{
    struct raft_election *e = &r->elections[r->election_count++ % RAFT_ELECTIONS_KEPT];

    memset(e, 0, sizeof *e);
    e->term = term;
    e->candidate = candidate;
    e->is_pre_vote = is_pre_vote;
    e->started_at = r->now;
    return e;
}

static void end(struct raft *r, struct raft_election *e, enum raft_result result)
{
    ASSERT(result != RAFT_RUNNING);
    ASSERT(r->now >= e->started_at);
    e->result = result;
    e->ended_at = r->now;
    raft_tell(r, RAFT_NEWS_ELECTION_ENDED, e->candidate)->tell.election = e;
}

/* A node that is cut off asks for pre-votes without end; its rounds for one term share one record. */
static bool goes_on(struct raft *r, raft_term term)
{
    const struct raft_election *e = newest(r);

    return r->election_count > 0 && e->is_pre_vote && e->candidate == r->state.id && e->term == term;
}

void raft_record_begin(struct raft *r, raft_term term, raft_id candidate, bool is_pre_vote)
{
    struct raft_election *e;

    r->has_election = true;
    if (is_pre_vote && goes_on(r, term)) {
        newest(r)->result = RAFT_RUNNING;
        newest(r)->ballot_count = 0;
    } else {
        add(r, term, candidate, is_pre_vote);
    }
    e = newest(r);
    ASSERT(e->term == term);
    ASSERT(e->candidate == candidate);
    ASSERT(e->is_pre_vote == is_pre_vote);
    ASSERT(e->result == RAFT_RUNNING);
    ASSERT(e->ballot_count == 0);
    e->ballots[e->ballot_count++] = (struct raft_ballot){candidate, candidate, RAFT_GRANTED};
}

static void put_ballot(struct raft_election *e, raft_id voter, raft_id candidate, enum raft_reason reason)
{
    unsigned i = 0;

    while (i < e->ballot_count && e->ballots[i].voter != voter)
        i++;
    if (i == RAFT_MEMBERS_MAX)
        return;
    if (i == e->ballot_count)
        e->ballot_count++;
    ASSERT(i < e->ballot_count);
    ASSERT(e->ballot_count <= RAFT_MEMBERS_MAX);
    e->ballots[i] = (struct raft_ballot){voter, candidate, reason};
}

static struct raft_election *own(struct raft *r)
{
    size_t kept = r->election_count < RAFT_ELECTIONS_KEPT ? r->election_count : RAFT_ELECTIONS_KEPT;

    for (size_t i = 0; i < kept; i++) {
        struct raft_election *e = &r->elections[(r->election_count - 1 - i) % RAFT_ELECTIONS_KEPT];

        if (e->candidate == r->state.id)
            return e;
    }
    return NULL;
}

void raft_record_ballot(struct raft *r, raft_id voter, raft_id candidate, enum raft_reason reason)
{
    struct raft_election *e = own(r);

    if (e && r->has_election)
        put_ballot(e, voter, candidate, reason);
}

void raft_record_end(struct raft *r, enum raft_result result)
{
    struct raft_election *e = own(r);

    if (r->has_election && e)
        end(r, e, result);
    r->has_election = false;
}

void raft_record_asked(struct raft *r, raft_term term, raft_id candidate, enum raft_reason reason)
{
    struct raft_election *e = find(r, term, candidate);

    if (!e)
        e = add(r, term, candidate, false);
    put_ballot(e, r->state.id,
               reason == RAFT_GRANTED ? candidate
               : reason == RAFT_VOTED ? r->state.vote
                                      : 0,
               reason);
}

/* Somebody leads: every election that we were asked to vote in and that still runs has ended. */
void raft_record_leader(struct raft *r, raft_id leader)
{
    size_t kept = r->election_count < RAFT_ELECTIONS_KEPT ? r->election_count : RAFT_ELECTIONS_KEPT;

    for (size_t i = 0; i < kept; i++) {
        struct raft_election *e = &r->elections[i];

        if (e->result != RAFT_RUNNING || e->candidate == r->state.id || e->term > r->state.term)
            continue;
        end(r, e, e->term < r->state.term ? RAFT_OVERTAKEN : e->candidate == leader ? RAFT_WON : RAFT_LOST);
    }
}
