/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that need the leader of the cluster. A call becomes a forwarded request, a
 * message to the consensus thread, whose forwarder carries it to the leader. The
 * answer comes back as a message with the number of the forwarding. The call waits
 * meanwhile (struct api_later). Either side may be gone when the other comes: the
 * answer to a dropped request is discarded, and the code that waits for a client is
 * told when the client has left.
 */
#include "daemon/api/internal.h"

#include "net/seal.h"
#include "os/clock.h"

#include <stdlib.h>

static int compare(const struct api_forwarding *a, const struct api_forwarding *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(api_forwardings, api_forwarding, by_number, compare, __attribute__((unused)) static)

void api_later_begin(struct api_call *call, struct api_later *later, void (*gone)(void *user), void *user)
{
    *later = (struct api_later){.connection = call->connection,
                                .http = call->http,
                                .route = call->route,
                                .wants = call->wants,
                                .names = call->names,
                                .user = user,
                                .gone = gone};
    call->connection->later = later;
    LIST_INSERT_HEAD(&call->api->laters, later, next);
}

struct api_call api_later_end(struct api_later *later)
{
    struct api_call call = {.api = later->connection->api,
                            .http = later->http,
                            .connection = later->connection,
                            .route = later->route,
                            .now = clock_now(),
                            .wants = later->wants,
                            .names = later->names};

    LIST_REMOVE(later, next);
    later->connection->later = NULL;
    later->http = NULL;
    return call;
}

/* evhttp frees the request with its connection, unless it was cut loose from it before. */
void api_later_gone(struct api_later *later)
{
    struct evhttp_request *http = later->http;

    (void)api_later_end(later); /* the call is over, without an answer */
    if (!evhttp_request_get_connection(http))
        evhttp_request_free(http);
    later->gone(later->user);
}

void api_forwarding_init(struct api_forwarding *forwarding, struct api *api,
                         void (*answered)(void *user, const Gavel__ClientFrame *frame), void *user)
{
    *forwarding = (struct api_forwarding){.api = api, .answered = answered, .user = user};
}

void api_reply_busy(struct api_call *call)
{
    api_reply_error(call, 503, GAVEL_ERR_STORE_UNAVAILABLE,
                    "this node has too many requests under way; ask again later, or another one");
}

/* What the consensus thread gets: bytes, packed here and nowhere else. Of a keep-alive, which is merged with
 * others, and of what cannot be packed, which is answered there, a copy. NULL: no memory. */
static struct forwarding *message_of(struct api *api, const Gavel__ClientFrame *frame, uint64_t tag)
{
    struct forwarding *message = forwarding_new(tag, &api->answers, NULL);
    const char *reason;

    if (!message)
        return NULL;
    if (frame->what_case != GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE &&
        forwarder_question_pack(frame, &message->question, &reason) == GAVEL_OK)
        return message;
    message->frame = client_frame_copy(frame);
    if (message->frame)
        return message;
    forwarding_free(message);
    return NULL;
}

/* `tag` is where the frame keeps its number. */
static bool enqueue(struct api_forwarding *forwarding, const Gavel__ClientFrame *frame, uint64_t *tag)
{
    struct api *api = forwarding->api;
    struct forwarding *message;

    if (api->is_stopping || api->forwarding_count >= API_FORWARDINGS_MAX)
        return false;
    *tag = api->forwarding_numbers + 1;
    message = message_of(api, frame, *tag);
    if (!message)
        return false;
    forwarding->number = ++api->forwarding_numbers;
    forwarding->sent_at = clock_now();
    RB_INSERT(api_forwardings, &api->forwardings, forwarding);
    api->forwarding_count++;
    mailbox_put(&api->shared->forwardings, &message->link);
    return true;
}

/* Whose sessions these are, for the leader (clients/principal.c): of whoever asks by HTTP, where the id of a
 * session, told to nobody but who opened it, is itself the secret. */
static uint64_t principal_of_http(void) { return seal_id_of_name("principal by door", "http"); }

bool api_forwarding_request(struct api_forwarding *forwarding, Gavel__Request *request)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    request->has_principal = true;
    request->principal = principal_of_http();
    for (size_t i = 0; i < request->n_ops; i++)
        if (request->ops[i]->what_case == GAVEL__OP__WHAT_OPEN_SESSION)
            request->ops[i]->open_session->principal = request->principal;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = request;
    return enqueue(forwarding, &frame, &request->tag);
}

bool api_forwarding_ask(struct api_forwarding *forwarding, Gavel__Ask *ask)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;

    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = ask;
    return enqueue(forwarding, &frame, &ask->tag);
}

bool api_forwarding_keep_alive(struct api_forwarding *forwarding, uint64_t session)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__KeepAlive keep_alive = GAVEL__KEEP_ALIVE__INIT;

    keep_alive.n_sessions = 1;
    keep_alive.sessions = &session;
    keep_alive.has_principal = true;
    keep_alive.principal = principal_of_http();
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    return enqueue(forwarding, &frame, &keep_alive.tag);
}

void api_forwarding_drop(struct api_forwarding *forwarding)
{
    if (forwarding->number == 0)
        return;
    RB_REMOVE(api_forwardings, &forwarding->api->forwardings, forwarding);
    forwarding->number = 0;
    forwarding->api->forwarding_count--;
}

enum gavel_status api_forwarding_outcome(const Gavel__ClientFrame *frame, size_t which,
                                         const Gavel__OpResult **ret_result, const char **ret_message)
{
    const Gavel__Reply *reply = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY ? frame->reply : NULL;
    const Gavel__OpResult *result = reply && which < reply->n_results ? reply->results[which] : NULL;

    *ret_message = reply ? "" : "this node has no memory for the answer, and the outcome is not known; look";
    if (!reply)
        return GAVEL_ERR_NO_MEMORY;
    *ret_message = reply->message;
    if (reply->status != GAVEL_OK)
        return (enum gavel_status)reply->status;
    if (!result)
        return GAVEL_ERR_IO;
    *ret_message = result->message;
    if (result->status != GAVEL_OK)
        return (enum gavel_status)result->status;
    *ret_result = result;
    return GAVEL_OK;
}

void api_forwardings_answer(struct api *api)
{
    const Gavel__ClientFrame nothing = GAVEL__CLIENT_FRAME__INIT;
    struct mail_link *message;

    while ((message = mailbox_take(&api->answers))) {
        struct forwarding *answer = (struct forwarding *)(void *)message;
        struct api_forwarding wanted = {.number = answer->client};
        struct api_forwarding *forwarding = RB_FIND(api_forwardings, &api->forwardings, &wanted);

        if (forwarding) { /* an answer without a frame is a failure: what came of it is not known */
            api_forwarding_drop(forwarding);
            forwarding->answered(forwarding->user, answer->frame ? answer->frame : &nothing);
        }
        forwarding_free(answer);
    }
}

/* Whoever stops the API carries no forwardings any more. */
void api_forwardings_end(struct api *api)
{
    struct api_later *later;

    while ((later = LIST_FIRST(&api->laters))) {
        struct api_call call = api_later_end(later);

        api_reply_error(&call, 503, GAVEL_ERR_STOPPED,
                        "this node is stopping, and the outcome is unknown; check it, and ask another one");
        later->gone(later->user);
    }
}

void api_forwardings_done(struct api *api)
{
    struct mail_link *message;

    if (api->answers.fd < 0)
        return;
    while ((message = mailbox_take(&api->answers)))
        forwarding_free((struct forwarding *)(void *)message);
    mailbox_done(&api->answers);
}
