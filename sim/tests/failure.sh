#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A failure is told so that somebody can work with it: exit code 1, the seed,
# the promise, a command that replays it, and one that shortens it and works.
set -euo pipefail

sim=$1
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

code=0
"$sim" --seeds 50 --planted early-takeover >"$folder/many" || code=$?
[ "$code" -eq 1 ]
expect "$folder/many" '^FAILED: seed [0-9]+ breaks (S4|L2)'
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

for wrong in "--seeds 0" "--seed x" "--planted nothing" "--without nothing" "--candidates 1" "--nonsense" "word"; do
    code=0
    # shellcheck disable=SC2086 # the words of a command line
    "$sim" --seed 1 $wrong >/dev/null 2>"$folder/message" || code=$?
    if [ "$code" -ne 2 ] || [ ! -s "$folder/message" ]; then
        echo "gavel-sim $wrong: exit code $code" >&2
        exit 1
    fi
done
echo "a failure is told, replayed and shortened"
