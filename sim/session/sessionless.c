/* SPDX-License-Identifier: Apache-2.0 */

/* Requests without a session, as the API of a node makes them. */
#include "sim/session/world.h"

#include "base/assert.h"

#include <stdio.h>

/* Somebody who has learnt the id of a program's session closes it, if he can. */
static void steal(struct service *service)
{
    struct testbed *testbed = service->testbed;
    const struct program *program =
        &testbed->programs[testbed_below(testbed, TESTBED_STREAM_SESSIONLESS, testbed->profile.programs)];
    Gavel__CloseSession close;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;

    if (!program->client || client_session(program->client) == 0)
        return;
    gavel__close_session__init(&close);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    close.session = client_session(program->client);
    op.what_case = GAVEL__OP__WHAT_CLOSE_SESSION;
    op.close_session = &close;
    request.n_ops = 1;
    request.ops = ops;
    request.has_principal = true;
    request.principal = THIEF;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    service_ask(service, SESSIONLESS_BIT | THIEF, &frame);
}

/* Somebody who has learnt its id keeps the session of another alive, at the same node and the same moment. */
void sessionless_keep(struct service *service, const Gavel__KeepAlive *of_owner)
{
    Gavel__KeepAlive keep_alive;
    Gavel__ClientFrame frame;

    if (!testbed_chance(service->testbed, TESTBED_STREAM_THIEF, 20))
        return;
    gavel__keep_alive__init(&keep_alive);
    gavel__client_frame__init(&frame);
    keep_alive.tag = 1;
    keep_alive.n_sessions = of_owner->n_sessions;
    keep_alive.sessions = of_owner->sessions;
    keep_alive.has_principal = true;
    keep_alive.principal = THIEF;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE;
    frame.keep_alive = &keep_alive;
    service_ask(service, SESSIONLESS_BIT | THIEF, &frame);
}

/* An operator removes a group with its notes, if the cluster lets him. */
static void remove_group(struct service *service, unsigned group)
{
    Gavel__RemoveGroup remove;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;

    gavel__remove_group__init(&remove);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    remove.group = (char *)(uintptr_t)testbed_group_name(group);
    remove.is_forced = true;
    op.what_case = GAVEL__OP__WHAT_REMOVE_GROUP;
    op.remove_group = &remove;
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    service_ask(service, SESSIONLESS_BIT | THIEF, &frame); /* what comes of it the log shows */
}

/* A note that nobody else writes, without a session: through the API of this node. */
void sessionless_ask(struct service *service)
{
    struct testbed *testbed = service->testbed;
    unsigned group = testbed_below(testbed, TESTBED_STREAM_SESSIONLESS, testbed->profile.groups);
    Gavel__PutNote put;
    Gavel__Op op;
    Gavel__Op *ops[] = {&op};
    Gavel__Request request;
    Gavel__ClientFrame frame;
    char value[32];
    char key[32];
    int length;

    if (testbed_chance(testbed, TESTBED_STREAM_SESSIONLESS, 100)) {
        steal(service);
        return;
    }
    if (!testbed->profile.group[group].has_notes)
        return;
    gavel__put_note__init(&put);
    gavel__op__init(&op);
    gavel__request__init(&request);
    gavel__client_frame__init(&frame);
    testbed->sessionless_count++;
    length = snprintf(value, sizeof value, "%llu",
                      (unsigned long long)(SESSIONLESS_BIT | testbed->sessionless_count));
    (void)snprintf(key, sizeof key, "other%llu",
                   (unsigned long long)(testbed->sessionless_count % 4)); /* it fits */
    put.group = (char *)(uintptr_t)testbed_group_name(group);
    put.key = key;
    put.value.data = (uint8_t *)value;
    put.value.len = (size_t)length;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    request.tag = testbed->sessionless_count;
    request.timeout_ms = (uint32_t)testbed_between(testbed, TESTBED_STREAM_SESSIONLESS, 100, 3000);
    request.n_ops = 1;
    request.ops = ops;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REQUEST;
    frame.request = &request;
    service_ask(service, SESSIONLESS_BIT | testbed->sessionless_count, &frame);
    /* Often the note is on its way through the log when the group is looked at. */
    if (service->is_up && testbed->profile.retention > 0 &&
        testbed_chance(testbed, TESTBED_STREAM_REMOVAL, 300))
        remove_group(service, testbed_chance(testbed, TESTBED_STREAM_REMOVAL, 700)
                                  ? group
                                  : testbed_below(testbed, TESTBED_STREAM_REMOVAL, testbed->profile.groups));
}

void sessionless_answered(struct service *service, uint64_t number, const Gavel__ClientFrame *frame)
{
    enum gavel_status status;

    if (number == THIEF)
        return;
    ASSERT(frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY);
    status = (enum gavel_status)frame->reply->status;
    if (status == GAVEL_OK)
        status = (enum gavel_status)frame->reply->results[0]->status;
    session_referee_note_answered(service->testbed->referee, SESSIONLESS_BIT | number, status,
                                  frame->reply->status == GAVEL_OK);
    if (frame->reply->status != GAVEL_OK)
        testbed_see(service->testbed, SESSION_SIGHT_UNKNOWN);
}
