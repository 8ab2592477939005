#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `gavel run` with commands that misbehave, and on machines that do: what is
# said, how it ends, and that nothing of the command is left.
#
# A machine that is suspended cannot be had in a test. What it is to processes
# can: time goes on and they do not run. tests/run/random_faults freezes elector,
# guard and command together for longer than the lease, and here everything.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

test_command_that_is_not_there() {
    expect 127 "$GAVEL" run --store "$store" -- no-such-command-at-all
    has "$errors" no-such-command-at-all
    expect 127 "$GAVEL" run --store "$store" -- "$scratch/missing" argument
    has "$errors" "$scratch/missing"
    [[ ! -e $store ]] || fail "it took part"
}

test_command_that_cannot_be_executed() {
    echo 'echo hello' >"$scratch/script"
    expect 126 "$GAVEL" run --store "$store" -- "$scratch/script"
    has "$errors" "$scratch/script"
    expect 126 "$GAVEL" run --store "$store" -- "$scratch"
    has "$errors" "$scratch"
    [[ ! -e $store ]] || fail "it took part"
}

test_no_command() {
    expect 2 "$GAVEL" run --store "$store"
    expect 2 "$GAVEL" run --store "$store" --
    expect 127 "$GAVEL" run --store "$store" -- ''
}

test_command_that_vanishes_while_standing_by() {
    printf '#!/bin/sh\necho started\n' >"$scratch/command"
    chmod +x "$scratch/command"
    run a -- "$BEAT" "$scratch/beats"
    await beats
    run b -- "$scratch/command"
    await has_candidates 2
    rm "$scratch/command"
    kill -KILL "${pid_of[a]}"
    ended a 137
    ended b 127
    state_is released || fail "the mandate was not released"
}

test_command_that_ends_at_once() {
    expect 1 timeout "$limit_s" "$GAVEL" run --store "$store" -- false
    state_is released || fail "the mandate was not released"
    expect 0 timeout "$limit_s" "$GAVEL" run --store "$store" -- true
}

test_command_that_ignores_sigterm() {
    run a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 2 --daemon
    await beats
    kill -TERM "${pid_of[a]}"
    ended a 137
    all_gone || fail "something is left"
    state_is released || fail "the mandate was not released"
}

test_command_that_forks_away() {
    expect 6 timeout "$limit_s" "$GAVEL" run --store "$store" -- "$BEAT" "$scratch/beats" --daemon --sessions 1 --count 3 --exit 6
    all_gone || fail "the daemon lives on"
    state_is released || fail "the mandate was not released"
}

test_command_that_never_stays_in_one_place() {
    run a -- "$BEAT" "$scratch/beats" --comet --daemon
    await beats
    kill -TERM "${pid_of[a]}"
    ended a 143
    all_gone || fail "something is left"
}

test_command_that_floods_stdout() {
    run a -- "$BEAT" "$scratch/beats" --flood
    big() { (($(stat -c %s "$scratch/a.out") > 20000000)); }
    await big
    leads a || fail "it does not lead any more"
    kill -TERM "${pid_of[a]}"
    ended a 143
    : >"$scratch/a.out"
}

# Nobody reads what it writes: it hangs there, and gavel must not, with or without the pipes for the prefix.
test_command_that_floods_a_reader_that_does_not_read() {
    local option
    mkfifo "$scratch/pipe"
    exec 7<>"$scratch/pipe"
    for option in --no-prefix --prefix; do
        rm -f "$scratch/beats"
        "$GAVEL" run --store "$store" --id a --lease 2s --heartbeat 300ms --call-timeout 300ms --grace 600ms $option -- \
            "$BEAT" "$scratch/beats" --flood --ignore-term >"$scratch/pipe" 2>"$scratch/a.err" &
        pid_of[a]=$!
        await beats
        same_epoch_for_two_leases
        kill -TERM "${pid_of[a]}"
        ended a 137
        all_gone || fail "something is left"
    done
    exec 7<&-
}

same_epoch_for_two_leases() {
    local until=$((SECONDS + 4)) epoch
    epoch=$("$GAVEL" leader --store "$store" --json | "$JSON_GET" epoch)
    while ((SECONDS < until)); do # it has to stay so; there is nothing to wait for
        same "$("$GAVEL" leader --store "$store" --json | "$JSON_GET" epoch)" "$epoch"
        sleep 0.2
    done
}

test_elector_that_is_frozen_for_longer_than_the_lease() {
    run_short a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1 --daemon
    await beats
    kill -STOP "${pid_of[a]}"
    await all_gone
    run_short b -- "$BEAT" "$scratch/beats"
    await has_epochs 2
    leads b || fail "b does not lead"
    kill -CONT "${pid_of[a]}"
    await logged a 'the elector did not run when the mandate ended'
    await logged a 'msg="another leads"'
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    kill -KILL "${pid_of[b]}"
    ended b 137
    await has_epochs 3
    leads a || fail "a does not lead again"
    judged_well
}

test_everything_frozen_for_longer_than_the_lease() {
    local guard command
    run_short a -- "$BEAT" "$scratch/beats"
    await beats
    guard=$(guard_of a) command=$(command_of a)
    run_short b -- "$BEAT" "$scratch/beats"
    await has_candidates 2
    kill -STOP "${pid_of[a]}" "$guard" "$command"
    await has_epochs 2
    kill -CONT "$command" 2>/dev/null || true # first, as the worst that a waking machine can do
    kill -CONT "$guard" 2>/dev/null || true
    kill -CONT "${pid_of[a]}"
    ended a 1 # its guard was killed by the kernel
    logged a 'the guard died' || fail "it does not say why"
    leads b || fail "b does not lead"
    judged_well
}

test_guard_that_is_killed() {
    run a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1 --daemon
    await beats
    kill -KILL "$(guard_of a)"
    ended a 1
    all_gone || fail "something is left"
    logged a 'the guard died' || fail "it does not say why"
    state_is released || fail "the mandate was not released"
}

test_store_gone_for_longer_than_the_lease() {
    run_short a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1
    await beats
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    await all_gone
    logged a 'reason=lapsed' || await logged a 'reason=lapsed'
    process_is_gone "${pid_of[a]}" && fail "it has ended"
    kill -KILL "${pid_of[lock]}"
    ended lock 137
    await has_epochs 2
    judged_well
    kill -TERM "${pid_of[a]}"
    ended a 137
}

test_elector_killed_while_the_store_is_away() {
    run_short a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1
    await beats
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    kill -KILL "${pid_of[a]}"
    ended a 137
    await all_gone
    kill -KILL "${pid_of[lock]}"
    ended lock 137
    run_short b -- "$BEAT" "$scratch/beats"
    await has_epochs 2
    judged_well
}

test_store_that_is_deleted() {
    run a -- "$BEAT" "$scratch/beats" --ignore-term
    await beats
    rm "$store" "$store"-*
    await all_gone
    await logged a 'put it back'
    kill -TERM "${pid_of[a]}"
    ended a 0 # it ran nothing any more
}

test_store_that_cannot_be_used() {
    expect 4 timeout "$limit_s" "$GAVEL" run --store "$scratch" -- true
    has "$errors" "not a file"
    head -c 8192 /dev/urandom >"$store"
    expect 4 timeout "$limit_s" "$GAVEL" run --store "$store" -- true
    has "$errors" "$store"
}

# own_disk SIZE: how to have a small file system at $scratch/disk; skips where none can be mounted.
own_disk() {
    enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    mkdir "$scratch/disk"
    "${enter[@]}" mount -t tmpfs -o "size=$1" none "$scratch/disk" 2>/dev/null ||
        skip "this machine does not let us mount a small file system"
}

test_full_disk() {
    own_disk 64k
    expect 4 timeout "$limit_s" "${enter[@]}" bash -c '
        mount -t tmpfs -o size=64k none "$1/disk"
        dd if=/dev/zero of="$1/disk/filler" bs=4096 status=none 2>/dev/null
        exec "$GAVEL" run --store "$1/disk/gavel.db" -- touch "$1/started"' sh "$scratch"
    has "$errors" "$scratch/disk"
    [[ ! -e $scratch/started ]] || fail "the command was started"
}

test_disk_that_fills_up_while_leading() {
    own_disk 1m
    mkfifo "$scratch/go"
    run_as a "${enter[@]}" bash -c '
        exec 5<>"$1/go" # once: whoever opens it for each line may meet the writer of the last one, and its end
        mount -t tmpfs -o size=1m none "$1/disk"
        setpriv --pdeathsig KILL "$GAVEL" run --store "$1/disk/gavel.db" --id a --lease 2s --heartbeat 300ms \
            --call-timeout 300ms --grace 600ms --breaker-reset 300ms -- "$BEAT" "$1/beats" --ignore-term --sessions 1 5>&- &
        read -r _ <&5
        dd if=/dev/zero of="$1/disk/filler" bs=4096 status=none 2>/dev/null
        read -r _ <&5
        rm "$1/disk/filler"
        read -r _ <&5
        kill -TERM $!
        wait $!' sh "$scratch"
    await beats
    echo >"$scratch/go"
    await all_gone
    await logged a 'reason=lapsed'
    echo >"$scratch/go"
    await has_epochs 2
    echo >"$scratch/go"
    ended a 137
    judged_well
}

# no_more_descriptors PID: may open none beyond those it has.
no_more_descriptors() {
    local highest
    highest=$(find "/proc/$1/fd" -mindepth 1 -printf '%f\n' | sort -n | tail -n 1)
    prlimit --pid "$1" --nofile="$((highest + 1)):$((highest + 1))"
}

test_guard_without_descriptors_ends_the_tree_of_a_dead_elector() {
    run a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 2 --daemon
    await beats
    no_more_descriptors "$(guard_of a)"
    kill -KILL "${pid_of[a]}"
    ended a 137
    await state_is released
    all_gone || fail "it was released before all were dead"
}

test_guard_without_descriptors_ends_the_tree_in_time() {
    run_short a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 2 --daemon
    await beats
    no_more_descriptors "$(guard_of a)"
    kill -STOP "${pid_of[a]}"
    await all_gone
    run_short b -- "$BEAT" "$scratch/beats"
    await has_epochs 2
    kill -CONT "${pid_of[a]}"
    judged_well
}

test_elector_without_descriptors_goes_on() {
    run a -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1
    await beats
    no_more_descriptors "${pid_of[a]}"
    kill -KILL "$(guard_of a)"
    ended a 1
    all_gone || fail "something is left"
}

test_start_without_descriptors_is_an_error() {
    local code=0
    (ulimit -n 6 && exec timeout "$limit_s" "$GAVEL" run --store "$store" -- touch "$scratch/started") \
        >"$scratch/a.out" 2>"$scratch/a.err" || code=$?
    ((code > 0 && code < 8)) || fail "exit code $code: $(cat "$scratch/a.err")"
    [[ ! -e $scratch/started ]] || fail "the command was started"
    [[ -s $scratch/a.err ]] || fail "it does not say why"
}

run_tests "$@"
