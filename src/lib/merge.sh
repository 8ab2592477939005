#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the static library that is installed: one object with everything of
# ours in it, in which only the public symbols are visible. An archive of the
# separate objects would put names such as log_write() into every program that
# links it, and clash with the program's own.
#
#     merge.sh LD OBJCOPY AR INPUT.a OUTPUT.a
set -euo pipefail

ld=$1 objcopy=$2 ar=$3 input=$4 output=$5
object=${output%.a}.merged.o

"$ld" -r --whole-archive "$input" -o "$object"
"$objcopy" --localize-hidden "$object"
rm -f "$output"
"$ar" rcs "$output" "$object"
rm -f "$object"
