/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An election: some `gavel run` of one group on one store, in a temporary directory,
 * each with a command that beats into one log. The store is a SQLite file in
 * that directory, unless a driver says otherwise before it starts them.
 *
 *   driver ─┬─ gavel run (elector) ── guard ── beat ── …
 *           ├─ gavel run (elector) ── guard
 *           └─ …                                   all ──► log ──► referee
 *
 * The driver is a child subreaper, so whatever gets away from a `gavel run`
 * ends up as a child of the driver: it is then seen, and can be ended.
 */
#ifndef RUN_ELECTION_H
#define RUN_ELECTION_H

#include "beat_referee.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Short, so that many faults fit into a test; `gavel check` confirms that they add up. */
#define LEASE_MS 1000
#define STOP_MARGIN_MS 50
#define DRIFT_PPM 1000

/* Nothing may take longer than this; a machine that is busy with other tests takes its time. */
#define LIMIT (60 * NS_PER_S)

#define CANDIDATES_MAX 8
#define EXIT_NOT_YET (-1)

struct candidate {
    uint16_t number;
    unsigned lives;           /* how often it was started */
    char id[32];              /* of its current life; each has a new one */
    pid_t pid;                /* of its elector; 0: not running */
    int exit_code;            /* of its last life, as a shell reports it; EXIT_NOT_YET while it runs */
    bool is_wild;             /* its command ignores SIGTERM, and has grandchildren that get away */
    const char *orphan_grace; /* how long its command may live on when the elector is killed */
    const char *store;        /* its way to the store; NULL: the file of the election */
    const char *clock; /* a file that shifts its wall clock (tests/servers/clock_shift.c); NULL: none */
};

struct election {
    char directory[64];
    char store[256]; /* a URL, if a driver puts one here */
    char log[128];
    const char *gavel;
    const char *beat;
    const char *const *times; /* options of `gavel run`, ending with NULL */
    const char *clock_shift;  /* the library for candidates with a clock of their own */
    struct candidate candidates[CANDIDATES_MAX];
    size_t count;
    struct beat_reader reader;
    struct beat_referee referee;
    struct beat latest;             /* of the command itself, in the newest epoch */
    bool has_role[BEAT_ROLE_COUNT]; /* which have beaten in the newest epoch */
    sqlite3 *look;                  /* for reading the store */
    sqlite3 *cut;                   /* for holding its lock */
    int shm;                        /* for asking who has it; 0: not open yet */
};

/* Makes the directory; the programs are borrowed. Ends the driver with a message if it cannot. */
void election_open(struct election *election, const char *gavel, const char *beat);

/* Lets all leave in order, and waits for that. */
void election_dismiss(struct election *election);

/*
 * After the last election was dismissed: ends the processes that got away from
 * them and became our children. Returns how many.
 */
size_t election_sweep(void);

/* After both: reads the rest of the log, and removes the directory unless `keep`. */
void election_close(struct election *election, bool keep);

/* Adds one that is not running yet. */
struct candidate *election_add(struct election *election, bool is_wild);

void election_start(struct election *election, struct candidate *candidate);

/* Notes which have ended, and reads the log. */
void election_look(struct election *election);

/* The heartbeats of its current life in the store so far; 0 if it has not registered. */
int64_t election_heartbeats(struct election *election, const struct candidate *candidate);

/* The processes of a leader, for faults. */
struct leader {
    struct candidate *candidate;
    uint64_t epoch;
    int elector; /* handles */
    int guard;
    int command;
    pid_t pids[3]; /* of them, in this order; for looking only */
};

/* Finds the one that beats now. False if that is not clear at the moment. */
bool election_find_leader(struct election *election, struct leader *ret_leader);
void leader_done(struct leader *leader);

/*
 * Puts a kind of fault that this leader can be given at the head of those to
 * come: the first one changes places with it. `is_for_tame` says of a kind
 * that it is not for a leader whose command is wild. False: there is none.
 */
bool leader_choose_fault(const struct leader *leader, size_t *kinds, size_t count,
                         bool (*is_for_tame)(size_t kind));

/* The mandate as the store has it: when the last renewal was applied there, on our clock. 0: none. */
gavel_ns election_renewed_at(struct election *election);

/* The process that has the store's lock for writing; 0 if none has. */
pid_t election_lock_holder(struct election *election);

/* Takes the store's lock for writing; false if that takes too long. Gives it back. */
bool election_cut(struct election *election);
void election_mend(struct election *election);

/* `gavel handover`; its exit code. */
int election_handover(const struct election *election);

/* Prints the last output of the candidates, for the analysis of a failure. */
void election_print_logs(const struct election *election);

/* A millisecond of sleep between two looks. */
void election_pause(void);

#endif
