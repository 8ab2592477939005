/* SPDX-License-Identifier: Apache-2.0 */

/* What a node tells the leader: that processes of its machine are dead. */
#include "sim/session/world.h"

#include "base/assert.h"

static bool is_dead(const struct service *service, int32_t pid)
{
    unsigned kept = service->dead_count < DEAD_MAX ? service->dead_count : DEAD_MAX;

    for (unsigned i = 0; i < kept; i++)
        if (service->dead[i] == pid)
            return true;
    return false;
}

/* Sessions and leases of a run, together. */
#define OPS_MAX 512

struct report {
    Gavel__Op ops[OPS_MAX];
    const Gavel__Op *list[OPS_MAX];
    union {
        Gavel__CloseSession close;
        Gavel__Release release;
    } bodies[OPS_MAX];
    size_t count;
};

static Gavel__Op *next_op(struct report *report, Gavel__Op__WhatCase what)
{
    Gavel__Op *op = &report->ops[report->count];

    ASSERT(report->count < OPS_MAX);
    gavel__op__init(op);
    op->what_case = what;
    op->close_session = &report->bodies[report->count].close; /* the oneof is one pointer */
    report->list[report->count++] = op;
    return op;
}

/* All that the table has of the dead. */
void deaths_report(struct service *service)
{
    const struct table *table = &service->host->table;
    struct report report = {.count = 0};

    if (service->dead_count == 0)
        return;
    for (struct table_session *session = table_session_first(table); session;
         session = table_session_next(session)) {
        Gavel__CloseSession *close;

        if (session->is_ending || session->process.pid == 0 || !is_dead(service, session->process.pid))
            continue;
        close = next_op(&report, GAVEL__OP__WHAT_CLOSE_SESSION)->close_session;
        gavel__close_session__init(close);
        close->session = session->id;
        close->ending = GAVEL__ENDING__ENDING_DEAD;
    }
    for (struct table_group *group = table_group_from(table, ""); group; group = table_group_next(group)) {
        Gavel__Release *release;

        if (!group->is_held || group->session || group->process.pid == 0 ||
            !is_dead(service, group->process.pid))
            continue;
        release = next_op(&report, GAVEL__OP__WHAT_RELEASE)->release;
        gavel__release__init(release);
        release->group = group->name;
        release->epoch = group->epoch;
        release->is_dead = true;
    }
    if (report.count > 0)
        service_feed(service, (struct node_event){.kind = NODE_DEATHS,
                                                  .deaths = {.ops = report.list, .count = report.count}});
}
