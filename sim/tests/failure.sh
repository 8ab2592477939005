#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A failure is told so that somebody can work with it: exit code 1, the seed,
# the promise, a command that replays it, and one that shortens it and works.
#
#     failure.sh gavel-sim candidate|raft|session
set -euo pipefail

sim=$1
kind=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect()
{
    if ! grep -qE -- "$2" "$1"; then
        echo "expected \"$2\" in:" >&2
        cat "$1" >&2
        exit 1
    fi
}

case $kind in
candidate) bug=early-takeover breaks='(S4|L2)' few='--candidates 1' several=2 ;;
raft) bug=lease-from-ack breaks='(lease-from-sends|leases-disjoint)' few='--nodes 0' several=20 ;;
session) bug=silence-from-before breaks='(deadline-true|S4|L2)' few='--nodes 0' several=2 ;;
*) exit 2 ;;
esac

code=0
"$sim" "$kind" --seeds 50 --planted "$bug" >"$scratch/many" || code=$?
[ "$code" -eq 1 ]
expect "$scratch/many" "^FAILED: seed [0-9]+ breaks $breaks"
expect "$scratch/many" 'commit [^ ]+'
expect "$scratch/many" 'VIOLATION of'
# Every seed that failed is named, however many there are.
failed=$(sed -nE 's/^50 seeds from [0-9]+: ([0-9]+) failed;.*/\1/p' "$scratch/many")
[ "$(grep -cE '^seed [0-9]+: [a-zA-Z0-9-]+$' "$scratch/many")" -eq "$failed" ]
[ "$failed" -gt "$several" ]

replay=$(sed -n 's/^ *replay: *gavel-sim //p' "$scratch/many" | sed -n 1p)
shorten=$(sed -n 's/^ *shorten: *gavel-sim //p' "$scratch/many" | sed -n 1p)
[ -n "$replay" ]
for words in "$replay" "$shorten"; do
    code=0
    # shellcheck disable=SC2086 # the words of a command line
    "$sim" $words >"$scratch/again" || code=$?
    [ "$code" -eq 1 ]
    expect "$scratch/again" 'VIOLATION of'
done

# What --minimize prints fails on its own, too.
shorter=$(sed -n 's/^ *replay: *gavel-sim //p' "$scratch/again" | sed -n 1p)
code=0
# shellcheck disable=SC2086 # the words of a command line
"$sim" $shorter >"$scratch/shorter" || code=$?
[ "$code" -eq 1 ]

# Wrong words on the command line: exit code 2, and a message that helps.
refuses()
{
    local message=$1
    shift
    code=0
    "$sim" "$kind" "$@" >/dev/null 2>"$scratch/message" || code=$?
    if [ "$code" -ne 2 ]; then
        echo "gavel-sim $kind $*: exit code $code" >&2
        exit 1
    fi
    expect "$scratch/message" "$message"
}

# shellcheck disable=SC2086 # the words of a command line
refuses "^gavel-sim $kind: --[a-z]+ takes a whole number from [0-9]+ to 9, not" --seed 1 $few
refuses "^gavel-sim $kind: --seeds takes a whole number from 1 to [0-9]+, not \"0\"" --seeds 0
refuses "^gavel-sim $kind: --seed takes .*\"x\"; see gavel-sim $kind --help" --seed x
refuses "\"nothing\"; see gavel-sim $kind --list-planted" --seed 1 --planted nothing
refuses "\"nothing\"; see gavel-sim $kind --list-faults" --seed 1 --without nothing
refuses "^gavel-sim $kind: .*--nonsense" --seed 1 --nonsense
refuses "^see gavel-sim $kind --help" --seed 1 --nonsense
refuses '"word"' --seed 1 word
refuses 'only one of these at a time: --seed, --seeds;' --seeds 5 --seed 1
refuses 'only one of these at a time: .*--planted-all, --bench;' --planted-all --bench
refuses '--seed is given twice' --seed 1 --seed 2
refuses '--trace means something only with --seed;' --seeds 5 --trace
refuses '--from means something only with --seeds,' --seed 5 --from 3
refuses '--trace and --minimize do not go together' --seed 5 --trace --minimize
refuses "^gavel-sim $kind: say what to do: one of --seed, --seeds" --jobs 1
expect "$scratch/message" '^usage: gavel-sim'
for word in -h --help; do
    "$sim" "$kind" "$word" >"$scratch/message"
    expect "$scratch/message" '^usage: gavel-sim'
done

# What one simulator alone measures, the others do not know.
if [ "$kind" != raft ]; then
    refuses "^gavel-sim $kind: .*--failover" --failover
fi
# A fail-over that does not happen has no time, and can be replayed.
if [ "$kind" = raft ]; then
    refuses '--trials means something only with --failover;' --seed 1 --trials 2
    refuses 'only one of these at a time: --soak, --failover;' --failover --soak
    code=0
    "$sim" raft --failover --trials 2 --planted lease-from-ack >"$scratch/trials" || code=$?
    [ "$code" -eq 1 ]
    expect "$scratch/trials" '^FAILED: seed [0-9]+ \('
    expect "$scratch/trials" '^crash .* -  '
    why=$(grep -m 1 '^FAILED: seed' "$scratch/trials")
    replay=$(sed -n 's/^ *replay: *gavel-sim //p' "$scratch/trials" | sed -n 1p)
    code=0
    # shellcheck disable=SC2086 # the words of a command line
    "$sim" $replay >"$scratch/again" || code=$?
    [ "$code" -eq 1 ]
    grep -qxF "$why" "$scratch/again"
fi
echo "a failure is told, replayed and shortened"
