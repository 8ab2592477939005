#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The count at the end of "make test" must not be fooled: logs with every way
# in which a test can end, as Meson writes them, and what they must add up to.
set -euo pipefail

root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# log NAME RESULT RETURNCODE STDOUT: one line as Meson writes it.
log()
{
    printf '{"name": "gavel:%s", "stdout": "%s", "result": "%s", "starttime": 1.5, "returncode": %s, "env": {"result": "OK"}}\n' \
        "$1" "$4" "$2" "$3"
}

# expect WHAT EXIT_CODE LAST_LINE [OPTION…]: reads the log on stdin.
expect()
{
    local what=$1 code=$2 last=$3 got=0
    shift 3

    cat >"$scratch/log.json"
    "$root/tools/test-summary" "$@" "debug=$scratch/log.json" >"$scratch/out" || got=$?
    if [ "$got" -ne "$code" ] || [ "$(tail -n 1 "$scratch/out")" != "$last" ]; then
        echo "$what: expected exit code $code and \"$last\", got $got and:"
        cat "$scratch/out"
        exit 1
    fi
    echo "good: $what"
}

expect "cases count one by one" 0 "3 passed, 0 failed" < <(
    log "unit / a" OK 0 '1..2\nok 1 - x\nok 2 - y\n'
    log "e2e / b" OK 0 'ok 7 of these are only words\n'
)
expect "a failed case" 1 "1 passed, 1 failed" < <(log "unit / a" ERROR 1 '1..2\nok 1 - x\nnot ok 2 - y\n')
# Often the end of a log is all that is kept of it.
if [ "$(tail -n 2 "$scratch/out" | sed -n 1p)" != "failed: debug: gavel:unit / a: 2 - y" ]; then
    echo "the failed case is not named before the last line:"
    cat "$scratch/out"
    exit 1
fi
expect "a crash after good cases" 1 "1 passed, 1 failed" < <(log "unit / a" ERROR -6 '1..2\nok 1 - x\n')
expect "a program that says nothing" 1 "0 passed, 1 failed" < <(log "unit / a" SKIP 0 '')
expect "a plan of no cases" 1 "0 passed, 1 failed" < <(log "unit / a" OK 0 '1..0\n')
expect "a leak found at exit" 1 "1 passed, 1 failed" < <(log "unit / a" ERROR 23 '1..1\nok 1 - x\n')
expect "a time-out" 1 "0 passed, 1 failed" < <(log "e2e / a" TIMEOUT -15 '')
expect "a plain failure" 1 "0 passed, 1 failed" < <(log "e2e / a" FAIL 1 'say \"result\": \"OK\"\n')
expect "a skip is told and not counted" 0 "1 passed, 0 failed" < <(
    log "e2e / a" SKIP 77 ''
    log "e2e / b" OK 0 ''
)
grep -q 'skipped: debug: gavel:e2e / a' "$scratch/out"
expect "a skipped case is told and not counted" 0 "1 passed, 0 failed" < <(
    log "unit / a" FAIL 0 '1..2\nok 1 - x\nnot ok 2 # SKIP y\n'
)
grep -q 'skipped: debug: gavel:unit / a: 2 # SKIP y' "$scratch/out"
expect "a skipped case of a script is told and not counted" 0 "1 passed, 0 failed" < <(
    log "e2e / a" OK 0 '1..2\nok 1 - x\nok 2 - y # SKIP no room\n'
)
grep -q 'skipped: debug: gavel:e2e / a: 2 - y # SKIP no room' "$scratch/out"
expect "only skipped cases of a script" 1 "0 passed, 1 failed" < <(log "e2e / a" SKIP 0 '1..1\nok 1 - y # SKIP z\n')
expect "a skipped case beside a crash" 1 "1 passed, 1 failed" < <(log "unit / a" ERROR -6 '1..3\nok 1 - x\nnot ok 2 # SKIP y\n')
expect "only skipped cases" 1 "0 passed, 1 failed" < <(log "unit / a" FAIL 0 '1..1\nnot ok 1 # SKIP y\n')
expect "a suite that vanished" 1 "1 passed, 1 failed" --suites "unit store" < <(log "unit / a" OK 0 '')
expect "nothing at all" 1 "0 passed, 1 failed" </dev/null
