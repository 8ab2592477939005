#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each rule of tools/tidy can fail: a small tree that keeps them all, then one
# mistake at a time, each of which must be told with its place and its reason.
set -euo pipefail

root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
spdx='/* SPDX-License-Identifier: Apache-2.0 */'

fresh()
{
    rm -rf "$tree"
    mkdir -p "$tree/src/base" "$tree/src/core/candidate" "$tree/docs" "$tree/tools" "$tree/build/src/base" "$tree/build/src/core/candidate"
    echo "# base" >"$tree/src/base/README.md"
    echo "# core" >"$tree/src/core/README.md"
    echo "# candidate" >"$tree/src/core/candidate/README.md"
    printf '%s\n#ifndef BASE_A_H\n#define BASE_A_H\nvoid base_a(void);\nvoid log_write(void);\n#endif\n' "$spdx" >"$tree/src/base/a.h"
    printf '%s\n#include "base/a.h"\nvoid base_a(void)\n{\n}\nvoid log_write(void)\n{\n}\n' "$spdx" >"$tree/src/base/a.c"
    printf '%s\n#include "base/a.h"\nvoid c(void);\nvoid c(void)\n{\n    base_a();\n}\n' "$spdx" >"$tree/src/core/candidate/c.c"
    printf '%s\n#ifndef P_H\n#define P_H\n"a planted mistake of ours"\n#endif\n' "$spdx" >"$tree/src/base/planted.h"
    printf '# SPDX-License-Identifier: Apache-2.0\nstatic_library()\n' >"$tree/src/core/candidate/meson.build"
    printf '# SPDX-License-Identifier: Apache-2.0\ntest:\n' >"$tree/Makefile"
    printf '%s\n\nint main(void) { return 0; }\n' "$spdx" >"$tree/docs/example.c"
    printf 'Say `make test`. [See](docs/b.md)\n<!-- example: docs/example.c -->\n```c\nint main(void) { return 0; }\n```\n' >"$tree/README.md"
    echo "# b" >"$tree/docs/b.md"
    printf '| word | meaning |\n|---|---|\n| candidate | a process that takes part |\n' >"$tree/docs/GLOSSARY.md"
    printf '#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\nset -euo pipefail\n' >"$tree/tools/x"
    chmod +x "$tree/tools/x"
}

compile()
{
    for part in base/a core/candidate/c; do
        gcc -I "$tree/src" -I "$tree/include" -c "$tree/src/$part.c" -o "$tree/build/src/$part.o"
        name=${part%/*}
        rm -f "$tree/build/src/$name/lib${name##*/}.a"
        ar rc "$tree/build/src/$name/lib${name##*/}.a" "$tree/build/src/$part.o"
    done
}

# expect PLACE REASON: tidy must fail and say so; the tree is mended for the next mistake.
expect()
{
    compile
    if "$root/tools/tidy" --build "$tree/build" "$tree" >"$scratch/out"; then
        echo "failed: tidy did not see: $1: $2"
        exit 1
    fi
    if (($(grep -F -- "$1" "$scratch/out" | grep -cF -- "$2") == 0)); then
        echo "failed: tidy did not say: $1: $2"
        cat "$scratch/out"
        exit 1
    fi
    echo "good: $1: $2"
    fresh
}

lines()
{
    for ((i = 0; i < $1; i++)); do echo "${2:-}"; done
}

fresh
compile
echo 'Nobody will book a station for that matter.' >>"$tree/docs/b.md"
echo '/* It will end; the rest is a matter of time. */' >>"$tree/src/base/a.c"
"$root/tools/tidy" --build "$tree/build" "$tree" || {
    echo "failed: tidy is not content with a tidy tree"
    exit 1
}
fresh

sed -i 1d "$tree/src/base/a.c" && expect src/base/a.c:1 "no SPDX line"
lines 800 >>"$tree/src/base/a.c" && expect src/base/a.c "a file of 808 lines"
{ echo 'void f(void);' && echo 'void f(void)' && echo '{' && lines 69 '    ;' && echo '}'; } >>"$tree/src/base/a.c" && expect src/base/a.c:11 "a function of 71 lines"
echo '/* TO''DO: more */' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "left to do"
echo 'see /ro''ot/notes' >>"$tree/docs/b.md" && expect docs/b.md:2 "path of one machine"
printf '\tint x;\n' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "a tab"
printf 'int x; \n' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "space at the end"
printf 'int x; /* goes\n          on */\n' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "goes on below"
printf '/* A sentence.\n */\n' >>"$tree/src/base/a.c" && expect src/base/a.c:10 "alone on its line"
printf 'int x = sizeof(int);\nint y = sizeof(x);\n' >>"$tree/src/base/a.c" && expect src/base/a.c:10 "write sizeof x"
printf '%s\n    if (status != GAVEL_OK)\n    if (!status)\n' "$spdx" >"$tree/src/base/p.c" && expect src/base/p.c:3 "compare it with GAVEL_OK"
printf '%s\n    return status ? status : f();\n' "$spdx" >"$tree/src/base/p.c" && expect src/base/p.c:2 "compare it with GAVEL_OK"
sed -i '/#define BASE_A_H/d' "$tree/src/base/a.h" && expect src/base/a.h:1 "no include guard"
echo 'const char *asked = "get''env";' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "secure_getenv"
echo 'void sea''t_take(void);' >>"$tree/src/base/a.h" && expect src/base/a.h:7 '"sea''t" is a metaphor'
echo 'The cour''ier takes it.' >>"$tree/docs/b.md" && expect docs/b.md:2 '"cour''ier" is a metaphor'
echo 'void *ret_wi''ll;' >>"$tree/src/base/a.c" && expect src/base/a.c:9 '"_wi''ll" is a metaphor'
echo 'const char *s = "no such fol''der";' >>"$tree/src/base/a.c" && expect src/base/a.c:9 "say directory"
echo 'void make_fol''der(void);' >>"$tree/src/base/a.h" && expect src/base/a.h:7 "say directory"
echo 'In this fol''der.' >>"$tree/docs/b.md" && expect docs/b.md:2 "say directory"
mkdir "$tree/src/core/candidate/attic" && touch "$tree/src/core/candidate/attic/a" && expect src/core/candidate/attic '"attic" is no word of docs/GLOSSARY.md'
sed -i '/candidate/d' "$tree/docs/GLOSSARY.md" && expect src/core/candidate: '"candidate" is no word of docs/GLOSSARY.md'
rm "$tree/src/core/candidate/README.md" && expect src/core/candidate/README.md "is missing"
mkdir "$tree/src/core/attic" && expect src/core/attic/ "in no table"
mkdir "$tree/docs/many" && touch "$tree/docs/many/"{1..41} && expect docs/many "has 41 files"
rm "$tree/src/base/README.md" && expect src/base/README.md "is missing"
printf '| file | idea |\n|---|---|\n| `planted.h` | ours |\n' >>"$tree/src/base/README.md" && expect src/base/README.md:1 "lacks a.c"
printf '| file | idea |\n|---|---|\n| `a.c`, `gone.c` | ours, with `other.c` |\n' >>"$tree/src/base/README.md" && expect src/base/README.md:4 "there is no gone.c here"
mkdir "$tree/src/attic" && expect src/attic/ "in no table"
mkdir "$tree/src/store" && touch "$tree/src/store/s.h" && sed -i '2i #include "store/s.h"' "$tree/src/core/candidate/c.c" && expect src/core/candidate/c.c:2 "candidate may not use store"
mkdir -p "$tree/include/gavel" && touch "$tree/include/gavel/gavel.h" && sed -i '2i #include <gavel/gavel.h>' "$tree/src/core/candidate/c.c" && expect src/core/candidate/c.c:2 "may not use libgavel"
sed -i 's/    base_a();/    extern long time(long *); time(0);/' "$tree/src/core/candidate/c.c" && expect src/core/candidate "pure code may not call time"
sed -i 's/    base_a();/    log_write();/' "$tree/src/core/candidate/c.c" && expect src/core/candidate "pure code may not call log_write"
mkdir -p "$tree/build/src/cli" && echo 'int planted_bug; int main(void) { return 0; }' | gcc -x c - -o "$tree/build/src/cli/gavel" && expect cli/gavel "symbol planted_bug"
mkdir -p "$tree/build/src/cli" && echo 'const char *s = "a planted mistake of ours"; int main(void) { return 0; }' | gcc -x c - -o "$tree/build/src/cli/gavel" && expect cli/gavel "a planted mistake of ours"
printf '%s\n    if (a && !PLANTED(B))\n' "$spdx" >"$tree/src/base/p.c" && expect src/base/p.c:2 "a planted bug inside a rule"
printf '%s\n    return a || PLANTED(B);\n' "$spdx" >"$tree/src/core/candidate/p.c" && expect src/core/candidate/p.c:2 "a planted bug inside a rule"
printf '%s\n    if (PLANTED(B) && a)\n        a = !PLANTED(C);\n' "$spdx" >"$tree/src/base/p.c" && expect src/base/p.c:3 "a planted bug inside a rule"
echo '[gone](docs/c.md)' >>"$tree/README.md" && expect README.md:6 "does not exist"
echo '<img src="docs/c.svg">' >>"$tree/README.md" && expect README.md:6 "does not exist"
echo '`make coffee`' >>"$tree/README.md" && expect README.md:6 "make coffee is no target"
sed -i 's/return 0/return 1/' "$tree/docs/example.c" && expect README.md:2 "does not show docs/example.c"
rm "$tree/docs/example.c" && expect README.md:2 "which does not exist"
chmod -x "$tree/tools/x" && expect tools/x:1 "not executable"
mkdir -p "$tree/tests" && sed "\$a date $(printf '\174') head -n 1" "$tree/tools/x" >"$tree/tests/t.sh" && chmod +x "$tree/tests/t.sh" && expect tests/t.sh:4 "ends its pipe early"
sed -i 3d "$tree/tools/x" && expect tools/x:1 "set -euo pipefail"
mkdir -p "$tree/tests" && sed '$a run_tests "$@"' "$tree/tools/x" >"$tree/tests/t.sh" && chmod +x "$tree/tests/t.sh" && expect tests/t.sh:1 "does not run them"
