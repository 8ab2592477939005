/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program does in a group as a store would have it: it looks, claims
 * what is free or has run out or whose holder it knows to be dead, renews, and
 * releases. Its lease counts from when it asked, less the drift on both sides.
 */
#include "sim/session/world.h"

#define PPM 1000000

gavel_ns lease_sure(const struct program *program, int64_t lease_ms)
{
    int64_t drift = program->hall->profile.quorum.worst.drift_ppm;

    return lease_ms * 1000 * (PPM - drift) / (PPM + drift) * NS_PER_US;
}

static uint32_t lease_ms(const struct program *program)
{
    return program->hall->profile.program[program->index].lease_ms;
}

static void count_on(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    const struct seat *seat = &program->seats[group];

    judge_counts_on_lease(hall->judge, hall->quorum->now, program->index, group, seat->nonce, seat->epoch,
                          seat->epoch != 0 ? clock_real(&program->clock, seat->deadline) : 0);
}

static void claim(struct program *program, unsigned group, uint64_t version, bool must_be_expired)
{
    struct seat *seat = &program->seats[group];
    Gavel__Claim claim;
    Gavel__Process process;
    Gavel__Op op;

    gavel__claim__init(&claim);
    gavel__process__init(&process);
    gavel__op__init(&op);
    process.pid = program->pid;
    process.boot_id = (char *)(uintptr_t) "11111111-2222-3333-4444-555555555555";
    seat->nonce = prng_next(&program->hall->streams[HALL_STREAM_PROGRAM]);
    claim.group = (char *)(uintptr_t)hall_group_name(group);
    claim.expected_version = version;
    claim.must_be_expired = must_be_expired;
    claim.holder = program->id;
    claim.nonce_high = (uint64_t)program->pid;
    claim.nonce_low = seat->nonce;
    claim.lease_ms = lease_ms(program);
    claim.process = &process;
    op.what_case = GAVEL__OP__WHAT_CLAIM;
    op.claim = &claim;
    seat->is_asking = true;
    if (matter_submit(program, MATTER_CLAIM, group, &op, 0) == 0)
        seat->is_asking = false;
}

static void renew(struct program *program, unsigned group)
{
    struct seat *seat = &program->seats[group];
    Gavel__Renew renew;
    Gavel__Op op;
    bool is_other = hall_chance(program->hall, HALL_STREAM_PROGRAM, 100);

    gavel__renew__init(&renew);
    gavel__op__init(&op);
    renew.group = (char *)(uintptr_t)hall_group_name(group);
    renew.holder = program->id;
    renew.nonce_high = (uint64_t)program->pid;
    renew.nonce_low = seat->nonce;
    renew.epoch = seat->epoch;
    renew.lease_ms = lease_ms(program) - (is_other ? lease_ms(program) / 4 : 0);
    op.what_case = GAVEL__OP__WHAT_RENEW;
    op.renew = &renew;
    seat->is_renewing = true;
    if (matter_submit(program, MATTER_RENEW, group, &op, (uint64_t)renew.lease_ms) == 0)
        seat->is_renewing = false;
}

static void let_go(struct program *program, unsigned group)
{
    struct seat *seat = &program->seats[group];

    seat_rest(program, group);
    if (seat->epoch > seat->void_up_to)
        seat->void_up_to = seat->epoch;
    seat->epoch = 0;
    seat->drain_at = 0;
    count_on(program, group);
}

static void release(struct program *program, unsigned group)
{
    struct seat *seat = &program->seats[group];
    Gavel__Release release;
    Gavel__Op op;

    gavel__release__init(&release);
    gavel__op__init(&op);
    release.group = (char *)(uintptr_t)hall_group_name(group);
    release.holder = program->id;
    release.nonce_high = (uint64_t)program->pid;
    release.nonce_low = seat->nonce;
    release.epoch = seat->epoch;
    op.what_case = GAVEL__OP__WHAT_RELEASE;
    op.release = &release;
    TRACE(program->hall->quorum, NULL, "%s releases %s", program->label, hall_group_name(group));
    let_go(program, group);
    seat->is_leaving = true;
    if (matter_submit(program, MATTER_RELEASE, group, &op, 0) == 0)
        seat->is_leaving = false;
}

static void held_until(struct program *program, unsigned group, gavel_ns from, int64_t ms)
{
    struct seat *seat = &program->seats[group];

    seat->deadline = from + lease_sure(program, ms);
    seat->renew_at = from + ns_from_ms(ms) / 3;
    count_on(program, group);
    seat_work(program, group);
}

void lease_result(struct program *program, const struct matter *matter, enum gavel_status status,
                  const Gavel__OpResult *result)
{
    struct seat *seat = &program->seats[matter->group];

    switch (matter->kind) {
    case MATTER_CLAIM:
        seat->is_asking = false;
        if (!result || status != GAVEL_OK || program->is_closing)
            return; /* what is not known counts as lost */
        seat->epoch = result->epoch;
        seat->is_renewing = false;
        held_until(program, matter->group, matter->asked_at, lease_ms(program));
        return;
    case MATTER_RENEW:
        if (seat->epoch != matter->epoch || seat->nonce != matter->nonce || seat->epoch == 0)
            return; /* of a mandate that is over */
        seat->is_renewing = false;
        if (result && status == GAVEL_OK)
            held_until(program, matter->group, matter->asked_at, (int64_t)matter->value);
        else if (result)
            let_go(program, matter->group);
        return;
    default:
        seat->is_leaving = false;
        return;
    }
}

void lease_looked(struct program *program, unsigned group, const Gavel__Group *shown)
{
    struct seat *seat = &program->seats[group];

    if (seat->epoch != 0) {
        if (shown && shown->wish_epoch == seat->epoch)
            seat->drain_at = program_clock(program);
        return;
    }
    if (seat->is_asking || seat->is_leaving || program->is_closing)
        return;
    if (!shown || !shown->is_held)
        claim(program, group, shown ? shown->version : 0, false);
    else if (shown->session == 0 && shown->is_expired)
        claim(program, group, shown->version, true);
    else if (shown->session == 0 && shown->process &&
             judge_is_dead(program->hall->judge, shown->process->pid))
        claim(program, group, shown->version, false);
}

void lease_act(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    struct seat *seat = &program->seats[group];

    if (!seat_may_work(program, seat, group))
        seat_rest(program, group);
    if (program->is_closing)
        return;
    if (seat->epoch == 0) {
        if (!seat->is_asking && !seat->is_leaving)
            matter_ask(program, MATTER_LOOK, group);
        return;
    }
    if (seat->drain_at != 0 ||
        (hall_has(hall, HALL_FAULT_RESIGN) && hall_chance(hall, HALL_STREAM_PROGRAM, 30))) {
        release(program, group);
        return;
    }
    if (program_clock(program) >= seat->renew_at && !seat->is_renewing)
        renew(program, group);
    if (seat->works)
        hall_push(hall,
                  hall->quorum->now + hall_length(hall, HALL_STREAM_PROGRAM, NS_PER_US, 500 * NS_PER_MS),
                  HALL_WRITE, group, seat->epoch);
    if (hall_chance(hall, HALL_STREAM_PROGRAM, 80))
        office_write_note(program, group);
    if (hall_chance(hall, HALL_STREAM_PROGRAM, 40))
        matter_ask(program, MATTER_LOOK, group);
    if (hall_has(hall, HALL_FAULT_WISH) && hall_chance(hall, HALL_STREAM_PROGRAM, 20))
        office_wish(program, group);
}
