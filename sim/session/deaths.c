/* SPDX-License-Identifier: Apache-2.0 */

/* What a node tells the leader: that processes of its machine are dead. */
#include "sim/session/world.h"

#include "wire/client.h"

#include <stdlib.h>

static bool is_dead(const struct service *service, int32_t pid)
{
    unsigned kept = service->dead_count < DEAD_MAX ? service->dead_count : DEAD_MAX;

    for (unsigned i = 0; i < kept; i++)
        if (service->dead[i] == pid)
            return true;
    return false;
}

static void tell(struct service *service, const Gavel__Op *op)
{
    Gavel__Request request;
    Gavel__ClientFrame frame;
    Gavel__Op *ops[] = {(Gavel__Op *)(uintptr_t)op};
    uint8_t *bytes;
    size_t size;

    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    if (service->frontend.is_open) {
        frontend_report_deaths(&service->frontend, service_clock(service), testbed_wall_ms(service->testbed),
                               &op, 1);
        return;
    }
    if (service->host->raft.leader == 0)
        return; /* the tick tells again */
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    if (client_frame_pack(&frame, &bytes, &size) != GAVEL_OK)
        return;
    (void)forwarded_send(service, service->host->raft.leader, false, NUMBER_OF_DEATHS,
                         service->host->raft.state.incarnation, bytes + CLIENT_LENGTH_BYTES,
                         size - CLIENT_LENGTH_BYTES, true);
    free(bytes);
}

/* All that the table has of the dead. */
void deaths_report(struct service *service)
{
    const struct table *table = &service->host->table;

    if (service->dead_count == 0)
        return;
    for (struct table_session *session = table_session_first(table); session;
         session = table_session_next(session)) {
        Gavel__CloseSession close;
        Gavel__Op op;

        gavel__close_session__init(&close);
        gavel__op__init(&op);
        if (session->process.pid == 0 || !is_dead(service, session->process.pid))
            continue;
        close.session = session->id;
        close.ending = GAVEL__ENDING__ENDING_DEAD;
        op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
        op.close_session = &close;
        tell(service, &op);
    }
    for (struct table_group *group = table_group_from(table, ""); group; group = table_group_next(group)) {
        Gavel__Release release;
        Gavel__Op op;

        gavel__release__init(&release);
        gavel__op__init(&op);
        if (!group->is_held || group->session || group->process.pid == 0 ||
            !is_dead(service, group->process.pid))
            continue;
        release.group = group->name;
        release.epoch = group->epoch;
        release.is_dead = true;
        op.what_case = GAVEL__OP__WHAT_RELEASE;
        op.release = &release;
        tell(service, &op);
    }
}
