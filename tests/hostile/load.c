/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes load: so many processes that always want a processor.
 *
 *     load COUNT SECONDS
 *
 * Of eight, six compute, one forks and one writes to a file and waits for the
 * disk. Each is in a session of its own, for Linux may share the processors
 * between sessions first. They end after that time, by SIGTERM to the first
 * process, or with it, however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_MAX 256
#define SECONDS_MAX 86400
#define BLOCK_SIZE 65536

static _Noreturn void compute(void)
{
    for (volatile uint64_t i = 0;; i++)
        continue;
}

static _Noreturn void fork_on(void)
{
    for (;;) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        if (pid > 0)
            (void)waitpid(pid, NULL, 0); /* our only child */
    }
}

static _Noreturn void write_on(void)
{
    static char block[BLOCK_SIZE];
    const char *temporary = getenv("TMPDIR");
    char path[4096];
    int fd;

    (void)snprintf(path, sizeof path, "%s/gavel-load-XXXXXX", temporary ? temporary : "/tmp");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        compute(); /* there is no room for it */
    (void)unlink(path);
    memset(block, 'x', sizeof block);
    for (uint64_t i = 0;; i++)
        /* A full disk is as good: the call costs what it costs. */
        if (pwrite(fd, block, sizeof block, (off_t)(i % 16 * sizeof block)) < 0 || fdatasync(fd) < 0)
            (void)sched_yield();
}

static _Noreturn void work(unsigned number, unsigned seconds, pid_t parent)
{
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before the line above */
    (void)setsid();
    (void)sigemptyset(&none);
    (void)signal(SIGALRM, SIG_DFL); /* whatever is inherited: nobody computes for ever */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)alarm(seconds);
    if (number % 8 == 6)
        fork_on();
    if (number % 8 == 7)
        write_on();
    compute();
}

/* The number in the text, from 1 to most; 0 if it is none. */
static unsigned number_of(const char *text, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    return *text && !*end && value <= most ? (unsigned)value : 0;
}

int main(int argc, char **argv)
{
    unsigned count = argc == 3 ? number_of(argv[1], COUNT_MAX) : 0;
    unsigned seconds = argc == 3 ? number_of(argv[2], SECONDS_MAX) : 0;
    pid_t self = getpid();

    if (!count || !seconds) {
        (void)fprintf(stderr, "usage: load COUNT SECONDS, at most %d for %d s\n", COUNT_MAX, SECONDS_MAX);
        return 2;
    }
    (void)signal(SIGCHLD, SIG_DFL);
    for (unsigned i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0)
            work(i, seconds, self);
        if (pid < 0) {
            (void)fprintf(stderr, "load: cannot start process %u: %s\n", i + 1, strerror(errno));
            return 1; /* the others end with us */
        }
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
