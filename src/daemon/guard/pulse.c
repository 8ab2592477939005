/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/guard/pulse.h"

#include "guard/proc.h"

/* So many looks without a tick are a hang. */
#define LOOKS 10

#define FRESH NS_PER_S

void pulse_begin(struct pulse *pulse, gavel_ns limit, gavel_ns now)
{
    *pulse = (struct pulse){.every = limit / LOOKS, .look_at = now + limit / LOOKS};
}

bool pulse_is_fresh(const struct shared_memory *memory, gavel_ns now)
{
    gavel_ns newest = atomic_load(&memory->alive_at);

    return newest == 0 || now - newest <= FRESH;
}

/* By SIGSTOP or a debugger. The consensus thread is the first one, so its state is that of the process. */
static bool is_halted(struct tree *tree, pid_t pid)
{
    struct proc_stat stat;

    return proc_read_stat(tree, pid, &stat) && (stat.state == 'T' || stat.state == 't');
}

bool pulse_look(struct pulse *pulse, const struct shared_memory *memory, struct tree *tree, pid_t pid,
                gavel_ns now)
{
    gavel_ns newest = atomic_load(&memory->alive_at);

    if (now < pulse->look_at)
        return false;
    pulse->look_at = now + pulse->every;
    pulse->silent++;
    if (newest == 0 || newest != pulse->felt || is_halted(tree, pid))
        pulse->silent = 0;
    pulse->felt = newest;
    if (pulse->silent < LOOKS)
        return false;
    pulse->silent = 0;
    return true;
}
