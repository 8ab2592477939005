#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the example of `gavel run` as the README shows it, and looks at what it
# printed.
#
#     run.sh ROOT GAVEL
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

run_example run.sh 'code=0; wait %2 || code=$?; echo "ended with $code"'

expected='web-1
web-1 works with epoch 1
web-2
web-2 works with epoch 2
ended with 143'
# Who is named by `gavel leader` and what the command says come at the same time.
[ "$(sort out)" = "$(sort <<<"$expected")" ] || {
    cat out err
    echo "failed: that is not what the example tells"
    exit 1
}
echo "good: gavel run"
