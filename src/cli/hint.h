/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A command line that a message advises: with the options that it needs to be
 * about the same group, store or cluster as the command that prints it. What
 * comes from the environment holds for the next command, too, and is left out.
 */
#ifndef CLI_HINT_H
#define CLI_HINT_H

#include "cli/cli.h"

#define HINT_MAX 640

struct hint {
    char text[HINT_MAX]; /* "gavel candidates --store /tmp/x.db --group jobs" */
};

/* `words` is what follows "gavel", such as "candidates". About the group of the configuration: */
struct hint hint_group(const struct cli *cli, const char *words);

/* About the store as a whole, or the nodes of the cluster: */
struct hint hint_all(const struct cli *cli, const char *words);

#endif
