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

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static bool chance(struct program *program, unsigned per_mille)
{
    return testbed_chance(program->testbed, TESTBED_STREAM_PROGRAM, per_mille);
}

static bool has(const struct program *program, enum client_fault fault)
{
    return testbed_has(program->testbed, fault);
}

/* Also for a while after the heal: wishes that nobody obeys must come to an end. */
static bool has_wishes(const struct program *program)
{
    const struct testbed *testbed = program->testbed;

    return testbed->profile.faults & CLIENT_FAULT_BIT(CLIENT_FAULT_WISH) &&
           (!testbed->is_healed || testbed->cluster->now < testbed->healed_at + NS_PER_S);
}

/* ---- work ---- */

bool candidacy_may_work(const struct program *program, const struct candidacy *candidacy, unsigned group)
{
    bool is_lease = program->testbed->profile.program[program->index].roles[group] == ROLE_LEASE;

    return candidacy->epoch != 0 && !program->is_closing &&
           program_clock(program) < (is_lease ? candidacy->deadline : program->deadline);
}

void candidacy_work(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    struct candidacy *candidacy = &program->candidacies[group];
    bool is_lease = testbed->profile.program[program->index].roles[group] == ROLE_LEASE;
    gavel_ns until = is_lease ? candidacy->deadline : program->deadline;

    if (!candidacy_may_work(program, candidacy, group))
        return;
    if (!candidacy->works) {
        testbed_see(testbed, SESSION_SIGHT_WORKS);
        TRACE(testbed->cluster, NULL, "%s works in %s with epoch %llu", program->label,
              testbed_group_name(group), (unsigned long long)candidacy->epoch);
    }
    candidacy->works = true;
    session_referee_works(testbed->referee, testbed->cluster->now, program->index, group, candidacy->epoch,
                          clock_real(&program->clock, until));
}

void candidacy_rest(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    struct candidacy *candidacy = &program->candidacies[group];

    if (!candidacy->works)
        return;
    candidacy->works = false;
    TRACE(testbed->cluster, NULL, "%s stops its work in %s", program->label, testbed_group_name(group));
    session_referee_rests(testbed->referee, testbed->cluster->now, program->index, group);
}

void campaign_stop_all(struct program *program)
{
    for (unsigned group = 0; group < GROUPS_MAX; group++)
        candidacy_rest(program, group);
}

void campaign_deadline(struct program *program)
{
    const struct program_profile *profile = &program->testbed->profile.program[program->index];

    for (unsigned group = 0; group < program->testbed->profile.groups; group++) {
        if (profile->roles[group] != ROLE_CAMPAIGN)
            continue;
        if (candidacy_may_work(program, &program->candidacies[group], group))
            candidacy_work(program, group);
        else
            candidacy_rest(program, group);
    }
}

void campaign_session_lost(struct program *program)
{
    const struct program_profile *profile = &program->testbed->profile.program[program->index];

    if (program->deadline != 0)
        session_referee_told_gone(program->testbed->referee, program->testbed->cluster->now, program->index,
                                  clock_real(&program->clock, program->deadline));
    program->deadline = 0;
    for (unsigned group = 0; group < program->testbed->profile.groups; group++) {
        struct candidacy *candidacy = &program->candidacies[group];

        if (profile->roles[group] != ROLE_CAMPAIGN)
            continue;
        candidacy_rest(program, group);
        candidacy->epoch = 0;
        candidacy->has_joined = false;
        candidacy->drain_at = 0;
    }
}

void campaign_elected(struct program *program, unsigned group, uint64_t epoch)
{
    struct candidacy *candidacy = &program->candidacies[group];

    if (epoch <= candidacy->void_up_to || epoch <= candidacy->epoch || candidacy->is_leaving ||
        program->is_closing)
        return;
    candidacy->epoch = epoch;
    candidacy->drain_at = 0;
    candidacy_work(program, group);
}

/* ---- news ---- */

void campaign_change(struct program *program, const Gavel__Change *change)
{
    unsigned group = testbed_group_of(change->group);
    struct candidacy *candidacy = &program->candidacies[group];
    gavel_ns late =
        testbed_between(program->testbed, TESTBED_STREAM_PROGRAM, 0, program->testbed->profile.act_late);

    if (program->testbed->profile.program[program->index].roles[group] != ROLE_CAMPAIGN)
        return;
    if (change->kind == GAVEL__CHANGE__KIND__ELECTED &&
        client_is_own(program->client, change->session, change->revision)) {
        campaign_elected(program, group, change->epoch);
    } else if (change->kind == GAVEL__CHANGE__KIND__VACANT && change->epoch == candidacy->epoch) {
        candidacy_rest(program, group);
        candidacy->epoch = 0;
    } else if (change->kind == GAVEL__CHANGE__KIND__VACANT) {
        candidacy->impatient_at = program_clock(program) + candidacy->patience;
    } else if (change->kind == GAVEL__CHANGE__KIND__ELECTED) {
        candidacy->impatient_at = 0;
    } else if (change->kind == GAVEL__CHANGE__KIND__DONE) {
        candidacy->is_done = true;
    } else if (change->kind == GAVEL__CHANGE__KIND__REOPENED) {
        candidacy->is_done = false;
    } else if (change->kind == GAVEL__CHANGE__KIND__WISHED && change->epoch == candidacy->epoch) {
        if (!has_wishes(program) || !chance(program, 500)) /* some do not obey */
            candidacy->drain_at = program_clock(program) + late;
    } else if (change->kind == GAVEL__CHANGE__KIND__WISH_OVER && change->epoch == candidacy->epoch) {
        candidacy->drain_at = 0;
    }
}

/*
 * It has seen that the process of the leader is dead; or takes another for it, as one that is late does. Who
 * is on another machine sees no process with that pid there, and some believe that it is dead for it.
 */
static void report_death(struct program *program, unsigned group, const Gavel__Group *shown)
{
    struct candidacy *candidacy = &program->candidacies[group];
    bool is_mistaken = candidacy->dead_pid != 0 && chance(program, 100);
    bool is_blind = chance(program, 100);
    Gavel__Process process;
    Gavel__Died died;
    Gavel__Op op;

    if (!shown->process || shown->session == 0)
        return;
    if (strcmp(shown->process->boot_id, program_boot_id(program)) != 0 && !is_blind)
        return;
    if (strcmp(shown->process->boot_id, program_boot_id(program)) != 0 ||
        session_referee_is_dead(program->testbed->referee, shown->process->pid))
        candidacy->dead_pid = shown->process->pid;
    else if (!is_mistaken)
        return;
    gavel__process__init(&process);
    gavel__died__init(&died);
    gavel__op__init(&op);
    process.boot_id = shown->process->boot_id;
    process.pid = candidacy->dead_pid;
    died.group = shown->name;
    died.epoch = shown->epoch;
    died.process = &process;
    op.what_case = GAVEL__OP__WHAT_DIED;
    op.died = &died;
    testbed_see(program->testbed, SESSION_SIGHT_REPORTED);
    (void)pending_submit(program, PENDING_DIED, group, &op, 0);
}

void campaign_reopen(struct program *program, unsigned group, uint64_t version)
{
    Gavel__Reopen reopen;
    Gavel__Op op;

    gavel__reopen__init(&reopen);
    gavel__op__init(&op);
    reopen.group = (char *)(uintptr_t)testbed_group_name(group);
    reopen.expected_version = version;
    op.what_case = GAVEL__OP__WHAT_REOPEN;
    op.reopen = &reopen;
    (void)pending_submit(program, PENDING_REOPEN, group, &op, 0);
}

void campaign_looked(struct program *program, unsigned group, const Gavel__Group *shown, uint64_t revision)
{
    struct candidacy *candidacy = &program->candidacies[group];
    bool is_ours = shown && shown->is_held && client_is_own(program->client, shown->session, revision);

    candidacy->is_done = shown && shown->is_done;
    if (candidacy->is_done && !program->is_closing)
        campaign_reopen(program, group, shown->version);
    else if (shown && shown->is_held && !program->is_closing && !is_ours)
        report_death(program, group, shown);
    if (is_ours)
        campaign_elected(program, group, shown->epoch);
}

/* It still leads, and its work has stopped: it gives up all the same. */
static void withdraw_again(struct program *program, const struct pending *pending)
{
    struct candidacy *candidacy = &program->candidacies[pending->group];
    Gavel__Withdraw withdraw;
    Gavel__Op op;
    uint64_t token;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    withdraw.group = (char *)(uintptr_t)testbed_group_name(pending->group);
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    candidacy->is_leaving = true;
    token = pending_submit(program, PENDING_WITHDRAW, pending->group, &op, 0);
    ASSERT(token != 0); /* there is the room of what was refused */
}

/* It takes part under another number from now on, and sometimes under another id. */
static void become_another(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    bool has_other_id = testbed_chance(program->testbed, TESTBED_STREAM_FORMER, 500);

    candidacy->former = candidacy->own;
    if (program->index % 4 != 3)
        candidacy->own.instance = ++program->tokens;
    if (has_other_id)
        (void)snprintf(candidacy->own.id, sizeof candidacy->own.id, "%s%s", program->id,
                       strcmp(candidacy->own.id, program->id) == 0 ? "+" : ""); /* it fits */
}

/* One that has left has had no answer, and says it again. */
static void withdraw_former(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    Gavel__Withdraw withdraw;
    Gavel__Op op;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    withdraw.group = (char *)(uintptr_t)testbed_group_name(group);
    withdraw.id = candidacy->former.id;
    withdraw.instance = candidacy->former.instance;
    if (candidacy->former.instance == 0 && strcmp(candidacy->former.id, candidacy->own.id) == 0)
        return; /* nothing tells them apart */
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    (void)pending_submit(program, PENDING_LATE, group, &op, 0);
}

void campaign_result(struct program *program, const struct pending *pending, enum gavel_status status,
                     const Gavel__OpResult *result)
{
    struct candidacy *candidacy = &program->candidacies[pending->group];

    if (pending->kind == PENDING_CAMPAIGN) {
        candidacy->is_asking = false;
        if (result)
            candidacy->has_joined = status == GAVEL_OK;
        if (result && status == GAVEL_ERR_DONE)
            candidacy->is_done = true;
        if (result && status == GAVEL_OK) /* its group shows whether that was a grant */
            campaign_looked(program, pending->group, result->group, result->revision);
    } else if (pending->kind == PENDING_WITHDRAW) {
        candidacy->is_leaving = false;
        if (result && status == GAVEL_ERR_STORE_UNSUPPORTED) { /* done for good, while a node may be older */
            withdraw_again(program, pending);
            return;
        }
        if (result && status == GAVEL_OK) { /* a grant of the same revision is a new mandate */
            candidacy->void_up_to =
                result->revision - 1 > candidacy->void_up_to ? result->revision - 1 : candidacy->void_up_to;
            candidacy->has_joined = pending->value != 0;
            if (!candidacy->has_joined)
                become_another(program, pending->group);
        }
        pending_ask(program, PENDING_LOOK, pending->group); /* whoever stays may be granted it again */
    }
}

/* ---- deeds ---- */

static void campaign(struct program *program, unsigned group)
{
    const struct group_profile *terms = &program->testbed->profile.group[group];
    struct candidacy *candidacy = &program->candidacies[group];
    Gavel__Campaign campaign;
    Gavel__Op op;
    uint8_t metadata[] = {(uint8_t)candidacy->priority};
    uint64_t token;

    gavel__campaign__init(&campaign);
    gavel__op__init(&op);
    campaign.group = (char *)(uintptr_t)testbed_group_name(group);
    campaign.id = candidacy->own.id;
    campaign.instance = candidacy->own.instance;
    campaign.priority = candidacy->priority;
    campaign.is_ineligible = candidacy->is_ineligible;
    campaign.metadata.data = metadata;
    campaign.metadata.len = sizeof metadata;
    campaign.policy = terms->policy;
    campaign.min_mandate_ms = terms->min_mandate_ms;
    campaign.preempts = terms->preempts;
    campaign.is_patient = candidacy->is_patient;
    if (testbed_chance(program->testbed, TESTBED_STREAM_RENEW, 300)) /* it goes on, or led once */
        campaign.renews_epoch = candidacy->epoch != 0 ? candidacy->epoch : candidacy->void_up_to;
    if (chance(program, 10))
        campaign.epoch_at_least =
            candidacy->told + testbed_below(program->testbed, TESTBED_STREAM_PROGRAM, 500);
    if (chance(program, 100)) { /* other terms than the others have: it takes theirs */
        campaign.policy = GAVEL__POLICY__POLICY_PRIORITY;
        campaign.preempts = true;
        campaign.yields = true;
    }
    op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    op.campaign = &campaign;
    candidacy->is_asking = true;
    token = pending_submit(program, PENDING_CAMPAIGN, group, &op, 0);
    ASSERT(token != 0);
}

/* First the work stops, then the mandate is given up. */
static void withdraw(struct program *program, unsigned group, bool stays)
{
    struct candidacy *candidacy = &program->candidacies[group];
    const struct program *other =
        &program->testbed->programs[testbed_below(program->testbed, TESTBED_STREAM_PROGRAM, PROGRAMS_MAX)];
    bool is_named = chance(program, 200);
    bool is_lapsed = chance(program, 150);
    bool is_done = chance(program, 200) && has(program, CLIENT_FAULT_RESIGN);
    Gavel__Withdraw withdraw;
    Gavel__Op op;
    uint64_t token;

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    candidacy_rest(program, group);
    TRACE(program->testbed->cluster, NULL, "%s withdraws from %s%s", program->label,
          testbed_group_name(group), stays ? ", and stays" : "");
    withdraw.group = (char *)(uintptr_t)testbed_group_name(group);
    withdraw.epoch = candidacy->epoch;
    withdraw.stays = stays;
    withdraw.id = candidacy->own.id;
    withdraw.instance = candidacy->own.instance;
    withdraw.is_done = is_done && candidacy->epoch != 0;
    if (is_named && other->id[0])
        withdraw.successor = (char *)(uintptr_t)other->id;
    if (is_lapsed && !program->testbed->profile.is_quiet)
        withdraw.ending = GAVEL__ENDING__ENDING_LAPSED;
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    if (candidacy->epoch > candidacy->void_up_to)
        candidacy->void_up_to = candidacy->epoch;
    candidacy->epoch = 0;
    candidacy->drain_at = 0;
    candidacy->is_leaving = true;
    token = pending_submit(program, PENDING_WITHDRAW, group, &op, stays && !withdraw.is_done);
    ASSERT(token != 0); /* or it would have given up what the cluster takes it to hold, for good */
}

void campaign_wish(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    unsigned other = testbed_below(testbed, TESTBED_STREAM_PROGRAM, testbed->profile.programs);
    bool is_any = chance(program, 300);
    bool is_forced = chance(program, 500);
    Gavel__Wish wish;
    Gavel__Op op;

    gavel__wish__init(&wish);
    gavel__op__init(&op);
    wish.timeout_ms = (uint32_t)testbed_between(testbed, TESTBED_STREAM_PROGRAM, 50, 800);
    wish.group = (char *)(uintptr_t)testbed_group_name(group);
    if (!is_any && testbed->programs[other].id[0])
        wish.successor = testbed->programs[other].id;
    wish.is_forced = is_forced;
    op.what_case = GAVEL__OP__WHAT_WISH;
    op.wish = &wish;
    (void)pending_submit(program, PENDING_WISH, group, &op, 0);
}

void campaign_write_note(struct program *program, unsigned group)
{
    const struct candidacy *candidacy = &program->candidacies[group];
    Gavel__PutNote put;
    Gavel__Op op;
    uint64_t value = ++program->tokens;
    bool is_stale = chance(program, 200);
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);

    if (!program->testbed->profile.group[group].has_notes)
        return;
    gavel__put_note__init(&put);
    gavel__op__init(&op);
    put.group = (char *)(uintptr_t)testbed_group_name(group);
    put.key = program->id;
    put.value.data = (uint8_t *)text;
    put.value.len = (size_t)length;
    put.epoch = is_stale ? candidacy->void_up_to : candidacy->epoch;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    (void)pending_submit(program, PENDING_NOTE, group, &op, value);
}

static void work(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    gavel_ns underway = testbed_length(testbed, TESTBED_STREAM_PROGRAM, NS_PER_US, 500 * NS_PER_MS);

    testbed_push(testbed, testbed->cluster->now + underway, TESTBED_WRITE, group,
                 program->candidacies[group].epoch);
}

static void close_session(struct program *program)
{
    struct client_event event = {.kind = CLIENT_CLOSE};

    TRACE(program->testbed->cluster, NULL, "%s closes its session", program->label);
    campaign_stop_all(program);
    program->is_closing = true;
    session_referee_gives_up(program->testbed->referee, client_session(program->client));
    program_step(program, &event);
}

/* Something that it need not do. */
static void deviate(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];

    if (candidacy->epoch != 0 && has(program, CLIENT_FAULT_RESIGN) && chance(program, 40)) {
        withdraw(program, group, chance(program, 600));
    } else if (has(program, CLIENT_FAULT_RESIGN) && chance(program, 6)) {
        withdraw(program, group, chance(program, 300));
    } else if (has(program, CLIENT_FAULT_CHANGE) && chance(program, 40)) {
        candidacy->priority = (int32_t)testbed_below(program->testbed, TESTBED_STREAM_PROGRAM, 4);
        candidacy->is_ineligible = chance(program, 400);
        campaign(program, group);
    } else if (has_wishes(program) && chance(program, 60)) {
        campaign_wish(program, group);
    } else if (has(program, CLIENT_FAULT_CLOSE) && chance(program, 8)) {
        close_session(program);
    } else if (chance(program, 30)) {
        pending_ask(program, PENDING_LOOK, group);
    } else if (candidacy->epoch != 0 && testbed_chance(program->testbed, TESTBED_STREAM_RENEW, 20)) {
        campaign(program, group);
    } else if (candidacy->former.id[0] && testbed_chance(program->testbed, TESTBED_STREAM_FORMER, 100)) {
        withdraw_former(program, group);
    }
}

/* Who waits before it replaces a leader says so again as soon as there is one. */
static bool mind_patience(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    bool has_waited = candidacy->impatient_at != 0 && program_clock(program) >= candidacy->impatient_at;
    bool is_patient = candidacy->patience > 0 && !has_waited && !program->testbed->is_healed;

    if (candidacy->is_patient == is_patient)
        return false;
    candidacy->is_patient = is_patient;
    if (!is_patient)
        testbed_see(program->testbed, SESSION_SIGHT_IMPATIENT);
    campaign(program, group);
    return true;
}

void campaign_act(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    uint64_t life = program->life;

    if (!candidacy_may_work(program, candidacy, group))
        candidacy_rest(program, group);
    if (candidacy->must_look) {
        candidacy->must_look = false;
        pending_ask(program, PENDING_LOOK, group);
        return;
    }
    if (program->is_closing || candidacy->is_asking || candidacy->is_leaving || !pending_has_room(program))
        return; /* what cannot be asked for is not decided either */
    if (program->deadline == 0 && !candidacy->has_joined && program->index % 3 != 0) {
        campaign(program, group); /* some do not wait for their session: it is opened by that */
        return;
    }
    if (program_clock(program) >= program->deadline)
        return;
    if (program->testbed->is_healed && candidacy->has_joined && candidacy->is_ineligible) {
        candidacy->is_ineligible = false;
        campaign(program, group);
        return;
    }
    if (candidacy->is_done) {
        pending_ask(program, PENDING_LOOK, group);
        return;
    }
    if (!candidacy->has_joined) {
        campaign(program, group);
        return;
    }
    if (mind_patience(program, group))
        return;
    if (candidacy->drain_at != 0 && program_clock(program) >= candidacy->drain_at) {
        withdraw(program, group, true);
        return;
    }
    if (candidacy->works)
        work(program, group);
    if (chance(program, 120))
        campaign_write_note(program, group);
    if (program->life == life && chance(program, 80))
        pending_ask(program, PENDING_READ_COUNT, group);
    if (program->life == life && !program->is_closing && pending_has_room(program))
        deviate(program, group);
}
