/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Release on death in a store with sessions. The store is one of the test, which
 * stands in for src/store/store.c, and so is the doorbell: they write down what
 * they are asked, and the store answers what it is told to.
 */
#include "lib/bell.h"
#include "lib/guard/on_death.h"
#include "os/clock.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ANSWERS_MAX 8
#define LIMIT_MS 60000

/* What the store is to answer, in order; the last answer stands. */
struct script {
    enum gavel_status answers[ANSWERS_MAX];
    size_t count;
    size_t asked;
};

static struct scene {
    struct store_capabilities capabilities;
    struct script openings;
    struct script closings;
    struct store given;  /* to the guard, opened beforehand */
    struct store opened; /* by the release itself */
    struct store *closed_in;
    uint64_t session; /* that it was asked to close last, and the first byte of its secret */
    uint8_t secret;
    size_t runs;   /* of requests: must be none where there are sessions, */
    size_t rings;  /* nor any of these */
    size_t closes; /* of store objects */
} scene;

static enum gavel_status next(struct script *script)
{
    size_t i = script->asked < script->count ? script->asked : script->count - 1;

    script->asked++;
    return script->count == 0 ? GAVEL_OK : script->answers[i];
}

enum gavel_status store_open(const char *url, struct store **ret_store, struct gavel_error *error)
{
    enum gavel_status status = next(&scene.openings);

    (void)error;
    assert_string_equal(url, "gavel://h1:7600");
    if (status == GAVEL_OK)
        *ret_store = &scene.opened;
    return status;
}

void store_close(struct store *store) { scene.closes += store != NULL; }

const struct store_capabilities *store_capabilities(const struct store *store)
{
    assert_non_null(store);
    return &scene.capabilities;
}

const struct store_capabilities *store_capabilities_of(const char *url)
{
    (void)url;
    return &scene.capabilities;
}

void store_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count)
{
    (void)store;
    (void)requests;
    memset(replies, 0, count * sizeof *replies);
    scene.runs++;
}

enum gavel_status store_close_dead(struct store *store, const struct store_session_key *key,
                                   gavel_ns give_up_at, struct gavel_error *error)
{
    enum gavel_status status = next(&scene.closings);

    assert_true(give_up_at > clock_now() - ns_from_ms(LIMIT_MS));
    scene.closed_in = store;
    scene.session = atomic_load(&key->session);
    scene.secret = key->secret[0];
    if (status != GAVEL_OK && error)
        (void)snprintf(error->message, sizeof error->message, "no leader");
    return status;
}

void ringer_ring(struct ringer *ringer, const char *group, const char *address)
{
    (void)ringer;
    (void)group;
    (void)address;
    scene.rings++;
}

void ringer_done(struct ringer *ringer) { (void)ringer; }

static int set_up(void **state)
{
    memset(&scene, 0, sizeof scene);
    scene.capabilities = (struct store_capabilities){.name = "gavel", .has_sessions = true};
    *state = NULL;
    return 0;
}

static void answer(struct script *script, enum gavel_status first, enum gavel_status then)
{
    *script = (struct script){.answers = {first, then}, .count = 2};
}

/* The list of a process that has a session, leads `leads` groups and stands by in one. */
static struct on_death *new_list(int leads)
{
    struct on_death *on_death = NULL;
    char group[16];

    assert_int_equal(on_death_new(ON_DEATH_ENTRIES_MAX, &on_death), GAVEL_OK);
    assert_int_equal(on_death_set_store(on_death, "gavel://h1:7600"), GAVEL_OK);
    on_death->key.secret[0] = 77;
    atomic_store(&on_death->key.session, 42);
    atomic_store(&on_death->key.is_known, 1);
    on_death_note_session(on_death, 3, clock_now() + NS_PER_S);
    for (int i = 0; i < leads; i++) {
        (void)snprintf(group, sizeof group, "g%d", i);
        on_death_note_session_mandate(on_death_take(on_death, group, "a"), (uint64_t)i + 9, 3, 30, 10, NEVER);
    }
    assert_non_null(on_death_take(on_death, "standby", "a"));
    return on_death;
}

static size_t release(const struct on_death *on_death, struct store *store)
{
    struct gavel_error error = {0};
    size_t released = 99;

    assert_int_equal(on_death_release(on_death, store, clock_now() + ns_from_ms(LIMIT_MS), &released, &error),
                     GAVEL_OK);
    return released;
}

static void test_session_of_the_dead_is_closed_with_its_key(void **state)
{
    struct on_death *on_death = new_list(3);

    (void)state;
    assert_int_equal(release(on_death, &scene.given), 3);
    assert_int_equal(scene.closings.asked, 1);
    assert_ptr_equal(scene.closed_in, &scene.given);
    assert_int_equal(scene.session, 42);
    assert_int_equal(scene.secret, 77);
    assert_int_equal(scene.openings.asked, 0);
    assert_int_equal(scene.closes, 0);             /* it stays the caller's */
    assert_int_equal(scene.runs + scene.rings, 0); /* the cluster tells the others */
    on_death_free(on_death);
}

static void test_store_is_opened_and_closed_if_none_is_given(void **state)
{
    struct on_death *on_death = new_list(1);

    (void)state;
    answer(&scene.openings, GAVEL_ERR_STORE_UNAVAILABLE, GAVEL_OK);
    assert_int_equal(release(on_death, NULL), 1);
    assert_int_equal(scene.openings.asked, 2);
    assert_ptr_equal(scene.closed_in, &scene.opened);
    assert_int_equal(scene.closes, 1);
    on_death_free(on_death);
}

static void test_closing_is_tried_again_while_the_cluster_has_no_leader(void **state)
{
    struct on_death *on_death = new_list(2);

    (void)state;
    answer(&scene.closings, GAVEL_ERR_TIMEOUT, GAVEL_OK);
    assert_int_equal(release(on_death, &scene.given), 2);
    assert_int_equal(scene.closings.asked, 2);
    on_death_free(on_death);
}

/* As `gavel run` does with the object that it has opened beforehand: one try, and then with another. */
static void test_one_try_without_time_and_another_object_afterwards(void **state)
{
    struct on_death *on_death = new_list(2);
    struct gavel_error error = {0};
    size_t released = 99;

    (void)state;
    answer(&scene.closings, GAVEL_ERR_STORE_UNAVAILABLE, GAVEL_OK);
    assert_int_equal(on_death_release(on_death, &scene.given, 0, &released, &error),
                     GAVEL_ERR_STORE_UNAVAILABLE);
    assert_int_equal(scene.closings.asked, 1);
    assert_int_equal(released, 0);
    assert_string_equal(error.message, "no leader");
    assert_int_equal(release(on_death, NULL), 2);
    assert_ptr_equal(scene.closed_in, &scene.opened);
    on_death_free(on_death);
}

static void test_refusal_is_final(void **state)
{
    static const enum gavel_status refusals[] = {GAVEL_ERR_INVALID, GAVEL_ERR_DENIED,
                                                 GAVEL_ERR_STORE_UNSUPPORTED};
    struct on_death *on_death = new_list(1);

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        size_t released = 99;

        answer(&scene.closings, refusals[i], GAVEL_OK);
        assert_int_equal(
            on_death_release(on_death, &scene.given, clock_now() + ns_from_ms(LIMIT_MS), &released, NULL),
            refusals[i]);
        assert_int_equal(scene.closings.asked, 1);
        assert_int_equal(released, 0);
    }
    on_death_free(on_death);
}

static void test_process_without_a_session_leaves_nothing_to_close(void **state)
{
    struct on_death *on_death = new_list(0);
    struct on_death_entry *entry = &on_death->entries[0];

    (void)state;
    atomic_store(&on_death->key.is_known, 0); /* died before the driver had written it */
    on_death_note_claim(entry, (struct nonce){1, 1});
    assert_int_equal(release(on_death, NULL), 0);
    assert_int_equal(scene.openings.asked + scene.closings.asked + scene.runs, 0);
    assert_int_equal(on_death_set_store(on_death, ""), GAVEL_OK);
    atomic_store(&on_death->key.is_known, 1);
    assert_int_equal(release(on_death, &scene.given), 0); /* it was not to release anything */
    assert_int_equal(scene.closings.asked, 0);
    on_death_free(on_death);
}

/* Whatever a program wrote all over the list when it crashed. */
static void test_damaged_list_is_read_within_its_bounds(void **state)
{
    struct on_death *on_death = new_list(2);

    (void)state;
    atomic_store(&on_death->count, UINT32_MAX);
    memset(on_death->entries[0].group, 'x', sizeof on_death->entries[0].group);
    assert_int_equal(release(on_death, &scene.given), 2);
    on_death->capacity = 1;
    assert_int_equal(release(on_death, &scene.given), 1);
    on_death->capacity = ON_DEATH_ENTRIES_MAX;
    memset(on_death->store, 'x', sizeof on_death->store); /* nowhere ended; the object that is open serves */
    assert_int_equal(release(on_death, &scene.given), 2);
    on_death_free(on_death);
}

/* A key in the list of a store without sessions was written by a crash. */
static void test_key_means_nothing_in_a_store_without_sessions(void **state)
{
    struct on_death *on_death = new_list(0);

    (void)state;
    scene.capabilities.has_sessions = false;
    on_death_note_claim(&on_death->entries[0], (struct nonce){1, 1});
    assert_int_equal(release(on_death, &scene.given), 1);
    assert_int_equal(scene.runs, 1);
    assert_int_equal(scene.closings.asked, 0);
    on_death_free(on_death);
}

static void test_last_deadline_is_that_of_the_session(void **state)
{
    struct on_death *on_death = new_list(1);

    (void)state;
    on_death_note_session(on_death, 3, 5000);
    assert_int_equal(on_death_last_deadline(on_death), 5000); /* and not that of a term that never ends */
    on_death_note_session(on_death, 3, 9000);
    assert_int_equal(on_death_last_deadline(on_death), 9000);
    on_death_note_mandate(&on_death->entries[0], 9, 8000, 9500); /* what its work has left … */
    on_death_note_session(on_death, 0, 0);                       /* … of a session that is lost */
    assert_int_equal(on_death_last_deadline(on_death), 9500);
    on_death_note_stopped(&on_death->entries[0]);
    assert_int_equal(on_death_last_deadline(on_death), 0);
    on_death_note_session(on_death, 4, NEVER); /* a crash */
    atomic_store(&on_death->count, UINT32_MAX);
    assert_int_equal(on_death_last_deadline(on_death), 0);
    on_death_free(on_death);
}

/* The memory may say anything; a guard does not stay for ever. */
static void test_guard_gives_up_some_time_after_the_session_is_over(void **state)
{
    struct on_death *on_death = new_list(1);
    gavel_ns begin = clock_now(), at;

    (void)state;
    on_death_note_session(on_death, 3, begin + 100 * NS_PER_S);
    assert_int_equal(on_death_give_up_at(on_death, NS_PER_S), begin + 101 * NS_PER_S);
    on_death_note_session(on_death, 3, 1);
    at = on_death_give_up_at(on_death, NS_PER_S);
    assert_true(at >= begin + NS_PER_S && at <= clock_now() + NS_PER_S);
    on_death_note_session(on_death, 3, NEVER - 1);
    at = on_death_give_up_at(on_death, NS_PER_S);
    assert_true(at < clock_now() + INT64_C(32) * 24 * 3600 * NS_PER_S);
    on_death_free(on_death);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(test_session_of_the_dead_is_closed_with_its_key),
        TEST(test_store_is_opened_and_closed_if_none_is_given),
        TEST(test_closing_is_tried_again_while_the_cluster_has_no_leader),
        TEST(test_one_try_without_time_and_another_object_afterwards),
        TEST(test_refusal_is_final),
        TEST(test_process_without_a_session_leaves_nothing_to_close),
        TEST(test_damaged_list_is_read_within_its_bounds),
        TEST(test_key_means_nothing_in_a_store_without_sessions),
        TEST(test_last_deadline_is_that_of_the_session),
        TEST(test_guard_gives_up_some_time_after_the_session_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
