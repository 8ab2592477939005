/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the program ends. One map gives the number and the sentence; `gavel help`
 * prints it, gavel(1) repeats it and a test compares the two. The --help of a
 * command lists those that it can end with.
 */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include <gavel/status.h>

/* clang-format off */
#define CLI_EXIT_MAP(X)                                                                                       \
    X(OK,        0, "done")                                                                                   \
    X(FAILURE,   1, "failed for a reason that is not listed here")                                            \
    X(USAGE,     2, "the command line, environment or configuration is wrong")                                \
    X(NO_LEADER, 3, "the group or the cluster has no leader")                                                 \
    X(STORE,     4, "the store or the cluster cannot be used")                                                \
    X(ID_IN_USE, 5, "another live candidate uses this id")                                                    \
    X(TIMEOUT,   6, "timed out")                                                                              \
    X(BUDGET,    7, "the times of the settings do not add up")                                                \
    X(BUSY,      8, "another candidate is running it")                                                        \
    X(STALE,     9, "the epoch is out of date, or the note has changed")                                      \
    X(SPLIT_BRAIN, 10, "split brain: two nodes lead at once, or disagree")
/* clang-format on */

#define CLI_EXIT_ENUM(name, code, text) CLI_EXIT_##name = code,
enum cli_exit { CLI_EXIT_MAP(CLI_EXIT_ENUM) };
#undef CLI_EXIT_ENUM

/* The exit code for a status. */
enum cli_exit exit_code_of(enum gavel_status status);

/* Bit sets of exit codes, for struct command. */
#define EXITS(name) (1u << CLI_EXIT_##name)
#define EXITS_ALWAYS (EXITS(OK) | EXITS(FAILURE) | EXITS(USAGE))

#endif
