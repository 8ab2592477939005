#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Data directories that vanish, are emptied, copied, put back, swapped or deleted under a node: whoever has
# forgotten something must never vote again as the voter that it was.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# note NODE NAME VALUE: written through that node.
note() { [[ $(code_of "$1" "/groups/job/notes/$2" -X PUT -d "$3") == 200 ]]; }
noted() { [[ $(ask "$1" "/groups/job/notes/$2?fresh=true") == "$3" ]]; }

# Every member of the configuration is bound to its directory: what peers know for good.
bound() {
    local name
    for name in "${nodes[@]}"; do
        [[ $(ask "$name" /members | grep -oE '"directory": ?"[0-9a-f]+"' | wc -l) == "${#nodes[@]}" ]] || return 1
    done
}

# known_of NODE COUNT: so many members are bound.
known_of() { [[ $(ask "$1" /members | grep -oE '"directory": ?"[0-9a-f]+"' | wc -l) == "$2" ]]; }

founded() {
    cluster "$@"
    begin "$@"
    await agree
    await bound
    await agree
}

follower() { others "$leader" | sed -n 1p; }

# empty NAME: its directory vanishes.
empty() { rm -rf "${scratch:?}/$1"; }

# overwrite NAME COPY: the bytes of a copy in the very file, which nothing on this machine can tell.
overwrite() { cat "$2/data.mdb" >"$scratch/$1/data.mdb"; }

no_leader_among() { ! find_leader "$@"; }

test_restarted_nodes_are_the_members_they_were() {
    local name
    founded n1 n2 n3
    note "$leader" where here
    for name in n1 n2 n3; do
        kill_both "$name"
        start "$name" --bootstrap
        await agree
    done
    for name in n1 n2 n3; do kill_both "$name"; done
    for name in n1 n2 n3; do start "$name"; done
    await agree
    noted n1 where here || fail "the note is gone"
    judge_logs
}

test_a_guard_never_founds_a_directory_anew() {
    local gone node
    founded n1 n2 n3
    gone=$(follower)
    node=$(node_pid "$gone")
    empty "$gone"
    kill -KILL "$node"
    ended "$gone" 79
    [[ ! -e $scratch/$gone/data.mdb ]] || fail "an empty directory was founded"
    grep -qE 'was emptied while gaveld ran|was deleted or replaced' "$scratch/$gone.err" || fail "nothing was said"
    logged "$gone" "gavel member remove" || fail "what to do was not said"
    # shellcheck disable=SC2046 # words
    await agree $(others "$gone")
}

# The report: n1 is down, n2 and n3 go on, n3 loses its directory, n2 ends, n1 comes back.
test_a_vanished_directory_costs_nothing_that_was_committed() {
    local i epoch again
    founded n1 n2 n3
    stop n1
    await agree n2 n3
    for ((i = 1; i <= 50; i++)); do note n2 "note$i" "$i" || fail "note $i was not taken"; done
    epoch=$(status_of n2 revision)
    kill_both n3
    empty n3
    stop n2
    start n1
    # Left in a template: each start founds an empty directory, if there is none.
    for again in first second; do
        start n3 --bootstrap
        ended n3 79
        await logged n1 "n3: it has another data directory than the member had"
        [[ $again == first ]] || break
    done
    logged n3 "the cluster refuses this data directory" || fail "n3 does not know"
    no_leader_among n1 || fail "n1 leads without what n2 has"
    start n2
    await agree n1 n2
    for i in 1 25 50; do noted n1 "note$i" "$i" || fail "note $i is gone"; done
    note n1 after it
    (($(status_of n1 revision) > epoch)) || fail "revisions, and with them epochs, went back"
}

test_two_emptied_nodes_make_no_cluster_of_their_own() {
    founded n1 n2 n3
    note "$leader" where here
    kill_both n2
    kill_both n3
    empty n2
    empty n3
    start n2 --bootstrap
    start n3 --bootstrap
    ended n2 79
    ended n3 79
    await no_leader_among n1 # alone it leads no longer than its lease
}

# refuses_founding NODE OTHER LIVES: in so many of its lives it said that the other is of another founding.
refuses_founding() { (($(grep -cF "msg=founding_refused node=$2" "$scratch/$1.err") >= $3)); }

# quiet_check NODE: it knows of nobody that belongs to another founding.
quiet_check() { [[ $(ask "$1" /members) != *"another founding"* ]]; }

# n1 and n3 are emptied and bootstrapped again, as --bootstrap in a unit file does, while n2 is down: two clusters
# of one name. Neither follows the other, nobody ends, and nothing of either is lost.
test_a_cluster_that_is_founded_twice_is_two_clusters() {
    local name life
    founded n1 n2 n3
    note "$leader" where here
    await agree
    for name in n1 n2 n3; do kill_both "$name"; done
    empty n1
    empty n3
    for name in n1 n3; do start "$name" --bootstrap; done
    await agree n1 n3
    note n1 where there
    start n2
    for life in 1 2; do
        await refuses_founding n2 n1 "$life"
        await refuses_founding n2 n3 "$life"
        await refuses_founding n1 n2 "$life"
        await refuses_founding n3 n2 "$life"
        await agree n1 n3
        noted n1 where there || fail "n1 and n3 have lost what they committed"
        no_leader_among n2 || fail "n2 leads alone"
        [[ $(code_of n2 /leader) == 503 ]] || fail "n2 follows a node of another cluster"
        ((life == 1)) || break
        for name in n1 n2 n3; do kill_both "$name"; done
        for name in n1 n2 n3; do start "$name" --bootstrap; done
    done
    expect 1 "$GAVEL" check --cluster "127.0.0.1:${api_of[n1]}"
    has "$output" "n2: it belongs to another founding"
    # The operator decides for n2.
    for name in n1 n2 n3; do kill_both "$name"; done
    expect 0 timeout "$limit_s" "$GAVELD" --config "$scratch/n2.yaml" --force-new-cluster --yes
    start n2
    await agree n2
    noted n2 where here || fail "what the first founding committed is lost"
    start n1
    ended n1 77
}

# The operator decides for n1 and n3: n2 is replaced. From then on it is one of them, and its clients are served.
test_a_node_of_another_founding_is_replaced() {
    local name
    founded n1 n2 n3
    for name in n1 n2 n3; do kill_both "$name"; done
    empty n1
    empty n3
    for name in n1 n3; do start "$name" --bootstrap; done
    await agree n1 n3
    start n2
    await refuses_founding n1 n2 1
    await refuses_founding n3 n2 1
    kill_both n2
    empty n2
    expect 0 "$GAVEL" member remove n2 --cluster "127.0.0.1:${api_of[n1]}"
    start n2 --join
    expect 0 "$GAVEL" member add n2 "127.0.0.1:${port_of[n2]}" --cluster "127.0.0.1:${api_of[n1]}"
    await agree
    await bound
    await note n2 where there
    noted n1 where there || fail "what was written through n2 is not there"
    await quiet_check n1
    await quiet_check n3
}

# A founder that was never started holds nobody up: the others are bound as soon as the leader has met them.
test_a_directory_is_bound_though_a_founder_was_never_started() {
    local lost kept
    cluster n1 n2 n3
    for kept in n1 n2; do start "$kept" --bootstrap; done
    await agree n1 n2
    lost=n2
    kept=n1
    note "$kept" where here
    await known_of "$kept" 2
    kill_both "$lost"
    empty "$lost"
    start "$lost" --bootstrap
    ended "$lost" 79
    logged "$kept" "$lost: it has another data directory than the member had" || fail "$kept did not refuse it"
    # The one that comes at last finds the member that is left, and not the lost one.
    start n3 --bootstrap
    await agree n1 n3
    noted n3 where here || fail "the note is gone"
    start "$lost" --bootstrap
    ended "$lost" 79
}

test_a_hot_copy_is_refused_at_every_start() {
    local old
    founded n1 n2 n3
    old=$(follower)
    note "$leader" before x
    await agree
    cp -r "$scratch/$old" "$scratch/hot"
    note "$leader" after x
    await agree
    kill_both "$old"
    empty "$old"
    mv "$scratch/hot" "$scratch/$old"
    refused 78 "$old"
    has "$errors" "is a copy"
    refused 78 "$old"
    has "$errors" "gavel member remove"
}

test_a_hot_copy_in_place_is_refused_by_the_others_for_good() {
    local old i
    founded n1 n2 n3
    old=$(follower)
    cp -r "$scratch/$old" "$scratch/hot"
    for i in 1 2 3 4 5; do note "$leader" "after$i" x; done
    await agree
    kill_both "$old"
    overwrite "$old" "$scratch/hot"
    start "$old"
    ended "$old" 79
    # shellcheck disable=SC2046 # words
    await agree $(others "$old")
    grep -qF directory_refused "$scratch/$leader.err" || fail "the leader said nothing"
    # Also after everybody has started again.
    # shellcheck disable=SC2046 # words
    for i in $(others "$old"); do
        kill_both "$i"
        start "$i"
    done
    start "$old"
    ended "$old" 79
    # shellcheck disable=SC2046 # words
    await agree $(others "$old")
}

test_a_cold_copy_is_refused_at_every_start() {
    local old
    founded n1 n2 n3
    old=$(follower)
    kill_both "$old"
    cp -r "$scratch/$old" "$scratch/cold"
    start "$old"
    await agree
    note "$leader" after x
    await agree
    kill_both "$old"
    overwrite "$old" "$scratch/cold"
    start "$old"
    ended "$old" 79
    start "$old"
    ended "$old" 79
    empty "$old"
    mv "$scratch/cold" "$scratch/$old"
    refused 78 "$old"
    has "$errors" "is a copy"
    # shellcheck disable=SC2046 # words
    await agree $(others "$old")
}

# restart_others NAME: everybody but NAME has started again, and remembers only what is on disk.
restart_others() {
    local name
    # shellcheck disable=SC2046 # words
    for name in $(others "$1"); do kill_both "$name"; done
    # shellcheck disable=SC2046 # words
    for name in $(others "$1"); do start "$name"; done
    # shellcheck disable=SC2046 # words
    await agree $(others "$1")
}

test_a_cold_copy_in_place_is_refused_though_all_others_have_restarted() {
    local old
    founded n1 n2 n3
    old=$(follower)
    kill_both "$old"
    cp -r "$scratch/$old" "$scratch/cold"
    start "$old"
    await agree
    note "$leader" after x
    await agree
    kill_both "$old"
    restart_others "$old"
    overwrite "$old" "$scratch/cold"
    start "$old"
    ended "$old" 79
    restart_others "$old"
    start "$old"
    ended "$old" 79
    noted "$leader" after x || fail "the note is gone"
}

test_a_copy_in_place_of_an_incarnation_long_ago_is_refused_though_all_others_have_restarted() {
    local old i
    founded n1 n2 n3
    old=$(follower)
    kill_both "$old"
    cp -r "$scratch/$old" "$scratch/cold"
    for i in 1 2 3; do
        start "$old"
        await agree
        note "$leader" "after$i" x
        await agree
        kill_both "$old"
        # shellcheck disable=SC2046 # words
        await agree $(others "$old")
    done
    restart_others "$old"
    overwrite "$old" "$scratch/cold"
    for i in 1 2 3 4; do
        start "$old"
        ended "$old" 79
    done
}

test_a_hot_copy_in_place_is_refused_though_all_others_have_restarted() {
    local old i
    founded n1 n2 n3
    old=$(follower)
    cp -r "$scratch/$old" "$scratch/hot"
    for i in 1 2 3 4 5; do note "$leader" "after$i" x; done
    await agree
    kill_both "$old"
    restart_others "$old"
    overwrite "$old" "$scratch/hot"
    start "$old"
    ended "$old" 79
}

test_swapped_directories_are_refused() {
    founded n1 n2 n3
    kill_both n2
    kill_both n3
    mv "$scratch/n2" "$scratch/other"
    mv "$scratch/n3" "$scratch/n2"
    mv "$scratch/other" "$scratch/n3"
    refused 78 n2
    has "$errors" "belongs to node n3"
    refused 78 n3
    has "$errors" "belongs to node n2"
    mv "$scratch/n2" "$scratch/other"
    mv "$scratch/n3" "$scratch/n2"
    mv "$scratch/other" "$scratch/n3"
    start n2
    start n3
    await agree
}

test_a_clone_does_not_run_beside_its_original() {
    local twin
    founded n1 n2 n3
    twin=$(follower)
    cp -r "$scratch/$twin" "$scratch/clone"
    sed "s|^data: .*|data: $scratch/clone|" "$scratch/$twin.yaml" >"$scratch/clone.yaml"
    refused 78 clone
    has "$errors" "is a copy"
    await agree
}

# Copied to another disk while it was down: then it may go on, if somebody says so.
test_a_moved_directory_goes_on_if_an_operator_says_so() {
    local moved
    founded n1 n2 n3
    moved=$(follower)
    kill_both "$moved"
    cp -r "$scratch/$moved" "$scratch/moved"
    empty "$moved"
    mv "$scratch/moved" "$scratch/$moved"
    refused 78 "$moved"
    has "$errors" --accept-copy
    start "$moved" --accept-copy
    await agree
    kill_both "$moved"
    start "$moved"
    await agree
}

test_a_leader_whose_directory_is_deleted_hands_over_and_ends() {
    local former
    founded n1 n2 n3
    former=$leader
    empty "$former"
    ended "$former" 79
    logged "$former" directory_lost || fail "nothing was told"
    [[ ! -e $scratch/$former/data.mdb ]] || fail "a directory was founded anew"
    # shellcheck disable=SC2046 # words
    await agree $(others "$former")
    [[ $leader != "$former" ]] || fail "$former still leads"
    refused 78 "$former"
}

test_a_lost_member_is_replaced_under_its_name() {
    local lost
    founded n1 n2 n3
    lost=$(follower)
    note "$leader" where here
    kill_both "$lost"
    empty "$lost"
    # shellcheck disable=SC2046 # words
    await agree $(others "$lost")
    expect 0 "$GAVEL" member remove "$lost" --cluster "127.0.0.1:${api_of[$leader]}"
    start "$lost" --join
    expect 0 "$GAVEL" member add "$lost" "127.0.0.1:${port_of[$lost]}" --cluster "127.0.0.1:${api_of[$leader]}"
    await agree
    await bound
    kill_both "$lost"
    start "$lost"
    await agree
    noted "$lost" where here || fail "the note is gone"
}

run_tests "$@"
