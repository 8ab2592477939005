#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stories about leaders that are lost and about cold starts, the same on every
# store: loss.sh has them on a file, stores_lib.sh on servers, cluster_store.sh
# on a cluster. Whoever uses one has set $store.
# shellcheck disable=SC2154 # store, scratch and pid_of are those of lib.sh
set -euo pipefail

# Times that a busy machine can keep.
calm=(--lease 10s --heartbeat 500ms --heartbeat-jitter 0 --call-timeout 4s --election-interval 500ms
    --candidate-timeout 30s --start-jitter-max 0 --stagger 50ms)

# b would take over a lost leader after ten minutes, so that everybody has time to look at who is gone.
a_runs_and_b_stands_by() {
    run_as a "$GAVEL" run --store "$store" --id a "${calm[@]}" --grace 1s -- sleep 1000
    await leads a
    run_as b "$GAVEL" elect --store "$store" --id b "${calm[@]}" --stop-grace 1s --takeover-delay 10m
    await said b leader_changed '"new":"a"'
    await has_candidates 2
    run_as watch "$GAVEL" watch --store "$store" --json
    await grep -qF '"leader_id":"a"' "$scratch/watch.out"
}

told_as_killed() {
    local who
    await said b leader_down '"former_leader":"a"'
    await said watch leader_down '"former_leader":"a"'
    for who in b watch; do said "$who" leader_down '"how":"killed"' || fail "$who is not told how"; done
    expect 3 "$GAVEL" leader --store "$store"
    has "$errors" "was killed"
    has_not "$errors" "has released"
    expect 0 "$GAVEL" status --store "$store"
    has "$output" "was killed"
    has_not "$output" "has released"
    expect 0 "$GAVEL" status --store "$store" --json
    same "$("$JSON_GET" state how last_leader <<<"$output")" "released"$'\t'killed$'\t'a
    ! said b became_leader || fail "the takeover delay was not kept"
}

killing_the_elector_is_told_as_a_loss() {
    a_runs_and_b_stands_by
    kill -KILL "${pid_of[a]}"
    ended a 137
    told_as_killed
}

killing_the_guard_is_told_as_a_loss() {
    a_runs_and_b_stands_by
    kill -KILL "$(guard_of a)"
    ended a 1
    told_as_killed
}

a_handover_is_no_loss_and_waits_for_nothing() {
    a_runs_and_b_stands_by
    kill -TERM "${pid_of[a]}"
    ended a 143
    await said b became_leader
    ! said b leader_down || fail "a leader that gave up is told as lost"
    ! said watch leader_down || fail "a leader that gave up is told as lost"
}

# With the preset `frugal`, and its cold start scaled unless told otherwise.
a_cold_start_by_frugal_elects_the_lowest_id_in_any_order() {
    local ms=${COLD_OBSERVATION:-6000}
    # shellcheck disable=SC2034 # await of lib.sh reads it
    limit_s=$((60 + ms * 5 / 1000))
    cold_starts "${COLD_STARTS:-5}" "$ms" --preset frugal --observation "${ms}ms" --preparation "$((ms / 3))ms" \
        --stagger "$((ms / 3))ms"
}

# cold_starts COUNT OBSERVATION_MS OPTION…: so many groups at once, three candidates each, which start in any order
# within half of the observation. Prints how many elected the lowest id, and fails if there was another.
cold_starts() {
    local count=$1 window_ms=$(($2 / 2)) group id at chosen good=0
    shift 2
    local -a plan=()
    for ((group = 1; group <= count; group++)); do
        for id in a b c; do plan+=("$((RANDOM % window_ms)) $group $id"); done
    done
    local start_ms=${EPOCHREALTIME/./}
    start_ms=$((start_ms / 1000))
    while read -r at group id; do
        until ((${EPOCHREALTIME/./} / 1000 - start_ms >= at)); do nap; done
        run_as "$group-$id" "$GAVEL" elect --store "$store" --group "cold-$group" --id "$id" "$@"
    done < <(printf '%s\n' "${plan[@]}" | sort -n)
    for ((group = 1; group <= count; group++)); do
        await first_leader_of "$group" >"$scratch/first"
        chosen=$(<"$scratch/first")
        if [[ $chosen == a ]]; then good=$((good + 1)); fi
    done
    echo "# $good of $count cold starts elected the lowest id" >&2
    ((good == count)) || fail "$((count - good)) of $count elected another"
}
first_leader_of() {
    grep -lF '"event":"became_leader"' "$scratch/$1"-{a,b,c}.out | sed "s|.*/$1-\(.\).out|\1|" | grep .
}
