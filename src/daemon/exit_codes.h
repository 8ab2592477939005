/* SPDX-License-Identifier: Apache-2.0 */

/* With which code gaveld ends, and what it means. The codes of the node process are in node.h. */
#ifndef DAEMON_EXIT_CODES_H
#define DAEMON_EXIT_CODES_H

#include <stddef.h>

#define DAEMON_EXIT_USAGE 2   /* the command line or the configuration, before anything was started */
#define DAEMON_EXIT_FAILURE 1 /* what --force-new-cluster was to do was not done */

struct exit_code {
    int code;
    const char *text;
};

/* In order of the code; --help prints them, and gaveld(8) has the same list. */
extern const struct exit_code exit_codes[];
extern const size_t exit_code_count;

#endif
