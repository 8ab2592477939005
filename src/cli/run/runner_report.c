/* SPDX-License-Identifier: Apache-2.0 */

/* What the guard reports, what follows from it, and with which exit code a run ends. */
#include "cli/hint.h"
#include "cli/run/runner_state.h"

#include "lib/outcome.h"
#include "os/clock.h"

#include <stdio.h>
#include <sys/wait.h>

/* A guard that is told to run something says so at once; one that has not after so long never will. */
#define ORDER_LIMIT (5 * NS_PER_S)

void runner_end(struct runner *runner, enum runner_end end)
{
    if (runner->is_ending)
        return;
    /* Also if it was started a moment ago, and the guard's report of that is still on its way. */
    runner->was_running =
        runner->report.state != SUPERVISOR_EMPTY || atomic_load(&runner->run_epoch) > runner->report.epoch;
    runner->is_ending = true;
    runner->end = end;
}

static int exit_code_of_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The mandate is given up without its end being the end of the run; without an election there is nobody to
 * take it. */
static void resign(struct runner *runner)
{
    if (!runner->candidate)
        runner_end(runner, END_FAILURE);
    else
        (void)gavel_resign(runner->candidate, NULL); /* it has been given up already, if that is an error */
}

/* Another one may do better; we do not try again for a while. */
static void cool_down(struct runner *runner)
{
    if (!runner->candidate) {
        resign(runner);
        return;
    }
    /* Who may not lead any more hands over; to resign first would let it claim once more in between. */
    runner->cooling_until = clock_now() + ns_from_ms(runner->plan->cool_down_ms);
    runner_update_eligibility(runner, clock_now());
}

/* For `gavel once --list`; it goes into the record with the release, which needs no further call. Without
 * memory the record has none. */
static void tell_outcome(struct runner *runner)
{
    const struct outcome outcome = {.exit_code = exit_code_of_status(runner->status),
                                    .ended_wall_ms = clock_wall_ms(),
                                    .took_ms = ms_from_ns(clock_now() - atomic_load(&runner->run_ordered_at)),
                                    .keep_s = runner->plan->keep_s};

    if (runner->plan->is_once && runner->candidate)
        (void)!lib_tell_outcome(runner->candidate, &outcome);
}

static void command_ended(struct runner *runner, const struct guard_report *report)
{
    runner->status = report->cause_status;
    tell_outcome(runner);
    if (runner->plan->is_once && runner->candidate && exit_code_of_status(report->cause_status) == 0)
        runner_finish_once(runner);
    else
        runner_end(runner, END_COMMAND);
}

/* Everything has stopped: what now? */
static void react(struct runner *runner, const struct guard_report *report)
{
    switch (report->cause) {
    case CAUSE_NONE:
    case CAUSE_ORDERED:
        break;
    case CAUSE_LAPSED:
        /* As a rule the candidate has noticed too. If a renewal came at the last moment it has not. */
        if (runner->candidate && gavel_is_leader(runner->candidate))
            resign(runner);
        break;
    case CAUSE_ENDED:
        command_ended(runner, report);
        break;
    case CAUSE_RESIGN:
        resign(runner);
        break;
    case CAUSE_LIMIT:
    case CAUSE_NOT_READY:
    case CAUSE_HOOK_FAILED:
        cool_down(runner);
        break;
    }
}

void runner_take_report(struct runner *runner)
{
    struct guard_report report, before = runner->report;
    bool is_settled;

    if (!guard_read(&runner->guard, &report))
        return;
    runner_take_news(runner); /* of why the guard was told what it reports, which was put there before */
    runner->report = report;
    is_settled = report.state == SUPERVISOR_EMPTY && report.epoch != runner->settled_epoch;
    if (is_settled) {
        runner->settled_epoch = report.epoch;
        react(runner, &report);
    }
    runner_log_report(runner, &before, is_settled);
}

gavel_ns runner_order_due_at(const struct runner *runner)
{
    return atomic_load(&runner->run_epoch) > runner->report.epoch
               ? atomic_load(&runner->run_ordered_at) + ORDER_LIMIT
               : NEVER;
}

/* It may have been stopped while there was nothing to run, when nothing could hurt yet. */
void runner_check_order(struct runner *runner, gavel_ns now)
{
    if (now < runner_order_due_at(runner))
        return;
    log_line(&runner->cli->log, clock_wall_ms(), LOG_ERROR,
             "the guard does not carry out its orders; ending it",
             LOG_STR("group", runner->cli->config.group), LOG_STR("candidate", runner->plan->id), LOG_END);
    guard_abandon(&runner->guard); /* its death is noticed like any other */
    atomic_store(&runner->run_ordered_at, now);
}

/* What it ran is ended by us, before the mandate is given up. */
void runner_guard_died(struct runner *runner)
{
    log_line(&runner->cli->log, clock_wall_ms(), LOG_ERROR, "the guard died; ending whatever it ran",
             LOG_STR("group", runner->cli->config.group), LOG_STR("candidate", runner->plan->id), LOG_END);
    health_done(&runner->health); /* cleaning up reaps it as well, and then its number is nobody's */
    while (!guard_clean_up(&runner->guard, NEVER))
        ;
    if (runner->gavel)
        gavel_note_loss(runner->gavel, GAVEL_LOSS_KILLED);
    runner_end(runner, END_GUARD);
}

static int code_of_candidate(const struct runner *runner)
{
    const struct cli *cli = runner->cli;

    if (runner->stopped == GAVEL_ERR_DONE)
        return CLI_EXIT_OK;
    if (runner->stopped == GAVEL_ERR_ID_IN_USE)
        return cli_fail(
            cli, runner->stopped,
            "another live candidate uses the id \"%s\" in the group \"%s\"; choose another with --id, or stop the other one",
            runner->plan->id, cli->config.group);
    return cli_fail(cli, runner->stopped, "the candidate has stopped: %s",
                    runner->stopped_message[0] ? runner->stopped_message
                                               : gavel_status_text(runner->stopped));
}

/* The command of `gavel once` succeeded: whether everybody knows. */
static int code_of_success(const struct runner *runner)
{
    const struct cli *cli = runner->cli;
    enum gavel_status status = runner->has_stopped ? runner->stopped : GAVEL_ERR_NO_MEMORY;

    if (status == GAVEL_OK || status == GAVEL_ERR_DONE)
        return CLI_EXIT_OK;
    (void)cli_fail(cli, status, "the command succeeded, but: %s",
                   runner->stopped_message[0] ? runner->stopped_message : gavel_status_text(status));
    return status == GAVEL_ERR_NOT_HOLDER ? CLI_EXIT_BUSY : CLI_EXIT_STORE;
}

int runner_exit_code(const struct runner *runner)
{
    if (runner->has_succeeded)
        return code_of_success(runner);
    switch (runner->end) {
    case END_SIGNAL:
        if (runner->plan->is_once) /* 0 would say that it is done */
            return 128 + runner->stop_signal;
        /* The command was told to stop and ended as it chose; a standby has none. */
        return runner->was_running && runner->report.last_status >= 0
                   ? exit_code_of_status(runner->report.last_status)
                   : CLI_EXIT_OK;
    case END_COMMAND:
        return exit_code_of_status(runner->status);
    case END_CANDIDATE:
        return code_of_candidate(runner);
    case END_BUSY:
        (void)cli_fail(runner->cli, GAVEL_ERR_CONFLICT,
                       "another candidate is running it (`%s` names it), and --no-wait was given",
                       hint_group(runner->cli, "leader").text);
        return CLI_EXIT_BUSY;
    case END_GUARD:
        return cli_fail(runner->cli, GAVEL_ERR_IO,
                        "the guard died, so the command was ended and the mandate released; start again");
    case END_FAILURE:
        return cli_fail(runner->cli, GAVEL_ERR_STATE,
                        "the command cannot be kept running; see the lines above, or its own output");
    case END_NOT:
        break;
    }
    return CLI_EXIT_FAILURE;
}
