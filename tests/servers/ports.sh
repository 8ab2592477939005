# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For shell scripts what ports.h is for tests in C.

# reserve_ports: twenty ports that no other test uses, as long as this shell or a child of it lives; the first is
# in $next_port. Whoever has the lock of a block has its ports.
reserve_ports() {
    local block file first=$(($$ + RANDOM))
    mkdir -p "${TMPDIR:-/tmp}/gavel-test-ports"
    for ((block = 0; block < 600; block++)); do
        file=${TMPDIR:-/tmp}/gavel-test-ports/$(((first + block) % 600))
        exec {port_lock}>"$file"
        if flock -n "$port_lock"; then
            # shellcheck disable=SC2034 # for whoever sources this
            next_port=$((20000 + ${file##*/} * 20))
            return
        fi
        exec {port_lock}>&-
    done
    fail "no free ports"
}
