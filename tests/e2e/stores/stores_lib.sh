#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stories about stores on real servers that fail, the same for stores_mysql.sh,
# stores_etcd.sh and stores_s3.sh. Each of them starts one server,
#
#     serve mariadb
#     run_tests "$@"
#
# and every test begins with `fresh`: a database, a bucket or a prefix of its
# own ($store), and the same by a proxy ($through), which `proxy link` disturbs.
set -euo pipefail
# shellcheck source=servers_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/servers_lib.sh"
# shellcheck source=../run/run_lib.sh
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"
# shellcheck source=../loss_lib.sh
source "$SOURCE_ROOT/tests/e2e/loss_lib.sh"

limit_s=60 # a server that starts again on a busy machine takes its time

# Starts the server, which ends with this shell.
serve() {
    server_start site "$1"
    proxy_start link site
    server_credentials
}

# A test before this one may have failed in the middle of an outage.
recover() {
    local process
    for process in mariadb etcd-0 rgw osd; do (server_thaw site "$process") 2>/dev/null || true; done
    process=${server_directory[site]}/$(server_process site KILL).pid
    ! process_is_gone "$(cat "$process")" || server_restart site
    proxy link pass
}

fresh() {
    name=t$RANDOM$RANDOM
    recover
    server_make site "$name"
    store=$(server_url site "$name")
    through=$(server_url site "$name" "$(proxy_address link)")
}

# Times with which a fault shows soon.
times=(--lease 2s --heartbeat 200ms --heartbeat-jitter 0 --call-timeout 600ms --grace 300ms --stop-margin 50ms
    --election-interval 200ms --takeover-delay 0 --start-jitter-max 0 --stagger 20ms --candidate-timeout 8s
    --breaker-threshold 3 --breaker-reset 300ms)

# candidate NAME URL [OPTION…] and worker NAME URL [OPTION…] -- COMMAND…
candidate() {
    local name=$1 url=$2
    shift 2
    run_as "$name" "$GAVEL" elect --store "$url" --id "$name" "${times[@]/--grace/--stop-grace}" "$@"
}
worker() {
    local name=$1 url=$2
    shift 2
    run_as "$name" "$GAVEL" run --store "$url" --id "$name" "${times[@]}" "$@"
}

count_of() { grep -cF "\"event\":\"$2\"" "$scratch/$1.out"; }
said_times() { (($(count_of "$1" "$2") >= $3)); }
epochs_grow() {
    local epochs
    epochs=$(grep -F '"event":"became_leader"' "$scratch/$1.out" | "$JSON_GET" epoch)
    same "$epochs" "$(sort -n -u <<<"$epochs")"
}

# refused CODE PART…: nobody can take part, and each is told why; no secret is told.
refused() {
    local code=$1 part
    shift
    expect "$code" timeout "$limit_s" "$GAVEL" run --store "$store" -- touch "$scratch/started"
    [[ ! -e $scratch/started ]] || fail "the command was started"
    for part in "$@"; do has "$errors" "$part"; done
    expect "$code" timeout "$limit_s" "$GAVEL" elect --store "$store"
    for part in "$@"; do has "$errors" "$part"; done
    has_not "$errors" testsecret
}

# told_of_outage NAME: the events, and on standard error sentences for people.
told_of_outage() {
    await said "$1" breaker_open
    await grep -qF "the store fails" "$scratch/$1.err"
    grep -F '"event":"breaker_open"' "$scratch/$1.out" | sed -n 1p | "$JSON_GET" message >"$scratch/message"
    grep -q 'did not answer in time\|has not answered in time\|cannot be reached: ' "$scratch/message" ||
        fail "$(cat "$scratch/message")"
}

test_a_server_that_is_stopped_and_started_again() {
    fresh
    candidate a "$store"
    await said a became_leader
    server_kill site
    told_of_outage a
    await said a lost_leadership '"reason":"lapsed"'
    server_restart site
    await said a breaker_closed
    await said_times a became_leader 2
    await leads a
    epochs_grow a
}

# Nobody leads when the server is back, so nobody waits for the reset time of a circuit breaker, however long it is.
test_an_outage_longer_than_the_lease_does_not_wait_for_the_breaker() {
    fresh
    candidate a "$store" --breaker-reset 10m
    await said a became_leader
    server_kill site
    told_of_outage a
    await said a lost_leadership '"reason":"lapsed"'
    server_restart site
    await said a breaker_closed
    await said_times a became_leader 2
    epochs_grow a
}

test_a_server_that_is_frozen_for_longer_than_the_lease() {
    fresh
    candidate a "$store"
    await said a became_leader
    server_freeze site
    told_of_outage a
    said a breaker_open ERR_TIMEOUT || fail "not as a time-out"
    await said a lost_leadership '"reason":"lapsed"'
    expect_soon leader
    server_thaw site
    await said a breaker_closed
    await said_times a became_leader 2
    epochs_grow a
}

# expect_soon COMMAND: ends with an error of its own while nothing answers.
expect_soon() {
    local code=0
    timeout 15 "$GAVEL" "$1" --store "$store" >"$scratch/soon.out" 2>"$scratch/soon.err" || code=$?
    ((code == 4 || code == 6)) || fail "gavel $1 ended with $code: $(cat "$scratch/soon.err")"
    grep -q 'in time\|does not answer' "$scratch/soon.err" || fail "$(cat "$scratch/soon.err")"
}

test_a_network_that_loses_answers() {
    fresh
    candidate a "$through"
    await said a became_leader
    proxy link mute
    told_of_outage a
    await said a lost_leadership '"reason":"lapsed"'
    proxy link pass
    await said a breaker_closed
    await said_times a became_leader 2
    epochs_grow a
}

test_answers_that_are_slow_are_told_as_contention() {
    fresh
    candidate a "$through" --heartbeat 50ms --call-timeout 2s --lease 10s --contention-threshold 3
    await said a became_leader
    proxy link delay 0 250
    await said a contention_detected
    proxy link pass
    ! said a lost_leadership || fail "it has cost the mandate"
}

# Nobody looks by itself for five minutes: the guard's release and the doorbell, or the store's own word, must tell.
patient=(--lease 120s --heartbeat 5s --election-interval 300s --candidate-timeout 300s)

test_the_guard_gives_the_mandate_back_long_before_the_lease_is_over() {
    fresh
    worker a "$store" "${patient[@]}" -- "$BEAT" "$scratch/beats" --ignore-term --sessions 1 --daemon
    await beats
    worker b "$store" "${patient[@]}" -- "$BEAT" "$scratch/beats"
    await has_candidates 2
    await logged b 'msg="another leads"'
    kill -KILL "${pid_of[a]}"
    ended a 137
    await has_epochs 2
    await logged a 'the elector died; the guard ended the work'
    judged_well
}

test_killing_the_elector_is_told_as_a_loss() {
    fresh
    killing_the_elector_is_told_as_a_loss
}

# From another pid namespace nobody sees the death of a process: only what the guard says counts.
test_a_death_that_cannot_be_seen_is_told_by_the_guard() {
    local apart=(unshare --pid --fork --kill-child --mount-proc)
    "${apart[@]}" true 2>/dev/null || skip "no pid namespace can be made here"
    fresh
    worker a "$store" "${patient[@]}" -- "$BEAT" "$scratch/beats"
    await beats
    run_as b "${apart[@]}" "$GAVEL" run --store "$store" --id b "${times[@]}" "${patient[@]}" -- "$BEAT" "$scratch/beats"
    await has_candidates 2
    await logged b 'msg="another leads"'
    kill -KILL "${pid_of[a]}"
    ended a 137
    await has_epochs 2
    judged_well
}
