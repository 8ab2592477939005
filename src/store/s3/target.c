/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a bucket is. Amazon's is named by the region, with the bucket in the
 * host name; any other server by endpoint= (or AWS_ENDPOINT_URL_S3), with the
 * bucket in the path, as a name server seldom knows of buckets.
 */
#include "store/s3/s3.h"

#include "base/error.h"
#include "store/url.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX_MAX 400 /* leaves room for names in a key */
#define REGION_DEFAULT "us-east-1"

void s3_target_done(struct s3_target *target)
{
    free(target->where);
    free(target->root);
    free(target->prefix);
    free(target->region);
    free(target->ca_file);
    *target = (struct s3_target){0};
}

static enum gavel_status no_memory(struct gavel_error *error)
{
    return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening an object store");
}

/* The first that is set: the option, then the variables of the environment; NULL if none is. */
static const char *setting(const struct url *url, const char *option, const char *variable, const char *other)
{
    const char *value = url_option(url, option);

    if (!value || !*value)
        value = secure_getenv(variable);
    if ((!value || !*value) && other)
        value = secure_getenv(other);
    return value && *value ? value : NULL;
}

/* What may stand in a host name, and a little more for old buckets. */
static bool is_plain(const char *text, size_t most)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

    return length > 0 && length <= most && text[length] == '\0';
}

static enum gavel_status check_bucket(const struct url *url, struct gavel_error *error)
{
    const char *bucket = url->hosts[0].name;

    if (url->user)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "an access key does not belong in the URL of a store; write s3://BUCKET/PREFIX and set AWS_ACCESS_KEY_ID, or name a file with credentials=");
    if (url->hosts[0].port != 0)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "after s3:// comes the name of a bucket, which has no port; the server is named by endpoint=, as in s3://bucket/prefix?endpoint=http://host:9000");
    if (!is_plain(bucket, 255) || strcmp(bucket, ".") == 0 || strcmp(bucket, "..") == 0)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "\"%.63s\" is not the name of a bucket: those have letters, digits, dots and hyphens", bucket);
    return GAVEL_OK;
}

/* Whether a part of the path is "." or "..": servers and proxies disagree about what that means. */
static bool has_dots(const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/");

        if ((length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.'))
            return true;
        path += length + (path[length] == '/');
    }
    return false;
}

static enum gavel_status make_prefix(const struct url *url, struct s3_target *target,
                                     struct gavel_error *error)
{
    const char *path = url->path + strspn(url->path, "/");
    size_t length = strlen(path);

    while (length > 0 && path[length - 1] == '/')
        length--;
    if (length > PREFIX_MAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the prefix in the URL of the store is longer than %d bytes; choose a shorter one",
                         PREFIX_MAX);
    if (has_dots(path))
        return error_set(error, GAVEL_ERR_INVALID,
                         "the prefix in the URL of the store has a part \".\" or \"..\"; write it without");
    if (asprintf(&target->prefix, "%.*s%splugin=coordinator/", (int)length, path, length ? "/" : "") < 0) {
        target->prefix = NULL;
        return no_memory(error);
    }
    if (asprintf(&target->where, "s3://%.63s%s%.*s", url->hosts[0].name, length ? "/" : "",
                 (int)(length < 40 ? length : 40), path) < 0) {
        target->where = NULL;
        return no_memory(error);
    }
    return GAVEL_OK;
}

/* Scheme, host and port of an endpoint; the rest of it must be empty. */
static enum gavel_status parse_endpoint(const char *endpoint, char **ret_scheme, char **ret_host,
                                        struct gavel_error *error)
{
    CURLU *parts = curl_url();
    char *path = NULL;
    char *user = NULL;
    char *query = NULL;
    char *port = NULL;
    char *host = NULL;
    bool is_good;

    if (!parts)
        return no_memory(error);
    is_good = strcspn(endpoint, " \t\r\n") == strlen(endpoint) &&
              curl_url_set(parts, CURLUPART_URL, endpoint, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_SCHEME, ret_scheme, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0 &&
              curl_url_get(parts, CURLUPART_USER, &user, 0) != CURLUE_OK &&
              curl_url_get(parts, CURLUPART_QUERY, &query, 0) != CURLUE_OK &&
              (strcmp(*ret_scheme, "http") == 0 || strcmp(*ret_scheme, "https") == 0);
    if (is_good && curl_url_get(parts, CURLUPART_PORT, &port, 0) != CURLUE_OK)
        port = NULL;
    if (is_good && asprintf(ret_host, "%s%s%s", host, port ? ":" : "", port ? port : "") < 0)
        *ret_host = NULL;
    curl_free(path);
    curl_free(user);
    curl_free(query);
    curl_free(port);
    curl_free(host);
    curl_url_cleanup(parts);
    if (!is_good && !strstr(endpoint, "://"))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the endpoint \"%.100s\" lacks its scheme; write http://HOST:PORT, or https://HOST:PORT for TLS",
            strchr(endpoint, '@') ? "…" : endpoint); /* before the @ a password may stand */
    if (!is_good)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the endpoint \"%.100s\" is not http://HOST:PORT or https://HOST:PORT and nothing more; a key or a path does not belong there",
            strchr(endpoint, '@') ? "…" : endpoint);
    return *ret_host ? GAVEL_OK : no_memory(error);
}

static enum gavel_status make_root(const struct url *url, struct s3_target *target, struct gavel_error *error)
{
    const char *endpoint = setting(url, "endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    const char *bucket = url->hosts[0].name;
    char *scheme = NULL;
    char *host = NULL;
    bool is_path;
    int made = -1;
    /* A dot in the bucket would be one too many for the certificate of *.s3.REGION.amazonaws.com. */
    enum gavel_status status =
        url_option_bool(url, "path_style", endpoint || strchr(bucket, '.'), &is_path, error);

    if (status == GAVEL_OK && endpoint)
        status = parse_endpoint(endpoint, &scheme, &host, error);
    if (status == GAVEL_OK && !endpoint && asprintf(&host, "s3.%s.amazonaws.com", target->region) < 0) {
        host = NULL;
        status = no_memory(error);
    }
    if (status == GAVEL_OK) {
        made = is_path ? asprintf(&target->root, "%s://%s/%s", scheme ? scheme : "https", host, bucket)
                       : asprintf(&target->root, "%s://%s.%s", scheme ? scheme : "https", bucket, host);
        if (made < 0) {
            target->root = NULL;
            status = no_memory(error);
        }
    }
    curl_free(scheme);
    free(host);
    return status;
}

enum gavel_status s3_target_find(const struct url *url, struct s3_target *ret_target,
                                 struct gavel_error *error)
{
    const char *region = setting(url, "region", "AWS_REGION", "AWS_DEFAULT_REGION");
    const char *ca = setting(url, "ca", "AWS_CA_BUNDLE", NULL);
    enum gavel_status status = check_bucket(url, error);

    *ret_target = (struct s3_target){0};
    if (status != GAVEL_OK)
        return status;
    if (!region)
        region = REGION_DEFAULT;
    if (!is_plain(region, 63))
        return error_set(error, GAVEL_ERR_INVALID,
                         "the region \"%.60s\" of the object store is none; write it like eu-central-1",
                         region);
    if (ca && access(ca, R_OK) != 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the CA certificates in %.200s cannot be read; name a PEM file with ca=", ca);
    ret_target->region = strdup(region);
    ret_target->ca_file = ca ? strdup(ca) : NULL;
    if (!ret_target->region || (ca && !ret_target->ca_file))
        return no_memory(error);
    status = make_prefix(url, ret_target, error);
    return status != GAVEL_OK ? status : make_root(url, ret_target, error);
}
