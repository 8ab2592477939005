/* SPDX-License-Identifier: Apache-2.0 */

/* What is told of the session of a candidate: how long it lives, and how often it is kept alive. */
#include "cli/check/check.h"

#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"

#include <stdio.h>

static void print_time(const char *name, gavel_ms ms, const char *more)
{
    char text[DURATION_TEXT_MAX];

    printf("  %-22s  %s%s\n", name, duration_exact(ms, text), more);
}

void check_session_print(const struct cli *cli, const struct session_terms *terms)
{
    bool is_asked = check_session_ttl_of(cli->config.store) > 0;

    printf("%s\nSession, one for all groups of a process%s\n", style_begin(cli, STYLE_BOLD),
           style_end(cli, STYLE_BOLD));
    print_time("time to live", terms->ttl_ms,
               is_asked ? ", by ttl_ms of the URL" : ", for mandates of a lease");
    print_time("sure to be open for", terms->lasts_ms, ", from the send of a keep-alive");
    print_time("kept alive every", terms->keep_every_ms, "");
}

json_t *check_session_json(const struct session_terms *terms)
{
    json_t *json = json_object();

    json_put_number(json, "ttl_ms", terms->ttl_ms);
    json_put_number(json, "lasts_ms", terms->lasts_ms);
    json_put_number(json, "keep_every_ms", terms->keep_every_ms);
    return json;
}
