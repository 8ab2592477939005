/* SPDX-License-Identifier: Apache-2.0 */

/* --force-new-cluster: the last resort, when a majority of the members is lost for good. */
#ifndef DAEMON_FORCE_H
#define DAEMON_FORCE_H

#include "daemon/config/config.h"

/* Explains, asks on the terminal unless already confirmed, does it and says what to do next. Returns the exit
 * code. */
int force_new_cluster(const struct daemon_config *config);

#endif
