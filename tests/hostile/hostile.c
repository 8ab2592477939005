/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command in a world that is legal and unkind: what a process inherits
 * from careless parents. tools/test --hostile starts every test in it.
 *
 *     hostile ignored COMMAND…    every signal that can be is ignored, as nohup, shells (jobs in the
 *                                 background), Python, systemd and old daemons do it; no standard input at
 *                                 all: the descriptor is closed
 *     hostile blocked COMMAND…    every signal is blocked, as threads leave it behind that fork with a mask
 * of their own; the standard input is at its end
 *
 * Before either word, "--user ID" makes it an ordinary user and group, without a home.
 *
 * In both there is no terminal. What nobody ignores by accident stays as it
 * is: SIGTERM, and the signals that tell of a crash.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_NO_COMMAND 127

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
    _exit(EXIT_NO_COMMAND);
}

static bool tells_of_a_crash(int number)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        if (number == crashes[i])
            return true;
    return false;
}

static void ignore_signals(void)
{
    for (int number = 1; number < SIGRTMIN; number++)
        if (number != SIGTERM && !tells_of_a_crash(number))
            (void)signal(number, SIG_IGN); /* fails for SIGKILL and SIGSTOP */
    (void)close(STDIN_FILENO);             /* nothing was written to it */
}

static void block_signals(void)
{
    sigset_t set;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)sigfillset(&set); /* with valid signals none of these fails */
    for (int number = 1; number < SIGRTMIN; number++)
        if (tells_of_a_crash(number))
            (void)sigdelset(&set, number);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        give_up("/dev/null");
}

static void become(const char *text)
{
    char *end;
    long id = strtol(text, &end, 10);

    if (*end || id <= 0) {
        (void)fprintf(stderr, "hostile: \"%s\" is not the number of an ordinary user\n", text);
        _exit(EXIT_USAGE);
    }
    if (setgroups(0, NULL) < 0 || setgid((gid_t)id) < 0 || setuid((uid_t)id) < 0)
        give_up("cannot become that user");
    /* As nobody has them: not those of whoever became it. */
    if (setenv("HOME", "/nonexistent", 1) < 0 ||
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0)
        give_up("the environment");
}

int main(int argc, char **argv)
{
    int at = 1;
    const char *world;

    if (at + 1 < argc && strcmp(argv[at], "--user") == 0) {
        become(argv[at + 1]);
        at += 2;
    }
    world = at < argc ? argv[at++] : "";
    if (at >= argc || (strcmp(world, "ignored") != 0 && strcmp(world, "blocked") != 0)) {
        (void)fprintf(stderr, "usage: hostile [--user ID] ignored|blocked COMMAND [ARGUMENT]...\n");
        return EXIT_USAGE;
    }
    (void)setsid(); /* fails for the leader of a group; Meson starts each test as that of a new session */
    if (strcmp(world, "ignored") == 0)
        ignore_signals();
    else
        block_signals();
    (void)execvp(argv[at], argv + at);
    give_up(argv[at]);
}
