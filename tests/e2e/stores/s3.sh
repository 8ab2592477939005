#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An object store as a store, when it fails or does not let us in.
set -euo pipefail
# shellcheck source=stores_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/stores_lib.sh"

# What is frozen elsewhere here is the OSD: what the gateway has passed on is carried out when it wakes, long after it
# was given up.
test_a_gateway_that_is_frozen_for_longer_than_the_lease() {
    fresh
    candidate a "$store"
    await said a became_leader
    server_freeze site rgw
    told_of_outage a
    await said a lost_leadership '"reason":"lapsed"'
    server_thaw site rgw
    await said a breaker_closed
    await said_times a became_leader 2
    epochs_grow a
}

test_a_wrong_secret_is_told_as_such() {
    fresh
    export AWS_SECRET_ACCESS_KEY=notthisone
    refused 4 "AWS_SECRET_ACCESS_KEY"
    has_not "$errors" notthisone
}

test_a_bucket_that_is_missing_is_named() {
    fresh
    store=$(server_url site no-such-bucket)
    refused 4 "no-such-bucket"
}

# at KEY [OPTION…]: an object of the namespace `job`, as s3db.js names it; by curl, which signs what it is given encoded.
at() {
    local key=${1//=/%3D}
    shift
    curl -sSf -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$@" \
        "http://127.0.0.1:${server_port[site]}/$name/p/plugin%3Dcoordinator/namespace%3Djob/$key"
}
put() { at "$1" -X PUT -H 'Content-Type: application/json' --data-binary @- || fail "$1 was not written"; }
is_registered_there() { at "workers/worker=$1.json" >/dev/null 2>&1; }
leads_job_with() { [[ $("$GAVEL" status --store "$store" --group job --json | "$JSON_GET" "$1") == "$2" ]]; }

# By real times: a minute of silence. While s3db.js moves it leads, and never elects a candidate of gavel, though that comes first.
test_a_namespace_of_s3db_js_is_taken_over_with_its_epoch_when_it_is_silent() {
    local epoch
    fresh
    limit_s=150
    put state.json <<<'{"leaderId":"pod-1","epoch":18,"leaseStart":1790000000000,"leaseEnd":1790000015000}'
    run_as s3db bash "$SOURCE_ROOT/tests/e2e/stores/s3db_like.sh" "http://127.0.0.1:${server_port[site]}/$name" p pod-1 \
        "$scratch/pause"
    await is_at_least 20
    worker a "$store" --group job -- sleep 1000
    await grep -qF 'another program leads this group' "$scratch/a.err"
    grep -qE 's3db.js leads here: pod-1, epoch [0-9]+, 1 workers; stop its processes' "$scratch/a.err" || fail "$(cat "$scratch/a.err")"
    epoch=$(state_epoch)
    await is_at_least $((epoch + 4)) # it goes on electing beside a standby of gavel
    expect 0 "$GAVEL" status --store "$store" --group job
    has "$output" "s3db.js leads here: pod-1"
    ! is_registered_there a || fail "a candidate of gavel lies where s3db.js would elect it"
    # Not by SIGSTOP, which may come between its look at the state and its PUT. That PUT is unconditional, and would be
    # the first that it does when it goes on: no other program can do anything against that.
    touch "$scratch/pause"
    await test -e "$scratch/pause.seen"
    epoch=$(state_epoch)
    await leads_job_with leader_id a
    leads_job_with epoch $((epoch + 1)) || fail "not epoch $((epoch + 1)): $("$GAVEL" status --store "$store" --group job)"
    has_not "$(at state.json)" leaseEnd
    await is_registered_there a
    rm "$scratch/pause" # who comes back stands by
    await is_beating
    leads_job_with leader_id a || fail "s3db.js has taken over"
}
state_epoch() { "$GAVEL" status --store "$store" --group job --json | "$JSON_GET" epoch; }
is_at_least() { (($(state_epoch) >= $1)); }
is_beating() {
    local before
    before=$(at workers/worker=pod-1.json) && sleep 1 && [[ $(at workers/worker=pod-1.json) != "$before" ]]
}

serve radosgw
run_tests "$@"
