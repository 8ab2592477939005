/* SPDX-License-Identifier: Apache-2.0 */

#include "commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool commands_read(struct commands *commands, int fd, command_cb obey, void *user)
{
    ssize_t count = read(fd, commands->line + commands->length, sizeof commands->line - commands->length);
    char *end;

    if (count < 0 && errno == EINTR)
        return true;
    if (count <= 0)
        return false;
    commands->length += (size_t)count;
    while ((end = memchr(commands->line, '\n', commands->length))) {
        size_t used = (size_t)(end - commands->line) + 1;

        *end = '\0';
        obey(user, commands->line);
        memmove(commands->line, commands->line + used, commands->length -= used);
    }
    return commands->length < sizeof commands->line; /* no command is that long */
}
