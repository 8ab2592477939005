#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM in each state: out in order, released and no longer registered.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# term NAME: SIGTERM, then exit code 0, the last event `stopped`, and gone from the store.
term() {
    kill -TERM "${pid_of[$1]}"
    ended "$1" 0
    same "$(tail -n 1 "$scratch/$1.out" | "$JSON_GET" event status)" "stopped	OK"
    has_not "$("$GAVEL" candidates --store "$store")" "$1 "
}

test_sigterm_while_waiting_out_the_start_jitter() {
    elect a --start-jitter-min 1h --start-jitter-max 1h
    await grep -q "takes part" "$scratch/a.err"
    kill -TERM "${pid_of[a]}"
    ended a 0
}

test_sigterm_while_observing() {
    elect a --observation 1h
    await said a heartbeat
    ! said a became_leader || fail "it did not observe"
    term a
    nobody_leads || fail "somebody leads"
}

test_sigterm_as_standby() {
    elect a
    await said a became_leader
    elect b
    await said b leader_changed '"new":"a"'
    await has_candidates 2
    term b
    leads a || fail "a does not lead any more"
}

# A killed leader whose successor has to wait for a long take-over delay is about to claim all the while.
test_sigterm_while_waiting_to_claim() {
    elect a
    await said a became_leader
    elect b --takeover-delay 1h
    await said b leader_changed '"new":"a"'
    kill -KILL "${pid_of[a]}"
    ended a 137
    await said b leader_down
    term b
    nobody_leads || fail "somebody leads"
}

# The claim cannot be written while somebody else holds the lock of the store.
test_sigterm_while_claiming() {
    elect a --call-timeout 5s --lease 20s --candidate-timeout 20s
    await said a became_leader
    elect b --call-timeout 5s --lease 20s --candidate-timeout 20s
    await said b leader_changed '"new":"a"'
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    kill -KILL "${pid_of[a]}"
    ended a 137
    await said b leader_down
    ! said b became_leader || fail "b claimed without the lock"
    kill -TERM "${pid_of[b]}"
    kill -KILL "${pid_of[lock]}"
    ended lock 137
    ended b 0
    nobody_leads || fail "the mandate was not released"
    has_not "$("$GAVEL" candidates --store "$store")" "b "
}

test_sigterm_while_preparing() {
    elect a --preparation 1h
    await said a phase_changed '"phase":"preparing"'
    term a
    nobody_leads || fail "the mandate was not released"
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" state)" released
}

test_sigterm_while_leading() {
    elect a
    await said a became_leader
    term a
    said a lost_leadership '"reason":"stopped"' || fail "it did not say that it stopped leading"
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" state)" released
}

test_sigterm_while_stopping_after_a_resignation() {
    elect a
    await said a became_leader
    elect b
    await has_candidates 2
    run_as handover "$GAVEL" handover --store "$store"
    kill -TERM "${pid_of[a]}"
    ended a 0
    ended handover 0
    await leads b
}

test_sigterm_right_after_the_start() {
    local i
    for i in 1 2 3 4 5; do
        elect "quick$i"
        await grep -q "takes part" "$scratch/quick$i.err"
        kill -TERM "${pid_of[quick$i]}"
        ended "quick$i" 0
    done
    has_candidates 0 || fail "something stayed behind"
    nobody_leads || fail "somebody leads"
}

test_sigint_leaves_in_order() {
    run_as a env --default-signal=INT "$GAVEL" elect --store "$store" --id a
    await said a became_leader
    kill -INT "${pid_of[a]}"
    ended a 0
    nobody_leads || fail "the mandate was not released"
}

test_nohup_is_respected() {
    run_as a env --ignore-signal=HUP "$GAVEL" elect --store "$store" --id a
    await said a became_leader
    kill -HUP "${pid_of[a]}"
    elect b
    await said b leader_changed '"new":"a"'
    leads a || fail "it ended by a signal that it was told to ignore"
}

# A store that is locked by somebody else for good keeps the release from being written.
test_second_signal_ends_at_once() {
    elect a --call-timeout 20s --lease 60s --candidate-timeout 60s
    await said a became_leader
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    kill -TERM "${pid_of[a]}"
    await grep -qE 'SigBlk:\s*0000000000000000' "/proc/${pid_of[a]}/status"
    kill_again() { process_is_gone "${pid_of[a]}" || ! kill -TERM "${pid_of[a]}"; }
    await kill_again # the first few may come too soon to be another wish
    ended a 143
    kill -KILL "${pid_of[lock]}"
    ended lock 137
}

# timeout(1) sends its signal twice, to the program and to its process group.
test_timeout_lets_it_leave_in_order() {
    expect 124 timeout --signal TERM 1 "$GAVEL" elect --store "$store" --id a
    same "$(tail -n 1 <<<"$output" | "$JSON_GET" event status)" "stopped	OK"
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" state)" released
}

test_reader_that_goes_away_makes_it_leave() {
    mkfifo "$scratch/pipe"
    "$GAVEL" elect --store "$store" --id a >"$scratch/pipe" 2>"$scratch/a.err" &
    pid_of[a]=$!
    head -n 1 "$scratch/pipe" >/dev/null
    ended a 1
    has "$(cat "$scratch/a.err")" "stdout"
    nobody_leads || fail "the mandate was not released"
}

test_closed_stdout_is_an_error() {
    local code=0
    timeout "$limit_s" "$GAVEL" elect --store "$store" --id a >&- 2>"$scratch/a.err" || code=$?
    same "$code" 1
    has "$(cat "$scratch/a.err")" "stdout"
}

test_reader_that_does_not_read_does_not_stop_a_signal() {
    mkfifo "$scratch/pipe"
    exec 7<>"$scratch/pipe"
    dd if=/dev/zero of="$scratch/pipe" bs=4096 count=16 status=none # the pipe is full from the beginning
    "$GAVEL" elect --store "$store" --id a >"$scratch/pipe" 2>"$scratch/a.err" &
    pid_of[a]=$!
    await leads a
    kill -TERM "${pid_of[a]}"
    ended a 0
    nobody_leads || fail "the mandate was not released"
    exec 7<&-
}

test_full_disk_behind_stdout_is_an_error() {
    expect 1 timeout "$limit_s" bash -c '"$GAVEL" elect --store "$1" --id a >/dev/full' sh "$store"
    has "$errors" "stdout"
    expect 1 bash -c '"$GAVEL" help >/dev/full'
    has "$errors" "stdout"
}

run_tests "$@"
