#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Planted bugs exist in the simulator and in nothing else. The first argument
# is the simulator, the others must be free of them.
set -euo pipefail

sim=$1
shift

has_planted()
{
    # Not grep -q: it would end before nm does, which then fails.
    nm "$1" 2>/dev/null | grep 'planted_bug' >/dev/null
}

if ! has_planted "$sim"; then
    echo "the simulator has no planted bugs: this test would see none anywhere" >&2
    exit 1
fi
for file in "$@"; do
    nm "$file" >/dev/null 2>&1 || { echo "cannot read the symbols of $file" >&2; exit 1; }
    if has_planted "$file"; then
        echo "$file refers to planted_bug" >&2
        exit 1
    fi
done
echo "$# files are free of planted bugs"
