/* SPDX-License-Identifier: Apache-2.0 */

/* What the nodes of a cluster say, and waiting for it. */
#include "cluster.h"

#include "cluster_files.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_LIMIT_MS 1000
#define PAUSE_MS 4 /* between two looks */

int cluster_ask(struct cluster *cluster, int node, const char *method, const char *path, const char *body,
                int limit_ms, json_t **ret_json)
{
    return ask(&(struct ask){.net = &cluster->net,
                             .node = node,
                             .port = CLUSTER_API_PORT(node),
                             .method = method,
                             .path = path,
                             .body = body,
                             .limit_ms = limit_ms},
               ret_json);
}

static int64_t number_of(const json_t *json, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(json, key));
}

static void copy_text(const json_t *json, const char *key, char *buffer, size_t size)
{
    const char *text = json_string_value(json_object_get(json, key));

    snprintf(buffer, size, "%s", text ? text : "");
}

static void read_status(const json_t *json, struct cluster_status *s)
{
    memset(s, 0, sizeof *s);
    s->is_leader = json_is_true(json_object_get(json, "is_leader"));
    s->has_lease = json_is_true(json_object_get(json, "has_lease"));
    s->is_changing = json_is_true(json_object_get(json, "changing_members"));
    s->term = number_of(json, "term");
    s->lease_epoch = number_of(json, "lease_epoch");
    s->generation = number_of(json, "generation");
    s->commit = number_of(json, "commit");
    s->applied = number_of(json, "applied");
    s->revision = number_of(json, "revision");
    s->members = (int64_t)json_array_size(json_object_get(json, "peers"));
    s->now = number_of(json, "now_ns");
    copy_text(json, "digest", s->digest, sizeof s->digest);
    copy_text(json, "leader_id", s->leader, sizeof s->leader);
}

bool cluster_look(struct cluster *cluster, int node, struct cluster_status *ret_status)
{
    json_t *json;
    int code;

    if (!(cluster_alive(cluster) >> node & 1))
        return false;
    code = cluster_ask(cluster, node, "GET", "/status", NULL, LOOK_LIMIT_MS, &json);
    if (code != 200 || !json) {
        json_decref(json);
        return false;
    }
    read_status(json, ret_status);
    json_decref(json);
    fprintf(cluster->deeds,
            "msg=status node=%s at_ns=%lld heard_ns=%lld term=%lld lease_epoch=%lld has_lease=%s "
            "generation=%lld commit=%lld "
            "applied=%lld revision=%lld digest=%s\n",
            cluster->nodes[node].name, (long long)ret_status->now, (long long)now_ns(),
            (long long)ret_status->term, (long long)ret_status->lease_epoch,
            ret_status->has_lease ? "true" : "false", (long long)ret_status->generation,
            (long long)ret_status->commit, (long long)ret_status->applied, (long long)ret_status->revision,
            *ret_status->digest ? ret_status->digest : "-");
    return true;
}

int cluster_leader(struct cluster *cluster, unsigned nodes)
{
    struct cluster_status status;

    for (int i = 0; i < cluster->count; i++)
        if ((nodes >> i & 1) && cluster_look(cluster, i, &status) && status.has_lease)
            return i;
    return -1;
}

int cluster_await_leader(struct cluster *cluster, unsigned nodes, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    int leader;

    while ((leader = cluster_leader(cluster, nodes)) < 0 && now_ms() < deadline)
        (void)poll(NULL, 0, PAUSE_MS);
    return leader;
}

bool cluster_await_nobody(struct cluster *cluster, unsigned nodes, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;

    while (cluster_leader(cluster, nodes) >= 0) {
        if (now_ms() > deadline)
            return false;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

static bool agrees(struct cluster *cluster, unsigned nodes)
{
    struct cluster_status leader, other;
    int who = cluster_leader(cluster, nodes);

    if (who < 0 || !cluster_look(cluster, who, &leader) || !leader.has_lease)
        return false;
    for (int i = 0; i < cluster->count; i++) {
        if (i == who || !(nodes >> i & 1))
            continue;
        if (!cluster_look(cluster, i, &other) || other.term != leader.term ||
            other.applied != leader.commit || strcmp(other.leader, cluster->nodes[who].name) != 0 ||
            strcmp(other.digest, leader.digest) != 0)
            return false;
    }
    return true;
}

/* Who says what, for whoever wants to know why they do not agree. */
static void print_all(struct cluster *cluster)
{
    struct cluster_status s;

    for (int i = 0; i < cluster->count; i++) {
        if (!cluster_look(cluster, i, &s))
            printf("# %s does not answer\n", cluster->nodes[i].name);
        else
            printf(
                "# %s: term %lld, follows %s, lease %s, commit %lld, applied %lld, digest %s, %lld members\n",
                cluster->nodes[i].name, (long long)s.term, *s.leader ? s.leader : "nobody",
                s.has_lease ? "yes" : "no", (long long)s.commit, (long long)s.applied, s.digest,
                (long long)s.members);
    }
}

bool cluster_await_agreement(struct cluster *cluster, unsigned nodes, int limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;

    while (!agrees(cluster, nodes)) {
        if (now_ms() > deadline) {
            print_all(cluster);
            return false;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return true;
}
