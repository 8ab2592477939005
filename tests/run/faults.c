/* SPDX-License-Identifier: Apache-2.0 */

#include "faults.h"

#include "os/clock.h"
#include "proc.h"

#include <signal.h>
#include <time.h>

static void sleep_until(gavel_ns at)
{
    struct timespec until = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

/* A fault that lasts for a time is the point here, not a wait for something to happen. */
static void last_for(gavel_ns least, gavel_ns most, struct prng *prng)
{
    sleep_until(clock_now() + prng_between(prng, least, most));
}

/* Whether a handle's process has really stopped. */
static bool freeze(int handle, pid_t pid)
{
    gavel_ns until = clock_now() + LIMIT;

    if (!proc_signal(handle, SIGSTOP))
        return false;
    while (proc_state(pid, NULL) != 'T') {
        if (clock_now() > until || !proc_signal(handle, 0))
            return false;
        election_pause();
    }
    return true;
}

static bool kill_elector(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return proc_signal(leader->elector, SIGKILL);
}

static bool kill_guard(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return proc_signal(leader->guard, SIGKILL);
}

static bool kill_command(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return proc_signal(leader->command, SIGKILL);
}

/* One after the other in either order, with so little in between that the second may be at its work. */
static bool kill_both(struct election *election, struct leader *leader, struct prng *prng)
{
    bool elector_first = prng_chance(prng, 500);
    int first = elector_first ? leader->elector : leader->guard;
    int second = elector_first ? leader->guard : leader->elector;

    (void)election;
    if (!proc_signal(first, SIGKILL))
        return false;
    if (prng_chance(prng, 500))
        last_for(0, 2 * NS_PER_MS, prng);
    (void)proc_signal(second, SIGKILL); /* it may have ended in good order meanwhile */
    return true;
}

static bool stop_elector(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return freeze(leader->elector, leader->pids[0]);
}

/* Frozen with the lock of the store in its hands, if it can be caught at that. */
static bool stop_writer(struct election *election, struct leader *leader, struct prng *prng)
{
    gavel_ns until = clock_now() + LEASE_MS * NS_PER_MS;

    while (election_lock_holder(election) != leader->pids[0] && clock_now() < until)
        ;
    return stop_elector(election, leader, prng);
}

/* Must go on as if nothing had been: its heartbeats come again, and it has not ended. */
static bool wake_elector(struct election *election, struct leader *leader, struct prng *prng)
{
    gavel_ns until;
    int64_t before;

    last_for(0, 300 * NS_PER_MS, prng);
    before = election_heartbeats(election, leader->candidate);
    if (!proc_signal(leader->elector, SIGCONT)) {
        printf("# a frozen elector has ended\n");
        return false;
    }
    for (until = clock_now() + LIMIT; clock_now() < until; election_pause()) {
        election_look(election);
        if (leader->candidate->pid != leader->pids[0]) {
            printf("# the elector that was frozen has ended with %d\n", leader->candidate->exit_code);
            return false;
        }
        if (election_heartbeats(election, leader->candidate) > before)
            return true;
    }
    printf("# the elector that was frozen does not take part any more\n");
    return false;
}

static bool stop_guard(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return freeze(leader->guard, leader->pids[1]);
}

static bool stop_both(struct election *election, struct leader *leader, struct prng *prng)
{
    bool elector_first = prng_chance(prng, 500);

    (void)election;
    return elector_first ? freeze(leader->elector, leader->pids[0]) && freeze(leader->guard, leader->pids[1])
                         : freeze(leader->guard, leader->pids[1]) && freeze(leader->elector, leader->pids[0]);
}

/* They may have been killed by the kernel, to be sure that nothing is done late; that is fine too. */
static bool wake_both(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    last_for(0, 300 * NS_PER_MS, prng);
    (void)proc_signal(leader->guard, SIGCONT);
    (void)proc_signal(leader->elector, SIGCONT);
    return true;
}

static bool wake_guard(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    (void)proc_signal(leader->guard, SIGCONT); /* likewise */
    return true;
}

static bool stop_command(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return freeze(leader->command, leader->pids[2]);
}

static bool wake_command(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    last_for(100 * NS_PER_MS, LEASE_MS * NS_PER_MS * 3 / 2, prng);
    return proc_signal(leader->command, SIGCONT);
}

static bool handover(struct election *election, struct leader *leader, struct prng *prng)
{
    int code = election_handover(election);

    (void)leader;
    (void)prng;
    if (code != 0)
        printf("# gavel handover ended with %d\n", code);
    return code == 0;
}

static bool terminate(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)election;
    (void)prng;
    return proc_signal(leader->elector, SIGTERM);
}

static bool cut_store(struct election *election, struct leader *leader, struct prng *prng)
{
    (void)leader;
    if (!election_cut(election))
        return false;
    last_for((LEASE_MS + 50) * NS_PER_MS, (LEASE_MS + 500) * NS_PER_MS, prng);
    election_mend(election);
    return true;
}

/* As when the machine is suspended: time goes on, and nobody is there to see it. */
static bool stop_all(struct election *election, struct leader *leader, struct prng *prng)
{
    return stop_both(election, leader, prng) && freeze(leader->command, leader->pids[2]);
}

/* In any order, as the kernel would. */
static bool wake_all(struct election *election, struct leader *leader, struct prng *prng)
{
    const int handles[] = {leader->command, leader->guard, leader->elector};
    size_t first = (size_t)prng_below(prng, 3);

    (void)election;
    last_for(0, 300 * NS_PER_MS, prng);
    for (size_t i = 0; i < 3; i++)
        (void)proc_signal(handles[(first + i) % 3], SIGCONT); /* some are dead by now, and should be */
    return true;
}

const struct fault faults[] = {
    {"kill elector", 40, OUTCOME_NEXT, false, false, kill_elector, NULL},
    {"kill guard", 40, OUTCOME_NEXT, false, false, kill_guard, NULL},
    {"kill command", 40, OUTCOME_NEXT, false, false, kill_command, NULL},
    {"kill elector and guard", 16, OUTCOME_NEXT, true, false, kill_both, NULL},
    {"stop elector", 10, OUTCOME_NEXT, false, false, stop_elector, wake_elector},
    {"stop elector in a write", 4, OUTCOME_NEXT, false, false, stop_writer, wake_elector},
    {"stop guard", 10, OUTCOME_NEXT, false, false, stop_guard, wake_guard},
    {"stop elector and guard", 8, OUTCOME_NEXT, true, false, stop_both, wake_both},
    {"stop all three", 8, OUTCOME_NEXT, true, false, stop_all, wake_all},
    {"stop command", 8, OUTCOME_SAME, false, false, stop_command, wake_command},
    {"handover", 20, OUTCOME_NEXT, false, false, handover, NULL},
    {"terminate", 20, OUTCOME_NEXT, false, false, terminate, NULL},
    {"cut store off", 8, OUTCOME_NEXT, false, true, cut_store, NULL},
};
const size_t fault_count = sizeof faults / sizeof *faults;
