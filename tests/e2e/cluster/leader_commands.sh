#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `leader_commands:` runs: on the node that leads, and only there, whatever is
# killed, frozen or asked. The command of most is `beat`, and the referee reads
# what it did (tests/run): never two at once.
set -euo pipefail
# shellcheck source=commands_lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/commands_lib.sh"

test_the_children_run_where_the_leader_is_and_only_there() {
    local name
    cluster_with "$BEAT" "$scratch/beats"
    await runs_only_on_the_leader
    same "$(variable GAVEL_GROUP)" test
    same "$(variable GAVEL_CANDIDATE)" "$leader"
    (($(variable GAVEL_EPOCH) > 0)) || fail "GAVEL_EPOCH is not above 0"
    # shellcheck disable=SC2046 # words
    for name in $(others "$leader"); do
        same "$(children_of "$(run_guard_of "$name")")" ""
    done
    await logged "$leader" 'msg="children run"'
    finish
}

test_the_former_key_runs_them_and_says_its_new_name() {
    cluster n1
    configure n1 'timing: {lease_ms: 1000, election_timeout_min_ms: 1000, election_timeout_max_ms: 2000}' 'coordinator:' '  children:' "    - {command: [touch, $scratch/ran]}"
    sed -i '0,/^timing:/{/^timing:/d}' "$scratch/n1.yaml"
    expect 0 "$GAVELD" --config "$scratch/n1.yaml" --check-config
    has "$output" 'leader_commands: 1 child, stopped within 500 ms'
    has "$output" 'coordinator is called leader_commands now; rename it'
    begin n1
    await test -e "$scratch/ran"
    logged n1 'coordinator is called leader_commands now; rename it' || fail "it did not say so"
}

test_transfer_and_stepdown_move_the_children() {
    local former epoch target
    cluster_with "$BEAT" "$scratch/beats" --sessions 1
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    target=$(others "$former" | sed -n 1p)
    has "$(post "$former" /transfer "{\"target_leader_id\":\"$target\",\"timeout_ms\":5000}")" '"success":true'
    await moved "$former" "$epoch"
    same "$leader" "$target"
    same "$(children_of "$(run_guard_of "$former")")" ""
    former=$leader epoch=$(variable GAVEL_EPOCH)
    has "$(post "$former" /stepdown '{}')" '"success":true'
    await moved "$former" "$epoch"
    finish
    has_epochs 3 || fail "not three epochs"
}

test_sigterm_moves_the_children_and_leaves_none() {
    local former epoch
    cluster_with "$BEAT" "$scratch/beats" --sessions 1
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    stop "$former"
    unset "nodes[${former#n}-1]"
    nodes=("${nodes[@]}")
    await moved "$former" "$epoch"
    finish
}

# The grandchildren in sessions of their own and the daemon whose parent is gone are dead, too: the referee would see them.
test_a_killed_node_takes_its_children_with_it() {
    local former epoch died led
    cluster_with "$BEAT" "$scratch/beats" --sessions 2 --daemon
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    kill -KILL "$(node_pid "$former")"
    await moved "$former" "$epoch"
    # The lease lasted longer than that: the obituary has shortened it.
    died=$(at_ns "$former" 'msg="node died"')
    led=$(at_ns "$leader" 'msg=leads')
    ((led > died - 50000000)) || fail "the next one led $(((died - led) / 1000000)) ms before the former was dead"
    ((led - died < lease_ms * 1000000 / 2)) || fail "it took $(((led - died) / 1000000)) ms"
    await_all_up
    finish
}

test_a_node_and_its_run_guard_that_are_killed_leave_nothing() {
    local former epoch
    cluster_with "$BEAT" "$scratch/beats" --sessions 2 --daemon
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    kill -KILL "$(node_pid "$former")" "$(run_guard_of "$former")"
    await moved "$former" "$epoch"
    await_all_up
    finish
}

test_a_killed_side_takes_its_children_with_it() {
    local former epoch guard child
    cluster_with "$BEAT" "$scratch/beats"
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    guard=$(run_guard_of "$former")
    child=$(child_of "$former")
    kill -KILL "${pid_of[$former]}" "$(node_pid "$former")" "$guard"
    await process_is_gone "$child"
    ended "$former" 137
    await_next "$former" "$epoch"
    start "$former"
    await_all_up
    finish
}

# Nobody asks a frozen node: its run-guard has the children dead before the deadline that it last knew.
test_the_children_of_a_frozen_node_are_stopped_in_time() {
    local former epoch node children
    cluster_with "$BEAT" "$scratch/beats" --sessions 1
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    node=$(node_pid "$former")
    children=$(children_of "$(run_guard_of "$former")")
    deed paused "$former"
    kill -STOP "$node"
    await process_is_gone "${children%% *}"
    await_next "$former" "$epoch"
    is_stopped "$node" || fail "the node was not frozen any more"
    kill -CONT "$node"
    deed resumed "$former"
    await is "$former" role follower
    is "$former" has_lease false || fail "it says that it leads"
    same "$(children_of "$(run_guard_of "$former")")" ""
    finish
}

test_a_frozen_run_guard_is_killed_in_time() {
    local former epoch guard
    cluster_with "$BEAT" "$scratch/beats" --sessions 1
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    guard=$(run_guard_of "$former")
    kill -STOP "$guard"
    await process_is_gone "$guard"
    await_next "$former" "$epoch"
    came_back_with_children "$former" "$guard"
    finish
}

# It had nothing to do, so no deadline has ended it; now it does not do what it is told.
test_a_guard_that_was_frozen_before_is_replaced() {
    local former epoch target guard
    cluster_with "$BEAT" "$scratch/beats"
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    target=$(others "$former" | sed -n 1p)
    guard=$(run_guard_of "$target")
    kill -STOP "$guard"
    has "$(post "$former" /transfer "{\"target_leader_id\":\"$target\",\"timeout_ms\":5000}")" '"success":true'
    await moved "$target" "$epoch"
    came_back_with_children "$target" "$guard"
    finish
}

test_a_killed_guard_is_replaced() {
    local former epoch guard
    cluster_with "$BEAT" "$scratch/beats" --sessions 1
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    guard=$(run_guard_of "$former")
    kill -KILL "$guard"
    await_next "$former" "$epoch"
    came_back_with_children "$former" "$guard"
    finish
}

run_tests "$@"
