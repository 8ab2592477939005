#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Members that come and go, a cluster that is lost for good, and two clusters
# that were one.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# member LEADER BODY: a change that must succeed.
member() {
    local answer
    answer=$(post "$1" /members "$2")
    [[ $answer == *'"success":true'* ]] || fail "$2: $answer"
}

role_of() { ask "$1" /members | tr '{' '\n' | grep "\"id\":\"$2\"" | sed 's/.*"role":"\([a-z]*\)".*/\1/'; }
has_role() { [[ $(role_of "$1" "$2") == "$3" ]]; }

# newcomer NAME: a configuration of its own, for --join.
newcomer() {
    local name=$1 all=("${nodes[@]}")
    free_port
    port_of[$name]=$port
    free_port
    api_of[$name]=$port
    nodes=("$name")
    configure "$name"
    nodes=("${all[@]}")
}

test_a_node_joins_catches_up_and_votes() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    newcomer n4
    start n4 --join
    await is n4 node n4
    is n4 has_lease false || fail "it leads a cluster of its own"
    member "$leader" "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"127.0.0.1:${port_of[n4]}\",\"learner\":true}"
    await agree n1 n2 n3 n4
    has_role n4 n4 learner || fail "it is no learner: $(role_of n4 n4)"
    member "$leader" '{"action":"promote","id":"n4"}'
    await has_role n4 n4 voter
    nodes+=(n4)
    await agree
    member "$leader" '{"action":"demote","id":"n4"}'
    await has_role "$leader" n4 learner
    judge_logs
}

# Its directory knows nothing of the newcomer that leads now; it must find a way to answer it all the same.
test_a_node_that_was_away_follows_a_leader_it_does_not_know() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    kill_both n3
    await_leader n1 n2
    newcomer n4
    start n4 --join
    await is n4 node n4
    member "$leader" "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"127.0.0.1:${port_of[n4]}\"}"
    await has_role n4 n4 voter
    nodes+=(n4)
    await agree n1 n2 n4
    has "$(post "$leader" /transfer '{"target_leader_id":"n4","timeout_ms":5000}')" '"success":true'
    await agree n1 n2 n4
    same "$leader" n4
    start n3
    await agree
    same "$leader" n4
    judge_logs
}

# A founder that is gone, and two who know each other only from what their logs say.
test_members_that_came_later_find_each_other_after_all_were_killed() {
    cluster n1
    begin n1
    await agree
    for name in n4 n5; do
        newcomer "$name"
        start "$name" --join
        await is "$name" node "$name"
        member n1 "{\"action\":\"add\",\"id\":\"$name\",\"address\":\"127.0.0.1:${port_of[$name]}\"}"
        await has_role "$name" "$name" voter
    done
    nodes=(n1 n4 n5)
    await agree
    for name in n1 n4 n5; do kill_both "$name"; done
    nodes=(n4 n5)
    start n4
    start n5
    await agree
    judge_logs
}

# It does not end by itself, and does not know that it is out; whatever it tries, the others go on.
test_a_node_that_is_removed_disturbs_nobody() {
    local gone led term
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    led=$leader
    term=$(status_of "$led" term)
    gone=$(others "$leader" | sed -n 1p)
    member "$leader" "{\"action\":\"remove\",\"id\":\"$gone\"}"
    await is "$gone" role pre-candidate # several election time-outs later
    # shellcheck disable=SC2046 # words
    await agree $(others "$gone")
    same "$leader" "$led"
    same "$(status_of "$leader" term)" "$term"
    same "$(ask "$leader" /members | "$JSON_GET" members.#)" 2
    stop "$gone"
    judge_logs
}

test_a_leader_that_is_removed_hands_over() {
    local gone
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    gone=$leader
    post "$gone" /members "{\"action\":\"remove\",\"id\":\"$gone\"}" >"$scratch/answer"
    grep -q '"success":true' "$scratch/answer" || fail "$(cat "$scratch/answer")"
    # shellcheck disable=SC2046 # words
    await_leader $(others "$gone")
    same "$(ask "$leader" /members | "$JSON_GET" members.#)" 2
    judge_logs
}

# A follower says where the leader is.
test_admin_calls_on_a_follower_are_sent_to_the_leader() {
    local follower answer
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    follower=$(others "$leader" | sed -n 1p)
    answer=$(ask "$follower" /stepdown -i -X POST -d '{}')
    has "$answer" " 307 "
    has "$answer" "127.0.0.1:${api_of[$leader]}/stepdown"
    has "$answer" ERR_NOT_LEADER
    judge_logs
}

test_a_transfer_goes_where_it_is_told() {
    local target term
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    target=$(others "$leader" | tail -n 1)
    term=$(status_of "$leader" term)
    has "$(post "$leader" /transfer "{\"target_leader_id\":\"$target\"}")" "\"new_leader_id\":\"$target\""
    await agree
    same "$leader" "$target"
    same "$(status_of "$leader" term)" $((term + 1))
    judge_logs
}

# Two of three are lost for good: the one that is left goes on alone, when somebody says so, twice.
test_a_lost_cluster_is_replaced_by_hand() {
    local commit generation
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    commit=$(status_of n1 commit)
    generation=$(status_of n1 generation)
    kill_both n2
    kill_both n3
    await is n1 has_lease false
    refused 1 n1 --force-new-cluster --yes # it still runs
    has "$errors" "$scratch/n1"
    stop n1
    refused 1 n1 --force-new-cluster
    has "$errors" --yes
    expect 0 timeout "$limit_s" "$GAVELD" --config "$scratch/n1.yaml" --force-new-cluster --yes
    start n1
    await is n1 has_lease true
    same "$(status_of n1 generation)" $((generation + 1))
    same "$(ask n1 /members | "$JSON_GET" members.#)" 1
    (($(status_of n1 commit) > commit)) || fail "what was committed is lost"
    # One that comes back believes in the old cluster; it must not get a say.
    start n2
    await logged n2 generation
    is n1 has_lease true || fail "n1 lost its place to one of the past"
    # A new one may join.
    newcomer n4
    start n4 --join
    await is n4 node n4
    member n1 "{\"action\":\"add\",\"id\":\"n4\",\"address\":\"127.0.0.1:${port_of[n4]}\"}"
    await has_role n4 n4 voter
}

# Somebody forces a new cluster while the others live: both sides see it, say so, and the older one gives way.
test_two_clusters_that_were_one_are_noticed() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    kill_both n3
    expect 0 timeout "$limit_s" "$GAVELD" --config "$scratch/n3.yaml" --force-new-cluster --yes
    start n3
    await is n3 has_lease true
    ended n1 77
    ended n2 77
    logged n1 split_brain || logged n2 split_brain || fail "nobody gave the alarm"
    logged n1 --join || fail "n1 does not say what to do"
    same "$(ask n3 /status | "$JSON_GET" generation has_lease)" $'2\ttrue'
}

run_tests "$@"
