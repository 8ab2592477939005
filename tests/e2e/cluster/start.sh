#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What keeps gaveld from starting: it says what, why, and what to do, and does
# no harm to what is there.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

test_a_key_that_is_not_known_is_named_with_its_line() {
    cluster n1
    configure n1 "elction: 5"
    refused 2 n1 --bootstrap
    has "$errors" elction
    has "$errors" ":$(grep -n elction "$scratch/n1.yaml" | cut -d: -f1)"
    refused 2 n1 --check-config
    [[ ! -e $scratch/n1 ]] || fail "it has made its directory"
}

test_check_config_opens_and_writes_nothing() {
    cluster n1 n2 n3
    expect 0 "$GAVELD" --config "$scratch/n1.yaml" --check-config
    [[ ! -e $scratch/n1 ]] || fail "it has made its directory"
}

test_times_that_do_not_add_up_are_refused_with_the_sum() {
    cluster n1
    sed -i 's/lease_ms: 400/lease_ms: 40/' "$scratch/n1.yaml"
    refused 2 n1 --bootstrap
    has "$errors" "must be less than lease_ms 40"
}

test_an_empty_directory_may_be_a_lost_disk() {
    cluster n1
    refused 78 n1
    has "$errors" --bootstrap
    has "$errors" --join
    has "$errors" "$scratch/n1"
}

# another_of NAME: the configuration of a second cluster on the same ports, as "other".
another_of() { sed "s/^cluster: .*/cluster: other/; s|^data: .*|data: $scratch/other|" "$scratch/$1.yaml" >"$scratch/other.yaml"; }

test_a_taken_port_is_named() {
    cluster n1
    start n1 --bootstrap
    await is n1 node n1
    another_of n1
    refused 75 other --bootstrap
    has "$errors" "${port_of[n1]}"
    free_port
    sed -i "s/${port_of[n1]}/$port/" "$scratch/other.yaml"
    refused 75 other --bootstrap
    has "$errors" "${api_of[n1]}"
    is n1 node n1 || fail "n1 does not answer any more"
}

test_a_second_gaveld_on_one_directory_is_refused() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    free_port
    sed "s/${port_of[n1]}/$port/" "$scratch/n1.yaml" >"$scratch/again.yaml"
    free_port
    sed -i "s/${api_of[n1]}/$port/" "$scratch/again.yaml"
    refused 75 again
    has "$errors" "$scratch/n1"
    await agree
    judge_logs
}

test_a_directory_of_another_node_or_cluster_is_refused() {
    cluster n1 n2
    start n1 --bootstrap
    await is n1 node n1
    stop n1
    sed -i "s|^data: .*|data: $scratch/n1|" "$scratch/n2.yaml"
    refused 78 n2 --bootstrap
    has "$errors" n1
    has "$errors" n2
    sed -i 's/^cluster: .*/cluster: other/' "$scratch/n1.yaml"
    refused 78 n1
    has "$errors" other
}

test_without_tls_only_loopback() {
    cluster n1
    sed -i 's/^listen: .*/listen: 0.0.0.0:7400/' "$scratch/n1.yaml"
    refused 2 n1 --bootstrap
    has "$errors" tls
    configure n1
    sed -i 's/^api: .*/api: 0.0.0.0:7500/' "$scratch/n1.yaml"
    refused 2 n1 --bootstrap
    has "$errors" token
}

test_a_guard_that_dies_takes_its_node_along() {
    local node
    cluster n1
    start n1 --bootstrap
    await is n1 has_lease true
    node=$(node_pid n1)
    kill_both n1
    process_is_gone "$node" || fail "the node outlived its guard"
    start n1
    await is n1 has_lease true
    judge_logs
}

test_too_few_descriptors_are_told_at_the_start() {
    cluster n1
    wrapper=(bash -c 'ulimit -n 400 && exec "$@"' sh)
    start n1 --bootstrap
    wrapper=()
    await is n1 has_lease true
    await logged n1 "the limit of open files is low"
    logged n1 "limit=400 for_clients=200" || fail "it does not say how many"
    stop n1
    start n1
    await is n1 has_lease true
    same "$(grep -c 'the limit of open files is low' "$scratch/n1.err")" 1
}

# It dies again and again: the guard goes on, and waits longer and longer.
test_a_node_that_dies_again_and_again_is_started_again() {
    local before=0 now
    cluster n1
    start n1 --bootstrap
    more() { now=$(status_of n1 incarnation) && ((now > before)); }
    for _ in 1 2 3; do
        await more
        before=$(status_of n1 incarnation)
        kill -ABRT "$(node_pid n1)"
    done
    await more
    await is n1 has_lease true
    same "$(grep -c 'msg="node died"' "$scratch/n1.err")" 3
    judge_logs
}

run_tests "$@"
