/* SPDX-License-Identifier: Apache-2.0 */

/* gaveld: from the command line to the guard and the node. exit_codes.c says how it ends. */
#include "daemon/config/flags.h"
#include "daemon/exit_codes.h"
#include "daemon/force.h"
#include "daemon/guard/guard.h"
#include "daemon/node/node.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a hand-over may take besides its time-out before the node is killed. */
#define STOP_SLACK (5 * NS_PER_S)

struct life {
    const struct daemon_config *config;
    struct shared_memory *memory;
};

static int run_node(void *user)
{
    const struct life *life = user;

    return node_run(life->config, life->memory);
}

static int fail(int code, const char *message)
{
    (void)fprintf(stderr, "gaveld: %s\n", message);
    return code;
}

/* A program without its three descriptors would get sockets in their place. */
static void fill_descriptors(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO)
        (void)close(fd); /* nothing was written to it */
}

static int run(const struct daemon_config *config, bool has_no_guard)
{
    struct life life = {.config = config};
    struct guard_process guard = {
        .log = terminal_log(STDERR_FILENO, config->log_level, config->log_format),
        .run = run_node,
        .user = &life,
        .realtime = config->realtime,
        .is_childless = !config->has_leader_commands,
        .stop_limit = config->raft.transfer_timeout + config->raft.stop_margin + STOP_SLACK,
    };
    struct gavel_error error = {0};
    int code;

    (void)signal(SIGPIPE, SIG_IGN); /* peers and clients go away; writes say so */
    if (has_no_guard)
        return node_run(config, NULL);
    if (!config->secret[0])
        seal_key_of_name(config->cluster, guard.key);
    else if (seal_key_read(config->secret, guard.key, &error) != GAVEL_OK)
        return fail(DAEMON_EXIT_USAGE, error.message);
    if (shared_memory_new(&life.memory) != GAVEL_OK)
        return fail(GUARD_PROCESS_EXIT_SYSTEM, "cannot get memory to share with the node");
    guard.memory = life.memory;
    code = guard_process_run(&guard);
    explicit_bzero(guard.key, sizeof guard.key);
    shared_memory_free(life.memory);
    return code;
}

static void tell_warnings(const struct config_warnings *warnings, const struct log *log)
{
    for (size_t i = 0; i < warnings->count; i++)
        if (log)
            log_line(log, clock_wall_ms(), LOG_WARNING, warnings->texts[i], LOG_END);
        else
            (void)printf("  warning     %s\n", warnings->texts[i]);
}

static int run_mode(const struct flags *flags, const struct daemon_config *config,
                    const struct config_warnings *warnings)
{
    struct log log = terminal_log(STDERR_FILENO, config->log_level, config->log_format);

    if (flags->mode == FLAGS_CHECK) {
        config_print(config, stdout);
        tell_warnings(warnings, NULL);
        return 0;
    }
    log.never_waits = true;
    tell_warnings(warnings, &log);
    return flags->mode == FLAGS_FORCE ? force_new_cluster(config) : run(config, flags->has_no_guard);
}

int main(int argc, char **argv)
{
    static struct config_warnings warnings; /* large, as the next */
    static struct daemon_config config;
    static struct flags flags;
    struct gavel_error error = {0};
    int code;

    /* "Read the certificates again" must not end a gaveld that has not read them yet; it is taken up
     * later. */
    signals_begin(SIGHUP);
    fill_descriptors();
    if (flags_read(argc, argv, environ, &flags, &error) != GAVEL_OK)
        return fail(DAEMON_EXIT_USAGE, error.message);
    if (flags.mode == FLAGS_HELP) {
        flags_print_help(stdout);
        return 0;
    }
    if (flags.mode == FLAGS_VERSION) {
        (void)printf("gaveld " GAVEL_VERSION "\n");
        return 0;
    }
    if (config_read(&flags.input, &config, &warnings, &error) != GAVEL_OK)
        return fail(DAEMON_EXIT_USAGE, error.message);
    code = run_mode(&flags, &config, &warnings);
    config_done(&config);
    return code;
}
