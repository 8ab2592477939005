/* SPDX-License-Identifier: Apache-2.0 */

#include "election.h"

#include "os/clock.h"
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Short, so that many faults fit into a test; `gavel check` says that they add up. */
static const char *const times_of_a_file[] = {"--lease",
                                              "1s",
                                              "--heartbeat",
                                              "150ms",
                                              "--heartbeat-jitter",
                                              "10ms",
                                              "--call-timeout",
                                              "100ms",
                                              "--grace",
                                              "400ms",
                                              "--stop-margin",
                                              "50ms",
                                              "--drift-ppm",
                                              "1000",
                                              "--election-interval",
                                              "100ms",
                                              "--stagger",
                                              "10ms",
                                              "--candidate-timeout",
                                              "3s",
                                              "--breaker-reset",
                                              "200ms",
                                              NULL};

#define ARGUMENTS_MAX 64

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

void election_pause(void)
{
    struct timespec pause = {.tv_nsec = NS_PER_MS};

    (void)nanosleep(&pause, NULL); /* waking early does no harm */
}

void election_open(struct election *election, const char *gavel, const char *beat)
{
    memset(election, 0, sizeof *election);
    election->gavel = gavel;
    election->beat = beat;
    election->times = times_of_a_file;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        die("cannot become a subreaper");
    (void)snprintf(election->directory, sizeof election->directory, "%s", "/tmp/gavel-run-XXXXXX");
    if (!mkdtemp(election->directory))
        die(election->directory);
    (void)snprintf(election->store, sizeof election->store, "%s/gavel.db", election->directory);
    (void)snprintf(election->log, sizeof election->log, "%s/beats", election->directory);
    beat_referee_init(&election->referee);
    if (!beat_reader_open(&election->reader, election->log))
        die(election->log);
}

struct candidate *election_add(struct election *election, bool is_wild)
{
    struct candidate *candidate = &election->candidates[election->count];

    if (election->count == CANDIDATES_MAX) {
        errno = ENOSPC;
        die("election");
    }
    candidate->number = (uint16_t)election->count++;
    candidate->is_wild = is_wild;
    candidate->orphan_grace = "0";
    candidate->exit_code = EXIT_NOT_YET;
    return candidate;
}

/* Of one list after the other, as long as there is room for them and the end. */
static size_t append(const char **arguments, size_t count, const char *const *more)
{
    for (; *more && count < ARGUMENTS_MAX - 1; more++)
        arguments[count++] = *more;
    arguments[count] = NULL;
    return count;
}

static void shift_clock(const struct election *election, const struct candidate *candidate)
{
    const char *asan = getenv("ASAN_OPTIONS");
    char options[512];

    /* A sanitizer insists on being the first library, and need not. */
    (void)snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", asan ? asan : "",
                   asan ? ":" : "");
    if (setenv("LD_PRELOAD", election->clock_shift, 1) < 0 ||
        setenv("CLOCK_SHIFT_FILE", candidate->clock, 1) < 0 || setenv("ASAN_OPTIONS", options, 1) < 0)
        _exit(1);
}

/* In the new process. */
static _Noreturn void execute(const struct election *election, const struct candidate *candidate)
{
    const char *store = candidate->store ? candidate->store : election->store;
    const char *const first[] = {
        election->gavel,         "run", "--store", store, "--id", candidate->id, "--orphan-grace",
        candidate->orphan_grace, NULL};
    const char *const command[] = {"--", election->beat, election->log, NULL};
    const char *const wild[] = {"--ignore-term", "--sessions", "2", "--daemon", NULL};
    const char *arguments[ARGUMENTS_MAX];
    size_t count = append(arguments, 0, first);
    char number[8], err[128];
    int fd;

    (void)snprintf(number, sizeof number, "%u", candidate->number);
    (void)snprintf(err, sizeof err, "%s/%u.err", election->directory, candidate->number);
    fd = open(err, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || setenv("BEAT_MEMBER", number, 1) < 0)
        _exit(1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a driver that dies leaves nothing behind */
    if (candidate->clock)
        shift_clock(election, candidate);
    count = append(arguments, count, election->times);
    count = append(arguments, count, command);
    if (candidate->is_wild)
        (void)append(arguments, count, wild);
    /* It changes nothing of them: its type is older than const. */
    execv(election->gavel, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

void election_start(struct election *election, struct candidate *candidate)
{
    candidate->lives++;
    (void)snprintf(candidate->id, sizeof candidate->id, "m%u.%u", candidate->number, candidate->lives);
    candidate->pid = fork();
    if (candidate->pid < 0)
        die("cannot fork");
    if (candidate->pid == 0)
        execute(election, candidate);
    candidate->exit_code = EXIT_NOT_YET;
}

static void read_log(struct election *election)
{
    off_t end = beat_reader_end(&election->reader);
    struct beat beat;

    while (election->reader.offset < end) {
        enum beat_read read = beat_reader_next(&election->reader, &beat);
        const struct epoch_span *newest = beat_referee_newest(&election->referee);

        if (read == BEAT_NONE)
            return;
        if (read == BEAT_DAMAGED) {
            beat_referee_damage(&election->referee);
            continue;
        }
        if (!newest || beat.epoch > newest->epoch)
            memset(election->has_role, 0, sizeof election->has_role);
        beat_referee_beat(&election->referee, &beat);
        if (beat.epoch != beat_referee_newest(&election->referee)->epoch)
            continue;
        election->has_role[beat.role] = true;
        if (beat.role == BEAT_MAIN)
            election->latest = beat;
    }
}

void election_look(struct election *election)
{
    for (size_t i = 0; i < election->count; i++) {
        struct candidate *candidate = &election->candidates[i];
        int status;

        if (candidate->pid && waitpid(candidate->pid, &status, WNOHANG) == candidate->pid) {
            candidate->pid = 0;
            candidate->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    read_log(election);
}

static sqlite3 *open_store(struct election *election)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(election->store, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, 10000);
    return db;
}

/* The one number that a query gives; 0 if it gives none, or cannot be asked yet. */
static int64_t ask(struct election *election, sqlite3 *db, const char *query, const char *id)
{
    sqlite3_stmt *statement;
    int64_t number = 0;

    if (!db && !election->look)
        election->look = open_store(election);
    if (!db)
        db = election->look;
    if (!db || sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
        return 0;
    if (id)
        (void)sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC); /* can only fail for a wrong index */
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement); /* repeats the code of the step */
    return number;
}

int64_t election_heartbeats(struct election *election, const struct candidate *candidate)
{
    return ask(election, NULL, "SELECT beats + 1 FROM candidates WHERE id = ?1", candidate->id);
}

gavel_ns election_renewed_at(struct election *election)
{
    return ask(election, election->cut, "SELECT applied_at FROM groups WHERE held", NULL);
}

/* The byte of the -shm file that stands for the right to write; part of SQLite's file format. */
#define WRITE_LOCK_BYTE 120

pid_t election_lock_holder(struct election *election)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WRITE_LOCK_BYTE, .l_len = 1};
    char path[272];

    /* Open until the end: closing it would take away the locks of our own connections (POSIX). */
    if (election->shm == 0) {
        (void)snprintf(path, sizeof path, "%s-shm", election->store);
        election->shm = open(path, O_RDWR | O_CLOEXEC);
        if (election->shm < 0)
            die(path);
    }
    if (fcntl(election->shm, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}

bool election_cut(struct election *election)
{
    election->cut = open_store(election);
    if (election->cut && sqlite3_exec(election->cut, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK)
        return true;
    election_mend(election);
    return false;
}

void election_mend(struct election *election)
{
    (void)sqlite3_close(election->cut); /* rolls back; a reader that is busy is none of ours */
    election->cut = NULL;
}

bool election_find_leader(struct election *election, struct leader *ret_leader)
{
    struct leader leader = {.elector = -1, .guard = -1, .command = -1};
    pid_t guard;

    election_look(election);
    if (!beat_referee_newest(&election->referee) ||
        election->latest.epoch != beat_referee_newest(&election->referee)->epoch)
        return false;
    leader.epoch = election->latest.epoch;
    leader.candidate = &election->candidates[election->latest.member];
    leader.pids[0] = leader.candidate->pid;
    leader.pids[2] = election->latest.pid;
    if (!leader.pids[0] || proc_children(leader.pids[0], &guard, 1) != 1)
        return false;
    leader.pids[1] = guard;
    leader.elector = proc_open(leader.pids[0], getpid());
    leader.guard = proc_open(leader.pids[1], leader.pids[0]);
    leader.command = proc_open(leader.pids[2], leader.pids[1]);
    if (leader.elector < 0 || leader.guard < 0 || leader.command < 0 ||
        election->latest.at + 100 * NS_PER_MS < clock_now()) {
        leader_done(&leader);
        return false;
    }
    *ret_leader = leader;
    return true;
}

void leader_done(struct leader *leader)
{
    const int handles[] = {leader->elector, leader->guard, leader->command};

    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        if (handles[i] >= 0)
            (void)close(handles[i]); /* a handle has nothing to lose */
}

bool leader_choose_fault(const struct leader *leader, size_t *kinds, size_t count,
                         bool (*is_for_tame)(size_t kind))
{
    for (size_t i = 0; i < count; i++) {
        size_t kind = kinds[i];

        if (leader->candidate->is_wild && is_for_tame(kind))
            continue;
        kinds[i] = kinds[0];
        kinds[0] = kind;
        return true;
    }
    return false;
}

int election_handover(const struct election *election)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        die("cannot fork");
    if (pid == 0) {
        int fd = open("/dev/null", O_WRONLY);

        if (fd >= 0)
            (void)dup2(fd, STDOUT_FILENO);
        execl(election->gavel, election->gavel, "handover", "--store", election->store, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("cannot wait");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Where the last lines of a file begin. */
static long last_lines(FILE *file, int lines)
{
    long at;

    if (fseek(file, 0, SEEK_END) < 0)
        return 0;
    for (at = ftell(file) - 1; at > 0; at--) {
        if (fseek(file, at - 1, SEEK_SET) < 0)
            return 0;
        if (fgetc(file) == '\n' && --lines == 0)
            return at;
    }
    return 0;
}

void election_print_logs(const struct election *election)
{
    char path[128], line[1024];

    for (size_t i = 0; i < election->count; i++) {
        FILE *file;

        (void)snprintf(path, sizeof path, "%s/%zu.err", election->directory, i);
        file = fopen(path, "r");
        if (!file)
            continue;
        if (fseek(file, last_lines(file, 40), SEEK_SET) == 0)
            while (fgets(line, sizeof line, file))
                printf("# %zu: %s", i, line);
        (void)fclose(file); /* only read from */
    }
}

void election_dismiss(struct election *election)
{
    gavel_ns until = clock_now() + LIMIT;
    bool is_anybody_left = true;

    election_mend(election);
    for (size_t i = 0; i < election->count; i++)
        if (election->candidates[i].pid) {
            (void)kill(election->candidates[i].pid, SIGCONT); /* our child that has not been waited for */
            (void)kill(election->candidates[i].pid, SIGTERM);
        }
    while (is_anybody_left && clock_now() < until) {
        is_anybody_left = false;
        election_pause();
        election_look(election);
        for (size_t i = 0; i < election->count; i++)
            is_anybody_left |= election->candidates[i].pid != 0;
    }
}

size_t election_sweep(void)
{
    gavel_ns patience = clock_now() + 2 * NS_PER_S; /* guards may be about to end */
    pid_t pids[256], pid;
    size_t count = 0;

    for (;;) {
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0)
            return count; /* nobody is left */
        if (clock_now() > patience)
            break;
        election_pause();
    }
    count = proc_children(getpid(), pids, sizeof pids / sizeof *pids);
    for (size_t i = 0; i < count; i++) {
        printf("# process %d (%c) is still there\n", (int)pids[i], proc_state(pids[i], NULL));
        (void)kill(pids[i], SIGKILL); /* our child that has not been waited for */
        (void)waitpid(pids[i], NULL, 0);
    }
    return count;
}

static void remove_directory(const char *directory)
{
    char path[512];
    const struct dirent *entry;
    DIR *open_directory = opendir(directory);

    while (open_directory && (entry = readdir(open_directory))) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)unlink(path); /* what stays is only litter */
    }
    if (open_directory)
        (void)closedir(open_directory); /* only read from */
    (void)rmdir(directory);             /* likewise */
}

void election_close(struct election *election, bool keep)
{
    election_look(election);
    (void)sqlite3_close(election->look); /* only read from */
    if (election->shm > 0)
        (void)close(election->shm); /* only asked */
    beat_reader_close(&election->reader);
    if (!keep)
        remove_directory(election->directory);
}
