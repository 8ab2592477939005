/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cluster that is founded twice, as a model for Spin: elections and commits
 * of Raft with three nodes. Two of them lose everything at once and found a
 * cluster of the same name among themselves; the third comes back to them
 * (src/core/raft/directory.c, rule 5). Two histories may then exist, one per
 * era, but they never mix: no node gives up what it has applied, and every
 * leader of an era has what its era has committed.
 *
 * The first entry of a log is the configuration that binds members to their
 * directories and names the founding. The first era binds all three nodes, the
 * second only the two that founded it: they have not met the third.
 *
 * A message and its answer are one step. A node that does not answer, or is
 * behind, is one that is never chosen.
 */

#ifndef TERMS
#define TERMS 2
#endif
#ifndef LENGTH
#define LENGTH 2
#endif

#define NODES 3
#define ERAS 2
#define FOLLOWER 0
#define CANDIDATE 1
#define LEADER 2

#define BIT(n) (1 << (n))
#define MAJORITY(set) ((set) == 3 || (set) == 5 || (set) == 6 || (set) == 7)

byte term[NODES], vote[NODES], role[NODES], votes[NODES];
byte length[NODES], log[NODES * (LENGTH + 1)]; /* the terms of the entries, from 1 on */
byte founding[NODES];                          /* by its log; 0: none */
byte applied[NODES];                           /* it knows that so much is committed */
bit era[NODES];                                /* of its directory */
byte match[NODES * NODES];                     /* of a leader: what a follower has acknowledged */
byte leader_of[ERAS * (TERMS + 1)];
byte committed[ERAS], committed_term[ERAS * (LENGTH + 1)], committed_in[ERAS * (LENGTH + 1)];
bit is_founded_again;
byte i;

#define LOG(n, k) log[(n) * (LENGTH + 1) + (k)]
#define LAST(n) LOG(n, length[n])
#define IN_ERA(list, n, k) list[era[n] * (LENGTH + 1) + (k)]
#define IS_CURRENT(c, v) (LAST(c) > LAST(v) || (LAST(c) == LAST(v) && length[c] >= length[v]))

/* A founding is the number of the directory of the leader that wrote it. */
#define FOUNDING_BY(n) (era[n] * NODES + (n) + 1)
#define IS_OF_FIRST_ERA(f) ((f) != 0 && (f) <= NODES)
#define IS_OTHER_DIRECTORY(n, whom) (IS_OF_FIRST_ERA(founding[n]) && era[whom] == 1)

#ifdef FOUNDING_UNCHECKED
/* As before: whoever comes with a later configuration has replaced the member. */
#define IS_OTHER_FOUNDING(n, whom) false
#define IS_REFUSED(n, whom) (IS_OTHER_DIRECTORY(n, whom) && length[whom] <= length[n])
#define REFUSES_LEADER(n, whom) IS_REFUSED(n, whom)
#else
#define IS_OTHER_FOUNDING(n, whom) (applied[n] > 0 && applied[whom] > 0 && founding[n] != founding[whom])
#define IS_REFUSED(n, whom)                                                                                            \
    (IS_OTHER_FOUNDING(n, whom) || IS_OTHER_DIRECTORY(n, whom) ||                                                      \
     (applied[n] > 0 && founding[whom] != 0 && founding[n] != founding[whom]))
/* A leader has all that is committed, so also the founding. */
#define REFUSES_LEADER(n, whom) (IS_REFUSED(n, whom) || (applied[n] > 0 && founding[n] != founding[whom]))
#endif
#define COUNTS(n, whom) (!IS_OTHER_FOUNDING(n, whom) && !IS_OTHER_DIRECTORY(n, whom))
#define MAY_STAND(n) (!IS_OTHER_DIRECTORY(n, n))

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
        role[c] == CANDIDATE && !IS_REFUSED(v, c) && IS_CURRENT(c, v) &&
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
            assert(leader_of[era[c] * (TERMS + 1) + term[c]] == 0);
            leader_of[era[c] * (TERMS + 1) + term[c]] = c + 1;
            role[c] = LEADER;
            match[c * NODES] = 0;
            match[c * NODES + 1] = 0;
            match[c * NODES + 2] = 0;
            i = 1;
            do
            :: i <= committed[era[c]] ->
                assert(IN_ERA(committed_in, c, i) >= term[c] ||
                       (length[c] >= i && LOG(c, i) == IN_ERA(committed_term, c, i)));
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
            if
            :: length[l] == 0 -> founding[l] = FOUNDING_BY(l)
            :: else
            fi;
            length[l]++;
            LAST(l) = term[l];
            printf("node %d appends entry %d\n", l + 1, length[l])
    }
}

/* The whole log at once; what the follower has beyond it was of an older leader, and is not applied. */
inline append(l, f)
{
    d_step {
        role[l] == LEADER && !REFUSES_LEADER(f, l) && term[f] <= term[l] && (role[f] != LEADER || term[f] < term[l]) ->
            if
            :: term[f] < term[l] -> vote[f] = 0
            :: else
            fi;
            printf("node %d follows node %d\n", f + 1, l + 1);
            assert(applied[f] == 0 || (applied[f] <= length[l] && founding[f] == founding[l]));
            term[f] = term[l];
            role[f] = FOLLOWER;
            length[f] = length[l];
            founding[f] = founding[l];
            i = 1;
            do
            :: i <= length[l] -> assert(i > applied[f] || LOG(f, i) == LOG(l, i)); LOG(f, i) = LOG(l, i); i++
            :: else -> break
            od;
            i = 0;
            if
            :: applied[l] > applied[f] -> applied[f] = applied[l]
            :: else
            fi;
            if
            :: COUNTS(l, f) -> match[l * NODES + f] = length[l]
            :: else
            fi
    }
}

#define HAS(l, f, k) (f == l || match[l * NODES + f] >= k)

inline commit_upto(l, k)
{
    d_step {
        role[l] == LEADER && k > applied[l] && k <= length[l] && LOG(l, k) == term[l] &&
                HAS(l, 0, k) + HAS(l, 1, k) + HAS(l, 2, k) >= 2 ->
            i = 1;
            do
            :: i <= k && i <= committed[era[l]] -> assert(LOG(l, i) == IN_ERA(committed_term, l, i)); i++
            :: i <= k && i > committed[era[l]] ->
                IN_ERA(committed_term, l, i) = LOG(l, i);
                IN_ERA(committed_in, l, i) = term[l];
                i++
            :: else -> break
            od;
            i = 0;
            applied[l] = k;
            if
            :: k > committed[era[l]] -> committed[era[l]] = k
            :: else
            fi;
            printf("node %d commits up to %d\n", l + 1, k);
#ifdef REACHED
            assert(committed[0] == 0 || committed[1] < LENGTH)
#endif
    }
}

inline lose(n)
{
    era[n] = 1;
    term[n] = 0;
    vote[n] = 0;
    votes[n] = 0;
    length[n] = 0;
    founding[n] = 0;
    applied[n] = 0;
    role[n] = FOLLOWER
}

/* The third knows its founding, or has nothing to lose: an empty directory belongs to who speaks to it first. */
inline found_again(a, b, c)
{
    d_step {
        !is_founded_again && founding[c] != 0 ->
            is_founded_again = 1;
            lose(a);
            lose(b);
            match[c * NODES + a] = 0;
            match[c * NODES + b] = 0;
            printf("nodes %d and %d lose their directories\n", a + 1, b + 1)
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
    :: found_again(0, 1, 2) :: found_again(0, 2, 1) :: found_again(1, 2, 0)
    :: break
    od
}
