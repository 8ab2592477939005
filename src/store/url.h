/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The URL of a store on a server:
 *
 *     scheme://[user@]host[:port][,host[:port]…][/path][?name=value&name=value]
 *
 * It must not contain a password: URLs appear in process lists, logs and status
 * pages. Each driver documents where it takes one from instead.
 */
#ifndef STORE_URL_H
#define STORE_URL_H

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define URL_OPTIONS_MAX 16
#define URL_HOSTS_MAX 9

struct url_host {
    const char *name; /* without the brackets of an IPv6 address */
    uint16_t port;
};

struct url {
    char *text; /* owned: what the others point into */
    const char *user;
    struct url_host hosts[URL_HOSTS_MAX];
    size_t host_count;
    const char *path; /* without its first slash; "" if there is none */
    struct {
        const char *name;
        const char *value; /* "" if it has none */
    } options[URL_OPTIONS_MAX];
    size_t option_count;
};

/* What a driver accepts. */
struct url_form {
    const char *scheme;
    const char *example; /* for messages */
    uint16_t port;       /* if none is given */
    size_t hosts_max;
    const char *const *options; /* that it knows, ending with NULL */
};

/*
 * Parses what follows "scheme:"; every part is percent-decoded after it was
 * split off. ERR_INVALID: a password, an unknown or repeated option, no host,
 * too many hosts, an invalid port, a control character; *error says what is
 * wrong and shows the example. The caller frees it with url_done(), also after
 * a failure.
 */
GAVEL_CHECKED enum gavel_status url_parse(const struct url_form *form, const char *rest, struct url *ret_url,
                                          struct gavel_error *error);
void url_done(struct url *url);

/* The value of an option; NULL if it is absent. */
const char *url_option(const struct url *url, const char *name);

/* An option that is yes or no (on, off, true, false, 1, 0); `otherwise` if it is absent. */
GAVEL_CHECKED enum gavel_status url_option_bool(const struct url *url, const char *name, bool otherwise,
                                                bool *ret_value, struct gavel_error *error);

/* Whether the name is this host's loopback: localhost, 127.0.0.0/8, ::1. */
bool url_host_is_loopback(const char *name);

#endif
