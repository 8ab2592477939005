/* SPDX-License-Identifier: Apache-2.0 */

/* The rules, each by itself, over claims and statuses in order of time. */
#include "referee_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const rule_names[RULE_COUNT] = {
    [RULE_TERM] = "two nodes lead in one term",
    [RULE_OVERLAP] = "two claims overlap in time",
    [RULE_TOKEN] = "a later claim has no higher token",
    [RULE_UNENDED] = "a node leads again, and its last claim never ended",
    [RULE_STRAY] = "a lease or an end without a claim",
    [RULE_LATE] = "work stopped long after the lease was over",
    [RULE_BOAST] = "a node says that it has a lease, and its log has no claim that says so",
    [RULE_DIGEST] = "two nodes applied the same entries and hold different tables",
    [RULE_LOST] = "a leader does not know what was committed before it",
    [RULE_BAD_LINE] = "a line that lacks something",
};

void referee_remark(struct referee *r, enum referee_rule rule, const char *first, const char *second)
{
    r->found[rule]++;
    if (r->remark_count == REMARKS_MAX || r->found[rule] > REMARKS_OF_RULE_MAX)
        return;
    r->remarks[r->remark_count].rule = rule;
    r->remarks[r->remark_count].first = first;
    r->remarks[r->remark_count].second = second;
    r->remark_count++;
}

/* What a node has said in so short a time before its death may be missing in its log. */
#define LOST_NS (200 * NS_PER_MS)

static int by_time(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static int status_by_time(const void *a, const void *b)
{
    const struct status *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static int deed_by_time(const void *a, const void *b)
{
    const struct deed *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static void sort(void *list, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count)
        qsort(list, count, size, compare);
}

static struct claim *claim_of(const struct referee *r, const struct status *s)
{
    for (size_t i = 0; i < r->claim_count; i++)
        if (r->claims[i].node == s->node && r->claims[i].token.term == s->token.term &&
            r->claims[i].token.epoch == s->token.epoch)
            return &r->claims[i];
    return NULL;
}

/* Whether that node died soon afterwards, and so may have taken the newest lines of its log along. */
static const struct deed *death_after(const struct referee *r, const struct status *s)
{
    for (size_t i = 0; i < r->deed_count; i++)
        if (r->deeds[i].node == s->node && r->deeds[i].kind <= DEED_DIED && r->deeds[i].at >= s->at &&
            r->deeds[i].at - s->at < LOST_NS)
            return &r->deeds[i];
    return NULL;
}

/* A node that said it has a lease, and died before its log did: what it said is a claim like any other. */
static void take_seen_claims(struct referee *r)
{
    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];
        const struct deed *death = s->has_lease ? death_after(r, s) : NULL;
        struct claim *claim = claim_of(r, s);

        if (!death || (claim && !claim->is_seen_only))
            continue;
        if (claim) {
            claim->from = s->at < claim->from ? s->at : claim->from;
            claim->until = s->at > claim->until ? s->at : claim->until;
            continue;
        }
        r->seen_only++;
        referee_add_claim(r, (struct claim){.node = s->node,
                                            .token = s->token,
                                            .from = s->at,
                                            .until = s->at,
                                            .died = death->at,
                                            .is_seen_only = true,
                                            .line = s->line,
                                            .lease_line = s->line,
                                            .end_line = death->line});
    }
}

/* A node that says it has no lease has none any more, also if the line that says so is lost. In order of
 * time. */
static void take_denials(struct referee *r)
{
    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];
        struct claim *claim = s->has_lease ? claim_of(r, s) : NULL;

        if (claim && claim->alive_at < s->at)
            claim->alive_at = s->at;
    }
    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];

        for (size_t k = 0; k < r->claim_count && !s->has_lease; k++) {
            struct claim *claim = &r->claims[k];

            if (claim->node == s->node && s->at > claim->alive_at && !claim->denied) {
                claim->denied = s->at;
                if (!claim->stopped)
                    claim->end_line = s->line;
            }
        }
    }
}

/* Onto one clock, and the deaths that only the test saw. */
static void prepare(struct referee *r)
{
    for (size_t i = 0; i < r->claim_count; i++) {
        struct claim *c = &r->claims[i];
        int64_t offset = r->nodes[c->node].offset;

        c->from -= offset;
        c->alive_at -= offset;
        c->until -= c->until ? offset : 0;
        c->stopped -= c->stopped ? offset : 0;
        c->died -= c->died ? offset : 0;
    }
    for (size_t i = 0; i < r->status_count; i++) {
        r->statuses[i].at -= r->nodes[r->statuses[i].node].offset;
        r->statuses[i].heard -= r->nodes[r->statuses[i].node].offset;
    }
    for (size_t i = 0; i < r->deed_count; i++)
        if (r->deeds[i].kind == DEED_DIED)
            r->deeds[i].at -= r->nodes[r->deeds[i].node].offset;
    take_seen_claims(r);
    sort(r->claims, r->claim_count, sizeof *r->claims, by_time);
    sort(r->statuses, r->status_count, sizeof *r->statuses, status_by_time);
    sort(r->deeds, r->deed_count, sizeof *r->deeds, deed_by_time);
    take_denials(r);
    for (size_t i = 0; i < r->deed_count; i++) {
        const struct deed *deed = &r->deeds[i];

        if (deed->kind > DEED_STRUCK)
            continue;
        for (size_t k = 0; k < r->claim_count; k++) {
            struct claim *c = &r->claims[k];

            if (c->node != deed->node || c->from > deed->at || (c->died && c->died <= deed->at))
                continue;
            c->died = deed->at;
            if (!c->stopped && (!c->denied || c->denied > c->died))
                c->end_line = deed->line;
        }
    }
}

/* Until when its node may have worked by this claim. */
static int64_t end_of(const struct claim *c)
{
    int64_t end = INT64_MAX;

    if (c->stopped)
        end = c->stopped;
    if (c->died && c->died < end)
        end = c->died;
    if (c->denied && c->denied < end)
        end = c->denied;
    if (c->until && c->until < end)
        end = c->until;
    return end;
}

static const char *end_line_of(const struct claim *c)
{
    return c->lease_line && end_of(c) == c->until ? c->lease_line : c->end_line;
}

static void judge_terms(struct referee *r)
{
    for (size_t i = 0; i < r->claim_count; i++) {
        bool is_first = true;

        for (size_t k = 0; k < i; k++) {
            if (r->claims[k].token.term != r->claims[i].token.term)
                continue;
            is_first = false;
            if (r->claims[k].node != r->claims[i].node) {
                referee_remark(r, RULE_TERM, r->claims[k].line, r->claims[i].line);
                break;
            }
        }
        r->terms += is_first;
    }
}

static bool is_higher(const struct token *a, const struct token *than)
{
    return a->term > than->term || (a->term == than->term && a->epoch > than->epoch);
}

static void judge_tokens(struct referee *r)
{
    for (size_t i = 1; i < r->claim_count; i++)
        if (!is_higher(&r->claims[i].token, &r->claims[i - 1].token))
            referee_remark(r, RULE_TOKEN, r->claims[i - 1].line, r->claims[i].line);
}

/* The log or the test must tell of an end before the same node may lead again. */
static void judge_ends(struct referee *r)
{
    for (int node = 0; node < r->node_count; node++) {
        const struct claim *last = NULL;

        for (size_t i = 0; i < r->claim_count; i++) {
            const struct claim *c = &r->claims[i];

            if (c->node != node)
                continue;
            if (last && !(last->stopped && last->stopped <= c->from) &&
                !(last->died && last->died <= c->from) && !(last->denied && last->denied <= c->from))
                referee_remark(r, RULE_UNENDED, last->line, c->line);
            last = c;
        }
    }
}

static void judge_overlaps(struct referee *r)
{
    r->gap_min_ns = -1;
    for (size_t i = 1; i < r->claim_count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct claim *earlier = &r->claims[k], *later = &r->claims[i];
            int64_t gap;

            if (earlier->node == later->node)
                continue;
            r->pairs++;
            if (end_of(earlier) > later->from) {
                referee_remark(r, RULE_OVERLAP, end_line_of(earlier), later->line);
                continue;
            }
            gap = later->from - end_of(earlier);
            if (r->gap_min_ns < 0 || gap < r->gap_min_ns)
                r->gap_min_ns = gap;
        }
    }
}

/* Whether that node, or the machine, was paused at some time of [from, to]. */
static bool was_paused(const struct referee *r, int node, int64_t from, int64_t to)
{
    int64_t paused = 0;

    for (size_t i = 0; i < r->deed_count; i++) {
        const struct deed *deed = &r->deeds[i];

        if (deed->kind == DEED_SLEPT && deed->at <= to && deed->until >= from)
            return true;
        if (deed->node != node || deed->kind <= DEED_DIED)
            continue;
        if (deed->kind == DEED_PAUSED && !paused)
            paused = deed->at;
        if (deed->kind == DEED_RESUMED) {
            if (paused && paused <= to && deed->at >= from)
                return true;
            paused = 0;
        }
    }
    return paused && paused <= to;
}

/* For how long that node was kept from running at some time of [from, to]. */
static int64_t waited(const struct referee *r, int node, int64_t from, int64_t to)
{
    int64_t sum = 0;

    for (size_t i = 0; i < r->deed_count; i++) {
        const struct deed *deed = &r->deeds[i];

        if (deed->kind == DEED_WAITED && (deed->node == EVERYBODY || deed->node == node) && deed->at <= to &&
            deed->until >= from)
            sum += deed->wait;
    }
    return sum;
}

/* A pause shortly before the lease was over counts: whoever wakes up has other things to do first. */
#define LOOK_BACK_NS (500 * NS_PER_MS)

static void judge_late(struct referee *r)
{
    for (size_t i = 0; i < r->claim_count; i++) {
        const struct claim *c = &r->claims[i];
        int64_t since = c->until - LOOK_BACK_NS > c->from ? c->until - LOOK_BACK_NS : c->from, late;

        if (!c->until || !c->stopped || c->stopped <= c->until || was_paused(r, c->node, since, c->stopped))
            continue;
        late = c->stopped - c->until - waited(r, c->node, since, c->stopped);
        if (late > r->late_max_ns)
            r->late_max_ns = late;
        if (late > r->late_ns)
            referee_remark(r, RULE_LATE, c->lease_line, c->end_line);
    }
}

static void judge_boasts(struct referee *r)
{
    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];
        bool is_true = false;

        if (!s->has_lease)
            continue;
        r->boasts++;
        for (size_t k = 0; k < r->claim_count && !is_true; k++) {
            const struct claim *c = &r->claims[k];

            is_true = c->node == s->node && c->token.term == s->token.term &&
                      c->token.epoch == s->token.epoch && c->from <= s->heard && s->at <= end_of(c);
        }
        if (!is_true)
            referee_remark(r, RULE_BOAST, s->line, "no claim of that node and token holds at that time");
    }
}

/* The statuses are many and the same applied index is rare beyond a short time: looks at neighbours in
 * time. */
#define NEIGHBOURS 2000

static void judge_digests(struct referee *r)
{
    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];

        for (size_t k = i > NEIGHBOURS ? i - NEIGHBOURS : 0; k < i; k++) {
            const struct status *before = &r->statuses[k];

            if (before->generation != s->generation || before->applied != s->applied)
                continue;
            r->equals++;
            if (strcmp(before->digest, s->digest) != 0 || before->revision != s->revision) {
                referee_remark(r, RULE_DIGEST, before->line, s->line);
                break;
            }
        }
    }
}

/* A leader claims only when an entry of its own term is committed, so it knows whatever was before. */
static void judge_lost(struct referee *r)
{
    const struct status *most = NULL;

    for (size_t i = 0; i < r->status_count; i++) {
        const struct status *s = &r->statuses[i];

        if (most && s->generation != most->generation)
            continue;
        if (most && s->has_lease && s->commit < most->commit && s->token.term >= most->token.term)
            referee_remark(r, RULE_LOST, most->line, s->line);
        if (!most || s->commit > most->commit)
            most = s;
    }
}

void referee_judge(struct referee *r)
{
    prepare(r);
    judge_terms(r);
    judge_tokens(r);
    judge_ends(r);
    judge_overlaps(r);
    judge_late(r);
    judge_boasts(r);
    judge_digests(r);
    judge_lost(r);
}

size_t referee_claims(const struct referee *r) { return r->claim_count; }

uint64_t referee_found(const struct referee *r, enum referee_rule rule) { return r->found[rule]; }

uint64_t referee_found_all(const struct referee *r)
{
    uint64_t sum = 0;

    for (int i = 0; i < RULE_COUNT; i++)
        sum += r->found[i];
    return sum;
}

void referee_print(const struct referee *r, FILE *out)
{
    fprintf(out,
            "# referee: %d nodes, %" PRIu64 " lines of log, %zu claims in %" PRIu64 " terms, %" PRIu64
            " leases, %zu deeds, %zu statuses\n",
            r->node_count, r->log_lines, r->claim_count, r->terms, r->leases, r->deed_count, r->status_count);
    fprintf(out,
            "# referee: checked %" PRIu64 " pairs of claims, %" PRIu64 " statuses with a lease, %" PRIu64
            " pairs of tables; %" PRIu64 " claims only seen\n",
            r->pairs, r->boasts, r->equals, r->seen_only);
    if (r->gap_min_ns >= 0)
        fprintf(out,
                "# referee: shortest time between two leaders %.3f ms; latest stop %.3f ms after a lease\n",
                (double)r->gap_min_ns / (double)NS_PER_MS, (double)r->late_max_ns / (double)NS_PER_MS);
    for (size_t i = 0; i < r->remark_count; i++)
        fprintf(out, "# referee: %s:\n#   %s\n#   %s\n", rule_names[r->remarks[i].rule], r->remarks[i].first,
                r->remarks[i].second);
    for (int i = 0; i < RULE_COUNT; i++)
        if (r->found[i])
            fprintf(out, "# referee: %" PRIu64 " times: %s\n", r->found[i], rule_names[i]);
    if (!referee_found_all(r))
        fprintf(out, "# referee: no contradiction\n");
}
