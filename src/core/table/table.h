/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The replicated state machine: what committed entries of the log build,
 * command by command.
 *
 *     items      plain keys and values of the nodes themselves (members)
 *     sessions   clients that are alive; each has a time to live, and the outcome of its newest request
 *     groups     elections: candidates, the mandate, policy, wish
 *     notes      small values of a group, their writes fenced by its epoch
 *     history    the newest changes, for watches; not part of the state
 *
 * One revision counter orders everything: each operation that changes
 * something raises it by one, and the epoch of a mandate is the revision that
 * granted it. (A claim may insist on a higher one; then the counter jumps,
 * within what belongs to the generation of the cluster.)
 *
 * Everything depends on the log alone. Two tables that were given the same
 * entries are the same, byte by byte of their snapshots, however each came by
 * them; table_digest() compares them in one number. That is also why a command
 * that cannot be carried out is refused by a rule that all replicas share
 * (bytes that are no command, a table that is full) and changes nothing.
 *
 * The table has no clock. Whether a session or a lease has run out is for the
 * leader of the cluster to say; it proposes a command then (session/expiry.c).
 * What it needs for that, when it last heard of whom, it keeps beside the table
 * (session/heard.h).
 *
 * Groups end. One that never had a mandate goes with the last that was said of
 * it. Any other stays until it is removed (RemoveGroup), which is possible while
 * nobody leads it and nobody takes part. Nothing is left of it, not even its
 * epoch: the counter is above, whatever it was (a claim may have made it jump, a
 * new generation of the cluster likewise), is never set back, and is part of
 * every snapshot. So it is the floor of all epochs that are still to come, of
 * groups that are made anew as of all others: S1 costs one number for the whole
 * table.
 *
 * Who leads. Whenever a group is vacant and a candidate with a session is
 * eligible, apply grants the mandate in the same command: to the successor
 * that was wished or named, else by policy: `first` the lowest
 * joined_revision, `lexicographic` the lowest id, `priority` the highest
 * number and then the lowest joined_revision. Who has just withdrawn and stays
 * is chosen only if there is nobody else. Groups that are done are never
 * granted. A successor that is an eligible candidate of a store is left to claim the
 * group; if it does not come the leader of the cluster proposes a Lapse, of the
 * vacant group, and the others have their turn. A lease mandate (Claim)
 * is granted to the candidate that claims a vacant or expired group at the
 * version that it has read.
 *
 * Ownership: a zeroed struct is an empty table. It owns its items; what is
 * given in is copied, what is given out is borrowed until the next change.
 */
#ifndef CORE_TABLE_TABLE_H
#define CORE_TABLE_TABLE_H

#include "base/time.h"
#include "core/table/table.pb-c.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define TABLE_KEY_BYTES_MAX 512
#define TABLE_VALUE_BYTES_MAX (256u * 1024)
#define TABLE_ITEMS_MAX (1u << 20)
/*
 * Everything together, so that a snapshot stays within what can be sent. What would need more is refused, but
 * for the names that elections write, and the results of requests: those have a reserve beyond, so that
 * whoever makes room is heard by a table that is full. Tests build a table that is full sooner.
 */
#ifndef TABLE_BYTES_MAX
#define TABLE_BYTES_MAX (512u << 20)
#endif
#ifndef TABLE_RESERVE_BYTES
#define TABLE_RESERVE_BYTES (64u << 20)
#endif

enum table_command_kind {
    TABLE_PUT = 1,
    TABLE_DELETE, /* of a key that is not there is no mistake, and counts */
    TABLE_OPS,    /* a protobuf Command (table.proto) */
};

/* Limits. What goes beyond is refused with ERR_STORE_FULL or ERR_INVALID, and a sentence that names the
 * limit. */
#define TABLE_OPS_MAX 512                     /* of one command */
#define TABLE_OPS_BYTES_MAX ((1u << 20) - 64) /* with its head an entry of the log (core/raft/log.h) */
#define TABLE_SESSIONS_MAX 131072u
#ifndef TABLE_GROUPS_MAX
#define TABLE_GROUPS_MAX 262144u
#endif
#define TABLE_CANDIDATES_MAX 1024u    /* of one group */
#define TABLE_NOTES_MAX 4096u         /* of one group */
#define TABLE_CANDIDACIES_MAX 131072u /* groups that one session takes part in */
/* Groups that a session leaves by one operation when it ends. That must not hold up the cluster, nor fill the
 * history: it makes up to three changes in each. */
#define TABLE_CLOSE_PART 8192u
/* Limits of version 1. */
#define TABLE_SESSIONS_MAX_0_6 65536u
#define TABLE_CANDIDACIES_MAX_0_6 16384u
#define TABLE_NOTE_KEY_BYTES_MAX 255
#define TABLE_NOTE_BYTES_MAX (64u * 1024)
#define TABLE_METADATA_BYTES_MAX 1024
#define TABLE_ADDRESS_BYTES_MAX 255
#define TABLE_LEASE_MAX_MS (366 * INT64_C(86400000))
#define TABLE_TTL_MIN_MS 100
#define TABLE_TTL_MAX_MS 86400000
/* Revisions of generation g of the cluster begin above (g - 1) << 40; beyond so many they just go on, and all
 * of them can be written as a double. */
#define TABLE_GENERATION_BITS 40
#define TABLE_GENERATION_MAX 4096u
#define TABLE_HISTORY_CHANGES_MAX 65536u
#define TABLE_HISTORY_BYTES_MAX (32u << 20)

/*
 * The rules that a node knows. A node tells its peers which version it knows (Hello). The leader writes the
 * lowest that all members are known to know into every command, and the command is carried out by the rules
 * of that version, by newer nodes, too: what came later is skipped in it (known.c). So replicas are the same
 * whoever leads, and whatever a client has said. 0, of older leaders, stands for 1.
 *
 *     1   0.6.0
 *     2   0.7.0: Campaign.is_patient, epoch_at_least, renews_epoch and instance; Withdraw.is_done, successor,
 * ending, id and instance; RemoveGroup; a vacant group does not wait for a candidate of a store that is not
 * eligible; a session leaves its groups by more than one operation, and may have more of them; more sessions
 */
#define TABLE_VERSION 2u
#define TABLE_VERSION_0_7 2u

/* Keys have at least one byte; values may be empty. Any byte may stand in them. Of OPS, value is the protobuf
 * and there is no key. */
struct table_command {
    enum table_command_kind kind;
    const uint8_t *key;
    size_t key_size;
    const uint8_t *value; /* PUT */
    size_t value_size;
};

#define TABLE_COMMAND_HEAD_BYTES 8
#define TABLE_COMMAND_BYTES_MAX (TABLE_COMMAND_HEAD_BYTES + TABLE_KEY_BYTES_MAX + TABLE_VALUE_BYTES_MAX)

/* The length of the command as bytes; 0 if it cannot be one, by its kind or its sizes. */
size_t table_command_size(const struct table_command *command);

/* Writes table_command_size() bytes, which must not be 0. */
void table_command_encode(const struct table_command *command, uint8_t *bytes);

/* Borrows from bytes. ERR_INVALID for bytes that table_command_encode() cannot have made. */
GAVEL_CHECKED enum gavel_status table_command_decode(const uint8_t *bytes, size_t size,
                                                     struct table_command *ret_command);

struct table_item {
    uint64_t revision; /* that put it */
    uint64_t hash;
    uint32_t key_size;
    uint32_t value_size;
    uint8_t bytes[]; /* key, then value */
};

static inline const uint8_t *table_item_key(const struct table_item *item) { return item->bytes; }
static inline const uint8_t *table_item_value(const struct table_item *item)
{
    return item->bytes + item->key_size;
}

/* The plain struct of base/record.h on the heap, as short as its strings: there may be many. */
struct table_process {
    char boot_id[37];
    int32_t pid; /* 0: not told */
    uint64_t pid_ns;
    uint64_t start_ticks;
};

struct table_result {
    enum gavel_status status;
    uint64_t revision; /* the table's after the operation */
    uint64_t version;  /* of its group after it; 0 none */
    /* Of its group after it; of a Claim that was granted, or a Campaign that was: the new one. */
    uint64_t epoch;
    /* Static, a clause for people; "" if there is nothing to say. Of a repeated request "". */
    const char *why;
};

struct table_candidate {
    TAILQ_ENTRY(table_candidate) in_group; /* in order of joined_revision */
    TAILQ_ENTRY(table_candidate) in_session;
    struct table_group *group;
    struct table_session *session; /* NULL: registered by heartbeats */
    uint64_t instance;             /* of heartbeats; with a session 0 if it has not said one */
    char *id;
    char *address;
    uint8_t *metadata;
    size_t metadata_size;
    int32_t priority;
    bool is_eligible;
    bool is_patient; /* does not replace a leader that was lost; only with a session */
    uint64_t joined_revision;
    int64_t since_wall_ms;
    struct table_process process;
    Gavel__Process shown; /* the same as a message */
    uint64_t hash;
    size_t weight;
};
TAILQ_HEAD(table_candidates, table_candidate);

struct table_session {
    RB_ENTRY(table_session) by_id;
    /* It is over for everybody, and leads nothing new. It is in the table until it has left all its groups,
     * by several operations; what it has held and not left yet, it holds. */
    bool is_ending;
    Gavel__Ending ending;
    SLIST_ENTRY(table_session) in_ending; /* of the table */
    uint64_t id;
    uint32_t slot; /* see table_slots */
    uint32_t ttl_ms;
    char *name;
    /* Who may use it; 0: anybody who knows its id. Not in the digest: nodes of before 0.7.0 do not have
     * it. */
    uint64_t principal;
    struct table_process process;
    Gavel__Process shown;
    uint64_t create_revision;
    int64_t since_wall_ms;
    uint64_t last_id;             /* of the newest request that was applied … */
    struct table_result *results; /* … and what came of it */
    size_t result_count;
    struct table_candidates candidates; /* in order of joined_revision */
    size_t candidate_count;
    size_t lead_count; /* groups that it leads … */
    size_t wish_count; /* … and of these, that it is asked to hand over */
    uint64_t hash;
    size_t weight;
};

struct table_group {
    RB_ENTRY(table_group) by_name;
    RB_ENTRY(table_group) in_attention;
    /* Is in table.attention: a wish, a preemption or a lapse (of a lease, or of a vacant group that waits
     * for a store's candidate) may come due. */
    bool has_attention;
    RB_ENTRY(table_group) in_balanced;
    bool has_balance;              /* is in table.balanced */
    struct table_session *counted; /* in whose lead_count it is, and … */
    bool counts_wish;              /* … in whose wish_count */
    uint32_t slot;                 /* see table_slots */
    char *name;
    uint64_t create_revision;
    /* The newest change of anything in it, for whoever counts how long nobody has used it; of a group from a
     * snapshot that of the whole table. Not part of the state: replicas differ in it. */
    uint64_t touched_revision;
    /* The revision of the last change of the mandate; not of a renewal, nor of a wish. 0: there was never
     * a mandate (only candidates or notes). */
    uint64_t version;
    uint64_t epoch;
    bool is_held;
    bool is_done;
    struct table_session *session; /* of the holder; NULL: a lease mandate */
    char *holder;                  /* "" if there was none; stays after a release */
    char *address;
    uint64_t nonce_high;
    uint64_t nonce_low;
    int64_t lease_ms;
    struct table_process process;
    Gavel__Process shown;
    int64_t since_wall_ms;
    char *successor;
    char *previous_holder;
    Gavel__Ending last_ending;
    uint64_t wish_epoch; /* 0: none */
    char *wish_successor;
    bool wish_is_forced;
    uint32_t wish_timeout_ms;
    Gavel__Policy policy; /* UNSET until somebody campaigns: like FIRST */
    uint32_t min_mandate_ms;
    bool preempts;
    struct table_candidates candidates;
    size_t candidate_count;
    size_t note_count;
    uint64_t hash;
    size_t weight;
};

struct table_note {
    RB_ENTRY(table_note) by_key;
    struct table_group *group;
    char *key;
    uint8_t *value;
    size_t value_size;
    uint64_t create_revision;
    uint64_t mod_revision;
    uint64_t epoch;
    uint64_t hash;
    size_t weight;
};

RB_HEAD(table_sessions, table_session);
RB_HEAD(table_groups, table_group);
RB_HEAD(table_notes, table_note);
RB_HEAD(table_attention, table_group);
RB_HEAD(table_balanced, table_group);

struct table_history; /* history.h */

/*
 * Small numbers: no other object of its kind has the same at the time. For what others keep beside the table,
 * in arrays of `used` places; they compare create_revision, for a number is used again. They are no part of
 * the state: replicas differ in them.
 */
struct table_slots {
    uint32_t used; /* all are below */
    uint32_t *free;
    uint32_t free_count;
    uint32_t capacity;
};

struct table {
    uint64_t index;            /* of the newest entry that was applied, or refused */
    uint64_t revision;         /* of the newest change */
    struct table_item **items; /* in order of key: bytes, and the shorter first */
    size_t count;
    size_t capacity;
    size_t bytes;      /* of all keys, values, texts, and something for each thing */
    uint64_t contents; /* the sum of the hashes of all items, sessions, groups and notes */
    struct table_sessions sessions;
    size_t session_count; /* with those that are ending */
    SLIST_HEAD(, table_session) ending_sessions;
    struct table_slots session_slots;
    struct table_groups groups; /* in order of name, bytes */
    size_t group_count;
    struct table_slots group_slots;
    struct table_notes notes; /* in order of group, then key */
    size_t note_count;
    struct table_attention attention; /* groups in which something may come due by time, in order of name */
    struct table_balanced
        balanced;             /* groups that are led by the policy `balanced`, and that others wait for */
    uint64_t balance_changes; /* moves whenever somebody may lead more groups, or fewer */
    struct table_history *history; /* NULL until table_keep_history(): nothing is remembered */
};

/* Frees what the table owns, and empties it. Safe on a zeroed struct. */
void table_done(struct table *table);

/*
 * Applies one command; indexes grow from call to call, with gaps where entries were for others.
 *
 * ERR_INVALID if the bytes are no command, ERR_STORE_FULL if there is no room by the limits above: nothing is
 * changed but the index, on every replica alike. ERR_NO_MEMORY: the index stays, and the other replicas go
 * on. Of a plain command nothing at all is changed, and the caller may try again. Of a command OPS each
 * operation is carried out as a whole or not at all, but some may have been: the table is then neither the
 * one before nor the one after, and the caller must stop and build it anew from its log.
 */
GAVEL_CHECKED enum gavel_status table_apply(struct table *table, uint64_t index, const uint8_t *bytes,
                                            size_t size);

/* What came of a command OPS; nothing of other commands. */
struct table_outcome {
    struct table_result *results; /* one for each operation */
    size_t count;
    /* Processes that sessions, lease mandates and registrations name since this command. Some may be missing
     * for want of memory. */
    struct table_process *processes;
    size_t process_count;
};
void table_outcome_done(struct table_outcome *outcome); /* safe on a zeroed struct */

/*
 * The same, with what came of it, handed over to the caller for table_outcome_done(). ERR_SESSION_GONE, and
 * nothing is changed, if the session of the command is not open (but for an OpenSession of that very
 * session). A higher id than the session's last_id is applied (ids may skip: what is answered without the log
 * is not recorded), last_id itself is answered with the results that it had, a lower one is ERR_STATE.
 */
GAVEL_CHECKED enum gavel_status table_apply_ops(struct table *table, uint64_t index, const uint8_t *bytes,
                                                size_t size, struct table_outcome *ret_outcome);

/* The same for a command OPS that is decoded already, as its bytes would be: that is known only of one that
 * is carried out by the newest rules (TABLE_VERSION). */
GAVEL_CHECKED enum gavel_status table_apply_command(struct table *table, uint64_t index,
                                                    const Gavel__Command *command,
                                                    struct table_outcome *ret_outcome);

/* A command OPS as bytes, handed over to the caller. ERR_NO_MEMORY; ERR_INVALID beyond the limits. */
GAVEL_CHECKED enum gavel_status table_ops_encode(const Gavel__Command *command, uint8_t **ret_bytes,
                                                 size_t *ret_size);

/* An operation as whoever asked for it has packed it; bytes NULL: that is not at hand. */
struct table_packed {
    const uint8_t *bytes;
    size_t size;
};
/* The same from operations that are packed already, one for each of the command: their bytes are copied as
 * they are. NULL: none is. */
GAVEL_CHECKED enum gavel_status table_ops_encode_packed(const Gavel__Command *command,
                                                        const struct table_packed *packed,
                                                        uint8_t **ret_bytes, size_t *ret_size);

/*
 * Whether an operation could be carried out at all: names, sizes, durations within the limits, and if
 * is_from_client nothing that only nodes may say. ERR_INVALID, or ERR_TOO_LARGE of a note or metadata, with a
 * sentence. Asked before something is proposed; apply asks it again.
 */
GAVEL_CHECKED enum gavel_status table_op_check(const Gavel__Op *op, bool is_from_client,
                                               struct gavel_error *error);

/* The name of the group that an operation is about; "" for one of sessions. Borrowed. */
const char *table_op_group(const Gavel__Op *op);

/* From now on changes are remembered. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status table_keep_history(struct table *table);

/* One that is open. */
struct table_session *table_session_find(const struct table *table, uint64_t id);
/* Also one that is ending. */
struct table_session *table_session_find_any(const struct table *table, uint64_t id);
/* Whether it is the one with that create_revision, and not another under the same id; 0: whichever. */
bool table_session_is_meant(const struct table_session *session, uint64_t revision);
struct table_group *table_group_find(const struct table *table, const char *name);
/* The first group whose name is not below `name` ("" the first of all), and the next; NULL at the end. */
struct table_group *table_group_from(const struct table *table, const char *name);
struct table_group *table_group_next(struct table_group *group);
/* The same of those in table.attention. */
struct table_group *table_attention_from(const struct table *table, const char *name);
struct table_group *table_attention_next(struct table_group *group);
struct table_session *table_session_first(const struct table *table);
struct table_session *table_session_next(struct table_session *session);
/* A candidate of a group; NULL if there is none. */
struct table_candidate *table_candidate_find(const struct table_group *group, const char *id);
/* The first of table.balanced whose name is not below `name`, and the next; NULL at the end. */
struct table_group *table_balanced_from(const struct table *table, const char *name);
struct table_group *table_balanced_next(struct table_group *group);
/* Who should lead the group instead of its leader, so that both lead about as many; NULL: nobody. */
const struct table_candidate *table_group_lighter(const struct table_group *group);
/* Who would be granted the mandate next: the one that is wished for or named, else by policy; never the
 * leader. NULL if there is none. */
struct table_candidate *table_group_next_in_line(const struct table_group *group);
/* Who is preferred to the leader, if the group preempts; NULL if there is none. */
struct table_candidate *table_group_better(const struct table_group *group);
/* The notes of a group from that key on, in order; NULL at its end. */
struct table_note *table_note_find(const struct table *table, const char *group, const char *key);
struct table_note *table_note_from(const struct table *table, const struct table_group *group,
                                   const char *key);
struct table_note *table_note_next(struct table_note *note);

/*
 * What is shown of them as messages: strings are borrowed from the table, the array of candidates (if wanted)
 * is handed over in *ret_candidates, which the caller frees with free(). What only the leader of the cluster
 * knows is left at 0, remaining_ms at -1.
 */
void table_group_show(const struct table_group *group, Gavel__Group *ret_group);
GAVEL_CHECKED enum gavel_status table_candidates_show(const struct table_group *group,
                                                      Gavel__Candidate **ret_candidates, size_t *ret_count);
void table_note_show(const struct table_note *note, Gavel__Note *ret_note);

/* NULL if there is no such key. */
const struct table_item *table_find(const struct table *table, const uint8_t *key, size_t key_size);

/* One number for the contents and the revision: equal for equal tables, and but for a chance of one in 2^64
 * different for others. */
uint64_t table_digest(const struct table *table);

/* The whole table as bytes, handed over to the caller, who frees them. The same bytes for the same table.
 * ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status table_snapshot_encode(const struct table *table, uint8_t **ret_bytes,
                                                      size_t *ret_size);

/* Replaces the contents of the table. ERR_STORE_DAMAGED for bytes that table_snapshot_encode() cannot have
 * made, ERR_NO_MEMORY; the table is untouched then. */
GAVEL_CHECKED enum gavel_status table_snapshot_decode(struct table *table, const uint8_t *bytes, size_t size);

/*
 * The contents of `fresh` become those of the table, and the other way round, without a walk over them. The
 * clock and the list of processes stay where they are. The history of `fresh` comes along if it has one
 * (table_keep_history()); otherwise that of the table stays, and begins anew.
 */
void table_exchange(struct table *table, struct table *fresh);

/* Frees about so many sessions, groups, notes and changes of a table that nobody uses any more. True: it is
 * empty. */
bool table_free_some(struct table *table, size_t count);

#endif
