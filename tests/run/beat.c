/* SPDX-License-Identifier: Apache-2.0 */

/*
 * beat LOG [OPTION…]: the command under test. It appends beats to the log
 * (beat_log.h), one each millisecond, and behaves as badly as it is told:
 *
 *   --ignore-term    ignores SIGTERM
 *   --sessions N     starts N children in sessions of their own that beat too and ignore SIGTERM
 *   --daemon         starts one that forks twice, so that its parent is gone; it beats and ignores SIGTERM
 *   --children N     starts N children that only wait, and ignore SIGTERM
 *   --comet          starts one that for ever forks a successor in a new session and ends
 *   --flood          writes to stdout as much as it takes, between beats
 *   --count N        ends after N beats; 0: as soon as the others are started
 *   --exit CODE      with this exit code
 *   --ready FD       writes a line to that descriptor after its first beat
 *   --every US       beats so often, in microseconds
 *
 * The epoch is $GAVEL_EPOCH, the member $BEAT_MEMBER. Whatever happens to the
 * test, each process ends after ten minutes at the latest.
 */
#include "beat_log.h"
#include "os/clock.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIFETIME_S 600
#define FOR_EVER (-1)

struct beater {
    int log;
    uint64_t epoch;
    uint16_t member;
    long every_us;
};

struct options {
    const char *path;
    bool ignores_term;
    long sessions;
    bool has_daemon;
    long children;
    bool has_comet;
    bool floods;
    long count;
    int exit_code;
    int ready_fd;
    long every_us;
};

static void die(const char *what)
{
    fprintf(stderr, "beat: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void nap(long us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    (void)nanosleep(&pause, NULL); /* waking early does no harm */
}

static void write_beat(const struct beater *beater, enum beat_role role, uint32_t number)
{
    struct beat beat = {
        .epoch = beater->epoch,
        .pid = getpid(),
        .member = beater->member,
        .role = (uint16_t)role,
        .number = number,
    };

    beat.at = clock_now();
    if (!beat_log_write(beater->log, &beat))
        die("cannot write to the log");
}

static void beat_for_ever(const struct beater *beater, enum beat_role role)
{
    for (uint32_t number = 0;; number++) {
        write_beat(beater, role, number);
        nap(beater->every_us);
    }
}

/* In the parent returns the child's pid, in the child 0; there is no third case. */
static pid_t fork_or_die(void)
{
    pid_t pid = fork();

    if (pid < 0)
        die("cannot fork");
    if (pid == 0)
        (void)alarm(LIFETIME_S); /* a child does not inherit its parent's */
    return pid;
}

static void start_sessions(const struct beater *beater, long count)
{
    for (long i = 0; i < count; i++) {
        if (fork_or_die() == 0) {
            (void)signal(SIGTERM, SIG_IGN);
            if (setsid() < 0)
                die("cannot start a session");
            beat_for_ever(beater, BEAT_SESSION);
        }
    }
}

static void start_daemon(const struct beater *beater)
{
    if (fork_or_die() > 0)
        return;
    (void)signal(SIGTERM, SIG_IGN);
    if (setsid() < 0)
        die("cannot start a session");
    if (fork_or_die() > 0)
        _exit(0);
    beat_for_ever(beater, BEAT_DAEMON);
}

static void start_children(long count)
{
    for (long i = 0; i < count; i++) {
        if (fork_or_die() == 0) {
            (void)signal(SIGTERM, SIG_IGN);
            for (;;)
                (void)pause();
        }
    }
}

/* Never in one place for long: each one forks the next, in a session of its own, and is gone. */
static void start_comet(void)
{
    if (fork_or_die() > 0)
        return;
    (void)signal(SIGTERM, SIG_IGN);
    for (long steps = 0; steps < LIFETIME_S * 1000L; steps++) {
        (void)setsid(); /* fails for who has one already */
        if (fork_or_die() > 0)
            _exit(0);
        nap(200);
    }
    _exit(0);
}

static void flood(void)
{
    static char text[65536];

    if (!text[0]) {
        memset(text, 'x', sizeof text);
        for (size_t i = 79; i < sizeof text; i += 80)
            text[i] = '\n';
    }
    if (write(STDOUT_FILENO, text, sizeof text) < 0 && errno != EAGAIN)
        die("cannot write to stdout");
}

static long number_of(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 0) {
        fprintf(stderr, "beat: \"%s\" is no number\n", text);
        exit(2);
    }
    return value;
}

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"ignore-term", no_argument, NULL, 'i'},
        {"sessions", required_argument, NULL, 's'},
        {"daemon", no_argument, NULL, 'd'},
        {"children", required_argument, NULL, 'k'},
        {"comet", no_argument, NULL, 'c'},
        {"flood", no_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'n'},
        {"exit", required_argument, NULL, 'e'},
        {"ready", required_argument, NULL, 'r'},
        {"every", required_argument, NULL, 'u'},
        {0},
    };
    int letter;

    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (letter) {
        case 'i':
            options->ignores_term = true;
            break;
        case 's':
            options->sessions = number_of(optarg);
            break;
        case 'd':
            options->has_daemon = true;
            break;
        case 'k':
            options->children = number_of(optarg);
            break;
        case 'c':
            options->has_comet = true;
            break;
        case 'f':
            options->floods = true;
            break;
        case 'n':
            options->count = number_of(optarg);
            break;
        case 'e':
            options->exit_code = (int)number_of(optarg);
            break;
        case 'r':
            options->ready_fd = (int)number_of(optarg);
            break;
        case 'u':
            options->every_us = number_of(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc - 1) {
        fprintf(stderr, "beat: say into which log\n");
        exit(2);
    }
    options->path = argv[optind];
}

int main(int argc, char **argv)
{
    struct options options = {.count = FOR_EVER, .ready_fd = -1, .every_us = 1000};
    const char *epoch = getenv("GAVEL_EPOCH"), *member = getenv("BEAT_MEMBER");
    struct beater beater = {0};

    parse(argc, argv, &options);
    (void)alarm(LIFETIME_S);
    if (options.ignores_term)
        (void)signal(SIGTERM, SIG_IGN);
    beater.log = beat_log_open(options.path);
    if (beater.log < 0)
        die(options.path);
    beater.epoch = epoch ? strtoull(epoch, NULL, 10) : 0;
    beater.member = member ? (uint16_t)number_of(member) : 0;
    beater.every_us = options.every_us;
    if (options.count != 0)
        write_beat(&beater, BEAT_MAIN, 0);
    start_sessions(&beater, options.sessions);
    if (options.has_daemon)
        start_daemon(&beater);
    start_children(options.children);
    if (options.has_comet)
        start_comet();
    if (options.ready_fd >= 0 && write(options.ready_fd, "ready\n", 6) != 6)
        die("cannot say that it is ready");
    for (long number = 1; options.count == FOR_EVER || number < options.count; number++) {
        nap(options.every_us);
        if (options.floods)
            flood();
        write_beat(&beater, BEAT_MAIN, (uint32_t)number);
    }
    return options.exit_code;
}
