/* SPDX-License-Identifier: Apache-2.0 */

#include "fake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define REQUEST_MAX (256 * 1024)
#define ANSWER_MAX (512 * 1024)

/* One request, taken apart. */
struct request {
    char text[REQUEST_MAX];
    char method[8];
    char path[4096];  /* the key, decoded */
    char query[4096]; /* not decoded */
    const char *body;
};

/* False if there is none. */
static bool header(const struct request *request, const char *name, char *ret_value, size_t size)
{
    const char *line = strstr(request->text, "\r\n");

    while (line && strncmp(line, "\r\n\r\n", 4) != 0) {
        size_t length = strlen(name);

        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;

            value += strspn(value, " ");
            (void)snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\r\n"), value);
            return true;
        }
        line = strstr(line, "\r\n");
    }
    return false;
}

static void decode(const char *from, size_t length, char *to, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < length && used + 1 < size; i++) {
        char digits[3] = {0};

        if (from[i] == '%' && i + 2 < length) {
            memcpy(digits, from + i + 1, 2);
            to[used++] = (char)strtol(digits, NULL, 16);
            i += 2;
        } else {
            to[used++] = from[i];
        }
    }
    to[used] = '\0';
}

/* The value of a parameter, decoded; "" if there is none. */
static void parameter(const struct request *request, const char *name, char *ret_value, size_t size)
{
    ret_value[0] = '\0';
    for (const char *at = request->query; *at;) {
        size_t length = strcspn(at, "&");

        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=')
            decode(at + strlen(name) + 1, length - strlen(name) - 1, ret_value, size);
        at += length + (at[length] == '&');
    }
}

static bool read_request(int fd, struct request *request)
{
    size_t used = 0;
    char value[32];

    for (;;) {
        char *end;
        ssize_t got = read(fd, request->text + used, sizeof request->text - 1 - used);

        if (got <= 0)
            return false;
        used += (size_t)got;
        request->text[used] = '\0';
        end = strstr(request->text, "\r\n\r\n");
        if (!end)
            continue;
        request->body = end + 4;
        if (!header(request, "Content-Length", value, sizeof value) ||
            used - (size_t)(request->body - request->text) >= strtoul(value, NULL, 10))
            break;
    }
    {
        const char *path = strchr(request->text, ' ');
        const char *end = path ? strchr(path + 1, ' ') : NULL;
        size_t length;

        if (!end || path - request->text >= (long)sizeof request->method)
            return false;
        (void)snprintf(request->method, sizeof request->method, "%.*s", (int)(path - request->text),
                       request->text);
        path++;
        length = strcspn(path, "? ");
        request->query[0] = '\0';
        if (path[length] == '?')
            (void)snprintf(request->query, sizeof request->query, "%.*s",
                           (int)(end - path - (long)length - 1), path + length + 1);
        if (strncmp(path, "/bucket/", 8) != 0)
            return false;
        decode(path + 8, length - 8, request->path, sizeof request->path);
    }
    return true;
}

static void answer(int fd, int status, const char *etag, const char *body)
{
    char *text;
    int length = asprintf(&text, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s%s%sConnection: close\r\n\r\n%s",
                          status, status == 304 ? 0 : strlen(body), *etag ? "ETag: \"" : "", etag,
                          *etag ? "\"\r\n" : "", status == 304 ? "" : body);

    if (length > 0 && write(fd, text, (size_t)length) < 0)
        length = 0; /* whoever asked is gone */
    if (length >= 0)
        free(text);
}

static void answer_error(int fd, int status, const char *code)
{
    char body[256] = "";

    if (*code)
        (void)snprintf(body, sizeof body, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message/></Error>",
                       code);
    answer(fd, status, "", body);
}

static struct fake_object *find(struct s3_fake *fake, const char *key)
{
    for (size_t i = 0; i < fake->count; i++)
        if (strcmp(fake->objects[i].key, key) == 0)
            return &fake->objects[i];
    return NULL;
}

static void store_object(struct s3_fake *fake, const char *key, const char *body)
{
    struct fake_object *object = find(fake, key);
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (!object) {
        size_t at = 0;

        fake->objects = realloc(fake->objects, (fake->count + 1) * sizeof *fake->objects);
        while (at < fake->count && strcmp(fake->objects[at].key, key) < 0)
            at++;
        object = &fake->objects[at];
        memmove(object + 1, object, (fake->count - at) * sizeof *object);
        fake->count++;
        *object = (struct fake_object){.key = strdup(key)};
    }
    free(object->body);
    object->body = strdup(body);
    (void)EVP_Digest(body, strlen(body), hash, &length, EVP_md5(), NULL);
    for (size_t i = 0; i < 16; i++)
        (void)snprintf(object->etag + 2 * i, 3, "%02x", (unsigned)hash[i]);
    if (fake->has_one_etag)
        (void)strcpy(object->etag, "same");
}

/* Whether the conditions of a PUT hold. */
static bool may_put(struct s3_fake *fake, const struct request *request)
{
    const struct fake_object *object = find(fake, request->path);
    char wanted[200];
    char has[200];

    if (header(request, "If-None-Match", wanted, sizeof wanted) && object)
        return fake->ignores_if_none_match;
    if (!header(request, "If-Match", wanted, sizeof wanted) || fake->ignores_if_match)
        return true;
    if (!object)
        return false;
    (void)snprintf(has, sizeof has, fake->wants_bare ? "%s" : "\"%s\"", object->etag);
    return strcmp(has, wanted) == 0;
}

/* Keeps the one who asked waiting, or answers the one who was. */
static bool is_kept_waiting(struct s3_fake *fake, int fd, const struct request *request)
{
    if (!fake->late || !strstr(request->path, fake->late))
        return false;
    fake->late = NULL;
    fake->late_fd = dup(fd);
    return true;
}

static void answer_late(struct s3_fake *fake)
{
    if (fake->late_fd < 0)
        return;
    answer_error(fake->late_fd, 412, "PreconditionFailed");
    (void)close(fake->late_fd);
    fake->late_fd = -1;
}

static void put(struct s3_fake *fake, int fd, const struct request *request)
{
    enum fake_trouble trouble = FAKE_FINE;

    if (is_kept_waiting(fake, fd, request))
        return;

    if (fake->troubles > 0) {
        fake->troubles--;
        trouble = fake->trouble;
    }
    if (trouble == FAKE_CUTS)
        return;
    if (trouble == FAKE_REFUSES) {
        answer_error(fd, fake->status, fake->code);
        return;
    }
    if (!may_put(fake, request)) {
        answer_error(fd, 412, "PreconditionFailed");
        return;
    }
    store_object(fake, request->path, request->body);
    if (trouble == FAKE_WRITES_AND_FAILS)
        answer_error(fd, fake->status, fake->code);
    else if (trouble == FAKE_FINE)
        answer(fd, 200, find(fake, request->path)->etag, "");
    answer_late(fake);
}

static void get(struct s3_fake *fake, int fd, const struct request *request)
{
    const struct fake_object *object = find(fake, request->path);
    char wanted[200];
    char has[200];

    if (!object) {
        answer_error(fd, 404, "NoSuchKey");
        return;
    }
    (void)snprintf(has, sizeof has, "\"%s\"", object->etag);
    if (header(request, "If-None-Match", wanted, sizeof wanted) && strcmp(wanted, has) == 0)
        answer(fd, 304, object->etag, "");
    else
        answer(fd, 200, object->etag, object->body);
}

/* Keys below a prefix; the token is the last one of the page before. No delimiter: groups are for radosgw. */
static void list(struct s3_fake *fake, int fd, const struct request *request)
{
    char prefix[2048];
    char token[2048];
    char most[16];
    char *body = malloc(ANSWER_MAX);
    size_t used = 0;
    size_t listed = 0;
    const char *last = NULL;
    bool has_more = false;

    assert_non_null(body);
    parameter(request, "prefix", prefix, sizeof prefix);
    parameter(request, "continuation-token", token, sizeof token);
    parameter(request, "max-keys", most, sizeof most);
    used = (size_t)snprintf(body, ANSWER_MAX, "<?xml version=\"1.0\"?><ListBucketResult>");
    for (size_t i = 0; i < fake->count && !has_more; i++) {
        const struct fake_object *object = &fake->objects[i];

        if (strncmp(object->key, prefix, strlen(prefix)) != 0 || strcmp(object->key, token) <= 0)
            continue;
        if (listed++ == strtoul(most, NULL, 10)) {
            has_more = true;
            break;
        }
        last = object->key;
        used +=
            (size_t)snprintf(body + used, ANSWER_MAX - used,
                             "<Contents><Key>%s</Key><ETag>&quot;%s&quot;</ETag><Size>%zu</Size></Contents>",
                             object->key, object->etag, strlen(object->body));
    }
    (void)snprintf(body + used, ANSWER_MAX - used,
                   "<IsTruncated>%s</IsTruncated><NextContinuationToken>%s</NextContinuationToken>"
                   "</ListBucketResult>",
                   has_more ? "true" : "false", has_more ? last : "");
    answer(fd, 200, "", body);
    free(body);
}

static void remove_object(struct s3_fake *fake, int fd, const struct request *request)
{
    struct fake_object *object = find(fake, request->path);

    if (object) {
        free(object->key);
        free(object->body);
        fake->count--;
        memmove(object, object + 1, (size_t)(fake->objects + fake->count - object) * sizeof *object);
    }
    answer(fd, 204, "", "");
}

static void serve(struct s3_fake *fake, int fd, const struct request *request)
{
    bool is_list = strstr(request->query, "list-type=2") != NULL;
    bool is_get = strcmp(request->method, "GET") == 0;
    bool is_put = strcmp(request->method, "PUT") == 0;

    fake->authorization[0] = fake->token[0] = '\0';
    (void)header(request, "Authorization", fake->authorization, sizeof fake->authorization); /* "" if none */
    (void)header(request, "x-amz-security-token", fake->token, sizeof fake->token);
    fake->counts.lists += is_list;
    fake->counts.gets += is_get && !is_list;
    fake->counts.puts += is_put;
    fake->counts.deletes += strcmp(request->method, "DELETE") == 0;
    if (fake->is_no_s3)
        answer(fd, 200, "", "<html><body>It works!</body></html>");
    else if (fake->is_denying || (fake->needed && !strstr(fake->authorization, fake->needed)))
        answer_error(fd, fake->status, fake->code);
    else if (is_list)
        list(fake, fd, request);
    else if (is_get)
        get(fake, fd, request);
    else if (is_put)
        put(fake, fd, request);
    else
        remove_object(fake, fd, request);
}

static void *run(void *user)
{
    struct s3_fake *fake = user;
    struct request *request = malloc(sizeof *request);

    while (request) {
        int fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            break; /* it was shut down */
        if (read_request(fd, request)) {
            (void)pthread_mutex_lock(&fake->lock);
            serve(fake, fd, request);
            (void)pthread_mutex_unlock(&fake->lock);
        }
        (void)close(fd);
    }
    free(request);
    return NULL;
}

void s3_fake_start(struct s3_fake *fake)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    *fake = (struct s3_fake){.code = "", .late_fd = -1};
    (void)pthread_mutex_init(&fake->lock, NULL);
    fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fake->fd >= 0);
    assert_int_equal(bind(fake->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fake->fd, 64), 0);
    assert_int_equal(getsockname(fake->fd, (struct sockaddr *)&address, &size), 0);
    fake->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
}

void s3_fake_stop(struct s3_fake *fake)
{
    (void)shutdown(fake->fd, SHUT_RDWR); /* ends the accept */
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    (void)close(fake->fd);
    for (size_t i = 0; i < fake->count; i++) {
        free(fake->objects[i].key);
        free(fake->objects[i].body);
    }
    free(fake->objects);
    (void)pthread_mutex_destroy(&fake->lock);
}

void s3_fake_url(const struct s3_fake *fake, char *url, size_t size)
{
    (void)snprintf(url, size, "s3://bucket/p?endpoint=http://127.0.0.1:%d", fake->port);
}

void s3_fake_trouble(struct s3_fake *fake, enum fake_trouble trouble, int troubles, int status,
                     const char *code)
{
    (void)pthread_mutex_lock(&fake->lock);
    fake->trouble = trouble;
    fake->troubles = troubles;
    fake->status = status;
    fake->code = code;
    (void)pthread_mutex_unlock(&fake->lock);
}

struct fake_counts s3_fake_counts(struct s3_fake *fake)
{
    struct fake_counts counts;

    (void)pthread_mutex_lock(&fake->lock);
    counts = fake->counts;
    fake->counts = (struct fake_counts){0};
    (void)pthread_mutex_unlock(&fake->lock);
    return counts;
}

void s3_fake_write(struct s3_fake *fake, const char *key, const char *body)
{
    (void)pthread_mutex_lock(&fake->lock);
    store_object(fake, key, body);
    (void)pthread_mutex_unlock(&fake->lock);
}
