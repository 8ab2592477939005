/* SPDX-License-Identifier: Apache-2.0 */

/* What libFuzzer calls, and what replay.c calls without it. Anything wrong ends in abort() or a sanitizer. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
