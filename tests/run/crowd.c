/* SPDX-License-Identifier: Apache-2.0 */

#include "crowd.h"

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

void crowd_pause(void)
{
    struct timespec pause = {.tv_nsec = NS_PER_MS};

    (void)nanosleep(&pause, NULL); /* waking early does no harm */
}

void crowd_open(struct crowd *crowd, const char *gavel, const char *beat)
{
    memset(crowd, 0, sizeof *crowd);
    crowd->gavel = gavel;
    crowd->beat = beat;
    crowd->times = times_of_a_file;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        die("cannot become a subreaper");
    (void)snprintf(crowd->folder, sizeof crowd->folder, "%s", "/tmp/gavel-run-XXXXXX");
    if (!mkdtemp(crowd->folder))
        die(crowd->folder);
    (void)snprintf(crowd->store, sizeof crowd->store, "%s/gavel.db", crowd->folder);
    (void)snprintf(crowd->log, sizeof crowd->log, "%s/beats", crowd->folder);
    judge_init(&crowd->judge);
    if (!beat_reader_open(&crowd->reader, crowd->log))
        die(crowd->log);
}

struct contender *crowd_add(struct crowd *crowd, bool is_wild)
{
    struct contender *contender = &crowd->contenders[crowd->count];

    if (crowd->count == CONTENDERS_MAX) {
        errno = ENOSPC;
        die("crowd");
    }
    contender->number = (uint16_t)crowd->count++;
    contender->is_wild = is_wild;
    contender->orphan_grace = "0";
    contender->exit_code = EXIT_NOT_YET;
    return contender;
}

/* Of one list after the other, as long as there is room for them and the end. */
static size_t append(const char **arguments, size_t count, const char *const *more)
{
    for (; *more && count < ARGUMENTS_MAX - 1; more++)
        arguments[count++] = *more;
    arguments[count] = NULL;
    return count;
}

static void shift_clock(const struct crowd *crowd, const struct contender *contender)
{
    const char *asan = getenv("ASAN_OPTIONS");
    char options[512];

    /* A sanitizer insists on being the first library, and need not. */
    (void)snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", asan ? asan : "",
                   asan ? ":" : "");
    if (setenv("LD_PRELOAD", crowd->clock_shift, 1) < 0 ||
        setenv("CLOCK_SHIFT_FILE", contender->clock, 1) < 0 || setenv("ASAN_OPTIONS", options, 1) < 0)
        _exit(1);
}

/* In the new process. */
static _Noreturn void execute(const struct crowd *crowd, const struct contender *contender)
{
    const char *store = contender->store ? contender->store : crowd->store;
    const char *const first[] = {crowd->gavel, "run",         "--store",        store,
                                 "--id",       contender->id, "--orphan-grace", contender->orphan_grace,
                                 NULL};
    const char *const command[] = {"--", crowd->beat, crowd->log, NULL};
    const char *const wild[] = {"--ignore-term", "--sessions", "2", "--daemon", NULL};
    const char *arguments[ARGUMENTS_MAX];
    size_t count = append(arguments, 0, first);
    char number[8], err[128];
    int fd;

    (void)snprintf(number, sizeof number, "%u", contender->number);
    (void)snprintf(err, sizeof err, "%s/%u.err", crowd->folder, contender->number);
    fd = open(err, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || setenv("BEAT_MEMBER", number, 1) < 0)
        _exit(1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a driver that dies leaves nothing behind */
    if (contender->clock)
        shift_clock(crowd, contender);
    count = append(arguments, count, crowd->times);
    count = append(arguments, count, command);
    if (contender->is_wild)
        (void)append(arguments, count, wild);
    /* It changes nothing of them: its type is older than const. */
    execv(crowd->gavel, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

void crowd_start(struct crowd *crowd, struct contender *contender)
{
    contender->lives++;
    (void)snprintf(contender->id, sizeof contender->id, "m%u.%u", contender->number, contender->lives);
    contender->pid = fork();
    if (contender->pid < 0)
        die("cannot fork");
    if (contender->pid == 0)
        execute(crowd, contender);
    contender->exit_code = EXIT_NOT_YET;
}

static void read_log(struct crowd *crowd)
{
    off_t end = beat_reader_end(&crowd->reader);
    struct beat beat;

    while (crowd->reader.offset < end) {
        enum beat_read read = beat_reader_next(&crowd->reader, &beat);
        const struct epoch_span *newest = judge_newest(&crowd->judge);

        if (read == BEAT_NONE)
            return;
        if (read == BEAT_DAMAGED) {
            judge_damage(&crowd->judge);
            continue;
        }
        if (!newest || beat.epoch > newest->epoch)
            memset(crowd->has_role, 0, sizeof crowd->has_role);
        judge_beat(&crowd->judge, &beat);
        if (beat.epoch != judge_newest(&crowd->judge)->epoch)
            continue;
        crowd->has_role[beat.role] = true;
        if (beat.role == BEAT_MAIN)
            crowd->latest = beat;
    }
}

void crowd_look(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct contender *contender = &crowd->contenders[i];
        int status;

        if (contender->pid && waitpid(contender->pid, &status, WNOHANG) == contender->pid) {
            contender->pid = 0;
            contender->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    read_log(crowd);
}

static sqlite3 *open_store(struct crowd *crowd)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(crowd->store, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, 10000);
    return db;
}

/* The one number that a query gives; 0 if it gives none, or cannot be asked yet. */
static int64_t ask(struct crowd *crowd, sqlite3 *db, const char *query, const char *id)
{
    sqlite3_stmt *statement;
    int64_t number = 0;

    if (!db && !crowd->look)
        crowd->look = open_store(crowd);
    if (!db)
        db = crowd->look;
    if (!db || sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
        return 0;
    if (id)
        (void)sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC); /* can only fail for a wrong index */
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement); /* repeats the code of the step */
    return number;
}

int64_t crowd_heartbeats(struct crowd *crowd, const struct contender *contender)
{
    return ask(crowd, NULL, "SELECT beats + 1 FROM candidates WHERE id = ?1", contender->id);
}

gavel_ns crowd_renewed_at(struct crowd *crowd)
{
    return ask(crowd, crowd->cut, "SELECT applied_at FROM groups WHERE held", NULL);
}

/* The byte of the -shm file that stands for the right to write; part of SQLite's file format. */
#define WRITE_LOCK_BYTE 120

pid_t crowd_lock_holder(struct crowd *crowd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WRITE_LOCK_BYTE, .l_len = 1};
    char path[272];

    /* Open until the end: closing it would take away the locks of our own connections (POSIX). */
    if (crowd->shm == 0) {
        (void)snprintf(path, sizeof path, "%s-shm", crowd->store);
        crowd->shm = open(path, O_RDWR | O_CLOEXEC);
        if (crowd->shm < 0)
            die(path);
    }
    if (fcntl(crowd->shm, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}

bool crowd_cut(struct crowd *crowd)
{
    crowd->cut = open_store(crowd);
    if (crowd->cut && sqlite3_exec(crowd->cut, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK)
        return true;
    crowd_mend(crowd);
    return false;
}

void crowd_mend(struct crowd *crowd)
{
    (void)sqlite3_close(crowd->cut); /* rolls back; a reader that is busy is none of ours */
    crowd->cut = NULL;
}

bool crowd_find_leader(struct crowd *crowd, struct leader *ret_leader)
{
    struct leader leader = {.elector = -1, .guard = -1, .command = -1};
    pid_t guard;

    crowd_look(crowd);
    if (!judge_newest(&crowd->judge) || crowd->latest.epoch != judge_newest(&crowd->judge)->epoch)
        return false;
    leader.epoch = crowd->latest.epoch;
    leader.contender = &crowd->contenders[crowd->latest.member];
    leader.pids[0] = leader.contender->pid;
    leader.pids[2] = crowd->latest.pid;
    if (!leader.pids[0] || proc_children(leader.pids[0], &guard, 1) != 1)
        return false;
    leader.pids[1] = guard;
    leader.elector = proc_open(leader.pids[0], getpid());
    leader.guard = proc_open(leader.pids[1], leader.pids[0]);
    leader.command = proc_open(leader.pids[2], leader.pids[1]);
    if (leader.elector < 0 || leader.guard < 0 || leader.command < 0 ||
        crowd->latest.at + 100 * NS_PER_MS < clock_now()) {
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

int crowd_resign(const struct crowd *crowd)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        die("cannot fork");
    if (pid == 0) {
        int fd = open("/dev/null", O_WRONLY);

        if (fd >= 0)
            (void)dup2(fd, STDOUT_FILENO);
        execl(crowd->gavel, crowd->gavel, "resign", "--store", crowd->store, (char *)NULL);
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

void crowd_print_logs(const struct crowd *crowd)
{
    char path[128], line[1024];

    for (size_t i = 0; i < crowd->count; i++) {
        FILE *file;

        (void)snprintf(path, sizeof path, "%s/%zu.err", crowd->folder, i);
        file = fopen(path, "r");
        if (!file)
            continue;
        if (fseek(file, last_lines(file, 40), SEEK_SET) == 0)
            while (fgets(line, sizeof line, file))
                printf("# %zu: %s", i, line);
        (void)fclose(file); /* only read from */
    }
}

void crowd_dismiss(struct crowd *crowd)
{
    gavel_ns until = clock_now() + LIMIT;
    bool is_anybody_left = true;

    crowd_mend(crowd);
    for (size_t i = 0; i < crowd->count; i++)
        if (crowd->contenders[i].pid) {
            (void)kill(crowd->contenders[i].pid, SIGCONT); /* our child that has not been waited for */
            (void)kill(crowd->contenders[i].pid, SIGTERM);
        }
    while (is_anybody_left && clock_now() < until) {
        is_anybody_left = false;
        crowd_pause();
        crowd_look(crowd);
        for (size_t i = 0; i < crowd->count; i++)
            is_anybody_left |= crowd->contenders[i].pid != 0;
    }
}

size_t crowd_sweep(void)
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
        crowd_pause();
    }
    count = proc_children(getpid(), pids, sizeof pids / sizeof *pids);
    for (size_t i = 0; i < count; i++) {
        printf("# process %d (%c) is still there\n", (int)pids[i], proc_state(pids[i], NULL));
        (void)kill(pids[i], SIGKILL); /* our child that has not been waited for */
        (void)waitpid(pids[i], NULL, 0);
    }
    return count;
}

static void remove_folder(const char *folder)
{
    char path[512];
    const struct dirent *entry;
    DIR *open_folder = opendir(folder);

    while (open_folder && (entry = readdir(open_folder))) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)unlink(path); /* what stays is only litter */
    }
    if (open_folder)
        (void)closedir(open_folder); /* only read from */
    (void)rmdir(folder);             /* likewise */
}

void crowd_close(struct crowd *crowd, bool keep)
{
    crowd_look(crowd);
    (void)sqlite3_close(crowd->look); /* only read from */
    if (crowd->shm > 0)
        (void)close(crowd->shm); /* only asked */
    beat_reader_close(&crowd->reader);
    if (!keep)
        remove_folder(crowd->folder);
}
