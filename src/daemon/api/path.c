/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths with names in them, and what follows the ?. A name is one segment of
 * the path, percent-encoded: a slash in it is %2F. A decoded name has
 * passed name_check(), so handlers get only names that could exist.
 */
#include "daemon/api/internal.h"

#include <errno.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool api_path_fits(const char *pattern, const char *path)
{
    while (*pattern) {
        if (*pattern == '{') {
            size_t length = strcspn(path, "/");

            if (length == 0)
                return false;
            path += length;
            pattern = strchr(pattern, '}') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One segment into the buffer. NULL, or what is wrong with it. */
static const char *decode(const char *text, size_t length, char *buffer, size_t size)
{
    size_t out = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (c == '%') {
            int high = i + 2 < length ? digit(text[i + 1]) : -1;
            int low = i + 2 < length ? digit(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return "has a % that is not followed by two hexadecimal digits; write %25 for itself";
            c = (char)(high << 4 | low);
            i += 2;
            if (c == '\0')
                return "has a zero byte; leave it out";
        }
        if (out + 1 >= size)
            return "is too long; shorten it to at most 255 bytes";
        buffer[out++] = c;
    }
    buffer[out] = '\0';
    return NULL;
}

/* False: the call has been answered. */
static bool read_name(struct api_call *call, const char *what, const char *text, size_t length, char *buffer,
                      size_t size)
{
    struct gavel_error error = {0};
    const char *wrong = decode(text, length, buffer, size);

    if (wrong)
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "the %s in the path %s", what, wrong);
    else if (name_check(what, buffer, &error) != GAVEL_OK)
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "%s", error.message);
    else
        return true;
    return false;
}

bool api_path_read(struct api_call *call, const char *pattern, const char *path)
{
    while (*pattern) {
        if (*pattern == '{') {
            bool is_group = pattern[1] == 'g';
            size_t length = strcspn(path, "/");

            if (is_group &&
                !read_name(call, "group name", path, length, call->names.group, sizeof call->names.group))
                return false;
            if (!is_group && !read_name(call, "key", path, length, call->names.key, sizeof call->names.key))
                return false;
            path += length;
            pattern = strchr(pattern, '}') + 1;
        } else {
            pattern++;
            path++;
        }
    }
    return true;
}

bool api_query_read(struct api_call *call, struct evkeyvalq *ret_pairs)
{
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(call->http));

    TAILQ_INIT(ret_pairs);
    if (!query)
        return true;
    if (strstr(query, "%00") || evhttp_parse_query_str(query, ret_pairs)) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "what follows the ? is not key=value");
        return false;
    }
    return true;
}

bool api_query_number(struct api_call *call, const struct evkeyvalq *pairs, const char *key, int64_t least,
                      int64_t most, int64_t *ret_number)
{
    const char *text = evhttp_find_header(pairs, key);
    char *end = NULL;
    int64_t number;

    if (!text)
        return true;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno || end == text || *end != '\0' || number < least || number > most) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "%s must be a number between %" PRId64 " and %" PRId64,
                        key, least, most);
        return false;
    }
    *ret_number = number;
    return true;
}

bool api_query_flag(struct api_call *call, const struct evkeyvalq *pairs, const char *key, bool *ret_flag)
{
    const char *text = evhttp_find_header(pairs, key);

    if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "%s must be true or false", key);
        return false;
    }
    if (text)
        *ret_flag = text[0] == 't';
    return true;
}

bool api_query_text(struct api_call *call, const struct evkeyvalq *pairs, const char *key, size_t most,
                    const char **ret_text)
{
    const char *text = evhttp_find_header(pairs, key);

    if (text && strlen(text) > most) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID, "%s has %zu bytes; shorten it to at most %zu", key,
                        strlen(text), most);
        return false;
    }
    *ret_text = text ? text : "";
    return true;
}
