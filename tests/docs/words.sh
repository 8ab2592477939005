#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The documents use the words of docs/GLOSSARY.md: each word stands there once,
# each directory of the code is explained in docs/ARCHITECTURE.md, and *quorum*
# means a majority.
#
#     words.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"
cd "$root"

twice=$(sed -n 's/^| \([^|]*\) |.*/\1/p' docs/GLOSSARY.md | grep -vx -e word -e '---' | tr ',' '\n' | sed 's/^ *//' | sort | uniq -d)
[ -z "$twice" ] || fail "docs/GLOSSARY.md has twice: $twice"

# A line for each directory that has code, two levels deep: as `src/x/`, or as `y` in the line of its parent.
while read -r directory; do
    parent=${directory%/*} name=${directory##*/}
    grep -qF "\`$directory/\`" docs/ARCHITECTURE.md || [[ $(grep -F "\`$parent/\`" docs/ARCHITECTURE.md) == *"\`$name\`"* ]] ||
        echo "docs/ARCHITECTURE.md does not say what is in $directory"
done < <(find src sim bench -mindepth 1 -maxdepth 2 -name '*.[ch]' -printf '%h\n' | sort -u; find src -mindepth 3 -maxdepth 3 -name '*.[ch]' -printf '%h\n' | sort -u) >"$scratch/found"
[ ! -s "$scratch/found" ] || fail "$(cat "$scratch/found")"

# Names of commands, options and tests are no words: they stand between backticks, in a block, or in a link.
named='`[^`]*`|\]\([^)]*\)|^ {4}.*'
for document in README.md CONTRIBUTING.md SECURITY.md docs/*.md bench/README.md; do
    [ "$document" != docs/GLOSSARY.md ] || continue
    awk '/^```/ { inside = !inside; print ""; next } { print inside ? "" : $0 }' "$document" | sed -E "s/$named//g" |
        grep -nwiE 'quorums?' | sed "s|^|$document:|" || true
done >"$scratch/found"
[ ! -s "$scratch/found" ] || fail "quorum means a majority; say cluster for the nodes: $(cat "$scratch/found")"
echo "good: words"
