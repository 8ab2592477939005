#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the example of certificates as docs/OPERATIONS.md shows it; what it
# makes is what the example of a configuration needs, and TLS takes it.
#
#     cert.sh ROOT GAVEL GAVELD
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

run_example cert.sh true

expect out '^cluster +shop$'
expect out '^node +n1$'
expect out '^hosts .*10\.0\.0\.1'
expect out '^valid_until +20'
for node in n1 n2 n3; do
    openssl verify -CAfile ca.crt "$node.crt" >/dev/null
    [ "$(stat -c %a "$node.key")" = 600 ] || {
        echo "failed: others may read $node.key"
        exit 1
    }
done
[ ! -e n1-etc/ca.key ] || {
    echo "failed: the example copies ca.key to a node"
    exit 1
}

# The example of the file, with the files where they are now.
sed -e "s|/etc/gavel/|$scratch/n1-etc/|" -e "s|/var/lib/gaveld|$scratch/data|" "$root/docs/examples/gaveld.yaml" >gaveld.yaml
gaveld -c gaveld.yaml --check-config >out 2>&1 || {
    cat out
    echo "failed: gaveld does not take its example"
    exit 1
}
[ ! -e "$scratch/data" ] || {
    echo "failed: --check-config has made the data directory"
    exit 1
}
# And a mistake in it would be told.
sed -i 's|^secret:|secrets:|' gaveld.yaml
! gaveld -c gaveld.yaml --check-config >out 2>&1 || {
    echo "failed: a mistake is not told"
    exit 1
}
expect out 'secrets'
echo "good: certificates and the example of gaveld.yaml"
