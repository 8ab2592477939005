#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gavel cert, judged by openssl(1) and by a node that uses what it made.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# text_of FILE: what openssl reads in it.
text_of() { openssl x509 -in "$1" -noout -text; }

mode_of() { stat -c %a "$1"; }

test_openssl_verifies_the_chain() {
    expect 0 "$GAVEL" cert init prod --out "$scratch/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/n1" --host 10.0.0.1 --host db.example.com,::1
    has "$output" "$scratch/n1/n1.crt"
    expect 0 openssl verify -x509_strict -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 0 openssl verify -x509_strict -purpose sslserver -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 0 openssl verify -x509_strict -purpose sslclient -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 0 openssl verify -verify_ip 10.0.0.1 -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 0 openssl verify -verify_ip ::1 -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 0 openssl verify -verify_hostname db.example.com -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    expect 2 openssl verify -verify_hostname other.example.com -CAfile "$scratch/ca/ca.crt" "$scratch/n1/n1.crt"
    same "$(openssl x509 -in "$scratch/n1/n1.crt" -noout -pubkey)" "$(openssl pkey -in "$scratch/n1/n1.key" -pubout)"
}

test_it_says_who_it_is_for() {
    local text
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch" --out "$scratch"
    text=$(text_of "$scratch/n1.crt")
    has "$text" "Version: 3"
    has "$text" "Subject: O = prod, CN = n1"
    has "$text" "NIST CURVE: P-256"
    has "$text" "CA:FALSE"
    has "$text" "TLS Web Server Authentication, TLS Web Client Authentication"
    has "$text" "DNS:n1, DNS:localhost, IP Address:127.0.0.1"
    has "$(text_of "$scratch/ca.crt")" "CA:TRUE, pathlen:0"
    expect 0 "$GAVEL" cert show "$scratch/n1.crt"
    has "$output" "n1, localhost, 127.0.0.1"
    same "$("$GAVEL" cert show "$scratch/n1.crt" --json | "$JSON_GET" cluster node is_ca expired hosts.2)" \
        $'prod\tn1\tfalse\tfalse\t127.0.0.1'
    same "$("$GAVEL" cert show "$scratch/n1.crt" --json | "$JSON_GET" sha256)" \
        "$(openssl x509 -in "$scratch/n1.crt" -noout -fingerprint -sha256 | sed 's/.*=//; s/://g' | tr A-F a-f)"
}

test_a_client_gets_what_a_client_needs() {
    local text
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    expect 0 "$GAVEL" cert issue web --client --ca "$scratch" --out "$scratch"
    has "$output" "gavel://HOST:PORT,HOST:PORT,HOST:PORT?ca=ca.crt&cert=web.crt&key=web.key"
    if [[ $output == *secret* || $output == *gaveld* ]]; then fail "a client is told of the secret: $output"; fi
    text=$(text_of "$scratch/web.crt")
    has "$text" "URI:urn:gavel:prod:client:web"
    if [[ $text == *"Web Server"* || $text == *DNS:* || $text == *"IP Address"* ]]; then fail "a client can be a server"; fi
    expect 2 openssl verify -x509_strict -purpose sslserver -CAfile "$scratch/ca.crt" "$scratch/web.crt"
    expect 0 openssl verify -x509_strict -purpose sslclient -CAfile "$scratch/ca.crt" "$scratch/web.crt"
    same "$("$GAVEL" cert show "$scratch/web.crt" --json | "$JSON_GET" kind)" client
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch" --out "$scratch"
    has "$(text_of "$scratch/n1.crt")" "URI:urn:gavel:prod:node:n1"
    same "$("$GAVEL" cert show "$scratch/n1.crt" --json | "$JSON_GET" kind)" node
    expect 2 "$GAVEL" cert issue app --client --host app.example.org --ca "$scratch" --out "$scratch"
    has "$errors" "a client has no address"
}

# Nobody looks a CA up in the list, so that nothing would come of it.
test_a_ca_is_not_revoked() {
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    expect 2 "$GAVEL" cert revoke "$scratch/ca.crt" --list "$scratch/revoked"
    has "$errors" "is a CA"
    has "$errors" "gavel cert init"
    [[ ! -e $scratch/revoked ]] || fail "it is on the list: $(cat "$scratch/revoked")"
}

test_a_certificate_is_revoked_once() {
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    expect 0 "$GAVEL" cert issue web --client --ca "$scratch" --out "$scratch"
    expect 0 "$GAVEL" cert revoke "$scratch/web.crt" --list "$scratch/revoked"
    has "$output" "the certificate of web is revoked"
    expect 0 "$GAVEL" cert revoke "$scratch/web.crt" --list "$scratch/revoked"
    has "$output" "on the list already"
    same "$(wc -l <"$scratch/revoked")" 1
    has "$(cat "$scratch/revoked")" "$("$GAVEL" cert show "$scratch/web.crt" --json | "$JSON_GET" sha256)"
}

# A list that an editor left without the end of its last line: what is added must not become part of that line.
test_a_revocation_has_a_line_of_its_own() {
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    expect 0 "$GAVEL" cert issue web --client --ca "$scratch" --out "$scratch"
    printf '# of the first of May' >"$scratch/revoked"
    expect 0 "$GAVEL" cert revoke "$scratch/web.crt" --list "$scratch/revoked"
    same "$(tail -n 1 "$scratch/revoked" | cut -d ' ' -f 1)" "$("$GAVEL" cert show "$scratch/web.crt" --json | "$JSON_GET" sha256)"
    same "$(wc -l <"$scratch/revoked")" 2
}

test_a_secret_alone() {
    umask 0
    expect 0 "$GAVEL" cert secret --out "$scratch/s"
    same "$(mode_of "$scratch/s/cluster.secret")" 600
    expect 1 "$GAVEL" cert secret --out "$scratch/s"
    has "$errors" "exists already"
}

test_keys_and_the_secret_are_for_their_owner_only() {
    umask 0
    expect 0 "$GAVEL" cert init prod --out "$scratch/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca"
    same "$(mode_of "$scratch/ca")" 700
    same "$(mode_of "$scratch/ca/ca.key") $(mode_of "$scratch/ca/cluster.secret") $(mode_of "$scratch/ca/n1.key")" "600 600 600"
    grep -qxE '[0-9a-f]{64}' "$scratch/ca/cluster.secret" || fail "the secret is not 64 digits"
    expect 0 "$GAVEL" cert init prod --out "$scratch/other"
    if cmp -s "$scratch/ca/cluster.secret" "$scratch/other/cluster.secret"; then fail "two secrets are the same"; fi
}

test_nothing_is_replaced_without_force() {
    local before
    expect 0 "$GAVEL" cert init prod --out "$scratch/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca"
    before=$(sha256sum "$scratch/ca"/*)
    expect 1 "$GAVEL" cert init prod --out "$scratch/ca"
    has "$errors" "ca.crt exists already"
    expect 1 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca"
    has "$errors" "--force overwrites it"
    same "$(sha256sum "$scratch/ca"/*)" "$before"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca" --force
    if [[ $(sha256sum "$scratch/ca"/*) == "$before" ]]; then fail "--force replaced nothing"; fi
    # The CA's key alone is reason enough to leave everything as it is.
    rm "$scratch/ca/ca.crt" "$scratch/ca/cluster.secret"
    expect 1 "$GAVEL" cert init prod --out "$scratch/ca"
    [[ ! -e $scratch/ca/ca.crt ]] || fail "a certificate was written beside a key that it does not belong to"
}

test_it_is_valid_for_as_long_as_was_said() {
    expect 0 "$GAVEL" cert init prod --out "$scratch" --valid-for 5d
    expect 0 openssl x509 -in "$scratch/ca.crt" -noout -checkend $((5 * 86400 - 3600))
    expect 1 openssl x509 -in "$scratch/ca.crt" -noout -checkend $((5 * 86400 + 3600))
    expect 0 "$GAVEL" cert init prod --out "$scratch" --days 10 --force # its older name
    expect 0 openssl x509 -in "$scratch/ca.crt" -noout -checkend $((10 * 86400 - 3600))
    expect 1 openssl x509 -in "$scratch/ca.crt" -noout -checkend $((10 * 86400 + 3600))
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch" --out "$scratch" --valid-for 1h
    expect 0 openssl x509 -in "$scratch/n1.crt" -noout -checkend 3500
    expect 1 openssl x509 -in "$scratch/n1.crt" -noout -checkend 3700
    expect 0 "$GAVEL" cert issue n2 --ca "$scratch" --out "$scratch" --valid-for 100d
    same "$(openssl x509 -in "$scratch/n2.crt" -noout -enddate)" "$(openssl x509 -in "$scratch/ca.crt" -noout -enddate)"
}

# A variable that is not set must not make a certificate that nobody can use, nor one that is good for less than was meant.
test_an_option_without_a_value_is_refused() {
    local option
    expect 0 "$GAVEL" cert init prod --out "$scratch"
    for option in '--host=' '--host=,' '--host= ' '--out=' '--ca='; do
        expect 2 "$GAVEL" cert issue n1 --ca "$scratch" --out "$scratch" "$option"
        has "$errors" "is empty"
    done
    expect 2 "$GAVEL" cert issue n1 --ca "$scratch" --out "$scratch" --host 10.0.0.1 --host ''
    has "$errors" "--host is empty"
    [[ ! -e $scratch/n1.crt ]] || fail "a certificate was issued all the same"
    expect 2 "$GAVEL" cert revoke "$scratch/ca.crt" --list ''
    has "$errors" "--list is empty"
    for option in --ca --token-file --cluster --config; do
        expect 2 "$GAVEL" status --cluster 127.0.0.1:1 "$option" ''
        has "$errors" "$option is empty"
    done
    expect 2 "$GAVEL" handover --store "$store" --to ''
    has "$errors" "--to is empty"
}

test_mistakes_are_told() {
    expect 2 "$GAVEL" cert
    has "$errors" "gavel cert init CLUSTER"
    expect 2 "$GAVEL" cert init 'a b' --out "$scratch/ca"
    has "$errors" "cannot be the name of a cluster"
    expect 2 "$GAVEL" cert init prod --days 0
    expect 2 "$GAVEL" cert init prod --valid-for 0
    expect 2 "$GAVEL" cert init prod --valid-for 10d --days 10
    expect 1 "$GAVEL" cert issue n1 --ca "$scratch/nowhere" --out "$scratch"
    has "$errors" '`gavel cert init CLUSTER` creates a CA'
    expect 0 "$GAVEL" cert init prod --out "$scratch/ca"
    expect 2 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch" --host 'a/b'
    has "$errors" '"a/b" is neither a host name nor an address'
    expect 0 "$GAVEL" cert init prod --out "$scratch/other"
    cp "$scratch/other/ca.key" "$scratch/ca/ca.key"
    expect 2 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch"
    has "$errors" "does not belong to its certificate"
    [[ ! -e $scratch/n1.crt ]] || fail "a certificate was written all the same"
    expect 2 "$GAVEL" cert show "$scratch/ca/ca.key"
    has "$errors" "has no certificate in PEM"
    expect 1 "$GAVEL" cert init prod --out /proc/nowhere
}

# A node with what was made, asked by gavel over TLS.
test_a_node_is_asked_over_tls() {
    cluster n1
    expect 0 "$GAVEL" cert init test --out "$scratch/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca"
    configure n1 "tls: {ca: $scratch/ca/ca.crt, cert: $scratch/ca/n1.crt, key: $scratch/ca/n1.key, api: true}" \
        "secret: $scratch/ca/cluster.secret"
    begin n1
    await "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$scratch/ca/ca.crt" >/dev/null
    expect 0 "$GAVEL" status --cluster "https://localhost:${api_of[n1]}" --ca "$scratch/ca/ca.crt"
    has "$output" "n1 leads in term"
    has_not "$output" "certificate"
    expect 0 "$GAVEL" cert issue n1 --ca "$scratch/ca" --out "$scratch/ca" --valid-for 5d --force
    kill -HUP "${pid_of[n1]}"
    warned() { [[ $("$GAVEL" status --cluster "localhost:${api_of[n1]}" --ca "$scratch/ca/ca.crt") == *"the certificate of n1 ends in 4.9 d"* ]]; }
    await warned
    # A list that names it, one that does not, and none.
    : >"$scratch/revoked"
    expect 0 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$scratch/ca/ca.crt" --revoked "$scratch/revoked"
    expect 0 "$GAVEL" cert revoke "$scratch/ca/n1.crt" --list "$scratch/revoked"
    expect 4 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$scratch/ca/ca.crt" --revoked "$scratch/revoked"
    has "$errors" "its certificate is revoked"
    expect 2 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$scratch/ca/ca.crt" --revoked "$scratch/none"
    has "$errors" "--revoked"
    expect 4 "$GAVEL" status --cluster "https://127.0.0.1:${api_of[n1]}"
    has "$errors" "its certificate is not trusted"
    has "$errors" "name the CA with --ca"
    expect 4 "$GAVEL" status --cluster "127.0.0.1:${api_of[n1]}"
    has "$errors" "if its API has TLS, write https://"
}

run_tests "$@"
