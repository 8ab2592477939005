#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elections over plain HTTP, with curl alone: candidates are streams, whoever
# holds one leads, and whoever is killed is followed by the next.
set -euo pipefail
# shellcheck source=quorum_lib.sh
source "$SOURCE_ROOT/tests/e2e/quorum_lib.sh"

# campaign NAME NODE GROUP [MORE]: a candidate at that node; its events are in NAME.out.
campaign() {
    run_as "$1" curl -sS -N -X POST "http://127.0.0.1:${api_of[$2]}/groups/$3/campaign" -d "{\"candidate\":\"$1\"${4:-}}"
}

# told NAME EVENT: whether it has heard of that, at least so often.
told() { (($(grep -c "^event: $2\$" "$folder/$1.out") >= ${3:-1})); }

# data_of NAME EVENT KEY…: of the newest event of that name.
data_of() {
    local name=$1 event=$2
    shift 2
    grep -A1 "^event: $event\$" "$folder/$name.out" | grep '^data: ' | tail -n 1 | sed 's/^data: //' | "$JSON_GET" "$@"
}

# leads NODE GROUP NAME: as that node sees it, asked as a health check is.
leads_at() { [[ $(code_of "$1" "/groups/$2/leader?candidate=$3") == 200 ]]; }

kill_candidate() {
    kill -KILL "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || true
    unset "pid_of[$1]"
}

test_a_killed_candidate_is_followed_by_the_next() {
    local name epoch follower
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    follower=$(others "$leader" | head -n 1)
    campaign a "$leader" web%2Fcron ',"ttl_ms":60000,"address":"a:80"'
    await told a elected
    campaign b "$follower" web%2Fcron ',"ttl_ms":60000'
    await told b leader
    same "$(data_of b leader leader address)" $'a\ta:80'
    epoch=$(data_of a elected epoch)
    for name in "${nodes[@]}"; do
        await leads_at "$name" web%2Fcron a
        same "$(code_of "$name" '/groups/web%2Fcron/leader?candidate=b')" 503
        same "$(ask "$name" '/groups/web%2Fcron/leader?format=sidecar')" '{"name":"a"}'
        same "$(ask "$name" '/groups/web%2Fcron/leader' | "$JSON_GET" leader epoch)" "a"$'\t'"$epoch"
    done
    kill_candidate a # long before its time to live is over
    await told b elected
    (($(data_of b elected epoch) > epoch)) || fail "the epoch has not grown"
    for name in "${nodes[@]}"; do await leads_at "$name" web%2Fcron b; done
    same "$(ask "$follower" '/groups?prefix=web/&fresh=true' | "$JSON_GET" 'groups.#' groups.0.leader)" $'1\tb'
    judge_logs
}

test_notes_are_fenced_by_the_epoch_at_every_node() {
    local name epoch old
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 job
    await told a elected
    campaign b n2 job
    await told b leader
    old=$(data_of a elected epoch)
    same "$(code_of n1 /groups/job/notes/where -X PUT -H "Epoch: $old" -H 'If-None-Match: *' -d 'line 17')" 200
    kill_candidate a
    await told b elected
    epoch=$(data_of b elected epoch)
    for name in "${nodes[@]}"; do
        same "$(code_of "$name" /groups/job/notes/where -X PUT -H "Epoch: $old" -d 'late')" 409
        same "$(ask "$name" /groups/job/notes/where -X PUT -H "Epoch: $old" -d 'late' | "$JSON_GET" error.code)" 4005
        same "$(ask "$name" '/groups/job/notes/where?fresh=true')" 'line 17'
    done
    same "$(code_of n3 /groups/job/notes/where -X PUT -H "Epoch: $epoch" -d 'line 18')" 200
    same "$(ask n1 '/groups/job/notes/where?fresh=true')" 'line 18'
    same "$(code_of n2 /groups/job/notes/where -X DELETE -H 'If-Match: "1"')" 412
    judge_logs
}

test_the_death_of_the_raft_leader_demotes_nobody() {
    local former kept follower
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    former=$leader
    follower=$(others "$former" | head -n 1)
    campaign a "$follower" g ',"ttl_ms":5000'
    await told a elected
    kept=$(data_of a elected epoch)
    campaign b "$(others "$former" | tail -n 1)" g ',"ttl_ms":5000'
    await told b leader
    kill -KILL "$(node_pid "$former")"
    # shellcheck disable=SC2046 # words
    await_leader $(others "$former")
    # The new leader answers the keep-alives of both, and a whole time to live goes by.
    await told a alive $(($(grep -c '^event: alive' "$folder/a.out") + 4))
    await told b alive $(($(grep -c '^event: alive' "$folder/b.out") + 1))
    ! told a demoted || fail "a was demoted"
    ! told b elected || fail "b was elected"
    same "$(ask "$follower" '/groups/g/leader?fresh=true' | "$JSON_GET" leader epoch)" "a"$'\t'"$kept"
    same "$(code_of "$follower" /groups/g/notes/k -X PUT -H "Epoch: $kept" -d v)" 200
    await agree
    judge_logs
}

test_a_hand_over_by_hand() {
    local session
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 g
    await told a elected
    campaign b n2 g
    campaign c n3 g
    await told b leader
    await told c leader
    session=$(data_of a session session)
    run_as transfer curl -sS -X POST "http://127.0.0.1:${api_of[n2]}/groups/g/transfer" -d '{"to":"c"}'
    await told a hand_over
    same "$(data_of a hand_over successor)" c
    same "$(code_of n3 /groups/g/resign -X POST -d "{\"session\":\"$session\",\"epoch\":$(data_of a elected epoch)}")" 200
    await told c elected
    ended transfer 0
    same "$("$JSON_GET" old_leader new_leader epoch <"$folder/transfer.out")" $'a\tc\t'"$(data_of c elected epoch)"
    await told a ended
    ended a 0
    ! told b elected || fail "b was elected"
    # Nobody hands over: rolled back.
    same "$(post n1 /groups/g/transfer '{"to":"b","timeout_ms":300}' | tail -n 1)" 409
    await told c hand_over_cancelled
    judge_logs
}

test_a_client_that_keeps_itself_alive_and_one_that_does_not() {
    local session i
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 g ',"ttl_ms":3000,"keepalive":"client"'
    await told a elected
    session=$(data_of a session session)
    campaign b n2 g
    await told b leader
    kill_candidate a # the stream is not what holds it
    for i in n1 n2 n3 n1; do
        same "$(ask "$i" /groups/g/keepalive -X POST -d "{\"session\":\"$session\"}")" '{"ttl_ms":3000}'
        leads_at n2 g a || fail "a leads no more"
    done
    await told b elected # nobody keeps it any more
    same "$(post n3 /groups/g/keepalive "{\"session\":\"$session\"}" | tail -n 1)" 410
    judge_logs
}

test_a_node_that_ends_lets_its_candidates_go() {
    local name
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    # One of them leads the quorum; each holds a mandate that would last for a minute.
    for name in "${nodes[@]}"; do
        campaign "of-$name" "$name" "g-$name" ',"ttl_ms":60000'
        await told "of-$name" elected
    done
    campaign next n2 g-n1 ',"ttl_ms":60000'
    await told next leader
    campaign last n3 g-n2 ',"ttl_ms":60000'
    await told last leader
    stop n1
    await told next elected
    ended of-n1 0
    same "$(data_of of-n1 ended reason)" stopping
    start n1
    await agree
    stop n2
    await told last elected
    same "$(data_of next ended reason)" stopping
    ! told of-n3 demoted || fail "a candidate at another node was demoted"
    judge_logs
}

test_changes_are_watched_at_any_node() {
    quorum n1 n2 n3
    begin n1 n2 n3
    await agree
    run_as watch curl -sS -N "http://127.0.0.1:${api_of[n3]}/watch?prefix=g"
    await told watch watching
    campaign a n1 g1
    await told a elected
    same "$(code_of n2 /groups/g2/notes/k -X PUT -d v)" 200
    same "$(code_of n2 /groups/other/notes/k -X PUT -d v)" 200
    await told watch note_put
    same "$(data_of watch elected group candidate)" $'g1\ta'
    same "$(data_of watch note_put group key value_base64)" $'g2\tk\tdg=='
    kill_candidate a
    await told watch vacant
    same "$(data_of watch vacant reason)" closed
    judge_logs
}

run_tests "$@"
