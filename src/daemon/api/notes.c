/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Notes of a group: small values that its leader writes, so that the next leader
 * can continue where it stopped.
 *
 *     Epoch: N             the writer's epoch; refused (409, ERR_TERM_STALE) once the group has a newer one
 *     If-Match: "REV"      only if the note has this revision, which is its ETag (else 412)
 *     If-None-Match: *     only if there is no such note
 *
 * A write whose answer is lost may or may not have been carried out. With
 * If-Match it can be repeated safely.
 */
#include "daemon/api/ask.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* api_call.wants */
enum { WANTS_VALUES, WANTS_KEYS };

struct writing {
    struct api_forwarding forwarding;
    struct api_later later;
    bool has_expected;
};

/* What the headers of a write ask for. */
struct condition {
    uint64_t epoch;
    bool has_expected;
    uint64_t expected;
};

static json_t *note_json(const Gavel__Note *note, bool has_value)
{
    json_t *json =
        json_pack("{s:o,s:o,s:o,s:o,s:I}", "key", json_words(note->key), "revision",
                  json_u64(note->mod_revision), "created_revision", json_u64(note->create_revision), "epoch",
                  note->epoch ? json_u64(note->epoch) : json_null(), "size", (json_int_t)note->value.len);

    if (json && has_value &&
        json_object_set_new(json, "value_base64", json_base64(note->value.data, note->value.len))) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

static void show_notes(struct api_call *call, const Gavel__Answer *answer)
{
    json_t *list = json_array();
    const char *next = answer->has_more && answer->n_notes ? answer->notes[answer->n_notes - 1]->key : "";

    for (size_t i = 0; i < answer->n_notes; i++)
        (void)json_array_append_new(list, note_json(answer->notes[i], call->wants == WANTS_VALUES));
    api_reply_json(call, 200,
                   json_pack("{s:o,s:o,s:o,s:o}", "group", json_words(call->names.group), "notes", list,
                             "next", json_text(next), "revision", json_u64(answer->revision)));
}

void api_get_notes(struct api_call *call)
{
    Gavel__Ask ask;
    struct api_page page;

    gavel__ask__init(&ask);
    if (api_page_read(call, &page)) {
        call->wants = page.wants_keys ? WANTS_KEYS : WANTS_VALUES;
        ask.kind = GAVEL__ASK__KIND__NOTES;
        ask.group = call->names.group;
        api_page_ask(call, &page, &ask, show_notes);
    }
    api_page_done(&page);
}

static void add_number(struct api_call *call, const char *name, const char *format, uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof text, format[0] == '"' ? "\"%" PRIu64 "\"" : "%" PRIu64, number);
    /* Without memory for a header the answer is poorer. */
    (void)evhttp_add_header(evhttp_request_get_output_headers(call->http), name, text);
}

static void show_note(struct api_call *call, const Gavel__Answer *answer)
{
    const Gavel__Note *note = answer->n_notes ? answer->notes[0] : NULL;

    if (!note) {
        api_reply_error(call, 404, GAVEL_ERR_NOT_FOUND, "the group \"%s\" has no note \"%s\"",
                        call->names.group, call->names.key);
        return;
    }
    add_number(call, "ETag", "\"", note->mod_revision);
    add_number(call, "Revision", "", note->mod_revision);
    add_number(call, "Created-Revision", "", note->create_revision);
    if (note->epoch)
        add_number(call, "Epoch", "", note->epoch);
    api_reply_bytes(call, note->value.data, note->value.len);
}

void api_get_note(struct api_call *call)
{
    Gavel__Ask ask;
    struct evkeyvalq pairs;
    bool is_fresh = false;
    bool is_good = api_query_read(call, &pairs) && api_query_flag(call, &pairs, "fresh", &is_fresh);

    gavel__ask__init(&ask);
    evhttp_clear_headers(&pairs);
    if (!is_good)
        return;
    ask.kind = GAVEL__ASK__KIND__NOTE;
    ask.group = call->names.group;
    ask.key = call->names.key;
    api_ask(call, &ask, is_fresh, show_note);
}

/* A whole number, perhaps in quotes. */
static bool parse_number(const char *text, uint64_t *ret_number)
{
    bool is_quoted = text[0] == '"';
    const char *digits = text + is_quoted;
    char *end;
    uint64_t number;

    errno = 0;
    number = strtoull(digits, &end, 10);
    if (errno || digits[0] < '0' || digits[0] > '9' || strcmp(end, is_quoted ? "\"" : "") != 0 ||
        number > INT64_MAX)
        return false;
    *ret_number = number;
    return true;
}

/* False: the call has been answered. */
static bool read_condition(struct api_call *call, struct condition *ret_condition)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(call->http);
    const char *epoch = evhttp_find_header(headers, "Epoch");
    const char *match = evhttp_find_header(headers, "If-Match");
    const char *none = evhttp_find_header(headers, "If-None-Match");
    const char *wrong = NULL;

    *ret_condition = (struct condition){.has_expected = match || none};
    if (epoch && (!parse_number(epoch, &ret_condition->epoch) || ret_condition->epoch == 0))
        wrong =
            "Epoch must be the epoch of the writer's mandate, a whole number above 0; without the header the epoch is not checked";
    else if (match && none)
        wrong = "If-Match and If-None-Match cannot both hold; send one of them";
    else if (match && (!parse_number(match, &ret_condition->expected) || ret_condition->expected == 0))
        wrong = "If-Match must be the ETag of the note: a revision in quotes";
    else if (none && strcmp(none, "*") != 0)
        wrong = "If-None-Match must be *";
    if (wrong)
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "%s", wrong);
    return !wrong;
}

static void answered(void *user, const Gavel__ClientFrame *frame)
{
    struct writing *writing = user;
    struct api_call call = api_later_end(&writing->later);
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);

    if (status == GAVEL_OK) {
        if (evhttp_request_get_command(call.http) == EVHTTP_REQ_PUT)
            add_number(&call, "ETag", "\"", result->revision);
        api_reply_json(&call, 200,
                       json_pack("{s:o,s:o,s:o}", "group", json_words(call.names.group), "key",
                                 json_words(call.names.key), "revision", json_u64(result->revision)));
    } else if (status == GAVEL_ERR_CONFLICT && writing->has_expected) {
        api_reply_error(&call, 412, status, "%s",
                        message[0] ? message : "the note has another revision; read it again");
    } else {
        api_reply_failure(&call, status, message);
    }
    free(writing);
}

static void gone(void *user)
{
    struct writing *writing = user;

    api_forwarding_drop(&writing->forwarding); /* it is carried out all the same */
    free(writing);
}

static void write_note(struct api_call *call, Gavel__Op *op, bool has_expected)
{
    Gavel__Request request = GAVEL__REQUEST__INIT;
    struct gavel_error error = {0};
    struct writing *writing;

    if (table_op_check(op, true, &error) != GAVEL_OK) {
        api_reply_failure(call, error.status, error.message);
        return;
    }
    writing = calloc(1, sizeof *writing);
    if (!writing) {
        api_reply_json(call, 500, NULL);
        return;
    }
    writing->has_expected = has_expected;
    request.n_ops = 1;
    request.ops = &op;
    api_forwarding_init(&writing->forwarding, call->api, answered, writing);
    if (!api_forwarding_request(&writing->forwarding, &request)) {
        free(writing);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &writing->later, gone, writing);
}

void api_put_note(struct api_call *call)
{
    struct evbuffer *body = evhttp_request_get_input_buffer(call->http);
    Gavel__PutNote put;
    Gavel__Op op = GAVEL__OP__INIT;
    struct condition condition;

    gavel__put_note__init(&put);
    if (!read_condition(call, &condition))
        return;
    put.group = call->names.group;
    put.key = call->names.key;
    put.value.len = evbuffer_get_length(body);
    put.value.data = put.value.len ? evbuffer_pullup(body, -1) : NULL;
    if (put.value.len > TABLE_NOTE_BYTES_MAX) {
        api_reply_error(call, 413, GAVEL_ERR_TOO_LARGE, "the value has %zu bytes; a note has at most %u",
                        put.value.len, TABLE_NOTE_BYTES_MAX);
        return;
    }
    if (put.value.len && !put.value.data) {
        api_reply_json(call, 500, NULL);
        return;
    }
    put.epoch = condition.epoch;
    put.has_expected = condition.has_expected;
    put.expected = condition.expected;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    write_note(call, &op, condition.has_expected);
}

void api_delete_note(struct api_call *call)
{
    Gavel__DeleteNote delete;
    Gavel__Op op = GAVEL__OP__INIT;
    struct condition condition;

    gavel__delete_note__init(&delete);
    if (!read_condition(call, &condition))
        return;
    delete.group = call->names.group;
    delete.key = call->names.key;
    delete.epoch = condition.epoch;
    delete.has_expected = condition.has_expected;
    delete.expected = condition.expected;
    op.what_case = GAVEL__OP__WHAT_DELETE_NOTE;
    op.delete_note = &delete;
    write_note(call, &op, condition.has_expected);
}
