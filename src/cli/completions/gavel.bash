# SPDX-License-Identifier: Apache-2.0
# bash completion for gavel(1). Written by hand; tests/e2e/docs.sh compares it with --help.
# shellcheck shell=bash

# The ids of the candidates, or the names of the groups, of the store on the line so far; or the nodes of the cluster.
_gavel_ask() {
    local i store=() group=() cluster=()
    for ((i = 1; i < COMP_CWORD - 1; i++)); do
        case ${COMP_WORDS[i]} in
        --store | -s | --config | -c | -f) store+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
        --group | -g) group=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
        --cluster)
            cluster+=(--cluster)
            [[ ${COMP_WORDS[i + 1]} == -* ]] || cluster+=("${COMP_WORDS[i + 1]}")
            ;;
        --ca | --revoked | --token-file) cluster+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
        esac
    done
    # Without a group, a cluster's nodes are meant.
    [[ $1 != successors || (${#cluster[@]} -gt 0 && ${#group[@]} -eq 0) ]] || set -- candidates
    case $1 in
    candidates) gavel candidates "${store[@]}" "${group[@]}" "${cluster[@]}" --color never 2>/dev/null | awk 'NR > 1 && NF > 5 { print $1 }' ;;
    nodes | successors) gavel member list "${store[@]}" "${cluster[@]}" --color never 2>/dev/null | awk 'NR > 1 && NF > 4 { print $1 }' ;;
    groups) gavel groups "${store[@]}" "${cluster[@]}" --color never 2>/dev/null | awk 'NR > 1 && NF > 4 { print $1 }' ;;
    esac
}

# The values of the option before the cursor; fails if it has none that are known.
_gavel_values() {
    local events="became_leader lost_leadership leader_down leader_changed election_check phase_changed
        candidates_updated mandate_renewed contention_detected breaker_open breaker_closed heartbeat overrun stopped"
    local list=
    case $1 in
    --store | -s | --config | -c | -f | --out | --ca | --revoked | --token-file | --listen)
        compopt -o default 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        return
        ;;
    --color) list="auto always never" ;;
    --log | --log-format) list="auto human logfmt json" ;;
    --log-level) list="debug info warning error" ;;
    --preset | -p) list="local cluster database coordinator object-store frugal" ;;
    --policy) list="first lexicographic priority balanced" ;;
    --on-exit) list="stop resign restart" ;;
    --term-signal) list="TERM INT QUIT HUP USR1 USR2" ;;
    --contain) list="auto cgroup walk" ;;
    --healthy | --on-elected | --on-demoted)
        compopt -o default 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$2")
        return
        ;;
    --events) list=$events ;;
    --only) list="calls store handover failover run groups simulator" ;;
    --group | -g) list=$(_gavel_ask groups) ;;
    --to) list=$(_gavel_ask successors) ;;
    --cluster)
        [[ $2 != -* ]] || return 1 # it may do without a value
        list=${GAVEL_CLUSTER:-}
        ;;
    --id | -i | --priority | --doorbell | --heartbeat | --heartbeat-jitter | --lease | --candidate-timeout | \
        --election-interval | --observation | --preparation | --min-mandate | --max-mandate | --takeover-delay | \
        --start-jitter-min | --start-jitter-max | --call-timeout | --stop-grace | --stop-margin | --stagger | \
        --epoch-grace | --breaker-reset | --breaker-threshold | --breaker-attempts | --contention-threshold | \
        --contention-every | --drift-ppm | --grace | --orphan-grace | --restart-limit | --restart-window | --cool-down | \
        --healthy-every | --healthy-timeout | --healthy-failures | --hook-timeout | --key | --wait | --count | --timeout | --candidates | --trials | \
        --cluster-timeout | --limit | --epoch | --if-revision | --prefix | --after | --api | --days | --host | --valid-for | --nodes | --table | --prices) ;;
    *) return 1 ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$2")
}

# Whether the cursor stands on a command of the user's, behind the -- that follows word $1.
_gavel_begins_command() {
    local i
    for ((i = $1 + 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] && return 0
    done
    return 1
}

_gavel() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' list='' i
    local commands="run once elect agent leader status groups group candidates watch note handover check store elections member
        cert cluster demo bench help version"
    local older="resign stepdown transfer" # these still work and are not offered
    local common="--config --json --color --log --log-level --help"
    local place="--store --group"
    local cluster="--cluster --ca --revoked --token-file --cluster-timeout"
    local listing="--preset --candidate-timeout"
    local who="--id --eligible --no-eligible --election --no-election --priority --doorbell"
    local settings="--preset --heartbeat --heartbeat-jitter --lease --candidate-timeout --election-interval
        --observation --preparation --min-mandate --max-mandate --takeover-delay --start-jitter-min
        --start-jitter-max --call-timeout --stop-grace --stop-margin --stagger --epoch-grace --breaker-reset
        --breaker-threshold --breaker-attempts --contention-threshold --contention-every --drift-ppm --policy
        --preempt --no-preempt --trust-store-clock --no-trust-store-clock"

    local work="--term-signal --orphan-grace --healthy --healthy-every --healthy-timeout --healthy-failures
        --on-elected --on-demoted --hook-timeout --contain"
    local run="--on-exit --restart-limit --restart-window --cool-down --prefix --no-prefix"

    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ " ${commands//$'\n'/ } $older " == *" ${COMP_WORDS[i]} "* ]]; then
            command=${COMP_WORDS[i]}
            break
        fi
    done
    _gavel_values "$prev" "$cur" && return
    case $command in
    '') list="$commands $common $place --version" ;;
    run | once)
        # Behind -- or the first word that is no option it is a command line of its own.
        if _gavel_begins_command "$i"; then
            compopt -o default 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            return
        fi
        list="$common $place $who $settings $work $run"
        [[ $command == run ]] || list="$common $place $who $settings $work --key --no-wait --keep --forget --list --prefix"
        ;;
    elect) list="$common $place $who $settings --events" ;;
    agent) list="$common $place $who $settings --listen --token-file --drain --no-drain --alive-within" ;;
    leader) list="$common $place $cluster --wait" ;;
    status) list="$common $place $listing $cluster --all --watch" ;;
    groups) list="$common --store $cluster --prefix" ;;
    group)
        list="$common --store $cluster --force"
        case $prev in
        group) list+=" delete" ;;
        delete) list+=" $(_gavel_ask groups)" ;;
        esac
        ;;
    candidates) list="$common $place $listing $cluster" ;;
    note)
        list="$common --store $cluster --epoch --if-revision --create --prefix --after --count --timeout"
        case $prev in
        note) list+=" get put delete list watch" ;;
        get | put | delete | list | watch) list+=" $(_gavel_ask groups)" ;;
        esac
        ;;
    watch) list="$common $place $cluster --count --timeout" ;;
    handover | resign) list="$common $place $listing $cluster --to --force --timeout" ;;
    check) list="$common $place $who $settings $cluster --candidates --prices" ;;
    store)
        list="$common --store --preset --call-timeout --count --read-only --table"
        case $prev in
        store) list+=" ping sql list migrate backup" ;;
        ping)
            [[ $cur == -* ]] || compopt -o default 2>/dev/null
            list+=" sqlite: gavel:// mysql:// s3:// etcd://"
            ;;
        sql) list+=" mysql" ;;
        esac
        ;;
    elections) list="$common --store $cluster --limit --pre-votes" ;;
    transfer)
        list="$common --store $cluster --group --to --force --timeout"
        [[ $cur == -* ]] || list+=" $(_gavel_ask nodes)"
        ;;
    stepdown) list="$common --store $cluster --timeout" ;;
    member)
        list="$common --store $cluster --api --priority --witness --learner --timeout"
        case $prev in
        member) list+=" list add remove promote demote" ;;
        remove | promote | demote) list+=" $(_gavel_ask nodes)" ;;
        esac
        ;;
    cert)
        list="$common --out --ca --host --client --valid-for --list --force"
        [[ $prev != cert ]] || list+=" init issue show revoke secret"
        if [[ $prev == show || $prev == revoke ]]; then
            compopt -o default 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
        ;;
    cluster)
        list="$common --nodes"
        [[ $prev != cluster ]] || list+=" demo"
        ;;
    demo) list="$common --sabotage" ;;
    bench) list="$common --quick --only --trials --groups --servers --gaveld --out" ;;
    help) list="$commands $common" ;;
    version) list="$common" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur")
}

complete -F _gavel gavel
