/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A rig: the processes of a demonstration or a measurement. They are forked
 * from this one, which therefore must have no threads (it never opens
 * libgavel itself), they share a log, and they work in one temporary
 * directory that goes away with the rig.
 *
 * A member gets its orders as single letters through a pipe. The end of the
 * pipe means "leave in order", so a rig never outlives its driver; a member
 * that is frozen then is killed by the kernel (PR_SET_PDEATHSIG).
 *
 * A member may also be another program. It does not listen: SIGTERM tells it
 * to leave in order. What it says goes to a file in the directory.
 */
#ifndef BENCH_PROPS_RIG_H
#define BENCH_PROPS_RIG_H

#include "bench/props/shared_log.h"

#include <stdio.h>
#include <sys/types.h>

#define RIG_MAX 128
#define RIG_DIRECTORY_MAX 256

struct rig;

/* What a member knows of itself. */
struct member_context {
    const struct rig *rig;
    struct shared_log *shared_log;
    uint32_t member;
    char name[32]; /* its candidate id */
    int control;   /* the reading end of its pipe */
};

/* The whole life of a member; returns its exit code. */
typedef int (*member_run)(const struct member_context *context, void *user);

struct member {
    pid_t pid; /* 0: not running */
    int pidfd;
    int control; /* the writing end */
    bool is_program;
};

struct rig {
    char directory[RIG_DIRECTORY_MAX];
    char store[RIG_DIRECTORY_MAX + 32]; /* the URL of a SQLite file in it */
    struct shared_log *shared_log;
    int shared_log_fd; /* its memory; programs inherit it under this number */
    struct member members[RIG_MAX];
};

/*
 * Makes the directory and the shared log. From now on SIGINT and SIGTERM only end
 * the waits, so that the rig can be sent home. On failure nothing is left.
 */
GAVEL_CHECKED enum gavel_status rig_open(struct rig *rig, struct gavel_error *error);

/* Lets everybody leave in order, kills who does not within a few seconds, and removes the directory. */
void rig_close(struct rig *rig);

/* True after SIGINT or SIGTERM. */
bool rig_is_interrupted(void);

/* Starts a member. The name is its candidate id, cut if it is too long. */
GAVEL_CHECKED enum gavel_status rig_start(struct rig *rig, uint32_t member, const char *name, member_run run,
                                          void *user, struct gavel_error *error);

/*
 * Starts a member as process 1 of a pid namespace of its own, with its own
 * /proc: whatever it starts dies with it at once (namespace.h). ERR_DENIED
 * unless this process may make one.
 */
GAVEL_CHECKED enum gavel_status rig_start_host(struct rig *rig, uint32_t member, const char *name,
                                               member_run run, void *user, struct gavel_error *error);

/*
 * Starts a program as a member. Its environment has nothing of ours: neither
 * GAVEL_* nor a service manager to notify. Its output goes to rig_log(); if it
 * cannot be executed, that file says so.
 */
GAVEL_CHECKED enum gavel_status rig_start_program(struct rig *rig, uint32_t member, const char *name,
                                                  char *const *argv, struct gavel_error *error);

/*
 * For a child that is about to execute another program: the user's settings and
 * service manager are for what the user runs.
 */
void rig_clear_environment(void);

/* Where a program's output goes; written anew with each start. */
void rig_log(const struct rig *rig, uint32_t member, char ret_path[RIG_DIRECTORY_MAX + 32]);

/* Letters that members know. */
#define RIG_RESIGN 'r'
#define RIG_QUIT 'q'

void rig_tell(struct rig *rig, uint32_t member, char letter);

/*
 * Kills it and waits for its death. *ret_sent_at is right before the signal,
 * *ret_dead_at right after the kernel has reported the death.
 */
enum gavel_status rig_kill(struct rig *rig, uint32_t member, gavel_ns *ret_sent_at, gavel_ns *ret_dead_at);

/* SIGSTOP, confirmed, and SIGCONT. */
GAVEL_CHECKED enum gavel_status rig_freeze(struct rig *rig, uint32_t member, gavel_ns *ret_frozen_at);
enum gavel_status rig_thaw(struct rig *rig, uint32_t member);

/* Lets it leave in order. ERR_TIMEOUT if it is not gone by `until`; ERR_IO if it ended with an error. */
GAVEL_CHECKED enum gavel_status rig_dismiss(struct rig *rig, uint32_t member, gavel_ns until);

/* Waits for the member's own end without asking for it. ERR_IO: it ended with an error. */
GAVEL_CHECKED enum gavel_status rig_await(struct rig *rig, uint32_t member, gavel_ns until);

/* Which marks to wait for; 0 and ANY_MEMBER stand for "any". */
#define ANY_MEMBER UINT32_MAX

struct mark_query {
    enum mark_kind kind;
    uint32_t member;
    uint32_t member_at_least;
    uint64_t epoch_at_least;
    size_t from; /* the place of the first mark to look at */
};

/*
 * Waits for a mark. ERR_TIMEOUT if there is none by `until`, ERR_STOPPED if a
 * signal asks to end, ERR_IO if any member has reported a failure.
 */
GAVEL_CHECKED enum gavel_status rig_expect(const struct rig *rig, const struct mark_query *query,
                                           gavel_ns until, struct mark *ret_mark);

/* Dead or a zombie. A pid that was reused counts as alive, which errs on the strict side. */
bool rig_is_dead(pid_t pid);

/* How many marks there are now; use it as `from` of a mark_query for later ones. */
size_t rig_mark_count(const struct rig *rig);

/* For members: waits for a letter until then. 0: none came; RIG_QUIT also if the driver is gone. */
char member_listen(const struct member_context *context, gavel_ns until);

/* For members: writes a mark of their own at `at`. */
void member_mark(const struct member_context *context, enum mark_kind kind, uint64_t epoch, gavel_ns at,
                 int64_t value);

#endif
