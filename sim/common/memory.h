/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of a simulator. If there is none, the program ends. */
#ifndef SIM_COMMON_MEMORY_H
#define SIM_COMMON_MEMORY_H

#include <stddef.h>

/* `count` zeroed items. */
void *zeroed(size_t count, size_t size);

/* An array with room for one more item than `count`; it may have moved. */
void *grow(void *items, size_t count, size_t *capacity, size_t size);

#endif
