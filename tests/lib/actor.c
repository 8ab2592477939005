/* SPDX-License-Identifier: Apache-2.0 */

#include "actor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void actor_start(struct actor *actor, const struct stage *stage, const char *id, const char *settings,
                 const char *overrun, const char *hang_ms)
{
    const char *const arguments[] = {stage->role, stage->scene->url, id,           settings,
                                     overrun,     hang_ms,           stage->guard, NULL};
    posix_spawn_file_actions_t files;
    char errors[128];
    int in[2], out[2];

    *actor = (struct actor){0};
    (void)snprintf(errors, sizeof errors, "%s/%s.stderr", stage->scene->directory, id);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(
        posix_spawn(&actor->pid, stage->role, &files, NULL, (char *const *)(uintptr_t)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    (void)close(in[0]);
    (void)close(out[1]);
    actor->in = in[1];
    actor->out = out[0];
}

/* Takes the next line that has come in. */
static bool next_line(struct actor *actor, char *line, size_t size)
{
    char *end = memchr(actor->text, '\n', actor->length);
    size_t length;

    if (!end)
        return false;
    length = (size_t)(end - actor->text);
    assert_true(length < size);
    memcpy(line, actor->text, length);
    line[length] = '\0';
    actor->length -= length + 1;
    memmove(actor->text, end + 1, actor->length);
    return true;
}

/* Reads lines until one begins with these words; false if the limit or the end of the output comes first. */
static bool actor_says(struct actor *actor, const char *words, char *line, size_t size, gavel_ms limit_ms)
{
    int64_t until = gavel_now_ns() + limit_ms * 1000000;
    struct pollfd fd = {.fd = actor->out, .events = POLLIN};

    for (;;) {
        int64_t left_ms = (until - gavel_now_ns()) / 1000000;
        ssize_t got;

        while (next_line(actor, line, size))
            if (strncmp(line, words, strlen(words)) == 0)
                return true;
        if (left_ms <= 0 || poll(&fd, 1, (int)left_ms) <= 0)
            return false;
        got = read(actor->out, actor->text + actor->length, sizeof actor->text - actor->length);
        if (got <= 0)
            return false;
        actor->length += (size_t)got;
    }
}

void expect(struct actor *actor, const char *words, gavel_ms limit_ms)
{
    char line[512];

    if (!actor_says(actor, words, line, sizeof line, limit_ms))
        fail_msg("process %d did not say \"%s\"", (int)actor->pid, words);
}

void expect_both(struct actor *actor, const char *one, const char *other, gavel_ms limit_ms)
{
    bool has_one = false, has_other = false;
    char line[512];

    while (!has_one || !has_other) {
        if (!actor_says(actor, "", line, sizeof line, limit_ms))
            fail_msg("process %d did not say both \"%s\" and \"%s\"", (int)actor->pid, one, other);
        has_one |= strncmp(line, one, strlen(one)) == 0;
        has_other |= strncmp(line, other, strlen(other)) == 0;
    }
}

unsigned long long expect_number(struct actor *actor, const char *word, gavel_ms limit_ms)
{
    char line[512];

    if (!actor_says(actor, word, line, sizeof line, limit_ms))
        fail_msg("process %d did not say \"%s\"", (int)actor->pid, word);
    return strtoull(line + strlen(word), NULL, 10);
}

void tell(const struct actor *actor, const char *line)
{
    assert_int_equal(write(actor->in, line, strlen(line)), (ssize_t)strlen(line));
}

int actor_wait(struct actor *actor)
{
    int status;

    (void)close(actor->in);
    assert_int_equal(waitpid(actor->pid, &status, 0), actor->pid);
    (void)close(actor->out);
    return status;
}

void actor_kill(struct actor *actor, int signal) { assert_int_equal(kill(actor->pid, signal), 0); }

void actor_dismiss(struct actor *actor)
{
    int status = actor_wait(actor);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

unsigned long long start_pair(struct actor *a, struct actor *b, const struct stage *stage,
                              const char *settings, const char *overrun, const char *hang_ms)
{
    unsigned long long epoch;

    actor_start(a, stage, "a", settings, overrun, hang_ms);
    epoch = expect_number(a, "elected ", LIMIT_MS);
    actor_start(b, stage, "b", settings, overrun, "0");
    expect(b, "follows a", LIMIT_MS);
    expect(a, "candidates 2", LIMIT_MS);
    return epoch;
}

int stage_setup(void **state)
{
    struct stage *stage = *state;

    return scene_setup((void **)&stage->scene);
}

int stage_teardown(void **state)
{
    struct stage *stage = *state;

    return scene_teardown((void **)&stage->scene);
}
