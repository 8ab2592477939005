/* SPDX-License-Identifier: Apache-2.0 */

/*
 * DELETE /groups/{group}: removes a group that nobody leads and nobody takes part
 * in. If it has notes, or its work is done for good, that takes ?force=true. No
 * mandate is ended by it: whoever leads hands over, or is stopped, first.
 */
#include "daemon/api/ask.h"

#include <stdlib.h>

struct removing {
    struct api_forwarding forwarding;
    struct api_later later;
};

static void answered(void *user, const Gavel__ClientFrame *frame)
{
    struct removing *removing = user;
    struct api_call call = api_later_end(&removing->later);
    const Gavel__OpResult *result = NULL;
    const char *message;
    enum gavel_status status = api_forwarding_outcome(frame, 0, &result, &message);

    if (status == GAVEL_OK)
        api_reply_json(&call, 200,
                       json_pack("{s:b,s:o,s:o}", "success", 1, "group", json_words(call.names.group),
                                 "revision", json_u64(result->revision)));
    else
        api_reply_failure(&call, status, message);
    free(removing);
}

static void gone(void *user)
{
    struct removing *removing = user;

    api_forwarding_drop(&removing->forwarding); /* it is carried out all the same */
    free(removing);
}

static void begin(struct api_call *call, bool is_forced)
{
    struct removing *removing = calloc(1, sizeof *removing);
    Gavel__Request request = GAVEL__REQUEST__INIT;
    Gavel__Op op = GAVEL__OP__INIT;
    Gavel__Op *ops[] = {&op};
    Gavel__RemoveGroup remove;

    if (!removing) {
        api_reply_json(call, 500, NULL);
        return;
    }
    gavel__remove_group__init(&remove);
    remove.group = call->names.group;
    remove.is_forced = is_forced;
    op.what_case = GAVEL__OP__WHAT_REMOVE_GROUP;
    op.remove_group = &remove;
    request.n_ops = 1;
    request.ops = ops;
    api_forwarding_init(&removing->forwarding, call->api, answered, removing);
    if (!api_forwarding_request(&removing->forwarding, &request)) {
        free(removing);
        api_reply_busy(call);
        return;
    }
    api_later_begin(call, &removing->later, gone, removing);
}

void api_delete_group(struct api_call *call)
{
    struct evkeyvalq pairs;
    bool is_forced = false;
    bool is_good = api_query_read(call, &pairs) && api_query_flag(call, &pairs, "force", &is_forced);

    evhttp_clear_headers(&pairs);
    if (is_good)
        begin(call, is_forced);
}
