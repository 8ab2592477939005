#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/setup with a pretended system: commands in front of the real ones that
# say which packages are there and write down what would be installed.
set -euo pipefail

root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/plain"

cat >"$scratch/packages.txt" <<'LIST'
# group package why
build here  it is there already
build away  the thing that is missing
test  other another thing
LIST

pretend()
{
    printf '#!/bin/bash\n%s\n' "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

# The scripts stand for commands: their $… are for them.
pretend dpkg-query '[ "${@: -1}" = here ] && printf installed || exit 1'
pretend apt-get 'echo "apt-get $*" >>"$JOURNAL"
[ "$1" = update ] || {
    "$GAVEL_POLICY" >/dev/null 2>&1; echo "policy $?" >>"$JOURNAL"
    ln -sfn /dev/null "$GAVEL_UNITS/multi-user.target.wants/new.service"
    [ -z "${APT_FAILS:-}" ] || exit 100
    [ -z "${APT_ENDS:-}" ] || { kill "$PPID"; sleep 0.1; exit 100; }
}'
pretend sudo 'echo sudo >>"$JOURNAL"; exec "$@"'
pretend id 'echo "${PRETEND_UID:-0}"'
for command in bash sh awk sed xargs sort dirname env printf grep rm chmod find comm ln sleep; do
    ln -s "$(command -v "$command")" "$scratch/plain/$command"
done

export JOURNAL=$scratch/journal GAVEL_POLICY=$scratch/policy-rc.d GAVEL_UNITS=$scratch/units
mkdir -p "$GAVEL_UNITS/multi-user.target.wants"
ln -s /dev/null "$GAVEL_UNITS/multi-user.target.wants/old.service"
run()
{
    : >"$JOURNAL"
    PATH=$scratch/bin:$scratch/plain GAVEL_PACKAGES=$scratch/packages.txt bash "$root/tools/setup" "$@" >"$scratch/out" 2>&1
}

fail()
{
    echo "failed: $1"
    cat "$scratch/out" "$JOURNAL"
    exit 1
}

run build || fail "installs what is missing"
grep -q 'away *the thing that is missing' "$scratch/out" || fail "says what and why"
grep -q 'apt-get install .*--no-install-recommends --no-remove away$' "$JOURNAL" || fail "installs only what is missing"
grep -q 'apt-get update' "$JOURNAL" || fail "updates the lists first"
! grep -q sudo "$JOURNAL" || fail "root needs no sudo"

# Nothing starts by being installed.
links() { find "$GAVEL_UNITS" -type l -printf '%f '; }
grep -q '^policy 101$' "$JOURNAL" || fail "services may be started while it installs"
[ ! -e "$GAVEL_POLICY" ] || fail "the policy stays behind"
[ "$(links)" = 'old.service ' ] || fail "these start with the system: $(links)"
grep -q 'not to be started with the system: new.service$' "$scratch/out" || fail "says what it has disabled"
! APT_FAILS=yes run build || fail "fails when apt-get does"
[ ! -e "$GAVEL_POLICY" ] || fail "the policy stays behind after a failure"
[ "$(links)" = 'old.service ' ] || fail "these start with the system after a failure: $(links)"
! APT_ENDS=yes run build || fail "fails when it is ended"
[ ! -e "$GAVEL_POLICY" ] || fail "the policy stays behind when it is ended"
printf '#!/bin/sh\nexit 104\n' >"$GAVEL_POLICY"
chmod +x "$GAVEL_POLICY"
run build || fail "works with a policy of the system's own"
grep -q '^policy 104$' "$JOURNAL" || fail "another policy is in force than the system's own"
grep -q 'exit 104' "$GAVEL_POLICY" || fail "the system's own policy is gone"
printf '#!/bin/sh\n# made by tools/setup of gavel, for as long as it installs\nexit 101\n' >"$GAVEL_POLICY"
run build || fail "works after a run that was killed"
[ ! -e "$GAVEL_POLICY" ] || fail "what a run that was killed has left is not cleared away"

PRETEND_UID=1000 run build test || fail "works as a user"
grep -q sudo "$JOURNAL" || fail "a user needs sudo"
[ ! -e "$GAVEL_POLICY" ] || fail "the policy stays behind for a user"
grep -q 'away other$' "$JOURNAL" || fail "takes all groups"

sed -i '/away/d' "$scratch/packages.txt"
run build || fail "succeeds when all is there"
[ ! -s "$JOURNAL" ] || fail "does nothing when all is there"
[ ! -s "$scratch/out" ] || fail "says nothing when all is there"

! run nonsense || fail "refuses an unknown group"
grep -q nonsense "$scratch/out" || fail "names the unknown group"

rm "$scratch/bin/sudo"
! PRETEND_UID=1000 run test || fail "fails without root and sudo"
grep -q 'apt-get install other' "$scratch/out" || fail "says what to run as root"

rm "$scratch/bin/apt-get"
! run test || fail "fails without apt-get"
grep -q 'SETUP=no' "$scratch/out" || fail "says how to go on elsewhere"
SETUP=no run test || fail "can be skipped"

# The real list: each group is installed by `make setup` and by whoever needs it, and no other is asked for.
groups=$(awk '!/^#/ && NF { print $1 }' "$root/tools/packages.txt" | sort -u)
asked=$(grep -oE '@tools/setup( [a-z]+)+' "$root/Makefile" | tr ' ' '\n' | grep -v setup | sort -u)
: >"$scratch/out"
[ "$groups" = "$asked" ] || fail "packages.txt has the groups $(xargs <<<"$groups"), the Makefile asks for $(xargs <<<"$asked")"
all=$(sed -n '/^setup:/,/^$/s/.*@tools\/setup //p' "$root/Makefile" | tr ' ' '\n' | sort)
[ "$all" = "$groups" ] || fail "make setup installs only $(xargs <<<"$all")"
echo "good: setup"
