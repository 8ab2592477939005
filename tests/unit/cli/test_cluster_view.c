/* SPDX-License-Identifier: Apache-2.0 */

/* One picture out of what several nodes say: who is believed, who leads, what is wrong. */
#include "cli/cluster/cluster_cli.h"
#include "cli/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a node says of itself; the rest is as of a node that is well. */
struct words {
    const char *cluster; /* NULL: "demo" */
    const char *node;
    const char *leader; /* NULL: null */
    const char *peers;  /* names, one letter and one digit each; NULL: "n1n2n3" */
    const char *silent; /* names of peers that it does not hear; NULL: none */
    const char *awaits; /* name of a peer, and what it says of it; NULL: none */
    const char *why;
    int generation; /* 0: 1; -1: 0, it has joined nothing yet */
    int term;
    int epoch;
    bool is_leader;
    bool has_lease;
    bool is_stale;
    bool is_full;
    bool waits;
    int disk_hangs_ms;  /* 0: it does not */
    int uncommitted_ms; /* of a leader; 0: null */
    bool commits_hang;
};

static json_t *peers_of(const struct words *words)
{
    const char *names = words->peers ? words->peers : "n1n2n3";
    json_t *list = json_array();

    for (; *names; names += 2) {
        char name[3] = {names[0], names[1], '\0'}, address[32];
        bool is_silent = words->silent && strstr(words->silent, name);
        bool is_awaited = words->awaits && strcmp(words->awaits, name) == 0;

        (void)snprintf(address, sizeof address, "10.0.0.%c:7500", names[1]);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:o, s:o}", "id", name, "address",
                                        "10.0.0.1:7400", "api_address", address, "role", "voter", "self",
                                        strcmp(name, words->node) == 0, "healthy", !is_silent,
                                        "last_contact_ms", is_silent ? json_null() : json_integer(12),
                                        "trouble", is_awaited ? json_string(words->why) : json_null()));
    }
    return list;
}

/* A node that answers at 10.0.0.<digit of its name>. */
static void says(struct cluster_view *view, struct words words)
{
    struct cluster_call *call = &view->calls[view->call_count++];

    *call = (struct cluster_call){.status = GAVEL_OK, .code = 200};
    (void)snprintf(call->url, sizeof call->url, "http://10.0.0.%c:7500", words.node[1]);
    call->body = json_pack(
        "{s:s, s:i, s:s, s:i, s:s, s:i, s:o, s:b, s:b, s:o, s:i, s:i, s:i, s:b, s:b, s:b, s:s, s:i, s:o}",
        "cluster", words.cluster ? words.cluster : "demo", "generation",
        words.generation < 0 ? 0
        : words.generation   ? words.generation
                             : 1,
        "node", words.node, "incarnation", 1, "role", words.is_leader ? "leader" : "follower", "term",
        words.term, "leader_id", words.leader ? json_string(words.leader) : json_null(), "is_leader",
        words.is_leader, "has_lease", words.has_lease, "lease_remaining_ms",
        words.has_lease ? json_integer(120) : json_null(), "lease_epoch", words.epoch, "commit", 7, "applied",
        7, "stale", words.is_stale, "disk_full", words.is_full, "waits_for_operator", words.waits,
        "api_address", cluster_url_host(call->url), "pid", 1234, "peers", peers_of(&words));
    assert_non_null(call->body);
    if (words.disk_hangs_ms > 0) /* a node of 0.6.0 has none of these */
        assert_false(json_object_update_new(
            call->body, json_pack("{s:b, s:i}", "disk_hangs", 1, "oldest_write_ms", words.disk_hangs_ms)));
    if (words.commits_hang)
        assert_false(json_object_update_new(
            call->body, json_pack("{s:b, s:o}", "commits_hang", 1, "oldest_uncommitted_ms",
                                  words.uncommitted_ms ? json_integer(words.uncommitted_ms) : json_null())));
}

static void ends_log(struct cluster_view *view, int last, int last_term)
{
    assert_false(json_object_update_new(view->calls[view->call_count - 1].body,
                                        json_pack("{s:i, s:i}", "last", last, "last_term", last_term)));
}

static void is_silent(struct cluster_view *view, const char *url, const char *reason)
{
    struct cluster_call *call = &view->calls[view->call_count++];

    *call = (struct cluster_call){.status = GAVEL_ERR_STORE_UNAVAILABLE};
    (void)snprintf(call->url, sizeof call->url, "%s", url);
    (void)snprintf(call->reason, sizeof call->reason, "%s", reason);
}

static void says_well(struct cluster_view *view)
{
    says(view, (struct words){.node = "n1", .leader = "n2", .term = 4});
    says(view,
         (struct words){
             .node = "n2", .leader = "n2", .term = 4, .epoch = 1, .is_leader = true, .has_lease = true});
    says(view, (struct words){.node = "n3", .leader = "n2", .term = 4});
}

static int set_up(void **state)
{
    *state = calloc(2, sizeof(struct cluster_view));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    struct cluster_view *views = *state;

    cluster_view_done(&views[0]);
    cluster_view_done(&views[1]);
    free(views);
    return 0;
}

static bool has_trouble(const struct cluster_view *view, const char *text)
{
    for (size_t i = 0; i < view->trouble_count; i++)
        if (strstr(view->troubles[i].text, text))
            return true;
    return false;
}

static void test_a_cluster_that_is_well_has_a_leader_and_no_troubles(void **state)
{
    struct cluster_view *view = *state;
    char text[256];

    says_well(view);
    cluster_view_make(view);
    assert_string_equal(cluster_view_leader(view)->name, "n2");
    assert_false(view->is_hearsay);
    assert_int_equal(view->trouble_count, 0);
    assert_int_equal(cluster_exit_code(view), 0);
    assert_string_equal(cluster_headline(view, text, sizeof text),
                        "cluster demo: n2 leads in term 4, lease 120 ms; 3 of 3 healthy");
}

static void test_a_lease_in_a_higher_term_is_believed(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .leader = "n1", .term = 3, .is_leader = true});
    says(view, (struct words){.node = "n2", .leader = "n2", .term = 4, .is_leader = true, .has_lease = true});
    says(view, (struct words){.node = "n3", .term = 5, .is_stale = true});
    cluster_view_make(view);
    assert_string_equal(cluster_view_leader(view)->name, "n2");
    assert_int_equal(view->term, 4);
    assert_true(has_trouble(view, "n1 has role leader in term 3 without a lease"));
    assert_true(has_trouble(view, "n3 knows no leader"));
}

static void test_a_higher_generation_is_believed(void **state)
{
    struct cluster_view *view = *state;

    says(view,
         (struct words){.node = "n1", .leader = "n1", .term = 90, .is_leader = true, .has_lease = true});
    says(view,
         (struct words){
             .node = "n2", .leader = "n2", .term = 4, .generation = 2, .is_leader = true, .has_lease = true});
    cluster_view_make(view);
    assert_string_equal(cluster_view_leader(view)->name, "n2");
    assert_int_equal(view->generation, 2);
    assert_true(has_trouble(view, "n1 is in generation 1, the cluster in 2"));
}

/* Of the two that are no members one is still to come, the other was removed and does not come back. */
static void test_a_node_that_was_removed_is_not_told_to_come_back(void **state)
{
    struct cluster_view *view = *state;

    says_well(view);
    says(view, (struct words){.node = "n4", .term = 4, .generation = -1});
    says(view, (struct words){.node = "n5", .term = 4});
    cluster_view_make(view);
    assert_true(has_trouble(view, "`gavel member add n4 ADDRESS` makes it one"));
    assert_true(has_trouble(view, "n5 is no longer a member of the cluster: stop it"));
    assert_false(has_trouble(view, "member add n5"));
    assert_false(has_trouble(view, "n4 is no longer"));
}

static void test_a_leader_that_is_silent_is_hearsay(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .leader = "n2", .term = 4});
    is_silent(view, "http://10.0.0.2:7500", "nothing listens there");
    cluster_view_make(view);
    assert_string_equal(cluster_view_leader(view)->name, "n2");
    assert_true(view->is_hearsay);
    assert_true(has_trouble(view, "n1 says that n2 leads, which does not answer here"));
    assert_true(has_trouble(view, "n2 (10.0.0.2:7500) does not answer: nothing listens there"));
    assert_int_equal(cluster_exit_code(view), 1);
}

static void test_without_a_leader_that_is_the_worst_of_it(void **state)
{
    struct cluster_view *view = *state;

    is_silent(view, "http://10.0.0.1:7500", "no answer within 2 s");
    says(view, (struct words){.node = "n2", .term = 4, .is_stale = true, .silent = "n1n3"});
    cluster_view_make(view);
    assert_null(cluster_view_leader(view));
    assert_int_equal(view->troubles[0].kind, TROUBLE_NO_LEADER);
    assert_int_equal(cluster_exit_code(view), 3);
    assert_int_equal(view->members, 3);
    assert_int_equal(view->healthy, 0);
}

/* A star of five: n3 hears all, the others hear n3 only. `last` and `last_term` are of the others' logs. */
static void says_star(struct cluster_view *view, int count, int last, int last_term)
{
    static const char *const silent[] = {"n2n4n5", "n1n4n5", "", "n1n2n5", "n1n2n4"};

    for (int i = 0; i < count; i++) {
        char name[3] = {'n', (char)('1' + i), '\0'};

        says(view,
             (struct words){
                 .node = name, .peers = "n1n2n3n4n5", .silent = silent[i], .term = 9, .is_stale = true});
        ends_log(view, i == 2 ? 20 : last, i == 2 ? 4 : last_term);
    }
}

static void test_a_constrained_election_has_its_name(void **state)
{
    struct cluster_view *view = *state;

    says_star(view, 5, 21, 4);
    cluster_view_make(view);
    assert_int_equal(view->troubles[0].kind, TROUBLE_NO_LEADER);
    assert_string_equal(view->troubles[0].text,
                        "nobody can be elected, a constrained election: only n3 reaches a majority of the "
                        "voters, but with an older log than n1, n2, n4, n5, which must not vote for it; "
                        "repair a link between two of those");
    assert_int_equal(cluster_exit_code(view), 3);
}

static void test_the_term_of_the_last_entry_decides_first(void **state)
{
    struct cluster_view *view = *state;

    says_star(view, 5, 12, 5);
    cluster_view_make(view);
    assert_true(has_trouble(view, "constrained"));
}

static void test_a_hub_with_a_log_as_new_is_not_constrained(void **state)
{
    struct cluster_view *view = *state;

    says_star(view, 5, 20, 4);
    cluster_view_make(view);
    assert_false(has_trouble(view, "constrained"));
    assert_true(has_trouble(view, "nobody leads"));
}

static void test_a_silent_node_may_be_the_way_out(void **state)
{
    struct cluster_view *view = *state;

    says_star(view, 4, 21, 4); /* n5 does not answer, but n3 hears it: with n3 and itself it has two */
    is_silent(view, "http://10.0.0.5:7500", "no answer within 2 s");
    cluster_view_make(view);
    assert_true(has_trouble(view, "than n1, n2, n4, which"));

    cluster_view_done(view);
    says_star(view, 3, 21, 4); /* n4 and n5 may hear each other, and vote for n3 besides */
    is_silent(view, "http://10.0.0.4:7500", "no answer within 2 s");
    is_silent(view, "http://10.0.0.5:7500", "no answer within 2 s");
    cluster_view_make(view);
    assert_false(has_trouble(view, "constrained"));
}

static void test_nodes_that_reach_no_majority_are_not_constrained(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .silent = "n2n3", .term = 9, .is_stale = true});
    ends_log(view, 20, 4);
    says(view, (struct words){.node = "n2", .silent = "n1n3", .term = 9, .is_stale = true});
    ends_log(view, 21, 4);
    cluster_view_make(view);
    assert_false(has_trouble(view, "constrained"));
}

/* Nothing is cut off: what to do about it stands at the end. */
static void test_a_member_whose_directory_is_awaited_is_named_with_what_to_do(void **state)
{
    static const char why[] =
        "it has not told its data directory since the upgrade from 0.6.0, so no member is bound to one yet and "
        "a lost one is not noticed: start it with 0.7.0, or gavel member remove it; after 10 minutes of "
        "silence the others are bound without it";
    struct cluster_view *view = *state;
    char line[400];

    says(view, (struct words){.node = "n1", .leader = "n2", .term = 4});
    says(view, (struct words){.node = "n2",
                              .leader = "n2",
                              .term = 4,
                              .epoch = 1,
                              .is_leader = true,
                              .has_lease = true,
                              .awaits = "n3",
                              .why = why});
    says(view, (struct words){.node = "n3", .leader = "n2", .term = 4});
    cluster_view_make(view);
    assert_int_equal(view->trouble_count, 1);
    assert_int_equal(view->troubles[0].kind, TROUBLE_ALERT); /* `gavel check` does not say that all is well */
    (void)snprintf(line, sizeof line, "n2 with n3: %s", why);
    assert_string_equal(view->troubles[0].text, line);
}

static void test_old_nodes_do_not_tell_where_their_logs_end(void **state)
{
    struct cluster_view *view = *state;

    says_star(view, 5, 21, 4);
    for (size_t i = 0; i < view->call_count; i++)
        (void)json_object_del(view->calls[i].body, "last_term");
    cluster_view_make(view);
    assert_false(has_trouble(view, "constrained"));
}

static void test_fail_over_that_waits_for_somebody_says_what_to_do(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .term = 4, .is_stale = true, .waits = true});
    cluster_view_make(view);
    assert_true(
        has_trouble(view, "auto_failover is off: choose a node with `gavel handover --to NODE --force`"));
}

static void test_members_that_nobody_asked_are_listed(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .leader = "n1", .term = 4, .is_leader = true, .has_lease = true});
    cluster_view_make(view);
    assert_int_equal(view->node_count, 3);
    assert_string_equal(view->nodes[2].name, "n3");
    assert_string_equal(view->nodes[2].address, "10.0.0.3:7500");
    assert_string_equal(cluster_node_health(&view->nodes[2]), "silent");
}

static void test_a_node_with_two_addresses_counts_once(void **state)
{
    struct cluster_view *view = *state;

    says_well(view);
    says(view,
         (struct words){
             .node = "n2", .leader = "n2", .term = 4, .epoch = 1, .is_leader = true, .has_lease = true});
    cluster_view_make(view);
    assert_int_equal(view->node_count, 3);
    assert_false(cluster_view_is_suspect(view));
}

static void test_each_way_not_to_be_well_has_a_word(void **state)
{
    struct cluster_view *view = *state;

    says(view,
         (struct words){
             .node = "n1", .leader = "n1", .term = 4, .is_leader = true, .has_lease = true, .silent = "n3"});
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 4, .is_full = true});
    says(view, (struct words){.node = "n3", .leader = "n1", .term = 4});
    cluster_view_make(view);
    assert_string_equal(cluster_node_health(&view->nodes[0]), "ok");
    assert_string_equal(cluster_node_health(&view->nodes[1]), "full");
    assert_string_equal(cluster_node_health(&view->nodes[2]), "cut off");
    assert_true(has_trouble(view, "the disk of n2 is full"));
    assert_true(has_trouble(view, "n3 answers here, but n1 does not hear it"));
    assert_int_equal(view->healthy, 1);
}

static void test_a_disk_that_hangs_is_told(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .leader = "n1", .term = 4, .is_leader = true, .has_lease = true});
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 4, .disk_hangs_ms = 3400});
    says(view, (struct words){.node = "n3", .leader = "n1", .term = 4});
    cluster_view_make(view);
    assert_string_equal(cluster_node_health(&view->nodes[1]), "disk hangs");
    assert_true(has_trouble(view, "the disk of n2 has not answered for 3"));
    assert_int_equal(view->trouble_count, 1);
    assert_int_equal(view->troubles[0].kind, TROUBLE_ALERT);
    assert_int_equal(view->healthy, 2);
}

static void test_commits_that_hang_are_told_once(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1",
                              .leader = "n1",
                              .term = 4,
                              .is_leader = true,
                              .has_lease = true,
                              .commits_hang = true,
                              .uncommitted_ms = 65000});
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 4, .commits_hang = true});
    says(view, (struct words){.node = "n3", .leader = "n1", .term = 4, .commits_hang = true});
    cluster_view_make(view);
    assert_true(has_trouble(view, "nothing has been committed for "));
    assert_int_equal(view->trouble_count, 1);
    assert_int_equal(view->troubles[0].kind, TROUBLE_ALERT);
}

/* Its leader cannot be asked; what it has told the others can. */
static void test_commits_that_hang_are_told_by_a_follower(void **state)
{
    struct cluster_view *view = *state;

    is_silent(view, "http://10.0.0.1:7500", "no answer");
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 4, .commits_hang = true});
    says(view, (struct words){.node = "n3", .leader = "n1", .term = 4, .commits_hang = true});
    cluster_view_make(view);
    assert_true(has_trouble(view, "says that its leader commits nothing"));
}

/* What a node that led in vain has measured of another. */
static void is_too_far(struct cluster_view *view, const char *other, int round_trip_ms)
{
    json_t *body = view->calls[view->call_count - 1].body, *peer;
    size_t position;

    assert_false(
        json_object_update_new(body, json_pack("{s:b, s:i}", "too_far", 1, "lease_round_trip_ms", 89)));
    json_array_foreach(json_object_get(body, "peers"), position, peer) {
        if (strcmp(json_string_value(json_object_get(peer, "id")), other) == 0)
            assert_false(json_object_set_new(peer, "round_trip_ms", json_integer(round_trip_ms)));
    }
}

static void test_distances_that_make_work_impossible_are_named(void **state)
{
    struct cluster_view *view = *state;

    says(view, (struct words){.node = "n1", .leader = "n1", .term = 40, .is_leader = true});
    is_too_far(view, "n2", 95);
    is_too_far(view, "n3", 110);
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 40});
    is_too_far(view, "n1", 95);
    is_too_far(view, "n3", 101);
    says(view, (struct words){.node = "n3", .leader = "n1", .term = 40});
    cluster_view_make(view);
    assert_true(has_trouble(view, "nobody can work: no node reaches a majority of the voters within 89 ms"));
    assert_true(has_trouble(view, "round trips n1–n2 95 ms, n1–n3 110 ms, n2–n3 101 ms; raise promise"));
    assert_int_equal(view->troubles[0].kind, TROUBLE_NO_LEADER);
}

/* They said so of the past, or the one that works has not been asked. */
static void test_distances_do_not_matter_where_somebody_works(void **state)
{
    struct cluster_view *view = *state;

    says_well(view);
    is_too_far(view, "n1", 95);
    cluster_view_make(view);
    assert_int_equal(view->trouble_count, 0);
}

static void test_distances_do_not_matter_while_the_leader_is_silent(void **state)
{
    struct cluster_view *view = *state;

    is_silent(view, "http://10.0.0.1:7500", "no answer");
    says(view, (struct words){.node = "n2", .leader = "n1", .term = 4});
    is_too_far(view, "n3", 95);
    cluster_view_make(view);
    assert_false(has_trouble(view, "nobody can work"));
}

static void test_a_certificate_that_ends_soon_is_told(void **state)
{
    struct cluster_view *view = *state;

    says_well(view);
    view->wall_ms = INT64_C(1000000000000);
    view->calls[0].certificate_ends_s = 1000000000 + 15 * 24 * 3600;
    view->calls[1].certificate_ends_s = 1000000000 + 13 * 24 * 3600;
    cluster_view_make(view);
    assert_int_equal(view->trouble_count, 1);
    assert_true(has_trouble(view, "the certificate of n2 ends in 13 d"));
}

static void two_leases(struct cluster_view *view, int term, int epoch)
{
    says(view, (struct words){.node = "n1",
                              .leader = "n1",
                              .term = term,
                              .epoch = epoch,
                              .is_leader = true,
                              .has_lease = true});
    says(view,
         (struct words){
             .node = "n2", .leader = "n2", .term = 9, .epoch = 1, .is_leader = true, .has_lease = true});
    cluster_view_make(view);
}

static void test_two_leases_in_one_look_may_be_a_hand_over(void **state)
{
    struct cluster_view *views = *state;
    const struct cluster_node *one, *other;

    two_leases(&views[0], 4, 1);
    assert_true(cluster_view_is_suspect(&views[0]));
    assert_false(cluster_view_split(&views[0], NULL, &one, &other));
}

static void test_two_leases_that_go_on_are_split_brain(void **state)
{
    struct cluster_view *views = *state;
    const struct cluster_node *one, *other;

    two_leases(&views[0], 4, 1);
    two_leases(&views[1], 4, 1);
    assert_true(cluster_view_split(&views[1], &views[0], &one, &other));
    assert_string_equal(one->name, "n1");
    assert_string_equal(other->name, "n2");
}

/* Between the looks it may have been without one: nothing says that they overlapped. */
static void test_a_lease_of_another_epoch_is_not_the_same_lease(void **state)
{
    struct cluster_view *views = *state;
    const struct cluster_node *one, *other;

    two_leases(&views[0], 4, 1);
    two_leases(&views[1], 4, 2);
    assert_false(cluster_view_split(&views[1], &views[0], &one, &other));
}

static void test_two_leaders_of_one_term_need_no_second_look(void **state)
{
    struct cluster_view *view = *state;
    const struct cluster_node *one, *other;

    says(view, (struct words){.node = "n1", .leader = "n1", .term = 4, .is_leader = true});
    says(view, (struct words){.node = "n3", .leader = "n3", .term = 4, .is_leader = true});
    cluster_view_make(view);
    assert_true(cluster_view_split(view, NULL, &one, &other));
    assert_string_equal(other->name, "n3");
}

static void test_leaders_of_two_generations_are_split_brain(void **state)
{
    struct cluster_view *views = *state;
    const struct cluster_node *one, *other;

    for (int i = 0; i < 2; i++) {
        says(&views[i], (struct words){.node = "n1", .leader = "n1", .term = 4, .is_leader = true});
        says(&views[i],
             (struct words){.node = "n2", .leader = "n2", .term = 7, .generation = 2, .is_leader = true});
        cluster_view_make(&views[i]);
    }
    assert_false(cluster_view_split(&views[0], NULL, &one, &other));
    assert_true(cluster_view_split(&views[1], &views[0], &one, &other));
}

static void test_another_cluster_may_lead_as_it_likes(void **state)
{
    struct cluster_view *view = *state;

    says_well(view);
    says(view, (struct words){.node = "x9",
                              .cluster = "other",
                              .leader = "x9",
                              .term = 4,
                              .peers = "x9",
                              .is_leader = true,
                              .has_lease = true});
    cluster_view_make(view);
    assert_string_equal(view->cluster, "demo");
    assert_true(has_trouble(view, "x9 belongs to the cluster \"other\""));
    assert_false(cluster_view_is_suspect(view));
}

/* Prints the picture for a terminal of this many columns; the caller frees. */
static char *printed(const struct cluster_view *view, size_t columns)
{
    const struct cli cli = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);

    assert_non_null(memory);
    cluster_print(&cli, view, memory, columns);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static void test_the_table_marks_the_leader_and_fits_80_columns(void **state)
{
    struct cluster_view *view = *state;
    char *text, *rest = NULL;

    says(view, (struct words){.node = "n1", .leader = "n2", .term = 4});
    says(view,
         (struct words){
             .node = "n2", .leader = "n2", .term = 4, .is_leader = true, .has_lease = true, .silent = "n3"});
    is_silent(view, "http://10.0.0.3:7500", "nothing listens there");
    cluster_view_make(view);
    text = printed(view, 80);
    assert_non_null(
        strstr(text, "\n* n2    leader    4     120 ms  7       7        -      ok      10.0.0.2:7500\n"));
    assert_non_null(
        strstr(text, "\n  n1    follower  4     -       7       7        12 ms  ok      10.0.0.1:7500\n"));
    assert_non_null(
        strstr(text, "\n  n3    voter     -     -       -       -        -      silent  10.0.0.3:7500\n"));
    assert_non_null(strstr(text, "! n3 (10.0.0.3:7500) does not answer: nothing listens there\n"));
    for (const char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        assert_true(text_columns(line) <= 80);
    free(text);
}

/* An operator who has lost the majority has to find the newest log: by `term` or `commit` that is another
 * node. */
static void test_status_tells_where_each_log_ends(void **state)
{
    struct cluster_view *view = *state;
    json_t *json, *nodes, *node;
    char *text;

    says(view, (struct words){.node = "n1", .term = 9, .peers = "n1n2n3n4"});
    ends_log(view, 12, 4);
    says(view, (struct words){.node = "n2", .term = 6, .peers = "n1n2n3n4"});
    ends_log(view, 11, 6);
    says(view, (struct words){.node = "n3", .term = 6, .peers = "n1n2n3n4"}); /* a node of 0.6.0 */
    is_silent(view, "http://10.0.0.4:7500", "nothing listens there");
    cluster_view_make(view);

    json = cluster_json(view);
    nodes = json_object_get(json, "nodes");
    node = json_array_get(nodes, 0);
    assert_int_equal(json_integer_value(json_object_get(node, "last_term")), 4);
    assert_int_equal(json_integer_value(json_object_get(node, "last")), 12);
    node = json_array_get(nodes, 1);
    assert_int_equal(json_integer_value(json_object_get(node, "last_term")), 6);
    assert_int_equal(json_integer_value(json_object_get(node, "last")), 11);
    for (size_t i = 2; i < 4; i++) {
        node = json_array_get(nodes, i);
        assert_true(json_is_null(json_object_get(node, "last_term")));
        assert_true(json_is_null(json_object_get(node, "last")));
    }
    json_decref(json);

    text = printed(view, 120);
    assert_non_null(strstr(text, "  ADDRESS        LAST ENTRY\n"));
    assert_non_null(strstr(text, "  10.0.0.1:7500  term 4, index 12\n"));
    assert_non_null(strstr(text, "  10.0.0.2:7500  term 6, index 11\n"));
    assert_non_null(strstr(text, "  10.0.0.3:7500  -\n"));
    free(text);
}

static void test_answers_that_make_no_sense_do_no_harm(void **state)
{
    struct cluster_view *view = *state;
    static const char *const bodies[] = {"{}", "{\"node\":7}",
                                         "{\"node\":\"n1\",\"peers\":[1,{},{\"id\":null}]}",
                                         "{\"node\":\"n2\",\"peers\":{\"id\":\"n1\"},\"term\":\"x\"}"};

    for (size_t i = 0; i < 4; i++) {
        struct cluster_call *call = &view->calls[view->call_count++];

        *call =
            (struct cluster_call){.status = GAVEL_OK, .code = 200, .body = json_loads(bodies[i], 0, NULL)};
        (void)snprintf(call->url, sizeof call->url, "http://10.0.0.%zu:7500", i);
    }
    cluster_view_make(view);
    assert_int_equal(view->node_count, 4);
    assert_true(has_trouble(view, "its answer has no node name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH_VIEWS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        WITH_VIEWS(test_a_cluster_that_is_well_has_a_leader_and_no_troubles),
        WITH_VIEWS(test_a_lease_in_a_higher_term_is_believed),
        WITH_VIEWS(test_a_higher_generation_is_believed),
        WITH_VIEWS(test_a_node_that_was_removed_is_not_told_to_come_back),
        WITH_VIEWS(test_a_leader_that_is_silent_is_hearsay),
        WITH_VIEWS(test_without_a_leader_that_is_the_worst_of_it),
        WITH_VIEWS(test_a_constrained_election_has_its_name),
        WITH_VIEWS(test_the_term_of_the_last_entry_decides_first),
        WITH_VIEWS(test_a_hub_with_a_log_as_new_is_not_constrained),
        WITH_VIEWS(test_a_silent_node_may_be_the_way_out),
        WITH_VIEWS(test_nodes_that_reach_no_majority_are_not_constrained),
        WITH_VIEWS(test_a_member_whose_directory_is_awaited_is_named_with_what_to_do),
        WITH_VIEWS(test_old_nodes_do_not_tell_where_their_logs_end),
        WITH_VIEWS(test_fail_over_that_waits_for_somebody_says_what_to_do),
        WITH_VIEWS(test_members_that_nobody_asked_are_listed),
        WITH_VIEWS(test_a_node_with_two_addresses_counts_once),
        WITH_VIEWS(test_each_way_not_to_be_well_has_a_word),
        WITH_VIEWS(test_commits_that_hang_are_told_by_a_follower),
        WITH_VIEWS(test_commits_that_hang_are_told_once),
        WITH_VIEWS(test_a_disk_that_hangs_is_told),
        WITH_VIEWS(test_distances_that_make_work_impossible_are_named),
        WITH_VIEWS(test_distances_do_not_matter_where_somebody_works),
        WITH_VIEWS(test_distances_do_not_matter_while_the_leader_is_silent),
        WITH_VIEWS(test_a_certificate_that_ends_soon_is_told),
        WITH_VIEWS(test_two_leases_in_one_look_may_be_a_hand_over),
        WITH_VIEWS(test_two_leases_that_go_on_are_split_brain),
        WITH_VIEWS(test_a_lease_of_another_epoch_is_not_the_same_lease),
        WITH_VIEWS(test_two_leaders_of_one_term_need_no_second_look),
        WITH_VIEWS(test_leaders_of_two_generations_are_split_brain),
        WITH_VIEWS(test_another_cluster_may_lead_as_it_likes),
        WITH_VIEWS(test_the_table_marks_the_leader_and_fits_80_columns),
        WITH_VIEWS(test_status_tells_where_each_log_ends),
        WITH_VIEWS(test_answers_that_make_no_sense_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
