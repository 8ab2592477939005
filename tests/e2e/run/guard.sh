#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Guards that do not do what they should, readers that do not read, and what
# is left behind: what a review found, kept found.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

frozen() { [[ $(awk '{ print $3 }' "/proc/$1/stat") == T ]]; }

# How many processes beat into this test's log.
beat_count() { grep -lsaF "$scratch/beats" /proc/[0-9]*/cmdline | xargs -r -n 1 dirname | sed 's|$|/exe|' | xargs -r -n 1 readlink | grep -cxF "$BEAT" || true; }

freeze() {
    kill -STOP "$1"
    await frozen "$1"
}

# A guard that stands by has nothing to lose, so nothing kills it while it is frozen. When it is to run something it must.
test_guard_that_was_frozen_while_standing_by_does_not_hold_the_group() {
    run_short a -- sleep 100
    await logged a "runs the command"
    run_short b -- sleep 100
    await has_candidates 2
    freeze "$(guard_of b)"
    kill -KILL "${pid_of[a]}"
    ended a 137
    await leads b
    ended b 1
    logged b "the guard does not carry out its orders" || fail "it does not say why"
    await nobody_leads
}

test_frozen_guard_does_not_keep_the_elector_from_ending() {
    run_as a "$GAVEL" run --no-election --grace 300ms -- "$BEAT" "$scratch/beats"
    await beats
    freeze "$(guard_of a)"
    kill -TERM "${pid_of[a]}"
    ended a 1
    all_gone || fail "the command is left"
}

test_guard_that_is_frozen_as_soon_as_it_has_forked_leaves_no_command_behind() {
    local guard
    run_short a -- sleep 100
    await logged a "runs the command"
    run_short b -- "$BEAT" "$scratch/beats" --ignore-term
    await has_candidates 2
    guard=$(guard_of b)
    # Stop it the moment a child shows; a loop in the shell is quick enough often, not always.
    (until [[ -n $(cat "/proc/$guard/task/$guard/children" 2>/dev/null) ]]; do :; done; kill -STOP "$guard" 2>/dev/null) &
    kill -TERM "${pid_of[a]}"
    ended a 143
    wait $! || true
    run_short c -- "$BEAT" "$scratch/beats"
    await leads c
    await has_epochs 2
    judged_well
}

test_stderr_that_nobody_reads_holds_nothing() {
    mkfifo "$scratch/full"
    exec 7<>"$scratch/full"
    dd if=/dev/zero of="$scratch/full" bs=4096 count=256 oflag=nonblock 2>/dev/null || true # until it is full
    "$GAVEL" run --store "$store" --id a -- sh -c 'exit 3' 2>"$scratch/full" &
    pid_of[a]=$!
    ended a 3
    nobody_leads || fail "the group is still held"
}

test_former_leader_that_stands_by_ends_with_0() {
    run a -- sleep 100
    await logged a "runs the command"
    run b -- sleep 100
    await has_candidates 2
    "$GAVEL" handover --store "$store" >/dev/null
    await leads b
    kill -TERM "${pid_of[a]}"
    ended a 0
}

test_restart_of_an_only_child_leaves_nothing_of_it_behind() {
    run a --on-exit restart --restart-limit 100 -- \
        sh -c '"$0" "$1" --ignore-term --sessions 1 & sleep 0.3; echo again >>"$1.count"; exit 1' "$BEAT" "$scratch/beats"
    await test -s "$scratch/beats.count"
    await eval '(($(wc -l <"$scratch/beats.count") >= 4))'
    # Two for each incarnation; if something of each were left, there would be more by now.
    (($(beat_count) <= 4)) || fail "something of former ones is left"
    kill -TERM "${pid_of[a]}"
    await process_is_gone "${pid_of[a]}"
    await all_gone
}

test_resigning_again_and_again_cools_down() {
    run a --on-exit resign --restart-limit 3 --restart-window 60s --cool-down 60s -- true
    await logged a "restarted too often"
    [[ $(grep -c 'msg=leads ' "$scratch/a.err") == 4 ]] || fail "it led $(grep -c 'msg=leads ' "$scratch/a.err") times"
}

test_what_needs_an_election_is_refused_without_one() {
    expect 2 "$GAVEL" run --no-election --healthy true -- true
    has "$errors" "nobody to hand over to"
    expect 2 "$GAVEL" run --no-election --on-exit resign -- true
    has "$errors" "nobody to hand over to"
}

test_grace_that_is_too_short_to_die_in_is_refused() {
    expect 7 "$GAVEL" run --store "$store" --grace 10ms -- true
    has "$errors" "--stop-grace 50ms"
}

test_failure_of_the_demoted_hook_is_told() {
    run a --on-demoted 'exit 9' -- true
    ended a 0
    logged a "the hook on_demoted failed" || fail "not a word on it"
    logged a "exit code 9" || fail "it does not say how"
}

test_ignored_sigpipe_stays_ignored() {
    (
        trap '' PIPE
        expect 0 "$GAVEL" run --no-election -- sed -n 's/^SigIgn:[[:space:]]*/0x/p' /proc/self/status
        ((output & 0x1000)) || fail "it is not among $output"
    )
}

run_tests "$@"
