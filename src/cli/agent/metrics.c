/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/agent/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A value of a label: backslash, quote and line end are written as Prometheus wants them. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            (void)fputs("\\n", out);
        else if (*text == '"' || *text == '\\')
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

static void begin(FILE *out, const struct agent_figures *figures, const char *name, const char *type,
                  const char *help)
{
    (void)fprintf(out, "# HELP gavel_%s %s\n# TYPE gavel_%s %s\ngavel_%s{group=\"", name, help, name, type,
                  name);
    put_text(out, figures->group);
    (void)fputs("\",candidate=\"", out);
    put_text(out, figures->candidate);
    (void)fputs("\"} ", out);
}

static void gauge(FILE *out, const struct agent_figures *figures, const char *name, const char *help,
                  double value)
{
    begin(out, figures, name, "gauge", help);
    (void)fprintf(out, "%.9g\n", value);
}

static void number(FILE *out, const struct agent_figures *figures, const char *name, const char *help,
                   uint64_t value)
{
    begin(out, figures, name, "gauge", help);
    (void)fprintf(out, "%" PRIu64 "\n", value);
}

static void counter(FILE *out, const struct agent_figures *figures, const char *name, const char *help,
                    uint64_t value)
{
    begin(out, figures, name, "counter", help);
    (void)fprintf(out, "%" PRIu64 "\n", value);
}

static void put_candidate(FILE *out, const struct agent_figures *figures)
{
    const struct gavel_metrics *metrics = &figures->metrics;

    number(out, figures, "candidates", "Active candidates of the group.", figures->candidates);
    number(out, figures, "breaker_open", "Whether the store is left alone for a while because it failed.",
           figures->breaker.state != GAVEL_BREAKER_CLOSED);
    counter(out, figures, "heartbeats_total", "Heartbeats that succeeded.", metrics->heartbeats);
    counter(out, figures, "heartbeat_failures_total", "Heartbeats that failed.", metrics->heartbeat_failures);
    counter(out, figures, "elections_total", "Elections that this candidate took part in by claiming.",
            metrics->elections);
    counter(out, figures, "elections_won_total", "Elections that it won.", metrics->elections_won);
    counter(out, figures, "leader_changes_total", "Changes of leader that it saw.", metrics->leader_changes);
    counter(out, figures, "call_timeouts_total", "Calls to the store without an answer in time.",
            metrics->call_timeouts);
    counter(out, figures, "contentions_total", "Heartbeats that were far too late.", metrics->contentions);
    gauge(out, figures, "store_latency_p99_seconds", "Of the last hundred calls to the store.",
          (double)metrics->latency_p99_us / 1e6);
}

char *agent_metrics_text(const struct agent_figures *figures, size_t *ret_length)
{
    bool leads = figures->answer != GAVEL_NOT_LEADER;
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_length);

    if (!out)
        return NULL;
    number(out, figures, "is_leader", "Whether this candidate leads its group at this moment.", leads);
    number(out, figures, "epoch", "The epoch of its mandate, 0 without one.", figures->epoch);
    number(out, figures, "mandate_unknown",
           "Whether the store cannot be reached while the mandate still holds.",
           figures->answer == GAVEL_UNKNOWN_UNTIL);
    if (leads && figures->left != NEVER)
        gauge(out, figures, "mandate_remaining_seconds", "How long the mandate holds unless it is renewed.",
              (double)figures->left / NS_PER_S);
    if (!figures->is_leaving)
        put_candidate(out, figures);
    number(out, figures, "agent_connections", "Open connections.", figures->connections);
    number(out, figures, "agent_streams", "Readers of /events.", figures->streams);
    counter(out, figures, "agent_requests_total", "Requests that were answered.", figures->requests);
    counter(out, figures, "agent_connections_cut_total",
            "Connections that were closed for being slow or too many.", figures->cut);
    (void)fprintf(out,
                  "# HELP gavel_build_info The version.\n# TYPE gavel_build_info gauge\n"
                  "gavel_build_info{version=\"%s\"} 1\n",
                  gavel_version());
    if (fclose(out)) { /* no memory */
        free(text);
        return NULL;
    }
    return text;
}
