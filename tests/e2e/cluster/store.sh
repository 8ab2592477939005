#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster as a store: the commands for candidates work on gavel:// as on a
# file, and neither the death of a candidate nor that of a node does harm.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
# shellcheck source=../run/run_lib.sh
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"
# shellcheck source=../loss_lib.sh
source "$SOURCE_ROOT/tests/e2e/loss_lib.sh"

# prepared: three nodes that will take clients; $store names them.
prepared() {
    local name
    cluster n1 n2 n3
    store=
    for name in n1 n2 n3; do
        free_port
        configure "$name" "clients: 127.0.0.1:$port" "socket: $scratch/$name.sock"
        store+="${store:+,}$scratch/$name.sock,127.0.0.1:$port"
    done
    store=gavel://$store
}

serving() {
    prepared
    begin n1 n2 n3
    await_leader
    await sockets_are_there
}
sockets_are_there() { [[ -S $scratch/n1.sock && -S $scratch/n2.sock && -S $scratch/n3.sock ]]; }

pair() {
    elect a "$@"
    await said a became_leader
    elect b "$@"
    await has_candidates 2
    await said b leader_changed '"new":"a"'
}

test_commands_work_as_on_any_store() {
    local epoch
    serving
    expect 3 "$GAVEL" leader --store "$store"
    expect 7 "$GAVEL" elect --store "$store" --stop-grace 3s --lease 3700ms # each of its mandates would lapse
    has "$errors" "a lease of 5100 ms would do"
    pair
    epoch=$(epoch_of a)
    expect 0 "$GAVEL" leader --store "$store" --json
    same "$("$JSON_GET" leader_id epoch state <<<"$output")" "a"$'\t'"$epoch"$'\t'held
    expect 0 "$GAVEL" candidates --store "$store"
    has "$output" a
    has "$output" b
    expect 0 "$GAVEL" status --store "$store" --json
    same "$("$JSON_GET" state leader_id <<<"$output")" held$'\t'a
    run_as watch "$GAVEL" watch --store "$store" --json
    await grep -qF '"leader_id":"a"' "$scratch/watch.out"
    expect 0 "$GAVEL" handover --store "$store" --to b
    await said b became_leader
    (($(epoch_of b) > epoch)) || fail "the epoch did not grow"
    await said a lost_leadership handed_over
    await grep -qF '"leader_id":"b"' "$scratch/watch.out"
    kill -TERM "${pid_of[b]}"
    ended b 0
    await leads a
    expect 0 "$GAVEL" check --store "$store" --json
    same "$("$JSON_GET" store.driver store.has_push store.sees_processes <<<"$output")" "gavel"$'\t'true$'\t'true
}

# One list of addresses is enough: the nodes tell where their API is.
keys() { "$GAVEL" once --store "$store" --list --json; }
has_no_key() {
    local all
    all=$(keys) && [[ $all != *"\"$1\""* ]]
}

test_keys_of_once_are_listed_and_removed_when_their_time_is_over() {
    local epoch
    export GAVELD_GROUP_RETENTION=1s
    serving
    expect 3 "$GAVEL" once --store "$store" --id a --key other --keep 1d -- sh -c 'echo "$GAVEL_EPOCH"; exit 3'
    expect 0 "$GAVEL" once --store "$store" --id b --key kept -- true
    expect 0 "$GAVEL" once --store "$store" --id b --key old --keep 1s -- sh -c 'echo "$GAVEL_EPOCH"'
    epoch=$output
    await has_no_key old
    await has_no_key other # a failure is no reason to keep the group
    same "$(keys | "$JSON_GET" keys.# keys.0.key keys.0.state keys.0.by keys.0.exit_code keys.0.attempts)" $'1\tkept\tdone\tb\t0\t1'
    expect 0 "$GAVEL" once --store "$store" --id c --key old -- sh -c 'echo "$GAVEL_EPOCH"'
    ((output > epoch)) || fail "epoch $output after $epoch"
}

test_the_url_of_the_store_serves_the_commands_for_nodes() {
    local target
    serving
    export GAVEL_STORE=$store
    same "$("$GAVEL" status --cluster --json | "$JSON_GET" leader_id members healthy)" "$leader"$'\t3\t3'
    same "$("$GAVEL" leader --cluster)" "$leader"
    expect 0 "$GAVEL" check --cluster
    expect 0 "$GAVEL" elections --limit 1
    expect 0 "$GAVEL" member list
    has "$output" "127.0.0.1:${api_of[n2]}"
    expect 0 "$GAVEL" note list jobs
    read -r target < <(others "$leader")
    expect 0 "$GAVEL" handover --cluster --to "$target"
    has "$output" "$target leads in term"
    # Without --cluster it is a group of the store.
    expect 3 "$GAVEL" handover
    has "$errors" 'the group "default"'
    unset GAVEL_STORE
    # One node is enough, by a socket or by a port, and by a flag.
    expect 0 "$GAVEL" member list --store "gavel://$scratch/n1.sock"
    expect 0 "$GAVEL" status --cluster "gavel://$scratch/n1.sock"
    kill_both n1
    expect 0 "$GAVEL" member list --store "$store"
    expect 4 "$GAVEL" member list --store "gavel://$scratch/n1.sock" --cluster-timeout 300ms
    has "$errors" "no node of gavel://$scratch/n1.sock answers within 300 ms"
    has "$errors" "; see whether gaveld runs there"
    expect 2 "$GAVEL" member list --store "$scratch/gavel.db"
    has "$errors" "is not a cluster of gaveld"
    expect 2 "$GAVEL" status --store "$scratch/gavel.db" --cluster
    expect 2 "$GAVEL" status --cluster
    has "$errors" "--cluster names no cluster"
    expect 2 "$GAVEL" run --cluster -- true
    # A store that is none of these is for other commands, and GAVEL_CLUSTER goes before GAVEL_STORE.
    GAVEL_STORE=$scratch/gavel.db GAVEL_CLUSTER=127.0.0.1:${api_of[n2]} expect 0 "$GAVEL" member list
    GAVEL_STORE=gavel://127.0.0.1:1 GAVEL_CLUSTER=127.0.0.1:${api_of[n2]} expect 0 "$GAVEL" status --cluster
    GAVEL_CLUSTER=127.0.0.1:1 expect 0 "$GAVEL" member list --store "$store"
}

test_the_next_one_leads_long_before_the_lease_is_over_after_sigkill() {
    local before
    serving
    # Nobody looks by itself for a minute, and nobody can be rung: only the cluster can tell.
    pair --lease 60s --heartbeat 20s --election-interval 60s --candidate-timeout 60s --doorbell ''
    before=$(epoch_of a)
    kill -KILL "${pid_of[a]}"
    ended a 137
    await said b became_leader
    (($(epoch_of b) > before)) || fail "the epoch did not grow"
    await leads b
}

# Its session is long gone when it wakes: it must not act in its name, and get another.
test_a_leader_that_was_frozen_gives_up_and_can_lead_again() {
    serving
    pair --lease 2500ms --heartbeat 400ms --call-timeout 400ms --election-interval 300ms
    kill -STOP "${pid_of[a]}"
    await said b became_leader
    kill -CONT "${pid_of[a]}"
    await said a lost_leadership
    await leads b
    await said a leader_changed '"new":"b"'
    kill -KILL "${pid_of[b]}"
    ended b 137
    await leads a
    (($(epoch_of a) > $(epoch_of b))) || fail "the epoch did not grow"
}

test_a_command_is_never_in_two_places_when_its_elector_is_killed() {
    serving
    run a -- "$BEAT" "$scratch/beats"
    await beats
    run b -- "$BEAT" "$scratch/beats"
    await has_candidates 2
    kill -KILL "${pid_of[a]}"
    ended a 137
    await has_epochs 2
    await leads b
    logged a "the elector died; the guard ended the work" || fail "the guard has not released"
    judged_well
    kill -TERM "${pid_of[b]}"
    ended b 143
    await all_gone
    await nobody_leads
}

test_killing_the_elector_is_told_as_a_loss() {
    serving
    killing_the_elector_is_told_as_a_loss
}

test_a_handover_is_no_loss_and_waits_for_nothing() {
    serving
    a_handover_is_no_loss_and_waits_for_nothing
}

# One keep-alive carries all that a program takes part in, and its mandates are told by that.
test_ping_and_check_know_that_mandates_last_as_long_as_a_session() {
    serving
    expect 0 "$GAVEL" store ping --store "$store" --count 3 --json
    same "$("$JSON_GET" operations.campaign.calls operations.campaign.failed <<<"$output")" 3$'\t'0
    expect 0 "$GAVEL" check --store "$store"
    has "$output" "keep-alive"
    has "$output" "granted by the store"
    has_not "$output" "renewal"
    expect 0 "$GAVEL" candidates --store "$store" --group gavel-store-ping --json # nothing is left behind
    same "$("$JSON_GET" candidates.# <<<"$output")" 0
}

test_policy_balanced_is_for_clusters() {
    serving
    elect a --policy balanced
    await said a became_leader
    same "$(tells n1 /groups/default policy)" balanced
    expect 4 timeout 10 "$GAVEL" elect --store "$scratch/file.db" --policy balanced
    has "$errors" "the policy balanced needs a cluster"
    expect 4 "$GAVEL" check --store "$scratch/file.db" --policy balanced
    has "$errors" "the policy balanced needs a cluster"
}

test_the_death_of_the_leading_node_changes_no_leader() {
    local former epoch
    serving
    pair
    run c --group other -- "$BEAT" "$scratch/beats"
    await beats
    epoch=$(epoch_of a)
    former=$leader
    kill -KILL "$(node_pid "$former")"
    # shellcheck disable=SC2046 # words
    await_leader $(others "$former")
    await leads a
    same "$(epoch_of a)" "$epoch"
    # Renewals go on: a whole lease later it is still the same.
    run_as watch "$GAVEL" watch --store "$store" --json --timeout 6s
    ended watch 0
    same "$(wc -l <"$scratch/watch.out")" 1
    has "$(cat "$scratch/watch.out")" "\"epoch\":$epoch"
    ! said a lost_leadership || fail "a has lost its mandate by the death of a node"
    ! said b became_leader || fail "b was elected by the death of a node"
    same "$(epochs)" 1
    # And it can still be handed over.
    expect 0 "$GAVEL" handover --store "$store" --to b
    await said b became_leader
}

test_a_cluster_that_cannot_be_reached_is_named_with_what_to_do() {
    expect 4 "$GAVEL" leader --store "gavel://$scratch/nobody.sock"
    has "$errors" "nobody.sock"
    has "$errors" "start gaveld"
    expect 2 "$GAVEL" leader --store gavel://192.0.2.1:7600
    expect 2 "$GAVEL" leader --store gavel:h1:7600
    has "$errors" "gavel://"
}

test_a_cluster_that_dies_is_named_by_its_addresses() {
    local name
    serving
    run a -- sleep 1000
    await leads a
    for name in n1 n2 n3; do kill_both "$name"; done
    await grep -qE "the store fails.*gavel://$scratch/n1.sock" "$scratch/a.err"
}

test_who_waits_for_a_leader_waits_for_the_cluster_too() {
    prepared
    run_as asker "$GAVEL" leader --store "$store" --wait 15s
    await grep -qF "does not answer, trying again" "$scratch/asker.err"
    begin n1 n2 n3
    await_leader
    elect a
    ended asker 0
    same "$(cat "$scratch/asker.out")" a
}

test_with_certificates_of_the_cluster_it_is_the_same_over_tls() {
    local name ca=$scratch/ca other=$scratch/other files
    cluster n1 n2 n3
    mkdir -p "$ca" "$other"
    expect 0 "$GAVEL" cert init test --out "$ca"
    expect 0 "$GAVEL" cert init test --out "$other"
    for name in n1 n2 n3 app; do expect 0 "$GAVEL" cert issue "$name" --ca "$ca" --out "$ca"; done
    expect 0 "$GAVEL" cert issue app --ca "$other" --out "$other"
    store=
    for name in n1 n2 n3; do
        free_port
        configure "$name" "clients: 127.0.0.1:$port" "secret: $ca/cluster.secret" \
            "tls: {ca: $ca/ca.crt, cert: $ca/$name.crt, key: $ca/$name.key, api: false}"
        store+="${store:+,}127.0.0.1:$port"
    done
    begin n1 n2 n3
    await_leader
    files="ca=$ca/ca.crt&cert=$ca/app.crt&key=$ca/app.key"
    # A stranger with the right words and the wrong authority is not let in.
    expect 4 "$GAVEL" leader --store "gavel://$store?ca=$other/ca.crt&cert=$other/app.crt&key=$other/app.key"
    expect 4 "$GAVEL" leader --store "gavel://$store"
    store="gavel://$store?$files"
    pair
    expect 0 "$GAVEL" handover --store "$store" --to b
    await leads b
}

run_tests "$@"
