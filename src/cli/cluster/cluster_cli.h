/* SPDX-License-Identifier: Apache-2.0 */

/* What the commands that talk to a cluster have in common. */
#ifndef CLI_CLUSTER_CLUSTER_CLI_H
#define CLI_CLUSTER_CLUSTER_CLI_H

#include "cli/cli.h"
#include "cli/cluster/view.h"

#include <stdio.h>

/*
 * Makes the client that the options ask for. ERR_INVALID if no cluster is
 * named. The caller calls cluster_client_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status cluster_open(const struct cli *cli, struct cluster_client *ret_client,
                                             struct gavel_error *error);

/*
 * The URL to ask first: the leader's, or that of any node that answers. False,
 * with the reason in *error, if none does.
 */
bool cluster_choose(struct cluster_client *client, gavel_ms limit_ms, char ret_url[static CLUSTER_URL_MAX],
                    struct gavel_error *error);

/* "cluster demo: n2 leads in term 4, lease 120 ms; 3 of 3 healthy". Returns buffer. */
const char *cluster_headline(const struct cluster_view *view, char *buffer, size_t size);

/* The headline, the table and what is wrong; `room` as in struct table. */
void cluster_print(const struct cli *cli, const struct cluster_view *view, FILE *file, size_t room);

/* The same as JSON. The caller owns the object. */
json_t *cluster_json(const struct cluster_view *view);

/* The exit code for what is wrong: 10 split brain, 3 no leader, 1 anything else that is unhealthy. */
int cluster_exit_code(const struct cluster_view *view);

/*
 * Asks the leader for a change and waits for its answer, which is handed over
 * in *ret_call. Retries until the time is over, but only where the change has
 * certainly not begun: at a node that does not lead, or that cannot be reached.
 * The status is that of the call; *error holds what the nodes said.
 */
GAVEL_CHECKED enum gavel_status cluster_ask_leader(struct cluster_client *client, const char *path,
                                                   const json_t *body, gavel_ms timeout_ms,
                                                   struct cluster_call *ret_call, struct gavel_error *error);

/* The cluster variant of commands that otherwise look at a store. */
int cluster_status(const struct cli *cli);
int cluster_leader(const struct cli *cli);
int cluster_check(const struct cli *cli);
int cluster_watch(const struct cli *cli);

/* The same for one group of the cluster, that of --group. */
int group_status(const struct cli *cli);
int group_leader(const struct cli *cli);
int group_candidates(const struct cli *cli);
int group_watch(const struct cli *cli);

/*
 * How the hand-over of a cluster's group is printed: as on any store, or as by
 * the older `gavel transfer --group`.
 */
enum handover_form { HANDOVER, HANDOVER_TRANSFER };

/* `to` may be NULL: to the next in line. */
int group_handover(const struct cli *cli, const char *to, enum handover_form form);

/* The same for the nodes. */
int cluster_handover(const struct cli *cli, const char *to);

#endif
