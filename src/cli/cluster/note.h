/* SPDX-License-Identifier: Apache-2.0 */

/* What the actions of `gavel note` get. */
#ifndef CLI_CLUSTER_NOTE_H
#define CLI_CLUSTER_NOTE_H

#include "cli/cluster/cluster_cli.h"

struct note {
    const struct cli *cli;
    struct cluster_client client;
    const char *group;
    const char *key;   /* NULL: all */
    const char *value; /* "-": from stdin */
};

/* note_watch.c: prints each change of the notes. Returns the exit code. */
int note_watch(struct note *note);

#endif
