#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Snapshots on real nodes: the log is compacted by its bytes, one who was away is given a snapshot, and all of it
# survives kills.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# write_notes FIRST LAST: 50 KiB each, at the leader.
write_notes() {
    local i
    for ((i = $1; i <= $2; i++)); do
        # shellcheck disable=SC2329 # await calls it
        noted() { [[ $(code_of "$leader" "/groups/job/notes/k$((i % 50))" -X PUT --data-binary "@$scratch/note") == 200 ]] || { find_leader "${nodes[@]}" && false; }; }
        await noted
    done
}

snapshot_beyond() { (($(status_of "$1" snapshot) > $2)); }

test_the_log_is_compacted_by_bytes_and_a_follower_is_given_the_snapshot() {
    local name before
    cluster n1 n2 n3
    for name in n1 n2 n3; do configure "$name" "snapshot_bytes: 1MiB"; done
    head -c 38000 /dev/urandom | base64 -w0 >"$scratch/note"
    begin n1 n2 n3
    await agree
    stop n3
    await_leader n1 n2
    write_notes 1 60
    # Far fewer entries than snapshot_entries.
    for name in n1 n2; do await snapshot_beyond "$name" 0; done
    before=$(status_of "$leader" snapshot)
    start n3
    await snapshot_beyond n3 0
    await agree
    logged n3 "a snapshot built from the log differs" && fail "a snapshot differs"
    # From the snapshot that it was given, and a log after it.
    write_notes 61 120
    for name in n1 n2 n3; do await snapshot_beyond "$name" "$before"; done
    for name in n1 n2 n3; do
        kill_both "$name"
        start "$name"
    done
    await agree
    same "$(ask n3 /groups/job/notes/k7)" "$(cat "$scratch/note")"
    for name in n1 n2 n3; do stop "$name"; done
    for name in n1 n2 n3; do start "$name"; done
    await agree
    judge_logs
}

run_tests "$@"
