/* SPDX-License-Identifier: Apache-2.0 */

/* What the referee remembers of the logs, and how it reads them; the rules are in referee_rules.c. */
#include "referee.h"

#include "referee_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A test that has no memory left has nothing to say. */
static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "referee: no memory\n");
        abort();
    }
    return memory;
}

struct referee *referee_new(void)
{
    struct referee *r = must(calloc(1, sizeof *r));

    r->late_ns = 100 * NS_PER_MS;
    return r;
}

void referee_free(struct referee *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->line_count; i++)
        free(r->lines[i]);
    free(r->lines);
    free(r->claims);
    free(r->deeds);
    free(r->statuses);
    free(r);
}

void referee_set_late_ms(struct referee *r, int64_t late_ms) { r->late_ns = late_ms * NS_PER_MS; }

/* Makes room for one more at the end of a list that doubles. */
static void *grown(void *list, size_t count, size_t size)
{
    if (count & (count - 1) || count == 1)
        return list;
    return must(realloc(list, (count ? count * 2 : 2) * size));
}

/* Kept until the referee is freed, so that a contradiction can show it. */
static const char *keep(struct referee *r, const char *origin, const char *line)
{
    char *copy = must(malloc(strlen(origin) + strlen(line) + 3));

    sprintf(copy, "%s: %s", origin, line);
    copy[strcspn(copy, "\n")] = '\0';
    r->lines = grown(r->lines, r->line_count, sizeof *r->lines);
    r->lines[r->line_count++] = copy;
    return copy;
}

int referee_node(struct referee *r, const char *name)
{
    for (int i = 0; i < r->node_count; i++)
        if (strcmp(r->nodes[i].name, name) == 0)
            return i;
    if (r->node_count == NODES_MAX) {
        fprintf(stderr, "referee: more than %d nodes\n", NODES_MAX);
        abort();
    }
    snprintf(r->nodes[r->node_count].name, sizeof r->nodes->name, "%s", name);
    r->nodes[r->node_count].open = NO_CLAIM;
    return r->node_count++;
}

/* The value of a key in a line of logfmt, without its quotes; false if it is not there. */
static bool field(const char *line, const char *key, char *value, size_t size)
{
    size_t length = strlen(key), out = 0;
    bool is_quoted = false;

    for (const char *at = line; *at; at++) {
        if (*at == '"' && (at == line || at[-1] != '\\'))
            is_quoted = !is_quoted;
        if (is_quoted || (at != line && at[-1] != ' ') || strncmp(at, key, length) != 0 || at[length] != '=')
            continue;
        at += length + 1;
        is_quoted = *at == '"';
        at += is_quoted;
        while (*at && *at != '\n' && *at != (is_quoted ? '"' : ' ') && out + 1 < size)
            value[out++] = *at++;
        value[out] = '\0';
        return true;
    }
    return false;
}

/* A number; false if it is missing or none. */
static bool number(const char *line, const char *key, int64_t *ret_number)
{
    char text[64], *end;

    if (!field(line, key, text, sizeof text) || !*text)
        return false;
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return !*end && !errno;
}

static bool token(const char *line, struct token *ret_token)
{
    return number(line, "term", &ret_token->term) && number(line, "lease_epoch", &ret_token->epoch);
}

static bool is_same(const struct token *a, const struct token *b)
{
    return a->term == b->term && a->epoch == b->epoch;
}

/* The newest claim of that node with that token. */
static struct claim *claim_of(struct referee *r, int node, const struct token *wanted)
{
    for (size_t i = r->claim_count; i > 0; i--)
        if (r->claims[i - 1].node == node && is_same(&r->claims[i - 1].token, wanted))
            return &r->claims[i - 1];
    return NULL;
}

void referee_add_claim(struct referee *r, struct claim claim)
{
    r->claims = grown(r->claims, r->claim_count, sizeof *r->claims);
    r->claims[r->claim_count++] = claim;
}

static void add_deed(struct referee *r, struct deed deed)
{
    r->deeds = grown(r->deeds, r->deed_count, sizeof *r->deeds);
    r->deeds[r->deed_count++] = deed;
}

/* The first lease is told with the claim or by itself; until: 0 in that case. */
static void log_leads(struct referee *r, int node, const struct token *at_token, int64_t at, int64_t until,
                      const char *kept)
{
    r->nodes[node].open = (ptrdiff_t)r->claim_count;
    referee_add_claim(r, (struct claim){.node = node,
                                        .token = *at_token,
                                        .from = at,
                                        .until = until,
                                        .alive_at = at,
                                        .line = kept,
                                        .lease_line = kept,
                                        .end_line = kept});
}

static void log_lease(struct referee *r, int node, const struct token *at_token, int64_t at, int64_t until,
                      const char *kept)
{
    struct claim *claim = claim_of(r, node, at_token);

    r->leases++;
    if (!claim) {
        referee_remark(r, RULE_STRAY, kept, "no such claim was made");
    } else if (until > claim->until) {
        claim->until = until;
        claim->alive_at = at;
        claim->lease_line = kept;
    }
}

static void log_stopped(struct referee *r, int node, const struct token *at_token, int64_t at,
                        const char *kept)
{
    struct claim *claim = claim_of(r, node, at_token);

    if (!claim) {
        referee_remark(r, RULE_STRAY, kept, "no such claim was made");
        return;
    }
    if (!claim->stopped)
        claim->stopped = at;
    claim->end_line = kept;
    if (r->nodes[node].open != NO_CLAIM && claim == &r->claims[r->nodes[node].open])
        r->nodes[node].open = NO_CLAIM;
}

static void log_died(struct referee *r, int node, int64_t at, const char *kept)
{
    struct node *n = &r->nodes[node];

    add_deed(r, (struct deed){.kind = DEED_DIED, .node = node, .at = at, .line = kept});
    if (n->open == NO_CLAIM)
        return;
    r->claims[n->open].died = at;
    r->claims[n->open].end_line = kept;
    n->open = NO_CLAIM;
}

void referee_log_line(struct referee *r, const char *name, const char *origin, const char *line)
{
    int node = referee_node(r, name);
    struct token at_token;
    int64_t at, until;
    char msg[32];
    bool is_lease;

    r->log_lines++;
    if (!field(line, "msg", msg, sizeof msg))
        return;
    is_lease = strcmp(msg, "lease") == 0;
    if (strcmp(msg, "node died") == 0 || strcmp(msg, "node stopped") == 0) {
        if (number(line, "at_ns", &at))
            log_died(r, node, at, keep(r, origin, line));
        else
            referee_remark(r, RULE_BAD_LINE, keep(r, origin, line), "at_ns is missing");
        return;
    }
    if (!is_lease && strcmp(msg, "leads") != 0 && strcmp(msg, "work stopped") != 0)
        return;
    if (!token(line, &at_token) || !number(line, "at_ns", &at) ||
        (is_lease && !number(line, "until_ns", &until))) {
        referee_remark(r, RULE_BAD_LINE, keep(r, origin, line), "a number is missing");
        return;
    }
    if (is_lease)
        log_lease(r, node, &at_token, at, until, keep(r, origin, line));
    else if (strcmp(msg, "leads") == 0)
        log_leads(r, node, &at_token, at, number(line, "until_ns", &until) ? until : 0,
                  keep(r, origin, line));
    else
        log_stopped(r, node, &at_token, at, keep(r, origin, line));
}

static bool deed_status(struct referee *r, int node, int64_t at, const char *line, const char *kept)
{
    struct status s = {.node = node, .at = at, .line = kept};
    char flag[8];

    if (!token(line, &s.token) || !field(line, "has_lease", flag, sizeof flag) ||
        !number(line, "generation", &s.generation) || !number(line, "commit", &s.commit) ||
        !number(line, "applied", &s.applied) || !number(line, "revision", &s.revision) ||
        !field(line, "digest", s.digest, sizeof s.digest))
        return false;
    s.has_lease = strcmp(flag, "true") == 0;
    if (!number(line, "heard_ns", &s.heard))
        s.heard = at;
    r->statuses = grown(r->statuses, r->status_count, sizeof *r->statuses);
    r->statuses[r->status_count++] = s;
    return true;
}

static bool kind_of(const char *msg, enum deed_kind *ret_kind)
{
    static const char *const words[] = {[DEED_KILLED] = "killed",
                                        [DEED_STRUCK] = "struck",
                                        [DEED_PAUSED] = "paused",
                                        [DEED_RESUMED] = "resumed"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i] && strcmp(msg, words[i]) == 0) {
            *ret_kind = (enum deed_kind)i;
            return true;
        }
    }
    return false;
}

void referee_deed_line(struct referee *r, const char *origin, const char *line)
{
    char msg[32], name[NAME_MAX_BYTES];
    const char *kept;
    struct deed deed = {.kind = DEED_SLEPT, .node = EVERYBODY};
    bool is_fine;

    if (!field(line, "msg", msg, sizeof msg))
        return;
    kept = keep(r, origin, line);
    deed.line = kept;
    is_fine = number(line, "at_ns", &deed.at);
    if (field(line, "node", name, sizeof name))
        deed.node = referee_node(r, name);
    else if (strcmp(msg, "slept") != 0 && strcmp(msg, "waited") != 0)
        return; /* of what the test tells for people */
    if (strcmp(msg, "clock") == 0) {
        is_fine = number(line, "offset_ns", &r->nodes[deed.node].offset);
    } else if (strcmp(msg, "status") == 0) {
        is_fine = is_fine && deed_status(r, deed.node, deed.at, line, kept);
    } else if (strcmp(msg, "slept") == 0) {
        is_fine = is_fine && number(line, "until_ns", &deed.until);
        add_deed(r, deed);
    } else if (strcmp(msg, "waited") == 0) {
        deed.kind = DEED_WAITED;
        is_fine = is_fine && number(line, "until_ns", &deed.until) && number(line, "wait_ns", &deed.wait);
        add_deed(r, deed);
    } else if (kind_of(msg, &deed.kind)) {
        add_deed(r, deed);
    } else {
        return;
    }
    if (!is_fine)
        referee_remark(r, RULE_BAD_LINE, kept, "something is missing");
}

static bool read_file(struct referee *r, const char *node, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL, origin[512];
    size_t size = 0;

    if (!file)
        return false;
    for (int count = 1; getline(&line, &size, file) > 0; count++) {
        snprintf(origin, sizeof origin, "%s:%d", path, count);
        if (node)
            referee_log_line(r, node, origin, line);
        else
            referee_deed_line(r, origin, line);
    }
    free(line);
    return fclose(file) == 0;
}

bool referee_read_log(struct referee *r, const char *node, const char *path)
{
    return read_file(r, node, path);
}
bool referee_read_deeds(struct referee *r, const char *path) { return read_file(r, NULL, path); }
