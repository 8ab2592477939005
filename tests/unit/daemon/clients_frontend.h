/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frontend for tests of the clients thread: the test plays the consensus thread
 * (it changes the table and rings, takes forwardings and answers them) and the
 * clients, over real sockets.
 */
#ifndef TESTS_DAEMON_CLIENTS_FRONTEND_H
#define TESTS_DAEMON_CLIENTS_FRONTEND_H

#include "daemon/clients/internal.h"

#include <openssl/ssl.h>

struct clients_frontend {
    struct daemon_config *config;
    struct node_shared frontend;
    struct clients *clients;
    char directory[64];
    uint64_t index;
};

/* Plain TCP on loopback and a unix socket in the directory. */
int clients_frontend_setup(void **state);
int clients_frontend_setup_stopped(void **state); /* the test sets the configuration, then starts it */
int clients_frontend_teardown(void **state);
void clients_frontend_start(struct clients_frontend *frontend);
void clients_frontend_start_with(struct clients_frontend *frontend, struct clients_patience patience);

/* The consensus thread. Each applies one command and rings; the table's revision afterwards. */
uint64_t play_apply(struct clients_frontend *frontend, uint64_t session, Gavel__Op *const *ops, size_t count);
uint64_t play_open(struct clients_frontend *frontend, uint64_t session);
uint64_t play_close(struct clients_frontend *frontend, uint64_t session);
uint64_t play_campaign(struct clients_frontend *frontend, uint64_t session, const char *group,
                       const char *id);
uint64_t play_withdraw(struct clients_frontend *frontend, uint64_t session, const char *group);
uint64_t play_put(struct clients_frontend *frontend, const char *group, const char *key, const void *value,
                  size_t size);
/* As play_put, `count` times in one command. */
uint64_t play_put_many(struct clients_frontend *frontend, const char *group, size_t count, size_t size);

/* The next forwarding; fails if none comes. The caller answers or frees it. */
struct forwarding *play_take_forwarding(struct clients_frontend *frontend);
/* Answers with the tag of the question: a Reply, Kept or Answer of that status. Takes the forwarding. */
void play_answer_forwarding(struct forwarding *forwarding, enum gavel_status status);

/* A client. */
struct talker {
    int fd;
    SSL *ssl;
    uint8_t *bytes; /* read, and not looked at yet */
    size_t count;
    size_t capacity;
};
void talk_tcp(struct talker *talker, struct clients_frontend *frontend);
void talk_unix(struct talker *talker, struct clients_frontend *frontend);
/* False: the handshake fails. */
bool talk_tls(struct talker *talker, struct clients_frontend *frontend, SSL_CTX *context);
void talk_end(struct talker *talker);

void talk_bytes(struct talker *talker, const void *bytes, size_t size);
void talk_send(struct talker *talker, const Gavel__ClientFrame *frame);
/* The next frame, to be freed; NULL at the end of the stream. Fails if nothing comes. */
Gavel__ClientFrame *talk_next(struct talker *talker);
/* The next frame, which must be of this kind. */
Gavel__ClientFrame *talk_expect(struct talker *talker, Gavel__ClientFrame__WhatCase what);
/* Reads at most this many bytes that are there; does not wait. */
void talk_trickle(struct talker *talker, size_t size);
/* Nothing has come, and everything that was asked before has been answered. */
void talk_expect_silence(struct talker *talker);

void talk_say_hello(struct talker *talker, uint32_t version_min, uint32_t version_max);
void talk_hello(struct talker *talker); /* and the welcome */
void talk_refused(struct talker *talker,
                  const char *words); /* a refusal with these words in it, then the end */
void talk_ask(struct talker *talker, uint64_t tag, bool is_local, const char *group);
void talk_keep_alive(struct talker *talker, uint64_t tag, uint64_t session);
void talk_request(struct talker *talker, uint64_t tag, uint64_t session, const char *group);

struct watch_wish {
    uint64_t watch;
    const char *group;
    const char *prefix;
    uint64_t session;
    uint64_t after;
    uint32_t part; /* 0 with after: all of it */
};
void talk_watch(struct talker *talker, struct watch_wish wish);
void talk_watching(struct talker *talker, struct watch_wish wish); /* and that it has begun */
/* The next change of that watch, the only one in its frame. */
void talk_change(struct talker *talker, uint64_t watch, Gavel__Change__Kind kind, const char *group,
                 uint64_t revision);

uint64_t play_cut(struct clients_frontend *frontend); /* how many were cut */
/* Fails after a limit. */
#define WAIT_UNTIL(condition)                                                                                \
    do {                                                                                                     \
        for (gavel_ns limit_ = clock_now() + 40 * NS_PER_S; !(condition);) {                                 \
            assert_true(clock_now() < limit_);                                                               \
            (void)poll(NULL, 0, 1);                                                                          \
        }                                                                                                    \
    } while (0)

#endif
