/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/leaving.h"

#include "os/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Signals that come so soon after the first are the same wish. */
#define SAME_WISH_MS 200

/* When the first signal came; a handler has nowhere else to look. 0 before. */
static _Atomic gavel_ns told_to_leave_at;

/*
 * One wish may come as two signals: timeout(1) sends its own to the program
 * and then to its whole process group, and so does whoever stops a service
 * with all its processes. Only a later one means "now".
 */
static void end_at_once(int number)
{
    if (clock_now() - atomic_load(&told_to_leave_at) >= ns_from_ms(SAME_WISH_MS))
        _exit(128 + number);
}

static const int leaving_signals[] = {SIGTERM, SIGINT, SIGHUP};

#define LEAVING_SIGNALS (sizeof leaving_signals / sizeof leaving_signals[0])

int leaving_begin(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    for (size_t i = 0; i < LEAVING_SIGNALS; i++) {
        struct sigaction action;

        /* nohup, or a job in the background */
        if (!sigaction(leaving_signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
            sigaddset(ret_signals, leaving_signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
    return signalfd(-1, ret_signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void leaving_let_through(const sigset_t *signals)
{
    const struct sigaction action = {.sa_handler = end_at_once, .sa_flags = SA_RESTART};

    atomic_store(&told_to_leave_at, clock_now());
    for (size_t i = 0; i < LEAVING_SIGNALS; i++)
        if (sigismember(signals, leaving_signals[i]))
            sigaction(leaving_signals[i], &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

int leaving_conclude(const struct cli *cli, const char *id, int signal_number, enum gavel_status ended,
                     const char *message)
{
    if (signal_number) {
        log_line(&cli->log, clock_wall_ms(), LOG_INFO, "left the group", LOG_STR("group", cli->config.group),
                 LOG_STR("candidate", id), LOG_STR("signal", sigabbrev_np(signal_number)), LOG_END);
        return CLI_EXIT_OK;
    }
    if (ended == GAVEL_ERR_ID_IN_USE)
        return cli_fail(
            cli, ended,
            "another live candidate uses the id \"%s\" in the group \"%s\"; choose another with --id, or stop the other one",
            id, cli->config.group);
    if (ended)
        return cli_fail(cli, ended, "the candidate has stopped: %s",
                        *message ? message : gavel_status_text(ended));
    return CLI_EXIT_OK;
}
