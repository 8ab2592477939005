#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Helpers of tests on real servers (tests/servers):
#
#     server_start db mariadb          or etcd, radosgw; `server_start trio etcd 3`
#     server_make db t1                a database or a bucket
#     store=$(server_url db t1)
#     server_freeze db; server_thaw db; server_kill db; server_restart db
#     proxy_start link db              a proxy in front of it
#     store=$(server_url db t1 "$(proxy_address link)")
#     proxy link mute 100              see tests/servers/relay.h
#
# Started before run_tests they serve all tests of a file, started in a test
# that one. They end with the shell that started them, however it ends.
# shellcheck source=../lib.sh
source "$SOURCE_ROOT/tests/e2e/lib.sh"
# shellcheck source=../../servers/ports.sh
source "$SOURCE_ROOT/tests/servers/ports.sh"
: "${SERVER_OWNER:?the owner of servers}" "${PROXY:?the proxy}"

declare -A server_kind server_directory server_port helper_in helper_out

# helper_start NAME COMMAND…: in the background; it takes commands by `helper NAME COMMAND…`.
helper_start() {
    local name=$1 pipes in out
    shift
    pipes=$(mktemp -d "${TMPDIR:-/tmp}/gavel-pipes-XXXXXX")
    mkfifo "$pipes/in" "$pipes/out"
    # It must not have its own input open, nor that of others: then none of them would ever end.
    (
        for in in "${helper_in[@]}" "${helper_out[@]}"; do exec {in}>&-; done
        exec "$@" <"$pipes/in" >"$pipes/out"
    ) &
    exec {in}>"$pipes/in" {out}<"$pipes/out"
    rm -r "$pipes"
    helper_in[$name]=$in
    helper_out[$name]=$out
}

# What it answers besides "good" is in $answer.
helper() {
    local name=$1
    shift
    echo "$*" >&"${helper_in[$name]}" || fail "$name is gone"
    helper_hear "$name" "$*"
}

helper_hear() {
    answer=
    read -r -t 120 -u "${helper_out[$1]}" answer || fail "$1 does not answer: $2"
    [[ $answer == good* ]] || fail "$1 cannot: $2"
    answer=${answer#good}
}

# Closes its input, after which it ends by itself, and waits for that.
helper_end() {
    local in=${helper_in[$1]} out=${helper_out[$1]}
    exec {in}>&-
    cat <&"$out" >/dev/null
    exec {out}<&-
    unset "helper_in[$1]" "helper_out[$1]"
}

# server_start NAME KIND [MEMBERS]
server_start() {
    server_kind[$1]=$2
    server_directory[$1]=$(mktemp -d "${TMPDIR:-/tmp}/gavel-server-XXXXXX")
    reserve_ports
    server_port[$1]=$next_port
    helper_start "$1" "$SERVER_OWNER" "${server_directory[$1]}" "$SOURCE_ROOT/tests/servers/$2" up "${server_directory[$1]}" \
        "${server_port[$1]}" "${@:3}"
    helper "$1" up
}

# server_process NAME KILL|STOP: whom such a signal is for. Of radosgw it is the OSD that freezes.
server_process() {
    case ${server_kind[$1]}:$2 in
    mariadb:*) echo mariadb ;;
    etcd:*) echo etcd-0 ;;
    radosgw:KILL) echo rgw ;;
    radosgw:*) echo osd ;;
    esac
}

# Each takes the name of a process as its second argument, if it is another than that.
server_kill() { helper "$1" signal "${2:-$(server_process "$1" KILL)}" KILL; }
server_freeze() { helper "$1" signal "${2:-$(server_process "$1" STOP)}" STOP; }
server_thaw() { helper "$1" signal "${2:-$(server_process "$1" STOP)}" CONT; }
server_restart() { helper "$1" up; }
server_stop() { helper_end "$1"; }

# server_do NAME VERB [ARGUMENT…]: a command of tests/servers with its directory; server_do db sql <<<'select 1'
server_do() { "$SOURCE_ROOT/tests/servers/${server_kind[$1]}" "$2" "${server_directory[$1]}" "${@:3}"; }
server_make() { [[ ${server_kind[$1]} == etcd ]] || server_do "$1" make "$2"; }

# server_url NAME DATABASE [ADDRESS]: ADDRESS is that of a proxy.
server_url() {
    local address=${3:-127.0.0.1:${server_port[$1]}}
    case ${server_kind[$1]} in
    mariadb) echo "mysql://gavel@$address/$2" ;;
    etcd) echo "etcd://$address/$2" ;;
    radosgw) echo "s3://$2/p?endpoint=http://$address&path_style=on" ;;
    esac
}

# For all of them at once, those who may do everything.
server_credentials() {
    export GAVEL_MYSQL_USER=gavel GAVEL_MYSQL_PASSWORD=testsecret
    export AWS_ACCESS_KEY_ID=gavel AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
}

# proxy_start NAME SERVER
proxy_start() {
    reserve_ports
    server_port[$1]=$next_port
    helper_start "$1" "$PROXY" "$next_port" "${server_port[$2]}"
    helper_hear "$1" start
}
proxy_address() { echo "127.0.0.1:${server_port[$1]}"; }
proxy() { helper "$@"; }
proxy_stop() { helper_end "$1"; }
