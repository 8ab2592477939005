#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a service manager hears of gaveld, and what its children do not.
set -euo pipefail
# shellcheck source=commands_lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/commands_lib.sh"

: "${MANAGER:?a service manager}"

# A cluster of one under a manager, with a watchdog of 200 ms.
managed() {
    cluster n1
    equip n1 sleep infinity
    run_as manager "$MANAGER" "$scratch/socket"
    await test -S "$scratch/socket"
    wrapper=(env "NOTIFY_SOCKET=$scratch/socket" WATCHDOG_USEC=200000)
    start n1 --bootstrap
    wrapper=()
}

heard_times() { (($(grep -c -- "$1" "$scratch/manager.out") >= $2)); }

# Nothing was heard for two seconds.
is_silent() { (($(date +%s%3N) - $(date +%s%3N -r "$scratch/manager.out") > 2000)); }

is_itself() { [[ $(cat "/proc/$(child_of n1)/comm") == sleep ]]; }

test_it_is_ready_and_the_watchdog_is_fed_until_it_stops() {
    managed
    await heard_times '^READY=1' 1
    await heard_times '^WATCHDOG=1' 10
    await logged n1 'msg="children run"'
    await is_itself # it has its own environment only then
    has_not "$(tr '\0' '\n' <"/proc/$(child_of n1)/environ")" NOTIFY_SOCKET
    has_not "$(tr '\0' '\n' <"/proc/$(child_of n1)/environ")" WATCHDOG_USEC
    stop n1
    await heard_times '^STOPPING=1' 1
    heard_times '^READY=1' 2 && fail "it was ready twice"
    return 0
}

# The guard is well all the time.
test_the_watchdog_is_not_fed_while_the_node_is_frozen() {
    local node count
    managed
    await heard_times '^WATCHDOG=1' 10
    node=$(node_pid n1)
    kill -STOP "$node"
    await is_silent
    count=$(grep -c '^WATCHDOG=1' "$scratch/manager.out")
    kill -CONT "$node"
    await heard_times '^WATCHDOG=1' $((count + 5))
    same "$(node_pid n1)" "$node"
    stop n1
}

run_tests "$@"
