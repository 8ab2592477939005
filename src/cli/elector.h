/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A member of a crew that takes part in the election with libgavel, as any
 * program would, and writes down what happens to it. In the demo it also
 * works: while it leads it appends a beat to the fenced log about every
 * millisecond.
 */
#ifndef CLI_ELECTOR_H
#define CLI_ELECTOR_H

#include "cli/crew.h"

struct elector_plan {
    bool works;
    bool is_saboteur; /* works whether or not it leads */
};

/* A post_run(); user is a struct elector_plan. */
int elector_run(const struct post *post, void *user);

#endif
