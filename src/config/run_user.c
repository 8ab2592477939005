/* SPDX-License-Identifier: Apache-2.0 */

#include "config/run_user.h"

#include "base/error.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number that a text is; false if it is none that a user can have. */
static bool read_number(const char *text, uid_t *ret_uid)
{
    unsigned long value;

    if (!*text || strlen(text) > 10 || strspn(text, "0123456789") != strlen(text))
        return false;
    value = strtoul(text, NULL, 10);
    if (value >= UINT32_MAX) /* the highest means "no user" to the kernel */
        return false;
    *ret_uid = (uid_t)value;
    return true;
}

static enum gavel_status find_groups(const struct passwd *entry, struct guard_child *child,
                                     struct gavel_error *error)
{
    int count = GUARD_GROUPS_MAX;

    if (getgrouplist(entry->pw_name, entry->pw_gid, child->groups, &count) < 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the user \"%.60s\" is in more than %d groups; choose one that is in fewer",
                         entry->pw_name, GUARD_GROUPS_MAX);
    child->group_count = (size_t)count;
    return GAVEL_OK;
}

static char *const *login_environment(struct arena *arena, const struct passwd *entry)
{
    char **list = arena_take(arena, 4 * sizeof *list);

    if (!list)
        return NULL;
    list[0] = arena_text(arena, "HOME=%s", entry->pw_dir);
    list[1] = arena_text(arena, "USER=%s", entry->pw_name);
    list[2] = arena_text(arena, "LOGNAME=%s", entry->pw_name);
    return list[0] && list[1] && list[2] ? list : NULL;
}

enum gavel_status run_user_find(struct arena *arena, const char *user, struct guard_child *child,
                                char *const **ret_environment, struct gavel_error *error)
{
    struct passwd *entry;
    uid_t uid = 0;
    enum gavel_status status = GAVEL_OK;

    errno = 0;
    entry = getpwnam(user);
    if (!entry && read_number(user, &uid))
        entry = getpwuid(uid);
    else if (!entry)
        return error_set(error, GAVEL_ERR_INVALID, "there is no user \"%.60s\"%s%s", user, errno ? ": " : "",
                         errno ? strerror(errno) : "");
    uid = entry ? entry->pw_uid : uid;
    *ret_environment = NULL;
    if (uid == geteuid())
        return GAVEL_OK;
    if (geteuid() != 0)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "only root may run a command as the user \"%.60s\"; start gavel as root, or as that user and remove the line",
            user);
    child->has_user = true;
    child->uid = uid;
    child->gid = entry ? entry->pw_gid : (gid_t)uid;
    child->group_count = 0;
    if (!entry)
        return GAVEL_OK;
    status = find_groups(entry, child, error);
    if (status != GAVEL_OK)
        return status;
    *ret_environment = login_environment(arena, entry);
    return *ret_environment ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
}
