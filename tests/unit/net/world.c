/* SPDX-License-Identifier: Apache-2.0 */

#include "world.h"

#include "net/seal.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void on_tick(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    (void)context;
}

struct world *world_new(void)
{
    const struct timeval interval = {.tv_usec = 5000};
    static const char *const names[SIDES_MAX] = {"a", "b", "c"};
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->base = event_base_new();
    assert_non_null(world->base);
    world->tick = event_new(world->base, -1, EV_PERSIST, on_tick, NULL);
    assert_int_equal(event_add(world->tick, &interval), 0);
    for (size_t i = 0; i < SIDES_MAX; i++) {
        struct side *side = &world->sides[i];
        struct peer_hello *self = &side->settings.self;

        side->world = world;
        strcpy(side->name, names[i]);
        side->id = seal_id_of_name("node", names[i]);
        side->settings.listen = "127.0.0.1:0";
        side->settings.takes_strangers = true;
        *self = (struct peer_hello){.cluster = seal_id_of_name("cluster", "test"),
                                    .generation = 1,
                                    .node = side->id,
                                    .incarnation = 1};
        strcpy(self->cluster_name, "test");
        strcpy(self->name, names[i]);
        strcpy(self->program, "test");
    }
    return world;
}

void world_free(struct world *world)
{
    for (size_t i = 0; i < SIDES_MAX; i++)
        transport_free(world->sides[i].transport);
    event_free(world->tick);
    event_base_free(world->base);
    free(world);
}

struct side *world_side(struct world *world, size_t which) { return &world->sides[which]; }

static void on_message(void *user, const struct raft_message *message)
{
    struct side *side = user;

    side->messages[side->message_count++ % MESSAGES_KEPT] = *message;
    side->answers_before = side->answer_count;
    if (message->kind == RAFT_MSG_SNAPSHOT) {
        side->snapshot_count++;
        side->snapshot = message->snapshot;
        side->snapshot_sum = 0;
        for (size_t i = 0; i < message->snapshot.size; i++)
            side->snapshot_sum = side->snapshot_sum * 31 + message->snapshot.data[i];
    }
    if (side->on_message)
        side->on_message(side, message);
}

static void on_status(void *user, const struct peer_status *status)
{
    struct side *side = user;

    side->status = *status;
    side->status_count++;
}

static void on_forwarding(void *user, raft_id peer, enum peer_frame_kind kind,
                          const struct peer_forwarding *forwarding)
{
    struct side *side = user;

    side->forwarding = *forwarding;
    side->forwarding.data = NULL;
    side->forwarding_from = peer;
    side->forwarding_sum = 0;
    for (size_t i = 0; i < forwarding->size; i++)
        side->forwarding_sum = side->forwarding_sum * 31 + forwarding->data[i];
    if (kind == PEER_ANSWER)
        side->answer_count++;
    else
        side->forwarding_count++;
}

static void on_news(void *user, enum transport_news news, raft_id peer, const char *text,
                    const struct peer_hello *hello)
{
    struct side *side = user;
    struct told *told = &side->news[side->news_count++ % NEWS_KEPT];

    *told = (struct told){.news = news, .peer = peer, .has_hello = hello != NULL};
    (void)snprintf(told->text, sizeof told->text, "%s", text);
    if (hello)
        told->hello = *hello;
}

static enum transport_verdict on_admit(void *user, const struct peer_hello *hello, bool is_proven,
                                       char text[PEER_TEXT_MAX + 1])
{
    const struct side *side = user;

    (void)is_proven;
    (void)snprintf(text, PEER_TEXT_MAX + 1, "another directory is %s", hello->name);
    return side->verdict;
}

void world_start(struct side *side)
{
    const struct transport_events events = {.message = on_message,
                                            .status = on_status,
                                            .forwarding = on_forwarding,
                                            .news = on_news,
                                            .admit = on_admit,
                                            .user = side};
    struct gavel_error error;
    char listen[64];

    if (side->port != 0) { /* again, where it was */
        (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", (unsigned)side->port);
        side->settings.listen = listen;
    }
    if (transport_new(side->world->base, &side->settings, &events, &side->transport, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    side->settings.listen = "127.0.0.1:0";
    side->port = transport_port(side->transport);
    assert_int_not_equal(side->port, 0);
}

void world_stop(struct side *side)
{
    transport_free(side->transport);
    side->transport = NULL;
    side->settings.self.incarnation++; /* should it start again */
}

void world_peer(struct side *side, const struct side *of, const char *address)
{
    struct transport_address peer = {.id = of->id};

    strcpy(peer.name, of->name);
    if (address)
        strcpy(peer.address, address);
    else
        (void)snprintf(peer.address, sizeof peer.address, "127.0.0.1:%u", (unsigned)of->port);
    transport_set_peers(side->transport, &peer, 1);
}

void world_connect(struct world *world)
{
    struct transport_address peers[SIDES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < SIDES_MAX; i++) {
        const struct side *side = &world->sides[i];

        if (side->port == 0)
            continue;
        peers[count] = (struct transport_address){.id = side->id};
        strcpy(peers[count].name, side->name);
        (void)snprintf(peers[count].address, sizeof peers[count].address, "127.0.0.1:%u",
                       (unsigned)side->port);
        count++;
    }
    for (size_t i = 0; i < SIDES_MAX; i++)
        if (world->sides[i].transport)
            transport_set_peers(world->sides[i].transport, peers, count);
}

void world_limit_begin(struct world *world) { world->late_at = clock_now() + LIMIT_MS * NS_PER_MS; }

void world_turn(struct world *world, const char *condition, const char *file, int line)
{
    if (clock_now() > world->late_at) {
        for (size_t i = 0; i < SIDES_MAX; i++) {
            const struct side *side = &world->sides[i];

            for (size_t j = 0; j < side->news_count && j < 20; j++)
                print_message("%s: %d %s\n", side->name, (int)side->news[j].news, side->news[j].text);
        }
        print_error("%s:%d: not within %d ms: %s\n", file, line, LIMIT_MS, condition);
        fail();
    }
    assert_int_not_equal(event_base_loop(world->base, EVLOOP_ONCE), -1);
}

void world_run_for(struct world *world, int ms)
{
    gavel_ns until = clock_now() + ms * NS_PER_MS;

    while (clock_now() < until)
        assert_int_not_equal(event_base_loop(world->base, EVLOOP_ONCE), -1);
}

struct transport_link link_of(const struct side *side, const struct side *to)
{
    struct transport_link link;

    assert_true(transport_link_of(side->transport, to->id, &link));
    return link;
}

bool is_up(const struct side *side, const struct side *to) { return link_of(side, to).is_up; }

const struct told *find_news_about(const struct side *side, enum transport_news news, const char *text)
{
    for (size_t i = side->news_count; i > 0 && i + NEWS_KEPT > side->news_count; i--) {
        const struct told *told = &side->news[(i - 1) % NEWS_KEPT];

        if (told->news == news && strstr(told->text, text))
            return told;
    }
    return NULL;
}

const struct told *find_news(const struct side *side, enum transport_news news)
{
    return find_news_about(side, news, "");
}

size_t count_news(const struct side *side, enum transport_news news)
{
    size_t count = 0;

    for (size_t i = 0; i < side->news_count && i < NEWS_KEPT; i++)
        count += side->news[i].news == news;
    return count;
}

struct raft_message heartbeat(const struct side *from, const struct side *to, uint64_t round)
{
    return (struct raft_message){
        .kind = RAFT_MSG_APPEND,
        .from = from->id,
        .to = to->id,
        .cluster = from->settings.self.cluster,
        .generation = 1,
        .incarnation = 1,
        .term = 3,
        .append = {.prev_index = 10,
                   .prev_term = 2,
                   .commit = 9,
                   .lease_epoch = 1,
                   .round = round,
                   .successor_count = 2,
                   .successors = {from->id, to->id}},
    };
}

struct raft_message snapshot_of(const struct side *from, const struct side *to, const uint8_t *bytes,
                                size_t size)
{
    struct raft_message message = heartbeat(from, to, 1);

    message.kind = RAFT_MSG_SNAPSHOT;
    message.snapshot = (struct raft_install){.index = 5,
                                             .index_term = 2,
                                             .config = {.count = 1, .members = {{.id = 1, .is_voter = true}}},
                                             .data = bytes,
                                             .size = size};
    return message;
}
