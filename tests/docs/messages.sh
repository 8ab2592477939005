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
find src include -name '*.[ch]' -exec cat {} + | tr '\n' ' ' | sed -E 's/" +"//g' >"$folder/source"

# quoted HEADING COLUMN: what stands between backticks in that column of the first table below the heading, cut at each ellipsis.
quoted()
{
    awk -F '|' -v heading="$1" -v column="$2" '
        $0 == heading { inside = 1; next }
        inside && /^#/ { exit }
        inside && /^\|/ { print $column }' docs/OPERATIONS.md | grep -oE '`[^`]+`' | tr -d '`' | sed 's/…/\n/g' |
        sed -E 's/^ +| +$//g' | grep .
}

{ quoted '### Logs' 2; quoted '## When the store fails' 3; quoted '## Log lines' 2; } >"$folder/quoted"
(($(wc -l <"$folder/quoted") >= 60)) || fail "only these messages were found: $(cat "$folder/quoted")"
while IFS= read -r message; do
    case $message in NOSPACE) continue ;; esac # etcd's own
    grep -qF -- "$message" "$folder/source" || echo "$message"
done <"$folder/quoted" >"$folder/missing"
[ ! -s "$folder/missing" ] || fail "docs/OPERATIONS.md explains what no program prints: $(cat "$folder/missing")"
echo "good: $(wc -l <"$folder/quoted") messages"
