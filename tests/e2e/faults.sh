#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stores that cannot be used: what is said, how it ends, and that nothing is lost.
#
# Steps of the wall clock are not tried here, since a test must not set the
# clock of the machine; the simulator steps clocks, and no decision reads the
# wall clock.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# refused MESSAGE: every command that uses the store ends with exit code 4 and that message.
refused() {
    local command
    for command in elect leader status candidates watch resign; do
        expect 4 timeout "$limit_s" "$GAVEL" $command --store "$store"
        has "$errors" "gavel $command: "
        has "$errors" "$1"
        expect 4 timeout "$limit_s" "$GAVEL" $command --store "$store" --json
        "$JSON_GET" error.code error.name error.message <<<"$output" >/dev/null
    done
}

# as_nobody COMMAND…: without the rights of root, which nothing is forbidden to.
as_nobody() {
    if (($(id -u) == 0)); then
        setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
    else
        "$@"
    fi
}

# A copy of the program that any user may run, wherever the build directory lies.
prepare_for_nobody() {
    cp "$GAVEL" "$scratch/gavel"
    chmod 755 "$scratch" "$scratch/gavel"
}

test_missing_store_is_not_created_by_looking() {
    local command
    for command in leader status candidates resign; do
        expect 4 "$GAVEL" $command --store "$scratch/missing/gavel.db"
        has "$errors" "there is no store"
        has "$errors" "gavel elect"
    done
    for command in 'watch --timeout' 'leader --wait'; do
        # shellcheck disable=SC2086 # an option with the command
        expect 6 "$GAVEL" $command 100ms --store "$scratch/missing/gavel.db"
        has "$errors" "waited 100 ms"
    done
    [[ ! -e $scratch/missing ]] || fail "looking has created it"
}

test_missing_store_is_created_by_taking_part() {
    store=$scratch/some/where/gavel.db
    elect a
    await said a became_leader
    [[ -f $store ]] || fail "there is no $store"
}

test_directory_that_cannot_be_made() {
    touch "$scratch/file"
    expect 4 "$GAVEL" elect --store "$scratch/file/gavel.db"
    has "$errors" "$scratch/file"
}

test_store_that_is_a_directory() {
    store=$scratch
    refused "not a file"
}

test_store_that_may_not_be_written() {
    prepare_for_nobody
    elect a
    await said a became_leader
    kill -TERM "${pid_of[a]}"
    ended a 0
    chmod 444 "$store"*
    expect 4 as_nobody timeout "$limit_s" "$scratch/gavel" elect --store "$store"
    has "$errors" "$store"
    chmod 000 "$store"*
    expect 4 as_nobody timeout "$limit_s" "$scratch/gavel" leader --store "$store"
}

test_looking_at_the_store_of_another_user_says_so() {
    prepare_for_nobody
    mkdir -m 700 "$scratch/closed"
    store=$scratch/closed/gavel.db
    elect a
    await said a became_leader
    (($(id -u) == 0)) || chmod 000 "$scratch/closed"
    local command
    for command in leader status candidates watch resign; do
        expect 4 as_nobody timeout "$limit_s" "$scratch/gavel" $command --store "$store"
        has "$errors" "cannot look into the store $store: Permission denied"
        has_not "$errors" "create"
    done
    chmod 700 "$scratch/closed"
}

test_directory_that_may_not_be_written() {
    prepare_for_nobody
    mkdir -m 555 "$scratch/closed"
    expect 4 as_nobody timeout "$limit_s" "$scratch/gavel" elect --store "$scratch/closed/gavel.db"
    has "$errors" "$scratch/closed"
    has "$errors" ";" # and what to do
}

test_file_that_is_not_a_database() {
    head -c 8192 /dev/urandom >"$store"
    cp "$store" "$scratch/before"
    refused "$store"
    cmp "$store" "$scratch/before" || fail "the file was changed"
}

test_database_of_another_program() {
    "$SQL" "$store" "SELECT 1" 2>/dev/null || : >"$store"
    "$SQL" "$store" "CREATE TABLE accounts (id); INSERT INTO accounts VALUES (1)"
    cp "$store" "$scratch/before"
    refused "$store"
    cmp "$store" "$scratch/before" || fail "the file was changed"
}

test_store_of_a_newer_version() {
    elect a
    await said a became_leader
    kill -TERM "${pid_of[a]}"
    ended a 0
    "$SQL" "$store" "PRAGMA user_version = 999"
    refused "newer"
}

test_unknown_kind_of_store() {
    local url
    for url in nonsense://x 'redis://host/db' ':'; do
        expect 2 "$GAVEL" elect --store "$url"
        expect 2 "$GAVEL" check --store "$url"
    done
    expect 2 "$GAVEL" elect --store ''
    expect 2 "$GAVEL" check --store ''
    has "$errors" "--store"
    (cd "$scratch" && expect 2 "$GAVEL" elect --store sqlit && has "$errors" "./sqlit")
    expect 2 "$GAVEL" leader --store sqlit
    [[ ! -e $scratch/sqlit ]] || fail "a mistyped word has started an election of its own"
    expect 2 "$GAVEL" elect --store sqlite:
    expect 2 "$GAVEL" elect --store static:
}

# Needs a file system of its own, which is as good as full after a few pages.
test_full_disk() {
    mkdir "$scratch/disk"
    local enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    "${enter[@]}" mount -t tmpfs -o size=64k none "$scratch/disk" 2>/dev/null ||
        skip "this machine does not let us mount a small file system"
    expect 4 timeout "$limit_s" "${enter[@]}" bash -c '
        mount -t tmpfs -o size=64k none "$1/disk"
        dd if=/dev/zero of="$1/disk/filler" bs=4096 status=none 2>/dev/null
        exec "$GAVEL" elect --store "$1/disk/gavel.db"' sh "$scratch"
    has "$errors" "$scratch/disk"
}

# The disk fills up while somebody leads: it must lose its mandate in time, say so, and not fall over.
test_disk_that_fills_up_while_leading() {
    mkdir "$scratch/disk"
    local enter=(unshare --mount)
    (($(id -u) == 0)) || enter=(unshare --user --map-root-user --mount)
    "${enter[@]}" mount -t tmpfs -o size=1m none "$scratch/disk" 2>/dev/null ||
        skip "this machine does not let us mount a small file system"
    mkfifo "$scratch/go"
    run_as a "${enter[@]}" bash -c '
        exec 5<>"$1/go" # once: whoever opens it for each line may meet the writer of the last one, and its end
        mount -t tmpfs -o size=1m none "$1/disk"
        setpriv --pdeathsig KILL "$GAVEL" elect --store "$1/disk/gavel.db" --id a --breaker-reset 1s 5>&- &
        read -r _ <&5
        dd if=/dev/zero of="$1/disk/filler" bs=4096 status=none 2>/dev/null
        read -r _ <&5
        rm "$1/disk/filler"
        read -r _ <&5
        kill -TERM $!
        wait $!' sh "$scratch"
    await said a became_leader
    echo >"$scratch/go"
    await said a lost_leadership '"reason":"lapsed"'
    echo >"$scratch/go"
    await_twice() { (($(grep -cF '"event":"became_leader"' "$scratch/a.out") >= 2)); }
    await await_twice
    echo >"$scratch/go"
    ended a 0
    "$JSON_GET" . <"$scratch/a.out" >/dev/null
}

test_store_that_vanishes_while_leading() {
    elect a
    await said a became_leader
    rm "$store" "$store"-*
    await said a lost_leadership '"reason":"superseded"' # at once: others may lead in a new one already
    kill -TERM "${pid_of[a]}"
    ended a 0
}

# By a second name there would be a second log, and in it a second leader with the same epoch.
test_store_with_a_second_name() {
    elect a --breaker-reset 1s # the breaker may open before the name is gone
    await said a became_leader
    ln "$store" "$scratch/other.db"
    await said a lost_leadership
    refused "hard link"
    expect 4 "$GAVEL" elect --store "$scratch/other.db"
    has "$errors" "hard link"
    [[ ! -e $scratch/other.db-wal ]] || fail "it has a log of its own"
    rm "$scratch/other.db"
    await leads a
}

test_store_that_is_a_device() {
    store=/dev/null
    refused "not a file"
    has_not "$errors" "/dev/null/gavel.db"
}

# Looking needs no lock, so it does not wait for one; writing says who has it.
test_store_that_somebody_has_locked_and_is_frozen() {
    elect a
    await said a became_leader
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await test -s "$scratch/lock.out"
    kill -STOP "${pid_of[lock]}"
    expect 0 timeout "$limit_s" "$GAVEL" status --store "$store"
    expect 6 timeout "$limit_s" "$GAVEL" resign --store "$store"
    has "$errors" "process ${pid_of[lock]} (sql, stopped) holds its lock; continue or end it"
}

test_store_that_is_locked_by_others_for_long() {
    elect a --breaker-reset 1s
    await said a became_leader
    run_as lock "$SQL" "$store" "BEGIN IMMEDIATE" hold
    await said a lost_leadership '"reason":"lapsed"'
    kill -KILL "${pid_of[lock]}"
    ended lock 137
    await_twice() { (($(grep -cF '"event":"became_leader"' "$scratch/a.out") >= 2)); }
    await await_twice
    local epochs
    epochs=$(grep -F '"event":"became_leader"' "$scratch/a.out" | "$JSON_GET" epoch)
    same "$epochs" "$(sort -n -u <<<"$epochs")"
}

test_store_of_a_newer_gavel_ends_a_candidate() {
    elect a
    await said a became_leader
    "$SQL" "$store" 'UPDATE groups SET format = 9'
    ended a 4
    said a stopped '"status":"ERR_STORE_TOO_NEW"' || fail "no such event"
    said a stopped 'newer gavel' || fail "the event does not say why"
    has "$(cat "$scratch/a.err")" "newer gavel"
    has "$(cat "$scratch/a.err")" "update this one"
}

test_store_deleted_under_a_candidate_is_told_with_what_to_do() {
    elect a
    await said a became_leader
    rm "$store"
    await said a breaker_open 'put it back'
    said a breaker_open '"status":"ERR_STORE_DAMAGED"' || fail "no such event"
    await grep -qF 'put it back' "$scratch/a.err"
    kill -TERM "${pid_of[a]}"
    ended a 0
}

run_tests "$@"
