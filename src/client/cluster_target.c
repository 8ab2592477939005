/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the nodes are, as people write it:
 *
 *     ADDRESS[,ADDRESS…][?OPTION=VALUE[&OPTION=VALUE…]]
 *
 * In values %XX stands for the byte with that number, for paths with & or %.
 */

#include "client/cluster_internal.h"

#include "base/error.h"
#include "net/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

bool cluster_link_is_path(const char *address) { return address[0] == '/'; }

bool cluster_link_is_localhost(const struct address_parts *parts)
{
    return strcmp(parts->host, "localhost") == 0;
}

static enum gavel_status check_path(const char *path, struct gavel_error *error)
{
    const size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;

    if (strlen(path) <= most)
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_INVALID,
                     "the path of the socket %.120s is longer than the limit of %zu bytes; use a shorter one",
                     path, most);
}

static enum gavel_status check_address(const char *address, bool has_tls, struct gavel_error *error)
{
    struct sockaddr_storage numeric;
    struct address_parts parts;
    enum gavel_status status;
    socklen_t length;

    if (cluster_link_is_path(address))
        return check_path(address, error);
    if (strchr(address, '@')) /* what stands before it may be a password, so it is not repeated */
        return error_set(
            error, GAVEL_ERR_INVALID,
            "gavel:// has no users and no passwords; write gavel://HOST:PORT, and certificates as in ?ca=FILE&cert=FILE&key=FILE");
    status = address_split(address, &parts, error);
    if (status == GAVEL_OK && strspn(parts.port, "0") == strlen(parts.port))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "%.120s has port 0, where no node can be reached; write the port of `clients:` of the node",
            address);
    if (status != GAVEL_OK || has_tls || cluster_link_is_localhost(&parts))
        return status;
    /* Of a name it shows when it is looked up. */
    if (!address_is_numeric(&parts, &numeric, &length) || address_is_loopback(&numeric))
        return GAVEL_OK;
    return error_set(
        error, GAVEL_ERR_INVALID,
        "%.120s is not on this machine, and plain TCP is only for this machine; add ca, cert and key, as in ?ca=FILE&cert=FILE&key=FILE",
        address);
}

enum gavel_status cluster_link_target_check(const struct cluster_link_target *target,
                                            struct gavel_error *error)
{
    bool has_tls = target->ca[0] != '\0';

    if (target->count == 0 || target->count > CLIENT_ADDRESSES_MAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "there are %zu addresses of nodes; give 1 to %d, such as 127.0.0.1:7600",
                         target->count, CLIENT_ADDRESSES_MAX);
    if ((target->cert[0] != '\0') != has_tls || (target->key[0] != '\0') != has_tls)
        return error_set(error, GAVEL_ERR_INVALID, "TLS needs ca, cert and key; give all three, or none");
    if (target->revoked[0] != '\0' && !has_tls)
        return error_set(error, GAVEL_ERR_INVALID, "revoked needs TLS; give ca, cert and key, too");
    if (target->ttl_ms != 0 && (target->ttl_ms < TABLE_TTL_MIN_MS || target->ttl_ms > TABLE_TTL_MAX_MS))
        return error_set(error, GAVEL_ERR_INVALID, "ttl_ms is %u; it must be from %d to %d", target->ttl_ms,
                         TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
    for (size_t i = 0; i < target->count; i++) {
        enum gavel_status status = check_address(target->addresses[i], has_tls, error);

        if (status != GAVEL_OK)
            return status;
    }
    return GAVEL_OK;
}

static enum gavel_status take_address(struct cluster_link_target *target, const char *text, size_t length,
                                      struct gavel_error *error)
{
    if (length == 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "an address of a node is empty; write them as h1:7600,h2:7600 or /path/of/a/socket");
    if (length >= sizeof target->addresses[0])
        return error_set(error, GAVEL_ERR_INVALID, "the address %.60s… is longer than %zu bytes", text,
                         sizeof target->addresses[0] - 1);
    if (target->count == CLIENT_ADDRESSES_MAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "more than %d addresses; three nodes of the cluster are enough",
                         CLIENT_ADDRESSES_MAX);
    memcpy(target->addresses[target->count], text, length);
    target->addresses[target->count][length] = '\0';
    target->count++;
    return GAVEL_OK;
}

static enum gavel_status take_addresses(struct cluster_link_target *target, const char *text, size_t length,
                                        struct gavel_error *error)
{
    const char *end = text + length;

    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        enum gavel_status status = take_address(target, text, (size_t)(stop - text), error);

        if (status != GAVEL_OK || !comma)
            return status;
        text = comma + 1;
    }
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);

    return found ? (int)(found - digits) : -1;
}

/* False: it does not fit, or is not written properly. */
static bool decode(const char *text, size_t length, char *buffer, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (c == '%') {
            int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (at + 1 >= size)
            return false;
        buffer[at++] = c;
    }
    buffer[at] = '\0';
    return at > 0;
}

static enum gavel_status take_ttl(struct cluster_link_target *target, const char *value,
                                  struct gavel_error *error)
{
    char *end;
    unsigned long ttl_ms = strtoul(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end != '\0' || ttl_ms < TABLE_TTL_MIN_MS ||
        ttl_ms > TABLE_TTL_MAX_MS)
        return error_set(error, GAVEL_ERR_INVALID,
                         "ttl_ms is \"%.60s\"; it must be a number of milliseconds from %d to %d", value,
                         TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
    target->ttl_ms = (uint32_t)ttl_ms;
    return GAVEL_OK;
}

static enum gavel_status take_option(struct cluster_link_target *target, const char *text, size_t length,
                                     struct gavel_error *error)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length;
    char ttl[32] = "";
    const struct {
        const char *name;
        char *buffer;
        size_t size;
        bool is_set;
    } options[] = {
        {"ca", target->ca, sizeof target->ca, target->ca[0] != '\0'},
        {"cert", target->cert, sizeof target->cert, target->cert[0] != '\0'},
        {"key", target->key, sizeof target->key, target->key[0] != '\0'},
        {"revoked", target->revoked, sizeof target->revoked, target->revoked[0] != '\0'},
        {"ttl_ms", ttl, sizeof ttl, target->ttl_ms != 0},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strlen(options[i].name) != name || memcmp(options[i].name, text, name) != 0)
            continue;
        if (options[i].is_set)
            return error_set(error, GAVEL_ERR_INVALID, "the option %s is given twice", options[i].name);
        if (!equals || !decode(equals + 1, length - name - 1, options[i].buffer, options[i].size))
            return error_set(
                error, GAVEL_ERR_INVALID,
                "the option %s has no valid value; write %s=VALUE, of at most %zu bytes, with %%25 for a %% and %%26 for a &",
                options[i].name, options[i].name, options[i].size - 1);
        return options[i].buffer == ttl ? take_ttl(target, ttl, error) : GAVEL_OK;
    }
    return error_set(error, GAVEL_ERR_INVALID,
                     "there is no option \"%.*s\"; there are ca, cert, key, revoked and ttl_ms",
                     (int)(name < 60 ? name : 60), text);
}

static enum gavel_status take_options(struct cluster_link_target *target, const char *text,
                                      struct gavel_error *error)
{
    for (;;) {
        size_t length = strcspn(text, "&");
        enum gavel_status status = take_option(target, text, length, error);

        if (status != GAVEL_OK || text[length] == '\0')
            return status;
        text += length + 1;
    }
}

enum gavel_status cluster_link_target_parse(const char *text, struct cluster_link_target *ret_target,
                                            struct gavel_error *error)
{
    struct cluster_link_target target = {0};
    size_t length = strcspn(text, "?");
    enum gavel_status status = take_addresses(&target, text, length, error);

    if (status == GAVEL_OK && text[length] == '?')
        status = take_options(&target, text + length + 1, error);
    if (status == GAVEL_OK)
        status = cluster_link_target_check(&target, error);
    if (status == GAVEL_OK)
        *ret_target = target;
    return status;
}
