#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gavel store and gavel check with real servers: what is measured, what an administrator gets, and what is never told.
set -euo pipefail
: "${SOURCE_ROOT:?}"
# shellcheck source=servers_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/servers_lib.sh"

group=gavel-store-ping

json() { "$JSON_GET" "$1" <<<"$output"; }
leaves_no_row() { same "$("$GAVEL" groups --store "$store" --prefix "$group" --json | "$JSON_GET" 'groups.#')" 0; }
state_of_group() { "$GAVEL" status --store "$store" --group "$group" --json | "$JSON_GET" state; }
# sql DATABASE: as root.
sql() { { echo "use $1;" && cat; } | server_do db sql; }
needs() { if [[ $("$GAVEL" store list) == *"not in this build: -D$1_store"* ]]; then skip "this build has no $1"; fi; }

# measured DRIVER PRESET CLOCK
measured() {
    local op
    expect 0 ping "$store" --count 3 --json
    same "$(json store.driver)" "$1"
    same "$(json store.clock)" "$3"
    same "$(json preset)" "$2"
    same "$(json fits)" true
    for op in read claim renew release; do
        same "$(json "operations.$op.calls")" 3
        same "$(json "operations.$op.failed")" 0
    done
    leaves_no_row
    expect 0 ping "$store" --read-only --count 2 --json
    same "$(json operations.read.calls)" 2
    same "$(json operations.claim)" null
}

test_mysql_is_measured() {
    needs mysql
    server_make db measured
    store=$(server_url db measured)
    measured mysql database "may step"
    run_as ping "$GAVEL" store ping "$store" --count 100000
    await is_renewed
    kill -TERM "${pid_of[ping]}"
    ended ping 143
    leaves_no_row
}

# The epoch of the group grows with each round.
is_renewed() { (($("$GAVEL" status --store "$store" --group "$group" --json | "$JSON_GET" epoch) > 4)); }

test_etcd_is_measured() {
    needs etcd
    server_start kv etcd
    store=$(server_url kv measured)
    measured etcd database none
}

# As docs/STORES.md shows it; a user needs no more than that.
test_etcd_lets_a_user_in_who_was_made_as_documented() {
    needs etcd
    local commands
    server_start kv etcd
    export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=127.0.0.1:${server_port[kv]}
    commands=$(grep '^etcdctl ' "$SOURCE_ROOT/docs/STORES.md" | sed 's/^etcdctl user add gavel$/&:testsecret/')
    (($(wc -l <<<"$commands") == 4)) || fail "other commands: $commands"
    eval "$commands" >"$scratch/etcdctl.out"
    etcdctl user add root:root >>"$scratch/etcdctl.out"
    etcdctl auth enable >>"$scratch/etcdctl.out" 2>&1
    store=$(server_url kv gavel)
    expect 4 ping "$store"
    expect 4 env GAVEL_ETCD_USER=gavel GAVEL_ETCD_PASSWORD=wr0ngsecret "$GAVEL" store ping "$store" --json --log-level debug
    has_not "$output$errors" wr0ngsecret
    GAVEL_ETCD_USER=gavel GAVEL_ETCD_PASSWORD=testsecret expect 0 ping "$store" --count 1
    echo gavel:testsecret >"$scratch/credentials"
    expect 0 ping "$store?credentials=$scratch/credentials" --count 1
    expect 4 ping "$(server_url kv elsewhere)?credentials=$scratch/credentials" --count 1
}

test_s3_is_measured() {
    needs s3
    server_start objects radosgw
    server_make objects measured
    store=$(server_url objects measured)
    measured s3 object-store none
    expect 4 env AWS_SECRET_ACCESS_KEY=wr0ngsecret "$GAVEL" store ping "$store" --json --log-level debug
    has "$errors" "refuses our signature"
    has_not "$output$errors" wr0ngsecret
    expect 4 ping "$(server_url objects nowhere)"
    has "$errors" "does not exist"
}

# A server that is slower than the preset of one host wants, and fast enough for its own.
test_a_slow_server_does_not_fit_every_preset() {
    needs mysql
    server_make db slow
    store=$(server_url db slow)
    expect 0 ping "$store" --count 1
    proxy_start link db
    proxy link delay 200 0
    store=$(server_url db slow "$(proxy_address link)")
    expect 7 "$GAVEL" store ping "$store" --count 1 --preset local
    has "$output" "The preset local does not fit"
}

test_a_server_that_is_gone_is_told_soon() {
    needs mysql
    local began=$SECONDS
    expect 4 ping mysql://gavel@127.0.0.1:1/app
    has "$errors" "mysql://127.0.0.1:1/app"
    expect 4 ping "$(server_url db nowhere)"
    has "$errors" 'there is no database "nowhere"'
    server_make db frozen
    store=$(server_url db frozen)
    expect 0 ping "$store" --count 1
    server_freeze db
    expect 4 ping "$store"
    server_thaw db
    ((SECONDS - began < limit_s)) || fail "it took $((SECONDS - began)) s"
    expect 0 ping "$store" --count 1
}

test_a_server_that_dies_meanwhile_ends_it_in_the_words_of_the_driver() {
    needs mysql
    server_make db dies
    store=$(server_url db dies)
    run_as ping "$GAVEL" store ping "$store" --count 100000 --json
    await is_renewed
    server_kill db
    ended ping 4
    has "$(cat "$scratch/ping.out")" ERR_STORE_UNAVAILABLE
    server_restart db
    expect 0 ping "$store" --count 1
}

columns_of() { sql information_schema <<<"select count(*) from columns where table_schema = '$1' and table_name = '$2'" | tail -n 1; }

test_sql_is_good_for_a_server_however_often_it_is_given() {
    needs mysql
    local i
    server_make db admin
    for i in 1 2; do "$GAVEL" store sql mysql --table jobs | sql admin; done
    ((i == 2 && $(columns_of admin jobs) > 3)) || fail "no table: $(columns_of admin jobs)"
    (($(columns_of admin jobs_epochs) > 1 && $(columns_of admin jobs_candidates) > 3)) || fail "tables are missing"
    store="$(server_url db admin)?table=jobs"
    expect 0 ping "$store" --count 1
    leaves_no_row
    expect 0 "$GAVEL" store sql mysql --json
    has "$(json sql)" "CREATE TABLE IF NOT EXISTS \`locks\`"
    expect 2 "$GAVEL" store sql mysql --table 'jobs; drop'
    has "$errors" "is not a valid name for the table"
}

test_sql_adds_what_a_table_of_three_columns_lacks() {
    needs mysql
    local i
    server_make db shared
    sql shared <<<"create table locks(lock_key varchar(255) primary key, owner_id varchar(255) not null,
        expires_at timestamp(6) not null); insert into locks values ('$group', 'other', now(6) - interval 1 second)"
    for i in 1 2; do "$GAVEL" store sql mysql | sql shared; done
    ((i == 2 && $(columns_of shared locks) > 3)) || fail "still three columns"
    store=$(server_url db shared)
    same "$("$GAVEL" status --store "$store" --group "$group" --json | "$JSON_GET" last_leader)" other
    expect 0 ping "$store" --count 1
}

# The table exactly as programs of three columns make it: the printed SQL is enough, and so is the printed command.
seed="create table locks(lock_key varchar(255) primary key, owner_id varchar(255) not null, expires_at timestamp not null)
    character set latin1; set session sql_mode = ''; insert into locks values ('zero', 'other', 20261117031955 + 10),
    ('job', 'other', now() + interval 1 hour)"

test_the_printed_sql_is_enough_for_the_table_of_others() {
    needs mysql
    local i
    server_make db seeded
    sql seeded <<<"$seed"
    store=$(server_url db seeded)
    expect 4 ping "$store" --count 1
    for i in 1 2; do "$GAVEL" store sql mysql | sql seeded; done
    same "$("$GAVEL" leader --store "$store" --group job)" other
    expect 0 ping "$store" --count 1
    ((i == 2)) || fail "not twice"
}

test_the_command_that_a_refusal_prints_migrates_the_table_of_others() {
    needs mysql
    local command
    server_make db migrated
    sql migrated <<<"$seed"
    store=$(server_url db migrated)
    expect 4 "$GAVEL" run --store "$store" --group job -- true
    has "$errors" "expires_at of table locks is timestamp and must be TIMESTAMP(6)"
    command=$(grep -oE "gavel store migrate '[^']*'" <<<"$errors")
    expect 0 bash -c "\"\$GAVEL\" ${command#gavel }"
    has "$output" "ALTER TABLE \`locks\`"
    expect 0 "$GAVEL" store migrate --store "$store" --json
    same "$(json is_migrated)" false
    same "$("$GAVEL" leader --store "$store" --group job)" other
    sql migrated <<<"$plain_claim"
    same "$("$GAVEL" leader --store "$store" --group free)" plain
    expect 0 ping "$store" --count 1
    expect 2 "$GAVEL" store migrate "$store" --store "$store"
    has "$errors" "given twice"
}

plain_claim="insert into locks (lock_key, owner_id, expires_at) values ('free', 'plain', now() + interval 100 second)
    on duplicate key update owner_id = if(expires_at < now(), values(owner_id), owner_id),
    expires_at = if(expires_at < now(), values(expires_at), expires_at)"

# Whoever waited for it would take the end of its lease for a hand-over.
test_a_leader_that_is_no_candidate_of_gavel_cannot_be_asked_to_resign() {
    needs mysql
    server_make db foreign
    "$GAVEL" store sql mysql | sql foreign
    store=$(server_url db foreign)
    sql foreign <<<"insert into locks (lock_key, owner_id, expires_at) values ('job', 'old-1', now(6) + interval 1 hour)"
    expect 1 "$GAVEL" handover --store "$store" --group job --timeout 1h
    has "$errors" "old-1 leads, but is not a candidate of gavel and cannot be asked"
    expect 1 "$GAVEL" handover --store "$store" --group job --to old-2 --force --timeout 1h --json
    same "$(json error.name)" ERR_LEADER_TRANSFER_FAILED
    # One of gavel could be, on the same table.
    sql foreign <<<"delete from locks"
    run_as elect "$GAVEL" elect --store "$store" --group job --id new-1
    await leads new-1
    expect 1 "$GAVEL" handover --store "$store" --group job --to new-2
    has "$errors" 'has no active candidate "new-2"'
    kill -TERM "${pid_of[elect]}"
    ended elect 0
}

leads() { [[ $("$GAVEL" status --store "$store" --group job --json | "$JSON_GET" leader_id) == "$1" ]]; }

# Whoever may not make tables is told what an administrator has to do; with the grants it prints all is well.
test_a_user_who_may_not_make_tables_needs_the_sql_of_an_administrator() {
    needs mysql
    server_make db strict
    sql strict <<<"create user strict@'%' identified by 'testsecret'; grant select on strict.* to strict@'%'"
    store=mysql://strict@127.0.0.1:${server_port[db]}/strict
    expect 4 ping "$store"
    has "$errors" 'gavel store sql mysql'
    "$GAVEL" store sql mysql | sql strict
    "$GAVEL" store sql mysql | sed -n "s/^-- GRANT/GRANT/p" | sed "s/\`gavel\`\./strict./; s/'gavel'@/strict@/" | sql strict
    expect 0 ping "$store" --count 2
}

test_a_wrong_password_is_told_and_not_repeated() {
    needs mysql
    server_make db wrong
    store=$(server_url db wrong)
    expect 4 env GAVEL_MYSQL_PASSWORD=wr0ngsecret "$GAVEL" store ping "$store" --json --log-level debug
    has "$errors" "does not let us in"
    has_not "$output$errors" wr0ngsecret
    printf '[client]\nuser = gavel\npassword = "wr0ngsecret"\n' >"$scratch/my.cnf"
    expect 4 env -u GAVEL_MYSQL_PASSWORD GAVEL_MYSQL_OPTIONS="$scratch/my.cnf" "$GAVEL" elect --store "$store" --log-level debug
    has_not "$output$errors" wr0ngsecret
    sed -i 's/wr0ngsecret/testsecret/' "$scratch/my.cnf"
    unset GAVEL_MYSQL_PASSWORD
    GAVEL_MYSQL_OPTIONS="$scratch/my.cnf" expect 0 ping "$store" --count 1
}

cmdlines() { tr '\0' ' ' <"/proc/$1/cmdline"; }

test_gavel_run_shows_the_password_to_nobody() {
    needs mysql
    local pid command
    server_make db run
    store=$(server_url db run)
    unset AWS_SECRET_ACCESS_KEY # which commands do get: it is not gavel's alone
    run_as run "$GAVEL" run --store "$store" --group job --log-level debug -- sh -c 'echo $$ >"$1"; exec sleep 600' sh "$scratch/pid"
    await test -s "$scratch/pid"
    command=$(cat "$scratch/pid")
    has "$(cmdlines "$command")" "sleep 600"
    # The elector, its guard, and the command.
    for pid in "${pid_of[run]}" $(awk -v parent="${pid_of[run]}" '$4 == parent { print $1 }' /proc/[0-9]*/stat 2>/dev/null) "$command"; do
        has_not "$(cmdlines "$pid")" testsecret
    done
    has_not "$(tr '\0' ' ' <"/proc/$command/environ")" testsecret
    kill -TERM "${pid_of[run]}"
    ended run 143
    has_not "$(cat "$scratch"/run.*)" testsecret
    has "$(cat "$scratch"/run.err)" "$store"
}

test_check_says_what_each_server_is_asked_for() {
    needs mysql
    expect 0 "$GAVEL" check --store mysql://h/db --candidates 11
    has "$output" "may step: a lease has run out when the store says so"
    has "$output" "if the clock of the store is set or jumps             0"
    has "$output" "399 statements a minute"
    expect 0 "$GAVEL" check --store mysql://h/db --trust-store-clock --json
    same "$(json store.lease_timed_by)" store
    same "$(json bounds.overlap_at_step_ms)" "$(json bounds.stopped_by_ms)"
    needs etcd
    expect 0 "$GAVEL" check --store etcd://h/p --candidates 11 --json
    same "$(json store.lease_timed_by)" standby
    same "$(json load.requests_per_minute)" 420.0
    same "$(json load.statements_per_minute)" null
    needs s3
    expect 0 "$GAVEL" check --store s3://b/p --preset database --candidates 2 --prices 1,0,0 --json
    # Two registrations and a renewal every 5 s; 730 hours have a month.
    same "$(json load.s3.put_per_hour)" 2160.0
    has "$(json load.s3.usd_per_month)" 1576.8
    expect 0 "$GAVEL" check --store s3://b/p
    has "$output" "US dollars a month"
    has "$output" "Prices change"
    for command in 1 1,2 1,2,x 1,2,-3 1,2,3,4 nan,1,1; do
        expect 2 "$GAVEL" check --store s3://b/p --prices "$command"
        has "$errors" "PUT,GET,LIST"
    done
}

server_credentials
server_start db mariadb
run_tests "$@"
