/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/exit_codes.h"

#include "daemon/guard/guard.h"
#include "daemon/node/node.h"

const struct exit_code exit_codes[] = {
    {NODE_EXIT_DONE, "ended as asked (SIGTERM, SIGINT), after handing over"},
    {DAEMON_EXIT_FAILURE, "--force-new-cluster was not done, or not confirmed"},
    {DAEMON_EXIT_USAGE, "the command line or the configuration is wrong; nothing was started"},
    {GUARD_PROCESS_EXIT_SYSTEM, "the system refused what the guard needs"},
    {NODE_EXIT_DISK, "a write to the disk failed; what is on it is not known any more"},
    {NODE_EXIT_BUSY, "the port or the data folder is taken by another process"},
    {NODE_EXIT_FENCED, "the cluster goes on without this node, as a later generation"},
    {NODE_EXIT_CONFIG, "the node cannot start with this configuration or this data folder"},
    {NODE_EXIT_LOST,
     "the data directory was deleted or replaced, or the cluster refuses it; replace the member"},
    {128, "and n: killed by signal n, and the guard gave up or was asked to end"},
};

const size_t exit_code_count = sizeof exit_codes / sizeof *exit_codes;
