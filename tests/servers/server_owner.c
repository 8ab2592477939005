/* SPDX-License-Identifier: Apache-2.0 */

#include "server_owner.h"

#include "commands.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct state {
    const struct server_owner *server_owner;
    int signal_fd;
    pid_t starter; /* the command that runs; 0: none */
    bool is_over;
    struct commands commands;
};

static void answer(const struct state *state, bool is_good)
{
    const char *text = is_good ? "good\n" : "bad\n";

    (void)!write(state->server_owner->out_fd, text, strlen(text)); /* who has died needs none */
}

/* The signals that we wait for come by a descriptor, and all others as usual. */
static int open_signals(sigset_t *ret_before)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, ret_before))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void run_starter(struct state *state)
{
    state->starter = fork();
    if (state->starter == 0) {
        sigset_t none;

        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        /* What it says is for people; standard output may be the way of the answers. */
        if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
            _exit(126);
        /* execvp() changes nothing of them: its type is older than const. */
        (void)execvp(state->server_owner->command[0], (char *const *)(uintptr_t)state->server_owner->command);
        (void)fprintf(stderr, "%s: %s\n", state->server_owner->command[0], strerror(errno));
        _exit(127);
    }
    if (state->starter < 0) {
        state->starter = 0;
        answer(state, false);
    }
}

/* The process of a pid file, if it is a child of ours: then no other can have its id. 0: it is not. */
static pid_t child_of(const struct state *state, const char *name)
{
    siginfo_t info;
    char path[300];
    long pid = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s.pid", state->server_owner->directory, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    (void)fclose(file);
    if (pid <= 1 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
        return 0;
    return (pid_t)pid;
}

static bool send_signal(const struct state *state, const char *name, const char *signal_name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
    pid_t pid = strchr(name, '/') ? 0 : child_of(state, name);
    siginfo_t info;

    if (pid == 0)
        return false;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (strcmp(signals[i].name, signal_name) != 0)
            continue;
        if (kill(pid, signals[i].number))
            return false;
        if (signals[i].number == SIGKILL || signals[i].number == SIGTERM)
            (void)waitpid(pid, NULL, 0);
        /* Until all its threads are stopped, which takes a while on a busy machine, some go on answering. */
        if (signals[i].number == SIGSTOP)
            (void)waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT);
        return true;
    }
    return false;
}

static void obey(void *user, char *line)
{
    struct state *state = user;
    char name[64];
    char signal_name[16];

    if (state->starter)
        answer(state, false); /* one after the other */
    else if (strcmp(line, "up") == 0)
        run_starter(state);
    else if (sscanf(line, "signal %63s %15s", name, signal_name) == 2)
        answer(state, send_signal(state, name, signal_name));
    else
        answer(state, false);
}

static void take_signal(struct state *state)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    if (read(state->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo != SIGCHLD) {
        state->is_over = true;
        return;
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != state->starter)
            continue; /* a server that died; whoever asks it will notice */
        state->starter = 0;
        answer(state, WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Sends SIGKILL to all children there are. */
static void kill_children(void)
{
    char path[64];
    FILE *file;
    long pid;

    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    file = fopen(path, "re");
    if (!file)
        return;
    while (fscanf(file, "%ld", &pid) == 1)
        (void)kill((pid_t)pid, SIGKILL); /* not reaped by anyone but us, so it is still that one */
    (void)fclose(file);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* The children of each that dies become ours, so this goes on until there is none. */
static int end_all(const struct server_owner *server_owner)
{
    do
        kill_children();
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    return nftw(server_owner->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : 1;
}

int server_owner_run(const struct server_owner *server_owner)
{
    struct state state = {.server_owner = server_owner};
    pid_t parent = getppid();
    sigset_t before;

    state.signal_fd = open_signals(&before);
    if (state.signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) || prctl(PR_SET_PDEATHSIG, SIGTERM))
        return 1;
    (void)setsid(); /* what a terminal sends to the test is not for us: we outlive it, shortly */
    (void)signal(SIGPIPE, SIG_IGN);
    if (getppid() != parent)
        state.is_over = true; /* it died before we asked to be told */
    while (!state.is_over) {
        struct pollfd fds[] = {{.fd = server_owner->in_fd, .events = POLLIN},
                               {.fd = state.signal_fd, .events = POLLIN}};

        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            take_signal(&state);
        if (fds[0].revents && !commands_read(&state.commands, server_owner->in_fd, obey, &state))
            state.is_over = true;
    }
    return end_all(server_owner);
}
