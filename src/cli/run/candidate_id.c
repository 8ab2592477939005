/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/run/candidate_id.h"

#include <stdio.h>
#include <unistd.h>

void candidate_id_choose(const struct config *config, char ret_id[static NAME_MAX_BYTES + 1])
{
    char host[NAME_MAX_BYTES + 1 - 16] = "";

    if (config->candidate) {
        snprintf(ret_id, NAME_MAX_BYTES + 1, "%s", config->candidate);
        return;
    }
    if (gethostname(host, sizeof host) || !host[0])
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    snprintf(ret_id, NAME_MAX_BYTES + 1, "%s-%d", host, (int)getpid());
}
