#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo: it passes, it can fail, and it leaves nothing behind.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# The demo's own temporary directory goes here, where a test can see whether it is gone.
own_tmpdir() {
    mkdir "$scratch/tmp"
    export TMPDIR=$scratch/tmp
}

is_empty() { [[ -z $(ls -A "$1") ]]; }

# A process and all below it: electors, guards, commands.
tree_of() {
    local child children
    read -ra children -d '' < <(cat /proc/"$1"/task/*/children 2>/dev/null) || true
    for child in "${children[@]}"; do
        echo "$child"
        tree_of "$child"
    done
}

has_three_levels() { [[ $(tree_of "$1" | wc -l) -ge 7 ]]; }

test_demo_shows_every_step_and_finds_no_two_commands_at_once() {
    own_tmpdir
    expect 0 "$GAVEL" demo
    has "$output" "leads, epoch 1"
    has "$output" "is asked to hand over (gavel handover)"
    has "$output" "loses its elector (SIGKILL)"
    has "$output" "loses its guard (SIGKILL)"
    has "$output" "loses its command (SIGKILL)"
    has "$output" "is frozen: its elector (SIGSTOP)"
    has "$output" "is resumed (SIGCONT)"
    has "$output" "leads, epoch 6, after a gap of"
    has "$output" "verdict: at no instant two commands"
    is_empty "$TMPDIR" || fail "it left files: $(ls -A "$TMPDIR")"
}

# What the user has set for gavel is not for the demo.
test_demo_does_not_heed_the_environment_of_the_user() {
    GAVEL_LEASE=1ms GAVEL_STORE=nonsense GAVEL_ELIGIBLE=false NOTIFY_SOCKET=$scratch/none expect 0 "$GAVEL" demo --json
    same "$("$JSON_GET" passed <<<"$output")" true
}

test_demo_as_json_has_the_intervals_it_judged() {
    expect 0 "$GAVEL" demo --json
    same "$("$JSON_GET" passed verdict violations.# steps.# lost <<<"$output")" \
        "true	at no instant two commands	0	7	0"
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
    same "$ends" "stopped died died died stopped stopped "
}

test_demo_convicts_a_candidate_that_ignores_the_election() {
    expect 1 "$GAVEL" demo --sabotage
    has "$output" "verdict: two commands ran at once"
    has "$output" "both ran from"
    has "$output" "without having been elected"
    has_not "$output" "at no instant"
    expect 1 "$GAVEL" demo --sabotage --json
    same "$("$JSON_GET" passed verdict <<<"$output")" "false	two commands ran at once"
    has "$output" '"kind":"overlap"'
}

test_demo_that_is_interrupted_sends_everybody_home() {
    own_tmpdir
    run_as demo "$GAVEL" demo
    await grep -q "leads, epoch 1" "$scratch/demo.out"
    local children child
    await has_three_levels "${pid_of[demo]}"
    children=$(tree_of "${pid_of[demo]}")
    kill -TERM "${pid_of[demo]}"
    ended demo 1
    has "$(cat "$scratch/demo.out")" "interrupted"
    for child in $children; do
        process_is_gone "$child" || fail "process $child still runs"
    done
    is_empty "$TMPDIR" || fail "it left files: $(ls -A "$TMPDIR")"
}

test_candidates_do_not_outlive_a_demo_that_is_killed() {
    own_tmpdir
    run_as demo "$GAVEL" demo
    await grep -q "is frozen" "$scratch/demo.out"
    local children child
    await has_three_levels "${pid_of[demo]}"
    children=$(tree_of "${pid_of[demo]}")
    kill -KILL "${pid_of[demo]}"
    ended demo 137
    for child in $children; do await process_is_gone "$child"; done
}

test_demo_says_what_to_do_where_it_has_no_room() {
    TMPDIR=$scratch/none expect 1 "$GAVEL" demo
    has "$errors" "set TMPDIR to another place"
}

run_tests "$@"
