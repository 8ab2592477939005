/* SPDX-License-Identifier: Apache-2.0 */

/* The exit codes of gaveld and their meaning. The codes of the node process are in node.h. */
#ifndef DAEMON_EXIT_CODES_H
#define DAEMON_EXIT_CODES_H

#include <stddef.h>

#define DAEMON_EXIT_USAGE 2   /* bad command line or configuration; nothing was started */
#define DAEMON_EXIT_FAILURE 1 /* --force-new-cluster was not carried out */

struct exit_code {
    int code;
    const char *text;
};

/* In order of the code; --help prints them, and gaveld(8) has the same list. */
extern const struct exit_code exit_codes[];
extern const size_t exit_code_count;

#endif
