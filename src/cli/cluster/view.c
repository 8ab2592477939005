/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/view.h"

#include "cli/json_out.h"
#include "config/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CERTIFICATE_SOON_MS (INT64_C(14) * 24 * 3600 * 1000)

static void take_text(const json_t *object, const char *key, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%s", json_get_text(object, key));
}

static bool take_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static uint64_t take_number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key)); /* 0 for anything else */
}

/* A number that may be null; -1 then. */
static int64_t take_time(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? (int64_t)json_number_value(value) : -1;
}

/* What a node says of itself. */
static void read_status(struct cluster_node *node, const struct cluster_call *call)
{
    const json_t *json = call->body;

    take_text(json, "node", node->name, sizeof node->name);
    take_text(json, "role", node->role, sizeof node->role);
    take_text(json, "leader_id", node->leader, sizeof node->leader);
    take_text(json, "api_address", node->address, sizeof node->address);
    node->generation = take_number(json, "generation");
    node->term = take_number(json, "term");
    node->lease_epoch = take_number(json, "lease_epoch");
    node->incarnation = take_number(json, "incarnation");
    node->commit = take_number(json, "commit");
    node->applied = take_number(json, "applied");
    node->has_log_end = json_is_integer(json_object_get(json, "last_term"));
    node->last = take_number(json, "last");
    node->last_term = take_number(json, "last_term");
    take_text(json, "digest", node->digest, sizeof node->digest);
    node->pid = (int64_t)take_number(json, "pid");
    node->guard_pid = (int64_t)take_number(json, "guard_pid");
    node->is_leader = take_bool(json, "is_leader");
    node->has_lease = take_bool(json, "has_lease");
    node->lease_ms = node->has_lease ? take_time(json, "lease_remaining_ms") : -1;
    node->is_stale = take_bool(json, "stale");
    node->is_disk_full = take_bool(json, "disk_full");
    node->disk_hangs_ms = take_bool(json, "disk_hangs") ? take_time(json, "oldest_write_ms") : -1;
    node->commits_hang = take_bool(json, "commits_hang");
    node->uncommitted_ms = node->is_leader ? take_time(json, "oldest_uncommitted_ms") : -1;
    node->is_too_far = take_bool(json, "too_far");
    node->lease_trip_ms = take_time(json, "lease_round_trip_ms");
    node->waits_for_operator = take_bool(json, "waits_for_operator");
    node->is_handing_over = take_bool(json, "handing_over");
    node->has_answered = true;
    node->certificate_ends_s = call->certificate_ends_s;
    node->status = call->body;
}

const struct cluster_node *cluster_view_find(const struct cluster_view *view, const char *name)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (*name && strcmp(view->nodes[i].name, name) == 0)
            return &view->nodes[i];
    return NULL;
}

const struct cluster_node *cluster_view_leader(const struct cluster_view *view)
{
    return view->leader < 0 ? NULL : &view->nodes[view->leader];
}

bool cluster_node_is_well(const struct cluster_node *node)
{
    return node->has_answered && node->is_healthy && !node->is_stale && !node->is_disk_full &&
           node->disk_hangs_ms < 0;
}

const char *cluster_node_health(const struct cluster_node *node)
{
    if (!node->has_answered)
        return "silent";
    if (node->is_disk_full)
        return "full";
    if (node->disk_hangs_ms >= 0)
        return "disk hangs";
    if (node->is_stale)
        return "stale";
    return node->is_healthy ? "ok" : "cut off";
}

/* Whether a node is to be believed rather than another. */
static bool outranks(const struct cluster_node *a, const struct cluster_node *b)
{
    if (a->has_lease != b->has_lease && a->generation == b->generation)
        return a->has_lease;
    if (a->generation != b->generation)
        return a->generation > b->generation;
    if (a->term != b->term)
        return a->term > b->term;
    if (!*a->leader != !*b->leader)
        return *a->leader != '\0';
    return a->commit > b->commit;
}

static int find_believed(const struct cluster_view *view)
{
    int best = -1;

    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].has_answered && (best < 0 || outranks(&view->nodes[i], &view->nodes[best])))
            best = (int)i;
    return best;
}

/* The node of a member, by name, by the address it was asked at, or a new one; NULL if there is no room. */
static struct cluster_node *node_of_member(struct cluster_view *view, const char *name, const char *address)
{
    for (size_t i = 0; i < view->node_count; i++)
        if (strcmp(view->nodes[i].name, name) == 0)
            return &view->nodes[i];
    for (size_t i = 0; i < view->node_count; i++)
        if (!view->nodes[i].has_answered && *address &&
            strcmp(cluster_url_host(view->nodes[i].url), address) == 0)
            return &view->nodes[i];
    if (view->node_count == VIEW_NODES_MAX)
        return NULL;
    view->nodes[view->node_count] = (struct cluster_node){.lease_ms = -1,
                                                          .contact_ms = -1,
                                                          .disk_hangs_ms = -1,
                                                          .uncommitted_ms = -1,
                                                          .reason = "its API address is unknown"};
    return &view->nodes[view->node_count++];
}

/* What the node that is believed says of the members. */
static void read_members(struct cluster_view *view)
{
    const json_t *peers = json_object_get(view->nodes[view->believed].status, "peers"), *peer;
    size_t position;

    json_array_foreach(peers, position, peer) {
        const char *name = json_string_value(json_object_get(peer, "id"));
        const char *address = json_string_value(json_object_get(peer, "api_address"));
        struct cluster_node *node = name ? node_of_member(view, name, address ? address : "") : NULL;

        if (!node)
            continue;
        (void)snprintf(node->name, sizeof node->name, "%s", name);
        if (address && *address)
            (void)snprintf(node->address, sizeof node->address, "%s", address);
        take_text(peer, "role", node->kind, sizeof node->kind);
        take_text(peer, "trouble", node->trouble, sizeof node->trouble);
        node->is_healthy = take_bool(peer, "self") || take_bool(peer, "healthy");
        node->contact_ms = take_bool(peer, "self") ? 0 : take_time(peer, "last_contact_ms");
        view->members++;
    }
}

/* The nodes that answered, each once however many addresses it has, and those that did not. */
static void read_calls(struct cluster_view *view)
{
    for (size_t i = 0; i < view->call_count; i++) {
        const struct cluster_call *call = &view->calls[i];
        const char *name =
            call->status != GAVEL_OK ? NULL : json_string_value(json_object_get(call->body, "node"));
        struct cluster_node *node = &view->nodes[view->node_count];

        if (name && cluster_view_find(view, name))
            continue;
        *node = (struct cluster_node){
            .lease_ms = -1, .contact_ms = -1, .disk_hangs_ms = -1, .uncommitted_ms = -1};
        (void)snprintf(node->url, sizeof node->url, "%s", call->url);
        if (name)
            read_status(node, call);
        else
            (void)snprintf(node->reason, sizeof node->reason, "%s",
                           call->status != GAVEL_OK ? call->reason : "its answer has no node name");
        if (!*node->address)
            (void)snprintf(node->address, sizeof node->address, "%.255s", cluster_url_host(call->url));
        view->node_count++;
    }
}

/* By name; those without one last, by address. */
static int by_name(const void *left, const void *right)
{
    const struct cluster_node *a = left, *b = right;

    if (!*a->name != !*b->name)
        return *a->name ? -1 : 1;
    return *a->name ? strverscmp(a->name, b->name) : strcmp(a->address, b->address);
}

/* Who leads: the one that says so with a lease, or else whom the one that is believed follows. */
static void find_leader(struct cluster_view *view)
{
    const struct cluster_node *believed = &view->nodes[view->believed];

    view->leader = -1;
    view->is_hearsay = false;
    if (believed->has_lease) {
        view->leader = view->believed;
        return;
    }
    if (!*believed->leader || believed->is_stale)
        return;
    for (size_t i = 0; i < view->node_count; i++)
        if (strcmp(view->nodes[i].name, believed->leader) == 0) {
            view->leader = (int)i;
            view->is_hearsay = true;
        }
}

static void trouble(struct cluster_view *view, enum trouble_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void trouble(struct cluster_view *view, enum trouble_kind kind, const char *format, ...)
{
    va_list list;

    if (view->trouble_count == VIEW_TROUBLES_MAX)
        return;
    view->troubles[view->trouble_count].kind = kind;
    va_start(list, format);
    (void)vsnprintf(view->troubles[view->trouble_count].text, sizeof view->troubles[0].text, format, list);
    va_end(list);
    view->trouble_count++;
}

static void judge_leader(struct cluster_view *view)
{
    const struct cluster_node *leader = cluster_view_leader(view), *believed = &view->nodes[view->believed];
    struct cluster_constraint constraint;
    char trips[150];
    int64_t limit_ms;

    if (cluster_view_too_far(view, trips, sizeof trips, &limit_ms))
        trouble(
            view, TROUBLE_NO_LEADER,
            "nobody can work: no node reaches a majority of the voters within %lld ms, which a lease needs; round trips %s; raise promise, election_min and election_max on all nodes, or move nodes closer",
            (long long)limit_ms, trips);
    else if (!leader && believed->waits_for_operator)
        trouble(
            view, TROUBLE_NO_LEADER,
            "nobody leads, and auto_failover is off: choose a node with `gavel handover --to NODE --force`");
    else if (!leader && !view->members)
        trouble(view, TROUBLE_NO_LEADER,
                "%s belongs to no cluster yet: run `gavel member add %s ADDRESS` at a running one",
                believed->name, believed->name);
    else if (!leader && cluster_view_constrained(view, &constraint))
        trouble(
            view, TROUBLE_NO_LEADER,
            "nobody can be elected, a constrained election: only %s reaches a majority of the voters, but with an older log than %s, which must not vote for it; repair a link between two of those",
            constraint.hubs, constraint.holders);
    else if (!leader)
        trouble(view, TROUBLE_NO_LEADER,
                "nobody leads: writes are refused until a majority of the voters can reach one another");
    else if (view->is_hearsay && !leader->has_answered)
        trouble(view, TROUBLE_ALERT, "%s says that %s leads, which does not answer here", believed->name,
                leader->name);
}

/* What stands still without an error; a follower only repeats what its leader says of commits. */
static void judge_hangs(struct cluster_view *view, const struct cluster_node *node, const char *name)
{
    char text[DURATION_TEXT_MAX];

    if (node->disk_hangs_ms >= 0)
        trouble(view, TROUBLE_ALERT, "the disk of %s has not answered for %s: it does not lead until it does",
                name, duration_rough(node->disk_hangs_ms, text));
    if (node->commits_hang && node->is_leader && node->uncommitted_ms >= 0)
        trouble(
            view, TROUBLE_ALERT,
            "nothing has been committed for %s: writes wait until a majority of the voters write to their disks",
            duration_rough(node->uncommitted_ms, text));
    else if (node->commits_hang && !node->is_leader && node == &view->nodes[view->believed])
        trouble(view, TROUBLE_ALERT, "%s says that its leader commits nothing: writes wait", name);
}

/* A node that answers and is no member: judge_names() tells of those of other clusters. */
static void judge_stranger(struct cluster_view *view, const struct cluster_node *node, const char *name)
{
    const char *cluster = json_string_value(json_object_get(node->status, "cluster"));

    if (cluster && strcmp(cluster, view->cluster) != 0)
        return;
    if (node->generation == 0)
        trouble(view, TROUBLE_NOTE,
                "%s is not a member of the cluster: `gavel member add %s ADDRESS` makes it one", name, name);
    else
        trouble(
            view, TROUBLE_NOTE,
            "%s is no longer a member of the cluster: stop it. To have a node there again, do not use its data directory: start a node with --join on an empty one, and add it with `gavel member add`",
            name);
}

static void judge_node(struct cluster_view *view, const struct cluster_node *node)
{
    const char *name = *node->name ? node->name : node->address;
    /* One of generation 0 has joined nothing yet. */
    bool is_left_behind = node->has_answered && node->generation != 0 && node->generation != view->generation;

    if (!node->has_answered && *node->name && *node->address)
        trouble(view, TROUBLE_ALERT, "%s (%s) does not answer: %s", name, node->address, node->reason);
    else if (!node->has_answered)
        trouble(view, TROUBLE_ALERT, "%s does not answer: %s", name, node->reason);
    else if (view->members && !*node->kind && !is_left_behind)
        judge_stranger(view, node, name);
    if (is_left_behind)
        trouble(
            view, TROUBLE_ALERT,
            "%s is in generation %llu, the cluster in %llu: empty its data directory and let it join again",
            name, (unsigned long long)node->generation, (unsigned long long)view->generation);
    if (node->is_disk_full)
        trouble(view, TROUBLE_ALERT, "the disk of %s is full: it does not lead until there is room", name);
    judge_hangs(view, node, name);
    if (node->has_answered && node->is_leader && !node->has_lease)
        trouble(view, TROUBLE_NOTE, "%s has role leader in term %llu without a lease: it does no work", name,
                (unsigned long long)node->term);
    else if (node->is_stale && view->leader >= 0)
        trouble(view, TROUBLE_ALERT, "%s knows no leader; what it says may be out of date", name);
    if (node->has_answered && !node->is_healthy && *node->kind)
        trouble(view, TROUBLE_ALERT, "%s answers here, but %s does not hear it", name,
                view->nodes[view->believed].name);
    if (*node->trouble)
        trouble(view, TROUBLE_ALERT, "%s with %s: %s", view->nodes[view->believed].name, name, node->trouble);
}

static void judge_certificate(struct cluster_view *view, const struct cluster_node *node)
{
    int64_t left_ms = node->certificate_ends_s * 1000 - view->wall_ms;
    char text[DURATION_TEXT_MAX];

    if (node->certificate_ends_s && view->wall_ms && left_ms < CERTIFICATE_SOON_MS)
        trouble(
            view, TROUBLE_ALERT,
            "the certificate of %s ends in %s: issue another (`gavel cert issue %s`) and send its guard SIGHUP",
            node->name, duration_rough(left_ms > 0 ? left_ms : 0, text), node->name);
}

/* Whoever has applied the same entries has the same table; otherwise something committed is lost or
 * changed. */
static void judge_tables(struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct cluster_node *a = &view->nodes[k], *b = &view->nodes[i];

            if (a->has_answered && b->has_answered && a->applied > 0 && a->applied == b->applied &&
                a->generation == b->generation && *a->digest && *b->digest &&
                strcmp(a->digest, b->digest) != 0)
                trouble(
                    view, TROUBLE_SPLIT_BRAIN,
                    "the tables of %s and %s differ after entry %llu (%s and %s): one of them has lost or changed what was committed; keep both data directories, and replace the one that is wrong",
                    a->name, b->name, (unsigned long long)a->applied, a->digest, b->digest);
        }
}

/* Names of other clusters are a mistake of the list of URLs. */
static void judge_names(struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++) {
        const char *name = json_string_value(json_object_get(view->nodes[i].status, "cluster"));

        if (name && strcmp(name, view->cluster) != 0)
            trouble(view, TROUBLE_ALERT,
                    "%s belongs to the cluster \"%s\": remove it from the list of --cluster",
                    view->nodes[i].name, name);
    }
}

static int by_kind(const void *left, const void *right)
{
    const struct cluster_trouble *a = left, *b = right;

    return (int)a->kind - (int)b->kind;
}

void cluster_view_make(struct cluster_view *view)
{
    view->believed = view->leader = -1;
    view->node_count = view->members = view->healthy = view->trouble_count = 0;
    read_calls(view);
    view->believed = find_believed(view);
    if (view->believed < 0) {
        qsort(view->nodes, view->node_count, sizeof view->nodes[0], by_name);
        return;
    }
    read_members(view);
    qsort(view->nodes, view->node_count, sizeof view->nodes[0], by_name);
    view->believed = find_believed(view);
    take_text(view->nodes[view->believed].status, "cluster", view->cluster, sizeof view->cluster);
    view->generation = view->nodes[view->believed].generation;
    view->term = view->nodes[view->believed].term;
    view->is_changing = take_bool(view->nodes[view->believed].status, "changing_members");
    find_leader(view);
    judge_leader(view);
    for (size_t i = 0; i < view->node_count; i++) {
        judge_node(view, &view->nodes[i]);
        judge_certificate(view, &view->nodes[i]);
        view->healthy += *view->nodes[i].kind && cluster_node_is_well(&view->nodes[i]);
    }
    judge_names(view);
    judge_tables(view);
    qsort(view->troubles, view->trouble_count, sizeof view->troubles[0], by_kind);
}

void cluster_view_done(struct cluster_view *view)
{
    cluster_calls_done(view->calls, view->call_count);
    *view = (struct cluster_view){.believed = -1, .leader = -1};
}
