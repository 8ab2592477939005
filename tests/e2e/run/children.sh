#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `gavel run -f FILE`: several children, started in order and stopped in
# reverse, each restarted by itself.
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"

# Each child tells its story in one file.
story() { cat "$scratch/story"; }
tells() { grep -qxF -- "$1" "$scratch/story"; }

# run_file NAME [OPTION…] <<YAML: with these children.
run_file() {
    local name=$1
    shift
    cat >"$scratch/$name.yaml"
    : >>"$scratch/story"
    export STORY=$scratch/story
    run "$name" -f "$scratch/$name.yaml" "$@"
}

# What a child named $NAME does: says that it has begun, and when it is told to stop.
export TELL
read -r -d '' TELL <<'CHILD' || true
trap 'echo "$NAME stopped" >>"$STORY"; exit 0' TERM; echo "$NAME started" >>"$STORY"; while :; do sleep 0.01; done
CHILD

three_children() {
    cat <<'YAML'
children:
  - name: one
    command: NAME=one; eval "$TELL"
  - name: two
    command: NAME=two; eval "$TELL"
  - name: three
    command: NAME=three; eval "$TELL"
YAML
}

# They are started in order, but the last may be the first to say so.
all_started() { [[ $(grep -cs started "$scratch/story") == 3 ]]; }

test_children_start_in_order_and_stop_in_reverse() {
    run_file a < <(three_children)
    await all_started
    kill -TERM "${pid_of[a]}"
    ended a 0
    same "$(grep stopped "$scratch/story" | tr '\n' ' ')" "three stopped two stopped one stopped "
    state_is released || fail "the mandate was not released"
}

test_a_child_that_ends_is_restarted_by_itself() {
    local command
    run_file a < <(three_children)
    await all_started
    read -r -a command <<<"$(children_of "$(guard_of a)")"
    same "${#command[@]}" 3
    kill -KILL "${command[1]}"
    twice() { (($(grep -cx 'two started' "$scratch/story") == 2)); }
    await twice
    same "$(grep -cx 'one started' "$scratch/story")" 1
    same "$(grep -cx 'three started' "$scratch/story")" 1
    leads a || fail "a does not lead any more"
}

test_what_a_child_left_in_its_session_is_killed_before_its_restart() {
    run_file a <<YAML
children:
  - name: leaky
    command: exec "$BEAT" "$scratch/beats" --children 1
  - name: other
    command: echo other started >>\$STORY; exec sleep 60
YAML
    await tells 'other started'
    await beats
    local first below
    first=$(command_of a)
    has_below() { below=$(children_of "$first") && [[ $below ]]; }
    await has_below
    kill -KILL "$first"
    restarted() { logged a restarted && [[ $(children_of "$(guard_of a)" | wc -w) == 2 ]]; }
    await restarted
    process_is_gone "${below% }" || fail "it left a process behind"
    kill -TERM "${pid_of[a]}"
    ended a 143
    all_gone || fail "something is left"
}

test_a_child_whose_end_stops_everything() {
    run_file a <<'YAML'
children:
  - name: one
    command: NAME=one; eval "$TELL"
  - name: two
    command: until grep -q 'one started' "$STORY"; do sleep 0.01; done; exit 6
    on_exit: stop
YAML
    ended a 6
    tells 'one stopped' || fail "the other was not asked to stop"
    state_is released || fail "the mandate was not released"
}

test_a_child_whose_end_resigns() {
    run_file a <<'YAML'
children:
  - name: one
    command: NAME=one; eval "$TELL"
  - name: two
    command: until [ -e "$STORY.go" ]; do sleep 0.01; done; exit 6
    on_exit: resign
YAML
    await tells 'one started'
    run b -- sh -c 'echo b started >>"$STORY"; exec sleep 60'
    await has_candidates 2
    touch "$scratch/story.go"
    await tells 'b started'
    tells 'one stopped' || fail "the other was not asked to stop"
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    true
}

test_too_many_restarts_let_another_lead() {
    run_file a --restart-limit 2 --restart-window 60s --cool-down 60s <<'YAML'
children:
  - name: one
    command: NAME=one; eval "$TELL"
  - name: two
    command: until [ -e "$STORY.go" ]; do sleep 0.01; done; echo two >>"$STORY"; exit 6
YAML
    await tells 'one started'
    run b -- sh -c 'echo b started >>"$STORY"; exec sleep 60'
    await has_candidates 2
    touch "$scratch/story.go"
    await tells 'b started'
    same "$(grep -cx two "$scratch/story")" 3
    tells 'one stopped' || fail "the other was not asked to stop"
}

test_the_next_starts_when_a_command_says_that_the_one_before_is_ready() {
    run_file a <<'YAML'
children:
  - name: one
    command: echo one started >>"$STORY"; exec sleep 60
    ready: {command: 'test -e "$STORY.ready"', timeout: 15s}
  - name: two
    command: echo two started >>"$STORY"; exec sleep 60
YAML
    await tells 'one started'
    tells 'two started' && fail "it did not wait"
    echo ready >>"$scratch/story"
    touch "$scratch/story.ready"
    await tells 'two started'
    same "$(story | tr '\n' ' ')" "one started ready two started "
}

test_the_next_starts_when_the_one_before_writes_to_its_descriptor() {
    run_file a <<'YAML'
children:
  - name: one
    command: echo one started >>"$STORY"; until [ -e "$STORY.go" ]; do sleep 0.01; done; echo ready >>"$STORY"; echo >&5; exec sleep 60
    ready: {fd: 5, timeout: 15s}
  - name: two
    command: echo two started >>"$STORY"; exec sleep 60
YAML
    await tells 'one started'
    tells 'two started' && fail "it did not wait"
    touch "$scratch/story.go"
    await tells 'two started'
    same "$(story | tr '\n' ' ')" "one started ready two started "
}

test_a_child_that_is_not_ready_in_time_lets_another_lead() {
    run_file a --cool-down 60s <<'YAML'
children:
  - name: one
    command: echo one started >>"$STORY"; exec sleep 60
    ready: {command: 'false', timeout: 300ms}
  - name: two
    command: echo two started >>"$STORY"; exec sleep 60
YAML
    await tells 'one started'
    run b -- sh -c 'echo b started >>"$STORY"; exec sleep 60'
    await tells 'b started'
    tells 'two started' && fail "the second was started"
    process_is_gone "${pid_of[a]}" && fail "a has ended"
    true
}

test_each_child_has_its_environment_and_directory() {
    mkdir "$scratch/place"
    run_file a <<YAML
children:
  - name: one
    command: [sh, -c, 'echo "\$PORT \$PWD \$GAVEL_EPOCH" >>"\$STORY"; exec sleep 60']
    directory: $scratch/place
    environment: {PORT: "5432"}
  - name: two
    command: [sh, -c, 'echo "\${PORT-none} \$(wc -c)" >>"\$STORY"; exec sleep 60']
YAML
    await tells 'none 0' # an empty input
    tells "5432 $scratch/place 1" || fail "$(story)"
}

test_a_child_may_run_as_another_user() {
    (($(id -u) == 0)) || skip "only root may become another user"
    touch "$scratch/story"
    chmod 777 "$scratch" "$scratch/story"
    run_file a <<'YAML'
children:
  - name: one
    command: [sh, -c, 'echo "$(id -u) $(id -g)" >>"$STORY"; exec sleep 60']
    user: "65534"
  - name: two
    command: [sh, -c, 'echo "$(id -u)" >>"$STORY"; exec sleep 60']
YAML
    await tells 0
    await grep -qE '^65534 ' "$scratch/story" # they start side by side
    kill -TERM "${pid_of[a]}" # root may signal them
    ended a 143
}

test_a_child_has_its_own_grace_and_signal() {
    run_file a <<YAML
children:
  - name: one
    command: trap 'echo one got USR1 >>\$STORY; exit 3' USR1; echo one started >>\$STORY; while :; do sleep 0.01; done
    term_signal: USR1
  - name: stubborn
    command: exec "$BEAT" "$scratch/beats" --ignore-term
    grace: 100ms
YAML
    await tells 'one started'
    await beats
    kill -TERM "${pid_of[a]}"
    ended a 3
    tells 'one got USR1' || fail "the other had no time left: $(story)"
    all_gone || fail "something is left"
}

test_killed_elector_kills_all_children() {
    run_file a <<YAML
children:
  - name: one
    command: exec "$BEAT" "$scratch/beats" --ignore-term --daemon
  - name: two
    command: exec "$BEAT" "$scratch/beats" --ignore-term --sessions 2
YAML
    two() { [[ $(children_of "$(guard_of a)" | wc -w) -ge 3 ]]; } # the daemon, too
    await two
    kill -KILL "${pid_of[a]}"
    ended a 137
    await state_is released
    all_gone || fail "it was released before all were dead"
}

test_prefix_names_the_children() {
    run_file a --prefix <<'YAML'
children:
  - name: one
    command: echo hello; exec sleep 60
  - name: two
    command: echo hello; exec sleep 60
YAML
    both() { grep -qE 'one.*hello$' "$scratch/a.out" && grep -qE 'two.*hello$' "$scratch/a.out"; }
    await both
}

run_tests "$@"
