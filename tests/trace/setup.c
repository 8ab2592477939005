/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story that make nodes: whom there is, with which settings, and what is on their disks. */

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

/* The nodes' clocks are hours apart. */
#define CLOCKS_APART (3600 * NS_PER_S)

/* One key=value of the cluster; false if there is no such key. */
static bool set(struct cluster *cluster, const char *key, const char *value)
{
    if (settings_take(&cluster->settings, key, value))
        return true;
    if (strcmp(key, "directories") == 0)
        cluster->has_directories = cluster->binds = strcmp(value, "yes") == 0;
    else if (strcmp(key, "upgraded") ==
             0) /* from 0.6.0: with directories that the members are not bound to */
        cluster->has_directories = strcmp(value, "yes") == 0;
    else if (strcmp(key, "names") == 0)
        cluster->has_names = strcmp(value, "yes") == 0;
    else if (strcmp(key, "seed") == 0)
        cluster->seed = strtoull(value, NULL, 10);
    else
        return false;
    return true;
}

static struct raft_member *member_of(struct raft_config *config, const char *word)
{
    for (size_t i = 0; i < config->count; i++)
        if (word[1] == '\0' && config->members[i].id == (raft_id)(word[0] - 'a' + 1))
            return &config->members[i];
    return NULL;
}

static bool set_member(struct cluster *cluster, const char *key, const char *value)
{
    struct raft_member *member;

    if (strcmp(key, "witness") == 0 && (member = member_of(&cluster->config, value)))
        member->is_witness = true;
    else if (strcmp(key, "learner") == 0 && (member = member_of(&cluster->config, value)))
        member->is_voter = false;
    else if ((member = member_of(&cluster->config, key)))
        member->priority = (uint8_t)atoi(value);
    else
        return false;
    return true;
}

static struct host *make(struct cluster *cluster, const char *word, const struct raft_config *config)
{
    raft_id id = (raft_id)(word[0] - 'a' + 1);
    struct host *host;

    if (word[1] != '\0' || id < 1 || id > NODES_MAX || cluster->hosts[id].is_made)
        return NULL;
    host = &cluster->hosts[id];
    host->id = id;
    host->is_made = true;
    host->clock_from = cluster->now;
    host->clock_base = (gavel_ns)id * CLOCKS_APART;
    host->settings = cluster->settings;
    host->stop_takes = NS_PER_MS;
    host->stopped_at = NEVER;
    disk_make(&host->disk, config, id);
    host->disk.state.directory = cluster->has_directories ? ++cluster->directories : 0;
    return host;
}

/* nodes a b c key=value … [priority a=2 …] [stopped] */
bool command_nodes(struct cluster *cluster, char **words, size_t count)
{
    struct gavel_error error;
    bool is_stopped = false;
    size_t i = 1;

    for (; i < count && words[i][1] == '\0'; i++)
        cluster->config.members[cluster->config.count++] =
            (struct raft_member){.id = (raft_id)(words[i][0] - 'a' + 1), .is_voter = true};
    for (; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (value) {
            *value = '\0';
            if (!set(cluster, words[i], value + 1) && !set_member(cluster, words[i], value + 1))
                return command_refuse(cluster, "\"%s=%s\" is no setting", words[i], value + 1);
        } else if (strcmp(words[i], "stopped") == 0) {
            is_stopped = true;
        } else if (strcmp(words[i], "priority") != 0) {
            return false;
        }
    }
    if (raft_settings_check(&cluster->settings, &error) != GAVEL_OK) {
        fprintf(cluster->out, "refused: %s\n", error.message);
        return true;
    }
    cluster->config.binds = cluster->binds;
    prng_seed(&cluster->jitter, cluster->seed);
    for (i = 0; i < cluster->config.count; i++) {
        const char name[] = {name_of(cluster->config.members[i].id), '\0'};
        struct host *host = make(cluster, name, &cluster->config);

        if (!host)
            return false;
        if (!is_stopped)
            host_start(cluster, host);
    }
    return true;
}

static void give_entry(struct disk *disk, raft_term term)
{
    struct raft_entry *entry;
    char text[24];
    uint8_t *bytes = malloc(WORD_BYTES_MAX);

    disk->entries = reallocarray(disk->entries, disk->entry_count + 1, sizeof *disk->entries);
    entry = &disk->entries[disk->entry_count++];
    (void)snprintf(text, sizeof text, "e%zu", disk->entry_count);
    if (!bytes)
        abort();
    *entry = word_entry(GIVEN_WORDS + disk->entry_count, text, bytes);
    entry->term = term;
}

/* The terms of the entries in order: 1,1,2 or 1*2,2 */
static void give_log(struct disk *disk, char *terms)
{
    char *word;

    while ((word = strsep(&terms, ","))) {
        char *star = strchr(word, '*');

        for (long times = star ? atol(star + 1) : 1; times > 0; times--)
            give_entry(disk, strtoull(word, NULL, 10));
    }
}

/* What stands on the disk of a node that has not started yet, by words like term=3. */
static bool give(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (!value)
            return command_refuse(cluster, "\"%s\" is nothing on a disk; term=3 and log=1*3,2 are", words[i]);
        *value++ = '\0';
        if (strcmp(words[i], "term") == 0)
            host->disk.state.term = strtoull(value, NULL, 10);
        else if (strcmp(words[i], "vote") == 0)
            host->disk.state.vote = (raft_id)(value[0] - 'a' + 1);
        else if (strcmp(words[i], "commit") == 0)
            host->disk.state.commit = strtoull(value, NULL, 10);
        else if (strcmp(words[i], "log") == 0)
            give_log(&host->disk, value);
        else if (strcmp(words[i], "directory") == 0)
            host->disk.state.directory = strtoull(value, NULL, 10);
        else
            return command_refuse(
                cluster, "\"%s\" is nothing on a disk; term, vote, commit, log and directory are", words[i]);
    }
    return true;
}

/* join d e, join d term=3 log=1*3,2 directory=7: new nodes that no configuration names yet, maybe with
 * something on the disk of the last */
bool command_join(struct cluster *cluster, char **words, size_t count)
{
    struct host *hosts[NODES_MAX] = {NULL};
    size_t made = 0;

    for (; made + 1 < count && made < NODES_MAX && !strchr(words[made + 1], '='); made++) {
        hosts[made] = make(cluster, words[made + 1], NULL);
        if (!hosts[made])
            return command_refuse(cluster, "\"%s\" is no node that can join; a to %c are, each once",
                                  words[made + 1], 'a' + NODES_MAX - 1);
    }
    if (made == 0)
        return command_refuse(cluster, "who joins? join d");
    if (!give(cluster, hosts[made - 1], words + made + 1, count - made - 1))
        return false;
    for (size_t i = 0; i < made; i++)
        host_start(cluster, hosts[i]);
    return true;
}

/* given a term=3 vote=b commit=2 log=1*3,2 : what is on the disk of a node that has not started yet */
bool command_given(struct cluster *cluster, char **words, size_t count)
{
    struct host *host = count > 1 ? command_node(cluster, words[1]) : NULL;

    return host && !host->is_alive && give(cluster, host, words + 2, count - 2);
}
