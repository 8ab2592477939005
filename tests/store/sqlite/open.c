/* SPDX-License-Identifier: Apache-2.0 */

/* Files that the sqlite driver cannot or must not use: each a clear message, and nothing lost. */
#include "os/filesystem.h"
#include "store/conformance/conformance.h"
#include "store/scratch.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Opening fails with this status and a message that has both words in it; nothing is returned. */
static void expect_open(const char *path, enum gavel_status status, const char *word, const char *other)
{
    struct store *store = NULL;
    struct gavel_error error = {0};
    enum gavel_status got = store_open(path, &store, &error);

    if (got != status || !strstr(error.message, word) || !strstr(error.message, other))
        print_error("%s: %s: %s\n", path, gavel_status_name(got), error.message);
    assert_int_equal(got, status);
    assert_int_equal(error.status, status);
    assert_null(store);
    assert_non_null(strstr(error.message, word));
    assert_non_null(strstr(error.message, other));
    assert_int_equal(store_open(path, &store, NULL), status); /* the message is optional */
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void test_a_missing_directory_is_created_for_its_owner_only(void **state)
{
    struct scratch *s = *state;
    char path[400];
    struct store *store;

    (void)snprintf(path, sizeof path, "%s/one/two/gavel.db", s->directory);
    assert_int_equal(store_open(path, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(mode_of(path), 0600);
    (void)strcat(path, "-wal");
    assert_int_equal(mode_of(path), 0600);
    (void)snprintf(path, sizeof path, "%s/one/two", s->directory);
    assert_int_equal(mode_of(path), 0700);
    store_close(store);
}

static void test_a_relative_path_stays_the_same_file_when_the_directory_changes(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    char before[4096];

    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(s->directory), 0);
    assert_int_equal(store_open("gavel.db", &store, NULL), GAVEL_OK);
    assert_int_equal(chdir("/"), 0);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    assert_int_equal(chdir(before), 0);
    store_close(store);
    assert_int_equal(access(s->file, F_OK), 0);
}

/* Runs in a child that is not root, since root may write everywhere. Exits with 0 if refused as it should
 * be. */
static void open_as_nobody(const char *path)
{
    struct store *store = NULL;
    struct gavel_error error = {0};

    if (getuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        _exit(2);
    if (store_open(path, &store, &error) != GAVEL_ERR_STORE_DENIED || store)
        _exit(3);
    _exit(strstr(error.message, "permissions") ? 0 : 4);
}

static void expect_denied(const char *path)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        open_as_nobody(path);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_what_we_may_not_write_is_denied(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    char path[400];

    assert_int_equal(chmod(s->directory, 0555), 0);
    expect_denied(s->file); /* the file cannot be created */
    (void)snprintf(path, sizeof path, "%s/sub/gavel.db", s->directory);
    expect_denied(path); /* the directory cannot be created */
    assert_int_equal(chmod(s->directory, 0755), 0);
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    store_close(store);
    assert_int_equal(chmod(s->file, 0444), 0);
    expect_denied(s->file); /* the file can be read only */
    assert_int_equal(chmod(s->file, 0), 0);
    expect_denied(s->file); /* not even that */
}

static void test_a_path_that_is_no_file_is_refused(void **state)
{
    struct scratch *s = *state;
    struct store *store = NULL;
    struct gavel_error error;
    char path[400];

    expect_open(s->directory, GAVEL_ERR_STORE_DENIED, "not a file", "gavel.db");
    expect_open("/dev/null", GAVEL_ERR_STORE_DENIED, "not a file", "; name a file");
    assert_int_equal(store_open("/dev/null", &store, &error), GAVEL_ERR_STORE_DENIED);
    assert_null(strstr(error.message, "/dev/null/gavel.db"));
    write_file(s->file, "");
    (void)snprintf(path, sizeof path, "%s/below/gavel.db", s->file);
    expect_open(path, GAVEL_ERR_STORE_DENIED, s->file, strerror(ENOTDIR));
    expect_open("sqlite:", GAVEL_ERR_INVALID, "sqlite:/path", "memory");
    expect_open("sqlite::memory:", GAVEL_ERR_INVALID, "sqlite:/path", "memory:name");
    (void)snprintf(path, sizeof path, "%s/", s->directory);
    expect_open(path, GAVEL_ERR_INVALID, s->directory, "sqlite:/path");
}

static void test_a_file_that_is_no_database_is_refused_and_kept(void **state)
{
    static const char text[] =
        "These are my notes. They are not a database, and nobody may overwrite them.\n";
    struct scratch *s = *state;
    char found[sizeof text] = "";
    FILE *file;

    write_file(s->file, text);
    expect_open(s->file, GAVEL_ERR_STORE_DAMAGED, s->file, "another file");
    file = fopen(s->file, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(found, text);
}

static void test_the_database_of_another_program_is_refused(void **state)
{
    struct scratch *s = *state;

    scratch_sql(s->file, "CREATE TABLE bookmarks (url TEXT)");
    expect_open(s->file, GAVEL_ERR_STORE_DAMAGED, "another program", "another file");
    scratch_sql(s->file, "DROP TABLE bookmarks; PRAGMA application_id = 252006673");
    expect_open(s->file, GAVEL_ERR_STORE_DAMAGED, "another program", "another file");
}

static void test_the_store_of_a_newer_gavel_is_refused(void **state)
{
    struct scratch *s = *state;
    struct store *store;

    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
    scratch_sql(s->file, "PRAGMA user_version = 2");
    expect_open(s->file, GAVEL_ERR_STORE_TOO_NEW, "newer gavel", "update");
    scratch_sql(s->file, "PRAGMA user_version = 1");
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.epoch, 1); /* nothing was lost */
    store_close(store);
}

/* The gavel of before knows rows of format 1 only, in tables that have not changed since. */
static void test_only_the_rows_of_done_groups_are_closed_to_a_gavel_of_before(void **state)
{
    struct scratch *s = *state;
    struct store_request finish = ask_release("done", "one", 1, 1);
    struct store *store;
    uint64_t version;

    finish.record.done = true;
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("done", "one", 1, 0), GAVEL_OK);
    (void)expect(store, ask_claim("held", "one", 2, 0), GAVEL_OK);
    (void)expect(store, ask_claim("free", "one", 3, 0), GAVEL_OK);
    (void)expect(store, ask_release("free", "one", 3, 1), GAVEL_OK);
    assert_int_equal(scratch_number(s->file, "SELECT count(*) FROM groups WHERE format > 1"), 0);
    version = expect(store, finish, GAVEL_OK).record.version;
    assert_int_equal(scratch_number(s->file, "SELECT format FROM groups WHERE name = 'done'"), 2);
    assert_int_equal(scratch_number(s->file, "SELECT count(*) FROM groups WHERE format > 1"), 1);
    assert_int_equal(scratch_number(s->file, "PRAGMA user_version"), 1);
    /* What is opened again is everybody's again. */
    finish = ask_read("done");
    finish.op = STORE_REOPEN;
    finish.expected_version = version;
    (void)expect(store, finish, GAVEL_OK);
    assert_int_equal(scratch_number(s->file, "SELECT count(*) FROM groups WHERE format > 1 OR held = 2"), 0);
    store_close(store);
}

static void test_a_store_without_its_tables_is_damaged(void **state)
{
    struct scratch *s = *state;
    struct store *store;

    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    store_close(store);
    scratch_sql(s->file, "DROP TABLE candidates");
    expect_open(s->file, GAVEL_ERR_STORE_DAMAGED, s->file,
                "stop all candidates of this store, then restore it from a backup");
}

static void test_a_damaged_page_is_reported_as_damage(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    struct gavel_error error;
    enum gavel_status status;
    char noise[1024];
    FILE *file;

    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    for (unsigned i = 0; i < 40; i++) {
        char group[16];

        (void)snprintf(group, sizeof group, "g%u", i);
        (void)expect(store, ask_claim(group, "one", i, 0), GAVEL_OK);
    }
    store_close(store);
    memset(noise, 0x5a, sizeof noise);
    file = fopen(s->file, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, sizeof noise, SEEK_SET), 0); /* all but the first page */
    for (int i = 0; i < 8; i++)
        assert_int_equal(fwrite(noise, sizeof noise, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    store = NULL;
    status = store_open(s->file, &store, &error);
    if (status == GAVEL_OK)
        (void)expect(store, ask_read("g7"), GAVEL_ERR_STORE_DAMAGED);
    else
        assert_int_equal(status, GAVEL_ERR_STORE_DAMAGED);
    store_close(store);
}

static void test_a_second_name_of_the_file_is_refused(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    char other[400];

    (void)snprintf(other, sizeof other, "%s/other.db", s->directory);
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
    assert_int_equal(link(s->file, other), 0);
    expect_open(s->file, GAVEL_ERR_STORE_UNSUPPORTED, "hard link", "directory");
    expect_open(other, GAVEL_ERR_STORE_UNSUPPORTED, "hard link", "directory");
    (void)strcat(other, "-wal");
    assert_int_equal(access(other, F_OK), -1); /* refused before SQLite has seen it */
    other[strlen(other) - strlen("-wal")] = '\0';
    assert_int_equal(unlink(other), 0);
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.epoch, 1);
    store_close(store);
}

static void test_a_symbolic_link_leads_to_the_same_log(void **state)
{
    struct scratch *s = *state;
    struct store *direct;
    struct store *by_link;
    char directory[400];
    char path[500];

    (void)snprintf(directory, sizeof directory, "%s/elsewhere", s->directory);
    (void)snprintf(path, sizeof path, "%s/link.db", directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(store_open(s->file, &direct, NULL), GAVEL_OK);
    assert_int_equal(symlink(s->file, path), 0);
    assert_int_equal(store_open(path, &by_link, NULL), GAVEL_OK);
    (void)expect(direct, ask_claim("g", "one", 1, 0), GAVEL_OK);
    (void)expect(by_link, ask_claim("g", "two", 2, 0), GAVEL_ERR_CONFLICT);
    assert_int_equal(expect(by_link, ask_read("g"), GAVEL_OK).record.epoch, 1);
    (void)expect(by_link, ask_renew("g", "one", 1, 1), GAVEL_OK);
    assert_int_equal(expect(direct, ask_read("g"), GAVEL_OK).record.version, 2);
    (void)strcat(path, "-wal");
    assert_int_equal(access(path, F_OK), -1);
    store_close(by_link);
    store_close(direct);
}

/* Into a mount namespace of our own; 77 says that this is not allowed. */
static void leave_the_mounts(void)
{
    if ((unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS)) ||
        mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL))
        _exit(77);
}

/* In a child with mounts of its own. Exit codes say what went wrong. */
static void open_mounted_file(const struct scratch *s)
{
    char path[400];
    struct store *store = NULL;
    struct gavel_error error = {0};

    (void)snprintf(path, sizeof path, "%s/mounted.db", s->directory);
    leave_the_mounts();
    if (mount(s->file, path, "none", MS_BIND, NULL))
        _exit(77);
    if (store_open(path, &store, &error) != GAVEL_ERR_STORE_UNSUPPORTED)
        _exit(1);
    if (!strstr(error.message, "mount its directory instead"))
        _exit(2);
    (void)strcat(path, "-wal");
    if (access(path, F_OK) == 0)
        _exit(3);
    _exit(store_open(s->file, &store, NULL) == GAVEL_OK ? 0 : 4); /* by its own name it is good */
}

/* The directory shows the same log by whatever name, so this is the way that works. */
static void open_in_mounted_directory(const struct scratch *s)
{
    char path[400];
    struct store *store = NULL;
    struct store_request claim = ask_claim("g", "two", 2, 0);
    struct store_reply reply;

    (void)snprintf(path, sizeof path, "%s/mounted", s->directory);
    leave_the_mounts();
    if (mount(s->directory, path, "none", MS_BIND, NULL))
        _exit(77);
    (void)strcat(path, "/gavel.db");
    if (store_open(path, &store, NULL) != GAVEL_OK)
        _exit(1);
    _exit(store_call(store, &claim, &reply) == GAVEL_ERR_CONFLICT && reply.record.epoch == 1 ? 0 : 2);
}

/* False, and says so, where nothing may be mounted. */
static bool run_with_mounts(void (*run)(const struct scratch *s), const struct scratch *s)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        run(s);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("may not mount here, neither as root nor in a user namespace\n");
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void test_a_file_that_is_mounted_by_itself_is_refused(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    char path[400];

    (void)snprintf(path, sizeof path, "%s/mounted.db", s->directory);
    write_file(path, "");
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    store_close(store);
    if (!run_with_mounts(open_mounted_file, s))
        skip();
}

static void test_a_mounted_directory_shows_the_same_log(void **state)
{
    struct scratch *s = *state;
    struct store *store;
    char path[400];
    bool has_run;

    (void)snprintf(path, sizeof path, "%s/mounted", s->directory);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    (void)expect(store, ask_claim("g", "one", 1, 0), GAVEL_OK);
    has_run = run_with_mounts(open_in_mounted_directory, s);
    (void)expect(store, ask_renew("g", "one", 1, 1), GAVEL_OK);
    store_close(store);
    if (!has_run)
        skip();
}

static void test_many_processes_may_create_the_store_at_once(void **state)
{
    enum { MANY = 12 };
    struct scratch *s = *state;
    pid_t pids[MANY];
    struct store *store;

    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct store_request claim = ask_claim("g", "one", (uint64_t)i, 0);
            struct store_reply reply;
            struct gavel_error error;

            if (store_open(s->file, &store, &error) != GAVEL_OK) {
                (void)fprintf(stderr, "%s\n", error.message);
                _exit(1);
            }
            store_run(store, &claim, &reply, 1);
            (void)fputs(reply.status == GAVEL_ERR_CONFLICT ? "" : reply.message, stderr);
            store_close(store);
            _exit(reply.status == GAVEL_OK || reply.status == GAVEL_ERR_CONFLICT ? 0 : 2);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(store_open(s->file, &store, NULL), GAVEL_OK);
    assert_int_equal(expect(store, ask_read("g"), GAVEL_OK).record.epoch, 1);
    store_close(store);
}

static void test_network_file_systems_are_known_by_their_numbers(void **state)
{
    (void)state;
    assert_string_equal(filesystem_refused(0x6969), "NFS");
    assert_string_equal(filesystem_refused(0xFF534D42), "CIFS");
    assert_string_equal(filesystem_refused(0xFE534D42), "SMB2");
    assert_string_equal(filesystem_refused(0x01021997), "9p");
    assert_string_equal(filesystem_refused(0x65735546), "FUSE");
    assert_string_equal(filesystem_refused(0x00C36400), "Ceph");
    assert_string_equal(filesystem_refused(0x01161970), "GFS2");
    assert_string_equal(filesystem_refused(0x7461636F), "OCFS2");
    assert_string_equal(filesystem_refused(0x0BD00BD0), "Lustre");
    assert_string_equal(filesystem_refused(0x5346414F), "AFS");
    assert_null(filesystem_refused(0xEF53));     /* ext4 */
    assert_null(filesystem_refused(0x58465342)); /* xfs */
    assert_null(filesystem_refused(0x9123683E)); /* btrfs */
    assert_null(filesystem_refused(0x01021994)); /* tmpfs */
    assert_null(filesystem_refused(0x794C7630)); /* overlayfs */
    assert_null(filesystem_refused(0x2FC12FC1)); /* zfs */
}

static void test_errors_of_sqlite_have_one_meaning_each(void **state)
{
    (void)state;
    assert_int_equal(sqlite_status(SQLITE_OK, 0), GAVEL_OK);
    assert_int_equal(sqlite_status(SQLITE_BUSY_SNAPSHOT, 0), GAVEL_ERR_TIMEOUT);
    assert_int_equal(sqlite_status(SQLITE_FULL, 0), GAVEL_ERR_STORE_FULL);
    assert_int_equal(sqlite_status(SQLITE_IOERR_WRITE, ENOSPC), GAVEL_ERR_STORE_FULL);
    assert_int_equal(sqlite_status(SQLITE_IOERR_WRITE, EDQUOT), GAVEL_ERR_STORE_FULL);
    assert_int_equal(sqlite_status(SQLITE_IOERR_FSYNC, EIO), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(sqlite_status(SQLITE_IOERR_READ, 0), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(sqlite_status(SQLITE_CANTOPEN, EIO), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(sqlite_status(SQLITE_READONLY, 0), GAVEL_ERR_STORE_DENIED);
    assert_int_equal(sqlite_status(SQLITE_READONLY_DBMOVED, 0), GAVEL_ERR_STORE_DAMAGED);
    assert_int_equal(sqlite_status(SQLITE_CANTOPEN, EMFILE), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(sqlite_status(SQLITE_CANTOPEN, ENOENT), GAVEL_ERR_STORE_DENIED);
    assert_int_equal(sqlite_status(SQLITE_NOTADB, 0), GAVEL_ERR_STORE_DAMAGED);
    assert_int_equal(sqlite_status(SQLITE_CORRUPT_INDEX, 0), GAVEL_ERR_STORE_DAMAGED);
    assert_int_equal(sqlite_status(SQLITE_NOMEM, 0), GAVEL_ERR_NO_MEMORY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_missing_directory_is_created_for_its_owner_only),
        TEST(test_a_relative_path_stays_the_same_file_when_the_directory_changes),
        TEST(test_what_we_may_not_write_is_denied),
        TEST(test_a_path_that_is_no_file_is_refused),
        TEST(test_a_file_that_is_no_database_is_refused_and_kept),
        TEST(test_the_database_of_another_program_is_refused),
        TEST(test_the_store_of_a_newer_gavel_is_refused),
        TEST(test_only_the_rows_of_done_groups_are_closed_to_a_gavel_of_before),
        TEST(test_a_store_without_its_tables_is_damaged),
        TEST(test_a_damaged_page_is_reported_as_damage),
        TEST(test_a_second_name_of_the_file_is_refused),
        TEST(test_a_symbolic_link_leads_to_the_same_log),
        TEST(test_a_file_that_is_mounted_by_itself_is_refused),
        TEST(test_a_mounted_directory_shows_the_same_log),
        TEST(test_many_processes_may_create_the_store_at_once),
        cmocka_unit_test(test_network_file_systems_are_known_by_their_numbers),
        cmocka_unit_test(test_errors_of_sqlite_have_one_meaning_each),
    };

    return cmocka_run_group_tests_name("sqlite: opening", tests, NULL, NULL);
}
