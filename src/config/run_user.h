/* SPDX-License-Identifier: Apache-2.0 */

/* Another user for a child: its ids, and the groups it belongs to. */
#ifndef CONFIG_RUN_USER_H
#define CONFIG_RUN_USER_H

#include "config/arena.h"
#include "guard/spec.h"

/*
 * Looks up a user by name or number and fills in the child's uid, gid and
 * groups. A number without an entry gets the group of the same number and no
 * others. *ret_environment, ending with NULL, is what a login would set: HOME,
 * USER, LOGNAME; NULL if nothing changes, since it is our own user.
 *
 * ERR_INVALID for a user that does not exist or that we may not become.
 */
GAVEL_CHECKED enum gavel_status run_user_find(struct arena *arena, const char *user,
                                              struct guard_child *child, char *const **ret_environment,
                                              struct gavel_error *error);

#endif
