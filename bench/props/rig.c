/* SPDX-License-Identifier: Apache-2.0 */

/* Starting, steering and ending the processes of a rig. */
#include "bench/props/rig.h"

#include "base/error.h"
#include "bench/props/namespace.h"
#include "os/clock.h"
#include "os/interrupt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAVE_LIMIT_NS (5 * NS_PER_S)

bool rig_is_interrupted(void) { return is_interrupted; }

enum gavel_status rig_open(struct rig *rig, struct gavel_error *error)
{
    const char *base = getenv("TMPDIR");
    enum gavel_status status;

    *rig = (struct rig){0};
    if (!base || !*base)
        base = P_tmpdir;
    int length = snprintf(rig->directory, sizeof rig->directory, "%s/gavel-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof rig->directory)
        return error_set(error, GAVEL_ERR_INVALID, "the path in TMPDIR is too long: set a shorter one");
    status = shared_log_new(&rig->shared_log, &rig->shared_log_fd);
    if (status != GAVEL_OK)
        return error_set(error, status, "no memory for the records of the processes");
    if (!mkdtemp(rig->directory)) {
        shared_log_free(rig->shared_log);
        (void)close(rig->shared_log_fd); /* nothing is in it */
        return error_set(error, GAVEL_ERR_IO,
                         "cannot create a directory in %s: %s; set TMPDIR to another place", base,
                         strerror(errno));
    }
    (void)snprintf(rig->store, sizeof rig->store, "sqlite:%s/gavel.db", rig->directory);
    interrupt_catch(0);
    (void)signal(SIGPIPE, SIG_IGN); /* a member that is gone does not end us */
    return GAVEL_OK;
}

/* The directory holds plain files only, and all of them are ours. */
static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);

    if (directory) {
        for (struct dirent *entry; (entry = readdir(directory));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                (void)unlinkat(dirfd(directory), entry->d_name,
                               0); /* what stays shows in rmdir, and harms nobody */
        (void)closedir(directory);
    }
    (void)rmdir(path);
}

static void forget(struct member *member)
{
    if (member->pidfd >= 0)
        (void)close(member->pidfd);
    if (member->control >= 0)
        (void)close(member->control);
    member->pid = 0;
    member->pidfd = member->control = -1;
}

static void ask_to_leave(struct rig *rig, uint32_t number)
{
    const struct member *member = &rig->members[number];

    if (member->is_program && member->pid)
        (void)kill(member->pid, SIGTERM); /* not reaped yet, so it is ours */
    else
        rig_tell(rig, number, RIG_QUIT);
}

void rig_close(struct rig *rig)
{
    gavel_ns until = clock_now() + LEAVE_LIMIT_NS;
    gavel_ns ignored;

    for (uint32_t i = 0; i < RIG_MAX; i++)
        if (rig->members[i].pid) {
            (void)rig_thaw(rig, i); /* only one that runs can leave in order */
            ask_to_leave(rig, i);
        }
    for (uint32_t i = 0; i < RIG_MAX; i++) {
        if (!rig->members[i].pid)
            continue;
        if (rig_await(rig, i, until) != GAVEL_OK && rig->members[i].pid)
            (void)rig_kill(rig, i, &ignored, &ignored); /* nothing is left to be done about it */
    }
    if (rig->directory[0])
        remove_directory(rig->directory);
    shared_log_free(rig->shared_log);
    if (rig->shared_log)
        (void)close(rig->shared_log_fd); /* memory only */
    *rig = (struct rig){0};
}

/* `driver` 0: in a pid namespace of its own, where the driver has no number. */
static _Noreturn void live(struct rig *rig, uint32_t number, const char *name, int control, pid_t driver,
                           const sigset_t *mask, member_run run, void *user)
{
    struct member_context context = {
        .rig = rig, .shared_log = rig->shared_log, .member = number, .control = control};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the pipe's end does the same for whoever is not frozen */
    if (getppid() != driver)
        _exit(1); /* it died before the line above */
    if (!driver && namespace_mount_proc() != GAVEL_OK)
        _exit(1);
    (void)snprintf(context.name, sizeof context.name, "%s", name);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the driver sends us home */
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    for (uint32_t i = 0; i < RIG_MAX; i++) {
        /* A pipe that a sibling also holds open would never end. */
        if (rig->members[i].pid) {
            (void)close(rig->members[i].control);
            (void)close(rig->members[i].pidfd);
        }
    }
    _exit(run(&context, user)); /* without exit(): what stdio holds is the driver's to print */
}

static enum gavel_status start(struct rig *rig, uint32_t number, const char *name, member_run run, void *user,
                               bool is_host, struct gavel_error *error)
{
    struct member *member = &rig->members[number];
    pid_t driver = is_host ? 0 : getpid();
    sigset_t stop, mask;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(error, GAVEL_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    /* Our handler is not the child's: what is sent to it before it has its own must wait. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stop, &mask);
    pid_t pid = is_host ? namespace_fork() : fork();
    int why = errno;
    if (pid == 0) {
        (void)close(ends[1]);
        live(rig, number, name, ends[0], driver, &mask, run, user);
    }
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if (pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return error_set(error, why == EPERM ? GAVEL_ERR_DENIED : GAVEL_ERR_IO, "cannot start a process: %s",
                         strerror(why));
    }
    (void)close(ends[0]);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        enum gavel_status status =
            error_set(error, GAVEL_ERR_IO, "cannot watch a process: %s", strerror(errno));
        (void)close(ends[1]); /* it leaves by itself */
        (void)waitpid(pid, NULL, 0);
        return status;
    }
    *member = (struct member){.pid = pid, .pidfd = pidfd, .control = ends[1]};
    return GAVEL_OK;
}

enum gavel_status rig_start(struct rig *rig, uint32_t number, const char *name, member_run run, void *user,
                            struct gavel_error *error)
{
    return start(rig, number, name, run, user, false, error);
}

enum gavel_status rig_start_host(struct rig *rig, uint32_t number, const char *name, member_run run,
                                 void *user, struct gavel_error *error)
{
    return start(rig, number, name, run, user, true, error);
}

void rig_log(const struct rig *rig, uint32_t member, char ret_path[RIG_DIRECTORY_MAX + 32])
{
    (void)snprintf(ret_path, RIG_DIRECTORY_MAX + 32, "%s/%u.log", rig->directory, (unsigned)member);
}

void rig_clear_environment(void)
{
    static const char prefix[] = "GAVEL_";
    char name[256];

    for (char **entry = environ; *entry;) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, strlen(prefix)) == 0 && length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            (void)unsetenv(name); /* moves the others up */
        } else {
            entry++;
        }
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
}

/* A member_run() that becomes a program; user is its argv. */
static int execute(const struct member_context *context, void *user)
{
    char path[RIG_DIRECTORY_MAX + 32];
    char *const *argv = user;

    rig_log(context->rig, context->member, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        return 1;
    rig_clear_environment();
    (void)fcntl(context->rig->shared_log_fd, F_SETFD, 0); /* open, so it cannot fail */
    (void)execvp(argv[0], argv);
    (void)dprintf(STDERR_FILENO, "cannot execute %s: %s\n", argv[0], strerror(errno));
    return 127;
}

enum gavel_status rig_start_program(struct rig *rig, uint32_t member, const char *name, char *const *argv,
                                    struct gavel_error *error)
{
    /* Only handed through to execute(), which takes it back as what it is. */
    enum gavel_status status = rig_start(rig, member, name, execute, (void *)(uintptr_t)argv, error);

    if (status == GAVEL_OK)
        rig->members[member].is_program = true;
    return status;
}

void rig_tell(struct rig *rig, uint32_t member, char letter)
{
    if (!rig->members[member].pid)
        return;
    /* A member that is gone shows in its pidfd. */
    ssize_t written = write(rig->members[member].control, &letter, 1);
    (void)written;
}

enum gavel_status rig_kill(struct rig *rig, uint32_t number, gavel_ns *ret_sent_at, gavel_ns *ret_dead_at)
{
    struct member *member = &rig->members[number];
    struct pollfd death = {.fd = member->pidfd, .events = POLLIN};

    if (!member->pid)
        return GAVEL_ERR_STATE;
    gavel_ns sent_at = clock_now();
    if (kill(member->pid, SIGKILL) < 0)
        return GAVEL_ERR_IO;
    while (poll(&death, 1, -1) < 0 && errno == EINTR)
        ;
    gavel_ns dead_at = clock_now();
    (void)waitpid(member->pid, NULL, 0); /* it is dead: this collects it */
    forget(member);
    *ret_sent_at = sent_at;
    *ret_dead_at = dead_at;
    return GAVEL_OK;
}

enum gavel_status rig_freeze(struct rig *rig, uint32_t number, gavel_ns *ret_frozen_at)
{
    siginfo_t info;
    pid_t pid = rig->members[number].pid;

    if (!pid)
        return GAVEL_ERR_STATE;
    if (kill(pid, SIGSTOP) < 0)
        return GAVEL_ERR_IO;
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) < 0)
        if (errno != EINTR)
            return GAVEL_ERR_IO;
    if (info.si_code != CLD_STOPPED)
        return GAVEL_ERR_STATE; /* it ended instead */
    *ret_frozen_at = clock_now();
    return GAVEL_OK;
}

enum gavel_status rig_thaw(struct rig *rig, uint32_t number)
{
    pid_t pid = rig->members[number].pid;

    if (!pid)
        return GAVEL_ERR_STATE;
    return kill(pid, SIGCONT) < 0 ? GAVEL_ERR_IO : GAVEL_OK;
}

enum gavel_status rig_await(struct rig *rig, uint32_t number, gavel_ns until)
{
    struct member *member = &rig->members[number];
    struct pollfd death = {.fd = member->pidfd, .events = POLLIN};
    int wait_status;

    if (!member->pid)
        return GAVEL_ERR_STATE;
    for (;;) {
        gavel_ns left = until - clock_now();
        int ready = poll(&death, 1, left > 0 ? (int)(left / NS_PER_MS + 1) : 0);
        if (ready > 0)
            break;
        if (ready == 0)
            return GAVEL_ERR_TIMEOUT;
    }
    if (waitpid(member->pid, &wait_status, 0) < 0)
        return GAVEL_ERR_IO;
    forget(member);
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 ? GAVEL_OK : GAVEL_ERR_IO;
}

enum gavel_status rig_dismiss(struct rig *rig, uint32_t number, gavel_ns until)
{
    ask_to_leave(rig, number);
    return rig_await(rig, number, until);
}

static bool fits(const struct mark *mark, const struct mark_query *query)
{
    return mark_kind(mark) == query->kind && (query->member == ANY_MEMBER || query->member == mark->member) &&
           mark->member >= query->member_at_least && mark->epoch >= query->epoch_at_least;
}

enum gavel_status rig_expect(const struct rig *rig, const struct mark_query *query, gavel_ns until,
                             struct mark *ret_mark)
{
    for (;;) {
        /* Counted before looking, so that a mark that comes in between ends the wait at once. */
        uint32_t seen = shared_log_finished(rig->shared_log);
        size_t count;
        const struct mark *marks = shared_log_marks(rig->shared_log, &count);

        for (size_t i = query->from; i < count; i++) {
            if (fits(&marks[i], query)) {
                *ret_mark = marks[i];
                return GAVEL_OK;
            }
            if (mark_kind(&marks[i]) == MARK_FAILED)
                return GAVEL_ERR_IO;
        }
        if (is_interrupted)
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        shared_log_wait(rig->shared_log, seen, until);
    }
}

bool rig_is_dead(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd death = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0)
        return errno == ESRCH;
    bool dead = poll(&death, 1, 0) == 1;
    (void)close(pidfd);
    return dead;
}

size_t rig_mark_count(const struct rig *rig)
{
    size_t count;

    (void)shared_log_marks(rig->shared_log, &count);
    return count;
}

char member_listen(const struct member_context *context, gavel_ns until)
{
    struct pollfd control = {.fd = context->control, .events = POLLIN};
    gavel_ns left = ns_max(until - clock_now(), 0);
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    char letter;

    if (ppoll(&control, 1, &timeout, NULL) <= 0)
        return 0;
    if (read(context->control, &letter, 1) != 1)
        return RIG_QUIT;
    return letter;
}

void member_mark(const struct member_context *context, enum mark_kind kind, uint64_t epoch, gavel_ns at,
                 int64_t value)
{
    shared_log_mark(
        context->shared_log,
        &(struct mark){.kind = kind, .member = context->member, .epoch = epoch, .at = at, .value = value});
}
