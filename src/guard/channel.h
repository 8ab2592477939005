/* SPDX-License-Identifier: Apache-2.0 */

/* What elector and guard share: a socket for orders and reports, and a page of memory. */
#ifndef GUARD_CHANNEL_H
#define GUARD_CHANNEL_H

#include "guard/guard.h"

#include <stdatomic.h>

enum order_kind {
    ORDER_RUN,    /* for this epoch */
    ORDER_STOP,   /* this epoch and all earlier ones */
    ORDER_KILL,   /* whatever runs, at once */
    ORDER_SIGNAL, /* to the children */
    ORDER_QUIT,   /* nothing more will run */
};

struct order {
    enum order_kind kind;
    int signal_number; /* SIGNAL */
    bool at_once;      /* STOP */
    uint64_t epoch;    /* RUN, STOP */
};

struct guard_shared {
    _Atomic uint64_t dead_epoch; /* nothing runs for it or an earlier one, and never will */
    struct gavel_error error;    /* why the guard could not start */
    char cgroup[512];            /* the directory of its cgroup, for whoever outlives it; "" without one */
};

/* What the guard process starts with. */
struct guard_loop_start {
    struct guard_spec *spec;
    struct guard_mandates mandates;
    struct guard_shared *shared;
    int socket;
    int stopped_fd;
    int elector_fd; /* a pidfd */
};

/* The life of the guard; returns its exit code. */
int guard_loop_run(const struct guard_loop_start *start);

#endif
