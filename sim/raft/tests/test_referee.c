/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee itself: an invariant that never breaks may be one that is never
 * looked at. The first half tells it false stories, fact by fact; the second
 * plants a bug, leaves out the rules that would notice it at once, and wants
 * the promises themselves to be seen broken.
 */

#include "base/planted.h"
#include "sim/raft/simulator.h"
#include "sim/raft/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 3

struct fixture {
    struct raft_referee *referee;
    struct raft nodes[NODES];
    struct raft_restore restores[NODES];
    struct raft_actions actions;
    gavel_ns now;
    jmp_buf escape;
    enum raft_invariant broken;
};

static void violate_cb(void *context, enum raft_invariant invariant, const char *what)
{
    struct fixture *f = context;

    (void)what;
    f->broken = invariant;
    longjmp(f->escape, 1);
}

static void begin(struct fixture *f, bool is_calm)
{
    struct raft_referee_options options = {
        .is_within_bound = true, .is_calm = is_calm, .violate = violate_cb, .context = f};

    raft_referee_begin(f->referee, &options);
    f->now = NS_PER_S;
    for (unsigned i = 0; i < NODES; i++)
        raft_referee_started(f->referee, f->now, &f->nodes[i], &f->restores[i]);
}

static struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct raft_settings settings;

    assert_non_null(f);
    f->referee = raft_referee_new();
    assert_non_null(f->referee);
    raft_settings_default(&settings);
    for (unsigned i = 0; i < NODES; i++) {
        struct raft_restore *restore = &f->restores[i];

        restore->seed = i + 1;
        restore->state =
            (struct raft_state){.cluster = 7, .generation = 1, .id = i + 1, .incarnation = 1, .term = 3};
        restore->snapshot.config.count = NODES;
        for (unsigned k = 0; k < NODES; k++)
            restore->snapshot.config.members[k] = (struct raft_member){.id = k + 1, .is_voter = true};
        assert_int_equal(raft_init(&f->nodes[i], &settings, restore, NS_PER_S, NULL), GAVEL_OK);
    }
    begin(f, false);
    return f;
}

static void fixture_free(struct fixture *f)
{
    for (unsigned i = 0; i < NODES; i++)
        raft_done(&f->nodes[i]);
    raft_referee_free(f->referee);
    free(f);
}

/* A transaction of state alone becomes durable. */
static void sync_state(struct fixture *f, unsigned who, uint64_t seq, raft_term term, raft_id vote)
{
    struct raft_persist persist = {.seq = seq, .has_state = true, .state = f->nodes[who].state};

    persist.state.term = term;
    persist.state.vote = vote;
    raft_referee_synced(f->referee, f->now, who + 1, &persist, NULL, NULL);
}

static void tell_before(struct fixture *f, unsigned who)
{
    f->actions.count = 0;
    raft_referee_before(f->referee, f->now, who + 1);
}

static void tell_after(struct fixture *f, unsigned who)
{
    struct raft_event event = {.kind = RAFT_TIMER, .now = f->now};

    raft_referee_after(f->referee, f->now, who + 1, &event, GAVEL_OK, &f->actions);
}

/* In one step a node goes to a term, votes for itself and has it written. */
static void stand(struct fixture *f, unsigned who, raft_term term)
{
    struct raft_state *state = &f->nodes[who].state;

    tell_before(f, who);
    state->term = term;
    state->vote = who + 1;
    f->nodes[who].role = RAFT_CANDIDATE;
    f->actions.items[f->actions.count++] =
        (struct raft_action){.kind = RAFT_PERSIST, .persist = {.seq = 1, .has_state = true, .state = *state}};
    tell_after(f, who);
}

/* The term begins with a no-op, at index 1, in the log of a node, on its disk, and committed if that is
 * said. */
static void become_leader(struct fixture *f, unsigned who)
{
    struct raft *raft = &f->nodes[who];
    struct raft_entry noop = {.term = raft->state.term, .kind = RAFT_ENTRY_NOOP};
    struct raft_action *action = &f->actions.items[0];

    tell_before(f, who);
    raft->role = RAFT_LEADER;
    raft->lease_epoch = 1;
    assert_int_equal(raft_log_append(&raft->log, &noop), GAVEL_OK);
    *action = (struct raft_action){
        .kind = RAFT_PERSIST,
        .persist = {.seq = 2, .first = raft_log_last(&raft->log), .last = raft_log_last(&raft->log)}};
    f->actions.count = 1;
    tell_after(f, who);
}

/* Elected by everybody, in this order: votes on disk, leader, no-op on disk everywhere, committed. */
static void elect(struct fixture *f, unsigned who, raft_term term)
{
    struct raft *raft = &f->nodes[who];
    struct raft_entry noop = {.term = term, .kind = RAFT_ENTRY_NOOP};

    stand(f, who, term);
    for (unsigned i = 0; i < NODES; i++)
        sync_state(f, i, 1, term, who + 1);
    become_leader(f, who);
    for (unsigned i = 0; i < NODES; i++) {
        struct raft_persist persist = {.seq = 2, .first = 1, .last = 1};

        raft_referee_synced(f->referee, f->now, i + 1, &persist, &noop, NULL);
    }
    tell_before(f, who);
    raft->commit = 1;
    tell_after(f, who);
}

/* Both others have answered a round of just now; then the leader claims. */
static void claim(struct fixture *f, unsigned who)
{
    struct raft *raft = &f->nodes[who];

    for (unsigned i = 0; i < NODES; i++) {
        struct raft_message message = {.kind = RAFT_MSG_APPEND_REPLY,
                                       .from = i + 1,
                                       .to = who + 1,
                                       .incarnation = 1,
                                       .term = raft->state.term};
        struct raft_event event = {.kind = RAFT_RECEIVE, .now = f->now, .message = &message};

        message.append_reply = (struct raft_append_reply){
            .round = (uint64_t)f->now, .lease_epoch = raft->lease_epoch, .promise = raft->settings.promise};
        if (i == who)
            continue;
        f->actions.count = 0;
        raft_referee_before(f->referee, f->now, who + 1);
        raft_referee_after(f->referee, f->now, who + 1, &event, GAVEL_OK, &f->actions);
    }
    tell_before(f, who);
    raft->work = RAFT_WORK_RUNNING;
    raft->lease_until = f->now + raft->settings.promise / 2;
    f->actions.items[0] = (struct raft_action){
        .kind = RAFT_CLAIM, .claim = {.term = raft->state.term, .lease_epoch = raft->lease_epoch}};
    f->actions.count = 1;
    tell_after(f, who);
}

static void a_true_story(struct fixture *f)
{
    elect(f, 0, 4);
    claim(f, 0);
    raft_referee_acted(f->referee, f->now, 1, 4, 1, true);
    raft_referee_work_ended(f->referee, f->now, 1);
}

static void a_term_goes_back_on_disk(struct fixture *f) { sync_state(f, 0, 1, 2, 0); }

static void an_incarnation_comes_again(struct fixture *f)
{
    raft_referee_ended(f->referee, f->now, 1);
    raft_referee_started(f->referee, f->now, &f->nodes[0], &f->restores[0]);
}

static void a_second_vote_after_a_crash(struct fixture *f)
{
    sync_state(f, 0, 1, 5, 2);
    sync_state(f, 0, 2, 5, 3);
}

static void two_leaders_of_a_term(struct fixture *f)
{
    elect(f, 0, 4);
    raft_referee_ignore(f->referee, ~RAFT_INVARIANT_BIT(RAFT_INVARIANT_ELECTION));
    tell_before(f, 1);
    f->nodes[1].state.term = 4;
    f->nodes[1].role = RAFT_LEADER;
    tell_after(f, 1);
}

static void a_leader_without_votes(struct fixture *f)
{
    stand(f, 0, 4);
    sync_state(f, 0, 1, 4, 1);
    become_leader(f, 0);
}

static void two_entries_of_one_index_and_term(struct fixture *f)
{
    struct raft_referee_options options = {.violate = violate_cb, .context = f};
    struct raft_entry entry = {.term = 2, .kind = RAFT_ENTRY_DATA, .size = 1};

    raft_referee_begin(f->referee, &options);
    for (unsigned i = 0; i < 2; i++) {
        struct raft_restore restore = f->restores[i];

        entry.data = (const uint8_t *)(i == 0 ? "a" : "b");
        restore.entries = &entry;
        restore.entry_count = 1;
        assert_int_equal(raft_log_append(&f->nodes[i].log, &entry), GAVEL_OK);
        raft_referee_started(f->referee, f->now, &f->nodes[i], &restore);
    }
}

/* A leader with the votes of all, but its no-op is on no disk. */
static void lead_without_a_disk(struct fixture *f)
{
    stand(f, 0, 4);
    for (unsigned i = 0; i < NODES; i++)
        sync_state(f, i, 1, 4, 1);
    become_leader(f, 0);
}

static void a_commit_without_a_majority_on_disk(struct fixture *f)
{
    lead_without_a_disk(f);
    tell_before(f, 0);
    f->nodes[0].commit = 1;
    tell_after(f, 0);
}

static void two_work_at_once(struct fixture *f)
{
    elect(f, 0, 4);
    claim(f, 0);
    raft_referee_ignore(f->referee, ~RAFT_INVARIANT_BIT(RAFT_INVARIANT_LEASES));
    f->nodes[1].state.term = 5;
    f->nodes[1].role = RAFT_LEADER;
    f->nodes[1].lease_epoch = 1;
    claim(f, 1);
}

static void a_token_is_used_again(struct fixture *f)
{
    elect(f, 0, 4);
    claim(f, 0);
    raft_referee_work_ended(f->referee, f->now, 1);
    claim(f, 0);
}

static void the_resource_takes_an_old_token(struct fixture *f)
{
    elect(f, 0, 4);
    claim(f, 0);
    raft_referee_acted(f->referee, f->now, 1, 4, 1, true);
    raft_referee_acted(f->referee, f->now, 1, 3, 1, true);
}

static void an_obituary_of_the_living(struct fixture *f) { raft_referee_signed(f->referee, f->now, 1, 1); }

static void members_change_before_the_noop(struct fixture *f)
{
    struct raft *raft = &f->nodes[0];
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_entry entry = {.term = 4, .kind = RAFT_ENTRY_CONFIG, .data = bytes};

    lead_without_a_disk(f);
    tell_before(f, 0);
    entry.size = (uint32_t)raft_config_encode(&raft->config, bytes);
    assert_int_equal(raft_log_append(&raft->log, &entry), GAVEL_OK);
    raft->config_index = 2;
    f->actions.items[0] =
        (struct raft_action){.kind = RAFT_PERSIST, .persist = {.seq = 3, .first = 2, .last = 2}};
    f->actions.count = 1;
    tell_after(f, 0);
}

static void a_term_grows_in_a_calm_run(struct fixture *f)
{
    begin(f, true);
    elect(f, 0, 4);
    claim(f, 0);
    f->now += 10 * NS_PER_S;
    stand(f, 1, 5);
}

static void heal(struct fixture *f)
{
    const raft_id ids[NODES] = {1, 2, 3};
    struct raft_referee_healed healed = {.ids = ids,
                                         .count = NODES,
                                         .delay = NS_PER_MS,
                                         .write = NS_PER_MS,
                                         .room = 50 * NS_PER_MS,
                                         .settings = &f->nodes[0].settings};

    raft_referee_healed(f->referee, f->now, &healed);
}

static void nobody_works_in_time(struct fixture *f)
{
    heal(f);
    raft_referee_probe(f->referee, raft_referee_leader_by(f->referee));
}

static void nobody_works_but_there_is_time(struct fixture *f)
{
    heal(f);
    raft_referee_probe(f->referee, raft_referee_leader_by(f->referee) - 1);
}

static void terms_go_on_growing(struct fixture *f)
{
    elect(f, 0, 4);
    claim(f, 0);
    heal(f);
    f->now = raft_referee_leader_by(f->referee);
    raft_referee_probe(f->referee, f->now);
    stand(f, 1, 5);
    raft_referee_probe(f->referee, f->now);
}

static void logs_stay_apart(struct fixture *f)
{
    heal(f);
    elect(f, 0, 4);
    claim(f, 0);
    raft_referee_over(f->referee, raft_referee_peace_by(f->referee));
}

/* Apart, so that nothing of the caller's is lost by the jump. */
static void tell(struct fixture *f, void (*story)(struct fixture *f))
{
    if (setjmp(f->escape) == 0)
        story(f);
}

static void test_the_referee_sees_what_is_false(void **state)
{
    static const struct {
        const char *name;
        void (*story)(struct fixture *f);
        enum raft_invariant invariant;
    } rows[] = {
#define ROW(story, invariant) {#story, story, RAFT_INVARIANT_##invariant}
        ROW(a_true_story, NONE),
        ROW(nobody_works_but_there_is_time, NONE),
        ROW(a_term_goes_back_on_disk, REGRESS),
        ROW(an_incarnation_comes_again, REGRESS),
        ROW(a_second_vote_after_a_crash, VOTE_ONCE),
        ROW(two_leaders_of_a_term, ELECTION),
        ROW(a_leader_without_votes, VOTES),
        ROW(two_entries_of_one_index_and_term, MATCHING),
        ROW(a_commit_without_a_majority_on_disk, DURABLE),
        ROW(two_work_at_once, LEASES),
        ROW(a_token_is_used_again, TOKENS),
        ROW(the_resource_takes_an_old_token, TOKENS),
        ROW(an_obituary_of_the_living, OBITUARY),
        ROW(members_change_before_the_noop, CONFIG),
        ROW(a_term_grows_in_a_calm_run, CALM),
        ROW(nobody_works_in_time, LEADER),
        ROW(terms_go_on_growing, PEACE),
        ROW(logs_stay_apart, CONVERGE),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture *f = fixture_new();

        print_message("%s\n", rows[i].name);
        tell(f, rows[i].story);
        assert_string_equal(raft_invariants[f->broken].name, raft_invariants[rows[i].invariant].name);
        fixture_free(f);
    }
}

/* Runs seeds with a bug until one breaks this promise, judged by the promises alone; which of several a bug
 * breaks first is up to the seeds. */
static void assert_promise_breaks(enum planted_bug bug, unsigned seeds, enum raft_invariant invariant)
{
    struct cluster *cluster = cluster_new();
    struct run_result result;

    assert_non_null(cluster);
    planted_bug = bug;
    for (uint64_t seed = 1; seed <= seeds && cluster->broken != invariant; seed++) {
        struct run_options options = {.seed = seed, .duration = 10 * NS_PER_S, .only_promises = true};

        raft_simulator.run(cluster, &options, &result);
    }
    planted_bug = PLANTED_BUG_NONE;
    assert_string_equal(raft_invariants[cluster->broken].name, raft_invariants[invariant].name);
    cluster_free(cluster);
}

static void test_an_early_release_lets_two_work_at_once(void **state)
{
    (void)state;
    assert_promise_breaks(PLANTED_BUG_RELEASE_EARLY, 500, RAFT_INVARIANT_LEASES);
}

static void test_counting_a_learner_elects_two_in_a_term(void **state)
{
    (void)state;
    assert_promise_breaks(PLANTED_BUG_COUNTS_LEARNER, 500, RAFT_INVARIANT_ELECTION);
}

static void test_counting_what_is_not_on_disk_splits_the_tables(void **state)
{
    (void)state;
    assert_promise_breaks(PLANTED_BUG_COUNTS_OWN_UNSYNCED, 500, RAFT_INVARIANT_MACHINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_referee_sees_what_is_false),
        cmocka_unit_test(test_an_early_release_lets_two_work_at_once),
        cmocka_unit_test(test_counting_a_learner_elects_two_in_a_term),
        cmocka_unit_test(test_counting_what_is_not_on_disk_splits_the_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
