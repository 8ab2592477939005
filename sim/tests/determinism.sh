#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The same seed gives the same run to the byte; another seed another one.
#
#     determinism.sh gavel-sim candidate|raft|session
set -euo pipefail

sim=$1
kind=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for seed in $(seq 1 25); do
    "$sim" "$kind" --seed "$seed" --trace >"$folder/first"
    "$sim" "$kind" --seed "$seed" --trace >"$folder/second"
    cmp "$folder/first" "$folder/second"
    if [ "$seed" -gt 1 ] && cmp -s "$folder/first" "$folder/previous"; then
        echo "seeds $((seed - 1)) and $seed give the same run: the seed is not used" >&2
        exit 1
    fi
    mv "$folder/first" "$folder/previous"
done
echo "25 seeds, each twice: the same to the byte"
