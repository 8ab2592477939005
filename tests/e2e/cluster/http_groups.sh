#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elections over plain HTTP, with curl alone: sessions that a node keeps alive
# for a stream, or that the client does; what releases a mandate, and what does
# not. Programs as users write them are in cluster_http_clients.sh.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
: "${PROXY:?the proxy}"
limit_s=60

# campaign NAME NODE GROUP [MORE]: a candidate at that node, or port; its events are in NAME.out.
campaign() {
    local more=${4:-}
    [[ $more == *keepalive* ]] || more+=',"keepalive":"stream"'
    [[ $more == *ttl_ms* ]] || more+=',"ttl_ms":30000' # longer than a busy machine is silent
    run_as "$1" curl -sS -N -X POST "http://127.0.0.1:${api_of[$2]-$2}/groups/$3/campaign" -d "{\"candidate\":\"$1\",\"sent_at\":$(now_ms)$more}"
}

# CLOCK_BOOTTIME, rounded down.
now_ms() { awk '{ printf "%.0f", $1 * 1000 }' /proc/uptime; }

# resign NAME NODE GROUP: its client says that it has stopped.
resign() {
    same "$(code_of "$2" "/groups/$3/resign" -X POST -d "{\"session\":\"$(data_of "$1" session session)\"}")" 200
    unset "pid_of[$1]" # its stream ends by itself
}

# told_until NAME: the deadline that it was told last.
told_until() {
    grep '^data: .*"valid_ms"' "$scratch/$1.out" | sed 's/^data: //' | while read -r data; do
        "$JSON_GET" sent_at valid_ms <<<"$data"
    done | awk '$1 + $2 > latest { latest = $1 + $2 } END { print latest }'
}

# told NAME EVENT: whether it has heard of that, at least so often.
told() { (($(grep -c "^event: $2\$" "$scratch/$1.out") >= ${3:-1})); }

# data_of NAME EVENT KEY…: of the newest event of that name.
data_of() {
    local name=$1 event=$2
    shift 2
    grep -A1 "^event: $event\$" "$scratch/$name.out" | grep '^data: ' | tail -n 1 | sed 's/^data: //' | "$JSON_GET" "$@"
}

# leads NODE GROUP NAME: as that node sees it, asked as a health check is.
leads_at() { [[ $(code_of "$1" "/groups/$2/leader?candidate=$3") == 200 ]]; }

kill_candidate() {
    kill -KILL "${pid_of[$1]}"
    wait "${pid_of[$1]}" 2>/dev/null || true
    unset "pid_of[$1]"
}

test_a_candidate_that_resigns_is_followed_by_the_next() {
    local name epoch follower
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    follower=$(others "$leader" | sed -n 1p)
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
    resign a "$follower" web%2Fcron # long before its time to live is over
    await told b elected
    (($(data_of b elected epoch) > epoch)) || fail "the epoch has not grown"
    for name in "${nodes[@]}"; do await leads_at "$name" web%2Fcron b; done
    same "$(ask "$follower" '/groups?prefix=web/&fresh=true' | "$JSON_GET" 'groups.#' groups.0.leader)" $'1\tb'
    judge_logs
}

test_notes_are_fenced_by_the_epoch_at_every_node() {
    local name epoch old
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 job
    await told a elected
    campaign b n2 job
    await told b leader
    old=$(data_of a elected epoch)
    same "$(code_of n1 /groups/job/notes/where -X PUT -H "Epoch: $old" -H 'If-None-Match: *' -d 'line 17')" 200
    resign a n2 job
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
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    former=$leader
    follower=$(others "$former" | sed -n 1p)
    campaign a "$follower" g ',"ttl_ms":15000'
    await told a elected
    kept=$(data_of a elected epoch)
    campaign b "$(others "$former" | tail -n 1)" g ',"ttl_ms":15000'
    await told b leader
    kill -KILL "$(node_pid "$former")"
    # shellcheck disable=SC2046 # words
    await_leader $(others "$former")
    # The new leader answers the keep-alives of both, and a whole time to live goes by.
    await told a alive $(($(grep -c '^event: alive' "$scratch/a.out") + 4))
    await told b alive $(($(grep -c '^event: alive' "$scratch/b.out") + 1))
    ! told a demoted || fail "a was demoted"
    ! told b elected || fail "b was elected"
    same "$(ask "$follower" '/groups/g/leader?fresh=true' | "$JSON_GET" leader epoch)" "a"$'\t'"$kept"
    same "$(code_of "$follower" /groups/g/notes/k -X PUT -H "Epoch: $kept" -d v)" 200
    await agree
    judge_logs
}

test_a_hand_over_by_hand() {
    local session
    cluster n1 n2 n3
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
    same "$("$JSON_GET" old_leader new_leader epoch <"$scratch/transfer.out")" $'a\tc\t'"$(data_of c elected epoch)"
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
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 g ',"ttl_ms":10000,"keepalive":null'
    await told a elected
    same "$(data_of a session keepalive)" client
    session=$(data_of a session session)
    campaign b n2 g
    await told b leader
    kill_candidate a # the stream is not what holds it
    for i in n1 n2 n3 n1; do
        same "$(ask "$i" /groups/g/keepalive -X POST -d "{\"session\":\"$session\",\"sent_at\":7}")" '{"ttl_ms":10000,"sent_at":7,"valid_ms":9980}'
        leads_at n2 g a || fail "a no longer leads"
    done
    await told b elected # nobody keeps it any more
    same "$(post n3 /groups/g/keepalive "{\"session\":\"$session\"}" | tail -n 1)" 410
    judge_logs
}

# keeps SESSION NODE GROUP: it is kept there.
keeps() { [[ $(code_of "$2" "/groups/$3/keepalive" -X POST -d "{\"session\":\"$1\"}") == 200 ]]; }

# A client of a node that ends, or dies, goes on at another: with its session, its mandate and its epoch.
test_a_session_outlives_its_node() {
    local session epoch
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 g ',"ttl_ms":60000,"keepalive":"client"'
    await told a elected
    session=$(data_of a session session)
    epoch=$(data_of a elected epoch)
    campaign b n2 g
    await told b leader
    stop n1
    ended a 0
    told a stopping || fail "a was not told that its node ends"
    ! told a demoted || fail "a was demoted"
    keeps "$session" n2 g || fail "the session was not kept at n2"
    start n1
    await agree
    run_as again curl -sS -N "http://127.0.0.1:${api_of[n2]}/groups/g/events" -d "{\"session\":\"$session\"}"
    await told again elected
    same "$(data_of again elected candidate epoch)" $'a\t'"$epoch"
    kill_both n2
    # shellcheck disable=SC2046 # words
    await_leader $(others n2)
    await keeps "$session" n3 g
    run_as third curl -sS -N "http://127.0.0.1:${api_of[n3]}/groups/g/events" -d "{\"session\":\"$session\"}"
    await told third elected
    same "$(data_of third elected epoch)" "$epoch"
    same "$(code_of n1 /groups/g/resign -X POST -d "{\"session\":\"$session\",\"epoch\":$epoch}")" 200
    await told third ended
    start n2
    await agree
    judge_logs
}

# A proxy gives its node up, and its client knows nothing of it: it leads on for as long as it was told, and no
# other leads before.
check_half_close() {
    local until
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    free_port
    local proxy_port=$port
    mkfifo "$scratch/orders"
    "$PROXY" "$proxy_port" "${api_of[n1]}" <"$scratch/orders" >"$scratch/proxy.out" &
    pid_of[proxy]=$!
    exec 8>"$scratch/orders"
    await grep -q good "$scratch/proxy.out"
    campaign a "$proxy_port" g ',"ttl_ms":4000'
    await told a elected
    campaign b n2 g
    await told b leader
    echo "$1" >&8
    await told b elected
    until=$(told_until a)
    (($(data_of b elected at_ns) / 1000000 >= until)) || fail "b was elected at $(data_of b elected at_ns), a was told that it leads until $until ms"
    judge_logs
}
test_a_proxy_that_sends_a_fin_releases_nothing() { check_half_close fin; }
test_a_proxy_that_sends_a_reset_releases_nothing() { check_half_close rst; }

# Its connection lives, and it takes what little there is: without a word of its own it is replaced all the same.
test_a_frozen_stream_does_not_lead_for_ever() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    campaign a n1 g ',"ttl_ms":500'
    await told a elected
    campaign b n2 g ',"ttl_ms":600000'
    await told b session
    kill -STOP "${pid_of[a]}"
    await told b elected
    kill -CONT "${pid_of[a]}"
    await told a ended
    (($(data_of b elected at_ns) / 1000000 >= $(told_until a))) || fail "b was elected while a was told that it leads"
    judge_logs
}

test_changes_are_watched_at_any_node() {
    cluster n1 n2 n3
    begin n1 n2 n3
    await agree
    run_as watch curl -sS -N "http://127.0.0.1:${api_of[n3]}/watch?prefix=g"
    await told watch watching
    campaign a n1 g1 ',"ttl_ms":4000'
    await told a elected
    same "$(code_of n2 /groups/g2/notes/k -X PUT -d v)" 200
    same "$(code_of n2 /groups/other/notes/k -X PUT -d v)" 200
    await told watch note_put
    same "$(data_of watch elected group candidate)" $'g1\ta'
    same "$(data_of watch note_put group key value_base64)" $'g2\tk\tdg=='
    kill_candidate a
    await told watch vacant
    same "$(data_of watch vacant reason)" expired
    judge_logs
}

run_tests "$@"
