#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/release lets a tree pass only if version, changelog and tag agree, and
# says what is missing otherwise.
#
#     release.sh ROOT
set -euo pipefail

root=$1
source "$(dirname "$0")/../tools/scratch.sh"
tree=$scratch/tree

unset "${!GIT_@}"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
in_tree() { git -C "$tree" -c user.name=test -c user.email=test@example.org "$@"; }

# commit VERSION HEADING
commit()
{
    printf "project('gavel', 'c',\n  version: '%s',\n)\n" "$1" >"$tree/meson.build"
    printf '# Changelog\n\n## %s\n\nNews.\n\n## 0.1.0 (2001-01-01)\n' "$2" >"$tree/CHANGELOG.md"
    in_tree add -A && in_tree commit -qm "$2"
}

# refused TEXT: it does not pass, and says TEXT.
refused()
{
    ! "$root/tools/release" "$tree" >"$scratch/said" 2>&1 || fail "it passes, although: $1"
    grep -qF -- "$1" "$scratch/said" || fail "it does not say \"$1\" but: $(cat "$scratch/said")"
}

git init -q "$tree"
commit 0.2.0 '0.2.0 (unreleased)' && refused 'has no date'
commit 0.2.0 '0.3.0 (2001-01-02)' && refused 'make them agree'
commit 0.2 '0.2 (2001-01-02)' && refused 'should look like 1.2.3'
commit 0.2.0 '0.2.0 (2001-01-02)' && refused "git tag -a v0.2.0 -m 'gavel 0.2.0'"
in_tree tag -a v0.2.0 -m 'gavel 0.2.0'
"$root/tools/release" "$tree" >"$scratch/said" 2>&1 || fail "a release does not pass: $(cat "$scratch/said")"
echo more >>"$tree/CHANGELOG.md" && refused 'not committed'
in_tree commit -qam more && refused 'not of this commit'
echo "good: tools/release"
