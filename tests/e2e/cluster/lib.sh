#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Helpers of the tests of gaveld: a cluster on loopback, on ports of its own.
#
#     cluster n1 n2 n3        names, ports and files; nothing runs yet
#     begin n1 n2 n3         starts them with --bootstrap
#     await_leader           sets $leader
#
# Times are longer than the defaults: the sanitizers and the other tests that
# run beside it must not cost a leader its place.
# shellcheck source=../lib.sh
source "$SOURCE_ROOT/tests/e2e/lib.sh"
# shellcheck source=../../servers/ports.sh
source "$SOURCE_ROOT/tests/servers/ports.sh"
: "${GAVELD:?the daemon to test}" "${REFEREE:?the referee}" "${WAITS:?the watcher of waits}" "${KNOCK:?the knocker}"
for variable in ${!GAVELD_@}; do unset "$variable"; done

limit_s=60
timeout_ms=400 # of an election, and the lease
declare -A port_of api_of

# A port of the block that nobody listens on; in $port.
free_port() {
    while (: <"/dev/tcp/127.0.0.1/$next_port") 2>/dev/null; do next_port=$((next_port + 1)); done
    port=$next_port
    next_port=$((next_port + 1))
}

# cluster NAME…: their ports, and a file for each.
cluster() {
    local name
    nodes=("$@")
    reserve_ports
    for name in "$@"; do
        free_port
        port_of[$name]=$port
        free_port
        api_of[$name]=$port
    done
    for name in "$@"; do configure "$name"; done
    watch_waits
}

# Tells the referee for how long the processes of a node wanted a processor and had none.
watch_waits() {
    if [[ ${pid_of[waits]-} ]]; then return; fi
    "$WAITS" "$scratch" >>"$scratch/waits" 9>&- &
    pid_of[waits]=$!
}

# configure NAME [LINE…]: writes its file, with these lines of YAML besides.
configure() {
    local name=$1 peer
    shift
    {
        echo "cluster: test"
        echo "node: $name"
        echo "listen: 127.0.0.1:${port_of[$name]}"
        echo "api: 127.0.0.1:${api_of[$name]}"
        echo "data: $scratch/$name"
        echo "log_level: debug"
        echo "realtime: false" # several clusters, and everything else, share the machine
        echo "timing: {election_timeout_min_ms: $timeout_ms, election_timeout_max_ms: $((2 * timeout_ms)), heartbeat_interval_ms: $((timeout_ms / 4)), lease_ms: $timeout_ms}"
        echo "peers:"
        for peer in "${nodes[@]}"; do
            echo "  - {name: $peer, address: \"127.0.0.1:${port_of[$peer]}\", api: \"127.0.0.1:${api_of[$peer]}\"}"
        done
        printf '%s\n' "$@"
    } >"$scratch/$name.yaml"
}

# start NAME [OPTION…]: its guard; what it says is appended to NAME.err over all its lives.
start() {
    local name=$1
    shift
    "${wrapper[@]}" "$GAVELD" --config "$scratch/$name.yaml" "$@" >>"$scratch/$name.out" 2>>"$scratch/$name.err" 9>&- &
    pid_of[$name]=$!
    echo "$!" >"$scratch/$name.guard"
}
wrapper=()

begin() {
    local name
    for name in "$@"; do start "$name" --bootstrap; done
}

# ask NAME PATH [CURL OPTION…]: the body; fails if there is no answer.
ask() {
    local name=$1 path=$2
    shift 2
    curl -sS -m 30 "$@" "http://127.0.0.1:${api_of[$name]}$path"
}

# code_of NAME PATH [CURL OPTION…]: the HTTP code.
code_of() {
    local name=$1 path=$2
    shift 2
    ask "$name" "$path" -o /dev/null -w '%{http_code}' "$@"
}

# post NAME PATH BODY: the body of the answer, followed by a line with its code.
post() { ask "$1" "$2" -X POST -H 'Content-Type: application/json' -d "$3" -w '\n%{http_code}'; }

# tells NAME PATH KEY…: these of the JSON that it answers.
tells() { "$JSON_GET" --from "${api_of[$1]}" "${@:2}"; }

status_of() { tells "$1" /status "$2"; }

is() { [[ $(status_of "$1" "$2") == "$3" ]]; }

# find_leader NAME…: the one that has a lease, in $leader; fails if none has.
find_leader() {
    local name
    for name in "$@"; do
        if is "$name" has_lease true; then
            leader=$name
            return 0
        fi
    done
    return 1
}

# await_leader [NAME…]: among these, or all of the cluster.
await_leader() {
    (($#)) || set -- "${nodes[@]}"
    await find_leader "$@"
}

# others NAME: the rest of the cluster.
others() {
    local name
    for name in "${nodes[@]}"; do
        if [[ $name != "$1" ]]; then echo "$name"; fi
    done
}

# Everybody follows one leader, has what it has, and holds the same table.
agree() {
    local name wanted
    (($#)) || set -- "${nodes[@]}"
    find_leader "$@" || return 1
    wanted=$(tells "$leader" /status term commit digest revision)
    for name in "$@"; do
        [[ $(tells "$name" /status term applied digest revision) == "$wanted" ]] || return 1
        [[ $(tells "$name" /leader leader_id) == "$leader" ]] || return 1
    done
}

# kill_both NAME: guard and node, silently; returns when both are dead, and tells the referee.
kill_both() {
    local node
    node=$(node_pid "$1")
    kill -KILL "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || true
    unset "pid_of[$1]"
    if [[ $node ]]; then await process_is_gone "$node"; fi
    deed killed "$1"
}

# The node process below its guard; nothing if there is none.
node_pid() { first_child "${pid_of[$1]}"; }

# deed WHAT NAME: for the referee.
deed() { echo "msg=$1 node=$2 at_ns=$(awk '{ printf "%.0f", ($1 + 0.01) * 1e9 }' /proc/uptime)" >>"$scratch/deeds"; }

# stop NAME: in order; it must end with 0.
stop() {
    kill -TERM "${pid_of[$1]}"
    ended "$1" 0
}

# logged NAME TEXT: whether its log has that.
logged() { grep -qF -- "$2" "$scratch/$1.err"; }

# The logs of all nodes can be true together. Work has stopped half a second after its lease at the latest; what its node
# waited for a processor meanwhile does not count.
judge_logs() { logs_are_true || fail "the referee objects"; }
logs_are_true() {
    local name code=0 arguments=()
    kill -TERM "${pid_of[waits]}" # it looks once more
    ended waits 0
    touch "$scratch/deeds"
    for name in "${nodes[@]}"; do arguments+=("$name=$scratch/$name.err"); done
    "$REFEREE" --deeds "$scratch/deeds" --deeds "$scratch/waits" --late-ms 500 "${arguments[@]}" >"$scratch/referee.err" 2>&1 || code=$?
    watch_waits
    return "$code"
}

# refused CODE NAME [OPTION…]: it does not start, with that exit code; $errors is what it said.
refused() {
    local code=$1 name=$2
    shift 2
    expect "$code" timeout "$limit_s" "$GAVELD" --config "$scratch/$name.yaml" "$@"
}
