/* SPDX-License-Identifier: Apache-2.0 */

/* Output of several children line by line: what arrives, and who waits for whom. */
#include "cli/run/prefix.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 60000
#define CHILDREN 2
#define FLOOD_LINES 20000
#define FLOOD_BYTES (4 << 20) /* more than all the buffers between a child and our reader hold */

static const char *const names[CHILDREN] = {
    "web", "sql"}; /* as wide as each other: the test may run on a terminal */

/* A prefix whose outputs are pipes that the test reads. */
struct stage {
    struct prefix prefix;
    int out; /* what was written to stdout and stderr */
    int err;
    int out_writer; /* our stdout and stderr; closed at the end, so that readers see it */
    int err_writer;
    int child_out[CHILDREN]; /* what the children write to */
    int child_err[CHILDREN];
};

static void close_now(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void open_stage(struct stage *stage, bool color)
{
    int fds[2];

    assert_int_equal(prefix_open(&stage->prefix, names, CHILDREN, color, NULL), GAVEL_OK);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    stage->out = fds[0];
    stage->out_writer = stage->prefix.outputs[0].fd = fds[1];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    stage->err = fds[0];
    stage->err_writer = stage->prefix.outputs[1].fd = fds[1];
    for (size_t i = 0; i < CHILDREN; i++) { /* the part of the guard */
        stage->child_out[i] = fcntl(prefix_stdout(&stage->prefix, i), F_DUPFD_CLOEXEC, 3);
        stage->child_err[i] = fcntl(prefix_stderr(&stage->prefix, i), F_DUPFD_CLOEXEC, 3);
    }
}

static void start(struct stage *stage)
{
    struct gavel_error error = {0};

    assert_int_equal(prefix_start(&stage->prefix, &error), GAVEL_OK);
}

static int setup(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    signal(SIGPIPE, SIG_IGN);
    open_stage(stage, false);
    *state = stage;
    return 0;
}

static void end_children(struct stage *stage)
{
    for (size_t i = 0; i < CHILDREN; i++) {
        close_now(&stage->child_out[i]);
        close_now(&stage->child_err[i]);
    }
}

static gavel_ns limit(void) { return clock_now() + ns_from_ms(LIMIT_MS); }

static int teardown(void **state)
{
    struct stage *stage = *state;

    end_children(stage);
    (void)!prefix_finish(&stage->prefix, clock_now(), NULL);
    close_now(&stage->out);
    close_now(&stage->err);
    close_now(&stage->out_writer);
    close_now(&stage->err_writer);
    free(stage);
    return 0;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Reads exactly that text, which must come in time. */
static void expect(int fd, const char *expected)
{
    size_t length = strlen(expected), have = 0;
    char *text = calloc(1, length + 1);

    while (have < length) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        ssize_t count;

        if (poll(&poll_fd, 1, LIMIT_MS) != 1)
            fail_msg("only \"%s\" came", text);
        count = read(fd, text + have, length - have);
        assert_true(count > 0);
        have += (size_t)count;
    }
    assert_string_equal(text, expected);
    free(text);
}

static void expect_nothing_more(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&poll_fd, 1, 0), 0);
}

static void test_lines_have_the_name_of_their_child(void **state)
{
    struct stage *stage = *state;

    start(stage);
    say(stage->child_out[0], "one\ntwo\n");
    expect(stage->out, "web | one\nweb | two\n");
    say(stage->child_out[1], "\nthree\r\n");
    expect(stage->out, "sql | \nsql | three\r\n");
    say(stage->child_err[1], "no such table\n");
    expect(stage->err, "sql | no such table\n");
    end_children(stage);
    assert_int_equal(prefix_finish(&stage->prefix, limit(), NULL), GAVEL_OK);
    expect_nothing_more(stage->out);
    expect_nothing_more(stage->err);
}

static void test_two_children_never_share_a_line(void **state)
{
    struct stage *stage = *state;

    stage->prefix.partial_after = NEVER / 2; /* however slow this machine is */
    say(stage->child_out[0], "beginning ");
    say(stage->child_out[1], "whole\nlate ");
    start(stage);
    expect(stage->out, "sql | whole\n");
    say(stage->child_out[0], "and end\n");
    expect(stage->out, "web | beginning and end\n");
    say(stage->child_out[1], "but whole\n");
    expect(stage->out, "sql | late but whole\n");
}

static void test_a_prompt_without_an_end_of_line_is_seen_after_a_moment(void **state)
{
    struct stage *stage = *state;

    start(stage);
    say(stage->child_out[0], "go on? ");
    expect(stage->out, "web | go on? \n");
    say(stage->child_out[0], "yes\n");
    expect(stage->out, "web | yes\n");
}

static void test_the_rest_is_written_at_the_end_of_a_child(void **state)
{
    struct stage *stage = *state;

    say(stage->child_out[0], "first\nlast words");
    say(stage->child_err[0], "oh");
    end_children(stage);
    start(stage);
    assert_int_equal(prefix_finish(&stage->prefix, limit(), NULL), GAVEL_OK);
    expect(stage->out, "web | first\nweb | last words\n");
    expect(stage->err, "web | oh\n");
    expect_nothing_more(stage->out);
}

static void test_a_line_without_end_comes_in_pieces_that_cut_no_character(void **state)
{
    struct stage *stage = *state;
    char *piece = malloc(PREFIX_LINE_MAX + 64);
    char *text = malloc(PREFIX_LINE_MAX + 64);

    memset(text, 'x', PREFIX_LINE_MAX - 1);
    strcpy(text + PREFIX_LINE_MAX - 1, "\xe2\x82\xac!\n"); /* an euro sign that begins on the last byte */
    say(stage->child_out[0], text);
    start(stage);
    sprintf(piece, "web | %.*s\n", PREFIX_LINE_MAX - 1, text);
    expect(stage->out, piece);
    expect(stage->out, "web | \xe2\x82\xac!\n");
    memset(text, '\x80', PREFIX_LINE_MAX); /* not UTF-8 at all */
    strcpy(text + PREFIX_LINE_MAX, "end\n");
    say(stage->child_out[0], text);
    sprintf(piece, "web | %.*s\n", PREFIX_LINE_MAX, text);
    expect(stage->out, piece);
    expect(stage->out, "web | end\n");
    free(piece);
    free(text);
}

struct flood {
    int fd;
    const char *word;
};

static void *flood(void *argument)
{
    const struct flood *job = argument;

    for (int i = 0; i < FLOOD_LINES; i++)
        dprintf(job->fd, "%s %d\n", job->word, i);
    close(job->fd);
    return NULL;
}

static void test_a_flood_arrives_whole_and_in_order(void **state)
{
    struct stage *stage = *state;
    struct flood jobs[CHILDREN] = {{stage->child_out[0], "a"}, {stage->child_out[1], "b"}};
    pthread_t threads[CHILDREN];
    int next[CHILDREN] = {0};
    char line[128];
    FILE *file;

    start(stage);
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, flood, &jobs[i]), 0);
        stage->child_out[i] = -1; /* the thread closes it */
    }
    file = fdopen(stage->out, "r");
    stage->out = -1;
    for (int i = 0; i < CHILDREN * FLOOD_LINES; i++) {
        char expected[128];
        size_t child;

        assert_non_null(fgets(line, sizeof line, file));
        child = line[0] == 's';
        snprintf(expected, sizeof expected, "%s | %s %d\n", names[child], jobs[child].word, next[child]++);
        assert_string_equal(line, expected);
    }
    for (size_t i = 0; i < CHILDREN; i++)
        pthread_join(threads[i], NULL);
    end_children(stage);
    assert_int_equal(prefix_finish(&stage->prefix, limit(), NULL), GAVEL_OK);
    fclose(file);
}

/* Writes until nothing is taken for so long; returns how much was. */
static size_t fill(int fd, size_t most, int patience_ms)
{
    static const char line[] = "all work and no play makes a dull line\n";
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    size_t written = 0;

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (written < most && poll(&poll_fd, 1, patience_ms) == 1) {
        ssize_t count = write(fd, line, sizeof line - 1);

        if (count > 0)
            written += (size_t)count;
    }
    return written;
}

static void test_a_reader_that_does_not_read_slows_the_child_and_not_the_end(void **state)
{
    struct stage *stage = *state;
    struct gavel_error error = {0};

    start(stage);
    assert_in_range(fill(stage->child_out[0], FLOOD_BYTES, 200), 1, FLOOD_BYTES - 1);
    end_children(stage);
    assert_int_equal(prefix_finish(&stage->prefix, clock_now(), &error), GAVEL_ERR_TIMEOUT);
    assert_non_null(strstr(error.message, "may be lost"));
}

static void test_children_get_a_broken_pipe_when_our_reader_is_gone(void **state)
{
    struct stage *stage = *state;
    struct pollfd poll_fd = {.fd = stage->child_out[1], .events = POLLOUT};
    gavel_ns until = limit();

    start(stage);
    close_now(&stage->out);
    say(stage->child_out[0], "is there anybody?\n");
    while (!(poll_fd.revents & POLLERR) && clock_now() < until)
        assert_int_equal(poll(&poll_fd, 1, LIMIT_MS), 1);
    assert_int_equal(write(stage->child_out[1], "x\n", 2), -1);
    assert_int_equal(errno, EPIPE);
    say(stage->child_err[0], "still here\n"); /* the other output is as it was */
    expect(stage->err, "web | still here\n");
    end_children(stage);
    assert_int_equal(prefix_finish(&stage->prefix, limit(), NULL), GAVEL_OK);
}

static void test_a_full_disk_is_told_at_the_end_and_stops_no_child(void **state)
{
    struct stage *stage = *state;
    struct gavel_error error = {0};

    stage->prefix.outputs[0].fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(stage->prefix.outputs[0].fd >= 0);
    close_now(&stage->out_writer);
    stage->out_writer = stage->prefix.outputs[0].fd;
    start(stage);
    assert_true(fill(stage->child_out[0], FLOOD_BYTES, LIMIT_MS) >= FLOOD_BYTES);
    end_children(stage);
    assert_int_equal(prefix_finish(&stage->prefix, limit(), &error), GAVEL_ERR_IO);
    assert_non_null(strstr(error.message, strerror(ENOSPC)));
}

static void test_who_keeps_a_pipe_open_does_not_hold_up_the_end(void **state)
{
    struct stage *stage = *state;
    int kept = stage->child_out[1];
    gavel_ns before;

    start(stage);
    say(stage->child_out[0], "done\n");
    say(kept, "I am not");
    stage->child_out[1] = -1;
    end_children(stage);
    expect(stage->out, "web | done\n");
    before = clock_now();
    assert_int_equal(prefix_finish(&stage->prefix, before + 50 * NS_PER_MS, NULL), GAVEL_ERR_TIMEOUT);
    assert_true(clock_now() - before < ns_from_ms(LIMIT_MS));
    expect(stage->out, "sql | I am not\n");
    close(kept);
}

static void test_it_can_be_given_up_before_it_starts_or_was_opened(void **state)
{
    struct stage *stage = *state;
    struct prefix zeroed = {0};

    assert_int_equal(prefix_finish(&zeroed, 0, NULL), GAVEL_OK);
    assert_int_equal(prefix_finish(&stage->prefix, 0, NULL), GAVEL_OK);
    assert_int_equal(write(stage->child_out[0], "x", 1), -1); /* nobody reads */
    assert_int_equal(prefix_finish(&stage->prefix, 0, NULL), GAVEL_OK);
}

static void test_a_guard_that_gave_up_its_readers_hides_nothing(void **state)
{
    struct stage *stage = *state;

    prefix_close_readers(&stage->prefix); /* here there is no other process that still has them */
    assert_int_equal(write(stage->child_err[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    assert_true(fcntl(prefix_stdout(&stage->prefix, 1), F_GETFD) & FD_CLOEXEC);
}

static void test_colours_only_where_they_are_wanted(void **state)
{
    struct stage *stage = *state;
    struct stage colored = {0};

    start(stage);
    say(stage->child_out[0], "plain\n");
    expect(stage->out, "web | plain\n");
    open_stage(&colored, true);
    start(&colored);
    say(colored.child_out[0], "hello\n");
    expect(colored.out, "\033[36mweb |\033[0m hello\n");
    say(colored.child_out[1], "hello\n");
    expect(colored.out, "\033[33msql |\033[0m hello\n");
    end_children(&colored);
    assert_int_equal(prefix_finish(&colored.prefix, limit(), NULL), GAVEL_OK);
    close_now(&colored.out);
    close_now(&colored.err);
    close_now(&colored.out_writer);
    close_now(&colored.err_writer);
}

static void test_names_are_aligned_on_a_terminal_only(void **state)
{
    const char *const uneven[CHILDREN] = {"web", "db"};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), saved = dup(STDERR_FILENO), slave;
    struct prefix prefix;

    (void)state;
    assert_true(terminal >= 0);
    assert_int_equal(unlockpt(terminal), 0);
    slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    dup2(slave, STDERR_FILENO);
    assert_int_equal(prefix_open(&prefix, uneven, CHILDREN, false, NULL), GAVEL_OK);
    dup2(saved, STDERR_FILENO);
    assert_string_equal(prefix.sources[1].label, "web | ");
    assert_string_equal(prefix.sources[3].label, "db  | ");
    assert_int_equal(prefix_finish(&prefix, 0, NULL), GAVEL_OK);
    close(slave);
    close(terminal);
    close(saved);
}

static void test_without_descriptors_it_says_so_and_keeps_none(void **state)
{
    struct gavel_error error = {0};
    struct rlimit before, few;
    struct prefix prefix;
    int probe = dup(STDIN_FILENO), again;

    (void)state;
    close(probe);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)probe + 5, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(prefix_open(&prefix, names, CHILDREN, false, &error), GAVEL_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_non_null(strstr(error.message, "limit of open files"));
    again = dup(STDIN_FILENO);
    assert_int_equal(again, probe);
    close(again);
    assert_int_equal(prefix_finish(&prefix, 0, NULL), GAVEL_OK);
}

#define PREFIX_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PREFIX_TEST(test_lines_have_the_name_of_their_child),
        PREFIX_TEST(test_two_children_never_share_a_line),
        PREFIX_TEST(test_a_prompt_without_an_end_of_line_is_seen_after_a_moment),
        PREFIX_TEST(test_the_rest_is_written_at_the_end_of_a_child),
        PREFIX_TEST(test_a_line_without_end_comes_in_pieces_that_cut_no_character),
        PREFIX_TEST(test_a_flood_arrives_whole_and_in_order),
        PREFIX_TEST(test_a_reader_that_does_not_read_slows_the_child_and_not_the_end),
        PREFIX_TEST(test_children_get_a_broken_pipe_when_our_reader_is_gone),
        PREFIX_TEST(test_a_full_disk_is_told_at_the_end_and_stops_no_child),
        PREFIX_TEST(test_who_keeps_a_pipe_open_does_not_hold_up_the_end),
        PREFIX_TEST(test_it_can_be_given_up_before_it_starts_or_was_opened),
        PREFIX_TEST(test_a_guard_that_gave_up_its_readers_hides_nothing),
        PREFIX_TEST(test_colours_only_where_they_are_wanted),
        cmocka_unit_test(test_names_are_aligned_on_a_terminal_only),
        cmocka_unit_test(test_without_descriptors_it_says_so_and_keeps_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
