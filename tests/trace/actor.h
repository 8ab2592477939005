/* SPDX-License-Identifier: Apache-2.0 */

/* One candidate on the stage, with what surrounds it: its calls under way, its work, its watch. */
#ifndef TRACE_ACTOR_H
#define TRACE_ACTOR_H

#include "core/candidate/candidate.h"
#include "store/local/rows.h"

#include <stdio.h>

#define ACTORS_MAX 9
#define ANSWERS_MAX 16
#define ANSWER_DELAY NS_PER_MS

struct answer {
    bool is_pending;
    gavel_ns at;
    uint64_t call;
    struct store_reply reply;
};

struct actor {
    char name[32]; /* on the stage; two actors may share a candidate id */
    int pid;
    struct candidate candidate;
    bool is_alive;
    bool is_unseen; /* the others cannot see whether its process is alive */
    bool is_paused;
    bool is_cut;
    bool is_deaf;
    gavel_ns stop_takes;
    gavel_ns stopped_at; /* when the work will have stopped; NEVER if it is not stopping */
    gavel_ns rung_at;    /* a doorbell under way; NEVER if none */
    bool is_watching;
    int watched_pid;
    struct nonce watched;
    gavel_ns death_at; /* a notice of the watched process's death under way; NEVER if none */
    struct answer answers[ANSWERS_MAX];
};

struct stage {
    FILE *out;
    gavel_ns now;
    gavel_ns store_stepped;
    enum store_clock clock;
    bool is_guarded; /* the death of a leader's process says nothing of its work */
    struct gavel_settings settings;
    struct rows rows;
    struct actor *actors[ACTORS_MAX];
    size_t count;
    int next_pid;
};

struct actor *actor_add(struct stage *stage, const char *name, const char *id, int priority,
                        bool is_eligible);
void actor_free(struct actor *actor);
void actor_feed(struct stage *stage, struct actor *actor, struct candidate_event event);
/* When something is next due for this actor, and what to do then. */
gavel_ns actor_due_at(const struct actor *actor);
void actor_do_due(struct stage *stage, struct actor *actor);
/* The process is gone; watchers are told unless they cannot see it. */
void actor_die(struct stage *stage, struct actor *actor, bool is_seen);

/* The same, and its guard ends the work, releases for it and rings the others. */
void actor_kill(struct stage *stage, struct actor *actor);

void say(struct stage *stage, const struct actor *actor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
