/* SPDX-License-Identifier: Apache-2.0 */

/*
 * session_candidate STORE LOG MEMBER GROUP: a candidate with a session of its own at the
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

struct candidate {
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

static void say(const struct candidate *candidate, const char *what, uint64_t number)
{
    printf("at_ns=%lld session=%016llx %s %llu\n", (long long)clock_now(),
           (unsigned long long)candidate->session, what, (unsigned long long)number);
    fflush(stdout);
}

static void lead(struct candidate *candidate, uint64_t session, uint64_t epoch)
{
    if (session == 0 || session != candidate->session || epoch <= candidate->over ||
        epoch == candidate->epoch)
        return;
    candidate->epoch = epoch;
    candidate->until = clock_now() + STAY;
    say(candidate, "leads with epoch", epoch);
}

static void give_up(struct candidate *candidate, const char *why)
{
    if (candidate->epoch == 0)
        return;
    say(candidate, why, candidate->epoch);
    candidate->over = candidate->epoch;
    candidate->epoch = 0;
}

/* ---- what the cluster says ---- */

static void looked(void *user, enum gavel_status status, const char *message, const Gavel__Answer *answer)
{
    struct candidate *candidate = user;

    (void)message;
    if (status == GAVEL_OK && answer->n_groups > 0 && answer->groups[0]->is_held)
        lead(candidate, answer->groups[0]->session, answer->groups[0]->epoch);
}

static void changed(void *user, const Gavel__Change *change, uint64_t revision, bool is_gap)
{
    struct candidate *candidate = user;
    Gavel__Ask ask;

    (void)revision;
    (void)is_gap;
    if (!change) { /* the watch begins, or has missed something: look at the whole */
        gavel__ask__init(&ask);
        ask.kind = GAVEL__ASK__KIND__GROUP;
        ask.group = candidate->group;
        cluster_link_ask(candidate->cluster, &ask, clock_now() + PATIENCE, looked, candidate);
    } else if (change->kind == GAVEL__CHANGE__KIND__ELECTED) {
        lead(candidate, change->session, change->epoch);
    } else if (change->kind == GAVEL__CHANGE__KIND__VACANT && change->epoch == candidate->epoch) {
        give_up(candidate, "no longer leads with epoch");
    }
}

static void done(void *user, enum gavel_status status, const char *message,
                 const Gavel__OpResult *const *results, size_t count)
{
    struct candidate *candidate = user;

    (void)message;
    if (status == GAVEL_OK && count == 1)
        status = results[0]->status;
    if (status == GAVEL_OK)
        return;
    say(candidate, "was refused with status", status);
    candidate->until = clock_now() + NS_PER_S; /* and then it tries again */
    if (candidate->epoch == 0)
        candidate->session = 0;
}

static void session_lost(void *user, uint64_t number)
{
    struct candidate *candidate = user;

    (void)number;
    give_up(candidate, "has lost its session, and with it epoch");
    candidate->session = 0;
}

static void closed(void *user)
{
    struct candidate *candidate = user;

    (void)event_base_loopbreak(candidate->base); /* it runs, so it cannot fail */
}

/* ---- what it does ---- */

static void submit(struct candidate *candidate, Gavel__Op__WhatCase what)
{
    Gavel__Campaign campaign;
    Gavel__Withdraw withdraw;
    Gavel__Op op = GAVEL__OP__INIT;
    const Gavel__Op *ops[] = {&op};

    op.what_case = what;
    if (what == GAVEL__OP__WHAT_CAMPAIGN) {
        gavel__campaign__init(&campaign);
        campaign.group = candidate->group;
        campaign.id = candidate->id;
        op.campaign = &campaign;
    } else {
        gavel__withdraw__init(&withdraw);
        withdraw.group = candidate->group;
        op.withdraw = &withdraw;
    }
    cluster_link_submit(candidate->cluster, ops, 1, NEVER, done, candidate);
}

static void beat(struct candidate *candidate, gavel_ns now)
{
    struct beat beat = {.epoch = candidate->epoch,
                        .at = now,
                        .pid = getpid(),
                        .member = candidate->member,
                        .role = BEAT_MAIN,
                        .number = candidate->number++};

    if (!beat_log_write(candidate->log, &beat)) {
        perror("session_candidate: cannot write to the log");
        exit(1);
    }
}

static void tick(evutil_socket_t fd, short what, void *user)
{
    struct candidate *candidate = user;
    gavel_ns now = clock_now();

    (void)fd;
    (void)what;
    if (candidate->session == 0 && cluster_link_deadline(candidate->cluster) != 0 &&
        now >= candidate->until) {
        candidate->session = cluster_link_session(candidate->cluster);
        submit(candidate, GAVEL__OP__WHAT_CAMPAIGN);
    }
    if (candidate->epoch == 0)
        return;
    if (now + MARGIN < cluster_link_deadline(candidate->cluster))
        beat(candidate, now);
    if (now < candidate->until)
        return;
    give_up(candidate, "withdraws with epoch");
    candidate->session = 0;
    candidate->until = now + PAUSE;
    submit(candidate, GAVEL__OP__WHAT_WITHDRAW);
}

static void terminated(evutil_socket_t fd, short what, void *user)
{
    struct candidate *candidate = user;

    (void)fd;
    (void)what;
    give_up(candidate, "ends with epoch");
    candidate->session = 0;
    candidate->until = NEVER;
    cluster_link_close(candidate->cluster);
}

static bool begin(struct candidate *candidate, const char *store)
{
    const struct cluster_link_events events = {
        .session_lost = session_lost, .closed = closed, .user = candidate};
    struct event *timer, *ending;
    struct process_id self;
    struct table_process process = {0};
    struct cluster_link_target target;
    struct gavel_error error = {0};

    candidate->base = event_base_new();
    if (strncmp(store, "gavel://", 8) != 0 || !candidate->base)
        return false;
    if (process_self(&self) == GAVEL_OK) {
        process.pid = self.pid;
        process.pid_ns = self.pid_ns;
        process.start_ticks = self.start_ticks;
        memcpy(process.boot_id, self.boot_id, sizeof process.boot_id);
    }
    /* One of two is not seen by the nodes, as if it were on another machine: only silence tells of its
     * end. */
    if (cluster_link_target_parse(store + 8, &target, &error) != GAVEL_OK ||
        cluster_link_new(candidate->base, &target, TTL_MS, candidate->id,
                         candidate->member % 2 ? &process : NULL, &events, &candidate->cluster,
                         &error) != GAVEL_OK) {
        fprintf(stderr, "session_candidate: %s\n", error.message);
        return false;
    }
    timer = event_new(candidate->base, -1, EV_PERSIST, tick, candidate);
    ending = evsignal_new(candidate->base, SIGTERM, terminated, candidate);
    return timer && ending && event_add(timer, &(struct timeval){.tv_usec = EVERY_US}) == 0 &&
           event_add(ending, NULL) == 0 &&
           cluster_link_watch(candidate->cluster, NULL, NULL, 0, changed, candidate) != 0;
}

int main(int argc, char **argv)
{
    struct candidate candidate = {0};

    if (argc != 5) {
        fprintf(stderr, "session_candidate: usage: candidate STORE LOG MEMBER GROUP\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail with a valid signal */
    candidate.log = beat_log_open(argv[2]);
    candidate.member = (uint16_t)strtoul(argv[3], NULL, 10);
    candidate.group = argv[4];
    (void)snprintf(candidate.id, sizeof candidate.id, "candidate%u", (unsigned)candidate.member);
    if (candidate.log < 0 || !begin(&candidate, argv[1])) {
        perror("session_candidate: cannot begin");
        return 1;
    }
    (void)event_base_dispatch(candidate.base); /* until it is closed */
    return 0;
}
