/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program does in a group as a store would have it: it looks, claims
 * what is free or has run out or whose holder it knows to be dead, renews, and
 * releases. Its lease counts from when it asked, less the drift on both sides.
 */
#include "sim/session/world.h"

#include "base/assert.h"

#define PPM 1000000

gavel_ns lease_sure(const struct program *program, int64_t lease_ms)
{
    int64_t drift = program->testbed->profile.cluster.worst.drift_ppm;

    return lease_ms * 1000 * (PPM - drift) / (PPM + drift) * NS_PER_US;
}

static uint32_t lease_ms(const struct program *program)
{
    return program->testbed->profile.program[program->index].lease_ms;
}

static void count_on(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    const struct candidacy *candidacy = &program->candidacies[group];

    session_referee_counts_on_lease(
        testbed->referee, testbed->cluster->now, program->index, group, candidacy->nonce, candidacy->epoch,
        candidacy->epoch != 0 ? clock_real(&program->clock, candidacy->deadline) : 0);
}

static void claim(struct program *program, unsigned group, uint64_t version, bool must_be_expired)
{
    struct candidacy *candidacy = &program->candidacies[group];
    Gavel__Claim claim;
    Gavel__Process process;
    Gavel__Op op;

    gavel__claim__init(&claim);
    gavel__process__init(&process);
    gavel__op__init(&op);
    process.pid = program->pid;
    process.boot_id = (char *)(uintptr_t)program_boot_id(program);
    candidacy->nonce = prng_next(&program->testbed->streams[TESTBED_STREAM_PROGRAM]);
    claim.group = (char *)(uintptr_t)testbed_group_name(group);
    claim.expected_version = version;
    claim.must_be_expired = must_be_expired;
    claim.holder = program->id;
    claim.nonce_high = (uint64_t)program->pid;
    claim.nonce_low = candidacy->nonce;
    claim.lease_ms = lease_ms(program);
    claim.process = &process;
    op.what_case = GAVEL__OP__WHAT_CLAIM;
    op.claim = &claim;
    candidacy->is_asking = true;
    if (pending_submit(program, PENDING_CLAIM, group, &op, 0) == 0)
        candidacy->is_asking = false;
}

static void renew(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    Gavel__Renew renew;
    Gavel__Op op;
    bool is_other = testbed_chance(program->testbed, TESTBED_STREAM_PROGRAM, 100);

    gavel__renew__init(&renew);
    gavel__op__init(&op);
    renew.group = (char *)(uintptr_t)testbed_group_name(group);
    renew.holder = program->id;
    renew.nonce_high = (uint64_t)program->pid;
    renew.nonce_low = candidacy->nonce;
    renew.epoch = candidacy->epoch;
    renew.lease_ms = lease_ms(program) - (is_other ? lease_ms(program) / 4 : 0);
    op.what_case = GAVEL__OP__WHAT_RENEW;
    op.renew = &renew;
    candidacy->is_renewing = true;
    if (pending_submit(program, PENDING_RENEW, group, &op, (uint64_t)renew.lease_ms) == 0)
        candidacy->is_renewing = false;
}

static void let_go(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];

    candidacy_rest(program, group);
    if (candidacy->epoch > candidacy->void_up_to)
        candidacy->void_up_to = candidacy->epoch;
    candidacy->epoch = 0;
    candidacy->drain_at = 0;
    count_on(program, group);
}

static void release(struct program *program, unsigned group)
{
    struct candidacy *candidacy = &program->candidacies[group];
    Gavel__Release release;
    Gavel__Op op;
    uint64_t token;

    gavel__release__init(&release);
    gavel__op__init(&op);
    release.group = (char *)(uintptr_t)testbed_group_name(group);
    release.holder = program->id;
    release.nonce_high = (uint64_t)program->pid;
    release.nonce_low = candidacy->nonce;
    release.epoch = candidacy->epoch;
    op.what_case = GAVEL__OP__WHAT_RELEASE;
    op.release = &release;
    TRACE(program->testbed->cluster, NULL, "%s releases %s", program->label, testbed_group_name(group));
    let_go(program, group);
    candidacy->is_leaving = true;
    token = pending_submit(program, PENDING_RELEASE, group, &op, 0);
    ASSERT(token != 0);
}

static void held_until(struct program *program, unsigned group, gavel_ns from, int64_t ms)
{
    struct candidacy *candidacy = &program->candidacies[group];

    candidacy->deadline = from + lease_sure(program, ms);
    candidacy->renew_at = from + ns_from_ms(ms) / 3;
    count_on(program, group);
    candidacy_work(program, group);
}

void lease_result(struct program *program, const struct pending *pending, enum gavel_status status,
                  const Gavel__OpResult *result)
{
    struct candidacy *candidacy = &program->candidacies[pending->group];

    switch (pending->kind) {
    case PENDING_CLAIM:
        candidacy->is_asking = false;
        if (!result || status != GAVEL_OK || program->is_closing)
            return; /* what is not known counts as lost */
        candidacy->epoch = result->epoch;
        candidacy->is_renewing = false;
        held_until(program, pending->group, pending->asked_at, lease_ms(program));
        return;
    case PENDING_RENEW:
        if (candidacy->epoch != pending->epoch || candidacy->nonce != pending->nonce || candidacy->epoch == 0)
            return; /* of a mandate that is over */
        candidacy->is_renewing = false;
        if (result && status == GAVEL_OK)
            held_until(program, pending->group, pending->asked_at, (int64_t)pending->value);
        else if (result)
            let_go(program, pending->group);
        return;
    default:
        candidacy->is_leaving = false;
        return;
    }
}

void lease_looked(struct program *program, unsigned group, const Gavel__Group *shown)
{
    struct candidacy *candidacy = &program->candidacies[group];

    if (candidacy->epoch != 0) {
        if (shown && shown->wish_epoch == candidacy->epoch)
            candidacy->drain_at = program_clock(program);
        return;
    }
    if (candidacy->is_asking || candidacy->is_leaving || program->is_closing)
        return;
    if (shown && shown->is_done) {
        campaign_reopen(program, group, shown->version);
        return;
    }
    if (!shown || !shown->is_held)
        claim(program, group, shown ? shown->version : 0, false);
    else if (shown->session == 0 && shown->is_expired)
        claim(program, group, shown->version, true);
    else if (shown->session == 0 && shown->process &&
             session_referee_is_dead(program->testbed->referee, shown->process->pid))
        claim(program, group, shown->version, false);
}

void lease_act(struct program *program, unsigned group)
{
    struct testbed *testbed = program->testbed;
    struct candidacy *candidacy = &program->candidacies[group];

    if (!candidacy_may_work(program, candidacy, group))
        candidacy_rest(program, group);
    if (program->is_closing || !pending_has_room(program))
        return; /* what cannot be asked for is not decided either */
    if (candidacy->epoch == 0) {
        if (!candidacy->is_asking && !candidacy->is_leaving)
            pending_ask(program, PENDING_LOOK, group);
        return;
    }
    if (candidacy->drain_at != 0 ||
        (testbed_has(testbed, CLIENT_FAULT_RESIGN) && testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 30))) {
        release(program, group);
        return;
    }
    if (program_clock(program) >= candidacy->renew_at && !candidacy->is_renewing)
        renew(program, group);
    if (candidacy->works)
        testbed_push(testbed,
                     testbed->cluster->now +
                         testbed_length(testbed, TESTBED_STREAM_PROGRAM, NS_PER_US, 500 * NS_PER_MS),
                     TESTBED_WRITE, group, candidacy->epoch);
    if (testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 80))
        campaign_write_note(program, group);
    if (testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 40))
        pending_ask(program, PENDING_LOOK, group);
    if (testbed_has(testbed, CLIENT_FAULT_WISH) && testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 20))
        campaign_wish(program, group);
}
