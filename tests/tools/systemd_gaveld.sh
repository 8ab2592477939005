#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The unit of a node is one that systemd takes as it is meant, mistakes in it
# would be told, and what it says of gaveld is so.
#
#     systemd_gaveld.sh UNIT GAVELD
set -euo pipefail

unit=$(realpath "$1")
gaveld=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$(dirname "$0")/scratch.sh"

command -v systemd-analyze >/dev/null || fail "systemd-analyze is missing; run tools/setup test"

# verify [SED-SCRIPT]: what systemd says of the unit with the program just built, and with a mistake planted.
verify()
{
    sed -e "s|^ExecStart=[^ ]*|ExecStart=$gaveld|" -e "${1:-}" "$unit" >"$scratch/gaveld.service"
    SYSTEMD_LOG_LEVEL=warning env --default-signal systemd-analyze verify --man=no "$scratch/gaveld.service" 2>&1
}

said=$(verify) || fail "systemd-analyze does not take it: $said"
[ -z "$said" ] || fail "systemd-analyze warns: $said"

# mistake SED-SCRIPT WORDS: it is told.
mistakes=0
mistake()
{
    ! cmp -s <(sed -e "$1" "$unit") "$unit" || fail "nothing was planted by $1"
    said=$(verify "$1" || true)
    [[ $said == *"$2"* ]] || fail "a mistake is not told ($1): $said"
    mistakes=$((mistakes + 1))
}
mistake 's/^Restart=/Restarts=/' "Unknown key 'Restarts'"
mistake 's/^KillMode=.*/KillMode=all/' "kill mode"
mistake 's/^Type=.*/Type=ready/' "service type"
mistake 's/^WatchdogSec=.*/WatchdogSec=soon/' "sec value"
mistake 's/^RestrictAddressFamilies=.*/RestrictAddressFamilies=AF_INTE/' "AF_INTE"
mistake 's/^SystemCallFilter=.*/SystemCallFilter=@no-such-group/' "no-such-group"
mistake 's/^RestartPreventExitStatus=.*/RestartPreventExitStatus=many/' "many"
mistake "s|^ExecStart=[^ ]*|ExecStart=$scratch/none|" "not executable"

# Names that are right for systemd and wrong for gavel.
while read -r page section; do
    [ -f "$root/docs/man/$page.$section.scd" ] || fail "Documentation= names $page($section), which does not exist"
done < <(sed -n 's/^Documentation=//p' "$unit" | grep -oE '[^ :]+\([0-9]\)' | tr '()' '  ')
start=$(sed -n 's/^ExecStart=//p' "$unit")
[[ $start == /*/gaveld\ -c\ /etc/gavel/gaveld.yaml\ \$GAVELD_OPTIONS ]] || fail "the command line is another: $start"

# Its exit codes are those that the manual has, and a mistake in the file ends with one of them.
read -ra final <<<"$(sed -n 's/^RestartPreventExitStatus=//p' "$unit")"
for code in "${final[@]}"; do
    grep -qx "\*$code\*" "$root/docs/man/gaveld.8.scd" || fail "gaveld(8) does not tell of exit code $code"
done
printf 'no_such_key: 1\n' >"$scratch/bad.yaml"
code=0
said=$("$gaveld" -c "$scratch/bad.yaml" 2>&1) || code=$?
[[ $said == *no_such_key* ]] || fail "gaveld -c does not read the file: $said"
[[ " ${final[*]} " == *" $code "* ]] ||
    fail "a wrong file ends with $code, after which systemd would try again"
grep -qx 'StateDirectory=gaveld' "$unit" || fail "the data directory is not made"
grep -q '^data: /var/lib/gaveld ' "$root/docs/examples/gaveld.yaml" || fail "the example has its data elsewhere"
echo "good: the unit of a node, and $mistakes planted mistakes"
