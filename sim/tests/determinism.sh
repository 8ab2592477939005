#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The same seed gives the same run to the byte; another seed another one.
#
#     determinism.sh gavel-sim candidate|raft|session
set -euo pipefail

sim=$1
kind=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for seed in $(seq 1 25); do
    "$sim" "$kind" --seed "$seed" --trace >"$scratch/first"
    "$sim" "$kind" --seed "$seed" --trace >"$scratch/second"
    cmp "$scratch/first" "$scratch/second"
    if [ "$seed" -gt 1 ] && cmp -s "$scratch/first" "$scratch/previous"; then
        echo "seeds $((seed - 1)) and $seed give the same run: the seed is not used" >&2
        exit 1
    fi
    mv "$scratch/first" "$scratch/previous"
done
echo "25 seeds, each twice: the same to the byte"
