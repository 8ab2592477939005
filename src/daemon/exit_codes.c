/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/exit_codes.h"

#include "daemon/guard/guard.h"
#include "daemon/node/node.h"

const struct exit_code exit_codes[] = {
    {NODE_EXIT_DONE, "ended as asked (SIGTERM, SIGINT), after a hand-over"},
    {DAEMON_EXIT_FAILURE, "--force-new-cluster failed, or was not confirmed"},
    {DAEMON_EXIT_USAGE, "the command line or the configuration is wrong; nothing was started"},
    {GUARD_PROCESS_EXIT_SYSTEM, "the system refused the guard a resource"},
    {NODE_EXIT_DISK, "a write to the disk failed; the state on disk is unknown"},
    {NODE_EXIT_BUSY, "the port or the data directory is in use by another process"},
    {NODE_EXIT_FENCED, "the cluster has gone on without this node, as a later generation"},
    {NODE_EXIT_CONFIG, "the node cannot start with this configuration or data directory"},
    {NODE_EXIT_LOST,
     "the data directory was deleted or replaced, or the cluster refuses it; replace the member"},
    {128, "+ n: killed by signal n, and the guard gave up or was asked to end"},
};

const size_t exit_code_count = sizeof exit_codes / sizeof *exit_codes;
