#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measurements of elections on a cluster run and say what they measured, with real nodes and candidates. How fast it was is
# not judged here.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# Those with libgavel have tests of their own, in library.sh.
test_quick_bench_prints_what_it_measures_with_sessions() {
    local part file
    expect 0 env TMPDIR="$scratch" "$GAVEL" bench --quick --trials 2 --out "$scratch/out" \
        --only sessions-kill,sessions-resign,sessions-freeze,sessions-node,sessions-groups,sessions-lookups,sessions-writes,sessions-http
    for part in "sessions-kill: " "sessions-resign: " "sessions-freeze: " "sessions-node: " "sessions-groups: " \
        "sessions-lookups: " "sessions-writes: " "sessions-http: " \
        "SIGKILL to on_elected, libgavel" "SIGKILL to the next leader, sessions" \
        "resigning to on_elected, libgavel" "resigning to the next leader, sessions" \
        "SIGSTOP to the next leader, time to live 500 ms" \
        "SIGKILL to an answered campaign, by a surviving node" "SIGKILL to an answered campaign, after connecting anew" \
        "groups that changed their leader" \
        "100 groups: until all are led" "1000 groups: CPU of three nodes, at rest" "1000 groups: RSS of a node" \
        "1000 groups: SIGKILL of who leads 1000" "1000 groups: late heartbeats" \
        "1000 groups: a write" "1000 groups: slowest write" \
        "1000 groups: slowest write at 1000/s" "1000 groups: late heartbeats at 1000/s" \
        "GET /groups/{g}/leader, 1 connection: answers" "client protocol, 16 connections: latency" \
        "PUT of a note on the leader, 1 connection: answers" "PUT of a note on a follower, 16 connections: latency" \
        "a note by the client protocol, 16 connections: answers" \
        "POST campaign on the leader to elected" "POST campaign on a follower to elected"; do
        has "$output" "$part"
    done
    has_not "$output" "not measured"
    has_not "$output" "left out"
    has_not "$output" "not answered well"
    file=$scratch/out/sessions-kill-SIGKILL-to-on-elected-libgavel.csv
    same "$(head -n 1 "$file")" "ms,share"
    same "$(wc -l <"$file")" 3
    same "$(head -n 1 "$scratch/out/growth-sessions.csv")" "groups,acquire_ms,cpu_percent,rss_mib,failover_ms"
    same "$(cut -d, -f1 "$scratch/out/growth-sessions.csv" | tail -n +2 | tr '\n' ' ')" "100 1000 "
    if command -v gnuplot >/dev/null; then
        for file in sessions-kill sessions-node sessions-groups sessions-lookups sessions-writes sessions-http; do
            has "$(head -c 200 "$scratch/out/$file.svg")" "<svg"
        done
    fi
    ! compgen -G "$scratch/gavel-*" || fail "a directory was left behind"
}

test_no_group_changes_its_leader_when_that_of_the_cluster_dies() {
    expect 0 "$GAVEL" bench --quick --only sessions-node --trials 3 --json
    same "$("$JSON_GET" sections.# sections.0.name sections.0.rows.0.n sections.0.rows.1.n <<<"$output")" "1	sessions-node	6	3"
    has "$output" '"name":"groups that changed their leader","unit":"groups","n":1,"value":0.0,"aim":0.0,"met":true'
}

has_children() { [[ -n $(cat "/proc/$1/task/$1/children") ]]; }

test_a_signal_ends_a_section_its_client_loads_and_its_nodes_soon() {
    local section child children
    for section in sessions-kill sessions-groups; do
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
