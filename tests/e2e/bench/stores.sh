#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The measurements of stores on servers run and say what they measured, on real servers and beside a rival that is a file lock.
# How fast it was is not judged here.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

measure() { env GAVEL="$GAVEL" RIVALS=no DURABLE=no SETUP=no "$SOURCE_ROOT/bench/measure" "$@"; }

test_quick_bench_prints_a_row_for_every_store() {
    local part file
    expect 0 measure --quick --only stores-kill --trials 1 --out "$scratch/out"
    for part in "stores-kill: " "SIGKILL, gavel run on sqlite" "SIGKILL, gavel run on mysql" "SIGKILL, gavel run on etcd" \
        "SIGKILL, gavel run on s3" "floor: write 4 KiB, fdatasync" "each command of gavel run found the one before it dead"; do
        has "$output" "$part"
    done
    has_not "$output" "not measured"
    for file in sqlite mysql etcd s3; do
        same "$(wc -l <"$scratch/out/stores-kill-SIGKILL-gavel-run-on-$file.csv")" 2
    done
    if command -v gnuplot >/dev/null; then has "$(head -c 200 "$scratch/out/stores-kill.svg")" "<svg"; fi
}

# A file of servers whose rival is flock(1), and whose server counts milliseconds.
write_servers() {
    cat >"$scratch/servers" <<SERVERS
# comments and empty lines are for people

store file sqlite:$scratch/gavel.db
count file echo "all \$(date +%s%3N)"; echo "some 0"
rival file flock: flock --no-fork "$scratch/\$KEY" sh -c 'echo leads; exec sleep 60'
SERVERS
}

test_rivals_run_beside_and_loads_are_counted() {
    local rate
    write_servers
    expect 0 env TMPDIR="$scratch" "$GAVEL" bench --quick --only stores-kill --trials 2 --json --servers "$scratch/servers"
    same "$("$JSON_GET" sections.0.rows.3.name sections.0.rows.3.n sections.0.rows.3.met <<<"$output")" \
        "SIGKILL, flock on file	2	null"
    expect 0 env TMPDIR="$scratch" "$GAVEL" bench --quick --only stores-load --json --servers "$scratch/servers"
    same "$("$JSON_GET" sections.0.rows.0.name sections.0.rows.1.name sections.0.rows.# <<<"$output")" \
        "gavel run on file, 1 leader, 10 standbys	flock on file, 1 leader, 10 standbys	2"
    # A clock is counted at its own rate, less what counting itself takes.
    rate=$("$JSON_GET" sections.0.rows.0.value <<<"$output")
    awk -v r="$rate" 'BEGIN { exit !(r > 30000 && r < 61000) }' || fail "60000 in a minute are $rate"
    ! compgen -G "$scratch/gavel-??????" || fail "a directory was left behind"
}

test_what_ends_by_itself_is_not_measured() {
    write_servers
    sed -i '/^rival/s/: .*/: sh -c "echo this is wrong >\&2; exit 1"/' "$scratch/servers"
    expect 1 "$GAVEL" bench --quick --only stores-kill --trials 1 --servers "$scratch/servers"
    has "$output" "1 trials of flock on file failed: it ended by itself"
    has "$errors" "this is wrong"
    sed -i '/^rival/d; /^store/s/sqlite:.*/nonsense:x/' "$scratch/servers"
    expect 1 "$GAVEL" bench --quick --only stores-kill --trials 1 --servers "$scratch/servers"
    has "$output" "file is not measured to the end"
    has "$errors" "nonsense"
}

test_mistakes_in_the_file_of_servers_are_named_by_line() {
    local line
    expect 0 "$GAVEL" bench --only stores-load
    has "$output" "left out: name servers with --servers FILE"
    expect 1 "$GAVEL" bench --only stores-kill --servers "$scratch/none"
    has "$output" "cannot read $scratch/none"
    for line in "shop a b" "store a" "count b true" "rival a nothing"; do
        printf 'store a sqlite:x\n\n%s\n' "$line" >"$scratch/servers"
        expect 1 "$GAVEL" bench --only stores-kill --servers "$scratch/servers"
        has "$output" "$scratch/servers, line 3: "
    done
    : >"$scratch/servers"
    expect 1 "$GAVEL" bench --only stores-load --servers "$scratch/servers"
    has "$output" "there is no store in"
}

has_begun() { grep -q "stores-load: " "$scratch/bench.out"; }
has_no_site() { ! compgen -G "$scratch/gavel-bench-*" >/dev/null; }

test_servers_end_with_a_bench_that_is_killed() {
    local server bench
    run_as bench env TMPDIR="$scratch" GAVEL="$GAVEL" RIVALS=no DURABLE=no SETUP=no STORES=etcd "$SOURCE_ROOT/bench/measure" --only stores-load
    await has_begun
    server=$(cat "$scratch"/gavel-bench-*/etcd/etcd-0.pid)
    bench=$(tr ' ' '\n' <"/proc/${pid_of[bench]}/task/${pid_of[bench]}/children" | while read -r pid; do
        if [[ $(readlink "/proc/$pid/exe") == */gavel-bench ]]; then echo "$pid"; fi
    done)
    [[ -n $bench ]] || fail "there is no gavel bench"
    kill -KILL "${pid_of[bench]}"
    ended bench 137
    await has_no_site
    await process_is_gone "$server"
    await process_is_gone "$bench"
}

run_tests "$@"
