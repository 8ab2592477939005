/* SPDX-License-Identifier: Apache-2.0 */

/* How long others have been silent, told by one's own clock. */
#include "store/sightings.h"

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct registration registration(const char *id, uint64_t instance, uint64_t beats)
{
    struct registration made = {.instance = instance, .beats = beats};

    (void)snprintf(made.id, sizeof made.id, "%s", id);
    return made;
}

static gavel_ms age(struct sightings *s, const char *group, const char *id, uint64_t instance, uint64_t beats,
                    gavel_ms now_ms)
{
    struct registration one = registration(id, instance, beats);

    return sightings_age(s, group, &one, ns_from_ms(now_ms));
}

static void test_what_does_not_change_grows_older(void **state)
{
    struct sightings s = {0};

    (void)state;
    assert_int_equal(age(&s, "g", "a", 1, 1, 1000), 0); /* the first time counts as now */
    assert_int_equal(age(&s, "g", "a", 1, 1, 1500), 500);
    assert_int_equal(age(&s, "g", "a", 1, 1, 9000), 8000);
    assert_int_equal(age(&s, "g", "a", 1, 1, 400), 0); /* never less than nothing */
    sightings_done(&s);
}

static void test_a_beat_or_another_instance_begins_anew(void **state)
{
    struct sightings s = {0};

    (void)state;
    (void)age(&s, "g", "a", 1, 1, 0);
    assert_int_equal(age(&s, "g", "a", 1, 2, 100), 0);
    assert_int_equal(age(&s, "g", "a", 1, 2, 150), 50);
    assert_int_equal(age(&s, "g", "a", 2, 2, 200), 0);
    assert_int_equal(age(&s, "g", "a", 2, 1, 300), 0); /* also beats that go back: it differs */
    sightings_done(&s);
}

static void test_names_do_not_run_into_each_other(void **state)
{
    struct sightings s = {0};

    (void)state;
    (void)age(&s, "a", "bc", 1, 1, 0);
    assert_int_equal(age(&s, "ab", "c", 1, 1, 100), 0);
    assert_int_equal(age(&s, "a", "bc", 1, 1, 100), 100);
    sightings_done(&s);
}

static void test_who_is_forgotten_is_new_again(void **state)
{
    struct sightings s = {0};

    (void)state;
    sightings_forget(&s, "g", "a"); /* nobody is there */
    (void)age(&s, "g", "a", 1, 1, 0);
    (void)age(&s, "g", "b", 1, 1, 0);
    sightings_forget(&s, "g", "a");
    sightings_forget(&s, "g", "c");
    assert_int_equal(s.count, 1);
    assert_int_equal(age(&s, "g", "a", 1, 1, 100), 0);
    assert_int_equal(age(&s, "g", "b", 1, 1, 100), 100);
    sightings_done(&s);
    sightings_done(&s);
    sightings_done(NULL);
}

static void test_those_nobody_asks_about_are_dropped(void **state)
{
    struct sightings s = {0};
    char id[16];

    (void)state;
    sightings_prune(&s, 5);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        (void)age(&s, "g", id, 1, 1, i);
    }
    sightings_prune(&s, ns_from_ms(900));
    assert_int_equal(s.count, 100);
    assert_int_equal(age(&s, "g", "899", 1, 1, 2000), 0);
    assert_int_equal(age(&s, "g", "900", 1, 1, 2000), 1100);
    sightings_prune(&s, NEVER);
    assert_int_equal(s.count, 0);
    sightings_done(&s);
}

/* Against a table that is as simple as can be. */
static void test_it_does_what_a_plain_list_would(void **state)
{
    enum { IDS = 200 };
    struct sightings s = {0};
    struct {
        bool is_there;
        uint64_t beats;
        gavel_ms changed_at;
        gavel_ms asked_at;
    } plain[IDS] = {0};
    struct prng prng;
    size_t count = 0;

    (void)state;
    prng_seed(&prng, 7);
    for (gavel_ms now = 0; now < 50000; now++) {
        size_t i = prng_below(&prng, IDS);
        uint64_t beats = prng_below(&prng, 3);
        char id[16];

        (void)snprintf(id, sizeof id, "%zu", i);
        if (prng_chance(&prng, 300)) {
            sightings_forget(&s, "g", id);
            plain[i].is_there = false;
        } else if (prng_chance(&prng, 5)) {
            sightings_prune(&s, ns_from_ms(now - 100));
            for (size_t k = 0; k < IDS; k++)
                plain[k].is_there &= plain[k].asked_at >= now - 100;
        } else {
            if (!plain[i].is_there || plain[i].beats != beats)
                plain[i].changed_at = now;
            plain[i].is_there = true;
            plain[i].beats = beats;
            plain[i].asked_at = now;
            assert_int_equal(age(&s, "g", id, 1, beats, now), now - plain[i].changed_at);
        }
        count = 0;
        for (size_t k = 0; k < IDS; k++)
            count += plain[k].is_there;
        assert_int_equal(s.count, count);
    }
    sightings_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_does_not_change_grows_older),
        cmocka_unit_test(test_a_beat_or_another_instance_begins_anew),
        cmocka_unit_test(test_names_do_not_run_into_each_other),
        cmocka_unit_test(test_who_is_forgotten_is_new_again),
        cmocka_unit_test(test_those_nobody_asks_about_are_dropped),
        cmocka_unit_test(test_it_does_what_a_plain_list_would),
    };

    return cmocka_run_group_tests_name("sightings", tests, NULL, NULL);
}
