#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The bench runs and says what it measured. How fast it was is not judged here.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

test_quick_bench_prints_every_section() {
    local part
    expect 0 "$GAVEL" bench --quick --trials 3 --out "$scratch/out"
    for part in "calls: " "store: " "handover: " "failover: " "run: " "groups: " "simulator: " \
        "gavel_is_leader(), leader" "gavel_is_leader(), standby" claim renew read \
        "gavel_resign() to on_elected" "SIGKILL to on_elected" "floor: SIGKILL to flock(2) held" \
        "SIGKILL of the elector to the next beat" "SIGKILL of the guard to the next beat" \
        "SIGKILL of the command to the next beat" "gavel handover, started, to the next beat" \
        "floor: SIGKILL of flock(1) to the next beat" "each command found the one before it dead" \
        "floor: SQLite UPDATE, durable" "floor: write 4 KiB, fdatasync" "CPU to keep"; do
        has "$output" "$part"
    done
    has_not "$output" "not measured"
    same "$(head -n 1 "$scratch/out/failover-SIGKILL-to-on-elected.csv")" "ms,share"
    same "$(wc -l <"$scratch/out/failover-SIGKILL-to-on-elected.csv")" 4
    [[ -s $scratch/out/plot.gp ]] || fail "there is no script for the plots"
    if command -v gnuplot >/dev/null; then
        has "$(head -c 200 "$scratch/out/failover.svg")" "<svg"
    else
        has "$errors" "no gnuplot"
    fi
}

test_one_section_as_json_has_samples_and_aims() {
    expect 0 "$GAVEL" bench --only handover --trials 2 --json
    same "$("$JSON_GET" trials sections.# sections.0.name <<<"$output")" "2	1	handover"
    same "$("$JSON_GET" sections.0.rows.0.n sections.0.rows.0.aim_p50 sections.0.rows.0.unit <<<"$output")" "2	10.0	ms"
    local p50
    p50=$("$JSON_GET" sections.0.rows.0.p50 <<<"$output")
    awk -v p="$p50" 'BEGIN { exit !(p > 0) }' || fail "a hand-over took $p50 ms"
}

# Without flock(1) the rest is measured all the same.
test_without_flock_the_bench_says_so() {
    mkdir "$scratch/bin"
    expect 0 env PATH="$scratch/bin" "$GAVEL" bench --only run --trials 1
    has "$output" "no floor by flock(1)"
    has "$output" "SIGKILL of the elector to the next beat"
    has_not "$output" "floor: SIGKILL of flock(1)"
}

has_children() { [[ -n $(cat "/proc/$1/task/$1/children") ]]; }

# The sections that take long. Who does not listen used to be waited for.
test_a_signal_ends_every_section_soon() {
    local section sections=(handover failover run groups)
    if [[ -x $BUILD_ROOT/sim/gavel-sim ]]; then sections+=(simulator); fi
    for section in "${sections[@]}"; do
        run_as "$section" env TMPDIR="$scratch" "$GAVEL" bench --only "$section"
        await has_children "${pid_of[$section]}"
        kill -TERM "${pid_of[$section]}"
        ended "$section" 1
        has "$(cat "$scratch/$section.out")" "not measured to the end: ended by a signal"
    done
    ! compgen -G "$scratch/gavel-*" || fail "a directory was left behind"
}

test_several_sections_can_be_chosen() {
    expect 0 "$GAVEL" bench --quick --only handover,calls --trials 1 --json
    same "$("$JSON_GET" sections.# sections.0.name sections.1.name <<<"$output")" "2	calls	handover"
}

test_bench_refuses_what_it_does_not_know() {
    expect 2 "$GAVEL" bench --only calls,
    expect 2 "$GAVEL" bench --only quorum-nonsense
    expect 2 "$GAVEL" bench --only calls,nonsense
    has "$errors" "there is no section \"nonsense\""
    expect 2 "$GAVEL" bench --trials 0
    has "$errors" "--trials must be from 1"
    expect 1 "$GAVEL" bench --only calls --out "$scratch/none/out"
    has "$errors" "name another with --out"
}

run_tests "$@"
