/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The constrained election: somebody reaches a majority of the voters, but
 * each one that does lacks entries that too many of those have. They must not
 * vote for it, and whoever has the entries reaches too few. Raft cannot end
 * that by itself (PROTOCOL, "Liveness"), so it is told by its name.
 *
 * Two nodes are linked if each says that it hears the other. Of a voter that
 * does not answer here neither the log is known nor whom it hears: it is
 * taken to vote for everybody who hears it, and for able to win if it may
 * reach a majority. So what is told is certain, as far as the nodes tell the truth.
 *
 * And distance: nodes that are elected, one after the other, and cannot work,
 * since no majority answers them in time for a lease. They say so themselves.
 */
#include "cli/cluster/view.h"

#include <stdio.h>
#include <string.h>

struct reach {
    size_t links; /* voters, itself among them, that it reaches, or may reach */
    size_t votes; /* of those, the ones that may vote for it */
};

static bool is_voter(const struct cluster_node *node)
{
    return strcmp(node->kind, "voter") == 0 || strcmp(node->kind, "witness") == 0;
}

/* What it says is of this cluster, and complete: a node of 0.6.0 does not tell the term of its last entry. */
static bool is_known(const struct cluster_view *view, const struct cluster_node *node)
{
    return node->has_answered && node->generation == view->generation && node->has_log_end;
}

static bool hears(const struct cluster_node *node, const char *name)
{
    const json_t *peers = json_object_get(node->status, "peers"), *peer;
    size_t position;

    json_array_foreach(peers, position, peer) {
        const char *id = json_string_value(json_object_get(peer, "id"));

        if (id && strcmp(id, name) == 0)
            return json_is_true(json_object_get(peer, "healthy"));
    }
    return false;
}

static bool are_linked(const struct cluster_view *view, const struct cluster_node *a,
                       const struct cluster_node *b)
{
    return (!is_known(view, a) || hears(a, b->name)) && (!is_known(view, b) || hears(b, a->name));
}

static bool is_log_newer(const struct cluster_node *a, const struct cluster_node *b)
{
    return a->last_term > b->last_term || (a->last_term == b->last_term && a->last > b->last);
}

/* False of one that is not known. */
static bool refuses(const struct cluster_view *view, const struct cluster_node *voter,
                    const struct cluster_node *candidate)
{
    return is_known(view, voter) && is_known(view, candidate) && is_log_newer(voter, candidate);
}

static struct reach reach_of(const struct cluster_view *view, const struct cluster_node *candidate)
{
    struct reach reach = {1, 1};

    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *voter = &view->nodes[i];

        if (voter == candidate || !is_voter(voter) || !are_linked(view, candidate, voter))
            continue;
        reach.links++;
        reach.votes += !refuses(view, voter, candidate);
    }
    return reach;
}

static void add_name(char *list, size_t size, const char *name)
{
    static const char more[] = ", …";
    size_t used = strlen(list);

    if (used + strlen(name) + 2 * sizeof more <= size)
        (void)snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
    else if (!strstr(list, more) && used + sizeof more <= size)
        (void)snprintf(list + used, size - used, "%s", used ? more : more + 2);
}

bool cluster_view_constrained(const struct cluster_view *view, struct cluster_constraint *ret_constraint)
{
    const struct cluster_node *hubs[VIEW_NODES_MAX];
    size_t voters = 0, hub_count = 0;

    *ret_constraint = (struct cluster_constraint){0};
    for (size_t i = 0; i < view->node_count; i++)
        voters += is_voter(&view->nodes[i]);
    if (view->is_changing) /* two majorities count then, and the answers do not tell which */
        return false;
    for (size_t i = 0; i < view->node_count; i++) {
        struct reach reach;

        if (!is_voter(&view->nodes[i]))
            continue;
        reach = reach_of(view, &view->nodes[i]);
        if (reach.votes > voters / 2)
            return false;
        if (reach.links > voters / 2)
            hubs[hub_count++] = &view->nodes[i];
    }
    for (size_t i = 0; i < hub_count; i++)
        add_name(ret_constraint->hubs, sizeof ret_constraint->hubs, hubs[i]->name);
    for (size_t i = 0; i < view->node_count; i++)
        for (size_t k = 0; k < hub_count; k++)
            if (is_voter(&view->nodes[i]) && are_linked(view, &view->nodes[i], hubs[k]) &&
                refuses(view, &view->nodes[i], hubs[k])) {
                add_name(ret_constraint->holders, sizeof ret_constraint->holders, view->nodes[i].name);
                break;
            }
    return hub_count > 0;
}

/* The voters' round trips as one node measured them when it last led. */
static void add_trips(const struct cluster_node *node, char *buffer, size_t size)
{
    const json_t *peers = json_object_get(node->status, "peers"), *peer;
    size_t position;

    json_array_foreach(peers, position, peer) {
        const char *id = json_string_value(json_object_get(peer, "id"));
        const json_t *trip = json_object_get(peer, "round_trip_ms");
        char text[2 * VIEW_NAME_MAX + 40], other[2 * VIEW_NAME_MAX + 8];

        if (!id || !json_is_integer(trip))
            continue;
        (void)snprintf(other, sizeof other, "%.63s–%.63s ", id, node->name);
        if (strstr(buffer, other))
            continue; /* the other one has measured it as well */
        (void)snprintf(text, sizeof text, "%.63s–%.63s %lld ms", node->name, id,
                       (long long)json_integer_value(trip));
        add_name(buffer, size, text);
    }
}

bool cluster_view_too_far(const struct cluster_view *view, char *buffer, size_t size, int64_t *ret_limit_ms)
{
    const struct cluster_node *leader = cluster_view_leader(view);
    bool is_too_far = false;

    if (leader && !leader->has_answered)
        return false; /* it may work for all we know */
    *buffer = '\0';
    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].has_answered && view->nodes[i].has_lease)
            return false;
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *node = &view->nodes[i];

        if (!node->has_answered || node->generation != view->generation || !node->is_too_far)
            continue;
        add_trips(node, buffer, size);
        *ret_limit_ms =
            is_too_far && *ret_limit_ms >= node->lease_trip_ms ? *ret_limit_ms : node->lease_trip_ms;
        is_too_far = true;
    }
    return is_too_far;
}
