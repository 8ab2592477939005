/* SPDX-License-Identifier: Apache-2.0 */

#include "raw.h"

#include "store/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (20 * NS_PER_S)

static json_t *ask(int port, const char *token, const char *path, const char *body)
{
    const struct http_settings settings = {0};
    struct http *http;
    char url[200];
    char line[200];
    struct http_call call = {.method = "POST",
                             .url = url,
                             .body = body,
                             .body_size = strlen(body),
                             .give_up_at = clock_now() + PATIENCE};
    json_t *answer;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    (void)snprintf(line, sizeof line, "Authorization: %s", token ? token : "");
    if (token)
        call.headers = curl_slist_append(NULL, line);
    assert_int_equal(http_new(&settings, &http), GAVEL_OK);
    http_run(http, &call, 1);
    http_free(http);
    curl_slist_free_all(call.headers);
    if (call.fate != HTTP_ANSWERED || call.status != 200)
        fail_msg("%s %s: %d %s%s", path, body, call.status, call.error, call.answer ? call.answer : "");
    answer = json_loads(call.answer, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(answer);
    http_call_done(&call);
    return answer;
}

json_t *etcd_raw(int port, const char *token, const char *path, const char *format, ...)
{
    va_list arguments;
    json_t *answer;
    char *body;

    va_start(arguments, format);
    assert_true(vasprintf(&body, format, arguments) >= 0);
    va_end(arguments);
    answer = ask(port, token, path, body);
    free(body);
    return answer;
}

void etcd_raw_do(int port, const char *token, const char *path, const char *format, ...)
{
    va_list arguments;
    char *body;

    va_start(arguments, format);
    assert_true(vasprintf(&body, format, arguments) >= 0);
    va_end(arguments);
    json_decref(ask(port, token, path, body));
    free(body);
}

static bool must_succeed(struct etcd_call *call)
{
    if (call->status != GAVEL_OK)
        fail_msg("%s", call->message);
    return false;
}

void etcd_raw_overwrite(const char *url, const char *group, const char *text)
{
    struct store *store;
    struct etcd_store *etcd;
    struct etcd_call call = {.give_up_at = clock_now() + PATIENCE, .on_answer = must_succeed};
    char key[ETCD_KEY_SIZE];
    struct etcd_put put = {.compared = key, .key = key, .value = text};

    assert_int_equal(store_open(url, &store, NULL), GAVEL_OK);
    etcd = (struct etcd_store *)store;
    put.revision = expect(store, ask_read(group), GAVEL_OK).record.version;
    etcd_key(etcd, ETCD_GROUPS, group, NULL, key);
    etcd_ask(&call, "/v3/kv/txn", etcd_body_put(&put, key, NULL), true);
    etcd_calls_run(etcd, etcd->http, &call, 1);
    store_close(store);
}

size_t etcd_raw_count(int port, const char *first)
{
    char *body = etcd_body_page(first, "", 1000);
    json_t *answer;
    size_t count;

    assert_non_null(body);
    answer = ask(port, NULL, "/v3/kv/range", body);
    count = json_array_size(json_object_get(answer, "kvs"));
    free(body);
    json_decref(answer);
    return count;
}
