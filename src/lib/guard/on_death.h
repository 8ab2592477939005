/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Release on death: what a guard releases when its process is dead. The list is
 * in memory that the process shares with its guard, so that it is complete
 * whenever the process dies.
 *
 * An entry names the newest claim of one group by its nonce, and is written
 * before that claim is sent. Releasing a nonce that holds nothing has no
 * effect, so an entry that is out of date does no harm.
 *
 * The entry also has the mandate's instants, for a guard that has to end the
 * work in time although the process no longer runs.
 *
 * In a store with sessions there is one thing to release: the session, whose
 * key is here. Mandates last as long as the session, so their instants follow
 * from its deadline, which is written once for all of them.
 */
#ifndef LIB_GUARD_ON_DEATH_H
#define LIB_GUARD_ON_DEATH_H

#include "base/record.h"
#include "store/store.h"

#include <gavel/gavel.h>

#include <stdatomic.h>

#define ON_DEATH_STORE_MAX 4400
#define ON_DEATH_ENTRIES_MAX 16384 /* groups beyond that are left to their leases */

/* The layout of the memory; the number changes with it, since the guard may be another program. */
#define ON_DEATH_FORMAT 2

struct on_death_entry {
    _Atomic uint32_t is_used;       /* 0: nothing to release */
    _Atomic uint32_t changes;       /* of the mandate; odd while it is replaced */
    _Atomic uint64_t epoch;         /* that the work was started under; 0: no work */
    _Atomic gavel_ns stop_at;       /* of its mandate: the work must begin to stop … */
    _Atomic gavel_ns deadline;      /* … and has stopped; of a session: not after these, whatever it says */
    _Atomic uint64_t session;       /* not 0: the mandate lasts as long as that session … */
    _Atomic gavel_ns stop_lead;     /* … the work must begin to stop so long before its deadline … */
    _Atomic gavel_ns margin;        /* … and has stopped so long before it */
    struct nonce nonce;             /* of the newest claim; complete if is_used */
    gavel_ms candidate_timeout_ms;  /* of the group: candidates silent for longer are not rung; 0: a minute */
    char group[NAME_MAX_BYTES + 1]; /* "": the entry is free */
    char holder[NAME_MAX_BYTES + 1];
};

struct on_death {
    uint32_t format;
    _Atomic uint32_t count;            /* entries ever taken */
    struct store_session_key key;      /* the driver of the store writes it */
    _Atomic uint64_t session;          /* the number of the one that is open; 0: none */
    _Atomic gavel_ns session_deadline; /* that it has */
    char store[ON_DEATH_STORE_MAX];
    uint32_t capacity;   /* of entries */
    uint32_t first_free; /* for the writer: none before it is free */
    struct on_death_entry entries[];
};

/* Shared memory that forked children inherit; only written pages take up memory. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status on_death_new(uint32_t capacity, struct on_death **ret_on_death);

/*
 * The same in a memory file, for a guard that is another program; forked
 * children do not inherit it. ERR_IO, ERR_NO_MEMORY. The other side maps it for
 * reading: ERR_INVALID if it is something else, or of another version of gavel.
 */
GAVEL_CHECKED enum gavel_status on_death_new_file(struct on_death **ret_on_death, int *ret_fd);
GAVEL_CHECKED enum gavel_status on_death_map_file(int fd, const struct on_death **ret_on_death);

/* Unmaps it. Safe on NULL. */
void on_death_free(const struct on_death *on_death);

/* Sets the store to release in; "" at first: release nothing. ERR_INVALID if the URL is too long. */
GAVEL_CHECKED enum gavel_status on_death_set_store(struct on_death *on_death, const char *url);

/* Takes an entry for a group; NULL if there is none left. Not locked: the handle's mutex guards it. */
struct on_death_entry *on_death_take(struct on_death *on_death, const char *group, const char *holder);
void on_death_give_back(struct on_death *on_death, struct on_death_entry *entry); /* safe on NULLs */

/* A claim with this nonce is about to be sent. Safe on NULL, as are the next two. */
void on_death_note_claim(struct on_death_entry *entry, struct nonce nonce);

/*
 * The work that was started under this epoch may go on until the deadline. A
 * mandate that continues under a new epoch does not change the one the work
 * started under.
 */
void on_death_note_mandate(struct on_death_entry *entry, uint64_t epoch, gavel_ns stop_at, gavel_ns deadline);

/*
 * The same for a mandate that lasts as long as a session: not beyond
 * term_ends_at, NEVER if it has no end of its own. stop_lead is not less than
 * the margin.
 */
void on_death_note_session_mandate(struct on_death_entry *entry, uint64_t epoch, uint64_t session,
                                   gavel_ns stop_lead, gavel_ns margin, gavel_ns term_ends_at);

/*
 * Which session is open (0: none), and until when that is known. If it is
 * another one, the mandates of the one before are over for their readers: what
 * may still be done under them is noted first, by on_death_note_mandate(). Safe on NULL.
 */
void on_death_note_session(struct on_death *on_death, uint64_t session, gavel_ns deadline);

/* The work has stopped: none is done under any mandate. */
void on_death_note_stopped(struct on_death_entry *entry);

/*
 * The current mandate, for work that was started under that epoch. False, and
 * nothing written, if there is none or it is being replaced: then no work of
 * that epoch may go on. stop_at is never after the deadline. Any process.
 */
bool on_death_read_mandate(const struct on_death *on_death, const struct on_death_entry *entry,
                           uint64_t epoch, gavel_ns *ret_stop_at, gavel_ns *ret_deadline);

/*
 * When the last mandate is over that the list knows of, by what it says; in the
 * past if there is none. Of a session it is the end of the session, which may
 * have been granted a mandate that is not listed yet. After a crash it may be
 * anything, but never NEVER. Any process.
 */
gavel_ns on_death_last_deadline(const struct on_death *on_death);

/* How long it is worth trying to release: for so long after the last of those mandates is over. */
gavel_ns on_death_give_up_at(const struct on_death *on_death, gavel_ns patience);

/*
 * Releases what the dead process held and rings the others. `store` is one that
 * was opened beforehand and stays the caller's, or NULL: then the one of the
 * list is opened, but not created if it is missing. Retries until `until` while
 * the store cannot be reached. Must be called only when nothing of the work is
 * left. *ret_released (may be NULL) is the number of mandates released; it is
 * OK if there were none. Otherwise returns the store's last failure, with its
 * message in *error (may be NULL).
 *
 * In a store with sessions the session of the dead process is closed, and
 * nobody is rung. *ret_released is then the number of mandates that the process
 * knew it had. OK, and 0, if it never began a session.
 */
GAVEL_CHECKED enum gavel_status on_death_release(const struct on_death *on_death, struct store *store,
                                                 gavel_ns until, size_t *ret_released,
                                                 struct gavel_error *error);

/*
 * gavel_open() for a program whose work is done by processes of its guard. The
 * mandates are noted in on_death, and the death of this process alone frees
 * nothing, since the work may still go on. on_death is borrowed.
 */
GAVEL_CHECKED enum gavel_status gavel_open_guarded(const struct gavel_options *options,
                                                   struct on_death *on_death, struct gavel **ret_gavel,
                                                   struct gavel_error *error);

/*
 * The processes that did the work were killed: when the handle is closed, its
 * mandates count as lost, not as given up.
 */
void gavel_note_loss(struct gavel *gavel, enum gavel_loss loss);

#endif
