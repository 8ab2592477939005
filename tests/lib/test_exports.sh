#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The libraries show what the public headers declare, and nothing else.
#
#     test_exports.sh LIBGAVEL.so LIBGAVEL.a
set -euo pipefail

shared=$1 archive=$2
headers=$(dirname "$0")/../../include/gavel

declared=$(sed -n 's/^GAVEL_API.*[ *]\(gavel_[a-z_]*\)[([].*/\1/p; /^GAVEL_API/{/[([]/!{N;s/.*[ *]\(gavel_[a-z_]*\)(.*/\1/p}}' \
    "$headers"/*.h | sort -u)
if [ "$(wc -l <<<"$declared")" -lt 25 ]; then
    echo "only $(wc -l <<<"$declared") declarations found; the headers changed their form and this test must follow" >&2
    exit 1
fi

# The sanitizers add symbols of their own, which do not ship.
public() { awk 'NF == 3 && $2 != "w" && $2 != "V" {print $3}' | grep -v '^__odr_asan\|^_init$\|^_fini$' | sort -u; }

check() { # library, symbols that it shows
    if ! diff <(echo "$declared") <(echo "$2"); then
        echo "what the headers declare (<) is not what $1 shows (>)" >&2
        exit 1
    fi
    echo "$1: $(wc -l <<<"$2") symbols, all of them public"
}

check "$shared" "$(nm -D --defined-only "$shared" | public)"
check "$archive" "$(nm -g --defined-only "$archive" | public)"
