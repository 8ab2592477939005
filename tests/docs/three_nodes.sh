#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the three nodes of the README as they are shown there (on other ports):
# a candidate leads a group of theirs, and all of them end.
#
#     three_nodes.sh ROOT GAVEL GAVELD
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

take_ports three_nodes.sh
# A machine that is busy with other tests costs no leader its lease.
export GAVELD_LEASE_MS=1000 GAVELD_ELECTION_TIMEOUT_MIN_MS=1000 GAVELD_ELECTION_TIMEOUT_MAX_MS=2000

# A busy machine takes longer.
sed -i -e 's|--wait 10s|--wait 60s|' -e 's|^kill %4 %1 %2 %3|pids=$(jobs -p)\n&|' three_nodes.sh
run_example three_nodes.sh 'for pid in $pids; do if [ -e /proc/$pid ]; then echo "$pid runs"; else echo ended; fi; done'

expect out '^n[123]$'
expect out '^web-1$'
[ "$(grep -c '^ended$' out)" = 4 ] || fail "the example does not wait until all have ended: $(cat out err)"
echo "good: three nodes"
