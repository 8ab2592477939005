/* SPDX-License-Identifier: Apache-2.0 */

/* Time on the stage of the cluster. until.c has what a story can wait for, command.c what else it can say. */

#include "trace/cluster.h"

#include "trace/client.h"
#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 2000000

struct cluster *cluster_new(FILE *out)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);

    if (!cluster || node_actions_init(&cluster->actions) != GAVEL_OK)
        abort();
    cluster->out = cluster->loud = out;
    cluster->seed = 1;
    cluster->load_at = NEVER;
    raft_settings_default(&cluster->settings);
    cluster->settings.verify = certificate_verify;
    cluster->settings.sign = certificate_sign;
    for (size_t i = 0; i <= NODES_MAX; i++)
        for (size_t j = 0; j <= NODES_MAX; j++)
            cluster->links[i][j].delay = NETWORK_DELAY;
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    for (size_t i = 0; i <= NODES_MAX; i++)
        host_free(&cluster->hosts[i]);
    for (size_t which = 0; which < 2; which++) {
        struct history *history = &cluster->histories[which];

        for (size_t i = 0; i < history->agreed_count; i++)
            free(history->agreed[i].text);
        free(history->agreed);
        free(history->leaders);
    }
    packets_free(&cluster->in_flight);
    clients_free(cluster);
    node_actions_done(&cluster->actions);
    free(cluster->said.items);
    free(cluster);
}

/* A proposal to whoever works, as clients would send it; nobody is told. */
static void propose_load(struct cluster *cluster)
{
    uint8_t bytes[WORD_BYTES_MAX];
    const struct raft_entry entry = word_entry(++cluster->words, ".", bytes);

    cluster->load_at = cluster->now + cluster->load_every;
    for (raft_id id = 1; id <= NODES_MAX; id++) {
        struct host *host = &cluster->hosts[id];

        if (host->is_alive && host->is_working && !host->is_hung &&
            host_feed(cluster, host,
                      (struct raft_event){.kind = RAFT_PROPOSE,
                                          .propose = {.entries = &entry, .count = 1}}) == GAVEL_OK)
            cluster->load_count++;
    }
}

bool cluster_advance(struct cluster *cluster, gavel_ns end)
{
    struct packet *packet = network_next(cluster);
    struct host *next = NULL;
    const gavel_ns clients_at = clients_due_at(cluster);
    gavel_ns at = NEVER;

    for (raft_id id = 1; id <= NODES_MAX; id++) {
        gavel_ns due = host_due_at(cluster, &cluster->hosts[id]);

        if (due < at) {
            at = due;
            next = &cluster->hosts[id];
        }
    }
    if (packet && packet->at < at)
        at = packet->at;
    else
        packet = NULL;
    if (ns_min(ns_min(at, clients_at), cluster->load_at) > end)
        return false;
    cluster->now = ns_max(cluster->now, ns_min(ns_min(at, clients_at), cluster->load_at));
    if (cluster->load_at < ns_min(at, clients_at))
        propose_load(cluster);
    else if (clients_at < at)
        clients_do_due(cluster);
    else if (packet)
        network_deliver(cluster, packet);
    else
        host_do_due(cluster, next);
    return true;
}

static bool run_for(struct cluster *cluster, gavel_ns length)
{
    gavel_ns end = cluster->now + length;
    int steps = 0;

    while (cluster_advance(cluster, end)) {
        if (++steps > STEPS_MAX) {
            fprintf(cluster->loud, "ALARM: time stands still: a node is due again and again\n");
            return true;
        }
    }
    cluster->now = end;
    return true;
}

/* elect a: quietly, for stories that begin with a leader; everybody has heard of it in the end */
static bool elect(struct cluster *cluster, char **words, size_t count)
{
    char works[] = "works";
    char *until[] = {words[0], words[1], works};
    struct host *host = count == 2 ? command_node(cluster, words[1]) : NULL;
    char *told = NULL;
    size_t size = 0;

    if (!host)
        return false;
    cluster->out = open_memstream(&told, &size);
    (void)host_feed(cluster, host, (struct raft_event){.kind = RAFT_CAMPAIGN});
    (void)command_until(cluster, until, 3);
    (void)run_for(cluster, 2 * cluster->settings.heartbeat);
    fclose(cluster->out);
    free(told);
    cluster->out = cluster->loud;
    tell(cluster, host, "has been elected in term %llu, and works with token %llu/%llu",
         (unsigned long long)host->node.raft.state.term, (unsigned long long)host->work_term,
         (unsigned long long)host->work_epoch);
    return true;
}

void cluster_command(struct cluster *cluster, const char *command)
{
    char *words[WORDS_MAX];
    char *copy = strdup(command);
    size_t count = words_split(copy, words);
    bool is_understood = false;
    gavel_ns length;

    if (count == 2 && strcmp(words[0], "run") == 0)
        is_understood = words_take_duration(cluster->out, words[1], &length) && run_for(cluster, length);
    else if (count > 0 && strcmp(words[0], "until") == 0)
        is_understood = command_until(cluster, words, count);
    else if (count > 0 && strcmp(words[0], "works") == 0)
        is_understood = command_works(cluster, words, count);
    else if (count > 0 && strcmp(words[0], "elect") == 0)
        is_understood = elect(cluster, words, count);
    else if (count > 0)
        is_understood = command_run(cluster, words, count);
    if (!is_understood)
        fprintf(cluster->out, "cannot be understood:%s\n", command);
    free(copy);
}
