/* SPDX-License-Identifier: Apache-2.0 */

/* The log in memory: what is in it, where terms begin and end, and how much of it is durable. */
#include "allocator.h"
#include "base/prng.h"
#include "core/raft/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    allocator = (struct allocator){.fail_after = UINT64_MAX};
    *state = calloc(1, sizeof(struct raft_log));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocator.fail_after = UINT64_MAX;
    raft_log_done(*state);
    free(*state);
    return 0;
}

static void append(struct raft_log *log, raft_term term, const char *text)
{
    struct raft_entry entry = {
        .term = term,
        .kind = RAFT_ENTRY_DATA,
        .size = (uint32_t)strlen(text),
        .data = *text ? (const uint8_t *)text : NULL,
    };

    assert_int_equal(raft_log_append(log, &entry), GAVEL_OK);
}

/* One entry for each digit, of that term. */
static void append_terms(struct raft_log *log, const char *terms)
{
    for (; *terms; terms++)
        append(log, (raft_term)(*terms - '0'), "x");
}

static void test_empty_log_knows_only_its_base(void **state)
{
    struct raft_log *log = *state;

    assert_int_equal(raft_log_last(log), 0);
    assert_int_equal(raft_log_last_term(log), 0);
    assert_int_equal(raft_log_term(log, 0), 0);
    assert_null(raft_log_at(log, 0));
    assert_null(raft_log_at(log, 1));
    raft_log_restart(log, 10, 3);
    assert_int_equal(raft_log_last(log), 10);
    assert_int_equal(raft_log_last_term(log), 3);
    assert_int_equal(raft_log_term(log, 10), 3);
    assert_int_equal(raft_log_term(log, 9), 0);
    assert_int_equal(raft_log_term(log, 11), 0);
    assert_null(raft_log_at(log, 10));
}

static void test_bytes_are_copied(void **state)
{
    struct raft_log *log = *state;
    char text[] = "hello";

    append(log, 1, text);
    memset(text, '-', 5);
    append(log, 1, "");
    assert_int_equal(raft_log_at(log, 1)->size, 5);
    assert_memory_equal(raft_log_at(log, 1)->data, "hello", 5);
    assert_int_equal(raft_log_at(log, 2)->size, 0);
    assert_null(raft_log_at(log, 2)->data);
}

static void test_terms_begin_and_end_where_a_look_at_each_entry_says(void **state)
{
    struct raft_log *log = *state;
    struct prng prng;

    prng_seed(&prng, 11);
    for (int round = 0; round < 300; round++) {
        raft_index base = prng_below(&prng, 5);
        raft_term term = base > 0 ? 1 + prng_below(&prng, 3) : 1;

        raft_log_restart(log, base, base > 0 ? term : 0);
        for (uint64_t i = prng_below(&prng, 20); i > 0; i--) {
            term += prng_chance(&prng, 300) ? 1 + prng_below(&prng, 2) : 0;
            append(log, term, "");
        }
        for (raft_term asked = 0; asked <= term + 1; asked++) {
            raft_index first = 0;
            raft_index last = 0;

            for (raft_index i = base + 1; i <= raft_log_last(log); i++)
                if (raft_log_term(log, i) == asked) {
                    first = first ? first : i;
                    last = i;
                }
            assert_int_equal(raft_log_first_of_term(log, asked), first);
            assert_int_equal(raft_log_last_of_term(log, asked), last);
        }
    }
}

static void test_compaction_keeps_what_comes_after(void **state)
{
    struct raft_log *log = *state;

    append(log, 1, "one");
    append(log, 2, "two");
    append(log, 2, "three");
    append(log, 4, "four");
    raft_log_compact(log, 3);
    assert_int_equal(log->base, 3);
    assert_int_equal(log->base_term, 2);
    assert_int_equal(raft_log_last(log), 4);
    assert_null(raft_log_at(log, 3));
    assert_int_equal(raft_log_term(log, 3), 2);
    assert_memory_equal(raft_log_at(log, 4)->data, "four", 4);
    raft_log_compact(log, 3); /* again: nothing to do */
    raft_log_compact(log, 4);
    assert_int_equal(log->count, 0);
    assert_int_equal(raft_log_last_term(log), 4);
    append(log, 4, "five");
    assert_int_equal(raft_log_last(log), 5);
}

static void test_only_what_was_written_becomes_durable(void **state)
{
    struct raft_log *log = *state;

    append_terms(log, "11");
    raft_log_wrote(log, 5);
    append_terms(log, "1");
    assert_int_equal(log->durable, 0);
    raft_log_persisted(log, 4);
    assert_int_equal(log->durable, 0);
    raft_log_persisted(log, 5);
    assert_int_equal(log->durable, 2);
    raft_log_wrote(log, 6);
    raft_log_wrote(log, 7); /* brings nothing new */
    raft_log_persisted(log, 6);
    assert_int_equal(log->durable, 3);
    assert_int_equal(log->write_count, 0);
}

static void test_truncation_takes_back_what_was_durable(void **state)
{
    struct raft_log *log = *state;

    append_terms(log, "11122");
    raft_log_wrote(log, 1);
    raft_log_persisted(log, 1);
    raft_log_truncate(log, 6); /* beyond the end */
    assert_int_equal(log->durable, 5);
    raft_log_truncate(log, 4);
    assert_int_equal(raft_log_last(log), 3);
    assert_int_equal(log->durable, 3);
    append_terms(log, "33");
    assert_int_equal(log->durable, 3);
}

static void test_write_under_way_does_not_vouch_for_what_replaced_its_entries(void **state)
{
    struct raft_log *log = *state;

    append_terms(log, "1");
    raft_log_wrote(log, 1);
    append_terms(log, "111");
    raft_log_wrote(log, 2); /* up to 4 */
    raft_log_truncate(log, 3);
    append_terms(log, "222");
    raft_log_wrote(log, 3); /* up to 5 */
    raft_log_persisted(log, 2);
    assert_int_equal(log->durable, 2);
    raft_log_persisted(log, 3);
    assert_int_equal(log->durable, 5);
}

static void test_writes_past_the_limit_are_merged_and_never_count_early(void **state)
{
    struct raft_log *log = *state;
    uint64_t most = RAFT_LOG_WRITES_MAX + 40;

    for (uint64_t seq = 1; seq <= most; seq++) {
        append_terms(log, "1");
        raft_log_wrote(log, seq);
        assert_true(log->write_count <= RAFT_LOG_WRITES_MAX);
    }
    for (uint64_t seq = 1; seq < most; seq++) {
        raft_log_persisted(log, seq);
        assert_int_equal(log->durable, seq < RAFT_LOG_WRITES_MAX ? seq : RAFT_LOG_WRITES_MAX - 1);
    }
    raft_log_persisted(log, most);
    assert_int_equal(log->durable, most);
}

static void test_restart_forgets_everything_under_way(void **state)
{
    struct raft_log *log = *state;

    append_terms(log, "1111");
    raft_log_wrote(log, 1);
    raft_log_persisted(log, 1);
    append_terms(log, "1");
    raft_log_wrote(log, 2);
    raft_log_restart(log, 3, 2);
    assert_int_equal(raft_log_last(log), 3);
    assert_int_equal(log->durable, 0);
    raft_log_wrote(log, 3); /* the snapshot */
    raft_log_persisted(log, 2);
    assert_int_equal(log->durable, 0);
    raft_log_persisted(log, 3);
    assert_int_equal(log->durable, 3);
}

/* The disk as it is after each write: the marks of all entries. */
enum { DISK_ENTRIES = 64, DISK_WRITES = 2000 };

struct disk {
    size_t count;
    unsigned marks[DISK_ENTRIES];
};

struct model {
    struct disk now; /* the log in memory */
    struct disk writes[DISK_WRITES];
    uint64_t seq;
    uint64_t persisted;
    unsigned next_mark;
};

static size_t common(const struct disk *a, const struct disk *b)
{
    size_t same = 0;

    while (same < a->count && same < b->count && a->marks[same] == b->marks[same])
        same++;
    return same;
}

static void model_step(struct model *model, struct raft_log *log, struct prng *prng)
{
    switch (prng_below(prng, 6)) {
    case 0:
    case 1:
        if (model->now.count < DISK_ENTRIES) {
            model->now.marks[model->now.count++] = ++model->next_mark;
            append_terms(log, "1");
        }
        break;
    case 2:
    case 3:
        model->writes[++model->seq] = model->now;
        raft_log_wrote(log, model->seq);
        break;
    case 4:
        model->persisted += prng_below(prng, model->seq - model->persisted + 1);
        raft_log_persisted(log, model->persisted);
        break;
    default:
        if (prng_chance(prng, 300) && model->now.count > log->base) {
            raft_index index =
                (raft_index)prng_between(prng, (int64_t)log->base + 1, (int64_t)model->now.count);

            model->now.count = index - 1;
            raft_log_truncate(log, index);
        }
        /* Compaction changes nothing in what the log stands for. */
        if (prng_chance(prng, 100) && log->durable > log->base)
            raft_log_compact(log, log->durable);
        break;
    }
}

static void test_durable_is_what_memory_and_disk_have_in_common(void **state)
{
    struct raft_log *log = *state;
    struct model *model = calloc(1, sizeof *model);
    struct prng prng;
    size_t cut_short = 0;

    assert_non_null(model);
    prng_seed(&prng, 3);
    for (int round = 0; round < 50; round++) {
        raft_log_done(log);
        memset(model, 0, sizeof *model);
        for (int step = 0; step < 1500 && model->seq < DISK_WRITES - 1; step++) {
            size_t truth;

            model_step(model, log, &prng);
            truth = common(&model->now, &model->writes[model->persisted]);
            cut_short += truth < model->writes[model->persisted].count;
            assert_int_equal(log->durable, truth);
            assert_true(log->write_count < RAFT_LOG_WRITES_MAX); /* nothing was merged, so it must be exact */
        }
    }
    assert_true(cut_short > 1000);
    free(model);
}

static void test_nothing_is_allocated_when_nothing_grows(void **state)
{
    struct raft_log *log = *state;
    struct raft_entry empty = {.term = 1, .kind = RAFT_ENTRY_NOOP};

    assert_int_equal(raft_log_reserve(log, 100), GAVEL_OK);
    allocator.calls = 0;
    for (int i = 0; i < 100; i++)
        assert_int_equal(raft_log_append(log, &empty), GAVEL_OK);
    raft_log_wrote(log, 1);
    raft_log_persisted(log, 1);
    raft_log_compact(log, 50);
    raft_log_truncate(log, 60);
    assert_int_equal(raft_log_reserve(log, 50), GAVEL_OK);
    raft_log_restart(log, 70, 2);
    assert_int_equal(allocator.calls, 0);
}

static void test_appending_is_amortised(void **state)
{
    struct raft_log *log = *state;
    struct raft_entry empty = {.term = 1, .kind = RAFT_ENTRY_NOOP};

    allocator.calls = 0;
    for (int i = 0; i < 100000; i++)
        assert_int_equal(raft_log_append(log, &empty), GAVEL_OK);
    assert_true(allocator.calls < 20);
}

static void test_want_of_memory_changes_nothing(void **state)
{
    struct raft_log *log = *state;
    struct raft_entry entry = {.term = 1, .kind = RAFT_ENTRY_DATA, .size = 3, .data = (const uint8_t *)"abc"};
    struct raft_log before;

    for (int i = 0; i < 16; i++)
        append(log, 1, "abc");
    assert_int_equal(log->count, log->capacity); /* so that the next needs both, array and bytes */
    for (uint64_t fail_after = 0; fail_after < 2; fail_after++) {
        allocator.fail_after = fail_after;
        before = *log;
        assert_int_equal(raft_log_append(log, &entry), GAVEL_ERR_NO_MEMORY);
        assert_int_equal(raft_log_last(log), raft_log_last(&before));
        assert_memory_equal(raft_log_at(log, 16)->data, "abc", 3);
    }
    allocator.fail_after = UINT64_MAX;
    assert_int_equal(raft_log_reserve(log, SIZE_MAX / 4), GAVEL_ERR_NO_MEMORY);
    assert_int_equal(raft_log_append(log, &entry), GAVEL_OK);
    assert_int_equal(raft_log_last(log), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_empty_log_knows_only_its_base, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_terms_begin_and_end_where_a_look_at_each_entry_says, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_compaction_keeps_what_comes_after, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_what_was_written_becomes_durable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncation_takes_back_what_was_durable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_under_way_does_not_vouch_for_what_replaced_its_entries,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_writes_past_the_limit_are_merged_and_never_count_early, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_restart_forgets_everything_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_durable_is_what_memory_and_disk_have_in_common, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_allocated_when_nothing_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_appending_is_amortised, setup, teardown),
        cmocka_unit_test_setup_teardown(test_want_of_memory_changes_nothing, setup, teardown),
    };

    return cmocka_run_group_tests_name("raft log", tests, NULL, NULL);
}
