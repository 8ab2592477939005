/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loss of a host: the leader of the cluster and a program with a session die
 * at one instant, and nobody is left who sees the death of the program. If the
 * next leader can know when the session was heard last, that must end by it, and
 * not a whole time to live after the election.
 *
 * Or the program is only stopped, and its session must not end before its
 * deadline, although the next leader lacks something: marks that only a bare
 * majority has, which has restarted meanwhile; all that a leader answered which
 * made no marks; and what that was, when yet another has led in between.
 */
#include "sim/session/world.h"

#include "base/assert.h"
#include "sim/raft/chaos.h"

#define LOSS_FROM (1500 * NS_PER_MS)
#define LOSS_TO (1900 * NS_PER_MS)
#define AWAY (20 * NS_PER_S)
/* For a keep-alive to reach the leader, for the mark to reach the voters, and for the end to be committed. */
#define MARGIN (200 * NS_PER_MS)

/* For the next election, and for the first message of the leader. */
#define ELECTED (450 * NS_PER_MS)
#define STOPPED_FOR (10 * NS_PER_S)

enum { PREPARE, LOSE, LOSE_AGAIN, JUDGE };

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

static struct program *program_of(struct testbed *testbed)
{
    return &testbed->programs[testbed->loss.program];
}

/* The session is still the one that was picked. */
static bool has_session(struct testbed *testbed)
{
    const struct program *program = program_of(testbed);

    return program->is_alive && !program->is_closing && program->deadline != 0 &&
           client_session(program->client) == testbed->loss.session;
}

/* Of these the leader needs as many as make a majority with it. */
static bool is_needed(const struct testbed *testbed, unsigned slot)
{
    unsigned needed = testbed->profile.cluster.nodes / 2;

    for (unsigned i = 0; i <= slot; i++)
        needed -= i != testbed->loss.leader && needed > 0 && i < slot;
    return slot != testbed->loss.leader && needed > 0;
}

bool host_loss_hides(const struct testbed *testbed, unsigned from, unsigned to)
{
    return testbed->cluster->now < testbed->loss.hidden_until && from == testbed->loss.leader &&
           !is_needed(testbed, to);
}

static void prepare(struct testbed *testbed)
{
    struct cluster *cluster = testbed->cluster;
    struct host *leader = cluster_leader(cluster);
    struct program *program = pick(testbed);
    gavel_ns ttl, lose_at;

    if (!leader || !program || !leader->node.marks.is_open)
        return;
    ttl = ns_from_ms(testbed->profile.program[program->index].ttl_ms);
    lose_at = cluster->now + ttl * 7 / 10;
    testbed->loss.program = program->index;
    testbed->loss.session = client_session(program->client);
    testbed->loss.leader = leader->slot;
    testbed->loss.ttl = ttl;
    if (testbed->loss.kind == LOSS_LATE || testbed->loss.kind == LOSS_FORGOTTEN)
        testbed->loss.hidden_until = lose_at + 1;
    if (testbed->loss.kind == LOSS_UNMARKED || testbed->loss.kind == LOSS_MISSED) {
        for (unsigned i = 0; i < cluster->used; i++)
            cluster->hosts[i].node.never_marks = true;
        lose_at += ELECTED;
        chaos_crash_for(cluster, leader, "is killed, and the next makes no marks", 50 * NS_PER_MS);
    }
    testbed_push(testbed, lose_at, TESTBED_LOSS, 0, LOSE);
}

static void lose_leader(struct testbed *testbed, struct host *leader)
{
    struct cluster *cluster = testbed->cluster;

    for (unsigned i = 0; i < cluster->used; i++)
        cluster->hosts[i].node.never_marks = false;
    if (testbed->loss.kind == LOSS_FORGOTTEN)
        for (unsigned i = 0; i < cluster->used; i++)
            if (is_needed(testbed, i))
                chaos_crash_for(cluster, &cluster->hosts[i], "restarts, and forgets marks", 20 * NS_PER_MS);
    chaos_crash_for(cluster, leader, "is lost, with its host", AWAY);
}

static void lose(struct testbed *testbed)
{
    struct cluster *cluster = testbed->cluster;
    struct host *leader = cluster_leader(cluster);
    struct program *program = program_of(testbed);

    if (!leader || !has_session(testbed) || !leader->node.frontend.is_open)
        return;
    testbed_see(testbed, SESSION_SIGHT_LOST);
    testbed->loss.kept_at = program->kept_at;
    testbed->loss.term = leader->node.raft.state.term;
    testbed->profile.program[program->index].machine = leader->slot;
    lose_leader(testbed, leader);
    if (testbed->loss.kind == LOSS_KILLED) {
        program_kill(program, "is lost with it");
        testbed_push(testbed, testbed->profile.cluster.heal_at - 1, TESTBED_LOSS, 0, JUDGE);
    } else {
        program_freeze(program, STOPPED_FOR);
    }
    if (testbed->loss.kind == LOSS_MISSED)
        testbed_push(testbed, cluster->now + ELECTED, TESTBED_LOSS, 0, LOSE_AGAIN);
}

static void lose_again(struct testbed *testbed)
{
    struct host *leader = cluster_leader(testbed->cluster);

    if (leader && testbed->profile.cluster.nodes >= 5)
        chaos_crash_for(testbed->cluster, leader, "is lost, too", AWAY);
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
    session_referee_wants_end(testbed->referee, program_of(testbed)->label[0], loss->session, by);
}

void host_loss_begin(struct testbed *testbed)
{
    gavel_ns at = testbed_between(testbed, TESTBED_STREAM_LOSS, LOSS_FROM, LOSS_TO);
    unsigned drawn = testbed_below(testbed, TESTBED_STREAM_LOSS, LOSS_KINDS + 1);

    testbed->loss = (struct host_loss){.kind = drawn < LOSS_KINDS ? (enum loss_kind)drawn : LOSS_KILLED};
    if (testbed->profile.loses_host)
        testbed_push(testbed, at, TESTBED_LOSS, 0, PREPARE);
}

void host_loss_take(struct testbed *testbed, uint64_t number)
{
    switch (number) {
    case PREPARE:
        prepare(testbed);
        break;
    case LOSE:
        lose(testbed);
        break;
    case LOSE_AGAIN:
        lose_again(testbed);
        break;
    default:
        judge(testbed);
        break;
    }
}
