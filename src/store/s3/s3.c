/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `s3://bucket/prefix`: opening and closing it, and the probe;
 * s3.h has the picture.
 *
 * Opening asks for one page of a list: it shows whether the server is there,
 * knows us and the bucket, and lets us list. Whether it keeps the promise of a
 * conditional PUT shows only by trying: many servers know S3 and ignore the
 * conditions, and two leaders would be the result. The probe does what the
 * driver does, on an object of its own.
 */
#include "store/s3/s3.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/process.h"
#include "store/secret.h"
#include "store/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY (500 * NS_PER_MS)
#define PROBE_PATIENCE (5 * NS_PER_S)

static const char *const options[] = {"endpoint",    "region",  "path_style", "ca",
                                      "credentials", "profile", NULL};

static const struct url_form form = {
    .scheme = "s3",
    .example = "s3://bucket/prefix?endpoint=https://s3.example.org",
    .hosts_max = 1,
    .options = options,
};

static void free_store(struct s3_store *s3)
{
    http_free(s3->http);
    s3_target_done(&s3->target);
    s3_credentials_source_done(&s3->source);
    s3_cache_done(&s3->cache);
    sightings_done(&s3->sightings);
    explicit_bzero(&s3->credentials, sizeof s3->credentials);
    free(s3);
}

static enum gavel_status make_http(struct s3_store *s3, struct gavel_error *error)
{
    char pair[sizeof s3->credentials.key + sizeof s3->credentials.secret];
    char sigv4[96];
    const struct http_settings settings = {
        .ca_file = s3->target.ca_file, .sigv4 = sigv4, .credentials = pair};
    enum gavel_status status;

    (void)snprintf(pair, sizeof pair, "%s:%s", s3->credentials.key, s3->credentials.secret);
    (void)snprintf(sigv4, sizeof sigv4, "aws:amz:%s:s3", s3->target.region);
    status = http_new(&settings, &s3->http);
    explicit_bzero(pair, sizeof pair);
    return status != GAVEL_OK ? error_set(error, status, "out of memory while opening an object store")
                              : GAVEL_OK;
}

/* One request by itself: what became of it, and if it is not a success, why. */
static enum s3_outcome ask(struct s3_store *s3, struct s3_object *object, bool is_ready,
                           enum gavel_status *ret_status, struct gavel_error *error)
{
    enum s3_outcome outcome;
    char message[256];
    enum gavel_status status;

    if (!is_ready) {
        *ret_status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
        return S3_FAILED;
    }
    http_run(s3->http, object->call, 1);
    outcome = s3_object_outcome(object);
    if (outcome == S3_DONE)
        return outcome;
    status = s3_explain(s3, object, message, sizeof message);
    /* Whoever opens a store tries again or not; that it was this call that was too slow is of no use. */
    *ret_status =
        error_set(error, status == GAVEL_ERR_TIMEOUT ? GAVEL_ERR_STORE_UNAVAILABLE : status, "%s", message);
    return outcome;
}

static enum gavel_status look(struct s3_store *s3, struct gavel_error *error)
{
    struct http_call call = {.give_up_at = clock_now() + STORE_OPEN_PATIENCE};
    struct s3_object object = {.call = &call};
    enum gavel_status status = GAVEL_OK;
    char found[8];

    s3->page_size = 1;
    if (ask(s3, &object, s3_object_list(s3, &object, s3->target.prefix, "", ""), &status, error) == S3_DONE &&
        !s3_xml_text((struct s3_span){call.answer, call.answer_size}, "IsTruncated", found, sizeof found))
        status = error_set(
            error, GAVEL_ERR_STORE_UNSUPPORTED,
            "what answers for %s is not an S3 server, or one without ListObjectsV2; check endpoint=",
            s3->target.where);
    s3->page_size = S3_PAGE_SIZE;
    s3_object_done(&object);
    return status;
}

static enum gavel_status check_url(const char *rest, struct gavel_error *error)
{
    struct s3_credentials_source source = {0};
    struct s3_target target = {0};
    struct url url;
    enum gavel_status status = url_parse(&form, rest, &url, error);

    if (status == GAVEL_OK)
        status = s3_target_find(&url, &target, error);
    if (status == GAVEL_OK)
        status = s3_credentials_find(&url, &source, error);
    s3_credentials_source_done(&source);
    s3_target_done(&target);
    url_done(&url);
    return status;
}

static void caution(const char *rest, char *ret_text, size_t size)
{
    struct s3_credentials_source source = {0};
    struct url url;

    if (url_parse(&form, rest, &url, NULL) == GAVEL_OK &&
        s3_credentials_find(&url, &source, NULL) == GAVEL_OK && !source.is_environment)
        secret_caution(source.file, ret_text, size);
    s3_credentials_source_done(&source);
    url_done(&url);
}

static enum gavel_status open_store(const char *rest, struct store **ret_store, struct gavel_error *error)
{
    struct s3_store *s3 = calloc(1, sizeof *s3);
    struct url url = {0};
    enum gavel_status status;

    if (!s3)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening an object store");
    s3->pid = getpid();
    s3->page_size = S3_PAGE_SIZE;
    if (process_self(&s3->self) != GAVEL_OK)
        s3->self = (struct process_id){0}; /* not told: leases decide */
    status = url_parse(&form, rest, &url, error);
    if (status == GAVEL_OK)
        status = s3_target_find(&url, &s3->target, error);
    if (status == GAVEL_OK)
        status = s3_credentials_find(&url, &s3->source, error);
    if (status == GAVEL_OK)
        status = s3_credentials_read(&s3->source, &s3->credentials, error);
    if (status == GAVEL_OK)
        status = make_http(s3, error);
    if (status == GAVEL_OK)
        status = look(s3, error);
    url_done(&url);
    if (status != GAVEL_OK) {
        free_store(s3);
        return status;
    }
    *ret_store = &s3->store;
    return GAVEL_OK;
}

static void close_store(struct store *store)
{
    struct s3_store *s3 = (struct s3_store *)store;

    if (s3->pid != getpid())
        return; /* in a forked child: the connections are the parent's */
    free_store(s3);
}

/* Each look is a request that costs money, so whoever waits looks twice a second and no more. */
static void wait_a_moment(struct store *store, const char *group, uint64_t version, gavel_ns until)
{
    gavel_ns left = ns_min(until - clock_now(), LOOK_EVERY);
    struct timespec pause = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};

    (void)store;
    (void)group;
    (void)version;
    if (left > 0)
        (void)nanosleep(&pause, NULL); /* waking early does no harm: the caller looks */
}

/* The probe under way. */
struct probe {
    struct s3_store *s3;
    struct http_call call;
    struct s3_object object;
    char *key;
    int writes;
    struct gavel_error *error;
    enum gavel_status status;
};

/* DONE or REFUSED; anything else also sets the status. */
static enum s3_outcome put(struct probe *probe, const char *etag, enum s3_quoting quoting)
{
    struct gavel_error trouble = {0};
    enum gavel_status status = GAVEL_OK;
    enum s3_outcome outcome;
    char *body;

    if (asprintf(&body, "{\"probe\": %d, \"random\": \"%016" PRIx64 "\"}", ++probe->writes, entropy_u64()) <
        0)
        body = NULL;
    outcome = ask(probe->s3, &probe->object,
                  body && s3_object_put(probe->s3, &probe->object, probe->key, body, etag, quoting), &status,
                  &trouble);
    if (outcome != S3_DONE && outcome != S3_REFUSED)
        probe->status = error_set(probe->error, status, "%s", trouble.message);
    return outcome;
}

static bool refuse(struct probe *probe, const char *what)
{
    probe->status = error_set(
        probe->error, GAVEL_ERR_STORE_UNSUPPORTED,
        "the server of %s %s, so two candidates could both win there; use a server with conditional PUTs (docs/STORES.md names some)",
        probe->s3->target.where, what);
    return false;
}

/* Makes the object, and sees that it is made only once. Its ETag is in *ret_etag. */
static bool probe_creation(struct probe *probe, char ret_etag[S3_ETAG_MAX + 1])
{
    if (put(probe, "", S3_QUOTED) != S3_DONE)
        return probe->status == GAVEL_OK ? refuse(probe, "says that a new object is already there") : false;
    s3_object_etag(&probe->object, ret_etag);
    if (!ret_etag[0])
        return refuse(probe, "tells no ETag of what was written");
    if (put(probe, "", S3_QUOTED) == S3_DONE)
        return refuse(probe, "ignores If-None-Match: * and overwrites what is there");
    return probe->status == GAVEL_OK;
}

/* Replaces the object by the form of If-Match that the server takes, and sees that an old ETag is refused. */
static bool probe_replacement(struct probe *probe, const char *etag)
{
    enum s3_quoting quoting = S3_QUOTED;
    char now[S3_ETAG_MAX + 1];
    enum s3_outcome outcome = put(probe, etag, quoting);

    if (outcome == S3_REFUSED) {
        quoting = S3_BARE;
        outcome = put(probe, etag, quoting);
    }
    if (outcome == S3_REFUSED)
        return refuse(probe, "refuses If-Match with the very ETag it has told");
    if (outcome != S3_DONE)
        return false;
    s3_object_etag(&probe->object, now);
    if (strcmp(now, etag) == 0)
        return refuse(probe, "gives two contents the same ETag");
    outcome = put(probe, etag, quoting);
    if (outcome == S3_DONE)
        return refuse(probe, "ignores If-Match and overwrites what others have written");
    if (outcome != S3_REFUSED)
        return false;
    probe->s3->quoting = quoting;
    probe->s3->is_quoting_known = true;
    return true;
}

static enum gavel_status probe_store(struct store *store, struct gavel_error *error)
{
    struct s3_store *s3 = (struct s3_store *)store;
    struct probe probe = {.s3 = s3, .error = error};
    char etag[S3_ETAG_MAX + 1];
    enum gavel_status ignored;

    probe.call.give_up_at = clock_now() + PROBE_PATIENCE;
    probe.object.call = &probe.call;
    if (asprintf(&probe.key, "%sprobe=%016" PRIx64 "%016" PRIx64 ".json", s3->target.prefix, entropy_u64(),
                 entropy_u64()) < 0)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while probing an object store");
    if (probe_creation(&probe, etag))
        (void)probe_replacement(&probe, etag); /* the status tells */
    /* Also after a failure: it may have been written. What is left behind then is one small object. */
    (void)ask(s3, &probe.object, s3_object_delete(s3, &probe.object, probe.key), &ignored, NULL);
    s3_object_done(&probe.object);
    free(probe.key);
    return probe.status;
}

/*
 * Not every server takes a condition for that, so it is removed whatever its version: whoever has claimed it
 * meanwhile loses it, and pings only measure.
 */
static enum gavel_status remove_group(struct store *store, const char *group, uint64_t version,
                                      gavel_ns until, struct gavel_error *error)
{
    struct s3_store *s3 = (struct s3_store *)store;
    char *key = s3_key_state(&s3->target, group);
    struct http_call call = {.give_up_at = until};
    struct s3_object object = {.call = &call};
    enum gavel_status status = GAVEL_OK;

    (void)version;
    if (!key)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while asking an object store");
    (void)ask(s3, &object, s3_object_delete(s3, &object, key), &status, error);
    s3_object_done(&object);
    free(key);
    return status;
}

static bool own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE])
{
    struct s3_store *s3 = (struct s3_store *)store;

    (void)strcpy(ret_address, http_own_address(s3->http)); /* of this very size */
    return ret_address[0] != '\0';
}

const struct store_driver store_s3 = {
    .scheme = "s3",
    .summary =
        "s3://BUCKET/PREFIX  an object store with conditional PUTs; ?endpoint=URL for others than Amazon",
    .capabilities =
        {
            .name = "s3",
            .preset = "object-store",
            .clock = STORE_CLOCK_NONE,
            .is_shared = true,
            .sees_processes = true,
        },
    .check_url = check_url,
    .caution = caution,
    .remove = remove_group,
    .open = open_store,
    .probe = probe_store,
    .own_address = own_address,
    .run = s3_run,
    .wait = wait_a_moment,
    .close = close_store,
};
