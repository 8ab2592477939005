/* SPDX-License-Identifier: Apache-2.0 */

/* Watches: every change that concerns them, once and in order; and what happens if that cannot be. */

#include "clients_frontend.h"

#include "base/prng.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PUT GAVEL__CHANGE__KIND__NOTE_PUT

static uint64_t put(struct clients_frontend *frontend, const char *group)
{
    return play_put(frontend, group, "k", "v", 1);
}

static void begin(struct talker *talker, struct clients_frontend *frontend)
{
    talk_unix(talker, frontend);
    talk_hello(talker);
}

static void expect_ended(struct talker *talker, uint64_t watch, enum gavel_status status, uint64_t revision)
{
    Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_WATCH_ENDED);

    assert_int_equal(frame->watch_ended->watch, watch);
    assert_int_equal(frame->watch_ended->status, status);
    assert_true(frame->watch_ended->message[0] != '\0');
    if (revision)
        assert_int_equal(frame->watch_ended->revision, revision);
    client_frame_free(frame);
}

static void test_a_watch_is_told_what_changes_from_now_on(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;

    (void)put(frontend, "g");
    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 3, .group = "g"});
    (void)put(frontend, "other");
    talk_change(&talker, 3, PUT, "g", put(frontend, "g"));
    talk_change(&talker, 3, PUT, "g", put(frontend, "g"));
    (void)put(frontend, "gg");
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_a_prefix_is_of_all_that_begin_with_it(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;
    uint64_t revision;

    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .prefix = "team/"});
    talk_watching(&talker, (struct watch_wish){.watch = 2, .prefix = "team/a"});
    (void)put(frontend, "team");
    revision = put(frontend, "team/b");
    talk_change(&talker, 1, PUT, "team/b", revision);
    revision = put(frontend, "team/");
    talk_change(&talker, 1, PUT, "team/", revision);
    revision = put(frontend, "team/a");
    talk_change(&talker, 1, PUT, "team/a", revision);
    talk_change(&talker, 2, PUT, "team/a", revision);
    talk_watching(&talker, (struct watch_wish){.watch = 3});
    talk_change(&talker, 3, PUT, "x", put(frontend, "x")); /* the empty prefix: all */
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_a_watch_begins_after_the_revision_that_it_names(void **state)
{
    struct clients_frontend *frontend = *state;
    uint64_t first = put(frontend, "g"), other = put(frontend, "h"), last = put(frontend, "g");
    Gavel__ClientFrame *frame;
    struct talker talker;

    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g", .after = first});
    talk_change(&talker, 1, PUT, "g", last);
    /* One that begins in the past does not make the others hear it again. */
    talk_watching(&talker, (struct watch_wish){.watch = 2, .prefix = "", .after = first});
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_int_equal(frame->changes->watch, 2);
    assert_int_equal(frame->changes->n_changes, 2); /* in one frame */
    assert_int_equal(frame->changes->changes[0]->revision, other);
    assert_int_equal(frame->changes->changes[1]->revision, last);
    assert_int_equal(frame->changes->revision, last);
    client_frame_free(frame);
    last = put(frontend, "g");
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_int_equal(frame->changes->n_changes, 1);
    client_frame_free(frame);
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_int_equal(frame->changes->n_changes, 1);
    assert_int_equal(frame->changes->changes[0]->revision, last);
    client_frame_free(frame);
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_a_watch_may_begin_in_the_future(void **state)
{
    struct clients_frontend *frontend = *state;
    uint64_t now = put(frontend, "g");
    struct talker talker;

    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g", .after = now + 2});
    (void)put(frontend, "g");
    (void)put(frontend, "g");
    talk_change(&talker, 1, PUT, "g", put(frontend, "g"));
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_parts_of_a_revision_that_are_known_are_not_told_again(void **state)
{
    struct clients_frontend *frontend = *state;
    Gavel__ClientFrame *frame;
    struct talker talker;
    uint64_t revision;
    size_t parts;

    (void)play_open(frontend, 1);
    revision = play_campaign(frontend, 1, "g", "a"); /* joined and elected: two changes of one revision */
    begin(&talker, frontend);
    talk_watch(&talker, (struct watch_wish){.watch = 1, .group = "g", .after = revision - 1});
    client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES)); /* it has begun */
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    parts = frame->changes->n_changes;
    assert_true(parts >= 2);
    assert_int_equal(frame->changes->changes[1]->part, 1);
    client_frame_free(frame);
    for (uint32_t part = 1; part < parts; part++) {
        talk_watch(&talker,
                   (struct watch_wish){.watch = 10 + part, .group = "g", .after = revision, .part = part});
        frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
        assert_int_equal(frame->changes->revision, revision - 1); /* not all of it is known */
        client_frame_free(frame);
        if (part + 1 < parts) {
            frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
            assert_int_equal(frame->changes->n_changes, parts - 1 - part);
            client_frame_free(frame);
        }
    }
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void fill_history(struct clients_frontend *frontend)
{
    static const char value[TABLE_NOTE_BYTES_MAX];

    for (size_t i = 0; i <= TABLE_HISTORY_BYTES_MAX / sizeof value; i++)
        (void)play_put(frontend, "large", "k", value, sizeof value);
}

static void test_what_is_forgotten_is_said_so_and_the_connection_stays(void **state)
{
    struct clients_frontend *frontend = *state;
    uint64_t old = put(frontend, "g"), now;
    struct talker talker;

    (void)put(frontend, "g");
    fill_history(frontend);
    now = put(frontend, "g");
    begin(&talker, frontend);
    talk_watch(&talker, (struct watch_wish){.watch = 4, .group = "g", .after = old});
    expect_ended(&talker, 4, GAVEL_ERR_FORGOTTEN, now);
    talk_watching(&talker, (struct watch_wish){.watch = 4, .group = "g", .after = now});
    talk_change(&talker, 4, PUT, "g", put(frontend, "g"));
    talk_end(&talker);
}

/* The table as a leader has it that went on without this node. */
static void take_snapshot(struct clients_frontend *frontend, size_t entries)
{
    struct table_box *box = &frontend->frontend.table;
    struct clients_frontend leader = {.index = frontend->index};
    uint8_t *bytes;
    size_t size;

    assert_int_equal(table_box_init(&leader.frontend.table), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(&box->table, &bytes, &size), GAVEL_OK);
    assert_int_equal(table_snapshot_decode(&leader.frontend.table.table, bytes, size), GAVEL_OK);
    free(bytes);
    for (size_t i = 0; i < entries; i++)
        (void)put(&leader, "g");
    assert_int_equal(table_snapshot_encode(&leader.frontend.table.table, &bytes, &size), GAVEL_OK);
    table_box_lock(box);
    assert_int_equal(table_snapshot_decode(&box->table, bytes, size), GAVEL_OK);
    table_box_unlock(box);
    table_box_ring(box);
    free(bytes);
    frontend->index = leader.index;
    table_box_done(&leader.frontend.table);
}

static void test_a_snapshot_ends_the_watches_that_miss_something(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;
    uint64_t now = put(frontend, "g");

    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g"});
    take_snapshot(frontend, 5);
    expect_ended(&talker, 1, GAVEL_ERR_FORGOTTEN, now + 5);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g", .after = now + 5});
    talk_change(&talker, 1, PUT, "g", put(frontend, "g"));
    talk_watch(&talker, (struct watch_wish){.watch = 2, .group = "g", .after = now + 4});
    expect_ended(&talker, 2, GAVEL_ERR_FORGOTTEN, now + 6);
    talk_expect_silence(&talker);
    talk_end(&talker);
}

static void test_a_session_is_told_of_its_groups_and_of_its_end(void **state)
{
    struct clients_frontend *frontend = *state;
    Gavel__ClientFrame *frame;
    struct talker talker;
    uint64_t revision;

    (void)play_open(frontend, 1);
    (void)play_open(frontend, 2);
    (void)play_campaign(frontend, 2, "a", "two");
    (void)play_campaign(frontend, 1, "a", "one");
    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .session = 1});
    (void)play_campaign(frontend, 2, "b", "two"); /* not of this session */
    talk_change(&talker, 1, PUT, "a", put(frontend, "a"));
    revision = play_campaign(frontend, 1, "b", "one");
    talk_change(&talker, 1, GAVEL__CHANGE__KIND__JOINED, "b", revision);
    talk_change(&talker, 1, PUT, "b", put(frontend, "b"));
    revision = play_withdraw(frontend, 1, "b");
    talk_change(&talker, 1, GAVEL__CHANGE__KIND__LEFT, "b", revision);
    (void)put(frontend, "b");
    talk_expect_silence(&talker);
    revision = play_close(frontend, 1);
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_true(frame->changes->n_changes >= 2); /* it left a, and is over */
    assert_int_equal(frame->changes->changes[frame->changes->n_changes - 1]->kind,
                     GAVEL__CHANGE__KIND__SESSION_ENDED);
    client_frame_free(frame);
    (void)put(frontend, "a");
    talk_expect_silence(&talker);
    /* From the past, with the groups that it had then. */
    talk_watch(&talker, (struct watch_wish){.watch = 2, .session = 1, .after = revision - 1});
    client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES));
    frame = talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);
    assert_int_equal(frame->changes->watch, 2);
    assert_int_equal(frame->changes->changes[frame->changes->n_changes - 1]->kind,
                     GAVEL__CHANGE__KIND__SESSION_ENDED);
    client_frame_free(frame);
    talk_end(&talker);
}

static void test_unwatch_ends_a_watch(void **state)
{
    struct clients_frontend *frontend = *state;
    struct clients_counts counts;
    struct talker talker;
    Gavel__Unwatch unwatch;
    Gavel__ClientFrame frame;

    gavel__unwatch__init(&unwatch);
    gavel__client_frame__init(&frame);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_UNWATCH;
    frame.unwatch = &unwatch;
    begin(&talker, frontend);
    talk_watching(&talker, (struct watch_wish){.watch = 1, .group = "g"});
    talk_watching(&talker, (struct watch_wish){.watch = 2, .group = "g"});
    unwatch.watch = 1;
    talk_send(&talker, &frame);
    talk_send(&talker, &frame); /* twice is harmless */
    talk_expect_silence(&talker);
    talk_change(&talker, 2, PUT, "g", put(frontend, "g"));
    talk_expect_silence(&talker);
    clients_count(frontend->clients, &counts);
    assert_int_equal(counts.watches, 1);
    talk_end(&talker);
}

static void test_watches_that_cannot_be_are_refused_in_words(void **state)
{
    struct clients_frontend *frontend = *state;
    char name[400];
    struct talker talker;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    begin(&talker, frontend);
    talk_watch(&talker, (struct watch_wish){.watch = 1, .group = "g", .prefix = "g"});
    expect_ended(&talker, 1, GAVEL_ERR_INVALID, 0);
    talk_watch(&talker, (struct watch_wish){.watch = 1, .group = "g", .session = 4});
    expect_ended(&talker, 1, GAVEL_ERR_INVALID, 0);
    talk_watch(&talker, (struct watch_wish){.watch = 1, .group = name});
    expect_ended(&talker, 1, GAVEL_ERR_INVALID, 0);
    talk_watch(&talker, (struct watch_wish){.watch = 1, .prefix = name});
    expect_ended(&talker, 1, GAVEL_ERR_INVALID, 0);
    name[255] = '\0';
    talk_watching(&talker, (struct watch_wish){.watch = 1, .prefix = name});
    talk_watching(&talker, (struct watch_wish){.watch = 2, .group = name});
    (void)put(frontend, name);
    client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES));
    client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES));
    talk_watch(&talker, (struct watch_wish){.watch = 2, .group = "g"});
    talk_refused(&talker, "two watches of one number");
    talk_end(&talker);
}

/* How many have something to read. */
static size_t readable(const struct talker *talkers, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        struct pollfd look = {.fd = talkers[i].fd, .events = POLLIN};

        found += poll(&look, 1, 0) == 1;
    }
    return found;
}

/* The change of that kind comes to it, in the order of the table. */
static void is_told(struct talker *talker, uint64_t *seen, Gavel__Change__Kind kind)
{
    for (bool is_found = false; !is_found;) {
        Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);

        for (size_t i = 0; i < frame->changes->n_changes; i++) {
            assert_true(frame->changes->changes[i]->revision >= *seen);
            *seen = frame->changes->changes[i]->revision;
            is_found |= frame->changes->changes[i]->kind == kind;
        }
        client_frame_free(frame);
    }
}

/* On a busy machine we may look too late; not fifty times. */
static void test_who_is_elected_is_told_before_many_others(void **state)
{
    enum { OTHERS = 200, TIMES = 50 };
    struct clients_frontend *frontend = *state;
    struct talker elected, others[OTHERS];
    uint64_t seen = 0, seen_by[OTHERS] = {0};
    size_t first = 0;

    (void)play_open(frontend, 1);
    (void)put(frontend, "g");
    begin(&elected, frontend);
    talk_watching(&elected, (struct watch_wish){.watch = 1, .session = 1});
    for (size_t i = 0; i < OTHERS; i++) {
        begin(&others[i], frontend);
        talk_watching(&others[i], (struct watch_wish){.watch = 1, .group = "g"});
    }
    for (int i = 0; i < TIMES; i++) {
        (void)play_campaign(frontend, 1, "g", "one");
        is_told(&elected, &seen, GAVEL__CHANGE__KIND__ELECTED);
        first += readable(others, OTHERS) < OTHERS / 2;
        for (size_t j = 0; j < OTHERS; j++)
            is_told(&others[j], &seen_by[j], GAVEL__CHANGE__KIND__ELECTED);
        (void)play_withdraw(frontend, 1, "g");
        is_told(&elected, &seen, GAVEL__CHANGE__KIND__LEFT);
        for (size_t j = 0; j < OTHERS; j++)
            is_told(&others[j], &seen_by[j], GAVEL__CHANGE__KIND__LEFT);
    }
    assert_true(first > 0);
    (void)play_campaign(frontend, 1, "g", "one");
    for (size_t i = 0; i < OTHERS; i++)
        talk_end(&others[i]); /* what they were to be told goes with them */
    is_told(&elected, &seen, GAVEL__CHANGE__KIND__ELECTED);
    talk_end(&elected);
}

static void test_of_many_watches_only_those_concerned_are_told(void **state)
{
    enum { MANY = 20000 };
    struct clients_frontend *frontend = *state;
    struct clients_counts counts;
    struct talker talker;
    uint64_t revision;
    char name[16];

    begin(&talker, frontend);
    for (uint64_t i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "g%" PRIu64, i);
        talk_watch(&talker, (struct watch_wish){.watch = i, .group = name});
        if (i % 100 == 99) /* so that neither side waits for the other */
            for (int k = 0; k < 100; k++)
                client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES));
    }
    revision = put(frontend, "g12345");
    talk_change(&talker, 12345, PUT, "g12345", revision);
    talk_expect_silence(&talker);
    clients_count(frontend->clients, &counts);
    assert_int_equal(counts.watches, MANY);
    assert_int_equal(counts.changes, 1);
    talk_end(&talker);
    WAIT_UNTIL((clients_count(frontend->clients, &counts), counts.watches == 0));
}

static void test_there_is_a_limit_to_watches(void **state)
{
    struct clients_frontend *frontend = *state;
    struct talker talker;

    begin(&talker, frontend);
    for (uint64_t i = 0; i < CLIENTS_WATCHES_MAX; i++) {
        talk_watch(&talker, (struct watch_wish){.watch = i, .group = "g"});
        if (i % 64 == 63)
            for (int k = 0; k < 64; k++)
                client_frame_free(talk_expect(&talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES));
    }
    talk_watch(&talker, (struct watch_wish){.watch = CLIENTS_WATCHES_MAX, .group = "g"});
    expect_ended(&talker, CLIENTS_WATCHES_MAX, GAVEL_ERR_TOO_LARGE, 0);
    talk_end(&talker);
}

/* ---- everything at once, against a list of all that happened ---- */

#define GROUPS 6
#define SESSIONS 3
#define TALKERS 4
#define WATCHES 60
#define STEPS 1500
#define CHANGES_MAX 8192

struct expected {
    struct watch_wish wish;
    char name[8];
    size_t next; /* of the list of all changes */
    bool is_member[GROUPS];
};

struct story {
    struct clients_frontend *frontend;
    struct prng prng;
    struct talker talkers[TALKERS];
    bool is_member[SESSIONS][GROUPS];
    struct expected watches[WATCHES];
    size_t count;
    Gavel__Change *all[CHANGES_MAX];
    size_t all_count;
};

static const char *const group_names[GROUPS] = {"a", "ab", "abc", "b", "ba", "c"};

static size_t group_of(const char *name)
{
    for (size_t i = 0; i < GROUPS; i++)
        if (strcmp(name, group_names[i]) == 0)
            return i;
    return GROUPS;
}

/* The history as the table itself has it. */
static void collect(struct story *story)
{
    struct table_box *box = &story->frontend->frontend.table;
    struct table_cursor cursor = {0, UINT32_MAX};
    const struct table_change *change;

    while (table_history_after(&box->table, cursor, &change) == GAVEL_OK && change) {
        assert_true(story->all_count < CHANGES_MAX);
        story->all[story->all_count++] = gavel__change__unpack(NULL, change->size, change->bytes);
        cursor = change->at;
    }
}

static void change_something(struct story *story)
{
    size_t session = prng_below(&story->prng, SESSIONS), group = prng_below(&story->prng, GROUPS);
    char id[8];

    if (prng_chance(&story->prng, 500)) {
        (void)put(story->frontend, group_names[group]);
    } else if (story->is_member[session][group]) {
        (void)play_withdraw(story->frontend, session + 1, group_names[group]);
        story->is_member[session][group] = false;
    } else {
        (void)snprintf(id, sizeof id, "c%zu", session);
        (void)play_campaign(story->frontend, session + 1, group_names[group], id);
        story->is_member[session][group] = true;
    }
}

static void watch_something(struct story *story)
{
    struct expected *expected = &story->watches[story->count];
    uint64_t now = story->frontend->frontend.table.table.revision;

    expected->wish.watch = story->count;
    (void)snprintf(expected->name, sizeof expected->name, "%s",
                   group_names[prng_below(&story->prng, GROUPS)]);
    switch (prng_below(&story->prng, 3)) {
    case 0:
        expected->wish.group = expected->name;
        break;
    case 1:
        expected->name[prng_below(&story->prng, 3)] = '\0';
        expected->wish.prefix = expected->name;
        break;
    default:
        expected->wish.session = 1 + prng_below(&story->prng, SESSIONS);
        break;
    }
    /* Somewhere in the past, now, or in the future. */
    expected->wish.after = 1 + prng_below(&story->prng, now + 10);
    talk_watch(&story->talkers[story->count % TALKERS], expected->wish);
    story->count++;
}

static bool concerns(struct expected *expected, const Gavel__Change *change)
{
    const struct watch_wish *wish = &expected->wish;
    size_t group = group_of(change->group);
    bool is_own = wish->session != 0 && change->session == wish->session;
    bool is_concerned;

    if (wish->session == 0)
        return change->group[0] &&
               (wish->group ? strcmp(change->group, wish->group) == 0
                            : strncmp(change->group, wish->prefix, strlen(wish->prefix)) == 0);
    if (is_own && change->kind == GAVEL__CHANGE__KIND__JOINED)
        expected->is_member[group] = true;
    is_concerned = is_own || (group < GROUPS && expected->is_member[group]);
    if (is_own && change->kind == GAVEL__CHANGE__KIND__LEFT)
        expected->is_member[group] = false;
    return is_concerned && change->revision > wish->after;
}

/* The next of all changes that concerns it; NULL if there is none. */
static const Gavel__Change *next_of(struct story *story, struct expected *expected)
{
    while (expected->next < story->all_count) {
        const Gavel__Change *change = story->all[expected->next++];
        bool is_concerned = concerns(expected, change);

        if (is_concerned && change->revision > expected->wish.after)
            return change;
    }
    return NULL;
}

static void check_frame(struct story *story, const Gavel__Changes *changes)
{
    for (size_t i = 0; i < changes->n_changes; i++) {
        const Gavel__Change *wanted = next_of(story, &story->watches[changes->watch]);

        if (!wanted)
            fail_msg("watch %d was told of revision %d, which is not its business", (int)changes->watch,
                     (int)changes->changes[i]->revision);
        assert_int_equal(changes->changes[i]->revision, wanted->revision);
        assert_int_equal(changes->changes[i]->part, wanted->part);
        assert_int_equal(changes->changes[i]->kind, wanted->kind);
        assert_string_equal(changes->changes[i]->group, wanted->group);
        if (i + 1 < changes->n_changes)
            assert_true(changes->changes[i + 1]->revision > changes->changes[i]->revision ||
                        changes->changes[i + 1]->part > changes->changes[i]->part);
    }
}

/* How many changes this watch shall be told. */
static size_t count_of(struct story *story, const struct expected *watch)
{
    struct expected copy = *watch;
    size_t count = 0;

    while (next_of(story, &copy))
        count++;
    return count;
}

static void hear_all(struct story *story, size_t which)
{
    struct talker *talker = &story->talkers[which];
    size_t wanted = 0;

    for (size_t i = which; i < story->count; i += TALKERS)
        wanted += count_of(story, &story->watches[i]);
    assert_true(wanted > 0);
    while (wanted > 0) {
        Gavel__ClientFrame *frame = talk_expect(talker, GAVEL__CLIENT_FRAME__WHAT_CHANGES);

        check_frame(story, frame->changes);
        assert_true(frame->changes->n_changes <= wanted);
        wanted -= frame->changes->n_changes;
        client_frame_free(frame);
    }
    for (size_t i = which; i < story->count; i += TALKERS)
        assert_null(next_of(story, &story->watches[i])); /* nothing was left out */
}

static void test_every_change_comes_once_and_in_order(void **state)
{
    struct story *story = calloc(1, sizeof *story);

    assert_non_null(story);
    story->frontend = *state;
    prng_seed(&story->prng, 20261116);
    for (uint64_t i = 1; i <= SESSIONS; i++)
        (void)play_open(story->frontend, i);
    for (size_t i = 0; i < TALKERS; i++)
        begin(&story->talkers[i], story->frontend);
    for (size_t i = 0; i < STEPS; i++) {
        change_something(story);
        if (story->count < WATCHES && i % (STEPS / WATCHES) == 0)
            watch_something(story);
    }
    collect(story);
    for (size_t i = 0; i < TALKERS; i++)
        hear_all(story, i);
    for (size_t i = 0; i < TALKERS; i++) {
        talk_expect_silence(&story->talkers[i]); /* and nothing comes twice */
        talk_end(&story->talkers[i]);
    }
    for (size_t i = 0; i < story->all_count; i++)
        gavel__change__free_unpacked(story->all[i], NULL);
    free(story);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, clients_frontend_setup, clients_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_a_watch_is_told_what_changes_from_now_on),
        WITH(test_a_prefix_is_of_all_that_begin_with_it),
        WITH(test_a_watch_begins_after_the_revision_that_it_names),
        WITH(test_a_watch_may_begin_in_the_future),
        WITH(test_parts_of_a_revision_that_are_known_are_not_told_again),
        WITH(test_what_is_forgotten_is_said_so_and_the_connection_stays),
        WITH(test_a_snapshot_ends_the_watches_that_miss_something),
        WITH(test_a_session_is_told_of_its_groups_and_of_its_end),
        WITH(test_unwatch_ends_a_watch),
        WITH(test_watches_that_cannot_be_are_refused_in_words),
        WITH(test_who_is_elected_is_told_before_many_others),
        WITH(test_of_many_watches_only_those_concerned_are_told),
        WITH(test_there_is_a_limit_to_watches),
        WITH(test_every_change_comes_once_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
