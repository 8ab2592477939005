/* SPDX-License-Identifier: Apache-2.0 */

/* The drivers by the scheme of a URL, and the calls that go to them. */
#include "store/store.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/clock.h"
#include "store/driver.h"
#include "store/plain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLL_EVERY (2 * NS_PER_MS) /* of store_wait() on a driver that cannot wait */

const struct store_driver *const store_drivers[] = {
    &store_sqlite,
#ifdef STORE_GAVEL
    &store_gavel,
#endif
#ifdef STORE_MYSQL
    &store_mysql,
#endif
#ifdef STORE_S3
    &store_s3,
#endif
#ifdef STORE_ETCD
    &store_etcd,
#endif
    &store_memory, &store_static, NULL,
};

const struct store_kind store_kinds[] = {
    {"sqlite", NULL, "sqlite:/var/lib/gavel/gavel.db"},
    {"gavel", "gavel_store", "gavel://h1:7600,h2:7600,h3:7600"},
    {"mysql", "mysql_store", "mysql://gavel@db1:3306/app"},
    {"s3", "s3_store", "s3://bucket/gavel?region=eu-central-1"},
    {"etcd", "etcd_store", "etcd://h1:2379,h2:2379,h3:2379/gavel"},
    {"memory", NULL, "memory:tests"},
    {"static", NULL, "static:web-1"},
    {0},
};

/* What a store is called elsewhere. */
static const struct {
    const char *scheme;
    const char *ours;
} other_schemes[] = {{"mariadb", "mysql"}, {"sqlite3", "sqlite"}, {"file", "sqlite"}, {"etcd3", "etcd"}};

static bool is_scheme(const char *scheme, const char *url, size_t length)
{
    return strlen(scheme) == length && strncmp(url, scheme, length) == 0;
}

const struct store_driver *store_driver_of(const char *scheme)
{
    for (size_t i = 0; store_drivers[i]; i++)
        if (strcmp(store_drivers[i]->scheme, scheme) == 0)
            return store_drivers[i];
    return NULL;
}

/*
 * The driver of a URL and what follows "scheme:". A URL without a scheme is a
 * path, and so is one whose first slash comes before its first colon. NULL if
 * there is no such driver.
 */
static const struct store_driver *find_driver(const char *url, const char **ret_rest)
{
    size_t length = strcspn(url, ":/");

    if (url[length] != ':') {
        *ret_rest = url;
        return &store_sqlite;
    }
    for (size_t i = 0; store_drivers[i]; i++) {
        if (is_scheme(store_drivers[i]->scheme, url, length)) {
            *ret_rest = url + length + 1;
            return store_drivers[i];
        }
    }
    return NULL;
}

/* An address of a node as people write it without "gavel://": a port follows the first colon. */
static bool is_address(const char *url)
{
    const char *port = url + strcspn(url, ":");

    if (url[0] == '[' && strstr(url, "]:"))
        port = strstr(url, "]:") + 1;
    if (port == url || *port != ':' || strchr(url, '@'))
        return false;
    port++;
    return strspn(port, "0123456789") > 0 && strchr(",/?", port[strspn(port, "0123456789")]);
}

/* Without its options, which are nobody's business. */
static enum gavel_status refuse_address(const char *url, struct gavel_error *error)
{
    size_t length = strcspn(url, "/?");
    int shown = length > 150 ? 150 : (int)length;

    return error_set(error, GAVEL_ERR_INVALID,
                     "\"%.*s\" is not a store; for nodes of a cluster write gavel://%.*s", shown, url, shown,
                     url);
}

static enum gavel_status refuse_scheme(const char *url, struct gavel_error *error)
{
    size_t length = strcspn(url, ":");
    char known[128] = "";

    for (size_t i = 0; store_kinds[i].scheme; i++)
        if (store_kinds[i].option && is_scheme(store_kinds[i].scheme, url, length))
            return error_set(
                error, GAVEL_ERR_STORE_UNSUPPORTED,
                "there is no store \"%s\" in this build; build gavel with -D%s=enabled, or use another; `gavel store list` lists them",
                store_kinds[i].scheme, store_kinds[i].option);
    for (size_t i = 0; i < sizeof other_schemes / sizeof *other_schemes; i++)
        if (is_scheme(other_schemes[i].scheme, url, length))
            return error_set(error, GAVEL_ERR_INVALID, "there is no store \"%s\"; it is called %s: here",
                             other_schemes[i].scheme, other_schemes[i].ours);
    if (is_address(url) && store_driver_of("gavel"))
        return refuse_address(url, error);
    for (size_t i = 0; store_drivers[i]; i++) {
        size_t used = strlen(known);

        (void)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", store_drivers[i]->scheme);
    }
    return error_set(error, GAVEL_ERR_INVALID, "there is no store \"%.*s\" in this build; use one of: %s",
                     length > 60 ? 60 : (int)length, url, known);
}

static enum gavel_status require_driver(const char *url, const struct store_driver **ret_driver,
                                        const char **ret_rest, struct gavel_error *error)
{
    if (!url || !*url)
        return error_set(error, GAVEL_ERR_INVALID,
                         "no store is given; name one, such as sqlite:/var/lib/gavel/gavel.db");
    *ret_driver = find_driver(url, ret_rest);
    return *ret_driver ? GAVEL_OK : refuse_scheme(url, error);
}

/* A failure in words that a server or a file may have had a part in. */
static enum gavel_status tell(enum gavel_status status, struct gavel_error *error)
{
    if (status != GAVEL_OK && error)
        text_make_plain(error->message);
    return status;
}

enum gavel_status store_check_url(const char *url, struct gavel_error *error)
{
    const struct store_driver *driver;
    const char *rest;
    enum gavel_status status = require_driver(url, &driver, &rest, error);

    return status != GAVEL_OK || !driver->check_url ? status : driver->check_url(rest, error);
}

void store_caution(const char *url, char ret_text[static STORE_CAUTION_MAX])
{
    const char *rest = NULL;
    const struct store_driver *driver = url && *url ? find_driver(url, &rest) : NULL;

    ret_text[0] = '\0';
    if (driver && driver->caution)
        driver->caution(rest, ret_text, STORE_CAUTION_MAX);
    text_make_plain(ret_text);
}

enum gavel_status store_open(const char *url, struct store **ret_store, struct gavel_error *error)
{
    const struct store_driver *driver;
    const char *rest;
    enum gavel_status status = require_driver(url, &driver, &rest, error);
    struct store *store;

    if (status != GAVEL_OK)
        return status;
    status = tell(driver->open(rest, &store, error), error);
    if (status != GAVEL_OK)
        return status;
    store->driver = driver;
    *ret_store = store;
    return GAVEL_OK;
}

enum gavel_status store_probe(struct store *store, struct gavel_error *error)
{
    enum gavel_status status =
        store->driver->probe ? tell(store->driver->probe(store, error), error) : GAVEL_OK;

    /* As of opening it: to whoever begins, one that does not answer is one that is not there. */
    if (status == GAVEL_ERR_TIMEOUT && error)
        error->status = GAVEL_ERR_STORE_UNAVAILABLE;
    return status == GAVEL_ERR_TIMEOUT ? GAVEL_ERR_STORE_UNAVAILABLE : status;
}

enum gavel_status store_migrate(struct store *store, char **ret_told, struct gavel_error *error)
{
    *ret_told = NULL;
    return store->driver->migrate ? tell(store->driver->migrate(store, ret_told, error), error) : GAVEL_OK;
}

enum gavel_status store_backup(struct store *store, const char *path, struct gavel_error *error)
{
    if (!store->driver->backup)
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED,
                         "a store of %s is not one file; back it up with the tools of its server",
                         store->driver->scheme);
    return tell(store->driver->backup(store, path, error), error);
}

enum gavel_status store_remove(struct store *store, const char *group, uint64_t version, gavel_ns until,
                               struct gavel_error *error)
{
    if (!store->driver->remove)
        return GAVEL_OK;
    return tell(store->driver->remove(store, group, version, until, error), error);
}

bool store_own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE])
{
    return store->driver->own_address && store->driver->own_address(store, ret_address);
}

void store_close(struct store *store)
{
    if (store)
        store->driver->close(store);
}

const struct store_capabilities *store_capabilities(const struct store *store)
{
    return &store->driver->capabilities;
}

const struct store_capabilities *store_capabilities_of(const char *url)
{
    const char *rest;
    const struct store_driver *driver = url && *url ? find_driver(url, &rest) : NULL;

    return driver ? &driver->capabilities : NULL;
}

gavel_ms store_session_ttl_of(const char *url)
{
    const char *rest;
    const struct store_driver *driver = url && *url ? find_driver(url, &rest) : NULL;

    return driver && driver->session_ttl ? driver->session_ttl(rest) : 0;
}

void store_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count)
{
    if (count == 0)
        return;
    memset(replies, 0, count * sizeof *replies);
    store->driver->run(store, requests, replies, count);
    for (size_t i = 0; i < count; i++)
        reply_make_plain(&replies[i]);
}

enum gavel_status store_call(struct store *store, const struct store_request *request,
                             struct store_reply *reply)
{
    store_run(store, request, reply, 1);
    return reply->status;
}

/* For drivers that cannot wait: look again and again. */
static void poll_version(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    const struct timespec pause = {.tv_nsec = POLL_EVERY};
    const struct store_request request = {.op = STORE_READ, .group = group, .give_up_at = until};

    while (clock_now() < until) {
        struct store_reply reply;
        enum gavel_status status = store_call(store, &request, &reply);
        bool differs = status == GAVEL_OK && reply.record.version != version;

        store_reply_done(&reply);
        if (differs)
            return;
        (void)nanosleep(&pause, NULL); /* waking early does no harm */
    }
}

void store_wait(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    ASSERT(group != NULL);
    if (store->driver->wait)
        store->driver->wait(store, group, version, until);
    else
        poll_version(store, group, version, until);
}

enum gavel_status store_open_session(struct store *store, const struct store_session_options *options,
                                     struct gavel_error *error)
{
    if (!store->driver->open_session)
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED, "a store of %s has no sessions",
                         store->driver->scheme);
    return tell(store->driver->open_session(store, options, error), error);
}

bool store_news(struct store *store, struct store_news *ret_news)
{
    if (!store->driver->news)
        return false;
    memset(ret_news, 0, sizeof *ret_news);
    if (!store->driver->news(store, ret_news))
        return false;
    record_make_plain(&ret_news->record);
    return true;
}

enum gavel_status store_close_dead(struct store *store, const struct store_session_key *key,
                                   gavel_ns give_up_at, struct gavel_error *error)
{
    if (!store->driver->close_dead)
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED, "a store of %s has no sessions",
                         store->driver->scheme);
    return tell(store->driver->close_dead(store, key, give_up_at, error), error);
}

int store_push_fd(struct store *store) { return store->driver->push_fd ? store->driver->push_fd(store) : -1; }

void store_watch(struct store *store, const char *group, bool is_on)
{
    ASSERT(group != NULL);
    if (store->driver->watch)
        store->driver->watch(store, group, is_on);
}

bool store_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1])
{
    return store->driver->changed && store->driver->changed(store, ret_group);
}
