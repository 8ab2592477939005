/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One operation while it is carried out, and what the files of this directory do
 * for each other meanwhile.
 *
 * An operation first looks and allocates, then changes: from its first change
 * on nothing can fail. That is why texts are shared instead of copied when a
 * mandate passes on (text.c), and why the history forgets instead of failing.
 */
#ifndef CORE_TABLE_STEP_H
#define CORE_TABLE_STEP_H

#include "core/table/internal.h"

struct step {
    struct table *table;
    struct table_session *session; /* whose command it is; NULL: nobody's, or closed meanwhile */
    int64_t wall_ms;
    uint64_t generation; /* of the cluster, as the command says */
    uint32_t version;    /* of the table, likewise: the rules by which it is carried out */
    uint64_t revision;   /* that it makes, if it changes anything */
    uint32_t part;       /* of the next change that is told */
    bool has_changed;
    const char *group; /* that its result tells of; "" none */
    struct table_outcome *outcome;
    const char *why; /* it was refused */
};

/* Refuses the operation: `why` is static, a clause for people. Returns status. */
GAVEL_CHECKED enum gavel_status step_refuse(struct step *step, enum gavel_status status, const char *why);

/* Remembers a change in the history, with the revision and the next part. Borrows what it says. */
void step_tell(struct step *step, Gavel__Change *change);

/* A process that the table names from now on: the outcome of the command tells of it. */
void step_meet(const struct step *step, const struct table_process *process);

/* A change of this kind that concerns a group. */
Gavel__Change step_change(Gavel__Change__Kind kind, const struct table_group *group);

/* Texts: strings on the heap with a count of references; "" costs nothing. */
char *text_new(const char *string); /* NULL: no memory */
char *text_share(char *text);
void text_drop(char *text);              /* safe on NULL */
void text_set(char **field, char *text); /* drops what was there; takes over `text` */

/* Bytes on the heap; *ret_copy is NULL for none. False: no memory. */
bool bytes_copy(const uint8_t *bytes, size_t size, uint8_t **ret_copy);

/* Processes. */
void process_set(struct table_process *process, const Gavel__Process *message); /* NULL: not told */
bool process_is(const struct table_process *process, const Gavel__Process *message);
/* Makes the message that is shown of it, which borrows from it; and that message, NULL if it is not told. */
void process_ready(struct table_process *process, Gavel__Process *ret_shown);
Gavel__Process *process_show(const Gavel__Process *shown);

/* A number that is free, and it is free again. False: no memory. */
bool slot_take(struct table_slots *slots, uint32_t *ret_slot);
void slot_give(struct table_slots *slots, uint32_t slot);

/* Puts what is new of an object into the sums of the table. */
void table_account(struct table *table, uint64_t *hash, size_t *weight, uint64_t new_hash, size_t new_weight);
bool table_has_room(const struct table *table, size_t more);

/* Sessions. */
GAVEL_CHECKED enum gavel_status session_open(struct step *step, const Gavel__OpenSession *open);
GAVEL_CHECKED enum gavel_status session_close(struct step *step, const Gavel__CloseSession *close);
/* Whether `count` results can be kept for it, by the rules of that version; as many as it has always can. */
bool session_has_room(const struct table *table, const struct table_session *session, size_t count,
                      uint32_t version);
/* Takes over the results. */
void session_keep_results(struct table *table, struct table_session *session, uint64_t id,
                          struct table_result *results, size_t count);
/* A new one in the table, without candidates; NULL: no memory, or the id is taken. */
struct table_session *session_add(struct table *table, uint64_t id, const char *name);
void session_changed(struct table *table, struct table_session *session);
/* It is over, but has groups left. */
void session_set_ending(struct table *table, struct table_session *session, Gavel__Ending ending);
void sessions_done(struct table *table);
size_t sessions_free_some(struct table *table, size_t count); /* returns how many */

/* Groups. */
struct table_group *group_new(struct table *table, const char *name); /* NULL: no memory */
void group_free(struct table *table, struct table_group *group);      /* with its candidates; safe on NULL */
bool group_insert(struct table *table, struct table_group *group);    /* false: the name is taken */
/* A new one in the table. ERR_STORE_FULL, ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status group_create(struct step *step, const char *name,
                                             struct table_group **ret_group);
/* After everything that may have changed a group: grants the mandate if it is vacant, brings the sums and the
 * groups that need attention up to date, and removes the group if nothing is left of it. `leaver` has just
 * given up the mandate and stays; NULL: nobody. */
void group_settle(struct step *step, struct table_group *group, const struct table_candidate *leaver);
void group_changed(struct table *table, struct table_group *group);
/* Counts what its leader leads; puts it among the groups of the policy `balanced`, or takes it out. */
void balance_count(struct table *table, struct table_group *group);
/* The group is removed. */
void balance_forget(struct table *table, struct table_group *group);
/* Takes it out of the table and frees it; it has no notes. */
void group_remove(struct table *table, struct table_group *group);
/* An operation removes it, with its notes. ERR_NOT_FOUND, ERR_STATE, ERR_CONFLICT. */
GAVEL_CHECKED enum gavel_status group_end(struct step *step, const Gavel__RemoveGroup *remove);
/* Puts it among the groups that need attention, or takes it out. */
void group_attend(struct table *table, struct table_group *group);
void groups_done(struct table *table);
size_t groups_free_some(struct table *table, size_t count); /* returns how many */

/* Candidates. */
struct table_candidate *candidate_new(const char *id, const char *address, const uint8_t *metadata,
                                      size_t metadata_size); /* NULL: no memory */
void candidate_free(struct table_candidate *candidate);      /* safe on NULL */
void candidate_insert(struct table *table, struct table_group *group, struct table_session *session,
                      struct table_candidate *candidate);
void candidate_show(const struct table_candidate *candidate, Gavel__Candidate *ret_candidate);
void candidate_changed(struct table *table, struct table_candidate *candidate);
/* Takes it out of its group and frees it; LEFT is told. */
void candidate_remove(struct step *step, struct table_candidate *candidate, Gavel__Ending why);
/* Tells a change of this kind that concerns it. */
void candidate_tell(struct step *step, Gavel__Change__Kind kind, const struct table_candidate *candidate,
                    Gavel__Ending why);
/* A new one, with its session if it has one, enters the group; JOINED is told. */
void candidate_enter(struct step *step, struct table_group *group, struct table_candidate *candidate);
/* The same within the limits, into a group that may be new as well (*group NULL). On failure the candidate is
 * still the caller's. */
GAVEL_CHECKED enum gavel_status candidate_join(struct step *step, const char *name,
                                               struct table_group **group, struct table_candidate *candidate);
struct table_candidate *candidate_of_session(const struct table_group *group,
                                             const struct table_session *session);
bool candidate_leads(const struct table_candidate *candidate);
GAVEL_CHECKED enum gavel_status candidate_campaign(struct step *step, const Gavel__Campaign *campaign);
GAVEL_CHECKED enum gavel_status candidate_withdraw(struct step *step, const Gavel__Withdraw *withdraw);
GAVEL_CHECKED enum gavel_status candidate_register(struct step *step, const Gavel__Register *registration);
GAVEL_CHECKED enum gavel_status candidate_leave(struct step *step, const Gavel__Leave *leave);

/* Elections: who is granted the mandate. */
bool election_has_waiting(const struct table_group *group); /* an eligible candidate with a session */
void election_grant(struct step *step, struct table_group *group, const struct table_candidate *leaver);
/* A mandate begins, with the revision of the step as its epoch; the caller has set whose it is. Takes over
 * the texts. */
void election_begin(struct step *step, struct table_group *group, char *holder, char *address);
/* The mandate of a session goes on under a new epoch, as above; nothing of it is vacant in between. Its wish
 * must be over. */
void election_renew(struct step *step, struct table_group *group);
/* Ends the mandate. `successor` is taken over; the wish is void. */
void election_end(struct step *step, struct table_group *group, Gavel__Ending ending, char *successor);
void election_drop_wish(struct table_group *group);
/* Makes the revision of the step, and with it all later epochs, higher than this. ERR_STORE_FULL: it is out
 * of reach; nothing is changed. */
GAVEL_CHECKED enum gavel_status election_pass(struct step *step, uint64_t epoch);
/* The work of a vacant group is done for good; DONE is told. */
void election_finish(struct step *step, struct table_group *group);

/* Mandates by lease, and wishes. */
GAVEL_CHECKED enum gavel_status mandate_claim(struct step *step, const Gavel__Claim *claim);
GAVEL_CHECKED enum gavel_status mandate_renew(struct step *step, const Gavel__Renew *renew);
GAVEL_CHECKED enum gavel_status mandate_release(struct step *step, const Gavel__Release *release);
GAVEL_CHECKED enum gavel_status mandate_wish(struct step *step, const Gavel__Wish *wish);
GAVEL_CHECKED enum gavel_status mandate_reopen(struct step *step, const Gavel__Reopen *reopen);
GAVEL_CHECKED enum gavel_status mandate_lapse(struct step *step, const Gavel__Lapse *lapse);

/* Notes. */
GAVEL_CHECKED enum gavel_status note_put(struct step *step, const Gavel__PutNote *put);
GAVEL_CHECKED enum gavel_status note_delete(struct step *step, const Gavel__DeleteNote *delete_note);
/* A new one in the table; NULL: no memory, or the key is taken. */
struct table_note *note_add(struct table *table, struct table_group *group, const char *key,
                            const uint8_t *value, size_t value_size);
/* All notes, in order of group and key. */
struct table_note *note_first(const struct table *table);
struct table_note *note_next(struct table_note *note);
void note_changed(struct table *table, struct table_note *note);
/* Deletes it; NOTE_DELETED is told. */
void note_end(struct step *step, struct table_note *note);
void notes_done(struct table *table);
size_t notes_free_some(struct table *table, size_t count); /* returns how many */

/* History. */
void history_push(struct table_history *history, const Gavel__Change *change);
void history_forget(struct table_history *history, uint64_t floor);
size_t history_forget_some(struct table_history *history, size_t count); /* the oldest; returns how many */
void history_free(struct table_history *history);                        /* safe on NULL */

/* A message from bytes that anybody may have written. ERR_INVALID, ERR_NO_MEMORY. The caller frees it with
 * protobuf_c_message_free_unpacked(message, NULL). */
GAVEL_CHECKED enum gavel_status message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                               const uint8_t *bytes, size_t size,
                                               ProtobufCMessage **ret_message);
/* The same of a Command, without what its table_version does not know. */
GAVEL_CHECKED enum gavel_status command_unpack(const uint8_t *bytes, size_t size,
                                               ProtobufCMessage **ret_message);

#define SNAPSHOT_LENGTH_BYTES 4 /* before each message */

/* The messages of a snapshot, handed over, with so many bytes free before and behind them. */
GAVEL_CHECKED enum gavel_status snapshot_messages_encode(const struct table *table, size_t before,
                                                         size_t behind, uint8_t **ret_bytes,
                                                         size_t *ret_size);
/* Puts them into a table that has none. ERR_STORE_DAMAGED, ERR_NO_MEMORY; the table may have some then. */
GAVEL_CHECKED enum gavel_status snapshot_messages_decode(struct table *table, const uint8_t *bytes,
                                                         size_t size);

#endif
