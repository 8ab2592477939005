#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Certificates: of the wrong cluster, of another node, expired, renewed.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# authority DIRECTORY CLUSTER: a CA and a secret.
authority() {
    mkdir -p "$1"
    (cd "$1" && expect 0 "$GAVEL" cert init "$2")
}

# certificate DIRECTORY NODE: signed by the CA of that directory.
certificate() { (cd "$1" && expect 0 "$GAVEL" cert issue "$2"); }

# sign DIRECTORY CLUSTER NODE SECONDS: one that is good for so long only, made as people make them.
sign() {
    local dir=$1 until
    until=$(date -u -d "+$4 seconds" +%Y%m%d%H%M%SZ)
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$dir/$3.key" 2>/dev/null
    openssl req -new -key "$dir/$3.key" -subj "/O=$2/CN=$3" -out "$dir/$3.csr" 2>/dev/null
    cat >"$dir/sign.cnf" <<END
[ca]
default_ca = one
[one]
database = $dir/index
serial = $dir/serial
new_certs_dir = $dir
default_md = sha256
policy = any
unique_subject = no
rand_serial = yes
[any]
organizationName = optional
commonName = supplied
[ext]
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1, DNS:$3, URI:urn:gavel:$2:node:$3
END
    : >"$dir/index"
    openssl ca -batch -config "$dir/sign.cnf" -extensions ext -cert "$dir/ca.crt" -keyfile "$dir/ca.key" -in "$dir/$3.csr" \
        -out "$dir/$3.crt" -notext -startdate "$(date -u -d '-1 hour' +%Y%m%d%H%M%SZ)" -enddate "$until" 2>"$dir/openssl.log" ||
        fail "openssl: $(cat "$dir/openssl.log")"
}

# with_tls NAME DIRECTORY: its lines of YAML.
with_tls() {
    configure "$1" "tls: {ca: $2/ca.crt, cert: $2/$1.crt, key: $2/$1.key, api: false}" "secret: $2/cluster.secret"
}

# three_with_tls: nodes that trust each other; nothing runs yet.
three_with_tls() {
    local name
    cluster n1 n2 n3
    ca=$scratch/ca
    authority "$ca" test
    for name in n1 n2 n3; do
        certificate "$ca" "$name"
        with_tls "$name" "$ca"
    done
}

test_nodes_with_certificates_elect() {
    three_with_tls
    begin n1 n2 n3
    await agree
    judge_logs
}

test_a_certificate_of_another_authority_is_refused_on_both_sides() {
    three_with_tls
    authority "$scratch/theirs" test
    certificate "$scratch/theirs" n3
    with_tls n3 "$scratch/theirs"
    begin n1 n2 n3
    await agree n1 n2
    await logged n3 certificate
    await logged n1 n3
    is n3 has_lease false || fail "n3 leads"
    judge_logs
}

test_a_certificate_of_another_cluster_is_refused() {
    three_with_tls
    sign "$ca" elsewhere n3 3600
    refused 2 n3 --bootstrap
    has "$errors" elsewhere
}

test_a_certificate_of_another_node_is_refused() {
    three_with_tls
    cp "$ca/n2.crt" "$ca/n3.crt"
    cp "$ca/n2.key" "$ca/n3.key"
    refused 2 n3 --bootstrap
    has "$errors" n2
}

test_key_and_certificate_that_do_not_match_are_refused() {
    three_with_tls
    cp "$ca/n2.key" "$ca/n1.key"
    refused 2 n1 --bootstrap
    has "$errors" n1
}

test_an_expired_certificate_is_refused_at_the_start() {
    three_with_tls
    sign "$ca" test n1 -60
    refused 2 n1 --bootstrap
    has "$errors" expired
}

# It expires while the node runs: connections that are up stay, new ones are refused and both say so, and with a
# new certificate and SIGHUP the node is back, without a restart.
test_a_certificate_that_expires_while_running_is_replaced_by_sighup() {
    local before
    three_with_tls
    sign "$ca" test n3 6
    begin n1 n2 n3
    await agree
    before=$(status_of n3 incarnation)
    await_expiry() { ! openssl x509 -in "$ca/n3.crt" -noout -checkend 0 >/dev/null; }
    await await_expiry
    await_leader n1 n2 n3
    # The others start again, so that they have to greet n3 anew.
    stop n1
    start n1
    await logged n1 expired
    await_leader n1 n2 n3
    certificate_again
    kill -HUP "${pid_of[n3]}"
    await agree
    same "$(status_of n3 incarnation)" "$before"
    judge_logs
}

certificate_again() {
    rm "$ca/n3.crt" "$ca/n3.key"
    certificate "$ca" n3
}

test_plain_words_to_a_node_with_tls_are_closed() {
    three_with_tls
    begin n1 n2 n3
    await agree
    "$KNOCK" garbage "${port_of[$leader]}" 14 >"$scratch/knock.out"
    await agree
    judge_logs
}

test_sighup_with_bad_files_keeps_the_old_ones() {
    three_with_tls
    begin n1 n2 n3
    await agree
    echo nonsense >"$ca/n1.crt"
    kill -HUP "${pid_of[n1]}"
    await logged n1 n1.crt
    await agree
    judge_logs
}

test_the_api_speaks_https_with_the_same_certificate() {
    three_with_tls
    configure n1 "tls: {ca: $ca/ca.crt, cert: $ca/n1.crt, key: $ca/n1.key, api: true}" "secret: $ca/cluster.secret"
    begin n1 n2 n3
    says_node() { [[ $(curl -sS -m 30 --cacert "$ca/ca.crt" "https://127.0.0.1:${api_of[n1]}/status") == *'"node":"n1"'* ]]; }
    await says_node
    ! curl -sS -m 30 "http://127.0.0.1:${api_of[n1]}/status" >/dev/null 2>&1 || fail "it also answers in plain HTTP"
}

# One URL has all that is needed: the nodes tell where their API is and that it speaks https, and the CA is in it.
test_the_url_of_a_store_serves_the_api_with_its_certificates() {
    local name url
    three_with_tls
    (cd "$ca" && expect 0 "$GAVEL" cert issue app --client)
    for name in n1 n2 n3; do
        free_port
        configure "$name" "tls: {ca: $ca/ca.crt, cert: $ca/$name.crt, key: $ca/$name.key, api: true}" \
            "secret: $ca/cluster.secret" "clients: 127.0.0.1:$port"
    done
    url="gavel://127.0.0.1:$port?ca=$ca/ca.crt&cert=$ca/app.crt&key=$ca/app.key"
    begin n1 n2 n3
    lists_all() { [[ $("$GAVEL" status --cluster --store "$url" --json | "$JSON_GET" healthy) == 3 ]]; }
    await lists_all
    expect 4 "$GAVEL" member list --store "gavel://127.0.0.1:$port" --cluster-timeout 300ms
    has "$errors" "TLS"
}

run_tests "$@"
