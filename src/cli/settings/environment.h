/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Environment variables that are named like ours but are not ours. Nothing
 * reads them, so a mistyped one would silently leave its setting unchanged.
 *
 * They are not an error: other programs use this prefix, too, such as
 * Kubernetes with GAVEL_PORT and GAVEL_SERVICE_HOST for a service of that name.
 * Only those close to one of ours cause a warning.
 */
#ifndef CLI_SETTINGS_ENVIRONMENT_H
#define CLI_SETTINGS_ENVIRONMENT_H

#include "base/log.h"

/* The variable that was probably meant by `name`; NULL if it is one of ours, or none is close. */
const char *environment_meant(const char *name);

/*
 * Logs a warning for each variable that is close to one of ours, a debug line
 * for each other with the prefix.
 */
void environment_warn(const struct log *log, char *const *variables);

#endif
