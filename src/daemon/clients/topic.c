/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who watches what: topics in a tree, and interests in each. A change finds the
 * watches of its group in one step, however many watch others, and a connection
 * finds its own among them.
 *
 * The tree is ordered by hash and then by name: the search is quick, and names that
 * were chosen to have the same hash do not slow it down.
 */
#include "daemon/clients/internal.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* What a topic is found by. */
struct key {
    enum clients_topic_kind kind;
    uint64_t hash;
    const char *name;
    size_t length;
};

static int compare_key(const struct key *key, const struct clients_topic *topic)
{
    if (key->hash != topic->hash)
        return key->hash < topic->hash ? -1 : 1;
    if (key->kind != topic->kind)
        return key->kind < topic->kind ? -1 : 1;
    if (key->length != topic->length)
        return key->length < topic->length ? -1 : 1;
    return memcmp(key->name, topic->name, key->length);
}

static int compare_topics(const struct clients_topic *a, const struct clients_topic *b)
{
    const struct key key = {.kind = a->kind, .hash = a->hash, .name = a->name, .length = a->length};

    return compare_key(&key, b);
}

static int compare_interests(const struct clients_interest *a, const struct clients_interest *b)
{
    uint64_t client_a = a->watch->connection->number, client_b = b->watch->connection->number;

    if (client_a != client_b)
        return client_a < client_b ? -1 : 1;
    if (a->watch->number != b->watch->number)
        return a->watch->number < b->watch->number ? -1 : 1;
    return 0;
}

CLIENTS_TREE(clients_topics, clients_topic, by_key, compare_topics)
CLIENTS_TREE(clients_interests, clients_interest, in_topic, compare_interests)

struct clients_topic *clients_topic_find(struct clients *clients, enum clients_topic_kind kind, uint64_t hash,
                                         const char *name, size_t length)
{
    const struct key key = {.kind = kind, .hash = hash, .name = name, .length = length};
    struct clients_topic *topic = RB_ROOT(&clients->topics);

    while (topic) {
        int order = compare_key(&key, topic);

        if (order == 0)
            return topic;
        topic = order < 0 ? RB_LEFT(topic, by_key) : RB_RIGHT(topic, by_key);
    }
    return NULL;
}

static struct clients_topic *add_topic(struct clients *clients, const struct key *key)
{
    struct clients_topic *topic = malloc(sizeof *topic + key->length + 1);

    if (!topic)
        return NULL;
    *topic = (struct clients_topic){.kind = key->kind, .hash = key->hash, .length = key->length};
    memcpy(topic->name, key->name, key->length + 1);
    RB_INIT(&topic->interests);
    (void)RB_INSERT(clients_topics, &clients->topics, topic); /* it was looked for before */
    if (key->kind == CLIENTS_PREFIX)
        clients->prefixes[key->length]++;
    return topic;
}

static void drop_topic(struct clients *clients, struct clients_topic *topic)
{
    if (topic->kind == CLIENTS_PREFIX)
        clients->prefixes[topic->length]--;
    (void)RB_REMOVE(clients_topics, &clients->topics, topic);
    free(topic);
}

struct clients_interest *clients_interest_find(struct clients_topic *topic, struct clients_watch *watch)
{
    struct clients_interest like = {.watch = watch};

    return RB_FIND(clients_interests, &topic->interests, &like);
}

enum gavel_status clients_interest_add(struct clients_watch *watch, enum clients_topic_kind kind,
                                       uint64_t session, const char *name)
{
    struct clients_connection *connection = watch->connection;
    struct clients *clients = connection->clients;
    struct key key = {.kind = kind, .hash = session, .name = name, .length = strlen(name)};
    struct clients_interest *interest;
    struct clients_topic *topic;

    if (kind != CLIENTS_SESSION)
        key.hash = hash_bytes(HASH_BEGIN, name, key.length);
    topic = clients_topic_find(clients, kind, key.hash, name, key.length);
    if (topic && clients_interest_find(topic, watch))
        return GAVEL_OK;
    if (connection->interest_count >= CLIENTS_INTERESTS_MAX)
        return GAVEL_ERR_TOO_LARGE;
    interest = malloc(sizeof *interest);
    if (!topic && interest)
        topic = add_topic(clients, &key);
    if (!topic || !interest) {
        free(interest);
        return GAVEL_ERR_NO_MEMORY;
    }
    *interest = (struct clients_interest){.topic = topic, .watch = watch};
    (void)RB_INSERT(clients_interests, &topic->interests, interest); /* it was looked for before */
    LIST_INSERT_HEAD(&watch->interests, interest, in_watch);
    connection->interest_count++;
    return GAVEL_OK;
}

void clients_interest_drop(struct clients_interest *interest)
{
    struct clients_topic *topic = interest->topic;
    struct clients_connection *connection = interest->watch->connection;

    (void)RB_REMOVE(clients_interests, &topic->interests, interest);
    LIST_REMOVE(interest, in_watch);
    connection->interest_count--;
    free(interest);
    if (RB_EMPTY(&topic->interests))
        drop_topic(connection->clients, topic);
}

struct clients_interest *clients_interest_first(struct clients_topic *topic, uint64_t client)
{
    struct clients_connection connection = {.number = client};
    struct clients_watch watch = {.connection = &connection};
    struct clients_interest like = {.watch = &watch};
    struct clients_interest *first;

    if (client == 0)
        return RB_MIN(clients_interests, &topic->interests);
    first = RB_NFIND(clients_interests, &topic->interests, &like);
    return first && first->watch->connection->number == client ? first : NULL;
}

struct clients_interest *clients_interest_next(struct clients_interest *interest, uint64_t client)
{
    struct clients_interest *next = RB_NEXT(clients_interests, NULL, interest);

    return next && (client == 0 || next->watch->connection->number == client) ? next : NULL;
}
