#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Children of `leader_commands:` that crash, do not want to end, or do not fit.
set -euo pipefail
# shellcheck source=commands_lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/commands_lib.sh"

test_a_child_that_crashes_is_started_again_where_it_was() {
    local former epoch child
    cluster_with "$BEAT" "$scratch/beats"
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH) child=$(child_of "$leader")
    kill -SEGV "$child"
    await process_is_gone "$child"
    await runs_only_on_the_leader
    same "$leader" "$former"
    same "$(variable GAVEL_EPOCH)" "$epoch"
    await logged "$former" 'msg="a child was started again"'
    await logged "$former" 'killed by signal 11'
    finish
}

# On the node that $scratch/bad names the command ends at once, whenever it is started.
test_where_a_child_keeps_crashing_another_node_leads() {
    local former epoch
    # shellcheck disable=SC2016 # for the shell that runs there
    cluster_with bash -c '[[ $(cat "$0/bad") != "$GAVEL_CANDIDATE" ]] || exit 3; exec "$@"' "$scratch" "$BEAT" "$scratch/beats"
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    echo "$former" >"$scratch/bad"
    kill -KILL "$(child_of "$former")" || true # one that had only begun may have read the name and ended
    await moved "$former" "$epoch"
    logged "$former" 'msg="the children gave up"' || fail "it did not say why"
    logged "$former" 'exit code 3' || fail "it did not say how the child ended"
    await agree
    # It was the node's fault, and is mended: it can lead again.
    : >"$scratch/bad"
    has "$(post "$leader" /transfer "{\"target_leader_id\":\"$former\",\"timeout_ms\":5000}")" '"success":true'
    await runs_only_on_the_leader
    same "$leader" "$former"
    finish
}

test_a_child_that_ignores_sigterm_is_killed_in_time() {
    local former epoch target began
    cluster_with "$BEAT" "$scratch/beats" --ignore-term --children 3
    await test -s "$scratch/beats" # only then it ignores SIGTERM
    await runs_only_on_the_leader
    former=$leader epoch=$(variable GAVEL_EPOCH)
    target=$(others "$former" | sed -n 1p)
    began=$(now_ms)
    has "$(post "$former" /transfer "{\"target_leader_id\":\"$target\",\"timeout_ms\":5000}")" '"success":true'
    (($(now_ms) - began >= grace_ms / 2)) || fail "it had no time to end by itself"
    (($(now_ms) - began < grace_ms + 2000)) || fail "it took $(($(now_ms) - began)) ms"
    await moved "$former" "$epoch"
    same "$leader" "$target"
    finish
}
now_ms() { awk '{ printf "%.0f", $1 * 1000 }' /proc/uptime; }

# Every child has ended before the former one is told to.
test_children_stop_in_reverse_order() {
    local name
    cluster n1
    # shellcheck disable=SC2016 # for the shell that runs there
    configure n1 'leader_commands:' "  stop_grace: ${grace_ms}ms" '  children:' \
        "    - {name: first, command: [bash, -c, 'trap \"echo first >>\$0/ends; exit\" TERM; : >\$0/first; while :; do sleep 0.05; done', $scratch]}" \
        "    - {name: second, command: [bash, -c, 'trap \"sleep 0.1; echo second >>\$0/ends; exit\" TERM; : >\$0/second; while :; do sleep 0.05; done', $scratch]}"
    sed -i "s/^timing:.*/timing: {election_timeout_min_ms: $lease_ms, election_timeout_max_ms: $((2 * lease_ms)), lease_ms: $lease_ms}/" "$scratch/n1.yaml"
    start n1 --bootstrap
    await test -e "$scratch/first" -a -e "$scratch/second"
    stop n1
    same "$(cat "$scratch/ends")" $'second\nfirst'
}

test_a_grace_that_does_not_fit_the_lease_is_refused_with_one_that_does() {
    local proposal
    cluster n1 n2 n3
    configure n1 'leader_commands: {stop_grace: 2s, children: [{command: [sleep, infinity]}]}'
    refused 2 n1 --check-config
    has "$errors" '2 * heartbeat_interval_ms 100 + 10 ms and leader_commands.stop_grace 2010'
    has "$errors" 'must be less than lease_ms 400 ms'
    proposal=$(sed -n 's/.*timing: {\(.*\)} would do.*/\1/p' <<<"$errors")
    [[ $proposal ]] || fail "no times that would do in: $errors"
    sed -i "s/^timing:.*/timing: {heartbeat_interval_ms: 100, $proposal}/" "$scratch/n1.yaml"
    expect 0 "$GAVELD" --config "$scratch/n1.yaml" --check-config
}

test_a_command_that_is_not_there_is_refused() {
    cluster n1 n2 n3
    equip n1 /no/such/command
    refused 2 n1 --check-config
    has "$errors" /no/such/command
    refused 2 n1 --bootstrap
    [[ ! -e $scratch/n1 ]] || fail "it has made its directory"
}

run_tests "$@"
