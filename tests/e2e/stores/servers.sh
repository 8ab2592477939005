#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The helpers of tests on real servers do what they say, and leave nothing behind.
set -euo pipefail
# shellcheck source=servers_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/servers_lib.sh"

answers() { [[ $(curl -s --max-time "${2:-5}" "http://$1/health") == *true* ]]; }

test_a_server_is_disturbed_and_comes_back() {
    local address
    server_start db etcd
    address=127.0.0.1:${server_port[db]}
    same "$(server_url db t1)" "etcd://$address/t1"
    answers "$address" || fail "it does not answer"
    server_freeze db
    ! answers "$address" 0.1 || fail "it is not frozen"
    server_thaw db
    await answers "$address"
    server_kill db
    ! answers "$address" || fail "it lives"
    server_restart db
    answers "$address" || fail "it has not come back"
    server_stop db
    [[ ! -e ${server_directory[db]} ]] || fail "its directory is still there"
    ! answers "$address" || fail "it has not ended"
}

test_a_proxy_stands_between() {
    local address
    server_start db etcd
    proxy_start link db
    address=$(proxy_address link)
    same "$(server_url db t1 "$address")" "etcd://$address/t1"
    answers "$address" || fail "nothing passes"
    proxy link mute
    ! answers "$address" 0.2 || fail "an answer has passed"
    proxy link pass
    answers "$address" || fail "nothing passes any more"
    proxy link count
    ((${answer##* } >= 3)) || fail "it has not counted the connections:$answer"
    proxy_stop link
    ! answers "$address" || fail "the proxy lives"
}

# Its servers and proxies are gone, though it could do nothing for that.
test_a_shell_that_is_killed_leaves_nothing() {
    local pid port
    (
        set +e
        server_start db etcd
        proxy_start link db
        echo "${server_directory[db]} ${server_port[db]} ${server_port[link]}" >"$scratch/there.new"
        mv "$scratch/there.new" "$scratch/there"
        sleep 60 & # one that lives on and has all descriptors
        echo $! >"$scratch/sleep"
        wait
    ) &
    pid=$!
    await test -e "$scratch/sleep"
    read -r site port through <"$scratch/there"
    answers "127.0.0.1:$through" || fail "it does not answer"
    kill -KILL "$pid"
    await test ! -e "$site"
    ! answers "127.0.0.1:$port" || fail "the server lives"
    ! answers "127.0.0.1:$through" || fail "the proxy lives"
    kill "$(cat "$scratch/sleep")"
}

run_tests "$@"
