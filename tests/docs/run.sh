#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the example of `gavel run` as the README shows it, and looks at what it
# printed.
#
#     run.sh ROOT GAVEL
set -euo pipefail

root=$1
gavel=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

export XDG_STATE_HOME=$folder/state PATH=${gavel%/*}:$PATH
cd "$folder"
# Both are jobs of this shell; wait sees the second one end.
timeout 60 bash -uo pipefail -c 'source "$1"; wait %2; echo "ended with $?"' run "$root/docs/examples/run.sh" >out 2>err || {
    cat out err
    echo "failed: the example ended with an error"
    exit 1
}

expected='web-1
web-1 works with epoch 1
web-2
web-2 works with epoch 2
ended with 143'
# Who is named by `gavel leader` and what the command says come at the same time.
[ "$(sort out)" = "$(sort <<<"$expected")" ] || {
    cat out err
    echo "failed: that is not what the README tells"
    exit 1
}
echo "good: gavel run"
