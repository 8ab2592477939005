#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each decision record has a number of its own, a date and a status, and stands
# in the list with its title; one that is superseded names a record that exists.
#
#     decisions.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"

# check DIRECTORY: prints what is wrong there.
check()
{
    local record name title status other

    for record in "$1"/[0-9]*.md; do
        name=${record##*/}
        title=$(sed -n 1p "$record")
        status=$(sed -n 3p "$record")
        [[ $title == "# ${name:0:4}: "[A-Z\`a-z]* ]] || echo "$name: its title is not \"# ${name:0:4}: …\""
        if [[ $status =~ ^20[0-9]{2}-[0-9]{2}-[0-9]{2},\ superseded\ by\ \[[0-9]{4}\]\(([^\)]+)\)\. ]]; then
            other=${BASH_REMATCH[1]}
            [ -f "$1/$other" ] || echo "$name: is superseded by $other, which does not exist"
        elif ! [[ $status =~ ^20[0-9]{2}-[0-9]{2}-[0-9]{2},\ accepted\. ]]; then
            echo "$name: line 3 is not a date with \"accepted.\" or \"superseded by [NNNN](…).\""
        fi
    done
    find "$1" -name '[0-9]*.md' -printf '%f\n' | cut -c 1-4 | sort | uniq -d | sed 's/$/: is the number of two records/'
    diff <(cd "$1" && for record in [0-9]*.md; do sed -n "1s/^# \([0-9]*\): \(.*\)/| [\1](${record//./\\.}) | \2 |/p" "$record"; done) \
        <(grep '^| \[' "$1/README.md") | sed -n 's/^[<>]/README.md: is not what the records say:/p'
}

found=$(check "$root/docs/decisions")
[ -z "$found" ] || fail "$found"

# And each of these mistakes would be seen.
mkdir "$scratch/copy"
cp "$root"/docs/decisions/000[12]-*.md "$scratch/copy"
grep -E '^\| \[000[12]\]' "$root/docs/decisions/README.md" >"$scratch/copy/README.md"
first=$(find "$scratch/copy" -name '0001-*.md')
for edit in '1s/0001/0002/' '3s/, accepted//' '3s/accepted/superseded by [0099](0099-no.md)/' '1s/$/ and more/'; do
    cp "$first" "$scratch/before"
    sed -i "$edit" "$first"
    [ -n "$(check "$scratch/copy")" ] || fail "it does not see the mistake $edit"
    cp "$scratch/before" "$first"
done
[ -z "$(check "$scratch/copy")" ] || fail "a good copy is called bad"
echo "good: decisions"
