#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is printed: JSON that can be read, help on everything, colours on terminals only.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

escape=$'\033'
commands=$("$GAVEL" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p')

test_help_on_everything() {
    (($(wc -w <<<"$commands") >= 11)) || fail "--help lists only: $commands"
    local command
    for command in $commands; do
        expect 0 "$GAVEL" "$command" --help
        has "$output" "Usage: gavel $command"
        has "$output" "Exit codes"
        local by_flag=$output
        expect 0 "$GAVEL" help "$command"
        same "$output" "$by_flag"
        expect 0 "$GAVEL" "$command" -h
        same "$output" "$by_flag"
        same "$errors" ""
    done
    expect 0 "$GAVEL" --help
    local whole=$output
    expect 0 "$GAVEL" help
    same "$output" "$whole"
    expect 2 "$GAVEL"
    same "$errors" "$whole"
}

test_help_fits_a_terminal() {
    local command longest
    for command in '' $commands; do
        # shellcheck disable=SC2086 # none at all for the program itself
        longest=$("$GAVEL" $command --help | wc -L)
        ((longest <= 80)) || fail "a line of $command --help has $longest columns"
        # shellcheck disable=SC2086
        longest=$(on_terminal_of 60 "$GAVEL" $command --help | tr -d '\r' | sed "s/$escape\[[0-9]*m//g" | wc -L)
        ((longest <= 60)) || fail "a line of $command --help has $longest columns on a terminal of 60"
    done
    # Nothing is lost by wrapping.
    has "$("$GAVEL" elect --help | tr -s ' \n' ' ')" "lead at once without one: single-instance mode"
}

test_lines_for_people_fit_a_terminal() {
    elect web-1-of-several
    await said web-1-of-several became_leader
    elect web-2-of-several
    await has_candidates 2
    run_as watch "$GAVEL" watch --store "$store" --timeout 20s --count 2
    await test -s "$scratch/watch.out"
    local command longest
    for command in candidates check 'check --preset frugal' 'check --no-election' 'status --all'; do
        # shellcheck disable=SC2086 # a command with its options
        longest=$(on_terminal_of 80 "$GAVEL" $command --store "$store" --color never | grep -v '^  url' |
            tr -d '\r' | wc -L)
        ((longest > 20 && longest <= 80)) || fail "a line of $command has $longest columns"
    done
    has "$(on_terminal_of 60 "$GAVEL" candidates --store "$store")" "web-1-of-several"
    has_not "$(on_terminal_of 60 "$GAVEL" candidates --store "$store")" "ADDRESS"
    has "$("$GAVEL" candidates --store "$store")" "ADDRESS" # a pipe gets everything
    kill -KILL "${pid_of[web-1-of-several]}"
    ended watch 0
    ((($(wc -L <"$scratch/watch.out")) <= 80)) || fail "a line of watch is too long"
}

test_version_is_that_of_the_build() {
    expect 0 "$GAVEL" version
    local plain=$output
    expect 0 "$GAVEL" --version
    same "$output" "$plain"
    same "$plain" "gavel $("$GAVEL" version --json | "$JSON_GET" version)"
}

test_json_of_every_command_that_looks() {
    elect a
    await said a became_leader
    same "$("$GAVEL" leader --store "$store" --json | "$JSON_GET" group leader_id epoch state store)" "default	a	1	held	sqlite:$store"
    "$GAVEL" leader --store "$store" --json | "$JSON_GET" leader_address since lease_ms remaining_ms pid >/dev/null
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" leader_id candidates store)" "a	1	$store"
    same "$("$GAVEL" status --all --store "$store" --json | "$JSON_GET" groups.0.leader_id)" a
    same "$("$GAVEL" candidates --store "$store" --json |
        "$JSON_GET" candidates.0.candidate candidates.0.leader candidates.0.eligible)" "a	true	true"
    same "$("$GAVEL" watch --store "$store" --json --count 1 | "$JSON_GET" event leader_id)" "current	a"
    "$GAVEL" check --store "$store" --json |
        "$JSON_GET" settings.lease_ms bounds.gap_loss_ms bounds.overlap_ms store.driver enabled >/dev/null
    "$GAVEL" version --json | "$JSON_GET" version >/dev/null
    expect 0 "$GAVEL" handover --store "$store" --json
    "$JSON_GET" group previous leader_id epoch took_ms <<<"$output" >/dev/null
}

# Every field is always there, so that a reader need not ask which are.
test_json_fields_are_null_where_they_do_not_apply() {
    elect a --no-eligible
    await has_candidates 1
    local fields='group state leader_id leader_address epoch last_leader since renewed lease_ms remaining_ms pid'
    # shellcheck disable=SC2086 # a list
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" $fields | tr '\t' ' ')" \
        "default empty null null 0 null null null null null null"
    elect b
    await said b became_leader
    kill -TERM "${pid_of[b]}"
    ended b 0
    # shellcheck disable=SC2086
    same "$("$GAVEL" status --store "$store" --json | "$JSON_GET" $fields | tr '\t' ' ')" \
        "default released null null 1 b null null null null null"
    await said a heartbeat '"epoch":null'
    expect 0 "$GAVEL" status --store "$store"
    has "$output" "last leader b"
    has_not "$output" "process"
    has_not "$output" "renewed"
    has_not "$output" $'\nlease'
}

test_json_of_failures() {
    elect a --no-eligible
    await has_candidates 1
    expect 3 "$GAVEL" leader --store "$store" --json
    same "$("$JSON_GET" error.code error.name <<<"$output")" "4002	ERR_NO_LEADER"
    # Where it looked: another store would be another election.
    has "$errors" "has no leader in the store sqlite:$store: nobody has led it yet"
    expect 6 "$GAVEL" leader --store "$store" --wait 50ms --json
    same "$("$JSON_GET" error.name <<<"$output")" ERR_TIMEOUT
    has "$errors" "waited 50 ms"
    has "$errors" "in the store sqlite:$store"
    expect 6 "$GAVEL" watch --store "$store" --count 2 --timeout 50ms --json
    same "$(tail -n 1 <<<"$output" | "$JSON_GET" error.name)" ERR_TIMEOUT
    expect 2 "$GAVEL" leader --json --nonsense
    same "$("$JSON_GET" error.name <<<"$output")" ERR_INVALID
    expect 2 "$GAVEL" leader --json --group $'caf\xe9'
    same "$("$JSON_GET" error.name <<<"$output")" ERR_INVALID
}

test_every_line_of_elect_is_json_with_the_common_fields() {
    elect a
    await said a became_leader
    elect b
    await has_candidates 2
    kill -TERM "${pid_of[a]}"
    ended a 0
    await said b became_leader
    kill -TERM "${pid_of[b]}"
    ended b 0
    "$JSON_GET" time event group candidate <"$scratch/a.out" >"$scratch/fields"
    "$JSON_GET" time event group candidate <"$scratch/b.out" >>"$scratch/fields"
    ! grep -qvE '^20[0-9-]{8}T[0-9:]{8}\.[0-9]{3}Z	[a-z_]+	default	[ab]$' "$scratch/fields" ||
        fail "a line has other fields: $(grep -vE '^20[0-9-]{8}T' "$scratch/fields")"
}

test_elect_prints_only_the_events_asked_for() {
    elect a --events became_leader,lost_leadership
    await said a became_leader
    kill -TERM "${pid_of[a]}"
    ended a 0
    same "$("$JSON_GET" event <"$scratch/a.out" | tr '\n' ' ')" "became_leader lost_leadership "
}

test_log_lines_are_logfmt_or_json() {
    elect a
    await said a became_leader
    has "$(cat "$scratch/a.err")" "level=info msg=\"takes part\" group=default candidate=a store=sqlite:$store"
    has "$(cat "$scratch/a.err")" "msg=\"created the store\" group=default candidate=a store=sqlite:$store"
    elect b --log json
    await has_candidates 2
    same "$("$JSON_GET" msg level group candidate <"$scratch/b.err")" "takes part	info	default	b"
    elect c --log-level error
    await has_candidates 3
    same "$(cat "$scratch/c.err")" ""
}

# on_terminal COMMAND…: what it prints when stdout is a terminal.
on_terminal() {
    local line
    printf -v line '%q ' "$@"
    TERM=xterm typescript -qec "$line" /dev/null </dev/null
}

# on_terminal_of COLUMNS COMMAND…: the same on one of that width.
on_terminal_of() {
    local columns=$1 line
    shift
    printf -v line '%q ' "$@"
    TERM=xterm typescript -qec "stty cols $columns; $line" /dev/null </dev/null
}

test_colours_only_on_a_terminal() {
    has_not "$("$GAVEL" check --store "$store")" "$escape"
    has_not "$("$GAVEL" --help)" "$escape"
    has "$("$GAVEL" check --store "$store" --color always)" "$escape"
    has "$(on_terminal "$GAVEL" check --store "$store")" "$escape"
    has_not "$(on_terminal "$GAVEL" check --store "$store" --color never)" "$escape"
    has_not "$(on_terminal env NO_COLOR=1 "$GAVEL" check --store "$store")" "$escape"
    has_not "$(on_terminal env TERM=dumb "$GAVEL" check --store "$store")" "$escape"
    has "$(on_terminal env NO_COLOR=1 "$GAVEL" check --store "$store" --color always)" "$escape"
}

# A command that ends at once, on a terminal; the colours are taken away unless --color is given.
log_on_terminal() { on_terminal env TZ=UTC0 "$GAVEL" run --store "$store" --id a "$@" -- true; }

test_log_lines_on_a_terminal_are_for_people() {
    local lines
    lines=$(log_on_terminal)
    has "$lines" "${escape}[1mleads${escape}[0m${escape}[2m  group=default candidate=a epoch=1${escape}[0m"
    lines=$(log_on_terminal --color never)
    grep -qE '^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3} leads  group=default candidate=a epoch=2.?$' <<<"$lines" || fail "it says: $lines"
    has_not "$lines" "$escape"
    has_not "$lines" "level="
    has_not "$(on_terminal env NO_COLOR=1 "$GAVEL" run --store "$store" -- true)" "$escape"
}

test_the_format_of_the_log_can_be_chosen_anywhere() {
    has "$(log_on_terminal --log logfmt)" "level=info msg=leads group=default candidate=a"
    has "$(log_on_terminal --log-format json)" '"level":"info","msg":"leads","group":"default","candidate":"a"'
    has "$(GAVEL_LOG=json log_on_terminal)" '"msg":"leads"'
    has "$(GAVEL_LOG_FORMAT=json log_on_terminal)" '"msg":"leads"'
    echo "log_format: json" >"$scratch/old.yaml"
    has "$(log_on_terminal --config "$scratch/old.yaml")" '"msg":"leads"'
    has "$(log_on_terminal --config "$scratch/old.yaml" --log auto --color never)" " leads  group=default"
    expect 0 "$GAVEL" run --store "$store" --id a --log human -- true
    grep -qE '^[0-9:.]{12} leads  group=default candidate=a epoch=[0-9]+$' <<<"$errors" || fail "it says: $errors"
}

test_tables_are_aligned() {
    elect a
    elect "a longer name with ümlauts"
    await has_candidates 2
    local table
    table=$("$GAVEL" candidates --store "$store")
    same "$(grep -c . <<<"$table")" 3
    # The second column begins at the same place in each row.
    local line before columns=
    while IFS= read -r line; do
        before=$(sed -E 's/(ROLE|leader|standby).*//' <<<"$line")
        same "${#before}" "${columns:-${#before}}"
        columns=${#before}
    done <<<"$table"
}

test_check_spells_out_the_sum() {
    expect 0 "$GAVEL" check --store "$store" --candidates 5
    has "$output" "lease 2000 - drift"
    has "$(tr -s ' \n' ' ' <<<"$output")" "heartbeat 500 + jitter 50 + call time-out 500 + stop grace 500 = 1550 ms"
    has "$output" "with 5 candidates"
    has "$output" "steady"
    has "$(tr -s ' ' <<<"$output")" "max_mandate none"
    [[ ! -e $store ]] || fail "check has touched the store"
}

run_tests "$@"
