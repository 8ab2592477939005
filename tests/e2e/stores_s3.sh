#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An object store as a store, when it fails or does not let us in.
set -euo pipefail
# shellcheck source=stores_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores_lib.sh"

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

serve radosgw
run_tests "$@"
