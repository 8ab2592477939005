#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the shell example of docs/GUIDE.md as shown there, and looks at what
# it printed.
#
#     quickstart.sh ROOT GAVEL
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

run_example quickstart.sh wait # which sees both of them leave

expect out '^web-[12]$'
expect out '^leader +web-[12]$'
expect out '^web-[12] .*leader' # the other one may still be starting
expect out 'leads now with epoch 2'
for log in web-1.log web-2.log; do
    expect "$log" '"event":"became_leader"'
    expect "$log" '"event":"lost_leadership"'
    expect "$log" '"event":"stopped".*"status":"OK"'
done
[ -f "$scratch/state/gavel/gavel.db" ] || {
    echo "failed: the default store is not in the user's state directory"
    exit 1
}
echo "good: quick start"
