#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gaveld as an operator runs it: started, killed, stopped in order, restarted
# one after the other, left without a majority.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

test_three_nodes_elect_one_leader() {
    local name leading=0
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    for name in "${nodes[@]}"; do
        if is "$name" has_lease true; then leading=$((leading + 1)); fi
        same "$(ask "$name" /leader | "$JSON_GET" leader_id leader_address)" "$leader"$'\t'"127.0.0.1:${api_of[$leader]}"
        same "$(code_of "$name" /ready)" 200
        same "$(code_of "$name" /health)" 200
    done
    same "$leading" 1
    judge_logs
}

# Its guard and its node, at a terminal.
test_a_terminal_gets_lines_for_people() {
    cluster n1
    run_as n1 env --default-signal=CHLD TERM=xterm script -qfec "exec '$GAVELD' --config '$scratch/n1.yaml' --bootstrap" "$scratch/typescript"
    await_leader
    await grep -q $'\033\\[1mleads' "$scratch/typescript"
    kill -TERM "$(pgrep -P "${pid_of[n1]}")"
    await process_is_gone "${pid_of[n1]}"
    sed -i 's/\x1b\[[0-9;]*m//g; s/\r$//' "$scratch/typescript"
    grep -qE '^[0-9:.]{12} node started  pid=' "$scratch/typescript" || fail "the guard says: $(cat "$scratch/typescript")"
    grep -qE '^[0-9:.]{12} leads  term=1 lease_epoch=1$' "$scratch/typescript" || fail "the node says: $(cat "$scratch/typescript")"
    ! grep -qE 'level=|at_ns=' "$scratch/typescript" || fail "there is logfmt: $(cat "$scratch/typescript")"
}

test_a_killed_leader_is_replaced_and_comes_back() {
    local former before
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    former=$leader
    before=$(status_of "$former" incarnation)
    kill -KILL "$(node_pid "$former")"
    # shellcheck disable=SC2046 # words
    await_leader $(others "$former")
    await agree
    (($(status_of "$former" incarnation) > before)) || fail "its guard has not started it as a new incarnation"
    logged "$former" 'msg="node died"' || fail "its guard did not say that it died"
    judge_logs
}

test_sigterm_on_the_leader_hands_over_first() {
    local former term
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    former=$leader
    term=$(status_of "$former" term)
    stop "$former"
    logged "$former" 'msg="node stopped"' || fail "its guard did not say that it was stopped"
    if logged "$former" 'msg="node died"'; then fail "its guard says that it died"; fi
    # shellcheck disable=SC2046 # words
    find_leader $(others "$former") || fail "nobody led when the former leader had ended"
    same "$(status_of "$leader" term)" $((term + 1))
    judge_logs
}

test_a_rolling_restart_loses_nothing() {
    local name revision commit
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    for name in "${nodes[@]}"; do
        revision=$(status_of "$leader" revision)
        commit=$(status_of "$leader" commit)
        stop "$name"
        start "$name"
        await agree
        (($(status_of "$name" commit) >= commit)) || fail "$name has forgotten what was committed"
        (($(status_of "$name" revision) >= revision)) || fail "$name has forgotten the table"
        same "$(ask "$name" /members | "$JSON_GET" members.#)" 3
    done
    judge_logs
}

test_all_of_them_killed_at_once_come_back() {
    local name commit term
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    commit=$(status_of "$leader" commit)
    term=$(status_of "$leader" term)
    for name in "${nodes[@]}"; do kill_both "$name"; done
    for name in "${nodes[@]}"; do start "$name"; done
    await agree
    (($(status_of "$leader" commit) > commit)) || fail "something that was committed is lost"
    (($(status_of "$leader" term) > term)) || fail "a term came twice"
    judge_logs
}

# Reads are answered, and say that they may be old; what wants a leader is refused.
test_without_a_majority_it_can_be_read() {
    local left answer
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    left=$leader
    # shellcheck disable=SC2046 # words
    for name in $(others "$left"); do kill_both "$name"; done
    await is "$left" has_lease false
    await is "$left" stale true
    same "$(code_of "$left" /status)" 200
    same "$(code_of "$left" /members)" 200
    same "$(ask "$left" /members | "$JSON_GET" members.# stale)" $'3\ttrue'
    same "$(code_of "$left" /elections)" 200
    same "$(code_of "$left" /metrics)" 200
    same "$(code_of "$left" /health)" 200
    same "$(code_of "$left" /ready)" 503
    same "$(ask "$left" /leader -w '\n%{http_code}' | tail -n 1)" 503
    same "$(ask "$left" /leader | "$JSON_GET" error.code error.name)" $'4002\tERR_NO_LEADER'
    for call in '/transfer {}' '/stepdown {}' '/members {"action":"remove","id":"n1"}'; do
        answer=$(post "$left" "${call%% *}" "${call#* }")
        same "${answer##*$'\n'}" 503
        has "$answer" ERR_NO_LEADER
    done
    # shellcheck disable=SC2046 # words
    for name in $(others "$left"); do start "$name"; done
    await agree
    judge_logs
}

test_without_auto_failover_it_waits_for_the_operator() {
    local name former
    cluster n1 n2 n3
    for name in "${nodes[@]}"; do configure "$name" "auto_failover: false"; done
    begin n1 n2 n3
    if ! find_leader n1 n2 n3; then
        # Also the first leader is for the operator to say.
        name=n2
        await forced n2
    fi
    await agree
    former=$leader
    kill_both "$former"
    # shellcheck disable=SC2046 # words
    set -- $(others "$former")
    await is "$1" waits_for_operator true
    await is "$2" waits_for_operator true
    is "$1" has_lease false || fail "$1 leads, and nobody said so"
    is "$2" has_lease false || fail "$2 leads, and nobody said so"
    await forced "$1"
    await is "$1" has_lease true
    judge_logs
}

# forced NAME: the operator makes it the leader.
forced() { [[ $(post "$1" /transfer "{\"target_leader_id\":\"$1\",\"force\":true,\"timeout_ms\":3000}") == *'"success":true'* ]]; }

# The clock's value never matters: one of them believes that the machine has run for a day longer.
test_a_clock_that_is_a_day_ahead_does_not_matter() {
    cluster n1 n2 n3
    unshare --time --boottime 86400 true 2>/dev/null || skip "no time namespace can be made here"
    echo "msg=clock node=n2 offset_ns=86400000000000" >>"$scratch/deeds"
    start n1 --bootstrap
    start n3 --bootstrap
    wrapper=(unshare --time --boottime 86400)
    start n2 --bootstrap
    wrapper=()
    await agree
    if [[ $leader != n2 ]]; then
        has "$(post "$leader" /transfer '{"target_leader_id":"n2","timeout_ms":5000}')" '"success":true'
        await_leader n2
    fi
    await agree
    (($(status_of n2 now_ns) > $(status_of n1 now_ns) + 86000000000000)) || fail "its clock is not ahead"
    has "$(post n2 /transfer '{"target_leader_id":"n1","timeout_ms":5000}')" '"success":true'
    await_leader n1
    await agree
    judge_logs
}

# Otherwise the verdict on all the others would mean nothing.
test_the_referee_finds_work_that_stops_late() {
    local at_ns
    cluster n1
    begin n1
    await_leader
    stop n1
    at_ns=$(awk '{ printf "%.0f", ($1 + 0.01) * 1e9 }' /proc/uptime)
    {
        echo "msg=leads term=99 lease_epoch=1 at_ns=$at_ns until_ns=$((at_ns + 100000000))"
        echo "msg=\"work stopped\" term=99 lease_epoch=1 at_ns=$((at_ns + 1000000000))"
    } >>"$scratch/n1.err"
    ! logs_are_true || fail "the referee has nothing to say"
    same "$(grep -c ' times: ' "$scratch/referee.err")" 1
    grep -qF "1 times: work stopped long after the lease was over" "$scratch/referee.err" || fail "it is something else"
}

# Two that always want the same processor: each waits half of the time.
test_waiting_for_a_processor_is_noticed() {
    cluster n1
    run_as one taskset -c "$(first_processor)" bash -c 'while :; do :; done'
    run_as another taskset -c "$(first_processor)" bash -c 'while :; do :; done'
    echo "${pid_of[one]}" >"$scratch/n1.guard"
    await has_waited n1 1000
    ! has_waited n2 1 || fail "there is no n2"
}
first_processor() { awk '$1 == "Cpus_allowed_list:" { sub(/[-,].*/, "", $2); print $2 }' /proc/self/status; }
has_waited() { awk -v "name=node=$1" -v "ms=$2" '$2 == name { sub(/.*=/, "", $5); sum += $5 } END { exit !(sum >= ms * 1e6) }' "$scratch/waits"; }

run_tests "$@"
