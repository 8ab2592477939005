/* SPDX-License-Identifier: Apache-2.0 */

/* The table: commands, order, revisions, the digest, snapshots, and bytes that mean harm. */
#include "allocator.h"
#include "base/prng.h"
#include "core/table/internal.h"
#include "core/table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    allocator.fail_after = UINT64_MAX;
    *state = calloc(1, sizeof(struct table));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocator.fail_after = UINT64_MAX;
    table_done(*state);
    free(*state);
    return 0;
}

/* A command of texts, as bytes that the caller frees; value NULL deletes. */
static uint8_t *command(const char *key, const char *value, size_t *ret_size)
{
    struct table_command c = {
        .kind = value ? TABLE_PUT : TABLE_DELETE,
        .key = (const uint8_t *)key,
        .key_size = strlen(key),
        .value = (const uint8_t *)value,
        .value_size = value ? strlen(value) : 0,
    };
    uint8_t *bytes;

    *ret_size = table_command_size(&c);
    assert_true(*ret_size > 0);
    bytes = malloc(*ret_size);
    assert_non_null(bytes);
    table_command_encode(&c, bytes);
    return bytes;
}

static enum gavel_status apply(struct table *table, const char *key, const char *value)
{
    size_t size;
    uint8_t *bytes = command(key, value, &size);
    enum gavel_status status = table_apply(table, table->index + 1, bytes, size);

    free(bytes);
    return status;
}

static const struct table_item *find(const struct table *table, const char *key)
{
    return table_find(table, (const uint8_t *)key, strlen(key));
}

static void assert_value(const struct table *table, const char *key, const char *value)
{
    const struct table_item *item = find(table, key);

    assert_non_null(item);
    assert_int_equal(item->value_size, strlen(value));
    assert_memory_equal(table_item_value(item), value, strlen(value));
}

static void test_put_and_delete_do_what_they_say(void **state)
{
    struct table *table = *state;

    assert_int_equal(apply(table, "b", "two"), GAVEL_OK);
    assert_int_equal(apply(table, "a", "one"), GAVEL_OK);
    assert_int_equal(apply(table, "ab", ""), GAVEL_OK);
    assert_value(table, "a", "one");
    assert_value(table, "ab", "");
    assert_null(find(table, "aa"));
    assert_int_equal(apply(table, "a", "another"), GAVEL_OK);
    assert_value(table, "a", "another");
    assert_int_equal(find(table, "a")->revision, 4);
    assert_int_equal(apply(table, "b", NULL), GAVEL_OK);
    assert_null(find(table, "b"));
    assert_int_equal(apply(table, "b", NULL), GAVEL_OK); /* counts all the same */
    assert_int_equal(table->revision, 6);
    assert_int_equal(table->count, 2);
    assert_int_equal(table->bytes, strlen("a"
                                          "another"
                                          "ab"));
}

static void test_items_are_in_order_of_key(void **state)
{
    struct table *table = *state;
    struct prng prng;

    prng_seed(&prng, 1);
    for (int i = 0; i < 2000; i++) {
        char key[4] = {0};

        for (size_t j = 0; j <= prng_below(&prng, 3); j++)
            key[j] = (char)(1 + prng_below(&prng, 255));
        assert_int_equal(apply(table, key, prng_chance(&prng, 700) ? "v" : NULL), GAVEL_OK);
    }
    assert_true(table->count > 500);
    for (size_t i = 1; i < table->count; i++)
        assert_true(table_key_compare(table->items[i - 1]->bytes, table->items[i - 1]->key_size,
                                      table->items[i]->bytes, table->items[i]->key_size) < 0);
}

static void test_what_is_no_command_moves_the_index_only(void **state)
{
    struct table *table = *state;
    uint64_t digest;
    size_t size;
    uint8_t *bytes = command("key", "value", &size);

    assert_int_equal(table_apply(table, 3, bytes, size), GAVEL_OK);
    digest = table_digest(table);
    assert_int_equal(table_apply(table, 4, NULL, 0), GAVEL_ERR_INVALID);
    for (size_t cut = 0; cut < size; cut++) {
        /* An exact allocation, so that the sanitizer sees a read past the end. */
        uint8_t *copy = malloc(cut > 0 ? cut : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_int_equal(table_apply(table, 5 + cut, copy, cut), GAVEL_ERR_INVALID);
        free(copy);
    }
    assert_int_equal(table->index, 4 + size);
    assert_int_equal(table->revision, 1);
    assert_int_equal(table_digest(table), digest);
    free(bytes);
}

static void test_every_other_head_of_a_command_is_refused(void **state)
{
    struct table_command decoded;
    size_t size;
    uint8_t *bytes = command("key", "value", &size);

    (void)state;
    for (size_t bit = 0; bit < TABLE_COMMAND_HEAD_BYTES * (size_t)8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(table_command_decode(bytes, size, &decoded), GAVEL_ERR_INVALID);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    bytes[1] = TABLE_DELETE; /* with a value */
    assert_int_equal(table_command_decode(bytes, size, &decoded), GAVEL_ERR_INVALID);
    free(bytes);
}

static void test_sizes_have_limits(void **state)
{
    uint8_t *bytes = calloc(1, TABLE_COMMAND_BYTES_MAX + 1);
    struct table_command c = {
        .kind = TABLE_PUT, .key = bytes, .key_size = TABLE_KEY_BYTES_MAX, .value = bytes};

    (void)state;
    assert_non_null(bytes);
    c.value_size = TABLE_VALUE_BYTES_MAX;
    assert_int_equal(table_command_size(&c), TABLE_COMMAND_BYTES_MAX);
    c.value_size++;
    assert_int_equal(table_command_size(&c), 0);
    c.value_size = 0;
    c.key_size++;
    assert_int_equal(table_command_size(&c), 0);
    c.key_size = 0;
    assert_int_equal(table_command_size(&c), 0);
    c.key_size = 1;
    c.kind = (enum table_command_kind)3;
    assert_int_equal(table_command_size(&c), 0);
    c.kind = TABLE_DELETE;
    assert_int_equal(table_command_size(&c), TABLE_COMMAND_HEAD_BYTES + 1);
    c.value_size = 1;
    assert_int_equal(table_command_size(&c), 0);
    free(bytes);
}

static void test_full_table_refuses_by_rule_and_still_takes_what_makes_room(void **state)
{
    struct table *table = *state;
    size_t full = TABLE_BYTES_MAX;

    assert_int_equal(apply(table, "a", "value"), GAVEL_OK);
    /* As if it held so much: filling it in earnest would take half a gigabyte. */
    table->bytes = full;
    assert_int_equal(apply(table, "b", ""), GAVEL_ERR_STORE_FULL);
    assert_int_equal(apply(table, "a", "longer value"), GAVEL_ERR_STORE_FULL);
    assert_value(table, "a", "value");
    assert_int_equal(table->revision, 1);
    assert_int_equal(table->index, 3);
    assert_int_equal(apply(table, "a", "VALUE"), GAVEL_OK);
    assert_int_equal(apply(table, "a", NULL), GAVEL_OK);
    assert_int_equal(table->bytes, full - 6);
}

static void test_digest_tells_tables_apart(void **state)
{
    struct table *a = *state;
    struct table b = {0};

    assert_int_equal(table_digest(a), table_digest(&b));
    assert_int_equal(apply(a, "k", "v"), GAVEL_OK);
    assert_int_not_equal(table_digest(a), table_digest(&b));
    assert_int_equal(apply(&b, "k", "w"), GAVEL_OK);
    assert_int_not_equal(table_digest(a), table_digest(&b)); /* the value */
    assert_int_equal(apply(&b, "k", "v"), GAVEL_OK);
    assert_int_not_equal(table_digest(a), table_digest(&b)); /* the revision */
    assert_int_equal(apply(a, "k", "v"), GAVEL_OK);
    assert_int_equal(table_digest(a), table_digest(&b));
    assert_int_equal(apply(a, "x", "1"), GAVEL_OK);
    assert_int_equal(apply(a, "y", "2"), GAVEL_OK);
    assert_int_equal(apply(&b, "y", "2"), GAVEL_OK);
    assert_int_equal(apply(&b, "x", "1"), GAVEL_OK);
    assert_int_not_equal(table_digest(a), table_digest(&b)); /* the order */
    table_done(&b);
}

static void random_commands(struct table *table, struct prng *prng, int count)
{
    for (int i = 0; i < count; i++) {
        char key[8] = {0};
        char value[12] = {0};

        for (size_t j = 0; j <= prng_below(prng, 2); j++)
            key[j] = (char)('a' + prng_below(prng, 5));
        for (size_t j = 0; j < prng_below(prng, 11); j++)
            value[j] = (char)('0' + prng_below(prng, 10));
        assert_int_equal(apply(table, key, prng_chance(prng, 700) ? value : NULL), GAVEL_OK);
    }
}

static void assert_same(const struct table *a, const struct table *b)
{
    uint8_t *bytes_a;
    uint8_t *bytes_b;
    size_t size_a;
    size_t size_b;

    assert_int_equal(table_digest(a), table_digest(b));
    assert_int_equal(table_snapshot_encode(a, &bytes_a, &size_a), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(b, &bytes_b, &size_b), GAVEL_OK);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
}

static void test_replicas_agree_whether_they_applied_or_restored(void **state)
{
    struct table *applied = *state;
    struct table restored = {0};
    struct prng prng;

    prng_seed(&prng, 5);
    for (int round = 0; round < 100; round++) {
        struct prng same;
        uint8_t *bytes;
        size_t size;

        assert_int_equal(table_snapshot_encode(applied, &bytes, &size), GAVEL_OK);
        assert_int_equal(table_snapshot_decode(&restored, bytes, size), GAVEL_OK);
        free(bytes);
        assert_int_equal(restored.index, applied->index);
        assert_same(&restored, applied);
        same = prng;
        random_commands(applied, &prng, 20);
        random_commands(&restored, &same, 20);
        assert_same(&restored, applied);
    }
    table_done(&restored);
}

/* A snapshot of a few items, for the caller to free. */
static uint8_t *snapshot(struct table *table, size_t *ret_size)
{
    uint8_t *bytes;

    assert_int_equal(apply(table, "a", "one"), GAVEL_OK);
    assert_int_equal(apply(table, "b", ""), GAVEL_OK);
    assert_int_equal(apply(table, "c", "two"), GAVEL_OK);
    assert_int_equal(apply(table, "c", "three"), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(table, &bytes, ret_size), GAVEL_OK);
    return bytes;
}

static void test_snapshot_cut_short_or_with_a_flipped_bit_is_refused_and_changes_nothing(void **state)
{
    struct table *table = *state;
    size_t size;
    uint8_t *bytes = snapshot(table, &size);
    uint64_t digest = table_digest(table);

    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut > 0 ? cut : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_int_equal(table_snapshot_decode(table, copy, cut), GAVEL_ERR_STORE_DAMAGED);
        free(copy);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(table_snapshot_decode(table, bytes, size), GAVEL_ERR_STORE_DAMAGED);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(table_digest(table), digest);
    assert_int_equal(table->count, 3);
    free(bytes);
}

/* Puts the right hash behind bytes that were changed: what somebody would do who means harm. */
static void seal(uint8_t *bytes, size_t size)
{
    bytes_put(bytes + size - 8, hash_mix(hash_bytes(HASH_BEGIN, bytes, size - 8)), 8);
}

static void test_snapshot_with_a_forged_hash_is_still_checked(void **state)
{
    struct table *table = *state;
    struct table victim = {0};
    size_t size;
    uint8_t *bytes = snapshot(table, &size);
    const struct {
        size_t offset;
        size_t size;
        uint64_t number;
    } forged[] = {
        {4, 4, 0},           /* version */
        {4, 4, 3},           /* a newer one */
        {16, 8, 2},          /* more items than commands */
        {24, 8, 2},          /* bytes are left over */
        {24, 8, 4},          /* bytes are missing */
        {24, 8, UINT64_MAX}, /* would be a huge allocation */
        {32, 8, 0},          /* revision of an item */
        {32, 8, 5},          /* later than the table's */
        {40, 4, 0},          /* key size */
        {40, 4, UINT32_MAX}, /* too long */
        {44, 4, UINT32_MAX}, /* value size */
        {44, 4, 200},        /* beyond the end */
        {48, 1, 'b'},        /* a key twice */
        {48, 1, 'z'},        /* keys out of order */
    };

    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        uint8_t *copy = malloc(size);

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        bytes_put(copy + forged[i].offset, forged[i].number, forged[i].size);
        seal(copy, size);
        assert_int_equal(table_snapshot_decode(&victim, copy, size), GAVEL_ERR_STORE_DAMAGED);
        free(copy);
    }
    seal(bytes, size);
    assert_int_equal(table_snapshot_decode(&victim, bytes, size), GAVEL_OK);
    table_done(&victim);
    free(bytes);
}

static void test_snapshot_of_the_first_version_is_still_read(void **state)
{
    struct table *table = *state;
    struct table old = {0};
    size_t size;
    uint8_t *bytes = snapshot(table, &size);

    bytes_put(bytes + 4, 1, 4); /* of plain items the two are alike */
    seal(bytes, size);
    assert_int_equal(table_snapshot_decode(&old, bytes, size), GAVEL_OK);
    assert_same(&old, table);
    /* It had no messages behind its items, and one entry for each revision. */
    bytes_put(bytes + 8, 2, 8);
    seal(bytes, size);
    assert_int_equal(table_snapshot_decode(&old, bytes, size), GAVEL_ERR_STORE_DAMAGED);
    table_done(&old);
    free(bytes);
}

static void test_random_damage_under_a_right_hash_never_breaks_the_table(void **state)
{
    struct table *table = *state;
    struct table victim = {0};
    struct prng prng;
    size_t size;
    size_t taken = 0;
    uint8_t *bytes = snapshot(table, &size);

    prng_seed(&prng, 9);
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(size);

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        for (uint64_t i = prng_below(&prng, 3); i > 0; i--)
            copy[prng_below(&prng, size)] = (uint8_t)prng_next(&prng);
        bytes_put(copy + 4, 2, 4); /* the older version is another form of the same table */
        seal(copy, size);
        if (table_snapshot_decode(&victim, copy, size) == GAVEL_OK) {
            uint8_t *again;
            size_t again_size;

            /* What was taken is a table like any other. */
            taken++;
            assert_int_equal(table_snapshot_encode(&victim, &again, &again_size), GAVEL_OK);
            assert_int_equal(again_size, size);
            assert_memory_equal(again, copy, size);
            free(again);
        }
        free(copy);
    }
    assert_true(taken > 1000);
    assert_true(taken < 19000);
    table_done(&victim);
    free(bytes);
}

static void test_want_of_memory_changes_nothing(void **state)
{
    struct table *table = *state;
    size_t size;
    size_t command_size;
    uint8_t *bytes = snapshot(table, &size);
    uint8_t *put = command("new", "value", &command_size);
    uint64_t digest = table_digest(table);
    uint8_t *again = NULL;

    for (uint64_t fail_after = 0; fail_after < 4; fail_after++) {
        allocator.fail_after = fail_after;
        assert_int_equal(table_snapshot_decode(table, bytes, size), GAVEL_ERR_NO_MEMORY);
    }
    allocator.fail_after = 0;
    assert_int_equal(table_apply(table, 10, put, command_size), GAVEL_ERR_NO_MEMORY);
    assert_int_equal(table_snapshot_encode(table, &again, &size), GAVEL_ERR_NO_MEMORY);
    allocator.fail_after = UINT64_MAX;
    assert_null(again);
    assert_int_equal(table->index, 4);
    assert_int_equal(table_digest(table), digest);
    assert_int_equal(table_apply(table, 10, put, command_size), GAVEL_OK);
    assert_value(table, "new", "value");
    free(put);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_and_delete_do_what_they_say, setup, teardown),
        cmocka_unit_test_setup_teardown(test_items_are_in_order_of_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_command_moves_the_index_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_other_head_of_a_command_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sizes_have_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_table_refuses_by_rule_and_still_takes_what_makes_room,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_digest_tells_tables_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replicas_agree_whether_they_applied_or_restored, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_snapshot_cut_short_or_with_a_flipped_bit_is_refused_and_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot_with_a_forged_hash_is_still_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot_of_the_first_version_is_still_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_damage_under_a_right_hash_never_breaks_the_table, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_want_of_memory_changes_nothing, setup, teardown),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
