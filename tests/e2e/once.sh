#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gavel once: a success is recorded at most once for a key, whatever dies in the middle.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

times=(--lease 5s --call-timeout 2s --candidate-timeout 8s)

# once NAME KEY COMMAND…: in the background, as a candidate of that id.
once() {
    local name=$1 key=$2
    shift 2
    run_as "$name" "$GAVEL" once --store "$store" --id "$name" --key "$key" "${times[@]}" -- "$@"
}

# A command that says that it has begun, waits for a gate, and then succeeds: attempts and successes are
# lines with the epoch in $scratch.
gated='echo "$GAVEL_EPOCH" >>"$0/attempts"; until [ -e "$0/gate" ]; do sleep 0.01; done; echo "$GAVEL_EPOCH" >>"$0/successes"'
gated() { once "$1" "$2" sh -c "$gated" "$scratch"; }

# lines FILE COUNT: whether it has so many lines.
lines() { [[ $(wc -l <"$scratch/$1" 2>/dev/null || echo 0) == "$2" ]]; }

child_of() { tr ' ' '\n' <"/proc/$1/task/$1/children" | sed -n 1p; }

# stands_by NAME LEADER
stands_by() { grep -q "another leads.*leader=$2" "$scratch/$1.err"; }

state_of() { "$GAVEL" status --store "$store" --group "once:$1" --json | "$JSON_GET" state; }

test_a_success_is_recorded_and_the_command_never_runs_again() {
    expect 0 "$GAVEL" once --store "$store" --id a --key k -- sh -c 'echo "$GAVEL_GROUP $GAVEL_EPOCH $GAVEL_CANDIDATE"'
    same "$output" "once:k 1 a"
    has "$errors" 'msg="recorded as done"'
    same "$(state_of k)" "done"
    expect 0 "$GAVEL" once --store "$store" --id b --key k -- sh -c 'echo again'
    same "$output" ""
    has "$errors" 'msg="already done" group=once:k by=a epoch=1'
    expect 0 "$GAVEL" once --store "$store" --id b --key other -- echo "another key"
    same "$output" "another key"
}

test_a_failure_is_not_recorded_and_the_next_may_try() {
    expect 3 "$GAVEL" once --store "$store" --key k -- sh -c 'exit 3'
    same "$(state_of k)" released
    expect 137 "$GAVEL" once --store "$store" --key k -- sh -c 'kill -KILL $$'
    same "$(state_of k)" released
    expect 0 "$GAVEL" once --store "$store" --key k -- sh -c 'echo "$GAVEL_EPOCH"'
    same "$output" 3
    same "$(state_of k)" "done"
}

listed() { "$GAVEL" once --store "$store" --list --json | "$JSON_GET" "$@"; }

test_all_keys_are_listed_with_what_came_of_them() {
    expect 0 "$GAVEL" store ping --store "$store" --count 1 # a group that is no key
    same "$(listed keys.#)" 0
    expect 3 "$GAVEL" once --store "$store" --id a --key job-1 -- sh -c 'exit 3'
    expect 0 "$GAVEL" once --store "$store" --id b --key job-1 --keep 10d -- true
    expect 4 "$GAVEL" once --store "$store" --id c --key other -- sh -c 'exit 4'
    same "$(listed keys.# keys.0.key keys.0.state keys.0.by keys.0.exit_code keys.0.attempts)" $'2\tjob-1\tdone\tb\t0\t2'
    same "$(listed keys.1.key keys.1.state keys.1.by keys.1.exit_code keys.1.attempts keys.1.keep_until)" $'other\tfailed\tc\t4\t1\tnull'
    same "$("$GAVEL" once --store "$store" --list --prefix oth --json | "$JSON_GET" keys.# keys.0.key)" $'1\tother'
    expect 0 "$GAVEL" once --store "$store" --list
    has "$output" "job-1"
    gated d k
    await lines attempts 1
    same "$(listed keys.1.key keys.1.state keys.1.by keys.1.exit_code)" $'k\trunning\td\tnull'
    touch "$scratch/gate"
    ended d 0
    expect 0 "$GAVEL" once --store "$store" --forget job-1
    same "$(listed keys.0.key keys.0.state)" $'job-1\tforgotten'
    expect 2 "$GAVEL" once --store "$store" --list --key k
    expect 2 "$GAVEL" once --store "$store" --prefix k --key k -- true
}

# So many groups whose names begin with this, as copies of the one that is there.
multiply() {
    "$SQL" "$store" "CREATE TEMP TABLE one AS SELECT * FROM groups WHERE name = '$1'; BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2)
        INSERT INTO groups SELECT name || printf('-%06d', i), format, epoch, version, nonce_high, nonce_low, lease_ms, since_wall_ms,
            renewed_wall_ms, held, boot_id, pid, pid_ns, start_ticks, holder, address, successor, wish_epoch, wish_force,
            wish_successor, applied_at, applied_boot_id FROM one, n; COMMIT"
}

test_more_keys_than_a_list_shows_are_not_left_out_silently() {
    expect 0 "$GAVEL" once --store "$store" --key k -- true
    "$SQL" "$store" "CREATE TEMP TABLE one AS SELECT * FROM groups; UPDATE one SET name = 'jobs'; INSERT INTO groups SELECT * FROM one"
    multiply jobs 65536 # before all keys in order of name
    same "$(listed keys.# keys.0.key has_more)" $'1\tk\tfalse'
    multiply once:k 65536
    same "$(listed keys.# has_more)" $'65536\ttrue'
    expect 0 "$GAVEL" once --store "$store" --list
    has "$output" "There are more keys than these 65536; see the others by --prefix."
    same "$("$GAVEL" once --store "$store" --list --prefix k-06553 --json | "$JSON_GET" keys.# keys.6.key has_more)" $'7\tk-065536\tfalse'
    same "$("$GAVEL" groups --store "$store" --json | "$JSON_GET" groups.# has_more)" $'65536\ttrue'
    expect 0 "$GAVEL" groups --store "$store"
    has "$output" "There are more groups than these 65536"
    expect 2 "$GAVEL" once --store "$store" --list --prefix "$(printf 'a%.0s' {1..300})"
}

listed_keys() { "$GAVEL" once --store "$store" --list --json; }
another=0
is_deleted() {
    expect 0 "$GAVEL" once --store "$store" --key "another-$((++another))" -- true
    local all
    all=$(listed_keys) && [[ $all != *'"old"'* ]]
}

test_a_record_goes_when_its_time_is_over_and_the_epoch_goes_on() {
    expect 3 "$GAVEL" once --store "$store" --key old --keep 1s -- sh -c 'exit 3'
    expect 0 "$GAVEL" once --store "$store" --key old --keep 1s -- sh -c 'echo "$GAVEL_EPOCH"'
    same "$output" 2
    expect 0 "$GAVEL" once --store "$store" --key kept -- true
    await is_deleted
    has "$(listed_keys)" '"kept"'
    expect 0 "$GAVEL" once --store "$store" --key old -- sh -c 'echo "$GAVEL_EPOCH"'
    ((output > 2)) || fail "epoch $output after 2"
}

test_who_stands_by_ends_when_the_other_has_done_it() {
    gated a k
    await lines attempts 1
    once b k sh -c 'echo again >>"$0/attempts"' "$scratch"
    await stands_by b a
    touch "$scratch/gate"
    ended a 0
    ended b 0
    has "$(cat "$scratch/b.err")" "by=a epoch=1"
    lines attempts 1 || fail "it was tried again"
}

test_who_stands_by_takes_over_from_a_failure() {
    once a k sh -c 'echo x >>"$0/attempts"; until [ -e "$0/fail" ]; do sleep 0.01; done; exit 9' "$scratch"
    await lines attempts 1
    gated b k
    await stands_by b a
    touch "$scratch/fail" "$scratch/gate"
    ended a 9
    ended b 0
    same "$(cat "$scratch/successes")" 2
}

# after_crash: b has taken over from a, alone, and its success is the one that counts.
after_crash() {
    await lines attempts 2
    touch "$scratch/gate"
    ended b 0
    same "$(cat "$scratch/successes")" 2
    same "$(state_of k)" "done"
    expect 0 "$GAVEL" once --store "$store" --id c --key k -- sh -c 'echo again >>"$0/attempts"' "$scratch"
    lines attempts 2 || fail "it was tried again"
}

test_a_killed_elector_lets_another_take_over() {
    gated a k
    await lines attempts 1
    gated b k
    await stands_by b a
    kill -KILL "${pid_of[a]}"
    ended a 137
    after_crash
}

test_a_killed_guard_lets_another_take_over() {
    gated a k
    await lines attempts 1
    gated b k
    await stands_by b a
    kill -KILL "$(child_of "${pid_of[a]}")"
    ended a 1
    after_crash
}

test_a_killed_command_lets_another_take_over() {
    gated a k
    await lines attempts 1
    gated b k
    await stands_by b a
    kill -KILL "$(child_of "$(child_of "${pid_of[a]}")")"
    ended a 137
    after_crash
}

# Elector and guard at once: nobody is left to release, so the lease decides.
test_elector_and_guard_killed_together_cost_a_lease() {
    local guard
    gated a k
    await lines attempts 1
    gated b k
    await stands_by b a
    guard=$(child_of "${pid_of[a]}")
    kill -KILL "$guard" "${pid_of[a]}"
    ended a 137
    after_crash
}

test_five_racing_for_each_key_succeed_once_for_each() {
    local key i
    for key in red green blue; do
        for i in 1 2 3 4 5; do
            once "$key-$i" "$key" sh -c 'echo "$GAVEL_EPOCH" >>"$0"' "$scratch/done.$key"
        done
    done
    for key in red green blue; do
        for i in 1 2 3 4 5; do ended "$key-$i" 0; done
        lines "done.$key" 1 || fail "$key succeeded $(wc -l <"$scratch/done.$key") times"
        same "$(state_of $key)" "done"
    done
}

# The first attempts fail on whichever host has them; the others go on until one succeeds.
test_five_racing_retry_until_one_succeeds() {
    local i code=0 zeros=0
    for i in 1 2 3 4 5; do
        once "$i" k sh -c 'echo x >>"$0/attempts"; [ "$(wc -l <"$0/attempts")" -ge 3 ] || exit 5; echo x >>"$0/successes"' "$scratch"
    done
    for i in 1 2 3 4 5; do
        await process_is_gone "${pid_of[$i]}"
        code=0
        wait "${pid_of[$i]}" || code=$?
        unset "pid_of[$i]"
        [[ $code == 0 || $code == 5 ]] || fail "$i ended with $code"
        zeros=$((zeros + (code == 0)))
    done
    lines attempts 3 || fail "$(wc -l <"$scratch/attempts") attempts"
    lines successes 1 || fail "not one success"
    same "$zeros" 3
}

test_no_wait_ends_while_another_runs_it() {
    gated a k
    await lines attempts 1
    expect 8 "$GAVEL" once --store "$store" --id b --key k --no-wait "${times[@]}" -- true
    lines attempts 1 || fail "it ran"
    touch "$scratch/gate"
    ended a 0
    expect 0 "$GAVEL" once --store "$store" --id b --key k --no-wait -- true
}

# The store cannot be written from before the command succeeds until it is given up.
test_a_success_that_cannot_be_recorded_is_told_apart() {
    run_as a "$GAVEL" once --store "$store" --id a --key k -- sh -c "$gated" "$scratch"
    await lines attempts 1
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    touch "$scratch/gate"
    ended a 4
    has "$(cat "$scratch/a.err")" "the command succeeded, but: it is unknown whether"
    kill -KILL "${pid_of[lock]}"
    ended lock 137
    expect 0 "$GAVEL" once --store "$store" --id b --key k -- sh -c "$gated" "$scratch"
    same "$(state_of k)" "done"
}

test_an_interrupted_command_is_not_a_success() {
    once a k sh -c 'trap "exit 0" TERM; echo x >>"$0/attempts"; while :; do sleep 0.01; done' "$scratch"
    await lines attempts 1
    kill -TERM "${pid_of[a]}"
    ended a 143
    same "$(state_of k)" released
}

test_a_key_that_is_forgotten_may_be_done_again_with_a_higher_epoch() {
    expect 0 "$GAVEL" once --store "$store" --key k -- true
    expect 0 "$GAVEL" once --store "$store" --key k --forget
    same "$(state_of k)" released
    expect 1 "$GAVEL" once --store "$store" --key k --forget
    has "$errors" "nothing to forget"
    expect 0 "$GAVEL" once --store "$store" --key k -- sh -c 'echo "$GAVEL_EPOCH"'
    same "$output" 2
    expect 2 "$GAVEL" once --store "$store" --key k --forget -- true
}

test_what_cannot_be_done_once_is_refused_before_anything_runs() {
    expect 2 "$GAVEL" once --store "$store" -- true
    has "$errors" "--key"
    expect 2 "$GAVEL" once --store "$store" --key k
    expect 2 "$GAVEL" once --store "$store" --key '' -- true
    expect 2 "$GAVEL" once --store "$store" --key $'a\nb' -- true
    expect 2 "$GAVEL" once --store "$store" --key "$(printf 'x%.0s' {1..251})" -- true
    has "$errors" "longer than 250 bytes"
    expect 0 "$GAVEL" once --store "$store" --key "$(printf 'x%.0s' {1..250})" -- true
    expect 4 "$GAVEL" once --store static:a --key k -- true
    expect 2 "$GAVEL" once --store "$store" --no-election --key k -- true
    expect 127 "$GAVEL" once --store "$store" --key k -- "$scratch/missing"
    touch "$scratch/plain"
    expect 126 "$GAVEL" once --store "$store" --key k -- "$scratch/plain"
}

test_a_done_group_is_shown_as_such() {
    expect 0 "$GAVEL" once --store "$store" --id a --key k -- true
    expect 3 "$GAVEL" leader --store "$store" --group once:k --wait 10s
    has "$errors" '"a" has done its work for good with epoch 1'
    expect 0 "$GAVEL" status --store "$store" --group once:k
    has "$output" "done for good"
    expect 0 "$GAVEL" status --store "$store" --all --json
    same "$("$JSON_GET" groups.0.state <<<"$output")" "done"
    expect 0 "$GAVEL" watch --store "$store" --group once:k --count 1
    has "$output" "a has done the work for good"
    expect 3 "$GAVEL" elect --store "$store" --group once:k --id b
    has "$output" '"status":"ERR_DONE"'
}

# The same line in the crontab of three hosts, whose clocks differ by seconds.
test_the_same_line_of_cron_on_three_hosts_runs_once_a_day() {
    local day host
    for day in 2026-11-14 2026-11-15; do
        for host in one two three; do
            expect 0 "$GAVEL" once --store "$store" --id "$host" --key "nightly-$day" -- \
                sh -c 'echo "$GAVEL_GROUP by $GAVEL_CANDIDATE" >>"$0/log"' "$scratch"
        done
    done
    same "$(cat "$scratch/log")" $'once:nightly-2026-11-14 by one\nonce:nightly-2026-11-15 by one'
}

run_tests "$@"
