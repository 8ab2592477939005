#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Helpers of the end-to-end tests: real processes, awaited by what they say,
# never by sleeping for as long as it may take.
#
# A test file defines functions whose names begin with `test_` and ends with
# `run_tests`. Each function runs in a shell, a directory ($scratch) and a store
# ($store) of its own; whatever it started is ended when it is over. The
# output is TAP, so that each function counts as one test.
set -euo pipefail

: "${GAVEL:?the program to test}" "${JSON_GET:?the JSON reader}"

# Nothing of whoever runs the tests may have a say.
for variable in ${!GAVEL_@} NO_COLOR; do unset "$variable"; done
export LC_ALL=C.UTF-8

limit_s=60 # of a wait, not of a promise: no machine is so busy

declare -A pid_of

fail() {
    echo "# failed: $*" >&2
    exit 1
}

# Ends what this test started, by process id, and shows what it said if the test failed.
clean_up() {
    local code=$? name
    exec 3>&2 2>/dev/null # the shell's notices of who was killed
    for name in "${!pid_of[@]}"; do
        kill -KILL "${pid_of[$name]}" || true
        wait "${pid_of[$name]}" || true
    done
    if ((code)); then
        for name in "$scratch"/*.err; do
            if [[ -s $name ]]; then sed "s|^|# ${name##*/}: |" "$name" >&3; fi
        done
    fi
    # Whoever outlives them for a moment, such as the guard of one that was killed, may still write there.
    for name in {1..250}; do
        if rm -rf "$scratch"; then break; fi
        nap
    done
}

# await COMMAND…: until it succeeds, or fails the test after the limit.
await() {
    local deadline=$((SECONDS + limit_s))
    until "$@" 2>/dev/null; do
        ((SECONDS < deadline)) || fail "waited $limit_s s for: $*"
        nap
    done
}

# A fiftieth of a second, without a process for it: nobody ever writes there.
nap() { read -rt 0.02 <>"$nowhere" || true; }

# run_as NAME COMMAND…: in the background, with its output in files named after it.
run_as() {
    local name=$1
    shift
    "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
    pid_of[$name]=$!
}

# typescript OPTION…: script(1), which ends when it hears of SIGCHLD.
typescript() { env --default-signal=CHLD script "$@"; }

# elect NAME [OPTION…]: a candidate of that id. Its times are longer than the
# defaults, so that a machine that is busy with other tests does not cost it
# its lease.
elect() {
    local name=$1
    shift
    run_as "$name" "$GAVEL" elect --store "$store" --id "$name" --lease 5s --call-timeout 2s \
        --candidate-timeout 8s "$@"
}

# said NAME EVENT [TEXT]: whether it has printed such an event, with that text in its line.
said() { (($(grep -F "\"event\":\"$2\"" "$scratch/$1.out" | grep -cF -- "${3:-}") > 0)); }

# epoch_of NAME: the epoch of the newest mandate it told of.
epoch_of() { grep -F '"event":"became_leader"' "$scratch/$1.out" | tail -n 1 | "$JSON_GET" epoch; }

leads() { [[ $("$GAVEL" leader --store "$store" 2>/dev/null) == "$1" ]]; }

nobody_leads() {
    local code=0
    "$GAVEL" leader --store "$store" >/dev/null 2>&1 || code=$?
    ((code == 3))
}

candidate_count() { "$GAVEL" candidates --store "$store" --json | "$JSON_GET" 'candidates.#'; }
has_candidates() { [[ $(candidate_count) == "$1" ]]; }

# ended NAME CODE: waits until it has ended, and for that exit code.
ended() {
    local code=0
    await process_is_gone "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || code=$?
    unset "pid_of[$1]"
    [[ $code == "$2" ]] || fail "$1 ended with $code, not $2"
}

# Gone, or a zombie that only waits to be waited for. One whose other threads are still about to die has its files open.
process_is_gone() {
    local stat threads
    [[ -r /proc/$1/stat ]] || return 0
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
    threads=("/proc/$1/task/"*)
    [[ ${stat##*) } == Z* ]] && ((${#threads[@]} <= 1))
}

# first_child PID: one of the processes below it; nothing if there is none.
first_child() {
    local first file
    for file in "/proc/$1"/task/*/children; do
        if { read -r first _ <"$file"; } 2>/dev/null; [[ ${first-} ]]; then
            echo "$first"
            return
        fi
    done
}

# expect CODE COMMAND…: runs it; $output and $errors are what it said.
# shellcheck disable=SC2034 # whoever sources this reads them
expect() {
    local wanted=$1 code=0
    shift
    "$@" >"$scratch/expect.stdout" 2>"$scratch/expect.stderr" </dev/null || code=$?
    output=$(cat "$scratch/expect.stdout")
    errors=$(cat "$scratch/expect.stderr")
    [[ $code == "$wanted" ]] || fail "exit code $code, not $wanted, of: $* $errors $output"
}

# ping ARGUMENT…: gavel store ping. Exit code 7 says that the store is too slow for its preset, which it is on a busy machine;
# a test that is about that calls the program itself.
ping() {
    local code=0
    "$GAVEL" store ping "$@" || code=$?
    ((code == 7)) || return "$code"
}

# has TEXT PART: fails unless the part is in it.
has() { [[ $1 == *"$2"* ]] || fail "\"$2\" is not in: $1"; }
has_not() { [[ $1 != *"$2"* ]] || fail "\"$2\" is in: $1"; }
same() { [[ $1 == "$2" ]] || fail "\"$1\" is not \"$2\""; }

# skip REASON: the machine cannot do what the test needs; says so in the output.
skip() {
    echo "$*" >"$scratch/skip"
    cp "$scratch/skip" "$skip_note"
    exit 0
}

run_one() (
    set -euo pipefail
    scratch=$(mktemp -d)
    store=$scratch/gavel.db
    trap clean_up EXIT
    "$1"
)

run_tests() {
    local names name number=0 failed=0 code
    skip_note=$(mktemp)
    nowhere=$skip_note.nowhere
    mkfifo "$nowhere"
    names=$(declare -F | awk '$3 ~ /^test_/ { print $3 }')
    if (($#)); then names=$*; fi
    echo "1..$(wc -w <<<"$names")"
    for name in $names; do
        number=$((number + 1))
        : >"$skip_note"
        set +e
        run_one "$name"
        code=$?
        set -e
        if ((code)); then
            failed=1
            echo "not ok $number - $name"
        elif [[ -s $skip_note ]]; then
            echo "ok $number - $name # SKIP $(cat "$skip_note")"
        else
            echo "ok $number - $name"
        fi
    done
    rm -f "$skip_note" "$nowhere"
    return $failed
}
