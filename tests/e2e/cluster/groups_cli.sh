#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The groups of a cluster from the command line: gavel note, gavel groups, and
# leader, status, candidates, watch and transfer with --cluster --group. The
# candidates are streams of curl, as a program in any language would have them.
set -euo pipefail
# shellcheck source=lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"

# three: a cluster that agrees, known to gavel by GAVEL_CLUSTER.
timeout_ms=3000 # nothing here is about elections of nodes, and a busy machine is to cause none
three() {
    cluster n1 n2 n3
    begin n1 n2 n3
    export GAVEL_CLUSTER="127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"
    await agree
}

# campaign NODE GROUP NAME: a candidate; what it hears is in $scratch/NAME.events. Patient, as the machine is busy.
campaign() {
    curl -sSN -X POST -d "{\"candidate\":\"$3\",\"address\":\"10.0.0.1:80\",\"ttl_ms\":8000,\"keepalive\":\"stream\"}" \
        "http://127.0.0.1:${api_of[$1]}/groups/$2/campaign" >"$scratch/$3.events" 2>"$scratch/$3.err" &
    pid_of[$3]=$!
    await heard "$3" session
}

heard() { grep -qx "event: $2" "$scratch/$1.events"; }
# data_of NAME EVENT: what the last event of that name told.
data_of() { grep -A 1 -x "event: $2" "$scratch/$1.events" | sed -n 's/^data: //p' | tail -n 1; }
epoch_of_group() { "$GAVEL" leader --group "$1" --json | "$JSON_GET" epoch; }
is_led_by() { [[ $("$GAVEL" leader --group "$1" 2>/dev/null) == "$2" ]]; }

# heard_again NAME EVENT COUNT: so many of them.
heard_again() { (($(grep -cx "event: $2" "$scratch/$1.events") >= $3)); }

# hand_over_when_asked GROUP NAME COUNT: at the COUNTth request. Hands over as soon as it is asked to, as a program does that drains at once.
hand_over_when_asked() {
    await heard_again "$2" hand_over "$3"
    ask n1 "/groups/$1/resign" -X POST -d "{\"session\":\"$(data_of "$2" session | "$JSON_GET" session)\",\"epoch\":$(data_of "$2" hand_over | "$JSON_GET" epoch),\"stay\":true}"
}

test_notes_are_written_read_listed_and_deleted() {
    local first second revision code=0
    three
    expect 1 "$GAVEL" note get jobs position
    has "$errors" 'no note "position"'
    first=$("$GAVEL" note put jobs position 17)
    same "$("$GAVEL" note get jobs position)" 17
    second=$(printf '\0\377\n' | "$GAVEL" note put jobs raw -)
    ((second > first)) || fail "revision $second after $first"
    same "$("$GAVEL" note get jobs raw | od -An -tx1 | tr -d ' \n')" 00ff0a
    same "$("$GAVEL" note get jobs raw --json | "$JSON_GET" value_base64 revision)" "AP8K"$'\t'"$second"
    same "$("$GAVEL" note get jobs position --json | "$JSON_GET" group key value revision created_revision epoch)" \
        "jobs"$'\t'"position"$'\t'"17"$'\t'"$first"$'\t'"$first"$'\t'"null"
    same "$("$GAVEL" note list jobs --json | "$JSON_GET" notes.# notes.0.key notes.0.value notes.1.value_base64)" $'2\tposition\t17\tAP8K'
    same "$("$GAVEL" note list jobs --prefix r --json | "$JSON_GET" notes.# notes.0.key)" $'1\traw'
    has "$("$GAVEL" note list jobs)" "(not text)"
    same "$("$GAVEL" note list jobs | awk '$1 == "position" { print $3 }')" - # it was written without an epoch
    "$GAVEL" note put jobs 'ä/ %?&#"' '' >/dev/null
    same "$("$GAVEL" note get jobs 'ä/ %?&#"' --json | "$JSON_GET" key value)" 'ä/ %?&#"'$'\t'
    expect 0 "$GAVEL" note delete jobs raw
    expect 1 "$GAVEL" note get jobs raw
    same "$("$GAVEL" note watch jobs position --after 0 --count 1 --json | "$JSON_GET" event key value revision)" \
        $'note_put\tposition\t17\t'"$first"
    same "$("$GAVEL" note watch jobs --prefix raw --after 0 --count 2 --json | "$JSON_GET" event | tail -n 1)" note_deleted
    # the conditions of a write
    revision=$("$GAVEL" note put jobs k 1 --create)
    expect 9 "$GAVEL" note put jobs k 2 --create
    has "$errors" "nothing was written"
    expect 9 "$GAVEL" note put jobs k 2 --if-revision $((revision + 1000))
    expect 9 "$GAVEL" note delete jobs k --if-revision $((revision + 1000)) --json
    same "$("$JSON_GET" error.name <<<"$output")" ERR_CONFLICT
    same "$("$GAVEL" note get jobs k)" 1
    expect 0 "$GAVEL" note put jobs k 2 --if-revision "$revision"
    same "$("$GAVEL" note get jobs k)" 2
    # values at the limit, and beyond
    head -c 70000 /dev/zero | tr '\0' x >"$scratch/large"
    "$GAVEL" note put jobs large - <"$scratch/large" 2>"$scratch/said" || code=$?
    ((code == 1)) || fail "exit code $code"
    has "$(cat "$scratch/said")" "65536 bytes"
    expect 1 "$GAVEL" note get jobs large
    head -c 65536 "$scratch/large" >"$scratch/largest"
    "$GAVEL" note put jobs large - <"$scratch/largest" >/dev/null
    same "$("$GAVEL" note get jobs large | cmp - "$scratch/largest" && echo same)" same
}

is_gone() {
    local all
    all=$("$GAVEL" groups --json) && [[ $all != *"\"$1\""* ]]
}
resign_of() { same "$(code_of n3 "/groups/$1/resign" -d "{\"session\":\"$(data_of "$2" session | "$JSON_GET" session)\"}")" 200; }

test_an_operator_deletes_a_group_that_nobody_uses() {
    local old new
    three
    expect 1 "$GAVEL" group delete none
    has "$errors" 'there is no group "none"'
    expect 2 "$GAVEL" group remove none
    campaign n1 jobs a
    await is_led_by jobs a
    old=$(epoch_of_group jobs)
    expect 1 "$GAVEL" group delete jobs --force
    has "$errors" '"a" leads group "jobs"'
    expect 0 "$GAVEL" note put jobs k v
    resign_of jobs a
    expect 1 "$GAVEL" group delete jobs
    has "$errors" "1 note"
    same "$("$GAVEL" group delete jobs --force --json | "$JSON_GET" success group)" $'true\tjobs'
    is_gone jobs || fail "jobs is still there"
    campaign n2 jobs b
    await is_led_by jobs b
    new=$(epoch_of_group jobs)
    ((new > old)) || fail "epoch $new after $old"
}

test_a_group_that_nobody_uses_is_removed() {
    local name old new
    cluster n1 n2 n3
    for name in n1 n2 n3; do configure "$name" "group_retention: 1s"; done
    begin n1 n2 n3
    export GAVEL_CLUSTER="127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"
    await agree
    campaign n1 kept a
    campaign n1 jobs c
    await is_led_by jobs c
    old=$(epoch_of_group jobs)
    resign_of jobs c
    await is_gone jobs
    same "$("$GAVEL" leader --group kept)" a
    campaign n2 jobs b
    await is_led_by jobs b
    new=$(epoch_of_group jobs)
    ((new > old)) || fail "epoch $new after $old"
}

test_a_former_leader_cannot_write_and_a_watch_tells_of_the_change() {
    local old new
    three
    run_as watcher "$GAVEL" watch --group jobs --json --count 4
    await grep -q current "$scratch/watcher.out"
    campaign n1 jobs a
    await is_led_by jobs a
    old=$(epoch_of_group jobs)
    expect 0 "$GAVEL" note put jobs position 1 --epoch "$old"
    campaign n2 jobs b
    same "$(code_of n3 /groups/jobs/resign -d "{\"session\":\"$(data_of a session | "$JSON_GET" session)\"}")" 200
    await is_led_by jobs b
    new=$(epoch_of_group jobs)
    ((new > old)) || fail "epoch $new after $old"
    expect 0 "$GAVEL" note put jobs position 2 --epoch "$new"
    expect 9 "$GAVEL" note put jobs position 3 --epoch "$old" --json
    same "$("$JSON_GET" error.code error.name <<<"$output")" $'4005\tERR_TERM_STALE'
    has "$errors" "epoch $old is out of date"
    has "$errors" "must stop"
    expect 9 "$GAVEL" note delete jobs position --epoch "$old"
    same "$("$GAVEL" note get jobs position --json | "$JSON_GET" value epoch)" "2"$'\t'"$new"
    ended watcher 0
    same "$("$JSON_GET" leader_id <"$scratch/watcher.out" | tr '\n' ' ')" "null a null b "
    expect 6 "$GAVEL" watch --group jobs --count 5 --timeout 200ms
}

test_groups_are_shown_in_the_words_of_a_store() {
    local number
    three
    expect 3 "$GAVEL" leader --group jobs
    has "$errors" "has no leader in the cluster at $GAVEL_CLUSTER:"
    expect 6 "$GAVEL" leader --group jobs --wait 100ms
    same "$("$GAVEL" status --group jobs --json | "$JSON_GET" state leader_id epoch candidates)" $'empty\tnull\t0\t0'
    expect 0 "$GAVEL" groups
    has "$output" "has no groups"
    campaign n1 jobs a
    campaign n2 jobs b
    await is_led_by jobs a
    same "$("$GAVEL" leader --group jobs --wait 5s)" a
    same "$("$GAVEL" leader --group jobs --json | "$JSON_GET" group state leader_id leader_address lease_ms)" $'jobs\theld\ta\t10.0.0.1:80\t8000'
    has "$("$GAVEL" status --group jobs)" "leader      a"
    same "$("$GAVEL" candidates --group jobs --json | "$JSON_GET" candidates.# candidates.0.candidate candidates.0.leader candidates.1.leader)" \
        $'2\ta\ttrue\tfalse'
    grep -qE '^b +standby +yes' <<<"$("$GAVEL" candidates --group jobs)" || fail "b is not listed"
    campaign n3 other c
    same "$("$GAVEL" groups --json | "$JSON_GET" groups.# groups.0.group groups.0.leader_id groups.1.group)" $'2\tjobs\ta\tother'
    same "$("$GAVEL" groups --prefix o --json | "$JSON_GET" groups.# groups.0.leader_id)" $'1\tc'
    grep -qE '^jobs +a +[0-9]+ +held ' <<<"$("$GAVEL" groups)" || fail "jobs is not in the table"
    # Without --group it is about the nodes, whatever the environment says.
    same "$(GAVEL_GROUP="jobs" "$GAVEL" leader)" "$leader"
    expect 2 "$GAVEL" leader --cluster "$GAVEL_CLUSTER" --store "$store"
    # More than a page: each once.
    for ((number = 0; number < 620; number++)); do
        printf 'url = "http://127.0.0.1:%s/groups/g%03d/notes/k"\nrequest = PUT\ndata = x\noutput = /dev/null\n' "${api_of[n1]}" "$number"
    done >"$scratch/many"
    curl -s --no-progress-meter --parallel --parallel-max 16 -K "$scratch/many" 2>/dev/null
    "$GAVEL" groups --prefix g --json | "$JSON_GET" groups | grep -oE '"group":"g[0-9]+"' | sort >"$scratch/listed"
    same "$(wc -l <"$scratch/listed")" 620
    same "$(sort -u "$scratch/listed" | wc -l)" 620
}

# The node that tells goes away; another one tells the rest.
test_a_watch_survives_the_node_that_tells() {
    three
    run_as watcher "$GAVEL" note watch jobs --count 2
    await watched
    "$GAVEL" note put jobs k 1 >/dev/null
    await grep -q 'put k 1' "$scratch/watcher.out"
    kill_both "$leader"
    await wrote jobs k 2
    ended watcher 0
    same "$(sed 's/^[0-9]* *//' "$scratch/watcher.out")" "$(printf 'put k 1\nput k 2')"
}

wrote() { "$GAVEL" note put "$@" >/dev/null; }

# Somebody streams from the leader, which is whom gavel asks.
watched() { (($(ask "$leader" /metrics | awk '/^gavel_event_streams / { print $2 }') > 0)); }

test_a_transfer_moves_a_group_and_nothing_else() {
    local before term
    three
    campaign n1 jobs a
    await is_led_by jobs a
    before=$(epoch_of_group jobs)
    campaign n2 jobs b
    term=$(status_of "$leader" term)
    expect 1 "$GAVEL" transfer --group jobs --to c
    has "$errors" "no candidate"
    expect 2 "$GAVEL" transfer --group jobs
    expect 2 "$GAVEL" transfer b --group jobs --to b
    # One that takes too long is taken back, and nothing has changed.
    expect 1 "$GAVEL" transfer --group jobs --to b --timeout 300ms --json
    same "$("$JSON_GET" error.name <<<"$output" | tail -n 1)" ERR_LEADER_TRANSFER_FAILED
    await heard a hand_over_cancelled
    same "$(epoch_of_group jobs)" "$before"
    hand_over_when_asked jobs a 2 >"$scratch/resigned" &
    expect 0 "$GAVEL" transfer --group jobs --to b --timeout 10s --json
    wait $!
    same "$("$JSON_GET" success old_leader_id new_leader_id <<<"$output")" $'true\ta\tb'
    (($("$JSON_GET" epoch <<<"$output") > before)) || fail "the epoch has not grown: $output"
    is_led_by jobs b
    same "$(status_of "$leader" term)" "$term"
    expect 0 "$GAVEL" transfer --group jobs --to b
    has "$output" "already"
}

# agent_status NAME FIELD…
agent_status() {
    local name=$1
    shift
    curl -sS -m 30 --unix-socket "$scratch/$name.sock" http://agent/status | "$JSON_GET" "$@"
}
agent_leads() { [[ $(agent_status "$1" is_leader) == true ]]; }
has_standby() { [[ $("$GAVEL" candidates --group jobs) == *standby* ]]; }
agent_stops() { [[ $(agent_status "$1" stopping) != null ]]; }

# A program behind an agent has stopped before another leads, with a cluster as the store as with any other.
test_agents_hand_over_on_a_cluster_when_their_programs_have_stopped() {
    local name urls='' epoch deadline
    cluster n1 n2 n3
    for name in n1 n2 n3; do
        free_port
        configure "$name" "clients: 127.0.0.1:$port"
        urls+=,127.0.0.1:$port
    done
    begin n1 n2 n3
    export GAVEL_CLUSTER="127.0.0.1:${api_of[n1]},127.0.0.1:${api_of[n2]},127.0.0.1:${api_of[n3]}"
    await agree
    for name in a b; do
        run_as "$name" "$GAVEL" agent --store "gavel://${urls#,}" --group jobs --id "$name" --drain \
            --listen "$scratch/$name.sock" --lease 5s --call-timeout 2s --candidate-timeout 8s
        await grep -q msg=listens "$scratch/$name.err"
        await agent_leads a
    done
    await has_standby
    epoch=$(agent_status a epoch)
    same "$(epoch_of_group jobs)" "$epoch"
    run_as transfer "$GAVEL" transfer --group jobs --to b --timeout 10s
    await agent_stops a
    is_led_by jobs a || fail "it is led by another before the program has stopped"
    curl -sS -m 30 --unix-socket "$scratch/a.sock" http://agent/stopped -d "{\"epoch\":$epoch}" >/dev/null
    ended transfer 0
    await agent_leads b
    # An agent that is killed tells nothing of its program: the lease decides.
    deadline=$(($(date +%s%3N) + $(agent_status b remaining_ms)))
    kill -KILL "${pid_of[b]}"
    await agent_leads a
    (($(date +%s%3N) >= deadline)) || fail "a leads before the program of b had to stop"
}

# The same variable as for every other command.
test_handover_is_for_groups_of_a_cluster_too() {
    three
    expect 3 "$GAVEL" handover --group jobs --timeout 300ms
    campaign n1 jobs a
    campaign n2 jobs b
    await is_led_by jobs a
    expect 1 "$GAVEL" handover --group jobs --to c
    has "$errors" 'no candidate "c"'
    # Nobody hands over: the wish is taken back.
    expect 6 "$GAVEL" handover --group jobs --timeout 300ms
    is_led_by jobs a || fail "a no longer leads"
    hand_over_when_asked jobs a 2 >/dev/null &
    expect 0 "$GAVEL" handover --group jobs --timeout 20s --json
    same "$("$JSON_GET" group previous leader_id <<<"$output")" $'jobs\ta\tb'
    same "$("$JSON_GET" epoch <<<"$output")" "$(epoch_of_group jobs)"
    wait $!
    expect 0 "$GAVEL" handover --group jobs --to b
    has "$output" "leads \"jobs\" already"
}

test_wrong_words_are_told_apart() {
    local file
    export GAVEL_CLUSTER=127.0.0.1:1
    expect 2 "$GAVEL" note
    expect 2 "$GAVEL" note fetch jobs k
    expect 2 "$GAVEL" note get jobs
    expect 2 "$GAVEL" note put jobs k
    expect 2 "$GAVEL" note put jobs k v --epoch x
    expect 2 "$GAVEL" note put jobs k v --epoch -1
    expect 2 "$GAVEL" note put jobs k v --epoch 99999999999999999999
    expect 2 "$GAVEL" note put jobs k v --epoch 0
    has "$errors" "no mandate has epoch 0"
    expect 2 "$GAVEL" note put jobs k v --if-revision 0
    has "$errors" "--create"
    expect 2 "$GAVEL" groups --group jobs
    expect 2 "$GAVEL" status --all
    has "$errors" "gavel groups"
    expect 2 "$GAVEL" note put jobs k v --create --if-revision 3
    expect 2 "$GAVEL" note get jobs k --create
    has "$errors" '--create is only for `gavel note put`'
    expect 2 "$GAVEL" note get '' k
    expect 2 "$GAVEL" note get "$(printf 'x%.0s' {1..256})" k
    expect 2 "$GAVEL" note watch jobs --count 0
    expect 4 "$GAVEL" note get jobs k
    expect 4 "$GAVEL" groups
    unset GAVEL_CLUSTER
    expect 2 "$GAVEL" transfer --group jobs --to b
    has "$errors" "gavel handover --group jobs --to b"
    expect 4 "$GAVEL" leader --store gavel://127.0.0.1:1
    for file in ca cert key; do # one of three that is not there
        expect 0 "$GAVEL" cert init test --out "$scratch/ca" --force
        expect 0 "$GAVEL" cert issue app --client --ca "$scratch/ca" --out "$scratch/ca" --force
        mv "$scratch/ca/app.crt" "$scratch/ca/cert"
        mv "$scratch/ca/app.key" "$scratch/ca/key"
        mv "$scratch/ca/ca.crt" "$scratch/ca/ca"
        rm "$scratch/ca/$file"
        expect 4 "$GAVEL" leader --store "gavel://127.0.0.1:1?ca=$scratch/ca/ca&cert=$scratch/ca/cert&key=$scratch/ca/key"
        has "$errors" "$scratch/ca/$file"
    done
    expect 6 "$GAVEL" leader --store gavel://127.0.0.1:1 --wait 100ms # waited for in vain
    expect 2 "$GAVEL" note get jobs k
    has "$errors" "--cluster"
}

run_tests "$@"
