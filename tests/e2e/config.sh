#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Settings: where they come from, which one counts, and what is said about a wrong one.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

check() { "$GAVEL" check --store "$store" --json "$@"; }

# yaml TEXT: writes the configuration file.
yaml() { printf '%b' "$1" >"$scratch/gavel.yaml"; }

# refuses_yaml TEXT MESSAGE…: each message must be in the error.
refuses_yaml() {
    yaml "$1"
    shift
    expect 2 "$GAVEL" check --config "$scratch/gavel.yaml"
    local message
    for message; do has "$errors" "$message"; done
}

test_flag_beats_environment_beats_file_beats_preset() {
    same "$(check | "$JSON_GET" settings.lease_ms)" 2000
    yaml 'lease: 5s\n'
    same "$(check --config "$scratch/gavel.yaml" | "$JSON_GET" settings.lease_ms)" 5000
    same "$(GAVEL_LEASE=6s check --config "$scratch/gavel.yaml" | "$JSON_GET" settings.lease_ms)" 6000
    same "$(GAVEL_LEASE=6s check --config "$scratch/gavel.yaml" --lease 7s | "$JSON_GET" settings.lease_ms)" 7000
}

test_what_is_not_set_comes_from_the_preset() {
    same "$(check --preset frugal --lease 100s | "$JSON_GET" settings.lease_ms settings.heartbeat_ms)" "100000	30000"
    same "$(GAVEL_PRESET=database check | "$JSON_GET" settings.preset settings.takeover_delay_ms)" "database	0"
    same "$(check --preset coordinator | "$JSON_GET" settings.election_interval_ms settings.takeover_delay_ms)" "5000	1000"
    same "$(check --preset frugal | "$JSON_GET" settings.policy)" lexicographic
    same "$(check --preset object-store | "$JSON_GET" settings.policy)" lexicographic
}

# A value for each kind of setting that differs from every preset.
value_for() {
    case $1 in
    policy) echo priority ;;
    drift-ppm | breaker-threshold | breaker-attempts | contention-threshold) echo 7 ;;
    preempt | trust-store-clock) echo true ;;
    preset) echo database ;;
    max-mandate) echo 7h ;;
    *) echo 7s ;;
    esac
}

# Every setting that --help lists works as a flag, as a variable and in the file.
test_every_setting_has_flag_variable_and_key() {
    local flag key value field before after base option count=0
    while read -r flag; do
        key=${flag//-/_}
        value=$(value_for "$flag")
        field=settings.$key
        [[ $value == 7[sh] ]] && field+=_ms
        # Long enough for any other setting to be 7 s; what is tested is left out.
        base=()
        for option in lease candidate-timeout start-jitter-max; do
            [[ $flag == "$option" ]] || base+=("--$option" 1h)
        done
        [[ $flag == lease || $flag == candidate-timeout ]] && base=()
        before=$(check "${base[@]}" | "$JSON_GET" "$field")
        option=(--"$flag" "$value")
        [[ $value == true ]] && option=("--$flag")
        after=$(check "${base[@]}" "${option[@]}" | "$JSON_GET" "$field")
        [[ $before != "$after" ]] || fail "--$flag changed nothing"
        same "$(env "GAVEL_${key^^}=$value" "$GAVEL" check --store "$store" --json "${base[@]}" |
            "$JSON_GET" "$field")" "$after"
        yaml "$key: $value\n"
        same "$(check "${base[@]}" --config "$scratch/gavel.yaml" | "$JSON_GET" "$field")" "$after"
        count=$((count + 1))
    done < <("$GAVEL" check --help | sed -n '/^Settings/,/^$/s/^ \{1,6\}\(-., \)\?--\(\[no-\]\)\?\([a-z-]*\).*/\3/p')
    ((count >= 26)) || fail "--help lists only $count settings"
}

test_environment_names_store_group_and_candidate() {
    export GAVEL_STORE=$store GAVEL_GROUP=jobs GAVEL_CANDIDATE=web-1
    run_as a "$GAVEL" elect
    await said a became_leader
    same "$(head -n 1 "$scratch/a.out" | "$JSON_GET" group candidate)" "jobs	web-1"
    same "$("$GAVEL" leader)" web-1
    same "$("$GAVEL" status --json | "$JSON_GET" store)" "$store"
}

test_file_names_store_group_and_candidate() {
    yaml "# a comment\nstore: \"$store\"\ngroup: jobs\ncandidate: web-2\neligible: yes\npriority: -3\n"
    export GAVEL_CONFIG=$scratch/gavel.yaml
    run_as a "$GAVEL" elect
    await said a became_leader
    same "$("$GAVEL" leader --group jobs)" web-2
    same "$("$GAVEL" candidates --json | "$JSON_GET" candidates.0.priority)" -3
}

test_empty_variable_counts_as_not_set() {
    same "$(GAVEL_LEASE='' check | "$JSON_GET" settings.lease_ms)" 2000
}

test_default_store_lies_in_the_state_directory() {
    export XDG_STATE_HOME=$scratch/state
    run_as a "$GAVEL" elect --id a
    await said a became_leader
    [[ -f $scratch/state/gavel/gavel.db ]] || fail "there is no $scratch/state/gavel/gavel.db"
    same "$("$GAVEL" leader)" a
}

test_unknown_key_is_refused_with_its_line() {
    refuses_yaml 'lease: 5s\n\n# comment\nleese: 3s\n' "gavel.yaml:4:" '"leese"' 'did you mean "lease"?'
    refuses_yaml 'id: web-1\n' "gavel.yaml:1:" 'did you mean "candidate"?'
    refuses_yaml 'election: false\n' "gavel.yaml:1:" 'did you mean "enabled"?'
    refuses_yaml 'lease: 5s\nsomething_else: 3s\n' "gavel.yaml:2:" '"something_else"'
    refuses_yaml '{lease: 5s,\n  nonsense: 3s}\n' "gavel.yaml:2:"
}

test_wrong_value_is_refused_with_its_line() {
    refuses_yaml 'group: x\nlease: soon\n' "gavel.yaml:2:" "lease" '"soon"' "500ms"
    refuses_yaml 'lease: -5s\n' "gavel.yaml:1:" "negative"
    refuses_yaml '\n\npolicy: best\n' "gavel.yaml:3:" "lexicographic"
    refuses_yaml 'eligible: perhaps\n' "gavel.yaml:1:" "neither true nor false"
    refuses_yaml 'breaker_threshold: 1.5\n' "gavel.yaml:1:" "whole number"
    refuses_yaml 'preset: best\n' "gavel.yaml:1:" "frugal"
    refuses_yaml 'group: ""\n' "gavel.yaml:1:" "empty"
}

test_file_of_another_shape_is_refused_with_its_line() {
    refuses_yaml 'group: x\nlease:\n  - 5s\n' "gavel.yaml:3:" "list"
    refuses_yaml 'group: x\nlease:\n  a: 5s\n' "gavel.yaml:3:" "mapping"
    refuses_yaml 'lease: 5s\ngroup: x\nlease: 6s\n' "gavel.yaml:3:" "line 1 already"
    refuses_yaml 'lease:\n' "gavel.yaml:1:" "no value"
    refuses_yaml 'lease: ~\n' "gavel.yaml:1:" "no value"
    refuses_yaml '[lease]\n' "gavel.yaml:1:" "key: value"
    refuses_yaml 'just a text\n' "gavel.yaml:1:" "key: value"
    refuses_yaml 'lease: 5s\n---\nlease: 6s\n' "gavel.yaml:2:" "second document"
    refuses_yaml 'group: x\n  lease: 5s\n' "gavel.yaml:2:" "not valid YAML"
    refuses_yaml 'group: "x\n' "not valid YAML"
    refuses_yaml '? [a]\n: b\n' "gavel.yaml:1:" "key"
    refuses_yaml 'group: \xff\n' "UTF-8"
    refuses_yaml 'a: &x 5\nlease: *x\n' "gavel.yaml:1:"
    refuses_yaml 'group: &x 5\nlease: *x\n' "gavel.yaml:2:"
}

test_empty_file_is_fine() {
    local text
    for text in '' '# nothing\n' '---\n' '\n\n'; do
        yaml "$text"
        expect 0 "$GAVEL" check --store "$store" --config "$scratch/gavel.yaml"
    done
}

test_file_that_cannot_be_read_is_a_usage_error() {
    expect 2 "$GAVEL" check --config "$scratch/missing.yaml"
    has "$errors" "missing.yaml"
    expect 2 "$GAVEL" check --config "$scratch"
    head -c 2000000 /dev/zero | tr '\0' '#' >"$scratch/huge.yaml"
    expect 2 "$GAVEL" check --config "$scratch/huge.yaml"
    has "$errors" "larger than"
}

test_file_is_checked_as_a_whole_whatever_the_command() {
    yaml "store: \"$store\"\nlease: soon\n"
    expect 2 "$GAVEL" leader --config "$scratch/gavel.yaml"
    has "$errors" "gavel.yaml:2:"
}

test_wrong_variable_is_named() {
    GAVEL_LEASE=soon expect 2 "$GAVEL" check
    has "$errors" "GAVEL_LEASE"
    GAVEL_ELIGIBLE=perhaps expect 2 "$GAVEL" elect
    has "$errors" "GAVEL_ELIGIBLE"
    GAVEL_LEASE=soon expect 0 "$GAVEL" version # which has no use for it
}

test_mistyped_variable_is_a_warning() {
    GAVEL_LEESE=5s GAVEL_ID=x GAVEL_ELECTION=false expect 0 "$GAVEL" check --store "$store"
    has "$errors" "level=warning"
    has "$errors" "there is no variable GAVEL_LEESE; did you mean GAVEL_LEASE?"
    has "$errors" "did you mean GAVEL_CANDIDATE?"
    has "$errors" "did you mean GAVEL_ENABLED?"
    # Those of other programs are none of our business.
    GAVEL_PORT=1 GAVEL_SERVICE_HOST=x GAVEL_LEASE=3s GAVEL_COLOR=never expect 0 "$GAVEL" check --store "$store"
    same "$errors" ""
    GAVEL_PORT=1 expect 0 "$GAVEL" check --store "$store" --log-level debug
    has "$errors" "variable=GAVEL_PORT"
    GAVEL_LEESE=5s expect 0 "$GAVEL" version
    same "$errors" ""
}

test_durations_with_their_units() {
    local text
    for text in 5400000ms 5400s 90m 90min 1.5h 1h30m '1 h 30 min'; do
        same "$(check --max-mandate "$text" | "$JSON_GET" settings.max_mandate_ms)" 5400000
    done
    for text in '' ' ' 5 5400000 -1 -5s 5x s 1.5 1.5ms 1.2345s 5s5 1e3 0x10 99999999999999999999 100000d 9999999999h nan; do
        expect 2 "$GAVEL" check --max-mandate "$text"
        has "$errors" "--max-mandate"
    done
    same "$(check --max-mandate 0 | "$JSON_GET" settings.max_mandate_ms)" 0
}

# Nobody means 5 milliseconds by --wait 5.
test_a_number_without_a_unit_is_refused_wherever_it_stands() {
    expect 2 "$GAVEL" leader --store "$store" --wait 5
    has "$errors" '--wait: "5" has no unit; did you mean 5s?'
    GAVEL_LEASE=5000 expect 2 "$GAVEL" check --store "$store"
    has "$errors" 'GAVEL_LEASE: "5000" has no unit; did you mean 5000ms?'
    echo 'lease: 5' >"$scratch/plain.yaml"
    expect 2 "$GAVEL" check --store "$store" --config "$scratch/plain.yaml"
    has "$errors" 'plain.yaml:1: lease: "5" has no unit; did you mean 5s?'
}

test_absurd_values_are_refused() {
    expect 2 "$GAVEL" check --lease 31d
    has "$errors" "lease"
    expect 2 "$GAVEL" check --heartbeat 0
    expect 2 "$GAVEL" check --drift-ppm 999999
    expect 2 "$GAVEL" check --drift-ppm -1
    expect 2 "$GAVEL" check --contention-threshold 0
    expect 2 "$GAVEL" check --breaker-threshold 99999999999
    expect 2 "$GAVEL" check --candidates 0
    expect 2 "$GAVEL" check --candidates -1
    expect 2 "$GAVEL" elect --store "$store" --priority 1.5
}

test_budget_that_does_not_add_up_is_refused_with_the_sum() {
    expect 7 "$GAVEL" check --store "$store" --lease 1s
    has "$errors" "500 + jitter 50 + call_timeout 500 + stop_grace 500 = 1550 ms"
    expect 7 "$GAVEL" elect --store "$store" --lease 1s
    has "$errors" "1550 ms"
    expect 7 "$GAVEL" check --store "$store" --lease 1s --json
    same "$("$JSON_GET" error.name error.code <<<"$output")" "ERR_BUDGET	4102"
}

test_minimum_above_its_maximum_is_refused() {
    expect 7 "$GAVEL" check --start-jitter-min 2s --start-jitter-max 1s
    has "$errors" "start_jitter_min (2000 ms) is above start_jitter_max (1000 ms)"
    expect 7 "$GAVEL" check --min-mandate 2h --max-mandate 1h
    has "$errors" "min_mandate"
}

test_names_empty_overlong_or_not_utf8_are_refused() {
    local long255 long256
    long255=$(printf 'x%.0s' {1..255})
    long256=${long255}x
    local option
    for option in --group --id; do
        expect 2 "$GAVEL" elect --store "$store" $option ''
        has "$errors" "empty"
        expect 2 "$GAVEL" elect --store "$store" $option "$long256"
        has "$errors" "255"
        expect 2 "$GAVEL" elect --store "$store" $option $'caf\xe9'
        has "$errors" "UTF-8"
        expect 2 "$GAVEL" elect --store "$store" $option $'a\nb'
    done
    run_as a "$GAVEL" elect --store "$store" --group "$long255" --id "äöü 'quoted' \"%s\" / $(printf 'y%.0s' {1..200})"
    await said a became_leader
    expect 0 "$GAVEL" leader --store "$store" --group "$long255" --json
    has "$("$JSON_GET" leader_id <<<"$output")" "äöü 'quoted' \"%s\" / yyy"
    expect 2 "$GAVEL" handover --store "$store" --to "$long256"
}

# `gavel run --group -- ./job`: the name was forgotten, or a variable is empty.
test_the_end_of_the_options_is_no_value() {
    expect 2 "$GAVEL" run --store "$store" --group -- true
    has "$errors" "--group needs a value, and -- ends the options"
    expect 2 "$GAVEL" run --store "$store" -g -- true
    has "$errors" "needs a value"
    expect 2 "$GAVEL" once --store "$store" --key -- true
    has "$errors" "--key needs a value"
    expect 0 "$GAVEL" run --store "$store" --group=-- -- true
}

test_mistyped_words_are_recognised() {
    expect 2 "$GAVEL" leadr
    has "$errors" 'did you mean "leader"?'
    expect 2 "$GAVEL" xyzzy
    has "$errors" "gavel help"
    expect 2 "$GAVEL" leader --sotre x
    has "$errors" "did you mean --store?"
    expect 2 "$GAVEL" leader --wiat 5s
    has "$errors" "did you mean --wait?"
    expect 2 "$GAVEL" leader --token x
    has "$errors" "did you mean --token-file?"
    expect 2 "$GAVEL" elect --events became_leder
    has "$errors" "did you mean became_leader?"
    expect 2 "$GAVEL" help leadr
    has "$errors" 'did you mean "leader"?'
}

test_command_line_that_makes_no_sense_is_refused() {
    expect 2 "$GAVEL"
    expect 2 "$GAVEL" leader extra
    expect 2 "$GAVEL" leader --store
    expect 2 "$GAVEL" leader --lease 5s
    has "$errors" "not an option of this command"
    expect 2 "$GAVEL" --lease 5s leader
    expect 2 "$GAVEL" status --all=yes
    expect 2 "$GAVEL" elect --no-eligible=true
    expect 2 "$GAVEL" elect --no-lease
    expect 2 "$GAVEL" leader -x
    expect 2 "$GAVEL" watch --count many
    expect 2 timeout "$limit_s" "$GAVEL" watch --count 0
    expect 2 "$GAVEL" leader --color sometimes
    expect 2 "$GAVEL" leader --log-level loud
    expect 2 "$GAVEL" leader --log xml
    expect 2 "$GAVEL" leader --log-format xml
}

test_options_may_stand_before_the_command() {
    same "$("$GAVEL" --json version | "$JSON_GET" version)" "$("$GAVEL" version --json | "$JSON_GET" version)"
    same "$("$GAVEL" -s static:web-1 leader)" web-1
    same "$("$GAVEL" -sstatic:web-1 leader -gjobs)" web-1
}

# Whoever gives an option expects something of it.
test_options_that_a_command_would_ignore_are_refused() {
    local line
    while IFS='|' read -r line said; do
        # shellcheck disable=SC2086 # words
        expect 2 "$GAVEL" $line
        has "$errors" "$said"
    done <<END
status --store $store --watch|--watch is for the nodes of a cluster
status --cluster 127.0.0.1:1 --group jobs --watch|--watch is for the nodes of a cluster
status --store $store --all --watch|--watch is for the nodes of a cluster
status --store $store --all --group jobs|give one of them
check --cluster 127.0.0.1:1 --candidates 5|--candidates is for the settings of candidates
check --cluster 127.0.0.1:1 --prices 1,1,1|--prices is for the settings of candidates
status --store $store --ca ca.crt|--ca is for the nodes of a cluster
leader --store $store --token-file token|--token-file is for the nodes of a cluster
once --store $store --keep 5d --forget job|--forget runs nothing
once --store $store --no-wait --forget job|--forget runs nothing
member list --cluster 127.0.0.1:1 --timeout 5s|--timeout is only for these actions of \`gavel member\`: add remove promote demote
member remove n1 --cluster 127.0.0.1:1 --learner|--learner is only for \`gavel member add\`
note get jobs k --cluster 127.0.0.1:1 --epoch 3|only for these actions of \`gavel note\`: put delete
cert init demo --host h1|--host is only for \`gavel cert issue\`
cert issue n1 --list revoked|--list is only for \`gavel cert revoke\`
cert issue n1 --days 5|--days is only for \`gavel cert init\`
cert show n1.crt --force|only for these actions of \`gavel cert\`: init issue secret
cert revoke n1.crt --out there|only for these actions of \`gavel cert\`: init issue secret
cert secret --valid-for 5d|only for these actions of \`gavel cert\`: init issue
store list --store $store|--store is only for these actions of \`gavel store\`
store sql mysql --preset local|--preset is only for \`gavel store ping\`
store backup $scratch/copy --call-timeout 1s|--call-timeout is only for \`gavel store ping\`
END
    [[ ! -e $scratch/there && ! -e ca.crt ]] || fail "something was made all the same"
    GAVEL_PRESET=local GAVEL_CA=none expect 0 "$GAVEL" store list
}

run_tests "$@"
