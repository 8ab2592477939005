#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the cluster of docs/GUIDE.md as it is shown there (on other ports), then
# the calls of docs/HTTP.md against the same nodes, and looks at what they
# printed.
#
#     cluster.sh ROOT GAVEL GAVELD
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

take_ports cluster.sh http.sh http_groups.sh
# A machine that is busy with other tests costs no leader its lease.
export GAVELD_LEASE_MS=1000 GAVELD_ELECTION_TIMEOUT_MIN_MS=1000 GAVELD_ELECTION_TIMEOUT_MAX_MS=2000

# The last line of the first example ends the nodes, so the second goes before it.
grep -q '^kill %1 %2 %3; wait ' cluster.sh || {
    echo "failed: the example does not end the nodes and wait for them"
    exit 1
}
# Its `wait` waits for one after the other here, so that each tells how it ended.
sed -i "s|^kill %1 %2 %3; wait|gavel handover --to n3; source http.sh >http.out; source http_groups.sh >groups.out; curl -s \$api/metrics >metrics.txt; pids=\$(jobs -p)\nkill %1 %2 %3|" cluster.sh
run_example cluster.sh 'for pid in $pids; do code=0; wait $pid || code=$?; echo "ended with $code"; done'

expect out '^n[123]$'
for node in n1 n2 n3; do expect out "^ *[^a-z0-9]*$node\b"; done
expect out '^\{.*"leader_id": ?"n2"'
[ "$(grep -c '^ended with 0$' out)" = 3 ] || {
    cat out err n?.log
    echo "failed: not all nodes ended in order"
    exit 1
}
expect http.out '"leader_id": ?"n3"'
expect http.out '"role": ?"(leader|follower)"'
expect http.out '"votes": ?\['
expect http.out '^gavel_.*term.* [0-9]+$'
expect http.out '"success": ?true.*"new_leader_id": ?"n2"'
expect http.out '^event: became_leader|^event: leader_changed'
expect http.out '^id: [0-9]+$'
expect groups.out '"leader":"a","address":null,"epoch":[0-9]+'
expect groups.out '^\{"name":"a"\}$'
expect groups.out '^503$'
expect groups.out '"key":"done","revision":[0-9]+'
expect groups.out '^up to line 17'
expect groups.out '"groups":\[\{"group":"nightly"'

# The table of metrics in docs/HTTP.md has exactly those that a node has, and Prometheus takes them.
diff <(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' metrics.txt | sort) \
    <(sed -n '/^## Metrics/,/^## Errors/p' "$root/docs/HTTP.md" | grep '^|' | grep -oE '`gavel_[a-z_]+`' | tr -d '`' | sort) || {
    echo "failed: docs/HTTP.md tells of other metrics than a node has (<)"
    exit 1
}
promtool check metrics <metrics.txt
echo "good: a cluster, and its HTTP API"
