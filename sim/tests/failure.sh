#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A failure is told so that somebody can work with it: exit code 1, the seed,
# the promise, a command that replays it, and one that shortens it and works.
#
#     failure.sh gavel-sim candidate|raft
set -euo pipefail

sim=$1
kind=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect()
{
    if ! grep -qE -- "$2" "$1"; then
        echo "expected \"$2\" in:" >&2
        cat "$1" >&2
        exit 1
    fi
}

case $kind in
candidate) bug=early-takeover breaks='(S4|L2)' few='--candidates 1' ;;
raft) bug=lease-from-ack breaks='(lease-from-sends|leases-disjoint)' few='--nodes 0' ;;
*) exit 2 ;;
esac

code=0
"$sim" "$kind" --seeds 50 --planted "$bug" >"$folder/many" || code=$?
[ "$code" -eq 1 ]
expect "$folder/many" "^FAILED: seed [0-9]+ breaks $breaks"
expect "$folder/many" 'commit [^ ]+'
expect "$folder/many" 'VIOLATION of'

replay=$(sed -n 's/^ *replay: *gavel-sim //p' "$folder/many" | head -n 1)
shorten=$(sed -n 's/^ *shorten: *gavel-sim //p' "$folder/many" | head -n 1)
[ -n "$replay" ]
for words in "$replay" "$shorten"; do
    code=0
    # shellcheck disable=SC2086 # the words of a command line
    "$sim" $words >"$folder/again" || code=$?
    [ "$code" -eq 1 ]
    expect "$folder/again" 'VIOLATION of'
done

# What --minimize prints fails on its own, too.
shorter=$(sed -n 's/^ *replay: *gavel-sim //p' "$folder/again" | head -n 1)
code=0
# shellcheck disable=SC2086 # the words of a command line
"$sim" $shorter >"$folder/shorter" || code=$?
[ "$code" -eq 1 ]

for wrong in "--seeds 0" "--seed x" "--planted nothing" "--without nothing" "$few" "--nonsense" "word"; do
    code=0
    # shellcheck disable=SC2086 # the words of a command line
    "$sim" "$kind" --seed 1 $wrong >/dev/null 2>"$folder/message" || code=$?
    if [ "$code" -ne 2 ] || [ ! -s "$folder/message" ]; then
        echo "gavel-sim $wrong: exit code $code" >&2
        exit 1
    fi
done
echo "a failure is told, replayed and shortened"
