/* SPDX-License-Identifier: Apache-2.0 */

/* The command line of gaveld, and its --help. */
#ifndef DAEMON_CONFIG_FLAGS_H
#define DAEMON_CONFIG_FLAGS_H

#include "daemon/config/read.h"

enum flags_mode { FLAGS_RUN, FLAGS_CHECK, FLAGS_FORCE, FLAGS_HELP, FLAGS_VERSION };

struct flags {
    enum flags_mode mode;
    bool has_no_guard;
    struct config_input input; /* borrows from argv and environment */
};

/* ERR_INVALID, with what was not understood and perhaps a suggestion. */
GAVEL_CHECKED enum gavel_status flags_read(int argc, char **argv, char *const *environment,
                                           struct flags *ret_flags, struct gavel_error *error);

void flags_print_help(FILE *out);

#endif
