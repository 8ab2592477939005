/* SPDX-License-Identifier: Apache-2.0 */

/* The file systems that files of SQLite and LMDB must not be on. */
#ifndef OS_FILESYSTEM_H
#define OS_FILESYSTEM_H

#include <stdint.h>

/*
 * The name of the file system with this magic number (f_type of statfs) if it
 * must not be used: its files may be open on two machines, or its locks and
 * shared memory are unreliable. NULL if it may be used.
 */
const char *filesystem_refused(uint64_t magic);

/* The name of the file system if it is in memory only, so that nothing of it outlives a restart of the
 * machine; NULL if it is not. */
const char *filesystem_in_memory(uint64_t magic);

#endif
