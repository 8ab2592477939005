/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/raft/trace.h"

#include "sim/raft/world.h"

#include <stdarg.h>
#include <string.h>

typedef unsigned long long ull;

void cluster_trace_line(struct cluster *cluster, const struct host *host, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    story_write(cluster->trace, cluster->now, host ? host->label : NULL, format, arguments);
    va_end(arguments);
}

const char *cluster_label(const struct cluster *cluster, raft_id id)
{
    return id >= 1 && id <= SLOTS_MAX ? cluster->hosts[id - 1].label : "a guard";
}

const char *cluster_describe_config(const struct cluster *cluster, const struct raft_config *config,
                                    char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < config->count && used + 24 < size; i++) {
        const struct raft_member *m = &config->members[i];
        int n = snprintf(text + used, size - used, "%s%s%s%s%s", i ? " " : "", cluster_label(cluster, m->id),
                         m->is_voter ? "" : "(learner)", m->is_witness ? "(witness)" : "",
                         m->was_voter ? "(old)" : "");

        used += n > 0 ? (size_t)n : 0;
    }
    if (config->is_joint && used + 8 < size)
        (void)snprintf(text + used, size - used, " joint"); /* it fits */
    return text;
}

void cluster_trace_profile(struct cluster *cluster, uint64_t seed)
{
    const struct profile *p = &cluster->profile;
    char text[TRACE_WIDTH] = "";
    size_t used = 0;

    for (unsigned fault = 0; fault < FAULT_COUNT; fault++) {
        if (!(p->faults & FAULT_BIT(fault)) || used + 24 > sizeof text)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", cluster_fault_row(fault)->name);
    }
    TRACE(cluster, NULL, "seed %llu: %u nodes, %s:", (ull)seed, p->nodes, mood_name(p->mood));
    TRACE(cluster, NULL, "faults%s", text);
    TRACE(cluster, NULL, "links %.2f-%.2f ms, writes up to %.2f ms", (double)p->link_min / 1e6,
          (double)p->link_max / 1e6, (double)p->write_max / 1e6);
    for (unsigned i = 0; i < (p->faults & FAULT_BIT(FAULT_MIXED) ? p->nodes : 1); i++) {
        const struct raft_settings *s = &p->settings[i];

        TRACE(cluster, p->faults & FAULT_BIT(FAULT_MIXED) ? &cluster->hosts[i] : NULL,
              "election %.1f-%.1f ms, heartbeat %.1f, promise %.1f, margin %.1f, drift %d ppm, transfer %.1f",
              (double)s->election_min / 1e6, (double)s->election_max / 1e6, (double)s->heartbeat / 1e6,
              (double)s->promise / 1e6, (double)s->stop_margin / 1e6, s->drift_ppm,
              (double)s->transfer_timeout / 1e6);
    }
    TRACE(cluster, NULL, "members %s", cluster_describe_config(cluster, &p->first, text, sizeof text));
}

static void describe_reply(const struct raft_message *m, char *text, size_t size)
{
    const struct raft_append_reply *r = &m->append_reply;

    if (r->is_success)
        (void)snprintf(text, size, "append-reply term %llu: match %llu, round %llu, epoch %llu, seen %llu",
                       (ull)m->term, (ull)r->match, (ull)r->round, (ull)r->lease_epoch, (ull)r->seen_term);
    else
        (void)snprintf(
            text, size, "append-reply term %llu: refused at %llu, conflict %llu in term %llu, round %llu",
            (ull)m->term, (ull)r->prev_index, (ull)r->conflict_index, (ull)r->conflict_term, (ull)r->round);
}

static const char *certificate_name(enum raft_certificate_kind kind)
{
    static const char *const names[] = {[RAFT_CERT_NONE] = "none",
                                        [RAFT_CERT_OBITUARY] = "obituary",
                                        [RAFT_CERT_RELEASE] = "release",
                                        [RAFT_CERT_FORCE] = "force"};

    return names[kind];
}

const char *cluster_describe(const struct raft_message *m, char *text, size_t size)
{
    const char *name = raft_message_name(m->kind);

    switch (m->kind) {
    case RAFT_MSG_APPEND:
        (void)snprintf(
            text, size, "%s term %llu: after %llu.%llu, %u entries, commit %llu, round %llu, epoch %llu",
            name, (ull)m->term, (ull)m->append.prev_term, (ull)m->append.prev_index, m->append.entry_count,
            (ull)m->append.commit, (ull)m->append.round, (ull)m->append.lease_epoch);
        break;
    case RAFT_MSG_APPEND_REPLY:
        describe_reply(m, text, size);
        break;
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        (void)snprintf(text, size, "%s for term %llu: log %llu.%llu, certificate %s", name, (ull)m->vote.term,
                       (ull)m->vote.last_term, (ull)m->vote.last_index,
                       certificate_name(m->vote.certificate.kind));
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        (void)snprintf(text, size, "%s for term %llu: %s, own term %llu", name, (ull)m->vote_reply.term,
                       raft_reason_name(m->vote_reply.reason), (ull)m->term);
        break;
    case RAFT_MSG_SNAPSHOT:
        (void)snprintf(text, size, "%s term %llu: up to %llu.%llu, %zu bytes", name, (ull)m->term,
                       (ull)m->snapshot.index_term, (ull)m->snapshot.index, m->snapshot.size);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_CERTIFICATE:
        (void)snprintf(text, size, "%s: %s of %llu, incarnation %llu, term %llu, epoch %llu", name,
                       certificate_name(m->certificate.kind), (ull)m->certificate.node,
                       (ull)m->certificate.incarnation, (ull)m->certificate.term,
                       (ull)m->certificate.lease_epoch);
        break;
    case RAFT_MSG_TAKE_OVER:
        (void)snprintf(text, size, "%s term %llu", name, (ull)m->term);
        break;
    }
    return text;
}

static void trace_news(struct cluster *cluster, const struct host *host, const struct raft_action *action)
{
    const char *name = raft_news_name(action->tell.news);
    const struct raft_election *e = action->tell.election;

    switch (action->tell.news) {
    case RAFT_NEWS_ROLE_CHANGED:
        TRACE(cluster, host, "is %s in term %llu", action->tell.text, (ull)action->tell.term);
        break;
    case RAFT_NEWS_ELECTION_ENDED:
        if (e)
            TRACE_DETAIL(cluster, host, "%s: %s of %s for term %llu %s", name,
                         e->is_pre_vote ? "pre-vote" : "candidacy", cluster_label(cluster, e->candidate),
                         (ull)e->term, raft_result_name(e->result));
        break;
    case RAFT_NEWS_LEADER_CHANGED:
        TRACE_DETAIL(cluster, host, "%s: %s", name,
                     action->tell.node ? cluster_label(cluster, action->tell.node) : "nobody");
        break;
    default:
        TRACE(cluster, host, "%s: %s%s%s%s%llu", name,
              action->tell.node ? cluster_label(cluster, action->tell.node) : "",
              action->tell.text ? " " : "", action->tell.text ? action->tell.text : "",
              action->tell.index ? " from " : " term ",
              action->tell.index ? (ull)action->tell.index : (ull)action->tell.term);
        break;
    }
}

void cluster_trace_action(struct cluster *cluster, const struct host *host, const struct raft_action *action)
{
    const struct raft_persist *persist = &action->persist;
    char text[160];

    switch (action->kind) {
    case RAFT_PERSIST:
        TRACE_DETAIL(cluster, host, "writes %llu: term %llu vote %llu%s%s, cut at %llu, entries %llu to %llu",
                     (ull)persist->seq, (ull)persist->state.term, (ull)persist->state.vote,
                     persist->has_state ? "" : " (unchanged)", persist->has_snapshot ? ", snapshot" : "",
                     (ull)persist->truncate, (ull)persist->first, (ull)persist->last);
        break;
    case RAFT_SEND:
        if (action->send.message.kind != RAFT_MSG_APPEND &&
            action->send.message.kind != RAFT_MSG_APPEND_REPLY)
            TRACE(cluster, host, "to %s: %s", cluster_label(cluster, action->send.message.to),
                  cluster_describe(&action->send.message, text, sizeof text));
        else
            TRACE_DETAIL(cluster, host, "to %s: %s (after %llu)",
                         cluster_label(cluster, action->send.message.to),
                         cluster_describe(&action->send.message, text, sizeof text), (ull)action->send.after);
        break;
    case RAFT_APPLY:
        TRACE_DETAIL(cluster, host, "applies %llu to %llu", (ull)action->apply.first,
                     (ull)action->apply.last);
        break;
    case RAFT_RESTORE:
        TRACE(cluster, host, "takes the snapshot at %llu", (ull)host->node.raft.snapshot.index);
        break;
    case RAFT_CLAIM:
        TRACE(cluster, host, "CLAIMS with token %llu.%llu", (ull)action->claim.term,
              (ull)action->claim.lease_epoch);
        break;
    case RAFT_STOP_WORK:
        TRACE(cluster, host, "must stop its work: %s", raft_stop_name(action->stop.reason));
        break;
    case RAFT_TELL:
        trace_news(cluster, host, action);
        break;
    }
}
