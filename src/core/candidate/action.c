/* SPDX-License-Identifier: Apache-2.0 */

/* What a step returns. */

#include "core/candidate/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct candidate_action *act(struct candidate *c, enum candidate_action_kind kind)
{
    struct candidate_action *action;

    ASSERT(c->actions->count < CANDIDATE_ACTIONS_MAX);
    action = &c->actions->items[c->actions->count++];
    action->kind = kind;
    return action;
}

/* A store that grants mandates tells everybody itself. */
void ring(struct candidate *c)
{
    if (!c->has_sessions)
        act(c, CANDIDATE_RING);
}

void ring_one(struct candidate *c, const char *address)
{
    if (c->has_sessions || address[0] == '\0')
        return;
    memcpy(c->actions->address, address, strlen(address) + 1); /* an address fits */
    act(c, CANDIDATE_RING_ONE)->address = c->actions->address;
}

struct gavel_event *emit(struct candidate *c, enum gavel_event_kind kind)
{
    struct candidate_action *action = act(c, CANDIDATE_EMIT);

    action->event = (struct gavel_event){
        .kind = kind,
        .at_ns = c->now,
        .group = c->group,
        .candidate = c->id,
        .leader = "",
        .previous = "",
        .message = "",
        .phase = c->phase,
        .previous_phase = c->phase,
    };
    return &action->event;
}

void keep_words(char **words, const char *format, ...)
{
    va_list arguments;

    if (!*words)
        *words = malloc(WORDS_SIZE);
    if (!*words)
        return;
    va_start(arguments, format);
    (void)vsnprintf(*words, WORDS_SIZE, format, arguments); /* cut off if too long */
    va_end(arguments);
}

bool keep_name(char **place, const char *name)
{
    ASSERT(strlen(name) <= NAME_MAX_BYTES);
    if (!*place && name[0] == '\0')
        return true;
    if (!*place)
        *place = malloc(NAME_MAX_BYTES + 1);
    if (*place)
        memmove(*place, name, strlen(name) + 1);
    return *place != NULL;
}
