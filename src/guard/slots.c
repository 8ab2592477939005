/* SPDX-License-Identifier: Apache-2.0 */

/* What the supervisor says is done here: processes are started, signalled, killed and buried. */
#include "guard/loop.h"

#include "base/assert.h"
#include "guard/spawn.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process that could not be started seems to have ended with. */
#define STATUS_NOT_STARTED (126 << 8)

/* While something is to be killed, another pass follows after so long, unless a death is told before. */
#define PASS_INTERVAL NS_PER_MS

/* Who has not died after so long may never, and is not worth a processor. */
#define PATIENCE (5 * NS_PER_S)
#define PASS_INTERVAL_LONG (100 * NS_PER_MS)

void slot_signal(const struct slot_process *process, int signal_number)
{
    if (process->pid <= 0)
        return;
    if (process->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, process->pidfd, signal_number, NULL,
                      0); /* it may have died just now */
    else
        (void)kill(process->pid,
                   signal_number); /* a child of ours that is not reaped: the number is its own */
}

/* To its process group; before it has one, to itself. A stopped process has to run to obey. */
static void slot_terminate(const struct slot_process *process, int signal_number)
{
    if (process->pid <= 0)
        return;
    if (kill(-process->pid, signal_number) < 0)
        slot_signal(process, signal_number);
    if (kill(-process->pid, SIGCONT) < 0)
        slot_signal(process, SIGCONT);
}

void slot_forget_readiness(struct slot_process *process)
{
    if (process->ready_fd >= 0)
        (void)close(process->ready_fd); /* only read from */
    process->ready_fd = -1;
}

static void slot_clear(struct slot_process *process)
{
    if (process->pidfd >= 0)
        (void)close(process->pidfd); /* nothing was written to it */
    process->pidfd = -1;
    process->pid = 0;
    slot_forget_readiness(process);
}

static const struct guard_child *child_of(const struct guard_loop *loop,
                                          const struct supervisor_action *action)
{
    const struct guard_spec *spec = loop->start.spec;

    if (action->slot == SLOT_HOOK)
        return &spec->children[0];
    return &spec->children[action->slot == SLOT_CHECK ? action->child : action->slot];
}

static const struct guard_command *command_of(const struct guard_loop *loop,
                                              const struct supervisor_action *action)
{
    const struct guard_spec *spec = loop->start.spec;

    if (action->slot == SLOT_HOOK)
        return action->demoted ? &spec->on_demoted : &spec->on_elected;
    ASSERT(action->slot != SLOT_CHECK || action->child < spec->rules.child_count);
    if (action->slot == SLOT_CHECK)
        return &spec->children[action->child].ready;
    return &spec->children[action->slot].command;
}

static void start_process(struct guard_loop *loop, const struct supervisor_action *action)
{
    struct guard_spec *spec = loop->start.spec;
    struct slot_process *process = &loop->slots[action->slot];
    struct spawn spawn = {
        .command = command_of(loop, action),
        .child = child_of(loop, action),
        .tree = &loop->tree,
        .signal_mask = &spec->signal_mask,
        .ignores_sigpipe = spec->ignores_sigpipe,
        .descriptors = &loop->descriptors,
        .stdin_fd = loop->stdin_fd,
        .stdout_fd = loop->stdout_fd,
        .ready_fd = -1,
    };
    bool tells_ready = action->slot < CHILDREN_MAX && spec->rules.children[action->slot].ready == READY_BY_FD;
    int ends[2] = {-1, -1};

    (void)snprintf(spec->epoch, sizeof spec->epoch, "GAVEL_EPOCH=%llu",
                   (unsigned long long)(spec->is_single ? 0 : loop->supervisor.epoch));
    slot_clear(process);
    if (action->slot == SLOT_HOOK)
        loop->is_hook_demoted = action->demoted;
    if (tells_ready && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        loop->spawn_error = errno;
        process->has_failed = true;
        return;
    }
    spawn.ready_fd = ends[1];
    process->pid = spawn_process(&spawn, &process->pidfd);
    if (process->pid < 0)
        loop->spawn_error = errno;
    if (tells_ready)
        (void)close(ends[1]); /* the child has it now */
    process->ready_fd = ends[0];
    if (process->pid < 0) {
        slot_clear(process);
        process->has_failed = true;
        return;
    }
    process->session = process->pid;
}

/*
 * One pass of SIGKILL. Thousands take their time to die, and passes over them
 * would only take the processor from them, at our precedence: as long as they
 * do not become more, the dying have twice as long as the pass has taken.
 */
static void kill_pass(struct guard_loop *loop)
{
    gavel_ns began = clock_now();
    size_t count = tree_signal(&loop->tree, SIGKILL, 0); /* whether anything is left is asked elsewhere */
    gavel_ns now = clock_now();
    bool has_grown = loop->pass_peak > 0 && count > loop->pass_peak;

    loop->pass_at = has_grown ? now : now + 2 * (now - began);
    if (count > loop->pass_peak)
        loop->pass_peak = count;
}

/* Once, when the stop has begun; the signal goes first. */
static void plan_death(struct guard_loop *loop)
{
    uint64_t pages = 0;
    size_t count;

    if (loop->instants.allowance != 0)
        return;
    count = tree_count(&loop->tree, instants_count_max(&loop->instants), &pages);
    instants_allow(&loop->instants, count, pages);
}

static void carry_out(struct guard_loop *loop, const struct supervisor_action *action)
{
    struct slot_process *process = &loop->slots[action->slot];

    ASSERT(action->slot < SUPERVISOR_SLOTS);
    switch (action->kind) {
    case SUPERVISOR_SPAWN:
        start_process(loop, action);
        break;
    case SUPERVISOR_TERM_SLOT:
        slot_terminate(process, child_of(loop, action)->term_signal);
        plan_death(loop);
        break;
    case SUPERVISOR_KILL_SLOT:
        process->is_killing = true;
        slot_signal(process, SIGKILL);
        break;
    case SUPERVISOR_KILL_TREE:
        loop->is_killing = true;
        loop->killing_since = clock_now();
        for (size_t i = 0; i < SUPERVISOR_SLOTS; i++) {
            slot_signal(&loop->slots[i], SIGKILL);
            loop->slots[i].is_killing = false;
        }
        guard_loop_spare(loop);
        loop->pass_peak = 0;
        kill_pass(loop); /* repeated until nothing is left */
        break;
    }
}

void guard_loop_carry_out(struct guard_loop *loop)
{
    /* A copy: what is carried out may lead to the next step. */
    const struct supervisor_actions actions = loop->actions;

    for (size_t i = 0; i < actions.count; i++)
        carry_out(loop, &actions.items[i]);
}

/* How it ended, for the elector to tell. */
static void note_end(struct guard_loop *loop, size_t slot, int status)
{
    ASSERT(slot < SUPERVISOR_SLOTS);
    ASSERT(loop->slots[slot].pid == 0); /* nothing of it is left to be signalled */
    if (slot == 0)
        loop->last_status = status;
    if (slot == SLOT_HOOK && loop->is_hook_demoted)
        loop->demoted_status = status;
    if (slot < CHILDREN_MAX) {
        loop->ended_slot = slot;
        loop->ended_status = status;
    }
}

/* Takes the dead. Those that are no child of ours by name were orphans of the tree. */
static void reap(struct guard_loop *loop)
{
    int status;
    pid_t pid;

    while (tree_reap(&pid, &status)) {
        for (size_t i = 0; i < SUPERVISOR_SLOTS; i++) {
            if (loop->slots[i].pid != pid)
                continue;
            slot_clear(&loop->slots[i]);
            note_end(loop, i, status);
            guard_loop_feed(loop, SUPERVISOR_EXITED, i, status);
            break;
        }
    }
}

static void sweep_slot(struct guard_loop *loop, size_t slot)
{
    struct slot_process *process = &loop->slots[slot];
    /* An only child leaves nobody else's processes behind, in whatever sessions they hide. */
    bool is_only = slot == 0 && loop->supervisor.rules.child_count == 1;

    if (process->has_failed) {
        process->has_failed = false;
        note_end(loop, slot, STATUS_NOT_STARTED);
        guard_loop_feed(loop, SUPERVISOR_EXITED, slot, STATUS_NOT_STARTED);
    }
    if (!process->is_killing)
        return;
    slot_signal(process, SIGKILL);
    if (process->session > 0 && tree_signal(&loop->tree, SIGKILL, is_only ? 0 : process->session) > 0)
        return;
    if (process->pid > 0)
        return; /* dead, and about to be reaped */
    process->is_killing = false;
    guard_loop_feed(loop, SUPERVISOR_SLOT_EMPTY, slot, 0);
}

void guard_loop_sweep(struct guard_loop *loop)
{
    reap(loop);
    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        sweep_slot(loop, i);
    if (!loop->is_killing)
        return;
    if (!tree_is_empty(&loop->tree) && clock_now() >= loop->pass_at)
        kill_pass(loop);
    reap(loop);
    if (!tree_is_empty(&loop->tree))
        return;
    loop->is_killing = false;
    guard_loop_feed(loop, SUPERVISOR_TREE_EMPTY, 0, 0);
}

gavel_ns guard_loop_sweep_at(const struct guard_loop *loop)
{
    gavel_ns now = clock_now();
    bool is_stubborn = loop->is_killing && now - loop->killing_since > PATIENCE;
    gavel_ns next = now + (is_stubborn ? PASS_INTERVAL_LONG : PASS_INTERVAL);
    bool is_busy = false;

    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        is_busy = is_busy || loop->slots[i].is_killing || loop->slots[i].has_failed;
    if (is_busy)
        return next;
    return loop->is_killing ? ns_max(next, loop->pass_at) : NEVER;
}
