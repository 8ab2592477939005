/* SPDX-License-Identifier: Apache-2.0 */

/* The id of this process in the group, chosen before it joins so that the log has it from the first line. */
#ifndef CLI_RUN_CANDIDATE_ID_H
#define CLI_RUN_CANDIDATE_ID_H

#include "base/record.h"
#include "cli/settings/config.h"

/* The id that was given, or the one that the library would choose: host name and process id. */
void candidate_id_choose(const struct config *config, char ret_id[static NAME_MAX_BYTES + 1]);

#endif
