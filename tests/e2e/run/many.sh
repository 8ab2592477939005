#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `gavel run` with a command that has thousands of children. Runs alone: they
# would cost the other tests their time.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

test_command_with_ten_thousand_children() {
    local most
    most=$(cat /proc/sys/kernel/pid_max)
    ((most >= 20000)) || skip "this machine has no room for so many processes (pid_max $most)"
    limit_s=60
    # With the default lease of 2 s a guard that cannot kill so many in time ends itself, and rightly so.
    run a --lease 50s -- sh -c '"$0" "$1" --children 10000 --ready 3 3>"$2/ready"' "$BEAT" "$scratch/beats" "$scratch"
    await test -s "$scratch/ready"
    kill -KILL "${pid_of[a]}"
    ended a 137
    await state_is released
    all_gone || fail "it was released before all were dead"
    rm "$scratch/ready" "$scratch/beats"
    run a --lease 50s -- sh -c 'trap "" TERM; "$0" "$1" --children 10000 --ready 3 3>"$2/ready"' "$BEAT" "$scratch/beats" "$scratch"
    await test -s "$scratch/ready"
    kill -TERM "${pid_of[a]}"
    ended a 137
    all_gone || fail "something is left"
}

test_a_thousand_children_are_gone_before_the_deadline() {
    local deadline now
    run a --lease 20s --grace 10s --call-timeout 1s -- sh -c \
        '"$0" "$1" --children 1000 --ready 3 3>"$2/ready"' "$BEAT" "$scratch/beats" "$scratch"
    await test -s "$scratch/ready"
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    await all_gone
    now=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
    # The lease, less drift and margin, after the store took the last renewal; both are times of the same clock.
    deadline=$(($("$SQL" "$store" 'SELECT applied_at / 1000000 FROM groups') + 20000 - 20 - 50))
    ((now < deadline)) || fail "gone $((now - deadline)) ms after the deadline"
}

run_tests "$@"
