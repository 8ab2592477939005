/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changing an object of a store that can only compare and swap: decide on what
 * was last seen, put it on condition that nothing has changed, and whatever is
 * answered but a plain yes, look.
 *
 *               ┌───────────────────────────────┐ changed by others: decide again
 *               ▼                               │
 *     start ─► decide ─► PUT ─► yes ─► over     │
 *               │         └─► 412, 409, 5xx, cut off ─► GET ─► ours: over
 *               └─► not as last seen: GET ─► decide          └► as before: see below
 *
 * "As before" after a 412 means that the server wants the ETag in another form
 * (radosgw without quotes, all others with): the other one is tried, and what
 * works is kept. That is the only time an If-Match is sent that the server
 * might not understand, and it is sent only where it has just been seen that
 * nobody has written since. "As before" after anything else is a failure: the
 * write may still arrive, as it is conditional on what is there now.
 *
 * A state of s3db.js is not all there is to know: its workers are listed, each
 * time, before anything is decided (foreign.h). And a heartbeat looks once
 * whose namespace it is, and leaves none where it is not gavel's.
 *
 * All PUTs of an edit carry the same number (`write`), so any of them is known
 * again when it is read back.
 */
#include "store/s3/s3.h"

#include "os/entropy.h"
#include "store/row_json.h"
#include "store/s3/foreign.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 8 /* of deciding anew, each because somebody else was faster */

static bool fail(struct s3_edit *edit, enum gavel_status status, const char *message)
{
    reply_fail(edit->reply, status, "%s", message);
    edit->is_over = true;
    return false;
}

static bool fail_short(struct s3_edit *edit)
{
    return fail(edit, GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
}

static bool fail_as_answered(struct s3_edit *edit)
{
    char message[256];
    enum gavel_status status = s3_explain(edit->s3, &edit->object, message, sizeof message);

    /* The PUT before is what matters, and that nobody knows what became of it. */
    if (edit->has_put && edit->put_outcome == S3_UNKNOWN && edit->step == S3_STEP_GET)
        return fail(edit, edit->trouble_status, edit->trouble);
    return fail(edit, status, message);
}

static bool conclude(struct s3_edit *edit, enum gavel_status status)
{
    edit->kind->conclude(edit, status);
    edit->is_over = true;
    return false;
}

static bool ask_get(struct s3_edit *edit)
{
    edit->step = S3_STEP_GET;
    if (!s3_object_get(edit->s3, &edit->object, edit->key, edit->entry->is_known ? edit->entry->etag : ""))
        return fail_short(edit);
    return true;
}

/* Takes over the body. */
static bool ask_put(struct s3_edit *edit, char *body)
{
    const struct s3_entry *entry = edit->entry;

    memcpy(edit->base, entry->is_known ? entry->etag : "", entry->is_known ? strlen(entry->etag) + 1 : 1);
    if (edit->s3->is_quoting_known) /* perhaps since a moment ago, by another edit */
        edit->quoting = edit->s3->quoting;
    edit->step = S3_STEP_PUT;
    edit->has_put = true;
    if (!s3_object_put(edit->s3, &edit->object, edit->key, body, edit->base, edit->quoting))
        return fail_short(edit);
    return true;
}

static bool ask_delete(struct s3_edit *edit)
{
    edit->step = S3_STEP_DELETE;
    if (!s3_object_delete(edit->s3, &edit->object, edit->key))
        return fail_short(edit);
    return true;
}

static bool decide(struct s3_edit *edit)
{
    enum gavel_status status;
    char *body = NULL;

    if (++edit->rounds > ROUNDS_MAX)
        return fail(edit, GAVEL_ERR_STORE_UNAVAILABLE,
                    "others keep changing the same object of the store; it is tried again later");
    *edit->reply = (struct store_reply){0}; /* of an earlier round; it owns nothing */
    status = edit->kind->decide(edit, &body);
    if (status == GAVEL_OK)
        return ask_put(edit, body);
    return edit->is_fresh ? conclude(edit, status) : ask_get(edit);
}

static bool ask_workers(struct s3_edit *edit)
{
    char *prefix = s3_key_workers(&edit->s3->target, edit->request->group);
    bool is_ready = prefix && s3_object_list(edit->s3, &edit->object, prefix, "", "");

    edit->step = S3_STEP_WORKERS;
    free(prefix);
    return is_ready ? true : fail_short(edit);
}

static bool ask_state(struct s3_edit *edit)
{
    edit->step = S3_STEP_STATE;
    return s3_object_get(edit->s3, &edit->object, edit->state->key, "") ? true : fail_short(edit);
}

/* Nobody of gavel is told of where s3db.js elects, and who was there before goes. */
static bool beat(struct s3_edit *edit)
{
    if (!edit->state->is_found || !edit->state->is_foreign)
        return decide(edit);
    if (edit->entry->is_known && edit->entry->is_found && edit->entry->is_own)
        return ask_delete(edit);
    edit->is_over = true;
    return false;
}

/* A heartbeat: whose namespace is it? What is read of a mandate later tells, too. */
static bool start_beat(struct s3_edit *edit)
{
    char *key = s3_key_state(&edit->s3->target, edit->request->group);

    edit->state = key ? s3_cache_get(&edit->s3->cache, key) : NULL;
    free(key);
    if (!edit->state)
        return fail_short(edit);
    return edit->state->is_known ? beat(edit) : ask_state(edit);
}

bool s3_edit_start(struct s3_edit *edit)
{
    bool is_look = edit->request->op == STORE_READ || edit->request->op == STORE_LEAVE;

    if (strlen(edit->key) > S3_KEY_MAX) {
        reply_fail(
            edit->reply, GAVEL_ERR_INVALID,
            "the names are too long for an object store: with the prefix of %.80s they make a key of %zu bytes, and %d is the most; choose shorter ones",
            edit->s3->target.where, strlen(edit->key), S3_KEY_MAX);
        edit->is_over = true;
        return false;
    }
    edit->entry = s3_cache_get(&edit->s3->cache, edit->key);
    if (!edit->entry)
        return fail_short(edit);
    edit->quoting = edit->s3->quoting;
    edit->write = (struct nonce){entropy_u64(), entropy_u64()};
    edit->object.call->give_up_at = edit->request->give_up_at;
    /* A heartbeat that is the first may well be of an id that nobody has: it is put, and looked at if
     * refused.
     */
    if (is_look || (!edit->entry->is_known && !edit->kind->is_worker) ||
        (!edit->kind->is_worker && edit->entry->is_foreign))
        return ask_get(edit);
    return edit->request->op == STORE_HEARTBEAT ? start_beat(edit) : decide(edit);
}

void s3_entry_absent(struct s3_entry *entry)
{
    entry->is_known = true;
    entry->is_found = false;
    entry->is_foreign = false;
    entry->etag[0] = '\0';
    entry->write = (struct nonce){0};
    memset(&entry->row, 0, sizeof entry->row);
}

bool s3_entry_take(const struct s3_store *s3, struct s3_entry *entry, const struct s3_object *object,
                   bool is_worker, struct store_reply *reply)
{
    const struct http_call *call = object->call;
    const char *text = call->answer ? call->answer : "";
    struct s3_entry taken = {0};
    enum row_json_kind kind =
        is_worker ? registration_json_read(text, call->answer_size, &taken.worker, &taken.write)
                  : row_json_read(text, call->answer_size, &taken.row, &taken.write);

    entry->is_known = false;
    entry->is_foreign = false;
    s3_object_etag(object, taken.etag);
    if (kind == ROW_JSON_DAMAGED && !is_worker && s3_foreign_state(text, call->answer_size, &taken.row)) {
        kind = ROW_JSON_GOOD;
        taken.is_foreign = true;
        taken.row.record.version = s3_foreign_version(taken.etag, (struct s3_span){"", 0}, &(size_t){0});
    }
    if (kind == ROW_JSON_DAMAGED && is_worker && s3_foreign_is_worker(text, call->answer_size))
        reply_fail(
            reply, GAVEL_ERR_ID_IN_USE,
            "%.100s in %.60s is a worker of s3db.js; give this candidate another id, or stop that worker and remove the object",
            entry->key, s3->target.where);
    else if (kind == ROW_JSON_TOO_NEW)
        reply_fail(reply, GAVEL_ERR_STORE_TOO_NEW,
                   "%.100s in %.60s was written by a newer gavel; update this one", entry->key,
                   s3->target.where);
    else if (kind != ROW_JSON_GOOD)
        reply_fail(
            reply, GAVEL_ERR_STORE_DAMAGED,
            "%.100s in %.60s is not what gavel wrote there; who else writes to it? Restore it, or choose another prefix",
            entry->key, s3->target.where);
    else if (!taken.etag[0])
        reply_fail(reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "the server of %s tells no ETag of an object; without it nothing can be written safely",
                   s3->target.where);
    else {
        entry->is_known = entry->is_found = true;
        entry->is_foreign = taken.is_foreign;
        entry->write = taken.write;
        memcpy(entry->etag, taken.etag, sizeof entry->etag);
        entry->size = call->answer_size;
        entry->unread = 0;
        entry->is_own = false;
        if (is_worker)
            entry->worker = taken.worker;
        else
            entry->row = taken.row;
        return true;
    }
    return false;
}

/* What was put has been refused or its fate is not known, and nobody else has written since. */
static bool go_on_as_before(struct s3_edit *edit)
{
    if (edit->put_outcome == S3_UNKNOWN)
        return fail(edit, edit->trouble_status, edit->trouble);
    if (edit->base[0] && !edit->s3->is_quoting_known) {
        if (edit->has_turned)
            return fail(
                edit, GAVEL_ERR_STORE_UNSUPPORTED,
                "the server refuses to replace an object whatever is said in If-Match; gavel needs a server with conditional PUTs");
        edit->has_turned = true;
        edit->quoting = edit->quoting == S3_QUOTED ? S3_BARE : S3_QUOTED;
    }
    return decide(edit);
}

static bool take_look(struct s3_edit *edit)
{
    struct s3_entry *entry = edit->entry;
    const struct store_request *request = edit->request;

    edit->is_fresh = true;
    if (request->op == STORE_READ)
        return conclude(edit, GAVEL_OK);
    if (request->op == STORE_LEAVE)
        return entry->is_found && entry->worker.instance == request->registration.instance
                   ? ask_delete(edit)
                   : conclude(edit, GAVEL_OK);
    if (!edit->has_put)
        return decide(edit);
    if (entry->is_found && (nonce_equal(entry->write, edit->write) || edit->kind->is_ours(edit)))
        return conclude(edit, GAVEL_OK);
    return strcmp(entry->etag, edit->base) == 0 ? go_on_as_before(edit) : decide(edit);
}

static bool take_get(struct s3_edit *edit, enum s3_outcome outcome)
{
    if (outcome == S3_ABSENT)
        s3_entry_absent(edit->entry);
    else if (outcome == S3_DONE) {
        if (!s3_entry_take(edit->s3, edit->entry, &edit->object, edit->kind->is_worker, edit->reply)) {
            edit->is_over = true;
            return false;
        }
    } else if (outcome != S3_UNCHANGED || !edit->entry->is_known) {
        return fail_as_answered(edit);
    }
    if (!edit->kind->is_worker && edit->entry->is_found && edit->entry->is_foreign)
        return ask_workers(edit);
    return take_look(edit);
}

static bool take_workers(struct s3_edit *edit, enum s3_outcome outcome)
{
    struct s3_entry *entry = edit->entry;
    const struct http_call *call = edit->object.call;

    if (outcome != S3_DONE)
        return fail_as_answered(edit);
    entry->row.record.version = s3_foreign_version(
        entry->etag, (struct s3_span){call->answer ? call->answer : "", call->answer_size}, &edit->workers);
    return take_look(edit);
}

static bool take_state(struct s3_edit *edit, enum s3_outcome outcome)
{
    struct store_reply ignored = {0};

    if (outcome == S3_ABSENT)
        s3_entry_absent(edit->state);
    else if (outcome != S3_DONE)
        return fail_as_answered(edit);
    else if (!s3_entry_take(edit->s3, edit->state, &edit->object, false, &ignored))
        return decide(edit); /* whoever asks for the mandate is told what is wrong with it */
    return beat(edit);
}

static bool take_put(struct s3_edit *edit, enum s3_outcome outcome)
{
    struct s3_entry *entry = edit->entry;

    if (outcome == S3_REFUSED || outcome == S3_ABSENT || outcome == S3_UNKNOWN) {
        edit->put_outcome = outcome;
        edit->trouble_status = s3_explain(edit->s3, &edit->object, edit->trouble, sizeof edit->trouble);
        return ask_get(edit);
    }
    if (outcome != S3_DONE)
        return fail_as_answered(edit);
    if (edit->base[0]) {
        edit->s3->quoting = edit->quoting;
        edit->s3->is_quoting_known = true;
    }
    edit->has_created = !edit->base[0];
    s3_object_etag(&edit->object, entry->etag);
    entry->is_known = entry->etag[0] != '\0'; /* else it is read before the next write */
    entry->is_found = true;
    entry->is_foreign = false;
    entry->write = edit->write;
    entry->size = edit->object.call->body_size;
    entry->is_own = true;
    if (edit->kind->is_worker)
        entry->worker = edit->worker;
    else
        entry->row = edit->row;
    return conclude(edit, GAVEL_OK);
}

static bool take_delete(struct s3_edit *edit, enum s3_outcome outcome)
{
    if (outcome != S3_DONE && outcome != S3_ABSENT)
        return fail_as_answered(edit);
    s3_entry_absent(edit->entry);
    if (edit->request->op == STORE_HEARTBEAT) { /* in a namespace of s3db.js: there is nothing to note */
        edit->is_over = true;
        return false;
    }
    return conclude(edit, GAVEL_OK);
}

/* The same request once more, with other credentials. */
static bool repeat(struct s3_edit *edit)
{
    char *body;

    edit->has_new_credentials = true;
    if (edit->step == S3_STEP_GET)
        return ask_get(edit);
    if (edit->step == S3_STEP_DELETE)
        return ask_delete(edit);
    if (edit->step == S3_STEP_WORKERS)
        return ask_workers(edit);
    if (edit->step == S3_STEP_STATE)
        return ask_state(edit);
    body = edit->object.body;
    edit->object.body = NULL;
    return ask_put(edit, body);
}

bool s3_edit_go_on(struct s3_edit *edit)
{
    enum s3_outcome outcome = s3_object_outcome(&edit->object);

    if (outcome == S3_DENIED && !edit->has_new_credentials &&
        s3_credentials_renew(edit->s3, edit->object.generation))
        return repeat(edit);
    switch (edit->step) {
    case S3_STEP_GET:
        return take_get(edit, outcome);
    case S3_STEP_PUT:
        return take_put(edit, outcome);
    case S3_STEP_DELETE:
        return take_delete(edit, outcome);
    case S3_STEP_WORKERS:
        return take_workers(edit, outcome);
    case S3_STEP_STATE:
        return take_state(edit, outcome);
    }
    return false;
}

void s3_edit_done(struct s3_edit *edit)
{
    if (edit->key && !edit->is_over)
        (void)fail_short(edit); /* http_run() gives up for nothing else */
    s3_object_done(&edit->object);
    free(edit->key);
    edit->key = NULL;
}
