/* SPDX-License-Identifier: Apache-2.0 */

/* Where the other programs of gavel are: beside this one, in the tree it was built in, or where both were
 * installed. */
#ifndef CLI_COMPANION_H
#define CLI_COMPANION_H

#include <limits.h>
#include <stdbool.h>

/* False if there is none that can be executed. */
bool companion_find(const char *name, char ret_path[static PATH_MAX]);

#endif
