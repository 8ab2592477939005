#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Helpers of the tests of `leader_commands:`: three nodes with a command.
#
#     cluster_with COMMAND…          starts n1, n2 and n3, and waits for a leader
#     await runs_only_on_the_leader  sets $leader
#
# The lease is long enough for a busy machine, and for the stop grace.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
# shellcheck source=../run/run_lib.sh
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

lease_ms=1500
grace_ms=400

# equip NAME COMMAND…: its file, with that as its only child.
equip() {
    local name=$1 word command=
    shift
    for word in "$@"; do command+="${command:+, }'$word'"; done
    configure "$name" 'leader_commands:' "  stop_grace: ${grace_ms}ms" '  children:' "    - {name: job, command: [$command]}"
    sed -i "s/^timing:.*/timing: {election_timeout_min_ms: $lease_ms, election_timeout_max_ms: $((2 * lease_ms)), heartbeat_interval_ms: 100, lease_ms: $lease_ms}/" "$scratch/$name.yaml"
}

cluster_with() {
    local name
    cluster n1 n2 n3
    for name in "${nodes[@]}"; do equip "$name" "$@"; done
    start_nodes --bootstrap
    await_leader
}

# The beats say which of them it was.
start_nodes() {
    local name
    for name in "${nodes[@]}"; do
        wrapper=(env "BEAT_MEMBER=${name#n}")
        start "$name" "$@"
    done
    wrapper=()
}

# run_guard_of NAME, child_of NAME: the process below its node, and the first below that; nothing if there is none.
run_guard_of() { first_child "$(node_pid "$1")"; }
child_of() { first_child "$(run_guard_of "$1")"; }

# variable NAME: of the environment of the leader's child.
variable() { tr '\0' '\n' <"/proc/$(child_of "$leader")/environ" | sed -n "s/^$1=//p"; }

# Exactly one node has children, and it has the lease.
runs_only_on_the_leader() {
    local name
    find_leader "${nodes[@]}" || return 1
    for name in "${nodes[@]}"; do
        if [[ $name == "$leader" ]]; then
            [[ $(child_of "$name") ]] || return 1
        else
            [[ -z $(child_of "$name") ]] || return 1
        fi
    done
    [[ $(variable GAVEL_EPOCH) ]]
}

# moved FORMER EPOCH: they run elsewhere, under a higher epoch.
moved() {
    runs_only_on_the_leader && [[ $leader != "$1" ]] && (($(variable GAVEL_EPOCH) > $2))
}

# await_next FORMER EPOCH: the same, while the former one does not answer.
await_next() {
    local rest
    mapfile -t rest < <(others "$1")
    local nodes=("${rest[@]}")
    await moved "$1" "$2"
}

# came_back_with_children NAME GUARD: it has another run-guard, and when it leads the children run there.
came_back_with_children() {
    await has_another_run_guard "$1" "$2"
    await_all_up
    has "$(post "$leader" /transfer "{\"target_leader_id\":\"$1\",\"timeout_ms\":5000}")" '"success":true'
    await runs_only_on_the_leader
    same "$leader" "$1"
}
has_another_run_guard() { [[ $(run_guard_of "$1") && $(run_guard_of "$1") != "$2" ]]; }

# Everybody follows, and the children run where they should.
await_all_up() {
    await agree
    await runs_only_on_the_leader
}

# at_ns NAME TEXT: the instant of the last line with that text in its log.
at_ns() { grep -F -- "$2" "$scratch/$1.err" | tail -n 1 | sed -n 's/.* at_ns=\([0-9]*\).*/\1/p'; }

# Stops them in order. Nothing is left, and nothing ran beside another.
finish() {
    local name
    for name in "${nodes[@]}"; do kill -TERM "${pid_of[$name]}"; done
    for name in "${nodes[@]}"; do ended "$name" 0; done
    await all_gone
    judged_well
    judge_logs
}
