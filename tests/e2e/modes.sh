#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without an election: a single instance, and a fixed assignment.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

test_single_instance_leads_at_once_whoever_else_does() {
    elect a
    await said a became_leader
    elect b --no-election
    await said b became_leader '"epoch":0'
    GAVEL_ENABLED=false elect c
    await said c became_leader '"epoch":0'
    printf 'enabled: false\n' >"$scratch/gavel.yaml"
    elect d --config "$scratch/gavel.yaml"
    await said d became_leader '"epoch":0'
    leads a || fail "they have touched the election of others"
    local name
    for name in b c d; do
        kill -TERM "${pid_of[$name]}"
        ended $name 0
        said $name lost_leadership || fail "$name did not say that it stopped leading"
    done
}

test_single_instance_needs_no_store() {
    run_as a "$GAVEL" elect --store /nonexistent/directory/gavel.db --no-election
    await said a became_leader
    elect b --no-election
    await said b became_leader
    [[ ! -e $store ]] || fail "a store was made that nobody needs"
}

test_single_instance_tells_how_long_it_led() {
    elect a --no-election
    await said a became_leader
    local begin=${EPOCHREALTIME/./}
    a_while() { ((${EPOCHREALTIME/./} - begin > 50000)); }
    await a_while
    kill -TERM "${pid_of[a]}"
    ended a 0
    (($(grep -F lost_leadership "$scratch/a.out" | "$JSON_GET" took_ms) >= 50)) || fail "it led for no time at all"
}

test_election_can_be_switched_on_over_the_file() {
    printf 'enabled: false\n' >"$scratch/gavel.yaml"
    elect a --config "$scratch/gavel.yaml" --election
    await said a became_leader '"epoch":1'
}

test_static_store_makes_the_assigned_one_leader() {
    store=static:web-1
    elect web-1
    elect web-2
    await said web-1 became_leader
    await said web-2 leader_changed '"new":"web-1"'
    same "$("$GAVEL" leader --store static:web-1)" web-1
    ! said web-2 became_leader || fail "web-2 leads, too"
    kill -TERM "${pid_of[web-1]}"
    ended web-1 0
    kill -TERM "${pid_of[web-2]}"
    ended web-2 0
    ! said web-2 became_leader || fail "web-2 led after web-1 had left"
}

test_check_promises_nothing_without_an_election() {
    local options
    for options in '--no-election' '--store static:web-1'; do
        # shellcheck disable=SC2086 # an option with its value
        expect 0 "$GAVEL" check $options
        has_not "$output" "Longest"
        has_not "$output" "Budget"
        has "$output" "Guarantees"
        # shellcheck disable=SC2086
        expect 0 "$GAVEL" check $options --json
        same "$("$JSON_GET" bounds <<<"$output")" null
        [[ $("$JSON_GET" no_bounds <<<"$output") != null ]] || fail "it does not say why"
    done
    expect 0 "$GAVEL" check --store "$store" --json
    same "$("$JSON_GET" no_bounds <<<"$output")" null
}

test_looking_with_the_file_of_a_single_instance_says_so() {
    printf 'enabled: false\n' >"$scratch/solo.yaml"
    expect 4 "$GAVEL" leader --store "$store" --config "$scratch/solo.yaml"
    has "$errors" "election is switched off"
    has "$errors" "$scratch/solo.yaml"
    run_as a "$GAVEL" elect --config "$scratch/solo.yaml" --id a
    await said a became_leader
    has "$(cat "$scratch/a.err")" "leads without an election"
}

test_static_store_says_why_nobody_is_listed() {
    expect 0 "$GAVEL" candidates --store static:web-1
    has "$output" "assigned"
    (($(wc -L <<<"$output") <= 80)) || fail "too wide: $output"
    expect 0 "$GAVEL" status --store static:web-1
    has "$output" "assigned"
    has_not "$output" " left"
    expect 0 "$GAVEL" status --store static:web-1 --json
    same "$("$JSON_GET" candidates lease_ms remaining_ms <<<"$output")" "null	null	null"
}

test_static_store_has_the_epoch_it_is_told() {
    expect 0 "$GAVEL" leader --store 'static:web-1?epoch=7' --json
    same "$("$JSON_GET" leader_id epoch <<<"$output")" "web-1	7"
}

test_static_leader_cannot_resign() {
    expect 4 "$GAVEL" handover --store static:web-1
    has "$errors" "fixed leader"
}

test_memory_store_is_for_one_process() {
    store=memory:x
    elect a
    elect b
    await said a became_leader
    await said b became_leader
    has "$(cat "$scratch/a.err")" "no other process can see this store"
}

run_tests "$@"
