/* SPDX-License-Identifier: Apache-2.0 */

/* Starting, steering and ending the processes of a crew. */
#include "cli/crew.h"

#include "base/error.h"
#include "os/clock.h"

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

/* Signals have no other place to leave a word. */
static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

bool crew_is_interrupted(void) { return is_interrupted; }

enum gavel_status crew_open(struct crew *crew, struct gavel_error *error)
{
    const char *base = getenv("TMPDIR");
    struct sigaction action = {.sa_handler = interrupt};
    enum gavel_status status;

    *crew = (struct crew){0};
    if (!base || !*base)
        base = P_tmpdir;
    int length = snprintf(crew->folder, sizeof(crew->folder), "%s/gavel-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof(crew->folder))
        return error_set(error, GAVEL_ERR_INVALID, "the path in TMPDIR is too long: set a shorter one");
    status = witness_new(&crew->witness);
    if (status)
        return error_set(error, status, "no memory for the records of the processes");
    if (!mkdtemp(crew->folder)) {
        witness_free(crew->witness);
        return error_set(error, GAVEL_ERR_IO, "cannot make a folder in %s: %s; set TMPDIR to another place",
                         base, strerror(errno));
    }
    (void)snprintf(crew->store, sizeof(crew->store), "sqlite:%s/gavel.db", crew->folder);
    (void)sigaction(SIGINT, &action, NULL); /* cannot fail for these signals */
    (void)sigaction(SIGTERM, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a member that is gone does not end us */
    return GAVEL_OK;
}

/* The folder holds plain files only, and all of them are ours. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);

    if (folder) {
        for (struct dirent *entry; (entry = readdir(folder));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                (void)unlinkat(dirfd(folder), entry->d_name,
                               0); /* what stays shows in rmdir, and harms nobody */
        (void)closedir(folder);
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

void crew_close(struct crew *crew)
{
    gavel_ns until = clock_now() + LEAVE_LIMIT_NS;
    gavel_ns ignored;

    for (uint32_t i = 0; i < CREW_MAX; i++)
        if (crew->members[i].pid) {
            (void)crew_thaw(crew, i); /* only one that runs can leave in order */
            crew_tell(crew, i, CREW_QUIT);
        }
    for (uint32_t i = 0; i < CREW_MAX; i++) {
        if (!crew->members[i].pid)
            continue;
        if (crew_await(crew, i, until) && crew->members[i].pid)
            (void)crew_kill(crew, i, &ignored, &ignored); /* nothing is left to be done about it */
    }
    if (crew->folder[0])
        remove_folder(crew->folder);
    witness_free(crew->witness);
    *crew = (struct crew){0};
}

static _Noreturn void live(struct crew *crew, uint32_t number, const char *name, int control, pid_t driver,
                           post_run run, void *user)
{
    struct post post = {.crew = crew, .witness = crew->witness, .member = number, .control = control};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the pipe's end does the same for whoever is not frozen */
    if (getppid() != driver)
        _exit(1); /* it died before the line above */
    (void)snprintf(post.name, sizeof(post.name), "%s", name);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the driver sends us home */
    (void)signal(SIGTERM, SIG_DFL);
    for (uint32_t i = 0; i < CREW_MAX; i++) {
        /* A pipe that a sibling also holds open would never end. */
        if (crew->members[i].pid) {
            (void)close(crew->members[i].control);
            (void)close(crew->members[i].pidfd);
        }
    }
    _exit(run(&post, user)); /* without exit(): what stdio holds is the driver's to print */
}

enum gavel_status crew_start(struct crew *crew, uint32_t number, const char *name, post_run run, void *user,
                             struct gavel_error *error)
{
    struct member *member = &crew->members[number];
    pid_t driver = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(error, GAVEL_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return error_set(error, GAVEL_ERR_IO, "cannot start a process: %s", strerror(errno));
    }
    if (pid == 0) {
        (void)close(ends[1]);
        live(crew, number, name, ends[0], driver, run, user);
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

void crew_tell(struct crew *crew, uint32_t member, char letter)
{
    if (!crew->members[member].pid)
        return;
    /* A member that is gone shows in its pidfd. */
    ssize_t written = write(crew->members[member].control, &letter, 1);
    (void)written;
}

enum gavel_status crew_kill(struct crew *crew, uint32_t number, gavel_ns *ret_sent_at, gavel_ns *ret_dead_at)
{
    struct member *member = &crew->members[number];
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

enum gavel_status crew_freeze(struct crew *crew, uint32_t number, gavel_ns *ret_frozen_at)
{
    siginfo_t info;
    pid_t pid = crew->members[number].pid;

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

enum gavel_status crew_thaw(struct crew *crew, uint32_t number)
{
    pid_t pid = crew->members[number].pid;

    if (!pid)
        return GAVEL_ERR_STATE;
    return kill(pid, SIGCONT) < 0 ? GAVEL_ERR_IO : GAVEL_OK;
}

enum gavel_status crew_await(struct crew *crew, uint32_t number, gavel_ns until)
{
    struct member *member = &crew->members[number];
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

enum gavel_status crew_dismiss(struct crew *crew, uint32_t number, gavel_ns until)
{
    crew_tell(crew, number, CREW_QUIT);
    return crew_await(crew, number, until);
}

static bool fits(const struct mark *mark, const struct mark_query *query)
{
    return mark_kind(mark) == query->kind && (query->member == ANY_MEMBER || query->member == mark->member) &&
           mark->epoch >= query->epoch_at_least;
}

enum gavel_status crew_expect(const struct crew *crew, const struct mark_query *query, gavel_ns until,
                              struct mark *ret_mark)
{
    for (;;) {
        /* Counted before looking, so that a mark that comes in between ends the wait at once. */
        uint32_t seen = witness_finished(crew->witness);
        size_t count;
        const struct mark *marks = witness_marks(crew->witness, &count);

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
        witness_wait(crew->witness, seen, until);
    }
}

size_t crew_mark_count(const struct crew *crew)
{
    size_t count;

    (void)witness_marks(crew->witness, &count);
    return count;
}

char post_listen(const struct post *post, gavel_ns until)
{
    struct pollfd control = {.fd = post->control, .events = POLLIN};
    gavel_ns left = ns_max(until - clock_now(), 0);
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    char letter;

    if (ppoll(&control, 1, &timeout, NULL) <= 0)
        return 0;
    if (read(post->control, &letter, 1) != 1)
        return CREW_QUIT;
    return letter;
}

void post_mark(const struct post *post, enum mark_kind kind, uint64_t epoch, gavel_ns at, int64_t value)
{
    witness_mark(
        post->witness,
        &(struct mark){.kind = kind, .member = post->member, .epoch = epoch, .at = at, .value = value});
}
