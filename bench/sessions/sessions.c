/* SPDX-License-Identifier: Apache-2.0 */

/* Where the nodes are, and how client loads are led. */
#include "bench/sessions/sessions.h"

#include "os/clock.h"

#include <string.h>

static size_t add(char *target, size_t used, const struct local_node *node, bool is_tcp)
{
    const char *comma = used ? "," : "";

    /* A target has room for all nodes of a cluster: paths of sockets are short. */
    return used + (size_t)(is_tcp ? snprintf(target + used, CLIENT_LOAD_TARGET_BYTES - used, "%s127.0.0.1:%u",
                                             comma, (unsigned)node->client_port)
                                  : snprintf(target + used, CLIENT_LOAD_TARGET_BYTES - used, "%s%s", comma,
                                             node->socket));
}

void sessions_target(const struct cluster *cluster, bool is_tcp, char target[static CLIENT_LOAD_TARGET_BYTES])
{
    size_t used = 0;

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        used = add(target, used, local_cluster_node(&cluster->cluster, i), is_tcp);
}

void sessions_target_near(const struct cluster *cluster, size_t node,
                          char target[static CLIENT_LOAD_TARGET_BYTES])
{
    size_t used = add(target, 0, local_cluster_node(&cluster->cluster, node), false);

    for (size_t i = 0; i < CLUSTER_NODES; i++)
        if (i != node)
            used = add(target, used, local_cluster_node(&cluster->cluster, i), true);
}

enum gavel_status sessions_start(struct rig *rig, uint32_t member, const char *name,
                                 struct client_load_plan *plan)
{
    struct mark_query query = {.kind = MARK_JOINED, .member = member, .from = rig_mark_count(rig)};
    struct mark ignored;
    enum gavel_status status = rig_start(rig, member, name, client_load_run, plan, NULL);

    return status != GAVEL_OK ? status : rig_expect(rig, &query, clock_now() + CLUSTER_LIMIT_NS, &ignored);
}

enum gavel_status sessions_tell(struct rig *rig, uint32_t member, char letter, enum client_load_news news,
                                gavel_ns limit, struct mark *ret_mark)
{
    struct mark_query query = {
        .kind = MARK_RESULT, .member = member, .epoch_at_least = news, .from = rig_mark_count(rig)};

    rig_tell(rig, member, letter);
    return rig_expect(rig, &query, clock_now() + limit, ret_mark);
}

void sessions_wait(const struct rig *rig, gavel_ns until)
{
    while (clock_now() < until && !rig_is_interrupted())
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), until);
}

void sessions_end(struct rig *rig, uint32_t member)
{
    gavel_ns ignored;

    (void)rig_kill(rig, member, &ignored, &ignored); /* it may have ended by itself */
}
