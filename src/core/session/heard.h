/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the leader of the cluster alone knows of sessions, groups and candidates:
 * when they were last heard, and what is proposed about them and not applied
 * yet. It is beside the table, not in it: the table depends on the log alone.
 *
 * Of sessions and groups it is in arrays, in the place of their slots
 * (table.h). Of candidates that beat it is in a map by their names. Clients
 * choose these, so the hashes have a salt that no client knows.
 *
 * It begins empty with each leadership. What is not here was never heard.
 */
#ifndef CORE_SESSION_HEARD_H
#define CORE_SESSION_HEARD_H

#include "core/table/table.h"

/* An end that is proposed. Proposals are counted, for there may be several; not those from before, which were
 * about another mandate, or another session of the same id. */
struct heard_closing {
    uint64_t term;  /* of Raft, in which it was proposed; 0 never */
    uint64_t first; /* the number of the first that is counted */
    uint32_t count; /* of proposals whose outcome is not known */
};

struct heard_session {
    uint64_t create_revision; /* of the session; the rest is about this one. 0: about none */
    gavel_ns heard_at;        /* 0 never */
    uint64_t keeps;           /* keep-alives: of a session that lives they grow */
    uint64_t mark;            /* the newest that has it (marks.h); 0: none */
    struct heard_closing closing;
};

struct heard_group {
    uint64_t create_revision; /* of the group, and its version: the rest is about … */
    uint64_t version;         /* … that mandate, or that vacancy. 0: about none */
    gavel_ns renewed_at;
    int64_t renewed_wall_ms;
    gavel_ns wished_at;  /* a wish began, or was taken back; 0 never */
    gavel_ns over_since; /* the wall clock says that what is done need not be kept; 0: it does not */
    struct heard_closing closing;
};

struct heard_candidate {
    struct heard_candidate *next; /* with the same hash, or nearly */
    uint64_t hash;
    uint64_t instance;
    gavel_ns beat_at; /* 0 never */
    uint64_t beats;
    bool is_called_dead; /* by a client that wants its place */
    uint64_t displaced;  /* the instance that was called dead and had this place before; 0 none */
    bool was_displaced;  /* and beat all the same: it has its place again */
    size_t group_size;   /* with its NUL */
    char names[];        /* of the group, then its id */
};

struct heard {
    uint64_t salt;
    struct heard_session *sessions;
    uint32_t session_count;
    struct heard_group *groups;
    uint32_t group_count;
    struct heard_candidate **candidates; /* buckets: none, or a power of two */
    size_t bucket_count;
    size_t candidate_count;
};

/* Forgets everything; the next hashes have this salt. Safe on a zeroed struct, which is empty. */
void heard_done(struct heard *heard, uint64_t salt);

/* Makes places for all sessions and groups that the table has now. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status heard_reserve(struct heard *heard, const struct table *table);

/* NULL: nothing was heard of it; of a group: since its mandate began, or ended. */
const struct heard_session *heard_session(const struct heard *heard, const struct table_session *session);
const struct heard_group *heard_group(const struct heard *heard, const struct table_group *group);
const struct heard_candidate *heard_candidate(const struct heard *heard,
                                              const struct table_candidate *candidate);

/* The same to write to; NULL: it has no place yet. */
struct heard_session *heard_of_session(struct heard *heard, const struct table_session *session);
struct heard_group *heard_of_group(struct heard *heard, const struct table_group *group);
/* NULL: no memory. Of an instance that has the place of another it knows that. */
struct heard_candidate *heard_of_candidate(struct heard *heard, const struct table_candidate *candidate);

/* Forgets candidates that the table does not have any more, in so many buckets from that one on. Returns
 * where it goes on, 0: these were the last. What comes meanwhile may move others to where it was already:
 * they are left for the next time. */
size_t heard_forget(struct heard *heard, const struct table *table, size_t bucket, size_t count);

/* The candidate of this instance has left. */
void heard_leave(struct heard *heard, const char *group, const char *id, uint64_t instance);

#endif
