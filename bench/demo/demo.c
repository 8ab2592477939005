/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `gavel demo`: three `gavel run` on a new SQLite store, each with a command
 * that beats every millisecond while it runs. One is elected; it hands over;
 * then leaders lose their elector, their guard and their command to SIGKILL;
 * then one is frozen for longer than its lease and resumed. The commands write
 * down themselves when they began and what they did, and the verdict comes
 * from those records alone (timeline.h).
 */
#include "bench/demo/demo.h"

#include "os/clock.h"

#include <stdarg.h>
#include <stdlib.h>

const char *const demo_names[DEMO_MEMBERS] = {"ada", "ben", "cleo"};
const enum style demo_styles[DEMO_MEMBERS] = {STYLE_CYAN, STYLE_YELLOW, STYLE_GREEN};

const struct flag demo_flags[] = {
    {"sabotage", FLAG_SWITCH, NULL, "make one candidate ignore the election, to see the verdict fail"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

void demo_tell(const struct demo *demo, uint32_t member, gavel_ns at, const char *format, ...)
{
    const struct cli *cli = demo->cli;
    va_list arguments;

    if (cli->config.json)
        return;
    (void)printf("  %7.3f s  %s%-5s%s ", (double)(at - demo->began) / NS_PER_S,
                 style_begin(cli, demo_styles[member]), demo_names[member],
                 style_end(cli, demo_styles[member]));
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)printf("\n");
    (void)fflush(stdout); /* failures show at the end, in cli_finish() */
}

enum gavel_status demo_judge(struct demo *demo)
{
    size_t mark_count, beat_count;
    const struct mark *marks = shared_log_marks(demo->rig.shared_log, &mark_count);
    const struct beat *beats = shared_log_beats(demo->rig.shared_log, &beat_count);

    return timeline_build(marks, mark_count, beats, beat_count, &demo->timeline);
}

static bool has_taken_all_steps(const struct demo *demo)
{
    for (size_t i = 0; i < DEMO_STEPS; i++)
        if (!demo->steps[i].name || demo->steps[i].status != GAVEL_OK)
            return false;
    return true;
}

bool demo_passed(const struct demo *demo)
{
    return has_taken_all_steps(demo) && demo->timeline.count && !demo->timeline.violation_count &&
           !demo->lost;
}

/* The exit code of a demo that has taken its steps. */
static int conclude(struct demo *demo)
{
    const struct cli *cli = demo->cli;
    enum gavel_status status = demo_judge(demo);

    demo->ended = clock_now();
    demo->fenced = shared_log_fenced(demo->rig.shared_log);
    demo->lost = shared_log_lost(demo->rig.shared_log);
    if (status != GAVEL_OK)
        return cli_fail(cli, status, "the records cannot be judged: %s", gavel_status_text(status));
    if (!has_taken_all_steps(demo) && !rig_is_interrupted())
        runs_print_logs(&demo->runs, DEMO_MEMBERS, stderr);
    if (!cli->config.json)
        demo_print_report(demo, stdout);
    else if (!demo_print_json(demo, stdout))
        return CLI_EXIT_FAILURE;
    return demo_passed(demo) ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

int command_demo(const struct cli *cli, int argc, char **argv)
{
    struct demo *demo = calloc(1, sizeof *demo);
    struct gavel_error error = {0};
    enum gavel_status status;
    int code;

    (void)argc;
    (void)argv;
    if (!demo)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    demo->cli = cli;
    demo->began = clock_now();
    status = rig_open(&demo->rig, &error);
    if (status != GAVEL_OK) {
        free(demo);
        return cli_fail(cli, status, "%s", error.message);
    }
    status = runs_init(&demo->runs, &demo->rig, &error);
    if (status != GAVEL_OK) {
        code = cli_fail(cli, status, "%s", error.message);
    } else {
        if (!cli->config.json)
            (void)printf(
                "Three `gavel run`, one SQLite file, settings `local`; the command beats every millisecond.\n"
                "\n");
        (void)fflush(stdout); /* before the forks */
        demo_run_steps(demo);
        code = conclude(demo);
    }
    rig_close(&demo->rig);
    free(demo);
    return cli_finish(cli, code);
}
