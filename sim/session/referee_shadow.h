/* SPDX-License-Identifier: Apache-2.0 */

/* What the files of the referee share: its shadow of the table, and what it knows about programs. */
#ifndef SIM_SESSION_REFEREE_SHADOW_H
#define SIM_SESSION_REFEREE_SHADOW_H

#include "sim/common/memory.h"
#include "sim/session/referee.h"

#define SHADOW_ID 16
#define SHADOW_CANDIDATES 16
#define SHADOW_NOTES 32
#define SHADOW_PIDS 4096

struct shadow_session {
    uint64_t id;
    uint64_t revision; /* that has opened it */
    gavel_ns opened_at;
    bool is_open;
    bool is_ending;       /* it is over, and has groups left … */
    Gavel__Ending ending; /* … for this reason */
    bool has_expired;
    int32_t pid;
    uint64_t last_id;
    gavel_ns until; /* its client relies on it until then, in real time */
    bool is_given_up;
    gavel_ns ended_at; /* real; of one that is not open */
};

struct shadow_candidate {
    char id[SHADOW_ID];
    uint64_t session;
    int32_t priority;
    bool is_eligible;
    bool is_patient;
    bool is_ending; /* its session is */
    uint64_t instance;
    uint64_t joined;
};

struct shadow_note {
    char key[SHADOW_ID];
    uint64_t revision;
};

struct shadow_group {
    bool exists;
    struct shadow_candidate candidates[SHADOW_CANDIDATES];
    size_t candidate_count;
    bool is_held;
    bool is_done;
    bool has_died;    /* whoever led last */
    bool was_lost;    /* likewise: it did not give up */
    uint64_t session; /* 0: a lease */
    char holder[SHADOW_ID];
    int32_t pid;
    uint64_t nonce;
    uint64_t epoch;
    uint64_t first_epoch; /* since then it has gone on without a vacancy */
    uint64_t version;
    int64_t lease_ms;
    gavel_ns lease_until; /* its holder relies on it until then, in real time */
    char successor[SHADOW_ID];
    uint64_t wish_epoch;
    char wish_successor[SHADOW_ID];
    gavel_ns wished_at;
    uint32_t wish_timeout_ms;
    Gavel__Policy policy;
    struct shadow_note notes[SHADOW_NOTES];
    size_t note_count;
    gavel_ns touched_at; /* anything in it was changed by the log, in real time */
    uint64_t ordinal;    /* of the mandate */
    uint64_t counter;
};

/* A mandate that was granted, in order. */
struct shadow_grant {
    unsigned group;
    uint64_t epoch;
    uint64_t ordinal;
};

/* A change that the log has made. */
struct shadow_change {
    gavel_ns at;
    uint64_t revision;
    uint32_t part;
    unsigned group;
    Gavel__Change__Kind kind;
    uint64_t epoch;
};

/* A value that is written once. */
struct shadow_value {
    uint64_t value; /* 0: free */
    unsigned times;
};

struct shadow_work {
    bool is_on;
    uint64_t epoch;
    gavel_ns until;
};

struct shadow_watch {
    bool is_on;
    size_t at; /* in changes */
};

struct session_referee {
    session_referee_cb violate;
    void *context;
    bool is_quiet;
    gavel_ns retention;
    bool is_over;
    gavel_ns now;
    uint64_t index;
    uint64_t revision;
    struct shadow_session *sessions;
    size_t session_count, session_capacity;
    struct shadow_group groups[GROUPS_MAX];
    struct shadow_grant *grants;
    size_t grant_count, grant_capacity;
    struct shadow_change *changes;
    size_t change_count, change_capacity;
    struct shadow_value *values; /* by hash */
    size_t value_count, value_capacity;
    bool is_dead[SHADOW_PIDS];
    unsigned program_of[SHADOW_PIDS];
    struct shadow_work works[GROUPS_MAX][PROGRAMS_MAX];
    gavel_ns worked_until[GROUPS_MAX];
    uint64_t floor[GROUPS_MAX];           /* the highest epoch of groups of this name that were removed */
    uint64_t passed[GROUPS_MAX];          /* campaigns were for epochs above it */
    uint64_t written[GROUPS_MAX];         /* the highest epoch that the resource accepted */
    uint64_t written_ordinal[GROUPS_MAX]; /* and whose that was */
    struct shadow_watch watches[PROGRAMS_MAX][GROUPS_MAX];
    struct {
        uint64_t asked, done, refused, removed;
    } counter[GROUPS_MAX];
    struct session_referee_counts counts;
};

/* Called once in a run; nothing is judged after it. */
void session_referee_violate(struct session_referee *referee, enum session_invariant invariant,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));
struct shadow_session *shadow_session_find(struct session_referee *referee, uint64_t id);
struct shadow_value *shadow_value_find(struct session_referee *referee, uint64_t value);
/* The name of the program of a process, as a letter. */
char session_referee_letter(const struct session_referee *referee, int32_t pid);

/* referee_shadow.c: one operation, and whether the table is what it should be afterwards. */
void shadow_apply(struct session_referee *referee, struct shadow_session *session, const Gavel__Op *op,
                  const struct table_result *result);
void shadow_compare(struct session_referee *referee, const struct table *table);

#endif
