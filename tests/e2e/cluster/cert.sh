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
    expect 0 "$GAVEL" cert init prod --out "$folder/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/n1" --host 10.0.0.1 --host db.example.com,::1
    has "$output" "$folder/n1/n1.crt"
    expect 0 openssl verify -x509_strict -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 0 openssl verify -x509_strict -purpose sslserver -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 0 openssl verify -x509_strict -purpose sslclient -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 0 openssl verify -verify_ip 10.0.0.1 -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 0 openssl verify -verify_ip ::1 -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 0 openssl verify -verify_hostname db.example.com -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    expect 2 openssl verify -verify_hostname other.example.com -CAfile "$folder/ca/ca.crt" "$folder/n1/n1.crt"
    same "$(openssl x509 -in "$folder/n1/n1.crt" -noout -pubkey)" "$(openssl pkey -in "$folder/n1/n1.key" -pubout)"
}

test_it_says_who_it_is_for() {
    local text
    expect 0 "$GAVEL" cert init prod --out "$folder"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder" --out "$folder"
    text=$(text_of "$folder/n1.crt")
    has "$text" "Version: 3"
    has "$text" "Subject: O = prod, CN = n1"
    has "$text" "NIST CURVE: P-256"
    has "$text" "CA:FALSE"
    has "$text" "TLS Web Server Authentication, TLS Web Client Authentication"
    has "$text" "DNS:n1, DNS:localhost, IP Address:127.0.0.1"
    has "$(text_of "$folder/ca.crt")" "CA:TRUE, pathlen:0"
    expect 0 "$GAVEL" cert show "$folder/n1.crt"
    has "$output" "n1, localhost, 127.0.0.1"
    same "$("$GAVEL" cert show "$folder/n1.crt" --json | "$JSON_GET" cluster node is_ca expired hosts.2)" \
        $'prod\tn1\tfalse\tfalse\t127.0.0.1'
    same "$("$GAVEL" cert show "$folder/n1.crt" --json | "$JSON_GET" sha256)" \
        "$(openssl x509 -in "$folder/n1.crt" -noout -fingerprint -sha256 | sed 's/.*=//; s/://g' | tr A-F a-f)"
}

test_a_client_gets_what_a_client_needs() {
    local text
    expect 0 "$GAVEL" cert init prod --out "$folder"
    expect 0 "$GAVEL" cert issue web --client --ca "$folder" --out "$folder"
    has "$output" "gavel://HOST:PORT,HOST:PORT,HOST:PORT?ca=ca.crt&cert=web.crt&key=web.key"
    if [[ $output == *secret* || $output == *gaveld* ]]; then fail "a client is told of the secret: $output"; fi
    text=$(text_of "$folder/web.crt")
    has "$text" "URI:urn:gavel:prod:client:web"
    if [[ $text == *"Web Server"* || $text == *DNS:* || $text == *"IP Address"* ]]; then fail "a client can be a server"; fi
    expect 2 openssl verify -x509_strict -purpose sslserver -CAfile "$folder/ca.crt" "$folder/web.crt"
    expect 0 openssl verify -x509_strict -purpose sslclient -CAfile "$folder/ca.crt" "$folder/web.crt"
    same "$("$GAVEL" cert show "$folder/web.crt" --json | "$JSON_GET" kind)" client
    expect 0 "$GAVEL" cert issue n1 --ca "$folder" --out "$folder"
    has "$(text_of "$folder/n1.crt")" "URI:urn:gavel:prod:node:n1"
    same "$("$GAVEL" cert show "$folder/n1.crt" --json | "$JSON_GET" kind)" node
    expect 2 "$GAVEL" cert issue app --client --host app.example.org --ca "$folder" --out "$folder"
    has "$errors" "a client has no address"
}

# Nobody looks a CA up in the list, so that nothing would come of it.
test_a_ca_is_not_revoked() {
    expect 0 "$GAVEL" cert init prod --out "$folder"
    expect 2 "$GAVEL" cert revoke "$folder/ca.crt" --list "$folder/revoked"
    has "$errors" "is a CA"
    has "$errors" "gavel cert init"
    [[ ! -e $folder/revoked ]] || fail "it is on the list: $(cat "$folder/revoked")"
}

test_a_certificate_is_revoked_once() {
    expect 0 "$GAVEL" cert init prod --out "$folder"
    expect 0 "$GAVEL" cert issue web --client --ca "$folder" --out "$folder"
    expect 0 "$GAVEL" cert revoke "$folder/web.crt" --list "$folder/revoked"
    has "$output" "the certificate of web is revoked"
    expect 0 "$GAVEL" cert revoke "$folder/web.crt" --list "$folder/revoked"
    has "$output" "on the list already"
    same "$(wc -l <"$folder/revoked")" 1
    has "$(cat "$folder/revoked")" "$("$GAVEL" cert show "$folder/web.crt" --json | "$JSON_GET" sha256)"
}

# A list that an editor left without the end of its last line: what is added must not become part of that line.
test_a_revocation_has_a_line_of_its_own() {
    expect 0 "$GAVEL" cert init prod --out "$folder"
    expect 0 "$GAVEL" cert issue web --client --ca "$folder" --out "$folder"
    printf '# of the first of May' >"$folder/revoked"
    expect 0 "$GAVEL" cert revoke "$folder/web.crt" --list "$folder/revoked"
    same "$(tail -n 1 "$folder/revoked" | cut -d ' ' -f 1)" "$("$GAVEL" cert show "$folder/web.crt" --json | "$JSON_GET" sha256)"
    same "$(wc -l <"$folder/revoked")" 2
}

test_a_secret_alone() {
    umask 0
    expect 0 "$GAVEL" cert secret --out "$folder/s"
    same "$(mode_of "$folder/s/cluster.secret")" 600
    expect 1 "$GAVEL" cert secret --out "$folder/s"
    has "$errors" "exists already"
}

test_keys_and_the_secret_are_for_their_owner_only() {
    umask 0
    expect 0 "$GAVEL" cert init prod --out "$folder/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca"
    same "$(mode_of "$folder/ca")" 700
    same "$(mode_of "$folder/ca/ca.key") $(mode_of "$folder/ca/cluster.secret") $(mode_of "$folder/ca/n1.key")" "600 600 600"
    grep -qxE '[0-9a-f]{64}' "$folder/ca/cluster.secret" || fail "the secret is not 64 digits"
    expect 0 "$GAVEL" cert init prod --out "$folder/other"
    if cmp -s "$folder/ca/cluster.secret" "$folder/other/cluster.secret"; then fail "two secrets are the same"; fi
}

test_nothing_is_replaced_without_force() {
    local before
    expect 0 "$GAVEL" cert init prod --out "$folder/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca"
    before=$(sha256sum "$folder/ca"/*)
    expect 1 "$GAVEL" cert init prod --out "$folder/ca"
    has "$errors" "ca.crt exists already"
    expect 1 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca"
    has "$errors" "--force overwrites it"
    same "$(sha256sum "$folder/ca"/*)" "$before"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca" --force
    if [[ $(sha256sum "$folder/ca"/*) == "$before" ]]; then fail "--force replaced nothing"; fi
    # The CA's key alone is reason enough to leave everything as it is.
    rm "$folder/ca/ca.crt" "$folder/ca/cluster.secret"
    expect 1 "$GAVEL" cert init prod --out "$folder/ca"
    [[ ! -e $folder/ca/ca.crt ]] || fail "a certificate was written beside a key that it does not belong to"
}

test_it_is_valid_for_as_long_as_was_said() {
    expect 0 "$GAVEL" cert init prod --out "$folder" --valid-for 5d
    expect 0 openssl x509 -in "$folder/ca.crt" -noout -checkend $((5 * 86400 - 3600))
    expect 1 openssl x509 -in "$folder/ca.crt" -noout -checkend $((5 * 86400 + 3600))
    expect 0 "$GAVEL" cert init prod --out "$folder" --days 10 --force # its older name
    expect 0 openssl x509 -in "$folder/ca.crt" -noout -checkend $((10 * 86400 - 3600))
    expect 1 openssl x509 -in "$folder/ca.crt" -noout -checkend $((10 * 86400 + 3600))
    expect 0 "$GAVEL" cert issue n1 --ca "$folder" --out "$folder" --valid-for 1h
    expect 0 openssl x509 -in "$folder/n1.crt" -noout -checkend 3500
    expect 1 openssl x509 -in "$folder/n1.crt" -noout -checkend 3700
    expect 0 "$GAVEL" cert issue n2 --ca "$folder" --out "$folder" --valid-for 100d
    same "$(openssl x509 -in "$folder/n2.crt" -noout -enddate)" "$(openssl x509 -in "$folder/ca.crt" -noout -enddate)"
}

# A variable that is not set must not make a certificate that nobody can use, nor one that is good for less than was meant.
test_an_option_without_a_value_is_refused() {
    local option
    expect 0 "$GAVEL" cert init prod --out "$folder"
    for option in '--host=' '--host=,' '--host= ' '--out=' '--ca='; do
        expect 2 "$GAVEL" cert issue n1 --ca "$folder" --out "$folder" "$option"
        has "$errors" "is empty"
    done
    expect 2 "$GAVEL" cert issue n1 --ca "$folder" --out "$folder" --host 10.0.0.1 --host ''
    has "$errors" "--host is empty"
    [[ ! -e $folder/n1.crt ]] || fail "a certificate was issued all the same"
    expect 2 "$GAVEL" cert revoke "$folder/ca.crt" --list ''
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
    expect 2 "$GAVEL" cert init 'a b' --out "$folder/ca"
    has "$errors" "cannot be the name of a cluster"
    expect 2 "$GAVEL" cert init prod --days 0
    expect 2 "$GAVEL" cert init prod --valid-for 0
    expect 2 "$GAVEL" cert init prod --valid-for 10d --days 10
    expect 1 "$GAVEL" cert issue n1 --ca "$folder/nowhere" --out "$folder"
    has "$errors" '`gavel cert init CLUSTER` creates a CA'
    expect 0 "$GAVEL" cert init prod --out "$folder/ca"
    expect 2 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder" --host 'a/b'
    has "$errors" '"a/b" is neither a host name nor an address'
    expect 0 "$GAVEL" cert init prod --out "$folder/other"
    cp "$folder/other/ca.key" "$folder/ca/ca.key"
    expect 2 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder"
    has "$errors" "does not belong to its certificate"
    [[ ! -e $folder/n1.crt ]] || fail "a certificate was written all the same"
    expect 2 "$GAVEL" cert show "$folder/ca/ca.key"
    has "$errors" "has no certificate in PEM"
    expect 1 "$GAVEL" cert init prod --out /proc/nowhere
}

# A node with what was made, asked by gavel over TLS.
test_a_node_is_asked_over_tls() {
    cluster n1
    expect 0 "$GAVEL" cert init test --out "$folder/ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca"
    configure n1 "tls: {ca: $folder/ca/ca.crt, cert: $folder/ca/n1.crt, key: $folder/ca/n1.key, api: true}" \
        "secret: $folder/ca/cluster.secret"
    begin n1
    await "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$folder/ca/ca.crt" >/dev/null
    expect 0 "$GAVEL" status --cluster "https://localhost:${api_of[n1]}" --ca "$folder/ca/ca.crt"
    has "$output" "n1 leads in term"
    has_not "$output" "certificate"
    expect 0 "$GAVEL" cert issue n1 --ca "$folder/ca" --out "$folder/ca" --valid-for 5d --force
    kill -HUP "${pid_of[n1]}"
    warned() { [[ $("$GAVEL" status --cluster "localhost:${api_of[n1]}" --ca "$folder/ca/ca.crt") == *"the certificate of n1 ends in 4.9 d"* ]]; }
    await warned
    # A list that names it, one that does not, and none.
    : >"$folder/revoked"
    expect 0 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$folder/ca/ca.crt" --revoked "$folder/revoked"
    expect 0 "$GAVEL" cert revoke "$folder/ca/n1.crt" --list "$folder/revoked"
    expect 1 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$folder/ca/ca.crt" --revoked "$folder/revoked"
    has "$errors" "its certificate is revoked"
    expect 2 "$GAVEL" leader --cluster "127.0.0.1:${api_of[n1]}" --ca "$folder/ca/ca.crt" --revoked "$folder/none"
    has "$errors" "--revoked"
    expect 1 "$GAVEL" status --cluster "https://127.0.0.1:${api_of[n1]}"
    has "$errors" "its certificate is not trusted"
    has "$errors" "name the CA with --ca"
    expect 4 "$GAVEL" status --cluster "127.0.0.1:${api_of[n1]}"
    has "$errors" "if its API has TLS, write https://"
}

run_tests "$@"
