/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Release on death: what a guard releases when its process is dead. The list
 * lies in memory that the process shares with its guard, so that it is
 * complete at every instant, whenever the process dies.
 *
 * An entry names the newest claim of one group by its nonce, and is written
 * before that claim is sent. A release by a nonce that holds nothing does
 * nothing, so an entry may be out of date and still do no harm.
 *
 * The entry also has the mandate's instants, for a guard that has to end the
 * work in time although the process does not run any more.
 */
#ifndef LIB_GUARD_ON_DEATH_H
#define LIB_GUARD_ON_DEATH_H

#include "base/record.h"

#include <gavel/gavel.h>

#include <stdatomic.h>

#define ON_DEATH_STORE_MAX 4400
#define ON_DEATH_ENTRIES_MAX 16384 /* groups beyond that are left to their leases */

/* What the memory looks like; another number whenever that changes, since the guard may be another
 * program. */
#define ON_DEATH_FORMAT 1

struct on_death_entry {
    _Atomic uint32_t is_used;       /* 0: nothing to release */
    _Atomic uint64_t epoch;         /* that the work was started under; 0: none is done */
    _Atomic gavel_ns stop_at;       /* of the mandate it is done under: it must begin to stop */
    _Atomic gavel_ns deadline;      /* of that mandate: the work has stopped */
    struct nonce nonce;             /* of the newest claim; whole if is_used */
    gavel_ms candidate_timeout_ms;  /* of the group: who is silent for longer is not rung; 0: a minute */
    char group[NAME_MAX_BYTES + 1]; /* "": the entry is free */
    char holder[NAME_MAX_BYTES + 1];
};

struct on_death {
    uint32_t format;
    _Atomic uint32_t count; /* entries that were ever taken */
    char store[ON_DEATH_STORE_MAX];
    uint32_t capacity; /* of entries */
    struct on_death_entry entries[];
};

/* Shared memory that forked children keep; only what is written takes room. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status on_death_new(uint32_t capacity, struct on_death **ret_on_death);

/*
 * The same in a file of memory, for a guard that is another program; forked
 * children do not have it. ERR_IO, ERR_NO_MEMORY. The other side maps it to be
 * read: ERR_INVALID if it is something else, or of another version of gavel.
 */
GAVEL_CHECKED enum gavel_status on_death_new_file(struct on_death **ret_on_death, int *ret_fd);
GAVEL_CHECKED enum gavel_status on_death_map_file(int fd, const struct on_death **ret_on_death);

/* Unmaps it. Safe on NULL. */
void on_death_free(const struct on_death *on_death);

/* Which store it speaks of; "" at first: nothing is to be released. ERR_INVALID if the URL is too long. */
GAVEL_CHECKED enum gavel_status on_death_set_store(struct on_death *on_death, const char *url);

/* Takes an entry for a group; NULL if there is none left. Not locked: the handle's mutex guards it. */
struct on_death_entry *on_death_take(struct on_death *on_death, const char *group, const char *holder);
void on_death_give_back(struct on_death_entry *entry); /* safe on NULL */

/* A claim with this nonce is about to be sent. Safe on NULL, as are the next two. */
void on_death_note_claim(struct on_death_entry *entry, struct nonce nonce);

/*
 * The work that was started under this epoch may go on until then. A mandate
 * that goes on as a new epoch does not change under which the work started.
 */
void on_death_note_mandate(struct on_death_entry *entry, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline);

/* No work is done under any mandate. */
void on_death_note_stopped(struct on_death_entry *entry);

/*
 * The mandate as it stands, for work that was started under that epoch. False,
 * and nothing written, if there is none, or it is being replaced: then no work
 * of that epoch may go on. stop_at is never after the deadline. Any process.
 */
bool on_death_read_mandate(const struct on_death_entry *entry, uint64_t epoch, gavel_ns *ret_stop_at,
                           gavel_ns *ret_deadline);

struct store;

/*
 * Releases what the dead process held and rings the others. `store` may be
 * one that was opened beforehand and stays the caller's, or NULL: then the
 * one of the list is opened; not created, should it be missing. It is tried again
 * until that instant while the store cannot be reached. Only to be called when
 * nothing of the work is left. *ret_released (may be NULL) is how many
 * mandates were released; that there was none is OK. Otherwise the store's
 * last failure, with its words in *error (may be NULL).
 */
GAVEL_CHECKED enum gavel_status on_death_release(const struct on_death *on_death, struct store *store,
                                                 gavel_ns until, size_t *ret_released,
                                                 struct gavel_error *error);

/*
 * gavel_open() for a program whose work is done by processes of its guard:
 * the mandates are noted in on_death, and the death of this process alone
 * frees nothing, since the work may still go on. on_death is borrowed.
 */
GAVEL_CHECKED enum gavel_status gavel_open_guarded(const struct gavel_options *options,
                                                   struct on_death *on_death, struct gavel **ret_gavel,
                                                   struct gavel_error *error);

/* What did the work was killed: the mandates are not given up but lost, when the handle is closed. */
void gavel_note_loss(struct gavel *gavel, enum gavel_loss loss);

#endif
