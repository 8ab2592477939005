/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The address of the server, by its name and in time. The library asks the
 * resolver itself, and waits for as long as that takes: when name servers do
 * not answer, that is longer than any deadline. So the name is looked up here
 * first, by a thread of the C library, and the connection is only begun when
 * there is an answer.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/mysql/internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What a thread may still be writing to when nobody waits for it any more. */
struct mysql_name {
    struct gaicb query;
    struct addrinfo hints;
};

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static void end_query(struct mysql_store *mysql)
{
    if (mysql->name && mysql->name->query.ar_result)
        freeaddrinfo(mysql->name->query.ar_result);
    free(mysql->name);
    mysql->name = NULL;
}

static bool begin_query(struct mysql_store *mysql)
{
    struct gaicb *list[1];

    mysql->name = calloc(1, sizeof *mysql->name);
    if (!mysql->name)
        return false;
    mysql->name->hints.ai_socktype = SOCK_STREAM;
    mysql->name->query.ar_name = mysql->target.host;
    mysql->name->query.ar_request = &mysql->name->hints;
    list[0] = &mysql->name->query;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
        return true;
    end_query(mysql);
    return false;
}

enum gavel_status mysql_name_find(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    const struct gaicb *list[1];
    int outcome;

    if (mysql->target.socket || is_address(mysql->target.host))
        return GAVEL_OK;
    /* One that is on its way since an earlier call is as good. */
    if (!mysql->name && !begin_query(mysql))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory or thread is left to look up the host of %s",
                         mysql->shown);
    list[0] = &mysql->name->query;
    while ((outcome = gai_error(&mysql->name->query)) == EAI_INPROGRESS) {
        gavel_ns left = until - clock_now();
        const struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};

        if (left <= 0)
            return error_set(error, GAVEL_ERR_TIMEOUT,
                             "no name server gave the address of the host of %s in time", mysql->shown);
        (void)gai_suspend(list, 1, until == NEVER ? NULL : &timeout); /* the loop looks why it ended */
    }
    end_query(mysql);
    if (outcome)
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE, "the host of %s has no address: %s",
                         mysql->shown, gai_strerror(outcome));
    return GAVEL_OK;
}

bool mysql_name_done(struct mysql_store *mysql)
{
    if (!mysql->name)
        return true;
    /* What a thread is at work on cannot be taken from it. */
    if (gai_error(&mysql->name->query) == EAI_INPROGRESS &&
        gai_cancel(&mysql->name->query) == EAI_NOTCANCELED)
        return false;
    end_query(mysql);
    return true;
}
