#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measurements of elections on a cluster with libgavel run and say what they measured, with real nodes and processes, in tiny
# sizes. How fast it was is not judged here.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# bench SECTION OPTION…: its output is $output; nothing was left out or cut short, and no directory was left behind.
bench() {
    local section=$1
    shift
    expect 0 env TMPDIR="$scratch" "$GAVEL" bench --quick --only "$section" --out "$scratch/out" "$@"
    has "$output" "$section: "
    has_not "$output" "not measured"
    has_not "$output" "left out"
    ! compgen -G "$scratch/gavel-*" || fail "a directory was left behind"
}

# drawn SECTION: there is a picture of it, if there is gnuplot.
drawn() { ! command -v gnuplot >/dev/null || has "$(head -c 200 "$scratch/out/$1.svg")" "<svg"; }

test_one_process_that_leads_many_groups_is_measured_beside_its_floor() {
    local part
    bench sessions-library --groups 120
    for part in "100 groups: until all are led" "120 groups: until all are led" "120 groups: CPU of three nodes, at rest" \
        "120 groups: floor: CPU of three nodes, without groups" "120 groups: CPU of the client, at rest" \
        "120 groups: floor: CPU of the client, without groups" "120 groups: RSS of a node and its guard, at most" \
        "120 groups: RSS of the client" "120 groups: floor: RSS of the client, without groups" "120 groups: mandates lost meanwhile"; do
        has "$output" "$part"
    done
    same "$(head -n 1 "$scratch/out/growth-library.csv" | cut -d, -f1-4)" "groups,acquire_ms,nodes_cpu_percent,client_cpu_percent"
    same "$(cut -d, -f1 "$scratch/out/growth-library.csv" | tail -n +2 | tr '\n' ' ')" "100 120 "
    awk -F, 'NR > 1 && !($3 > 0 && $5 > 1 && $6 > 1 && $7 > 0) { exit 1 }' "$scratch/out/growth-library.csv" ||
        fail "something needs nothing: $(cat "$scratch/out/growth-library.csv")"
    drawn sessions-library
}

test_the_number_of_groups_is_checked() {
    local groups
    for groups in 0 1000001; do
        expect 2 "$GAVEL" bench --only sessions-library --groups "$groups"
        has "$errors" "--groups must be from 1 to 1000000"
    done
}

test_the_death_of_a_process_that_leads_many_groups_is_measured() {
    local part
    bench sessions-many --trials 2
    for part in "SIGKILL to the first on_elected of 100" "SIGKILL to the last on_elected of 100" \
        "mandates lost without a SIGKILL" "floor: write 4 KiB, fdatasync"; do
        has "$output" "$part"
    done
    same "$(wc -l <"$scratch/out/sessions-many-SIGKILL-to-the-last-on-elected-of-100.csv")" 3
    drawn sessions-many
}

test_the_death_of_a_leader_with_many_standbys_is_measured() {
    local part
    bench sessions-standbys --trials 2
    for part in "3 standbys: SIGKILL to on_elected" "10 standbys: SIGKILL to on_elected" "10 standbys: p50 beside 3 standbys" \
        "floor: write 4 KiB, fdatasync"; do
        has "$output" "$part"
    done
    same "$(wc -l <"$scratch/out/sessions-standbys-10-standbys-SIGKILL-to-on-elected.csv")" 3
    drawn sessions-standbys
}

test_the_death_of_the_leader_of_the_cluster_is_measured() {
    local part
    bench sessions-leader --trials 2
    for part in "SIGKILL to an acknowledged write, by a surviving node" "SIGKILL to an acknowledged write, after connecting anew" \
        "groups that changed their leader" "mandates or sessions lost meanwhile"; do
        has "$output" "$part"
    done
    same "$(wc -l <"$scratch/out/sessions-leader-SIGKILL-to-an-acknowledged-write-by-a-surviving-node.csv")" 5
    drawn sessions-leader
}

test_the_loss_of_a_host_is_measured() {
    local part
    unshare --pid --fork --kill-child --mount-proc true 2>/dev/null || skip "no pid namespace can be made here"
    bench sessions-host --trials 2
    for part in "loss of the host of the cluster's leader, to on_elected" "loss of the host of a follower, to on_elected" \
        "trials in which somebody gave up"; do
        has "$output" "$part"
    done
    same "$(wc -l <"$scratch/out/sessions-host-loss-of-the-host-of-the-cluster-s-leader-to-on-elected.csv")" 3
    drawn sessions-host
}

test_without_the_right_to_make_a_namespace_the_loss_of_a_host_is_left_out() {
    local without=()
    [[ $(id -u) != 0 ]] || without=(setpriv --bounding-set=-sys_admin)
    expect 0 "${without[@]}" "$GAVEL" bench --quick --only sessions-host
    has "$output" "left out: this process may not make a pid namespace; run it as root, on a machine or in a container that allows it"
}

has_children() { [[ -n $(cat "/proc/$1/task/$1/children") ]]; }

test_a_signal_ends_a_section_of_libgavel_its_processes_and_its_nodes_soon() {
    local section child children sections=(sessions-library)
    ! unshare --pid --fork --kill-child --mount-proc true 2>/dev/null || sections+=(sessions-host)
    for section in "${sections[@]}"; do
        run_as "$section" env TMPDIR="$scratch" "$GAVEL" bench --only "$section"
        await has_children "${pid_of[$section]}"
        # The first children of sessions-host are those that find out whether it may make a namespace.
        await grep -q "$section: " "$scratch/$section.out"
        await compgen -G "$scratch/gavel-*/gavel-*/n1.sock" >/dev/null
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

# A program without gaveld beside it, in no build directory and nowhere in PATH, so that each section is over at once.
test_sessions_names_every_section_of_elections_on_a_cluster() {
    mkdir "$scratch/alone"
    cp "$GAVEL" "$(dirname "$GAVEL")/../../bench/gavel-bench" "$scratch/alone"
    expect 0 env PATH="$scratch/alone" "$scratch/alone/gavel" bench --only sessions
    same "$(grep -o "^sessions-[a-z]*" <<<"$output" | tr '\n' ' ')" "$(printf 'sessions-%s ' kill standbys resign freeze node leader host groups library many lookups writes http)"
    has "$output" "left out"
}

run_tests "$@"
