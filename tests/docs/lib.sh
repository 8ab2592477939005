#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of shell examples share: a directory of their own, the program
# first in PATH, and a way to run an example as it is shown.
#
#     source lib.sh ROOT GAVEL [GAVELD]
set -euo pipefail

root=$1
gavel=$(realpath "$2")
scratch=$(mktemp -d)
# Whoever outlives an example for a moment may still write there.
trap 'for i in {1..250}; do if rm -rf "$scratch" 2>/dev/null; then break; fi; sleep 0.02; done' EXIT

export XDG_STATE_HOME=$scratch/state PATH=${gavel%/*}:$PATH
if [ $# -gt 2 ]; then
    gaveld=$(realpath "$3")
    export PATH=${gaveld%/*}:$PATH
fi
cd "$scratch"

fail()
{
    echo "failed: $*"
    exit 1
}

# shellcheck source=../servers/ports.sh
source "$root/tests/servers/ports.sh"

# run_example FILE THEN: runs it with what it leaves in the background as jobs of one shell, which then does THEN.
run_example()
{
    local example=$root/docs/examples/$1

    [ ! -f "$scratch/$1" ] || example=$scratch/$1 # with other ports
    timeout 180 bash -euo pipefail -c 'source "$1"; eval "$2"' example "$example" "$2" >out 2>err || {
        cat out err
        echo "failed: the example ended with an error"
        exit 1
    }
}

# take_ports FILE…: copies the examples, with free ports for 7401 to 7403, 7501 to 7503 and 7601 to 7603; the same for all of them.
take_ports()
{
    local base port example script=

    reserve_ports
    base=$next_port
    for port in 1 2 3; do
        script+="s/\\b740$port\\b/$((base + port))/g; s/\\b750$port\\b/$((base + port + 3))/g; "
        script+="s/\\b760$port\\b/$((base + port + 6))/g; "
    done
    script+="s/\\b760\\\$i\\b/\$(($base + 6 + i))/g; "
    for example in "$@"; do
        sed "$script" "$root/docs/examples/$example" >"$scratch/$example"
        ! cmp -s "$scratch/$example" "$root/docs/examples/$example" || {
            echo "failed: $example names no port"
            exit 1
        }
    done
}

# expect FILE PATTERN: a line of it matches.
expect()
{
    grep -qE -- "$2" "$1" || {
        cat "$1"
        echo "failed: no line \"$2\" in $1"
        exit 1
    }
}
