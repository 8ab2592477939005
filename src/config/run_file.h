/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The children of `gavel run`, as the list `children` of the configuration
 * file tells of them. What is written there is checked here, with its line;
 * what the system has to say on it (programs, users, directories) is asked by
 * run_plan.c, when they are about to be run.
 */
#ifndef CONFIG_RUN_FILE_H
#define CONFIG_RUN_FILE_H

#include "config/arena.h"
#include "core/supervisor/supervisor.h"

#include <gavel/settings.h>

#define RUN_READY_TIMEOUT_MS 10000

struct run_child {
    int line; /* of the file; 0: from the command line */
    const char *name;
    char **command;        /* program and arguments, ending with NULL */
    const char *directory; /* NULL: where gavel was started */
    const char *user;      /* name or number; NULL: the user that started gavel */
    char **environment;    /* "NAME=value", ending with NULL; NULL: nothing of its own */
    gavel_ms grace_ms;     /* -1: what the stop grace leaves */
    int term_signal;       /* 0: the one of --term-signal */
    bool has_on_exit;      /* else the one of --on-exit */
    enum on_exit on_exit;
    enum ready_kind ready;
    char **ready_command; /* READY_BY_COMMAND; ending with NULL */
    int ready_fd;         /* READY_BY_FD */
    gavel_ms ready_timeout_ms;
};

/* Zeroed, it has no children. */
struct run_file {
    size_t count;
    struct run_child children[CHILDREN_MAX];
    struct arena arena; /* holds all texts */
};

/*
 * Reads the list from the file, which has passed yaml_index_make(). ERR_INVALID
 * with "name:line: …" for anything that is not as gavel.yaml(5) says. The
 * caller calls run_file_done(), also after a failure.
 */
GAVEL_CHECKED enum gavel_status run_file_read(const char *name, const char *bytes, size_t length,
                                              struct run_file *ret_file, struct gavel_error *error);

struct node_reader;
struct yaml_node_s;

/*
 * The same for a list that the caller has found in a document. The reader's
 * arena must be that of *file, which has no children yet.
 */
GAVEL_CHECKED enum gavel_status run_file_read_list(struct node_reader *reader, const struct yaml_node_s *list,
                                                   struct run_file *file);

/* Frees everything. Safe on a zeroed struct. */
void run_file_done(struct run_file *file);

/* The name of a child that has none of its own: that of its program. NULL: no memory. */
const char *run_child_default_name(struct arena *arena, char *const *command);

#endif
