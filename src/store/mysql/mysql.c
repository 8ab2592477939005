/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `mysql://user@host:3306/database`: opening, probing and closing it;
 * internal.h has the picture.
 */
#include "store/mysql/internal.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/process.h"
#include "store/secret.h"

#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_PATIENCE (10 * NS_PER_S) /* a column that is added may copy a table */

/* The library ignores SIGPIPE from then on, as writing with TLS needs; but a handler of the program stays. */
static void start_library(void)
{
    struct sigaction before;

    (void)sigaction(SIGPIPE, NULL, &before); /* cannot fail with a valid signal, here and below */
    (void)mysql_library_init(0, NULL, NULL); /* if not, it says so again when used */
    if (before.sa_handler != SIG_DFL)
        (void)sigaction(SIGPIPE, &before, NULL);
}

static void free_store(struct mysql_store *mysql)
{
    mysql_target_forget(&mysql->target);
    if (mysql_name_done(mysql))
        mysql_target_done(&mysql->target);
    free(mysql->url);
    free(mysql);
}

static enum gavel_status check_url(const char *rest, struct gavel_error *error)
{
    struct mysql_target target;
    enum gavel_status status = mysql_target_parse(rest, &target, error);

    mysql_target_done(&target);
    return status;
}

/* What the URL says beats the environment, as in mysql_target_identity(). */
static void caution(const char *rest, char *ret_text, size_t size)
{
    struct mysql_target target;

    if (mysql_target_parse(rest, &target, NULL) == GAVEL_OK) {
        secret_caution(target.key, ret_text, size);
        secret_caution(target.options ? target.options : target.environment.options, ret_text, size);
    }
    mysql_target_done(&target);
}

static enum gavel_status open_store(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* its start is not safe for threads */
    struct mysql_store *mysql = calloc(1, sizeof *mysql);
    enum gavel_status status;

    (void)pthread_once(&once, start_library);
    if (!mysql)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening mysql:%.100s", rest);
    mysql->pid = getpid();
    status = mysql_target_parse(rest, &mysql->target, error);
    if (status == GAVEL_OK && asprintf(&mysql->url, "mysql:%s", rest) < 0)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening mysql:%.100s", rest);
    if (status != GAVEL_OK) {
        free_store(mysql);
        return status;
    }
    if (mysql->target.socket)
        (void)snprintf(mysql->shown, sizeof mysql->shown, "mysql:%.50s/%.30s", mysql->target.socket,
                       mysql->target.database);
    else
        (void)snprintf(mysql->shown, sizeof mysql->shown, "mysql://%.50s:%d/%.30s", mysql->target.host,
                       mysql->target.port, mysql->target.database);
    if (process_self(&mysql->self) != GAVEL_OK)
        mysql->self = (struct process_id){0}; /* not told: the lease decides */
    status = mysql_link_open(mysql, clock_now() + STORE_OPEN_PATIENCE, error);
    if (status != GAVEL_OK) {
        if (status == GAVEL_ERR_TIMEOUT)
            status =
                error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                          "%s does not answer; check that the server runs and can be reached", mysql->shown);
        free_store(mysql);
        return status;
    }
    *ret_store = &mysql->store;
    return GAVEL_OK;
}

static enum gavel_status probe_store(struct store *store, struct gavel_error *error)
{
    struct mysql_store *mysql = (struct mysql_store *)store;
    gavel_ns until = clock_now() + PROBE_PATIENCE;
    enum gavel_status status = GAVEL_OK;

    if (mysql->pid != getpid())
        return error_set(error, GAVEL_ERR_STATE,
                         "%s was opened before this process was forked; open it again in the child",
                         mysql->shown);
    if (!mysql_link_is_up(mysql))
        status = mysql_link_open(mysql, until, error);
    if (status != GAVEL_OK)
        return status;
    status = mysql_table_prepare(mysql, until, error);
    if (status == GAVEL_OK)
        status = mysql_rights_try(mysql, until, error);
    if (status != GAVEL_OK)
        mysql_link_drop(mysql); /* whatever state it is in */
    return status;
}

/* With what is kept of its epochs. */
static enum gavel_status remove_group(struct store *store, const char *group, uint64_t version,
                                      gavel_ns until, struct gavel_error *error)
{
    struct mysql_store *mysql = (struct mysql_store *)store;
    const char *table = mysql->target.table;
    struct text_buffer text = {0};
    enum gavel_status status = GAVEL_OK;

    if (!mysql_link_is_up(mysql))
        status = mysql_link_open(mysql, until, error);
    if (status != GAVEL_OK)
        return status;
    text_buffer_print(&text,
                      "DELETE l, e FROM `%s%s` l LEFT JOIN `%s%s` e ON e.lock_key = l.lock_key"
                      " WHERE l.held = 0 AND l.version = %" PRIu64 " AND l.lock_key = _utf8mb4 x'",
                      table, mysql_table_suffixes[MYSQL_TABLE_LOCKS], table,
                      mysql_table_suffixes[MYSQL_TABLE_EPOCHS], version);
    for (; *group; group++)
        text_buffer_print(&text, "%02x", (unsigned char)*group);
    text_buffer_print(&text, "'");
    if (text.is_short)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while asking %s", mysql->shown);
    else if (!mysql_link_do(mysql, text.bytes, until, NULL))
        status = mysql_trouble_explain(mysql, error);
    text_buffer_done(&text);
    return status;
}

static void close_store(struct store *store)
{
    struct mysql_store *mysql = (struct mysql_store *)store;

    if (mysql->pid != getpid())
        return; /* in a forked child: the connection is the parent's */
    mysql_link_close(mysql);
    free_store(mysql);
}

static bool own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE])
{
    struct mysql_store *mysql = (struct mysql_store *)store;
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;

    return mysql->link.mysql &&
           getsockname(mysql_get_socket(mysql->link.mysql), (struct sockaddr *)&address, &size) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6) &&
           getnameinfo((struct sockaddr *)&address, size, ret_address, STORE_ADDRESS_SIZE, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

const struct store_driver store_mysql = {
    .scheme = "mysql",
    .summary = "mysql://USER@HOST:PORT/DATABASE  a table of MariaDB or MySQL",
    .capabilities =
        {
            .name = "mysql",
            .preset = "database",
            .clock = STORE_CLOCK_STEPS,
            .is_shared = true,
            .sees_processes = true,
        },
    .check_url = check_url,
    .caution = caution,
    .remove = remove_group,
    .open = open_store,
    .probe = probe_store,
    .migrate = mysql_migrate,
    .own_address = own_address,
    .run = mysql_run,
    .wait = mysql_wait,
    .close = close_store,
};
