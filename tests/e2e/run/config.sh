#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What gavel run is told, and where: the command line, the environment, the
# file with its children; and everything it refuses before it takes part.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# yaml LINE…: writes the configuration file.
yaml() { printf '%b\n' "$@" >"$scratch/gavel.yaml"; }

# Long times, so that a busy machine does not cost the lease.
times=(--lease 8s --call-timeout 2s --candidate-timeout 10s)

run() { timeout "$limit_s" "$GAVEL" run --store "$store" "${times[@]}" "$@"; }

# refuses CODE TEXT… -- ARGUMENT…: gavel run ends with the code, says every text, and has not taken part.
refuses() {
    local code=$1 texts=() text
    shift
    while [[ $1 != -- ]]; do
        texts+=("$1")
        shift
    done
    shift
    expect "$code" run "$@"
    for text in "${texts[@]}"; do has "$errors" "$text"; done
    [[ ! -e $store ]] || fail "it has created the store"
}

test_command_that_is_not_there_is_told_before_taking_part() {
    refuses 127 'no program "no-such-thing"' PATH -- -- no-such-thing
    refuses 127 "./no-such-thing" -- -- ./no-such-thing
    expect 127 run --json -- no-such-thing
    same "$("$JSON_GET" error.name <<<"$output")" ERR_NOT_FOUND
}

test_command_that_cannot_be_executed_is_told_before_taking_part() {
    echo '#!/bin/sh' >"$scratch/tool"
    refuses 126 "chmod +x" -- -- "$scratch/tool"
    refuses 126 "it is a directory" -- -- "$scratch"
    printf '#!/no/such/thing\n' >"$scratch/tool"
    chmod +x "$scratch/tool"
    refuses 127 "/no/such/thing" -- -- "$scratch/tool"
}

test_script_without_an_interpreter_line_is_given_to_the_shell() {
    # shellcheck disable=SC2016 # the script's own
    echo 'echo "$1 in epoch $GAVEL_EPOCH"; exit 4' >"$scratch/nightly"
    chmod +x "$scratch/nightly"
    expect 4 run -- "$scratch/nightly" works
    same "$output" "works in epoch 1"
}

test_words_of_the_command_are_left_alone() {
    same "$(run -- printf '<%s>' --lease 1s -x -- '' --help 2>/dev/null)" "<--lease><1s><-x><--><><--help>"
    same "$(run printf '<%s>' --lease 1s -- --json 2>/dev/null)" "<--lease><1s><--><--json>"
    same "$(run --group x -- sh -c 'echo "$GAVEL_GROUP"' 2>/dev/null)" x
}

test_there_must_be_something_to_run() {
    refuses 2 "gavel run -- COMMAND" "gavel run -f FILE" --
    yaml 'lease: 9s'
    refuses 2 "gavel run -- COMMAND" -- -f "$scratch/gavel.yaml"
    yaml 'children:\n  - command: "true"'
    refuses 2 "command line" "gavel.yaml has children" "leave one" -- -f "$scratch/gavel.yaml" -- true
    expect 2 "$GAVEL" once --store "$store" --key k -f "$scratch/gavel.yaml"
}

# A value that is wrong for each option, by the kind of its value in --help.
wrong_value_for() {
    case $1 in
    DURATION) echo soon ;;
    NUMBER) echo many ;;
    WHAT | HOW | NAME) echo nonsense ;;
    *) echo perhaps ;;
    esac
}

# Whoever names the wrong value is the one that was read: so all three places are read for every option.
test_every_option_has_flag_variable_and_key() {
    local flag argument wrong key option count=0
    while read -r flag argument; do
        wrong=$(wrong_value_for "$argument")
        key=${flag//-/_}
        option=(--"$flag=$wrong")
        yaml "$key: $wrong"
        case $argument in
        COMMAND) continue ;; # any text is one; the next test has them
        esac
        refuses 2 "--$flag: " "$wrong" -- "${option[@]}" -- true
        expect 2 env "GAVEL_${key^^}=$wrong" "$GAVEL" run --store "$store" -- true
        has "$errors" "$wrong"
        refuses 2 "gavel.yaml:1: $key: " "$wrong" -- -f "$scratch/gavel.yaml" -- true
        count=$((count + 1))
    done < <("$GAVEL" run --help | sed -nE '/^How the command/,/^$/s/^ +--(\[no-\])?([a-z-]+) ?([A-Z]*).*/\2 \3/p')
    ((count >= 12)) || fail "--help lists only $count options"
}

test_commands_of_options_come_from_flag_variable_and_file() {
    yaml 'on_elected: echo from the file'
    same "$(run -f "$scratch/gavel.yaml" -- true 2>/dev/null)" "from the file"
    same "$(GAVEL_ON_ELECTED='echo from the variable' run -f "$scratch/gavel.yaml" -- true 2>/dev/null)" "from the variable"
    same "$(GAVEL_ON_ELECTED=x run -f "$scratch/gavel.yaml" --on-elected 'echo from the flag' -- true 2>/dev/null)" \
        "from the flag"
    same "$(GAVEL_ON_DEMOTED='echo $GAVEL_EPOCH' run --group other -- true 2>/dev/null)" 1
}

stop_grace() { "$GAVEL" check --store "$store" --json "$@" | "$JSON_GET" settings.stop_grace_ms; }

test_grace_is_an_older_name_of_stop_grace() {
    same "$(stop_grace --grace 300ms)" 300
    same "$(GAVEL_GRACE=310ms stop_grace)" 310
    yaml 'grace: 320ms'
    same "$(stop_grace -f "$scratch/gavel.yaml")" 320
    same "$(GAVEL_GRACE=310ms stop_grace -f "$scratch/gavel.yaml")" 310
    same "$(GAVEL_GRACE=310ms stop_grace -f "$scratch/gavel.yaml" --stop-grace 330ms)" 330
    yaml 'grace: 320ms\nstop_grace: 300ms'
    expect 2 "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml"
    has "$errors" "gavel.yaml:2:"
    has "$errors" "line 1 already"
}

test_lease_that_is_proposed_for_a_grace_works() {
    local lease
    expect 7 "$GAVEL" run --store "$store" --grace 4s -- true
    lease=$(grep -oE -- '--lease [0-9]+m?s would do' <<<"$errors" | cut -d' ' -f2)
    [[ -n $lease ]] || fail "no lease is proposed: $errors"
    expect 0 timeout "$limit_s" "$GAVEL" run --store "$store" --grace 4s --lease "$lease" -- true
}

# Where mandates last as long as sessions, it takes a longer lease; no node is asked.
test_lease_that_is_proposed_for_sessions_works() {
    local lease cluster=gavel://127.0.0.1:1
    expect 7 "$GAVEL" check --store $cluster --stop-grace 3s
    lease=$(grep -oE -- '--lease [0-9]+m?s would do' <<<"$errors" | cut -d' ' -f2)
    [[ -n $lease ]] || fail "no lease is proposed: $errors"
    expect 0 "$GAVEL" check --store $cluster --stop-grace 3s --lease "$lease"
    has "$output" "the times add up"
    expect 7 "$GAVEL" check --store $cluster --stop-grace 3s --lease 3700ms
    has "$errors" "; a lease of ${lease%ms} ms would do"
    expect 7 "$GAVEL" run --store $cluster --stop-grace 3s --lease 3700ms -- true
    has "$errors" "; a lease of ${lease%ms} ms would do"
    expect 7 "$GAVEL" check --store "$cluster?ttl_ms=3700" --stop-grace 3s --lease "$lease"
    has "$errors" "; ttl_ms=${lease%ms} in the URL would do"
    expect 0 "$GAVEL" check --store "$cluster?ttl_ms=${lease%ms}" --stop-grace 3s --lease "$lease"
    has "$output" "the times add up"
}

test_graces_of_children_must_fit() {
    yaml 'grace: 2s\nlease: 9s\nchildren:\n  - {name: a, command: x, grace: 1s}\n  - {name: b, command: y, grace: 600ms}'
    refuses 7 "a 1000 + b 600 = 1600 ms" "--stop-grace 2100ms" -- -f "$scratch/gavel.yaml"
    expect 7 "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml"
    has "$errors" "1600 ms"
    expect 0 "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml" --grace 2100ms --lease 9s
    has "$output" "Children, in the order in which they stop"
    same "$("$GAVEL" check --store "$store" --json -f "$scratch/gavel.yaml" --grace 3s |
        "$JSON_GET" children.0.grace_ms children.1.name bounds.kill_begins_ms bounds.stopped_by_ms |
        awk '{ print $1, $2, $4 - $3 }')" "1000 b 500"
}

# Whatever the command, a file is good or it is not.
test_children_are_checked_by_every_command() {
    local command
    yaml 'lease: 5s\nchildren:\n  - command: x\n    graze: 3s'
    for command in leader status candidates check version; do
        expect 2 "$GAVEL" "$command" -f "$scratch/gavel.yaml"
        has "$errors" "gavel.yaml:4:"
        has "$errors" 'did you mean "grace"?'
    done
    yaml 'children:\n  - command: x'
    expect 0 "$GAVEL" version -c "$scratch/gavel.yaml"
    expect 0 "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml"
}

# What `run -f` would not find some night, `check -f` does not find now.
test_check_looks_up_what_run_needs() {
    local child code said
    while IFS='|' read -r child code said; do
        yaml "children:\n  - $child"
        expect "$code" "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml"
        has "$errors" "gavel.yaml:2: "
        has "$errors" "$said"
        expect "$code" run -f "$scratch/gavel.yaml"
        has "$errors" "$said"
    done <<'END'
{command: sleep 1, user: no-such-user}|2|there is no user "no-such-user"
{command: sleep 1, directory: /no/such}|2|the directory /no/such cannot be used
{command: [/no/such/program]}|127|there is no program /no/such/program
{command: [/etc/passwd]}|126|cannot execute /etc/passwd
{command: sleep 1, ready: {command: [no-such-program]}}|127|there is no program "no-such-program"
END
    yaml 'children:\n  - {command: [sleep, "1"], directory: /}'
    expect 0 "$GAVEL" check --store "$store" -f "$scratch/gavel.yaml"
    [[ ! -e $store ]] || fail "check has touched the store"
}

test_what_the_system_refuses_is_told_with_the_line() {
    yaml '\nchildren:\n  - command: "true"\n    user: no-such-user'
    refuses 2 "gavel.yaml:3: true: " '"no-such-user"' -- -f "$scratch/gavel.yaml"
    yaml 'children:\n  - command: "true"\n    directory: /no/such/directory'
    refuses 2 "gavel.yaml:2: true: " "/no/such/directory" -- -f "$scratch/gavel.yaml"
    yaml 'children:\n  - command: [no-such-thing]'
    refuses 127 "gavel.yaml:2: no-such-thing: " -- -f "$scratch/gavel.yaml"
}

# Each child with its own directory, variables and program; the second only when the first is ready.
test_children_run_as_the_file_says() {
    mkdir "$scratch/home"
    printf '#!/bin/sh\necho "$PWD $PORT $GAVEL_EPOCH" >>../log\necho ready >&5\nexec sleep 100\n' >"$scratch/home/db"
    chmod +x "$scratch/home/db"
    yaml "store: $store" "lease: 8s" "call_timeout: 2s" "candidate_timeout: 10s" "children:" \
        "  - command: [./db]" "    directory: $scratch/home" '    environment: {PORT: "5432"}' '    ready: {fd: 5}' \
        "  - command: echo web \${PORT-unset} >>$scratch/log; read line && echo input; exec sleep 100" \
        "    name: web" "  - name: end" \
        "    command: until grep -q web $scratch/log; do sleep 0.02; done" "    on_exit: stop"
    same "$(run -f "$scratch/gavel.yaml" <<<"nobody reads this" 2>"$scratch/run.err")" ""
    same "$(cat "$scratch/log")" "$scratch/home 5432 1"$'\n'"web unset"
}

test_single_child_of_a_file_keeps_the_input() {
    yaml 'children:\n  - {command: cat, on_exit: stop}'
    same "$(run -f "$scratch/gavel.yaml" <<<"some text" 2>/dev/null)" "some text"
}

# Root becomes that user, with its own groups and its HOME; anybody else is told to be root.
test_child_runs_as_another_user() {
    if ((EUID != 0)); then
        yaml 'children:\n  - {command: id, user: root}'
        refuses 2 "only root may" root -- -f "$scratch/gavel.yaml"
        return
    fi
    yaml 'children:\n  - {command: "id -un; id -G; echo $HOME", user: nobody, on_exit: stop}'
    chmod 755 "$scratch"
    same "$(run -f "$scratch/gavel.yaml" 2>/dev/null)" \
        "nobody"$'\n'"$(id -G nobody)"$'\n'"$(getent passwd nobody | cut -d: -f6)"
}

test_command_finds_its_store_from_another_directory() {
    mkdir "$scratch/elsewhere"
    cd "$scratch"
    # shellcheck disable=SC2016 # for the command's own shell
    same "$(timeout "$limit_s" "$GAVEL" run --store ./gavel.db "${times[@]}" --id me -- \
        sh -c 'cd elsewhere; "$0" leader' "$GAVEL" 2>/dev/null)" me
}

test_a_gavel_below_gavel_run_is_not_warned_of_its_epoch() {
    expect 0 run -- sh -c '"$0" leader >/dev/null' "$GAVEL"
    [[ $errors != *GAVEL_EPOCH* ]] || fail "$errors"
}

run_tests "$@"
