/* SPDX-License-Identifier: Apache-2.0 */

/* What is told of the session of a candidate: how long it lives, and how often it is kept alive. */
#include "cli/check/check.h"

#include "cli/json_out.h"
#include "cli/output.h"
#include "config/duration.h"

#include <inttypes.h>
#include <stdio.h>

static void print_time(const char *name, gavel_ms ms, const char *more)
{
    char text[DURATION_TEXT_MAX];

    printf("  %-22s  %s%s\n", name, duration_exact(ms, text), more);
}

void check_session_print(const struct cli *cli, const struct session_terms *terms)
{
    printf("%s\nSession, one for all groups of a process%s\n", style_begin(cli, STYLE_BOLD),
           style_end(cli, STYLE_BOLD));
    print_time("time to live", terms->ttl_ms,
               terms->is_asked ? ", by ttl_ms of the URL" : ", for mandates of a lease");
    print_time("sure to be open for", terms->lasts_ms, ", from the send of a keep-alive");
    print_time("kept alive every", terms->keep_every_ms, "");
}

void check_session_advise(const struct gavel_settings *settings, const struct session_terms *terms,
                          char ret_text[static CHECK_ADVICE_MAX])
{
    gavel_ms ms = terms->is_asked ? session_ttl_for(settings) : session_lease_for(settings);

    if (ms == 0)
        (void)snprintf(ret_text, CHECK_ADVICE_MAX, "a shorter stop grace helps");
    else if (terms->is_asked)
        (void)snprintf(ret_text, CHECK_ADVICE_MAX, "ttl_ms=%" PRId64 " in the URL helps", ms);
    else
        (void)snprintf(ret_text, CHECK_ADVICE_MAX, "--lease %" PRId64 "ms helps", ms);
}

json_t *check_session_json(const struct session_terms *terms)
{
    json_t *json = json_object();

    json_put_number(json, "ttl_ms", terms->ttl_ms);
    json_put_number(json, "lasts_ms", terms->lasts_ms);
    json_put_number(json, "keep_every_ms", terms->keep_every_ms);
    return json;
}
