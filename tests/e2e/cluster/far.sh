#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes that answer too late to hold a lease: they are not made voters, nobody hands over to them unasked, and a
# change of members can be taken back when nobody can work any more.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${PROXY:?the proxy}"

# Longer than a lease of 400 ms allows, and shorter than an election time-out.
far_ms=350

# behind_proxy NAME: what is sent to the node passes through a proxy, whose port the others know it by.
behind_proxy() {
    local name=$1 own=${port_of[$1]}
    free_port
    port_of[$name]=$port
    mkfifo "$scratch/proxy-$name"
    "$PROXY" "$port" "$own" <"$scratch/proxy-$name" >"$scratch/proxy-$name.out" &
    pid_of[proxy-$name]=$!
    exec {proxy_fd}>"$scratch/proxy-$name"
    await grep -q good "$scratch/proxy-$name.out"
    for name in "${nodes[@]}"; do configure "$name"; done
    sed -i "s/^listen: .*/listen: 127.0.0.1:$own\nadvertise: 127.0.0.1:$port/" "$scratch/$1.yaml"
}

# Of what is sent to the node from now on; its answers take another way and are not late.
delay() { echo "delay $1 0" >&"$proxy_fd"; }

cluster_of() {
    local urls=() name
    for name in "$@"; do urls+=("http://127.0.0.1:${api_of[$name]}"); done
    (IFS=, && echo "${urls[*]}")
}

# 1 node and 1 that is far: with both as voters nobody could work. In 0.6.0 this ended the cluster.
test_a_far_voter_is_refused_and_taken_back() {
    cluster n1 far
    nodes=(far)
    behind_proxy far
    nodes=(n1)
    configure n1
    begin n1
    await_leader n1
    start far --join
    await is far node far
    delay "$far_ms"
    "$GAVEL" member add far "127.0.0.1:${port_of[far]}" --cluster "$(cluster_of n1)" >"$scratch/added"
    await grep -q "msg=member_change_failed.*too few of the new voters answer fast enough for a lease" "$scratch/n1.err"
    "$GAVEL" member promote far --cluster "$(cluster_of n1)" >"$scratch/promoted" 2>&1 && fail "it is a voter now"
    has "$(cat "$scratch/promoted")" "too few of the new voters answer fast enough for a lease"
    is n1 has_lease true || fail "the only voter does not work any more"
    "$GAVEL" member remove far --cluster "$(cluster_of n1)" >"$scratch/removed"
    same "$(ask n1 /members | "$JSON_GET" members.#)" 1
    is n1 has_lease true || fail "the only voter does not work any more"
}

# Two voters, and then the way between them becomes long: nobody works, and one of them can be removed.
test_a_member_is_removed_while_nobody_works() {
    cluster n1 n2
    behind_proxy n2
    begin n1 n2
    await agree
    delay "$far_ms"
    await nobody_works
    await distance_is_told
    await removes_one
    await_leader
    same "$(ask "$leader" /members | "$JSON_GET" members.#)" 1
}

distance_is_told() { grep -q "msg=nobody_near.*a majority answers within [0-9]* ms, a lease needs [0-9]* ms" "$scratch"/n?.err; }

nobody_works() { ! find_leader "${nodes[@]}"; }

# Asked again if the one that led has just given up. Whoever leads, the other goes.
removes_one() {
    local name
    for name in "${nodes[@]}"; do
        is "$name" is_leader true || continue
        # shellcheck disable=SC2046 # one word
        "$GAVEL" member remove $(others "$name") --cluster "$(cluster_of n1 n2)" >"$scratch/removed" 2>&1 && return 0
    done
    return 1
}

test_a_far_target_is_refused_with_the_reason() {
    cluster n1 n2 far
    behind_proxy far
    begin n1 n2 far
    await agree
    delay "$far_ms"
    await_leader n1 n2
    await refuses_far
    has "$(cat "$scratch/refused")" "far could not hold a lease: it answers after"
    find_leader n1 n2 || fail "it handed over all the same"
    judge_logs
}

# A leader that has only just begun does not know yet how far the others are, and hands over: it is given time.
refuses_far() {
    find_leader n1 n2 || return 1
    sleep 2
    find_leader n1 n2 || return 1
    ! "$GAVEL" handover --to far --cluster "$(cluster_of n1 n2 far)" >"$scratch/refused" 2>&1 && grep -q "could not hold" "$scratch/refused"
}

run_tests "$@"
