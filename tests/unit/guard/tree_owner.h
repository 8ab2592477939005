/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The owner of a tree: a process of its own that opens a tree and ends it, so
 * that the test program is not the parent of what escapes. It reports errors on
 * stderr with their line, and exits with 1.
 *
 * Every process in its tree has the writing end of a pipe. When all of them are
 * dead, and not before, reading it returns the end of the file: a proof of
 * death that does not depend on the code under test.
 */
#ifndef TESTS_GUARD_TREE_OWNER_H
#define TESTS_GUARD_TREE_OWNER_H

#include "guard/tree.h"
#include "os/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define LIMIT (60 * NS_PER_S) /* of a test; the processes end by themselves then */

/* Shared by all processes of a test. */
struct stage {
    gavel_ns until;
    _Atomic int up;      /* processes that are ready */
    _Atomic int live;    /* of a bomb: born and not reaped */
    _Atomic long births; /* of a bomb or a comet */
    _Atomic pid_t pids[8];
};

struct tree_owner {
    struct tree tree;
    struct stage *stage;
    int alive[2]; /* the pipe */
};

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                   \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

typedef void tree_owner_cb(struct tree_owner *owner);

/*
 * Runs `cb` in the owner of a tree. Fails the test if its exit code is not 0;
 * skips it if there are no pidfds.
 */
void tree_owner_run(enum contain contain, tree_owner_cb *cb);

/* A child of the owner that runs `cb`; it lives until that returns, and no longer than LIMIT. */
pid_t tree_owner_child(struct tree_owner *owner, tree_owner_cb *cb);

/* In a process of the tree: notes that it is up, and lives on. */
_Noreturn void tree_owner_live(struct tree_owner *owner);

/* Waits until that many are up. */
void tree_owner_await(struct tree_owner *owner, int up);

/* Whether every process of the tree is dead, by the pipe; for the owner. */
bool tree_owner_sees_all_dead(struct tree_owner *owner);

void tree_owner_pause(void); /* a millisecond, between looks */

#endif
