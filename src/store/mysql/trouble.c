/* SPDX-License-Identifier: Apache-2.0 */

/* The errors of the server and of its library, once, in gavel's words: what happened, why, what to do
 * next. */
#include "base/error.h"
#include "store/mysql/internal.h"

#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 255 /* bytes that a reply can hold */

/* Of MySQL alone; the headers of MariaDB do not have it. */
#define NOT_THE_PRIMARY 3100 /* ER_RUN_HOOK_ERROR: replication by a group has refused a transaction */

bool mysql_trouble_passes(unsigned code) { return code == ER_LOCK_DEADLOCK || code == ER_LOCK_WAIT_TIMEOUT; }

bool mysql_trouble_is_loss(unsigned code)
{
    switch (code) {
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST:
    case CR_SERVER_LOST_EXTENDED:
    case CR_COMMANDS_OUT_OF_SYNC:
    case CR_MALFORMED_PACKET:
    case CR_UNKNOWN_ERROR:
    case CR_SSL_CONNECTION_ERROR:
    case CR_OUT_OF_MEMORY:
    case ER_SERVER_SHUTDOWN:
    case ER_CONNECTION_KILLED:
    case ER_NET_PACKETS_OUT_OF_ORDER:
    case ER_NET_READ_ERROR:
    case ER_NET_READ_INTERRUPTED:
    case ER_NET_ERROR_ON_WRITE:
    case ER_NET_WRITE_INTERRUPTED:
    case ER_QUERY_INTERRUPTED:
        return true;
    default:
        return false;
    }
}

static bool is_read_only(unsigned code)
{
    return code == ER_OPTION_PREVENTS_STATEMENT || code == ER_READ_ONLY_MODE ||
           code == ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION || code == NOT_THE_PRIMARY ||
           code == ER_OPEN_AS_READONLY;
}

bool mysql_trouble_is_denial(unsigned code)
{
    return code == ER_TABLEACCESS_DENIED_ERROR || code == ER_COLUMNACCESS_DENIED_ERROR ||
           code == ER_DBACCESS_DENIED_ERROR || is_read_only(code);
}

bool mysql_trouble_is_missing_table(unsigned code) { return code == ER_NO_SUCH_TABLE; }

bool mysql_trouble_is_missing_column(unsigned code) { return code == ER_BAD_FIELD_ERROR; }

/* TLS that failed because the connection did, rather than because of what was said. */
static bool is_cut(const char *text)
{
    static const int numbers[] = {ETIMEDOUT, ECONNRESET, ECONNABORTED, EPIPE, EAGAIN};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char number[16];

        (void)snprintf(number, sizeof number, "(%d)", numbers[i]);
        if (strstr(text, number))
            return true;
    }
    return strstr(text, "unexpected eof") || strstr(text, "(0)");
}

/*
 * What happened, and what an administrator can do: "run" or "grant" what we print for them. The words of the
 * server give way if all does not fit.
 */
static enum gavel_status explain_with(const struct mysql_store *mysql, enum gavel_status status,
                                      const char *advice, struct gavel_error *error)
{
    bool is_default = strcmp(mysql->target.table, MYSQL_TABLE_DEFAULT) == 0;
    char next[MYSQL_TABLE_MAX + 100];
    int length = snprintf(next, sizeof next, "%s what `gavel store sql mysql%s%s` prints%s", advice,
                          is_default ? "" : " --table ", is_default ? "" : mysql->target.table,
                          mysql->link.trouble.is_making ? ", with its grants" : "");
    int room = MESSAGE_MAX - 4 - (int)strlen(mysql->shown) - length;

    return error_set(error, status, "%s: %.*s; %s", mysql->shown, room, mysql->link.trouble.text, next);
}

/* The words of the server begin with who was refused; they give way if all does not fit. */
static enum gavel_status explain_login(const struct mysql_store *mysql, struct gavel_error *error)
{
    static const char next[] =
        "check the user and GAVEL_MYSQL_PASSWORD or the option file, then try `gavel store ping`";
    static const char what[] = "does not let us in";
    int room = MESSAGE_MAX - 5 - (int)strlen(mysql->shown) - (int)strlen(what) - (int)strlen(next);

    return error_set(error, GAVEL_ERR_STORE_DENIED, "%s %s: %.*s; %s", mysql->shown, what, room,
                     mysql->link.trouble.text, next);
}

/* Who may not come in, or not do something. */
static enum gavel_status explain_denial(const struct mysql_store *mysql, struct gavel_error *error)
{
    const struct mysql_trouble *trouble = &mysql->link.trouble;

    if (is_read_only(trouble->code))
        return error_set(
            error, GAVEL_ERR_STORE_DENIED,
            "the server of %s is read-only (error %u); name the primary, or end its read-only mode",
            mysql->shown, trouble->code);
    switch (trouble->code) {
    case ER_ACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_NO_PASSWORD_ERROR:
    case ER_MUST_CHANGE_PASSWORD:
        return explain_login(mysql, error);
    case ER_HOST_NOT_PRIVILEGED:
    case ER_HOST_IS_BLOCKED:
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "%s does not accept this host: %.100s; let an administrator of the server allow it",
                         mysql->shown, trouble->text);
    case ER_DBACCESS_DENIED_ERROR:
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "%s is not open to this user: %.90s; grant what `gavel store sql mysql` prints",
                         mysql->shown, trouble->text);
    default:
        return explain_with(mysql, GAVEL_ERR_STORE_DENIED,
                            trouble->is_making ? "let an administrator run" : "grant", error);
    }
}

static enum gavel_status explain_connection(const struct mysql_store *mysql, struct gavel_error *error)
{
    const struct mysql_trouble *trouble = &mysql->link.trouble;

    if (trouble->code == CR_SSL_CONNECTION_ERROR && !is_cut(trouble->text))
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "no TLS with %s: %.80s; name its CA with ca=, or turn TLS off with tls=off",
                         mysql->shown, trouble->text);
    if (trouble->code == CR_UNKNOWN_HOST)
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE, "the host of %s has no address: %.80s",
                         mysql->shown, trouble->text);
    return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                     "%s cannot be reached: %.100s; check that the server runs, and where", mysql->shown,
                     trouble->text);
}

enum gavel_status mysql_trouble_explain(const struct mysql_store *mysql, struct gavel_error *error)
{
    const struct mysql_trouble *trouble = &mysql->link.trouble;
    unsigned code = trouble->code;

    if (mysql->link.is_late)
        return error_set(error, GAVEL_ERR_TIMEOUT, "%s did not answer in time", mysql->shown);
    if (mysql_trouble_is_denial(code) || code == ER_ACCESS_DENIED_ERROR ||
        code == ER_ACCESS_DENIED_NO_PASSWORD_ERROR || code == ER_MUST_CHANGE_PASSWORD ||
        code == ER_HOST_NOT_PRIVILEGED || code == ER_HOST_IS_BLOCKED ||
        code == ER_SPECIFIC_ACCESS_DENIED_ERROR)
        return explain_denial(mysql, error);
    if (mysql_trouble_passes(code))
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "another transaction holds the row in %s for too long (error %u); it is tried again",
                         mysql->shown, code);
    switch (code) {
    case ER_BAD_DB_ERROR:
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "there is no database \"%.60s\" at %s; create it, or name another in the URL",
                         mysql->target.database, mysql->shown);
    case ER_NO_SUCH_TABLE:
    case ER_BAD_FIELD_ERROR:
        return explain_with(mysql, GAVEL_ERR_STORE_UNSUPPORTED, "let an administrator run", error);
    case ER_RECORD_FILE_FULL:
    case ER_DISK_FULL:
        return error_set(error, GAVEL_ERR_STORE_FULL, "the disk of %s is full; make room there",
                         mysql->shown);
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
    case ER_USER_LIMIT_REACHED:
        return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                         "%s has no connection left: %.90s; raise its limit, or end some", mysql->shown,
                         trouble->text);
    case ER_DATA_TOO_LONG:
    case ER_TRUNCATED_WRONG_VALUE_FOR_FIELD:
    case ER_CANT_AGGREGATE_2COLLATIONS:
        return error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "a column of table %s cannot hold the name: %.80s; run `gavel store migrate` on this store",
            mysql->target.table, trouble->text);
    default:
        break;
    }
    if (code >= CR_MIN_ERROR && code <= CR_MYSQL_LAST_ERROR)
        return explain_connection(mysql, error);
    return error_set(error, GAVEL_ERR_STORE_UNAVAILABLE, "%s: %.120s (error %u)", mysql->shown, trouble->text,
                     code);
}
