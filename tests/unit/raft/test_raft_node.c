/* SPDX-License-Identifier: Apache-2.0 */

/* A node by itself: the table of roles, what it refuses from the disk, from callers and from hostile
 * peers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/raft/raft.h"

struct fixture {
    struct raft raft;
    struct raft_actions actions;
    struct raft_settings settings;
    struct raft_restore restore;
    gavel_ns now;
};

static bool verify(void *context, const struct raft_certificate *certificate)
{
    (void)context;
    return certificate->mac[0] == 7;
}

static void sign(void *context, struct raft_certificate *certificate)
{
    (void)context;
    certificate->mac[0] = 7;
}

static void members(struct raft_config *config, unsigned count)
{
    *config = (struct raft_config){.count = (uint8_t)count};
    for (unsigned i = 0; i < count; i++)
        config->members[i] = (struct raft_member){.id = i + 1, .is_voter = true};
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    raft_settings_default(&f->settings);
    f->settings.verify = verify;
    f->settings.sign = sign;
    f->restore.state = (struct raft_state){.cluster = 5, .generation = 1, .id = 1, .incarnation = 1};
    f->restore.seed = 1;
    members(&f->restore.snapshot.config, 3);
    f->now = NS_PER_S;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    raft_done(&f->raft);
    free(f);
    return 0;
}

static void begin(struct fixture *f)
{
    assert_int_equal(raft_init(&f->raft, &f->settings, &f->restore, f->now, NULL), GAVEL_OK);
}

static enum gavel_status feed(struct fixture *f, struct raft_event event)
{
    event.now = f->now;
    return raft_step(&f->raft, &event, &f->actions);
}

static enum gavel_status receive(struct fixture *f, const struct raft_message *message)
{
    return feed(f, (struct raft_event){.kind = RAFT_RECEIVE, .message = message});
}

/* Lets the disk finish whatever the last step wrote. */
static void sync_disk(struct fixture *f)
{
    for (int i = 0; i < 8 && f->raft.durable_seq < f->raft.seq; i++)
        assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_PERSISTED, .seq = f->raft.seq}), GAVEL_OK);
}

static const struct raft_action *find(const struct fixture *f, enum raft_action_kind kind)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].kind == kind)
            return &f->actions.items[i];
    return NULL;
}

static enum gavel_status propose(struct fixture *f, uint32_t count, uint32_t size)
{
    static const uint8_t bytes[64];
    struct raft_entry entries[8];

    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct raft_entry){.kind = RAFT_ENTRY_DATA, .size = size, .data = bytes};
    return feed(f,
                (struct raft_event){.kind = RAFT_PROPOSE, .propose = {.entries = entries, .count = count}});
}

/* Its own disk is the majority of a node that is alone. */
static void test_what_is_not_committed_is_bounded(void **state)
{
    struct fixture *f = *state;

    f->settings.uncommitted_entries = 4;
    f->settings.uncommitted_bytes = 100;
    members(&f->restore.snapshot.config, 1);
    begin(f);
    f->now = raft_wake_at(&f->raft);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_TIMER}), GAVEL_OK);
    sync_disk(f);
    assert_int_equal(f->raft.role, RAFT_LEADER);
    assert_int_equal(propose(f, 3, 1), GAVEL_OK);
    assert_int_equal(propose(f, 2, 1), GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(raft_log_last(&f->raft.log), f->raft.commit + 3); /* nothing of it is there */
    assert_int_equal(propose(f, 1, 1), GAVEL_OK);
    assert_int_equal(propose(f, 1, 0), GAVEL_ERR_STORE_UNAVAILABLE);
    sync_disk(f); /* it answers: there is room again */
    assert_int_equal(f->raft.uncommitted_bytes, 0);
    assert_int_equal(propose(f, 2, 40), GAVEL_OK);
    assert_int_equal(propose(f, 1, 40), GAVEL_ERR_STORE_UNAVAILABLE); /* by its bytes */
    assert_int_equal(propose(f, 1, 20), GAVEL_OK);
    sync_disk(f);
    assert_int_equal(propose(f, 8, 64), GAVEL_OK); /* alone, however large */
    sync_disk(f);
    assert_int_equal(f->raft.commit, raft_log_last(&f->raft.log));
}

static void test_table_has_the_edges_of_the_picture(void **state)
{
    static const char expected[] = "learner: follower\n"
                                   "follower: learner pre-candidate candidate\n"
                                   "pre-candidate: follower candidate\n"
                                   "candidate: follower leader\n"
                                   "leader: follower\n";
    char printed[512] = "";
    size_t n = 0;

    (void)state;
    for (int from = 0; from < RAFT_ROLE_COUNT; from++) {
        n += (size_t)snprintf(printed + n, sizeof printed - n, "%s:", raft_role_name((enum raft_role)from));
        for (int to = 0; to < RAFT_ROLE_COUNT; to++)
            if (raft_may_move((enum raft_role)from, (enum raft_role)to))
                n += (size_t)snprintf(printed + n, sizeof printed - n, " %s",
                                      raft_role_name((enum raft_role)to));
        n += (size_t)snprintf(printed + n, sizeof printed - n, "\n");
    }
    assert_string_equal(printed, expected);
}

static void test_alone_it_leads_once_its_own_vote_is_durable(void **state)
{
    struct fixture *f = *state;

    members(&f->restore.snapshot.config, 1);
    begin(f);
    f->now = raft_wake_at(&f->raft);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_TIMER}), GAVEL_OK);
    assert_int_equal(f->raft.role, RAFT_CANDIDATE); /* asked, answered, but not on disk yet */
    assert_non_null(find(f, RAFT_PERSIST));
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_PERSISTED, .seq = 1}), GAVEL_OK);
    assert_int_equal(f->raft.role, RAFT_LEADER);
    assert_null(find(f, RAFT_CLAIM)); /* its no-op is not on disk */
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_PERSISTED, .seq = 2}), GAVEL_OK);
    assert_non_null(find(f, RAFT_CLAIM));
    assert_true(raft_is_working(&f->raft, f->now + 3600 * NS_PER_S));
}

static void test_requests_that_do_not_fit_are_refused(void **state)
{
    struct fixture *f = *state;
    struct raft_entry entry = {.kind = RAFT_ENTRY_DATA, .size = 1, .data = (const uint8_t *)"x"};
    struct raft_event propose = {.kind = RAFT_PROPOSE, .propose = {.entries = &entry, .count = 1}};

    begin(f);
    assert_int_equal(feed(f, propose), GAVEL_ERR_NO_LEADER);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_TRANSFER, .transfer = {.target = 2}}),
                     GAVEL_ERR_NO_LEADER);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_STEP_DOWN}), GAVEL_ERR_NO_LEADER);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_CHANGE, .change = &f->raft.config}),
                     GAVEL_ERR_NO_LEADER);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_WORK_STOPPED}), GAVEL_ERR_STATE);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_PERSISTED, .seq = 9}), GAVEL_ERR_INVALID);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_COMPACT, .compact = {.index = 9}}),
                     GAVEL_ERR_INVALID);
    assert_int_equal(feed(f, (struct raft_event){.kind = (enum raft_event_kind)99}), GAVEL_ERR_INVALID);
}

static void test_what_the_disk_cannot_have_held_is_refused(void **state)
{
    struct fixture *f = *state;
    struct raft_entry entries[2] = {{.term = 2, .kind = RAFT_ENTRY_NOOP},
                                    {.term = 1, .kind = RAFT_ENTRY_NOOP}};
    struct raft_restore good = f->restore;
    struct gavel_error error;

#define REFUSED(status, word)                                                                                \
    do {                                                                                                     \
        assert_int_equal(raft_init(&f->raft, &f->settings, &f->restore, f->now, &error), status);            \
        assert_non_null(strstr(error.message, word));                                                        \
        f->restore = good;                                                                                   \
    } while (0)

    f->restore.state.id = 0;
    REFUSED(GAVEL_ERR_INVALID, "id");
    f->restore.state.incarnation = 0;
    REFUSED(GAVEL_ERR_INVALID, "incarnation");
    f->restore.state.commit = 1;
    REFUSED(GAVEL_ERR_STORE_DAMAGED, "committed");
    f->restore.state.promise = (struct raft_promise){.leader = 2, .term = 9};
    REFUSED(GAVEL_ERR_STORE_DAMAGED, "later term");
    f->restore.state.term = 2;
    f->restore.entries = entries;
    f->restore.entry_count = 2;
    REFUSED(GAVEL_ERR_STORE_DAMAGED, "entry 2");
    f->restore.snapshot.index = 4;
    REFUSED(GAVEL_ERR_STORE_DAMAGED, "contradicts");
    f->restore.snapshot.config.members[1].id = 1;
    REFUSED(GAVEL_ERR_STORE_DAMAGED, "members");
    f->settings.promise = 0;
    assert_int_not_equal(raft_init(&f->raft, &f->settings, &f->restore, f->now, &error), GAVEL_OK);
}

static void test_a_failed_disk_ends_everything_but_stopping_the_work(void **state)
{
    struct fixture *f = *state;

    members(&f->restore.snapshot.config, 1);
    begin(f);
    f->now = raft_wake_at(&f->raft);
    (void)feed(f, (struct raft_event){.kind = RAFT_TIMER});
    sync_disk(f);
    assert_true(raft_is_working(&f->raft, f->now));
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_DISK_FAILED}), GAVEL_OK);
    assert_int_equal(f->actions.count, 1);
    assert_int_equal(find(f, RAFT_STOP_WORK)->stop.reason, RAFT_STOP_DISK);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_WORK_STOPPED}), GAVEL_ERR_STOPPED);
    assert_int_equal(f->raft.work, RAFT_WORK_NONE);
    f->now += 10 * NS_PER_S;
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_TIMER}), GAVEL_ERR_STOPPED);
    assert_int_equal(f->actions.count, 0);
    assert_int_equal(raft_wake_at(&f->raft), NEVER);
}

/* Small numbers, so that terms, indexes and rounds meet those of the node now and then. */
static uint64_t some(struct prng *prng)
{
    return prng_chance(prng, 20) ? prng_next(prng) : prng_below(prng, 12);
}

static void draw_certificate(struct prng *prng, struct raft_certificate *c)
{
    *c = (struct raft_certificate){
        .kind = (enum raft_certificate_kind)prng_below(prng, 4),
        .node = some(prng),
        .incarnation = some(prng),
        .term = some(prng),
        .lease_epoch = some(prng),
        .target = some(prng),
        .commit = some(prng),
        .mac = {(uint8_t)(prng_chance(prng, 700) ? 7 : 8)},
    };
}

struct drawn {
    struct raft_message message;
    struct raft_entry entries[4];
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
};

static void draw_append(struct prng *prng, struct drawn *d, const struct raft *r)
{
    struct raft_append *a = &d->message.append;
    raft_term term = some(prng);

    *a = (struct raft_append){
        .prev_index = some(prng),
        .commit = some(prng),
        .lease_epoch = 1 + some(prng) % 3,
        .round = some(prng) + 1,
        .entries = d->entries,
        .entry_count = (uint32_t)prng_below(prng, 4),
        .successor_count = (uint8_t)prng_below(prng, 3),
        .successors = {1, 2},
    };
    a->prev_term = prng_chance(prng, 700) ? raft_log_term(&r->log, a->prev_index) : some(prng);
    for (unsigned i = 0; i < 4; i++) {
        term += prng_below(prng, 2);
        d->entries[i] = (struct raft_entry){.term = term, .kind = (enum raft_entry_kind)prng_below(prng, 3)};
        if (d->entries[i].kind == RAFT_ENTRY_DATA)
            d->entries[i].size = (uint32_t)prng_below(prng, sizeof d->bytes);
        else if (d->entries[i].kind == RAFT_ENTRY_CONFIG)
            d->entries[i].size = (uint32_t)raft_config_encode(&r->config, d->bytes);
        d->entries[i].data = d->entries[i].size > 0 ? d->bytes : NULL;
    }
}

static void draw(struct prng *prng, struct drawn *d, const struct raft *r)
{
    struct raft_message *m = &d->message;

    memset(d, 0, sizeof *d);
    *m = (struct raft_message){
        .kind = (enum raft_message_kind)prng_below(prng, RAFT_MESSAGE_KIND_COUNT),
        .from = prng_below(prng, 6),
        .to = 1,
        .cluster = 5,
        .generation = 1,
        .incarnation = prng_below(prng, 3),
        .term = r->state.term + (prng_chance(prng, 50) ? prng_below(prng, 3) : 0),
    };
    switch (m->kind) {
    case RAFT_MSG_APPEND:
        draw_append(prng, d, r);
        break;
    case RAFT_MSG_APPEND_REPLY:
        m->append_reply = (struct raft_append_reply){
            .is_success = prng_chance(prng, 500),
            .match = some(prng),
            .prev_index = some(prng),
            .conflict_term = some(prng),
            .conflict_index = some(prng),
            .round = prng_chance(prng, 500) ? r->lead_round : some(prng),
            .lease_epoch = some(prng),
            .promise = (gavel_ns)(prng_below(prng, 300) * NS_PER_MS),
            .seen_term = prng_chance(prng, 900) ? 0 : some(prng),
        };
        break;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        m->vote = (struct raft_vote){.term = m->kind == RAFT_MSG_VOTE ? m->term : m->term + 1,
                                     .round = some(prng),
                                     .last_index = some(prng),
                                     .last_term = some(prng)};
        draw_certificate(prng, &m->vote.certificate);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        m->vote_reply = (struct raft_vote_reply){
            .term = m->kind == RAFT_MSG_VOTE_REPLY ? r->state.term : r->state.term + 1,
            .round = prng_chance(prng, 800) ? r->round : some(prng),
            .reason = (enum raft_reason)prng_below(prng, RAFT_REASON_COUNT),
            .voted_for = some(prng),
            .wait = (gavel_ns)(prng_below(prng, 100) * NS_PER_MS),
        };
        break;
    case RAFT_MSG_SNAPSHOT:
        m->snapshot = (struct raft_install){.index = some(prng),
                                            .index_term = some(prng),
                                            .config = r->config,
                                            .config_index = some(prng),
                                            .lease_epoch = some(prng),
                                            .round = some(prng),
                                            .data = d->bytes,
                                            .size = prng_below(prng, 64)};
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_CERTIFICATE:
        draw_certificate(prng, &m->certificate);
        break;
    case RAFT_MSG_TAKE_OVER:
        break;
    }
}

/* Whatever peers say, nothing is asserted, and what is committed or on disk never goes back. */
static void test_hostile_messages_never_bring_it_down(void **state)
{
    struct fixture *f = *state;
    struct prng prng;
    unsigned taken = 0;
    unsigned led = 0;

    prng_seed(&prng, 3);
    begin(f);
    for (int i = 1; i < 500000; i++) {
        raft_term term = f->raft.state.term;
        raft_index commit = f->raft.commit;
        struct drawn drawn;

        if (i % 1000 == 0) { /* while its numbers are still small enough to be hit */
            raft_done(&f->raft);
            f->restore.seed++;
            begin(f);
            continue;
        }
        f->now += (gavel_ns)prng_below(&prng, 20) * NS_PER_MS;
        draw(&prng, &drawn, &f->raft);
        taken += feed(f, (struct raft_event){.kind = RAFT_RECEIVE, .message = &drawn.message}) == GAVEL_OK;
        if (prng_chance(&prng, 500))
            sync_disk(f);
        if (prng_chance(&prng, 100))
            (void)feed(f, (struct raft_event){.kind = RAFT_CAMPAIGN}); /* refused or not */
        if (f->raft.work == RAFT_WORK_STOPPING && prng_chance(&prng, 300))
            (void)feed(f, (struct raft_event){.kind = RAFT_WORK_STOPPED}); /* cannot be refused now */
        led += f->raft.role == RAFT_LEADER;
        assert_true(f->raft.state.term >= term);
        assert_true(f->raft.commit >= commit);
        assert_true(f->raft.log.durable <= raft_log_last(&f->raft.log));
    }
    /* Otherwise the messages were too wild to test anything. */
    assert_true(taken > 20000);
    assert_true(led > 1000);
}

/* From the disk: sums must not wrap, or a log that cannot be looks short. */
static void test_an_index_on_disk_that_wraps_is_refused(void **state)
{
    struct fixture *f = *state;
    struct raft_entry entries[4];
    struct gavel_error error;

    for (int i = 0; i < 4; i++)
        entries[i] = (struct raft_entry){.term = 1, .kind = RAFT_ENTRY_NOOP};
    f->restore.state.term = 1;
    f->restore.snapshot.index = UINT64_MAX - 1;
    f->restore.snapshot.term = 1;
    f->restore.entries = entries;
    f->restore.entry_count = 4;
    assert_int_equal(raft_init(&f->raft, &f->settings, &f->restore, f->now, &error), GAVEL_ERR_STORE_DAMAGED);
}

static struct raft_message from_peer(const struct fixture *f, enum raft_message_kind kind, raft_id from)
{
    return (struct raft_message){
        .kind = kind,
        .from = from,
        .to = 1,
        .cluster = 5,
        .generation = 1,
        .incarnation = 1,
        .term = f->raft.state.term,
    };
}

/* Until its own vote is on disk it does not lead, whoever has voted for it. */
static void test_the_others_votes_alone_make_no_leader(void **state)
{
    struct fixture *f = *state;
    struct raft_message m;

    begin(f);
    f->now = raft_wake_at(&f->raft);
    (void)feed(f, (struct raft_event){.kind = RAFT_TIMER});
    m = from_peer(f, RAFT_MSG_PRE_VOTE_REPLY, 2);
    m.vote_reply = (struct raft_vote_reply){.term = 1, .round = f->raft.round};
    (void)receive(f, &m);
    assert_int_equal(f->raft.role, RAFT_CANDIDATE);
    for (raft_id peer = 2; peer <= 3; peer++) {
        m = from_peer(f, RAFT_MSG_VOTE_REPLY, peer);
        m.vote_reply = (struct raft_vote_reply){.term = 1};
        (void)receive(f, &m);
    }
    assert_int_equal(f->raft.role, RAFT_CANDIDATE);
    sync_disk(f);
    assert_int_equal(f->raft.role, RAFT_LEADER);
}

/* Many changes of members in one append: one step still gives no more than its caller can hold. */
static void test_many_configurations_in_one_append(void **state)
{
    enum { COUNT = 1024 };
    static struct raft_entry entries[COUNT];
    static uint8_t bytes[2][RAFT_CONFIG_BYTES_MAX];
    struct fixture *f = *state;
    struct raft_message m;
    struct raft_config config;

    members(&config, 3);
    begin(f);
    for (unsigned i = 0; i < 2; i++) {
        config.members[0].is_voter = i;
        entries[i] = (struct raft_entry){.term = 1,
                                         .kind = RAFT_ENTRY_CONFIG,
                                         .size = (uint32_t)raft_config_encode(&config, bytes[i]),
                                         .data = bytes[i]};
    }
    for (unsigned i = 2; i < COUNT; i++)
        entries[i] = entries[i % 3 == 0]; /* out, still out, in again */
    m = from_peer(f, RAFT_MSG_APPEND, 2);
    m.term = 1;
    m.append = (struct raft_append){.lease_epoch = 1, .round = 1, .entries = entries, .entry_count = COUNT};
    assert_int_equal(receive(f, &m), GAVEL_OK);
    assert_int_equal(f->raft.config_index, COUNT);
    assert_int_equal(f->raft.role, RAFT_FOLLOWER);
}

static void test_a_node_that_joins_learns_the_generation_from_its_leader(void **state)
{
    struct fixture *f = *state;
    struct raft_message vote = {.kind = RAFT_MSG_VOTE,
                                .from = 2,
                                .to = 1,
                                .cluster = 5,
                                .generation = 3,
                                .incarnation = 1,
                                .term = 4,
                                .vote = {.term = 4}};
    struct raft_message append = {.kind = RAFT_MSG_APPEND,
                                  .from = 2,
                                  .to = 1,
                                  .cluster = 5,
                                  .generation = 3,
                                  .incarnation = 1,
                                  .term = 4,
                                  .append = {.lease_epoch = 1, .round = 1}};

    f->restore.state.generation = 0;
    members(&f->restore.snapshot.config, 0);
    begin(f);
    assert_int_equal(receive(f, &vote), GAVEL_ERR_INVALID);
    assert_int_equal(f->raft.state.generation, 0);
    assert_int_equal(receive(f, &append), GAVEL_OK);
    assert_int_equal(f->raft.state.generation, 3);
    assert_non_null(find(f, RAFT_PERSIST));
    assert_int_equal(find(f, RAFT_PERSIST)->persist.state.generation, 3);
    append.generation = 4; /* told once */
    assert_int_equal(receive(f, &append), GAVEL_ERR_INVALID);
}

/* A cluster that binds from its founding on has nobody of 0.6.0 in it, met or not; an upgraded one may. */
static void test_a_founder_without_a_directory_is_refused(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant old = {.id = 2, .incarnation = 1};
    struct raft_claimant new = {.id = 2, .directory = 22, .incarnation = 1};

    f->restore.state.directory = 11;
    begin(f);
    assert_int_equal(raft_trust(&f->raft, &old), RAFT_TRUSTED);
    raft_done(&f->raft);
    f->restore.snapshot.config.binds = true;
    begin(f);
    assert_int_equal(raft_trust(&f->raft, &old), RAFT_NO_DIRECTORY);
    assert_int_equal(raft_trust(&f->raft, &new), RAFT_TRUSTED);
}

/* Followers hear no message of each other, but they greet: that is how all know that a member has begun
 * again. */
static void test_who_greets_in_a_later_incarnation_is_met(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant older = {.id = 2, .directory = 22, .incarnation = 2, .start = 5, .is_live = true};
    struct raft_claimant later = {.id = 2, .directory = 22, .incarnation = 4, .start = 7, .is_live = true};
    struct raft_claimant other = {.id = 2, .directory = 23, .incarnation = 9, .start = 8, .is_live = true};

    f->restore.state.directory = 11;
    f->restore.snapshot.config.binds = true;
    for (unsigned i = 0; i < f->restore.snapshot.config.count; i++)
        f->restore.snapshot.config.members[i].directory = 11 * f->restore.snapshot.config.members[i].id;
    begin(f);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &older}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &older), RAFT_TRUSTED);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &other}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &older), RAFT_TRUSTED); /* of another directory nothing is taken */
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &later}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &older), RAFT_OUTLIVED);
    assert_int_equal(raft_trust(&f->raft, &later), RAFT_TRUSTED);
}

/* Node 1 of a cluster whose founding is 77, in its first configuration; members are bound to 11, 22, 33. */
static void begin_founded(struct fixture *f, uint64_t generation, raft_index commit)
{
    static const struct raft_entry noop = {.term = 1, .kind = RAFT_ENTRY_NOOP};
    struct raft_config config = f->restore.snapshot.config;
    uint8_t bytes[RAFT_CONFIG_BYTES_MAX];
    struct raft_entry entries[2] = {noop, {.term = 1, .kind = RAFT_ENTRY_CONFIG, .data = bytes}};

    config.binds = true;
    config.founding = 77;
    config.generation = generation;
    for (unsigned i = 0; i < config.count; i++)
        config.members[i].directory = 11 * config.members[i].id;
    entries[1].size = (uint32_t)raft_config_encode(&config, bytes);
    f->restore.state.directory = 11;
    f->restore.state.term = 1;
    f->restore.state.commit = commit;
    f->restore.entries = entries;
    f->restore.entry_count = 2;
    begin(f);
    f->restore.entries = NULL;
    f->restore.entry_count = 0;
}

/* Rule 5 of directory.c: whose founding is committed, here and there. */
static void test_another_founding_is_refused_if_both_are_committed(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant member = {
        .id = 2, .directory = 22, .incarnation = 1, .bound_at = 2, .founding = 77, .is_founded = true};
    struct raft_claimant other = {
        .id = 2, .directory = 23, .incarnation = 1, .bound_at = 9, .founding = 78, .is_founded = true};
    struct raft_claimant stranger = {.id = 9, .directory = 99, .founding = 78, .is_founded = true};

    begin_founded(f, f->restore.state.generation, 2);
    assert_true(f->raft.founding == 77 && raft_founding(&f->raft) == 77);
    assert_int_equal(raft_trust(&f->raft, &member), RAFT_TRUSTED);
    assert_int_equal(raft_trust(&f->raft, &other), RAFT_OTHER_FOUNDING);
    assert_int_equal(raft_trust(&f->raft, &stranger), RAFT_OTHER_FOUNDING);
    other.directory = 22; /* also of the very directory */
    assert_int_equal(raft_trust(&f->raft, &other), RAFT_OTHER_FOUNDING);
    /* Replaced by a configuration that we do not have; but it has our founding. */
    other.directory = 23;
    other.founding = 77;
    assert_int_equal(raft_trust(&f->raft, &other), RAFT_TRUSTED);
    other.founding = 0;
    other.is_founded = false;
    assert_int_equal(raft_trust(&f->raft, &other), RAFT_OTHER_DIRECTORY);
}

/* What is not committed may be replaced, so it is held against nobody who answers. But no leader lacks what
 * is committed, and nobody who stands with another founding can win. */
static void test_a_founding_that_is_not_committed_is_held_against_leaders_only(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant late = {.id = 2, .directory = 22, .incarnation = 1, .founding = 78};
    struct raft_claimant new = {.id = 2, .directory = 22, .incarnation = 1};

    begin_founded(f, f->restore.state.generation, 2);
    assert_int_equal(raft_trust(&f->raft, &late), RAFT_TRUSTED);
    assert_int_equal(raft_trust(&f->raft, &new), RAFT_TRUSTED);
    late.asks = new.asks = true;
    assert_int_equal(raft_trust(&f->raft, &late), RAFT_OTHER_FOUNDING);
    assert_int_equal(raft_trust(&f->raft, &new), RAFT_TRUSTED);
    late.asks = new.asks = false;
    late.leads = new.leads = true;
    assert_int_equal(raft_trust(&f->raft, &late), RAFT_OTHER_FOUNDING);
    assert_int_equal(raft_trust(&f->raft, &new), RAFT_OTHER_FOUNDING);
}

static void test_who_does_not_know_its_own_founding_to_be_committed_believes_its_members(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant member = {
        .id = 2, .directory = 22, .incarnation = 1, .founding = 78, .is_founded = true, .leads = true};
    struct raft_claimant other = {.id = 2,
                                  .directory = 23,
                                  .incarnation = 1,
                                  .bound_at = 9,
                                  .founding = 78,
                                  .is_founded = true,
                                  .leads = true};

    begin_founded(f, f->restore.state.generation, 1);
    assert_true(f->raft.founding == 0 && raft_founding(&f->raft) == 77);
    assert_int_equal(raft_trust(&f->raft, &member), RAFT_TRUSTED);
    assert_int_equal(raft_trust(&f->raft, &other), RAFT_OTHER_FOUNDING);
}

/* A member in its own directory tells that the founding in our log was replaced. Then another member, whose
 * directory was replaced since, may lead us. */
static void test_a_founding_that_a_member_knows_to_be_replaced_holds_nobody_up(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant replaced = {.id = 2,
                                     .directory = 23,
                                     .incarnation = 1,
                                     .bound_at = 9,
                                     .founding = 78,
                                     .is_founded = true,
                                     .leads = true};
    struct raft_claimant witness = {
        .id = 3, .directory = 34, .incarnation = 1, .bound_at = 9, .founding = 78, .is_founded = true};

    begin_founded(f, f->restore.state.generation, 1);
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &witness}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &replaced), RAFT_OTHER_FOUNDING); /* neither has our directory */
    witness.directory = 33;
    witness.is_founded = false;
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &witness}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &replaced), RAFT_OTHER_FOUNDING); /* that may be replaced, too */
    witness.is_founded = true;
    assert_int_equal(feed(f, (struct raft_event){.kind = RAFT_MET, .met = &witness}), GAVEL_OK);
    assert_int_equal(raft_trust(&f->raft, &replaced), RAFT_TRUSTED);
}

/* Nobody ends by the word of another founding, not even of one that the other does not know to be
 * committed. */
static void test_another_founding_disowns_nobody(void **state)
{
    struct fixture *f = *state;

    begin_founded(f, f->restore.state.generation, 2);
    assert_true(raft_is_disowned(&f->raft, 77, 3));
    assert_false(raft_is_disowned(&f->raft, 77, 2)); /* it knows no more than we, and we are bound */
    assert_false(raft_is_disowned(&f->raft, 78, 3));
    raft_done(&f->raft);
    f->restore.state.directory = 12; /* emptied, founded again, and nothing committed */
    f->restore.state.term = f->restore.state.commit = 0;
    begin(f);
    assert_true(raft_is_disowned(&f->raft, 78, 3));
}

/* Terms of two clusters look alike. A leader whose log agrees with ours where our founding stands has that
 * founding, or it is of another cluster, and ours would be followed by entries of that one. */
static void test_a_leader_of_another_founding_cannot_agree_with_ours(void **state)
{
    static const struct raft_entry theirs[] = {{.term = 1, .kind = RAFT_ENTRY_NOOP},
                                               {.term = 1, .kind = RAFT_ENTRY_NOOP},
                                               {.term = 2, .kind = RAFT_ENTRY_NOOP}};
    struct fixture *f = *state;
    struct raft_message append, snapshot;

    begin_founded(f, f->restore.state.generation, 0);
    append = from_peer(f, RAFT_MSG_APPEND, 9); /* nobody's directory is known that it could contradict */
    append.term = 2;
    append.directory = 99;
    append.founding = 78;
    append.is_founded = true;
    snapshot = append;
    append.append = (struct raft_append){.lease_epoch = 1, .round = 1, .prev_index = 2, .prev_term = 1};
    assert_int_equal(receive(f, &append), GAVEL_ERR_INVALID); /* after our founding */
    append.append.prev_index = append.append.prev_term = 0;
    append.append.entries = theirs;
    append.append.entry_count = 3;
    assert_int_equal(receive(f, &append), GAVEL_ERR_INVALID); /* in its place */
    snapshot.kind = RAFT_MSG_SNAPSHOT;
    snapshot.snapshot = (struct raft_install){
        .index = 2, .index_term = 1, .config = f->restore.snapshot.config, .lease_epoch = 1, .round = 1};
    assert_int_equal(receive(f, &snapshot), GAVEL_ERR_INVALID);
    assert_true(f->raft.state.term == 1 && f->raft.leader == 0 && raft_founding(&f->raft) == 77);
    append.append.entry_count = 1; /* before it, as a leader that replaces it may */
    assert_int_equal(receive(f, &append), GAVEL_OK);
    append.append = (struct raft_append){.lease_epoch = 1,
                                         .round = 2,
                                         .prev_index = 1,
                                         .prev_term = 1,
                                         .entries = &theirs[2],
                                         .entry_count = 1};
    assert_int_equal(receive(f, &append), GAVEL_OK);
    assert_true(raft_founding(&f->raft) == 0 && f->raft.leader == 9);
}

/* After --force-new-cluster the log still has configurations of the founding before. */
static void test_a_founding_of_an_earlier_generation_says_nothing(void **state)
{
    struct fixture *f = *state;
    struct raft_claimant leader = {
        .id = 2, .directory = 22, .incarnation = 1, .founding = 78, .is_founded = true, .leads = true};

    begin_founded(f, f->restore.state.generation + 1, 2);
    assert_true(f->raft.founding == 0 && raft_founding(&f->raft) == 0);
    assert_int_equal(raft_trust(&f->raft, &leader), RAFT_TRUSTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_has_the_edges_of_the_picture),
        TEST(test_a_founder_without_a_directory_is_refused),
        TEST(test_who_greets_in_a_later_incarnation_is_met),
        TEST(test_another_founding_is_refused_if_both_are_committed),
        TEST(test_a_founding_that_is_not_committed_is_held_against_leaders_only),
        TEST(test_a_leader_of_another_founding_cannot_agree_with_ours),
        TEST(test_a_founding_that_a_member_knows_to_be_replaced_holds_nobody_up),
        TEST(test_another_founding_disowns_nobody),
        TEST(test_who_does_not_know_its_own_founding_to_be_committed_believes_its_members),
        TEST(test_a_founding_of_an_earlier_generation_says_nothing),
        TEST(test_alone_it_leads_once_its_own_vote_is_durable),
        TEST(test_what_is_not_committed_is_bounded),
        TEST(test_requests_that_do_not_fit_are_refused),
        TEST(test_what_the_disk_cannot_have_held_is_refused),
        TEST(test_a_failed_disk_ends_everything_but_stopping_the_work),
        TEST(test_an_index_on_disk_that_wraps_is_refused),
        TEST(test_the_others_votes_alone_make_no_leader),
        TEST(test_many_configurations_in_one_append),
        TEST(test_a_node_that_joins_learns_the_generation_from_its_leader),
        TEST(test_hostile_messages_never_bring_it_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
