#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node without room on its disk, or within its limit: it cannot lead, and
# loses nothing.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# start_on_small_disk NAME: on a file system of its own that is nearly full. Only its guard's shell sees it, so
# that shell fills it, and makes room again, when it reads that from NAME.go.
start_on_small_disk() {
    local name=$1 enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    mkdir -p "$scratch/$name"
    "${enter[@]}" mount -t tmpfs -o size=2m none "$scratch/$name" 2>/dev/null || skip "this machine does not let us mount"
    mkfifo "$scratch/$name.go"
    # shellcheck disable=SC2016 # of the inner shell
    "${enter[@]}" bash -c '
        mount -t tmpfs -o size=2m none "$1/$2"
        head -c 1500000 /dev/zero >"$1/$2/filler"
        mkdir "$1/$2/data"
        setpriv --pdeathsig KILL "$GAVELD" --config "$1/$2.yaml" --bootstrap &
        exec 3<>"$1/$2.go" # for writing too: between two words there is no end of file
        while read -r word <&3; do
            case $word in
            fill) dd if=/dev/zero of="$1/$2/more" bs=4096 status=none 2>/dev/null ;;
            room) rm "$1/$2/filler" "$1/$2/more" ;;
            esac
            echo "$word" >"$1/$2.done"
        done' sh "$scratch" "$name" >>"$scratch/$name.out" 2>>"$scratch/$name.err" &
    pid_of[$name]=$!
}
export GAVELD

# on_disk NAME WORD: has it done.
on_disk() {
    echo "$2" >"$scratch/$1.go"
    await grep -q "$2" "$scratch/$1.done"
}

# write_until COMMAND…: the record of a member, written again and again, is what there is to write.
write_until() {
    local long i urls
    long=$(printf 'x%.0s' {1..230})
    # An answer that it is a member already is as good.
    has_member() {
        post "$leader" /members "{\"action\":\"add\",\"id\":\"x9\",\"address\":\"127.0.0.1:9\",\"api_address\":\"$long:1\",\"learner\":true}" >"$scratch/add.out" || true
        [[ $(ask "$leader" /members) == *'"id":"x9"'* ]]
    }
    await has_member
    for ((i = 0; i < 200; i++)); do
        find_leader "${nodes[@]}" || continue
        urls=()
        for _ in {1..20}; do urls+=("http://127.0.0.1:${api_of[$leader]}/members"); done
        curl -sS -m 20 -d '{"action":"demote","id":"x9"}' "${urls[@]}" >"$scratch/demote.out" 2>&1 || true
        if "$@"; then return 0; fi
    done
    fail "written $((i * 20)) times, and not: $*"
}

# Whoever cannot write does not lead, and answers; the others go on; with room again it is as before.
test_a_full_disk_costs_the_node_its_leadership_and_nothing_else() {
    cluster n1 n2 n3
    sed -i "s|^data: .*|data: $scratch/n1/data|" "$scratch/n1.yaml"
    start n2 --bootstrap
    start n3 --bootstrap
    start_on_small_disk n1
    await agree
    if [[ $leader != n1 ]]; then
        has "$(post "$leader" /transfer '{"target_leader_id":"n1","timeout_ms":5000}')" '"success":true'
        await_leader n1
    fi
    on_disk n1 fill
    write_until is n1 disk_full true
    await_leader n2 n3
    is n1 has_lease false || fail "a node without room leads"
    same "$(code_of n1 /status)" 200
    is n1 incarnation 1 || fail "it did not stay up"
    on_disk n1 room
    await is n1 disk_full false
    await agree
    judge_logs
}

test_a_full_map_costs_the_node_its_leadership_and_nothing_else() {
    cluster n1 n2 n3
    configure n1 "data_max: 1MiB" "snapshot_entries: 1000000"
    begin n1 n2 n3
    await agree
    write_until is n1 disk_full true
    await_leader n2 n3
    is n1 has_lease false || fail "a node without room leads"
    same "$(code_of n1 /status)" 200
    is n1 incarnation 1 || fail "it did not stay up"
    # The way out that the message names.
    configure n1 "data_max: 64MiB"
    stop n1
    start n1
    await agree
    judge_logs
}

run_tests "$@"
