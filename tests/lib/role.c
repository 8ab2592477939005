/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that takes part in an election on behalf of a test: it writes a
 * line for what its callbacks say and obeys the lines it reads.
 *
 *     lib_role STORE ID SETTINGS abort|report HANG_MS [GUARD_PROGRAM]
 *
 *     resign [SUCCESSOR]     → "resign STATUS"
 *     ensure DESIRED|- FORCE → "ensure STATUS LEADER"
 *     ask                    → "leads yes|no EPOCH"
 *     fork                   → "child yes|no EPOCH", as a forked child sees it
 *     count                  → "count TIMEOUTS REGISTRATIONS" of its metrics
 *     choke                  → "choked": its standard error is a full pipe that nobody reads
 *     trap                   → "trapped": it has a handler of SIGABRT that does not return
 *
 *     wait                   → "wait FOUND SIGNALS": whether wait(2) has a child, and how often SIGCHLD came
 *     turn                   → "turned", and from then on it is another program, which waits for its input
 *
 * With a guard it tells nobody who it is, as if it were on another host: that
 * it is dead can then be learned from its guard alone.
 *
 * It ends when its input does, and dies with the test that started it.
 */
#include "harness.h"

#include "lib/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One write per line, so that lines of several threads do not mix. */
static void say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3); /* nobody listens */
}

static void elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    (void)candidate;
    (void)user;
    say("elected %llu\n", (unsigned long long)epoch);
}

static void demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    const int *hang_ms = user;
    const struct timespec t = {.tv_sec = *hang_ms / 1000, .tv_nsec = *hang_ms % 1000 * 1000000L};

    (void)candidate;
    say("stopping %s\n", gavel_reason_name(reason));
    (void)nanosleep(&t, NULL); /* a callback that hangs */
    say("demoted %s\n", gavel_reason_name(reason));
}

static void event_came(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    (void)candidate;
    (void)user;
    if (event->kind == GAVEL_EVENT_LEADER_CHANGED)
        say("follows %s\n", event->leader);
    if (event->kind == GAVEL_EVENT_CANDIDATES_UPDATED)
        say("candidates %zu\n", event->candidates);
    if (event->kind == GAVEL_EVENT_OVERRUN)
        say("overrun %llu\n", (unsigned long long)event->epoch);
    if (event->kind == GAVEL_EVENT_STOPPED)
        say("stopped %s\n", gavel_status_name(event->status));
}

static struct gavel_settings settings_of(const char *name)
{
    bool is_quick = strcmp(name, "quick") == 0 || strcmp(name, "lenient") == 0;
    struct gavel_settings settings = is_quick ? quick_settings() : patient_settings();

    if (strcmp(name, "lenient") == 0) { /* after the deadline even a busy machine lets it say why it dies */
        settings.lease_ms = 12000;
        settings.stop_margin_ms = 5000;
        settings.candidate_timeout_ms = 12000;
    }
    if (strcmp(name, "tenured") == 0)
        settings.min_mandate_ms = 3600000;
    return settings;
}

static void say_ask(const char *word, struct gavel_candidate *candidate)
{
    say("%s %s %llu\n", word, gavel_is_leader(candidate) ? "yes" : "no",
        (unsigned long long)gavel_epoch(candidate));
}

static void ensure(struct gavel_candidate *candidate, const char *desired, const char *force)
{
    struct gavel_ensure_options options = {.force = strcmp(force, "force") == 0, .timeout_ms = 5000};
    struct gavel_leader_info leader = {0};
    enum gavel_status status;

    if (strcmp(desired, "-") != 0)
        options.desired = desired;
    status = gavel_ensure_leader(candidate, &options, &leader);
    say("ensure %s %s\n", gavel_status_name(status), leader.id);
}

static void fork_and_ask(struct gavel_candidate *candidate)
{
    pid_t pid = fork();

    if (pid == 0) {
        say_ask("child", candidate);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        say("child failed\n");
}

static void count_up(struct gavel_candidate *candidate)
{
    struct gavel_metrics metrics;

    gavel_metrics(candidate, &metrics);
    say("count %llu %llu\n", (unsigned long long)metrics.timeouts, (unsigned long long)metrics.registrations);
}

static void choke(void)
{
    char block[4096] = {0};
    int ends[2];

    if (pipe2(ends, O_NONBLOCK) < 0)
        return;
    while (write(ends[1], block, sizeof block) > 0)
        continue;
    while (write(ends[1], block, 1) > 0)
        continue;
    if (fcntl(ends[1], F_SETFL, 0) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO)
        say("choked\n");
}

static void trapped(int number)
{
    (void)number;
    for (;;)
        (void)pause();
}

static void trap(void)
{
    const struct sigaction action = {.sa_handler = trapped};

    if (sigaction(SIGABRT, &action, NULL) == 0)
        say("trapped\n");
}

static volatile sig_atomic_t child_signals;

static void count_signal(int number)
{
    (void)number;
    child_signals++;
}

static void look_for_children(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    say("wait %s %d\n", pid < 0 && errno == ECHILD ? "none" : "some", (int)child_signals);
}

static void turn_into_another(void)
{
    say("turned\n");
    (void)execlp("cat", "cat", (char *)NULL);
    say("cannot execute cat\n");
}

static void obey(struct gavel_candidate *candidate, char *line)
{
    const char *words[3] = {"", "", ""};
    char *rest = NULL;
    size_t count = 0;

    for (char *word = strtok_r(line, " \n", &rest); word && count < 3; word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    if (strcmp(words[0], "resign") == 0)
        say("resign %s\n", gavel_status_name(gavel_resign(candidate, count > 1 ? words[1] : NULL)));
    else if (strcmp(words[0], "ensure") == 0)
        ensure(candidate, words[1], words[2]);
    else if (strcmp(words[0], "ask") == 0)
        say_ask("leads", candidate);
    else if (strcmp(words[0], "fork") == 0)
        fork_and_ask(candidate);
    else if (strcmp(words[0], "count") == 0)
        count_up(candidate);
    else if (strcmp(words[0], "choke") == 0)
        choke();
    else if (strcmp(words[0], "trap") == 0)
        trap();
    else if (strcmp(words[0], "wait") == 0)
        look_for_children();
    else if (strcmp(words[0], "turn") == 0)
        turn_into_another();
    else
        say("what? %s\n", words[0]);
}

int main(int argc, char **argv)
{
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_candidate *candidate;
    struct gavel_settings settings;
    struct gavel_error error;
    struct gavel *gavel;
    char line[512];
    int hang_ms;

    if (argc != 6 && argc != 7)
        return 2;
    (void)signal(SIGCHLD, count_signal);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test crash */
    hang_ms = atoi(argv[5]);
    settings = settings_of(argv[3]);
    options.store = argv[1];
    join.group = "jobs";
    join.candidate = argv[2];
    join.settings = &settings;
    join.overrun = strcmp(argv[4], "report") == 0 ? GAVEL_OVERRUN_REPORT : GAVEL_OVERRUN_ABORT;
    join.subscriber = (struct gavel_subscriber){
        .on_elected = elected, .on_demoted = demoted, .on_event = event_came, .user = &hang_ms};
    options.guard = argc == 7;
    options.guard_program = argv[6];
    if (gavel_open(&options, &gavel, &error) != GAVEL_OK) {
        say("error %s\n", error.message);
        return 1;
    }
    if (options.guard)
        gavel->self = (struct process_id){0};
    if (gavel_join(gavel, &join, &candidate, &error) != GAVEL_OK) {
        say("error %s\n", error.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin))
        obey(candidate, line);
    return gavel_close(gavel) == GAVEL_OK ? 0 : 1;
}
