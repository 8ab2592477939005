/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One loop over the pipes of all processes. A process is started by /bin/sh,
 * which becomes it (exec), so that a signal meets the process itself; it leads
 * a process group, so that what a killed one leaves behind can be ended.
 */
#include "bench/stores/lanes.h"

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

#define NOBODY LANE_MEMBERS
#define LOOK_NS NS_PER_S

/* Lanes begin one after the other: a hundred processes at once would only measure how they start. */
#define BEGIN_EVERY_NS (150 * NS_PER_MS)

struct lane_member {
    pid_t pid;     /* 0: not running */
    int fd;        /* what it prints */
    bool is_ended; /* all that printed there have ended */
};

struct lane {
    size_t contender;
    size_t number;
    size_t trials_left; /* 0: over */
    size_t leader;      /* NOBODY: nobody yet */
    gavel_ns act_at;    /* when it begins, the leader gets its signal, or a wait is given up */
    gavel_ns sent_at;   /* 0: the leader has not got it yet */
    unsigned starts;    /* of processes; 0: it has not begun */
    struct lane_member members[LANE_MEMBERS];
};

struct lanes {
    const struct post *post;
    const struct lanes_plan *plan;
    struct lane *lanes;
    size_t count;
    struct pollfd *polls; /* of the driver's pipe, then LANE_MEMBERS for each lane */
    struct prng prng;
    int log;
};

void lanes_log(const struct crew *crew, char ret_path[CREW_FOLDER_MAX + 32])
{
    (void)snprintf(ret_path, CREW_FOLDER_MAX + 32, "%s/lanes.log", crew->folder);
}

static _Noreturn void become(const struct lanes *lanes, const struct lane *lane, size_t member, int out,
                             pid_t driver)
{
    const struct lanes_contender *contender = &lanes->plan->contenders[lane->contender];
    char key[64], id[32], command[SERVER_COMMAND_MAX + 16];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != driver || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(lanes->log, STDERR_FILENO) < 0)
        _exit(1);
    crew_clear_environment();
    (void)snprintf(key, sizeof(key), "lane-%d-%zu-%zu", (int)driver, lane->contender, lane->number);
    (void)snprintf(id, sizeof(id), "m%zu-%u", member, lane->starts);
    (void)snprintf(command, sizeof(command), "exec %s", contender->command);
    if (setenv("KEY", key, 1) < 0 || setenv("ID", id, 1) < 0 ||
        setenv("PROGRAM", lanes->plan->program, 1) < 0 ||
        (contender->store && setenv("STORE", contender->store, 1) < 0))
        _exit(1);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static bool start(struct lanes *lanes, struct lane *lane, size_t member)
{
    pid_t driver = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    lane->starts++;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0); /* a child that has just been forked leads no session */
        become(lanes, lane, member, ends[1], driver);
    }
    (void)close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        (void)close(ends[0]);
        return false;
    }
    (void)setpgid(pid, pid); /* whichever of the two comes first; after its exec it is done */
    lane->members[member] = (struct lane_member){.pid = pid, .fd = ends[0]};
    return true;
}

/* Ends a process with what it has left behind. */
static void finish(struct lane_member *member)
{
    if (!member->pid)
        return;
    (void)kill(member->pid, SIGKILL); /* not reaped, so both are ours; a group of nobody is none */
    (void)kill(-member->pid, SIGKILL);
    while (waitpid(member->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(member->fd);
    *member = (struct lane_member){.fd = -1};
}

static void end_lane(struct lane *lane)
{
    for (size_t i = 0; i < LANE_MEMBERS; i++)
        finish(&lane->members[i]);
    lane->trials_left = 0;
    lane->act_at = NEVER;
}

/* What cannot go on is told once for each trial that is missing. */
static void fail_lane(struct lanes *lanes, struct lane *lane, const char *why)
{
    (void)dprintf(lanes->log, "lane %zu of contender %zu: %s\n", lane->number, lane->contender,
                  why); /* the count of failures tells, too */
    for (; lane->trials_left; lane->trials_left--)
        bench_result(lanes->post, lane->contender, LANES_FAILED);
    end_lane(lane);
}

static void settle(struct lanes *lanes, struct lane *lane, size_t leader, gavel_ns now)
{
    lane->leader = leader;
    lane->sent_at = 0;
    lane->act_at = now + prng_between(&lanes->prng, lanes->plan->settle_least, lanes->plan->settle_most);
}

/* It has printed something: it leads. More lines of one that leads say nothing new. */
static void hear(struct lanes *lanes, struct lane *lane, size_t member, gavel_ns now)
{
    size_t victim = lane->leader;

    if (member == victim)
        return;
    if (!lane->sent_at) {
        settle(lanes, lane, member, now);
        return;
    }
    bench_result(lanes->post, lane->contender, now - lane->sent_at);
    finish(&lane->members[victim]);
    if (--lane->trials_left == 0)
        end_lane(lane);
    else if (start(lanes, lane, victim))
        settle(lanes, lane, member, now);
    else
        fail_lane(lanes, lane, "cannot start a process");
}

/* Reads what a process has said, or hears of its end. */
static void attend(struct lanes *lanes, struct lane *lane, size_t member, gavel_ns now)
{
    char text[512];
    ssize_t length = read(lane->members[member].fd, text, sizeof(text));

    if (length > 0)
        hear(lanes, lane, member, now);
    else if (length == 0 && lane->sent_at && member == lane->leader)
        lane->members[member].is_ended = true; /* the victim */
    else if (length == 0 || errno != EAGAIN)   /* nothing yet: it has just taken the place of another */
        fail_lane(lanes, lane,
                  member == lane->leader ? "the leader ended by itself" : "a standby ended by itself");
}

static void begin(struct lanes *lanes, struct lane *lane)
{
    lane->act_at = clock_now() + lanes->plan->limit;
    for (size_t m = 0; m < LANE_MEMBERS && lane->trials_left; m++)
        if (!start(lanes, lane, m))
            fail_lane(lanes, lane, "cannot start a process");
}

/* The pause of a lane is over: it begins, the leader gets its signal, or patience ends. */
static void act(struct lanes *lanes, struct lane *lane)
{
    if (!lane->starts) {
        begin(lanes, lane);
        return;
    }
    if (lane->leader == NOBODY || lane->sent_at) {
        fail_lane(lanes, lane, "nobody came to lead");
        return;
    }
    lane->sent_at = clock_now();
    lane->act_at = lane->sent_at + lanes->plan->limit;
    (void)kill(lane->members[lane->leader].pid, lanes->plan->signal); /* it is ours; that it ended shows */
}

static void assemble(struct lanes *lanes)
{
    const struct lanes_plan *plan = lanes->plan;
    gavel_ns at = clock_now();

    for (size_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lanes[i];
        *lane = (struct lane){
            .contender = i % plan->contender_count, .number = i / plan->contender_count, .leader = NOBODY};
        lane->trials_left = (plan->trials + plan->lanes - 1 - lane->number) / plan->lanes;
        lane->act_at = lane->trials_left ? at : NEVER;
        at += lane->trials_left ? BEGIN_EVERY_NS : 0;
        for (size_t m = 0; m < LANE_MEMBERS; m++)
            lane->members[m].fd = -1;
    }
}

/* Waits for news of anybody; false when all is over or the driver sends us home. */
static bool turn(struct lanes *lanes)
{
    gavel_ns until = clock_now() + LOOK_NS;
    bool is_over = true;

    for (size_t i = 0; i < lanes->count; i++) {
        const struct lane *lane = &lanes->lanes[i];
        is_over = is_over && !lane->trials_left;
        until = ns_min(until, lane->act_at);
        for (size_t m = 0; m < LANE_MEMBERS; m++)
            lanes->polls[1 + i * LANE_MEMBERS + m] =
                (struct pollfd){.fd = lane->members[m].is_ended ? -1 : lane->members[m].fd, .events = POLLIN};
    }
    gavel_ns left = ns_max(until - clock_now(), 0);
    const struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    lanes->polls[0] = (struct pollfd){.fd = lanes->post->control, .events = POLLIN};
    int ready = is_over ? 0 : ppoll(lanes->polls, 1 + lanes->count * LANE_MEMBERS, &timeout, NULL);
    gavel_ns now = clock_now();
    if (is_over || (ready > 0 && lanes->polls[0].revents))
        return false;
    for (size_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lanes[i];
        for (size_t m = 0; m < LANE_MEMBERS && ready > 0; m++) {
            const struct pollfd *poll = &lanes->polls[1 + i * LANE_MEMBERS + m];
            if (poll->revents && lane->trials_left && lane->members[m].fd == poll->fd)
                attend(lanes, lane, m, now);
        }
        if (lane->act_at <= now && lane->trials_left)
            act(lanes, lane);
    }
    return true;
}

int lanes_run(const struct post *post, void *user)
{
    const struct lanes_plan *plan = user;
    struct lanes lanes = {.post = post, .plan = plan, .count = plan->lanes * plan->contender_count};
    char path[CREW_FOLDER_MAX + 32];
    bool is_good;

    lanes_log(post->crew, path);
    prng_seed(&lanes.prng, entropy_u64());
    lanes.lanes = calloc(lanes.count + 1, sizeof(*lanes.lanes));
    lanes.polls = calloc(1 + lanes.count * LANE_MEMBERS, sizeof(*lanes.polls));
    lanes.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    is_good = lanes.lanes && lanes.polls && lanes.log >= 0;
    if (is_good)
        assemble(&lanes);
    while (is_good && turn(&lanes))
        ;
    for (size_t i = 0; lanes.lanes && i < lanes.count; i++)
        end_lane(&lanes.lanes[i]);
    if (lanes.log >= 0)
        (void)close(lanes.log); /* what it lacks is of no use any more */
    free(lanes.lanes);
    free(lanes.polls);
    return is_good ? 0 : 1;
}
