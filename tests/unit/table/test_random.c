/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random operations of a few sessions on a few groups: replicas that applied
 * them and replicas that were restored in between are the same; what must
 * always hold holds; and want of memory leaves each operation undone as a
 * whole.
 */
#include "allocator.h"
#include "base/prng.h"
#include "core/table/internal.h"
#include "table_fixture.h"

enum { SESSIONS = 5, GROUPS = 4 };

static const char *const groups[GROUPS] = {"alpha", "beta", "gamma", "delta"};
static const char *const ids[] = {"a", "b", "c", "d", "e", "store-1", "store-2"};

static const char *one_of_ids(struct prng *prng) { return ids[prng_below(prng, sizeof ids / sizeof *ids)]; }

/* The epoch of a group, mostly; sometimes another. */
static uint64_t some_epoch(struct table_fixture *fixture, struct prng *prng, const char *name)
{
    const struct table_group *group = table_group_find(&fixture->table, name);

    if (prng_chance(prng, 200))
        return prng_below(prng, 50);
    return group ? group->epoch : 0;
}

static uint64_t some_version(struct table_fixture *fixture, struct prng *prng, const char *name)
{
    const struct table_group *group = table_group_find(&fixture->table, name);

    return prng_chance(prng, 200) || !group ? prng_below(prng, 3) : group->version;
}

static enum gavel_status random_campaign(struct table_fixture *fixture, struct prng *prng, uint64_t session,
                                         const char *group)
{
    Gavel__Campaign message;
    uint8_t metadata[4] = {1, 2, 3, 4};
    char id[2] = {(char)('a' + session - 1), '\0'};

    gavel__campaign__init(&message);
    message.group = mutable(group);
    message.id = mutable(prng_chance(prng, 900) ? id : one_of_ids(prng));
    message.address = mutable(prng_chance(prng, 500) ? "here" : "");
    message.priority = (int32_t)prng_below(prng, 3) - 1;
    message.is_ineligible = prng_chance(prng, 150);
    message.metadata.data = metadata;
    message.metadata.len = prng_below(prng, 5);
    message.policy = (Gavel__Policy)prng_below(prng, 4);
    message.min_mandate_ms = prng_chance(prng, 100) ? 500 : 0;
    message.preempts = prng_chance(prng, 300);
    return campaign_as(fixture, session, &message);
}

static void random_session_op(struct table_fixture *fixture, struct prng *prng, uint64_t session)
{
    const char *group = groups[prng_below(prng, GROUPS)];

    switch (prng_below(prng, 8)) {
    case 0:
        (void)open_session(fixture, session);
        break;
    case 1:
        if (prng_chance(prng, 300))
            (void)close_session(fixture, session, (Gavel__Ending)prng_below(prng, 3));
        break;
    case 2:
        (void)withdraw(fixture, session, group, prng_chance(prng, 500) ? 0 : some_epoch(fixture, prng, group),
                       prng_chance(prng, 500));
        break;
    default:
        (void)random_campaign(fixture, prng, session, group);
    }
}

static void random_op(struct table_fixture *fixture, struct prng *prng)
{
    const char *group = groups[prng_below(prng, GROUPS)];
    uint64_t nonce = prng_below(prng, 2);
    const char *holder = nonce == 0 ? "store-1" : "store-2";

    switch (prng_below(prng, 22)) {
    case 0:
    case 1:
        (void)claim(fixture, group, holder, nonce, some_version(fixture, prng, group), prng_below(prng, 3));
        break;
    case 2:
        (void)renew(fixture, group, holder, nonce, some_epoch(fixture, prng, group),
                    3000 + (int64_t)prng_below(prng, 2));
        break;
    case 3:
        (void)release(fixture, group, holder, nonce, some_epoch(fixture, prng, group),
                      prng_chance(prng, 500) ? one_of_ids(prng) : "", prng_chance(prng, 200));
        break;
    case 4:
        (void)release_dead(fixture, group, some_epoch(fixture, prng, group));
        break;
    case 5:
        (void)wish(fixture, group, some_epoch(fixture, prng, group),
                   prng_chance(prng, 600) ? one_of_ids(prng) : "");
        break;
    case 6:
        (void)wish_over(fixture, group, some_epoch(fixture, prng, group));
        break;
    case 7:
        (void)reopen(fixture, group, some_version(fixture, prng, group));
        break;
    case 8:
        (void)lapse(fixture, group, some_epoch(fixture, prng, group));
        break;
    case 9:
        (void)register_candidate(fixture, group, one_of_ids(prng), 1 + prng_below(prng, 3),
                                 prng_below(prng, 3));
        break;
    case 10:
        (void)leave(fixture, group, one_of_ids(prng), 1 + prng_below(prng, 3));
        break;
    case 11:
        (void)put_note(fixture, group, one_of_ids(prng), one_of_ids(prng),
                       prng_chance(prng, 500) ? 0 : some_epoch(fixture, prng, group),
                       prng_chance(prng, 800) ? UINT64_MAX : 0);
        break;
    case 12:
        (void)delete_note(fixture, group, one_of_ids(prng), 0, UINT64_MAX);
        break;
    default:
        random_session_op(fixture, prng, 1 + prng_below(prng, SESSIONS));
    }
}

/* Whether a candidate with a session could be granted a mandate. */
static bool has_waiting(const struct table_group *group)
{
    const struct table_candidate *candidate;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        if (candidate->session && candidate->is_eligible &&
            !(group->is_held && group->session == candidate->session))
            return true;
    }
    return false;
}

static void check_group(const struct table *table, const struct table_group *group)
{
    const struct table_candidate *candidate;
    const struct table_candidate *named;
    uint64_t joined = 0;
    size_t count = 0;
    bool needs;

    TAILQ_FOREACH(candidate, &group->candidates, in_group) {
        assert_true(candidate->joined_revision > joined);
        joined = candidate->joined_revision;
        count++;
    }
    assert_int_equal(group->candidate_count, count);
    assert_true(group->epoch <= group->version || group->epoch == 0);
    assert_true(group->version <= table->revision);
    assert_true(group->epoch > 0 || count > 0 || group->note_count > 0);
    assert_false(group->is_held && group->is_done);
    if (group->session) {
        assert_true(group->is_held);
        assert_ptr_equal(table_session_find(table, group->session->id), group->session);
        assert_ptr_equal(table_candidate_find(group, group->holder)->session, group->session);
    }
    if (!group->is_held && !group->is_done && has_waiting(group)) {
        /* L1: vacant only for the candidate of a store that was named. */
        named = table_candidate_find(group, group->successor);
        assert_non_null(named);
        assert_null(named->session);
        assert_true(named->is_eligible);
    }
    needs =
        group->wish_epoch != 0 || (group->is_held && group->session ? table_group_better(group) != NULL
                                                                    : !group->is_done && has_waiting(group));
    assert_int_equal(group->has_attention, needs);
}

static void check_table(const struct table *table)
{
    size_t attention = 0;
    size_t listed = 0;
    size_t count = 0;

    for (struct table_group *group = table_attention_from(table, ""); group;
         group = table_attention_next(group)) {
        assert_true(group->has_attention);
        listed++;
    }
    for (struct table_group *group = table_group_from(table, ""); group; group = table_group_next(group)) {
        check_group(table, group);
        attention += group->has_attention;
        count++;
    }
    assert_int_equal(listed, attention);
    assert_int_equal(table->group_count, count);
    count = 0;
    for (struct table_session *session = table_session_first(table); session;
         session = table_session_next(session)) {
        const struct table_candidate *candidate;
        uint64_t joined = 0;

        TAILQ_FOREACH(candidate, &session->candidates, in_session) {
            assert_true(candidate->joined_revision > joined);
            assert_ptr_equal(candidate->session, session);
            joined = candidate->joined_revision;
        }
        count++;
    }
    assert_int_equal(table->session_count, count);
}

static void restore(const struct table *from, struct table *to)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(table_snapshot_encode(from, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(to, bytes, size), GAVEL_OK);
    free(bytes);
}

/* Epochs of a group only grow, each mandate has its own. */
static void check_epochs(struct table_fixture *fixture, uint64_t *epochs)
{
    for (size_t i = 0; i < GROUPS; i++) {
        const struct table_group *group = table_group_find(&fixture->table, groups[i]);
        uint64_t epoch = group ? group->epoch : 0;

        assert_true(epoch >= epochs[i]);
        epochs[i] = epoch;
    }
}

static void test_replicas_agree_however_they_came_by_the_entries(void **state)
{
    struct table_fixture *applied = *state;
    void *other = NULL;
    struct table_fixture *restored;
    struct prng prng;
    uint64_t epochs[GROUPS] = {0};

    assert_int_equal(table_fixture_setup(&other), 0);
    restored = other;
    prng_seed(&prng, 61);
    for (int round = 0; round < 400; round++) {
        struct prng same;

        if (prng_chance(&prng, 300)) {
            restore(&applied->table, &restored->table);
            restored->wall_ms = applied->wall_ms;
        }
        same = prng;
        for (int i = 0; i < 20; i++) {
            random_op(applied, &prng);
            check_epochs(applied, epochs);
        }
        for (int i = 0; i < 20; i++)
            random_op(restored, &same);
        check_table(&applied->table);
        check_table(&restored->table);
        assert_same_table(&applied->table, &restored->table);
    }
    assert_true(applied->table.revision > 1000);
    table_fixture_teardown(&other);
}

/* Both remember the same changes under the same numbers: a watch may go on at another node. */
static void test_replicas_tell_the_same_changes(void **state)
{
    struct table_fixture *applied = *state;
    void *other = NULL;
    struct table_fixture *restored;
    struct prng prng, same;
    struct table_cursor cursor;

    assert_int_equal(table_fixture_setup(&other), 0);
    restored = other;
    prng_seed(&prng, 62);
    for (int i = 0; i < 500; i++)
        random_op(applied, &prng);
    restore(&applied->table, &restored->table);
    restored->wall_ms = applied->wall_ms;
    cursor = (struct table_cursor){applied->table.revision, UINT32_MAX};
    same = prng;
    for (int i = 0; i < 2000; i++) {
        random_op(applied, &prng);
        random_op(restored, &same);
    }
    for (;;) {
        const struct table_change *a, *b;

        assert_int_equal(table_history_after(&applied->table, cursor, &a), GAVEL_OK);
        assert_int_equal(table_history_after(&restored->table, cursor, &b), GAVEL_OK);
        assert_int_equal(a == NULL, b == NULL);
        if (!a)
            break;
        assert_int_equal(a->size, b->size);
        assert_memory_equal(a->bytes, b->bytes, a->size);
        assert_int_equal(a->at.revision, b->at.revision);
        assert_int_equal(a->at.part, b->at.part);
        if (a->at.revision == cursor.revision)
            assert_int_equal(a->at.part, cursor.part + 1);
        else
            assert_int_equal(a->at.part, 0);
        cursor = a->at;
    }
    assert_int_equal(cursor.revision, applied->table.revision);
    table_fixture_teardown(&other);
}

static void test_want_of_memory_leaves_an_operation_undone(void **state)
{
    struct table_fixture *needy = *state;
    void *other = NULL;
    struct table_fixture *plenty;
    struct prng prng, same;

    assert_int_equal(table_fixture_setup(&other), 0);
    plenty = other;
    needy->is_in_need = true;
    prng_seed(&prng, 63);
    prng_seed(&same, 63);
    for (int i = 0; i < 2000; i++) {
        random_op(needy, &prng);
        random_op(plenty, &same);
        assert_int_equal(table_digest(&needy->table), table_digest(&plenty->table));
    }
    check_table(&needy->table);
    assert_same_table(&needy->table, &plenty->table);
    assert_true(needy->table.revision > 300);
    table_fixture_teardown(&other);
}

static void test_want_of_memory_leaves_a_table_unrestored(void **state)
{
    struct table_fixture *fixture = *state;
    struct table fresh = {0};
    struct prng prng;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    prng_seed(&prng, 64);
    for (int i = 0; i < 300; i++)
        random_op(fixture, &prng);
    for (uint64_t fail_after = 0; status != GAVEL_OK; fail_after++) {
        allocator.fail_after = fail_after;
        status = table_snapshot_encode(&fixture->table, &bytes, &size);
        allocator.fail_after = UINT64_MAX;
    }
    status = GAVEL_ERR_NO_MEMORY;
    for (uint64_t fail_after = 0; status != GAVEL_OK; fail_after++) {
        allocator.fail_after = fail_after;
        status = table_snapshot_decode(&fresh, bytes, size);
        allocator.fail_after = UINT64_MAX;
        assert_true(status == GAVEL_OK || status == GAVEL_ERR_NO_MEMORY);
        if (status != GAVEL_OK)
            assert_int_equal(fresh.index, 0);
    }
    assert_same_table(&fixture->table, &fresh);
    table_done(&fresh);
    free(bytes);
}

static void test_damage_under_a_right_hash_never_breaks_the_table(void **state)
{
    struct table_fixture *fixture = *state;
    struct table victim = {0};
    struct prng prng;
    uint8_t *bytes;
    size_t size;
    size_t taken = 0;

    prng_seed(&prng, 65);
    for (int i = 0; i < 300; i++)
        random_op(fixture, &prng);
    assert_int_equal(table_snapshot_encode(&fixture->table, &bytes, &size), GAVEL_OK);
    for (int round = 0; round < 5000; round++) {
        uint8_t *copy = malloc(size);
        size_t copy_size = prng_chance(&prng, 100) ? 40 + prng_below(&prng, size - 40) : size;
        uint8_t *again;
        size_t again_size;

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        for (uint64_t i = prng_below(&prng, 3); i > 0; i--)
            copy[32 + prng_below(&prng, copy_size - 32)] = (uint8_t)prng_next(&prng);
        bytes_put(copy + copy_size - 8, hash_mix(hash_bytes(HASH_BEGIN, copy, copy_size - 8)), 8);
        if (table_snapshot_decode(&victim, copy, copy_size) == GAVEL_OK) {
            taken++;
            assert_int_equal(table_snapshot_encode(&victim, &again, &again_size), GAVEL_OK);
            assert_int_equal(again_size, copy_size);
            assert_memory_equal(again, copy, copy_size);
            free(again);
        }
        free(copy);
    }
    assert_true(taken > 100);
    assert_true(taken < 4900);
    table_done(&victim);
    free(bytes);
}

static int setup(void **state)
{
    allocator.fail_after = UINT64_MAX;
    return table_fixture_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replicas_agree_however_they_came_by_the_entries, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_replicas_tell_the_same_changes, setup, table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_want_of_memory_leaves_an_operation_undone, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_want_of_memory_leaves_a_table_unrestored, setup,
                                        table_fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damage_under_a_right_hash_never_breaks_the_table, setup,
                                        table_fixture_teardown),
    };

    return cmocka_run_group_tests_name("table random", tests, NULL, NULL);
}
