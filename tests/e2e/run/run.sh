#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `gavel run`: the command has what a command has when no gavel is there, and
# what its options say happens.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

# once COMMAND…: alone, to its end.
alone() { timeout "$limit_s" "$GAVEL" run --store "$store" --id a "$@"; }

test_exit_code_of_the_command_is_passed_on() {
    local code
    for code in 0 1 3 7 126 255; do
        expect $code alone -- sh -c "exit $code"
        state_is released || fail "the mandate was not released"
    done
}

# On one processor the guard may well be faster than the thread that has told it to run the command.
test_that_it_leads_is_logged_before_that_the_command_runs() {
    local cpu i lines
    cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
    for i in {1..20}; do
        expect 0 taskset -c "$cpu" timeout "$limit_s" "$GAVEL" run --store "$store" --group "g$i" --id a -- true
        lines=$(grep -oE 'msg=leads|msg="runs the command"' <<<"$errors" | tr '\n' ' ')
        has_not "$lines" 'msg="runs the command" msg=leads'
        has "$lines" "msg=leads"
    done
}

test_death_by_a_signal_is_passed_on() {
    expect 137 alone -- sh -c 'kill -KILL $$'
    expect 143 alone -- sh -c 'kill -TERM $$'
    expect 134 alone -- sh -c 'ulimit -c 0; kill -ABRT $$'
    state_is released || fail "the mandate was not released"
}

test_environment_of_the_command() {
    export MINE='a b' NOTIFY_SOCKET=/nowhere LISTEN_FDS=1
    expect 0 alone --group jobs -- sh -c \
        'echo "$GAVEL_GROUP $GAVEL_EPOCH $GAVEL_CANDIDATE $GAVEL_STORE $MINE ${NOTIFY_SOCKET-none} ${LISTEN_FDS-none}"'
    same "$output" "jobs 1 a sqlite:$store a b none none"
    expect 0 alone --group jobs -- sh -c 'echo "$GAVEL_EPOCH"'
    same "$output" 2
}

test_arguments_reach_the_command_as_they_are() {
    expect 0 alone -- printf '%s|' --store '' 'a b' -- '*' '$x'
    same "$output" '--store||a b|--|*|$x|'
}

test_input_and_output_are_untouched() {
    head -c 300000 /dev/urandom >"$scratch/in"
    alone -- cat <"$scratch/in" >"$scratch/out" 2>"$scratch/a.err"
    cmp "$scratch/in" "$scratch/out" || fail "what came out is not what went in"
    expect 0 alone --log-level error -- sh -c 'echo to stdout; echo to stderr >&2'
    same "$output" "to stdout"
    same "$errors" "to stderr"
}

test_command_has_no_descriptors_of_gavel() {
    expect 0 alone -- sh -c 'ls /proc/self/fd | wc -l'
    same "$output" "$(sh -c 'ls /proc/self/fd | wc -l' </dev/null)"
}

# What was ignored on purpose stays so; what was left behind by accident does not.
test_command_has_the_signals_that_somebody_meant() {
    run_as a env --default-signal --ignore-signal=HUP,INT,QUIT,CHLD --block-signal=TERM,INT,CHLD \
        "$GAVEL" run --store "$store" --id a -- grep -E '^Sig(Blk|Ign)' /proc/self/status
    ended a 0
    # Signals 32 and 33 are the C library's own, and env(1) leaves them as it got them.
    same "$(awk '{ print $2 }' "$scratch/a.out" | while read -r mask; do printf '%x ' $((0x$mask & 0x7fffffff)); done)" '0 7 '
}

# A job in the background has SIGINT ignored; a command that is to be stopped by it is stopped all the same.
test_term_signal_reaches_a_command_that_inherits_it_ignored() {
    run_as a env --ignore-signal=INT,HUP "$GAVEL" run --store "$store" --id a --lease 60s --grace 30s --candidate-timeout 60s \
        --term-signal INT -- sh -c 'echo started; exec sleep 60'
    await printed a started
    kill -TERM "${pid_of[a]}"
    ended a 130
}

# Without SIGCHLD wait(2) tells nothing, and a signal that is blocked comes never.
test_signals_left_behind_by_a_careless_parent_change_nothing() {
    run_as a env --ignore-signal=CHLD --block-signal "$GAVEL" run --store "$store" --id a --healthy true -- sh -c 'exit 9'
    ended a 9
    run_as b env --ignore-signal=CHLD --block-signal "$GAVEL" run --store "$store" --id b -- sh -c "$listen"
    await printed b listening
    kill -TERM "${pid_of[b]}"
    ended b 9
    printed b ending || fail "it was not asked to end"
}

test_command_runs_only_while_leading() {
    run a -- "$BEAT" "$scratch/beats"
    await beats
    run b -- sh -c 'echo started; exec sleep 60'
    await has_candidates 2
    [[ ! -s $scratch/b.out ]] || fail "the standby's command runs"
    kill -TERM "${pid_of[a]}"
    ended a 143
    await printed b started
    all_gone || fail "something of a is left"
}

# A program that tells which signals it gets and ends by the second TERM only.
listen='for s in TERM INT HUP USR1 USR2; do trap "echo got $s" $s; done; trap "echo ending; exit 9" TERM
    echo listening; while :; do sleep 0.01; done'

test_signals_are_passed_to_the_command() {
    local signal
    run_as a env --default-signal=INT,HUP,USR1,USR2 "$GAVEL" run --store "$store" --id a -- sh -c "$listen"
    await printed a listening
    for signal in HUP USR1 USR2; do
        kill -"$signal" "${pid_of[a]}"
        await printed a "got $signal"
    done
    kill -TERM "${pid_of[a]}"
    ended a 9
    printed a ending || fail "it was not asked to end"
    state_is released || fail "the mandate was not released"
}

test_sigint_stops_in_order() {
    run_as a env --default-signal=INT "$GAVEL" run --store "$store" --id a -- sh -c "$listen"
    await printed a listening
    kill -INT "${pid_of[a]}"
    ended a 9
    printed a ending || fail "it was not asked to end"
}

test_term_signal_can_be_chosen() {
    run a --term-signal USR2 -- sh -c 'trap "echo bye; exit 4" USR2; echo listening; while :; do sleep 0.01; done'
    await printed a listening
    kill -TERM "${pid_of[a]}"
    ended a 4
    printed a bye || fail "it had another signal"
    expect 2 "$GAVEL" run --store "$store" --term-signal NONSENSE -- true
    has "$errors" "NONSENSE"
}

test_signals_of_a_standby() {
    run a -- "$BEAT" "$scratch/beats"
    await beats
    run b -- sh -c 'echo started'
    await has_candidates 2
    kill -USR1 "${pid_of[b]}" # there is nobody to pass it to
    kill -HUP "${pid_of[b]}"
    kill -TERM "${pid_of[b]}"
    ended b 0
    leads a || fail "a does not lead any more"
}

test_second_signal_ends_the_command_at_once() {
    run a --lease 120s --grace 60s --candidate-timeout 120s -- "$BEAT" "$scratch/beats" --ignore-term
    await beats
    kill -TERM "${pid_of[a]}"
    kill_again() { kill -TERM "${pid_of[a]}" || true; process_is_gone "${pid_of[a]}"; }
    await kill_again # the first few may come too soon to be another wish
    ended a 137
    all_gone || fail "something is left"
    state_is released || fail "the mandate was not released"
}

test_on_exit_resign_lets_another_lead() {
    run a --on-exit resign -- sh -c 'echo "a $GAVEL_EPOCH" >>"$0/story"; exit 3' "$scratch"
    await grep -q 'a 1' "$scratch/story"
    run b -- sh -c 'echo "b $GAVEL_EPOCH" >>"$0/story"; exec sleep 60' "$scratch"
    await grep -q b "$scratch/story"
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    leads b || fail "b does not lead"
}

test_on_exit_restart_keeps_the_epoch() {
    run a --on-exit restart -- sh -c 'echo "$GAVEL_EPOCH $$" >>"$0/story"; [ "$(wc -l <"$0/story")" -gt 2 ] &&
        exec sleep 60; exit 1' "$scratch"
    three() { (($(wc -l <"$scratch/story") == 3)); }
    await three
    same "$(cut -d' ' -f1 "$scratch/story" | sort -u)" 1
    same "$(cut -d' ' -f2 "$scratch/story" | sort -u | wc -l)" 3
    leads a || fail "a does not lead"
}

test_too_many_restarts_resign_and_cool_down() {
    run a --on-exit restart --restart-limit 2 --restart-window 60s --cool-down 60s -- \
        sh -c 'echo a >>"$0/story"; exit 1' "$scratch"
    await grep -q a "$scratch/story"
    run b -- sh -c 'echo b >>"$0/story"; exec sleep 60' "$scratch"
    await grep -q b "$scratch/story"
    same "$(grep -c a "$scratch/story")" 3 # the first one and two restarts
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    kill -KILL "${pid_of[b]}"
    ended b 137
    await nobody_leads # a cools down
    kill -TERM "${pid_of[a]}"
    ended a 0 # it ran nothing
}

test_after_cooling_down_it_leads_again() {
    run a --on-exit restart --restart-limit 1 --restart-window 60s --cool-down 300ms -- \
        sh -c 'echo "$GAVEL_EPOCH" >>"$0/story"; exit 1' "$scratch"
    await grep -q 3 "$scratch/story" # twice each epoch
    same "$(grep -c 1 "$scratch/story")" 2
}

test_hooks_run_around_the_command() {
    cd "$scratch"
    expect 5 alone --on-elected 'echo "elected $GAVEL_EPOCH" >>story' --on-demoted 'echo "demoted $GAVEL_EPOCH" >>story' \
        -- sh -c 'echo command >>story; exit 5'
    same "$(cat story)" "elected 1"$'\n'"command"$'\n'"demoted 1"
}

test_hook_that_fails_keeps_the_command_from_starting() {
    cd "$scratch"
    run a --cool-down 60s --on-elected 'echo hook >>story; exit 3' -- sh -c 'echo started'
    await test -s story
    run b -- sh -c 'echo started; exec sleep 60'
    await printed b started
    [[ ! -s $scratch/a.out ]] || fail "the command was started"
    same "$(wc -l <story)" 1
}

test_hook_that_hangs_has_a_time_limit() {
    run a --cool-down 60s --hook-timeout 200ms --on-elected "exec '$BEAT' '$scratch/beats' --ignore-term --sessions 1" \
        -- sh -c 'echo started'
    await beats
    await all_gone
    run b -- sh -c 'echo started; exec sleep 60'
    await printed b started
    [[ ! -s $scratch/a.out ]] || fail "the command was started"
}

test_demoted_hook_that_hangs_does_not_outlive_the_mandate() {
    run a --hook-timeout 60s --on-demoted "exec '$BEAT' '$scratch/beats' --ignore-term" -- sh -c 'echo started; exec sleep 60'
    await printed a started
    run b -- sh -c 'echo started; exec sleep 60'
    await has_candidates 2
    kill -TERM "${pid_of[a]}"
    await beats
    await printed b started
    all_gone || fail "the hook still runs"
    ended a 143
}

test_unhealthy_candidate_does_not_lead_and_a_leader_hands_over() {
    touch "$scratch/ok"
    run a --healthy "test -e $scratch/ok" --healthy-every 100ms -- "$BEAT" "$scratch/beats"
    await beats
    run b --healthy "test -e $scratch/never" --healthy-every 100ms -- sh -c 'echo started'
    await logged b unhealthy
    run c -- sh -c 'echo started; exec sleep 60'
    await has_candidates 3
    rm "$scratch/ok"
    await printed c started
    all_gone || fail "the command of a is left"
    logged a unhealthy || fail "a does not say why"
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    [[ ! -s $scratch/b.out ]] || fail "b was never healthy and led"
    touch "$scratch/ok"
    await logged a '=healthy'
    kill -KILL "${pid_of[c]}"
    ended c 137
    await leads a
}

test_a_health_check_gets_no_passwords_of_stores() {
    export GAVEL_MYSQL_PASSWORD=s3cret-1 GAVEL_ETCD_PASSWORD=s3cret-2 ANOTHER=passed-on
    run a --healthy "env >$scratch/env.new; mv $scratch/env.new $scratch/env" --healthy-every 100ms -- sleep 1000
    await test -e "$scratch/env"
    has_not "$(cat "$scratch/env")" s3cret
    has "$(cat "$scratch/env")" ANOTHER=passed-on
}

test_health_check_that_hangs_is_unhealthy() {
    run a --healthy 'exec sleep 60' --healthy-every 100ms --healthy-timeout 200ms -- sh -c 'echo started'
    await logged a unhealthy
    nobody_leads || fail "it leads"
    kill -TERM "${pid_of[a]}"
    ended a 0
    [[ ! -s $scratch/a.out ]] || fail "the command was started"
}

test_killed_elector_kills_the_command_at_once() {
    run a -- sh -c 'trap "echo got TERM; exit" TERM; echo listening; while :; do sleep 0.01; done'
    await printed a listening
    kill -KILL "${pid_of[a]}"
    ended a 137
    await state_is released
    printed a 'got TERM' && fail "it had time"
    true
}

test_orphan_grace_asks_first() {
    run a --orphan-grace 500ms -- sh -c 'trap "echo got TERM; exit" TERM; echo listening; while :; do sleep 0.01; done'
    await printed a listening
    kill -KILL "${pid_of[a]}"
    ended a 137
    await printed a 'got TERM'
    await state_is released
}

test_orphan_grace_does_not_wait_for_who_ignores_it() {
    run a --orphan-grace 300ms -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1 --daemon
    await beats
    kill -KILL "${pid_of[a]}"
    ended a 137
    await state_is released
    all_gone || fail "it was released before all were dead"
}

test_prefix_tells_whose_line_it_is() {
    expect 0 alone --log-level error --prefix -- sh -c 'echo one; echo two >&2; printf "no end"'
    has "$output" "sh"
    same "$(grep -c . <<<"$output")" 2
    grep -qE 'sh.*one$' <<<"$output" || fail "no such line: $output"
    grep -qE 'sh.*no end$' <<<"$output" || fail "no such line: $output"
    grep -qE 'sh.*two$' <<<"$errors" || fail "no such line: $errors"
}

# The command goes on with the epoch it was started with, and its deadline is that of the newest.
test_maximum_mandate_leaves_the_command_alone() {
    local command
    run_short a --max-mandate 2500ms -- "$BEAT" "$scratch/beats" --sessions 1 --ignore-term
    await beats
    command=$(command_of a)
    run_short b -- "$BEAT" "$scratch/beats"
    await logged a 'epoch=3'
    same "$(command_of a)" "$command"
    kill -STOP "${pid_of[a]}"
    await has_epochs 2
    process_is_gone "$command" || fail "b leads, and the command of a still runs"
    judged_well
    kill -CONT "${pid_of[a]}"
}

test_single_instance_runs_at_once() {
    expect 3 alone --no-election -- sh -c 'echo "$GAVEL_EPOCH"; exit 3'
    same "$output" 0
    [[ ! -e $store ]] || fail "it used the store"
}

test_cgroup_holds_the_tree() {
    local code=0
    "$GAVEL" run --store "$store" --id probe --contain cgroup -- true >"$scratch/probe.out" 2>"$scratch/probe.err" || code=$?
    if ((code)); then
        logged probe cgroup || fail "exit code $code, and it does not say why"
        logged probe walk || fail "it does not say what to do"
        skip "no cgroup can be made here: $(tail -n 1 "$scratch/probe.err")"
    fi
    run a --contain cgroup -- "$BEAT" "$scratch/beats" --ignore-term --sessions 2 --daemon --comet
    await beats
    grep -q gavel "/proc/$(command_of a)/cgroup" || fail "the command is in no cgroup of its own"
    kill -TERM "${pid_of[a]}"
    ended a 137
    all_gone || fail "something is left"
}

run_tests "$@"
