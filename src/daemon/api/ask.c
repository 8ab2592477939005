/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads of groups and notes. This node's own table is enough unless the caller says
 * fresh=true; then the leader of the cluster is asked. Either way the result is an
 * Answer, so that the same code shows both.
 *
 * Under the lock of the table an answer is only packed; everything that takes
 * longer happens on the copy.
 */
#include "daemon/api/ask.h"

#include "core/session/frontend.h"
#include "os/clock.h"

#include <event2/keyvalq_struct.h>
#include <stdlib.h>

struct question {
    struct api_forwarding forwarding;
    struct api_later later;
    api_show_cb show;
    gavel_ns asked_at;
};

static void show(struct api_call *call, const Gavel__Answer *answer, api_show_cb callback)
{
    if (answer->status != GAVEL_OK)
        api_reply_failure(call, (enum gavel_status)answer->status, answer->message);
    else
        callback(call, answer);
}

static void answered(void *user, const Gavel__ClientFrame *frame)
{
    struct question *question = user;
    struct api_call call = api_later_end(&question->later);

    call.asked_at = question->asked_at;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER)
        show(&call, frame->answer, question->show);
    else
        api_reply_failure(&call, GAVEL_ERR_IO, "");
    free(question);
}

static void gone(void *user)
{
    struct question *question = user;

    api_forwarding_drop(&question->forwarding);
    free(question);
}

static void ask_leader(struct api_call *call, Gavel__Ask *ask, api_show_cb callback)
{
    struct question *question = calloc(1, sizeof *question);

    if (!question) {
        api_reply_json(call, 500, NULL);
        return;
    }
    question->show = callback;
    question->asked_at = clock_now();
    api_forwarding_init(&question->forwarding, call->api, answered, question);
    if (!api_forwarding_ask(&question->forwarding, ask)) {
        free(question);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &question->later, gone, question);
}

bool api_is_stale(struct api_call *call)
{
    struct view_leader leader;

    view_leader_read(&call->api->shared->view, &leader);
    call->now = clock_now(); /* after the copy: it may be old */
    return !view_leader_holds(&leader, call->now);
}

/* What the table answers, as bytes; NULL: no memory, or *ret_status. */
static uint8_t *pack_answer(struct table_box *box, const Gavel__Ask *ask, size_t *ret_size,
                            enum gavel_status *ret_status)
{
    Gavel__Answer answer;
    uint8_t *bytes = NULL;

    gavel__answer__init(&answer);
    table_box_lock(box);
    *ret_status = frontend_answer(NULL, &box->table, clock_now(), ask, &answer);
    if (*ret_status == GAVEL_OK) {
        *ret_size = gavel__answer__get_packed_size(&answer);
        bytes = malloc(*ret_size + 1); /* an empty one has no bytes */
        if (bytes)
            (void)gavel__answer__pack(&answer, bytes);
        frontend_answer_done(&answer);
    }
    table_box_unlock(box);
    return bytes;
}

void api_ask(struct api_call *call, Gavel__Ask *ask, bool is_fresh, api_show_cb callback)
{
    enum gavel_status status = GAVEL_OK;
    Gavel__Answer *answer;
    uint8_t *bytes;
    size_t size = 0;

    if (is_fresh) {
        ask_leader(call, ask, callback);
        return;
    }
    ask->is_local = true;
    if (api_is_stale(call) || call->api->is_blind)
        api_reply_stale(call);
    bytes = pack_answer(&call->api->shared->table, ask, &size, &status);
    answer = bytes ? gavel__answer__unpack(NULL, size, bytes) : NULL;
    free(bytes);
    if (answer)
        show(call, answer, callback);
    else
        api_reply_failure(call, status == GAVEL_OK ? GAVEL_ERR_NO_MEMORY : status, "");
    if (answer)
        gavel__answer__free_unpacked(answer, NULL);
}

bool api_page_read(struct api_call *call, struct api_page *ret_page)
{
    struct evkeyvalq *pairs = &ret_page->pairs;

    *ret_page = (struct api_page){.prefix = "", .after = "", .limit = 100};
    return api_query_read(call, pairs) &&
           api_query_text(call, pairs, "prefix", NAME_MAX_BYTES, &ret_page->prefix) &&
           api_query_text(call, pairs, "after", NAME_MAX_BYTES, &ret_page->after) &&
           api_query_number(call, pairs, "limit", 1, API_PAGE_MAX, &ret_page->limit) &&
           api_query_flag(call, pairs, "fresh", &ret_page->is_fresh) &&
           api_query_flag(call, pairs, "keys", &ret_page->wants_keys);
}

void api_page_ask(struct api_call *call, const struct api_page *page, Gavel__Ask *ask, api_show_cb callback)
{
    char prefix[NAME_MAX_BYTES + 1];
    char after[NAME_MAX_BYTES + 1];

    (void)snprintf(prefix, sizeof prefix, "%s", page->prefix); /* protobuf-c has no const strings */
    (void)snprintf(after, sizeof after, "%s", page->after);
    ask->prefix = prefix;
    ask->after = after;
    ask->limit = (uint32_t)page->limit;
    api_ask(call, ask, page->is_fresh, callback);
}

void api_page_done(struct api_page *page) { evhttp_clear_headers(&page->pairs); }
