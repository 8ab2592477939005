#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of shell examples share: a folder of their own, the program
# first in PATH, and a way to run an example as it is shown.
#
#     source lib.sh ROOT GAVEL
set -euo pipefail

root=$1
gavel=$(realpath "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

export XDG_STATE_HOME=$folder/state PATH=${gavel%/*}:$PATH
cd "$folder"

# run_example FILE THEN: runs it with what it leaves in the background as jobs of one shell, which then does THEN.
run_example()
{
    timeout 60 bash -euo pipefail -c 'source "$1"; eval "$2"' example "$root/docs/examples/$1" "$2" >out 2>err || {
        cat out err
        echo "failed: the example ended with an error"
        exit 1
    }
}
