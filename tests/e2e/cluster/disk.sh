#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks that are full, read-only, damaged or lost.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

test_a_read_only_directory_is_refused() {
    cluster n1
    start n1 --bootstrap
    await is n1 has_lease true
    stop n1
    local enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    # shellcheck disable=SC2016 # of the inner shell
    "${enter[@]}" sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"' sh "$scratch/n1" 2>/dev/null ||
        skip "this machine does not let us mount"
    # shellcheck disable=SC2016 # of the inner shell
    expect 78 timeout "$limit_s" "${enter[@]}" sh -c 'mount --bind "$1/n1" "$1/n1" && mount -o remount,bind,ro "$1/n1" &&
        exec "$0" --config "$1/n1.yaml"' "$GAVELD" "$scratch"
    has "$errors" "$scratch/n1"
    start n1
    await is n1 has_lease true
}

test_a_damaged_directory_is_refused_and_the_way_out_said() {
    local size
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    stop n1
    # shellcheck disable=SC2046 # words
    await agree n2 n3
    size=$(stat -c %s "$scratch/n1/data.mdb")
    # Every page but the two that LMDB chooses from: whatever it reads is wrong.
    dd if=/dev/urandom of="$scratch/n1/data.mdb" bs=4096 seek=2 count=$((size / 4096 - 2)) conv=notrunc status=none
    refused 78 n1
    has "$errors" "$scratch/n1"
    has "$errors" damaged
    # Nothing was repaired in silence.
    refused 78 n1
    await agree n2 n3
    judge_logs
}

test_one_flipped_bit_is_found() {
    local at
    cluster n1
    start n1 --bootstrap
    await is n1 has_lease true
    stop n1
    at=$(grep -obUaP 'test' "$scratch/n1/data.mdb" | cut -d: -f1)
    [[ $at ]] || fail "the name of the cluster is nowhere in the data"
    for at in $at; do # which of them is the page in use, and which were left behind, the file does not say
        printf 'T' | dd of="$scratch/n1/data.mdb" bs=1 seek="$at" conv=notrunc status=none
    done
    refused 78 n1
    has "$errors" "$scratch/n1"
}

test_a_lost_directory_does_not_vote_as_if_it_were_new() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    kill_both n1
    rm -r "$scratch/n1"
    refused 78 n1
    has "$errors" --join
    # shellcheck disable=SC2046 # words
    await agree n2 n3
    judge_logs
}

# Left in a template, --bootstrap says of a lost disk that it is new. The others know better.
test_a_lost_directory_is_noticed_by_the_others_also_with_bootstrap() {
    local gone
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    gone=$(others "$leader" | sed -n 1p)
    kill_both "$gone"
    rm -r "${scratch:?}/$gone"
    start "$gone" --bootstrap
    await logged "$leader" "another data directory"
    ended "$gone" 79
    logged "$gone" "the cluster refuses this data directory" || fail "it does not know why"
    # shellcheck disable=SC2046 # words
    await agree $(others "$gone")
    judge_logs
}

run_tests "$@"
