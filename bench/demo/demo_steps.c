/* SPDX-License-Identifier: Apache-2.0 */

/* The steps of the demo. Each leaves somebody leading whom all the others know. */
#include "bench/demo/demo.h"

#include "os/clock.h"

#include <inttypes.h>

/* A mandate is let last for so many beats, at about one a millisecond, to be seen in the picture. */
#define BEATS_ENOUGH 300
#define BEAT_EVERY_NS NS_PER_MS
#define STEP_LIMIT_NS (8 * NS_PER_S)
#define LOOK_AGAIN_NS (10 * NS_PER_MS)

/* Further members of the rig. */
#define HANDING_OVER DEMO_MEMBERS
#define SABOTEUR (DEMO_MEMBERS + 1)

/* The candidate that the saboteur plays; the last one, so that the first election looks as always. */
#define SABOTEUR_AS (DEMO_MEMBERS - 1)

static gavel_ns gap_before(struct demo *demo, uint64_t epoch)
{
    if (demo_judge(demo) != GAVEL_OK)
        return 0;
    for (size_t i = 0; i < demo->timeline.count; i++)
        if (demo->timeline.mandates[i].epoch == epoch && demo->timeline.mandates[i].is_elected)
            return timeline_gap(&demo->timeline, i);
    return 0;
}

static size_t beats_of(const struct demo *demo, uint64_t epoch)
{
    size_t count, n = 0;
    const struct beat *beats = shared_log_beats(demo->rig.shared_log, &count);

    for (size_t i = 0; i < count; i++)
        n += beats[i].epoch == epoch;
    return n;
}

/* Beats with the epoch of whoever leads, which no fence can tell from the real one. */
static int sabotage(const struct member_context *context, void *user)
{
    (void)user;
    while (member_listen(context, clock_now() + BEAT_EVERY_NS) != RIG_QUIT) {
        uint64_t epoch = shared_log_highest_epoch(context->shared_log);
        if (epoch)
            (void)shared_log_beat(context->shared_log, SABOTEUR_AS, epoch,
                                  clock_now()); /* the shared log counts it */
    }
    return 0;
}

static enum gavel_status start(struct demo *demo, uint32_t member)
{
    struct gavel_error error = {0};
    enum gavel_status status = runs_start(&demo->runs, member, demo_names[member], BEAT_EVERY_NS, &error);

    if (status != GAVEL_OK) {
        (void)fprintf(stderr, "gavel demo: %s\n", error.message);
        return status;
    }
    gavel_ns at = clock_now();
    shared_log_mark(demo->rig.shared_log, &(struct mark){.kind = MARK_JOINED, .member = member, .at = at});
    demo_tell(demo, member, at, "starts");
    return GAVEL_OK;
}

/* Waits until a command runs with a higher epoch than the present one. */
static enum gavel_status await_leader(struct demo *demo)
{
    struct mark_query query = {
        .kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = demo->leader.epoch + 1};
    struct mark mark;
    enum gavel_status status = rig_expect(&demo->rig, &query, clock_now() + STEP_LIMIT_NS, &mark);

    if (status != GAVEL_OK)
        return status;
    if (demo->leader.epoch)
        demo_tell(demo, mark.member, mark.at, "leads, epoch %" PRIu64 ", after a gap of %.2f ms", mark.epoch,
                  (double)gap_before(demo, mark.epoch) / NS_PER_MS);
    else
        demo_tell(demo, mark.member, mark.at, "leads, epoch %" PRIu64, mark.epoch);
    demo->leader = mark;
    return GAVEL_OK;
}

/* Waits until the leader has done so much of its work. */
static enum gavel_status await_beats(const struct demo *demo, size_t beats, gavel_ns until)
{
    while (beats_of(demo, demo->leader.epoch) < beats) {
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        if (clock_now() >= until)
            return GAVEL_ERR_TIMEOUT;
        shared_log_wait(demo->rig.shared_log, shared_log_finished(demo->rig.shared_log),
                        clock_now() + LOOK_AGAIN_NS);
    }
    return GAVEL_OK;
}

/* Waits until the leader has worked for a while and all the others know it. */
static enum gavel_status let_it_lead(struct demo *demo)
{
    gavel_ns until = clock_now() + STEP_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < DEMO_MEMBERS && status == GAVEL_OK; i++)
        if (i != demo->leader.member)
            status = runs_await_standby(&demo->runs, i, demo->leader.epoch, until);
    return status != GAVEL_OK ? status : await_beats(demo, BEATS_ENOUGH, until);
}

static enum gavel_status elect(struct demo *demo)
{
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < DEMO_MEMBERS && status == GAVEL_OK; i++)
        status = start(demo, i);
    if (status == GAVEL_OK && cli_flag_is_set(demo->cli, "sabotage"))
        status = rig_start(&demo->rig, SABOTEUR, "saboteur", sabotage, NULL, NULL);
    if (status == GAVEL_OK)
        status = await_leader(demo);
    return status != GAVEL_OK ? status : let_it_lead(demo);
}

static enum gavel_status hand_over(struct demo *demo)
{
    uint32_t former = demo->leader.member;
    gavel_ns at;
    enum gavel_status status = runs_handover(&demo->runs, HANDING_OVER, &at);

    if (status != GAVEL_OK)
        return status;
    demo_tell(demo, former, at, "is asked to hand over (gavel handover)");
    status = await_leader(demo);
    if (status == GAVEL_OK)
        status = runs_bury(&demo->runs, HANDING_OVER, clock_now() + STEP_LIMIT_NS);
    return status != GAVEL_OK ? status : let_it_lead(demo);
}

/* Kills a part of the leader. Whichever it is, the whole of it ends, and is started anew. */
static enum gavel_status kill_part(struct demo *demo, enum run_part part)
{
    uint32_t victim = demo->leader.member;
    gavel_ns at;
    enum gavel_status status = runs_kill(&demo->runs, &demo->leader, part, &at);

    if (status != GAVEL_OK)
        return status;
    demo_tell(demo, victim, at, "loses its %s (SIGKILL)", run_part_name(part));
    status = await_leader(demo);
    if (status == GAVEL_OK)
        status = runs_bury(&demo->runs, victim, clock_now() + STEP_LIMIT_NS);
    if (status == GAVEL_OK)
        status = start(demo, victim);
    return status != GAVEL_OK ? status : let_it_lead(demo);
}

static enum gavel_status kill_elector(struct demo *demo) { return kill_part(demo, PART_ELECTOR); }
static enum gavel_status kill_guard(struct demo *demo) { return kill_part(demo, PART_GUARD); }
static enum gavel_status kill_command(struct demo *demo) { return kill_part(demo, PART_COMMAND); }

static enum gavel_status freeze(struct demo *demo)
{
    struct mark mark = {.kind = MARK_FROZEN, .member = demo->leader.member};
    enum gavel_status status = rig_freeze(&demo->rig, mark.member, &mark.at);

    if (status != GAVEL_OK)
        return status;
    shared_log_mark(demo->rig.shared_log, &mark);
    demo_tell(demo, mark.member, mark.at, "is frozen: its elector (SIGSTOP)");
    status = await_leader(demo);
    /* Resumed only when its successor has been at work, so that an act of the old one would be caught. */
    if (status == GAVEL_OK)
        status = await_beats(demo, BEATS_ENOUGH / 2, clock_now() + STEP_LIMIT_NS);
    if (status == GAVEL_OK)
        status = rig_thaw(&demo->rig, mark.member);
    if (status != GAVEL_OK)
        return status;
    mark.kind = MARK_RESUMED;
    mark.at = clock_now();
    shared_log_mark(demo->rig.shared_log, &mark);
    demo_tell(demo, mark.member, mark.at, "is resumed (SIGCONT); its guard had stopped its command in time");
    return let_it_lead(demo);
}

/* The leader goes last, so that nobody else is elected on the way out. */
static enum gavel_status leave(struct demo *demo)
{
    gavel_ns until = clock_now() + STEP_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < DEMO_MEMBERS && status == GAVEL_OK; i++)
        if (i != demo->leader.member)
            status = rig_dismiss(&demo->rig, i, until);
    if (status == GAVEL_OK)
        status = rig_dismiss(&demo->rig, demo->leader.member, until);
    if (status == GAVEL_OK)
        demo_tell(demo, demo->leader.member, clock_now(), "leaves in order, as the others did");
    return status;
}

void demo_run_steps(struct demo *demo)
{
    static const struct {
        const char *name;
        enum gavel_status (*run)(struct demo *demo);
    } steps[DEMO_STEPS] = {
        {"elect", elect},
        {"hand over", hand_over},
        {"kill the elector", kill_elector},
        {"kill the guard", kill_guard},
        {"kill the command", kill_command},
        {"freeze", freeze},
        {"leave", leave},
    };

    for (size_t i = 0; i < DEMO_STEPS; i++) {
        gavel_ns began = clock_now();
        struct demo_step *step = &demo->steps[demo->step_count++];
        step->name = steps[i].name;
        step->status = steps[i].run(demo);
        step->took = clock_now() - began;
        if (step->status != GAVEL_OK)
            return;
    }
}
