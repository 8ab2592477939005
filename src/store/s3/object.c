/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request for an object or a list, and what became of it. A server that
 * answers a conditional PUT with 412, 409 or 5xx may have carried it out all
 * the same: libcurl sends a request again if a kept connection breaks before
 * the answer, a gateway may retry behind our back, and the loser of a race is
 * told any of the three. So all of them only say: look.
 */
#include "store/s3/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_header(struct curl_slist **headers, const char *name, const char *value, bool *is_short)
{
    struct curl_slist *longer;
    char *line;

    if (asprintf(&line, "%s: %s", name, value) < 0) {
        *is_short = true;
        return;
    }
    longer = curl_slist_append(*headers, line);
    free(line);
    if (longer)
        *headers = longer;
    else
        *is_short = true;
}

void s3_object_done(struct s3_object *object)
{
    if (object->call) {
        http_call_done(object->call);
        curl_slist_free_all(object->call->headers); /* safe on NULL */
        object->call->headers = NULL;
    }
    free(object->url);
    free(object->body);
    object->url = object->body = NULL;
}

/* What every request has. The URL and the body are taken over. */
static bool prepare(struct s3_store *s3, struct s3_object *object, const char *method, char *url, char *body)
{
    bool is_short = !url;
    char hash[65];

    s3_object_done(object);
    object->url = url;
    object->body = body;
    object->generation = s3->generation;
    object->call->method = method;
    object->call->url = url;
    object->call->body = body;
    object->call->body_size = body ? strlen(body) : 0;
    s3_body_hash(body, object->call->body_size, hash);
    add_header(&object->call->headers, "x-amz-content-sha256", hash, &is_short);
    if (body)
        add_header(&object->call->headers, "Content-Type", "application/json", &is_short);
    if (s3->credentials.token[0])
        add_header(&object->call->headers, "x-amz-security-token", s3->credentials.token, &is_short);
    return !is_short;
}

static bool add_etag(struct s3_object *object, const char *name, const char *etag, enum s3_quoting quoting)
{
    char value[S3_ETAG_MAX + 3];
    bool is_short = false;
    bool is_weak = strncmp(etag, "W/", 2) == 0; /* has its quotes inside */

    (void)snprintf(value, sizeof value, quoting == S3_QUOTED && !is_weak ? "\"%s\"" : "%s", etag);
    add_header(&object->call->headers, name, value, &is_short);
    return !is_short;
}

bool s3_object_get(struct s3_store *s3, struct s3_object *object, const char *key, const char *etag)
{
    if (!prepare(s3, object, "GET", s3_url(&s3->target, key, NULL, 0), NULL))
        return false;
    /* Servers that want If-Match bare take this one quoted all the same. */
    return !*etag || add_etag(object, "If-None-Match", etag, S3_QUOTED);
}

bool s3_object_put(struct s3_store *s3, struct s3_object *object, const char *key, char *body,
                   const char *etag, enum s3_quoting quoting)
{
    bool is_short = false;

    if (!prepare(s3, object, "PUT", s3_url(&s3->target, key, NULL, 0), body))
        return false;
    if (*etag)
        return add_etag(object, "If-Match", etag, quoting);
    add_header(&object->call->headers, "If-None-Match", "*", &is_short);
    return !is_short;
}

bool s3_object_delete(struct s3_store *s3, struct s3_object *object, const char *key)
{
    return prepare(s3, object, "DELETE", s3_url(&s3->target, key, NULL, 0), NULL);
}

bool s3_object_list(struct s3_store *s3, struct s3_object *object, const char *prefix, const char *delimiter,
                    const char *token)
{
    struct s3_parameter parameters[5] = {{"list-type", "2"}, {"prefix", prefix}};
    char page_size[24];
    size_t count = 2;

    (void)snprintf(page_size, sizeof page_size, "%zu", s3->page_size);
    parameters[count++] = (struct s3_parameter){"max-keys", page_size};
    if (*delimiter)
        parameters[count++] = (struct s3_parameter){"delimiter", delimiter};
    if (*token)
        parameters[count++] = (struct s3_parameter){"continuation-token", token};
    return prepare(s3, object, "GET", s3_url(&s3->target, "", parameters, count), NULL);
}

/* Refusals that other credentials may cure. */
static bool is_about_credentials(const struct s3_object *object)
{
    static const char *const codes[] = {"ExpiredToken",         "InvalidToken",          "InvalidAccessKeyId",
                                        "TokenRefreshRequired", "SignatureDoesNotMatch", NULL};
    char code[64] = "";

    if (object->call->status != 400 && object->call->status != 401 && object->call->status != 403)
        return false;
    (void)s3_xml_text((struct s3_span){object->call->answer, object->call->answer_size}, "Code", code,
                      sizeof code);
    for (size_t i = 0; codes[i]; i++)
        if (strcmp(codes[i], code) == 0)
            return true;
    return false;
}

/* Of things that are not there, only an object may be missing: without its bucket nothing can be said. */
static bool is_object_absent(const struct s3_object *object)
{
    char code[64] = "NoSuchKey"; /* an answer without a body means that */

    if (object->call->status != 404)
        return false;
    (void)s3_xml_text((struct s3_span){object->call->answer, object->call->answer_size}, "Code", code,
                      sizeof code);
    return strcmp(code, "NoSuchKey") == 0;
}

enum s3_outcome s3_object_outcome(const struct s3_object *object)
{
    int status = object->call->status;
    bool is_write = object->call->body != NULL;

    if (object->call->fate == HTTP_NOT_SENT)
        return S3_FAILED;
    if (object->call->fate == HTTP_UNKNOWN)
        return is_write ? S3_UNKNOWN : S3_FAILED;
    if (status >= 200 && status < 300)
        return S3_DONE;
    if (status == 304)
        return S3_UNCHANGED;
    if (is_object_absent(object))
        return S3_ABSENT;
    if (is_write && (status == 412 || status == 409))
        return S3_REFUSED;
    /* 503 as well: it may come from something before the server, after it was passed on. */
    if (is_write && status >= 500 && status != 501)
        return S3_UNKNOWN;
    return is_about_credentials(object) ? S3_DENIED : S3_FAILED;
}

void s3_etag_bare(const char *etag, char ret_etag[S3_ETAG_MAX + 1])
{
    size_t length = strnlen(etag, S3_ETAG_MAX);

    if (length >= 2 && etag[0] == '"' && etag[length - 1] == '"') {
        etag++;
        length -= 2;
    }
    memcpy(ret_etag, etag, length);
    ret_etag[length] = '\0';
}

void s3_object_etag(const struct s3_object *object, char ret_etag[S3_ETAG_MAX + 1])
{
    s3_etag_bare(object->call->etag, ret_etag);
}
