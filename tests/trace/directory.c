/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story about the data of a node: lost, copied, put back. The node is down meanwhile. */

#include "trace/command.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *copy_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = size > 0 ? malloc(size) : NULL;

    if (copy)
        memcpy(copy, bytes, size);
    return copy;
}

/* Only what is durable. */
static void copy_disk(struct disk *to, const struct disk *from)
{
    if (to->is_made)
        disk_free(to);
    *to = (struct disk){.is_made = true,
                        .takes = from->takes,
                        .state = from->state,
                        .snapshot = from->snapshot,
                        .entry_count = from->entry_count};
    to->snapshot.data = copy_bytes(from->snapshot.data, from->snapshot.size);
    to->entries = calloc(from->entry_count + 1, sizeof *to->entries);
    for (size_t i = 0; i < from->entry_count; i++) {
        to->entries[i] = from->entries[i];
        to->entries[i].data = copy_bytes(from->entries[i].data, from->entries[i].size);
    }
}

static void empty(struct cluster *cluster, struct host *host, bool joins)
{
    disk_free(&host->disk);
    host->disk = (struct disk){0};
    disk_make(&host->disk, joins ? NULL : &cluster->config, host->id);
    host->disk.state.directory = cluster->has_directories ? ++cluster->directories : 0;
}

/* lose c [joins]: its directory is gone; an empty one is made, with the first members or without any */
bool command_lose(struct cluster *cluster, char **words, size_t count)
{
    struct host *host = count > 1 ? command_node(cluster, words[1]) : NULL;
    bool joins = count == 3 && strcmp(words[2], "joins") == 0;

    if (!host || host->is_alive || (count == 3 && !joins) || count > 3)
        return false;
    empty(cluster, host, joins);
    return true;
}

/* refound a c …: likewise, and what they do from now on is another cluster, which the referee judges apart */
bool command_refound(struct cluster *cluster, char **words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct host *host = command_node(cluster, words[i]);

        if (!host || host->is_alive)
            return false;
        empty(cluster, host, false);
        host->is_refounded = true;
        host->has_applied = false;
    }
    return count > 1;
}

/* copy c: also of a node that runs */
bool command_copy(struct cluster *cluster, char **words, size_t count)
{
    struct host *host = count == 2 ? command_node(cluster, words[1]) : NULL;

    if (host)
        copy_disk(&host->copy, &host->disk);
    return host;
}

bool command_restore(struct cluster *cluster, char **words, size_t count)
{
    struct host *host = count == 2 ? command_node(cluster, words[1]) : NULL;

    if (!host || host->is_alive || !host->copy.is_made)
        return false;
    copy_disk(&host->disk, &host->copy);
    return true;
}
