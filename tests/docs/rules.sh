#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The alerts of docs/OPERATIONS.md are rules that Prometheus takes, fire when
# they should, and use only metrics that a node has.
#
#     rules.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"
rules=$root/docs/examples/gaveld.rules.yaml

command -v promtool >/dev/null || fail "promtool is missing; run tools/setup test"
promtool check rules "$rules" >"$scratch/said" || fail "promtool does not take the rules: $(cat "$scratch/said")"

count=0
while read -r metric; do
    grep -qE "\"$metric\"|\"${metric#gavel_}\"|$metric " "$root"/src/daemon/api/metrics*.c ||
        fail "the rules use $metric, which a node does not have"
    count=$((count + 1))
done < <(grep -oE 'gavel_[a-z_]+' "$rules" | sort -u)
((count >= 5)) || fail "only $count metrics were found in the rules"
sed 's/^  - name:/  - nam:/' "$rules" >"$scratch/bad.yaml"
! promtool check rules "$scratch/bad.yaml" >/dev/null 2>&1 || fail "a mistake in the rules is not told"

promtool test rules "$(dirname "$0")/rules_test.yaml" >"$scratch/said" 2>&1 || fail "an alert does not do what it says: $(cat "$scratch/said")"
echo "good: $count metrics in the alerts"
