/* SPDX-License-Identifier: Apache-2.0 */

/* What a story can wait for: a state of a node, somebody who works, or nobody. */

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 2000000
#define UNTIL_MAX (60 * NS_PER_S)

static bool works(const struct host *host)
{
    return host->is_alive && host->is_working && !host->is_hung && host->node.raft.work == RAFT_WORK_RUNNING;
}

static bool is_so(const struct host *host, char **words, size_t count)
{
    const struct raft *raft = &host->node.raft;

    if (!host->is_alive)
        return false;
    if (strcmp(words[2], "leads") == 0)
        return raft->role == RAFT_LEADER;
    if (strcmp(words[2], "works") == 0)
        return works(host);
    if (strcmp(words[2], "idle") == 0)
        return !host->is_working;
    if (strcmp(words[2], "follows") == 0 && count == 4)
        return raft->leader == (raft_id)(words[3][0] - 'a' + 1) && raft->role <= RAFT_FOLLOWER;
    if (strcmp(words[2], "applied") == 0 && count == 4)
        return host->applied >= strtoull(words[3], NULL, 10);
    return strcmp(words[2], raft_role_name(raft->role)) == 0;
}

/* Whether is_so() can tell; says so if not. */
static bool is_state(struct cluster *cluster, char **words, size_t count)
{
    static const char *const states[] = {"leads", "works", "idle"};
    const char *word = words[2];

    if (count == 4 && strcmp(word, "follows") == 0)
        return command_node(cluster, words[3]) != NULL;
    if (count == 4 && strcmp(word, "applied") == 0)
        return words[3][0] != '\0' && words[3][strspn(words[3], "0123456789")] == '\0';
    for (size_t i = 0; count == 3 && i < sizeof states / sizeof *states; i++)
        if (strcmp(word, states[i]) == 0)
            return true;
    for (unsigned role = 0; count == 3 && role < RAFT_ROLE_COUNT; role++)
        if (strcmp(word, raft_role_name((enum raft_role)role)) == 0)
            return true;
    fprintf(cluster->out, "\"%s\" is no state of a node to wait for\n", word);
    return false;
}

/* No work is left anywhere, not even that of a node which hangs or has begun to stop. */
static bool until_nobody_works(struct cluster *cluster)
{
    const gavel_ns end = cluster->now + UNTIL_MAX;

    for (int steps = 0;; steps++) {
        bool is_somebody = false;

        for (raft_id id = 1; id <= NODES_MAX; id++)
            is_somebody = is_somebody || (cluster->hosts[id].is_alive && cluster->hosts[id].is_working);
        if (!is_somebody)
            return true;
        if (!cluster_advance(cluster, end) || steps > STEPS_MAX) {
            fprintf(cluster->loud, "ALARM: somebody still works after a minute\n");
            return true;
        }
    }
}

/* until a works, one works, nobody works, a follows b, a applied 7, a candidate */
bool command_until(struct cluster *cluster, char **words, size_t count)
{
    const gavel_ns end = cluster->now + UNTIL_MAX;
    struct host *one = count >= 3 ? command_node(cluster, words[1]) : NULL;

    if (count == 3 && strcmp(words[1], "nobody") == 0 && strcmp(words[2], "works") == 0)
        return until_nobody_works(cluster);
    if (count < 3 || (!one && strcmp(words[1], "one") != 0) || !is_state(cluster, words, count))
        return false;
    for (int steps = 0;; steps++) {
        for (raft_id id = 1; id <= NODES_MAX; id++)
            if ((!one || one == &cluster->hosts[id]) && cluster->hosts[id].is_made &&
                is_so(&cluster->hosts[id], words, count))
                return true;
        if (!cluster_advance(cluster, end) || steps > STEPS_MAX) {
            fprintf(cluster->loud, "ALARM: it did not come to that within a minute\n");
            return true;
        }
    }
}

/* Why nobody works, as far as a look at each node tells. */
static void tell_idle(const struct cluster *cluster)
{
    const char *comma = ": ";

    for (raft_id id = 1; id <= NODES_MAX; id++) {
        const struct host *host = &cluster->hosts[id];
        const struct raft *raft = &host->node.raft;

        if (!host->is_made)
            continue;
        fprintf(cluster->loud, "%s%c ", comma, name_of(id));
        comma = ", ";
        if (!host->is_alive)
            fprintf(cluster->loud, "is down");
        else if (host->is_hung)
            fprintf(cluster->loud, "hangs");
        else if (works(host))
            fprintf(cluster->loud, "works");
        else if (raft->role == RAFT_LEADER)
            fprintf(cluster->loud, "leads in term %llu without a lease",
                    (unsigned long long)raft->state.term);
        else
            fprintf(cluster->loud, "is %s in term %llu", raft_role_name(raft->role),
                    (unsigned long long)raft->state.term);
    }
    fputc('\n', cluster->loud);
}

/* works within 2s [a b …]: somebody, or one of these, works before that much time has passed, or the story
 * fails */
bool command_works(struct cluster *cluster, char **words, size_t count)
{
    const gavel_ns from = cluster->now;
    bool is_meant[NODES_MAX + 1] = {false};
    gavel_ns within;

    if (count < 3 || strcmp(words[1], "within") != 0 || !words_take_duration(cluster->out, words[2], &within))
        return false;
    for (raft_id id = 1; id <= NODES_MAX; id++)
        is_meant[id] = count == 3;
    for (size_t i = 3; i < count; i++) {
        const struct host *host = command_node(cluster, words[i]);

        if (!host)
            return command_refuse(cluster, "there is no node \"%s\"", words[i]);
        is_meant[host->id] = true;
    }
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        for (raft_id id = 1; id <= NODES_MAX; id++) {
            if (is_meant[id] && works(&cluster->hosts[id])) {
                tell(cluster, &cluster->hosts[id], "works, after %.1f ms",
                     (double)(cluster->now - from) / (double)NS_PER_MS);
                return true;
            }
        }
        if (!cluster_advance(cluster, from + within))
            break;
    }
    cluster->now = ns_max(cluster->now, from + within);
    fprintf(cluster->loud, "ALARM: nobody%s works within %s", count > 3 ? " of these" : "", words[2]);
    tell_idle(cluster);
    return true;
}
