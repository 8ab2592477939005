/* SPDX-License-Identifier: Apache-2.0 */

/* Groups that nobody uses: when the leader of the cluster removes them, and what an operator may. */
#include "frontend_fixture.h"

#include "base/outcome.h"

#define RETENTION_MS 10000
#define RETENTION ns_stretch(MS(RETENTION_MS), DRIFT_PPM)
/* A round of looks, and how coarsely the time of a change is remembered. */
#define LATE (RETENTION / 24 + RETENTION / 32 + MS(100))

static int setup(void **state)
{
    int code = fixture_setup(state);
    struct fixture *f = *state;

    f->frontend.retention = MS(RETENTION_MS);
    return code;
}

static bool has_group(const struct fixture *f, const char *name)
{
    return table_group_find(&f->table, name) != NULL;
}

/* Time goes on, and whatever is proposed is applied. */
static void live_until(struct fixture *f, gavel_ns until)
{
    while (f->now < until) {
        run_until(f, ns_min(f->now + MS(20), until));
        commit(f);
    }
}

static void lead_and_leave(struct fixture *f, const char *group)
{
    must(f, 0, 0, op_claim(f, group, "one", 1, 0));
    must(f, 0, 0, op_release(f, group, "one", 1));
}

/* ---- by time ---- */

static void test_an_idle_group_is_removed_after_the_retention_time(void **state)
{
    struct fixture *f = *state;
    gavel_ns since = f->now;

    lead_and_leave(f, "g");
    live_until(f, since + RETENTION - 1);
    assert_true(has_group(f, "g"));
    live_until(f, since + RETENTION + LATE);
    assert_false(has_group(f, "g"));
    assert_int_equal(f->frontend.counts.removed, 1);
}

static void test_without_a_retention_time_groups_stay(void **state)
{
    struct fixture *f = *state;

    f->frontend.retention = 0;
    lead_and_leave(f, "g");
    live_until(f, f->now + 3 * RETENTION);
    assert_true(has_group(f, "g"));
}

static void test_nothing_is_removed_while_a_member_may_not_know_how(void **state)
{
    struct fixture *f = *state;

    f->frontend.table_version = 1;
    lead_and_leave(f, "g");
    live_until(f, f->now + 3 * RETENTION);
    assert_true(has_group(f, "g"));
    assert_int_equal(f->log_count, 2);
    assert_int_equal(request(f, 0, 0, op_remove(f, "g", false))->results[0]->status, GAVEL_ERR_STATE);
    f->frontend.table_version = TABLE_VERSION;
    live_until(f, f->now + LATE);
    assert_false(has_group(f, "g"));
}

static void test_who_leads_or_has_joined_keeps_the_group(void **state)
{
    struct fixture *f = *state;
    gavel_ns until = f->now + 3 * RETENTION;
    uint64_t id = 1;

    must(f, 7, id++, op_open(f, 7, 1000));
    must(f, 7, id++, op_campaign(f, "led", "a"));
    must(f, 0, 0, op_claim(f, "leased", "one", 1, 0));
    must(f, 0, 0, op_register(f, "joined", "two", 5, 1));
    while (f->now < until) {
        live_until(f, f->now + MS(500));
        assert_int_equal(keep_alive(f, 7)->n_gone, 0);
        must(f, 0, 0, op_renew(f, "leased", "one", 1));
        must(f, 0, 0, op_register(f, "joined", "two", 5, 2));
    }
    assert_true(has_group(f, "led"));
    assert_true(has_group(f, "leased"));
    assert_true(has_group(f, "joined"));
    assert_int_equal(f->frontend.counts.removed, 0);
    /* Now they fall silent. */
    live_until(f, f->now + MS(2000) + RETENTION + 2 * LATE);
    assert_int_equal(f->table.group_count, 0);
    assert_int_equal(f->table.session_count, 0);
}

/* A weekly job may keep its cursor in one. */
static void test_a_group_with_notes_is_not_removed_by_time(void **state)
{
    struct fixture *f = *state;

    lead_and_leave(f, "g");
    must(f, 0, 0, op_put(f, "g", "k", "1"));
    live_until(f, f->now + 5 * RETENTION);
    assert_true(has_group(f, "g"));
    assert_int_equal(f->table.note_count, 1);
    must(f, 0, 0, op_delete(f, "g", "k"));
    live_until(f, f->now + RETENTION - 1);
    assert_true(has_group(f, "g"));
    live_until(f, f->now + LATE);
    assert_false(has_group(f, "g"));
}

static void test_a_stall_does_not_make_idle_groups_stay_longer(void **state)
{
    struct fixture *f = *state;
    gavel_ns since = f->now;

    lead_and_leave(f, "g");
    while (f->now < since + RETENTION) { /* it hardly ever runs */
        f->now += MS(1000);
        frontend_tick(&f->frontend, f->now, true, false, 1);
        flush(f);
        commit(f);
    }
    live_until(f, f->now + LATE);
    assert_false(has_group(f, "g"));
}

static void test_a_new_leader_gives_a_silent_lease_its_whole_time(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    live_until(f, f->now + RETENTION);
    fixture_change_leader(f);
    live_until(f, f->now + RETENTION);
    assert_true(has_group(f, "g"));
    live_until(f, f->now + MS(1100) + LATE);
    assert_false(has_group(f, "g"));
}

static void test_a_renewal_behind_a_removal_is_told_that_the_lease_is_over(void **state)
{
    struct fixture *f = *state;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    while (f->log_count == 1)
        run_until(f, f->now + MS(20));
    /* The end is proposed and not applied: an answer now would promise what the log is about to take away. */
    assert_true(has_group(f, "g"));
    assert_int_equal(request(f, 0, 0, op_renew(f, "g", "one", 1))->results[0]->status, GAVEL_ERR_NOT_HOLDER);
    assert_false(has_group(f, "g"));
}

static void test_who_joins_before_the_removal_is_applied_keeps_the_group(void **state)
{
    struct fixture *f = *state;
    size_t before;

    lead_and_leave(f, "g");
    before = f->log_count;
    must(f, 7, 1, op_open(f, 7, 60000));
    while (f->log_count == before + 1)
        run_until(f, f->now + MS(20));
    assert_int_equal(f->log_count, before + 2);
    /* The removal is in the log; a claim from before it would stand before it there. */
    commit(f);
    assert_false(has_group(f, "g"));
    must(f, 7, 2, op_campaign(f, "g", "a"));
    live_until(f, f->now + MS(200));
    assert_true(group_of(f, "g")->is_held);
}

/* A success of `gavel once`, whose record is to be kept for an hour; NULL: nobody has said how long. */
static void succeed(struct fixture *f, const char *group, const struct outcome *done)
{
    char text[OUTCOME_BYTES];
    Gavel__Op *op;

    must(f, 0, 0, op_claim(f, group, "one", 1, 0));
    op = op_release(f, group, "one", 1);
    op->release->is_done = true;
    if (done)
        outcome_write(done, text);
    if (done)
        op->release->successor = text;
    must(f, 0, 0, op);
}

#define HOUR_MS INT64_C(3600000)

static void test_what_is_done_is_kept_as_long_as_was_said(void **state)
{
    struct fixture *f = *state;

    succeed(f, "once:k", &(struct outcome){.ended_wall_ms = 1, .attempts = 1, .keep_s = 3600});
    f->wall_ms = HOUR_MS;
    live_until(f, f->now + 3 * RETENTION);
    assert_true(has_group(f, "once:k"));
    f->wall_ms = HOUR_MS + 1;
    live_until(f, f->now + RETENTION - 1);
    assert_true(has_group(f, "once:k"));
    live_until(f, f->now + LATE);
    assert_false(has_group(f, "once:k"));
}

static void test_a_wall_clock_that_is_wrong_for_a_while_removes_nothing(void **state)
{
    struct fixture *f = *state;

    succeed(f, "once:k", &(struct outcome){.ended_wall_ms = 1, .attempts = 1, .keep_s = 3600});
    live_until(f, f->now + 3 * RETENTION); /* it is idle for long */
    for (int i = 0; i < 5; i++) {
        f->wall_ms = 90 * 24 * HOUR_MS;
        live_until(f, f->now + RETENTION / 2);
        f->wall_ms = 2;
        live_until(f, f->now + LATE);
        assert_true(has_group(f, "once:k"));
    }
    f->wall_ms = 90 * 24 * HOUR_MS;
    live_until(f, f->now + RETENTION / 2);
    fixture_change_leader(f); /* whose clock is wrong, too, but nobody else has seen that for long */
    live_until(f, f->now + RETENTION - 1);
    assert_true(has_group(f, "once:k"));
}

/* A machine without a battery for its clock boots in 1970. */
static void test_a_record_counts_from_its_mandate_if_the_clock_of_the_work_is_behind(void **state)
{
    struct fixture *f = *state;

    f->wall_ms = 1000 * HOUR_MS;
    succeed(f, "once:k", &(struct outcome){.ended_wall_ms = 1, .attempts = 1, .keep_s = 3600});
    f->wall_ms += HOUR_MS - 1;
    live_until(f, f->now + 3 * RETENTION);
    assert_true(has_group(f, "once:k"));
    f->wall_ms++;
    live_until(f, f->now + RETENTION + LATE);
    assert_false(has_group(f, "once:k"));
}

static void test_what_is_done_is_kept_for_ever_if_nobody_has_said_how_long(void **state)
{
    struct fixture *f = *state;

    succeed(f, "migration", NULL);
    f->wall_ms = 100 * 366 * 24 * HOUR_MS;
    live_until(f, f->now + 5 * RETENTION);
    assert_true(has_group(f, "migration"));
    assert_int_equal(request(f, 0, 0, op_claim(f, "migration", "two", 2, group_of(f, "migration")->version))
                         ->results[0]
                         ->status,
                     GAVEL_ERR_DONE);
}

/* ---- many at once ---- */

#define MANY 200
#define PORTION 64

static char (*many_names(void))[8]
{
    static char names[MANY][8];

    for (unsigned i = 0; i < MANY; i++)
        (void)snprintf(names[i], sizeof names[i], "g%03u", i);
    return names;
}

/* All of them have been idle for the same time: the leader has started again. */
static void test_many_removals_hold_up_nobody(void **state)
{
    struct fixture *f = *state;
    char(*names)[8] = many_names();
    Gavel__Op *put = op_put(f, "used", "k", "v");
    Gavel__Command *command;
    size_t before;

    must(f, 7, 1, op_open(f, 7, 60000));
    for (unsigned i = 0; i < MANY; i++)
        lead_and_leave(f, names[i]);
    run_until(f, f->now + RETENTION - MS(100));
    before = f->log_count;
    while (f->log_count == before) { /* somebody asks for something all the while, and a process dies */
        const Gavel__Op *dead = op_close(f, 7);

        f->now += MS(20);
        f->op_count--;
        f->frontend.ticked_at = f->now;
        frontend_tick(&f->frontend, f->now, true, false, 1);
        if (!frontend_has_batch(&f->frontend))
            continue;
        dead->close_session->ending = GAVEL__ENDING__ENDING_DEAD;
        send_request(f, 0, 0, 1, &put);
        frontend_report_deaths(&f->frontend, f->now, 1, &dead, 1);
        flush(f);
    }
    /* The death is first, then what was in line already, but only a small portion of it. */
    assert_int_equal(f->log_count, before + 3);
    command = command_of(f, before);
    assert_int_equal(command->ops[0]->what_case, GAVEL__OP__WHAT_CLOSE_SESSION);
    gavel__command__free_unpacked(command, NULL);
    command = command_of(f, before + 1);
    assert_int_equal(command->ops[0]->what_case, GAVEL__OP__WHAT_REMOVE_GROUP);
    assert_int_equal(command->n_ops, PORTION);
    gavel__command__free_unpacked(command, NULL);
    /* While it is on its way there is no other. */
    run_until(f, f->now + RETENTION);
    assert_int_equal(f->log_count, before + 3);
    commit(f);
    assert_int_equal(f->frontend.counts.removed, PORTION);
    live_until(f, f->now + LATE);
    assert_int_equal(f->frontend.counts.removed, MANY);
    assert_int_equal(f->table.group_count, 1);
}

static void test_one_request_deletes_only_so_many_notes(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *ops[3];
    Gavel__Op *put = op_put(f, "", "", "v");
    const Gavel__Reply *reply;
    char(*names)[8] = many_names();
    char key[16];

    for (unsigned i = 0; i < 3; i++) {
        ops[i] = op_remove(f, names[i], true);
        put->put_note->group = names[i];
        put->put_note->key = key;
        for (unsigned n = 0; n < TABLE_NOTES_MAX; n++) {
            Gavel__Command command;
            struct table_outcome outcome = {0};

            gavel__command__init(&command);
            (void)snprintf(key, sizeof key, "k%u", n);
            command.ops = &put;
            command.n_ops = 1;
            command.table_version = TABLE_VERSION;
            assert_int_equal(table_apply_command(&f->table, f->table.index + 1, &command, &outcome),
                             GAVEL_OK);
            table_outcome_done(&outcome);
        }
    }
    f->table.index = 0; /* the log of this test begins here */
    reply = request_all(f, 0, 0, 3, ops);
    assert_int_equal(reply->results[0]->status, GAVEL_OK);
    assert_int_equal(reply->results[1]->status, GAVEL_OK);
    assert_int_equal(reply->results[2]->status, GAVEL_ERR_TOO_LARGE);
    assert_non_null(strstr(reply->results[2]->message, "by another request"));
    must(f, 0, 0, op_remove(f, names[2], true));
    assert_int_equal(f->table.note_count, 0);
}

/* The dead of jobs with a date in their name. */
static void test_what_was_heard_of_candidates_goes_with_their_group(void **state)
{
    struct fixture *f = *state;
    char(*names)[8] = many_names();

    for (unsigned i = 0; i < MANY; i++)
        must(f, 0, 0, op_register(f, names[i], "x", 8, 1));
    must(f, 0, 0, op_register(f, "alive", "x", 9, 1));
    assert_int_equal(f->frontend.heard.candidate_count, MANY + 1);
    live_until(f, f->now + RETENTION - MS(500));
    must(f, 0, 0, op_register(f, "alive", "x", 9, 2));
    live_until(f, f->now + MS(500) + 2 * LATE);
    assert_int_equal(f->table.group_count, 1);
    assert_int_equal(f->frontend.heard.candidate_count, 1);
    /* Also what an operator removes. */
    f->frontend.retention = 0;
    live_until(f, f->now + MS(61000));
    must(f, 0, 0, op_remove(f, "alive", false));
    live_until(f, f->now + MS(200));
    assert_int_equal(f->frontend.heard.candidate_count, 0);
}

/* ---- operators ---- */

static void refused(struct fixture *f, Gavel__Op *op, enum gavel_status status, const char *why)
{
    const Gavel__Reply *reply = request(f, 0, 0, op);

    assert_int_equal(reply->status, GAVEL_OK);
    assert_int_equal(reply->results[0]->status, status);
    if (!strstr(reply->results[0]->message, why))
        fail_msg("\"%s\" does not say \"%s\"", reply->results[0]->message, why);
}

static void test_an_operator_removes_what_nobody_uses(void **state)
{
    struct fixture *f = *state;

    refused(f, op_remove(f, "g", false), GAVEL_ERR_NOT_FOUND, "no group \"g\"");
    must(f, 7, 1, op_open(f, 7, 60000));
    must(f, 7, 2, op_campaign(f, "g", "a"));
    refused(f, op_remove(f, "g", true), GAVEL_ERR_STATE, "\"a\" leads group \"g\"");
    must(f, 7, 3, op_withdraw(f, "g"));
    must(f, 0, 0, op_register(f, "g", "b", 5, 1));
    refused(f, op_remove(f, "g", true), GAVEL_ERR_STATE, "\"b\" takes part in group \"g\"");
    must(f, 0, 0, op_leave(f, "g", "b", 5));
    must(f, 0, 0, op_put(f, "g", "k", "v"));
    refused(f, op_remove(f, "g", false), GAVEL_ERR_STATE, "1 note,");
    must(f, 0, 0, op_remove(f, "g", true));
    assert_false(has_group(f, "g"));
}

static void test_an_operator_removes_a_lease_only_when_it_has_run_out(void **state)
{
    struct fixture *f = *state;

    f->frontend.retention = 0;
    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    refused(f, op_remove(f, "g", true), GAVEL_ERR_STATE, "\"one\" leads");
    live_until(f, f->now + MS(1100));
    must(f, 0, 0, op_remove(f, "g", false));
    assert_false(has_group(f, "g"));
}

static void test_work_that_is_done_is_removed_by_force_only(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *op;

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    op = op_release(f, "g", "one", 1);
    op->release->is_done = true;
    must(f, 0, 0, op);
    refused(f, op_remove(f, "g", false), GAVEL_ERR_STATE, "done for good");
    must(f, 0, 0, op_remove(f, "g", true));
}

static void test_a_client_cannot_vouch_for_a_lease(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *op = op_remove(f, "g", true);

    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    op->remove_group->has_lapsed = true;
    assert_int_equal(request(f, 0, 0, op)->status, GAVEL_ERR_INVALID);
    assert_true(has_group(f, "g"));
}

/* A claim over a lease that ran out is on its way: the removal that comes behind it was decided before. */
static void test_a_removal_does_not_end_what_came_before_it_in_the_log(void **state)
{
    struct fixture *f = *state;
    Gavel__Op *take = op_claim(f, "g", "two", 2, 0);
    Gavel__Op *late = op_remove(f, "g", true);
    Gavel__Op *now = op_remove(f, "g", true);

    f->frontend.retention = 0;
    must(f, 0, 0, op_claim(f, "g", "one", 1, 0));
    live_until(f, f->now + MS(1100));
    take->claim->expected_version = group_of(f, "g")->version;
    send_request(f, 0, 0, 1, &take);
    late->remove_group->revision = UINT64_C(1) << 63;
    send_request(f, 0, 0, 1, &late);
    assert_int_equal(last_reply(f)->tag, f->tags); /* without the log */
    assert_int_equal(last_reply(f)->results[0]->status, GAVEL_ERR_INVALID);
    assert_string_equal(group_of(f, "g")->holder, "one"); /* the claim is not applied */
    now->remove_group->revision = f->table.revision;
    send_request(f, 0, 0, 1, &now);
    flush(f);
    commit(f);
    assert_string_equal(group_of(f, "g")->holder, "two");
    assert_true(group_of(f, "g")->is_held);
}

/* ---- ten years ---- */

#define DAY_MS INT64_C(86400000)
#define JOBS 100 /* a day, of five minutes each */
#define DAYS 3650
#define SWEEP_DAYS 10 /* a leader that looks this rarely, so that the test takes seconds */

struct years {
    struct table table;
    struct frontend frontend;
    gavel_ns now;
    int64_t wall_ms;
    uint64_t index;
};

static void apply(struct years *y, Gavel__Op *op)
{
    Gavel__Command command = GAVEL__COMMAND__INIT;
    struct table_outcome outcome = {0};
    enum gavel_status status;

    command.n_ops = 1;
    command.ops = &op;
    command.wall_ms = y->wall_ms;
    command.table_version = TABLE_VERSION;
    status = table_apply_command(&y->table, ++y->index, &command, &outcome);
    assert_int_equal(status, GAVEL_OK);
    assert_int_equal(outcome.results[0].status, GAVEL_OK);
    frontend_applied(&y->frontend, y->now, true, y->index, 1, status, outcome.results, outcome.count);
    table_outcome_done(&outcome);
}

static void do_job(struct years *y, char *name, bool is_done)
{
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Claim claim;
    Gavel__Release release;
    char text[OUTCOME_BYTES] = "";

    gavel__claim__init(&claim);
    claim.group = name;
    claim.holder = (char *)(uintptr_t) "web-1";
    claim.lease_ms = 2000;
    op.what_case = GAVEL__OP__WHAT_CLAIM;
    op.claim = &claim;
    apply(y, &op);
    gavel__release__init(&release);
    release.group = name;
    release.holder = claim.holder;
    release.is_done = is_done;
    if (is_done)
        outcome_write(&(struct outcome){.ended_wall_ms = y->wall_ms + 300000,
                                        .took_ms = 300000,
                                        .attempts = 1,
                                        .keep_s = OUTCOME_KEEP_S},
                      text);
    release.successor = text;
    op.what_case = GAVEL__OP__WHAT_RELEASE;
    op.release = &release;
    apply(y, &op);
}

/* The leader's clock goes on for a while, and what it proposes is applied. */
static void sweep(struct years *y)
{
    struct frontend_batch batch;
    int quiet = 0;

    while (quiet < 40) {
        bool has_some = false;

        y->now += MS(2);
        frontend_tick(&y->frontend, y->now, true, false, y->wall_ms);
        while (frontend_next_batch(&y->frontend, &batch)) {
            uint64_t first = y->index + 1;
            size_t count = batch.count;

            has_some = true;
            frontend_proposed(&y->frontend, GAVEL_OK, first, 1);
            for (size_t i = 0; i < count; i++) {
                struct table_outcome outcome = {0};
                const Gavel__Command *command = frontend_command(&y->frontend, ++y->index, 1, batch.sizes[i]);
                enum gavel_status status = table_apply_command(&y->table, y->index, command, &outcome);

                frontend_applied(&y->frontend, y->now, true, y->index, 1, status, outcome.results,
                                 outcome.count);
                table_outcome_done(&outcome);
            }
        }
        quiet = has_some ? 0 : quiet + 1;
    }
}

/*
 * A hundred jobs a day for ten years, half a million of mandates and more: each is a key of `gavel once`,
 * kept for 90 days, and a group of its own, kept for a day. The real expiry removes them; records of
 * successes at the second look that finds them over.
 */
static void test_jobs_of_ten_years_leave_a_bounded_table(void **state)
{
    static struct years y;
    const size_t bound =
        (size_t)JOBS * (OUTCOME_KEEP_S / 86400 + 2 + 2 * SWEEP_DAYS) + (size_t)JOBS * (2 + SWEEP_DAYS);
    size_t most_groups = 0;
    size_t most_bytes = 0;
    char name[64];

    (void)state;
    y = (struct years){.now = 1000 * NS_PER_S, .wall_ms = INT64_C(1763468400000)};
    frontend_init(&y.frontend, &y.table, DRIFT_PPM);
    y.frontend.retention = ns_from_ms(DAY_MS);
    y.frontend.table_version = TABLE_VERSION;
    frontend_open(&y.frontend, 1, y.now);
    for (int day = 0; day < DAYS; day++) {
        y.now += ns_from_ms(DAY_MS);
        y.wall_ms += DAY_MS;
        for (int job = 0; job < JOBS; job++) {
            (void)snprintf(name, sizeof name, "once:job-%d-%d", day, job);
            do_job(&y, name, true);
            (void)snprintf(name, sizeof name, "job-%d-%d", day, job);
            do_job(&y, name, false);
        }
        most_groups = y.table.group_count > most_groups ? y.table.group_count : most_groups;
        most_bytes = y.table.bytes > most_bytes ? y.table.bytes : most_bytes;
        if (day % SWEEP_DAYS == 0)
            sweep(&y);
    }
    print_message("# %d mandates: at most %zu groups and %zu KiB; revision %llu\n", 2 * JOBS * DAYS,
                  most_groups, most_bytes >> 10, (unsigned long long)y.table.revision);
    assert_true(most_groups <= bound);
    assert_true(most_bytes < 6u << 20);
    assert_true(y.table.group_slots.used <= bound);
    assert_true(y.table.revision < UINT64_C(1) << 22);
    assert_int_equal(y.frontend.counts.removed, (uint64_t)2 * JOBS * DAYS - y.table.group_count);
    frontend_done(&y.frontend);
    table_done(&y.table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_idle_group_is_removed_after_the_retention_time),
        TEST(test_without_a_retention_time_groups_stay),
        TEST(test_nothing_is_removed_while_a_member_may_not_know_how),
        TEST(test_who_leads_or_has_joined_keeps_the_group),
        TEST(test_a_group_with_notes_is_not_removed_by_time),
        TEST(test_a_stall_does_not_make_idle_groups_stay_longer),
        TEST(test_a_new_leader_gives_a_silent_lease_its_whole_time),
        TEST(test_a_renewal_behind_a_removal_is_told_that_the_lease_is_over),
        TEST(test_who_joins_before_the_removal_is_applied_keeps_the_group),
        TEST(test_what_is_done_is_kept_as_long_as_was_said),
        TEST(test_a_wall_clock_that_is_wrong_for_a_while_removes_nothing),
        TEST(test_a_record_counts_from_its_mandate_if_the_clock_of_the_work_is_behind),
        TEST(test_what_is_done_is_kept_for_ever_if_nobody_has_said_how_long),
        TEST(test_many_removals_hold_up_nobody),
        TEST(test_one_request_deletes_only_so_many_notes),
        TEST(test_what_was_heard_of_candidates_goes_with_their_group),
        TEST(test_an_operator_removes_what_nobody_uses),
        TEST(test_an_operator_removes_a_lease_only_when_it_has_run_out),
        TEST(test_work_that_is_done_is_removed_by_force_only),
        TEST(test_a_client_cannot_vouch_for_a_lease),
        TEST(test_a_removal_does_not_end_what_came_before_it_in_the_log),
        cmocka_unit_test(test_jobs_of_ten_years_leave_a_bounded_table),
    };

    return cmocka_run_group_tests_name("removal", tests, NULL, NULL);
}
