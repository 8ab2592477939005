/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of a story about links, what they hold back, and the guards' obituaries. */

#include "trace/command.h"
#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

/* "a->b" is one way; 0 if it is something else. */
static bool parse_arrow(struct cluster *cluster, const char *word, raft_id *ret_from, raft_id *ret_to)
{
    if (strlen(word) != 4 || word[1] != '-' || word[2] != '>')
        return false;
    *ret_from = (raft_id)(word[0] - 'a' + 1);
    *ret_to = (raft_id)(word[3] - 'a' + 1);
    return host_find(cluster, *ret_from) && host_find(cluster, *ret_to);
}

/* The kinds that a word names; all without one; 0 if there is no such kind. */
static unsigned parse_kind(char **words, size_t count, size_t which)
{
    if (which >= count)
        return ALL_KINDS;
    for (int kind = 0; kind < RAFT_MESSAGE_KIND_COUNT; kind++)
        if (strcmp(words[which], raft_message_name((enum raft_message_kind)kind)) == 0)
            return 1u << kind;
    return 0;
}

static void set_cut(struct cluster *cluster, raft_id from, raft_id to, unsigned kinds, bool is_cut)
{
    struct link *link = &cluster->links[from][to];

    if (is_cut)
        link->cut_kinds |= kinds;
    else
        link->cut_kinds &= ~kinds;
}

/* a; a b; a->b; a->b kind */
static bool cut_or_heal(struct cluster *cluster, char **words, size_t count, bool is_cut)
{
    raft_id from;
    raft_id to;

    if (count >= 2 && parse_arrow(cluster, words[1], &from, &to)) {
        unsigned kinds = parse_kind(words, count, 2);

        set_cut(cluster, from, to, kinds, is_cut);
        return kinds != 0;
    }
    if (count < 2 || count > 3 || !command_node(cluster, words[1]) ||
        (count == 3 && !command_node(cluster, words[2])))
        return false;
    from = command_node(cluster, words[1])->id;
    for (to = 1; to <= NODES_MAX; to++) {
        if (to == from || (count == 3 && to != command_node(cluster, words[2])->id))
            continue;
        set_cut(cluster, from, to, ALL_KINDS, is_cut);
        set_cut(cluster, to, from, ALL_KINDS, is_cut);
    }
    return true;
}

bool command_cut(struct cluster *cluster, char **words, size_t count)
{
    return cut_or_heal(cluster, words, count, true);
}

bool command_heal(struct cluster *cluster, char **words, size_t count)
{
    if (count > 1)
        return cut_or_heal(cluster, words, count, false);
    for (raft_id from = 1; from <= NODES_MAX; from++)
        for (raft_id to = 1; to <= NODES_MAX; to++)
            cluster->links[from][to].cut_kinds = 0;
    return true;
}

/* a b | c d e: whoever is on different sides hears nothing of each other */
bool command_partition(struct cluster *cluster, char **words, size_t count)
{
    int side[NODES_MAX + 1] = {0};
    int now = 1;

    for (size_t i = 1; i < count; i++) {
        struct host *host = command_node(cluster, words[i]);

        if (strcmp(words[i], "|") == 0)
            now++;
        else if (host)
            side[host->id] = now;
        else
            return false;
    }
    for (raft_id a = 1; a <= NODES_MAX; a++)
        for (raft_id b = 1; b <= NODES_MAX; b++)
            if (side[a] != side[b])
                set_cut(cluster, a, b, ALL_KINDS, true);
    return true;
}

bool command_hold(struct cluster *cluster, char **words, size_t count)
{
    raft_id from;
    raft_id to;
    unsigned kinds = parse_kind(words, count, 2);

    if (count < 2 || kinds == 0 || !parse_arrow(cluster, words[1], &from, &to))
        return false;
    cluster->links[from][to].held_kinds |= kinds;
    return true;
}

/* Holds nothing any more; what is held stays so until it is delivered. */
bool command_let(struct cluster *cluster, char **words, size_t count)
{
    raft_id from;
    raft_id to;

    if (count != 2 || !parse_arrow(cluster, words[1], &from, &to))
        return false;
    cluster->links[from][to].held_kinds = 0;
    return true;
}

static bool decide_held(struct cluster *cluster, char **words, size_t count, enum fate fate)
{
    raft_id from;
    raft_id to;
    size_t most = fate == REPEATED ? 1 : SIZE_MAX;

    if (count == 3)
        most = strtoull(words[2], NULL, 10);
    if (count < 2 || count > 3 || !parse_arrow(cluster, words[1], &from, &to))
        return false;
    if (network_release(cluster, from, to, most, fate) == 0)
        fprintf(cluster->out, "            nothing is held\n");
    return true;
}

bool command_deliver(struct cluster *cluster, char **words, size_t count)
{
    return decide_held(cluster, words, count, ARRIVES);
}

bool command_drop(struct cluster *cluster, char **words, size_t count)
{
    return decide_held(cluster, words, count, LOST);
}

/* Delivers a copy; the packet itself is still held, now behind the others. */
bool command_repeat(struct cluster *cluster, char **words, size_t count)
{
    return decide_held(cluster, words, count, REPEATED);
}

/* What is held says a later term than its sender did. */
bool command_raise(struct cluster *cluster, char **words, size_t count)
{
    raft_id from;
    raft_id to;

    if (count != 3 || !parse_arrow(cluster, words[1], &from, &to))
        return false;
    if (network_raise(cluster, from, to, strtoull(words[2], NULL, 10)) == 0)
        fprintf(cluster->out, "            nothing is held\n");
    return true;
}

/* a->b 20ms; a 20ms for all links of a */
bool command_delay(struct cluster *cluster, char **words, size_t count)
{
    raft_id from;
    raft_id to;

    if (count != 3)
        return false;
    if (parse_arrow(cluster, words[1], &from, &to)) {
        cluster->links[from][to].delay = words_duration(words[2]);
        return true;
    }
    if (!command_node(cluster, words[1]))
        return false;
    from = command_node(cluster, words[1])->id;
    for (to = 1; to <= NODES_MAX; to++)
        cluster->links[from][to].delay = cluster->links[to][from].delay = words_duration(words[2]);
    return true;
}

/* The link that a word names, both ways or one way; `act` is done for each. False if it names none. */
static bool each_link(struct cluster *cluster, const char *word,
                      void (*act)(struct link *link, uint64_t value), uint64_t value)
{
    const struct host *host = command_node(cluster, word);
    raft_id from;
    raft_id to;

    if (parse_arrow(cluster, word, &from, &to)) {
        act(&cluster->links[from][to], value);
        return true;
    }
    for (to = 1; host && to <= NODES_MAX; to++) {
        act(&cluster->links[host->id][to], value);
        act(&cluster->links[to][host->id], value);
    }
    return host || command_refuse(cluster, "\"%s\" is no link; a->b is one, and a is all of a", word);
}

static void set_jitter(struct link *link, uint64_t value) { link->jitter = (gavel_ns)value; }
static void set_bandwidth(struct link *link, uint64_t value) { link->bandwidth = value; }

/* jitter a->b 5ms: each message takes up to so much longer, at random; none overtakes another */
bool command_jitter(struct cluster *cluster, char **words, size_t count)
{
    gavel_ns jitter;

    return count == 3 && words_take_duration(cluster->out, words[2], &jitter) &&
           each_link(cluster, words[1], set_jitter, (uint64_t)jitter);
}

/* bandwidth a->b 100kB/s, bandwidth a->b off: what is large takes long, and what is behind it waits */
bool command_bandwidth(struct cluster *cluster, char **words, size_t count)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"B/s", 1}, {"kB/s", 1000}, {"MB/s", 1000000}};
    uint64_t number = 0;
    uint64_t bandwidth = 0;
    char *unit;

    if (count != 3)
        return false;
    if (words[2][0] >= '1' && words[2][0] <= '9') {
        number = strtoull(words[2], &unit, 10);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(unit, units[i].name) == 0 && number <= 1000000)
                bandwidth = number * units[i].bytes;
    }
    if (bandwidth == 0 && strcmp(words[2], "off") != 0)
        return command_refuse(cluster, "\"%s\" is no bandwidth; 500B/s, 100kB/s, 1MB/s and off are",
                              words[2]);
    return each_link(cluster, words[1], set_bandwidth, bandwidth);
}

/*
 * What the guard of a node tells everybody: that the incarnation which died last is dead. "old" tells of the
 * one before, "forged" has a wrong mac, "false" tells of one that lives.
 */
bool command_obituary(struct cluster *cluster, char **words, size_t count)
{
    struct host *host = count >= 2 ? command_node(cluster, words[1]) : NULL;
    bool is_old = count == 3 && strcmp(words[2], "old") == 0;
    bool is_forged = count == 3 && strcmp(words[2], "forged") == 0;
    bool is_false = count == 3 && strcmp(words[2], "false") == 0;
    struct raft_message message = {.kind = RAFT_MSG_CERTIFICATE, .cluster = 1, .generation = 1};

    if (!host || count > 3 || (count == 3 && !is_old && !is_forged && !is_false))
        return false;
    message.certificate = (struct raft_certificate){
        .kind = RAFT_CERT_OBITUARY,
        .node = host->id,
        .incarnation = host->disk.state.incarnation - (host->is_alive && !is_forged && !is_false) - is_old,
    };
    certificate_sign(NULL, &message.certificate);
    if (is_forged)
        message.certificate.mac[0] ^= 1;
    cluster->is_obituary_false = cluster->is_obituary_false || is_false;
    tell(cluster, host, "its guard sends%s obituary of incarnation %llu",
         is_forged ? " a forged" : (is_false ? " a false" : (is_old ? " an old" : " the")),
         (unsigned long long)message.certificate.incarnation);
    for (message.to = 1; message.to <= NODES_MAX; message.to++)
        if (message.to != host->id && host_find(cluster, message.to))
            network_send(cluster, host->id, &message);
    return true;
}
