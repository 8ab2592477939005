/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the leader of a cluster and its voters tell each other about sessions
 * that were heard (core/session/silence.h). Converts bytes to a struct and
 * back; no received byte is trusted.
 */
#ifndef WIRE_SILENCE_H
#define WIRE_SILENCE_H

#include "base/time.h"

#include <gavel/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks, and sessions, in one message. */
#define SILENCE_MARKS_MAX 512
#define SILENCE_SESSIONS_MAX 16384
/* What is older is told as that old. */
#define SILENCE_AGE_MAX (INT64_C(30) * 86400 * NS_PER_S)

/* What a voter knew of former terms when it began to follow the leader that asks. */
enum silence_kind {
    SILENCE_UNTOLD,
    SILENCE_HOLDS, /* it holds that mark of that term, since so long */
    SILENCE_BEGAN, /* it holds none since it started, so long ago */
    SILENCE_BLIND, /* somebody may have led since, without marks: it cannot tell */
};

/* The sessions that were first heard after the mark before, by the revisions that opened them. */
struct silence_mark {
    gavel_ns age;              /* since it was made, when the message was */
    size_t count;              /* at least one */
    const uint64_t *revisions; /* growing */
};

struct silence_message {
    bool is_answer;
    uint64_t term;

    /* of the leader */
    uint64_t to_incarnation; /* of the voter: in another one it takes no marks of this. 0: not known yet */
    bool asks;               /* for what the voter knew before this term */
    bool is_marking;         /* the marks are there; else it only asks */
    uint64_t config;         /* which configuration the marks are counted in */
    uint64_t from;           /* the mark before the first of these */
    gavel_ns from_age;
    size_t mark_count;
    const struct silence_mark *marks; /* number from + 1 and so on */

    /* of a voter */
    uint64_t held; /* the newest mark of this term that it holds; 0: none */
    enum silence_kind told;
    uint64_t told_term;
    uint64_t told_number;
    gavel_ns told_age;

    void *memory; /* of a decoded one: what the pointers point to */
};

/* Bytes are handed over. ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status silence_encode(const struct silence_message *message, uint8_t **ret_bytes,
                                               size_t *ret_size);
/* ERR_INVALID for what silence_encode() cannot have written; ERR_NO_MEMORY. */
GAVEL_CHECKED enum gavel_status silence_decode(const uint8_t *bytes, size_t size,
                                               struct silence_message *ret_message);
void silence_message_done(struct silence_message *message); /* safe on a zeroed struct */

#endif
