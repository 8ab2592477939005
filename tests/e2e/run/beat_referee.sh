#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# That the referee of tests/run would find what `gavel run` must not do: the
# same story is played by supervisors that hold the mandate and run a command,
# and no more, as scripts around a lock do.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

# careless NAME WHAT [OPTION…]: takes part by `gavel elect`, and starts the command when it leads. When the elector is
# gone it leaves the command behind, or kills the command itself and nothing below it.
careless() {
    local name=$1 what=$2
    shift 2
    run_as "$name" bash -c '
        what=$1 name=$2 store=$3 scratch=$4
        shift 4
        coproc "$GAVEL" elect --store "$store" --id "$name" --lease 5s --call-timeout 2s --candidate-timeout 8s
        echo "$COPROC_PID" >"$scratch/$name.elector"
        while read -r line; do
            case $line in
            *\"became_leader\"*)
                GAVEL_EPOCH=$("$JSON_GET" epoch <<<"$line") "$BEAT" "$scratch/beats" "$@" &
                command=$!
                echo "$command" >"$scratch/$name.command"
                ;;
            esac
        done <&"${COPROC[0]}"
        [[ $what == leaves ]] || kill -KILL "$command"
        echo over
        wait' sh "$what" "$name" "$store" "$scratch" "$@"
}

# The processes of the two, and what they left, by their numbers.
end_careless() {
    local pids pid
    mapfile -t pids < <(cat "$scratch"/*.elector "$scratch"/*.command "$scratch"/*.below | tr ' ' '\n')
    for pid in "${pids[@]}"; do
        [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
    done
    await all_gone
}

# The elector of the first is killed, so the second takes over.
play() {
    careless a "$@"
    await beats
    careless b "$@"
    await has_candidates 2
    children_of "$(cat "$scratch/a.command")" >"$scratch/a.below"
    kill -KILL "$(cat "$scratch/a.elector")"
    await has_epochs 2
    children_of "$(cat "$scratch/b.command")" >"$scratch/b.below"
}

found() {
    local code=0
    "$BEAT_REFEREE" "$scratch/beats" >"$scratch/referee.out" || code=$?
    ((code == 1)) && grep -q "$1" "$scratch/referee.out"
}

test_a_command_that_is_left_behind_is_found() {
    play leaves
    await found 'a beat of a former epoch after a newer one began'
    end_careless
}

test_a_grandchild_that_is_left_behind_is_found() {
    play kills --sessions 1
    await found 'a beat of a former epoch after a newer one began'
    end_careless
}

test_the_same_story_with_gavel_run_has_no_fault() {
    run a -- "$BEAT" "$scratch/beats" --sessions 1
    await beats
    run b -- "$BEAT" "$scratch/beats" --sessions 1
    await has_candidates 2
    kill -KILL "${pid_of[a]}"
    ended a 137
    await has_epochs 2
    kill -TERM "${pid_of[b]}"
    ended b 143
    judged_well
}

test_an_empty_log_is_no_proof() {
    : >"$scratch/beats"
    expect 2 "$BEAT_REFEREE" "$scratch/beats"
    expect 2 "$BEAT_REFEREE" "$scratch/missing"
}

run_tests "$@"
