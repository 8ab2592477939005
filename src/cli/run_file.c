/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run_file.h"

#include "base/error.h"

#include <string.h>

const char *run_child_default_name(struct arena *arena, char *const *command)
{
    bool is_shell =
        strcmp(command[0], "/bin/sh") == 0 && command[1] && strcmp(command[1], "-c") == 0 && command[2];
    const char *word = is_shell ? command[2] + strspn(command[2], " \t\n") : command[0];
    size_t length = is_shell ? strcspn(word, " \t\n;|&<>()") : strlen(word);
    const char *begin = word;

    for (size_t i = 0; i + 1 < length; i++)
        if (word[i] == '/')
            begin = word + i + 1;
    length -= (size_t)(begin - word);
    return length ? arena_text(arena, "%.*s", (int)length, begin) : arena_text(arena, "sh");
}

void run_file_done(struct run_file *file)
{
    arena_done(&file->arena);
    *file = (struct run_file){0};
}
