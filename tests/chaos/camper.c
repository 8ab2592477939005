/* SPDX-License-Identifier: Apache-2.0 */

/*
 * camper STORE LOG MEMBER GROUP: a candidate with a session of its own at the
 * cluster. While it leads, and its deadline is not near, it beats into the log
 * (tests/run); so does whoever holds a lease mandate of the same group.
 *
 *     campaign ──► elected ──► beats for STAY ──► withdraws ──► PAUSE ──► campaign …
 *
 * Without the pause nobody else would ever lead: a candidate with a session is
 * granted the mandate by the cluster itself, before any other can claim it.
 * It looks at the clock, then beats; MARGIN is for what may come in between.
 */
#include "beat_log.h"
#include "client/cluster.h"
#include "os/clock.h"
#include "os/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TTL_MS 2000
#define MARGIN (400 * NS_PER_MS)
#define EVERY_US 2000
#define STAY (3 * NS_PER_S)
#define PAUSE (3 * NS_PER_S)
#define PATIENCE (2 * NS_PER_S)

struct camper {
    struct cluster_link *cluster;
    struct event_base *base;
    int log;
    uint16_t member;
    char id[32];
    char *group;
    uint64_t session; /* that takes part; 0: none */
    uint64_t epoch;   /* it leads with; 0: it does not */
    uint64_t over;    /* the newest epoch that it gave up */
    gavel_ns until;   /* it stays, or pauses */
    uint32_t number;
};

static void say(const struct camper *camper, const char *what, uint64_t number)
{
    printf("at_ns=%lld session=%016llx %s %llu\n", (long long)clock_now(),
           (unsigned long long)camper->session, what, (unsigned long long)number);
    fflush(stdout);
}

static void lead(struct camper *camper, uint64_t session, uint64_t epoch)
{
    if (session == 0 || session != camper->session || epoch <= camper->over || epoch == camper->epoch)
        return;
    camper->epoch = epoch;
    camper->until = clock_now() + STAY;
    say(camper, "leads with epoch", epoch);
}

static void give_up(struct camper *camper, const char *why)
{
    if (camper->epoch == 0)
        return;
    say(camper, why, camper->epoch);
    camper->over = camper->epoch;
    camper->epoch = 0;
}

/* ---- what the cluster says ---- */

static void looked(void *user, enum gavel_status status, const char *message, const Gavel__Answer *answer)
{
    struct camper *camper = user;

    (void)message;
    if (status == GAVEL_OK && answer->n_groups > 0 && answer->groups[0]->is_held)
        lead(camper, answer->groups[0]->session, answer->groups[0]->epoch);
}

static void changed(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct camper *camper = user;
    Gavel__Ask ask;

    (void)revision;
    (void)is_gap;
    if (!change) { /* the watch begins, or has missed something: look at the whole */
        gavel__ask__init(&ask);
        ask.kind = GAVEL__ASK__KIND__GROUP;
        ask.group = camper->group;
        cluster_link_ask(camper->cluster, &ask, clock_now() + PATIENCE, looked, camper);
    } else if (change->kind == GAVEL__CHANGE__KIND__ELECTED) {
        lead(camper, change->session, change->epoch);
    } else if (change->kind == GAVEL__CHANGE__KIND__VACANT && change->epoch == camper->epoch) {
        give_up(camper, "leads no more with epoch");
    }
}

static void done(void *user, enum gavel_status status, const char *message,
                 const Gavel__OpResult *const *results, size_t count)
{
    struct camper *camper = user;

    (void)message;
    if (status == GAVEL_OK && count == 1)
        status = results[0]->status;
    if (status == GAVEL_OK)
        return;
    say(camper, "was refused with status", status);
    camper->until = clock_now() + NS_PER_S; /* and then it tries again */
    if (camper->epoch == 0)
        camper->session = 0;
}

static void session_lost(void *user)
{
    struct camper *camper = user;

    give_up(camper, "has lost its session, and with it epoch");
    camper->session = 0;
}

static void closed(void *user)
{
    struct camper *camper = user;

    (void)event_base_loopbreak(camper->base); /* it runs, so it cannot fail */
}

/* ---- what it does ---- */

static void submit(struct camper *camper, Gavel__Op__WhatCase what)
{
    Gavel__Campaign campaign;
    Gavel__Withdraw withdraw;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops[] = {&op};

    op.what_case = what;
    if (what == GAVEL__OP__WHAT_CAMPAIGN) {
        gavel__campaign__init(&campaign);
        campaign.group = camper->group;
        campaign.id = camper->id;
        op.campaign = &campaign;
    } else {
        gavel__withdraw__init(&withdraw);
        withdraw.group = camper->group;
        op.withdraw = &withdraw;
    }
    cluster_link_submit(camper->cluster, ops, 1, NEVER, done, camper);
}

static void beat(struct camper *camper, gavel_ns now)
{
    struct beat beat = {.epoch = camper->epoch,
                        .at = now,
                        .pid = getpid(),
                        .member = camper->member,
                        .role = BEAT_MAIN,
                        .number = camper->number++};

    if (!beat_log_write(camper->log, &beat)) {
        perror("camper: cannot write to the log");
        exit(1);
    }
}

static void tick(evutil_socket_t fd, short what, void *user)
{
    struct camper *camper = user;
    gavel_ns now = clock_now();

    (void)fd;
    (void)what;
    if (camper->session == 0 && cluster_link_deadline(camper->cluster) != 0 && now >= camper->until) {
        camper->session = cluster_link_session(camper->cluster);
        submit(camper, GAVEL__OP__WHAT_CAMPAIGN);
    }
    if (camper->epoch == 0)
        return;
    if (now + MARGIN < cluster_link_deadline(camper->cluster))
        beat(camper, now);
    if (now < camper->until)
        return;
    give_up(camper, "withdraws with epoch");
    camper->session = 0;
    camper->until = now + PAUSE;
    submit(camper, GAVEL__OP__WHAT_WITHDRAW);
}

static void terminated(evutil_socket_t fd, short what, void *user)
{
    struct camper *camper = user;

    (void)fd;
    (void)what;
    give_up(camper, "ends with epoch");
    camper->session = 0;
    camper->until = NEVER;
    cluster_link_close(camper->cluster);
}

static bool begin(struct camper *camper, const char *store)
{
    const struct cluster_link_events events = {
        .session_lost = session_lost, .closed = closed, .user = camper};
    struct event *timer, *ending;
    struct process_id self;
    struct table_process process = {0};
    struct cluster_link_place place;
    struct gavel_error error = {0};

    camper->base = event_base_new();
    if (strncmp(store, "gavel://", 8) != 0 || !camper->base)
        return false;
    if (process_self(&self) == GAVEL_OK) {
        process.pid = self.pid;
        process.pid_ns = self.pid_ns;
        process.start_ticks = self.start_ticks;
        memcpy(process.boot_id, self.boot_id, sizeof process.boot_id);
    }
    /* One of two is not seen by the nodes, as if it were on another machine: only silence tells of its
     * end. */
    if (cluster_link_place_parse(store + 8, &place, &error) != GAVEL_OK ||
        cluster_link_new(camper->base, &place, TTL_MS, camper->id, camper->member % 2 ? &process : NULL,
                         &events, &camper->cluster, &error) != GAVEL_OK) {
        fprintf(stderr, "camper: %s\n", error.message);
        return false;
    }
    timer = event_new(camper->base, -1, EV_PERSIST, tick, camper);
    ending = evsignal_new(camper->base, SIGTERM, terminated, camper);
    return timer && ending && event_add(timer, &(struct timeval){.tv_usec = EVERY_US}) == 0 &&
           event_add(ending, NULL) == 0 &&
           cluster_link_watch(camper->cluster, NULL, NULL, 0, changed, camper) != 0;
}

int main(int argc, char **argv)
{
    struct camper camper = {0};

    if (argc != 5) {
        fprintf(stderr, "camper: usage: camper STORE LOG MEMBER GROUP\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail with a valid signal */
    camper.log = beat_log_open(argv[2]);
    camper.member = (uint16_t)strtoul(argv[3], NULL, 10);
    camper.group = argv[4];
    (void)snprintf(camper.id, sizeof camper.id, "camper%u", (unsigned)camper.member);
    if (camper.log < 0 || !begin(&camper, argv[1])) {
        perror("camper: cannot begin");
        return 1;
    }
    (void)event_base_dispatch(camper.base); /* until it is closed */
    return 0;
}
