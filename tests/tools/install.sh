#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs below a temporary directory and uses what is there as a stranger
# would: by pkg-config, shared and static, C and C++.
#
#     install.sh ROOT BUILD
set -euo pipefail

root=$1
build=$2
source "$(dirname "$0")/scratch.sh"

DESTDIR=$scratch/stage meson install -C "$build" --no-rebuild --quiet
prefix=$scratch/stage$(meson introspect "$build" --buildoptions | tr '{' '\n' |
    sed -n 's/.*"name": "prefix", "value": "\([^"]*\)".*/\1/p')
library=$(dirname "$(find "$prefix" -name libgavel.a)")

for file in bin/gavel bin/gaveld include/gavel/gavel.h include/gavel/event.h include/gavel/settings.h include/gavel/status.h \
    share/man/man1/gavel.1 share/man/man8/gaveld.8 share/man/man5/gaveld.yaml.5 share/bash-completion/completions/gavel share/zsh/site-functions/_gavel \
    lib/systemd/system/gavel@.service lib/systemd/system/gaveld.service share/doc/gavel/HTTP.md share/doc/gavel/OPERATIONS.md share/doc/gavel/STORES.md; do
    [ -s "$prefix/$file" ] || fail "$file was not installed"
done
for file in libgavel.a libgavel.so pkgconfig/gavel.pc; do
    [ -s "$library/$file" ] || fail "$file was not installed"
done
for program in gavel gaveld; do
    "$prefix/bin/$program" --version >/dev/null || fail "the installed $program does not run"
done
[ -x "$prefix/libexec/gavel/gavel-guard" ] || fail "libexec/gavel/gavel-guard was not installed"
if grep -rlaF -e "$root/src/" -e "$root/include/" -e "$root/build/" "$prefix"; then fail "the files above name the directory they were built in"; fi

export PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch/stage
read -ra compile <<<"$(pkg-config --cflags gavel)"
read -ra link <<<"$(pkg-config --libs gavel)"
# libgavel.a with the shared libraries that it names as private. Not --static: that asks for what theirs need to be
# static too, which Debian does not bring along.
mapfile -t private < <(pkg-config --print-requires-private gavel)
read -ra link_static <<<"$(pkg-config --libs "${private[@]}") $(sed -n 's/^Libs.private: //p' "$library/pkgconfig/gavel.pc")"
export LD_LIBRARY_PATH=$library

cc -Wall -Wextra -Wpedantic -Werror "$root/docs/examples/leader.c" "${compile[@]}" "${link[@]}" -o "$scratch/shared"
cc -Wall -Wextra -Wpedantic -Werror "$root/docs/examples/leader.c" "${compile[@]}" "$library/libgavel.a" "${link_static[@]}" \
    -o "$scratch/static"
# Not by a pipe: grep -q ends early, and ldd would die of it.
[[ $(ldd "$scratch/shared") == *libgavel* ]] || fail "the shared example does not use libgavel.so"
[[ $(ldd "$scratch/static") != *libgavel* ]] || fail "the static example uses libgavel.so"

# Every function that the headers name can be linked, and nothing else is let out.
{
    echo '#include <gavel/gavel.h>'
    echo 'extern void (*const all[])(void);'
    echo 'void (*const all[])(void) = {'
    sed -e 's|/\*.*\*/||' -e '/^ *\/\?\*/d' "$prefix"/include/gavel/*.h | grep -v '^ *#' |
        grep -oP '\bgavel_[a-z_]+(?=\()' | sort -u | sed 's/.*/    (void (*)(void))&,/'
    echo '};'
    echo 'int main(void) { return all[0] == 0; }'
} >"$scratch/all.c"
grep -q gavel_is_leader "$scratch/all.c" || fail "the list of functions is not right"
cc "$scratch/all.c" "${compile[@]}" "${link[@]}" -o "$scratch/all_shared" || fail "libgavel.so lacks functions of its headers"
cc "$scratch/all.c" "${compile[@]}" "$library/libgavel.a" "${link_static[@]}" -o "$scratch/all_static" ||
    fail "libgavel.a lacks functions of its headers"
stray=$(nm -D --defined-only "$library/libgavel.so" | awk '$3 !~ /^gavel_/ { print $3 }')
[ -z "$stray" ] || fail "libgavel.so lets out: $stray"
for header in "$prefix"/include/gavel/*.h; do
    c++ -Wall -Wextra -Werror -fsyntax-only -x c++ "${compile[@]}" "$header" || fail "$header is not for C++"
done

# The example works: one leads, and when it leaves the other one does.
export XDG_STATE_HOME=$scratch/state
"$scratch/shared" >"$scratch/one.log" 2>&1 &
started+=($!)
wait_for "$scratch/one.log" 'I lead, with epoch 1'
"$scratch/static" >"$scratch/two.log" 2>&1 &
started+=($!)
"$prefix/bin/gavel" watch --group nightly --count 2 --timeout 10s >"$scratch/watch.log" 2>&1 &
started+=($!)
wait_for "$scratch/watch.log" '..*'
kill -TERM "${started[0]}"
wait_for "$scratch/one.log" 'I stopped: .*'
wait_for "$scratch/two.log" 'I lead, with epoch 2'
kill -TERM "${started[1]}"
wait "${started[0]}" || fail "the first example ended with $?"
wait "${started[1]}" || fail "the second example ended with $?"
echo "good: install"
