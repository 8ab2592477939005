/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong with programs, their connections, and the threads that hear them. */

#include "sim/session/world.h"

static unsigned stream_of(enum client_fault fault) { return TESTBED_STREAM_FAULTS + fault; }

/* Rather somebody who works: there it matters. */
static struct program *pick(struct testbed *testbed, enum client_fault fault)
{
    unsigned drawn = testbed_below(testbed, stream_of(fault), testbed->profile.programs);
    bool prefers = testbed_chance(testbed, stream_of(fault), 600);

    for (unsigned i = 0; i < testbed->profile.programs && prefers; i++) {
        struct program *program = &testbed->programs[(drawn + i) % testbed->profile.programs];

        for (unsigned group = 0; group < testbed->profile.groups; group++)
            if (program->is_alive && program->candidacies[group].works)
                return program;
    }
    return &testbed->programs[drawn];
}

static struct service *pick_service(struct testbed *testbed, enum client_fault fault)
{
    unsigned drawn = testbed_below(testbed, stream_of(fault), testbed->profile.cluster.nodes);
    bool prefers = testbed_chance(testbed, stream_of(fault), 600);
    const struct host *leader = cluster_leader(testbed->cluster);

    return &testbed->services[prefers && leader ? leader->slot : drawn];
}

/* For any time; or until just when the cluster finds that its session has ended: there it matters. */
static void freeze(struct testbed *testbed)
{
    struct program *program = pick(testbed, CLIENT_FAULT_FREEZE);
    gavel_ns longest = 3 * ns_from_ms(testbed->profile.ttl_max_ms);
    gavel_ns length = testbed_length(testbed, stream_of(CLIENT_FAULT_FREEZE), 10 * NS_PER_MS, longest);
    gavel_ns beyond = testbed_between(testbed, stream_of(CLIENT_FAULT_FREEZE), 0, 40 * NS_PER_MS);
    bool is_nasty = testbed_chance(testbed, stream_of(CLIENT_FAULT_FREEZE), 600);
    gavel_ns ttl = ns_from_ms(testbed->profile.program[program->index].ttl_ms);
    bool hangs = program->open.is_paced && testbed_chance(testbed, TESTBED_STREAM_PACE, 500);
    gavel_ns ends_at;

    if (program->is_alive && is_nasty && program->deadline != 0) {
        ends_at = program->deadline + ttl / 1000000 * 3 * testbed->profile.cluster.worst.drift_ppm;
        length = ns_max(clock_real(&program->clock, ends_at) + beyond - testbed->cluster->now, NS_PER_MS);
    }
    if (hangs)
        program_hang(program, length); /* only what is paced feels it */
    else
        program_freeze(program, length);
}

static void kill(struct testbed *testbed) { program_kill(pick(testbed, CLIENT_FAULT_KILL), "is killed"); }

static void cut(struct testbed *testbed)
{
    struct program *program = pick(testbed, CLIENT_FAULT_BREAK);

    if (!program->is_alive || !program->connection)
        return;
    TRACE(testbed->cluster, NULL, "the connection of %s breaks", program->label);
    connection_break(testbed, program->connection);
}

static void mute(struct testbed *testbed)
{
    struct program *program = pick(testbed, CLIENT_FAULT_MUTE);
    gavel_ns length = testbed_length(testbed, stream_of(CLIENT_FAULT_MUTE), 20 * NS_PER_MS, 2 * NS_PER_S);

    if (!program->is_alive || !program->connection)
        return;
    TRACE(testbed->cluster, NULL, "the connection of %s carries nothing for %.3f s", program->label,
          (double)length / 1e9);
    program->connection->mute_until = testbed->cluster->now + length;
}

static void numb(struct testbed *testbed)
{
    struct service *service = pick_service(testbed, CLIENT_FAULT_NUMB);
    gavel_ns length = testbed_length(testbed, stream_of(CLIENT_FAULT_NUMB), 50 * NS_PER_MS, 3 * NS_PER_S);

    if (!service->is_up)
        return;
    TRACE(testbed->cluster, service->host, "its thread of clients does not run for %.3f s",
          (double)length / 1e9);
    service->numb_until = testbed->cluster->now + length;
}

static void write_sessionless(struct testbed *testbed)
{
    struct service *service = pick_service(testbed, CLIENT_FAULT_SESSIONLESS);

    if (service->is_up)
        testbed_push(testbed, testbed->cluster->now, TESTBED_SESSIONLESS, service->host->slot, 0);
}

static void reopen(struct testbed *testbed)
{
    for (unsigned i = 0; i < testbed->profile.programs; i++)
        forwarded_reopen(testbed, &testbed->programs[i]);
}

/* How much more often than the profile says. */
static const struct {
    void (*happen)(struct testbed *testbed);
    unsigned times;
} lasting[CLIENT_FAULT_COUNT] = {
    [CLIENT_FAULT_FREEZE] = {freeze, 4}, [CLIENT_FAULT_KILL] = {kill, 1},
    [CLIENT_FAULT_BREAK] = {cut, 2},     [CLIENT_FAULT_MUTE] = {mute, 2},
    [CLIENT_FAULT_NUMB] = {numb, 1},     [CLIENT_FAULT_SESSIONLESS] = {write_sessionless, 8},
    [CLIENT_FAULT_TWICE] = {reopen, 16},
};

static void plan(struct testbed *testbed, unsigned fault)
{
    gavel_ns every = testbed->profile.fault_every / lasting[fault].times;

    testbed_push(testbed,
                 testbed->cluster->now +
                     testbed_between(testbed, TESTBED_STREAM_FAULTS + fault, every / 16, 2 * every),
                 TESTBED_FAULT, 0, fault);
}

void client_faults_begin(struct testbed *testbed)
{
    for (unsigned fault = 0; fault < CLIENT_FAULT_COUNT; fault++)
        if (lasting[fault].happen && testbed_has(testbed, (enum client_fault)fault))
            plan(testbed, fault);
}

void client_faults_take(struct testbed *testbed, uint64_t fault)
{
    if (testbed->is_healed)
        return;
    testbed->cluster->counts.faults++;
    plan(testbed, (unsigned)fault);
    lasting[fault].happen(testbed);
}

void client_faults_heal(struct testbed *testbed)
{
    struct connection *connection;

    for (unsigned i = 0; i < testbed->profile.programs; i++) {
        program_resume(&testbed->programs[i]);
        program_recover(&testbed->programs[i]);
    }
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        testbed->services[i].numb_until = 0;
    LIST_FOREACH(connection, &testbed->connections, link) {
        connection->mute_until = 0;
    }
}
