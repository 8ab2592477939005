/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The forced transfer, as a model for Spin: does Raft's log stay safe when one
 * voter may win with a log that is shorter than those of its voters?
 *
 * The log of Raft as in figure 2 of the paper, three nodes, one change: the
 * leader of term t may freeze what is committed, for good, and name a target
 * that has all of it. In exactly term t + 1 that target may win with any log.
 *
 * Promises and leases play no part here; they only forbid votes (cluster.pml).
 * An entry is its term and its place, since a leader never writes two entries
 * in one place. What the leader of a term has written stays known, so that its
 * appends and the answers may come late, twice, out of order or never.
 */

#ifndef TERMS
#define TERMS 3 /* 3 or 4 */
#endif
#ifndef LENGTH
#define LENGTH 3 /* of a log; 2 or 3 */
#endif

#define NODES 3
#define SLOTS (TERMS + 1)
#define PLACES (LENGTH + 1) /* place 0 is before the log */

#define FOLLOWER 0
#define CANDIDATE 1
#define LEADER 2

/* Of a node; all but the role and the votes durable. */
byte term[NODES], vote[NODES], length[NODES];
byte entry[NODES * PLACES];
byte role[NODES], votes[NODES];

/* Of a term: its leader's log, its no-op, what it knows others to have, what it has committed, and the target. */
byte leader_of[SLOTS], leader_length[SLOTS], noop[SLOTS], commit[SLOTS], target[SLOTS];
byte leader_entry[SLOTS * PLACES];
byte match[SLOTS * NODES];

byte committed[PLACES], committed_in[PLACES]; /* what anybody ever committed in a place, and in which term first */

#define ENTRY(n, i) entry[(n)*PLACES + (i)]
#define WRITTEN(t, i) leader_entry[(t)*PLACES + (i)]
#define MATCH(t, n) match[(t)*NODES + (n)]
#define LAST(n) ENTRY(n, length[n]) /* the term of the last entry; ENTRY(n, 0) is 0 */
#define BIT(n) (1 << (n))
#define IS_MAJORITY(set) ((set) == 3 || (set) >= 5)

#ifdef REACHED
byte forced_term; /* in which somebody has voted for a log that is older than its own */
#define FORCED (forced_term == term[l])
#endif

byte i, n; /* of loops */

inline stand(c)
{
    d_step {
        term[c] < TERMS ->
            term[c]++;
            vote[c] = c + 1;
            role[c] = CANDIDATE;
            votes[c] = BIT(c);
            printf("node %d stands for election in term %d, its log ends at %d in term %d\n", c + 1, term[c], length[c],
                   LAST(c))
    }
}

#ifdef LOG_NOT_COMPARED
#define IS_CURRENT(v, c) true
#else
#define IS_CURRENT(v, c) (LAST(c) > LAST(v) || (LAST(c) == LAST(v) && length[c] >= length[v]))
#endif
#ifdef FORCE_FOR_EVER
#define IS_NAMED_IN(c, t) (t < term[c] && target[t] == c + 1)
#elif defined(FORCE_ANY_TARGET)
#define IS_NAMED_IN(c, t) (t + 1 == term[c] && target[t] != 0)
#else
#define IS_NAMED_IN(c, t) (t + 1 == term[c] && target[t] == c + 1)
#endif
/* A voter with a newer log refuses; that, or the exact term, would do alone. */
#ifdef FORCE_FOR_EVER
#define IS_FORCED_IN(v, c, t) (IS_NAMED_IN(c, t) && length[c] >= commit[t])
#else
#define IS_FORCED_IN(v, c, t) (IS_NAMED_IN(c, t) && length[c] >= commit[t] && LAST(v) <= t)
#endif
#if TERMS > 3
#define IS_FORCED(v, c) (IS_FORCED_IN(v, c, 1) || IS_FORCED_IN(v, c, 2) || IS_FORCED_IN(v, c, 3))
#else
#define IS_FORCED(v, c) (IS_FORCED_IN(v, c, 1) || IS_FORCED_IN(v, c, 2))
#endif

/* A request of an election that is over needs no answer, so the candidate's log is the one that it asked with. */
inline give_vote(v, c)
{
    d_step {
        role[c] == CANDIDATE && (term[v] < term[c] || (term[v] == term[c] && vote[v] == 0)) &&
            (IS_CURRENT(v, c) || IS_FORCED(v, c)) ->
#ifdef REACHED
            forced_term = (IS_CURRENT(v, c) -> forced_term : term[c]);
#endif
            term[v] = term[c];
            vote[v] = c + 1;
            role[v] = FOLLOWER;
            votes[v] = 0;
            votes[c] = votes[c] | BIT(v);
            printf("node %d votes for node %d in term %d, its own log ends at %d in term %d\n", v + 1, c + 1, term[c],
                   length[v], LAST(v))
    }
}

inline write_entry(l)
{
    length[l]++;
    ENTRY(l, length[l]) = term[l];
    leader_length[term[l]] = length[l];
    WRITTEN(term[l], length[l]) = term[l];
    MATCH(term[l], l) = length[l]
}

inline win(c)
{
    d_step {
        role[c] == CANDIDATE && IS_MAJORITY(votes[c]) && length[c] < LENGTH ->
            role[c] = LEADER;
            votes[c] = 0;
            printf("node %d leads term %d\n", c + 1, term[c]);
            assert(leader_of[term[c]] == 0);
            leader_of[term[c]] = c + 1;
            for (i : 1 .. LENGTH) {
                /* Leader Completeness: whoever leads has all that was committed in earlier terms. */
                assert(committed[i] == 0 || committed_in[i] >= term[c] || ENTRY(c, i) == committed[i]);
                WRITTEN(term[c], i) = ENTRY(c, i)
            }
            i = 0;
            write_entry(c);
            noop[term[c]] = length[c]
    }
}

inline propose(l)
{
    d_step {
        role[l] == LEADER && length[l] < LENGTH ->
            write_entry(l);
            printf("node %d writes entry %d of term %d\n", l + 1, length[l], term[l])
    }
}

/* The first `upto` entries, as the leader of term t has or had them. */
inline take_append(v, t, upto)
{
    d_step {
        leader_of[t] != 0 && leader_of[t] != v + 1 && term[v] <= t && upto <= leader_length[t] && MATCH(t, v) < upto ->
            vote[v] = (t > term[v] -> 0 : vote[v]);
            term[v] = t;
            role[v] = FOLLOWER;
            votes[v] = 0;
            n = length[v];
            for (i : 1 .. upto) {
                if
                :: ENTRY(v, i) != WRITTEN(t, i) -> n = 0 /* it conflicts, and all after it goes */
                :: else
                fi;
                ENTRY(v, i) = WRITTEN(t, i)
            }
            length[v] = (n > upto -> n : upto);
            for (i : 1 .. LENGTH) {
                ENTRY(v, i) = (i > length[v] -> 0 : ENTRY(v, i))
            }
            MATCH(t, v) = upto;
            n = 0;
            i = 0;
            printf("node %d takes entries up to %d of the leader of term %d\n", v + 1, upto, t)
    }
}

#define HAS(t, n, upto) (MATCH(t, n) >= upto)
#ifdef COMMITS_OLD_TERM
#define IS_OWN(t, upto) true
#else
#define IS_OWN(t, upto) (WRITTEN(t, upto) == t)
#endif
#ifdef FORCE_GOES_ON
#define IS_FROZEN(t) false
#else
#define IS_FROZEN(t) (target[t] != 0)
#endif

inline commit_upto(l, upto)
{
    d_step {
        role[l] == LEADER && upto <= leader_length[term[l]] && upto > commit[term[l]] && IS_OWN(term[l], upto) &&
            !IS_FROZEN(term[l]) && HAS(term[l], 0, upto) + HAS(term[l], 1, upto) + HAS(term[l], 2, upto) >= 2 ->
            commit[term[l]] = upto;
            printf("node %d commits up to %d in term %d\n", l + 1, upto, term[l]);
            for (i : 1 .. upto) {
                /* State-Machine Safety: in one place one entry. */
                assert(committed[i] == 0 || committed[i] == WRITTEN(term[l], i));
                committed_in[i] = (committed[i] == 0 || term[l] < committed_in[i] -> term[l] : committed_in[i]);
                committed[i] = WRITTEN(term[l], i)
            }
            i = 0;
#ifdef REACHED
            assert(!(REACHED))
#endif
    }
}

#ifdef FORCE_BEFORE_NOOP
#define KNOWS_ALL(t) true
#else
#define KNOWS_ALL(t) (commit[t] >= noop[t])
#endif
#ifdef FORCE_BEHIND
#define IS_LEVEL(t, n) true
#else
#define IS_LEVEL(t, n) (MATCH(t, n) >= commit[t])
#endif

inline force(l, to)
{
    d_step {
        role[l] == LEADER && target[term[l]] == 0 && KNOWS_ALL(term[l]) && IS_LEVEL(term[l], to) ->
            target[term[l]] = to + 1;
            printf("node %d forces a transfer to node %d, committed up to %d\n", l + 1, to + 1, commit[term[l]])
    }
}

#define EACH(what) :: what(0) :: what(1) :: what(2)
#define EACH_PAIR(what) :: what(0, 1) :: what(0, 2) :: what(1, 0) :: what(1, 2) :: what(2, 0) :: what(2, 1)
#define EACH_WITH(what, x) :: what(0, x) :: what(1, x) :: what(2, x)
#define APPENDS(t, x) :: take_append(0, t, x) :: take_append(1, t, x) :: take_append(2, t, x)

/* Somebody is the first to stand; let it be node 1. */
init
{
    stand(0);
    do
    EACH(stand)
    EACH_PAIR(give_vote)
    EACH(win)
    EACH(propose)
    EACH_PAIR(force)
    EACH_WITH(commit_upto, 1)
    EACH_WITH(commit_upto, 2)
    APPENDS(1, 1) APPENDS(1, 2)
    APPENDS(2, 1) APPENDS(2, 2)
    APPENDS(3, 1) APPENDS(3, 2)
#if TERMS > 3
    APPENDS(4, 1) APPENDS(4, 2)
#endif
#if LENGTH > 2
    EACH_WITH(commit_upto, 3)
    APPENDS(1, 3)
    APPENDS(2, 3)
    APPENDS(3, 3)
#if TERMS > 3
    APPENDS(4, 3)
#endif
#endif
    :: break /* the bounds are reached, or it just ends here */
    od
}
