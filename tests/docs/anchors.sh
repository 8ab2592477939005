#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A link of a document to a heading leads to a heading. (tools/tidy checks that
# the file is there.) And the README of a directory names files that exist.
#
#     anchors.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"

# check FILE…: prints the links that lead nowhere. Headings become anchors as on the usual hosting pages.
check()
{
    awk '
        function anchor(text) {
            text = tolower(text)
            gsub(/[^a-z0-9_ -]/, "", text)
            gsub(/ /, "-", text)
            return text
        }
        function normal(path) {
            while (sub(/[^\/]+\/\.\.\//, "", path)) continue
            return path
        }
        FNR == 1 { inside = 0; directory = FILENAME; if (!sub(/[^\/]*$/, "", directory)) directory = "" }
        /^```/ { inside = !inside }
        inside { next }
        /^#+ / { heading = $0; sub(/^#+ /, "", heading); known[FILENAME "#" anchor(heading)] = 1 }
        {
            rest = $0
            while (match(rest, /\]\([^)# ]*#[^) ]+\)/)) {
                link = substr(rest, RSTART + 2, RLENGTH - 3)
                rest = substr(rest, RSTART + RLENGTH)
                if (link ~ /^https?:/) continue
                wanted[FILENAME ":" FNR ": leads to " link] = link ~ /^#/ ? FILENAME link : normal(directory link)
                count++
            }
        }
        END {
            for (place in wanted) if (!(wanted[place] in known)) print place ", which is no heading there"
            if (count < 3) print "only " count " links were found"
        }' "$@"
}

cd "$root"
mapfile -t documents < <(find . -name '*.md' -not -path './build/*' -printf '%P\n')
found=$(check "${documents[@]}")
[ -z "$found" ] || fail "$found"

# And a wrong one would be seen.
mkdir -p "$scratch/docs"
cd "$scratch"
printf '# One: two\n[a](#one-two) [b](docs/c.md#three) [c](docs/c.md#four)\n' >a.md
printf '# Three\n[a](../a.md#one-two)\n' >docs/c.md
[ "$(check a.md docs/c.md)" = 'a.md:2: leads to docs/c.md#four, which is no heading there' ] || fail "a wrong link is not seen: $(check a.md docs/c.md)"

# missing: prints the files that a README names and that are neither at or below its directory nor, by their path, in the tree.
missing()
{
    local readme name

    find . -path ./build -prune -o -type f -printf '%P\n' >"$scratch/files"
    grep -xE '(.*/)?README\.md' "$scratch/files" | xargs grep -noHE '`[a-z0-9_/-]+\.(c|h|sh|proto|pml)`' | tr -d '`' |
        while IFS=: read -r readme _ name; do
            grep -qxE "(src/|${readme%README.md}(.*/)?)?${name//./\\.}" "$scratch/files" || echo "$readme names $name, which does not exist"
        done
}

cd "$root"
found=$(missing)
[ -z "$found" ] || fail "$found"

mkdir -p "$scratch/tree/part"
cd "$scratch/tree"
printf '`one.c` `part/two.c` `three.c`\n' >part/README.md
touch part/one.c part/two.c three.h
[ "$(missing)" = 'part/README.md names three.c, which does not exist' ] || fail "a missing file is not seen: $(missing)"
echo "good: ${#documents[@]} documents"
