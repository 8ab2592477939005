/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session of a handle, in a store that has sessions: one for all its
 * candidates, whose mandates last as long as it does.
 *
 *   store ── news ──► queue ──┬── a later deadline ► published, watchdog, guard    no candidate is stepped
 *                             ├── another session ─► all candidates, those that lead first
 *                             └── a record, a hint ► the candidate of that group
 *
 * A keep-alive that was answered costs the same with one group and with many.
 * Answers to calls are fed only after the news that the store had for us when
 * they were taken: what a reply shows was told before as far as it concerns the
 * session.
 *
 * When a session is lost, gavel_is_leader() turns false for all groups at once.
 * The leaders are told one after the other, earliest stop first; until the last
 * of them was told, watchdog and guard go by the deadline of that session. The
 * others have nothing to lose. They are told as their calls can be made, and in
 * the same turn those that led begin with the next session; should another come
 * before, they are told of that one.
 */
#ifndef LIB_SESSION_H
#define LIB_SESSION_H

#include "base/request.h"
#include "lib/loop/timers.h"

#include <pthread.h>
#include <stdbool.h>

struct gavel;
struct gavel_candidate;
struct published_session;
struct store_news;

struct handle_session {
    /* fixed once opened */
    struct published_session *published; /* NULL: the store has no sessions */
    gavel_ms asked_ttl_ms;               /* by the URL; 0: it follows from the lease */

    /* begin_lock, which is taken before the handle's */
    pthread_mutex_t begin_lock;
    bool is_begun;
    gavel_ms lease_ms; /* that it was begun with */
    int drift_ppm;

    /* loop */
    struct store_session now; /* as the candidates are shown it */
    bool is_telling;          /* some that lead do not know yet that theirs is over */
    struct timers ends;       /* of mandates, counted from its deadline: minus the stop lead */
    struct store_news *queue; /* a ring */
    size_t first;
    size_t count;
    bool has_another;                /* in the queue there is news of another session */
    struct gavel_candidate *to_tell; /* from here on some that do not lead were not told of the session */
};

/* Makes room for it, if the store has sessions. ERR_NO_MEMORY, ERR_IO. The second is safe on a half-built
 * handle. */
GAVEL_CHECKED enum gavel_status lib_session_open(struct gavel *gavel, const char *url);
void lib_session_close(struct gavel *gavel);

/*
 * Begins the session with the first candidate that joins, or sees whether it
 * suits one that joins later. ERR_INVALID: another one would be needed;
 * ERR_BUDGET: it is too short for these settings; or the error of
 * store_open_session(). From any thread.
 */
GAVEL_CHECKED enum gavel_status lib_session_begin(struct gavel *gavel, const struct gavel_settings *settings,
                                                  struct gavel_error *error);

/* Makes room for as many mandates. ERR_NO_MEMORY. Loop only, as is all that follows. */
GAVEL_CHECKED enum gavel_status lib_session_reserve(struct gavel *gavel, size_t count);

/*
 * Takes in what the store has told. True if that was all; otherwise the loop
 * comes back soon. Ends the mandates whose time is over meanwhile.
 */
bool lib_session_take_news(struct gavel *gavel);

/* Tells others of the session that is open, as many as may begin with it. */
void lib_session_tell_waiting(struct gavel *gavel);

/* Takes in only later deadlines. */
void lib_session_look_ahead(struct gavel *gavel);

/* Whether something is in the queue. */
bool lib_session_has_news(const struct gavel *gavel);

/* The candidate may have a mandate since its last step, or not any more. */
void lib_session_note(struct gavel_candidate *candidate);

/* When the first mandate must begin to stop; NEVER: none must, as far as the session goes. */
gavel_ns lib_session_stop_at(const struct gavel *gavel);

/* Puts the mandates whose session leaves them no more time in the handle's list `lapsed`. */
void lib_session_note_lapsed(struct gavel *gavel, gavel_ns now);

#endif
