/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `gavel demo`: three candidates as real processes on a new SQLite store. One
 * is elected; it hands over; the next is killed; the next is frozen for longer
 * than its lease and resumed. Each writes down itself when it led and what it
 * did, and the verdict comes from those records alone (timeline.h).
 */
#include "cli/demo.h"

#include "cli/elector.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* A mandate is let last for so many beats, at about one a millisecond, to be seen in the picture. */
#define BEATS_ENOUGH 400
#define STEP_LIMIT_NS (6 * NS_PER_S)
#define LOOK_AGAIN_NS (10 * NS_PER_MS)

const char *const demo_names[DEMO_MEMBERS] = {"ada", "ben", "cleo"};
const enum style demo_styles[DEMO_MEMBERS] = {STYLE_CYAN, STYLE_YELLOW, STYLE_GREEN};

const struct flag demo_flags[] = {
    {"sabotage", FLAG_SWITCH, NULL, "let one candidate ignore the election, to see the verdict fail"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* The saboteur is the last one, so that the first election looks as always. */
#define SABOTEUR (DEMO_MEMBERS - 1)

/* One line of the story as it happens. */
static void __attribute__((format(printf, 4, 5)))
tell(const struct demo *demo, uint32_t member, gavel_ns at, const char *format, ...)
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

/* Judges what is on record so far. */
static enum gavel_status judge(struct demo *demo)
{
    size_t mark_count, beat_count;
    const struct mark *marks = witness_marks(demo->crew.witness, &mark_count);
    const struct beat *beats = witness_beats(demo->crew.witness, &beat_count);

    return timeline_build(marks, mark_count, beats, beat_count, &demo->timeline);
}

static gavel_ns gap_before(struct demo *demo, uint64_t epoch)
{
    if (judge(demo))
        return 0;
    for (size_t i = 0; i < demo->timeline.count; i++)
        if (demo->timeline.mandates[i].epoch == epoch && demo->timeline.mandates[i].is_elected)
            return timeline_gap(&demo->timeline, i);
    return 0;
}

static size_t beats_of(const struct demo *demo, uint64_t epoch)
{
    size_t count, n = 0;
    const struct beat *beats = witness_beats(demo->crew.witness, &count);

    for (size_t i = 0; i < count; i++)
        n += beats[i].epoch == epoch;
    return n;
}

static enum gavel_status start(struct demo *demo, uint32_t member)
{
    struct elector_plan plan = {.works = true,
                                .is_saboteur = member == SABOTEUR && cli_flag_is_set(demo->cli, "sabotage")};
    struct gavel_error error = {0};
    enum gavel_status status =
        crew_start(&demo->crew, member, demo_names[member], elector_run, &plan, &error);

    if (status)
        (void)fprintf(stderr, "gavel demo: %s\n", error.message);
    else
        tell(demo, member, clock_now(), "starts");
    return status;
}

/* Waits until somebody leads with a higher epoch than the present one. */
static enum gavel_status await_leader(struct demo *demo)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = demo->epoch + 1};
    struct mark mark;
    enum gavel_status status = crew_expect(&demo->crew, &query, clock_now() + STEP_LIMIT_NS, &mark);

    if (status)
        return status;
    if (demo->epoch)
        tell(demo, mark.member, mark.at, "leads, epoch %" PRIu64 ", after a gap of %.2f ms", mark.epoch,
             (double)gap_before(demo, mark.epoch) / NS_PER_MS);
    else
        tell(demo, mark.member, mark.at, "leads, epoch %" PRIu64, mark.epoch);
    demo->leader = mark.member;
    demo->epoch = mark.epoch;
    return GAVEL_OK;
}

/* Waits until the leader has done so much of its work. */
static enum gavel_status await_beats(const struct demo *demo, size_t beats, gavel_ns until)
{
    while (beats_of(demo, demo->epoch) < beats) {
        if (crew_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        witness_wait(demo->crew.witness, witness_finished(demo->crew.witness), clock_now() + LOOK_AGAIN_NS);
    }
    return GAVEL_OK;
}

/* Waits until the leader has worked for a while and all the others know it. */
static enum gavel_status let_it_lead(struct demo *demo)
{
    gavel_ns until = clock_now() + STEP_LIMIT_NS;

    for (uint32_t i = 0; i < DEMO_MEMBERS; i++) {
        struct mark_query query = {.kind = MARK_KNOWS, .member = i, .epoch_at_least = demo->epoch};
        struct mark mark;
        enum gavel_status status =
            i == demo->leader ? GAVEL_OK : crew_expect(&demo->crew, &query, until, &mark);
        if (status)
            return status;
    }
    return await_beats(demo, BEATS_ENOUGH, until);
}

static enum gavel_status elect(struct demo *demo)
{
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < DEMO_MEMBERS && !status; i++)
        status = start(demo, i);
    if (!status)
        status = await_leader(demo);
    return status ? status : let_it_lead(demo);
}

static enum gavel_status hand_over(struct demo *demo)
{
    tell(demo, demo->leader, clock_now(), "is asked to resign");
    crew_tell(&demo->crew, demo->leader, CREW_RESIGN);
    enum gavel_status status = await_leader(demo);
    return status ? status : let_it_lead(demo);
}

static enum gavel_status kill_leader(struct demo *demo)
{
    struct mark death = {.kind = MARK_DEAD, .member = demo->leader, .epoch = demo->epoch};
    gavel_ns sent_at;
    enum gavel_status status = crew_kill(&demo->crew, death.member, &sent_at, &death.at);

    if (status)
        return status;
    witness_mark(demo->crew.witness, &death);
    tell(demo, death.member, sent_at, "is killed (SIGKILL)");
    status = await_leader(demo);
    if (status)
        return status;
    status = start(demo, death.member);
    return status ? status : let_it_lead(demo);
}

static enum gavel_status freeze_leader(struct demo *demo)
{
    uint32_t frozen = demo->leader;
    struct mark_query query = {.kind = MARK_STOPPED, .member = frozen, .epoch_at_least = demo->epoch};
    struct mark stopped;
    gavel_ns at;
    enum gavel_status status = crew_freeze(&demo->crew, frozen, &at);

    if (status)
        return status;
    tell(demo, frozen, at, "is frozen (SIGSTOP)");
    status = await_leader(demo);
    if (status)
        return status;
    /* Resumed only when its successor has been at work, so that an act of the old one would be caught. */
    status = await_beats(demo, BEATS_ENOUGH / 2, clock_now() + STEP_LIMIT_NS);
    if (status)
        return status;
    tell(demo, frozen, clock_now(), "is resumed (SIGCONT)");
    status = crew_thaw(&demo->crew, frozen);
    if (status)
        return status;
    status = crew_expect(&demo->crew, &query, clock_now() + STEP_LIMIT_NS, &stopped);
    if (status)
        return status;
    tell(demo, frozen, stopped.at, "finds that it leads no longer; its last act was %.0f ms ago",
         (double)(stopped.at - stopped.last_act) / NS_PER_MS);
    return let_it_lead(demo);
}

/* The leader goes last, so that nobody else is elected on the way out. */
static enum gavel_status leave(struct demo *demo)
{
    gavel_ns until = clock_now() + STEP_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < DEMO_MEMBERS && !status; i++)
        if (i != demo->leader)
            status = crew_dismiss(&demo->crew, i, until);
    if (!status)
        status = crew_dismiss(&demo->crew, demo->leader, until);
    if (!status)
        tell(demo, demo->leader, clock_now(), "leaves in order, as the others did");
    return status;
}

static void run_steps(struct demo *demo)
{
    static const struct {
        const char *name;
        enum gavel_status (*run)(struct demo *demo);
    } steps[DEMO_STEPS] = {
        {"elect", elect},          {"hand over", hand_over}, {"kill", kill_leader},
        {"freeze", freeze_leader}, {"leave", leave},
    };

    for (size_t i = 0; i < DEMO_STEPS; i++) {
        gavel_ns began = clock_now();
        struct demo_step *step = &demo->steps[demo->step_count++];
        step->name = steps[i].name;
        step->status = steps[i].run(demo);
        step->took = clock_now() - began;
        if (step->status)
            return;
    }
}

bool demo_passed(const struct demo *demo)
{
    for (size_t i = 0; i < DEMO_STEPS; i++)
        if (!demo->steps[i].name || demo->steps[i].status)
            return false;
    return demo->timeline.count && !demo->timeline.violation_count && !demo->lost;
}

int command_demo(const struct cli *cli, int argc, char **argv)
{
    struct demo *demo = calloc(1, sizeof(*demo));
    struct gavel_error error = {0};
    enum gavel_status status;
    int code = CLI_EXIT_FAILURE;

    (void)argc;
    (void)argv;
    if (!demo)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    demo->cli = cli;
    demo->began = clock_now();
    status = crew_open(&demo->crew, &error);
    if (status) {
        free(demo);
        return cli_fail(cli, status, "%s", error.message);
    }
    if (!cli->config.json)
        (void)printf("Three candidates, three processes, one SQLite file, settings `local`.\n\n");
    (void)fflush(stdout); /* before the forks */
    run_steps(demo);
    demo->ended = clock_now();
    demo->fenced = witness_fenced(demo->crew.witness);
    demo->lost = witness_lost(demo->crew.witness);
    status = judge(demo);
    if (status)
        code = cli_fail(cli, status, "the records cannot be judged: %s", gavel_status_text(status));
    else if (!cli->config.json)
        demo_print_report(demo, stdout);
    else if (!demo_print_json(demo, stdout))
        status = GAVEL_ERR_IO;
    if (!status)
        code = demo_passed(demo) ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
    crew_close(&demo->crew);
    free(demo);
    return cli_finish(cli, code);
}
