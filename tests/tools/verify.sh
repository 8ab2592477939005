#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# verify/run with lists of its own: whatever goes wrong must end in a failure.
set -euo pipefail

root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export VERIFY_CHECKS=$scratch/list

fail()
{
    echo "failed: $1"
    cat "$scratch/out"
    exit 1
}

# Runs the rows that come in.
run()
{
    cat >"$VERIFY_CHECKS"
    "$root/verify/run" "$@" >"$scratch/out" 2>&1
}

for word in --help -h; do
    run "$word" </dev/null || fail "$word is not an error"
    grep -q '^usage: verify/run' "$scratch/out" || fail "$word tells the usage"
done
! run --nonsense </dev/null || fail "an unknown word is refused"
grep -q -- '--nonsense.*see verify/run --help' "$scratch/out" || fail "names the unknown word"

run <<<'mutant|cluster|GATE_OPEN|TERMS=2 CRASHES=0|one that fails, as it must' || fail "a mutant that fails is good"
grep -q 'good: 1 checks' "$scratch/out" || fail "counts the checks"

! run <<<'mutant|cluster|NO_SUCH_RULE|TERMS=2 CRASHES=0|the model itself' || fail "a mutant that survives is a failure"
grep -q SURVIVED "$scratch/out" || fail "says that it survived"

! run --short <<<'mutant|cluster|NO_SUCH_RULE|TERMS=2 CRASHES=0|the model itself' || fail "the same as TAP"
grep -q '^not ok 1 - NO_SUCH_RULE' "$scratch/out" || fail "says it as TAP"

! run <<<'model|cluster|broken|GATE_OPEN TERMS=2 CRASHES=0|a model that does not hold' || fail "a broken model is a failure"
grep -q 'BROKEN: two work at once' "$scratch/out" || fail "says what is broken"

! run <<<'reach|cluster|BY_OBITUARY|REACHED=BY_OBITUARY TERMS=2 CRASHES=0|nobody dies' || fail "what is not reached is a failure"
grep -q 'NOT REACHED' "$scratch/out" || fail "says that it is not reached"

! run <<<'model|cluster|nonsense|TERMS=none|no model at all' || fail "a model that Spin refuses is a failure"

! VERIFY_DEPTH=10 run <<<'model|cluster|cut short|TERMS=2 CRASHES=0|a search with an end' || fail "half a search is a failure"
grep -q 'NOT COMPLETED' "$scratch/out" || fail "says that the search was not completed"
echo "good: verify"
