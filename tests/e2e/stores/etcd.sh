#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# etcd as a store, when it fails or does not let us in.
set -euo pipefail
# shellcheck source=stores_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/stores_lib.sh"

# ask PATH BODY: of etcd itself.
ask() { curl -sSf --max-time 10 "http://127.0.0.1:${server_port[site]}$1" -d "$2"; }

test_a_server_whose_space_is_used_up_and_given_back() {
    fresh
    candidate a "$store"
    await said a became_leader
    ask /v3/maintenance/alarm '{"action":"ACTIVATE","alarm":"NOSPACE"}' >/dev/null
    await said a breaker_open ERR_STORE_FULL
    await grep -qF 'etcdctl alarm disarm' "$scratch/a.err"
    await said a lost_leadership '"reason":"lapsed"'
    ask /v3/maintenance/alarm '{"action":"DEACTIVATE","alarm":"NOSPACE"}' >/dev/null
    await said a breaker_closed
    await said_times a became_leader 2
    epochs_grow a
}

# Administrators throw away old revisions, and gavel must not need any.
test_a_compaction_costs_neither_mandate_nor_news() {
    local revision
    fresh
    worker a "$store" "${patient[@]}" -- "$BEAT" "$scratch/beats"
    await beats
    worker b "$store" "${patient[@]}" -- "$BEAT" "$scratch/beats"
    await has_candidates 2
    await logged b 'msg="another leads"'
    revision=$(ask /v3/kv/range '{"key":"eA=="}' | "$JSON_GET" header.revision)
    ask /v3/kv/compaction "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null
    ask /v3/maintenance/defragment '{}' >/dev/null
    kill -KILL "${pid_of[a]}"
    ended a 137
    await has_epochs 2
    judged_well
}

# The last one: from then on the server knows who asks.
test_with_users_a_wrong_password_is_told_as_such() {
    fresh
    ask /v3/auth/user/add '{"name":"root","password":"testsecret"}' >/dev/null
    ask /v3/auth/user/grant '{"user":"root","role":"root"}' >/dev/null
    ask /v3/auth/enable '{}' >/dev/null
    refused 4 "GAVEL_ETCD_PASSWORD"
    export GAVEL_ETCD_USER=root GAVEL_ETCD_PASSWORD=notthisone
    refused 4 "password"
    has_not "$errors" notthisone
    export GAVEL_ETCD_PASSWORD=testsecret
    candidate a "$store"
    await said a became_leader
}

serve etcd
run_tests "$@"
