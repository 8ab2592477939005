#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The unit is one that systemd takes as it is meant, and mistakes in it would
# be told; its command line is one that gavel takes; its stop command speaks
# to the elector alone and waits for it.
#
#     systemd.sh UNIT GAVEL
set -euo pipefail

unit=$(realpath "$1")
gavel=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$(dirname "$0")/scratch.sh"

command -v systemd-analyze >/dev/null || fail "systemd-analyze is missing; run tools/setup test"

# verify [SED-SCRIPT]: what systemd says of the unit with the program just built, and with a mistake planted.
verify()
{
    sed -e "s|^ExecStart=[^ ]*|ExecStart=$gavel|" -e "${1:-}" "$unit" >"$scratch/gavel@.service"
    SYSTEMD_LOG_LEVEL=warning env --default-signal systemd-analyze verify --man=no "$scratch/gavel@.service" 2>&1
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
mistake 's/^\[Service\]/[Srvice]/' "Unknown section 'Srvice'"
mistake "s|^ExecStart=[^ ]*|ExecStart=$scratch/none|" "not executable"
mistake 's/^ExecStop=.*/&"/' "Unbalanced quoting"

# Names that are right for systemd and wrong for gavel.
while read -r page section; do
    [ -f "$root/docs/man/$page.$section.scd" ] || fail "Documentation= names $page($section), which does not exist"
done < <(sed -n 's/^Documentation=//p' "$unit" | grep -oE '[^ :]+\([0-9]\)' | tr '()' '  ')
start=$(sed -n 's/^ExecStart=//p' "$unit")
[[ $start == /*/gavel\ run\ -f\ /etc/gavel/%i.yaml ]] || fail "the command line is another: $start"
printf 'no_such_key: 1\n' >"$scratch/bad.yaml"
said=$("$gavel" run -f "$scratch/bad.yaml" 2>&1) && fail "a wrong file was taken"
[[ $said == *no_such_key* ]] || fail "gavel run -f does not read the file: $said"
grep -qx 'StateDirectory=gavel' "$unit" || fail "the directory of the default store is not made"

# The stop command, as systemd hands it to the shell.
stop=$(sed -n "s/^ExecStop=-\/bin\/sh -c '\(.*\)'\$/\1/p" "$unit" | sed 's/\$\$/$/g')
[ -n "$stop" ] || fail "there is no stop command"

# A main process that takes its time, and one beside it that must not be told.
mkfifo "$scratch/go"
env --default-signal bash -c 'trap "echo told; read -r <$1; exit 0" TERM; echo ready; while :; do sleep 0.05; done' sh "$scratch/go" >"$scratch/main.log" &
main=$!
env --default-signal bash -c 'trap "echo told" TERM; echo ready; while :; do sleep 0.05; done' >"$scratch/other.log" &
started+=("$main" $!)
wait_for "$scratch/main.log" ready
wait_for "$scratch/other.log" ready
MAINPID=$main sh -c "$stop" &
stopper=$!
started+=("$stopper")
wait_for "$scratch/main.log" told
kill -0 "$stopper" 2>/dev/null || fail "the stop command does not wait for the main process"
echo >"$scratch/go"
wait "$main" || fail "the main process did not end by itself: $?"
wait "$stopper" || fail "the stop command failed: $?"
! grep -q told "$scratch/other.log" || fail "the stop command told others too"

# After a main process that has ended by itself there is nothing to tell, and nothing to wait for.
env -u MAINPID timeout 20 sh -c "$stop" && fail "it found a main process where there was none"
no_process=$((1 << 30)) # beyond the highest number that one can have
env MAINPID=$no_process timeout 20 sh -c "$stop" 2>/dev/null && fail "it found a main process that had ended"
echo "good: the unit, $mistakes planted mistakes, and its stop command"
