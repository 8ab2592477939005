/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard of a program that uses the library: a process that waits for the
 * program's death and then releases its mandates, so that candidates that
 * cannot see the death themselves need not wait for the lease.
 *
 *   program ── mandates (memory) ──► gavel-guard ── pidfd readable: all its threads are dead
 *      │                              │
 *      └── line: "ready", "bye" ──────┘──► RELEASE, doorbell; or the end of its session
 *
 * It is another program, gavel-guard, because a process with threads cannot
 * safely fork and continue in the child. It has only the three descriptors
 * below, a session of its own, and all signals blocked. It is not a child of
 * the program: wait(2) and SIGCHLD never report it.
 */
#ifndef LIB_GUARD_OWN_GUARD_H
#define LIB_GUARD_OWN_GUARD_H

#include "base/time.h"
#include "lib/source.h"

#include <gavel/gavel.h>

#include <stdint.h>

/* The guard's descriptors. */
#define GUARD_FD_ON_DEATH 3
#define GUARD_FD_PROGRAM 4 /* a pidfd of the program */
#define GUARD_FD_LINE 5    /* a socket that preserves message boundaries */
#define GUARD_FD_COUNT 3

enum guard_word {
    GUARD_READY = 1, /* from the guard: it is watching */
    GUARD_FAILED,    /* from the guard: it cannot watch, see text or number; it ends */
    GUARD_BYE,       /* to the guard: the handle was closed in order; nothing is left to do */
};

struct guard_message {
    uint32_t word;
    int32_t number; /* errno if the program could not be executed; else 0 */
    char text[512];
};

/* Part of a handle. Zeroed: no guard. Loop only, once opened. */
struct own_guard {
    bool is_wanted;
    char *program;
    int on_death_fd;
    int pid_fd;          /* of ourselves */
    struct source line;  /* to the guard; fd is -1 while there is none */
    gavel_ns started_at; /* of the last one */
    gavel_ns start_at;   /* of the next one; NEVER while one runs */
};

/*
 * Makes the list of what to release on death, in memory that can be passed to a
 * guard. Call it before the store is opened.
 */
GAVEL_CHECKED enum gavel_status own_guard_prepare(struct gavel *gavel, const char *program,
                                                  struct gavel_error *error);

/*
 * Starts the guard and waits until it is watching. Does nothing if none is
 * wanted, or if the store is not shared with others, so that there is nothing
 * to release. ERR_IO, ERR_NO_MEMORY, or the error that the guard got from the
 * store.
 */
GAVEL_CHECKED enum gavel_status own_guard_start(struct gavel *gavel, struct gavel_error *error);

/* Starts another one if the last has died, but not too often; returns when to call next. */
gavel_ns own_guard_tend(struct gavel *gavel, gavel_ns now);

/* Tells the guard that the handle was closed. Safe on a half-built handle. What both share stays until the
 * store is closed, which notes its session there. */
void own_guard_close(struct gavel *gavel);

/*
 * Starts the program with only these descriptors, from GUARD_FD_ON_DEATH on.
 * Returns 0 or an errno; a later failure is reported on the line.
 */
int own_guard_spawn(const char *program, const int fds[static GUARD_FD_COUNT]);

#endif
