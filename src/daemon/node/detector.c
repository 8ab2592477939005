/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/detector.h"

#include <string.h>

#define REPORTS (RAFT_MEMBERS_MAX + 1)

void detector_init(struct detector *detector) { memset(detector, 0, sizeof *detector); }

static struct detector_report *find(struct detector *detector, raft_id node)
{
    for (size_t i = 1; i < REPORTS; i++)
        if (detector->reports[i].node == node)
            return &detector->reports[i];
    return NULL;
}

const struct peer_status *detector_status_of(const struct detector *detector, raft_id node)
{
    for (size_t i = 1; i < REPORTS; i++)
        if (detector->reports[i].node == node)
            return &detector->reports[i].status;
    return NULL;
}

void detector_keep(struct detector *detector, const struct raft_config *members)
{
    for (size_t i = 1; i < REPORTS; i++)
        if (detector->reports[i].node != 0 && !raft_config_find(members, detector->reports[i].node))
            memset(&detector->reports[i], 0, sizeof detector->reports[i]);
}

/* The order of fencing tokens. */
static int compare_tokens(const struct peer_status *a, const struct peer_status *b)
{
    if (a->term != b->term)
        return a->term < b->term ? -1 : 1;
    return a->lease_epoch < b->lease_epoch ? -1 : a->lease_epoch > b->lease_epoch;
}

/* `known_from`: the first of our numbers that says it knowing this. */
static void take(struct detector_report *report, const struct peer_status *status, uint64_t known_from)
{
    bool is_same =
        report->status.is_leader && status->is_leader && compare_tokens(&report->status, status) == 0;

    if (!is_same)
        report->is_told = false;
    if (!is_same || !report->status.is_working)
        report->works_since = known_from;
    report->node = status->node;
    report->status = *status;
}

void detector_send(struct detector *detector, struct peer_status *status)
{
    status->number = ++detector->number;
    status->echo_count = 0;
    for (size_t i = 1; i < REPORTS; i++) {
        const struct detector_report *report = &detector->reports[i];

        if (report->node == 0 || status->echo_count >= RAFT_MEMBERS_MAX)
            continue;
        status->echoes[status->echo_count].node = report->node;
        status->echoes[status->echo_count].number = report->status.number;
        status->echo_count++;
    }
    take(&detector->reports[0], status, status->number);
}

/* The newest of our numbers that the sender had read. */
static uint64_t echo_of(const struct peer_status *status, raft_id self)
{
    for (unsigned i = 0; i < status->echo_count && i < RAFT_MEMBERS_MAX; i++)
        if (status->echoes[i].node == self)
            return status->echoes[i].number;
    return 0;
}

/* What `late`, whose sender had read our number `echo`, proves together with what we knew. */
static enum detector_finding judge(const struct detector_report *known, const struct peer_status *late,
                                   uint64_t echo)
{
    const struct peer_status *other = &known->status;

    if (known->node == 0 || known->node == late->node)
        return DETECTOR_NOTHING;
    if (other->is_leader && late->is_leader && other->term == late->term)
        return DETECTOR_ONE_TERM;
    if (other->is_working && late->is_working && echo >= known->works_since &&
        compare_tokens(late, other) < 0)
        return DETECTOR_OVERLAP;
    return DETECTOR_NOTHING;
}

static struct detector_alarm alarm_of(enum detector_finding finding, const struct peer_status *a,
                                      const struct peer_status *b)
{
    bool is_a_lower = compare_tokens(a, b) < 0 || (compare_tokens(a, b) == 0 && a->node > b->node);

    return (struct detector_alarm){
        .finding = finding, .higher = is_a_lower ? *b : *a, .lower = is_a_lower ? *a : *b};
}

struct detector_alarm detector_receive(struct detector *detector, const struct peer_status *self,
                                       const struct peer_status *status)
{
    struct detector_report *report = find(detector, status->node);
    struct detector_alarm alarm = {.finding = DETECTOR_NOTHING};
    uint64_t echo = echo_of(status, self->node);

    if (!report)
        report = find(detector, 0);
    if (!report || status->node == self->node || status->node == 0)
        return alarm;
    take(report, status, detector->number + 1);
    if (report->is_told)
        return alarm;
    for (size_t i = 0; i < REPORTS && alarm.finding == DETECTOR_NOTHING; i++) {
        enum detector_finding finding = judge(&detector->reports[i], status, echo);

        if (finding != DETECTOR_NOTHING)
            alarm = alarm_of(finding, &detector->reports[i].status, status);
    }
    /* It works with a higher token than ours, and we have not stopped: no proof of order is needed. */
    if (alarm.finding == DETECTOR_NOTHING && self->is_working && status->is_working &&
        compare_tokens(self, status) < 0)
        alarm = alarm_of(DETECTOR_OVERLAP, self, status);
    report->is_told = alarm.finding != DETECTOR_NOTHING;
    return alarm;
}

void detector_applied(struct detector *detector, raft_index index, uint64_t digest)
{
    detector->digests[index % DETECTOR_DIGESTS] = (struct detector_digest){.index = index, .digest = digest};
}

bool detector_differs(struct detector *detector, const struct peer_status *status, raft_index *ret_index)
{
    const struct detector_digest *ours = &detector->digests[status->digest_index % DETECTOR_DIGESTS];
    struct detector_report *report = find(detector, status->node);
    bool was_other;

    if (!report || status->node == 0 || status->digest_index == 0 || ours->index != status->digest_index)
        return false; /* not told, or not known here: it is ahead of us, or far behind */
    was_other = report->is_other;
    report->is_other = ours->digest != status->digest;
    *ret_index = ours->index;
    return report->is_other && !was_other;
}

bool detector_is_other(const struct detector *detector, raft_id node)
{
    for (size_t i = 1; i < REPORTS; i++)
        if (detector->reports[i].node == node)
            return detector->reports[i].is_other;
    return false;
}
