# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For a test that is one script: $scratch is its own and is removed at the end,
# and whoever's process id is in $started is ended.
scratch=$(mktemp -d)
started=()

finish()
{
    local pid

    for pid in "${started[@]}"; do
        kill -9 "$pid" 2>/dev/null || true # it may have ended by itself
    done
    # Whoever outlives them for a moment may still write there.
    for pid in {1..250}; do
        if rm -rf "$scratch" 2>/dev/null; then break; fi
        sleep 0.02
    done
}
trap finish EXIT

fail()
{
    echo "failed: $*"
    exit 1
}

# wait_for FILE PATTERN: until a whole line of it is there, at most a minute.
wait_for()
{
    local limit=$((SECONDS + 60))

    until grep -qsx -- "$2" "$1"; do
        [ $SECONDS -lt $limit ] || fail "no line \"$2\" in $1: $(cat "$1" 2>&1)"
        sleep 0.02
    done
}
