#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command in a pid namespace dies whole, also when elector and guard are
# killed at the same time, as gavel-run(1) promises.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

namespace=(unshare --pid --fork --kill-child --mount-proc)

needs_namespace() { "${namespace[@]}" true 2>/dev/null || skip "no pid namespace can be made here"; }

test_namespace_ends_the_tree_when_elector_and_guard_are_killed() {
    needs_namespace
    run_short a -- "${namespace[@]}" "$BEAT" "$scratch/beats" --ignore-term --sessions 2
    await beats
    kill -KILL "${pid_of[a]}" "$(guard_of a)"
    await all_gone
    ended a 137
}

test_without_a_namespace_the_command_itself_dies() {
    run_short a -- "$BEAT" "$scratch/beats" --ignore-term
    await beats
    kill -KILL "${pid_of[a]}" "$(guard_of a)"
    await all_gone
    ended a 137
}

test_namespace_is_stopped_in_order_like_any_command() {
    needs_namespace
    run_short a -- "${namespace[@]}" sh -c 'trap "exit 5" TERM; "$0" "$1" & while :; do sleep 0.05; done' "$BEAT" "$scratch/beats"
    await beats
    kill -TERM "${pid_of[a]}"
    ended a 5
    all_gone || fail "something is left"
}

run_tests "$@"
