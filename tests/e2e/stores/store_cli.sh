#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gavel store, and what gavel check says of a store; on files.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
: "${SOURCE_ROOT:?}"

group=gavel-store-ping

ping_of() { GAVEL_STORE=$1 ping "${@:2}"; }
# ended_measuring NAME: as ended, of a ping.
ended_measuring() {
    local code=0
    await process_is_gone "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || code=$?
    unset "pid_of[$1]"
    ((code == 0 || code == 7)) || fail "$1 ended with $code"
}
leaves_no_row() { same "$("$GAVEL" groups --store "$store" --prefix "$group" --json | "$JSON_GET" 'groups.#')" 0; }
state_of_group() { "$GAVEL" status --store "$store" --group "$group" --json | "$JSON_GET" state; }

# json NAME: of what the last expected command printed.
json() { "$JSON_GET" "$1" <<<"$output"; }

is_at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }' || fail "$1 is more than $2"; }

test_ping_measures_each_operation_and_leaves_the_group_released() {
    local op
    expect 0 ping "$store" --count 7 --json
    same "$(json rounds)" 7
    for op in read claim renew release; do
        same "$(json "operations.$op.calls")" 7
        same "$(json "operations.$op.failed")" 0
        is_at_most 0 "$(json "operations.$op.p50_ms")"
        is_at_most "$(json "operations.$op.p50_ms")" "$(json "operations.$op.p90_ms")"
        is_at_most "$(json "operations.$op.p90_ms")" "$(json "operations.$op.p99_ms")"
        is_at_most "$(json "operations.$op.p99_ms")" "$(json "operations.$op.max_ms")"
        is_at_most "$(json "operations.$op.p99_ms")" "$(json slowest_p99_ms)"
    done
    same "$(json 'presets.#')" 6
    same "$(json presets.0.name)" local
    same "$(json presets.0.is_own)" true
    same "$(json presets.1.is_own)" false
    same "$(json preset)" local
    same "$(json fits)" "$(awk -v p99="$(json slowest_p99_ms)" -v limit="$(json call_timeout_ms)" \
        'BEGIN { print 3 * p99 <= limit ? "true" : "false" }')"
    leaves_no_row
    expect 0 "$GAVEL" candidates --store "$store" --group "$group" --json
    same "$(json 'candidates.#')" 0
    expect 0 ping "$store" --count 2
    has "$output" "steady: the store says when a lease has run out"
    has "$output" "Latency, over 2 rounds"
    has "$output" "The preset local "
}

test_ping_takes_the_store_from_wherever_settings_come_from() {
    expect 0 ping --store "$store" --count 1 --json
    same "$(json store.url)" "$store"
    expect 0 ping_of memory:a --count 1 --json
    same "$(json store.driver)" memory
    expect 0 ping_of memory:a "$store" --count 1 --json
    same "$(json store.driver)" sqlite
    expect 2 ping "$store" --store "$store"
    has "$errors" "given twice"
    printf 'store: memory:b\ncall_timeout: 700ms\n' >"$scratch/gavel.yaml"
    expect 0 ping -f "$scratch/gavel.yaml" --count 1 --json
    same "$(json store.url)" memory:b
    same "$(json call_timeout_ms)" 700
}

test_ping_of_a_fixed_leader_only_reads() {
    expect 0 ping static:web-1 --count 3 --json
    same "$(json operations.read.calls)" 3
    same "$(json operations.claim)" null
    same "$(json is_read_only)" true
}

test_read_only_makes_and_writes_nothing() {
    expect 4 ping "$store" --read-only
    has "$errors" "there is no store sqlite:$store"
    [[ ! -e $store ]] || fail "the store was made"
    expect 0 ping "$store" --count 1
    local before
    before=$("$SQL" "$store" 'SELECT * FROM groups')
    expect 0 ping "$store" --read-only --count 3 --json
    same "$(json operations.read.calls)" 3
    same "$(json operations.release)" null
    same "$("$SQL" "$store" 'SELECT * FROM groups')" "$before"
}

has_opened() { [[ $(find "/proc/${pid_of[$1]}/fd" -lname "$store") ]]; }

# A store that answers, but late: somebody has it locked for a while.
test_a_store_that_is_too_slow_for_its_preset_is_told_by_the_exit_code() {
    expect 0 ping "$store" --count 1
    run_as holder "$SQL" "$store" 'BEGIN IMMEDIATE' hold
    await grep -q 'done' "$scratch/holder.out"
    run_as ping "$GAVEL" store ping "$store" --count 1 --json
    await has_opened ping
    sleep 0.8 # no wait for something to happen: this is how slow the store is
    kill -KILL "${pid_of[holder]}"
    ended ping 7
    output=$(cat "$scratch/ping.out")
    same "$(json fits)" false
    same "$(json presets.0.fits)" false
    is_at_most 167 "$(json slowest_p99_ms)"
}

test_a_signal_ends_it_in_order_with_what_was_measured() {
    local signal
    run_as ping env --default-signal=INT "$GAVEL" store ping "$store" --count 100000 --json
    await has_opened ping
    kill -INT "${pid_of[ping]}"
    ended ping 130
    output=$(cat "$scratch/ping.out")
    same "$(json is_interrupted)" true
    leaves_no_row
    for signal in TERM HUP; do
        run_as ping env --default-signal=HUP "$GAVEL" store ping "$store" --count 100000
        await has_opened ping
        kill -$signal "${pid_of[ping]}"
        ended ping $((128 + $(kill -l $signal)))
        leaves_no_row
    done
    grep -q 'ended early' "$scratch/ping.out" || fail "it does not say so"
}

test_several_at_once_take_turns() {
    local name
    for name in a b c; do run_as $name "$GAVEL" store ping "$store" --count 30 --json; done
    for name in a b c; do
        ended_measuring $name
        output=$(cat "$scratch/$name.out")
        same "$(json rounds)" 30
        same "$(json operations.release.calls)" 30
    done
    leaves_no_row
}

is_held() { [[ $(state_of_group) == held ]]; }

test_one_that_was_killed_does_not_keep_the_next_from_measuring() {
    run_as ping "$GAVEL" store ping "$store" --count 100000
    await has_opened ping
    kill -KILL "${pid_of[ping]}"
    expect 0 ping "$store" --count 2
    leaves_no_row
}

# It looks like any other leader until its lease is over; who waits for it says why.
test_a_group_that_somebody_leads_is_left_alone() {
    run_as leader "$GAVEL" elect --store "$store" --group "$group" --id other
    await is_held
    run_as ping "$GAVEL" store ping "$store" --count 1
    await has_opened ping
    same "$("$GAVEL" leader --store "$store" --group "$group")" other
    kill -TERM "${pid_of[leader]}"
    ended leader 0
    ended_measuring ping
}

test_progress_is_shown_on_a_terminal_only() {
    local line
    printf -v line '%q ' "$GAVEL" store ping "$store" --count 3
    has "$(TERM=xterm typescript -qec "$line" /dev/null </dev/null)" "measuring: "
    expect 0 ping "$store" --count 3
    has_not "$errors" "measuring"
    expect 0 ping "$store" --count 1 --color always
    has "$output" $'\033['
    expect 0 ping "$store" --count 1
    has_not "$output" $'\033['
}

test_what_cannot_be_opened_is_told_in_the_words_of_the_driver() {
    local address
    expect 4 ping gavel://127.0.0.1:1 --json
    has "$errors" "no node of gavel://127.0.0.1:1 answers"
    has "$errors" "if it is not running, start gaveld there"
    same "$(json error.name)" ERR_STORE_UNAVAILABLE
    expect 4 ping gavel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3
    has "$errors" "none of the 3 nodes of gavel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 answers (the last tried: 127.0.0.1:"
    has "$errors" "if they are not running, start gaveld there"
    head -c 8192 /dev/urandom >"$store"
    expect 4 ping "$store"
    expect 2 ping redis://h
    has "$errors" 'there is no store "redis" in this build'
    for address in 127.0.0.1:27601 h1:7600,h2:7600 "[::1]:7600"; do
        expect 2 ping "$address"
        has "$errors" "write gavel://$address"
    done
    expect 2 ping mariadb://h/db
    has "$errors" "it is called mysql: here"
}

test_wrong_use_is_refused_with_a_way_on() {
    expect 2 "$GAVEL" store
    has "$errors" "ping, sql, list, migrate or backup"
    expect 2 "$GAVEL" store pnig
    has "$errors" 'did you mean "ping"'
    expect 2 ping "$store" more
    expect 2 ping "$store" --count 0
    has "$errors" "from 1 to 100000"
    expect 2 ping "$store" --table x
    has "$errors" 'only for `gavel store sql`'
    expect 2 "$GAVEL" store list --read-only
    expect 2 "$GAVEL" store sql
    has "$errors" "gavel store sql mysql"
    expect 2 "$GAVEL" store sql s3
    has "$errors" "this is for: mysql"
    expect 2 ping "$store" --preset quick
}

# A URL is no place for one, and whoever puts it there all the same must not find it in a log.
test_a_password_in_a_url_is_refused_and_not_repeated() {
    local command url=mysql://joe:s3cr3t@db1/app
    for command in "store ping" check status leader elect "run -- true"; do
        # shellcheck disable=SC2086 # words
        expect 2 env GAVEL_STORE=$url "$GAVEL" $command
        has "$errors" "a password must not be in the URL"
        has_not "$output$errors" s3cr3t
    done
    expect 2 "$GAVEL" leader --store gavel://joe:s3cr3t@127.0.0.1:7600
    has "$errors" "gavel:// has no users and no passwords"
    has_not "$output$errors" s3cr3t
    has_not "$errors" "gavel-stores(7)"
}

# Whoever is told that all is well must not be told otherwise by the first command that opens the store.
test_check_reads_a_url_as_its_driver_does() {
    local kinds url words
    kinds=$("$GAVEL" store list)
    while IFS='|' read -r url words; do
        [[ $kinds != *"not in this build: -D${url%%:*}_store"* ]] || continue
        expect 2 env -u AWS_ENDPOINT_URL_S3 -u AWS_ENDPOINT_URL -u AWS_CA_BUNDLE "$GAVEL" check --store "$url"
        has "$errors" "$words"
        has_not "$output$errors" s3cr3t
        expect 2 ping "$url"
        has "$errors" "$words"
    done <<'END'
gavel:h1:7600|come two slashes
gavel://h1:7600?tls=on|there is no option "tls"
gavel://192.0.2.1:7600|plain TCP is only for this machine
mysql://db1|the name of one database
mysql://db1/app?tabel=jobs|has no option "tabel"
mysql://db1/app?tls=maybe|neither yes nor no
s3://bucket/p?endpoint=http://joe:s3cr3t@h|a key or a path does not belong there
s3://bucket/p?endpoint=h:9000|lacks its scheme
s3://key@bucket/p|does not belong in the URL
etcd://h1:99999/p|a port is not a number
etcd://h1/p?cert=/dev/null|go together
END
    for url in gavel://h1:7600 mysql://joe@db1/app?table=jobs s3://bucket/p?endpoint=https://h etcd://joe@h1,h2:2379/p; do
        [[ $kinds == *"not in this build: -D${url%%:*}_store"* ]] || expect 0 "$GAVEL" check --store "$url"
    done
}

test_list_has_an_example_of_every_kind_that_works() {
    local count i
    expect 0 "$GAVEL" store list
    has "$output" "sqlite:/var/lib/gavel/gavel.db"
    expect 0 "$GAVEL" store list --json
    count=$(json 'stores.#')
    ((count == 7)) || fail "$count kinds"
    local list=$output example
    for ((i = 0; i < count; i++)); do
        [[ $("$JSON_GET" "stores.$i.is_built" <<<"$list") == true ]] || continue
        example=$("$JSON_GET" "stores.$i.example" <<<"$list")
        expect 0 "$GAVEL" check --store "$example" --json
        same "$(json store.driver)" "$("$JSON_GET" "stores.$i.scheme" <<<"$list")"
    done
}

test_check_tells_of_the_calls_of_a_group() {
    expect 0 "$GAVEL" check --store "$store" --preset database --candidates 11 --json
    # Every 5 s, without jitter: 12 a minute of each candidate; the leader lists every 20 s.
    same "$(json load.renewals_per_minute)" 12.0
    same "$(json load.registrations_per_minute)" 132.0
    same "$(json load.looks_per_minute)" 120.0
    same "$(json load.listings_per_minute)" 123.0
    same "$(json load.calls_per_minute)" 387.0
    same "$(json load.s3)" null
    expect 0 "$GAVEL" check --store "$store" --candidates 1
    has "$output" "1 leader and 0 standbys"
    expect 0 "$GAVEL" check --store static:web-1 --json
    same "$(json load)" null
}

# What people are told to look for must be what the drivers say.
test_the_table_of_outages_has_the_words_of_the_drivers() {
    local words part spoken count=0
    # shellcheck disable=SC2016 # backquotes of Markdown
    words=$(sed -n '/^## When the store fails/,/^## /p' "$SOURCE_ROOT/docs/OPERATIONS.md" | grep -E '^\| (any|sqlite|gavel|mysql|s3) ' |
        cut -d'|' -f3 | grep -oE '`[^`]+`' | tr -d '`')
    # Literals that go on in the next line are one text.
    spoken=$(cat "$SOURCE_ROOT"/src/store/*.c "$SOURCE_ROOT"/src/store/*/*.c "$SOURCE_ROOT"/include/gavel/event.h "$SOURCE_ROOT"/src/cli/run/runner_log.c | tr '\n' ' ' | sed -E 's/" +"//g')
    while read -r words; do
        while read -r part; do
            [[ -z $part || $spoken == *"$part"* ]] || fail "no driver says \"$part\""
            count=$((count + 1))
        done <<<"${words//…/$'\n'}"
    done <<<"$words"
    ((count >= 15)) || fail "only $count were compared"
}

# whole FILE: it is all of a store.
whole() { [[ -e $1 && ! -e $1-wal && ! -e $1-shm && ! -e $1-switch ]] || fail "not whole: $(ls "$1"*)"; }
epoch_of() { "$GAVEL" status --store "$1" --group job --json | "$JSON_GET" epoch; }

test_what_gavel_run_leaves_is_a_whole_file() {
    expect 0 "$GAVEL" once --store "$store" --key import -- true
    whole "${store#sqlite:}"
    run_as a "$GAVEL" run --store "$store" --group job -- sleep 1000
    await leads_job
    kill -TERM "${pid_of[a]}"
    ended a 143
    whole "${store#sqlite:}"
    run_as b "$GAVEL" run --store "$store" --group job -- sleep 1000
    await leads_job
    kill -KILL "${pid_of[b]}" # the guard is the last one out
    ended b 137
    await whole_by_now "${store#sqlite:}"
    cp "${store#sqlite:}" "$scratch/copy.db"
    same "$(epoch_of "$scratch/copy.db")" 2
    expect 0 "$GAVEL" once --store "$scratch/copy.db" --key import -- touch "$scratch/again"
    [[ ! -e $scratch/again ]] || fail "what was done once is done again on a copy"
}
leads_job() { "$GAVEL" leader --store "$store" --group job >/dev/null 2>&1; }
whole_by_now() { (whole "$1") 2>/dev/null; }

test_a_store_in_use_is_backed_up_and_its_file_alone_is_no_copy() {
    run_as a "$GAVEL" run --store "$store" --group job -- sleep 1000
    await leads_job
    expect 0 "$GAVEL" store backup --store "$store" "$scratch/backup.db"
    cp "${store#sqlite:}" "$scratch/copy.db"
    expect 4 "$GAVEL" status --store "$scratch/copy.db"
    has "$errors" "its -wal, is missing, and epochs with it"
    expect 4 timeout 30 "$GAVEL" run --store "$scratch/copy.db" -- touch "$scratch/started"
    [[ ! -e $scratch/started ]] || fail "the command was started"
    whole "$scratch/backup.db"
    same "$(epoch_of "$scratch/backup.db")" 1
    expect 2 "$GAVEL" store backup --store "$store" "$scratch/backup.db"
    has "$errors" "name a new file"
    expect 4 "$GAVEL" store backup --store "$scratch/nowhere.db" "$scratch/other.db"
    has "$errors" "there is no store"
    expect 4 "$GAVEL" store backup --store memory:x "$scratch/other.db"
    has "$errors" "with the tools of its server"
}

# Whatever is written meanwhile: each copy is the store of some instant between the beginning and the end of its making.
test_a_backup_while_leaders_write_is_the_store_of_one_instant() {
    local number before after copied
    for number in a b; do
        run_as "$number" "$GAVEL" run --store "$store" --group job --id "$number" --lease 30s --candidate-timeout 40s --min-mandate 0 -- sleep 1000
    done
    await leads_job
    hand_over_and_over &
    pid_of[over]=$!
    for number in {1..5}; do
        before=$(epoch_of "$store")
        expect 0 "$GAVEL" store backup --store "$store" "$scratch/backup$number.db"
        after=$(epoch_of "$store")
        whole "$scratch/backup$number.db"
        copied=$(epoch_of "$scratch/backup$number.db")
        ((before <= copied && copied <= after)) || fail "epoch $copied in a copy that was made between $before and $after"
    done
    await has_moved_on "$after"
}
hand_over_and_over() { while :; do "$GAVEL" handover --store "$store" --group job --timeout 30s >/dev/null 2>&1 || true; done; }
has_moved_on() { (($(epoch_of "$store") > $1)); }

# options_in FILE: those that the URL of a driver may have, by its source.
options_in() {
    tr '\n' ' ' <"$SOURCE_ROOT/src/store/$1" | grep -oE '\*const options\[\] = \{[^}]*\}' | grep -oE '"[a-z_]+"' | tr -d '"'
}

test_every_option_of_a_url_is_in_the_page_and_in_the_guide() {
    local file option page guide count=0
    page=$(sed 's/\\//g' "$SOURCE_ROOT/docs/man/gavel-stores.7.scd")
    guide=$(cat "$SOURCE_ROOT/docs/STORES.md")
    for file in mysql/target.c s3/s3.c etcd/etcd.c; do
        for option in $(options_in $file); do
            has "$page" "*$option=*"
            has "$guide" "$option="
            count=$((count + 1))
        done
    done
    ((count >= 19)) || fail "only $count were found"
}

# warned TEXT URL: check, in words and as JSON, and a candidate in its log.
warned() {
    expect 0 "$GAVEL" check --store "$2"
    has "$(tr -s ' \n' '  ' <<<"$output")" "$1"
    expect 0 "$GAVEL" check --store "$2" --json
    has "$("$JSON_GET" store.warning <<<"$output")" "$1"
}

test_a_store_that_a_restart_of_the_machine_empties_is_warned_of() {
    [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm ]] || skip "/dev/shm is no tmpfs that we may write"
    local there
    there=$(mktemp -d /dev/shm/gavel-XXXXXX)
    warned "epochs then begin again at 1" "$there/not/yet/gavel.db"
    [[ ! -e $there/not ]] || fail "check has made something"
    expect 0 "$GAVEL" run --store "$there/gavel.db" -- true
    rm -rf "$there"
    has "$errors" "level=warning"
    has "$errors" "the store is on tmpfs"
    [[ $(stat -f -c %T "$scratch") != tmpfs ]] || return 0
    same "$("$GAVEL" check --store "$store" --json | "$JSON_GET" store.warning)" null
    expect 0 "$GAVEL" run --store "$store" -- true
    has_not "$errors" "level=warning"
}

test_a_file_with_a_password_that_everybody_can_read_is_warned_of() {
    local file=$scratch/secret url scheme
    printf '[client]\nuser = u\npassword = p\n' >"$file"
    for url in "mysql://h/db?options=$file" "etcd://h/p?credentials=$file" "s3://b/p?endpoint=http://127.0.0.1:1&credentials=$file"; do
        scheme=${url%%:*}
        [[ $("$GAVEL" store list --json) == *"\"scheme\":\"$scheme\",\"is_built\":true"* ]] || continue
        chmod 644 "$file"
        warned "every user of this machine can read $file" "$url"
        chmod 640 "$file"
        same "$("$GAVEL" check --store "$url" --json | "$JSON_GET" store.warning)" null
    done
}

run_tests "$@"
