/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Variables of the environment that are named like ours and are not. Nothing
 * reads them, so a mistyped one would silently leave its setting as it was.
 *
 * They are no error: other programs have variables of this prefix, such as
 * the GAVEL_PORT and GAVEL_SERVICE_HOST that Kubernetes sets for a service of
 * that name. A warning tells of those that are close to one of ours.
 */
#ifndef CLI_SETTINGS_ENVIRONMENT_H
#define CLI_SETTINGS_ENVIRONMENT_H

#include "base/log.h"

/* The variable that was probably meant by `name`; NULL if it is one of ours, or none is close. */
const char *environment_meant(const char *name);

/* A warning for each variable that is close to one of ours, a debug line for each other of the prefix. */
void environment_warn(const struct log *log, char *const *variables);

#endif
