#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what the public headers declare, and nothing else.
set -euo pipefail

library=$1
headers=$(dirname "$0")/../../include/gavel

declared=$(sed -n 's/^GAVEL_API.*[ *]\(gavel_[a-z_]*\)[([].*/\1/p; /^GAVEL_API/{/[([]/!{N;s/.*[ *]\(gavel_[a-z_]*\)(.*/\1/p}}' \
    "$headers"/*.h | sort -u)
# The sanitizers add symbols of their own, which do not ship.
exported=$(nm -D --defined-only "$library" | awk '$2 != "w" {print $3}' | grep -v '^__odr_asan\|^_init$\|^_fini$' | sort -u)

if [ "$(wc -l <<<"$declared")" -lt 25 ]; then
    echo "only $(wc -l <<<"$declared") declarations found; the headers changed their form and this test must follow" >&2
    exit 1
fi
if ! diff <(echo "$declared") <(echo "$exported"); then
    echo "what the headers declare (<) is not what $library exports (>)" >&2
    exit 1
fi
echo "$(wc -l <<<"$exported") symbols, all of them public"
