/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What every subcommand gets and uses. main.c reads the command line, the
 * environment and the configuration file, and then calls one of the commands
 * in its table with a struct cli that says what was asked for.
 *
 * A command is one file with one function. It prints its result to stdout,
 * fails with `return cli_fail(…)`, and returns its exit code.
 */
#ifndef CLI_H
#define CLI_H

#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/settings/config.h"

#include <gavel/settings.h>
#include <gavel/status.h>

#include <stdbool.h>
#include <stdint.h>

struct cli;

/* An option that only one command has. */
enum flag_kind {
    FLAG_SWITCH,    /* --all */
    FLAG_TEXT,      /* --to NAME; never empty */
    FLAG_BEGINNING, /* --prefix TEXT; an empty one matches everything */
    FLAG_DURATION,  /* --timeout 5s */
    FLAG_NUMBER,    /* --count 3; from 0 up */
    FLAG_LIST,      /* --host A --host B: may be repeated; joined to "A,B" */
    FLAG_PACE,      /* --watch, --watch 2s: the duration is optional; "" without one */
};

struct flag {
    const char *name; /* without dashes */
    enum flag_kind kind;
    const char *argument; /* what --help calls its value; NULL for a switch */
    const char *help;     /* NULL: an older name, which still works but is not listed */
};

/* An option that only some actions of a command take, such as `put` of `gavel note`. */
struct flag_use {
    const char *flag;    /* one of the command's own, or of settings_table */
    const char *actions; /* "put delete" */
};

/* Which of the options in settings_table.c a command takes. */
enum option_group {
    OPTIONS_COMMON = 1,      /* --json, --color, --config, …: every command */
    OPTIONS_STORE = 2,       /* --store, --group */
    OPTIONS_LISTING = 4,     /* what decides who is listed as active: --preset, --candidate-timeout */
    OPTIONS_SETTINGS = 8,    /* every time and policy of struct gavel_settings, and --preset */
    OPTIONS_CANDIDATE = 16,  /* who takes part: --id, --priority, --eligible, … */
    OPTIONS_WORK = 32,       /* how a command is run: --term-signal, --healthy, --on-elected, … */
    OPTIONS_RUN = 64,        /* what its end means: --on-exit, --restart-limit, …; not for `gavel once` */
    OPTIONS_CLUSTER = 128,   /* --cluster, --ca, …: a cluster of gaveld */
    OPTIONS_GROUP = 256,     /* --group, together with OPTIONS_CLUSTER: one group of the cluster */
    OPTIONS_STORE_ALL = 512, /* --store without --group: all groups are meant */
    OPTIONS_CALLS = 1024, /* what decides how long a call to the store may take: --preset, --call-timeout */
    OPTIONS_NODES = 2048, /* --store, but only gavel://…: for commands that need a cluster */
};

/* The first word that is not an option begins the user's command line, which is left as it is. */
#define ARGUMENTS_COMMAND (-1)

struct command {
    const char *name;
    const char *arguments;    /* for the usage line, "" if it takes none */
    int arguments_max;        /* ARGUMENTS_COMMAND: the user's command with all that follows */
    const char *summary;      /* one line for the list of commands */
    const char *help;         /* a few lines for its own --help */
    unsigned options;         /* bit set of enum option_group, besides OPTIONS_COMMON */
    unsigned exits;           /* EXITS() that it can end with, besides EXITS_ALWAYS */
    const struct flag *flags; /* its own, ending with a NULL name; NULL for none */
    /*
     * Those that not every action takes, ending with a NULL flag. Given to
     * another they would be ignored, which is never what was meant, so they are
     * refused. NULL: the command has no actions.
     */
    const struct flag_use *uses;
    int (*run)(const struct cli *cli, int argc, char **argv); /* NULL: a separate program, gavel-NAME */
    const char *older_name_of; /* the command that replaced it and that --help lists; NULL: none */
};

/* The commands in the order --help lists them, ending with a NULL name. */
extern const struct command commands[];

#define CLI_FLAGS_MAX 16

struct cli {
    const char *program; /* argv[0], for starting ourselves again */
    const struct command *command;
    bool ignored_sigpipe; /* as inherited; we always ignore it, but our children get the inherited setting */
    struct config config;
    bool color;                            /* whether stdout gets colours */
    struct log log;                        /* to stderr */
    const char *flag_texts[CLI_FLAGS_MAX]; /* by position in command->flags; NULL if not given */
};

/*
 * The value of one of the command's own flags. Asking for a flag that is not in
 * its table is a programming error and asserted. Values have been checked.
 */
bool cli_flag_is_set(const struct cli *cli, const char *name);
const char *cli_flag_text(const struct cli *cli, const char *name); /* NULL if not given */
gavel_ms cli_flag_duration(const struct cli *cli, const char *name, gavel_ms otherwise);
int64_t cli_flag_number(const struct cli *cli, const char *name, int64_t otherwise);

/* The first of these flags of the command that was given; NULL if none was. The list ends with NULL. */
const char *cli_flag_given(const struct cli *cli, const char *const *names);

/*
 * Says "gavel leader: <message>" on stderr, and with --json also the error
 * object {"error":{"code":…,"name":…,"message":…}} on stdout. A message names
 * the thing, the reason and the next step. Returns the exit code of status.
 */
int cli_fail(const struct cli *cli, enum gavel_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Ends a command that printed: flushes stdout and returns `code`, or the
 * failure if what was printed did not arrive (a full disk, a closed pipe).
 */
int cli_finish(const struct cli *cli, int code);

/* argc and argv are the arguments that are not options, ending with NULL; the command's name is not among
 * them. */
int command_run(const struct cli *cli, int argc, char **argv);
int command_once(const struct cli *cli, int argc, char **argv);
int command_elect(const struct cli *cli, int argc, char **argv);
int command_agent(const struct cli *cli, int argc, char **argv);
int command_groups(const struct cli *cli, int argc, char **argv);
int command_group(const struct cli *cli, int argc, char **argv);
int command_note(const struct cli *cli, int argc, char **argv);
int command_leader(const struct cli *cli, int argc, char **argv);
int command_status(const struct cli *cli, int argc, char **argv);
int command_candidates(const struct cli *cli, int argc, char **argv);
int command_watch(const struct cli *cli, int argc, char **argv);
int command_handover(const struct cli *cli, int argc, char **argv);
int command_resign(const struct cli *cli, int argc, char **argv);
int command_check(const struct cli *cli, int argc, char **argv);
int command_store(const struct cli *cli, int argc, char **argv);
int command_elections(const struct cli *cli, int argc, char **argv);
int command_transfer(const struct cli *cli, int argc, char **argv);
int command_stepdown(const struct cli *cli, int argc, char **argv);
int command_member(const struct cli *cli, int argc, char **argv);
int command_cert(const struct cli *cli, int argc, char **argv);
int command_cluster(const struct cli *cli, int argc, char **argv);
int command_help(const struct cli *cli, int argc, char **argv);
int command_version(const struct cli *cli, int argc, char **argv);

#endif
