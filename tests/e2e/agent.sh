#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gavel agent: an election for a program that only speaks HTTP.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

# agent NAME [OPTION…]: an agent of that id, on any port. As in elect(), times are longer than the defaults.
agent() {
    local name=$1
    shift
    run_as "$name" "$GAVEL" agent --store "$store" --id "$name" --listen 127.0.0.1:0 --lease 5s --call-timeout 2s \
        --candidate-timeout 8s "$@"
}

url_of() { sed -nE 's/.* msg=listens .* url=(http[^ ]*).*/\1/p' "$scratch/$1.err" | tail -n 1; }

# ask NAME PATH [CURL OPTION…]: the body.
ask() {
    local name=$1 path=$2
    shift 2
    curl -sS -m 30 "$@" "$(url_of "$name")$path"
}

code_of() { ask "$@" -o /dev/null -w '%{http_code}'; }

# post NAME PATH BODY: the body of the answer, followed by a line with its code.
post() { ask "$1" "$2" -X POST -d "$3" -w '%{http_code}'; }

listens() { [[ -n $(url_of "$1") ]]; }
leads_here() { [[ $(ask "$1" /status | "$JSON_GET" is_leader) == true ]]; }
is_not_leader() { [[ $(ask "$1" /status | "$JSON_GET" is_leader) == false ]]; }
knows() { [[ $(ask "$1" / | "$JSON_GET" name) == "$2" ]]; }
epoch_here() { ask "$1" /status | "$JSON_GET" epoch; }

# stream NAME FILE [QUERY]: its events, into a file, in the background.
stream() {
    curl -sSN "$(url_of "$1")/events${3:-}" >"$scratch/$2" 2>/dev/null &
    pid_of[stream-$2]=$!
}
heard() { grep -qF -- "$2" "$scratch/$1"; }

# a leads, b stands by.
two_agents() {
    agent a "$@"
    await listens a
    await leads_here a
    agent b "$@"
    await listens b
    await knows b a
}

test_two_agents_agree_on_who_leads() {
    two_agents
    same "$(ask b /leader | "$JSON_GET" leader_id)" a
    same "$(ask b /leader | "$JSON_GET" epoch)" "$(epoch_here a)"
    same "$(ask a /status | "$JSON_GET" group candidate state)" "$(printf 'default\ta\tleader')"
    same "$(ask b /status | "$JSON_GET" state leader_id epoch remaining_ms)" "$(printf 'not_leader\ta\tnull\tnull')"
    local left
    left=$(ask a /status | "$JSON_GET" remaining_ms)
    ((left > 0 && left < 5000)) || fail "remaining_ms is $left"
    await listed b 2
    same "$(ask b /candidates | "$JSON_GET" 'candidates.0.candidate' 'candidates.0.leader' 'candidates.1.self')" "$(printf 'a\ttrue\ttrue')"
    has "$(ask a /metrics)" 'gavel_is_leader{group="default",candidate="a"} 1'
    has "$(ask b /metrics)" 'gavel_is_leader{group="default",candidate="b"} 0'
}

listed() { [[ $(ask "$1" /candidates | "$JSON_GET" 'candidates.#') == "$2" ]]; }

# HAProxy and the like look at the code alone.
test_health_checks_tell_by_their_codes() {
    two_agents
    same "$(code_of a '/leader?candidate=a')" 200
    same "$(code_of b '/leader?candidate=a')" 200
    same "$(code_of a '/leader?candidate=b')" 503
    same "$(code_of b '/leader?candidate=b')" 503
    same "$(code_of b '/leader?candidate=')" 400
    same "$(code_of b '/leader?format=xml')" 400
    same "$(ask b '/leader?format=sidecar')" '{"name":"a"}'
    same "$(code_of a /health)" 200
    same "$(code_of b /ready)" 200
    same "$(curl -sS -m 30 -I -o /dev/null -w '%{http_code}' "$(url_of a)/leader?candidate=a")" 200
}

test_nobody_leads_is_told_in_each_convention() {
    agent a --no-eligible
    await listens a
    same "$(code_of a /leader)" 503
    has "$(ask a /leader)" ERR_NO_LEADER
    same "$(ask a /)" '{"name":""}'
    same "$(code_of a '/leader?candidate=a')" 503
}

# On one host the other one sees the death at once; with --no-drain nothing is waited for.
test_the_other_leads_when_one_is_killed() {
    local before after
    two_agents --no-drain
    before=$(epoch_here a)
    stream b events
    await heard events 'event: status'
    kill -KILL "${pid_of[a]}"
    await leads_here b
    after=$(epoch_here b)
    ((after > before)) || fail "epoch $after after $before"
    await heard events 'event: became_leader'
    await heard events 'event: leader_down'
    await heard events 'event: alive'
    has "$(grep -A 1 'event: became_leader' "$scratch/events")" "\"epoch\":$after"
}

test_a_stream_goes_on_where_it_ended() {
    local id
    agent a
    await listens a
    await leads_here a
    stream a first '?after=0'
    await heard first 'event: became_leader'
    heard first 'event: heartbeat' && fail "heartbeats were not asked for"
    id=$(sed -n 's/^id: //p' "$scratch/first" | tail -n 1)
    stream a second "?after=$((id - 1))"
    await heard second "id: $id"
    stream a third '?names=heartbeat'
    await heard third 'event: heartbeat'
    stream a fourth '?after=99999999'
    await heard fourth 'event: missed'
}

# The program says when it has stopped; only then does the other one lead.
test_a_hand_over_waits_until_the_program_has_stopped() {
    local epoch
    two_agents --lease 20s
    epoch=$(epoch_here a)
    stream a events
    await heard events 'event: status'
    has "$(post a /stopped "{\"epoch\":$epoch}")" 'ERR_STATE'
    same "$(post a /resign '{"successor":"b"}' | tail -c 3)" 202
    await heard events 'event: lost_leadership'
    same "$(ask a /status | "$JSON_GET" is_leader stopping.epoch)" "$(printf 'false\t%s' "$epoch")"
    same "$(ask b /status | "$JSON_GET" is_leader)" false
    same "$(post a /stopped '{"epoch":0}' | tail -c 3)" 409
    same "$(post a /stopped "{\"epoch\":$((epoch + 1))}" | tail -c 3)" 400
    same "$(ask b /status | "$JSON_GET" is_leader)" false
    same "$(post a /stopped "{\"epoch\":$epoch}" | tail -c 3)" 200
    await leads_here b
    same "$(ask a /status | "$JSON_GET" stopping)" null
    same "$(post a /stopped "{\"epoch\":$epoch}" | tail -c 3)" 200
}

test_a_program_that_does_not_answer_has_until_the_deadline() {
    two_agents --drain --lease 3s --call-timeout 500ms
    stream a events
    await heard events 'event: status'
    same "$(post a /resign '' | tail -c 3)" 202
    await heard events 'event: lost_leadership'
    same "$(ask b /status | "$JSON_GET" is_leader)" false
    await heard events 'event: overrun'
    await leads_here b
    has "$(cat "$scratch/a.err")" "did not report by the deadline"
}

# The program behind a dead agent still works: its lease decides, not the death. That is so unless told otherwise.
test_the_death_of_an_agent_frees_nothing() {
    local deadline
    two_agents --lease 3s --call-timeout 500ms
    deadline=$(($(date +%s%3N) + $(ask a /status | "$JSON_GET" remaining_ms)))
    kill -KILL "${pid_of[a]}"
    await leads_here b
    (($(date +%s%3N) >= deadline)) || fail "b leads before the program of a had to stop"
}

# What a stream says is read whenever the program runs again: it names an instant, and nothing to count from its arrival.
test_events_name_the_instant_of_the_deadline() {
    local data now_ns
    agent a
    await listens a
    await leads_here a
    stream a events
    await heard events 'event: alive'
    data=$(grep -A 1 'event: alive' "$scratch/events" | sed -n 's/^data: //p' | sed -n 1p)
    same "$("$JSON_GET" remaining_ms <<<"$data")" ""
    now_ns=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)
    (($("$JSON_GET" at_ns <<<"$data") <= now_ns + 10000000)) || fail "at_ns is later than now: $data"
    (($("$JSON_GET" deadline_ns <<<"$data") > $("$JSON_GET" at_ns <<<"$data"))) || fail "the deadline is over: $data"
    (($("$JSON_GET" deadline_ns <<<"$data") < $("$JSON_GET" at_ns <<<"$data") + 5000000000)) || fail "the deadline is beyond the lease: $data"
    data=$(ask a /status)
    (($("$JSON_GET" remaining_ms <<<"$data") == ($("$JSON_GET" deadline_ns <<<"$data") - $("$JSON_GET" at_ns <<<"$data")) / 1000000)) || fail "$data"
}

# says_alive NAME: the program shows that it lives.
says_alive() { post "$1" /alive '' >/dev/null; }

# A program that is frozen, or dead, does not say that it lives: its agent does not lead for it.
test_a_program_that_shows_no_life_does_not_lead() {
    local deadline
    agent a --alive-within 10s
    await listens a
    await has_candidates 1
    same "$(ask a /status | "$JSON_GET" is_leader)" false # it has not heard of its program yet
    await alive_and_leads a
    agent b --alive-within 10s
    await listens b
    await both_live
    deadline=$(ask a /status | "$JSON_GET" deadline_ns)
    await alive_and_leads b # of a nothing is heard any more
    (($(awk '{ printf "%.0f", ($1 + 0.01) * 1e9 }' /proc/uptime) >= deadline)) || fail "b leads before the program of a had to stop"
    has "$(cat "$scratch/a.err")" "has not reported for"
    await is_not_leader a
    same "$(post a /alive '{"epoch":1}' | tail -c 3)" 400
}
alive_and_leads() { says_alive "$1" && leads_here "$1"; }
both_live() {
    says_alive a
    says_alive b
    listed b 2
}

test_sigterm_waits_for_the_program_and_then_ends() {
    local epoch
    two_agents --drain --lease 20s
    epoch=$(epoch_here a)
    stream a events
    await heard events 'event: status'
    kill -TERM "${pid_of[a]}"
    await heard events 'event: lost_leadership'
    same "$(ask b /status | "$JSON_GET" is_leader)" false
    same "$(code_of a /ready)" 503
    same "$(post a /stopped "{\"epoch\":$epoch}" | tail -c 3)" 200
    ended a 0
    await leads_here b
    has "$(cat "$scratch/events")" 'event: stopped'
}

test_sigterm_without_drain_ends_at_once() {
    two_agents --no-drain
    kill -TERM "${pid_of[a]}"
    ended a 0
    await leads_here b
}

test_a_socket_serves_its_owner_only() {
    run_as a "$GAVEL" agent --store "$store" --id a --listen "$scratch/a.sock"
    await test -S "$scratch/a.sock"
    await socket_leads
    same "$(stat -c %a "$scratch/a.sock")" 600
    expect 1 "$GAVEL" agent --store "$store" --id b --listen "$scratch/a.sock"
    has "$errors" "another program listens"
    kill -KILL "${pid_of[a]}"
    await process_is_gone "${pid_of[a]}"
    run_as c "$GAVEL" agent --store "$store" --id c --listen "$scratch/a.sock"
    await socket_leads
    kill -TERM "${pid_of[c]}"
    ended c 0
    [[ ! -e $scratch/a.sock ]] || fail "the socket is left over"
}

socket_leads() {
    [[ $(curl -sS -m 30 --unix-socket "$scratch/a.sock" http://agent/status | "$JSON_GET" is_leader) == true ]]
}

test_only_this_machine_unless_there_is_a_token() {
    expect 2 "$GAVEL" agent --store "$store" --listen 0.0.0.0:0
    has "$errors" "--token-file"
    echo short >"$scratch/short"
    expect 2 "$GAVEL" agent --store "$store" --listen 0.0.0.0:0 --token-file "$scratch/short"
    expect 1 "$GAVEL" agent --store "$store" --listen 127.0.0.1:0 --token-file "$scratch/none"
    echo 0123456789abcdef >"$scratch/token"
    agent a --token-file "$scratch/token"
    await listens a
    same "$(code_of a /status)" 401
    same "$(code_of a /health)" 200
    same "$(code_of a /status -H 'Authorization: Bearer 0123456789abcdeX')" 401
    same "$(code_of a /status -H 'Authorization: Bearer 0123456789abcdef')" 200
}

test_addresses_that_cannot_be() {
    expect 2 "$GAVEL" agent --store "$store" --listen ''
    expect 2 "$GAVEL" agent --store "$store" --listen nonsense
    expect 2 "$GAVEL" agent --store "$store" --listen "/$(printf 'x%.0s' {1..200})"
    expect 1 "$GAVEL" agent --store "$store" --listen "$scratch/none/a.sock"
    : >"$scratch/file"
    expect 2 "$GAVEL" agent --store "$store" --listen "$scratch/file"
    agent a
    await listens a
    expect 1 "$GAVEL" agent --store "$store" --id b --listen "$(url_of a | cut -d/ -f3)"
    has "$errors" "another program uses this port"
}

test_bad_requests_get_clear_answers() {
    agent a --drain
    await listens a
    await leads_here a
    same "$(code_of a /nothing)" 404
    same "$(code_of a /status -X POST)" 405
    same "$(code_of a /resign)" 405
    same "$(code_of a /status -X DELETE)" 405
    same "$(code_of a '/events?after=x')" 400
    same "$(code_of a '/events?names=nonsense')" 400
    for body in '' '[]' '{' '{}' '{"epoch":"7"}' '{"epoch":-1}' '{"epoch":1.5}' '{"epoch":99999999999999999999}' '{"epoch":1,"more":2}'; do
        same "$(post a /stopped "$body" | tail -c 3)" 400
    done
    for body in '{"successor":7}' '{"successor":"a"}' '{"successor":""}' '{"to":"b"}' '"b"'; do
        same "$(post a /resign "$body" | tail -c 3)" 400
    done
    same "$(post a /resign "{\"successor\":\"$(printf 'x%.0s' {1..300})\"}" | tail -c 3)" 400
    same "$(code_of a "/leader?candidate=$(printf 'x%.0s' {1..3000})")" 414
    head -c 20000 /dev/zero | tr '\0' x >"$scratch/large"
    same "$(ask a /stopped -X POST --data-binary "@$scratch/large" -o /dev/null -w '%{http_code}')" 413
    same "$(code_of a /resign -X POST -H 'Origin: http://elsewhere.example')" 403
    await leads_here a # nothing of all that has changed anything
}

test_stopped_without_drain_is_refused() {
    expect 2 "$GAVEL" agent --store "$store" --drain --no-drain
    agent a --no-drain
    await listens a
    await leads_here a
    has "$(post a /stopped '{"epoch":1}')" "--no-drain"
    agent b --no-drain
    await listens b
    await knows b a
    same "$(post b /resign '' | tail -c 3)" 409
}

# More connections than there is room for: the oldest idle ones go, and it still answers.
test_idle_connections_make_room() {
    local port i fds=()
    agent a
    await listens a
    await leads_here a
    port=$(url_of a | cut -d: -f3)
    for ((i = 0; i < 270; i++)); do
        exec {fd}<>"/dev/tcp/127.0.0.1/$port"
        fds+=("$fd")
    done
    same "$(code_of a /health)" 200
    has "$(ask a /metrics)" 'gavel_agent_connections_cut_total'
    (($(ask a /metrics | sed -n 's/^gavel_agent_connections_cut_total{.*} //p') > 10)) || fail "nobody was cut"
    for fd in "${fds[@]}"; do exec {fd}>&-; done
}

test_a_second_candidate_of_the_same_id_ends() {
    agent a
    await listens a
    await leads_here a
    run_as twin "$GAVEL" agent --store "$store" --id a --listen 127.0.0.1:0 --lease 5s --candidate-timeout 8s
    ended twin 5
}

test_without_an_election_it_leads_alone() {
    run_as a "$GAVEL" agent --no-election --id a --listen 127.0.0.1:0 --json
    await listens a
    await leads_here a
    same "$(ask a /status | "$JSON_GET" epoch remaining_ms)" "$(printf '0\tnull')"
    same "$("$JSON_GET" url <"$scratch/a.out")" "$(url_of a)"
    same "$(post a /resign '' | tail -c 3)" 409
    kill -TERM "${pid_of[a]}"
    ended a 0
}

run_tests "$@"
