# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the commands of this directory share. Each keeps a server in one directory:
# its data, its logs (NAME.log) and the ids of its processes (NAME.pid).
# shellcheck disable=SC2154 # $directory is of whoever sources this
set -euo pipefail

limit_s=${SERVER_LIMIT_S:-60} # a server that does not answer by then does not start
command=${0##*/}

fail()
{
    printf '%s: %s\n' "$command" "$*" >&2
    exit 1
}

need()
{
    local program

    for program; do
        command -v "$program" >/dev/null || fail "there is no $program; install what it needs with: tools/setup servers"
    done
}

check_directory()
{
    [[ $1 == /* ]] || fail "the directory must be an absolute path, not \"$1\""
    # Sockets live in it, and their names must fit 107 bytes.
    ((${#1} <= 85)) || fail "$1 is too long for a socket in it; set TMPDIR to a shorter one"
}

# check_port PORT COUNT: the ports from it on are below those that the system gives to clients.
check_port()
{
    [[ $1 =~ ^[0-9]{4,5}$ ]] || fail "\"$1\" is not a port"
    (($1 >= 1024 && $1 + $2 <= 32768)) || fail "the ports $1 to $(($1 + $2 - 1)) are not all between 1024 and 32767"
}

# The process of a pid file runs, and is one of this directory: an old file may name somebody else's.
is_running()
{
    local pid=

    [[ -r $1 ]] && read -r pid <"$1" && [[ $pid =~ ^[0-9]+$ ]] || return 1
    { [[ $(tr '\0' ' ' <"/proc/$pid/cmdline") == *"$directory/"* ]]; } 2>/dev/null
}

# What this run has started ends if it fails.
started=()
end_what_failed()
{
    local code=$?

    ((code)) || return 0
    exec 2>/dev/null # the shell's notices of who was killed, which somebody may no longer want to read
    stop "${started[@]}"
}
trap end_what_failed EXIT

# start NAME COMMAND…: in the background, unless it runs already.
start()
{
    local name=$1

    shift
    if is_running "$directory/$name.pid"; then return; fi
    # Nothing of ours may stay open in it: not the locks of ports, not the pipe that somebody reads our output from.
    (
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            if ((fd > 2 && fd < 255)); then eval "exec $fd>&-"; fi
        done
        # Nor is a server the one to be tested with signals that somebody ignores: radosgw aborts.
        exec env --default-signal "$@" </dev/null >>"$directory/$name.log" 2>&1
    ) &
    echo $! >"$directory/$name.pid"
    started+=("$name")
}

# await NAME COMMAND…: until it succeeds; fails when the process of that name ends before, or takes too long.
await()
{
    local name=$1 deadline=$((SECONDS + limit_s))

    shift
    until "$@" >/dev/null 2>&1; do
        is_alive "$name" || fail_with_log "$name" "ended before it answered"
        ((SECONDS < deadline)) || fail_with_log "$name" "did not answer within $limit_s s"
        sleep 0.02
    done
}

# As is_running(), and also true between fork and exec.
is_alive()
{
    [[ -e /proc/$(<"$directory/$1.pid")/stat && $(<"/proc/$(<"$directory/$1.pid")/stat") != *") Z "* ]]
}

fail_with_log()
{
    {
        echo "$command: $1 $2; the end of $directory/$1.log:"
        tail -n 20 "$directory/$1.log" 2>/dev/null | sed 's/^/    /'
    } >&2
    exit 1
}

# stop NAME…: by SIGKILL and by process id; gone when it returns. Data in a test's directory needs no farewell.
stop()
{
    local name pid deadline=$((SECONDS + limit_s))

    for name; do
        is_running "$directory/$name.pid" || continue
        read -r pid <"$directory/$name.pid"
        kill -KILL "$pid" 2>/dev/null || true # it may have ended by itself
        while is_running "$directory/$name.pid"; do
            ((SECONDS < deadline)) || fail "$name ($pid) does not die"
            sleep 0.01
        done
        rm -f "$directory/$name.pid"
    done
}

# A certificate of this machine that is its own authority: $directory/tls.crt, $directory/tls.key.
make_certificate()
{
    [[ ! -e $directory/tls.crt ]] || return 0
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout "$directory/tls.key" -out "$directory/tls.crt" \
        2>"$directory/tls.log" || fail "openssl makes no certificate: $(tail -n 1 "$directory/tls.log")"
}
