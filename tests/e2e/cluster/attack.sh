#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What somebody can do at the port of the peers who is no member: with the certificate of a program, with one of before
# 0.7.0, with one that was revoked, and without TLS as another user of the machine. One test per attack; each was a way
# to lead, to write or to end all nodes.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# three_with_tls [bare]: nodes that run and agree, and the certificate of a program, app. bare: without a secret, as only
# loopback can be.
three_with_tls() {
    local name secret=()
    cluster n1 n2 n3
    ca=$scratch/ca
    expect 0 "$GAVEL" cert init test --out "$ca"
    : >"$scratch/revoked"
    if [[ ${1:-} != bare ]]; then secret=("secret: $ca/cluster.secret"); fi
    for name in n1 n2 n3; do
        expect 0 "$GAVEL" cert issue "$name" --ca "$ca" --out "$ca"
        configure "$name" "tls: {ca: $ca/ca.crt, cert: $ca/$name.crt, key: $ca/$name.key, api: false, revoked: $scratch/revoked}" \
            "${secret[@]}"
    done
    expect 0 "$GAVEL" cert issue app --client --ca "$ca" --out "$ca"
    begin n1 n2 n3
    await agree
}

# attack TO NAME WHAT [CERTIFICATE]: as that member, with that certificate; it must be refused.
attack() {
    local files=()
    if [[ $# == 4 ]]; then files=("$ca/ca.crt" "$ca/$4.crt" "$ca/$4.key"); fi
    expect 0 "$PEER_ATTACK" "${port_of[$1]}" test "$2" "$1" "$3" "${files[@]}"
}

# unharmed: all nodes run, agree on a leader, and believe nothing of what they were told.
unharmed() {
    local name
    await agree
    for name in "${nodes[@]}"; do
        kill -0 "${pid_of[$name]}" || fail "$name has ended"
        (($(status_of "$name" term) < 1000)) || fail "$name believes the term of an attacker"
        same "$(status_of "$name" generation)" 1
    done
}

test_the_certificate_of_a_program_opens_no_port_of_peers() {
    local what name
    three_with_tls
    for what in hello generation term write; do
        for name in n1 n2 n3; do
            attack "$name" n9 "$what" app
            if [[ $what != generation ]]; then has "$output" "is a client's"; fi
            attack "$name" "$leader" "$what" app
            has "$output" "refused"
        done
    done
    unharmed
}

test_a_certificate_of_before_is_no_nodes() {
    three_with_tls
    # As `gavel cert issue` wrote them: it serves and asks, and does not say what it is for.
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$ca/old.key" -subj "/O=test/CN=n2" \
        -out "$ca/old.csr" 2>/dev/null
    openssl x509 -req -in "$ca/old.csr" -CA "$ca/ca.crt" -CAkey "$ca/ca.key" -CAcreateserial -days 1 -out "$ca/old.crt" 2>/dev/null \
        -extfile <(echo "extendedKeyUsage = serverAuth, clientAuth")
    attack n1 n2 term old
    has "$output" "issue it again"
    unharmed
    # And a node does not start with one: it says what to do.
    stop n3
    cp "$ca/old.crt" "$ca/n3.crt"
    cp "$ca/old.key" "$ca/n3.key"
    expect 2 "$GAVELD" --config "$scratch/n3.yaml"
    has "$errors" "cert"
}

# A node's certificate that is no member's, by somebody who has no secret either.
test_a_node_that_was_not_added_is_refused() {
    three_with_tls
    expect 0 "$GAVEL" cert issue n4 --ca "$ca" --out "$ca"
    attack "$leader" n4 write n4
    has "$output" "gavel member add n4"
    unharmed
}

# The same where there is no secret: then anybody can prove anything, and only the list of members counts.
test_without_a_secret_nobody_is_a_member_by_its_own_word() {
    local name
    three_with_tls bare
    expect 0 "$GAVEL" cert issue n4 --ca "$ca" --out "$ca"
    for name in n1 n2 n3; do
        attack "$name" n4 newer n4
        has "$output" "n4 is not a member"
    done
    unharmed
}

test_a_revoked_certificate_is_refused_after_sighup() {
    local lost name
    three_with_tls
    lost=n1
    if [[ $leader == n1 ]]; then lost=n2; fi
    expect 0 "$GAVEL" cert revoke "$ca/$lost.crt" --list "$scratch/revoked"
    for name in n1 n2 n3; do
        if [[ $name != "$lost" ]]; then kill -HUP "${pid_of[$name]}"; fi
    done
    await logged "$leader" "the certificate of $lost is revoked"
    attack "$leader" "$lost" term "$lost"
    has "$output" "the certificate of $lost is revoked"
    (($(status_of "$leader" term) < 1000)) || fail "$leader believes the term of an attacker"
}

# Without TLS, where every user of the machine can connect.
test_without_tls_the_secret_keeps_others_out() {
    local what name
    cluster n1 n2 n3
    expect 0 "$GAVEL" cert secret --out "$scratch/s"
    for name in n1 n2 n3; do configure "$name" "secret: $scratch/s/cluster.secret"; done
    begin n1 n2 n3
    await agree
    for what in hello generation term write; do
        attack n1 n2 "$what"
        attack n2 n3 "$what"
        attack n3 n1 "$what"
    done
    unharmed
    if logged n1 "every user of this machine"; then fail "it warns although there is a secret"; fi
}

test_without_a_secret_it_says_what_that_means() {
    cluster n1
    begin n1
    await_leader
    logged n1 "every user of this machine can act as a node" || fail "it says nothing"
}

run_tests "$@"
