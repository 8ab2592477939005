/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program does in a group with its session: it campaigns, works while
 * it leads, writes notes, resigns, obeys wishes or does not. It works only
 * while its own clock shows less than the deadline of its session, and looks at
 * it whenever it does something.
 *
 * A mandate of a session ends when its holder gives it up, or with the session.
 * So whoever has heard that it leads may work as long as it is sure of its
 * session, however old the news is, unless it has given up since.
 */
#include "sim/session/world.h"

#include <stdio.h>

static bool chance(struct program *program, unsigned per_mille)
{
    return hall_chance(program->hall, HALL_STREAM_PROGRAM, per_mille);
}

static bool has(const struct program *program, enum hall_fault fault)
{
    return hall_has(program->hall, fault);
}

/* Also for a while after the heal: wishes that nobody obeys must come to an end. */
static bool has_wishes(const struct program *program)
{
    const struct hall *hall = program->hall;

    return hall->profile.faults & HALL_FAULT_BIT(HALL_FAULT_WISH) &&
           (!hall->is_healed || hall->quorum->now < hall->healed_at + NS_PER_S);
}

/* ---- work ---- */

bool seat_may_work(const struct program *program, const struct seat *seat, unsigned group)
{
    bool is_lease = program->hall->profile.program[program->index].roles[group] == ROLE_LEASE;

    return seat->epoch != 0 && !program->is_closing &&
           program_clock(program) < (is_lease ? seat->deadline : program->deadline);
}

void seat_work(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    struct seat *seat = &program->seats[group];
    bool is_lease = hall->profile.program[program->index].roles[group] == ROLE_LEASE;
    gavel_ns until = is_lease ? seat->deadline : program->deadline;

    if (!seat_may_work(program, seat, group))
        return;
    if (!seat->works) {
        hall_see(hall, HALL_SIGHT_WORKS);
        TRACE(hall->quorum, NULL, "%s works in %s with epoch %llu", program->label, hall_group_name(group),
              (unsigned long long)seat->epoch);
    }
    seat->works = true;
    judge_works(hall->judge, hall->quorum->now, program->index, group, seat->epoch,
                clock_real(&program->clock, until));
}

void seat_rest(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    struct seat *seat = &program->seats[group];

    if (!seat->works)
        return;
    seat->works = false;
    TRACE(hall->quorum, NULL, "%s stops its work in %s", program->label, hall_group_name(group));
    judge_rests(hall->judge, hall->quorum->now, program->index, group);
}

void office_stop_all(struct program *program)
{
    for (unsigned group = 0; group < HALL_GROUPS_MAX; group++)
        seat_rest(program, group);
}

void office_deadline(struct program *program)
{
    const struct hall_program_profile *profile = &program->hall->profile.program[program->index];

    for (unsigned group = 0; group < program->hall->profile.groups; group++) {
        if (profile->roles[group] != ROLE_CAMPAIGN)
            continue;
        if (seat_may_work(program, &program->seats[group], group))
            seat_work(program, group);
        else
            seat_rest(program, group);
    }
}

void office_session_lost(struct program *program)
{
    const struct hall_program_profile *profile = &program->hall->profile.program[program->index];

    program->deadline = 0;
    for (unsigned group = 0; group < program->hall->profile.groups; group++) {
        struct seat *seat = &program->seats[group];

        if (profile->roles[group] != ROLE_CAMPAIGN)
            continue;
        seat_rest(program, group);
        seat->epoch = 0;
        seat->has_joined = false;
        seat->drain_at = 0;
    }
}

void office_elected(struct program *program, unsigned group, uint64_t epoch)
{
    struct seat *seat = &program->seats[group];

    if (epoch <= seat->void_up_to || epoch <= seat->epoch || seat->is_leaving || program->is_closing)
        return;
    seat->epoch = epoch;
    seat->drain_at = 0;
    seat_work(program, group);
}

/* ---- news ---- */

static bool is_own(const struct program *program, uint64_t session)
{
    return session != 0 && session == client_session(program->client);
}

void office_change(struct program *program, const Gavel__Change *change)
{
    unsigned group = hall_group_of(change->group);
    struct seat *seat = &program->seats[group];
    gavel_ns late = hall_between(program->hall, HALL_STREAM_PROGRAM, 0, program->hall->profile.act_late);

    if (program->hall->profile.program[program->index].roles[group] != ROLE_CAMPAIGN)
        return;
    if (change->kind == GAVEL__CHANGE__KIND__ELECTED && is_own(program, change->session)) {
        office_elected(program, group, change->epoch);
    } else if (change->kind == GAVEL__CHANGE__KIND__VACANT && change->epoch == seat->epoch) {
        seat_rest(program, group);
        seat->epoch = 0;
    } else if (change->kind == GAVEL__CHANGE__KIND__WISHED && change->epoch == seat->epoch) {
        if (!has_wishes(program) || !chance(program, 500)) /* some do not obey */
            seat->drain_at = program_clock(program) + late;
    } else if (change->kind == GAVEL__CHANGE__KIND__WISH_OVER && change->epoch == seat->epoch) {
        seat->drain_at = 0;
    }
}

void office_looked(struct program *program, unsigned group, const Gavel__Group *shown)
{
    if (shown && shown->is_held && is_own(program, shown->session))
        office_elected(program, group, shown->epoch);
}

void office_result(struct program *program, const struct matter *matter, enum gavel_status status,
                   const Gavel__OpResult *result)
{
    struct seat *seat = &program->seats[matter->group];

    if (matter->kind == MATTER_CAMPAIGN) {
        seat->is_asking = false;
        if (result)
            seat->has_joined = status == GAVEL_OK;
    } else if (matter->kind == MATTER_WITHDRAW) {
        seat->is_leaving = false;
        if (result && status == GAVEL_OK) { /* a grant of the same revision is a new mandate */
            seat->void_up_to =
                result->revision - 1 > seat->void_up_to ? result->revision - 1 : seat->void_up_to;
            seat->has_joined = matter->value != 0;
        }
        matter_ask(program, MATTER_LOOK, matter->group); /* whoever stays may be granted it again */
    }
}

/* ---- deeds ---- */

static void campaign(struct program *program, unsigned group)
{
    const struct hall_group_profile *terms = &program->hall->profile.group[group];
    struct seat *seat = &program->seats[group];
    Gavel__Campaign campaign;
    Gavel__Op op;
    uint8_t metadata[] = {(uint8_t)seat->priority};

    gavel__campaign__init(&campaign);
    gavel__op__init(&op);
    campaign.group = (char *)(uintptr_t)hall_group_name(group);
    campaign.id = program->id;
    campaign.priority = seat->priority;
    campaign.is_ineligible = seat->is_ineligible;
    campaign.metadata.data = metadata;
    campaign.metadata.len = sizeof metadata;
    campaign.policy = terms->policy;
    campaign.min_mandate_ms = terms->min_mandate_ms;
    campaign.preempts = terms->preempts;
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &campaign;
    seat->is_asking = true;
    if (matter_submit(program, MATTER_CAMPAIGN, group, &op, 0) == 0)
        seat->is_asking = false;
}

/* First the work stops, then the mandate is given up. */
static void withdraw(struct program *program, unsigned group, bool stays)
{
    struct seat *seat = &program->seats[group];
    Gavel__Withdraw withdraw;
    Gavel__Op op;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    seat_rest(program, group);
    TRACE(program->hall->quorum, NULL, "%s withdraws from %s%s", program->label, hall_group_name(group),
          stays ? ", and stays" : "");
    withdraw.group = (char *)(uintptr_t)hall_group_name(group);
    withdraw.epoch = seat->epoch;
    withdraw.stays = stays;
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    if (seat->epoch > seat->void_up_to)
        seat->void_up_to = seat->epoch;
    seat->epoch = 0;
    seat->drain_at = 0;
    seat->is_leaving = true;
    if (matter_submit(program, MATTER_WITHDRAW, group, &op, stays) == 0)
        seat->is_leaving = false;
}

void office_wish(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    unsigned other = hall_below(hall, HALL_STREAM_PROGRAM, hall->profile.programs);
    bool is_any = chance(program, 300);
    bool is_forced = chance(program, 500);
    Gavel__Wish wish;
    Gavel__Op op;

    gavel__wish__init(&wish);
    gavel__op__init(&op);
    wish.timeout_ms = (uint32_t)hall_between(hall, HALL_STREAM_PROGRAM, 50, 800);
    wish.group = (char *)(uintptr_t)hall_group_name(group);
    if (!is_any && hall->programs[other].id[0])
        wish.successor = hall->programs[other].id;
    wish.is_forced = is_forced;
    op.what_case = GAVEL__OP__WHAT_WISH;
    op.wish = &wish;
    (void)matter_submit(program, MATTER_WISH, group, &op, 0);
}

void office_write_note(struct program *program, unsigned group)
{
    const struct seat *seat = &program->seats[group];
    Gavel__PutNote put;
    Gavel__Op op;
    uint64_t value = ++program->tokens;
    bool is_stale = chance(program, 200);
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);

    gavel__put_note__init(&put);
    gavel__op__init(&op);
    put.group = (char *)(uintptr_t)hall_group_name(group);
    put.key = program->id;
    put.value.data = (uint8_t *)text;
    put.value.len = (size_t)length;
    put.epoch = is_stale ? seat->void_up_to : seat->epoch;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    (void)matter_submit(program, MATTER_NOTE, group, &op, value);
}

static void work(struct program *program, unsigned group)
{
    struct hall *hall = program->hall;
    gavel_ns underway = hall_length(hall, HALL_STREAM_PROGRAM, NS_PER_US, 500 * NS_PER_MS);

    hall_push(hall, hall->quorum->now + underway, HALL_WRITE, group, program->seats[group].epoch);
}

static void close_session(struct program *program)
{
    struct client_event event = {.kind = CLIENT_CLOSE};

    TRACE(program->hall->quorum, NULL, "%s closes its session", program->label);
    office_stop_all(program);
    program->is_closing = true;
    judge_gives_up(program->hall->judge, client_session(program->client));
    program_step(program, &event);
}

/* Something that it need not do. */
static void deviate(struct program *program, unsigned group)
{
    struct seat *seat = &program->seats[group];

    if (seat->epoch != 0 && has(program, HALL_FAULT_RESIGN) && chance(program, 40)) {
        withdraw(program, group, chance(program, 600));
    } else if (has(program, HALL_FAULT_RESIGN) && chance(program, 6)) {
        withdraw(program, group, chance(program, 300));
    } else if (has(program, HALL_FAULT_CHANGE) && chance(program, 40)) {
        seat->priority = (int32_t)hall_below(program->hall, HALL_STREAM_PROGRAM, 4);
        seat->is_ineligible = chance(program, 400);
        campaign(program, group);
    } else if (has_wishes(program) && chance(program, 60)) {
        office_wish(program, group);
    } else if (has(program, HALL_FAULT_CLOSE) && chance(program, 8)) {
        close_session(program);
    } else if (chance(program, 30)) {
        matter_ask(program, MATTER_LOOK, group);
    }
}

void office_act(struct program *program, unsigned group)
{
    struct seat *seat = &program->seats[group];
    uint64_t life = program->life;

    if (!seat_may_work(program, seat, group))
        seat_rest(program, group);
    if (program->is_closing || program_clock(program) >= program->deadline || seat->is_asking ||
        seat->is_leaving)
        return;
    if (program->hall->is_healed && seat->has_joined && seat->is_ineligible) {
        seat->is_ineligible = false;
        campaign(program, group);
        return;
    }
    if (!seat->has_joined) {
        campaign(program, group);
        return;
    }
    if (seat->drain_at != 0 && program_clock(program) >= seat->drain_at) {
        withdraw(program, group, true);
        return;
    }
    if (seat->works)
        work(program, group);
    if (chance(program, 120))
        office_write_note(program, group);
    if (program->life == life && chance(program, 80))
        matter_ask(program, MATTER_READ_COUNT, group);
    if (program->life == life && !program->is_closing)
        deviate(program, group);
}
