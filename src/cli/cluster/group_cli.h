/* SPDX-License-Identifier: Apache-2.0 */

/* What the commands that look at a group of a cluster have in common. */
#ifndef CLI_CLUSTER_GROUP_CLI_H
#define CLI_CLUSTER_GROUP_CLI_H

#include "cli/cluster/send.h"

/*
 * The group with its candidates, from the leader of the cluster. If there is no
 * leader, it comes from one of the nodes, and stderr says so. A group that no
 * node knows is one that has never had a leader. The caller owns the object.
 */
GAVEL_CHECKED enum gavel_status group_fetch(const struct cli *cli, struct cluster_client *client,
                                            const char *name, json_t **ret_group, struct gavel_error *error);

/* A number from the command line, as large as a revision. ERR_INVALID names the flag. */
GAVEL_CHECKED enum gavel_status group_number(const struct cli *cli, const char *flag, uint64_t *ret_number,
                                             struct gavel_error *error);

#endif
