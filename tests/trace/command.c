/* SPDX-License-Identifier: Apache-2.0 */

/* The table of a story's commands, and those about single nodes. */

#include "trace/command.h"

#include "trace/client.h"
#include "trace/words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct host *command_node(struct cluster *cluster, const char *word)
{
    return word[0] >= 'a' && word[1] == '\0' ? host_find(cluster, (raft_id)(word[0] - 'a' + 1)) : NULL;
}

bool command_refuse(struct cluster *cluster, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(cluster->out, format, arguments);
    va_end(arguments);
    fputc('\n', cluster->out);
    return false;
}

/* Feeds an event that someone asked for, and tells if it was refused. */
static bool ask(struct cluster *cluster, struct host *host, struct raft_event event)
{
    enum gavel_status status;

    if (!host->is_alive || host->is_hung) {
        tell(cluster, host, "does not answer");
        return true;
    }
    status = host_feed(cluster, host, event);
    if (status != GAVEL_OK)
        tell(cluster, host, "refuses that: %s", gavel_status_name(status));
    return true;
}

static bool crash(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    bool is_kept = count == 3 && strcmp(words[2], "kept") == 0;

    if (!host->is_alive || (count == 3 && !is_kept))
        return false;
    host_crash(cluster, host, is_kept);
    return true;
}

/* restart a b c: also for the first start of nodes that were `stopped` */
static bool restart(struct cluster *cluster, char **words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct host *host = command_node(cluster, words[i]);

        if (!host || host->is_alive)
            return false;
        host_start(cluster, host);
        if (host->disk.state.incarnation > 1)
            tell(cluster, host, "starts, incarnation %llu", (unsigned long long)host->disk.state.incarnation);
    }
    return count > 1;
}

static bool hang(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)cluster;
    (void)count;
    host->is_hung = strcmp(words[0], "hang") == 0;
    return host->is_alive;
}

static bool campaign(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)words;
    return count == 2 && ask(cluster, host, (struct raft_event){.kind = RAFT_CAMPAIGN});
}

static bool tick(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)words;
    return count == 2 && ask(cluster, host, (struct raft_event){.kind = RAFT_TIMER});
}

static bool step_down(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)words;
    return count == 2 && ask(cluster, host, (struct raft_event){.kind = RAFT_STEP_DOWN});
}

static bool take_over(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    (void)words;
    return count == 2 && ask(cluster, host, (struct raft_event){.kind = RAFT_TAKE_OVER});
}

/* transfer a [to b [forced]] */
static bool transfer(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct host *target = count >= 4 ? command_node(cluster, words[3]) : NULL;
    bool is_forced = count == 5 && strcmp(words[4], "forced") == 0;

    if (count > 2 && (!target || strcmp(words[2], "to") != 0 || (count == 5 && !is_forced)))
        return false;
    return ask(cluster, host,
               (struct raft_event){.kind = RAFT_TRANSFER,
                                   .transfer = {.target = target ? target->id : 0, .is_forced = is_forced}});
}

/* propose a x [20 times] */
static bool propose(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct raft_event event = {.kind = RAFT_PROPOSE};
    struct raft_entry *entries;
    uint8_t(*bytes)[WORD_BYTES_MAX];
    long times = count == 5 && strcmp(words[4], "times") == 0 ? atol(words[3]) : 1;

    if (count < 3 || count == 4 || times < 1)
        return false;
    entries = calloc((size_t)times, sizeof *entries);
    bytes = calloc((size_t)times, sizeof *bytes);
    for (long i = 0; i < times; i++)
        entries[i] = word_entry(++cluster->words, words[2], bytes[i]);
    event.propose.entries = entries;
    event.propose.count = (uint32_t)times;
    (void)ask(cluster, host, event);
    free(bytes);
    free(entries);
    return true;
}

static struct raft_member *member_add(struct raft_config *config, raft_id id)
{
    for (size_t i = 0; i < config->count; i++)
        if (config->members[i].id == id)
            return &config->members[i];
    if (config->count == RAFT_MEMBERS_MAX)
        return NULL;
    config->members[config->count] = (struct raft_member){.id = id};
    return &config->members[config->count++];
}

static void member_drop(struct raft_config *config, raft_id id)
{
    for (size_t i = 0; i < config->count; i++) {
        if (config->members[i].id == id) {
            config->count--;
            memmove(config->members + i, config->members + i + 1,
                    (config->count - i) * sizeof *config->members);
        }
    }
}

/* The node that one word of `members` is about, as a letter; NULL if it is no such word. */
static const char *member_name(struct cluster *cluster, const char *word)
{
    static const char *const signs[] = {"+", "-", "witness:", "learner:"};

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *name = word + strlen(signs[i]);

        if (strncmp(word, signs[i], strlen(signs[i])) != 0)
            continue;
        if (name[0] >= 'a' && name[0] < 'a' + NODES_MAX && name[1] == '\0')
            return name;
        fprintf(cluster->out, "\"%s\" is no node; a to %c are\n", name, 'a' + NODES_MAX - 1);
    }
    return NULL;
}

/* members a +d -b witness:c learner:e : what shall be, by what it knows now */
static bool members(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct raft_config config = host->node.raft.config;

    if (host->node.raft.config.is_joint)
        raft_config_leave(&host->node.raft.config, &config);
    for (size_t i = 2; i < count; i++) {
        const char *name = member_name(cluster, words[i]);
        raft_id id = name ? (raft_id)(name[0] - 'a' + 1) : 0;
        struct raft_member *member;

        if (!name)
            return false;
        if (words[i][0] == '-') {
            member_drop(&config, id);
            continue;
        }
        member = member_add(&config, id);
        if (!member)
            return false;
        member->is_voter = words[i][0] != 'l';
        member->is_witness = words[i][0] == 'w';
    }
    raft_config_sort(&config);
    return ask(cluster, host, (struct raft_event){.kind = RAFT_CHANGE, .change = &config});
}

static bool compact(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct raft_event event = {.kind = RAFT_COMPACT, .compact.index = host->applied};
    uint8_t *bytes;
    bool is_taken;

    (void)words;
    if (count != 2 || table_snapshot_encode(&host->table, &bytes, &event.compact.size) != GAVEL_OK)
        return false;
    event.compact.data = bytes;
    is_taken = ask(cluster, host, event);
    free(bytes);
    return is_taken;
}

/* link-lost b a: b learns that its connection to a is closed */
static bool link_lost(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    struct host *peer = count == 3 ? command_node(cluster, words[2]) : NULL;

    return peer && ask(cluster, host, (struct raft_event){.kind = RAFT_LINK_LOST, .peer = peer->id});
}

/* act a: the work of a writes to a resource that refuses tokens lower than the highest it has seen */
static bool act(struct cluster *cluster, struct host *host, char **words, size_t count)
{
    raft_term term = host->work_term;
    uint64_t epoch = host->work_epoch;
    bool is_late;

    if (count > 3 || (count == 3 && strcmp(words[2], "late") != 0))
        return false;
    is_late = count == 3; /* it looked at the clock, and was stopped between that and the write */
    if (!host->is_alive || (!is_late && !raft_is_working(&host->node.raft, host_clock(cluster, host)))) {
        tell(cluster, host, "does not act: it may not work now");
        return true;
    }
    if (term < cluster->token_term || (term == cluster->token_term && epoch < cluster->token_epoch)) {
        tell(cluster, host, "acts with token %llu/%llu: the resource has seen %llu/%llu and refuses",
             (unsigned long long)term, (unsigned long long)epoch, (unsigned long long)cluster->token_term,
             (unsigned long long)cluster->token_epoch);
        return true;
    }
    cluster->token_term = term;
    cluster->token_epoch = epoch;
    tell(cluster, host, "acts with token %llu/%llu", (unsigned long long)term, (unsigned long long)epoch);
    return true;
}

/* load every 10ms | load off: proposals to whoever works, too many to tell of each */
static bool load(struct cluster *cluster, char **words, size_t count)
{
    if (count == 3 && strcmp(words[1], "every") == 0) {
        if (!words_take_duration(cluster->out, words[2], &cluster->load_every))
            return false;
        cluster->load_at = cluster->now;
        cluster->load_count = 0;
        return cluster->load_every > 0;
    }
    cluster->load_at = NEVER;
    fprintf(cluster->out, "            %llu proposals were taken\n", (unsigned long long)cluster->load_count);
    return count == 2 && strcmp(words[1], "off") == 0;
}

static const struct {
    const char *word;
    bool (*run)(struct cluster *cluster, char **words, size_t count);
    bool (*run_node)(struct cluster *cluster, struct host *host, char **words, size_t count);
} commands[] = {
    {"nodes", command_nodes, NULL},
    {"join", command_join, NULL},
    {"lose", command_lose, NULL},
    {"refound", command_refound, NULL},
    {"copy", command_copy, NULL},
    {"restore", command_restore, NULL},
    {"given", command_given, NULL},
    {"cut", command_cut, NULL},
    {"heal", command_heal, NULL},
    {"partition", command_partition, NULL},
    {"hold", command_hold, NULL},
    {"let", command_let, NULL},
    {"deliver", command_deliver, NULL},
    {"drop", command_drop, NULL},
    {"repeat", command_repeat, NULL},
    {"raise", command_raise, NULL},
    {"delay", command_delay, NULL},
    {"jitter", command_jitter, NULL},
    {"bandwidth", command_bandwidth, NULL},
    {"obituary", command_obituary, NULL},
    {"show", command_show, NULL},
    {"watch", command_watch, NULL},
    {"load", load, NULL},
    {"session", command_session, NULL},
    {"alive", command_alive, NULL},
    {"candidate", command_candidate, NULL},
    {"resign", command_resign, NULL},
    {"note", command_note, NULL},
    {"close", command_close, NULL},
    {"leader", command_leader, NULL},
    {"crash", NULL, crash},
    {"restart", restart, NULL},
    {"hang", NULL, hang},
    {"resume", NULL, hang},
    {"tick", NULL, tick},
    {"campaign", NULL, campaign},
    {"transfer", NULL, transfer},
    {"take-over", NULL, take_over},
    {"step-down", NULL, step_down},
    {"propose", NULL, propose},
    {"members", NULL, members},
    {"order", NULL, command_order},
    {"compact", NULL, compact},
    {"link-lost", NULL, link_lost},
    {"slow-disk", NULL, command_slow_disk},
    {"disk-fails", NULL, command_disk_fails},
    {"disk", NULL, command_disk},
    {"work-slow", NULL, command_work_slow},
    {"clock", NULL, command_clock},
    {"set", NULL, command_set},
    {"progress", NULL, command_progress},
    {"act", NULL, act},
    {"elections", NULL, command_elections},
    {"table", NULL, command_table},
};

bool command_run(struct cluster *cluster, char **words, size_t count)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct host *host;

        if (strcmp(words[0], commands[i].word) != 0)
            continue;
        if (commands[i].run)
            return commands[i].run(cluster, words, count);
        host = count > 1 ? command_node(cluster, words[1]) : NULL;
        return host && commands[i].run_node(cluster, host, words, count);
    }
    return false;
}
