/* SPDX-License-Identifier: Apache-2.0 */

/* Transports on loopback, all on one event base, with a record of everything they report. */
#ifndef TESTS_NET_WORLD_H
#define TESTS_NET_WORLD_H

#include "net/transport.h"

#define SIDES_MAX 3
#define NEWS_KEPT 256
#define MESSAGES_KEPT 4096
#define LIMIT_MS 60000

struct told {
    enum transport_news news;
    raft_id peer;
    char text[512];
    bool has_hello;
    struct peer_hello hello;
};

struct side {
    struct world *world;
    struct transport *transport;
    struct transport_settings settings;
    char name[PEER_NAME_MAX + 1];
    raft_id id;
    uint16_t port;
    struct told news[NEWS_KEPT]; /* a ring */
    size_t news_count;
    struct raft_message messages[MESSAGES_KEPT]; /* a ring; without what they pointed to */
    size_t message_count;
    size_t answers_before; /* the newest message */
    size_t status_count;
    struct peer_status status;
    size_t forwarding_count;
    size_t answer_count;
    struct peer_forwarding forwarding; /* the newest of both, without its data */
    raft_id forwarding_from;
    uint64_t forwarding_sum; /* of its bytes */
    size_t snapshot_count;
    struct raft_install snapshot; /* the newest */
    uint64_t snapshot_sum;        /* of its bytes */
    void (*on_message)(struct side *side, const struct raft_message *message);
    enum transport_verdict verdict; /* about every peer that greets */
};

struct world {
    struct event_base *base;
    struct side sides[SIDES_MAX];
    struct event *tick; /* so that a turn of the loop ends */
    gavel_ns late_at;
};

struct world *world_new(void);
void world_free(struct world *world);

/* "a", "b", "c" of cluster "test"; change side->settings before world_start(). */
struct side *world_side(struct world *world, size_t which);
void world_start(struct side *side);
void world_stop(struct side *side);
/* Each knows all others that run. */
void world_connect(struct world *world);
void world_peer(struct side *side, const struct side *of, const char *address);

/* Turns the loop until this holds; fails the test after LIMIT_MS. */
#define WAIT_FOR(world, condition)                                                                           \
    do {                                                                                                     \
        world_limit_begin(world);                                                                            \
        while (!(condition))                                                                                 \
            world_turn(world, #condition, __FILE__, __LINE__);                                               \
    } while (0)
void world_limit_begin(struct world *world);
void world_turn(struct world *world, const char *condition, const char *file, int line);
/* Runs the loop for `ms`: for what must not happen. */
void world_run_for(struct world *world, int ms);

bool is_up(const struct side *side, const struct side *to);
/* The newest of that kind, NULL if there was none. */
const struct told *find_news(const struct side *side, enum transport_news news);
const struct told *find_news_about(const struct side *side, enum transport_news news, const char *text);
size_t count_news(const struct side *side, enum transport_news news);
struct raft_message heartbeat(const struct side *from, const struct side *to, uint64_t round);
/* Borrows the bytes. */
struct raft_message snapshot_of(const struct side *from, const struct side *to, const uint8_t *bytes,
                                size_t size);
struct transport_link link_of(const struct side *side, const struct side *to);

#endif
