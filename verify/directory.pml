/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data directories that are lost, as a model for Spin: elections and commits
 * of Raft with three nodes, one of which forgets everything and comes back
 * empty under its name (src/core/raft/directory.c). No committed entry may be lost.
 *
 * The first entry of every log is the configuration that binds each member to
 * the directory that it began with, so whoever has an entry knows. A directory
 * is lost only when all others know; LOSE_UNBOUND shows what happens before.
 *
 * A message and its answer are one step. A node that does not answer, or is
 * behind, is one that is never chosen.
 */

#ifndef TERMS
#define TERMS 3
#endif
#ifndef LENGTH
#define LENGTH 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif

#define NODES 3
#define FOLLOWER 0
#define CANDIDATE 1
#define LEADER 2

#define BIT(n) (1 << (n))
#define MAJORITY(set) ((set) == 3 || (set) == 5 || (set) == 6 || (set) == 7)

byte term[NODES], vote[NODES], role[NODES], votes[NODES];
byte length[NODES], log[NODES * (LENGTH + 1)]; /* the terms of the entries, from 1 on */
bit is_new[NODES];                             /* its directory is not the one that it began with */
byte match[NODES * NODES];                     /* of a leader: what a follower has acknowledged */
byte leader_of[TERMS + 1];
byte committed, committed_term[LENGTH + 1];
byte committed_in[LENGTH + 1]; /* which leader's term */
byte losses;
byte i;

#define LOG(n, k) log[(n) * (LENGTH + 1) + (k)]
#define LAST(n) LOG(n, length[n])
#define IS_CURRENT(c, v) (LAST(c) > LAST(v) || (LAST(c) == LAST(v) && length[c] >= length[v]))

/* Rule 2: what another directory says is refused, by whoever knows the binding. */
#define KNOWS(n) (length[n] > 0)
#define REFUSES(n, whom) (KNOWS(n) && is_new[whom])
#ifdef COUNTS_ANY_VOTE
#define COUNTS(n, whom) true
#else
#define COUNTS(n, whom) (!REFUSES(n, whom))
#endif
/* Rule 3: whoever finds another number under its own name does not stand. */
#define MAY_STAND(n) (!REFUSES(n, n))

inline stand(n)
{
    d_step {
        role[n] != LEADER && term[n] < TERMS && MAY_STAND(n) ->
            term[n]++;
            vote[n] = n + 1;
            votes[n] = BIT(n);
            role[n] = CANDIDATE;
            printf("node %d stands in term %d\n", n + 1, term[n])
    }
}

inline give_vote(c, v)
{
    d_step {
        role[c] == CANDIDATE && !REFUSES(v, c) && IS_CURRENT(c, v) &&
                (term[v] < term[c] || (term[v] == term[c] && vote[v] == 0 && role[v] == FOLLOWER)) ->
            term[v] = term[c];
            vote[v] = c + 1;
            role[v] = FOLLOWER;
            if
            :: COUNTS(c, v) -> votes[c] = votes[c] | BIT(v)
            :: else
            fi;
            printf("node %d votes for node %d in term %d\n", v + 1, c + 1, term[c])
    }
}

inline win(c)
{
    d_step {
        role[c] == CANDIDATE && MAJORITY(votes[c]) ->
            printf("node %d leads in term %d\n", c + 1, term[c]);
            assert(leader_of[term[c]] == 0);
            leader_of[term[c]] = c + 1;
            role[c] = LEADER;
            match[c * NODES] = 0;
            match[c * NODES + 1] = 0;
            match[c * NODES + 2] = 0;
            i = 1;
            do
            :: i <= committed ->
                /* Who wins late, in an older term, is no leader of what came after it. */
                assert(committed_in[i] >= term[c] || (length[c] >= i && LOG(c, i) == committed_term[i]));
                i++
            :: else -> break
            od;
            i = 0
    }
}

inline propose(l)
{
    d_step {
        role[l] == LEADER && length[l] < LENGTH ->
            length[l]++;
            LAST(l) = term[l];
            printf("node %d appends entry %d\n", l + 1, length[l])
    }
}

/* The whole log at once; what the follower has beyond it was of an older leader. */
inline append(l, f)
{
    d_step {
        role[l] == LEADER && !REFUSES(f, l) && term[f] <= term[l] && (role[f] != LEADER || term[f] < term[l]) ->
            if
            :: term[f] < term[l] -> vote[f] = 0
            :: else
            fi;
            term[f] = term[l];
            role[f] = FOLLOWER;
            length[f] = length[l];
            i = 1;
            do
            :: i <= length[l] -> LOG(f, i) = LOG(l, i); i++
            :: else -> break
            od;
            i = 0;
            if
            :: !REFUSES(l, f) -> match[l * NODES + f] = length[l]
            :: else
            fi
    }
}

#define HAS(l, f, k) (f == l || match[l * NODES + f] >= k)

inline commit_upto(l, k)
{
    d_step {
        role[l] == LEADER && k > committed && k <= length[l] && LOG(l, k) == term[l] &&
                HAS(l, 0, k) + HAS(l, 1, k) + HAS(l, 2, k) >= 2 ->
            i = 1;
            do
            :: i <= committed -> assert(LOG(l, i) == committed_term[i]); i++
            :: i > committed && i <= k -> committed_term[i] = LOG(l, i); committed_in[i] = term[l]; i++
            :: else -> break
            od;
            i = 0;
            committed = k;
            printf("node %d commits up to %d\n", l + 1, k)
    }
}

#ifdef LOSE_UNBOUND
#define ALL_KNOW(a, b) true
#else
#define ALL_KNOW(a, b) (KNOWS(a) && KNOWS(b))
#endif

inline lose(n, a, b)
{
    d_step {
        losses < LOSSES && ALL_KNOW(a, b) ->
            losses++;
            is_new[n] = 1;
            term[n] = 0;
            vote[n] = 0;
            votes[n] = 0;
            length[n] = 0;
            role[n] = FOLLOWER;
            printf("node %d loses its directory\n", n + 1);
#ifdef REACHED
            assert(committed == 0)
#endif
    }
}

#define EACH(what) :: what(0) :: what(1) :: what(2)
#define EACH_PAIR(what) :: what(0, 1) :: what(0, 2) :: what(1, 0) :: what(1, 2) :: what(2, 0) :: what(2, 1)
#define EACH_WITH(what, x) :: what(0, x) :: what(1, x) :: what(2, x)

init
{
    stand(0);
    do
    EACH(stand)
    EACH_PAIR(give_vote)
    EACH(win)
    EACH(propose)
    EACH_PAIR(append)
    EACH_WITH(commit_upto, 1)
    EACH_WITH(commit_upto, 2)
    :: lose(0, 1, 2) :: lose(1, 0, 2) :: lose(2, 0, 1)
    :: break
    od
}
