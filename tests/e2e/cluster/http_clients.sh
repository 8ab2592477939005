#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The candidates over HTTP that docs/HTTP.md shows, in Python and Node.js, each
# behind proxies: frozen, killed, cut off in every way that a proxy knows,
# while nodes die and hand over. Each writes a line for every step of its work,
# with CLOCK_BOOTTIME and its epoch; no step of an older epoch may come after
# one of a newer.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${PROXY:?the proxy}" "${PYTHON:=python3}" "${NODE_JS:=node}"
limit_s=60
[[ -x $PYTHON ]] || PYTHON=python3 # whoever configured may have one that others cannot reach
[[ -x ${NODE_JS:-} ]] || NODE_JS=node
declare -A proxy_of proxy_fd

# A cluster with a proxy in front of the API of each node.
proxied() {
    local name
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    for name in "${nodes[@]}"; do
        free_port
        proxy_of[$name]=$port
        mkfifo "$scratch/proxy-$name"
        "$PROXY" "$port" "${api_of[$name]}" <"$scratch/proxy-$name" >"$scratch/proxy-$name.out" &
        pid_of[proxy-$name]=$!
        exec {fd}>"$scratch/proxy-$name"
        proxy_fd[$name]=$fd
        await grep -q good "$scratch/proxy-$name.out"
    done
}

# proxy NODE COMMAND…: in force when this returns.
proxy() {
    local name=$1 before
    shift
    before=$(wc -l <"$scratch/proxy-$name.out")
    echo "$*" >&"${proxy_fd[$name]}"
    await has_lines "$scratch/proxy-$name.out" $((before + 1))
    [[ $(tail -n 1 "$scratch/proxy-$name.out") == good* ]] || fail "the proxy does not know: $*"
}
has_lines() { (($(wc -l <"$1") >= $2)); }

# candidate NAME NODE…: py-… or js-…, with the proxies of these nodes; its steps are in NAME.out. Neither language undoes
# by itself what was blocked for whoever started it.
candidate() {
    local name=$1 node program=("$PYTHON" "$SOURCE_ROOT/docs/examples/candidate.py")
    local -a addresses=()
    shift
    [[ $name == py-* ]] || program=("$NODE_JS" "$SOURCE_ROOT/docs/examples/candidate.mjs")
    for node in "$@"; do addresses+=("127.0.0.1:${proxy_of[$node]}"); done
    env --default-signal "${program[@]}" g "$name" "${addresses[@]}" >>"$scratch/$name.out" 2>>"$scratch/$name.err" 9>&- &
    pid_of[$name]=$!
}

steps() { sort -n "$scratch"/[pj][ys]-*.out; }
now_ms() { awk '{ printf "%.0f", $1 * 1000 }' /proc/uptime; }

# works NAME SINCE: it has done a step after that time.
works() { tail -n 1 "$scratch/$1.out" | awk -v since="$2" '{ found = $1 > since } END { exit !found }'; }
another_works() { steps | tail -n 1 | awk -v name="$1" -v since="$2" '{ found = $3 != name && $1 > since } END { exit !found }'; }
somebody_works() { another_works nobody "$1"; }
newest() { steps | tail -n 1 | cut -d ' ' -f 3; }

# No step of an older epoch after one of a newer, and each epoch has one candidate. The clock of Node.js says up to a tick
# of 10 ms too much: what could have been before is taken to have been.
judge_steps() {
    are_apart || fail "two worked at once: $(cat "$scratch/judged")"
    cat "$scratch/judged" >&2
}
are_apart() {
    steps | awk '
        $2 < newest && $1 - ($3 ~ /^js-/ ? 10 : 0) > began {
            print "# " $3 " worked with epoch " $2 " at " $1 ", after " newest " had begun at " began
            bad++
        }
        $2 > newest { newest = $2; began = $1; changes++ }
        $2 in owner && owner[$2] != $3 { print "# epoch " $2 " is of " owner[$2] " and of " $3; bad++ }
        { owner[$2] = $3 }
        END { print "# " NR " steps, " changes " mandates"; exit bad > 0 || NR == 0 }' >"$scratch/judged" 2>&1
}

# A first one leads, and a second one waits, both with all nodes.
two() {
    proxied
    candidate "$1" n1 n2 n3
    await somebody_works 0
    candidate "$2" n2 n3 n1
    await stands_by "$2"
}
stands_by() { [[ $(ask n1 /groups/g) == *"\"candidate\":\"$1\""* ]]; }

# steady: one mandate alone for three times to live, without a gap of one.
steady() {
    steps | awk '
        $2 != epoch || $1 - last > 2000 { epoch = $2; first = $1 }
        { last = $1 }
        END { exit !(last - first >= 6000) }'
}

# Without faults nobody is replaced: each keeps its session alive in time.
test_without_faults_python_leads_on() {
    two py-a js-b
    await steady
    judge_steps
}
test_without_faults_node_js_leads_on() {
    two js-a py-b
    await steady
    judge_steps
}

# The proxy gives its node up and tells the client nothing: the session goes on elsewhere, and nobody is elected.
check_half_close() {
    local since
    two "$1" "$2"
    for node in "${nodes[@]}"; do proxy "$node" "$3"; done
    since=$(($(now_ms) + 4000)) # two times to live
    await somebody_works "$since"
    await steady
    judge_steps
}
test_python_when_a_proxy_sends_a_fin() { check_half_close py-a js-b fin; }
test_python_when_a_proxy_sends_a_reset() { check_half_close py-a js-b rst; }
test_node_js_when_a_proxy_sends_a_fin() { check_half_close js-a py-b fin; }
test_node_js_when_a_proxy_sends_a_reset() { check_half_close js-a py-b rst; }

# A frozen leader is replaced after its time to live, wakes with a full buffer, and does nothing with it.
check_freeze() {
    local since
    two "$1" "$2"
    since=$(now_ms)
    await works "$1" "$since"
    kill -STOP "${pid_of[$1]}"
    since=$(now_ms)
    await works "$2" "$since"
    kill -CONT "${pid_of[$1]}"
    since=$(($(now_ms) + 1000))
    await somebody_works "$since"
    kill -TERM "${pid_of[$2]}" # in order: the other one is asked, and leads
    ended "$2" 0
    since=$(now_ms)
    await works "$1" "$since"
    judge_steps
}
test_python_that_is_frozen() { check_freeze py-a js-b; }
test_node_js_that_is_frozen() { check_freeze js-a py-b; }

# A leader whose answers do not arrive stops by itself; one whose node dies goes on at another.
check_faults() {
    local since
    two "$1" "$2"
    kill_both n1
    since=$(($(now_ms) + 4000))
    await somebody_works "$since"
    start n1
    await agree
    for node in "${nodes[@]}"; do proxy "$node" mute; done
    sleep 4 # nobody is heard
    for node in "${nodes[@]}"; do proxy "$node" pass; done
    since=$(now_ms)
    await somebody_works "$since"
    await stands_by "$1"
    await stands_by "$2"
    await hands_over
    judge_steps
    judge_logs
}
hands_over() { [[ $(code_of n2 /groups/g/transfer -X POST -d '{}' -m 30) == 200 ]]; }
test_python_when_nodes_die_and_answers_are_lost() { check_faults py-a js-b; }
test_node_js_when_nodes_die_and_answers_are_lost() { check_faults js-a py-b; }

# The referee finds one that does not count: the careless client is the good one with deadlines that it makes up. It is cut
# off and frozen until another leads, and then goes on as if nothing had happened.
test_the_referee_finds_a_careless_client() {
    local since
    proxied
    sed 's/sent_at + session.valid_ms)/sent_at + 600000)/; s/told\["sent_at"\] + told\["valid_ms"\]/told["sent_at"] + 600000/' \
        "$SOURCE_ROOT/docs/examples/candidate.py" >"$scratch/careless.py"
    same "$(grep -c 600000 "$scratch/careless.py")" 2
    env --default-signal "$PYTHON" "$scratch/careless.py" g py-a "127.0.0.1:${proxy_of[n1]}" >"$scratch/py-a.out" 2>"$scratch/py-a.err" 9>&- &
    pid_of[py-a]=$!
    await somebody_works 0
    await works_unheard # alone: nobody takes its place before it is cut off
    kill -STOP "${pid_of[py-a]}"
    candidate js-b n2 n3 n1
    await somebody_works_as js-b
    kill -CONT "${pid_of[py-a]}"
    since=$(($(now_ms) + 100)) # beyond the tick by which the clock of js-b may be ahead
    await works py-a "$since"
    ! are_apart || fail "the referee has not seen two at once: $(cat "$scratch/judged" && cut -d ' ' -f 2,3 "$scratch"/*-?.out | uniq -c)"
}
somebody_works_as() { [[ -s $scratch/$1.out ]]; }

# Cut off from everybody py-a works on, for longer than anything can be under way to it. One that has lost its session just
# before has no mandate to be careless with: it may campaign again first.
works_unheard() {
    local since end
    proxy n1 drop
    since=$(($(now_ms) + 1000)) end=$((SECONDS + 5))
    until works py-a "$since"; do
        if ((SECONDS >= end)); then
            proxy n1 pass
            return 1
        fi
        nap
    done
}

fault_proxy() {
    local node=${nodes[RANDOM % 3]}
    proxy "$node" "$@"
    pause
    proxy "$node" pass
}
pause() { sleep "$((RANDOM % 3)).$((RANDOM % 10))"; }

fault_freeze() {
    local name
    name=$(newest)
    kill -STOP "${pid_of[$name]}"
    pause
    pause
    kill -CONT "${pid_of[$name]}"
}

fault_kill() {
    local name
    name=$(newest)
    kill -KILL "${pid_of[$name]}"
    wait "${pid_of[$name]}" 2>/dev/null || true
    candidate "$name" n1 n2 n3
}

fault_node() {
    local node=${nodes[RANDOM % 3]}
    if ((RANDOM % 2)); then kill_both "$node"; else stop "$node"; fi
    pause
    start "$node"
    await agree
}

fault() {
    case $1 in
    0) fault_proxy fin ;;
    1) fault_proxy rst ;;
    2) fault_proxy cut ;;
    3) fault_proxy drop ;;
    4) fault_proxy mute ;;
    5) fault_proxy delay $((RANDOM % 1500)) $((RANDOM % 1500)) ;;
    6 | 7) fault_freeze ;;
    8) fault_kill ;;
    9) fault_node ;;
    10) ask n1 /stepdown -X POST -d '{}' -L -o "$scratch/stepdown" || true ;;
    11) ask n3 /groups/g/transfer -X POST -d '{"timeout_ms":1000}' -o "$scratch/transfer" || true ;;
    esac
}

test_random_faults() {
    local seed=${SEED:-$RANDOM} round since
    echo "# SEED=$seed" >&2
    RANDOM=$seed
    proxied
    candidate py-a n1 n2 n3
    await somebody_works 0
    candidate js-b n2 n3 n1
    candidate py-c n3 n1 n2
    candidate js-d n1 n3 n2
    for ((round = 0; round < ${ROUNDS:-15}; round++)); do
        fault $((RANDOM % 12))
        since=$(now_ms)
        await somebody_works "$since"
    done
    judge_steps
    judge_logs
}

run_tests "$@"
