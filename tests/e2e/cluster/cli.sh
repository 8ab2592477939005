#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The operator's side of a cluster: gavel status, leader, check, elections,
# handover, member, watch and cluster demo, with real nodes; and with
# fake ones for what real nodes do not do on demand.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${FAKE_NODE:?answers what it is told to}"

# three: a cluster that agrees, known to gavel by GAVEL_CLUSTER.
three() {
    cluster n1 n2 n3
    begin n1 n2 n3
    export GAVEL_CLUSTER="127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"
    await agree
}

# another: some node that does not lead, in $target.
another() { read -r target < <(others "$leader"); }

# leads_now NAME: by what gavel says.
leads_now() { [[ $("$GAVEL" leader) == "$1" ]]; }

# fake NAME: a fake node, with the URL in ${url_of[NAME]}; what it answers lies in $scratch/NAME.
declare -A url_of
fake() {
    mkdir -p "$scratch/$1"
    run_as "fake-$1" "$FAKE_NODE" "$scratch/$1"
    await test -s "$scratch/$1/port"
    url_of[$1]=127.0.0.1:$(cat "$scratch/$1/port")
}

# fake_status NAME TERM IS_LEADER HAS_LEASE [GENERATION]: what it says of itself.
fake_status() {
    local role=follower
    if [[ $3 == true ]]; then role=leader; fi
    cat >"$scratch/$1/GET-status" <<END
200
{"cluster":"fake","generation":${5:-1},"node":"$1","incarnation":1,"role":"$role","term":$2,"leader_id":"$1",
"is_leader":$3,"has_lease":$4,"lease_remaining_ms":100,"lease_epoch":1,"commit":1,"applied":1,"stale":false,"disk_full":false,
"waits_for_operator":false,"handing_over":false,"changing_members":false,"api_address":"${url_of[$1]}","pid":1,"guard_pid":1,"peers":[]}
END
}

test_status_shows_the_nodes_and_marks_the_leader() {
    local name
    three
    expect 0 "$GAVEL" status
    has "$output" "cluster test: $leader leads in term $(status_of "$leader" term), lease "
    has "$output" "; 3 of 3 healthy"
    grep -qE "^\* $leader +leader +[0-9]+ +[0-9]+ ms +[0-9]+ +[0-9]+ +- +ok +127.0.0.1:${api_of[$leader]} +term [0-9]+, index [0-9]+$" <<<"$output" ||
        fail "the leader is not marked: $output"
    for name in $(others "$leader"); do
        grep -qE "^  $name +follower +[0-9]+ +- +[0-9]+ +[0-9]+ +[0-9]+ ms +ok +127.0.0.1:${api_of[$name]} +term [0-9]+, index [0-9]+$" <<<"$output" ||
            fail "$name is not as it should be: $output"
    done
    has_not "$output" "!"
    same "$("$GAVEL" status --json | "$JSON_GET" cluster leader_id members healthy split_brain nodes.# troubles.#)" \
        $'test\t'"$leader"$'\t3\t3\tfalse\t3\t0'
    same "$("$GAVEL" leader --json | "$JSON_GET" leader_id leader_address hearsay)" \
        "$leader"$'\t'"127.0.0.1:${api_of[$leader]}"$'\tfalse'
    expect 0 "$GAVEL" check
    has "$output" "One leader, and all is well."
}

test_one_address_is_enough() {
    three
    another
    export GAVEL_CLUSTER=127.0.0.1:${api_of[$target]}
    same "$("$GAVEL" status --json | "$JSON_GET" leader_id members healthy)" "$leader"$'\t3\t3'
    expect 0 "$GAVEL" handover --to "$target"
    has "$output" "$target leads in term"
}

test_handover_says_who_leads_then() {
    local former term
    three
    former=$leader
    term=$(status_of "$leader" term)
    another
    expect 0 "$GAVEL" handover --to "$target"
    has "$output" "$former leads in term $term; it hands over to $target"
    grep -qE "^$target leads in term $((term + 1)) \([0-9.]+ ms\)\.$" <<<"$output" || fail "no result: $output"
    await leads_now "$target"
    expect 0 "$GAVEL" handover --to "$target"
    has "$output" "$target leads already"
    same "$("$GAVEL" handover --to "$former" --json | "$JSON_GET" success old_leader_id new_leader_id)" $'true\t'"$target"$'\t'"$former"
    expect 1 "$GAVEL" handover --to n7
    has "$errors" 'has no node "n7"; did you mean "n1"?'
    expect 2 "$GAVEL" handover --force
    has "$errors" "--to NODE --force"
    judge_logs
}

test_handover_of_nodes_gives_the_others_their_turn() {
    local term
    three
    term=$(status_of "$leader" term)
    expect 0 "$GAVEL" handover
    has "$output" "$leader has given up."
    has "$output" "leads in term"
    (($("$GAVEL" status --json | "$JSON_GET" term) > term)) || fail "the term is still $term"
    judge_logs
}

test_older_names_of_handover_work_on_nodes() {
    local former
    three
    former=$leader
    another
    expect 2 "$GAVEL" transfer
    has "$errors" "name the node that is to lead"
    expect 0 "$GAVEL" transfer "$target"
    has "$output" "$target leads in term"
    expect 0 "$GAVEL" transfer --to "$former"
    expect 2 "$GAVEL" transfer "$target" --to "$target"
    expect 0 "$GAVEL" stepdown
    has "$output" "$former has given up."
    # resign is for groups, also where a cluster is named and no group.
    expect 3 "$GAVEL" resign --timeout 300ms
    has "$errors" 'nobody leads the group "default"'
}

test_elections_tell_who_voted_for_whom() {
    local former
    three
    former=$leader
    another
    expect 0 "$GAVEL" handover --to "$target"
    await agree
    expect 0 "$GAVEL" elections --limit 1
    grep -qE "^term [0-9]+  $target won in [0-9.]+ ms  20" <<<"$output" || fail "no election of $target: $output"
    grep -qE "^    $target  for $target$" <<<"$output" || fail "it did not vote for itself: $output"
    (($(grep -c "  for $target$" <<<"$output") >= 2)) || fail "no majority: $output"
    (($(grep -c '^    n' <<<"$output") == 3)) || fail "not every voter is told of: $output"
    # Each election once, however many nodes remember it.
    same "$("$GAVEL" elections --limit 50 --json | grep -o '"term":[0-9]*,"candidate":"[^"]*","pre_vote":false' | sort | uniq -d)" ""
    same "$("$GAVEL" elections --limit 1 --json | "$JSON_GET" elections.# elections.0.candidate elections.0.told_by)" \
        $'1\t'"$target"$'\t'"$target"
    has "$("$GAVEL" elections)" "$former won"
}

test_a_killed_leader_is_followed() {
    local former
    three
    former=$leader
    kill_both "$former"
    expect 0 "$GAVEL" leader --wait 10s
    [[ $output != "$former" ]] || fail "the dead one leads"
    expect 0 "$GAVEL" status
    grep -qE "^  $former +voter +- .* silent +127" <<<"$output" || fail "the dead one is not silent: $output"
    has "$output" "! $former (127.0.0.1:${api_of[$former]}) does not answer: nothing listens there"
    has "$output" "; 2 of 3 healthy"
    expect 1 "$GAVEL" check
    has "$output" "$former"
    expect 1 "$GAVEL" handover --to "$former"
    has "$errors" "$former does not answer (nothing listens there); it has to run to lead"
}

test_without_a_majority_nobody_leads() {
    local name
    three
    for name in $(others n1); do kill_both "$name"; done
    nobody() { [[ $("$GAVEL" status --json | "$JSON_GET" leader_id) == null ]]; }
    await nobody
    expect 3 "$GAVEL" leader
    has "$errors" "nobody leads the cluster"
    expect 6 "$GAVEL" leader --wait 300ms
    expect 3 "$GAVEL" check
    has "$output" "nobody leads: writes are refused"
    expect 3 "$GAVEL" handover --to n1
    has "$errors" "--force lets n1 stand now"
    expect 3 "$GAVEL" handover --timeout 200ms
    kill_both n1
    expect 4 "$GAVEL" status
    has "$errors" "(127.0.0.1:${api_of[n1]}, 127.0.0.1:${api_of[n2]}, 127.0.0.1:${api_of[n3]}: nothing listens there)"
    same "$("$GAVEL" leader --json 2>/dev/null | "$JSON_GET" error.name)" ERR_STORE_UNAVAILABLE
    expect 6 "$GAVEL" leader --wait 200ms
}

test_force_asks_the_target_if_the_leader_hangs() {
    local former pid
    three
    former=$leader
    another
    pid=$(node_pid "$former")
    kill -STOP "$pid"
    expect 0 "$GAVEL" handover --to "$target" --force --cluster-timeout 300ms
    has "$output" "$target leads"
    [[ $output == *"leads already"* ]] || has "$errors" "is lost" # elected before it was asked, on a slow machine
    kill -CONT "$pid"
    await agree
    same "$leader" "$target"
}

# Those that answered at once still followed it; when its time is over they follow another.
test_a_leader_that_hangs_is_not_shown_as_leader() {
    local former pid
    three
    former=$leader
    pid=$(node_pid "$former")
    kill -STOP "$pid"
    expect 0 "$GAVEL" status --cluster-timeout 3s
    has_not "$output" "cluster test: $former leads"
    has "$output" "! $former (127.0.0.1:${api_of[$former]}) does not answer: no answer within 3 s"
    kill -CONT "$pid"
    await agree
}

# Only who is asked for everything waits for a node that hangs.
test_a_node_that_hangs_costs_nothing() {
    local pid begun former
    three
    another
    pid=$(node_pid "$target")
    former=$leader
    kill -STOP "$pid"
    begun=$SECONDS
    export GAVEL_CLUSTER_TIMEOUT=100s
    leads_now "$former" || fail "it does not say who leads"
    expect 0 "$GAVEL" member list
    read -r target < <(others "$former" | grep -v "^$target$")
    expect 0 "$GAVEL" handover --to "$target"
    expect 0 "$GAVEL" handover
    ((SECONDS - begun < 90)) || fail "it waited for the one that hangs"
    expect 1 "$GAVEL" check --cluster-timeout 300ms
    has "$output" "no answer within 300 ms"
    kill -CONT "$pid"
    # Of a leader that hangs another takes the place, and is found as soon as it has.
    await agree
    former=$leader
    pid=$(node_pid "$former")
    kill -STOP "$pid"
    begun=$SECONDS
    expect 0 "$GAVEL" leader --wait 100s
    [[ $output != "$former" ]] || fail "the one that hangs is said to lead"
    ((SECONDS - begun < 90)) || fail "it waited for the one that hangs"
    kill -CONT "$pid"
}

test_members_are_listed_and_changed() {
    three
    another
    expect 0 "$GAVEL" member list
    (($(grep -cE "^n[1-3] +voter +0 +ok +127.0.0.1:[0-9]+ +127.0.0.1:[0-9]+$" <<<"$output") == 3)) || fail "$output"
    expect 0 "$GAVEL" member demote "$target"
    await grep -qE "^$target +learner" <("$GAVEL" member list)
    expect 0 "$GAVEL" member promote "$target" --json
    same "$("$JSON_GET" success <<<"$output")" true
    await grep -qE "^$target +voter" <("$GAVEL" member list)
    expect 0 "$GAVEL" member remove "$target"
    same "$("$GAVEL" member list --json | "$JSON_GET" members.#)" 2
    expect 2 "$GAVEL" member
    expect 2 "$GAVEL" member ad
    has "$errors" 'did you mean "add"?'
    expect 2 "$GAVEL" member add n4
    has "$errors" "gavel member add NAME ADDRESS"
    expect 2 "$GAVEL" member remove n1 --witness
    has "$errors" "--witness is only for"
    expect 2 "$GAVEL" member add n4 127.0.0.1:1 --priority 256
}

test_watch_tells_of_a_handover_as_it_happens() {
    local name
    three
    another
    run_as watch "$GAVEL" watch
    run_as json "$GAVEL" watch --json --timeout 30s
    await grep -q "leads in term" "$scratch/watch.err"
    await hears_events
    expect 0 "$GAVEL" handover --to "$target"
    await grep -qE "  $leader no longer leads: " "$scratch/watch.out"
    await grep -qE "  $target leads in term" "$scratch/watch.out"
    await grep -qE "\"event\":\"became_leader\".*\"told_by\":\"$target\"" "$scratch/json.out"
    "$JSON_GET" id event at told_by <"$scratch/json.out" >/dev/null
    kill -INT "${pid_of[watch]}"
    ended watch 0
    # What each node tells comes in its order; those of another that come late do not hold it up.
    for name in "${nodes[@]}"; do
        grep "\"told_by\":\"$name\"" "$scratch/json.out" | "$JSON_GET" at >"$scratch/told"
        sort -c "$scratch/told" || fail "what $name told is not in the order of time: $(cat "$scratch/told")"
    done
}

# Both watchers are connected to all nodes: each node says how many it serves.
hears_events() {
    local name
    for name in "${nodes[@]}"; do
        (($(ss -Htn state established "( sport = :${api_of[$name]} )" | wc -l) >= 2)) || return 1
    done
}

test_status_can_be_watched() {
    three
    run_as pictures "$GAVEL" status --watch 100ms --json
    await many_lines pictures 3
    kill -INT "${pid_of[pictures]}"
    ended pictures 0
    "$JSON_GET" leader_id <"$scratch/pictures.out" >/dev/null
    expect 2 "$GAVEL" status --watch 2
    has "$errors" "did you mean 2s?"
    expect 2 "$GAVEL" status --watch 2ms
    has "$errors" "at least"
}

many_lines() { (($(wc -l <"$scratch/$1.out") >= $2)); }

# On a terminal of 80 columns it draws over itself, shows the cursor again, and no line is too long.
test_a_terminal_is_drawn_anew() {
    three
    run_as terminal env --default-signal=CHLD script -qfec "stty cols 80 rows 24; exec '$GAVEL' status --watch=100ms" "$scratch/typescript"
    await drawn 3
    kill -INT "$(pgrep -P "${pid_of[terminal]}")"
    await process_is_gone "${pid_of[terminal]}"
    has "$(cat "$scratch/typescript")" $'\033[?25h'
    has "$(cat "$scratch/typescript")" "ADDRESS"
    # shellcheck disable=SC2016 # sed's
    sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g; s/\r$//' "$scratch/typescript" | grep -v '^Script' | awk 'length > 80 { exit 1 }' || fail "a line is too long"
}

drawn() { (($(grep -o $'\033\\[H' "$scratch/typescript" | wc -l) >= $1)); }

# Whatever a check sees between two answers, a hand-over is no split brain.
test_hand_overs_never_look_like_split_brain() {
    local round code checks=0
    three
    (for ((round = 0; round < 12; round++)); do
        another
        "$GAVEL" handover --to "$target" >/dev/null 2>&1 || true
        leader=$target
    done) &
    pid_of[transfers]=$!
    while ! process_is_gone "${pid_of[transfers]}"; do
        code=0
        "$GAVEL" check >"$scratch/check.err" 2>&1 || code=$?
        ((code != 10)) || fail "it saw split brain"
        checks=$((checks + 1))
    done
    ((checks >= 5)) || fail "only $checks checks were made"
}

test_two_leases_at_once_are_split_brain() {
    fake a1
    fake b2
    fake_status a1 4 true true
    fake_status b2 9 true true
    export GAVEL_CLUSTER=${url_of[a1]},${url_of[b2]}
    expect 10 "$GAVEL" check
    has "$errors" "ERR_SPLIT_BRAIN"
    has "$errors" "a1 leads in generation 1, term 4 with a lease, and b2 in generation 1, term 9 with a lease"
    same "$("$GAVEL" check --json 2>/dev/null | "$JSON_GET" error.code error.name)" $'4004\tERR_SPLIT_BRAIN'
    expect 0 "$GAVEL" status
    has "$output" "! split brain: a1 leads"
    # An old leader that has no lease any more is none.
    fake_status a1 4 true false
    expect 0 "$GAVEL" check
    # Two of one term are, whatever their leases.
    fake_status b2 4 true false
    expect 10 "$GAVEL" check
    # And two generations.
    fake_status b2 3 true false 2
    expect 10 "$GAVEL" check
    has "$errors" "b2 in generation 2, term 3"
}

# The same entries applied, and different data: somebody has lost or changed what was committed.
test_tables_that_differ_are_not_well() {
    fake a1
    fake b2
    fake_status a1 4 true true
    fake_status b2 4 false false
    sed -i 's/"leader_id":"b2"/"leader_id":"a1"/; s/"applied":1,/"applied":1,"digest":"00000000000000b2",/' "$scratch/b2/GET-status"
    sed -i 's/"applied":1,/"applied":1,"digest":"00000000000000a1",/' "$scratch/a1/GET-status"
    export GAVEL_CLUSTER=${url_of[a1]},${url_of[b2]}
    expect 10 "$GAVEL" check
    has "$errors" "ERR_SPLIT_BRAIN"
    has "$errors" "the tables of a1 and b2 differ after entry 1"
    sed -i 's/00000000000000b2/00000000000000a1/' "$scratch/b2/GET-status"
    expect 0 "$GAVEL" check
}

test_a_redirect_is_followed_with_the_token() {
    fake a1
    fake b2
    fake_status a1 4 false false
    printf '307 http://%s/stepdown\n{"error":{"code":4119,"name":"ERR_NOT_LEADER","message":"ask b2"}}\n' "${url_of[b2]}" >"$scratch/a1/POST-stepdown"
    printf '200\n{"success":true,"message":"done","old_leader_id":"b2","new_leader_id":null}\n' >"$scratch/b2/POST-stepdown"
    echo "  secret-word" >"$scratch/token"
    expect 0 "$GAVEL" handover --cluster "${url_of[a1]}" --token-file "$scratch/token" --json
    same "$("$JSON_GET" old_leader_id <<<"$output")" b2
    grep -q '^POST /stepdown' "$scratch/a1/asked" || fail "the first was not asked"
    grep -q '^Authorization: Bearer secret-word' "$scratch/b2/asked" || fail "the token did not go along"
    grep -q '^{"timeout_ms":30000}' "$scratch/b2/asked" || fail "the body did not go along: $(cat "$scratch/b2/asked")"
}

test_who_adds_a_node_is_told_how_to_start_it() {
    fake a1
    fake_status a1 4 true true
    printf '200\n{"success":true,"message":"n4 is a learner now"}\n' >"$scratch/a1/POST-members"
    expect 0 "$GAVEL" member add n4 127.0.0.1:1 --cluster "${url_of[a1]}"
    has "$output" "n4 is a learner now"
    has "$output" "gaveld --config FILE --join"
    expect 0 "$GAVEL" member add n4 127.0.0.1:1 --cluster "${url_of[a1]}" --json
    has_not "$output" "--join"
    expect 0 "$GAVEL" member promote n4 --cluster "${url_of[a1]}"
    has_not "$output" "--join"
}

test_answers_that_are_none_are_told() {
    fake a1
    export GAVEL_CLUSTER=${url_of[a1]}
    printf '200\nhello\n' >"$scratch/a1/GET-status"
    expect 2 "$GAVEL" status
    has "$errors" "is this a node of gaveld?"
    printf '500\nhello\n' >"$scratch/a1/GET-status"
    expect 4 "$GAVEL" status
    has "$errors" "it answered with HTTP 500"
    printf '401\n{"error":{"code":4120,"name":"ERR_DENIED","message":"a token is needed"}}\n' >"$scratch/a1/GET-status"
    expect 4 "$GAVEL" status
    has "$errors" "a token is needed; name the token with --token-file"
    printf 'close\n' >"$scratch/a1/GET-status"
    expect 4 "$GAVEL" status
    has "$errors" "it closed the connection"
    printf 'hang\n' >"$scratch/a1/GET-status"
    expect 4 "$GAVEL" status --cluster-timeout 200ms
    has "$errors" "no answer within 200 ms"
    expect 2 "$GAVEL" status --token-file "$scratch/a1/port" --cluster 'ftp://x'
    expect 1 "$GAVEL" status --token-file "$scratch/nowhere"
    has "$errors" "cannot read the token file"
}

# What may have been done is not asked for again.
test_a_change_without_an_answer_is_not_repeated() {
    fake a1
    fake_status a1 4 true true
    printf 'close\n' >"$scratch/a1/POST-stepdown"
    expect 4 "$GAVEL" handover --cluster "${url_of[a1]}"
    has "$errors" "it is unknown whether it was done"
    same "$(grep -c '^POST' "$scratch/a1/asked")" 1
}

test_a_store_that_is_named_closer_is_meant() {
    export GAVEL_CLUSTER=127.0.0.1:1
    expect 4 "$GAVEL" leader
    has "$errors" "no node of the cluster answers"
    elect web-1
    await said web-1 became_leader
    same "$("$GAVEL" leader --store "$store")" web-1
    expect 2 "$GAVEL" leader --store "$store" --cluster 127.0.0.1:1
    unset GAVEL_CLUSTER
    expect 2 "$GAVEL" elections
    has "$errors" "no cluster is named"
}

test_demo_runs_a_cluster_and_leaves_nothing() {
    local data pids pid
    run_as demo env TMPDIR="$scratch" "$GAVEL" cluster demo --json
    await test -s "$scratch/demo.out"
    export GAVEL_CLUSTER
    GAVEL_CLUSTER=$("$JSON_GET" urls <"$scratch/demo.out")
    data=$("$JSON_GET" folder <"$scratch/demo.out")
    same "$("$GAVEL" status --json | "$JSON_GET" cluster members healthy)" $'demo\t3\t3'
    [[ -d $data/n1 && -s $data/n1.yaml && -s $data/n1.log ]] || fail "the directory lacks something"
    pids=$("$JSON_GET" nodes.0.guard_pid nodes.1.guard_pid nodes.2.guard_pid nodes.0.pid nodes.1.pid nodes.2.pid <"$scratch/demo.out")
    kill -TERM "${pid_of[demo]}"
    ended demo 0
    for pid in $pids; do process_is_gone "$pid" || fail "$pid is still there"; done
    [[ ! -e $data ]] || fail "the directory is still there"
}

test_demo_tells_what_happens_in_plain_words() {
    local former pid
    run_as demo env TMPDIR="$scratch" "$GAVEL" cluster demo --nodes 3
    await grep -q "What happens here" "$scratch/demo.out"
    export GAVEL_CLUSTER
    GAVEL_CLUSTER=$(sed -n 's/.*export GAVEL_CLUSTER=//p' "$scratch/demo.out")
    former=$("$GAVEL" leader)
    pid=$(sed -nE 's/^  kill -9 ([0-9]+) .*/\1/p' "$scratch/demo.out")
    same "$("$GAVEL" status --json | tr '{' '\n' | sed -nE "s/.*\"id\":\"$former\".*\"pid\":([0-9]+).*/\1/p")" "$pid"
    await knows_three
    kill -KILL "$pid"
    await grep -qE "^[0-9:.]+  n[1-3] leads in term [0-9]+ \(its process is [0-9]+\)$" "$scratch/demo.out"
    await grep -qE "^[0-9:.]+  $former has started$" "$scratch/demo.out"
    kill -INT "${pid_of[demo]}"
    ended demo 0
}

# The demonstration listens to all three.
knows_three() { (($(ss -Htnp state established 2>/dev/null | grep -c "pid=${pid_of[demo]},") >= 3)); }

# Killed, it cannot clean up; but no process outlives it.
test_demo_that_is_killed_takes_its_nodes_along() {
    local pids pid
    run_as demo env TMPDIR="$scratch" "$GAVEL" cluster demo --json --nodes 1
    await test -s "$scratch/demo.out"
    pids=$("$JSON_GET" nodes.0.guard_pid nodes.0.pid <"$scratch/demo.out")
    kill -KILL "${pid_of[demo]}"
    for pid in $pids; do await process_is_gone "$pid"; done
    expect 2 "$GAVEL" cluster demo --nodes 10
    expect 2 "$GAVEL" cluster
}

# Nobody leads, and gavel asks again twenty times a second: one wish, told once, and at most once in two seconds if the tries are far apart.
test_a_wish_that_is_asked_for_again_and_again_is_told_once() {
    local before told
    three
    for name in $(others n1); do kill_both "$name"; done
    await is n1 has_lease false
    before=$SECONDS
    expect 3 "$GAVEL" member add n4 127.0.0.1:1 --cluster "127.0.0.1:${api_of[n1]}" --timeout 3s
    told=$(grep -c 'msg=operator .*text="add member n4' "$scratch/n1.err")
    ((told >= 1)) || fail "nothing is told"
    ((told <= 1 + (SECONDS - before + 1) / 2)) || fail "told $told times in $((SECONDS - before)) s"
}

run_tests "$@"
