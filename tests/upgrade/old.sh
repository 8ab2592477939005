#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds gaveld and gavel of the commit that tests/upgrade/from names, unless
# that has been done, and prints the directory of the build.
#
#     tests/upgrade/old.sh [SOURCE_ROOT]
#
# The sources come from the history, so they are not to be had in a tarball or
# a shallow clone: exit code 77, and stderr says what is missing. What was
# built is kept in build/upgrade/COMMIT and needs no history any more.
set -euo pipefail

cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

from=$(sed '/^#/d; /^$/d' tests/upgrade/from)
place=$PWD/build/upgrade/${from//\//-}

# Only what is complete has this mark.
built()
{
    [ -e "$place/is_built" ]
}

if ! built; then
    if ! git rev-parse --verify --quiet "$from^{commit}" >/dev/null 2>&1; then
        if ! shallow=$(git rev-parse --is-shallow-repository 2>&1); then
            echo "there is no history to take $from from, the commit to upgrade from: $shallow" >&2
            exit 77
        fi
        if [ "$shallow" = true ]; then
            echo "this shallow clone does not have $from, the commit to upgrade from; git fetch --unshallow" >&2
            exit 77
        fi
        echo "tests/upgrade/from names $from, and there is no such commit" >&2
        exit 1
    fi
    mkdir -p "$place"
    # Two tests may ask at the same time; one builds, the other waits.
    exec 9>"$place/lock"
    flock 9
fi
if ! built; then
    rm -rf "$place/source" "$place/build"
    mkdir "$place/source"
    git archive "$from" | tar -x -C "$place/source"
    if ! { meson setup "$place/build" "$place/source" --buildtype=release -Dtests=false &&
        ninja -C "$place/build" src/daemon/gaveld src/cli/gavel; } >"$place/log" 2>&1 9>&-; then
        tail -n 30 "$place/log" >&2
        echo "the programs of $from could not be built; $place/log has everything" >&2
        exit 1
    fi
    touch "$place/is_built"
fi
echo "$place/build"
