/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a node knows of the silence of sessions, so that it can lead without
 * giving each of them a whole new time to live.
 *
 * The leader numbers *marks*. A mark names the sessions that were first heard
 * since the one before, and goes to the voters, who keep in memory when each
 * session was last marked. The leader answers a keep-alive only when a majority
 * of the voters holds a mark with that session (marks.h). So whoever holds mark
 * n of a term can say of each session: what the leader of that term has answered
 * by the strength of its marks up to n, it had heard by then, or before.
 *
 *     leader:  heard ──► mark n ────────────────► answered ──► the client counts on it, from when it asked
 *     voter:               └─► holds n ──► ack ─────┘
 *
 * What is not in any mark that was taken counts as heard at the *floor*: every
 * mark says how old the one is that it goes on from, and who does not hold that
 * one begins there. So nothing is ever fetched, a node that was away or that has
 * just started knows as much as the others after one time to live, and what is
 * lost makes sessions last longer, never shorter.
 *
 * Instants are of the node's own clock. What travels is how long ago something
 * was, shortened by the drift of both clocks.
 *
 * A new leader may use what it holds if no answer can be beyond it: it asks the
 * voters what they held when they began to follow it (marks.h). For each of them
 * that is fixed by then: it takes no marks of former terms any more.
 */
#ifndef CORE_SESSION_SILENCE_H
#define CORE_SESSION_SILENCE_H

#include "core/table/table.h"
#include "wire/silence.h"

struct silence_heard {
    uint64_t revision; /* that opened the session; 0: the place is free */
    gavel_ns at;
};

/* What is held: a mark, and what is known of the sessions by it. */
struct silence_held {
    uint64_t term; /* 0: none */
    uint64_t number;
    uint64_t config; /* which configuration that mark was counted in */
    gavel_ns at;     /* since when it is held */
    gavel_ns floor;  /* what is not in the map was heard by then */
};

/* What was held when this node began to follow the leader of a term, or to lead in it. */
struct silence_past {
    uint64_t term; /* that one; 0: never */
    enum silence_kind kind;
    uint64_t held_term;
    uint64_t held_number;
    gavel_ns at; /* since when, or since it began */
};

struct silence {
    int drift_ppm;
    gavel_ns began_at;   /* what was answered by what this node knew, and has forgotten, was heard before */
    uint64_t led_term;   /* the newest in which this node followed somebody, or led */
    uint64_t led_before; /* the one before that */
    struct silence_held held;
    bool is_own;       /* the marks are our own … */
    uint64_t answered; /* … and there are answers by the strength of these, up to that number */
    struct silence_past past;
    struct silence_heard *heard; /* a map by revision: none, or a power of two */
    size_t capacity;
    size_t count;
};

/* `began_at`: until then a leader may go on by what this node had promised it before it started. */
void silence_init(struct silence *silence, int drift_ppm, gavel_ns began_at);
void silence_done(struct silence *silence); /* safe on a zeroed struct */

/* How long ago that was at least on our clock, if it was so long ago on another's. */
gavel_ns silence_aged(const struct silence *silence, gavel_ns age);

/* Somebody leads in this term, maybe ourselves. Terms only grow. */
void silence_led(struct silence *silence, uint64_t term);
/* What was held before this term, the newest in which somebody leads. */
const struct silence_past *silence_before(struct silence *silence, uint64_t term);

/* A message of the leader of that term, whom this node follows. */
void silence_take(struct silence *silence, gavel_ns now, const struct silence_message *message);

/* A session was heard by then, says a mark. False: no memory; then the floor has it. */
void silence_note(struct silence *silence, gavel_ns now, uint64_t revision, gavel_ns at);
/* By when, at the latest, was heard what the client of the session may count on. */
gavel_ns silence_heard_at(const struct silence *silence, uint64_t revision);
/* Forgets sessions that the table does not have any more, if there are many. */
void silence_forget(struct silence *silence, const struct table *table);
void silence_clear(struct silence *silence);

#endif
