#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks that are full, read-only, damaged or lost.
# shellcheck source=quorum_lib.sh
source "$SOURCE_ROOT/tests/e2e/quorum_lib.sh"

test_a_read_only_folder_is_refused() {
    quorum n1
    start n1 --bootstrap
    await is n1 has_lease true
    stop n1
    local enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    # shellcheck disable=SC2016 # of the inner shell
    "${enter[@]}" sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"' sh "$folder/n1" 2>/dev/null ||
        skip "this machine does not let us mount"
    # shellcheck disable=SC2016 # of the inner shell
    expect 78 timeout "$limit_s" "${enter[@]}" sh -c 'mount --bind "$1/n1" "$1/n1" && mount -o remount,bind,ro "$1/n1" &&
        exec "$0" --config "$1/n1.yaml"' "$GAVELD" "$folder"
    has "$errors" "$folder/n1"
    start n1
    await is n1 has_lease true
}

test_a_damaged_folder_is_refused_and_the_way_out_said() {
    local size
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    stop n1
    # shellcheck disable=SC2046 # words
    await agree n2 n3
    size=$(stat -c %s "$folder/n1/data.mdb")
    # Every page but the two that LMDB chooses from: whatever it reads is wrong.
    dd if=/dev/urandom of="$folder/n1/data.mdb" bs=4096 seek=2 count=$((size / 4096 - 2)) conv=notrunc status=none
    refused 78 n1
    has "$errors" "$folder/n1"
    has "$errors" damaged
    # Nothing was repaired in silence.
    refused 78 n1
    await agree n2 n3
    judge_logs
}

test_one_flipped_bit_is_found() {
    local at
    quorum n1
    start n1 --bootstrap
    await is n1 has_lease true
    stop n1
    at=$(grep -obUaP 'test' "$folder/n1/data.mdb" | head -n 1 | cut -d: -f1)
    [[ $at ]] || fail "the name of the cluster is nowhere in the data"
    printf 'T' | dd of="$folder/n1/data.mdb" bs=1 seek="$at" conv=notrunc status=none
    refused 78 n1
    has "$errors" "$folder/n1"
}

test_a_lost_folder_does_not_vote_as_if_it_were_new() {
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    kill_both n1
    rm -r "$folder/n1"
    refused 78 n1
    has "$errors" --join
    # shellcheck disable=SC2046 # words
    await agree n2 n3
    judge_logs
}

# fill NAME: until the disk below its folder is full; and room NAME again.
# The file system is only seen in the namespace of the node, so its guard's shell does it.
start_on_small_disk() {
    local name=$1 enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    mkdir -p "$folder/$name"
    "${enter[@]}" mount -t tmpfs -o size=1m none "$folder/$name" 2>/dev/null || skip "this machine does not let us mount"
    mkfifo "$folder/$name.go"
    # shellcheck disable=SC2016 # of the inner shell
    "${enter[@]}" bash -c '
        mount -t tmpfs -o size="$3" none "$1/$2"
        setpriv --pdeathsig KILL "$GAVELD" --config "$1/$2.yaml" --bootstrap &
        while read -r word <"$1/$2.go"; do
            case $word in
            fill) dd if=/dev/zero of="$1/$2/filler" bs=4096 status=none 2>/dev/null; echo full >"$1/$2.full" ;;
            room) rm "$1/$2/filler"; echo room >"$1/$2.full" ;;
            esac
        done' sh "$folder" "$name" "${2:-8m}" >>"$folder/$name.out" 2>>"$folder/$name.err" &
    pid_of[$name]=$!
}
export GAVELD

# Somebody writes, so that the disk is asked: terms and members are what there is to write.
written() { [[ $(post "$1" /stepdown '{}') == *'"success":true'* ]]; }

test_a_full_disk_costs_the_node_its_leadership_and_nothing_else() {
    quorum n1 n2 n3
    configure n1 "data_max: 64MiB"
    start n2 --bootstrap
    start n3 --bootstrap
    start_on_small_disk n1
    await agree
    echo fill >"$folder/n1.go"
    await grep -q full "$folder/n1.full"
    # New terms have to be written; n1 cannot, the others can.
    if [[ $leader != n1 ]]; then
        post "$leader" /transfer '{"target_leader_id":"n1","timeout_ms":3000}' >"$folder/transfer.out"
    fi
    await is n1 disk_full true
    await_leader n2 n3
    is n1 has_lease false || fail "a node without room leads"
    same "$(code_of n1 /status)" 200
    echo room >"$folder/n1.go"
    await grep -q room "$folder/n1.full"
    await is n1 disk_full false
    await agree
    judge_logs
}

# The limit of the data is reached by entries of members that come and go.
test_a_full_map_costs_the_node_its_leadership_and_nothing_else() {
    local i
    quorum n1 n2 n3
    configure n1 "data_max: 256KiB" "snapshot_entries: 1000000"
    begin n1 n2 n3
    await agree
    for ((i = 0; i < 4000; i++)); do
        find_leader n1 n2 n3 || continue
        post "$leader" /members '{"action":"add","id":"x9","address":"127.0.0.1:9","learner":true}' >/dev/null || true
        post "$leader" /members '{"action":"remove","id":"x9"}' >/dev/null || true
        if is n1 disk_full true; then break; fi
    done
    is n1 disk_full true || fail "the map is never full"
    await_leader n2 n3
    is n1 has_lease false || fail "a node without room leads"
    same "$(code_of n1 /status)" 200
    judge_logs
}

run_tests "$@"
