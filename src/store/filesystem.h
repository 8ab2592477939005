/* SPDX-License-Identifier: Apache-2.0 */

/* Which file systems a SQLite file must not lie on. */
#ifndef STORE_FILESYSTEM_H
#define STORE_FILESYSTEM_H

#include <stdint.h>

/*
 * The name of a file system whose files may be open on two machines, or whose
 * locks and shared memory cannot be relied on, by its magic number (f_type of
 * statfs); NULL if it may be used.
 */
const char *filesystem_refused(uint64_t magic);

#endif
