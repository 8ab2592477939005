#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo: it passes, it can fail, and it leaves nothing behind.
source "$(dirname "$0")/lib.sh"

# The demo's own temporary folder goes here, where a test can see whether it is gone.
own_folder() {
    mkdir "$folder/tmp"
    export TMPDIR=$folder/tmp
}

is_empty() { [[ -z $(ls -A "$1") ]]; }

children_of() { cat /proc/"$1"/task/*/children; }

test_demo_shows_every_step_and_finds_no_two_leaders() {
    own_folder
    expect 0 "$GAVEL" demo
    has "$output" "leads, epoch 1"
    has "$output" "is asked to resign"
    has "$output" "is killed (SIGKILL)"
    has "$output" "is frozen (SIGSTOP)"
    has "$output" "is resumed (SIGCONT)"
    has "$output" "leads, epoch 4, after a gap of"
    has "$output" "1 late write refused by the fence"
    has "$output" "verdict: at no instant two leaders"
    is_empty "$TMPDIR" || fail "it left files: $(ls -A "$TMPDIR")"
}

test_demo_as_json_has_the_intervals_it_judged() {
    expect 0 "$GAVEL" demo --json
    same "$("$JSON_GET" passed verdict violations.# steps.# lost <<<"$output")" \
        "true	at no instant two leaders	0	5	0"
    local count i ends="" epoch last=0 from until before=0
    count=$("$JSON_GET" mandates.# <<<"$output")
    for ((i = 0; i < count; i++)); do
        IFS=$'\t' read -r epoch from until end beats < <("$JSON_GET" mandates.$i.epoch mandates.$i.from_ms \
            mandates.$i.until_ms mandates.$i.end mandates.$i.beats <<<"$output")
        ((epoch > last)) || fail "epoch $epoch follows epoch $last"
        # The same question as the verdict's, asked once more by another program.
        awk -v a="$before" -v b="$from" -v c="$until" 'BEGIN { exit !(a < b && b < c) }' ||
            fail "mandate $i, $from to $until ms, begins before $before ms"
        ((beats > 0)) || fail "mandate $i did no work"
        last=$epoch before=$until ends+="$end "
    done
    has "$ends" stopped
    has "$ends" died
    has "$ends" woke_late
}

test_demo_convicts_a_candidate_that_ignores_the_election() {
    expect 1 "$GAVEL" demo --sabotage
    has "$output" "verdict: two leaders at once"
    has "$output" "both led from"
    has "$output" "without having been elected"
    has_not "$output" "at no instant"
    expect 1 "$GAVEL" demo --sabotage --json
    same "$("$JSON_GET" passed verdict <<<"$output")" "false	two leaders at once"
    has "$output" '"kind":"overlap"'
}

test_demo_that_is_interrupted_sends_everybody_home() {
    own_folder
    run_as demo "$GAVEL" demo
    await grep -q "leads, epoch 1" "$folder/demo.out"
    local children
    children=$(children_of "${pid_of[demo]}")
    kill -TERM "${pid_of[demo]}"
    ended demo 1
    has "$(cat "$folder/demo.out")" "interrupted"
    for child in $children; do
        process_is_gone "$child" || fail "process $child still runs"
    done
    is_empty "$TMPDIR" || fail "it left files: $(ls -A "$TMPDIR")"
}

test_candidates_do_not_outlive_a_demo_that_is_killed() {
    own_folder
    run_as demo "$GAVEL" demo
    await grep -q "is frozen" "$folder/demo.out"
    local children child
    children=$(children_of "${pid_of[demo]}")
    [[ -n $children ]] || fail "no candidates were seen"
    kill -KILL "${pid_of[demo]}"
    ended demo 137
    for child in $children; do await process_is_gone "$child"; done
}

test_demo_says_what_to_do_where_it_has_no_room() {
    TMPDIR=$folder/none expect 1 "$GAVEL" demo
    has "$errors" "set TMPDIR to another place"
}

run_tests "$@"
