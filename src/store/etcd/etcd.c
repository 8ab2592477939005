/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `etcd://h1:2379,h2:2379/prefix`: opening and closing it; etcd.h has
 * the picture.
 *
 * Opening makes one look, which shows whether the cluster answers and lets us
 * read under the prefix. The thread that watches starts with the first who
 * wants to be told of something.
 */
#include "store/etcd/etcd.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/process.h"
#include "store/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "gavel"

static const char *const options[] = {"tls", "ca", "cert", "key", "user", "credentials", NULL};
static const struct url_form form = {
    .scheme = "etcd",
    .example = "etcd://h1:2379,h2:2379,h3:2379/prefix",
    .port = 2379,
    .hosts_max = URL_HOSTS_MAX,
    .options = options,
};

static void free_store(struct etcd_store *etcd)
{
    etcd_known_clear(&etcd->groups);
    etcd_known_clear(&etcd->registrations);
    sightings_done(&etcd->sightings);
    http_free(etcd->http);
    free(etcd->ca_file);
    free(etcd->cert_file);
    free(etcd->key_file);
    etcd_user_done(etcd);
    push_done(&etcd->push);
    free(etcd);
}

static struct etcd_store *new_store(void)
{
    struct etcd_store *etcd = calloc(1, sizeof *etcd);

    if (!etcd)
        return NULL;
    push_init(&etcd->push, &etcd_push_hooks);
    RB_INIT(&etcd->groups);
    RB_INIT(&etcd->registrations);
    prng_seed(&etcd->prng, entropy_u64());
    return etcd;
}

/* Without a word about it there is TLS, unless no host is another one and nothing else speaks of it. */
static enum gavel_status take_addresses(struct etcd_store *etcd, const struct url *url,
                                        struct gavel_error *error)
{
    bool has_tls = url_option(url, "ca") || url_option(url, "cert") || url_option(url, "key");
    enum gavel_status status;

    for (size_t i = 0; i < url->host_count; i++)
        has_tls |= !url_host_is_loopback(url->hosts[i].name);
    status = url_option_bool(url, "tls", has_tls, &has_tls, error);
    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < url->host_count; i++) {
        const struct url_host *host = &url->hosts[i];
        bool is_v6 = strchr(host->name, ':');
        int length = snprintf(etcd->endpoints[i].base, sizeof etcd->endpoints[i].base, "%s://%s%s%s:%u",
                              has_tls ? "https" : "http", is_v6 ? "[" : "", host->name, is_v6 ? "]" : "",
                              (unsigned)host->port);

        if (strpbrk(host->name, "/?#@ \\") || length >= (int)sizeof etcd->endpoints[i].base)
            return error_set(error, GAVEL_ERR_INVALID,
                             "\"%.60s\" is not the name of a host; write it like %s", host->name,
                             form.example);
    }
    etcd->endpoint_count = url->host_count;
    return GAVEL_OK;
}

static enum gavel_status take_prefix(struct etcd_store *etcd, const struct url *url,
                                     struct gavel_error *error)
{
    const char *prefix = *url->path ? url->path : PREFIX;
    size_t length = strlen(prefix);

    while (length > 0 && prefix[length - 1] == '/')
        length--;
    if (length == 0 || length > ETCD_PREFIX_MAX)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the prefix in the URL of the store is empty or longer than %d bytes; write it like %s",
            ETCD_PREFIX_MAX, form.example);
    (void)snprintf(etcd->prefix, sizeof etcd->prefix, "%.*s", (int)length, prefix);
    return GAVEL_OK;
}

static char *copy_option(const struct url *url, const char *name, bool *is_short)
{
    const char *value = url_option(url, name);
    char *copy = value ? strdup(value) : NULL;

    *is_short |= value && !copy;
    return copy;
}

static enum gavel_status take_files(struct etcd_store *etcd, const struct url *url, struct gavel_error *error)
{
    bool is_short = false;

    etcd->ca_file = copy_option(url, "ca", &is_short);
    etcd->cert_file = copy_option(url, "cert", &is_short);
    etcd->key_file = copy_option(url, "key", &is_short);
    if (is_short)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", etcd->where);
    for (size_t i = 0; i < 3; i++) {
        const char *file = i == 0 ? etcd->ca_file : i == 1 ? etcd->cert_file : etcd->key_file;

        if (file && access(file, R_OK))
            return error_set(error, GAVEL_ERR_STORE_DENIED, "%.160s cannot be read: %s", file,
                             strerror(errno));
    }
    if (!etcd->cert_file != !etcd->key_file)
        return error_set(error, GAVEL_ERR_INVALID,
                         "cert= and key= in the URL of the store go together; give both");
    return GAVEL_OK;
}

/* All but who we are there. */
static enum gavel_status take_target(struct etcd_store *etcd, const char *rest, struct url *ret_url,
                                     struct gavel_error *error)
{
    enum gavel_status status = url_parse(&form, rest, ret_url, error);
    size_t length = strcspn(rest, "?");

    (void)snprintf(etcd->where, sizeof etcd->where, "etcd:%.*s", (int)(length < 80 ? length : 80), rest);
    if (status == GAVEL_OK)
        status = take_addresses(etcd, ret_url, error);
    if (status == GAVEL_OK)
        status = take_prefix(etcd, ret_url, error);
    return status != GAVEL_OK ? status : take_files(etcd, ret_url, error);
}

static enum gavel_status take_url(struct etcd_store *etcd, const char *rest, struct gavel_error *error)
{
    struct url url;
    enum gavel_status status = take_target(etcd, rest, &url, error);

    if (status == GAVEL_OK)
        status = etcd_user_take(etcd, &url, error);
    url_done(&url);
    return status;
}

static enum gavel_status check_url(const char *rest, struct gavel_error *error)
{
    struct etcd_store *etcd = new_store();
    struct url url;
    enum gavel_status status;

    if (!etcd)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while looking at a URL of etcd");
    status = take_target(etcd, rest, &url, error);
    url_done(&url);
    free_store(etcd);
    return status;
}

static void caution(const char *rest, char *ret_text, size_t size)
{
    struct etcd_store *etcd = new_store();
    struct url url = {0};

    if (!etcd)
        return;
    if (take_target(etcd, rest, &url, NULL) == GAVEL_OK) {
        secret_caution(url_option(&url, "key"), ret_text, size);
        secret_caution(url_option(&url, "credentials"), ret_text, size);
    }
    url_done(&url);
    free_store(etcd);
}

struct look {
    enum gavel_status status;
    char message[256];
};

static bool take_look(struct etcd_call *call)
{
    struct look *look = call->user;

    look->status = call->status;
    (void)snprintf(look->message, sizeof look->message, "%s", call->message);
    return false;
}

/* One look at what would be listed. */
static enum gavel_status look_at(struct etcd_store *etcd, struct gavel_error *error)
{
    struct look look = {0};
    struct etcd_call call = {
        .give_up_at = clock_now() + STORE_OPEN_PATIENCE, .on_answer = take_look, .user = &look};
    char first[ETCD_KEY_SIZE];

    etcd_key(etcd, ETCD_GROUPS, NULL, NULL, first);
    etcd_ask(&call, "/v3/kv/range", etcd_body_page(first, "", 1), false);
    etcd_calls_run(etcd, etcd->http, &call, 1);
    if (look.status == GAVEL_ERR_TIMEOUT)
        look.status = GAVEL_ERR_STORE_UNAVAILABLE; /* callers try that again */
    return look.status != GAVEL_OK ? error_set(error, look.status, "%s", look.message) : GAVEL_OK;
}

static enum gavel_status open_store(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    struct etcd_store *etcd = new_store();
    enum gavel_status status;

    if (!etcd)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening etcd:%.100s", rest);
    status = take_url(etcd, rest, error);
    if (status == GAVEL_OK && etcd->push.fd < 0)
        status = error_set(error, GAVEL_ERR_STORE_UNAVAILABLE,
                           "no descriptors are left for %s; check the limit on open files", etcd->where);
    if (status == GAVEL_OK && process_self(&etcd->self) != GAVEL_OK)
        etcd->self = (struct process_id){0}; /* not told: the time-out decides */
    if (status == GAVEL_OK && etcd_http_new(etcd, &etcd->http) != GAVEL_OK)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", etcd->where);
    if (status == GAVEL_OK)
        status = look_at(etcd, error);
    if (status != GAVEL_OK) {
        free_store(etcd);
        return status;
    }
    *ret_store = &etcd->push.store;
    return GAVEL_OK;
}

/* The keys of wishes go with their group: a wish is of an epoch, and that of another group has another. */
static enum gavel_status remove_group(struct store *store, const char *group, uint64_t version,
                                      gavel_ns until, struct gavel_error *error)
{
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct look look = {0};
    struct etcd_call call = {.give_up_at = until, .on_answer = take_look, .user = &look};
    char key[ETCD_KEY_SIZE];
    const struct etcd_put put = {.compared = key, .revision = version, .key = key};

    etcd_key(etcd, ETCD_GROUPS, group, NULL, key);
    etcd_ask(&call, "/v3/kv/txn", etcd_body_put(&put, NULL, NULL), true);
    etcd_calls_run(etcd, etcd->http, &call, 1);
    return look.status != GAVEL_OK ? error_set(error, look.status, "%s", look.message) : GAVEL_OK;
}

static void close_store(struct store *store)
{
    struct etcd_store *etcd = (struct etcd_store *)store;

    if (push_is_forked(&etcd->push))
        return; /* in a forked child: the thread is not here, and the connections are the parent's */
    etcd_stream_stop(etcd);
    free_store(etcd);
}

static bool own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE])
{
    struct etcd_store *etcd = (struct etcd_store *)store;

    (void)strcpy(ret_address, http_own_address(etcd->http)); /* of this very size */
    return ret_address[0] != '\0';
}

const struct store_driver store_etcd = {
    .scheme = "etcd",
    .summary = "etcd://HOST:PORT,…/PREFIX  an etcd cluster, 3.4 or later",
    .capabilities =
        {
            .name = "etcd",
            .preset = "database",
            .clock = STORE_CLOCK_NONE,
            .is_shared = true,
            .sees_processes = true,
            .has_push = true,
        },
    .check_url = check_url,
    .caution = caution,
    .remove = remove_group,
    .open = open_store,
    .probe = etcd_probe,
    .own_address = own_address,
    .run = etcd_run,
    .wait = push_wait,
    .close = close_store,
    .push_fd = push_fd,
    .watch = push_watch,
    .changed = push_changed,
};
