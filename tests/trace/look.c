/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story that change nothing: they show a node, or say what is told of from now on. */

#include "trace/client.h"
#include "trace/command.h"

#include <string.h>

bool command_elections(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    const struct raft_election *election;

    (void)words;
    for (size_t i = 0; (election = raft_election_at(&host->node.raft, i)); i++) {
        fprintf(cluster->out, "            %c  ", name_of(host->id));
        tell_election(cluster->out, election);
        fputc('\n', cluster->out);
    }
    return count == 2;
}

bool command_table(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)words;
    fprintf(cluster->out, "            %c  has applied: ", name_of(host->id));
    host_tell_words(host, cluster->out);
    fputc('\n', cluster->out);
    return count == 2;
}

bool command_show(struct cluster *cluster, char **words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (!command_node(cluster, words[i]))
            return false;
        tell_node(cluster, command_node(cluster, words[i]));
    }
    for (raft_id id = 1; count == 1 && id <= NODES_MAX; id++)
        if (cluster->hosts[id].is_made)
            tell_node(cluster, &cluster->hosts[id]);
    return true;
}

/* watch append | heartbeat | nothing: which messages are told besides those that always are */
bool command_watch(struct cluster *cluster, char **words, size_t count)
{
    const unsigned appends = 1u << RAFT_MSG_APPEND | 1u << RAFT_MSG_APPEND_REPLY;

    if (count > 1 && strcmp(words[1], "group") == 0)
        return command_watch_group(cluster, words, count);
    if (count != 2)
        return false;
    cluster->watches_heartbeats = strcmp(words[1], "heartbeat") == 0;
    cluster->watched_kinds = strcmp(words[1], "nothing") == 0 ? 0 : appends;
    return cluster->watches_heartbeats || cluster->watched_kinds == 0 || strcmp(words[1], "append") == 0;
}
