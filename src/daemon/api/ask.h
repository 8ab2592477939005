/* SPDX-License-Identifier: Apache-2.0 */

/* Reads of groups and notes, from this node's table or from the leader's. */
#ifndef DAEMON_API_ASK_H
#define DAEMON_API_ASK_H

#include "daemon/api/json.h"

#include <event2/keyvalq_struct.h>

/* Ends the call with the answer, which is borrowed. */
typedef void (*api_show_cb)(struct api_call *call, const Gavel__Answer *answer);

/* Ends the call, now or later, with show or an error. call->wants and call->names are restored for show. */
void api_ask(struct api_call *call, Gavel__Ask *ask, bool is_fresh, api_show_cb show);

/* "expired", "resigned" …: how a mandate or a session ended. */
const char *api_ending_name(Gavel__Ending ending);

/* Whether this node follows nobody at the moment; the answer must then be marked. */
bool api_is_stale(struct api_call *call);

/* The page that a listing asks for. */
struct api_page {
    struct evkeyvalq pairs; /* owns what is borrowed here */
    const char *prefix;
    const char *after;
    int64_t limit;
    bool is_fresh;
    bool wants_keys; /* only names, without values */
};

/* Call api_page_done() in any case. False: the call has been answered. */
bool api_page_read(struct api_call *call, struct api_page *ret_page);
/* api_ask() for this page of what `ask` lists. */
void api_page_ask(struct api_call *call, const struct api_page *page, Gavel__Ask *ask, api_show_cb show);
void api_page_done(struct api_page *page);

#endif
