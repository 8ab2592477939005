# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For shell scripts what ports.h is for tests in C.

# ports_are_free FIRST: nobody listens on any of twenty; somebody with another TMPDIR has other locks.
ports_are_free() {
    local port
    for ((port = $1; port < $1 + 20; port++)); do
        ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 1
    done
}

# reserve_ports: twenty ports that no other test uses, as long as this shell or a child of it lives; the first is
# in $next_port. Whoever has the lock of a block has its ports.
reserve_ports() {
    local block file first=$(($$ + RANDOM))
    mkdir -p "${TMPDIR:-/tmp}/gavel-test-ports"
    for ((block = 0; block < 600; block++)); do
        file=${TMPDIR:-/tmp}/gavel-test-ports/$(((first + block) % 600))
        exec {port_lock}>"$file"
        # shellcheck disable=SC2034 # for whoever sources this
        next_port=$((20000 + ${file##*/} * 20))
        if flock -n "$port_lock" && ports_are_free "$next_port"; then return; fi
        exec {port_lock}>&-
    done
    fail "no free ports"
}
