/* SPDX-License-Identifier: Apache-2.0 */

/* What tests of several drivers do alike, besides the suite. */
#include "conformance.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct store *open_store(const char *url)
{
    struct store *store;
    struct gavel_error error;

    if (store_open(url, &store, &error) != GAVEL_OK)
        fail_msg("%s", error.message);
    return store;
}

void expect_bad_urls(const char *const *urls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct gavel_error error = {0};
        struct store *store = NULL;

        assert_int_equal(store_open(urls[i], &store, &error), GAVEL_ERR_INVALID);
        assert_true(error.message[0]);
        assert_null(store);
    }
}

bool is_told(struct store *store, const char *group, gavel_ns limit)
{
    struct pollfd fd = {.fd = store_push_fd(store), .events = POLLIN};
    gavel_ns until = clock_now() + limit;

    assert_true(fd.fd >= 0);
    do {
        char name[NAME_MAX_BYTES + 1];

        while (store_changed(store, name))
            if (strcmp(name, group) == 0)
                return true;
        (void)poll(&fd, 1, (int)ms_from_ns(ns_max(until - clock_now(), 0)) + 1); /* the loop looks again */
    } while (clock_now() < until);
    return false;
}

void settle(struct store *store, const char *group)
{
    while (is_told(store, group, 50 * NS_PER_MS))
        continue;
}

static void call_and_wait(const char *url, struct store_request *request, int ready)
{
    struct store *store;
    struct store_reply reply;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
    if (process_self(request->op == STORE_HEARTBEAT ? &request->registration.process
                                                    : &request->record.process) != GAVEL_OK ||
        store_open(url, &store, NULL) != GAVEL_OK || store_call(store, request, &reply) != GAVEL_OK ||
        write(ready, "y", 1) != 1)
        _exit(1);
    for (;;)
        (void)pause();
}

pid_t call_and_die(const char *url, struct store_request request)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        call_and_wait(url, &request, ready[1]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(kill(pid, SIGKILL), 0);
    return pid;
}

void expect_refused_in_a_child(struct store *store)
{
    int status;
    pid_t pid;

    (void)expect(store, ask_read("g"), GAVEL_OK);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store_request read = ask_read("g");
        struct store_reply reply;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
        if (store_call(store, &read, &reply) != GAVEL_ERR_STATE || !strstr(reply.message, "in the child"))
            _exit(1);
        store_close(store);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    (void)expect(store, ask_read("g"), GAVEL_OK); /* the parent is not disturbed */
}
