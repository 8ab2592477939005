#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measurements of the cluster run and say what they measured, with real nodes. How fast it was is not judged here.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

test_quick_bench_prints_every_section_of_the_cluster() {
    local part
    expect 0 env TMPDIR="$scratch" "$GAVEL" bench --quick --only cluster --trials 2 --out "$scratch/out"
    for part in "cluster-kill: " "cluster-kill-all: " "cluster-freeze: " "cluster-transfer: " "cluster-cold: " \
        "cluster-lookups: " "cluster-idle: " \
        "SIGKILL of the node process to the next claim" \
        "SIGKILL of guard and node to the next claim" "SIGSTOP of the node process to the next claim" \
        "the claim to GET /leader naming it, on survivors" "SIGCONT to the first answers of the old leader" \
        "POST /transfer to the claim" "POST /transfer to its answer" \
        "three new nodes to the first claim" "three nodes started again to the first claim" \
        "GET /leader, 1 connection: answers" "GET /leader, 16 connections: latency" "floor: TCP echo" \
        "GET /leader on the leader, 20000/s: late heartbeats" "GET /leader on a follower, 20000/s: elections" \
        "CPU of the leader" "RSS of the follower" "default settings, data on"; do
        has "$output" "$part"
    done
    # On a busy machine both obituaries may come after the election has begun; that they come is tested elsewhere.
    has_not "$output" "not measured"
    has_not "$output" "left out"
    same "$(head -n 1 "$scratch/out/cluster-kill-SIGKILL-of-the-node-process-to-the-next-claim.csv")" "ms,share"
    same "$(wc -l <"$scratch/out/cluster-kill-SIGKILL-of-the-node-process-to-the-next-claim.csv")" 3
    if command -v gnuplot >/dev/null; then has "$(head -c 200 "$scratch/out/cluster-kill.svg")" "<svg"; fi
    ! compgen -G "$scratch/gavel-*" || fail "a directory was left behind"
}

test_a_woken_leader_is_judged_by_its_answers() {
    expect 0 "$GAVEL" bench --only cluster-freeze --trials 2 --json
    same "$("$JSON_GET" trials sections.# sections.0.name sections.0.rows.0.n <<<"$output")" "2	1	cluster-freeze	2"
    has "$output" '"name":"answers by which a woken leader leads","unit":"answers","n":1,"value":0.0,"aim":0.0,"met":true'
    local p50
    p50=$("$JSON_GET" sections.0.rows.0.p50 <<<"$output")
    awk -v p="$p50" 'BEGIN { exit !(p > 0) }' || fail "a fail-over took $p50 ms"
}

# Clusters were called quorums.
test_the_former_names_of_sections_are_known() {
    expect 0 "$GAVEL" bench --quick --only quorum-transfer --trials 1 --json
    same "$("$JSON_GET" sections.# sections.0.name <<<"$output")" "1	cluster-transfer"
}

# A program without gaveld beside it, in no build directory and nowhere in PATH.
test_without_gaveld_the_bench_says_so() {
    mkdir "$scratch/alone"
    cp "$GAVEL" "$(dirname "$GAVEL")/../../bench/gavel-bench" "$scratch/alone"
    expect 0 env PATH="$scratch/alone" "$scratch/alone/gavel" bench --only cluster-kill --trials 1
    has "$output" "left out"
}

# A program that says that it ran, and becomes the real one.
test_another_gaveld_can_be_measured() {
    printf '#!/bin/sh\necho "$$" >>"%s/started"\nexec "%s" "$@"\n' "$scratch" "$GAVELD" >"$scratch/other"
    chmod +x "$scratch/other"
    expect 0 "$GAVEL" bench --quick --only cluster-transfer --trials 1 --gaveld "$scratch/other"
    has "$output" "the nodes run $scratch/other"
    has "$output" "POST /transfer to the claim"
    same "$(wc -l <"$scratch/started")" 3
    expect 2 "$GAVEL" bench --only cluster-transfer --gaveld "$scratch/none"
    has "$errors" "$scratch/none is no program that can be executed; name a gaveld with --gaveld"
    expect 2 "$GAVEL" bench --only cluster-transfer --gaveld "$scratch"
}

has_children() { [[ -n $(cat "/proc/$1/task/$1/children") ]]; }

test_a_signal_ends_every_section_and_every_node_soon() {
    local section child children
    for section in cluster-kill cluster-freeze cluster-cold cluster-lookups cluster-idle; do
        run_as "$section" env TMPDIR="$scratch" "$GAVEL" bench --only "$section"
        await has_children "${pid_of[$section]}"
        children=$(cat "/proc/${pid_of[$section]}/task/${pid_of[$section]}/children")
        kill -TERM "${pid_of[$section]}"
        ended "$section" 1
        has "$(cat "$scratch/$section.out")" "not measured to the end: ended by a signal"
        for child in $children; do
            process_is_gone "$child" || fail "the process $child of $section was left behind"
        done
    done
    ! compgen -G "$scratch/gavel-*" || fail "a directory was left behind"
}

run_tests "$@"
