#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gaveld(8), gaveld.yaml(5) and docs/HTTP.md tell of exactly what the program
# has: options, keys, variables, exit codes, events, errors; and the examples of
# the pages are good.
#
#     gaveld.sh ROOT GAVEL GAVELD
set -euo pipefail
source "$(dirname "$0")/lib.sh" "$@"

fail()
{
    echo "failed: $*"
    exit 1
}

# The pages without escapes. In files: grep -q ends early, and a pipe would break under it.
sed 's/\\//g' "$root/docs/man/gaveld.8.scd" >gaveld.8
sed 's/\\//g' "$root/docs/man/gaveld.yaml.5.scd" >gaveld.yaml.5
gaveld --help >help

# settings: the options that are settings, with --no- left out; others: the rest.
settings=$(sed -n '/^Settings/,/^$/p' help | grep -oE '^  --[][a-z-]+' | sed -E 's/^  --(\[no-\])?//')
others=$(sed '/^Settings/,$d' help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
(($(wc -w <<<"$settings") >= 25)) || fail "only these settings were found: $settings"
(($(wc -w <<<"$others") >= 7)) || fail "only these options were found: $others"

# Each setting is a key of gaveld.yaml(5), with its flag and its variable; and nothing else is.
for name in $settings; do
    variable=GAVELD_$(tr 'a-z-' 'A-Z_' <<<"$name")
    grep -qE "^\*[a-z_.]+\* \(\*--$name\*, \*$variable\*\)$" gaveld.yaml.5 ||
        fail "gaveld.yaml(5) does not tell of --$name and $variable"
done
while read -r name; do
    grep -qx -- "$name" <<<"$settings" || fail "gaveld.yaml(5) tells of --$name, which is not there"
done < <(sed -nE 's/^\*[a-z_.]+\* \(\*--([a-z-]+)\*.*/\1/p' gaveld.yaml.5)
for option in $others; do
    grep -qE "^(\*-.\*.*, )?\*$option\*" gaveld.8 || fail "gaveld(8) does not tell of $option"
done
while read -r option; do
    grep -qx -- "${option#--}" <<<"$settings" || grep -qx -- "$option" <<<"$others" ||
        fail "gaveld(8) tells of $option, which is not there"
done < <(grep -E '^(\*-.\*.*, )?\*--' gaveld.8 | grep -oE -- '--[a-z-]+')

# Exit codes, both ways.
codes=$(sed -n '/^Exit codes/,/^$/s/^ *\([0-9]\{1,3\}\)  .*/\1/p' help)
(($(wc -w <<<"$codes") >= 8)) || fail "only these exit codes were found: $codes"
for code in $codes; do
    grep -qE "^\*$code\*" gaveld.8 || fail "gaveld(8) does not tell of exit code $code"
    grep -qE "^\| $code " "$root/docs/OPERATIONS.md" || fail "docs/OPERATIONS.md does not say what to do after exit code $code"
done
for code in $(grep -oE '^\*[0-9]+\*' gaveld.8 | tr -d '*'); do
    grep -qx "$code" <<<"$codes" || fail "gaveld(8) tells of exit code $code, which is not there"
done

# Events and errors.
events=$(sed -nE 's/^ +X\([A-Z_]+, "([a-z_]+)"\).*/\1/p' "$root/src/daemon/shared/journal.h" | sort)
told=$(sed -n '/^### \/events/,/^## /p' "$root/docs/HTTP.md" | grep '^| `' | cut -d'|' -f2 | grep -oE '[a-z_]+' | sort)
(($(wc -w <<<"$events") >= 20)) || fail "only these events were found: $events"
[ "$events" = "$told" ] || fail "docs/HTTP.md has other events than src/daemon/shared/journal.h: $(diff <(echo "$told") <(echo "$events"))"
errors=0
while IFS='|' read -r _ code name _; do
    grep -qE "X\(${name//[ \`]/}, +${code// /}," "$root/include/gavel/status.h" || fail "docs/HTTP.md has another code for $name than <gavel/status.h>"
    errors=$((errors + 1))
done < <(sed -n '/^## Errors/,$p' "$root/docs/HTTP.md" | grep '^| 4')
((errors >= 12)) || fail "only $errors errors were found in docs/HTTP.md"

# The examples of the file; those of TLS need the files that they name.
mkdir etc
(cd etc && gavel cert init shop >/dev/null && gavel cert issue n1 >/dev/null && openssl rand -hex 32 >token)
sed -n '/^# EXAMPLES/,/^# SEE/p' gaveld.yaml.5 |
    awk '/^```/ { inside = !inside; count += inside; next } inside { print > ("example-" count ".yaml") }'
count=0
for example in example-*.yaml; do
    sed -i "s|/etc/gavel/|$scratch/etc/|" "$example"
    gaveld -c "$example" --check-config >out 2>&1 || fail "example $example: $(cat out)"
    grep -q "is good" out || fail "example $example is not called good: $(cat out)"
    count=$((count + 1))
done
((count == 2)) || fail "$count examples were found"
echo "good: gaveld(8), gaveld.yaml(5) and HTTP.md"
