/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One loop over the pipes of all processes. A process is started by /bin/sh,
 * which becomes it (exec), so that a signal meets the process itself; it leads
 * a process group, so that what a killed one leaves behind can be ended.
 */
#include "bench/stores/parallel.h"

#include "base/prng.h"
#include "bench/bench.h"
#include "bench/stores/servers.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY PARALLEL_TRIAL_MEMBERS
#define LOOK_NS NS_PER_S

/* Parallel begin one after the other: a hundred processes at once would only measure how they start. */
#define BEGIN_EVERY_NS (150 * NS_PER_MS)

struct parallel_trial_member {
    pid_t pid;     /* 0: not running */
    int fd;        /* what it prints */
    bool is_ended; /* all that printed there have ended */
};

struct parallel_trial {
    size_t contender;
    size_t number;
    size_t trials_left; /* 0: over */
    size_t leader;      /* NOBODY: nobody yet */
    gavel_ns act_at;    /* when it begins, the leader gets its signal, or a wait is given up */
    gavel_ns sent_at;   /* 0: the leader has not got it yet */
    unsigned starts;    /* of processes; 0: it has not begun */
    struct parallel_trial_member members[PARALLEL_TRIAL_MEMBERS];
};

struct parallel {
    const struct member_context *context;
    const struct parallel_plan *plan;
    struct parallel_trial *parallel;
    size_t count;
    struct pollfd *polls; /* of the driver's pipe, then PARALLEL_TRIAL_MEMBERS for each parallel trial */
    struct prng prng;
    int log;
};

void parallel_log(const struct rig *rig, char ret_path[RIG_DIRECTORY_MAX + 32])
{
    (void)snprintf(ret_path, RIG_DIRECTORY_MAX + 32, "%s/parallel.log", rig->directory);
}

static _Noreturn void become(const struct parallel *parallel, const struct parallel_trial *parallel_trial,
                             size_t member, int out, pid_t driver)
{
    const struct parallel_contender *contender = &parallel->plan->contenders[parallel_trial->contender];
    char key[64], id[32], command[SERVER_COMMAND_MAX + 16];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != driver || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(parallel->log, STDERR_FILENO) < 0)
        _exit(1);
    rig_clear_environment();
    (void)snprintf(key, sizeof key, "parallel_trial-%d-%zu-%zu", (int)driver, parallel_trial->contender,
                   parallel_trial->number);
    (void)snprintf(id, sizeof id, "m%zu-%u", member, parallel_trial->starts);
    (void)snprintf(command, sizeof command, "exec %s", contender->command);
    if (setenv("KEY", key, 1) < 0 || setenv("ID", id, 1) < 0 ||
        setenv("PROGRAM", parallel->plan->program, 1) < 0 ||
        (contender->store && setenv("STORE", contender->store, 1) < 0))
        _exit(1);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(struct parallel *parallel, struct parallel_trial *parallel_trial, size_t member)
{
    pid_t driver = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    parallel_trial->starts++;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0); /* a child that has just been forked leads no session */
        become(parallel, parallel_trial, member, ends[1], driver);
    }
    (void)close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        (void)close(ends[0]);
        return false;
    }
    (void)setpgid(pid, pid); /* whichever of the two comes first; after its exec it is done */
    parallel_trial->members[member] = (struct parallel_trial_member){.pid = pid, .fd = ends[0]};
    return true;
}

/* Ends a process with what it has left behind. */
static void finish(struct parallel_trial_member *member)
{
    if (!member->pid)
        return;
    (void)kill(member->pid, SIGKILL); /* not reaped, so both are ours; a group of nobody is none */
    (void)kill(-member->pid, SIGKILL);
    while (waitpid(member->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(member->fd);
    *member = (struct parallel_trial_member){.fd = -1};
}

static void end_parallel_trial(struct parallel_trial *parallel_trial)
{
    for (size_t i = 0; i < PARALLEL_TRIAL_MEMBERS; i++)
        finish(&parallel_trial->members[i]);
    parallel_trial->trials_left = 0;
    parallel_trial->act_at = NEVER;
}

/* What cannot go on is told once for each trial that is missing. */
static void fail_parallel_trial(struct parallel *parallel, struct parallel_trial *parallel_trial,
                                const char *why)
{
    (void)dprintf(parallel->log, "parallel_trial %zu of contender %zu: %s\n", parallel_trial->number,
                  parallel_trial->contender, why); /* the count of failures tells, too */
    for (; parallel_trial->trials_left; parallel_trial->trials_left--)
        bench_result(parallel->context, parallel_trial->contender, PARALLEL_FAILED);
    end_parallel_trial(parallel_trial);
}

static void settle(struct parallel *parallel, struct parallel_trial *parallel_trial, size_t leader,
                   gavel_ns now)
{
    parallel_trial->leader = leader;
    parallel_trial->sent_at = 0;
    parallel_trial->act_at =
        now + prng_between(&parallel->prng, parallel->plan->settle_least, parallel->plan->settle_most);
}

/* It has printed something: it leads. More lines of one that leads say nothing new. */
static void hear(struct parallel *parallel, struct parallel_trial *parallel_trial, size_t member,
                 gavel_ns now)
{
    size_t victim = parallel_trial->leader;

    if (member == victim)
        return;
    if (!parallel_trial->sent_at) {
        settle(parallel, parallel_trial, member, now);
        return;
    }
    bench_result(parallel->context, parallel_trial->contender, now - parallel_trial->sent_at);
    finish(&parallel_trial->members[victim]);
    if (--parallel_trial->trials_left == 0)
        end_parallel_trial(parallel_trial);
    else if (start(parallel, parallel_trial, victim))
        settle(parallel, parallel_trial, member, now);
    else
        fail_parallel_trial(parallel, parallel_trial, "cannot start a process");
}

/* Reads what a process has said, or hears of its end. */
static void attend(struct parallel *parallel, struct parallel_trial *parallel_trial, size_t member,
                   gavel_ns now)
{
    char text[512];
    ssize_t length = read(parallel_trial->members[member].fd, text, sizeof text);

    if (length > 0)
        hear(parallel, parallel_trial, member, now);
    else if (length == 0 && parallel_trial->sent_at && member == parallel_trial->leader)
        parallel_trial->members[member].is_ended = true; /* the victim */
    else if (length == 0 || errno != EAGAIN) /* nothing yet: it has just taken the place of another */
        fail_parallel_trial(parallel, parallel_trial,
                            member == parallel_trial->leader ? "the leader ended by itself"
                                                             : "a standby ended by itself");
}

static void begin(struct parallel *parallel, struct parallel_trial *parallel_trial)
{
    parallel_trial->act_at = clock_now() + parallel->plan->limit;
    for (size_t m = 0; m < PARALLEL_TRIAL_MEMBERS && parallel_trial->trials_left; m++)
        if (!start(parallel, parallel_trial, m))
            fail_parallel_trial(parallel, parallel_trial, "cannot start a process");
}

/* The pause of a parallel trial is over: it begins, the leader gets its signal, or patience ends. */
static void act(struct parallel *parallel, struct parallel_trial *parallel_trial)
{
    if (!parallel_trial->starts) {
        begin(parallel, parallel_trial);
        return;
    }
    if (parallel_trial->leader == NOBODY || parallel_trial->sent_at) {
        fail_parallel_trial(parallel, parallel_trial, "nobody came to lead");
        return;
    }
    parallel_trial->sent_at = clock_now();
    parallel_trial->act_at = parallel_trial->sent_at + parallel->plan->limit;
    (void)kill(parallel_trial->members[parallel_trial->leader].pid,
               parallel->plan->signal); /* it is ours; that it ended shows */
}

static void assemble(struct parallel *parallel)
{
    const struct parallel_plan *plan = parallel->plan;
    gavel_ns at = clock_now();

    for (size_t i = 0; i < parallel->count; i++) {
        struct parallel_trial *parallel_trial = &parallel->parallel[i];
        *parallel_trial = (struct parallel_trial){
            .contender = i % plan->contender_count, .number = i / plan->contender_count, .leader = NOBODY};
        parallel_trial->trials_left =
            (plan->trials + plan->parallel - 1 - parallel_trial->number) / plan->parallel;
        parallel_trial->act_at = parallel_trial->trials_left ? at : NEVER;
        at += parallel_trial->trials_left ? BEGIN_EVERY_NS : 0;
        for (size_t m = 0; m < PARALLEL_TRIAL_MEMBERS; m++)
            parallel_trial->members[m].fd = -1;
    }
}

/* Waits for news of anybody; false when all is over or the driver sends us home. */
static bool turn(struct parallel *parallel)
{
    gavel_ns until = clock_now() + LOOK_NS;
    bool is_over = true;

    for (size_t i = 0; i < parallel->count; i++) {
        const struct parallel_trial *parallel_trial = &parallel->parallel[i];
        is_over = is_over && !parallel_trial->trials_left;
        until = ns_min(until, parallel_trial->act_at);
        for (size_t m = 0; m < PARALLEL_TRIAL_MEMBERS; m++)
            parallel->polls[1 + i * PARALLEL_TRIAL_MEMBERS + m] = (struct pollfd){
                .fd = parallel_trial->members[m].is_ended ? -1 : parallel_trial->members[m].fd,
                .events = POLLIN};
    }
    gavel_ns left = ns_max(until - clock_now(), 0);
    const struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    parallel->polls[0] = (struct pollfd){.fd = parallel->context->control, .events = POLLIN};
    int ready =
        is_over ? 0 : ppoll(parallel->polls, 1 + parallel->count * PARALLEL_TRIAL_MEMBERS, &timeout, NULL);
    gavel_ns now = clock_now();
    if (is_over || (ready > 0 && parallel->polls[0].revents))
        return false;
    for (size_t i = 0; i < parallel->count; i++) {
        struct parallel_trial *parallel_trial = &parallel->parallel[i];
        for (size_t m = 0; m < PARALLEL_TRIAL_MEMBERS && ready > 0; m++) {
            const struct pollfd *poll = &parallel->polls[1 + i * PARALLEL_TRIAL_MEMBERS + m];
            if (poll->revents && parallel_trial->trials_left && parallel_trial->members[m].fd == poll->fd)
                attend(parallel, parallel_trial, m, now);
        }
        if (parallel_trial->act_at <= now && parallel_trial->trials_left)
            act(parallel, parallel_trial);
    }
    return true;
}

int parallel_run(const struct member_context *context, void *user)
{
    const struct parallel_plan *plan = user;
    struct parallel parallel = {
        .context = context, .plan = plan, .count = plan->parallel * plan->contender_count};
    char path[RIG_DIRECTORY_MAX + 32];
    bool is_good;

    parallel_log(context->rig, path);
    prng_seed(&parallel.prng, entropy_u64());
    parallel.parallel = calloc(parallel.count + 1, sizeof *parallel.parallel);
    parallel.polls = calloc(1 + parallel.count * PARALLEL_TRIAL_MEMBERS, sizeof *parallel.polls);
    parallel.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    is_good = parallel.parallel && parallel.polls && parallel.log >= 0;
    if (is_good)
        assemble(&parallel);
    while (is_good && turn(&parallel))
        ;
    for (size_t i = 0; parallel.parallel && i < parallel.count; i++)
        end_parallel_trial(&parallel.parallel[i]);
    if (parallel.log >= 0)
        (void)close(parallel.log); /* what it lacks is of no use any more */
    free(parallel.parallel);
    free(parallel.polls);
    return is_good ? 0 : 1;
}
