/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard process with a node that is a function of this test: it says in
 * shared memory who it is and whom to tell, writes what it does into a pipe,
 * and then dies in one way or another. The guard runs in a process of its own,
 * the test is its service manager and its peer.
 */
#include "daemon/guard/guard.h"
#include "daemon/node/node.h"
#include "os/clock.h"
#include "wire/peer.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CLUSTER 7
#define GENERATION 3
#define NODE 42
#define LIMIT_MS 60000

enum part {
    PART_CRASH,      /* gets up, says so, is killed by itself; the fourth ends in order */
    PART_EXIT,       /* gets up and ends with `code` */
    PART_NEVER_UP,   /* ends with `code` before it is up */
    PART_BUSY,       /* gets up and crashes; the second finds its port taken, the third ends in order */
    PART_NO_NUMBER,  /* dies before it has an incarnation; the second ends in order */
    PART_WAIT,       /* gets up and waits for SIGTERM, which ends it with 0; tells of SIGHUP */
    PART_STUBBORN,   /* gets up and ignores SIGTERM */
    PART_LEAVES_SON, /* crashes with a grandchild that has its own session and ignores what it can */
    PART_SIGNAL,     /* gets up and is killed by signal `code`; the second ends in order */
    PART_HANGS,      /* gets up, ticks until SIGHUP and then does nothing; the second ends in order */
};

struct fixture {
    struct shared_memory *memory;
    struct guard_process settings;
    enum part part;
    int code;
    int pipe[2]; /* what nodes say: one letter each, with a number */
    int socket;  /* the peer */
    pid_t guard;
    int guard_log; /* its reading end */
    char log[16384];
    size_t log_length;
};

struct word {
    char what;
    int64_t number;
    gavel_ns at;
};

static void say(const struct fixture *f, char what, int64_t number)
{
    struct word word = {.what = what, .number = number, .at = clock_now()};

    if (write(f->pipe[1], &word, sizeof word) != (ssize_t)sizeof word)
        _exit(99);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, timeout_ms) == 1;
}

static struct word hear(const struct fixture *f, char what)
{
    struct word word = {0};

    if (!is_readable(f->pipe[0], LIMIT_MS))
        fail_msg("nothing was heard, where '%c' should be", what);
    assert_int_equal(read(f->pipe[0], &word, sizeof word), sizeof word);
    assert_int_equal(word.what, what);
    return word;
}

/* A process in a session of its own; returns when it is there. */
static void leave_son(const struct fixture *f)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        _exit(96);
    if (fork() != 0) {
        (void)close(ends[1]);
        (void)is_readable(ends[0], LIMIT_MS); /* its end */
        return;
    }
    (void)alarm(60); /* should the guard not do what it is tested for */
    (void)setsid();
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    say(f, 's', getpid());
    (void)close(ends[1]);
    for (;;)
        (void)pause();
}

static _Noreturn void crash(void)
{
    (void)raise(SIGKILL);
    abort();
}

static volatile sig_atomic_t hung_up, terminated;
static void on_signal(int number)
{
    if (number == SIGHUP)
        hung_up++;
    else
        terminated = 1;
}

static int wait_for_signals(const struct fixture *f)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, before;
    int told = 0;

    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, &before);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    say(f, 'w', getpgrp() == getpid());
    while (!terminated) {
        sigsuspend(&before);
        if (hung_up > told)
            say(f, 'h', told = hung_up);
    }
    return 0;
}

/* Ticks as a consensus thread does, and does not any more when it is told to. */
static _Noreturn void tick_until_told(const struct fixture *f)
{
    struct sigaction action = {.sa_handler = on_signal};

    (void)alarm(60); /* should the guard not do what it is tested for */
    sigaction(SIGHUP, &action, NULL);
    atomic_store(&f->memory->alive_at,
                 clock_now()); /* before it can be told: who never ticked does not hang */
    say(f, 'w', 0);
    while (!hung_up) {
        atomic_store(&f->memory->alive_at, clock_now());
        (void)poll(NULL, 0, 20);
    }
    say(f, 'q', 0);
    for (;;)
        (void)pause();
}

/* The life of a node: each has the next incarnation. */
static int be_node(void *user)
{
    struct fixture *f = user;
    struct shared_memory_peers peers = {.count = 1};
    socklen_t length = sizeof peers.addresses[0];
    uint64_t incarnation = atomic_load(&f->memory->incarnation) + 1;
    int signal_number = 0;

    say(f, 'b', getpid());
    (void)prctl(PR_GET_PDEATHSIG, &signal_number);
    if (signal_number != SIGKILL)
        return 98;
    if (f->part == PART_NO_NUMBER) {
        if (atomic_exchange(&f->memory->epoch, 1) == 0) /* remembers the first */
            crash();
        return 0;
    }
    atomic_store(&f->memory->cluster, CLUSTER);
    atomic_store(&f->memory->generation, GENERATION);
    atomic_store(&f->memory->node, NODE);
    atomic_store(&f->memory->incarnation, incarnation);
    if (getsockname(f->socket, (struct sockaddr *)&peers.addresses[0], &length))
        return 97;
    shared_memory_set_peers(f->memory, &peers);
    if (f->part == PART_NEVER_UP)
        return f->code;
    if (f->part == PART_BUSY && incarnation > 1)
        return incarnation == 2 ? NODE_EXIT_BUSY : NODE_EXIT_DONE;
    atomic_store(&f->memory->is_up, 1);
    switch (f->part) {
    case PART_CRASH:
        if (incarnation == 4)
            return 0;
        crash();
    case PART_BUSY:
        crash();
    case PART_LEAVES_SON:
        if (incarnation == 2)
            return 0;
        leave_son(f);
        crash();
    case PART_SIGNAL:
        if (incarnation == 2)
            return 0;
        (void)raise(f->code);
        return 95;
    case PART_HANGS:
        if (incarnation == 2)
            return 0;
        tick_until_told(f);
    case PART_WAIT:
        return wait_for_signals(f);
    case PART_STUBBORN:
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN);
        say(f, 'w', 0);
        for (;;)
            (void)pause();
    default:
        return f->code;
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (shared_memory_new(&f->memory) != GAVEL_OK || pipe2(f->pipe, O_CLOEXEC))
        return -1;
    f->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (f->socket < 0 || bind(f->socket, (struct sockaddr *)&address, sizeof address))
        return -1;
    f->settings = (struct guard_process){.memory = f->memory,
                                         .log = {.level = LOG_DEBUG},
                                         .run = be_node,
                                         .user = f,
                                         .stop_limit = 10 * NS_PER_S,
                                         .pause_min = 10 * NS_PER_MS,
                                         .pause_max = 40 * NS_PER_MS};
    memset(f->settings.key, 5, sizeof f->settings.key);
    *state = f;
    return 0;
}

static void start(struct fixture *f, enum part part)
{
    int ends[2];

    f->part = part;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    f->guard = fork();
    assert_true(f->guard >= 0);
    if (f->guard == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        f->settings.log.fd = ends[1];
        _exit(guard_process_run(&f->settings));
    }
    (void)close(ends[1]);
    f->guard_log = ends[0];
}

/* Reads the log until these words are in it. */
static const char *await_log(struct fixture *f, const char *words)
{
    const char *found;

    while (!(found = strstr(f->log, words))) {
        ssize_t size;

        if (!is_readable(f->guard_log, LIMIT_MS))
            fail_msg("the log has no \"%s\": %s", words, f->log);
        size = read(f->guard_log, f->log + f->log_length, sizeof f->log - 1 - f->log_length);
        if (size <= 0)
            fail_msg("the log ended without \"%s\": %s", words, f->log);
        f->log_length += (size_t)size;
    }
    return found;
}

static int await_end(struct fixture *f)
{
    int status;

    /* The log is at its end when all who could write to it are gone. */
    while (f->log_length < sizeof f->log - 1) {
        ssize_t size;

        if (!is_readable(f->guard_log, LIMIT_MS))
            fail_msg("the guard does not end: %s", f->log);
        size = read(f->guard_log, f->log + f->log_length, sizeof f->log - 1 - f->log_length);
        if (size <= 0)
            break;
        f->log_length += (size_t)size;
    }
    if (f->log_length == sizeof f->log - 1)
        fail_msg("the guard goes on and on: %s", f->log);
    assert_int_equal(waitpid(f->guard, &status, 0), f->guard);
    f->guard = 0;
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->guard > 0) {
        (void)kill(f->guard, SIGKILL);
        (void)waitpid(f->guard, NULL, 0);
    }
    (void)close(f->guard_log);
    (void)close(f->pipe[0]);
    (void)close(f->pipe[1]);
    (void)close(f->socket);
    shared_memory_free(f->memory);
    free(f);
    return 0;
}

/* The next obituary, genuine, of this incarnation. Returns when it came. */
static gavel_ns await_obituary(struct fixture *f, uint64_t incarnation)
{
    struct seal seal = {.cluster = CLUSTER, .generation = GENERATION};
    struct raft_certificate certificate = {0};
    uint8_t bytes[OBITUARY_BYTES + 1];
    uint64_t cluster = 0, generation = 0;
    ssize_t size;
    gavel_ns at;

    if (!is_readable(f->socket, LIMIT_MS))
        fail_msg("there was no obituary of incarnation %d", (int)incarnation);
    at = clock_now();
    size = recv(f->socket, bytes, sizeof bytes, 0);
    assert_true(size > 0);
    assert_true(obituary_decode(bytes, (size_t)size, &cluster, &generation, &certificate));
    assert_int_equal(cluster, CLUSTER);
    assert_int_equal(generation, GENERATION);
    assert_int_equal(certificate.kind, RAFT_CERT_OBITUARY);
    assert_int_equal(certificate.node, NODE);
    assert_int_equal(certificate.incarnation, incarnation);
    memcpy(seal.key, f->settings.key, sizeof seal.key);
    assert_true(seal_verify(&seal, &certificate));
    seal.generation++;
    assert_false(seal_verify(&seal, &certificate));
    return at;
}

static void test_a_crash_is_told_and_the_node_is_started_again(void **state)
{
    struct fixture *f = *state;

    f->settings.quick = 1; /* nothing is too quick, so all of them start at once */
    start(f, PART_CRASH);
    assert_int_equal(await_end(f), NODE_EXIT_DONE);
    for (int i = 0; i < 4; i++)
        (void)hear(f, 'b');
    assert_non_null(strstr(f->log, "msg=\"node started\" pid="));
    assert_non_null(strstr(f->log, "msg=\"node died\" incarnation=1 at_ns="));
    assert_non_null(strstr(f->log, "how=\"killed by SIGKILL\""));
    /* The last of them was asked to end, and did. */
    assert_non_null(strstr(f->log, "msg=\"node stopped\" incarnation=4 at_ns="));
    assert_null(strstr(f->log, "msg=\"node died\" incarnation=4"));
    assert_non_null(strstr(f->log, "how=\"exit code 0\""));
    (void)await_obituary(f, 1);
}

static void test_an_obituary_is_repeated(void **state)
{
    struct fixture *f = *state;
    gavel_ns first, last;

    f->code = NODE_EXIT_DISK;
    start(f, PART_EXIT);
    first = await_obituary(f, 1);
    (void)await_obituary(f, 1);
    (void)await_obituary(f, 1);
    last = await_obituary(f, 1);
    assert_true(last - first >= 40 * NS_PER_MS); /* the last is sent 50 ms after the death */
    assert_int_equal(await_end(f), NODE_EXIT_DISK);
    assert_false(is_readable(f->socket, 0));
}

static void test_no_obituary_without_an_incarnation(void **state)
{
    struct fixture *f = *state;

    start(f, PART_NO_NUMBER);
    assert_int_equal(await_end(f), 0);
    (void)hear(f, 'b');
    (void)hear(f, 'b');
    assert_false(is_readable(f->socket, 0));
    assert_null(strstr(f->log, "obituary"));
}

static void test_no_obituary_before_a_stubborn_grandchild_is_dead(void **state)
{
    struct fixture *f = *state;
    gavel_ns died_at, told_at;
    struct word son;

    f->settings.orphans = 30 * NS_PER_MS;
    start(f, PART_LEAVES_SON);
    (void)hear(f, 'b');
    son = hear(f, 's');
    told_at = await_obituary(f, 1);
    assert_true(kill((pid_t)son.number, 0) < 0); /* dead, and reaped by the guard */
    died_at = strtoll(await_log(f, "node died") + strlen("node died\" incarnation=1 at_ns="), NULL, 10);
    assert_true(told_at - died_at >= 30 * NS_PER_MS); /* it was given the time to end by itself */
    assert_int_equal(await_end(f), 0);
}

static void test_codes_after_which_there_is_no_other_node(void **state)
{
    static const int codes[] = {NODE_EXIT_DONE, NODE_EXIT_CONFIG, NODE_EXIT_DISK, NODE_EXIT_FENCED,
                                NODE_EXIT_BUSY};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        f->code = codes[i];
        start(f, codes[i] == NODE_EXIT_BUSY ? PART_NEVER_UP : PART_EXIT);
        assert_int_equal(await_end(f), codes[i]);
        (void)close(f->guard_log);
        (void)hear(f, 'b');
        assert_false(is_readable(f->pipe[0], 0)); /* only one */
    }
}

static void test_what_ran_before_waits_for_its_port(void **state)
{
    struct fixture *f = *state;

    start(f, PART_BUSY);
    assert_int_equal(await_end(f), 0);
    for (int i = 0; i < 3; i++)
        (void)hear(f, 'b');
    assert_non_null(strstr(f->log, "how=\"exit code 75\""));
}

static void test_the_guard_gives_up_on_a_node_that_never_gets_up(void **state)
{
    struct fixture *f = *state;
    gavel_ns pauses[3], before;

    f->settings.failures_max = 4;
    f->code = 1;
    start(f, PART_NEVER_UP);
    before = hear(f, 'b').at;
    for (int i = 0; i < 3; i++) {
        gavel_ns at = hear(f, 'b').at;

        pauses[i] = at - before;
        before = at;
    }
    assert_int_equal(await_end(f), 1);
    assert_false(is_readable(f->pipe[0], 0));
    assert_non_null(strstr(f->log, "failed to start too often"));
    assert_true(pauses[0] >= 10 * NS_PER_MS); /* doubled each time, up to the most */
    assert_true(pauses[1] >= 20 * NS_PER_MS);
    assert_true(pauses[2] >= 40 * NS_PER_MS);
}

static void test_signals_are_passed_on(void **state)
{
    struct fixture *f = *state;

    start(f, PART_WAIT);
    (void)hear(f, 'b');
    assert_int_equal(hear(f, 'w').number, 1); /* a group of its own: what a terminal sends comes once */
    assert_int_equal(kill(f->guard, SIGHUP), 0);
    assert_int_equal(hear(f, 'h').number, 1);
    assert_int_equal(kill(f->guard, SIGHUP), 0);
    assert_int_equal(hear(f, 'h').number, 2);
    assert_int_equal(kill(f->guard, SIGTERM), 0);
    assert_int_equal(await_end(f), 0);
}

static void test_a_second_signal_kills(void **state)
{
    struct fixture *f = *state;

    start(f, PART_STUBBORN);
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    assert_int_equal(kill(f->guard, SIGTERM), 0);
    assert_int_equal(kill(f->guard, SIGINT), 0);
    assert_int_equal(await_end(f), 128 + SIGKILL);
    (void)await_obituary(f, 1); /* it was not asked what it led */
}

static void test_a_node_that_does_not_end_is_killed_in_the_end(void **state)
{
    struct fixture *f = *state;
    gavel_ns asked_at;

    f->settings.stop_limit = 50 * NS_PER_MS;
    start(f, PART_STUBBORN);
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    asked_at = clock_now();
    assert_int_equal(kill(f->guard, SIGTERM), 0);
    assert_int_equal(await_end(f), 128 + SIGKILL);
    assert_true(clock_now() - asked_at >= 50 * NS_PER_MS);
}

static void test_a_node_dies_with_its_guard(void **state)
{
    struct fixture *f = *state;

    start(f, PART_STUBBORN);
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    assert_int_equal(kill(f->guard, SIGKILL), 0);
    while (is_readable(f->guard_log, LIMIT_MS)) /* its end says that the node, too, has let go of it */
        if (read(f->guard_log, f->log, sizeof f->log) <= 0)
            return;
    fail_msg("the node has survived its guard");
}

static void test_signals_without_a_name_have_a_number(void **state)
{
    struct fixture *f = *state;
    char how[64];

    f->code = SIGRTMIN + 1;
    start(f, PART_SIGNAL);
    assert_int_equal(await_end(f), 0);
    (void)snprintf(how, sizeof how, "how=\"killed by signal %d\"", SIGRTMIN + 1);
    assert_non_null(strstr(f->log, how));
}

static void test_a_node_that_hangs_is_killed_and_started_again(void **state)
{
    struct fixture *f = *state;
    gavel_ns hung_at;

    f->settings.hung = 2 * NS_PER_S; /* a busy machine is no hang */
    start(f, PART_HANGS);
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    assert_int_equal(kill(f->guard, SIGHUP), 0);
    hung_at = hear(f, 'q').at;
    (void)await_obituary(f, 1);
    assert_true(clock_now() - hung_at >= 1600 * NS_PER_MS); /* the first look may find it hung already */
    (void)hear(f, 'b');
    assert_int_equal(await_end(f), 0);
    assert_non_null(strstr(f->log, "the node hangs; killing it"));
    assert_non_null(strstr(f->log, "how=\"killed by SIGKILL\""));
}

/* A socket of a service manager, and its name in the environment for whoever is started next. */
static int be_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char name[64];

    (void)snprintf(name, sizeof name, "@gaveld-test-%d", (int)getpid());
    memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
    assert_int_equal(bind(manager, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    return manager;
}

static void hear_as_manager(int manager, char text[static 256])
{
    assert_true(is_readable(manager, LIMIT_MS));
    memset(text, 0, 256);
    assert_true(recv(manager, text, 255, 0) > 0);
}

static void test_a_service_manager_hears_when_the_node_is_up(void **state)
{
    struct fixture *f = *state;
    int manager = be_manager();
    char text[256];

    start(f, PART_WAIT);
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    hear_as_manager(manager, text);
    assert_non_null(strstr(text, "READY=1"));
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    assert_int_equal(kill(f->guard, SIGTERM), 0);
    hear_as_manager(manager, text);
    assert_string_equal(text, "STOPPING=1");
    assert_int_equal(await_end(f), 0);
    (void)close(manager);
}

/* A guard that is well is not enough. */
static void test_the_watchdog_hears_nothing_of_a_node_that_hangs(void **state)
{
    const gavel_ns HUNG = 20 * NS_PER_S; /* it is silent after half of it; an eighth is for a busy machine */
    struct fixture *f = *state;
    int manager = be_manager();
    char text[256] = "";
    gavel_ns hung_at, at = 0;
    bool is_said_late = false;

    f->settings.hung = HUNG;
    assert_int_equal(setenv("WATCHDOG_USEC", "100000", 1), 0);
    start(f, PART_HANGS);
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_int_equal(unsetenv("WATCHDOG_USEC"), 0);
    (void)hear(f, 'b');
    (void)hear(f, 'w');
    for (int heard = 0; heard < 5; heard += strcmp(text, "WATCHDOG=1") == 0)
        hear_as_manager(manager, text);
    assert_int_equal(kill(f->guard, SIGHUP), 0);
    hung_at = hear(f, 'q').at;
    /* Whatever is said until it is killed is said in time; between its death and the obituary all is well. */
    while (!is_readable(f->socket, 0))
        if (is_readable(manager, 10)) {
            hear_as_manager(manager, text);
            at = clock_now();
            is_said_late |= at - hung_at >= HUNG * 5 / 8 && at - hung_at < HUNG * 7 / 8;
        }
    assert_true(at > 0);
    assert_true(clock_now() - hung_at >= HUNG * 7 / 8);
    assert_false(is_said_late);
    assert_int_equal(await_end(f), 0);
    (void)close(manager);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_a_crash_is_told_and_the_node_is_started_again),
        TEST(test_an_obituary_is_repeated),
        TEST(test_no_obituary_without_an_incarnation),
        TEST(test_no_obituary_before_a_stubborn_grandchild_is_dead),
        TEST(test_codes_after_which_there_is_no_other_node),
        TEST(test_what_ran_before_waits_for_its_port),
        TEST(test_the_guard_gives_up_on_a_node_that_never_gets_up),
        TEST(test_signals_are_passed_on),
        TEST(test_a_second_signal_kills),
        TEST(test_a_node_that_does_not_end_is_killed_in_the_end),
        TEST(test_a_node_dies_with_its_guard),
        TEST(test_signals_without_a_name_have_a_number),
        TEST(test_a_node_that_hangs_is_killed_and_started_again),
        TEST(test_the_watchdog_hears_nothing_of_a_node_that_hangs),
        TEST(test_a_service_manager_hears_when_the_node_is_up),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
