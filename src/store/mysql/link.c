/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection to the server, and its deadlines. The library is used in its
 * non-blocking form: it hands back what it waits for, and the waiting is done
 * here, up to the deadline. Whatever came too late, the socket is closed
 * without a further word, and the next run() makes a new one.
 *
 * Two parts of the library wait by themselves all the same. With TLS the
 * handshake reads the socket directly; a time-out of the socket ends that. And
 * once it is over, the socket must not block, or later reads would.
 */
#include "base/error.h"
#include "os/clock.h"
#include "store/mysql/internal.h"

#include <errmsg.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define HANDSHAKE_READS 3 /* that wait for the server, with TLS */

static void note_trouble(struct mysql_link *link)
{
    link->trouble.code = mysql_errno(link->mysql);
    (void)snprintf(link->trouble.text, sizeof link->trouble.text, "%s", mysql_error(link->mysql));
    if (link->trouble.code == 0)
        link->trouble =
            (struct mysql_trouble){.code = CR_UNKNOWN_ERROR, .text = "the library gives no reason"};
}

static int events_of(int wanted)
{
    return (wanted & MYSQL_WAIT_READ ? POLLIN : 0) | (wanted & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
           (wanted & MYSQL_WAIT_EXCEPT ? POLLPRI : 0);
}

/*
 * A host may have several addresses, which the library tries one after the
 * other: one that is dead must leave time for the next, so each gets half of
 * what is left.
 */
static gavel_ns connects_until(int fd, gavel_ns until)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    gavel_ns now = clock_now();

    if (until == NEVER || getpeername(fd, (struct sockaddr *)&peer, &size) == 0)
        return until;
    return now + ns_max(until - now, 0) / 2;
}

/*
 * Waits for what the library wants. When it is too late the socket is shut
 * down, and whatever the library does with it next fails at once.
 */
static int await(struct mysql_link *link, int wanted, gavel_ns until)
{
    struct pollfd fd = {.fd = mysql_get_socket(link->mysql), .events = (short)events_of(wanted)};
    gavel_ns limit = connects_until(fd.fd, until);
    int ready = 0;

    do {
        gavel_ns left = ns_max(limit - clock_now(), 0);
        struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};

        ready = ppoll(&fd, 1, limit == NEVER ? NULL : &timeout, NULL);
    } while ((ready < 0 && errno == EINTR) || (ready == 0 && clock_now() < limit));
    if (ready <= 0 && clock_now() < until) {
        errno = ETIMEDOUT; /* the library tells it if there is no other address */
        return MYSQL_WAIT_TIMEOUT;
    }
    if (ready <= 0) {
        link->is_late = true;
        (void)shutdown(fd.fd, SHUT_RDWR); /* it may not be connected */
        return MYSQL_WAIT_TIMEOUT | (wanted & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE));
    }
    return (fd.revents & (POLLIN | POLLHUP | POLLERR) ? wanted & MYSQL_WAIT_READ : 0) |
           (fd.revents & (POLLOUT | POLLHUP | POLLERR) ? wanted & MYSQL_WAIT_WRITE : 0) |
           (fd.revents & POLLPRI ? wanted & MYSQL_WAIT_EXCEPT : 0);
}

/* Children of this process must not have the socket, and the handshake of TLS must not wait too long for
 * it. */
static void harden(const struct mysql_store *mysql, gavel_ns until)
{
    int fd = mysql_get_socket(mysql->link.mysql);
    gavel_ns left = ns_max(until - clock_now(), NS_PER_MS) / HANDSHAKE_READS;
    struct timeval timeout = {.tv_sec = left / NS_PER_S, .tv_usec = left % NS_PER_S / NS_PER_US};

    if (fd < 0)
        return;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail on a socket, here and below */
    if (mysql->target.has_tls && until != NEVER) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    }
}

static bool set_options(const struct mysql_store *mysql)
{
    const struct mysql_target *target = &mysql->target;
    MYSQL *handle = mysql->link.mysql;
    unsigned patience_s = 1; /* for a name that cannot be resolved; the rest has the deadline */
    unsigned protocol = target->socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    my_bool yes = 1;
    my_bool no = 0;

    /* An option that the library does not know would be one that it does not follow. */
    if (mysql_optionsv(handle, MYSQL_OPT_NONBLOCK, NULL) ||
        mysql_optionsv(handle, MYSQL_OPT_CONNECT_TIMEOUT, &patience_s) ||
        mysql_optionsv(handle, MYSQL_OPT_PROTOCOL, &protocol) ||
        mysql_optionsv(handle, MYSQL_OPT_RECONNECT, &no) ||
        mysql_optionsv(handle, MYSQL_OPT_LOCAL_INFILE, &(unsigned){0}) ||
        mysql_optionsv(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4") ||
        mysql_optionsv(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "gavel"))
        return false;
    if (!target->has_tls)
        return true;
    return !(mysql_optionsv(handle, MYSQL_OPT_SSL_ENFORCE, &yes) ||
             mysql_optionsv(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes) ||
             (target->ca && mysql_optionsv(handle, MYSQL_OPT_SSL_CA, target->ca)) ||
             (target->cert && mysql_optionsv(handle, MYSQL_OPT_SSL_CERT, target->cert)) ||
             (target->key && mysql_optionsv(handle, MYSQL_OPT_SSL_KEY, target->key)));
}

static bool connect_server(struct mysql_store *mysql, const struct mysql_identity *identity, gavel_ns until)
{
    const struct mysql_target *target = &mysql->target;
    struct mysql_link *link = &mysql->link;
    MYSQL *connected = NULL;
    int wanted = mysql_real_connect_start(
        &connected, link->mysql, target->host, identity->user[0] ? identity->user : NULL, identity->password,
        target->database, target->port, target->socket, CLIENT_MULTI_STATEMENTS);

    while (wanted) {
        harden(mysql, until);
        wanted = mysql_real_connect_cont(&connected, link->mysql, await(link, wanted, until));
    }
    if (!connected)
        return false;
    harden(mysql, until);
    if (target->has_tls) {
        int fd = mysql_get_socket(link->mysql);

        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    /* It is read anew for the next connection. */
    if (link->mysql->passwd)
        explicit_bzero(link->mysql->passwd, strlen(link->mysql->passwd));
    return true;
}

enum gavel_status mysql_link_open(struct mysql_store *mysql, gavel_ns until, struct gavel_error *error)
{
    struct mysql_link *link = &mysql->link;
    struct mysql_identity identity;
    enum gavel_status status;
    bool is_good;

    mysql_link_drop(mysql);
    status = mysql_name_find(mysql, until, error);
    if (status != GAVEL_OK)
        return status;
    status = mysql_target_identity(&mysql->target, &identity, error);
    if (status != GAVEL_OK)
        return status;
    link->trouble = (struct mysql_trouble){0};
    link->is_late = false;
    link->mysql = mysql_init(NULL);
    if (!link->mysql) {
        explicit_bzero(&identity, sizeof identity);
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while connecting to %s", mysql->shown);
    }
    is_good = set_options(mysql) && connect_server(mysql, &identity, until);
    explicit_bzero(&identity, sizeof identity);
    if (!is_good) {
        note_trouble(link);
        status = mysql_trouble_explain(mysql, error);
        mysql_link_drop(mysql);
        return status;
    }
    status = mysql_session_begin(mysql, until, error);
    if (status != GAVEL_OK)
        mysql_link_drop(mysql);
    return status;
}

bool mysql_link_is_up(struct mysql_store *mysql)
{
    struct pollfd fd = {.events = POLLIN};

    if (!mysql->link.mysql)
        return false;
    /* A server says nothing on its own but farewell: after a long silence, a restart or a KILL. */
    fd.fd = mysql_get_socket(mysql->link.mysql);
    if (poll(&fd, 1, 0) == 0)
        return true;
    mysql_link_drop(mysql);
    return false;
}

bool mysql_link_send(struct mysql_store *mysql, const char *sql, size_t length, gavel_ns until)
{
    struct mysql_link *link = &mysql->link;
    int failed = 1;
    int wanted;

    link->trouble = (struct mysql_trouble){0};
    link->is_late = false;
    wanted = mysql_real_query_start(&failed, link->mysql, sql, length);
    while (wanted)
        wanted = mysql_real_query_cont(&failed, link->mysql, await(link, wanted, until));
    if (failed)
        note_trouble(link);
    return !failed;
}

bool mysql_link_take(struct mysql_store *mysql, bool is_first, gavel_ns until, uint64_t *ret_changed,
                     MYSQL_RES **ret_rows)
{
    struct mysql_link *link = &mysql->link;
    MYSQL_RES *rows = NULL;
    int failed = 0;
    int wanted;

    if (!is_first) {
        failed = -1;
        wanted = mysql_next_result_start(&failed, link->mysql);
        while (wanted)
            wanted = mysql_next_result_cont(&failed, link->mysql, await(link, wanted, until));
    }
    if (failed) {
        note_trouble(link);
        return false;
    }
    wanted = mysql_store_result_start(&rows, link->mysql);
    while (wanted)
        wanted = mysql_store_result_cont(&rows, link->mysql, await(link, wanted, until));
    if (!rows && mysql_field_count(link->mysql) > 0) {
        note_trouble(link);
        return false;
    }
    *ret_changed = rows ? 0 : mysql_affected_rows(link->mysql);
    *ret_rows = rows;
    return true;
}

bool mysql_link_do(struct mysql_store *mysql, const char *sql, gavel_ns until, MYSQL_RES **ret_rows)
{
    MYSQL_RES *rows = NULL;
    uint64_t changed;
    bool is_good = mysql_link_send(mysql, sql, strlen(sql), until);

    is_good = is_good && mysql_link_take(mysql, true, until, &changed, &rows);
    while (is_good && mysql_more_results(mysql->link.mysql)) {
        mysql_free_result(rows); /* safe on NULL */
        rows = NULL;
        is_good = mysql_link_take(mysql, false, until, &changed, &rows);
    }
    if (!is_good || !ret_rows)
        mysql_free_result(rows);
    else
        *ret_rows = rows;
    return is_good;
}

void mysql_link_drop(struct mysql_store *mysql)
{
    struct mysql_link *link = &mysql->link;

    if (!link->mysql)
        return;
    if (mysql_get_socket(link->mysql) >= 0)
        (void)shutdown(mysql_get_socket(link->mysql), SHUT_RDWR); /* so that closing has nobody to talk to */
    mysql_close(link->mysql);
    link->mysql = NULL;
}

void mysql_link_close(struct mysql_store *mysql)
{
    if (!mysql->link.mysql)
        return;
    mysql_close(mysql->link.mysql);
    mysql->link.mysql = NULL;
}
