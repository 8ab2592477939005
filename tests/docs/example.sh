#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a C example of the documents twice: one leads; killed, the other follows
# with the next epoch, and leaves in order.
#
#     example.sh EXAMPLE
set -euo pipefail

example=$1
source "$(dirname "$0")/../tools/scratch.sh"

export XDG_STATE_HOME=$scratch/state
"$example" >"$scratch/one.log" 2>&1 &
started+=($!)
wait_for "$scratch/one.log" 'I lead, with epoch 1'
"$example" >"$scratch/two.log" 2>&1 &
started+=($!)
kill -9 "${started[0]}"
wait_for "$scratch/two.log" 'I lead, with epoch 2'
kill -TERM "${started[1]}"
wait "${started[1]}" || {
    echo "failed: it did not leave in order: $?"
    cat "$scratch/two.log"
    exit 1
}
wait_for "$scratch/two.log" 'I stopped: stopped'
echo "good: example"
