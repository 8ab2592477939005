#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a file as an array of bytes in C:  embed.sh FILE NAME
set -eu
printf '/* Made from %s. */\nstatic const unsigned char %s[] = {\n' "$(basename "$1")" "$2"
od -An -v -tx1 "$1" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
printf '};\n'
