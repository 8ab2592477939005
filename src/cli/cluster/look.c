/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a cluster for its state, and the one judgement that takes care: split
 * brain. An alarm that is false teaches people to ignore it, so what could be
 * a hand-over between two answers is looked at again.
 */
#include "base/error.h"
#include "cli/cluster/view.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OTHERS_NS (50 * NS_PER_MS)
#define LOOK_EVERY_MS 5

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

/* What is looked for, and since when it is known. */
struct search {
    const char *wanted; /* a node that is to have answered; "" none */
    gavel_ns found_at;  /* 0: not yet */
};

/* Somebody has a lease, and says so; and the node that is wanted besides has answered. */
static bool is_found(const struct cluster_call *calls, size_t count, const char *wanted)
{
    bool has_leader = false, has_wanted = !*wanted;

    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_object_get(calls[i].body, "node"));

        has_leader = has_leader || json_is_true(json_object_get(calls[i].body, "has_lease"));
        has_wanted = has_wanted || (name && strcmp(name, wanted) == 0);
    }
    return has_leader && has_wanted;
}

/* Others have a moment more, since one of them may know of a later generation. */
static bool is_enough(const struct cluster_call *calls, size_t count, void *user)
{
    struct search *search = user;

    if (!search->found_at && is_found(calls, count, search->wanted))
        search->found_at = clock_now();
    return search->found_at && clock_now() - search->found_at >= OTHERS_NS;
}

/* Asks for the status at URLs from `first` on: of all, or until enough is known. */
static void ask(struct cluster_client *client, struct cluster_view *view, size_t first, const char *wanted)
{
    struct search search = {.wanted = wanted};

    cluster_get(client, "/status", view->calls + first, view->call_count - first, wanted ? is_enough : NULL,
                &search);
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
        (void)snprintf(url, sizeof url, "%s://%s", is_https ? "https" : "http", node->address);
        if (was_asked(view, url))
            continue;
        view->calls[view->call_count] = (struct cluster_call){0};
        strcpy(view->calls[view->call_count++].url, url);
    }
}

/*
 * Those that answered did so before the time of the one that is silent was
 * over: by now they may follow another. They are asked once more.
 */
static void ask_again(struct cluster_client *client, struct cluster_view *view, const char *wanted)
{
    size_t silent = 0;

    for (size_t i = 0; i < view->call_count; i++)
        if (view->calls[i].status != GAVEL_OK) {
            struct cluster_call call = view->calls[i];

            view->calls[i] = view->calls[silent];
            view->calls[silent++] = call;
        }
    for (size_t i = silent; i < view->call_count; i++) {
        struct cluster_call fresh = {0};

        strcpy(fresh.url, view->calls[i].url);
        cluster_calls_done(&view->calls[i], 1);
        view->calls[i] = fresh;
    }
    ask(client, view, silent, wanted);
    cluster_view_make(view);
}

static void look(struct cluster_client *client, struct cluster_view *view, const char *wanted)
{
    size_t first;

    *view = (struct cluster_view){.call_count = client->url_count, .wall_ms = clock_wall_ms()};
    for (size_t i = 0; i < client->url_count; i++)
        strcpy(view->calls[i].url, client->urls[i]);
    ask(client, view, 0, wanted);
    cluster_view_make(view);
    if (wanted && is_found(view->calls, view->call_count, wanted))
        return;
    first = view->call_count;
    add_members(client, view);
    if (view->call_count > first) {
        ask(client, view, first, wanted);
        cluster_view_make(view);
    }
    if (view->is_hearsay && !cluster_view_leader(view)->has_answered)
        ask_again(client, view, wanted);
}

/* Whether an earlier node had the same reason, so that it was told along with that one. */
static bool was_told(const struct cluster_view *view, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(view->calls[i].reason, view->calls[at].reason) == 0)
            return true;
    return false;
}

/* "10.0.0.1:7500, 10.0.0.2:7500: nothing listens there", from the first that has this reason on. */
static size_t tell_reason(const struct cluster_view *view, size_t first, char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = first; i < view->call_count && used < size; i++)
        if (strcmp(view->calls[i].reason, view->calls[first].reason) == 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", i == first ? "" : ", ",
                                     cluster_url_host(view->calls[i].url));
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, ": %s", view->calls[first].reason);
    return used;
}

/* Why nobody answered: each reason once, with the nodes that have it, as far as there is room. */
static enum gavel_status say_silence(const struct cluster_view *view, struct gavel_error *error)
{
    enum gavel_status status = view->calls[0].status;
    char text[sizeof error->message - 120] = "";
    size_t used = 0;
    bool is_reached = true;

    for (size_t i = 0; i < view->call_count; i++) {
        if (view->calls[i].status != status)
            status = GAVEL_ERR_STORE_UNAVAILABLE;
        is_reached = is_reached && view->calls[i].code != 0;
        if (was_told(view, i) || used >= sizeof text)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", used ? "; " : "");
        if (used < sizeof text)
            used += tell_reason(view, i, text + used, sizeof text - used);
    }
    if (status == GAVEL_OK || status == GAVEL_ERR_TIMEOUT) /* nobody was given time to wait for it */
        status = GAVEL_ERR_STORE_UNAVAILABLE;
    if (status == GAVEL_ERR_DENIED || status == GAVEL_ERR_INVALID) /* the reason says what to do */
        return error_set(error, status, "the cluster cannot be asked (%s%s)", text,
                         used >= sizeof text ? "…" : "");
    return error_set(error, status, "no node of the cluster answers (%s%s)%s", text,
                     used >= sizeof text ? "…" : "", is_reached ? "" : "; check that gaveld runs there");
}

enum gavel_status cluster_find(struct cluster_client *client, const char *wanted, struct cluster_view *view,
                               struct gavel_error *error)
{
    look(client, view, wanted);
    return view->believed < 0 ? say_silence(view, error) : GAVEL_OK;
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
    memmove(worst + 1, worst, view->trouble_count * sizeof *worst);
    view->trouble_count++;
    worst->kind = TROUBLE_SPLIT_BRAIN;
    (void)snprintf(
        worst->text, sizeof worst->text,
        "split brain: %s leads in generation %llu, term %llu%s, and %s in generation %llu, term %llu%s; stop the one whose work can be dropped, and keep the logs of both",
        one->name, (unsigned long long)one->generation, (unsigned long long)one->term,
        one->has_lease ? " with a lease" : "", other->name, (unsigned long long)other->generation,
        (unsigned long long)other->term, other->has_lease ? " with a lease" : "");
    return true;
}

enum gavel_status cluster_look(struct cluster_client *client, struct cluster_view *view,
                               struct gavel_error *error)
{
    struct cluster_view before;

    look(client, view, NULL);
    if (view->believed < 0)
        return say_silence(view, error);
    if (tell_split(view, NULL) || !cluster_view_is_suspect(view))
        return GAVEL_OK;
    before = *view; /* and its calls: view begins anew */
    look(client, view, NULL);
    if (view->believed < 0) {
        cluster_view_done(view);
        *view = before;
        return GAVEL_OK;
    }
    (void)tell_split(view, &before); /* if there is nothing, it was a hand-over */
    cluster_view_done(&before);
    return GAVEL_OK;
}

enum gavel_status cluster_find_within(struct cluster_client *client, const char *wanted, gavel_ms limit_ms,
                                      struct cluster_view *view, struct gavel_error *error)
{
    gavel_ms usual_ms = client->timeout_ms;
    enum gavel_status status;

    client->timeout_ms = limit_ms < usual_ms ? limit_ms : usual_ms;
    status = cluster_find(client, wanted, view, error);
    client->timeout_ms = usual_ms;
    return status;
}

enum gavel_status cluster_await(struct cluster_client *client, gavel_ns until, gavel_ms notice_ms,
                                struct cluster_view *view, struct gavel_error *error)
{
    gavel_ns begun = clock_now(), believe_at = ns_min(until, begun + ns_from_ms(notice_ms));
    gavel_ms limit_ms = until > begun ? CLUSTER_FIRST_MS : client->timeout_ms;

    for (;;) {
        gavel_ns now = clock_now();
        enum gavel_status status = cluster_find_within(client, "", limit_ms, view, error);

        if (status == GAVEL_OK && view->leader >= 0 && (!view->is_hearsay || now >= believe_at))
            return status;
        if (clock_now() >= until)
            return status;
        cluster_view_done(view);
        (void)usleep(LOOK_EVERY_MS * 1000);
        limit_ms = limit_ms < client->timeout_ms ? 2 * limit_ms : limit_ms;
    }
}
