/* SPDX-License-Identifier: Apache-2.0 */

#include "store/url.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum gavel_status refuse(const struct url_form *form, struct gavel_error *error, const char *what)
{
    return error_set(error, GAVEL_ERR_INVALID, "%s in the URL of the store; write it like %s", what,
                     form->example);
}

/* In place. False: a '%' without two digits, or a character that no name has. */
static bool decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        char digits[3] = {0};

        if (*from != '%') {
            *to++ = *from;
        } else {
            if (!isxdigit((unsigned char)from[1]) || !isxdigit((unsigned char)from[2]))
                return false;
            memcpy(digits, from + 1, 2);
            *to++ = (char)strtol(digits, NULL, 16);
            from += 2;
        }
        if ((unsigned char)to[-1] < ' ' || to[-1] == 0x7f)
            return false;
    }
    *to = '\0';
    return true;
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
    char *end;
    long port;

    if (!isdigit((unsigned char)*text))
        return false;
    port = strtol(text, &end, 10);
    if (*end || port < 1 || port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

static enum gavel_status take_host(const struct url_form *form, char *text, struct url *url,
                                   struct gavel_error *error)
{
    struct url_host *host = &url->hosts[url->host_count];
    char *end;

    if (url->host_count == form->hosts_max || url->host_count == URL_HOSTS_MAX)
        return refuse(form, error, "there are too many hosts");
    host->port = form->port;
    host->name = *text == '[' ? text + 1 : text;
    end = *text == '[' ? strchr(text, ']') : strchr(text, ':');
    if (*text == '[' && end)
        *end++ = '\0';
    if (*text == '[' && (!end || (*end && *end != ':')))
        return refuse(form, error, "an address in brackets does not end as it should");
    if (end && *end == ':') {
        *end = '\0';
        if (!parse_port(end + 1, &host->port))
            return refuse(form, error, "a port is not a number from 1 to 65535");
    }
    if (!*host->name || !decode(text))
        return refuse(form, error, "a host has no name");
    url->host_count++;
    return GAVEL_OK;
}

static enum gavel_status take_authority(const struct url_form *form, char *text, struct url *url,
                                        struct gavel_error *error)
{
    char *at = strrchr(text, '@');

    if (at) {
        *at = '\0';
        if (strchr(text, ':'))
            return error_set(
                error, GAVEL_ERR_INVALID,
                "there is a password in the URL of the store, where process lists and logs show it; remove it, and see gavel-stores(7) for where it belongs");
        if (!*text || !decode(text))
            return refuse(form, error, "the user has no name");
        url->user = text;
        text = at + 1;
    }
    for (char *next = text; next;) {
        char *host = next;
        enum gavel_status status;

        next = strchr(host, ',');
        if (next)
            *next++ = '\0';
        status = take_host(form, host, url, error);
        if (status != GAVEL_OK)
            return status;
    }
    return GAVEL_OK;
}

static bool is_known(const struct url_form *form, const char *name)
{
    for (const char *const *known = form->options; *known; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}

static enum gavel_status take_option(const struct url_form *form, char *text, struct url *url,
                                     struct gavel_error *error)
{
    char *value = strchr(text, '=');

    if (value)
        *value++ = '\0';
    if (!decode(text) || (value && !decode(value)))
        return refuse(form, error,
                      "a '%' is not followed by two hexadecimal digits of a printable character");
    if (!is_known(form, text)) {
        char known[256] = "";

        for (const char *const *name = form->options; *name; name++)
            (void)snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                           *name);
        return error_set(error, GAVEL_ERR_INVALID, "%s:// has no option \"%.40s\"; it has: %s", form->scheme,
                         text, known);
    }
    if (url_option(url, text))
        return error_set(error, GAVEL_ERR_INVALID, "the option \"%s\" is given twice in the URL of the store",
                         text);
    if (url->option_count == URL_OPTIONS_MAX)
        return refuse(form, error, "there are too many options");
    url->options[url->option_count].name = text;
    url->options[url->option_count].value = value ? value : "";
    url->option_count++;
    return GAVEL_OK;
}

static enum gavel_status take_query(const struct url_form *form, char *text, struct url *url,
                                    struct gavel_error *error)
{
    while (text && *text) {
        char *option = text;
        enum gavel_status status;

        text = strchr(option, '&');
        if (text)
            *text++ = '\0';
        status = *option ? take_option(form, option, url, error) : GAVEL_OK;
        if (status != GAVEL_OK)
            return status;
    }
    return GAVEL_OK;
}

enum gavel_status url_parse(const struct url_form *form, const char *rest, struct url *ret_url,
                            struct gavel_error *error)
{
    char *query;
    char *path;
    enum gavel_status status;

    *ret_url = (struct url){.path = ""};
    if (strncmp(rest, "//", 2) != 0)
        return refuse(form, error, "two slashes are missing after the scheme");
    ret_url->text = strdup(rest + 2);
    if (!ret_url->text)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while reading the URL of a store");
    query = strchr(ret_url->text, '?');
    if (query)
        *query++ = '\0';
    path = strchr(ret_url->text, '/');
    if (path)
        *path++ = '\0';
    status = take_authority(form, ret_url->text, ret_url, error);
    if (status == GAVEL_OK && path && !decode(path))
        status = refuse(form, error, "the path has a '%' or a character that it cannot have");
    if (status == GAVEL_OK && path)
        ret_url->path = path;
    return status != GAVEL_OK ? status : take_query(form, query, ret_url, error);
}

void url_done(struct url *url)
{
    free(url->text);
    *url = (struct url){.path = ""};
}

const char *url_option(const struct url *url, const char *name)
{
    for (size_t i = 0; i < url->option_count; i++)
        if (strcmp(url->options[i].name, name) == 0)
            return url->options[i].value;
    return NULL;
}

enum gavel_status url_option_bool(const struct url *url, const char *name, bool otherwise, bool *ret_value,
                                  struct gavel_error *error)
{
    static const char *const words[2][4] = {{"no", "off", "false", "0"}, {"yes", "on", "true", "1"}};
    const char *value = url_option(url, name);

    *ret_value = otherwise;
    if (!value)
        return GAVEL_OK;
    for (size_t i = 0; i < 8; i++) {
        if (strcmp(words[i / 4][i % 4], value) == 0) {
            *ret_value = i / 4 == 1;
            return GAVEL_OK;
        }
    }
    return error_set(error, GAVEL_ERR_INVALID,
                     "the option %s=%.40s in the URL of the store is neither yes nor no", name, value);
}

bool url_host_is_loopback(const char *name)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, name, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(name, "localhost") == 0 || strcmp(name, "::1") == 0;
}
