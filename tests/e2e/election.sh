#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One leader among real processes, whatever happens to it.
source "$SOURCE_ROOT/tests/e2e/lib.sh"

three() {
    elect a "$@"
    await said a became_leader
    elect b "$@"
    elect c "$@"
    local name
    for name in a b c; do await said $name candidates_updated '"candidates":3'; done
}

# How many of the three have been elected more often than they were demoted.
leaders_by_their_own_word() {
    local name count=0
    for name in a b c; do
        local up down
        up=$(grep -cF '"event":"became_leader"' "$scratch/$name.out" || true)
        down=$(grep -cF '"event":"lost_leadership"' "$scratch/$name.out" || true)
        count=$((count + up - down))
    done
    echo "$count"
}

test_exactly_one_of_three_leads() {
    three
    leads a || fail "a came first and does not lead"
    same "$(leaders_by_their_own_word)" 1
    await said b leader_changed '"new":"a"'
    await said c leader_changed '"new":"a"'
}

test_next_one_leads_after_sigkill_with_a_higher_epoch() {
    three
    local before
    before=$(epoch_of a)
    kill -KILL "${pid_of[a]}"
    ended a 137
    successor_leads() { said b became_leader || said c became_leader; }
    await successor_leads
    local name=b
    said b became_leader || name=c
    (($(epoch_of $name) > before)) || fail "the epoch did not grow"
    await said "$name" leader_down '"former_leader":"a"'
    await leads "$name"
}

test_frozen_leader_is_replaced_and_knows_it_when_it_wakes() {
    three
    kill -STOP "${pid_of[a]}"
    successor_leads() { said b became_leader || said c became_leader; }
    await successor_leads
    kill -CONT "${pid_of[a]}"
    await said a lost_leadership
    ! leads a || fail "a leads again at once"
}

test_handover_hands_over() {
    three
    expect 0 "$GAVEL" handover --store "$store" --json
    same "$("$JSON_GET" previous <<<"$output")" a
    local next
    next=$("$JSON_GET" leader_id <<<"$output")
    [[ $next == b || $next == c ]] || fail "$next leads after a handed over"
    await said a lost_leadership '"reason":"'
    await said "$next" became_leader
}

test_handover_to_a_candidate_makes_it_leader() {
    three
    expect 0 "$GAVEL" handover --store "$store" --to c
    has "$output" "c leads now"
    has "$output" "after a was asked to hand over"
    leads c || fail "c does not lead"
    expect 0 "$GAVEL" handover --store "$store" --to c
    has "$output" "leads already"
    expect 0 "$GAVEL" handover --store "$store" --to c --json
    same "$("$JSON_GET" leader_id previous took_ms <<<"$output")" "c	c	0"
}

test_resign_is_an_older_name_of_handover() {
    three
    expect 0 "$GAVEL" resign --store "$store" --to c
    has "$output" "c leads now"
    expect 1 "$GAVEL" resign --store "$store" --to nobody
    has "$errors" "gavel resign: "
    expect 0 "$GAVEL" resign --help
    has "$output" 'The same as `gavel handover`'
}

test_handover_to_somebody_unfit_is_refused() {
    three
    expect 1 "$GAVEL" handover --store "$store" --to nobody
    has "$errors" "no active candidate \"nobody\""
    elect d --no-eligible
    await has_candidates 4
    expect 1 "$GAVEL" handover --store "$store" --to d
    has "$errors" "not eligible"
    leads a || fail "a gave up"
}

test_handover_within_the_minimum_mandate_needs_force() {
    three --min-mandate 1h
    expect 6 "$GAVEL" handover --store "$store" --timeout 500ms
    has "$errors" "--force"
    leads a || fail "a gave up"
    expect 0 "$GAVEL" handover --store "$store" --force
    ! leads a || fail "a did not give up"
}

test_handover_without_a_leader_says_so() {
    elect a --no-eligible
    await has_candidates 1
    expect 3 "$GAVEL" handover --store "$store"
}

test_ineligible_candidate_never_leads() {
    elect a --no-eligible
    GAVEL_ELIGIBLE=false elect b
    await has_candidates 2
    elect c
    await said c became_leader
    kill -TERM "${pid_of[c]}"
    ended c 0
    nobody_leads || fail "an ineligible candidate leads"
    ! said a became_leader || fail "a led"
    ! said b became_leader || fail "b led"
}

test_priority_decides_among_those_who_wait() {
    elect a --policy priority --priority 1
    await said a became_leader
    elect b --policy priority --priority 5
    elect c --policy priority --priority 9
    await said a candidates_updated '"candidates":3'
    await said b candidates_updated '"candidates":3'
    await said c candidates_updated '"candidates":3'
    expect 0 "$GAVEL" handover --store "$store"
    await said c became_leader
}

test_groups_in_one_store_do_not_mind_each_other() {
    run_as x "$GAVEL" elect --store "$store" --group one --id x
    run_as y "$GAVEL" elect --store "$store" --group 'two / "zwei" %' --id y
    await said x became_leader
    await said y became_leader
    same "$("$GAVEL" leader --store "$store" --group one)" x
    same "$("$GAVEL" leader --store "$store" --group 'two / "zwei" %')" y
    same "$("$GAVEL" status --all --store "$store" --json | "$JSON_GET" 'groups.#')" 2
}

test_watch_tells_of_each_change() {
    elect a
    await said a became_leader
    run_as watch "$GAVEL" watch --store "$store" --json --count 2 --timeout 20s
    await test -s "$scratch/watch.out"
    elect b
    await has_candidates 2
    kill -KILL "${pid_of[a]}"
    ended watch 0
    same "$(head -n 1 "$scratch/watch.out" | "$JSON_GET" event leader_id)" "current	a"
    tail -n 1 "$scratch/watch.out" | "$JSON_GET" event epoch time >/dev/null
}

# lines_of_watch FIELD…: of the lines that watch has printed.
lines_of_watch() { "$JSON_GET" "$@" <"$scratch/watch.out"; }

# The same event has the same fields, whether a candidate tells of it or an onlooker.
test_watch_and_elect_tell_of_a_change_alike() {
    elect a
    await said a became_leader
    elect b --no-eligible
    await said b leader_changed '"new":"a"'
    run_as watch "$GAVEL" watch --store "$store" --json --count 3 --timeout 20s
    await test -s "$scratch/watch.out"
    kill -TERM "${pid_of[a]}"
    ended a 0
    await said b leader_changed '"new":null'
    ! said b leader_down || fail "a leader that gave up was told to be lost"
    elect c
    ended watch 0
    same "$(lines_of_watch event leader_id epoch | tr '\t\n' ' ,')" \
        "current a 1,leader_changed null 1,leader_changed c 2,"
    same "$(sed -n '2,3p' "$scratch/watch.out" | "$JSON_GET" previous new | tr '\t\n' ' ,')" "a null,a c,"
    await said b leader_changed '"new":"c"'
    same "$(grep -F leader_changed "$scratch/b.out" | tail -n 2 | "$JSON_GET" previous new leader_id epoch)" \
        "$(sed -n '2,3p' "$scratch/watch.out" | "$JSON_GET" previous new leader_id epoch)"
}

test_watch_and_elect_tell_of_a_loss_alike() {
    elect a
    await said a became_leader
    elect b --no-eligible
    await said b leader_changed '"new":"a"'
    run_as watch "$GAVEL" watch --store "$store" --json --count 2 --timeout 20s
    await test -s "$scratch/watch.out"
    kill -KILL "${pid_of[a]}"
    ended a 137
    ended watch 0
    await said b leader_down
    local fields='event former_leader previous leader_id epoch'
    # shellcheck disable=SC2086 # a list
    same "$(tail -n 1 "$scratch/watch.out" | "$JSON_GET" $fields)" "leader_down	a	a	null	1"
    # shellcheck disable=SC2086
    same "$(grep -F leader_down "$scratch/b.out" | "$JSON_GET" $fields)" "leader_down	a	a	null	1"
}

test_leader_waits_for_one() {
    run_as leader "$GAVEL" leader --store "$store" --wait 20s
    elect a
    ended leader 0
    same "$(cat "$scratch/leader.out")" a
}

test_second_candidate_of_the_same_id_is_refused() {
    elect a
    await said a became_leader
    run_as again "$GAVEL" elect --store "$store" --id a
    ended again 5
    has "$(cat "$scratch/again.err")" "--id"
    leads a || fail "the first one does not lead any more"
    same "$(tail -n 1 "$scratch/again.out" | "$JSON_GET" event status)" "stopped	ERR_ID_IN_USE"
}

test_id_is_free_again_after_its_owner_was_killed() {
    elect a
    await said a became_leader
    kill -KILL "${pid_of[a]}"
    ended a 137
    run_as again "$GAVEL" elect --store "$store" --id a
    await said again became_leader
}

# advised: the command that a message advises, as a person would copy it.
advised() { sed -n 's/^[^`]*`gavel \([^`]*\)`.*/\1/p' <<<"$errors"; }

# shellcheck disable=SC2046 # words
lists_a_standby() { [[ $("$GAVEL" $(advised)) == *" standby "* ]]; }

# What the message advises is about the same group of the same store.
test_advice_names_the_options_it_needs() {
    local other="$scratch/with space.db"
    elect a --group jobs --no-eligible
    await test -e "$store"
    expect 3 "$GAVEL" leader --store "$store" --group jobs
    same "$(advised)" "candidates --store $store --group jobs"
    await lists_a_standby
    GAVEL_STORE=$store expect 3 "$GAVEL" leader --group jobs
    same "$(advised)" "candidates --group jobs"
    printf 'store: %s\ngroup: jobs\n' "$store" >"$scratch/jobs.yaml"
    expect 3 "$GAVEL" leader -c "$scratch/jobs.yaml"
    same "$(advised)" "candidates --store $store --group jobs"
    elect b --no-eligible --store "$other"
    await test -e "$other"
    expect 3 "$GAVEL" leader --store "$other"
    same "$(advised)" "candidates --store '$other' --group default"
}

run_tests "$@"
