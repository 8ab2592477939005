/* SPDX-License-Identifier: Apache-2.0 */

/* Seeds from the kernel. */
#ifndef OS_ENTROPY_H
#define OS_ENTROPY_H

#include <stdint.h>

uint64_t entropy_u64(void);

#endif
