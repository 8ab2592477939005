/* SPDX-License-Identifier: Apache-2.0 */

/* A leader of a cluster that comes from 0.6.0 says for whose data directory it waits: in the journal, in the
 * log and in what `gavel check` reads. */
#include "daemon/node/consensus.h"
#include "net/internal.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SELF = 1, TOLD = 2, SILENT = 3 };

struct stage {
    struct consensus consensus;
    struct daemon_config config;
    struct node_shared shared;
    struct transport transport; /* without links */
    int log_fd;
};

/* n1 leads n1, n2 and n3, and n3 has not told its data directory. */
static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct consensus *c = &stage->consensus;
    struct node_addresses *addresses = &c->node.members.addresses;
    const struct log log = {.level = LOG_INFO, .format = LOG_LOGFMT, .fd = memfd_create("log", MFD_CLOEXEC)};

    assert_true(log.fd >= 0);
    stage->log_fd = log.fd;
    assert_int_equal(journal_new(1, &stage->shared.journal), GAVEL_OK);
    assert_int_equal(logger_start(&c->logger, &log, false), GAVEL_OK);
    stage->config.id = SELF;
    c->config = &stage->config;
    c->shared = &stage->shared;
    c->transport = &stage->transport;
    c->node.raft.state.id = SELF;
    c->node.raft.role = RAFT_LEADER;
    c->node.raft.led_from = clock_now() - 61 * NS_PER_S;
    c->node.raft.config.count = 3;
    for (raft_id id = SELF; id <= SILENT; id++) {
        c->node.raft.config.members[id - 1] = (struct raft_member){.id = id, .is_voter = true};
        addresses->entries[id - 1].id = id;
        (void)snprintf(addresses->entries[id - 1].name, sizeof addresses->entries->name, "n%d", (int)id);
    }
    addresses->count = 3;
    c->node.raft.peer_count = 2;
    c->node.raft.peers[0] = (struct raft_peer){.id = TOLD, .directory = 77};
    c->node.raft.peers[1] = (struct raft_peer){.id = SILENT};
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;

    logger_stop(&stage->consensus.logger);
    journal_free(stage->shared.journal);
    (void)close(stage->log_fd); /* only read */
    free(stage);
    return 0;
}

/* How many events of that kind there are; the newest. */
static int events(struct stage *stage, struct journal_entry *ret_newest)
{
    struct journal_entry entry = {0};
    bool has_missed = false;
    int count = 0;

    while (journal_next(stage->shared.journal, entry.id, &entry, &has_missed)) {
        if (entry.event != JOURNAL_DIRECTORY_AWAITED)
            continue;
        *ret_newest = entry;
        count++;
    }
    return count;
}

static void test_after_a_minute_it_says_for_whom_it_waits(void **state)
{
    struct stage *stage = *state;
    struct journal_entry entry;
    char log[4096] = {0};

    consensus_check_bindings(&stage->consensus);
    consensus_check_bindings(&stage->consensus); /* once is enough */
    assert_int_equal(events(stage, &entry), 1);
    assert_string_equal(entry.node, "n3");
    assert_string_equal(entry.text, CONSENSUS_AWAITED_TEXT); /* the whole of it, with what to do */
    logger_stop(&stage->consensus.logger);
    assert_true(pread(stage->log_fd, log, sizeof log - 1, 0) > 0);
    assert_non_null(strstr(log, "level=warning msg=directory_awaited node=n3"));
    assert_null(strstr(log, "node=n2"));
}

/* `gavel check` reads this from /status. */
static void test_at_once_it_shows_as_the_trouble_of_that_member(void **state)
{
    struct stage *stage = *state;
    const struct view_member *members = stage->consensus.draft.members;

    stage->consensus.node.raft.led_from = clock_now();
    consensus_refresh_members(&stage->consensus);
    assert_string_equal(members[SILENT - 1].trouble, CONSENSUS_AWAITED_TEXT);
    assert_string_equal(members[TOLD - 1].trouble, "");
    assert_string_equal(members[SELF - 1].trouble, "");
}

static void test_a_rolling_upgrade_is_not_told(void **state)
{
    struct stage *stage = *state;
    struct journal_entry entry;

    stage->consensus.node.raft.led_from = clock_now() - 30 * NS_PER_S;
    consensus_check_bindings(&stage->consensus);
    assert_int_equal(events(stage, &entry), 0);
}

static void test_who_does_not_lead_or_is_bound_waits_for_nobody(void **state)
{
    struct stage *stage = *state;
    struct journal_entry entry;

    stage->consensus.node.raft.role = RAFT_FOLLOWER;
    consensus_check_bindings(&stage->consensus);
    stage->consensus.node.raft.role = RAFT_LEADER;
    stage->consensus.node.raft.config.binds = true;
    consensus_check_bindings(&stage->consensus);
    assert_int_equal(events(stage, &entry), 0);
}

static void test_the_next_leading_tells_it_again(void **state)
{
    struct stage *stage = *state;
    struct journal_entry entry;

    consensus_check_bindings(&stage->consensus);
    stage->consensus.node.raft.role = RAFT_FOLLOWER;
    consensus_check_bindings(&stage->consensus);
    stage->consensus.node.raft.role = RAFT_LEADER;
    consensus_check_bindings(&stage->consensus);
    assert_int_equal(events(stage, &entry), 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_after_a_minute_it_says_for_whom_it_waits),
        CASE(test_at_once_it_shows_as_the_trouble_of_that_member),
        CASE(test_a_rolling_upgrade_is_not_told),
        CASE(test_who_does_not_lead_or_is_bound_waits_for_nobody),
        CASE(test_the_next_leading_tells_it_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
