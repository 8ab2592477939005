#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The man pages and the shell completions tell of exactly what the program has.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

: "${SOURCE_ROOT:?}"
man=$SOURCE_ROOT/docs/man
completions=$SOURCE_ROOT/src/cli/completions
commands=$("$GAVEL" --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')

older="resign stepdown transfer" # of handover; they work and are not listed

# options_of COMMAND: its long options as --help has them, at the left, one per line, --no-x included.
options_of() {
    "$GAVEL" "$1" --help | grep -oE '^ {1,6}(-., )?--(\[no-\])?[a-z-]+' | grep -oE -- '--.*' |
        sed -nE 's/^--\[no-\](.*)/--\1\n--no-\1/; p' | tr ' ' '\n' | sort -u
}

# The text of a page without its escapes.
page() { sed 's/\\//g' "$man/$1.scd"; }

# defined_in PAGE: the options that the page explains, not those that it only mentions.
defined_in() { page "$1" | grep -E '^(\*-.\*.*, )?\*--' | grep -oE -- '--[a-z-]+'; }

test_every_command_has_a_page_and_its_options_are_in_it() {
    local command option known total=0
    for command in $commands; do
        has "$(page gavel.1)" "$command"
        case $command in help | version) continue ;; esac
        known=$(defined_in "gavel-$command.1" || true)$'\n'$(defined_in gavel.1)
        if [[ $(page "gavel-$command.1") == *"All options of *gavel-elect*(1)"* ]]; then
            known+=$'\n'$(defined_in gavel-elect.1)
        fi
        for option in $(options_of "$command"); do
            grep -qx -- "$option" <<<"$known" || fail "gavel-$command(1) does not tell of $option"
            total=$((total + 1))
        done
    done
    ((total > 100)) || fail "only $total options were compared"
}

# What a page says must exist: an option that was taken away must leave the page, too.
test_pages_tell_of_no_option_that_is_not_there() {
    local command option known
    for command in $commands; do
        case $command in help | version) continue ;; esac
        known=$(options_of "$command")
        for option in $(defined_in "gavel-$command.1" || true); do
            grep -qx -- "$option" <<<"$known" || fail "gavel-$command(1) tells of $option, which is not there"
        done
    done
}

test_older_names_are_told_and_point_to_the_new_one() {
    local name
    has "$("$GAVEL" help)" "Older names of handover, which still work: resign, stepdown, transfer"
    for name in $older; do
        grep -qwx "$name" <<<"$commands" && fail "$name is listed"
        has "$("$GAVEL" "$name" --help | tr '\n' ' ')" 'The same as `gavel handover'
        has "$(page "gavel-$name.1")" '*gavel-handover*(1)'
        has "$(page gavel-handover.1)" "*gavel $name*"
    done
}

test_every_key_and_variable_is_in_the_page_of_the_file() {
    local key option keys
    keys=$(page gavel.yaml.5 | sed -nE 's/^\*([a-z_]+)\* \(.*/\1/p')
    (($(wc -w <<<"$keys") >= 51)) || fail "the page has only: $keys"
    for key in $keys; do
        printf '%s: [x]\n' "$key" >"$scratch/gavel.yaml"
        expect 2 "$GAVEL" version --config "$scratch/gavel.yaml"
        has "$errors" "$key must be one plain value"
    done
    for option in $(options_of elect) $(options_of run); do
        case $option in --events | --config | --json | --color | --help | --no-*) continue ;; esac
        [[ $(page gavel.yaml.5) == *"(*$option*, *GAVEL_"* ]] || fail "gavel.yaml(5) does not tell of $option"
    done
}

test_exit_codes_are_in_the_page() {
    local code text
    while read -r code text; do
        grep -A 1 -x "\*$code\*" "$man/gavel.1.scd" | tail -n 1 | grep -ciF "$text" >"$scratch/count" ||
            fail "gavel(1) does not say that $code means: $text"
    done < <("$GAVEL" --help | sed -n '/^Exit codes/,/^$/s/^  \([0-9]*\)  /\1 /p')
}

# Every number that a test of a command expects is one that its --help lists. run and once end with those of their commands.
test_help_lists_the_exit_codes_that_a_command_can_return() {
    local code command listed total=0
    while read -r code command; do
        case $command in run | once) continue ;; esac
        listed=$("$GAVEL" "$command" --help | sed -n '/^Exit codes/,/^$/s/^  \([0-9]*\)  .*/\1/p')
        grep -qx "$code" <<<"$listed" || fail "gavel $command --help does not list $code"
        total=$((total + 1))
    done < <(grep -rhoE 'expect [0-9]+ "\$GAVEL" [a-z]+' "$SOURCE_ROOT/tests/e2e" | awk '{ print $2, $4 }' | sort -u | grep -E '^([3-9]|10) ')
    ((total > 20)) || fail "only $total were compared"
    same "$("$GAVEL" version --help | sed -n '/^Exit codes/,$s/^  \([0-9]*\)  .*/\1/p' | tr '\n' ' ')" "0 1 2 "
    has "$("$GAVEL" check --help)" "  10  split brain"
}

# exits_of_page COMMAND: the numbers that its page explains under EXIT STATUS.
exits_of_page() {
    page "gavel-$1.1" | sed -n '/^# EXIT STATUS/,/^# [^E]/p' | grep -E '^\*[0-9]+\*' | grep -oE '[0-9]+'
}

# Beyond those of --help a page has only those of the command that is run, and of signals.
test_pages_and_help_have_the_same_exit_codes() {
    local command total=0
    for command in $commands; do
        case $command in help | version) continue ;; esac
        same "$(exits_of_page "$command" | grep -vE '^1[0-9][0-9]$' | tr '\n' ' ')" \
            "$("$GAVEL" "$command" --help | sed -n '/^Exit codes/,$s/^  \([0-9]*\)  .*/\1/p' | tr '\n' ' ')"
        total=$((total + 1))
    done
    ((total >= 18)) || fail "only $total commands were compared"
}

test_every_event_is_in_the_page() {
    local event count=0
    while read -r event; do
        count=$((count + 1))
        grep -qF "*$event*" <(page gavel-elect.1) || fail "gavel-elect(1) does not tell of $event"
        grep -qw "$event" "$completions/gavel.bash" || fail "the bash completion does not know $event"
        grep -qw "$event" "$completions/_gavel" || fail "the zsh completion does not know $event"
    done < <(sed -n '/define GAVEL_EVENT_MAP/,/clang-format on/p' "$SOURCE_ROOT/include/gavel/event.h" |
        sed -nE 's/^ +X\([A-Z_]+, +"([a-z_]+)"\).*/\1/p')
    ((count >= 14)) || fail "only $count events were found"
}

test_every_function_is_in_the_page_of_the_library() {
    local name count=0
    for name in $(tr '\n' ' ' <"$SOURCE_ROOT/include/gavel/gavel.h" | grep -oE 'GAVEL_API[^;{]*;' |
        grep -oE 'gavel_[a-z_]+\(' | tr -d '(' | sort -u); do
        [[ $(page libgavel.3) == *"*$name*()"* ]] || fail "libgavel(3) does not tell of $name"
        count=$((count + 1))
    done
    ((count >= 20)) || fail "only $count functions were found"
}

test_pages_can_be_made() {
    local file
    for file in "$man"/*.scd; do
        scdoc <"$file" >"$scratch/page" || fail "scdoc refuses $file"
        [[ -s $scratch/page ]] || fail "$file is empty"
    done
}

# The settings of the examples in gavel.yaml(5) are good ones; each stands between two lines of ```.
test_examples_of_the_file_work() {
    local example count=0
    sed -n '/^# EXAMPLES/,/^# SEE/p' "$man/gavel.yaml.5.scd" |
        awk -v directory="$scratch" '/^```/ { inside = !inside; count += inside; next }
            inside { print > (directory "/example-" count ".yaml") }'
    for example in "$scratch"/example-*.yaml; do
        grep -q 'lease:' "$example" || fail "there is no example in $example"
        expect 0 "$GAVEL" check --config "$example"
        count=$((count + 1))
    done
    ((count >= 2)) || fail "only $count examples were found"
}

# complete_bash WORD…: what bash offers for the last word.
complete_bash() {
    bash -c 'source "$1"; shift
        [[ $(complete -p gavel) == *"-F _gavel gavel" ]] || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _gavel
        printf "%s\n" "${COMPREPLY[@]}"' sh "$completions/gavel.bash" "$@"
}

test_bash_offers_exactly_the_options_of_each_command() {
    local command
    for command in $commands $older; do
        same "$(complete_bash gavel "$command" -- | sort)" "$(options_of "$command")"
    done
}

test_bash_offers_the_commands() {
    same "$(complete_bash gavel '' | grep -v '^-' | sort)" "$(sort <<<"$commands")"
    same "$(complete_bash gavel can)" candidates
    same "$(complete_bash gavel --store x le)" leader
    same "$(complete_bash gavel help lea)" leader
}

test_bash_offers_values() {
    same "$(complete_bash gavel elect --policy '' | sort | tr '\n' ' ')" "balanced first lexicographic priority "
    same "$(complete_bash gavel check --preset d)" database
    same "$(complete_bash gavel --color a | tr '\n' ' ')" "auto always "
    touch "$scratch/some.db"
    same "$(complete_bash gavel leader --store "$scratch/so")" "$scratch/some.db"
    same "$(complete_bash gavel elect --lease '')" ""
    same "$(complete_bash gavel run --on-exit re | tr '\n' ' ')" "resign restart "
    same "$(complete_bash gavel check -f "$scratch/so")" "$scratch/some.db"
}

# Behind -- it is the user's own command, whose options are not ours.
test_bash_offers_commands_for_run() {
    local offered
    offered=$(complete_bash gavel run --group x -- sleep)
    grep -qx sleep <<<"$offered" || fail "sleep is not offered"
    offered=$(complete_bash gavel run -- ls --)
    grep -qx -- --lease <<<"$offered" && fail "an option of gavel is offered to ls"
    true
}

test_bash_offers_candidates_and_groups_of_the_store() {
    mkdir "$scratch/bin"
    ln -s "$GAVEL" "$scratch/bin/gavel"
    PATH=$scratch/bin:$PATH
    elect web-1 --group jobs
    await said web-1 became_leader
    same "$(complete_bash gavel leader --store "$store" --group '')" jobs
    same "$(complete_bash gavel handover --store "$store" --group jobs --to w)" web-1
}

# complete_zsh COMMAND: the options that the completion gives to _arguments for it.
complete_zsh() {
    zsh -f -c '
        _arguments() { [[ $1 == -C ]] || print -rl -- "$@"; state=options; return 1 }
        words=($2) CURRENT=2
        source $1' sh "$completions/_gavel" "$1" | sed -E 's/^(\([^)]*\))?\*?//' | grep -oE '^--[a-z-]+' | sort -u
}

test_zsh_offers_exactly_the_options_of_each_command() {
    local command
    for command in $commands $older; do
        same "$(complete_zsh "$command")" "$(options_of "$command")"
    done
}

test_zsh_finds_the_completion() {
    zsh -n "$completions/_gavel"
    local name
    # shellcheck disable=SC2016 # zsh reads it
    name=$(zsh -f -c 'fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; print -r -- $_comps[gavel]' sh "$completions")
    same "$name" _gavel
    # shellcheck disable=SC2016
    name=$(zsh -f -c '
        _describe() { print -rl -- ${(P)2%%:*} }
        _arguments() { state=; return 1 }
        words=(gavel) CURRENT=2
        source $1 || true
        _gavel_commands' sh "$completions/_gavel" | sort)
    same "$name" "$(sort <<<"$commands")"
}

run_tests "$@"
