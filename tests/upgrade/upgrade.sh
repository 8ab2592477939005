#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster whose nodes run two versions: the programs of this tree, and those
# of the commit in tests/upgrade/from. Clients of both versions write and lead
# all the while, and nothing that they were told is taken back.
set -euo pipefail
# shellcheck source=../e2e/cluster/lib.sh
source "$SOURCE_ROOT/tests/e2e/cluster/lib.sh"
# shellcheck source=../e2e/run/run_lib.sh
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

timeout_ms=1500 # a busy machine is to cause no election: only what the test does
new=$GAVEL new_node=$GAVELD

# need_old: the programs of the commit before, in $old and $old_node; skips the test where they cannot be had.
need_old() {
    local code=0 place
    place=$(bash "$SOURCE_ROOT/tests/upgrade/old.sh" 2>"$scratch/old.err") || code=$?
    if ((code == 77)); then skip "$(cat "$scratch/old.err")"; fi
    ((code == 0)) || fail "the old programs cannot be built: $(cat "$scratch/old.err")"
    old=$place/src/cli/gavel old_node=$place/src/daemon/gaveld
}

# found GAVELD: three nodes of that program, known by $store and GAVEL_CLUSTER.
found() {
    local name
    cluster n1 n2 n3
    store=
    for name in n1 n2 n3; do
        free_port
        configure "$name" "clients: 127.0.0.1:$port" "socket: $scratch/$name.sock" "snapshot_entries: 100"
        store+="${store:+,}$scratch/$name.sock,127.0.0.1:$port"
        GAVEL_CLUSTER+="${GAVEL_CLUSTER:+,}127.0.0.1:${api_of[$name]}"
    done
    store=gavel://$store
    export GAVEL_CLUSTER
    for name in n1 n2 n3; do GAVELD=$1 start "$name" --bootstrap; done
    await_leader
    for name in n1 n2 n3; do await test -S "$scratch/$name.sock"; done
}

# renew NAME GAVELD: its node is stopped, and goes on in its directory as another program; it must catch up.
renew() {
    stop "$1"
    GAVELD=$2 start "$1"
    await is_caught_up "$1"
}

# It follows a leader and has what that leader has committed by now.
is_caught_up() {
    local commit
    find_leader "${nodes[@]}" || return 1
    commit=$(status_of "$leader" commit)
    [[ $(tells "$1" /leader leader_id) == "$leader" ]] && (($(status_of "$1" applied) >= commit))
}

# lead NAME: the leadership of the cluster goes there.
lead() {
    expect 0 "$GAVEL" handover --cluster "$GAVEL_CLUSTER" --to "$1" --timeout 30s
    await is "$1" has_lease true
}

# writer NAME GAVEL: notes, one after the other, until the test is over; NAME.acked has those that were acknowledged.
writer() {
    local number=0
    until [[ -e $scratch/over ]]; do
        number=$((number + 1))
        if "$2" note put "$1" "k$number" "$number" >/dev/null 2>>"$scratch/$1.refused.err"; then echo "$number" >>"$scratch/$1.acked"; fi
        nap
    done
}
acked() { wc -l <"$scratch/$1.acked"; }
has_acked() { (($(acked "$1") >= $2)); }

# campaign_over_http: a candidate `web` in the group `web`; $session is its session.
campaign_over_http() {
    run_as web curl -sSN "http://127.0.0.1:${api_of[n1]}/groups/web/campaign" -d '{"candidate":"web","ttl_ms":20000}'
    await grep -q '^event: elected' "$scratch/web.out"
    session=$(sed -n 's/.*"session":"\([0-9a-f]*\)".*/\1/p' "$scratch/web.out" | sed -n 1p)
}

# stay_alive SESSION: it is alive, says its program, at whichever node answers.
stay_alive() {
    local name code pause
    until [[ -e $scratch/over ]]; do
        for name in n1 n2 n3; do
            code=$(code_of "$name" /groups/web/keepalive -d "{\"session\":\"$1\"}" 2>/dev/null) || continue
            echo "$code" >>"$scratch/web.codes"
            if [[ $code == 200 ]]; then break; fi
        done
        for ((pause = 0; pause < 25; pause++)); do nap; done
    done
}

# clients OLD NEW: programs of both versions lead groups and write notes. `turns` is there to be handed over, in the
# other groups nothing is to happen.
clients() {
    local pair
    for pair in "a $1 kept" "b $2 kept" "x $2 turns" "y $1 turns"; do
        read -r name program group <<<"$pair"
        GAVEL=$program elect "$name" --group "$group" --lease 10s --candidate-timeout 15s
        if [[ $name == [ax] ]]; then await said "$name" became_leader; fi
    done
    await said b leader_changed '"new":"a"'
    await said y leader_changed '"new":"x"'
    GAVEL=$1 run cron --group cron --lease 10s --candidate-timeout 15s -- "$BEAT" "$scratch/beats"
    await beats
    campaign_over_http
    run_as alive stay_alive "$session"
    turns=0
    kept=$(epoch_in kept)
    kept_by_web=$(epoch_in web)
    run_as w1 writer w1 "$1"
    run_as w2 writer w2 "$2"
    await has_acked w1 5
    await has_acked w2 5
}

epoch_in() { "$GAVEL" leader --group "$1" --cluster "$GAVEL_CLUSTER" --json | "$JSON_GET" epoch; }

# holds WHERE: at this point of the upgrade, all goes on: writes of both versions are acknowledged, a group is handed
# over with a higher epoch, and those that nobody touches have their leaders.
holds() {
    local writer to=y epoch
    for writer in w1 w2; do await has_acked "$writer" $(($(acked "$writer") + 5)); done
    if [[ $("$GAVEL" leader --store "$store" --group turns) == y ]]; then to=x; fi
    expect 0 "$GAVEL" handover --store "$store" --group turns --to "$to" --timeout 30s
    epoch=$(epoch_in turns)
    ((epoch > turns)) || fail "$1: epoch $epoch after $turns"
    turns=$epoch
    same "$(epoch_in kept)" "$kept"
    same "$(epoch_in web)" "$kept_by_web"
    ! said a lost_leadership || fail "$1: a has lost its mandate"
    ! said b became_leader || fail "$1: b was elected"
    same "$(epochs)" 1
}

# notes_at NODE GROUP: their keys, page by page, as that node has them.
notes_at() {
    local page after=
    while [[ $after != null ]]; do
        page=$(ask "$1" "/groups/$2/notes?limit=500&keys=true&after=$after")
        "$JSON_GET" notes <<<"$page" | grep -oE '"key":"k[0-9]+"' | grep -oE 'k[0-9]+' || true
        after=$("$JSON_GET" next <<<"$page")
    done
}

# Nothing that was told is taken back, and all nodes have the same.
all_is_kept() {
    local writer name number lost
    touch "$scratch/over"
    for writer in w1 w2 alive; do ended "$writer" 0; done
    await agree
    for writer in w1 w2; do
        for name in "${nodes[@]}"; do
            lost=$(comm -13 <(notes_at "$name" "$writer" | sort) <(sed 's/^/k/' "$scratch/$writer.acked" | sort))
            [[ -z $lost ]] || fail "$name has lost acknowledged notes of $writer: $lost"
        done
        number=$(tail -n 1 "$scratch/$writer.acked")
        same "$("$new" note get "$writer" "k$number")" "$number"
    done
    expect 0 "$new" check --cluster "$GAVEL_CLUSTER"
    # shellcheck disable=SC2154 # expect sets it
    has "$output" "all is well"
    ! grep -qx 410 "$scratch/web.codes" || fail "the session of the HTTP candidate was ended"
    judged_well
    for name in "${nodes[@]}"; do
        ! logged "$name" "differ after entry" || fail "$name: $(grep -F "differ after entry" "$scratch/$name.err")"
    done
    judge_logs
}

# rolling OLD_GAVEL OLD_GAVELD: the followers first, the leader last. While there are nodes of both versions, one of
# each leads.
rolling() {
    local first second
    found "$2"
    clients "$1" "$new"
    read -r first second <<<"$(others "$leader" | tr '\n' ' ')"
    last=$leader
    renew "$first" "$new_node"
    holds "an old node leads a new one"
    lead "$first"
    holds "a new node leads two old ones"
    lead "$last"
    holds "an old node leads again"
    renew "$second" "$new_node"
    holds "an old node leads two new ones"
    renew "$last" "$new_node"
    holds "all are new"
}

# Nothing here depends on a version: where this fails, the other tests say nothing about versions either.
test_restarting_all_nodes_one_by_one_loses_nothing() {
    rolling "$new" "$new_node"
    all_is_kept
}

test_a_rolling_upgrade_loses_nothing() {
    need_old
    rolling "$old" "$old_node"
    all_is_kept
}

# A version that does not do well is taken back, as long as not all nodes have run it. In the end nodes of both
# versions have the same table.
test_a_node_goes_back_to_the_version_before() {
    local first second
    need_old
    found "$old_node"
    clients "$old" "$new"
    read -r first second <<<"$(others "$leader" | tr '\n' ' ')"
    renew "$first" "$new_node"
    renew "$second" "$new_node"
    lead "$first"
    holds "a new node leads a new and an old one"
    renew "$second" "$old_node"
    holds "a new node leads two old ones"
    lead "$second"
    holds "an old node leads again"
    all_is_kept
}

# works_anew GROUP: what only new nodes know works: an operator removes a group.
works_anew() {
    "$new" note put "$1" k v --cluster "$GAVEL_CLUSTER" >/dev/null 2>&1 || return 1
    "$new" group delete "$1" --force --cluster "$GAVEL_CLUSTER" >/dev/null 2>"$scratch/delete.err"
}

# Whoever leads knows what a member has last run, though it has never met it.
test_a_member_that_is_down_turns_nothing_off() {
    local first second last
    need_old
    found "$old_node"
    read -r first second <<<"$(others "$leader" | tr '\n' ' ')"
    last=$leader
    renew "$first" "$new_node"
    renew "$second" "$new_node"
    lead "$second" # it has met both, and one of them is old
    ! logged "$second" "all nodes know what is new" || fail "$last is not"
    ! works_anew early || fail "a group is removed while $last does not know how"
    kill_both "$first"
    renew "$last" "$new_node"
    await works_anew during
    await logged "$second" "all nodes know what is new"
    lead "$last" # it has never met a new $first
    works_anew after || fail "a change of leader has turned it off: $(cat "$scratch/delete.err")"
    GAVELD=$new_node start "$first"
    await is_caught_up "$first"
    works_anew back || fail "it was turned off when $first came back: $(cat "$scratch/delete.err")"
    await agree
    expect 0 "$new" check --cluster "$GAVEL_CLUSTER"
    judge_logs
}

# It would skip what is in the log, and its table would differ.
test_an_old_node_is_refused_once_all_are_new() {
    local back
    need_old
    found "$new_node"
    await works_anew first
    back=$(others "$leader" | sed -n 1p)
    stop "$back"
    GAVELD=$old_node start "$back"
    await logged "$leader" "knows version 0 of the table, and this cluster uses 2"
    await logged "$back" "knows version 0 of the table, and this cluster uses 2"
    works_anew second || fail "an old node has turned it off: $(cat "$scratch/delete.err")"
    renew "$back" "$new_node" # on the same directory
    works_anew third || fail "it is off: $(cat "$scratch/delete.err")"
    await agree
    expect 0 "$new" check --cluster "$GAVEL_CLUSTER"
    judge_logs
}

# behind NAME GAVELD: it is down until its leader has no longer all the entries that it lacks, and goes on as that
# program; only a snapshot can bring it up to date.
behind() {
    local has
    has=$(status_of "$1" applied)
    stop "$1"
    await_leader
    await has_compacted "$leader" $((has + 100))
    GAVELD=$2 start "$1"
    await is_caught_up "$1"
    (($(status_of "$1" snapshot) > has)) || fail "$1 needed no snapshot"
}

# has_compacted NAME INDEX: its snapshot goes beyond that. Writes, one entry after the other, until it does.
has_compacted() {
    local number
    for ((number = 0; number < 50; number++)); do
        printf 'url = "http://127.0.0.1:%s/groups/filler/notes/k"\nrequest = PUT\ndata = x\noutput = /dev/null\n' "${api_of[$1]}"
    done | curl -s -K -
    (($(status_of "$1" snapshot) > $2))
}

test_snapshots_pass_between_the_versions() {
    local first second
    need_old
    found "$old_node"
    clients "$old" "$new"
    read -r first second <<<"$(others "$leader" | tr '\n' ' ')"
    behind "$first" "$new_node" # from an old leader to a new node
    holds "a new node has the snapshot of an old one"
    lead "$first"
    behind "$second" "$old_node"
    holds "an old node has the snapshot of a new one"
    all_is_kept
}

has_group() {
    local all
    all=$("$new" groups --cluster "$GAVEL_CLUSTER" --json) && [[ $all == *"\"$1\""* ]]
}
has_no_group() { ! has_group "$1"; }

# An old node would keep the group, and its table would differ.
test_groups_are_removed_only_when_all_nodes_know_how() {
    local first second last
    need_old
    found "$old_node"
    read -r first second <<<"$(others "$leader" | tr '\n' ' ')"
    last=$leader
    expect 3 "$new" once --store "$store" --id a --key idle -- sh -c 'exit 3'
    expect 0 "$new" note put noted k v --cluster "$GAVEL_CLUSTER"
    export GAVELD_GROUP_RETENTION=1s # old nodes do not know it either, and none is started from here on
    renew "$first" "$new_node"
    renew "$second" "$new_node"
    lead "$first"
    expect 1 "$new" group delete once:idle --force --cluster "$GAVEL_CLUSTER"
    # shellcheck disable=SC2154 # expect sets it
    has "$errors" "upgrade all nodes"
    has_group once:idle || fail "the group is gone while $last does not know how to remove it"
    renew "$last" "$new_node"
    await has_no_group once:idle
    has_group noted || fail "a group with a note is gone"
    expect 0 "$new" group delete noted --force --cluster "$GAVEL_CLUSTER"
    await agree
    expect 0 "$new" check --cluster "$GAVEL_CLUSTER"
    judge_logs
}

run_tests "$@"
