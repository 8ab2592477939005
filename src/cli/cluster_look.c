/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a cluster for its state, and the one judgement that takes care: split
 * brain. An alarm that is false teaches people to ignore it, so what could be
 * a hand-over between two answers is looked at again.
 */
#include "base/error.h"
#include "cli/cluster_view.h"

#include <stdio.h>
#include <string.h>

/* Whether these two may not be at once; `is_certain` if one look is enough to tell. */
static bool collide(const struct cluster_node *a, const struct cluster_node *b, bool *ret_is_certain)
{
    *ret_is_certain = a->is_leader && b->is_leader && a->term == b->term && a->generation == b->generation;
    if (*ret_is_certain) /* one leader in a term, ever: when each was seen does not matter */
        return true;
    if (a->has_lease && b->has_lease)
        return true;
    return a->generation != b->generation && a->is_leader && b->is_leader;
}

/* Whether it has held the same mandate from one look to the next. */
static bool held_on(const struct cluster_view *before, const struct cluster_node *node)
{
    const struct cluster_node *then = cluster_view_find(before, node->name);

    return then && then->term == node->term && then->generation == node->generation &&
           then->lease_epoch == node->lease_epoch && then->incarnation == node->incarnation &&
           then->has_lease == node->has_lease && then->is_leader == node->is_leader;
}

/* Nodes of another cluster may lead as they like. */
static bool is_ours(const struct cluster_view *view, const struct cluster_node *node)
{
    const char *name = json_string_value(json_object_get(node->status, "cluster"));

    return name && strcmp(name, view->cluster) == 0;
}

bool cluster_view_split(const struct cluster_view *view, const struct cluster_view *before,
                        const struct cluster_node **ret_one, const struct cluster_node **ret_other)
{
    for (size_t i = 0; i < view->node_count; i++)
        for (size_t j = i + 1; j < view->node_count; j++) {
            const struct cluster_node *a = &view->nodes[i], *b = &view->nodes[j];
            bool is_certain = false;

            if (!is_ours(view, a) || !is_ours(view, b) || !collide(a, b, &is_certain))
                continue;
            if (!is_certain && !(before && held_on(before, a) && held_on(before, b)))
                continue;
            *ret_one = a;
            *ret_other = b;
            return true;
        }
    return false;
}

bool cluster_view_is_suspect(const struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++)
        for (size_t j = i + 1; j < view->node_count; j++) {
            bool ignored;

            if (is_ours(view, &view->nodes[i]) && is_ours(view, &view->nodes[j]) &&
                collide(&view->nodes[i], &view->nodes[j], &ignored))
                return true;
        }
    return false;
}

/* Asks for the status at URLs from `first` on. */
static void ask(struct cluster_client *client, struct cluster_view *view, size_t first)
{
    cluster_get(client, "/status", view->calls + first, view->call_count - first);
}

static bool was_asked(const struct cluster_view *view, const char *url)
{
    for (size_t i = 0; i < view->call_count; i++)
        if (strcmp(view->calls[i].url, url) == 0)
            return true;
    return false;
}

/* Members whose API is known and that were not asked yet, by the scheme of those that were. */
static void add_members(const struct cluster_client *client, struct cluster_view *view)
{
    bool is_https = strncmp(client->urls[0], "https:", 6) == 0;
    size_t node_count = view->node_count;

    for (size_t i = 0; i < node_count; i++) {
        const struct cluster_node *node = &view->nodes[i];
        char url[CLUSTER_URL_MAX];

        if (node->has_answered || *node->url || !*node->address || view->call_count == VIEW_NODES_MAX)
            continue;
        (void)snprintf(url, sizeof(url), "%s://%s", is_https ? "https" : "http", node->address);
        if (was_asked(view, url))
            continue;
        view->calls[view->call_count] = (struct cluster_call){0};
        strcpy(view->calls[view->call_count++].url, url);
    }
}

static void look(struct cluster_client *client, struct cluster_view *view)
{
    size_t first;

    *view = (struct cluster_view){.call_count = client->url_count};
    for (size_t i = 0; i < client->url_count; i++)
        strcpy(view->calls[i].url, client->urls[i]);
    ask(client, view, 0);
    cluster_view_make(view);
    first = view->call_count;
    add_members(client, view);
    if (view->call_count > first) {
        ask(client, view, first);
        cluster_view_make(view);
    }
}

/* False: there is nothing to tell. */
static bool tell_split(struct cluster_view *view, const struct cluster_view *before)
{
    const struct cluster_node *one, *other;
    struct cluster_trouble *worst = &view->troubles[0];

    if (!cluster_view_split(view, before, &one, &other))
        return false;
    if (view->trouble_count == VIEW_TROUBLES_MAX)
        view->trouble_count--;
    memmove(worst + 1, worst, view->trouble_count * sizeof(*worst));
    view->trouble_count++;
    worst->kind = TROUBLE_SPLIT_BRAIN;
    (void)snprintf(
        worst->text, sizeof(worst->text),
        "split brain: %s leads in generation %llu, term %llu%s, and %s in generation %llu, term %llu%s; "
        "stop the one whose work is to be given up, and keep the logs of both",
        one->name, (unsigned long long)one->generation, (unsigned long long)one->term,
        one->has_lease ? " with a lease" : "", other->name, (unsigned long long)other->generation,
        (unsigned long long)other->term, other->has_lease ? " with a lease" : "");
    return true;
}

/* Why nobody answered: of each node, as far as there is room. */
static enum gavel_status say_silence(const struct cluster_view *view, struct gavel_error *error)
{
    enum gavel_status status = view->calls[0].status;
    char text[sizeof(error->message) - 120] = "";
    size_t used = 0;

    for (size_t i = 0; i < view->call_count && used < sizeof(text); i++) {
        int written = snprintf(text + used, sizeof(text) - used, "%s%s: %s", i ? "; " : "",
                               cluster_url_host(view->calls[i].url), view->calls[i].reason);

        used += written > 0 ? (size_t)written : 0;
        if (view->calls[i].status != status)
            status = GAVEL_ERR_STORE_UNAVAILABLE;
    }
    if (status == GAVEL_OK || status == GAVEL_ERR_TIMEOUT) /* nobody was given time to wait for it */
        status = GAVEL_ERR_STORE_UNAVAILABLE;
    return error_set(error, status, "no node of the cluster answers (%s%s); see whether gaveld runs there",
                     text, used >= sizeof(text) ? "…" : "");
}

enum gavel_status cluster_look(struct cluster_client *client, struct cluster_view *view,
                               struct gavel_error *error)
{
    struct cluster_view before;

    look(client, view);
    if (view->believed < 0)
        return say_silence(view, error);
    if (tell_split(view, NULL) || !cluster_view_is_suspect(view))
        return GAVEL_OK;
    before = *view; /* and its calls: view begins anew */
    look(client, view);
    if (view->believed < 0) {
        cluster_view_done(view);
        *view = before;
        return GAVEL_OK;
    }
    (void)tell_split(view, &before); /* if there is nothing, it was a hand-over */
    cluster_view_done(&before);
    return GAVEL_OK;
}
