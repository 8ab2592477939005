#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a service manager hears of `gavel run`, and what the command does not.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

: "${MANAGER:?a service manager}"

# managed NAME [OPTION…] -- COMMAND…: `gavel run` under a manager, with a watchdog of 400 ms.
managed() {
    local name=$1
    shift
    run_as manager "$MANAGER" "$scratch/socket"
    await test -S "$scratch/socket"
    run_as "$name" env NOTIFY_SOCKET="$scratch/socket" WATCHDOG_USEC=400000 "$GAVEL" run --store "$store" --id "$name" \
        --group jobs --lease 5s --call-timeout 2s --candidate-timeout 8s "$@"
}

heard() { grep -q -- "$1" "$scratch/manager.out"; }
heard_times() { (($(grep -c -- "$1" "$scratch/manager.out") >= $2)); }

test_it_is_ready_when_it_takes_part_and_says_that_it_leads() {
    managed web-1 -- sleep 1000
    await heard '^READY=1'
    await heard '^STATUS=.*jobs.*epoch 1'
    heard_times '^READY=1' 2 && fail "it was ready twice"
    has_not "$(cat "$scratch/manager.out")" 'STOPPING=1'
}

# Ready does not mean that it leads: a standby would fail to start for as long as another does.
test_a_standby_is_ready_too() {
    run_as web-1 "$GAVEL" run --store "$store" --id web-1 --group jobs --lease 5s --call-timeout 2s -- sleep 1000
    await grep -q 'msg=leads ' "$scratch/web-1.err"
    managed web-2 -- sleep 1000
    await heard '^READY=1'
    await heard '^STATUS=.*jobs.*web-1'
}

test_the_watchdog_is_fed_again_and_again() {
    managed web-1 -- sleep 1000
    await heard_times '^WATCHDOG=1' 4
}

test_it_says_that_it_stops_before_it_has() {
    managed web-1 -- bash -c "trap 'until [[ -e $scratch/go ]]; do sleep 0.02; done; exit 0' TERM; touch $scratch/up; while :; do sleep 0.02; done"
    await test -e "$scratch/up"
    kill -TERM "${pid_of[web-1]}"
    await heard '^STOPPING=1'
    kill -0 "${pid_of[web-1]}" || fail "it said so only when it was over"
    touch "$scratch/go"
    ended web-1 0
}

test_the_command_hears_nothing_of_the_manager() {
    # shellcheck disable=SC2016 # the command's shell reads it
    managed web-1 -- sh -c 'env >"$0.part" && mv "$0.part" "$0"; exec sleep 1000' "$scratch/environment"
    await test -s "$scratch/environment"
    has "$(cat "$scratch/environment")" GAVEL_EPOCH=1
    has_not "$(cat "$scratch/environment")" NOTIFY_SOCKET
    has_not "$(cat "$scratch/environment")" WATCHDOG_USEC
}

test_a_manager_that_is_gone_changes_nothing() {
    managed web-1 -- sh -c "touch $scratch/up; exec sleep 1000"
    await test -e "$scratch/up"
    kill -KILL "${pid_of[manager]}"
    kill -TERM "${pid_of[web-1]}"
    ended web-1 143
}

run_tests "$@"
