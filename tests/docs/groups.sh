#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the elections on a cluster of docs/GUIDE.md as shown there (on
# other ports), and looks at what they printed.
#
#     groups.sh ROOT GAVEL GAVELD
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

take_ports groups.sh
# A machine that is busy with other tests costs no leader its lease.
export GAVELD_LEASE_MS=1000 GAVELD_ELECTION_TIMEOUT_MIN_MS=1000 GAVELD_ELECTION_TIMEOUT_MAX_MS=2000

sed -i 's|^kill %4 %1 %2 %3|pids=$(jobs -p)\n&|' groups.sh
run_example groups.sh 'for pid in $pids; do if [ -e /proc/$pid ]; then echo "$pid runs"; fi; done'

expect out '^web-1$'
expect out '"leader": ?"py-1"'
expect out 'nightly.*web-1|web-1.*nightly'
expect out 'reports.*py-1|py-1.*reports'
expect py-1.events '^event: elected$'
! grep -q ' runs$' out || fail "the example does not wait until all have ended: $(cat out err)"
echo "good: elections on a cluster"
