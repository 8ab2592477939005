/* SPDX-License-Identifier: Apache-2.0 */

/* What the supervisor says is done here: processes are started, signalled, killed and buried. */
#include "guard/keeper.h"

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

void post_signal(const struct post *post, int signal_number)
{
    if (post->pid <= 0)
        return;
    if (post->pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, post->pidfd, signal_number, NULL,
                      0); /* it may have died just now */
    else
        (void)kill(post->pid, signal_number); /* a child of ours that is not reaped: the number is its own */
}

/* To its process group; before it has one, to itself. A stopped process has to run to obey. */
static void post_terminate(const struct post *post, int signal_number)
{
    if (post->pid <= 0)
        return;
    if (kill(-post->pid, signal_number) < 0)
        post_signal(post, signal_number);
    if (kill(-post->pid, SIGCONT) < 0)
        post_signal(post, SIGCONT);
}

void post_forget_readiness(struct post *post)
{
    if (post->ready_fd >= 0)
        (void)close(post->ready_fd); /* only read from */
    post->ready_fd = -1;
}

static void post_clear(struct post *post)
{
    if (post->pidfd >= 0)
        (void)close(post->pidfd); /* nothing was written to it */
    post->pidfd = -1;
    post->pid = 0;
    post_forget_readiness(post);
}

static const struct guard_child *child_of(const struct keeper *keeper, const struct supervisor_action *action)
{
    const struct guard_spec *spec = keeper->start.spec;

    if (action->slot == SLOT_HOOK)
        return &spec->children[0];
    return &spec->children[action->slot == SLOT_CHECK ? action->child : action->slot];
}

static const struct guard_command *command_of(const struct keeper *keeper,
                                              const struct supervisor_action *action)
{
    const struct guard_spec *spec = keeper->start.spec;

    if (action->slot == SLOT_HOOK)
        return action->demoted ? &spec->on_demoted : &spec->on_elected;
    if (action->slot == SLOT_CHECK)
        return &spec->children[action->child].ready;
    return &spec->children[action->slot].command;
}

static void start_process(struct keeper *keeper, const struct supervisor_action *action)
{
    struct guard_spec *spec = keeper->start.spec;
    struct post *post = &keeper->posts[action->slot];
    struct spawn spawn = {
        .command = command_of(keeper, action),
        .child = child_of(keeper, action),
        .tree = &keeper->tree,
        .signal_mask = &spec->signal_mask,
        .ignores_sigpipe = spec->ignores_sigpipe,
        .descriptors = &keeper->descriptors,
        .stdin_fd = keeper->stdin_fd,
        .stdout_fd = keeper->stdout_fd,
        .ready_fd = -1,
    };
    bool tells_ready = action->slot < CHILDREN_MAX && spec->rules.children[action->slot].ready == READY_BY_FD;
    int ends[2] = {-1, -1};

    (void)snprintf(spec->epoch, sizeof spec->epoch, "GAVEL_EPOCH=%llu",
                   (unsigned long long)(spec->is_single ? 0 : keeper->supervisor.epoch));
    post_clear(post);
    if (action->slot == SLOT_HOOK)
        keeper->is_hook_demoted = action->demoted;
    if (tells_ready && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        keeper->spawn_error = errno;
        post->has_failed = true;
        return;
    }
    spawn.ready_fd = ends[1];
    post->pid = spawn_process(&spawn, &post->pidfd);
    if (post->pid < 0)
        keeper->spawn_error = errno;
    if (tells_ready)
        (void)close(ends[1]); /* the child has it now */
    post->ready_fd = ends[0];
    if (post->pid < 0) {
        post_clear(post);
        post->has_failed = true;
        return;
    }
    post->session = post->pid;
}

/*
 * One pass of SIGKILL. Thousands take their time to die, and passes over them
 * would only take the processor from them, at our precedence: as long as they
 * do not become more, the dying have twice as long as the pass has taken.
 */
static void kill_pass(struct keeper *keeper)
{
    gavel_ns began = clock_now();
    size_t count = tree_signal(&keeper->tree, SIGKILL, 0); /* whether anything is left is asked elsewhere */
    gavel_ns now = clock_now();
    bool has_grown = keeper->pass_peak > 0 && count > keeper->pass_peak;

    keeper->pass_at = has_grown ? now : now + 2 * (now - began);
    if (count > keeper->pass_peak)
        keeper->pass_peak = count;
}

/* Once, when the stop has begun; the signal goes first. */
static void plan_death(struct keeper *keeper)
{
    uint64_t pages = 0;
    size_t count;

    if (keeper->instants.allowance != 0)
        return;
    count = tree_count(&keeper->tree, instants_count_max(&keeper->instants), &pages);
    instants_allow(&keeper->instants, count, pages);
}

static void carry_out(struct keeper *keeper, const struct supervisor_action *action)
{
    struct post *post = &keeper->posts[action->slot];

    switch (action->kind) {
    case SUPERVISOR_SPAWN:
        start_process(keeper, action);
        break;
    case SUPERVISOR_TERM_SLOT:
        post_terminate(post, child_of(keeper, action)->term_signal);
        plan_death(keeper);
        break;
    case SUPERVISOR_KILL_SLOT:
        post->is_killing = true;
        post_signal(post, SIGKILL);
        break;
    case SUPERVISOR_KILL_TREE:
        keeper->is_killing = true;
        keeper->killing_since = clock_now();
        for (size_t i = 0; i < SUPERVISOR_SLOTS; i++) {
            post_signal(&keeper->posts[i], SIGKILL);
            keeper->posts[i].is_killing = false;
        }
        keeper_spare(keeper);
        keeper->pass_peak = 0;
        kill_pass(keeper); /* repeated until nothing is left */
        break;
    }
}

void keeper_carry_out(struct keeper *keeper)
{
    /* A copy: what is carried out may lead to the next step. */
    const struct supervisor_actions actions = keeper->actions;

    for (size_t i = 0; i < actions.count; i++)
        carry_out(keeper, &actions.items[i]);
}

/* How it ended, for the elector to tell. */
static void note_end(struct keeper *keeper, size_t slot, int status)
{
    if (slot == 0)
        keeper->last_status = status;
    if (slot == SLOT_HOOK && keeper->is_hook_demoted)
        keeper->demoted_status = status;
    if (slot < CHILDREN_MAX) {
        keeper->ended_slot = slot;
        keeper->ended_status = status;
    }
}

/* Takes the dead. Those that are no child of ours by name were orphans of the tree. */
static void reap(struct keeper *keeper)
{
    int status;
    pid_t pid;

    while (tree_reap(&pid, &status)) {
        for (size_t i = 0; i < SUPERVISOR_SLOTS; i++) {
            if (keeper->posts[i].pid != pid)
                continue;
            post_clear(&keeper->posts[i]);
            note_end(keeper, i, status);
            keeper_feed(keeper, SUPERVISOR_EXITED, i, status);
            break;
        }
    }
}

static void sweep_slot(struct keeper *keeper, size_t slot)
{
    struct post *post = &keeper->posts[slot];
    /* An only child leaves nobody else's processes behind, in whatever sessions they hide. */
    bool is_only = slot == 0 && keeper->supervisor.rules.child_count == 1;

    if (post->has_failed) {
        post->has_failed = false;
        note_end(keeper, slot, STATUS_NOT_STARTED);
        keeper_feed(keeper, SUPERVISOR_EXITED, slot, STATUS_NOT_STARTED);
    }
    if (!post->is_killing)
        return;
    post_signal(post, SIGKILL);
    if (post->session > 0 && tree_signal(&keeper->tree, SIGKILL, is_only ? 0 : post->session) > 0)
        return;
    if (post->pid > 0)
        return; /* dead, and about to be reaped */
    post->is_killing = false;
    keeper_feed(keeper, SUPERVISOR_SLOT_EMPTY, slot, 0);
}

void keeper_sweep(struct keeper *keeper)
{
    reap(keeper);
    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        sweep_slot(keeper, i);
    if (!keeper->is_killing)
        return;
    if (!tree_is_empty(&keeper->tree) && clock_now() >= keeper->pass_at)
        kill_pass(keeper);
    reap(keeper);
    if (!tree_is_empty(&keeper->tree))
        return;
    keeper->is_killing = false;
    keeper_feed(keeper, SUPERVISOR_TREE_EMPTY, 0, 0);
}

gavel_ns keeper_sweep_at(const struct keeper *keeper)
{
    gavel_ns now = clock_now();
    bool is_stubborn = keeper->is_killing && now - keeper->killing_since > PATIENCE;
    gavel_ns next = now + (is_stubborn ? PASS_INTERVAL_LONG : PASS_INTERVAL);
    bool is_busy = false;

    for (size_t i = 0; i < SUPERVISOR_SLOTS; i++)
        is_busy = is_busy || keeper->posts[i].is_killing || keeper->posts[i].has_failed;
    if (is_busy)
        return next;
    return keeper->is_killing ? ns_max(next, keeper->pass_at) : NEVER;
}
