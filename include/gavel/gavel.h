/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libgavel: exactly one of many processes leads.
 *
 * CONCEPT
 *
 * A group is a named election with at most one leader at a time. A program
 * opens a connection to a store (struct gavel) and joins any number of groups
 * with it (struct gavel_candidate). One heartbeat loop, one store connection
 * and one thread serve them all.
 *
 *     static void elected(struct gavel_candidate *c, uint64_t epoch, void *user) { start_work(epoch); }
 *     static void demoted(struct gavel_candidate *c, enum gavel_reason why, void *user) { stop_work(); }
 *
 *     struct gavel_options options = GAVEL_OPTIONS_INIT;
 *     struct gavel *gavel;
 *     struct gavel_error error;
 *     if (gavel_open(&options, &gavel, &error))
 *         die(error.message);
 *
 *     struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
 *     join.group = "nightly";
 *     join.subscriber.on_elected = elected;
 *     join.subscriber.on_demoted = demoted;
 *     struct gavel_candidate *candidate;
 *     if (gavel_join(gavel, &join, &candidate, &error))
 *         die(error.message);
 *     …
 *     gavel_close(gavel);      leaves every group, releases what it leads
 *
 * A mandate is the right to lead: {group, holder, epoch, deadline}. The epoch
 * is a fencing token: it only ever grows, so a resource that rejects lower
 * epochs than the highest it has seen is safe from every former leader. Pass
 * it along with every write that matters.
 *
 * WHAT MUST STOP WHEN
 *
 * A mandate ends by itself unless it is renewed. When renewals fail,
 * on_demoted is called stop_grace_ms before the deadline and must return by
 * the deadline: nothing of the work may go on after it returns. If it has not
 * returned by then, the process is aborted (GAVEL_OVERRUN_ABORT, the default)
 * or an `overrun` event is reported (GAVEL_OVERRUN_REPORT; then two leaders
 * may overlap unless every write is fenced by its epoch). The same holds for
 * a process that was frozen past its deadline.
 *
 * Aborting writes one line to stderr, if that does not block, and ends the
 * process with SIGABRT. Handlers of the program do not run, because the work
 * would go on meanwhile. If even that hangs, or the process does not run at
 * all, the kernel kills it (SIGKILL) half a stop_margin_ms after the deadline;
 * that was arranged when the mandate began. So a leader that is stopped by
 * SIGSTOP or a debugger does not wake up again after its deadline. Process 1 of
 * a pid namespace (a container without an init) is the exception: the kernel
 * spares it from signals from inside. After SIGCONT it runs on for moments, until
 * it is aborted; gavel_is_leader() is right all the time. Start it under an init.
 *
 * The on_demoted of all groups of one handle run one after the other. Those
 * that lose their mandates at the same time, as when the store is away, share
 * the grace: the earliest deadline comes first, and the last one gets what the
 * others leave. If they take long, raise stop_grace_ms, or let on_demoted
 * start the stopping of other groups' work too, or open a handle per group.
 *
 * gavel_is_leader() turns false by itself at that time; nothing has to run
 * for that. It costs some tens of nanoseconds; call it before
 * each step of the work. Between the call and the step the process may be
 * paused: only the epoch covers that.
 *
 * SESSIONS
 *
 * The store gavel:// has sessions. There a handle has one for all its groups, which
 * begins with the first group that it joins, and mandates last as long as the
 * session: one keep-alive renews them all, whatever their number, and a group
 * that nothing happens to costs nothing but memory. Four things differ:
 *
 *  - All groups of a handle have the lease_ms of the one that was joined first,
 *    and a drift_ppm that is not above its; gavel_join() refuses others with
 *    ERR_INVALID, also when that one was left. A longer lease would end sooner
 *    than it says, and after a shorter one nobody could take over in time. For
 *    another lease open another handle.
 *  - A third of the session passes before the next keep-alive is sent. If the
 *    work would be told to stop before it can be answered, gavel_join() returns
 *    ERR_BUDGET; *error says which lease, or ttl_ms in the URL, would do.
 *  - A handle is in a group once, whatever the candidate's id is. For a second
 *    candidate in one process open another handle, or use gavel_subscribe().
 *  - When the session is lost, gavel_is_leader() turns false for all groups at
 *    once, and on_demoted is called for each, the one with the longest
 *    stop_grace_ms first. If the store has ended the session before its time,
 *    each has stop_grace_ms from its call on, but not longer than the session
 *    would have lasted. One that is slow delays those after it: whose turn
 *    comes too late to stop in time is an overrun of that group.
 *
 * THREADS
 *
 * By default a thread of the library drives everything, and callbacks run on
 * it, one at a time. A callback that hangs therefore stops the renewals, and
 * the mandate is lost in time. Alternatively (options.threaded = false) the
 * program adds gavel_fd() to its own loop and calls gavel_dispatch() when it
 * is readable; callbacks then run inside gavel_dispatch(), and a program
 * whose loop hangs loses its mandates. Calls that have to wait for the loop
 * (gavel_leave(), gavel_close(), gavel_unsubscribe(), gavel_ensure_leader())
 * then drive it themselves while nobody else does, and callbacks run in them.
 * Either way two small helper threads exist: one makes the calls to the
 * store, which may block, and one keeps the deadlines.
 *
 * There is one exception: with GAVEL_OVERRUN_REPORT the event `overrun` comes
 * from the thread that keeps the deadlines, at the deadline, while the
 * callback that overruns is still running on the other; exactly one per
 * mandate that was overrun.
 *
 * All functions may be called from any thread, also from callbacks, except
 * those that would wait there for the callback itself: gavel_leave(),
 * gavel_close(), gavel_dispatch() and gavel_ensure_leader() return ERR_STATE
 * from a callback, and so does gavel_unsubscribe() from an `overrun` event
 * that comes from the thread of the deadlines. Nobody may use a candidate
 * while or after it is left.
 *
 * The threads of the library block all signals, so that the handlers of the
 * program run on its own threads. A callback that starts a process should
 * therefore set the signal mask that the process is to have. With a store on
 * a server (gavel:, mysql:) SIGPIPE is ignored from then on, unless the
 * program has a handler for it.
 *
 * GUARD
 *
 * When a process dies, the others take over at once if they can see its death:
 * on the same host, with a store that records processes. Everywhere else they
 * wait for the lease, or for the end of the session, unless the process had a
 * guard: with options.guard a separate process, gavel-guard, watches this one.
 * As soon as all its threads are dead, it releases the mandates and rings the
 * others, or closes the session. It releases nothing while this process is
 * alive, however long it may be stopped, and nothing that somebody else holds
 * by then.
 *
 * The guard is not a child of this process: SIGCHLD and wait(2) do not report
 * it, unless this process adopts orphans (it is process 1, or a child
 * subreaper); then it has to reap strangers anyway. It has a session of its
 * own and none of this process's descriptors, ignores every signal that can be
 * ignored, keeps the user and the working directory of gavel_open(), and ends
 * when the handle is closed. If it dies, the program goes on, another one is
 * started at most every ten seconds, and until then the others wait for the
 * lease. The same holds if both are killed at once: with their container, or
 * with a systemd unit whose time to stop is over.
 *
 * FORK
 *
 * A forked child is never a leader: gavel_is_leader() is false in it. It must
 * not call anything else of this library. Child processes are not stopped
 * when this process dies, and its death is taken as the end of its work, by a
 * guard too: a program that works in children must make sure that they die
 * with it (PR_SET_PDEATHSIG), or pass the epoch on to what they write to. If
 * the work is a command, let `gavel run` start it: that ends the command and
 * everything it has started before another may lead.
 */
#ifndef GAVEL_H
#define GAVEL_H

#include <gavel/event.h>
#include <gavel/settings.h>
#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gavel;
struct gavel_candidate;

struct gavel_options {
    /*
     * URL; NULL: what the environment says (GAVEL_STORE), as in the commands
     * of gavel, or else the SQLite file of this user, see gavel_default_store();
     * "none:": no store at all, for candidates that join with enabled = false.
     * A program that runs with other rights than those of its user (set-user-ID
     * and the like, see secure_getenv(3)) ignores GAVEL_STORE, the variables
     * that say where that file is, and those of the stores.
     */
    const char *store;
    bool threaded; /* a thread of the library drives everything and runs the callbacks */
    /*
     * Where to listen for hints: "address" or "address:port" in numbers, such
     * as "192.0.2.1:7000" or "[::1]". Others ring at this very address, so
     * "0.0.0.0" is refused. NULL: any port of the address by which this host
     * reaches the server of the store, 127.0.0.1 if there is none; "": no
     * doorbell.
     */
    const char *doorbell;
    /*
     * A guard process watches this one and, once it is dead, releases its
     * mandates; see GUARD. No effect on a store that is not shared between
     * processes: there is nothing to release.
     */
    bool guard;
    /* The path of its program; NULL: what the environment says (GAVEL_GUARD), or the one that was
     * installed. */
    const char *guard_program;
};

#define GAVEL_OPTIONS_INIT                                                                                   \
    {                                                                                                        \
        .threaded = true                                                                                     \
    }

/* What to do when the work has not stopped by the deadline. */
enum gavel_overrun { GAVEL_OVERRUN_ABORT, GAVEL_OVERRUN_REPORT };

/*
 * A part of a program that wants callbacks. Any of them may be NULL. They come
 * in this order: on_elected of all subscribers in the order they subscribed,
 * on_demoted in the opposite order. The event became_leader follows on_elected,
 * lost_leadership comes before on_demoted. If a slow one uses up the mandate,
 * those after it get neither on_elected nor on_demoted for it.
 */
struct gavel_subscriber {
    /* The candidate leads from now on; gavel_is_leader() is already true. */
    void (*on_elected)(struct gavel_candidate *candidate, uint64_t epoch, void *user);
    /*
     * The work must have stopped when this returns; gavel_is_leader() is already false, except when only
     * this subscriber goes (gavel_unsubscribe()).
     */
    void (*on_demoted)(struct gavel_candidate *candidate, enum gavel_reason reason, void *user);
    /* Called while leading, first right after on_elected, then every work_interval_ms. */
    void (*on_work)(struct gavel_candidate *candidate, uint64_t epoch, void *user);
    gavel_ms work_interval_ms; /* 0: 1000 */
    void (*on_event)(struct gavel_candidate *candidate, const struct gavel_event *event, void *user);
    void *user;
};

struct gavel_join_options {
    const char *group;                     /* NULL: "default" */
    const char *candidate;                 /* id, unique in the group; NULL: host name and process id */
    const char *preset;                    /* NULL: the one that suits the store */
    const struct gavel_settings *settings; /* whole settings instead of a preset; copied */
    int priority;                          /* for GAVEL_POLICY_PRIORITY; higher is better */
    bool eligible;                         /* false: observes, never claims */
    bool enabled;                          /* false: no election, always leader, epoch 0 (single instance) */
    enum gavel_overrun overrun;
    struct gavel_subscriber subscriber; /* the first one; more with gavel_subscribe() */
};

#define GAVEL_JOIN_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        .eligible = true, .enabled = true                                                                    \
    }

/* The version of the library, such as "0.4.0". */
GAVEL_API const char *gavel_version(void);

/*
 * The store used when neither the program nor GAVEL_STORE names one:
 * sqlite:$XDG_STATE_HOME/gavel/gavel.db; if that is not set, for root
 * /var/lib/gavel/gavel.db, and for others below $HOME/.local/state, or the
 * home that the password database has of the effective user. A program that
 * runs with other rights than those of its user does not look at these two
 * variables. ERR_INVALID if it does not fit, or there is no home.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_default_store(char *buffer, size_t size);

/*
 * Opens the store and starts the threads. Strings are copied; NULL options are
 * GAVEL_OPTIONS_INIT. Errors: those of the store (4109 to 4114), ERR_INVALID,
 * ERR_NO_MEMORY, ERR_IO; then nothing is left behind.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_open(const struct gavel_options *options,
                                                     struct gavel **ret_gavel, struct gavel_error *error);

/*
 * Leaves every group in order (stops the work, releases, leaves), bounded by
 * the settings' grace and call time-outs, and frees everything, candidates
 * included. Safe on NULL. ERR_STATE from a callback.
 *
 * A call that hangs in the store for good (a dead disk) does not hold it up:
 * a second after its time-out the thread that made it is left behind with the
 * store, some memory and its descriptors. It frees them should it ever come
 * back, and then touches nothing else. What it was writing may still arrive.
 */
GAVEL_API enum gavel_status gavel_close(struct gavel *gavel);

/*
 * For programs with their own loop: readable when gavel_dispatch() has
 * something to do. -1 if a thread of the library does it. The descriptor
 * belongs to the library.
 */
GAVEL_API int gavel_fd(const struct gavel *gavel);

/*
 * Does what is due and returns. OK at once if another thread of the program
 * is doing so, here or while it waits in a call. ERR_STATE if a thread of the
 * library does it, or from a callback.
 */
GAVEL_API enum gavel_status gavel_dispatch(struct gavel *gavel);

/*
 * Takes part in a group; returns at once; callbacks report the rest. Strings
 * are copied. Errors: ERR_INVALID (names, settings, or another lease than that
 * of the session: see SESSIONS), ERR_BUDGET (the times do not add up, or a
 * session is too short for them), ERR_STATE (this struct gavel is in
 * the group already with this id, or in a store with sessions with any id; has
 * no store, or is being closed), ERR_NO_MEMORY, ERR_IO; in a store with
 * sessions also its errors. That another live process uses the id shows
 * only after a while: the candidate ends with a `stopped` event of
 * ERR_ID_IN_USE, and is still to be left.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_join(struct gavel *gavel,
                                                     const struct gavel_join_options *options,
                                                     struct gavel_candidate **ret_candidate,
                                                     struct gavel_error *error);

/*
 * Stops the work, releases the mandate if it has one, leaves the group and
 * frees the candidate. Bounded like gavel_close(). Safe on NULL. ERR_STATE
 * from a callback, or if another thread is about to free it.
 */
GAVEL_API enum gavel_status gavel_leave(struct gavel_candidate *candidate);

/*
 * Adds a subscriber; its on_elected follows at once if the candidate leads.
 * The struct is copied. *ret_id (may be NULL) names it for gavel_unsubscribe();
 * the one given to gavel_join() is number 1. ERR_INVALID, ERR_NO_MEMORY.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_subscribe(struct gavel_candidate *candidate,
                                                          const struct gavel_subscriber *subscriber,
                                                          uint64_t *ret_id);

/*
 * Its on_demoted is called first, with GAVEL_REASON_STOPPED, if it was told of
 * the present mandate; the candidate goes on leading for the others, so
 * gavel_is_leader() may be true in there. Returns after the last callback has.
 * ERR_NOT_FOUND.
 */
GAVEL_API enum gavel_status gavel_unsubscribe(struct gavel_candidate *candidate, uint64_t id);

/* Whether this process may act as the leader at this very moment. Lock-free. */
GAVEL_API bool gavel_is_leader(const struct gavel_candidate *candidate);

enum gavel_answer {
    GAVEL_NOT_LEADER,
    GAVEL_LEADER,
    GAVEL_UNKNOWN_UNTIL, /* the store cannot be reached; the mandate still holds until then */
};

/*
 * The three answers. *ret_until_ns (may be NULL) is the end of a mandate held, on gavel_now_ns(); else
 * untouched. With a session the store counts as out of reach when no keep-alive was answered for half of what
 * the session lasts.
 */
GAVEL_API enum gavel_answer gavel_answer(const struct gavel_candidate *candidate, int64_t *ret_until_ns);

/* CLOCK_BOOTTIME in nanoseconds: the clock of every instant in this interface. */
GAVEL_API int64_t gavel_now_ns(void);

/* The epoch of our mandate, 0 if we hold none. Lock-free. */
GAVEL_API uint64_t gavel_epoch(const struct gavel_candidate *candidate);

/*
 * Whether something that carries this epoch may still be accepted: the
 * newest epoch known here, or a newer one, always; the one before only within
 * epoch_grace_ms after it was superseded, and only if it was created before
 * that (created_at_ns on gavel_now_ns(); 0 means now). With a grace of 0 only
 * the newest counts.
 */
GAVEL_API bool gavel_epoch_valid(struct gavel_candidate *candidate, uint64_t epoch, int64_t created_at_ns);

struct gavel_leader_info {
    char id[256]; /* "" if there is none */
    char address[64];
    uint64_t epoch;
    int64_t since_wall_ms; /* milliseconds since 1970, as the leader's clock had it */
    bool is_self;
};

/* The leader as last seen, without a call to the store. ERR_NO_LEADER leaves *ret_leader untouched. */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_leader(struct gavel_candidate *candidate,
                                                       struct gavel_leader_info *ret_leader);

struct gavel_candidate_info {
    char id[256];
    char address[64];
    int64_t since_wall_ms;
    int64_t last_heartbeat_wall_ms;
    int priority;
    bool eligible;
    bool is_leader;
    bool is_self;
};

/*
 * The active candidates as last listed, sorted by id. Fills in at most
 * `capacity` of them; *ret_count is how many there are.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_candidates(struct gavel_candidate *candidate,
                                                           struct gavel_candidate_info *infos,
                                                           size_t capacity, size_t *ret_count);

struct gavel_metrics {
    uint64_t heartbeats; /* that succeeded */
    uint64_t heartbeat_failures;
    uint64_t elections; /* that this candidate took part in by claiming; 0 in a store with sessions */
    uint64_t elections_won;
    int64_t election_last_us; /* how long the last one won took, from vacancy noticed to leading */
    uint64_t leader_changes;  /* seen */
    uint64_t registrations;   /* candidates that appeared in the group */
    uint64_t timeouts;        /* candidates of the group that fell silent without leaving */
    uint64_t call_timeouts;   /* calls to the store without an answer in time */
    uint64_t contentions;
    uint64_t doorbells; /* hints obeyed */
    int64_t start_wall_ms;
    int64_t last_heartbeat_wall_ms;
    int64_t latency_p50_us; /* of calls to the store, over the last 100 */
    int64_t latency_p95_us;
    int64_t latency_p99_us;
};

GAVEL_API void gavel_metrics(struct gavel_candidate *candidate, struct gavel_metrics *ret_metrics);

enum gavel_breaker_state { GAVEL_BREAKER_CLOSED, GAVEL_BREAKER_OPEN, GAVEL_BREAKER_HALF_OPEN };

struct gavel_breaker {
    enum gavel_breaker_state state;
    int failures;        /* in a row */
    int64_t retry_at_ns; /* while open; on gavel_now_ns() */
};

GAVEL_API void gavel_breaker(struct gavel_candidate *candidate, struct gavel_breaker *ret_breaker);

/*
 * Hands over: on_demoted, release, doorbell to the others. Returns at once;
 * the event lost_leadership reports the end. `successor` (NULL for any) goes
 * first. A candidate that is still preparing has not led: its mandate is
 * released without on_demoted and lost_leadership. It then holds back for two
 * election intervals, so that another can take over. ERR_STATE if it holds no
 * mandate or there is no election, ERR_INVALID if the successor is not a
 * valid name, or is the candidate itself.
 */
GAVEL_API enum gavel_status gavel_resign(struct gavel_candidate *candidate, const char *successor);

/*
 * The work of this group is done, once and for all: on_demoted (with
 * GAVEL_REASON_FINISHED), then a release that also closes the group, doorbell
 * to the others. A group that is closed is never led again; every other
 * candidate of it, now or later, ends with a `stopped` event of ERR_DONE that
 * names who did the work and with which epoch. So of all who may ever do the
 * work, the success of at most one is recorded. No store forgets that by
 * itself; an operator can (`gavel group delete --force`, `gavel once --forget`).
 *
 * Returns at once. The candidate ends, and its `stopped` event says how:
 *
 *     OK              recorded: the group is closed, by us
 *     ERR_NOT_HOLDER  the mandate was lost before: not recorded, and another
 *                     may be doing the work again
 *     ERR_DONE        likewise, and another has done it
 *     anything else   the last error of the store: unknown, it may be done again
 *
 * An answer that is lost is settled by reading back, while the mandate lasts
 * and a lease beyond; gavel_leave() and gavel_close() wait for that. ERR_STATE
 * if there is no election, ERR_STOPPED if the candidate has ended,
 * ERR_NO_MEMORY; then nothing was begun.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_finish(struct gavel_candidate *candidate);

struct gavel_ensure_options {
    bool force;          /* replace the present leader even if it is alive and within its minimum mandate */
    const char *desired; /* the candidate that should lead; NULL for any */
    gavel_ms timeout_ms; /* 0: what the settings' bound says */
};

/*
 * Makes sure that the group has a leader, and waits until it has. Without
 * force a live leader stays, unless `desired` names another and its minimum
 * mandate is over. ERR_TIMEOUT, or ERR_LEADER_TRANSFER_FAILED if the desired
 * candidate is not the one that leads in the end; *ret_leader (may be NULL)
 * is untouched then. From a callback: ERR_STATE, because waiting there
 * would block what it waits for. ERR_STOPPED if the candidate has ended.
 */
GAVEL_API GAVEL_CHECKED enum gavel_status gavel_ensure_leader(struct gavel_candidate *candidate,
                                                              const struct gavel_ensure_options *options,
                                                              struct gavel_leader_info *ret_leader);

/*
 * Whether this candidate may claim; a leader that becomes ineligible hands
 * over. ERR_STOPPED if it has ended, ERR_STATE if there is no election.
 */
GAVEL_API enum gavel_status gavel_set_eligible(struct gavel_candidate *candidate, bool eligible);

#ifdef __cplusplus
}
#endif

#endif
