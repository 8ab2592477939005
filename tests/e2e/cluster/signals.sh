#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gaveld and its guard do what signals ask for, whatever whoever started them
# has ignored or blocked.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# obeys: one node, started by $wrapper, notices the death of its process, takes SIGHUP and ends in order.
obeys() {
    local node
    cluster n1
    begin n1
    await_leader
    node=$(node_pid n1)
    kill -KILL "$node"
    await is_another "$node"
    await_leader
    kill -HUP "${pid_of[n1]}"
    is n1 has_lease true || fail "SIGHUP ended it"
    kill "-$1" "${pid_of[n1]}"
    ended n1 0
    logged n1 'how="killed by SIGKILL"' || fail "the guard does not know how its node died"
    judge_logs
}

is_another() {
    local node
    node=$(node_pid n1)
    [[ $node && $node != "$1" ]]
}

test_what_nohup_and_shells_ignore() {
    wrapper=(env "--ignore-signal=HUP,INT,QUIT,PIPE")
    obeys INT
}

test_what_a_careless_parent_leaves_behind() {
    wrapper=(env --ignore-signal=CHLD --block-signal)
    obeys TERM
}

run_tests "$@"
