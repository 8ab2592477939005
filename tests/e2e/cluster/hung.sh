#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks that hang: no error, no answer. That must show everywhere, the leadership must go where a disk
# answers, and everything must recover by itself.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${HANG_DISK:?the library that makes disks hang}"

limit_s=30

# With disks that can be made to hang, one by one. While most of them do nobody can be elected, so a busy machine must
# not cost the leader its lease: times are longer than in other tests.
hangable() {
    local name
    cluster "$@"
    for name in "$@"; do
        configure "$name" "socket: $scratch/$name.sock"
        sed -i 's/^timing: .*/timing: {election_timeout_min_ms: 1500, election_timeout_max_ms: 2500, heartbeat_interval_ms: 250, lease_ms: 1500}/' \
            "$scratch/$name.yaml"
        # The sanitizer's library wants to be the first; ours allocates nothing.
        wrapper=(env "LD_PRELOAD=$HANG_DISK" "HANG_DISK_FILE=$scratch/$name.hangs"
            "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0")
        start "$name" --bootstrap
    done
    wrapper=()
    await agree
}

hang() {
    local name
    for name in "$@"; do : >"$scratch/$name.hangs"; done
}

let_answer() {
    local name
    for name in "$@"; do rm "$scratch/$name.hangs"; done
}

# lead NAME: it leads.
lead() { await leads_now "$1"; }
leads_now() {
    find_leader "${nodes[@]}" || return 1
    [[ $leader == "$1" ]] && return
    post "$leader" /transfer "{\"target_leader_id\":\"$1\",\"timeout_ms\":5000}" >"$scratch/transfer.out" 2>&1
    return 1
}

# write NAME: something is to be written, asked of that node; returns at once.
write() {
    number=$((${number:-0} + 1))
    ask "$1" "/groups/work/notes/n$number" -m 1 -X PUT -d '{"value":"x"}' >"$scratch/write.out" 2>&1 || true
}

# Whether it was committed in time.
writes() {
    number=$((${number:-0} + 1))
    [[ $(code_of "$1" "/groups/work/notes/n$number" -m 5 -X PUT -d '{"value":"x"}') == 20? ]]
}

metric() { ask "$1" /metrics | awk -v "name=gavel_$2" '$1 == name { print $2 }'; }
metric_is() { [[ $(metric "$1" "$2") == "$3" ]]; }
above_a_second() { awk -v "age=$(metric "$1" "$2")" 'BEGIN { exit !(age >= 1) }'; }

is_ready() { [[ $(code_of "$1" /ready) == 200 ]]; }
is_unready() { [[ $(code_of "$1" /ready) == 503 ]]; }

check() { "$GAVEL" check --cluster "127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"; }
check_says() { ! check >"$scratch/check.out" 2>&1 && grep -qF -- "$1" <(tr '\n' ' ' <"$scratch/check.out"); }
all_is_well() { [[ $(check 2>&1) == *"all is well"* ]]; }

test_a_leader_whose_disk_hangs_hands_over() {
    hangable n1 n2 n3
    lead n1
    await all_is_well
    hang n1
    await writes n1 # the others commit without its disk
    await_leader n2 n3
    await logged n1 'reason="the disk does not answer"'
    is n1 has_lease false || fail "a node whose disk hangs leads"
    await writes "$leader"
    # It shows on that node …
    await is_unready n1
    has "$(ask n1 /ready)" "disk"
    await is n1 disk_hangs true
    await metric_is n1 disk_hangs 1
    await above_a_second n1 disk_oldest_write_age_seconds
    await logged n1 disk_hangs
    has "$(ask n1 "/events?after=0" -m 1 2>/dev/null || true)" '"disk_hangs"'
    # … and to whoever looks at the cluster, which goes on.
    await check_says "the disk of n1 "
    for name in n2 n3; do
        await is_ready "$name"
        await metric_is "$name" disk_hangs 0
        await metric_is "$name" commits_hang 0
    done
    is n1 incarnation 1 || fail "it did not stay up"
    # Its disk answers again, and nobody has to do anything.
    let_answer n1
    await is n1 disk_hangs false
    await is_ready n1
    await logged n1 disk_answers
    await agree
    await all_is_well
    is n1 incarnation 1 || fail "it did not stay up"
    judge_logs
}

test_two_followers_whose_disks_hang_stop_all_writes_and_that_shows_everywhere() {
    hangable n1 n2 n3
    lead n1
    await writes n1
    hang n2 n3
    write n1
    for name in n1 n2 n3; do
        await is_unready "$name"
        await metric_is "$name" commits_hang 1
        await is "$name" commits_hang true
    done
    has "$(ask n1 /ready)" "committed"
    await above_a_second n1 oldest_uncommitted_age_seconds
    await logged n1 commits_hang
    await logged n2 disk_hangs
    await check_says "nothing has been committed for"
    await check_says "the disk of n2 "
    await check_says "the disk of n3 "
    # Nobody else could be elected, so its work goes on.
    is n1 has_lease true || fail "the leader gave its lease up for nothing"
    let_answer n2
    await writes n1
    await is_ready n1
    await is_unready n3 # its own disk still hangs
    let_answer n3
    for name in n1 n2 n3; do await is_ready "$name"; done
    await logged n1 commits_go_on
    await agree
    await all_is_well
    judge_logs
}

test_one_follower_whose_disk_hangs_costs_nothing() {
    hangable n1 n2 n3
    lead n1
    hang n3
    await writes n1
    await is n3 disk_hangs true
    await writes n1
    await writes n2
    await is_ready n1
    await is_ready n2
    await is_unready n3
    await check_says "the disk of n3 "
    # Another hangs, and a majority is gone: one is back, and it goes on.
    hang n1
    write n1
    await is_unready n2
    let_answer n3
    await_leader n2 n3
    await writes "$leader"
    let_answer n1
    await agree
    judge_logs
}

# Its table stands still: whoever waits there for changes would wait in vain.
test_a_node_whose_disk_hangs_sends_its_clients_elsewhere() {
    hangable n1 n2 n3
    lead n1
    store=gavel://$scratch/n1.sock elect a
    await said a became_leader
    await leads_at n3
    hang n3
    await writes n1
    await is n3 disk_hangs true
    await sends_away n3
    leads_at n2 || fail "a node whose disk answers does not"
    let_answer n3
    await leads_at n3
    judge_logs
}
leads_at() { [[ $("$GAVEL" leader --store "gavel://$scratch/$1.sock" 2>/dev/null) == a ]]; }
sends_away() {
    ! "$GAVEL" leader --store "gavel://$scratch/$1.sock" >"$scratch/away.out" 2>&1 && grep -qF "the disk of this node does not answer" "$scratch/away.out"
}

# stream NAME NODE PATH [CURL OPTION…]: what is heard is in NAME.out.
stream() {
    local name=$1 node=$2 path=$3
    shift 3
    run_as "$name" curl -sSN "$@" "http://127.0.0.1:${api_of[$node]}$path"
}
heard() { grep -qxF "event: $2" "$scratch/$1.out"; }

test_a_node_whose_disk_hangs_sends_candidates_over_http_elsewhere() {
    local session
    hangable n1 n2 n3
    lead n1
    stream w n3 /watch
    await heard w watching
    stream a n3 /groups/g/campaign -d '{"candidate":"a","ttl_ms":600000}'
    await heard a elected
    await heard w elected
    session=$(sed -n 's/.*"session":"\([0-9a-f]*\)".*/\1/p' "$scratch/a.out")
    hang n3
    await writes n1
    await heard a stale
    ended a 0
    await heard w stale
    same "$(code_of n3 /groups/g/campaign -d '{"candidate":"b"}')" 503
    same "$(code_of n3 /groups/g/keepalive -d "{\"session\":\"$session\"}")" 200
    stream a n2 /groups/g/events -d "{\"session\":\"$session\"}"
    await heard a elected
    let_answer n3
    await heard w fresh
    await agree
    same "$(ask n3 /groups/g/leader/name | "$JSON_GET" name)" a
    judge_logs
}

test_a_node_whose_disk_hangs_can_be_stopped() {
    hangable n1 n2 n3
    lead n1
    hang n3
    await writes n1
    await is n3 disk_hangs true
    stop n3
    logged n3 "the disk does not answer" || fail "it does not say what it left behind"
    let_answer n3
    start n3
    await agree
    judge_logs
}

run_tests "$@"
