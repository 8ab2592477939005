/* SPDX-License-Identifier: Apache-2.0 */

/* What a program has asked for: from the question to whoever waits for its outcome. */

#include "sim/session/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_KEY "count"

static struct pending *find(struct program *program, uint64_t token)
{
    for (unsigned i = 0; i < PENDING_MAX; i++)
        if (program->pending[i].token == token && program->pending[i].kind != PENDING_NONE)
            return &program->pending[i];
    return NULL;
}

static struct pending *begin(struct program *program, enum pending_kind kind, unsigned group)
{
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        struct pending *pending = &program->pending[i];

        if (pending->kind != PENDING_NONE)
            continue;
        *pending = (struct pending){
            .kind = kind,
            .group = group,
            .token = ++program->tokens,
            .asked_at = program_clock(program),
            .give_up_at = NEVER,
        };
        return pending;
    }
    return NULL;
}

uint64_t pending_submit(struct program *program, enum pending_kind kind, unsigned group, const Gavel__Op *op,
                        uint64_t value)
{
    struct client_event event = {.kind = CLIENT_SUBMIT};
    struct pending *pending = begin(program, kind, group);
    uint64_t token;

    if (!pending)
        return 0;
    token = pending->token;
    pending->value = value;
    pending->epoch = program->candidacies[group].epoch;
    pending->nonce = program->candidacies[group].nonce;
    event.submit.token = token;
    event.submit.ops = &op;
    event.submit.count = 1;
    /* Some that campaign without a session do not wait for ever for a leader of the cluster. */
    if (kind == PENDING_CAMPAIGN && program->deadline == 0 && program->index % 3 == 1)
        pending->give_up_at =
            program_clock(program) + ns_from_ms(program->testbed->profile.program[program->index].ttl_ms);
    event.submit.give_up_at = pending->give_up_at;
    program_step(program, &event);
    return token;
}

void pending_check(struct program *program)
{
    gavel_ns now = program_clock(program);

    if (client_deadline(program->client) != 0 || client_state(program->client) == CLIENT_CLOSED)
        return; /* what is sent in the name of a session has no limit */
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        const struct pending *pending = &program->pending[i];

        if (pending->kind != PENDING_NONE && pending->give_up_at < now)
            session_referee_waits_too_long(program->testbed->referee, program->label,
                                           now - pending->give_up_at);
    }
}

void pending_ask(struct program *program, enum pending_kind kind, unsigned group)
{
    struct testbed *testbed = program->testbed;
    struct client_event event = {.kind = CLIENT_ASK};
    Gavel__Ask ask;
    struct pending *pending;

    gavel__ask__init(&ask);
    if (kind == PENDING_LOOK && program->candidacies[group].is_looking)
        return;
    pending = begin(program, kind, group);
    if (!pending)
        return;
    if (kind == PENDING_LOOK)
        program->candidacies[group].is_looking = true;
    ask.kind = kind == PENDING_LOOK ? GAVEL__ASK__KIND__GROUP : GAVEL__ASK__KIND__NOTE;
    ask.group = (char *)(uintptr_t)testbed_group_name(group);
    if (kind == PENDING_READ_COUNT)
        ask.key = (char *)(uintptr_t)COUNT_KEY;
    ask.is_local = kind == PENDING_LOOK &&
                   testbed->profile.program[program->index].roles[group] == ROLE_CAMPAIGN &&
                   testbed_chance(testbed, TESTBED_STREAM_PROGRAM, 500);
    event.ask.token = pending->token;
    event.ask.ask = &ask;
    event.ask.give_up_at = program_clock(program) + 2 * NS_PER_S;
    program_step(program, &event);
}

/* One more than what was read, if it is still that. */
static void count_on(struct program *program, unsigned group, const Gavel__Answer *answer)
{
    Gavel__PutNote put;
    Gavel__Op op;
    char text[24] = "0";
    int length;

    if (!program->testbed->profile.group[group].has_notes)
        return;
    gavel__put_note__init(&put);
    gavel__op__init(&op);
    if (answer->n_notes > 0 && answer->notes[0]->value.len < sizeof text) {
        memcpy(text, answer->notes[0]->value.data, answer->notes[0]->value.len);
        text[answer->notes[0]->value.len] = '\0';
        put.expected = answer->notes[0]->mod_revision;
    }
    length = snprintf(text, sizeof text, "%llu", strtoull(text, NULL, 10) + 1);
    put.group = (char *)(uintptr_t)testbed_group_name(group);
    put.key = (char *)(uintptr_t)COUNT_KEY;
    put.value.data = (uint8_t *)text;
    put.value.len = (size_t)length;
    put.has_expected = true;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    session_referee_counts_more(program->testbed->referee, group);
    (void)pending_submit(program, PENDING_COUNT, group, &op, 0);
}

void pending_result(struct program *program, const struct client_action *action)
{
    struct testbed *testbed = program->testbed;
    struct pending *found = find(program, action->token);
    const Gavel__OpResult *result = action->status == GAVEL_OK ? action->results[0] : NULL;
    enum gavel_status status = result ? (enum gavel_status)result->status : action->status;
    struct pending pending;

    if (!found)
        return;
    pending = *found;
    found->kind = PENDING_NONE;
    if (!result)
        testbed_see(testbed, SESSION_SIGHT_UNKNOWN);
    switch (pending.kind) {
    case PENDING_NOTE:
        session_referee_note_answered(testbed->referee, pending.value, status, result != NULL);
        break;
    case PENDING_COUNT:
        session_referee_counted(testbed->referee, pending.group, status, result != NULL);
        break;
    case PENDING_CLAIM:
    case PENDING_RENEW:
    case PENDING_RELEASE:
        lease_result(program, &pending, status, result);
        break;
    default:
        campaign_result(program, &pending, status, result);
        break;
    }
}

void pending_answer(struct program *program, const struct client_action *action)
{
    struct testbed *testbed = program->testbed;
    struct pending *found = find(program, action->token);
    const Gavel__Answer *answer = action->status == GAVEL_OK ? action->answer : NULL;
    struct pending pending;

    if (!found)
        return;
    pending = *found;
    found->kind = PENDING_NONE;
    if (pending.kind == PENDING_LOOK)
        program->candidacies[pending.group].is_looking = false;
    /* A node that lags behind has not seen what the watch counts as told: then neither would tell of it. */
    if (pending.kind == PENDING_LOOK &&
        (program->open_at != 0 || program->is_hanging || !answer || answer->status != GAVEL_OK ||
         answer->revision < program->candidacies[pending.group].told)) {
        program->candidacies[pending.group].must_look = true;
        return;
    }
    if (!answer || answer->status != GAVEL_OK)
        return;
    if (pending.kind == PENDING_READ_COUNT)
        count_on(program, pending.group, answer);
    else if (testbed->profile.program[program->index].roles[pending.group] == ROLE_LEASE)
        lease_looked(program, pending.group, answer->n_groups > 0 ? answer->groups[0] : NULL);
    else
        campaign_looked(program, pending.group, answer->n_groups > 0 ? answer->groups[0] : NULL,
                        answer->revision);
}
