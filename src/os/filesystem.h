/* SPDX-License-Identifier: Apache-2.0 */

/* Which file systems the files of SQLite and of LMDB must not lie on. */
#ifndef OS_FILESYSTEM_H
#define OS_FILESYSTEM_H

#include <stdint.h>

/*
 * The name of a file system whose files may be open on two machines, or whose
 * locks and shared memory cannot be relied on, by its magic number (f_type of
 * statfs); NULL if it may be used.
 */
const char *filesystem_refused(uint64_t magic);

#endif
