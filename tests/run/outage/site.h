/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A site: one real server that keeps mandates, and the way to it of each
 * candidate, which can fail by itself.
 *
 *   candidate 0, its clock ── link 0 ──┐
 *   candidate 1, its clock ── link 1 ──┼── server, its clock
 *   candidate 2, its clock ── link 2 ──┘
 */
#ifndef RUN_SITE_H
#define RUN_SITE_H

#include "base/time.h"
#include "servers/proxy.h"
#include "servers/server.h"

#include <stdbool.h>

#define SITE_STORE "outage" /* the database, bucket or prefix */
#define SITE_LINKS 3
#define SITE_ALL_LINKS SITE_LINKS
#define SITE_SERVER SITE_LINKS /* the clock of the server comes after those of the candidates */
#define SITE_CLOCKS (SITE_LINKS + 1)

struct site {
    struct test_server server;
    struct test_proxy links[SITE_LINKS];
    char url[256];                 /* of the store, without a link */
    char urls[SITE_LINKS][256];    /* by each link */
    char clocks[SITE_CLOCKS][128]; /* files for tests/servers/clock_shift.c */
};

/* Starts all; `directory` is one for the clocks. Ends the driver with a message if it cannot. */
void site_open(struct site *site, enum test_server_kind kind, const char *directory, const char *clock_shift);
void site_close(struct site *site);

/* Restarts a server that has ended although it was not killed, and reports it; true if it had to. */
bool site_revive(struct site *site);

/* Gives a command to one link, or SITE_ALL_LINKS; the commands are those of tests/servers/relay.h. */
void site_say(struct site *site, size_t link, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether the clock of the server obeys: programs in Go ask the kernel themselves. */
bool site_has_server_clock(const struct site *site);

/* Sets how far a wall clock is off. */
void site_shift_clock(struct site *site, size_t clock, gavel_ns shift);

#endif
