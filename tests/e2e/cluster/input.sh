#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What strangers send to a node: none of it costs the leader its place.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# begin_led: three nodes, and who led when in which term.
begin_led() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    led=$leader
    term=$(status_of "$leader" term)
}

# The same leader in the same term, and everybody agrees.
undisturbed() {
    await agree
    [[ $leader == "$led" && $(status_of "$leader" term) == "$term" ]] ||
        fail "$led does not lead in term $term any more"
}

still_led() {
    undisturbed
    judge_logs
}

test_garbage_on_the_peer_port_is_closed_and_said() {
    local name
    begin_led
    for name in "${nodes[@]}"; do "$KNOCK" garbage "${port_of[$name]}" 21 >"$scratch/knock.out"; done
    logged "$led" 127.0.0.1 || fail "the leader did not say who sent garbage"
    still_led
}

test_connections_that_say_nothing_do_not_lock_peers_out() {
    local former
    begin_led
    mkfifo "$scratch/hold"
    "$KNOCK" idle "${port_of[$led]}" 300 <"$scratch/hold" >"$scratch/knock.out" 2>"$scratch/knock.err" &
    pid_of[knock]=$!
    exec 9>"$scratch/hold"
    await grep -q '300 open' "$scratch/knock.out"
    # A follower that comes back must find a way in.
    former=$(others "$led" | sed -n 1p)
    stop "$former"
    start "$former"
    still_led
    exec 9>&-
    await grep -q left "$scratch/knock.out"
}

test_datagrams_that_nobody_sealed_change_nothing() {
    local name
    begin_led
    for name in "${nodes[@]}"; do "$KNOCK" obituary "${port_of[$name]}" 500; done
    still_led
}

# A copy of another's configuration: it speaks with a name that is taken.
test_a_second_node_of_the_same_name_is_refused() {
    local other
    begin_led
    other=$(others "$led" | sed -n 1p)
    free_port
    sed "s/${port_of[$other]}/$port/; s|^data: .*|data: $scratch/copy|" "$scratch/$other.yaml" >"$scratch/copy.yaml"
    free_port
    sed -i "s/${api_of[$other]}/$port/" "$scratch/copy.yaml"
    api_of[copy]=$port
    start copy --bootstrap
    await is copy node "$other"
    await logged copy refused
    is copy has_lease false || fail "the copy leads"
    still_led
}

test_a_node_of_another_cluster_is_refused_on_both_sides() {
    begin_led
    free_port
    port_of[x1]=$port
    free_port
    api_of[x1]=$port
    sed "s/^cluster: .*/cluster: other/; s/^node: .*/node: x1/; s/^listen: .*/listen: 127.0.0.1:${port_of[x1]}/
        s/^api: .*/api: 127.0.0.1:${api_of[x1]}/; s|^data: .*|data: $scratch/x1|" "$scratch/n1.yaml" >"$scratch/x1.yaml"
    echo "  - {name: x1, address: \"127.0.0.1:${port_of[x1]}\"}" >"$scratch/line"
    sed -i "/^peers:/r $scratch/line" "$scratch/x1.yaml"
    start x1 --bootstrap
    await logged x1 other
    await logged "$led" other
    is x1 has_lease false || fail "it leads"
    still_led
}

test_requests_that_never_end_are_closed_and_delay_nobody() {
    begin_led
    run_as knock "$KNOCK" loris "${api_of[$led]}" 200
    await grep -q '200 open' "$scratch/knock.out"
    same "$(ask "$led" /leader -m 5 | "$JSON_GET" leader_id)" "$led"
    ended knock 0
    still_led
}

test_ten_thousand_idle_connections_cost_nobody_anything() {
    local count=10000 limit
    limit=$(ulimit -Hn)
    [[ $limit == unlimited ]] || ((limit >= 12000)) || skip "this machine allows $limit open files"
    ulimit -Sn "$limit"
    begin_led
    mkfifo "$scratch/hold"
    "$KNOCK" idle "${api_of[$led]}" "$count" <"$scratch/hold" >"$scratch/knock.out" 2>"$scratch/knock.err" &
    pid_of[knock]=$!
    exec 9>"$scratch/hold"
    await grep -q "$count open" "$scratch/knock.out"
    undisturbed
    exec 9>&-
    await grep -q left "$scratch/knock.out"
    still_led
}

test_http_that_makes_no_sense_gets_an_error() {
    local answer word
    begin_led
    word=$(printf 'x%.0s' {1..20000})
    same "$(code_of "$led" /nowhere)" 404
    same "$(code_of "$led" /leader -X DELETE)" 405
    for body in '{' '[]' 'null' '{"target_leader_id":7}' '{"target_leader_id":"nobody"}' '{"timeout_ms":-1}' '{"unknown":1}'; do
        answer=$(post "$led" /transfer "$body")
        [[ ${answer##*$'\n'} == 4* ]] || fail "/transfer with $body: $answer"
        has "$answer" '"error"'
    done
    for body in '{"action":"dance","id":"n1"}' '{"action":"add","id":"../x","address":"127.0.0.1:1"}' '{"action":"add","id":"n9","address":"nowhere"}' \
        '{"action":"remove","id":"nobody"}' '{"action":"promote","id":"nobody"}'; do
        answer=$(post "$led" /members "$body")
        [[ ${answer##*$'\n'} == 4* ]] || fail "/members with $body: $answer"
    done
    answer=$(code_of "$led" "/leader?$word" || true)
    [[ $answer == 4* || $answer == 000 ]] || fail "a long address was answered with $answer"
    answer=$(code_of "$led" /leader -H "X-Long: $word$word$word$word" || true)
    [[ $answer == 4* || $answer == 000 ]] || fail "a long header was answered with $answer"
    head -c 3000000 /dev/zero >"$scratch/large"
    answer=$(code_of "$led" /transfer -X POST --data-binary "@$scratch/large" || true)
    [[ $answer == 4* || $answer == 000 ]] || fail "a large body was answered with $answer"
    still_led
}

run_tests "$@"
