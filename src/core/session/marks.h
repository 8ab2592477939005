/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leader's side of silence.h: it makes marks, sends to each voter those that
 * it lacks, and learns what the voters held before.
 *
 * A mark is made when something was heard, at most one every MARKS_PACE; it
 * costs two or three bytes for each session in it, and nothing while nobody is
 * heard. What a voter has not acknowledged is sent again with the next one, or
 * after MARKS_AGAIN.
 *
 * What the new leader may conclude. It holds mark n of term t, in the
 * configuration that is still in force. Let k be a mark of the same or a later
 * term, beyond n, by whose strength something was answered. A majority held k,
 * and any majority that answers has one of those. So each voter says what it
 * held before this term, and adds
 *
 *     nothing                      it held nothing beyond n
 *     since when it holds that     it held more: what was answered by that, was heard before
 *     when it started              it had forgotten: likewise
 *     everything                   it may have followed a leader without marks: nothing is known
 *
 * The floor of all sessions is the latest of what a majority adds, of the
 * majority for which that is earliest; until then it is when the leader began.
 *
 * Of another configuration than that of n nothing is concluded: its majorities
 * need not meet those of the configuration that k was counted in.
 */
#ifndef CORE_SESSION_MARKS_H
#define CORE_SESSION_MARKS_H

#include "core/session/silence.h"

#define MARKS_PACE (20 * NS_PER_MS)
#define MARKS_AGAIN (50 * NS_PER_MS)
/* To a voter that has acknowledged nothing for a while, with all that is new. */
#define MARKS_SILENT (500 * NS_PER_MS)
/* For so long a new leader asks; who does not answer does not know how to. */
#define MARKS_ASK_FOR (5 * NS_PER_S)
#define MARKS_VOTERS_MAX 16

struct marks_made {
    gavel_ns at;
    size_t count;
};

struct marks_voter {
    uint64_t id;          /* 0: the place is free */
    uint64_t incarnation; /* as which it spoke last; 0: it did not */
    bool has_begun;       /* it was sent that there are marks */
    uint64_t acked;       /* by that incarnation */
    uint64_t sent;
    gavel_ns sent_at; /* 0: never */
    gavel_ns
        waits_from; /* when the first was sent that it has not acknowledged; 0: it has all that was sent */
    bool has_told;
    gavel_ns sure; /* how long before we began was heard at the latest what it adds; NEVER: it adds nothing */
};

struct marks {
    struct silence *silence; /* borrowed */
    uint64_t term;           /* in which this node leads, or has led; 0: it has not */
    bool is_open;
    bool is_making; /* answers wait for marks */
    gavel_ns opened_at;
    gavel_ns made_at; /* the newest */
    /* The mark that is being made has the number silence->held.number + 1. */
    uint64_t *heard;
    size_t heard_count;
    size_t heard_capacity;
    /* Those that were made, after number `base`; and their sessions one after the other. */
    uint64_t base;
    gavel_ns base_at;
    struct marks_made *made;
    size_t made_count;
    size_t made_capacity;
    uint64_t *sessions;
    size_t session_count;
    size_t session_capacity;
    struct marks_voter voters[MARKS_VOTERS_MAX];
    /* What was held before we led: conclusions need it. */
    bool has_anchor;
    struct silence_held anchor;
};

void marks_init(struct marks *marks, struct silence *silence);
void marks_done(struct marks *marks); /* safe on a zeroed struct */

/* This node leads in that term. */
void marks_open(struct marks *marks, gavel_ns now, uint64_t term, bool is_making);
void marks_close(struct marks *marks, gavel_ns now, uint64_t config);
/* All voters know marks now: answers wait for them from now on. */
void marks_begin(struct marks *marks, gavel_ns now);

/* The number of the mark that will have this session; 0: no memory. */
uint64_t marks_hear(struct marks *marks, uint64_t revision);
/* The number of the mark that is being made. */
uint64_t marks_next(const struct marks *marks);
/* When the next mark is to be made; NEVER: nothing was heard. */
gavel_ns marks_due_at(const struct marks *marks);
/* Makes it. */
void marks_make(struct marks *marks, gavel_ns now, uint64_t config);

/* What a voter is to be sent. Pointers are into `room` and into the marks, until the next call of any. */
struct marks_room {
    struct silence_mark marks[SILENCE_MARKS_MAX];
};
gavel_ns marks_send_at(const struct marks *marks, uint64_t voter);
/* Something else was heard of it: if it was silent, it is there again, and what it lacks is due at once. */
void marks_speaks(struct marks *marks, uint64_t voter);
void marks_send(struct marks *marks, gavel_ns now, uint64_t voter, uint64_t config, struct marks_room *room,
                struct silence_message *ret_message);

/* An answer of this voter, in this incarnation. Whether it told what it held before. */
bool marks_take(struct marks *marks, gavel_ns now, uint64_t voter, uint64_t incarnation,
                const struct silence_message *message);
/* The newest mark that the voter holds. */
uint64_t marks_acked(const struct marks *marks, uint64_t voter);
/* See marks_voter; of one that has told nothing 0. */
gavel_ns marks_sure(const struct marks *marks, uint64_t voter);
/* A majority has made it sure that what was answered by others was heard so long before we began. */
void marks_learn(struct marks *marks, gavel_ns sure, uint64_t config);
/* A majority holds the marks up to this number. */
void marks_answer(struct marks *marks, uint64_t number);

#endif
