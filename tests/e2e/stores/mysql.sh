#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# MariaDB as a store, when it fails or does not let us in.
set -euo pipefail
# shellcheck source=stores_lib.sh
source "$SOURCE_ROOT/tests/e2e/stores/stores_lib.sh"

sql() { server_do site sql <<<"$1"; }

# as_user NAME PRIVILEGES: a user of the same password that may do no more than this in the database.
as_user() {
    sql "create or replace user $1@'%' identified by 'testsecret'; grant $2 on \`$name\`.* to $1@'%'"
    export GAVEL_MYSQL_USER=$1
    store=${store/gavel@/$1@}
}

test_a_cold_start_by_frugal_elects_the_lowest_id_in_any_order() {
    fresh
    a_cold_start_by_frugal_elects_the_lowest_id_in_any_order
}

# The server is away for longer than the lease: everybody's breaker is open when it is back, and nobody leads. It was 25 s
# until somebody did. Without faults it takes about two; the limit is for a busy machine.
test_after_an_outage_that_outlasts_the_lease_somebody_leads_soon() {
    local name back_at
    fresh
    for name in a b c; do
        run_as "$name" "$GAVEL" run --store "$store" --id "$name" --lease 10s -- sleep 1000
    done
    await somebody_leads
    server_kill site
    sleep 12 # the outage
    server_restart site
    back_at=$(date +%s%3N)
    await somebody_leads
    echo "# a leader $(($(date +%s%3N) - back_at)) ms after the server was back"
    (($(date +%s%3N) - back_at <= 15000)) || fail "nobody led for $(($(date +%s%3N) - back_at)) ms"
}
somebody_leads() { "$GAVEL" leader --store "$store" >/dev/null 2>&1; }

test_a_wrong_password_is_told_as_such() {
    fresh
    export GAVEL_MYSQL_PASSWORD=notthisone
    refused 4 "password" "GAVEL_MYSQL_PASSWORD"
    has_not "$errors" notthisone
}

test_a_user_who_may_not_make_the_tables_is_told_how_they_are_made() {
    fresh
    as_user plain 'select, insert, update, delete'
    refused 4 "gavel store sql mysql"
    expect 0 "$GAVEL" store sql mysql
    sql "use \`$name\`; $output"
    candidate a "$store"
    await said a became_leader
}

test_a_user_who_may_only_read_is_refused_at_the_start() {
    fresh
    expect 0 ping "$store" --count 1 # makes the tables
    as_user looker select
    refused 4 "command denied to user 'looker'" "grant what \`gavel store sql mysql\` prints"
    expect 4 timeout "$limit_s" "$GAVEL" once --store "$store" --key job -- touch "$scratch/started"
    [[ ! -e $scratch/started ]] || fail "the command was started"
    expect 4 "$GAVEL" store ping "$store" --count 1
    has_not "$errors" "could not be released"
    expect 0 ping "$store" --count 1 --read-only
}

# The rights of single columns are not tried beforehand; a claim that was refused leaves nothing to release.
test_a_claim_that_is_refused_leaves_nothing_to_release() {
    fresh
    expect 0 ping "$store" --count 1
    as_user narrow select
    sql "grant insert, update (expires_at) on \`$name\`.locks to narrow@'%';
        grant insert, update on \`$name\`.locks_epochs to narrow@'%';
        grant insert, update, delete on \`$name\`.locks_candidates to narrow@'%'"
    expect 4 "$GAVEL" store ping "$store" --count 1
    has "$errors" "command denied to user 'narrow'"
    has_not "$errors" "could not be released"
}

test_a_server_that_becomes_read_only_and_writable_again() {
    fresh
    candidate a "$store" # makes the tables
    await said a became_leader
    kill -TERM "${pid_of[a]}"
    ended a 0
    as_user reader 'select, insert, update, delete, create'
    candidate b "$store"
    await said b became_leader
    sql 'set global read_only = 1'
    await said b breaker_open
    await grep -qF 'is read-only' "$scratch/b.err"
    await said b lost_leadership '"reason":"lapsed"'
    sql 'set global read_only = 0'
    await said b breaker_closed
    await said_times b became_leader 2
    epochs_grow b
}

# The three columns of those who keep their locks in such a table already.
test_a_table_of_three_columns_is_used_or_refused_with_what_to_do() {
    local code=0
    fresh
    sql "use \`$name\`; create table locks (lock_key varchar(255) primary key, owner_id varchar(255) not null,
        expires_at timestamp(6) not null default current_timestamp(6))"
    as_user plain 'select, insert, update, delete, create'
    refused 4 "gavel store sql mysql" "locks"
}

serve mariadb
run_tests "$@"
