/* SPDX-License-Identifier: Apache-2.0 */

#include "table_fixture.h"

#include "allocator.h"

int table_fixture_setup(void **state)
{
    struct table_fixture *fixture = calloc(1, sizeof *fixture);

    if (!fixture)
        return -1;
    fixture->wall_ms = 5000;
    fixture->version = TABLE_VERSION;
    *state = fixture;
    return table_keep_history(&fixture->table) == GAVEL_OK ? 0 : -1;
}

int table_fixture_teardown(void **state)
{
    struct table_fixture *fixture = *state;

    if (fixture->change)
        gavel__change__free_unpacked(fixture->change, NULL);
    table_done(&fixture->table);
    free(fixture);
    return 0;
}

char *mutable(const char *string) { return (char *)(uintptr_t)string; }

/* Applies it with ever more memory; each failure must have left everything as it was. */
static enum gavel_status apply_in_need(struct table *table, const uint8_t *bytes, size_t size,
                                       struct table_outcome *ret_outcome)
{
    const uint64_t digest = table_digest(table);
    const uint64_t index = table->index;
    const size_t weight = table->bytes;

    for (uint64_t fail_after = 0;; fail_after++) {
        enum gavel_status status;

        assert_true(fail_after < 1000);
        allocator.fail_after = fail_after;
        status = table_apply_ops(table, index + 1, bytes, size, ret_outcome);
        allocator.fail_after = UINT64_MAX;
        if (status != GAVEL_ERR_NO_MEMORY)
            return status;
        assert_int_equal(table_digest(table), digest);
        assert_int_equal(table->index, index);
        assert_int_equal(table->bytes, weight);
    }
}

enum gavel_status apply_ops(struct table_fixture *fixture, uint64_t session, uint64_t id, Gavel__Op **ops,
                            size_t count, struct table_result **ret_results, size_t *ret_count)
{
    Gavel__Command command;
    const struct table_session *open = session != 0 ? table_session_find(&fixture->table, session) : NULL;
    struct table_outcome outcome = {0};
    enum gavel_status status;
    uint8_t *bytes;
    size_t size;

    gavel__command__init(&command);
    command.session = session;
    command.id = id;
    if (session != 0 && id == 0)
        command.id = open ? open->last_id + 1 : 1;
    command.wall_ms = fixture->wall_ms++;
    command.generation = fixture->generation;
    command.table_version = fixture->version;
    command.session_revision = fixture->session_revision;
    command.ops = ops;
    command.n_ops = count;
    assert_int_equal(table_ops_encode(&command, &bytes, &size), GAVEL_OK);
    if (fixture->is_in_need)
        status = apply_in_need(&fixture->table, bytes, size, &outcome);
    else
        status = table_apply_ops(&fixture->table, fixture->table.index + 1, bytes, size, &outcome);
    free(bytes);
    free(outcome.processes);
    *ret_results = outcome.results;
    *ret_count = outcome.count;
    return status;
}

enum gavel_status apply_op(struct table_fixture *fixture, uint64_t session, uint64_t id, Gavel__Op *op)
{
    struct table_result *results;
    size_t count;
    enum gavel_status status = apply_ops(fixture, session, id, &op, 1, &results, &count);

    fixture->result = (struct table_result){0};
    if (status == GAVEL_OK) {
        assert_int_equal(count, 1);
        fixture->result = results[0];
        status = results[0].status;
    }
    free(results);
    return status;
}

#define OP(NAME, CASE)                                                                                       \
    Gavel__Op op;                                                                                            \
    gavel__op__init(&op);                                                                                    \
    op.what_case = GAVEL__OP__WHAT_##CASE;                                                                   \
    op.NAME = &message

enum gavel_status open_session(struct table_fixture *fixture, uint64_t session)
{
    Gavel__OpenSession message;

    gavel__open_session__init(&message);
    message.session = session;
    message.ttl_ms = 2000;
    message.name = mutable("test");
    OP(open_session, OPEN_SESSION);
    return apply_op(fixture, session, 0, &op);
}

enum gavel_status close_session(struct table_fixture *fixture, uint64_t session, Gavel__Ending ending)
{
    return close_part(fixture, session, ending, 0);
}

enum gavel_status close_part(struct table_fixture *fixture, uint64_t session, Gavel__Ending ending,
                             uint32_t groups_max)
{
    Gavel__CloseSession message;

    gavel__close_session__init(&message);
    message.session = session;
    message.ending = ending;
    message.groups_max = groups_max;
    OP(close_session, CLOSE_SESSION);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status campaign_as(struct table_fixture *fixture, uint64_t session, Gavel__Campaign *campaign)
{
    Gavel__Campaign message = *campaign;

    OP(campaign, CAMPAIGN);
    return apply_op(fixture, session, 0, &op);
}

enum gavel_status campaign_with(struct table_fixture *fixture, uint64_t session, const char *group,
                                const char *id, int priority, Gavel__Policy policy, bool preempts)
{
    Gavel__Campaign message;

    gavel__campaign__init(&message);
    message.group = mutable(group);
    message.id = mutable(id);
    message.address = mutable("here");
    message.priority = priority;
    message.policy = policy;
    message.preempts = preempts;
    return campaign_as(fixture, session, &message);
}

enum gavel_status campaign(struct table_fixture *fixture, uint64_t session, const char *group, const char *id)
{
    return campaign_with(fixture, session, group, id, 0, GAVEL__POLICY__POLICY_UNSET, false);
}

enum gavel_status withdraw_as(struct table_fixture *fixture, uint64_t session, Gavel__Withdraw *withdrawal)
{
    Gavel__Withdraw message = *withdrawal;

    OP(withdraw, WITHDRAW);
    return apply_op(fixture, session, 0, &op);
}

enum gavel_status withdraw(struct table_fixture *fixture, uint64_t session, const char *group, uint64_t epoch,
                           bool stays)
{
    Gavel__Withdraw message;

    gavel__withdraw__init(&message);
    message.group = mutable(group);
    message.epoch = epoch;
    message.stays = stays;
    return withdraw_as(fixture, session, &message);
}

enum gavel_status claim(struct table_fixture *fixture, const char *group, const char *holder, uint64_t nonce,
                        uint64_t version, uint64_t epoch_at_least)
{
    Gavel__Process process;
    Gavel__Claim message;

    gavel__process__init(&process);
    process.pid = 77;
    process.boot_id = mutable("boot");
    gavel__claim__init(&message);
    message.group = mutable(group);
    message.holder = mutable(holder);
    message.address = mutable("there");
    message.nonce_high = nonce;
    message.nonce_low = ~nonce;
    message.lease_ms = 3000;
    message.expected_version = version;
    message.epoch_at_least = epoch_at_least;
    message.process = &process;
    OP(claim, CLAIM);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status renew(struct table_fixture *fixture, const char *group, const char *holder, uint64_t nonce,
                        uint64_t epoch, int64_t lease_ms)
{
    Gavel__Renew message;

    gavel__renew__init(&message);
    message.group = mutable(group);
    message.holder = mutable(holder);
    message.nonce_high = nonce;
    message.nonce_low = ~nonce;
    message.epoch = epoch;
    message.lease_ms = lease_ms;
    OP(renew, RENEW);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status release(struct table_fixture *fixture, const char *group, const char *holder,
                          uint64_t nonce, uint64_t epoch, const char *successor, bool is_done)
{
    Gavel__Release message;

    gavel__release__init(&message);
    message.group = mutable(group);
    message.holder = mutable(holder);
    message.nonce_high = nonce;
    message.nonce_low = ~nonce;
    message.epoch = epoch;
    message.successor = mutable(successor);
    message.is_done = is_done;
    OP(release, RELEASE);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status release_dead(struct table_fixture *fixture, const char *group, uint64_t epoch)
{
    Gavel__Release message;

    gavel__release__init(&message);
    message.group = mutable(group);
    message.epoch = epoch;
    message.is_dead = true;
    OP(release, RELEASE);
    return apply_op(fixture, 0, 0, &op);
}

static enum gavel_status wish_of(struct table_fixture *fixture, const char *group, uint64_t epoch,
                                 const char *successor, bool is_over)
{
    Gavel__Wish message;

    gavel__wish__init(&message);
    message.group = mutable(group);
    message.epoch = epoch;
    message.successor = mutable(successor);
    message.timeout_ms = 100;
    message.is_over = is_over;
    OP(wish, WISH);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status wish(struct table_fixture *fixture, const char *group, uint64_t epoch,
                       const char *successor)
{
    return wish_of(fixture, group, epoch, successor, false);
}

enum gavel_status wish_over(struct table_fixture *fixture, const char *group, uint64_t epoch)
{
    return wish_of(fixture, group, epoch, "", true);
}

enum gavel_status reopen(struct table_fixture *fixture, const char *group, uint64_t version)
{
    Gavel__Reopen message;

    gavel__reopen__init(&message);
    message.group = mutable(group);
    message.expected_version = version;
    OP(reopen, REOPEN);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status lapse(struct table_fixture *fixture, const char *group, uint64_t epoch)
{
    Gavel__Lapse message;

    gavel__lapse__init(&message);
    message.group = mutable(group);
    message.epoch = epoch;
    OP(lapse, LAPSE);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status register_candidate(struct table_fixture *fixture, const char *group, const char *id,
                                     uint64_t instance, uint64_t replaces)
{
    Gavel__Register message;

    gavel__register__init(&message);
    message.group = mutable(group);
    message.id = mutable(id);
    message.instance = instance;
    message.replaces_instance = replaces;
    message.address = mutable("doorbell");
    OP(register_candidate, REGISTER_CANDIDATE);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status leave(struct table_fixture *fixture, const char *group, const char *id, uint64_t instance)
{
    Gavel__Leave message;

    gavel__leave__init(&message);
    message.group = mutable(group);
    message.id = mutable(id);
    message.instance = instance;
    OP(leave, LEAVE);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status put_note(struct table_fixture *fixture, const char *group, const char *key,
                           const char *value, uint64_t epoch, uint64_t expected)
{
    Gavel__PutNote message;

    gavel__put_note__init(&message);
    message.group = mutable(group);
    message.key = mutable(key);
    message.value.data = (uint8_t *)mutable(value);
    message.value.len = strlen(value);
    message.epoch = epoch;
    message.has_expected = expected != UINT64_MAX;
    message.expected = message.has_expected ? expected : 0;
    OP(put_note, PUT_NOTE);
    return apply_op(fixture, 0, 0, &op);
}

enum gavel_status delete_note(struct table_fixture *fixture, const char *group, const char *key,
                              uint64_t epoch, uint64_t expected)
{
    Gavel__DeleteNote message;

    gavel__delete_note__init(&message);
    message.group = mutable(group);
    message.key = mutable(key);
    message.epoch = epoch;
    message.has_expected = expected != UINT64_MAX;
    message.expected = message.has_expected ? expected : 0;
    OP(delete_note, DELETE_NOTE);
    return apply_op(fixture, 0, 0, &op);
}

struct table_group *group_named(struct table_fixture *fixture, const char *name)
{
    struct table_group *group = table_group_find(&fixture->table, name);

    assert_non_null(group);
    return group;
}

uint64_t assert_leader(struct table_fixture *fixture, const char *name, const char *holder)
{
    const struct table_group *group = group_named(fixture, name);

    assert_int_equal(group->is_held, holder != NULL);
    if (holder)
        assert_string_equal(group->holder, holder);
    return group->epoch;
}

static const struct table_change *change_after(struct table_fixture *fixture)
{
    const struct table_change *change = NULL;

    assert_int_equal(table_history_after(&fixture->table, fixture->cursor, &change), GAVEL_OK);
    return change;
}

const Gavel__Change *next_change(struct table_fixture *fixture, Gavel__Change__Kind kind, const char *group,
                                 const char *holder)
{
    const struct table_change *packed = change_after(fixture);

    assert_non_null(packed);
    fixture->cursor = packed->at;
    if (fixture->change)
        gavel__change__free_unpacked(fixture->change, NULL);
    fixture->change = gavel__change__unpack(NULL, packed->size, packed->bytes);
    assert_non_null(fixture->change);
    assert_int_equal(fixture->change->kind, kind);
    assert_int_equal(packed->kind, kind);
    assert_string_equal(fixture->change->group, group);
    assert_string_equal(packed->group, group);
    assert_string_equal(fixture->change->holder, holder);
    assert_int_equal(fixture->change->revision, packed->at.revision);
    assert_int_equal(fixture->change->part, packed->at.part);
    assert_int_equal(fixture->change->session, packed->session);
    return fixture->change;
}

void assert_no_change(struct table_fixture *fixture) { assert_null(change_after(fixture)); }

void assert_same_table(const struct table *a, const struct table *b)
{
    uint8_t *bytes_a;
    uint8_t *bytes_b;
    size_t size_a;
    size_t size_b;

    assert_int_equal(table_digest(a), table_digest(b));
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(table_snapshot_encode(a, &bytes_a, &size_a), GAVEL_OK);
    assert_int_equal(table_snapshot_encode(b, &bytes_b, &size_b), GAVEL_OK);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(bytes_a);
    free(bytes_b);
}
