/* SPDX-License-Identifier: Apache-2.0 */

/* The stage on which stories are played: candidates, one clock, one store, and commands that move them. */
#ifndef TRACE_STAGE_H
#define TRACE_STAGE_H

#include <stdio.h>

struct stage;

/* Prints what happens to `out`. */
struct stage *stage_new(FILE *out);
void stage_free(struct stage *stage);

/*
 * Carries out one command of a script; a command that cannot be understood
 * prints an error, and thereby fails the story.
 */
void stage_command(struct stage *stage, const char *command);

#endif
