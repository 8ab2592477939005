#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# s3db_like.sh BUCKET-URL PREFIX ID PAUSE: what a process of s3db.js does in the namespace `job`, in its own time: it
# beats, and when the lease of the state is over it elects the first of all that lie below workers/, with the next epoch.
# While there is a file PAUSE it does nothing, and has made PAUSE.seen.
set -euo pipefail
bucket=$1 prefix=$2/plugin=coordinator/namespace=job id=$3 pause=$4

s3() {
    curl -sSf -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --aws-sigv4 aws:amz:us-east-1:s3 \
        --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$@" 2>/dev/null
}
key() { local path=$prefix/$1 && echo "$bucket/${path//=/%3D}"; }
put() { s3 -X PUT -H 'Content-Type: application/json' --data-binary "$2" "$(key "$1")"; }
number() { grep -oE "\"$1\":[0-9]+" <<<"$state" | grep -oE '[0-9]+$' || echo 0; }
workers() {
    local path=$prefix/workers/
    path=${path//=/%3D}
    s3 "$bucket?list-type=2&prefix=${path//\//%2F}" | grep -oE 'worker=[^<]*\.json' | sed 's/^worker=//; s/\.json$//' | sort
}

while :; do
    while [[ -e $pause ]]; do
        touch "$pause.seen"
        sleep 0.1
    done
    now=$(($(date +%s%N) / 1000000))
    put "workers/worker=$id.json" "{\"workerId\":\"$id\",\"lastHeartbeat\":$now,\"startTime\":$now,\"namespace\":\"job\"}" || true
    state=$(s3 "$(key state.json)") || state=
    # A state without a leaseEnd is never over.
    if [[ -z $state ]] || { (($(number leaseEnd) > 0)) && ((now >= $(number leaseEnd))); }; then
        leader=$(workers | sed -n 1p) || leader=
        [[ -z $leader ]] ||
            put state.json "{\"leaderId\":\"$leader\",\"epoch\":$(($(number epoch) + 1)),\"leaseStart\":$now,\"leaseEnd\":$((now + 1000)),\"electedBy\":\"$id\"}" || true
    fi
    sleep 0.3
done
