#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Helpers of the tests of `gavel run`, after lib.sh. The command of most is
# `beat`, which writes its epoch into $scratch/beats each millisecond and holds
# a lock on it for as long as any of its processes lives (tests/run).
# shellcheck disable=SC2154 # scratch, store and pid_of are those of lib.sh
set -euo pipefail

: "${BEAT:?the command that beats}" "${BEAT_REFEREE:?the referee of its log}"

# run NAME [OPTION…] -- COMMAND…: `gavel run` as that candidate, with times
# that a busy machine can keep.
run() {
    local name=$1
    shift
    run_as "$name" "$GAVEL" run --store "$store" --id "$name" --lease 5s --call-timeout 2s --grace 1s \
        --candidate-timeout 8s "$@"
}

# run_short: the same with times for whoever has to wait for the lease.
run_short() {
    local name=$1
    shift
    run_as "$name" "$GAVEL" run --store "$store" --id "$name" --lease 2s --heartbeat 300ms --call-timeout 300ms \
        --grace 600ms --election-interval 200ms --candidate-timeout 8s --breaker-reset 300ms "$@"
}

# logged NAME TEXT: whether its log, on stderr, has a line with that text.
logged() { grep -qF -- "$2" "$scratch/$1.err"; }

printed() { grep -qF -- "$2" "$scratch/$1.out"; }

# children_of PID: the processes below it, direct ones only.
children_of() { cat "/proc/$1"/task/*/children 2>/dev/null; }

# guard_of NAME: the one child of its elector.
guard_of() {
    local pids
    read -r -a pids <<<"$(children_of "${pid_of[$1]}")"
    ((${#pids[@]} == 1)) || fail "$1 has not one child but: ${pids[*]}"
    echo "${pids[0]}"
}

# command_of NAME: the first child of its guard.
command_of() {
    local pids
    read -r -a pids <<<"$(children_of "$(guard_of "$1")")"
    ((${#pids[@]} > 0)) || fail "$1 runs nothing"
    echo "${pids[0]}"
}

# Whether anything has beaten, how many epochs have, and whether nobody is left who could.
beats() { [[ -s $scratch/beats ]]; }
epochs() { "$BEAT_REFEREE" "$scratch/beats" | sed -n 's/^# [0-9]* beats in \([0-9]*\) epochs$/\1/p'; }
has_epochs() { (($(epochs) >= $1)); }
all_gone() { flock --nonblock --exclusive "$scratch/beats" true; }

# Nothing of a former epoch was done after a newer one had begun.
judged_well() { "$BEAT_REFEREE" "$scratch/beats" >"$scratch/referee.err" || fail "$(cat "$scratch/referee.err")"; }

is_stopped() { [[ $(cut -d' ' -f3 "/proc/$1/stat") == T ]]; }
state_is() { [[ $("$GAVEL" status --store "$store" --json | "$JSON_GET" state) == "$1" ]]; }
