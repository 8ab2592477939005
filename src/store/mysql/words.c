/* SPDX-License-Identifier: Apache-2.0 */

/* What stands in the columns of a result. It comes from a server: nothing is taken beyond its bounds. */
#include "store/mysql/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t mysql_word_u64(MYSQL_ROW row, int column)
{
    return row[column] ? strtoull(row[column], NULL, 10) : 0;
}

int64_t mysql_word_i64(MYSQL_ROW row, int column) { return row[column] ? strtoll(row[column], NULL, 10) : 0; }

void mysql_word_text(MYSQL_ROW row, int column, char *to, size_t size)
{
    name_copy(to, size, row[column] ? row[column] : "");
}

void mysql_word_process(MYSQL_ROW row, int column, const struct process_id *self,
                        struct process_id *ret_process)
{
    struct process_id told = {0};
    int pid;

    if (row[column] && sscanf(row[column], "%36s %d %" SCNu64 " %" SCNu64, told.boot_id, &pid, &told.pid_ns,
                              &told.start_ticks) == 4) {
        told.pid = pid;
        *ret_process = process_within_sight(&told, self);
    } else {
        *ret_process = (struct process_id){0};
    }
}
