/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The servers whose stores `gavel bench --servers FILE` measures, and what to
 * measure beside them. The file has one of these per line:
 *
 *     store mysql mysql://gavel@127.0.0.1:3306/bench?options=/etc/gavel/my.cnf
 *     count mysql mariadb -BNe "SHOW GLOBAL STATUS LIKE 'Questions'"
 *     rival mysql lock table: lock-table "$KEY" "$ID"
 *
 * A count is a shell command that prints how many requests the server has had
 * so far: lines of a name and a number, the sum of all first. A rival is a
 * command that takes part in an election of its own, in the group KEY of its
 * environment as ID, and prints a line when it leads. Empty lines and those
 * that begin with # are ignored.
 */
#ifndef BENCH_STORES_SERVERS_H
#define BENCH_STORES_SERVERS_H

#include "bench/props/rig.h"

#define SERVERS_MAX 6
#define RIVALS_MAX 6
#define SERVER_NAME_MAX 16
#define SERVER_TITLE_MAX 48
#define SERVER_COMMAND_MAX 1024

struct server_store {
    char name[SERVER_NAME_MAX];
    char url[RIG_DIRECTORY_MAX + 32]; /* as in struct rig */
    char count[SERVER_COMMAND_MAX];   /* "": nobody counts */
};

struct server_rival {
    size_t store; /* its place in stores */
    char title[SERVER_TITLE_MAX];
    char command[SERVER_COMMAND_MAX];
};

struct servers {
    struct server_store stores[SERVERS_MAX];
    size_t store_count;
    struct server_rival rivals[RIVALS_MAX];
    size_t rival_count;
};

/* ERR_IO if it cannot be read, ERR_INVALID if it makes no sense; *error names the line. */
GAVEL_CHECKED enum gavel_status servers_read(const char *path, struct servers *ret_servers,
                                             struct gavel_error *error);

#endif
