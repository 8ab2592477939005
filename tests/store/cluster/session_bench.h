/* SPDX-License-Identifier: Apache-2.0 */

/* Store objects with sessions at a real cluster, for the tests. */
#ifndef TESTS_STORE_CLUSTER_SESSION_BENCH_H
#define TESTS_STORE_CLUSTER_SESSION_BENCH_H

#include "nodes.h"
#include "store/conformance/conformance.h"

#define LIMIT (60 * NS_PER_S) /* for anything that a test waits for */
#define LEASE_MS 20000        /* of tests in which no session ends by itself */
#define HOLDERS 3

/* A store object with a session, and what it was told last. */
struct holder {
    struct store *store;
    struct store_session_key key;
    struct store_session session;
};

struct bench {
    struct test_cluster cluster;
    struct holder holders[HOLDERS];
};

int bench_set_up(void **state); /* a cluster that answers, and no holder yet */
int bench_empty(void **state);  /* ends all sessions; the cluster goes on */
int bench_tear_down(void **state);

/* Opens the store and begins a session; nothing is awaited. */
struct holder *holder_open(struct bench *bench, int which, gavel_ms lease_ms);
/* The same, and waits until it is told that the session is open. */
struct holder *holder_ready(struct bench *bench, int which, gavel_ms lease_ms);
void holder_close(struct holder *holder);

/* Takes the next piece of news, and fails the test if it is out of order; false: there is none. */
bool holder_take(struct holder *holder, struct store_news *ret_news);
/* Takes news until there is one of that kind, and of that group if it is not NULL. */
struct store_news holder_await(struct holder *holder, enum store_news_kind kind, const char *group);
/* Until a record shows that the session holds the group, or does not. */
struct record holder_await_mandate(struct holder *holder, const char *group, bool is_ours);
/* What waits now. */
void holder_take_all(struct holder *holder);
/* Takes news for so long. */
void holder_idle(struct holder *holder, gavel_ns time);

/* In the session that the holder was told of. */
struct store_request ask_campaign(const struct holder *holder, const char *group, const char *id,
                                  uint64_t instance);
struct store_request ask_give_up(const struct holder *holder, const char *group, const char *id,
                                 uint64_t epoch);
struct store_request ask_go(const struct holder *holder, const char *group, const char *id,
                            uint64_t instance);

#endif
