/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the other programs of gavel: beside this one, in its build tree, or where both were installed. */
#ifndef CLI_COMPANION_H
#define CLI_COMPANION_H

#include <limits.h>
#include <stdbool.h>

/* False if there is no executable one. */
bool companion_find(const char *name, char ret_path[static PATH_MAX]);

#endif
