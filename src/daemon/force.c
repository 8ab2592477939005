/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/force.h"

#include "daemon/exit_codes.h"
#include "disk/disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void explain(const struct daemon_config *config)
{
    (void)fprintf(
        stderr,
        "This makes the data of node %s in %s a new cluster of one, one generation later.\n"
        "\n"
        "  * What only the lost nodes had is gone, even if it was committed.\n"
        "  * Nodes of the old generation that still run may still have a leader: stop them all first,\n"
        "    or two clusters of the name %s run at once.\n"
        "  * They can never come back as they are: wipe their data directories and join them again.\n"
        "\n"
        "It is for a majority that is lost for good. If enough nodes can come back, start those.\n",
        config->node, config->data, config->cluster);
}

static bool ask(const struct daemon_config *config)
{
    char answer[PEER_NAME_MAX + 3] = "";

    if (config->is_confirmed)
        return true;
    if (!isatty(STDIN_FILENO)) {
        (void)fputs(
            "gaveld: there is no terminal to ask on; nothing was changed. Add --yes if you are sure.\n",
            stderr);
        return false;
    }
    (void)fprintf(stderr, "\nType the name of the cluster to go on: ");
    if (!fgets(answer, sizeof answer, stdin))
        answer[0] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    if (strcmp(answer, config->cluster) == 0)
        return true;
    (void)fputs("gaveld: that is not its name; nothing was changed\n", stderr);
    return false;
}

static enum gavel_status force(const struct daemon_config *config, uint64_t *ret_generation,
                               struct gavel_error *error)
{
    struct disk_options options = {.data_dir = config->data, .bytes_max = config->data_bytes_max};
    struct disk *disk = NULL;
    enum gavel_status status;
    bool is_new = false;

    (void)snprintf(options.identity.cluster_name, sizeof options.identity.cluster_name, "%s",
                   config->cluster);
    (void)snprintf(options.identity.node_name, sizeof options.identity.node_name, "%s",
                   config->node); /* names are shorter than that */
    options.identity.cluster = config->cluster_id;
    options.identity.node = config->id;
    options.accepts_copy = true; /* what comes of it is a new directory in any case */
    if (access(config->data, F_OK) != 0) {
        error->status = GAVEL_ERR_NOT_FOUND;
        (void)snprintf(error->message, sizeof error->message, "there is no directory %.300s", config->data);
        return error->status;
    }
    status = disk_open(&options, &disk, &is_new, error);
    if (status == GAVEL_OK && is_new) {
        error->status = GAVEL_ERR_NOT_FOUND;
        (void)snprintf(
            error->message, sizeof error->message,
            "the directory %.300s is empty; there is no data for a new cluster (--bootstrap founds an empty one)",
            config->data);
        status = error->status;
    }
    if (status == GAVEL_OK)
        status = disk_force_new_cluster(disk, ret_generation, error);
    disk_close(disk);
    return status;
}

int force_new_cluster(const struct daemon_config *config)
{
    struct gavel_error error = {0};
    uint64_t generation = 0;

    explain(config);
    if (!ask(config))
        return DAEMON_EXIT_FAILURE;
    if (force(config, &generation, &error) != GAVEL_OK) {
        (void)fprintf(stderr, "gaveld: %s\n", error.message);
        return DAEMON_EXIT_FAILURE;
    }
    (void)printf("%s is a cluster of one now, in generation %" PRIu64 "; its only member is %s.\n"
                 "Next:\n"
                 "  1. start it:            gaveld --config %s\n"
                 "  2. on each other node:  move its data directory away and start it with --join\n"
                 "  3. add each of them:    gavel member add NAME ADDRESS\n",
                 config->cluster, generation, config->node, config->file[0] ? config->file : "FILE");
    return 0;
}
