/* SPDX-License-Identifier: Apache-2.0 */

/* What a program has asked for: from the question to whoever waits for its outcome. */

#include "sim/session/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_KEY "count"

static struct matter *find(struct program *program, uint64_t token)
{
    for (unsigned i = 0; i < MATTERS_MAX; i++)
        if (program->matters[i].token == token && program->matters[i].kind != MATTER_NONE)
            return &program->matters[i];
    return NULL;
}

static struct matter *begin(struct program *program, enum matter_kind kind, unsigned group)
{
    for (unsigned i = 0; i < MATTERS_MAX; i++) {
        struct matter *matter = &program->matters[i];

        if (matter->kind != MATTER_NONE)
            continue;
        *matter = (struct matter){
            .kind = kind, .group = group, .token = ++program->tokens, .asked_at = program_clock(program)};
        return matter;
    }
    return NULL;
}

uint64_t matter_submit(struct program *program, enum matter_kind kind, unsigned group, const Gavel__Op *op,
                       uint64_t value)
{
    struct client_event event = {.kind = CLIENT_SUBMIT};
    struct matter *matter = begin(program, kind, group);
    uint64_t token;

    if (!matter)
        return 0;
    token = matter->token;
    matter->value = value;
    matter->epoch = program->seats[group].epoch;
    matter->nonce = program->seats[group].nonce;
    event.submit.token = token;
    event.submit.ops = &op;
    event.submit.count = 1;
    event.submit.give_up_at = NEVER;
    program_step(program, &event);
    return token;
}

void matter_ask(struct program *program, enum matter_kind kind, unsigned group)
{
    struct hall *hall = program->hall;
    struct client_event event = {.kind = CLIENT_ASK};
    Gavel__Ask ask;
    struct matter *matter;

    gavel__ask__init(&ask);
    if (kind == MATTER_LOOK && program->seats[group].is_looking)
        return;
    matter = begin(program, kind, group);
    if (!matter)
        return;
    if (kind == MATTER_LOOK)
        program->seats[group].is_looking = true;
    ask.kind = kind == MATTER_LOOK ? GAVEL__ASK__KIND__GROUP : GAVEL__ASK__KIND__NOTE;
    ask.group = (char *)(uintptr_t)hall_group_name(group);
    if (kind == MATTER_READ_COUNT)
        ask.key = (char *)(uintptr_t)COUNT_KEY;
    ask.is_local = kind == MATTER_LOOK &&
                   hall->profile.program[program->index].roles[group] == ROLE_CAMPAIGN &&
                   hall_chance(hall, HALL_STREAM_PROGRAM, 500);
    event.ask.token = matter->token;
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

    gavel__put_note__init(&put);
    gavel__op__init(&op);
    if (answer->n_notes > 0 && answer->notes[0]->value.len < sizeof text) {
        memcpy(text, answer->notes[0]->value.data, answer->notes[0]->value.len);
        text[answer->notes[0]->value.len] = '\0';
        put.expected = answer->notes[0]->mod_revision;
    }
    length = snprintf(text, sizeof text, "%llu", strtoull(text, NULL, 10) + 1);
    put.group = (char *)(uintptr_t)hall_group_name(group);
    put.key = (char *)(uintptr_t)COUNT_KEY;
    put.value.data = (uint8_t *)text;
    put.value.len = (size_t)length;
    put.has_expected = true;
    op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    op.put_note = &put;
    judge_counts_more(program->hall->judge, group);
    (void)matter_submit(program, MATTER_COUNT, group, &op, 0);
}

void matter_result(struct program *program, const struct client_action *action)
{
    struct hall *hall = program->hall;
    struct matter *found = find(program, action->token);
    const Gavel__OpResult *result = action->status == GAVEL_OK ? action->results[0] : NULL;
    enum gavel_status status = result ? (enum gavel_status)result->status : action->status;
    struct matter matter;

    if (!found)
        return;
    matter = *found;
    found->kind = MATTER_NONE;
    if (!result)
        hall_see(hall, HALL_SIGHT_UNKNOWN);
    switch (matter.kind) {
    case MATTER_NOTE:
        judge_note_answered(hall->judge, matter.value, status, result != NULL);
        break;
    case MATTER_COUNT:
        judge_counted(hall->judge, matter.group, status, result != NULL);
        break;
    case MATTER_CLAIM:
    case MATTER_RENEW:
    case MATTER_RELEASE:
        lease_result(program, &matter, status, result);
        break;
    default:
        office_result(program, &matter, status, result);
        break;
    }
}

void matter_answer(struct program *program, const struct client_action *action)
{
    struct hall *hall = program->hall;
    struct matter *found = find(program, action->token);
    const Gavel__Answer *answer = action->status == GAVEL_OK ? action->answer : NULL;
    struct matter matter;

    if (!found)
        return;
    matter = *found;
    found->kind = MATTER_NONE;
    if (matter.kind == MATTER_LOOK)
        program->seats[matter.group].is_looking = false;
    if (!answer || answer->status != GAVEL_OK)
        return;
    if (matter.kind == MATTER_READ_COUNT)
        count_on(program, matter.group, answer);
    else if (hall->profile.program[program->index].roles[matter.group] == ROLE_LEASE)
        lease_looked(program, matter.group, answer->n_groups > 0 ? answer->groups[0] : NULL);
    else
        office_looked(program, matter.group, answer->n_groups > 0 ? answer->groups[0] : NULL);
}
