/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that play candidates (role.c) on one SQLite file, and what they say. */
#ifndef TESTS_LIB_ACTOR_H
#define TESTS_LIB_ACTOR_H

#include "harness.h"

#include <sys/types.h>

/* Far above the milliseconds it takes, far below the minutes between two looks of the patient settings. */
#define PROMPT_MS 8000

struct stage {
    struct scene *scene;
    const char *role;  /* the program that plays the candidates */
    const char *guard; /* NULL: they have none; else gavel-guard, and none can see whether another is alive */
};

/* cmocka's setup and teardown of a stage: *state is one whose scene they make. */
int stage_setup(void **state);
int stage_teardown(void **state);

/* A process that plays a candidate. */
struct actor {
    pid_t pid;
    int in;  /* its standard input */
    int out; /* its standard output */
    char text[4096];
    size_t length;
};

void actor_start(struct actor *actor, const struct stage *stage, const char *id, const char *settings,
                 const char *overrun, const char *hang_ms);

/* Reads lines until one begins with these words; the test fails after limit_ms. */
void expect(struct actor *actor, const char *words, gavel_ms limit_ms);

/* Two lines that may come in either order: two threads write them. */
void expect_both(struct actor *actor, const char *one, const char *other, gavel_ms limit_ms);

/* The number in the line that begins with this word. */
unsigned long long expect_number(struct actor *actor, const char *word, gavel_ms limit_ms);

void tell(const struct actor *actor, const char *line);

/* Waits for the process to end and returns its wait status. */
int actor_wait(struct actor *actor);

void actor_kill(struct actor *actor, int signal);

/* Ends a process in order: its input ends, it leaves, exit code 0. */
void actor_dismiss(struct actor *actor);

/* A leads, B stands by and A knows of it. */
unsigned long long start_pair(struct actor *a, struct actor *b, const struct stage *stage,
                              const char *settings, const char *overrun, const char *hang_ms);

#endif
