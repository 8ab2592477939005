/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/api/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    (void)fprintf(out, "# HELP gavel_%s %s\n# TYPE gavel_%s %s\n", name, help, name, type);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
    head(out, name, "counter", help);
    (void)fprintf(out, "gavel_%s %" PRIu64 "\n", name, value);
}

static void gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
    head(out, name, "gauge", help);
    (void)fprintf(out, "gavel_%s %" PRIu64 "\n", name, value);
}

static void real(FILE *out, const char *name, const char *help, double value)
{
    head(out, name, "gauge", help);
    (void)fprintf(out, "gavel_%s %.9g\n", name, value);
}

/* The value of a label: quotes, backslashes and ends of lines would end it early. */
static void label(FILE *out, const char *key, const char *value)
{
    (void)fprintf(out, "%s=\"", key);
    for (; *value; value++) {
        if (*value == '\n')
            (void)fputs("\\n", out);
        else if (*value == '"' || *value == '\\')
            (void)fprintf(out, "\\%c", *value);
        else
            (void)fputc(*value, out);
    }
    (void)fputc('"', out);
}

static double seconds(gavel_ns ns) { return (double)ns / (double)NS_PER_S; }

static double age_since(gavel_ns then, gavel_ns now) { return then > 0 ? seconds(ns_max(now - then, 0)) : 0; }

static void write_durations(FILE *out, const struct view_counters *c)
{
    static const int bounds[] = VIEW_DURATION_BOUNDS;
    uint64_t sum = 0;

    head(out, "election_duration_seconds", "histogram",
         "How long elections took that this node took part in.");
    for (size_t i = 0; i < VIEW_DURATION_BUCKETS; i++) {
        sum += c->duration_buckets[i];
        if (i + 1 < VIEW_DURATION_BUCKETS)
            (void)fprintf(out, "gavel_election_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                          bounds[i] / 1000.0, sum);
        else
            (void)fprintf(out, "gavel_election_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
    }
    (void)fprintf(
        out, "gavel_election_duration_seconds_sum %.9g\ngavel_election_duration_seconds_count %" PRIu64 "\n",
        seconds(c->duration_sum), sum);
}

static void write_elections(FILE *out, const struct view_counters *c)
{
    counter(out, "election_count_total", "Elections that ended, as this node saw them.", c->elections);
    counter(out, "election_won_total", "Elections that ended with a leader.", c->elections_won);
    counter(out, "candidacy_count_total", "Elections in which this node stood.", c->candidacies);
    real(out, "election_success_rate", "The share of elections that ended with a leader.",
         c->elections > 0 ? (double)c->elections_won / (double)c->elections : 1.0);
    write_durations(out, c);
    counter(out, "failover_count_total", "Changes of leader that were no transfer.", c->failovers);
    counter(out, "leader_transfer_count_total", "Transfers that succeeded.", c->transfers);
    counter(out, "leader_transfer_failed_total", "Transfers that failed.", c->transfers_failed);
    counter(out, "split_brain_detected_total", "Times that two leaders were seen at once.", c->split_brains);
    counter(out, "obituary_count_total", "Obituaries of leaders that were taken.", c->obituaries);
    counter(out, "refused_message_count_total", "Messages of peers that were refused.", c->refused_messages);
    counter(out, "dropped_vote_count_total", "Requests for votes that the rate limit dropped.",
            c->dropped_votes);
    counter(out, "late_heartbeat_count_total",
            "Heartbeats that this node sent more than half an interval late.", c->late_heartbeats);
    counter(out, "disk_write_count_total", "Transactions written to disk.", c->disk_writes);
    counter(out, "disk_full_count_total", "Times that the disk was full.", c->disk_fulls);
    counter(out, "disk_hang_count_total", "Times that no write finished for a second.", c->disk_hangs);
}

static void write_state(FILE *out, const struct view *view, gavel_ns now)
{
    bool has_lease = view->is_claimed && now < view->deadline;
    const struct view_member *leader = view_is_stale(view, now) ? NULL : view_find(view, view->leader);

    head(out, "build_info", "gauge", "The program; always 1.");
    (void)fprintf(out, "gavel_build_info{version=\"%s\"} 1\n", GAVEL_VERSION);
    head(out, "node_info", "gauge", "The node; always 1.");
    (void)fputs("gavel_node_info{", out);
    label(out, "cluster", view->cluster_name);
    (void)fputc(',', out);
    label(out, "node", view->name);
    (void)fputs("} 1\n", out);
    head(out, "current_leader_id", "gauge", "Whom this node takes for the leader; no line if for nobody.");
    if (leader) {
        (void)fputs("gavel_current_leader_id{", out);
        label(out, "leader_id", leader->name);
        (void)fputs("} 1\n", out);
    }
    gauge(out, "current_term", "The term of this node.", view->term);
    head(out, "role", "gauge", "The role of this node; 1 for the one it has.");
    for (unsigned role = 0; role < RAFT_ROLE_COUNT; role++)
        (void)fprintf(out, "gavel_role{role=\"%s\"} %d\n", raft_role_name((enum raft_role)role),
                      view->role == (enum raft_role)role);
    gauge(out, "leader_has_lease", "1 while this node leads with a lease.", has_lease);
    real(out, "lease_remaining_seconds", "How long the lease holds if it is not renewed; 0 without one.",
         !has_lease                ? 0
         : view->deadline == NEVER ? seconds(INT64_MAX)
                                   : seconds(view->deadline - now));
    gauge(out, "lease_epoch", "The lease epoch of this term.", view->lease_epoch);
    gauge(out, "stale", "1 while this node knows no leader, so that what it says may be out of date.",
          view_is_stale(view, now));
    gauge(out, "commit_index", "The last entry that is committed.", view->commit);
    gauge(out, "applied_index", "The last entry that is applied.", view->applied);
    gauge(out, "last_index", "The last entry of the log.", view->last);
    gauge(out, "snapshot_index", "The last entry that the snapshot stands for.", view->snapshot);
    gauge(out, "revision", "The revision of the table.", view->revision);
    gauge(out, "incarnation", "How often this node has started.", view->incarnation);
    gauge(out, "generation", "The generation of the cluster.", view->generation);
    gauge(out, "disk_is_full", "1 while there is no room to write.", view->is_disk_full);
    gauge(out, "disk_hangs", "1 while a write is under way and none has finished for a second.",
          view->is_disk_hung);
    real(out, "disk_oldest_write_age_seconds",
         "Age of the oldest write that has not finished; 0 if there is none.",
         age_since(view->write_since, now));
    gauge(out, "commits_hang", "1 while the leader has committed nothing for a second, though it should.",
          view_commits_hang_for(view, now) > 0);
    real(out, "oldest_uncommitted_age_seconds",
         "Age of the oldest entry that is not committed; 0 if there is none, or this node does not lead.",
         age_since(view->uncommitted_since, now));
    gauge(out, "waits_for_operator", "1 while there is no leader and auto_failover is off.",
          view->waits_for_operator);
    real(out, "start_time_seconds", "When the node process started, in seconds since 1970.",
         (double)view->started_wall_ms / 1000.0);
}

/* One value of each other member. */
static void of_peers(FILE *out, const struct view *view, gavel_ns now, const char *name, const char *help,
                     double (*value)(const struct view *, const struct view_member *, gavel_ns))
{
    head(out, name, "gauge", help);
    for (size_t i = 0; i < view->member_count; i++) {
        const struct view_member *member = &view->members[i];

        if (member->is_self)
            continue;
        (void)fprintf(out, "gavel_%s{", name);
        label(out, "peer", member->name);
        (void)fprintf(out, "} %.15g\n", value(view, member, now));
    }
}

static double peer_healthy(const struct view *view, const struct view_member *member, gavel_ns now)
{
    return view_is_healthy(view, member, now);
}

static double peer_connected(const struct view *view, const struct view_member *member, gavel_ns now)
{
    (void)view;
    (void)now;
    return member->is_connected;
}

static double peer_breaker(const struct view *view, const struct view_member *member, gavel_ns now)
{
    (void)view;
    (void)now;
    return member->is_breaker_open;
}

static double peer_contact(const struct view *view, const struct view_member *member, gavel_ns now)
{
    (void)view;
    return member->heard_at > 0 ? seconds(ns_max(now - member->heard_at, 0)) : -1;
}

static double peer_match(const struct view *view, const struct view_member *member, gavel_ns now)
{
    (void)now;
    return view->is_leader ? (double)member->match : 0;
}

static void write_peers(FILE *out, const struct view *view, gavel_ns now)
{
    gauge(out, "members", "Members of the cluster.", view->member_count);
    of_peers(out, view, now, "peer_healthy", "1 while the peer was heard within ten heartbeats.",
             peer_healthy);
    of_peers(out, view, now, "peer_connected", "1 while this node and the peer can send to each other.",
             peer_connected);
    of_peers(out, view, now, "peer_breaker_open", "1 while the breaker of the peer is open.", peer_breaker);
    of_peers(out, view, now, "peer_last_contact_seconds", "Since the peer was last heard; -1 if never.",
             peer_contact);
    of_peers(out, view, now, "peer_match_index", "What the peer is known to have; 0 unless this node leads.",
             peer_match);
}

static void write_api(FILE *out, const struct metrics_api *api)
{
    head(out, "http_requests_total", "counter", "Calls of the API that were answered.");
    for (size_t i = 0; i < api->call_count; i++) {
        (void)fputs("gavel_http_requests_total{", out);
        label(out, "method", api->calls[i].method);
        (void)fputc(',', out);
        label(out, "path", api->calls[i].path);
        (void)fprintf(out, ",code=\"%d\"} %" PRIu64 "\n", api->calls[i].code, api->calls[i].count);
    }
    gauge(out, "http_connections", "Connections to the API that are open.", api->connections);
    counter(out, "http_connections_accepted_total", "Connections to the API that were accepted.",
            api->accepted);
    counter(out, "http_connections_cut_total",
            "Connections that were closed for being slow, or to make room.", api->cut);
    gauge(out, "event_streams", "Streams of events, changes and campaigns that are open.", api->streams);
    gauge(out, "campaign_streams", "Candidates that campaign over HTTP at this node.", api->campaigns);
}

static void write_table(FILE *out, const struct metrics_api *api)
{
    gauge(out, "groups", "Groups in the table of this node.", api->groups);
    gauge(out, "sessions", "Sessions in the table of this node.", api->sessions);
    gauge(out, "notes", "Notes in the table of this node.", api->notes);
    counter(out, "group_elections_total", "Mandates of groups that began, as this node saw them.",
            api->group_elections);
}

char *metrics_text(const struct view *view, gavel_ns now, const struct metrics_api *api, size_t *ret_length)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        return NULL;
    write_state(out, view, now);
    write_elections(out, &view->counters);
    write_peers(out, view, now);
    write_api(out, api);
    write_table(out, api);
    if (fclose(out)) { /* what did not fit into memory shows here */
        free(text);
        return NULL;
    }
    *ret_length = length;
    return text;
}
