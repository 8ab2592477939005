#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one client of a cluster can do to another: over TCP, as another user of the machine, with another certificate. A
# thief knows the id of a session, a finder only what nodes show; neither may end anything, and nowhere are ids of
# sessions, nonces or instances of others to be read. And clients whose certificate was revoked.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${SESSION_ATTACK:?the thief}"

declare -A clients_of
# Of the victim; 16 digits of which none is 0, so that no way of writing them is shorter.
session=9e3779b97f4a7c15 nonce=d1b54a32d192ed13 instance=a24baed4963ee417

# serving [LINE…]: three nodes that take clients, with these lines of YAML besides.
serving() {
    local name
    cluster n1 n2 n3
    store=
    for name in n1 n2 n3; do
        free_port
        clients_of[$name]=$port
        configure "$name" "clients: 127.0.0.1:$port" "socket: $scratch/$name.sock" "${@//NODE/$name}"
        store+=${store:+,}127.0.0.1:$port
    done
    store=gavel://$store
    begin n1 n2 n3
    export GAVEL_CLUSTER="127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"
    await agree
    await sockets_are_there
}
sockets_are_there() { [[ -S $scratch/n1.sock && -S $scratch/n2.sock && -S $scratch/n3.sock ]]; }

# with_tls: the same with certificates, of two programs, too.
with_tls() {
    local name
    ca=$scratch/ca
    expect 0 "$GAVEL" cert init test --out "$ca"
    for name in n1 n2 n3; do expect 0 "$GAVEL" cert issue "$name" --ca "$ca" --out "$ca"; done
    for name in one other; do expect 0 "$GAVEL" cert issue "$name" --client --ca "$ca" --out "$ca"; done
    : >"$scratch/revoked"
    serving "tls: {ca: $ca/ca.crt, cert: $ca/NODE.crt, key: $ca/NODE.key, api: false, revoked: $scratch/revoked}" \
        "secret: $ca/cluster.secret"
}
# cert NAME: the options for it.
cert() { echo --tls "$ca/ca.crt" "$ca/$1.crt" "$ca/$1.key"; }

# victim PLACE [OPTION…]: has its session and mandates, and says so again and again.
victim() {
    local place=$1
    shift
    run_as victim "$SESSION_ATTACK" "$@" "$place" victim $session $nonce $instance
    await grep -q kept "$scratch/victim.out"
}

# unharmed: the victim has what it had, and goes on; nobody else was elected.
unharmed() {
    local before
    before=$(grep -c kept "$scratch/victim.out")
    await goes_on "$before"
    same "$(led work) $(led job)" "$mandates"
    same "$(tells n1 /groups/work candidates.#) $(tells n1 /groups/job candidates.#)" "1 1"
}
# led GROUP: by whom, and with which epoch.
led() { tells n1 "/groups/$1" leader epoch; }
goes_on() {
    (($(grep -c kept "$scratch/victim.out") >= $1 + 3))
}

# robbed [OPTION…] -- PLACE…: a thief, a finder and a reader at each of these places.
robbed() {
    local options=() place
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    mandates="$(led work) $(led job)"
    has "$mandates" victim
    for place in "$@"; do
        attack 0 "${options[@]}" "$place" thief $session
        same "$(grep -c refused <<<"$output")" 8
        attack 0 "${options[@]}" "$place" finder job
        attack 0 "${options[@]}" "$place" reader $session $nonce $instance
        has "$output" "read 20 groups and notes"
        unharmed
    done
}

# attack CODE ARGUMENT…: with that end; what came of it is in $output, and shown if the test fails.
attack() {
    local wanted=$1 code=0
    shift
    "$SESSION_ATTACK" "$@" >"$scratch/attack.err" 2>&1 || code=$?
    output=$(cat "$scratch/attack.err")
    [[ $code == "$wanted" ]] || fail "exit code $code, not $wanted, of an attack with: $*"
}

ports() { echo "${clients_of[n1]} ${clients_of[n2]} ${clients_of[n3]}"; }
sockets() { echo "$scratch/n1.sock $scratch/n2.sock $scratch/n3.sock"; }

# hidden FILE NUMBER…: none of these is in it, however it is written.
hidden() {
    local file=$1 number
    shift
    for number in "$@"; do
        if grep -iF -e "$number" -e "$(printf '%u' "0x$number")" "$file"; then fail "$file has $number"; fi
    done
}

# shellcheck disable=SC2046 # places have no spaces
test_over_tcp_another_client_can_neither_use_nor_see_a_session() {
    serving
    victim "${clients_of[n1]}" --secret "the secret of the victim"
    robbed -- $(ports)
    robbed --secret "the secret of a thief" -- $(ports) "$scratch/n2.sock"
}

# Without a secret, as a client that somebody wrote himself: then the user counts.
# shellcheck disable=SC2046
test_on_the_socket_another_user_can_neither_use_nor_see_a_session() {
    if (($(id -u) != 0)); then skip "only root can become another user"; fi
    serving
    chmod 711 "$scratch"
    chmod 666 $(sockets)
    victim "$scratch/n1.sock"
    robbed --user 65534 -- $(sockets)
    robbed -- $(ports) # nobody's: TCP tells of no user
    # The same user may: it is the user that is looked at.
    attack 1 "$scratch/n2.sock" thief $session
    has "$output" "close: granted"
}

# shellcheck disable=SC2046
test_with_another_certificate_a_client_can_neither_use_nor_see_a_session() {
    with_tls
    victim "${clients_of[n1]}" $(cert one)
    robbed $(cert other) -- $(ports)
    robbed $(cert n2) -- "${clients_of[n1]}"
    attack 1 $(cert one) "${clients_of[n3]}" thief $session
    has "$output" "close: granted"
}

# everything: all that can be read by HTTP and with gavel, into a file.
everything() {
    local name path
    for name in n1 n2 n3; do
        for path in /groups /groups/work /groups/work/leader /groups/job /groups/job/leader /groups/work/notes /groups/work/notes/where \
            /status /metrics /members /leader /health /openapi.json "/groups?prefix=j"; do
            ask "$name" "$path"
        done
        for path in work job; do
            curl -sN --max-time 3 "http://127.0.0.1:${api_of[$name]}/groups/$path/watch?after=1" || true
            curl -sN --max-time 3 "http://127.0.0.1:${api_of[$name]}/groups/$path/watch" || true
        done
    done
    for path in work job; do
        for name in leader status candidates; do "$GAVEL" $name --group $path --json; done
        for name in leader status candidates; do "$GAVEL" $name --store "$store" --group $path --json; done
        "$GAVEL" note list $path --json
        # In the foreground: else SIGCONT follows SIGTERM, and may undo the SIGSTOP by which the leak check of a
        # sanitized program stops itself; it would then wait for ever.
        timeout --foreground 3 "$GAVEL" watch --group $path --json || true
        timeout --foreground 3 "$GAVEL" watch --store "$store" --group $path --json || true
    done
    "$GAVEL" groups --json
    "$GAVEL" status --json
    "$GAVEL" check --json || true
}

test_neither_http_nor_gavel_shows_ids_nonces_or_instances() {
    local own path body
    serving
    victim "${clients_of[n1]}" --secret "the secret of the victim"
    mandates="$(led work) $(led job)"
    has "$mandates" victim
    # A candidate over HTTP, which was told its own.
    curl -sSN -X POST -d '{"candidate":"web","ttl_ms":60000}' "http://127.0.0.1:${api_of[n2]}/groups/web/campaign" >"$scratch/web.events" 2>"$scratch/web.err" &
    pid_of[web]=$!
    await grep -q '"session":"' "$scratch/web.events"
    own=$(sed -n 's/.*"session":"\([0-9a-f]*\)".*/\1/p' "$scratch/web.events" | sed -n 1p)
    { everything; ask n1 /groups/web; ask n3 /groups/web/leader; } >"$scratch/everything.txt" 2>"$scratch/everything.log"
    has "$(cat "$scratch/everything.txt")" '"victim"'
    has "$(cat "$scratch/everything.txt")" '"web"'
    hidden "$scratch/everything.txt" $session $nonce $instance "$own"
    attack 0 "${clients_of[n3]}" reader $session $nonce $instance "$own"
    # And by HTTP a session that was opened otherwise is of no use.
    for path in keepalive resign events; do
        body=$(post n3 "/groups/work/$path" "{\"session\":\"$session\"}")
        [[ ${body##*$'\n'} == 4* ]] || fail "$path is granted: $body"
    done
    unharmed
}

# The mandate of a real candidate, and its place in the list.
test_gavel_run_leads_on_whatever_is_done_with_what_is_shown() {
    local mandate name
    serving
    run_as worker "$GAVEL" run --store "$store" --group job --id worker --lease 60s -- sleep 1000
    await leads_job
    mandate=$(led job)
    for name in n1 n2 n3; do
        attack 0 "${clients_of[$name]}" finder job
        has "$output" "release: refused"
        has "$output" "heartbeat: refused"
        expect 0 "$GAVEL" candidates --store "$store" --group job --json
        same "$("$JSON_GET" candidates.# candidates.0.candidate candidates.0.leader <<<"$output")" $'1\tworker\ttrue'
    done
    same "$(led job)" "$mandate"
    kill -0 "${pid_of[worker]}"
}
leads_job() { [[ $("$GAVEL" leader --store "$store" --group job) == worker ]] && has_one; }
has_one() { [[ $("$GAVEL" candidates --store "$store" --group job --json | "$JSON_GET" candidates.#) == 1 ]]; }

# A candidate that is frozen, or was cut off, once it leads: when its lease is over no node says that it leads, though
# nobody else has come to lead. (A node that comes to lead the cluster meanwhile counts a whole lease.)
test_a_leader_whose_lease_is_over_is_nowhere_said_to_lead() {
    local name
    serving
    attack 0 "${clients_of[n1]}" holder job 10000
    await leads_at n3 holder
    for name in n1 n2 n3; do
        await leads_nobody "$name"
        same "$(code_of "$name" '/groups/job/leader?candidate=holder')" 503
        same "$(tells "$name" '/groups/job/leader/name' name)" ""
        same "$(code_of "$name" /groups/job/leader)" 503
        same "$(tells "$name" /groups/job leader former_leader former_ending)" $'null\tholder\tlapsed'
    done
    expect 3 "$GAVEL" leader --group job
    expect 0 "$GAVEL" status --group job --json
    same "$("$JSON_GET" leader_id how <<<"$output")" $'null\tlapsed'
    expect 0 "$GAVEL" status --store "$store" --group job --json
    same "$("$JSON_GET" leader_id how <<<"$output")" $'null\tlapsed'
}
leads_at() { [[ $(code_of "$1" "/groups/job/leader?candidate=$2") == 200 ]]; }
leads_nobody() { [[ $(tells "$1" /groups/job leader) == null ]]; }

# turned_away PORT NAME: whether a client with that certificate is told so.
turned_away() {
    # shellcheck disable=SC2046
    "$SESSION_ATTACK" $(cert "$2") "$1" reader $session >"$scratch/away.err" 2>&1 || true
    grep -qF "the certificate is revoked" "$scratch/away.err"
}

# shellcheck disable=SC2046
test_a_client_that_is_revoked_loses_its_connection_and_gets_no_other() {
    local name
    with_tls
    victim "${clients_of[n1]}" $(cert one)
    for name in n1 n2 n3; do
        if turned_away "${clients_of[$name]}" one; then fail "$name turns a good certificate away"; fi
    done
    expect 0 "$GAVEL" cert revoke "$ca/one.crt" --list "$scratch/revoked"
    for name in n1 n2 n3; do kill -HUP "${pid_of[$name]}"; done
    ended victim 2
    has "$(cat "$scratch/victim.out")" "cannot go on"
    for name in n1 n2 n3; do
        await turned_away "${clients_of[$name]}" one
        attack 0 $(cert other) "${clients_of[$name]}" reader $session # everybody else comes in
    done
    # gavel itself says why.
    expect 4 timeout 60 "$GAVEL" leader --group job --store "$store?ca=$ca/ca.crt&cert=$ca/one.crt&key=$ca/one.key"
    has "$errors" "revoked"
    expect 0 "$GAVEL" candidates --group job --store "$store?ca=$ca/ca.crt&cert=$ca/other.crt&key=$ca/other.key"
}

# A candidate that runs says why it is out, and what to do, and not that the store is slow.
test_a_candidate_that_is_revoked_says_so() {
    local name url
    with_tls
    url="$store?ca=$ca/ca.crt&cert=$ca/one.crt&key=$ca/one.key"
    run_as worker "$GAVEL" run --store "$url" --group night --id worker --lease 5s --call-timeout 2s --candidate-timeout 8s -- sleep 1000
    await grep -q "runs the command" "$scratch/worker.err"
    expect 0 "$GAVEL" cert revoke "$ca/one.crt" --list "$scratch/revoked"
    for name in n1 n2 n3; do kill -HUP "${pid_of[$name]}"; done
    await grep -q "ERR_STORE_DENIED.*the certificate is revoked; have another issued" "$scratch/worker.err"
    await grep -q "no longer leads" "$scratch/worker.err"
}

# A stolen key of a node is of no use against clients that have the list.
test_a_client_with_the_list_takes_no_revoked_node() {
    local name url
    with_tls
    url="$store?ca=$ca/ca.crt&cert=$ca/one.crt&key=$ca/one.key"
    cp "$scratch/revoked" "$scratch/mine"
    expect 0 "$GAVEL" candidates --group job --store "$url&revoked=$scratch/mine"
    for name in n1 n2 n3; do expect 0 "$GAVEL" cert revoke "$ca/$name.crt" --list "$scratch/mine"; done
    expect 4 "$GAVEL" candidates --group job --store "$url&revoked=$scratch/mine"
    has "$errors" "its certificate is revoked"
    expect 0 "$GAVEL" candidates --group job --store "$url"
    expect 4 "$GAVEL" candidates --group job --store "$url&revoked=$scratch/none"
    has "$errors" "an empty file revokes none"
    expect 2 "$GAVEL" candidates --group job --store "$store?revoked=$scratch/mine"
}

# https PATH [CURL OPTION…]: the code of the answer of n1.
https() {
    local path=$1
    shift
    curl -sS -m 30 --cacert "$ca/ca.crt" -o /dev/null -w '%{http_code}' "$@" "https://127.0.0.1:${api_of[n1]}$path"
}
is_ready() { [[ $(https /ready) == 200 ]]; }

# The API asks nobody for a certificate, so that none opens anything there, revoked or not: the token does.
test_by_https_the_token_counts_and_no_certificate() {
    local token=0123456789abcdef0123456789abcdef with name
    cluster n1
    ca=$scratch/ca
    expect 0 "$GAVEL" cert init test --out "$ca"
    expect 0 "$GAVEL" cert issue n1 --ca "$ca" --out "$ca"
    expect 0 "$GAVEL" cert issue one --client --ca "$ca" --out "$ca"
    : >"$scratch/revoked"
    (umask 077 && echo $token >"$scratch/token")
    free_port
    clients_of[n1]=$port
    configure n1 "tls: {ca: $ca/ca.crt, cert: $ca/n1.crt, key: $ca/n1.key, api: true, revoked: $scratch/revoked}" \
        "secret: $ca/cluster.secret" "token: $scratch/token" "clients: 127.0.0.1:$port"
    begin n1
    await is_ready
    with=(--cert "$ca/one.crt" --key "$ca/one.key")
    for name in before after; do
        same "$(https /groups/g/notes/k -X PUT -d v "${with[@]}")" 401
        same "$(https /groups/g/notes/k -X PUT -d v)" 401
        same "$(https /groups/g/notes/k -X PUT -d v "${with[@]}" -H "Authorization: Bearer $token")" 200
        expect 0 "$GAVEL" cert revoke "$ca/one.crt" --list "$scratch/revoked"
        kill -HUP "${pid_of[n1]}"
        await turned_away "${clients_of[n1]}" one
    done
}

run_tests "$@"
