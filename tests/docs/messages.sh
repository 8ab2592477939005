#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The log lines and errors that docs/OPERATIONS.md explains are ones that the
# programs print.
#
#     messages.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"
cd "$root"

# All string literals, with those that are cut over several lines put together.
find src include -name '*.[ch]' -exec cat {} + | tr '\n' ' ' | sed -E 's/" +"//g' >"$scratch/source"

# quoted HEADING COLUMN: what stands between backticks in that column of the first table below the heading, cut at each ellipsis.
quoted()
{
    awk -F '|' -v heading="$1" -v column="$2" '
        $0 == heading { inside = 1; next }
        inside && /^#/ { exit }
        inside && /^\|/ { print $column }' docs/OPERATIONS.md | grep -oE '`[^`]+`' | tr -d '`' | sed 's/…/\n/g' |
        sed -E 's/^ +| +$//g' | grep .
}

{ quoted '### Logs' 2; quoted '## When the store fails' 3; quoted '## Log lines' 2; } >"$scratch/quoted"
(($(wc -l <"$scratch/quoted") >= 60)) || fail "only these messages were found: $(cat "$scratch/quoted")"
while IFS= read -r message; do
    case $message in NOSPACE) continue ;; esac # etcd's own
    grep -qF -- "$message" "$scratch/source" || echo "$message"
done <"$scratch/quoted" >"$scratch/missing"
[ ! -s "$scratch/missing" ] || fail "docs/OPERATIONS.md explains what no program prints: $(cat "$scratch/missing")"
echo "good: $(wc -l <"$scratch/quoted") messages"
