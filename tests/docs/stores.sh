#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the example of a store that is there already as the README shows it, on
# a real MariaDB, and looks at what it printed.
#
#     stores.sh ROOT GAVEL SERVER_OWNER
set -euo pipefail
server_owner=$(realpath "$3")
source "$(dirname "$0")/lib.sh" "$1" "$2"
# shellcheck source=../servers/ports.sh
source "$root/tests/servers/ports.sh"
for variable in ${!GAVEL_@}; do unset "$variable"; done

fail()
{
    cat out err 2>/dev/null || true
    echo "failed: $*"
    exit 1
}

reserve_ports
server=$(mktemp -d "${TMPDIR:-/tmp}/gavel-server-XXXXXX")
coproc keep { exec "$server_owner" "$server" "$root/tests/servers/mariadb" up "$server" "$next_port"; }
echo up >&"${keep[1]}"
read -r -t 120 -u "${keep[0]}" answer || answer=nothing
[ "$answer" = good ] || fail "MariaDB does not start: $answer"
"$root/tests/servers/mariadb" make "$server" app

sed "s/:3306/:$next_port/" "$root/docs/examples/stores.sh" >stores.sh
printf '[client]\nuser = gavel\npassword = testsecret\n' >my.cnf
run_example stores.sh 'code=0; wait %1 || code=$?; echo "ended with $code"'

grep -q 'The preset database fits this store\.' out || fail "ping does not say that the preset fits"
grep -q 'statements a minute' out || fail "check does not tell of statements"
grep -qx 'web-1' out || fail "nobody leads"
grep -qx 'ended with 143' out || fail "gavel run did not end as it should"
echo "good: a store that is there already"
