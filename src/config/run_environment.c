/* SPDX-License-Identifier: Apache-2.0 */

#include "config/run_environment.h"

#include "base/error.h"

#include <string.h>

#define RESERVED 4

static const char *const reserved[RESERVED] = {"GAVEL_GROUP", "GAVEL_CANDIDATE", "GAVEL_STORE",
                                               "GAVEL_EPOCH"};

/*
 * What systemd tells the one process it started, by its process id or by a
 * socket: a command that took these for its own would say "ready" or "alive"
 * in the name of gavel. A gavel above us may have left its epoch there. The
 * passwords of the store are gavel's own: whoever can claim and release with
 * them is not what a command needs to be.
 */
static const char *const not_passed_on[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",        "WATCHDOG_PID",
                                            "LISTEN_PID",    "LISTEN_FDS",           "LISTEN_FDNAMES",
                                            "GAVEL_EPOCH",   "GAVEL_MYSQL_PASSWORD", "GAVEL_ETCD_PASSWORD"};

static bool is_named(const char *variable, const char *name)
{
    size_t length = strlen(name);

    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

bool run_environment_is_passed_on(const char *variable)
{
    for (size_t i = 0; i < sizeof not_passed_on / sizeof not_passed_on[0]; i++)
        if (is_named(variable, not_passed_on[i]))
            return false;
    return true;
}

bool run_environment_is_reserved(const char *name)
{
    for (size_t i = 0; i < RESERVED; i++)
        if (strcmp(reserved[i], name) == 0)
            return true;
    return false;
}

const char *run_environment_value(char *const *environment, const char *name)
{
    for (; *environment; environment++)
        if (is_named(*environment, name))
            return *environment + strlen(name) + 1;
    return NULL;
}

/* Adds a variable, or puts it in the place of the one of the same name. */
static void put(char **list, char *variable)
{
    size_t length = strcspn(variable, "=");

    while (*list && (strncmp(*list, variable, length) != 0 || (*list)[length] != '='))
        list++;
    *list = variable; /* what follows is NULL already: there is room for everything */
}

static size_t count_of(char *const *list)
{
    size_t count = 0;

    while (list && list[count])
        count++;
    return count;
}

enum gavel_status run_environment_make(struct arena *arena, const struct run_environment *parts,
                                       char *const **ret_environment, struct gavel_error *error)
{
    const char *values[RESERVED - 1] = {parts->group, parts->candidate, parts->store};
    size_t room = count_of(parts->from) + RESERVED + count_of(parts->user) + count_of(parts->own) + 1;
    char **list = arena_take(arena, room * sizeof *list);
    size_t count = 0;

    if (!list)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    for (char *const *from = parts->from; *from; from++)
        if (run_environment_is_passed_on(*from))
            list[count++] = *from;
    for (char *const *user = parts->user; user && *user; user++)
        put(list, *user);
    for (char *const *own = parts->own; own && *own; own++)
        put(list, *own);
    for (size_t i = 0; i < RESERVED - 1; i++) {
        char *variable = values[i] ? arena_text(arena, "%s=%s", reserved[i], values[i]) : NULL;

        if (!values[i])
            continue;
        if (!variable)
            return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
        put(list, variable);
    }
    put(list, parts->epoch);
    *ret_environment = list;
    return GAVEL_OK;
}
