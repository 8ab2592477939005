/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the server is, by the URL, and who we are there: the user of the URL
 * or of the environment, the password of a file or of the environment. A file is
 * read anew for each connection, so that a password can be changed while gavel
 * runs and does not lie in memory between. The environment is read once: a
 * program may change its own while our thread connects, and a password in it
 * lies in memory anyway.
 */
#include "base/error.h"
#include "store/mysql/internal.h"
#include "store/secret.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define EXAMPLE "mysql://gavel@db.example.com:3306/gavel"

static enum gavel_status check_names(struct mysql_target *target, struct gavel_error *error)
{
    if (!*target->database || strchr(target->database, '/') || strlen(target->database) > 64)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "after the host comes the name of one database, of up to 64 characters; write it like " EXAMPLE);
    if (!mysql_schema_is_name(target->table))
        return error_set(error, GAVEL_ERR_INVALID,
                         "\"%.60s\" is not a valid name for the table; use up to %d letters, digits and "
                         "underscores",
                         target->table, MYSQL_TABLE_MAX);
    if (target->socket && strlen(target->socket) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return error_set(error, GAVEL_ERR_INVALID, "the path of the socket is too long: %.60s…",
                         target->socket);
    return GAVEL_OK;
}

static enum gavel_status choose_tls(struct mysql_target *target, struct gavel_error *error)
{
    bool is_near = target->socket || url_host_is_loopback(target->host);
    enum gavel_status status;

    target->ca = url_option(&target->url, "ca");
    target->cert = url_option(&target->url, "cert");
    target->key = url_option(&target->url, "key");
    status =
        url_option_bool(&target->url, "tls", !is_near || target->ca || target->cert, &target->has_tls, error);
    if (status == GAVEL_OK && target->has_tls && target->socket)
        return error_set(error, GAVEL_ERR_INVALID,
                         "a socket of this host needs no TLS; take tls= out of the URL");
    if (status == GAVEL_OK && !target->has_tls && (target->ca || target->cert))
        return error_set(error, GAVEL_ERR_INVALID,
                         "tls=off and ca= or cert= do not go together; take one out");
    if (status == GAVEL_OK && !target->cert != !target->key)
        return error_set(error, GAVEL_ERR_INVALID, "cert= and key= belong together; give both, or none");
    return status;
}

/* A copy in *ret_value, NULL if it is not set; false: out of memory. */
static bool take_variable(const char *name, char **ret_value)
{
    const char *value = secure_getenv(name);

    *ret_value = value ? strdup(value) : NULL;
    return !value || *ret_value;
}

static enum gavel_status take_environment(struct mysql_environment *environment, struct gavel_error *error)
{
    if (!take_variable("GAVEL_MYSQL_USER", &environment->user) ||
        !take_variable("GAVEL_MYSQL_PASSWORD", &environment->password) ||
        !take_variable("GAVEL_MYSQL_OPTIONS", &environment->options))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening a store of mysql");
    return GAVEL_OK;
}

enum gavel_status mysql_target_parse(const char *rest, struct mysql_target *ret_target,
                                     struct gavel_error *error)
{
    static const char *const options[] = {"table", "tls", "ca", "cert", "key", "options", "socket", NULL};
    static const struct url_form form = {
        .scheme = "mysql", .example = EXAMPLE, .port = 3306, .hosts_max = 1, .options = options};
    struct mysql_target *target = ret_target;
    enum gavel_status status;

    *target = (struct mysql_target){0};
    status = url_parse(&form, rest, &target->url, error);
    if (status != GAVEL_OK)
        return status;
    target->host = target->url.hosts[0].name;
    target->port = target->url.hosts[0].port;
    target->database = target->url.path;
    target->socket = url_option(&target->url, "socket");
    if (target->socket && !*target->socket)
        return error_set(error, GAVEL_ERR_INVALID,
                         "socket= names no file; give the path of the server's socket");
    target->options = url_option(&target->url, "options");
    target->table = url_option(&target->url, "table");
    if (!target->table)
        target->table = MYSQL_TABLE_DEFAULT;
    status = check_names(target, error);
    if (status == GAVEL_OK)
        status = choose_tls(target, error);
    return status != GAVEL_OK ? status : take_environment(&target->environment, error);
}

void mysql_target_forget(struct mysql_target *target)
{
    free(target->environment.user);
    free(target->environment.options);
    secret_free(target->environment.password);
    target->environment = (struct mysql_environment){0};
}

void mysql_target_done(struct mysql_target *target)
{
    mysql_target_forget(target);
    url_done(&target->url);
}

/* Cuts off what stands around a value, in target: blanks, one pair of quotes, and the escapes of my.cnf. */
static char *strip_value(char *value)
{
    static const char escapes[] = "b\bt\tn\nr\r\\\\s ";
    size_t length;
    char *to;

    value += strspn(value, " \t");
    length = strlen(value);
    while (length > 0 && isspace((unsigned char)value[length - 1]))
        value[--length] = '\0';
    if (length >= 2 && (*value == '"' || *value == '\'') && value[length - 1] == *value) {
        value[length - 1] = '\0';
        value++;
    }
    to = value;
    for (const char *from = value; *from; from++) {
        const char *escape = *from == '\\' && from[1] ? strchr(escapes, from[1]) : NULL;

        if (escape && (escape - escapes) % 2 == 0) {
            *to++ = escape[1];
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return value;
}

/* One line of an option file: a group, or a word and its value. */
static void take_line(char *line, bool *is_ours, struct mysql_identity *identity)
{
    char *word = line + strspn(line, " \t");
    char *value = strchr(word, '=');
    size_t length;

    if (*word == '[') {
        *is_ours = strncmp(word, "[client]", 8) == 0 || strncmp(word, "[client-mariadb]", 16) == 0;
        return;
    }
    if (!*is_ours || !value || *word == '#' || *word == ';')
        return;
    *value++ = '\0';
    for (length = strlen(word); length > 0 && isspace((unsigned char)word[length - 1]);)
        word[--length] = '\0';
    if (strcmp(word, "user") == 0)
        name_copy(identity->user, sizeof identity->user, strip_value(value));
    else if (strcmp(word, "password") == 0)
        name_copy(identity->password, sizeof identity->password, strip_value(value));
}

static enum gavel_status read_options(const char *path, struct mysql_identity *identity,
                                      struct gavel_error *error)
{
    struct secret file = {0};
    bool is_ours = false;
    const char *why;
    char *rest;
    char *line;
    enum gavel_status status = secret_read(path, &file, &why);

    if (status != GAVEL_OK)
        return error_set(
            error, status,
            "the option file %.150s cannot be read: %s; name one like my.cnf with user and password "
            "below [client]",
            path, why);
    for (rest = file.text; (line = strsep(&rest, "\n"));)
        take_line(line, &is_ours, identity);
    secret_done(&file);
    if (!identity->user[0] && !identity->password[0])
        return error_set(error, GAVEL_ERR_INVALID,
                         "the option file %.150s has no user and no password below [client]; add them there",
                         path);
    return GAVEL_OK;
}

enum gavel_status mysql_target_identity(const struct mysql_target *target,
                                        struct mysql_identity *ret_identity, struct gavel_error *error)
{
    const struct mysql_environment *environment = &target->environment;
    const char *path = target->options ? target->options : environment->options;
    enum gavel_status status = GAVEL_OK;

    /* What stands in the URL beats the environment, and the more exact beats the general there. */
    memset(ret_identity, 0, sizeof *ret_identity);
    if (path && *path)
        status = read_options(path, ret_identity, error);
    if (status != GAVEL_OK) {
        explicit_bzero(ret_identity, sizeof *ret_identity);
        return status;
    }
    if (environment->user && *environment->user && !(target->options && ret_identity->user[0]))
        name_copy(ret_identity->user, sizeof ret_identity->user, environment->user);
    if (environment->password && !(target->options && ret_identity->password[0]))
        name_copy(ret_identity->password, sizeof ret_identity->password, environment->password);
    if (target->url.user)
        name_copy(ret_identity->user, sizeof ret_identity->user, target->url.user);
    return GAVEL_OK;
}
