/* SPDX-License-Identifier: Apache-2.0 */

/* What may happen to a SQLite store while it is in use. */
#include "store/conformance/conformance.h"
#include "store/scratch.h"
#include "store/sqlite/sqlite.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* SQLite's calls for the disk come here, so that they can be counted. */
static atomic_int syncs;

/* Which directories were among them lately. */
#define DIRECTORIES_MAX 16
static _Atomic(ino_t) synced_directories[DIRECTORIES_MAX];
static atomic_uint synced_directory_count;

__attribute__((visibility("default"))) int fsync(int fd)
{
    struct stat info;

    atomic_fetch_add(&syncs, 1);
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode))
        synced_directories[atomic_fetch_add(&synced_directory_count, 1) % DIRECTORIES_MAX] = info.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

static void test_a_claim_is_on_the_disk_before_it_is_answered(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    int before = atomic_load(&syncs);

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_true(atomic_load(&syncs) > before);
    before = atomic_load(&syncs);
    for (int i = 0; i < 20; i++) {
        (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
        (void)expect(store, ask_heartbeat("g", "one", 1, (uint64_t)i), GAVEL_OK);
    }
    assert_int_equal(atomic_load(&syncs), before); /* renewals do not wait for the disk */
    (void)expect(store, ask_claim("h", "one", 2, 0), GAVEL_OK);
    assert_true(atomic_load(&syncs) > before);
    store_close(store);
}

static void test_that_work_is_done_is_on_the_disk_before_it_is_answered(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request release = ask_release("g", "one", 1, 1);
    uint64_t version;
    int before;

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    before = atomic_load(&syncs);
    version = expect(store, release, GAVEL_OK).record.version;
    assert_int_equal(atomic_load(&syncs), before); /* a plain release does not wait for the disk */
    (void)expect(store, ask_claim("g", "two", 2, version), GAVEL_OK);
    release = ask_release("g", "two", 2, 2);
    release.record.done = true;
    before = atomic_load(&syncs);
    (void)expect(store, release, GAVEL_OK);
    assert_true(atomic_load(&syncs) > before);
    store_close(store);
}

static bool was_synced(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    for (int i = 0; i < DIRECTORIES_MAX; i++)
        if (atomic_load(&synced_directories[i]) == info.st_ino)
            return true;
    return false;
}

static void test_new_directories_survive_a_loss_of_power(void **state)
{
    struct scratch *s = *state;
    char path[400], *end;

    (void)snprintf(path, sizeof path, "%s.new/inner/gavel.db", s->file);
    store_close(open_store(path));
    assert_int_equal(unlink(path), 0);
    /* Each that was created, and the one that was there already. */
    for (int i = 0; i < 3; i++) {
        end = strrchr(path, '/');
        *end = '\0';
        assert_true(was_synced(path));
    }
    (void)snprintf(path, sizeof path, "%s.new/inner", s->file);
    assert_int_equal(rmdir(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void test_a_transaction_that_cannot_be_undone_answers_nothing(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct sqlite_store *sqlite = (struct sqlite_store *)store;
    sqlite3_stmt *roll_back = sqlite->statements[SQLITE_STATEMENT_ROLLBACK];
    sqlite3_stmt *nothing;
    char aside[400];

    (void)snprintf(aside, sizeof aside, "%s.aside", s->file);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(sqlite3_prepare_v2(sqlite->db, "SELECT 1", -1, &nothing, NULL), SQLITE_OK);
    sqlite->statements[SQLITE_STATEMENT_ROLLBACK] = nothing; /* it ends nothing */
    assert_int_equal(rename(s->file, aside), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_DAMAGED);
    assert_int_equal(rename(aside, s->file), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_UNAVAILABLE);
    (void)expect(store, ask_read("g"), GAVEL_ERR_STORE_UNAVAILABLE);
    sqlite->statements[SQLITE_STATEMENT_ROLLBACK] = roll_back;
    (void)sqlite3_finalize(nothing);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
    store_close(store);
}

static void test_a_deleted_file_ends_all_answers(void **state)
{
    struct scratch *s = *state;
    struct store *old = open_store(s->file);
    struct store *new;

    (void)expect(old, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(unlink(s->file), 0);
    (void)expect(old, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_DAMAGED);
    (void)expect(old, ask_read("g"), GAVEL_ERR_STORE_DAMAGED);
    new = open_store(s->file); /* new processes make a new file, which we must not mistake for ours */
    (void)expect(new, ask_claim("g", "two", 2, 0), GAVEL_OK);
    (void)expect(old, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_DAMAGED);
    (void)expect(old, ask_claim("g", "one", 3, 1), GAVEL_ERR_STORE_DAMAGED);
    (void)expect(old, ask_heartbeat("g", "one", 1, 1), GAVEL_ERR_STORE_DAMAGED);
    (void)expect(new, ask_renew("g", "two", 2, 1), GAVEL_OK);
    store_close(new);
    store_close(old);
}

static void test_waiting_on_a_store_in_trouble_takes_its_time(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    gavel_ns began;

    (void)expect(store, ask_claim("new", "one", 1, 0), GAVEL_OK);
    scratch_sql(s->file, "UPDATE groups SET format = 3");
    began = clock_now();
    store_wait(store, "new", UINT64_MAX, began + 20 * NS_PER_MS);
    assert_true(clock_now() - began >= 20 * NS_PER_MS);
    assert_int_equal(unlink(s->file), 0);
    began = clock_now();
    store_wait(store, "other", UINT64_MAX, began + 20 * NS_PER_MS);
    assert_true(clock_now() - began >= 20 * NS_PER_MS);
    store_close(store);
}

static void test_a_file_that_is_put_back_is_good_again(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    char aside[400];

    (void)snprintf(aside, sizeof aside, "%s.aside", s->file);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(rename(s->file, aside), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_DAMAGED);
    assert_int_equal(rename(aside, s->file), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
    store_close(store);
}

static void test_a_deleted_log_ends_all_answers(void **state)
{
    static const char *const endings[] = {"-wal", "-shm"};
    struct scratch *s = *state;

    for (size_t i = 0; i < 2; i++) {
        struct store *store = open_store(s->file);
        struct store_reply reply = expect(store, ask_read("g"), GAVEL_OK);
        char path[400];

        (void)expect(store, ask_claim("g", "one", i, reply.record.version), GAVEL_OK);
        (void)snprintf(path, sizeof path, "%s%s", s->file, endings[i]);
        assert_int_equal(unlink(path), 0);
        (void)expect(store, ask_renew("g", "one", i, reply.record.epoch + 1), GAVEL_ERR_STORE_DAMAGED);
        store_close(store);
        if (i == 0) { /* its epoch is gone with it: no store to go on with */
            assert_int_equal(store_open(s->file, &store, NULL), GAVEL_ERR_STORE_DAMAGED);
            assert_int_equal(unlink(s->file), 0);
        }
    }
}

static void test_a_second_name_ends_all_answers_until_it_is_gone(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_reply reply;
    char other[400];

    (void)snprintf(other, sizeof other, "%s/other.db", s->directory);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(link(s->file, other), 0);
    reply = expect(store, ask_renew("g", "one", 1, 1), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_non_null(strstr(reply.message, "hard link"));
    assert_non_null(strstr(reply.message, "remove that name"));
    (void)expect(store, ask_claim("h", "one", 1, 0), GAVEL_ERR_STORE_UNSUPPORTED);
    assert_int_equal(unlink(other), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
    assert_false(expect(store, ask_read("h"), GAVEL_OK).found);
    store_close(store);
}

/* Without the rights of root, which may look everywhere. Exit codes say what went wrong. */
static void lose_sight_of_the_file(const struct scratch *s)
{
    struct store_request renew = ask_renew("g", "one", 1, 1);
    struct store *store = NULL;
    struct store_reply reply;

    if (getuid() == 0 && (chown(s->directory, 65534, 65534) || setresgid(65534, 65534, 65534) ||
                          setresuid(65534, 65534, 65534)))
        _exit(1);
    store = open_store(s->file);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    if (chmod(s->directory, 0))
        _exit(2);
    if (store_call(store, &renew, &reply) != GAVEL_ERR_STORE_DENIED)
        _exit(3);
    if (!strstr(reply.message, "cannot look at") || !strstr(reply.message, "permissions"))
        _exit(4);
    if (chmod(s->directory, 0700) || store_call(store, &renew, &reply) != GAVEL_OK)
        _exit(5);
    store_close(store);
    _exit(0);
}

static void test_a_file_that_may_not_be_looked_at_has_not_moved(void **state)
{
    struct scratch *s = *state;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        lose_sight_of_the_file(s);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Claims group after group until that fails; returns how that ended and how many it had by then. */
static enum gavel_status claim_until_it_fails(struct store *store, unsigned *ret_claimed)
{
    for (unsigned i = 0; i < 20000; i++) {
        char group[32];
        struct store_request claim;
        struct store_reply reply;
        enum gavel_status status;

        (void)snprintf(group, sizeof group, "group-%u", i);
        claim = ask_claim(group, "one", i, 0);
        status = store_call(store, &claim, &reply);
        store_reply_done(&reply);
        if (status != GAVEL_OK) {
            *ret_claimed = i;
            return status;
        }
    }
    *ret_claimed = 20000;
    return GAVEL_OK;
}

static void test_a_full_store_says_so_and_loses_nothing(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct rlimit before;
    struct rlimit low;
    enum gavel_status status;
    unsigned claimed;
    char group[32];

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 200 * 1024; /* no file may grow beyond, as if the quota were used up */
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    status = claim_until_it_fails(store, &claimed);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, GAVEL_ERR_STORE_FULL);
    assert_true(claimed > 10);
    (void)snprintf(group, sizeof group, "group-%u", claimed);
    assert_false(expect(store, ask_read(group), GAVEL_OK).found); /* what failed is not there */
    (void)expect(store, ask_claim(group, "one", 1, 0), GAVEL_OK); /* with room it works again */
    (void)snprintf(group, sizeof group, "group-%u", claimed - 1);
    assert_int_equal(expect(store, ask_read(group), GAVEL_OK).record.epoch, 1);
    store_close(store);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        (void)close(fd); /* it is written or not */
    return is_written;
}

/* As an ordinary user: root of a namespace of its own, or its files would belong to nobody it knows. */
static bool become_root_inside(void)
{
    char users[32], groups[32];

    (void)snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
    (void)snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

/* In a child with a small file system of its own. Exit codes say what went wrong. */
static void fill_a_disk(const char *directory)
{
    char path[400];
    struct store *store;
    unsigned claimed;
    struct store_request read = ask_read("group-0");
    struct store_reply reply;

    if (unshare(CLONE_NEWNS) && !become_root_inside())
        _exit(77);
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
        mount("none", directory, "tmpfs", 0, "size=256k"))
        _exit(77);
    (void)snprintf(path, sizeof path, "%s/gavel.db", directory);
    if (store_open(path, &store, NULL) != GAVEL_OK)
        _exit(1);
    if (claim_until_it_fails(store, &claimed) != GAVEL_ERR_STORE_FULL || claimed < 10)
        _exit(2);
    if (store_call(store, &read, &reply) != GAVEL_OK || reply.record.epoch != 1)
        _exit(3); /* reading still works */
    _exit(0);
}

static void test_a_full_disk_says_so(void **state)
{
    struct scratch *s = *state;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        fill_a_disk(s->directory);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("may not mount a small file system here; the test with a quota stands for this one\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Takes the write lock by a connection of its own. */
static sqlite3 *lock_file(const char *file)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    /* With a log, as a store that is in use has. */
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    return db;
}

static void test_a_lock_that_does_not_come_in_time_is_a_timeout(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request claim = ask_claim("g", "one", 1, 0);
    sqlite3 *other = lock_file(s->file);
    gavel_ns began = clock_now();

    claim.give_up_at = began + 50 * NS_PER_MS;
    (void)expect(store, claim, GAVEL_ERR_TIMEOUT);
    assert_true(clock_now() - began >= 50 * NS_PER_MS);
    assert_true(clock_now() - began <
                20 * NS_PER_S); /* a busy machine; without a limit it would wait for ever */
    assert_false(expect(store, ask_read("g"), GAVEL_OK).found); /* reading needs no lock */
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    claim.give_up_at = clock_now() + 5 * NS_PER_S;
    assert_int_equal(expect(store, claim, GAVEL_OK).record.epoch, 1);
    store_close(store);
}

/* A process that stops in the middle of a write, with the lock. Its end is the caller's business. */
static pid_t stop_with_the_lock(const char *file)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
        (void)prctl(PR_SET_NAME, "odd ) \x01 name");
        (void)lock_file(file);
        (void)raise(SIGSTOP);
        for (;;)
            (void)pause();
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void test_whoever_holds_the_lock_is_named(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request claim = ask_claim("g", "one", 1, 0);
    struct store_reply reply;
    char expected[100];
    pid_t pid;

    store_close(store); /* a child must not inherit it */
    pid = stop_with_the_lock(s->file);
    store = open_store(s->file);
    claim.give_up_at = clock_now() + 20 * NS_PER_MS;
    reply = expect(store, claim, GAVEL_ERR_TIMEOUT);
    (void)snprintf(expected, sizeof expected,
                   "process %d (odd ) ? name, stopped) holds its lock; continue or end it", (int)pid);
    assert_non_null(strstr(reply.message, s->file));
    assert_non_null(strstr(reply.message, expected));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, NULL, WCONTINUED), pid);
    claim.give_up_at = clock_now() + 20 * NS_PER_MS;
    reply = expect(store, claim, GAVEL_ERR_TIMEOUT);
    (void)snprintf(expected, sizeof expected, "process %d (odd ) ? name) holds its lock; try again",
                   (int)pid);
    assert_non_null(strstr(reply.message, expected));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    claim.give_up_at = clock_now() + 5 * NS_PER_S;
    (void)expect(store, claim, GAVEL_OK); /* the kernel has freed the lock, and asking has cost us none */
    store_close(store);
}

/* By the kernel's word; 0 if nobody does. */
static pid_t holder_of_the_lock(const char *file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 1};
    char path[400];
    int fd;

    (void)snprintf(path, sizeof path, "%s-shm", file);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0)
        _exit(2);
    return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

static void test_asking_who_holds_the_lock_keeps_our_own_locks(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request claim = ask_claim("g", "one", 1, 0);
    sqlite3 *ours = lock_file(s->file); /* in this process */
    int status;
    pid_t pid;

    claim.give_up_at = clock_now() + 20 * NS_PER_MS;
    (void)expect(store, claim, GAVEL_ERR_TIMEOUT);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) /* a child has no locks to lose by opening the file itself */
        _exit(holder_of_the_lock(s->file) == getppid() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(sqlite3_close(ours), SQLITE_OK);
    store_close(store);
}

static void test_opening_does_not_wait_for_the_lock(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);

    for (int i = 0; i < 2; i++) { /* with a log of its whole length, and with a new one */
        gavel_ns took;
        int tries = 0;
        if (i == 1)
            store_close(store); /* the last one removes the log */
        do {                    /* who waits does so each time; a busy machine does not */
            sqlite3 *other = lock_file(s->file);
            gavel_ns began = clock_now();
            struct store *second = open_store(s->file);
            assert_false(expect(second, ask_read("g"), GAVEL_OK).found);
            took = clock_now() - began;
            assert_int_equal(sqlite3_close(other), SQLITE_OK);
            store_close(second);
            assert_true(++tries < 10);
        } while (took >= 5 * NS_PER_S); /* which is the patience of opening */
    }
}

struct unlocker {
    sqlite3 *db;
    gavel_ns at;
};

static void *unlock_later(void *argument)
{
    struct unlocker *unlocker = argument;

    while (clock_now() < unlocker->at)
        (void)usleep(1000);
    (void)sqlite3_close(unlocker->db);
    return NULL;
}

static void test_a_patient_request_outlasts_an_impatient_one_in_its_batch(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request requests[] = {ask_claim("g", "one", 1, 0), ask_claim("h", "one", 2, 0)};
    struct store_reply replies[2];
    struct unlocker unlocker = {.db = lock_file(s->file)};
    pthread_t thread;

    requests[0].give_up_at = clock_now() + 20 * NS_PER_MS;
    requests[1].give_up_at = clock_now() + 20 * NS_PER_S;
    unlocker.at = clock_now() + 60 * NS_PER_MS;
    assert_int_equal(pthread_create(&thread, NULL, unlock_later, &unlocker), 0);
    store_run(store, requests, replies, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(replies[0].status, GAVEL_ERR_TIMEOUT);
    assert_int_equal(replies[1].status, GAVEL_OK);
    assert_false(expect(store, ask_read("g"), GAVEL_OK).found);
    assert_true(expect(store, ask_read("h"), GAVEL_OK).found);
    store_close(store);
}

/* Claims and renews for ever, noting the newest epoch that it was given. */
static void write_for_ever(const char *file, _Atomic uint64_t *epoch)
{
    struct store *store = open_store(file);
    uint64_t n = (uint64_t)getpid() << 32;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
    for (;;) {
        struct store_request requests[] = {ask_read("g"), ask_heartbeat("g", "writer", n, 1)};
        struct store_request claim;
        struct store_reply replies[2];

        store_run(store, requests, replies, 2);
        claim = ask_claim("g", "writer", ++n, replies[0].record.version);
        store_run(store, &claim, replies, 1);
        if (replies[0].status != GAVEL_OK)
            _exit(1);
        atomic_store(epoch, replies[0].record.epoch);
    }
}

static void test_a_killed_writer_leaves_a_usable_store_and_no_epoch_is_lost(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    void *shared =
        mmap(NULL, sizeof(_Atomic uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    _Atomic uint64_t *epoch = shared;

    assert_ptr_not_equal(shared, MAP_FAILED);
    for (int i = 0; i < 10; i++) {
        uint64_t seen = atomic_load(epoch);
        gavel_ns limit = clock_now() + 20 * NS_PER_S;
        struct store_reply reply;
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            write_for_ever(s->file, epoch);
        while (atomic_load(epoch) < seen + 5 + (uint64_t)i % 3 && clock_now() < limit)
            (void)usleep(50);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        reply = expect(store, ask_read("g"), GAVEL_OK);
        assert_true(reply.record.epoch >= atomic_load(epoch));
        assert_true(reply.record.epoch > seen);
        (void)expect(store, ask_heartbeat("g", "writer", 1, 1), GAVEL_OK); /* it is proven dead */
        (void)expect(store, ask_leave("g", "writer", 1), GAVEL_OK);
    }
    assert_int_equal(munmap(shared, sizeof *epoch), 0);
    store_close(store);
}

static void test_a_forked_child_may_not_use_the_store(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    int status;
    pid_t pid;

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store_request renew = ask_renew("g", "one", 1, 1);
        struct store_reply reply;
        enum gavel_status refused = store_call(store, &renew, &reply);

        store_wait(store, "g", 1, clock_now() + 60 * NS_PER_S); /* returns at once */
        store_close(store);                                     /* must not disturb the parent */
        _exit(refused == GAVEL_ERR_STATE ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
    store_close(store);
}

static void test_a_lease_of_an_earlier_boot_has_ended(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct process_id self;

    assert_int_equal(process_self(&self), GAVEL_OK);
    (void)expect(store, ask_claim("ahead", "one", 1, 0), GAVEL_OK);
    (void)expect(store, ask_claim("first", "one", 2, 0), GAVEL_OK);
    (void)expect(store, ask_claim("container", "one", 3, 0), GAVEL_OK);
    scratch_sql(s->file,
                "UPDATE groups SET applied_at = applied_at + 3600000000000 WHERE name = 'ahead';"
                "UPDATE groups SET applied_boot_id = 'another', boot_id = 'another' WHERE name <> 'ahead';"
                "UPDATE groups SET pid_ns = 4026531836 WHERE name = 'first';"
                "UPDATE groups SET pid_ns = 4026532999 WHERE name = 'container';");
    assert_true(expect(store, ask_read("ahead"), GAVEL_OK).expired);
    /* A container may be shown a boot id of its own: that proves nothing, and its lease runs on. */
    assert_false(expect(store, ask_read("container"), GAVEL_OK).expired);
    assert_int_equal(expect(store, ask_read("first"), GAVEL_OK).expired, process_has_true_boot_id(&self));
    store_close(store);
}

static void test_a_row_that_makes_no_sense_is_refused(void **state)
{
    static const char *const changes[] = {
        "lease_ms = -1",
        "lease_ms = 9223372036854775807",
        "epoch = 0",
        "epoch = -5",
        "version = 0",
        "applied_at = -1",
        "applied_at = 9223372036854775807",
        "lease_ms = 'soon'",
        "held = 3",
        "held = 2", /* done, in the format of rows that are not */
        "format = 2",
    };
    struct scratch *s = *state;
    struct store *store = open_store(s->file);

    (void)expect(store, ask_claim("good", "one", 1, 0), GAVEL_OK);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct store_reply reply;
        char group[16];
        char sql[200];

        (void)snprintf(group, sizeof group, "bad-%zu", i);
        (void)snprintf(sql, sizeof sql, "UPDATE groups SET %s WHERE name = '%s'", changes[i], group);
        (void)expect(store, ask_claim(group, "one", i, 0), GAVEL_OK);
        scratch_sql(s->file, sql);
        reply = expect(store, ask_read(group), GAVEL_ERR_STORE_DAMAGED);
        assert_non_null(strstr(reply.message, "stop all candidates of this store, then restore"));
        (void)expect(store, ask_claim(group, "two", i, 1), GAVEL_ERR_STORE_DAMAGED);
    }
    (void)expect(store, ask_renew("good", "one", 1, 1), GAVEL_OK);
    store_close(store);
}

static void test_an_epoch_that_could_not_be_read_back_is_not_given_out(void **state)
{
    struct scratch *s = *state;
    struct store *store = open_store(s->file);
    struct store_request claim = ask_claim("g", "two", 2, 1);
    struct store_reply reply;

    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    scratch_sql(s->file, "UPDATE groups SET epoch = 9223372036854775805");
    reply = expect(store, claim, GAVEL_OK);
    assert_int_equal(reply.record.epoch, INT64_MAX - 1); /* the last one */
    claim.expected_version = reply.record.version;
    reply = expect(store, claim, GAVEL_ERR_STORE_FULL);
    assert_non_null(strstr(reply.message, "another group"));
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.epoch, INT64_MAX - 1);
    (void)expect(store, ask_renew("g", "two", 2, INT64_MAX - 1), GAVEL_OK); /* whoever has it keeps it */
    claim = ask_claim("new", "two", 3, 0);
    claim.record.epoch = INT64_MAX; /* somebody who says to know a higher one cannot spoil a group */
    (void)expect(store, claim, GAVEL_ERR_STORE_FULL);
    (void)expect(store, ask_claim("new", "two", 3, 0), GAVEL_OK);
    store_close(store);
}

static void *release_soon(void *store)
{
    const struct store_request release = ask_release("g", "one", 1, 1);
    struct store_reply reply;

    store_run(store, &release, &reply, 1); /* who waits sees whether it worked */
    store_reply_done(&reply);
    return NULL;
}

static void test_waiting_sees_the_change_of_another_connection(void **state)
{
    struct scratch *s = *state;
    struct store *a = open_store(s->file);
    struct store *b = open_store(s->file);
    uint64_t version = expect(a, ask_claim("g", "one", 1, 0), GAVEL_OK).record.version;
    gavel_ns began = clock_now();
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, release_soon, a), 0);
    store_wait(b, "g", version, began + 120 * NS_PER_S);
    assert_true(clock_now() - began < 60 * NS_PER_S);
    assert_false(expect(b, ask_read("g"), GAVEL_OK).record.held);
    assert_int_equal(pthread_join(thread, NULL), 0);
    store_close(a);
    store_close(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_claim_is_on_the_disk_before_it_is_answered),
        TEST(test_that_work_is_done_is_on_the_disk_before_it_is_answered),
        TEST(test_new_directories_survive_a_loss_of_power),
        TEST(test_a_transaction_that_cannot_be_undone_answers_nothing),
        TEST(test_a_deleted_file_ends_all_answers),
        TEST(test_waiting_on_a_store_in_trouble_takes_its_time),
        TEST(test_a_file_that_is_put_back_is_good_again),
        TEST(test_a_deleted_log_ends_all_answers),
        TEST(test_a_second_name_ends_all_answers_until_it_is_gone),
        TEST(test_a_file_that_may_not_be_looked_at_has_not_moved),
        TEST(test_a_full_store_says_so_and_loses_nothing),
        TEST(test_a_full_disk_says_so),
        TEST(test_a_lock_that_does_not_come_in_time_is_a_timeout),
        TEST(test_whoever_holds_the_lock_is_named),
        TEST(test_asking_who_holds_the_lock_keeps_our_own_locks),
        TEST(test_opening_does_not_wait_for_the_lock),
        TEST(test_a_patient_request_outlasts_an_impatient_one_in_its_batch),
        TEST(test_a_killed_writer_leaves_a_usable_store_and_no_epoch_is_lost),
        TEST(test_a_forked_child_may_not_use_the_store),
        TEST(test_a_lease_of_an_earlier_boot_has_ended),
        TEST(test_a_row_that_makes_no_sense_is_refused),
        TEST(test_an_epoch_that_could_not_be_read_back_is_not_given_out),
        TEST(test_waiting_sees_the_change_of_another_connection),
    };

    return cmocka_run_group_tests_name("sqlite: faults", tests, NULL, NULL);
}
