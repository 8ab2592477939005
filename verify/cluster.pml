/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rules by which leadership of the cluster changes hands, as a model for
 * Spin: promise, lease, gate, release, obituary, transfer and its abort,
 * crashes. Three nodes. README.md says what is left out and why nothing is
 * lost by it; `run` checks the model and its mutants.
 *
 * One process does one thing at a time, anything that is possible now: a
 * message arrives, a node stands, work stops, time passes. Messages are facts
 * that stay true (somebody stands in term 2, has released epoch 1), so that
 * every order, loss and repetition is among the behaviours.
 *
 * Time is in ticks and only relative: what is left of a promise, what is left
 * of a lease. A lease and the promise behind it end with the same tick, but
 * the tick waits until the work has stopped. The real lease is shorter, by the
 * drift of the clocks and the stop margin; a longer promise or a shorter lease
 * only takes behaviours away.
 *
 * A mutant is one `#ifdef` that breaks one rule.
 */

#ifndef TERMS
#define TERMS 3 /* 2 to 4 */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define EPOCHS 2  /* lease epochs in a term */
#define PROMISE 2 /* ticks */

#define NODES 3
#define SLOTS (TERMS + 1) /* term 0 is nobody's */

#define DOWN 0 /* crashed, its work perhaps not yet dead */
#define FOLLOWER 1
#define CANDIDATE 2
#define LEADER 3

/* Of a node, durable. The promise is {leader, incarnation, term, epoch}; its term tells the first two. */
byte term[NODES], vote[NODES], incarnation[NODES];
byte last_term[NODES]; /* of the log */
byte promise_term[NODES], promise_epoch[NODES];

/* Of a node, volatile. */
byte role[NODES];
byte promise_left[NODES];
byte votes[NODES]; /* a candidate's: bit set of voters */
byte lease[NODES]; /* what is left of it: the best of the two others, which with the leader is a majority */
bit is_spent[NODES]; /* a leader's epoch was claimed or released, and may not be claimed again */
bit works[NODES];    /* from CLAIM to WORK_STOPPED, also as the orphan of a crashed node */

/* Of a term: who leads it, which epochs there are, and the newest that was released. */
byte leader_of[SLOTS], leader_incarnation[SLOTS], epoch_of[SLOTS], released[SLOTS];
/* Vote requests that are about: 16 * incarnation + 1 + last log term. */
byte request[SLOTS * NODES];

byte crashes;
byte token_term; /* of the last claim; its epoch needs no memory: within a term is_spent keeps the order */

#ifdef LEASE_FROM_REPLY
#define DELAYS
#endif
#ifdef DELAYS
byte reply[NODES]; /* to a leader: 1 + what is left of the lease that it makes */
byte led[NODES];   /* for how many ticks there have been rounds of this epoch */
#endif
#ifdef RESTART_EARLY
bit has_orphan[NODES];
#endif
#ifdef REACHED
/* By which gate the newest vote passed, and for whom; and what a claim by `l` after another one may show. */
byte way, way_term, way_node;
#define EXPIRED 1
#define OBITUARY 2
#define RELEASE 3
#define LOG 4
#define SELF 5
#define BY(what) (token_term != 0 && way == what && way_node == l && way_term == term[l])
#define CLAIM true
#define RESUME (token_term == term[l])
#define BY_EXPIRY BY(EXPIRED)
#define BY_OBITUARY BY(OBITUARY)
#define BY_RELEASE BY(RELEASE)
#define BY_LOG BY(LOG)
#define BY_SELF BY(SELF)
#endif

#define BIT(n) (1 << (n))
#define REQUEST(t, n) request[(t)*NODES + (n)]

/* ---- certificates ---- */

#define PROMISED(v) (leader_of[promise_term[v]] - 1) /* to whom */

/*
 * An obituary is there as soon as it is true; that it may come late, or never, is that nobody has to use it. It
 * stays true for older incarnations when the node is back.
 */
#if defined(FORGED)
#define OBITUARY_COVERS(v) true
#elif defined(OBITUARY_ANY_INCARNATION)
#define OBITUARY_COVERS(v) (incarnation[PROMISED(v)] > 1)
#elif defined(OBITUARY_ANY_NODE)
#define OBITUARY_COVERS(v) (incarnation[0] > 1 || incarnation[1] > 1 || incarnation[2] > 1)
#elif defined(OBITUARY_EARLY)
#define OBITUARY_COVERS(v) (incarnation[PROMISED(v)] > leader_incarnation[promise_term[v]] || role[PROMISED(v)] == DOWN)
#else
#define OBITUARY_COVERS(v) (incarnation[PROMISED(v)] > leader_incarnation[promise_term[v]])
#endif

#ifdef RELEASE_ANY_EPOCH
#define EPOCH_COVERS(v, t) true
#else
#define EPOCH_COVERS(v, t) (released[t] >= promise_epoch[v])
#endif
#define NODE_COVERS(v, t) (leader_of[t] == leader_of[promise_term[v]])
#ifdef RELEASE_ANY_TERM
#define TERM_COVERS(v, t) (t != promise_term[v])
#else
#define TERM_COVERS(v, t) (t > promise_term[v])
#endif
#define COVERS(v, t)                                                                                         \
    (released[t] != 0 && NODE_COVERS(v, t) &&                                                  \
     (TERM_COVERS(v, t) || (t == promise_term[v] && EPOCH_COVERS(v, t))))
#if TERMS == 2
#define RELEASE_COVERS(v) (COVERS(v, 1) || COVERS(v, 2))
#elif TERMS == 3
#define RELEASE_COVERS(v) (COVERS(v, 1) || COVERS(v, 2) || COVERS(v, 3))
#else
#define RELEASE_COVERS(v) (COVERS(v, 1) || COVERS(v, 2) || COVERS(v, 3) || COVERS(v, 4))
#endif

/* ---- the gate ---- */

#ifdef GATE_LOG_EQUAL
#define IS_NEWER(v, log) ((log) >= promise_term[v])
#else
#define IS_NEWER(v, log) ((log) > promise_term[v])
#endif
#define IS_SELF(v, c, i) (PROMISED(v) == c && (i) >= leader_incarnation[promise_term[v]])
#define IS_PROMISED(v) (promise_term[v] != 0 && promise_left[v] > 0)
#ifdef GATE_OPEN
#define GATE(v, c, i, log) true
#else
#define GATE(v, c, i, log)                                                                                   \
    (!IS_PROMISED(v) || OBITUARY_COVERS(v) || RELEASE_COVERS(v) || IS_NEWER(v, log) || IS_SELF(v, c, i))
#endif

#ifdef RESTART_EARLY
#define IS_BUSY(n) (works[n] && !has_orphan[n]) /* the new incarnation knows nothing of the old one's work */
#else
#define IS_BUSY(n) works[n]
#endif
#ifdef STAND_WHILE_WORKING
#define MAY_STAND(n) true
#else
#define MAY_STAND(n) (!IS_BUSY(n))
#endif
#ifdef VOTE_WHILE_WORKING
#define MAY_VOTE(n) true
#else
#define MAY_VOTE(n) (!IS_BUSY(n))
#endif

/* ---- forgetting what cannot matter any more, so that fewer states differ ---- */

#define CANNOT_VOTE(v, c, t) (v == c || term[v] > t || (term[v] == t && vote[v] != 0))

inline forget_request(t, c)
{
    if
    :: REQUEST(t, c) != 0 && CANNOT_VOTE(0, c, t) && CANNOT_VOTE(1, c, t) && CANNOT_VOTE(2, c, t) ->
        REQUEST(t, c) = 0
    :: else
    fi
}

#define IS_PAST(v, t) (term[v] > t && (promise_term[v] == 0 || promise_term[v] > t))

inline forget_term(t)
{
    forget_request(t, 0);
    forget_request(t, 1);
    forget_request(t, 2);
    if
    :: leader_of[t] != 0 && IS_PAST(0, t) && IS_PAST(1, t) && IS_PAST(2, t) ->
        leader_of[t] = 0;
        leader_incarnation[t] = 0;
        epoch_of[t] = 0;
        released[t] = 0
    :: else
    fi
}

/* A promise that has ended matters once more only after a crash. */
inline forget_promise(v)
{
    if
    :: promise_left[v] == 0 && crashes == CRASHES && role[v] != DOWN ->
        promise_term[v] = 0;
        promise_epoch[v] = 0
    :: else
    fi
}

/* When nobody is in an older term any more, nobody can claim with an older token. */
inline forget_token()
{
#ifndef REACHED
    if
    :: term[0] >= token_term && term[1] >= token_term && term[2] >= token_term -> token_term = 0
    :: else
    fi
#else
    skip
#endif
}

inline forget()
{
    forget_token();
    forget_promise(0);
    forget_promise(1);
    forget_promise(2);
    forget_term(1);
    forget_term(2);
#if TERMS > 2
    forget_term(3);
#endif
#if TERMS > 3
    forget_term(4);
#endif
}

inline clear_promise(n)
{
    promise_term[n] = 0;
    promise_epoch[n] = 0;
    promise_left[n] = 0
}

/* A role ends; the lease stays as the deadline of work that still runs. */
inline leave_role(n)
{
    votes[n] = 0;
    is_spent[n] = 0;
#ifdef DELAYS
    reply[n] = 0;
    led[n] = 0;
#endif
    if
    :: !works[n] -> lease[n] = 0
    :: else
    fi
}

/* ---- elections ---- */

inline stand(n)
{
    d_step {
        role[n] != DOWN && term[n] < TERMS && MAY_STAND(n) && GATE(n, n, incarnation[n], last_term[n]) ->
            term[n]++;
            vote[n] = n + 1;
            role[n] = CANDIDATE;
            clear_promise(n);
            leave_role(n);
            REQUEST(term[n], n) = 16 * incarnation[n] + 1 + last_term[n];
            votes[n] = BIT(n);
            printf("node %d stands for election in term %d\n", n + 1, term[n]);
            forget()
    }
}

#define LOG_OF(t, c) ((REQUEST(t, c) & 15) - 1)
#define INCARNATION_OF(t, c) (REQUEST(t, c) >> 4)

/*
 * A vote ends the promise that the gate has passed. It must not end a promise to the leader of this very term: the
 * request is a late or a repeated one then. Logs are not compared: what is proven holds for any rule about them.
 */
#ifdef REPEATED_VOTE_CLEARS
#define MAY_CHOOSE(v, c) (vote[v] == 0 || vote[v] == c + 1)
#else
#define MAY_CHOOSE(v, c) (vote[v] == 0)
#endif
#if defined(LATE_VOTE_CLEARS)
#define ENDS_PROMISE(v, c, t) true
#elif defined(REPEATED_VOTE_CLEARS)
#define ENDS_PROMISE(v, c, t) (promise_term[v] != t || vote[v] == c + 1)
#else
#define ENDS_PROMISE(v, c, t) (promise_term[v] != t)
#endif

inline give_vote(v, c, t)
{
    d_step {
        REQUEST(t, c) != 0 && role[v] != DOWN && (t > term[v] || (t == term[v] && MAY_CHOOSE(v, c))) && MAY_VOTE(v) &&
            GATE(v, c, INCARNATION_OF(t, c), LOG_OF(t, c)) ->
            note_way(v, c, t);
            if
            :: t > term[v] -> role[v] = FOLLOWER; leave_role(v)
            :: else
            fi;
            if
            :: ENDS_PROMISE(v, c, t) -> clear_promise(v)
            :: else
            fi;
            term[v] = t;
            vote[v] = c + 1;
            if
            :: term[c] == t && role[c] == CANDIDATE -> votes[c] = votes[c] | BIT(v)
            :: else
            fi;
            printf("node %d votes for node %d in term %d\n", v + 1, c + 1, t);
            forget()
    }
}

inline note_way(v, c, t)
{
#ifdef REACHED
    way_term = t;
    way_node = c;
    way = (promise_term[v] == 0 || promise_term[v] == t -> 0 :
          (!IS_PROMISED(v) -> EXPIRED :
          (IS_SELF(v, c, INCARNATION_OF(t, c)) -> SELF :
          (IS_NEWER(v, LOG_OF(t, c)) -> LOG :
          (RELEASE_COVERS(v) -> RELEASE : OBITUARY)))))
#else
    skip
#endif
}

#define IS_MAJORITY(set) ((set) == 3 || (set) >= 5)

inline win(c)
{
    d_step {
        role[c] == CANDIDATE && IS_MAJORITY(votes[c]) ->
            printf("node %d leads term %d\n", c + 1, term[c]);
            assert(leader_of[term[c]] == 0); /* S3: at most one leader in a term */
            role[c] = LEADER;
            votes[c] = 0;
            leader_of[term[c]] = c + 1;
            leader_incarnation[term[c]] = incarnation[c];
            epoch_of[term[c]] = 1;
            last_term[c] = term[c];
            forget()
    }
}

/* ---- promise and lease ---- */

#ifdef OLDER_EPOCH_REPLACES
#define IS_OVERTAKEN(v, t, e) false
#else
#define IS_OVERTAKEN(v, t, e) (promise_term[v] == t && (e) < promise_epoch[v])
#endif
#ifdef PROMISE_NOT_RENEWED
#define RENEWS(v, t, e) (promise_term[v] != t || promise_epoch[v] != (e))
#else
#define RENEWS(v, t, e) true
#endif
#ifdef LEASE_WITHOUT_DRIFT
#define LEASE (PROMISE + 1)
#else
#define LEASE PROMISE
#endif

#define HEAD(t) (leader_of[t] - 1)
#define IS_CURRENT(t, e) (role[HEAD(t)] == LEADER && term[HEAD(t)] == t && epoch_of[t] == (e))

/*
 * Only replies of the current term and epoch count, and for as long as the round began ago less. Without DELAYS
 * the round, the append and the reply take no time: the best that can happen to a lease.
 */
inline answer(t, e, age)
{
    if
    :: IS_CURRENT(t, e) ->
#ifdef DELAYS
        reply[HEAD(t)] = (LEASE - age + 1 > reply[HEAD(t)] -> LEASE - age + 1 : reply[HEAD(t)])
#else
        lease[HEAD(t)] = LEASE
#endif
    :: else
    fi
}

#ifdef DELAYS
#define HAS_ROUND(t, e, age) ((age) == 0 || (IS_CURRENT(t, e) && led[HEAD(t)] >= (age)))
#else
#define HAS_ROUND(t, e, age) ((age) == 0)
#endif

/* Any append that was ever sent. It is followed in any case; that its sender is working elsewhere stops nobody. */
inline take_append(v, t, e, age)
{
    d_step {
        leader_of[t] != 0 && leader_of[t] != v + 1 && e <= epoch_of[t] && role[v] != DOWN && t >= term[v] &&
            HAS_ROUND(t, e, age) ->
            vote[v] = (t > term[v] -> 0 : vote[v]);
            term[v] = t;
            role[v] = FOLLOWER;
            leave_role(v);
            last_term[v] = t;
            if
            :: IS_OVERTAKEN(v, t, e)
            :: else ->
                promise_left[v] = (RENEWS(v, t, e) -> PROMISE : promise_left[v]);
                promise_term[v] = t;
                promise_epoch[v] = e
            fi;
            answer(t, e, age);
            printf("node %d takes an append of node %d, term %d, lease epoch %d\n", v + 1, leader_of[t], t, e);
            forget()
    }
}

#ifdef DELAYS
#ifdef LEASE_FROM_REPLY
#define WORTH(l) LEASE
#else
#define WORTH(l) (reply[l] - 1)
#endif
inline take_reply(l)
{
    d_step {
        role[l] == LEADER && reply[l] != 0 ->
            lease[l] = (WORTH(l) > lease[l] -> WORTH(l) : lease[l]);
            reply[l] = 0;
            printf("node %d counts a reply\n", l + 1)
    }
}
#endif

/* ---- work ---- */

#ifdef CLAIM_WITHOUT_LEASE
#define HAS_LEASE(l) true
#else
#define HAS_LEASE(l) (lease[l] > 0)
#endif

inline claim(l)
{
    d_step {
        role[l] == LEADER && !IS_BUSY(l) && !is_spent[l] && HAS_LEASE(l) ->
            printf("node %d CLAIMS with term %d, lease epoch %d\n", l + 1, term[l], epoch_of[term[l]]);
#ifdef REACHED
            assert(!(REACHED));
#endif
#ifndef FORGED
            assert(!works[0] && !works[1] && !works[2]); /* S4: no two work at once */
            assert(term[l] >= token_term); /* S1: tokens only grow */
            token_term = term[l];
#endif
            works[l] = 1;
            is_spent[l] = 1;
            forget_token()
    }
}

inline stop_work(l)
{
    d_step {
        works[l] ->
            works[l] = 0;
            printf("the work of node %d has stopped\n", l + 1);
#ifdef RESTART_EARLY
            has_orphan[l] = 0;
#endif
            if
            :: role[l] == DOWN -> lease[l] = 0; restart(l)
            :: role[l] == LEADER
            :: else -> lease[l] = 0
            fi;
            forget()
    }
}

#ifdef RELEASE_EARLY
#define MAY_RELEASE(l) true
#else
#define MAY_RELEASE(l) (!works[l])
#endif

/* On the way to a transfer, or to stepping down. */
inline release(l)
{
    d_step {
        role[l] == LEADER && released[term[l]] < epoch_of[term[l]] && MAY_RELEASE(l) ->
            is_spent[l] = 1;
            released[term[l]] = epoch_of[term[l]];
            printf("node %d releases term %d, lease epoch %d\n", l + 1, term[l], epoch_of[term[l]])
    }
}

/* A transfer that has failed. */
inline resume(l)
{
    d_step {
        role[l] == LEADER && !works[l] && is_spent[l] && epoch_of[term[l]] < EPOCHS ->
            is_spent[l] = 0;
#ifndef OLD_LEASE_EPOCH
            epoch_of[term[l]]++;
#ifndef OLD_REPLIES_COUNT
            lease[l] = 0;
#endif
#endif
#ifdef DELAYS
            reply[l] = 0;
            led[l] = 0;
#endif
            printf("node %d resumes with lease epoch %d\n", l + 1, epoch_of[term[l]])
    }
}

/* ---- crashes ---- */

/*
 * The guard sees to it that a node is back only when the work of its predecessor is dead. If there is no work, that
 * is at once: to stay away longer is to do nothing for a while, which every node may.
 */
inline restart(n)
{
    role[n] = FOLLOWER;
    incarnation[n]++;
#ifdef VOTE_NOT_PERSISTED
    vote[n] = 0;
#endif
#ifdef EPOCH_NOT_PERSISTED
    promise_epoch[n] = (promise_term[n] -> 1 : 0);
#endif
#ifdef PROMISE_FORGOTTEN
    clear_promise(n);
#else
    promise_left[n] = (promise_term[n] -> PROMISE : 0);
#endif
    printf("node %d is back\n", n + 1)
}

inline crash(n)
{
    d_step {
        role[n] != DOWN && crashes < CRASHES ->
            crashes++;
            printf("node %d crashes\n", n + 1);
            leave_role(n);
            role[n] = DOWN;
            promise_left[n] = 0;
#ifdef RESTART_EARLY
            has_orphan[n] = works[n];
            restart(n);
#else
            if
            :: !works[n] -> restart(n)
            :: else
            fi;
#endif
            forget()
    }
}

/* ---- time ---- */

#ifdef WORK_OVERRUNS
#define IS_IN_TIME(n) true
#else
#define IS_IN_TIME(n) (!works[n] || lease[n] > 1)
#endif

inline pass_time(n)
{
    promise_left[n] = (promise_left[n] > 0 -> promise_left[n] - 1 : 0);
    lease[n] = (lease[n] > 0 -> lease[n] - 1 : 0);
#ifdef DELAYS
    reply[n] = (reply[n] > 1 -> reply[n] - 1 : reply[n]);
    led[n] = (role[n] == LEADER && led[n] < PROMISE -> led[n] + 1 : led[n]);
#endif
}

inline tick()
{
    d_step {
        IS_IN_TIME(0) && IS_IN_TIME(1) && IS_IN_TIME(2) ->
            pass_time(0);
            pass_time(1);
            pass_time(2);
            printf("time passes\n");
            forget()
    }
}

/* ---- all that can happen ---- */

#define EACH(what) :: what(0) :: what(1) :: what(2)
#define EACH_PAIR(what, t) :: what(0, 1, t) :: what(0, 2, t) :: what(1, 0, t) :: what(1, 2, t) :: what(2, 0, t) :: what(2, 1, t)
#define EACH_EPOCH(v, t, age) :: take_append(v, t, 1, age) :: take_append(v, t, 2, age)
#define EACH_APPEND(t, age) EACH_EPOCH(0, t, age) EACH_EPOCH(1, t, age) EACH_EPOCH(2, t, age)
#ifdef DELAYS
#define EACH_AGE(t) EACH_APPEND(t, 0) EACH_APPEND(t, 1) EACH_APPEND(t, 2)
#else
#define EACH_AGE(t) EACH_APPEND(t, 0)
#endif
#define OF_TERM(t) EACH_PAIR(give_vote, t) EACH_AGE(t)

/* Somebody is the first to stand; let it be node 1. */
init
{
    d_step {
        role[0] = FOLLOWER;
        role[1] = FOLLOWER;
        role[2] = FOLLOWER;
        incarnation[0] = 1;
        incarnation[1] = 1;
        incarnation[2] = 1
    }
    stand(0);
    do
    EACH(stand)
    EACH(win)
    EACH(claim)
    EACH(stop_work)
    EACH(release)
    EACH(resume)
    EACH(crash)
#ifdef DELAYS
    EACH(take_reply)
#endif
    :: tick()
    OF_TERM(1)
    OF_TERM(2)
#if TERMS > 2
    OF_TERM(3)
#endif
#if TERMS > 3
    OF_TERM(4)
#endif
    od
}
