/* SPDX-License-Identifier: Apache-2.0 */

#include "frontend_fixture.h"

static enum gavel_status propose(struct fixture *f, const struct frontend_batch *batch)
{
    if (f->propose_status)
        return f->propose_status;
    for (size_t i = 0; i < batch->count; i++) {
        assert_true(f->log_count < LOG_MAX);
        f->log[f->log_count].bytes = malloc(batch->sizes[i]);
        memcpy(f->log[f->log_count].bytes, batch->commands[i], batch->sizes[i]);
        f->log[f->log_count].size = batch->sizes[i];
        f->log[f->log_count++].term = f->term;
    }
    return GAVEL_OK;
}

void collect(struct fixture *f)
{
    struct frontend_reply *reply;
    const char *reason;

    while ((reply = frontend_take_reply(&f->frontend))) {
        assert_true(f->reply_count < REPLIES_MAX);
        f->tickets[f->reply_count] = reply->ticket;
        f->replies[f->reply_count] = NULL; /* where memory is short, it may be this that there is none for */
        assert_int_not_equal(client_frame_unpack(reply->bytes + CLIENT_LENGTH_BYTES,
                                                 reply->size - CLIENT_LENGTH_BYTES,
                                                 &f->replies[f->reply_count], &reason),
                             GAVEL_ERR_INVALID);
        f->reply_count++;
        frontend_reply_free(reply);
    }
}

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->now = 1000 * NS_PER_S;
    f->wall_ms = 1;
    f->is_working = true;
    f->term = 1;
    frontend_init(&f->frontend, &f->table, DRIFT_PPM);
    f->frontend.table_version = TABLE_VERSION;
    frontend_open(&f->frontend, f->term, f->now);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    frontend_done(&f->frontend);
    table_done(&f->table);
    for (size_t i = 0; i < f->log_count; i++)
        free(f->log[i].bytes);
    for (size_t i = 0; i < f->reply_count; i++)
        client_frame_free(f->replies[i]);
    free(f);
    return 0;
}

void fixture_change_leader(struct fixture *f)
{
    frontend_close(&f->frontend);
    collect(f);
    f->term++;
    frontend_open(&f->frontend, f->term, f->now);
}

/* ---- operations ---- */

static struct any_op *next_op(struct fixture *f, Gavel__Op__WhatCase what)
{
    struct any_op *any = &f->ops[f->op_count++];

    assert_true(f->op_count < OPS_MAX);
    gavel__op__init(&any->op);
    any->op.what_case = what;
    any->op.open_session = &any->open; /* the oneof is one pointer */
    return any;
}

static char *text(const char *string) { return (char *)(uintptr_t)string; }

Gavel__Op *op_open(struct fixture *f, uint64_t session, uint32_t ttl_ms)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_OPEN_SESSION);

    gavel__open_session__init(&any->open);
    any->open.session = session;
    any->open.ttl_ms = ttl_ms;
    return &any->op;
}

Gavel__Op *op_close(struct fixture *f, uint64_t session)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_CLOSE_SESSION);

    gavel__close_session__init(&any->close);
    any->close.session = session;
    return &any->op;
}

Gavel__Op *op_campaign(struct fixture *f, const char *group, const char *id)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_CAMPAIGN);

    gavel__campaign__init(&any->campaign);
    any->campaign.group = text(group);
    any->campaign.id = text(id);
    return &any->op;
}

Gavel__Op *op_withdraw(struct fixture *f, const char *group)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_WITHDRAW);

    gavel__withdraw__init(&any->withdraw);
    any->withdraw.group = text(group);
    return &any->op;
}

Gavel__Op *op_died(struct fixture *f, const char *group, uint64_t epoch, int32_t pid)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_DIED);

    gavel__died__init(&any->died);
    gavel__process__init(&any->process);
    any->process.boot_id = text("boot");
    any->process.pid = pid;
    any->died.group = text(group);
    any->died.epoch = epoch;
    any->died.process = &any->process;
    return &any->op;
}

Gavel__Op *op_claim(struct fixture *f, const char *group, const char *holder, uint64_t nonce,
                    uint64_t version)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_CLAIM);

    gavel__claim__init(&any->claim);
    any->claim.group = text(group);
    any->claim.holder = text(holder);
    any->claim.nonce_low = nonce;
    any->claim.expected_version = version;
    any->claim.must_be_expired = true;
    any->claim.lease_ms = 1000;
    return &any->op;
}

Gavel__Op *op_renew(struct fixture *f, const char *group, const char *holder, uint64_t nonce)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_RENEW);

    gavel__renew__init(&any->renew);
    any->renew.group = text(group);
    any->renew.holder = text(holder);
    any->renew.nonce_low = nonce;
    any->renew.lease_ms = 1000;
    return &any->op;
}

Gavel__Op *op_release(struct fixture *f, const char *group, const char *holder, uint64_t nonce)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_RELEASE);

    gavel__release__init(&any->release);
    any->release.group = text(group);
    any->release.holder = text(holder);
    any->release.nonce_low = nonce;
    return &any->op;
}

Gavel__Op *op_wish(struct fixture *f, const char *group, const char *successor)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_WISH);

    gavel__wish__init(&any->wish);
    any->wish.group = text(group);
    any->wish.successor = text(successor);
    return &any->op;
}

Gavel__Op *op_register(struct fixture *f, const char *group, const char *id, uint64_t instance,
                       uint64_t beats)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_REGISTER_CANDIDATE);

    gavel__register__init(&any->registration);
    any->registration.group = text(group);
    any->registration.id = text(id);
    any->registration.instance = instance;
    any->registration.beats = beats;
    any->registration.timeout_ms = 1000;
    return &any->op;
}

Gavel__Op *op_leave(struct fixture *f, const char *group, const char *id, uint64_t instance)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_LEAVE);

    gavel__leave__init(&any->leave);
    any->leave.group = text(group);
    any->leave.id = text(id);
    any->leave.instance = instance;
    return &any->op;
}

Gavel__Op *op_remove(struct fixture *f, const char *group, bool is_forced)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_REMOVE_GROUP);

    gavel__remove_group__init(&any->remove);
    any->remove.group = text(group);
    any->remove.is_forced = is_forced;
    return &any->op;
}

Gavel__Op *op_put(struct fixture *f, const char *group, const char *key, const char *value)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_PUT_NOTE);

    gavel__put_note__init(&any->put);
    any->put.group = text(group);
    any->put.key = text(key);
    any->put.value.data = (uint8_t *)text(value);
    any->put.value.len = strlen(value);
    return &any->op;
}

Gavel__Op *op_delete(struct fixture *f, const char *group, const char *key)
{
    struct any_op *any = next_op(f, GAVEL__OP__WHAT_DELETE_NOTE);

    gavel__delete_note__init(&any->delete_note);
    any->delete_note.group = text(group);
    any->delete_note.key = text(key);
    return &any->op;
}

/* ---- requests ---- */

void take_frame(struct fixture *f, uint64_t tag, const Gavel__ClientFrame *frame)
{
    Gavel__ClientFrame *copy = client_frame_copy(frame);
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct table_packed packed = {0};

    if (client_frame_pack(frame, &bytes, &size) == GAVEL_OK)
        packed =
            (struct table_packed){.bytes = bytes + CLIENT_LENGTH_BYTES, .size = size - CLIENT_LENGTH_BYTES};
    if (copy)
        frontend_take(&f->frontend, f->now, f->is_working, f->wall_ms, (struct frontend_ticket){.tag = tag},
                      &copy, packed);
    else
        f->frontend.counts.lost++; /* where memory is short, it may be this that there is none for */
    client_frame_free(copy);
    free(bytes);
}

void send_request(struct fixture *f, uint64_t session, uint64_t id, size_t count, Gavel__Op *const *ops)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Request request_ = GAVEL__REQUEST__INIT;

    request_.tag = ++f->tags;
    request_.session = session;
    request_.id = id;
    request_.n_ops = count;
    request_.ops = (Gavel__Op **)(uintptr_t)ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request_;
    take_frame(f, f->tags, &frame);
    collect(f);
}

void flush(struct fixture *f)
{
    struct frontend_batch batch;

    while (frontend_next_batch(&f->frontend, &batch)) {
        uint64_t first = f->log_count + 1;

        f->proposals++;
        frontend_proposed(&f->frontend, propose(f, &batch), first, f->term);
        if (f->closes_on_propose)
            frontend_close(&f->frontend);
    }
    collect(f);
}

void commit_one(struct fixture *f)
{
    struct table_outcome outcome = {0};
    size_t at = f->applied++;
    enum gavel_status status;

    status = table_apply_ops(&f->table, at + 1, f->log[at].bytes, f->log[at].size, &outcome);
    frontend_applied(&f->frontend, f->now, f->is_working, at + 1, f->log[at].term, status, outcome.results,
                     outcome.count);
    collect(f);
    table_outcome_done(&outcome);
}

void commit(struct fixture *f)
{
    while (f->applied < f->log_count)
        commit_one(f);
}

const Gavel__Reply *last_reply(const struct fixture *f)
{
    assert_true(f->reply_count > 0);
    assert_int_equal(f->replies[f->reply_count - 1]->what_case, GAVEL__CLIENT_FRAME__WHAT_REPLY);
    return f->replies[f->reply_count - 1]->reply;
}

const Gavel__Reply *request_all(struct fixture *f, uint64_t session, uint64_t id, size_t count,
                                Gavel__Op *const *ops)
{
    size_t before = f->reply_count;

    send_request(f, session, id, count, ops);
    flush(f);
    commit(f);
    assert_int_equal(f->reply_count, before + 1);
    assert_int_equal(last_reply(f)->tag, f->tags);
    return last_reply(f);
}

const Gavel__Reply *request(struct fixture *f, uint64_t session, uint64_t id, Gavel__Op *op)
{
    return request_all(f, session, id, 1, &op);
}

const Gavel__OpResult *must(struct fixture *f, uint64_t session, uint64_t id, Gavel__Op *op)
{
    const Gavel__Reply *answer = request(f, session, id, op);

    assert_string_equal(answer->message, "");
    assert_int_equal(answer->status, GAVEL_OK);
    assert_int_equal(answer->n_results, 1);
    assert_string_equal(answer->results[0]->message, "");
    assert_int_equal(answer->results[0]->status, GAVEL_OK);
    return answer->results[0];
}

const Gavel__Kept *keep_alive(struct fixture *f, uint64_t session)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__KeepAlive alive = GAVEL__KEEP_ALIVE__INIT;

    alive.tag = ++f->tags;
    alive.n_sessions = 1;
    alive.sessions = &session;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &alive;
    take_frame(f, f->tags, &frame);
    collect(f);
    assert_int_equal(f->replies[f->reply_count - 1]->what_case, GAVEL__CLIENT_FRAME__WHAT_KEPT);
    return f->replies[f->reply_count - 1]->kept;
}

void run_until(struct fixture *f, gavel_ns until)
{
    while (f->now < until) {
        f->now = ns_min(f->now + MS(20), until);
        frontend_tick(&f->frontend, f->now, f->is_working, false, f->wall_ms);
        flush(f);
    }
}

struct table_group *group_of(struct fixture *f, const char *name)
{
    struct table_group *group = table_group_find(&f->table, name);

    assert_non_null(group);
    return group;
}

Gavel__Command *command_of(const struct fixture *f, size_t at)
{
    struct table_command head;
    Gavel__Command *command;

    assert_true(at < f->log_count);
    assert_int_equal(table_command_decode(f->log[at].bytes, f->log[at].size, &head), GAVEL_OK);
    command = gavel__command__unpack(NULL, head.value_size, head.value);
    assert_non_null(command);
    return command;
}
