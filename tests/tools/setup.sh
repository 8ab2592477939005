#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/setup with a pretended system: commands in front of the real ones that
# say which packages are there and write down what would be installed.
set -euo pipefail

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/plain"

cat >"$folder/packages.txt" <<'LIST'
# group package why
build here  it is there already
build away  the thing that is missing
test  other another thing
LIST

pretend()
{
    printf '#!/bin/bash\n%s\n' "$2" >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}

# The scripts stand for commands: their $… are for them.
pretend dpkg-query '[ "${@: -1}" = here ] && printf installed || exit 1'
pretend apt-get 'echo "apt-get $*" >>"$JOURNAL"'
pretend sudo 'echo sudo >>"$JOURNAL"; exec "$@"'
pretend id 'echo "${PRETEND_UID:-0}"'
for command in bash awk sed xargs sort dirname env printf grep; do
    ln -s "$(command -v "$command")" "$folder/plain/$command"
done

export JOURNAL=$folder/journal
run()
{
    : >"$JOURNAL"
    PATH=$folder/bin:$folder/plain GAVEL_PACKAGES=$folder/packages.txt bash "$root/tools/setup" "$@" >"$folder/out" 2>&1
}

fail()
{
    echo "failed: $1"
    cat "$folder/out" "$JOURNAL"
    exit 1
}

run build || fail "installs what is missing"
grep -q 'away *the thing that is missing' "$folder/out" || fail "says what and why"
grep -q 'apt-get install .*--no-install-recommends away$' "$JOURNAL" || fail "installs only what is missing"
grep -q 'apt-get update' "$JOURNAL" || fail "updates the lists first"
! grep -q sudo "$JOURNAL" || fail "root needs no sudo"

PRETEND_UID=1000 run build test || fail "works as a user"
grep -q sudo "$JOURNAL" || fail "a user needs sudo"
grep -q 'away other$' "$JOURNAL" || fail "takes all groups"

sed -i '/away/d' "$folder/packages.txt"
run build || fail "succeeds when all is there"
[ ! -s "$JOURNAL" ] || fail "does nothing when all is there"
[ ! -s "$folder/out" ] || fail "says nothing when all is there"

! run nonsense || fail "refuses an unknown group"
grep -q nonsense "$folder/out" || fail "names the unknown group"

rm "$folder/bin/sudo"
! PRETEND_UID=1000 run test || fail "fails without root and sudo"
grep -q 'apt-get install other' "$folder/out" || fail "says what to run as root"

rm "$folder/bin/apt-get"
! run test || fail "fails without apt-get"
grep -q 'SETUP=no' "$folder/out" || fail "says how to go on elsewhere"
SETUP=no run test || fail "can be skipped"

# The real list: each group is installed by `make setup` and by whoever needs it, and no other is asked for.
groups=$(awk '!/^#/ && NF { print $1 }' "$root/tools/packages.txt" | sort -u)
asked=$(grep -oE '@tools/setup( [a-z]+)+' "$root/Makefile" | tr ' ' '\n' | grep -v setup | sort -u)
: >"$folder/out"
[ "$groups" = "$asked" ] || fail "packages.txt has the groups $(xargs <<<"$groups"), the Makefile asks for $(xargs <<<"$asked")"
all=$(sed -n '/^setup:/,/^$/s/.*@tools\/setup //p' "$root/Makefile" | tr ' ' '\n' | sort)
[ "$all" = "$groups" ] || fail "make setup installs only $(xargs <<<"$all")"
echo "good: setup"
