/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts on the heap, shared by counting references: the id of a candidate, the
 * holder of a mandate and the holder before may be one text. So a mandate
 * passes on without allocating, which cannot fail. "" is one static text.
 */

#include "base/assert.h"
#include "core/table/step.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct text {
    uint32_t references;
    char chars[];
};

static char nothing[1];

static struct text *head_of(char *text)
{
    return (struct text *)(void *)(text - offsetof(struct text, chars));
}

char *text_new(const char *string)
{
    size_t size = strlen(string) + 1;
    struct text *text;

    if (size == 1)
        return nothing;
    text = malloc(sizeof *text + size);
    if (!text)
        return NULL;
    text->references = 1;
    memcpy(text->chars, string, size);
    /* The characters stand for the whole. */
    /* cppcheck-suppress memleak */
    return text->chars;
}

char *text_share(char *text)
{
    if (text != nothing) {
        ASSERT(head_of(text)->references < UINT32_MAX);
        head_of(text)->references++;
    }
    return text;
}

void text_drop(char *text)
{
    if (!text || text == nothing)
        return;
    ASSERT(head_of(text)->references > 0);
    if (--head_of(text)->references == 0)
        free(head_of(text));
}

void text_set(char **field, char *text)
{
    char *old = *field;

    *field = text;
    text_drop(old);
}

bool bytes_copy(const uint8_t *bytes, size_t size, uint8_t **ret_copy)
{
    uint8_t *copy = NULL;

    if (size > 0) {
        copy = malloc(size);
        if (!copy)
            return false;
        memcpy(copy, bytes, size);
    }
    *ret_copy = copy;
    return true;
}

void process_set(struct table_process *process, const Gavel__Process *message)
{
    *process = (struct table_process){0};
    if (!message || message->pid == 0)
        return;
    process->pid = message->pid;
    process->pid_ns = message->pid_ns;
    process->start_ticks = message->start_ticks;
    memcpy(process->boot_id, message->boot_id, strnlen(message->boot_id, sizeof process->boot_id - 1));
}

bool process_is(const struct table_process *process, const Gavel__Process *message)
{
    struct table_process other;

    process_set(&other, message);
    return process->pid == other.pid && process->pid_ns == other.pid_ns &&
           process->start_ticks == other.start_ticks && strcmp(process->boot_id, other.boot_id) == 0;
}

void process_ready(struct table_process *process, Gavel__Process *ret_shown)
{
    gavel__process__init(ret_shown);
    ret_shown->boot_id = process->boot_id;
    ret_shown->pid = process->pid;
    ret_shown->pid_ns = process->pid_ns;
    ret_shown->start_ticks = process->start_ticks;
}

/* Messages have no const; who is shown one only reads it. */
Gavel__Process *process_show(const Gavel__Process *shown)
{
    return shown->pid == 0 ? NULL : (Gavel__Process *)(uintptr_t)shown;
}
