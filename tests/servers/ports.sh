# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For shell scripts what ports.h is for tests in C.

# ports_are_free FIRST: nobody listens on any of twenty; whoever has no lock may be there, too.
ports_are_free() {
    local port
    for ((port = $1; port < $1 + 20; port++)); do
        ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 1
    done
}

# The ports are the machine's, so that their locks are, too: of all users, and whatever TMPDIR says.
ports_directory=/tmp/gavel-test-ports

# lock_ports NUMBER: the lock of that block, in $port_lock; fails if somebody else has it.
lock_ports() {
    local file=$ports_directory/$1
    # Without O_CREAT where it is there: the kernel may forbid that for files of others.
    [[ -e $file ]] || (umask 0 && : >>"$file") 2>/dev/null || return 1
    { exec {port_lock}<"$file"; } 2>/dev/null || return 1
    if flock -n "$port_lock"; then return; fi
    exec {port_lock}<&-
    return 1
}

# reserve_ports: twenty ports that no other test uses, as long as this shell or a child of it lives; the first is
# in $next_port. Whoever has the lock of a block has its ports.
reserve_ports() {
    local i block first=$(($$ + RANDOM))
    (umask 0 && mkdir -p "$ports_directory")
    for ((i = 0; i < 600; i++)); do
        block=$(((first + i) % 600))
        lock_ports "$block" || continue
        # shellcheck disable=SC2034 # for whoever sources this
        next_port=$((20000 + block * 20))
        if ports_are_free "$next_port"; then return; fi
        exec {port_lock}<&-
    done
    fail "no free ports"
}
