/* SPDX-License-Identifier: Apache-2.0 */

/* Finding the own cgroup, and ending a tree in one. */
#include "guard/cgroup.h"
#include "tree_owner.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cmocka.h>

#define UNIFIED "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID                                                                                               \
    "34 24 0:29 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"                                      \
    "36 34 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                                            \
    "35 34 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

static void test_the_own_cgroup_is_found_below_its_mount(void **state)
{
    static const struct {
        const char *cgroups;
        const char *mounts;
        const char *directory; /* NULL: none */
    } cases[] = {
        {"0::/a.slice/b.service\n", UNIFIED, "/sys/fs/cgroup/a.slice/b.service"},
        {"0::/\n", UNIFIED, "/sys/fs/cgroup"},
        {"4:memory:/x\n1:name=systemd:/\n0::/y\n", HYBRID, "/sys/fs/cgroup/unified/y"},
        {"4:memory:/x\n", HYBRID, NULL},
        {"0::/../outside\n", UNIFIED, NULL},
        {"0::/y\n", "36 34 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", NULL},
        {"0::/box/y\n", "35 34 0:30 /box /mnt/c\\040g rw - cgroup2 cgroup2 rw\n", "/mnt/c g/y"},
        {"0::/box\n", "35 34 0:30 /box /mnt rw - cgroup2 cgroup2 rw\n", "/mnt"},
        {"0::/boxer\n", "35 34 0:30 /box /mnt rw - cgroup2 cgroup2 rw\n", NULL},
        {"0::/a\n", "35 34\n - cgroup2 \n\n", NULL},
        {"", "", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char directory[128] = "untouched";

        if (cgroup_find(cases[i].cgroups, cases[i].mounts, directory, sizeof directory))
            assert_string_equal(directory, cases[i].directory ? cases[i].directory : "none");
        else
            assert_null(cases[i].directory);
    }
}

static void test_a_directory_that_does_not_fit_is_not_found(void **state)
{
    char directory[20];

    (void)state;
    assert_false(cgroup_find("0::/a.slice/b.service\n", UNIFIED, directory, sizeof directory));
}

/* Skips the test where no cgroup can be made; in a process of its own, which a tree changes. */
static void need_cgroup(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct tree tree;
        struct gavel_error error = {0};
        enum gavel_status result = tree_open(&tree, CONTAIN_CGROUP, &error);

        if (result != GAVEL_OK) {
            CHECK(strstr(error.message, "--contain=walk") || result == GAVEL_ERR_IO);
            dprintf(STDERR_FILENO, "%s\n", error.message);
            _exit(77);
        }
        tree_close(&tree);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* One in the cgroup, and one that root has moved out of it. */
static void be_two(struct tree_owner *owner)
{
    if (fork() == 0) {
        char procs[600];
        int fd;

        (void)setsid();
        (void)snprintf(procs, sizeof procs, "%s/../cgroup.procs", owner->tree.cgroup);
        fd = open(procs, O_WRONLY);
        CHECK(fd >= 0);
        CHECK(write(fd, "0", 1) == 1);
    }
    tree_owner_live(owner);
}

static void end_cgroup(struct tree_owner *owner)
{
    char directory[sizeof owner->tree.cgroup];
    struct stat stat_of;

    CHECK(owner->tree.has_cgroup);
    (void)snprintf(directory, sizeof directory, "%s", owner->tree.cgroup);
    CHECK(stat(directory, &stat_of) == 0);
    CHECK(!cgroup_is_populated(&owner->tree));
    (void)tree_owner_child(owner, be_two);
    tree_owner_await(owner, 2);
    CHECK(cgroup_is_populated(&owner->tree));
    CHECK(tree_count(&owner->tree, SIZE_MAX, NULL) == 2);
    CHECK(tree_end(&owner->tree, owner->stage->until));
    CHECK(tree_owner_sees_all_dead(owner));
    CHECK(!cgroup_is_populated(&owner->tree));
    tree_close(&owner->tree);
    CHECK(stat(directory, &stat_of) < 0);
}

static void test_a_tree_in_a_cgroup_is_ended_with_whoever_was_moved_out(void **state)
{
    (void)state;
    need_cgroup();
    tree_owner_run(CONTAIN_CGROUP, end_cgroup);
}

static void start_again(struct tree_owner *owner)
{
    for (int i = 1; i <= 3; i++) {
        (void)tree_owner_child(owner, tree_owner_live);
        tree_owner_await(owner, i); /* it got there alive */
        CHECK(cgroup_is_populated(&owner->tree));
        CHECK(tree_end(&owner->tree, owner->stage->until));
    }
    CHECK(tree_owner_sees_all_dead(owner));
}

static void test_a_cgroup_that_was_killed_takes_new_children(void **state)
{
    (void)state;
    need_cgroup();
    tree_owner_run(CONTAIN_CGROUP, start_again);
}

static void enter_late(struct tree_owner *owner)
{
    owner->tree.can_clone = false; /* as where a filter forbids clone3(2) */
    start_again(owner);
}

static void test_children_enter_a_cgroup_they_cannot_be_born_in(void **state)
{
    (void)state;
    need_cgroup();
    tree_owner_run(CONTAIN_CGROUP, enter_late);
}

/* The proof has to be true for the cgroup, too: somebody in it who is no descendant. */
static void see_a_stranger(struct tree_owner *owner)
{
    pid_t stranger = owner->stage->pids[0];
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)stranger);
    CHECK(tree_is_empty(&owner->tree));
    CHECK(write(owner->tree.procs_fd, number, strlen(number)) > 0);
    CHECK(!tree_is_empty(&owner->tree));
    CHECK(tree_end(&owner->tree, owner->stage->until));
}

static void begin_with_stranger(struct tree_owner *owner)
{
    /* A parent between, which reaps the stranger, so that it is never a child of the one that owns the
     * cgroup. */
    pid_t stranger = tree_owner_child(owner, tree_owner_live);
    pid_t inner;
    int status;

    tree_owner_await(owner, 1);
    owner->stage->pids[0] = stranger;
    inner = fork();
    CHECK(inner >= 0);
    if (inner == 0) {
        struct tree_owner other = {.stage = owner->stage};
        struct gavel_error error;

        CHECK(tree_open(&other.tree, CONTAIN_CGROUP, &error) == GAVEL_OK);
        see_a_stranger(&other);
        tree_close(&other.tree);
        _exit(0);
    }
    CHECK(waitpid(inner, &status, 0) == inner);
    CHECK(status == 0);
    CHECK(tree_end(&owner->tree, owner->stage->until));
}

static void test_a_tree_is_not_empty_while_somebody_is_in_its_cgroup(void **state)
{
    (void)state;
    need_cgroup();
    tree_owner_run(CONTAIN_WALK, begin_with_stranger);
}

static bool has_cgroup_by_itself(void)
{
    struct tree tree;
    struct gavel_error error = {0};
    bool has_cgroup;

    CHECK(tree_open(&tree, CONTAIN_AUTO, &error) == GAVEL_OK);
    CHECK(error.status == GAVEL_OK &&
          error.message[0] == '\0'); /* else the guard's page keeps it as its end */
    has_cgroup = tree.has_cgroup;
    tree_close(&tree);
    return has_cgroup;
}

static void test_a_fallback_to_walking_leaves_no_error(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)has_cgroup_by_itself();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

/* In a process that has put itself into a directory of its own making. */
static _Noreturn void try_delegation(const char *directory)
{
    char procs[600];
    int fd;

    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", directory);
    fd = open(procs, O_WRONLY);
    CHECK(fd >= 0);
    CHECK(write(fd, "0", 1) == 1);
    CHECK(!has_cgroup_by_itself());
    CHECK(setxattr(directory, "trusted.delegate", "1", 1, 0) == 0);
    CHECK(has_cgroup_by_itself());
    _exit(0);
}

static void delegate(struct tree_owner *owner)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        try_delegation(owner->tree.cgroup);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

static void test_root_takes_a_cgroup_by_itself_only_where_one_is_delegated(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    need_cgroup();
    tree_owner_run(CONTAIN_CGROUP, delegate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_own_cgroup_is_found_below_its_mount),
        cmocka_unit_test(test_a_directory_that_does_not_fit_is_not_found),
        cmocka_unit_test(test_a_tree_in_a_cgroup_is_ended_with_whoever_was_moved_out),
        cmocka_unit_test(test_a_cgroup_that_was_killed_takes_new_children),
        cmocka_unit_test(test_children_enter_a_cgroup_they_cannot_be_born_in),
        cmocka_unit_test(test_a_tree_is_not_empty_while_somebody_is_in_its_cgroup),
        cmocka_unit_test(test_root_takes_a_cgroup_by_itself_only_where_one_is_delegated),
        cmocka_unit_test(test_a_fallback_to_walking_leaves_no_error),
    };

    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
