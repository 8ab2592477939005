/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the program ends. One map gives the number and the sentence; --help
 * prints it, gavel(1) repeats it and a test compares the two.
 */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include <gavel/status.h>

/* clang-format off */
#define CLI_EXIT_MAP(X)                                                                                       \
    X(OK,        0, "done")                                                                                   \
    X(FAILURE,   1, "failed for a reason that has no number of its own")                                      \
    X(USAGE,     2, "the command line, environment or configuration is wrong; or split brain")                \
    X(NO_LEADER, 3, "the group or the cluster has no leader")                                                 \
    X(STORE,     4, "the store or the cluster cannot be used")                                                \
    X(ID_IN_USE, 5, "another live candidate uses this id")                                                    \
    X(TIMEOUT,   6, "what was waited for did not happen in time")                                             \
    X(BUDGET,    7, "the times of the settings do not add up")                                                \
    X(BUSY,      8, "another candidate runs it at the moment")                                                \
    X(STALE,     9, "the epoch is out of date, or the note has changed meanwhile")
/* clang-format on */

#define CLI_EXIT_ENUM(name, code, text) CLI_EXIT_##name = code,
enum cli_exit { CLI_EXIT_MAP(CLI_EXIT_ENUM) };
#undef CLI_EXIT_ENUM

/* The exit code that tells of a status. */
enum cli_exit exit_code_of(enum gavel_status status);

/* What it means, for --help; NULL for a number that is none of them. */
const char *exit_code_text(int code);

#endif
