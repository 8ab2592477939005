/* SPDX-License-Identifier: Apache-2.0 */

/* Names of hosts, with a resolver of our own in place of the system's: one that takes its time. */
#include "world.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOW_MS 300

static atomic_int asked; /* times for a name; the resolver is called from threads, and has no other place */
static atomic_int at_once;
static atomic_int most_at_once;
static atomic_bool is_dead; /* the resolver has nobody to ask */

struct found {
    struct addrinfo info;
    struct sockaddr_in address;
};

/* Numbers at once; a name after a while, as if the first of two servers were dead. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    struct in_addr number = {.s_addr = htonl(INADDR_LOOPBACK)};
    struct found *found;

    if (inet_pton(AF_INET, node, &number) != 1) {
        int now;

        if (hints->ai_flags & AI_NUMERICHOST)
            return EAI_NONAME;
        now = atomic_fetch_add(&at_once, 1) + 1;
        if (now > atomic_load(&most_at_once))
            atomic_store(&most_at_once, now);
        (void)atomic_fetch_add(&asked, 1);
        (void)poll(NULL, 0, SLOW_MS);
        (void)atomic_fetch_sub(&at_once, 1);
        if (atomic_load(&is_dead))
            return EAI_AGAIN;
    }
    found = calloc(1, sizeof *found);
    if (!found)
        return EAI_MEMORY;
    found->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = number, .sin_port = htons((uint16_t)atoi(service))};
    found->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addr = (struct sockaddr *)&found->address,
                                    .ai_addrlen = sizeof found->address};
    *ret = &found->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *info) { free(info); }

static void test_a_name_that_takes_long_to_be_found_is_found(void **state)
{
    struct world *world = world_new();
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    char address[64];

    (void)state;
    a->settings.connect_timeout = SLOW_MS / 6 * NS_PER_MS;
    world_start(a);
    world_start(b);
    (void)snprintf(address, sizeof address, "somewhere:%u", (unsigned)b->port);
    world_peer(a, b, address);
    WAIT_FOR(world, is_up(a, b));
    assert_int_equal(atomic_load(&asked), 1);
    assert_int_equal(atomic_load(&most_at_once), 1); /* one question at a time, however long it takes */
    world_free(world);
}

static void test_a_peer_is_found_again_where_it_was(void **state)
{
    struct world *world = world_new();
    struct side *a = world_side(world, 0), *b = world_side(world, 1);
    char address[64];

    (void)state;
    atomic_store(&asked, 0);
    world_start(a);
    world_start(b);
    (void)snprintf(address, sizeof address, "somewhere:%u", (unsigned)b->port);
    world_peer(a, b, address);
    WAIT_FOR(world, is_up(a, b));
    atomic_store(&is_dead, true);
    world_stop(b);
    WAIT_FOR(world, atomic_load(&asked) >= 3); /* it has asked again, in vain */
    world_start(b);
    WAIT_FOR(world, is_up(a, b));
    assert_null(find_news_about(a, TRANSPORT_FAILED, "looked up"));
    atomic_store(&is_dead, false);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_that_takes_long_to_be_found_is_found),
        cmocka_unit_test(test_a_peer_is_found_again_where_it_was),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
