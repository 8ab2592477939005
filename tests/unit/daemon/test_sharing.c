/* SPDX-License-Identifier: Apache-2.0 */

/* What threads and processes of a node share: messages, the view, the journal, the shared memory. */
#include "daemon/shared/journal.h"
#include "daemon/shared/mailbox.h"
#include "daemon/shared/shared_memory.h"
#include "daemon/shared/view.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct message {
    struct mail_link link;
    unsigned number;
};

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

#define MESSAGES 20000

static void *put_messages(void *user)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message *message = malloc(sizeof *message);

        assert_non_null(message);
        message->number = i;
        mailbox_put(user, &message->link);
    }
    return NULL;
}

static void test_messages_arrive_in_order_and_none_is_lost(void **state)
{
    struct mailbox box;
    pthread_t thread;
    unsigned next = 0;

    (void)state;
    assert_int_equal(mailbox_init(&box), GAVEL_OK);
    assert_false(is_readable(box.fd));
    assert_int_equal(pthread_create(&thread, NULL, put_messages, &box), 0);
    while (next < MESSAGES) {
        struct pollfd p = {.fd = box.fd, .events = POLLIN};
        struct mail_link *list;

        assert_int_equal(poll(&p, 1, 10000), 1);
        list = next % 2 ? mailbox_take(&box) : mailbox_take_all(&box);
        if (next % 2)
            list->next = NULL;
        while (list) {
            struct message *message = (struct message *)list;

            list = list->next;
            assert_int_equal(message->number, next++);
            free(message);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(is_readable(box.fd));
    mailbox_done(&box);
}

static void test_a_leader_is_named_only_while_its_lease_holds(void **state)
{
    struct view_box *box = calloc(1, sizeof *box);
    struct view *view = calloc(1, sizeof *view);
    struct view_leader leader;

    (void)state;
    assert_non_null(box);
    assert_non_null(view);
    assert_int_equal(view_box_init(box), GAVEL_OK);
    view->id = view->leader = 5;
    view->term = 3;
    view->is_leader = view->is_claimed = true;
    view->deadline = 1000;
    view->member_count = 1;
    view->members[0].id = 5;
    (void)snprintf(view->members[0].name, sizeof view->members[0].name, "n1");
    view_publish(box, view);
    view_leader_read(box, &leader);
    assert_true(view_leader_holds(&leader, 999));
    assert_int_equal(leader.id, 5);
    assert_true(leader.is_self);
    assert_string_equal(leader.name, "n1");
    assert_false(view_leader_holds(&leader, 1000)); /* a copy that is old claims nothing */
    assert_int_equal(leader.term, 3);
    assert_true(view_is_stale(view, 1000));
    view->id = 6; /* we follow it */
    view->heard_at = 2000;
    view->election_max = 300;
    view_publish(box, view);
    view_leader_read(box, &leader);
    assert_true(view_leader_holds(&leader, 2299));
    assert_int_equal(leader.id, 5);
    assert_false(leader.is_self);
    assert_false(view_leader_holds(&leader, 2300));
    view_box_done(box);
    free(box);
    free(view);
}

static void test_events_are_read_in_order_across_restarts(void **state)
{
    struct journal *journal;
    struct journal_entry entry = {.event = JOURNAL_STARTED};
    bool is_missed;
    uint64_t id;

    (void)state;
    assert_int_equal(journal_new(3, &journal), GAVEL_OK);
    assert_int_equal(journal_newest(journal), 0);
    assert_false(journal_next(journal, 0, &entry, NULL));
    for (unsigned i = 0; i < 3; i++) {
        entry.index = i;
        id = journal_put(journal, &entry);
    }
    assert_true(journal_next(journal, 0, &entry, &is_missed));
    assert_false(is_missed);
    assert_int_equal(entry.index, 0);
    assert_true(journal_next(journal, entry.id, &entry, &is_missed));
    assert_int_equal(entry.index, 1);
    assert_false(journal_next(journal, id, &entry, &is_missed));
    assert_true(
        journal_next(journal, UINT64_C(2) << 32 | 77, &entry, &is_missed)); /* of the last incarnation */
    assert_true(is_missed);
    assert_int_equal(entry.index, 0);
    assert_false(journal_next(journal, UINT64_MAX, &entry, &is_missed));
    for (unsigned i = 0; i < 2 * JOURNAL_ENTRIES_KEPT; i++) {
        entry.index = 100 + i;
        id = journal_put(journal, &entry);
    }
    assert_true(journal_next(journal, (UINT64_C(3) << 32) + 1, &entry, &is_missed));
    assert_true(is_missed);
    assert_int_equal(entry.index, 100 + JOURNAL_ENTRIES_KEPT);
    assert_int_equal(journal_newest(journal), id);
    journal_free(journal);
}

static void test_elections_are_listed_newest_first(void **state)
{
    struct journal *journal;
    struct journal_election *list = calloc(JOURNAL_ELECTIONS_KEPT, sizeof *list);
    struct journal_election *one = calloc(1, sizeof *one);

    (void)state;
    assert_non_null(list);
    assert_non_null(one);
    assert_int_equal(journal_new(1, &journal), GAVEL_OK);
    for (unsigned i = 1; i <= JOURNAL_ELECTIONS_KEPT + 5; i++) {
        one->election.term = i;
        journal_put_election(journal, one);
    }
    assert_int_equal(journal_elections(journal, list, 3), 3);
    assert_int_equal(list[0].election.term, JOURNAL_ELECTIONS_KEPT + 5);
    assert_int_equal(list[2].election.term, JOURNAL_ELECTIONS_KEPT + 3);
    assert_int_equal(journal_elections(journal, list, JOURNAL_ELECTIONS_KEPT), JOURNAL_ELECTIONS_KEPT);
    assert_int_equal(list[JOURNAL_ELECTIONS_KEPT - 1].election.term, 6);
    journal_free(journal);
    free(list);
    free(one);
}

static void test_a_mandate_is_read_only_under_its_own_epoch(void **state)
{
    struct shared_memory *memory;
    gavel_ns stop_at, deadline;
    uint64_t first, second;

    (void)state;
    assert_int_equal(shared_memory_new(&memory), GAVEL_OK);
    assert_true(shared_memory_epoch(3, 1, &first));
    assert_true(shared_memory_epoch(3, 2, &second));
    assert_true(second > first);
    assert_true(shared_memory_epoch(4, 1, &second));
    assert_true(second > first);
    assert_false(shared_memory_epoch(3, 1 << 16, &second));
    assert_false(shared_memory_read_mandate(memory, first, &stop_at, &deadline));
    shared_memory_set_mandate(memory, first, 10, 20);
    assert_true(shared_memory_read_mandate(memory, first, &stop_at, &deadline));
    assert_int_equal(stop_at, 10);
    assert_int_equal(deadline, 20);
    assert_false(shared_memory_read_mandate(memory, second, &stop_at, &deadline));
    assert_false(shared_memory_read_mandate(memory, 0, &stop_at, &deadline));
    shared_memory_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_arrive_in_order_and_none_is_lost),
        cmocka_unit_test(test_a_leader_is_named_only_while_its_lease_holds),
        cmocka_unit_test(test_events_are_read_in_order_across_restarts),
        cmocka_unit_test(test_elections_are_listed_newest_first),
        cmocka_unit_test(test_a_mandate_is_read_only_under_its_own_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
