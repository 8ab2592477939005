/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loss of a host: the leader of the cluster and a program with a session die
 * at one instant, and nobody is left who sees the death of the program. If the
 * next leader can know when the session was heard last, that must end by it, and
 * not a whole time to live after the election.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/raft/chaos.h"

#define KILL_FROM (2400 * NS_PER_MS)
#define KILL_TO (2800 * NS_PER_MS)
#define AWAY (20 * NS_PER_S)
/* For a keep-alive to reach the leader, for the mark to reach the voters, and for the end to be committed. */
#define MARGIN (150 * NS_PER_MS)

enum { KILL, JUDGE };

void host_loss_begin(struct testbed *testbed)
{
    gavel_ns at = testbed_between(testbed, TESTBED_STREAM_LOSS, KILL_FROM, KILL_TO);

    testbed->loss = (struct host_loss){0};
    if (testbed->profile.loses_host)
        testbed_push(testbed, at, TESTBED_LOSS, 0, KILL);
}

/* The longest that can take in real time on the clock of a node. */
static gavel_ns longest(const struct testbed *testbed, gavel_ns length)
{
    int64_t drift = testbed->profile.cluster.worst.drift_ppm;

    return length / (1000000 - drift) * (1000000 + drift);
}

static struct program *pick(struct testbed *testbed)
{
    unsigned first = testbed_below(testbed, TESTBED_STREAM_LOSS, testbed->profile.programs);

    for (unsigned i = 0; i < testbed->profile.programs; i++) {
        struct program *program = &testbed->programs[(first + i) % testbed->profile.programs];

        if (program->is_alive && !program->is_closing && program->deadline != 0 && program->kept_at != 0 &&
            clock_real(&program->clock, program->deadline) > testbed->cluster->now)
            return program;
    }
    return NULL;
}

static void kill(struct testbed *testbed)
{
    struct cluster *cluster = testbed->cluster;
    struct host *leader = cluster_leader(cluster);
    struct program *program = pick(testbed);

    if (!leader || !program || !leader->node.marks.is_open)
        return;
    testbed->loss = (struct host_loss){.killed_at = cluster->now,
                                       .kept_at = program->kept_at,
                                       .session = client_session(program->client),
                                       .term = leader->node.raft.state.term,
                                       .ttl = ns_from_ms(testbed->profile.program[program->index].ttl_ms),
                                       .label = program->label[0]};
    testbed->profile.program[program->index].machine = leader->slot;
    testbed_see(testbed, SESSION_SIGHT_LOST);
    chaos_crash_for(cluster, leader, "is lost, with its host", AWAY);
    program_kill(program, "is lost with it");
    testbed_push(testbed, testbed->profile.cluster.heal_at - 1, TESTBED_LOSS, 0, JUDGE);
}

/* Whether it holds all that any voter held, of the very leader that was lost, in the same configuration. */
static bool can_know(struct testbed *testbed, const struct host *leader)
{
    const struct node *node = &leader->node;
    const struct silence_held *anchor = &node->marks.anchor;

    if (!node->marks.has_anchor || anchor->term != testbed->loss.term ||
        anchor->config != node->silence.held.config ||
        clock_real(&leader->clock, anchor->floor) > testbed->loss.kept_at)
        return false;
    for (unsigned i = 0; i < testbed->cluster->used; i++) {
        const struct host *host = &testbed->cluster->hosts[i];
        const struct silence_past *past = &host->node.silence.past;

        if (host != leader && host_is_up(host) &&
            (past->term != node->raft.state.term || past->kind != SILENCE_HOLDS ||
             past->held_term != anchor->term || past->held_number > anchor->number))
            return false;
    }
    return true;
}

static void judge(struct testbed *testbed)
{
    const struct host *leader = cluster_leader(testbed->cluster);
    const struct host_loss *loss = &testbed->loss;
    gavel_ns ttl = longest(testbed, loss->ttl);
    gavel_ns opened_at, by;

    if (!leader || !leader->node.marks.is_open || leader->node.frontend.stalled_at != 0 ||
        !can_know(testbed, leader))
        return;
    testbed_see(testbed, SESSION_SIGHT_KNOWN);
    opened_at = clock_real(&leader->clock, leader->node.marks.opened_at);
    by = ns_max(loss->kept_at + ttl, opened_at + ttl / 3) + MARGIN;
    session_referee_wants_end(testbed->referee, loss->label, loss->session, by);
}

void host_loss_take(struct testbed *testbed, uint64_t number)
{
    if (number == KILL)
        kill(testbed);
    else
        judge(testbed);
}
