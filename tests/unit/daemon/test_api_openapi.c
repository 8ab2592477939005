/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The document at /openapi.json against the table of calls and against real
 * answers. A small walker knows the part of JSON Schema that the document
 * uses, and refuses words it does not know, so that nothing goes unchecked.
 */
#include "api_listener.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct api_frontend *frontend;
    json_t *document;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct http_answer *answer;

    if (!f || api_frontend_setup((void **)&f->frontend))
        return -1;
    answer = http_ask(f->frontend, "/openapi.json", NULL, "");
    assert_int_equal(answer->code, 200);
    f->document = http_json(answer);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    json_decref(f->document);
    (void)api_frontend_teardown((void **)&f->frontend);
    free(f);
    return 0;
}

/* Follows "$ref": "#/a/b". */
static json_t *resolve(json_t *document, json_t *node)
{
    const char *ref = json_string_value(json_object_get(node, "$ref"));
    char path[256];
    char *save = NULL;

    if (!ref)
        return node;
    assert_true(strncmp(ref, "#/", 2) == 0);
    (void)snprintf(path, sizeof path, "%s", ref + 2);
    node = document;
    for (char *part = strtok_r(path, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        node = json_object_get(node, part);
        if (!node)
            fail_msg("%s leads nowhere", ref);
    }
    return node;
}

static bool is_of_type(const json_t *value, const char *type)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "null") == 0 && json_is_null(value));
}

static bool has_type(const json_t *value, json_t *type)
{
    json_t *one;
    size_t i;

    if (json_is_string(type))
        return is_of_type(value, json_string_value(type));
    json_array_foreach(type, i, one)
        if (is_of_type(value, json_string_value(one)))
            return true;
    return false;
}

static void check(json_t *document, json_t *schema, json_t *value, const char *where);

static void check_object(json_t *document, json_t *schema, json_t *value, const char *where)
{
    json_t *properties = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required");
    const char *key;
    json_t *item;
    size_t i;

    json_array_foreach(required, i, item)
        if (!json_object_get(value, json_string_value(item)))
            fail_msg("%s has no %s", where, json_string_value(item));
    if (!properties)
        return;
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    json_object_foreach(value, key, item) {
        json_t *property = json_object_get(properties, key);
        char inner[256];

        (void)snprintf(inner, sizeof inner, "%.180s.%.64s", where, key);
        if (!property)
            fail_msg("%s is not in the document", inner);
        check(document, property, item, inner);
    }
}

static void check_enum(json_t *list, const json_t *value, const char *where)
{
    json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
        if (json_equal(one, value))
            return;
    fail_msg("%s: \"%s\" is none of those in the document", where, json_string_value(value));
}

static void check(json_t *document, json_t *schema, json_t *value, const char *where)
{
    static const char *const known[] = {
        "type",   "description", "properties", "required", "additionalProperties", "items", "enum",
        "format", "minimum",     "maximum",    "default"};
    const char *word;
    json_t *item;
    size_t i;

    schema = resolve(document, schema);
    json_object_foreach(schema, word, item) {
        bool is_known = false;

        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            is_known = is_known || strcmp(known[k], word) == 0;
        if (!is_known)
            fail_msg("%s: the walker does not know \"%s\"", where, word);
    }
    if (!has_type(value, json_object_get(schema, "type")))
        fail_msg("%s has another type than in the document", where);
    if (json_object_get(schema, "enum") && !json_is_null(value))
        check_enum(json_object_get(schema, "enum"), value, where);
    if (json_is_object(value))
        check_object(document, schema, value, where);
    json_array_foreach(value, i, item)
        check(document, json_object_get(schema, "items"), item, where);
}

static json_t *operation_of(json_t *document, const char *path, const char *method)
{
    return json_object_get(json_object_get(json_object_get(document, "paths"), path), method);
}

/* The schema of what a call answers with this code; NULL if the document has none. */
static json_t *answer_schema(json_t *document, json_t *operation, long code, const char *type)
{
    char text[8];
    json_t *response;

    (void)snprintf(text, sizeof text, "%ld", code);
    response = json_object_get(json_object_get(operation, "responses"), text);
    if (!response)
        return NULL;
    response = resolve(document, response);
    return json_object_get(json_object_get(json_object_get(response, "content"), type), "schema");
}

static const char *method_of(const struct api_route *route)
{
    switch (route->method) {
    case EVHTTP_REQ_POST:
        return "post";
    case EVHTTP_REQ_PUT:
        return "put";
    case EVHTTP_REQ_DELETE:
        return "delete";
    default:
        return "get";
    }
}

static void test_every_call_is_in_the_document(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < api_route_count(); i++) {
        const struct api_route *route = api_route_at(i);
        json_t *operation = operation_of(f->document, route->path, method_of(route));
        const char *id = json_string_value(json_object_get(operation, "operationId"));

        if (!id || strcmp(id, route->operation) != 0)
            fail_msg("%s %s (%s) is not in the document", method_of(route), route->path, route->operation);
        assert_true(json_string_length(json_object_get(operation, "summary")) > 0);
        /* What needs no token says so, and only that. */
        assert_int_equal(json_is_array(json_object_get(operation, "security")), !route->needs_token);
        assert_int_equal(answer_schema(f->document, operation, 401, "application/json") != NULL,
                         route->needs_token);
    }
}

static void test_everything_in_the_document_is_a_call(void **state)
{
    struct fixture *f = *state;
    const char *path;
    const char *method;
    json_t *methods;
    json_t *operation;
    size_t count = 0;

    json_object_foreach(json_object_get(f->document, "paths"), path, methods) {
        json_object_foreach(methods, method, operation) {
            bool is_known = false;

            for (size_t i = 0; i < api_route_count(); i++)
                is_known = is_known || (strcmp(api_route_at(i)->path, path) == 0 &&
                                        strcmp(method_of(api_route_at(i)), method) == 0);
            if (!is_known)
                fail_msg("%s %s is in the document and nowhere else", method, path);
            count++;
        }
    }
    assert_int_equal(count, api_route_count());
}

/* Asks, and holds the answer against the document: method, path as it stands there, the real address. */
static void check_method(struct fixture *f, const char *method, const char *path, const char *url,
                         const char *body, const char *header, long code)
{
    struct http_answer *answer = http_ask_method(f->frontend, method, url, body, header);
    char small[8] = "";
    json_t *schema;
    json_t *json;

    for (size_t i = 0; method[i] && i < sizeof small - 1; i++)
        small[i] = (char)(method[i] | 0x20);
    if (answer->code != code)
        fail_msg("%s: %ld instead of %ld: %s", url, answer->code, code, answer->body);
    schema = answer_schema(f->document, operation_of(f->document, path, small), code, "application/json");
    if (!schema)
        fail_msg("%s %s: %ld is not in the document", method, path, code);
    json = http_json(answer);
    check(f->document, schema, json, path);
    json_decref(json);
}

static void check_call(struct fixture *f, const char *path, const char *query, const char *body, long code)
{
    char url[128];

    (void)snprintf(url, sizeof url, "%s%s", path, query);
    check_method(f, body ? "POST" : "GET", path, url, body, "", code);
}

static void put_election(struct api_frontend *frontend, enum raft_result result)
{
    struct journal_election record = {.started_wall_ms = 1, .ended_wall_ms = 2};

    record.election = (struct raft_election){.term = 5, .result = result, .ballot_count = 2};
    (void)snprintf(record.candidate, sizeof record.candidate, "n1");
    (void)snprintf(record.names[0].voter, sizeof record.names[0].voter, "n1");
    (void)snprintf(record.names[0].vote, sizeof record.names[0].vote, "n1");
    journal_put_election(frontend->frontend.journal, &record);
}

static void test_real_answers_are_as_the_document_says(void **state)
{
    static const char *const reads[] = {"/leader", "/status", "/members",     "/elections",
                                        "/health", "/ready",  "/openapi.json"};
    struct fixture *f = *state;

    for (unsigned result = RAFT_RUNNING; result <= RAFT_OVERTAKEN; result++)
        put_election(f->frontend, (enum raft_result)result);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        check_call(f, reads[i], "", NULL, 200);
    api_frontend_follow(f->frontend);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        check_call(f, reads[i], "", NULL, 200);
    api_frontend_orphan(f->frontend);
    check_call(f, "/status", "", NULL, 200);
    check_call(f, "/members", "", NULL, 200);
    check_call(f, "/leader", "", NULL, 503);
    check_call(f, "/ready", "", NULL, 503);
    check_call(f, "/elections", "?limit=x", NULL, 400);
    check_call(f, "/events", "?after=x", NULL, 400);
}

static void test_real_answers_to_changes_are_as_the_document_says(void **state)
{
    static const struct {
        enum gavel_status status;
        long code;
    } answers[] = {{GAVEL_OK, 200},
                   {GAVEL_ERR_NOT_LEADER, 307},
                   {GAVEL_ERR_NO_LEADER, 503},
                   {GAVEL_ERR_LEADER_TRANSFER_FAILED, 409},
                   {GAVEL_ERR_STATE, 409},
                   {GAVEL_ERR_NOT_FOUND, 404},
                   {GAVEL_ERR_TIMEOUT, 504},
                   {GAVEL_ERR_INVALID, 400},
                   {GAVEL_ERR_STOPPED, 503}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        api_frontend_answer(f->frontend, answers[i].status, "so it is", "127.0.0.1:7502");
        check_call(f, "/transfer", "", "{}", answers[i].code);
        check_call(f, "/stepdown", "", "{}", answers[i].code);
        check_call(f, "/members", "", "{\"action\":\"remove\",\"id\":\"n3\"}", answers[i].code);
    }
    check_call(f, "/transfer", "", "{\"force\":1}", 400);
}

/* Each key that the document promises for a body is taken, and each that it requires is asked for. */
static void test_bodies_are_as_the_document_says(void **state)
{
    static const char *const paths[] = {"/transfer", "/stepdown", "/members"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        json_t *operation = operation_of(f->document, paths[i], "post");
        json_t *content = json_object_get(json_object_get(operation, "requestBody"), "content");
        json_t *schema =
            resolve(f->document, json_object_get(json_object_get(content, "application/json"), "schema"));
        const char *key;
        json_t *property;
        json_t *item;
        size_t k;

        json_object_foreach(json_object_get(schema, "properties"), key, property) {
            char body[128];
            struct http_answer *answer;

            (void)snprintf(body, sizeof body, "{\"%s\":[]}", key); /* known, and of a type that no key has */
            answer = http_ask(f->frontend, paths[i], body, "");
            assert_int_equal(answer->code, 400);
            (void)snprintf(body, sizeof body, "\\\"%s\\\" must be", key);
            if (!strstr(answer->body, body))
                fail_msg("%s does not know %s: %s", paths[i], key, answer->body);
        }
        json_array_foreach(json_object_get(schema, "required"), k, item)
            assert_int_equal(http_ask(f->frontend, paths[i], "{}", "")->code, 400);
        if (json_array_size(json_object_get(schema, "required")) == 0)
            assert_int_equal(http_ask(f->frontend, paths[i], "{}", "")->code, 200);
    }
}

#define GROUP "/groups/{group}"

/* The data of every event of a stream. */
static void check_stream(struct fixture *f, const char *method, const char *path,
                         const struct listener *listener)
{
    json_t *schema =
        answer_schema(f->document, operation_of(f->document, path, method), 200, "text/event-stream");
    size_t count = 0;

    assert_non_null(schema);
    for (const char *at = listener->text; (at = strstr(at, "data: ")); at++) {
        json_error_t error;
        json_t *json = json_loads(at + 6, JSON_DISABLE_EOF_CHECK, &error);

        assert_non_null(json);
        check(f->document, schema, json, path);
        json_decref(json);
        count++;
    }
    assert_true(count > 0);
}

static void test_groups_are_as_the_document_says(void **state)
{
    struct fixture *f = *state;
    struct listener *watch = listener_get(f->frontend, "/watch?after=0", "");
    struct listener *a = listener_campaign(f->frontend, "g", "a", ",\"metadata\":\"m\",\"address\":\"h:1\"");
    struct listener *b;
    struct listener *again;
    gavel_ns limit = clock_now() + 60 * NS_PER_S;
    char body[64];
    char session[17];

    listener_session(a, session);
    (void)listener_elected(a);
    b = listener_campaign(f->frontend, "g", "b", "");
    listener_expect(b, "leader", "leader", "a");
    check_call(f, "/groups", "", NULL, 200);
    check_call(f, "/groups", "?limit=0", NULL, 400);
    for (int fresh = 0; fresh < 2; fresh++) {
        const char *query = fresh ? "?fresh=true" : "";
        char url[64];

        check_call(f, "/groups", query, NULL, 200);
        (void)snprintf(url, sizeof url, "/groups/g%s", query);
        check_method(f, "GET", GROUP, url, NULL, "", 200);
        (void)snprintf(url, sizeof url, "/groups/g/leader%s", query);
        check_method(f, "GET", GROUP "/leader", url, NULL, "", 200);
        (void)snprintf(url, sizeof url, "/groups/g/leader/name%s", query);
        check_method(f, "GET", GROUP "/leader/name", url, NULL, "", 200);
        (void)snprintf(url, sizeof url, "/groups/none%s", query);
        check_method(f, "GET", GROUP, url, NULL, "", 404);
    }
    check_method(f, "PUT", GROUP "/notes/{key}", "/groups/g/notes/k", "v", "", 200);
    check_method(f, "PUT", GROUP "/notes/{key}", "/groups/g/notes/k", "v", "Epoch: 1", 409);
    check_method(f, "PUT", GROUP "/notes/{key}", "/groups/g/notes/k", "v", "If-Match: \"1\"", 412);
    check_method(f, "GET", GROUP "/notes", "/groups/g/notes", NULL, "", 200);
    check_method(f, "GET", GROUP "/notes", "/groups/g/notes?keys=true", NULL, "", 200);
    check_method(f, "DELETE", GROUP "/notes/{key}", "/groups/g/notes/k", NULL, "", 200);
    check_method(f, "GET", GROUP "/notes/{key}", "/groups/g/notes/k", NULL, "", 404);
    check_method(f, "POST", GROUP "/campaign", "/groups/g/campaign", "{\"candidate\":\"a\"}", "", 409);
    (void)snprintf(body, sizeof body, "{\"session\":\"%s\"}", session);
    check_method(f, "POST", GROUP "/keepalive", "/groups/g/keepalive", body, "", 200);
    again = listener_post(f->frontend, "/groups/g/events", body);
    (void)listener_elected(again);
    check_method(f, "POST", GROUP "/transfer", "/groups/g/transfer", "{\"to\":\"a\"}", "", 200);
    check_method(f, "POST", GROUP "/transfer", "/groups/g/transfer", "{\"to\":\"b\",\"timeout_ms\":1}", "",
                 409);
    check_method(f, "POST", GROUP "/resign", "/groups/g/resign", body, "", 200);
    json_decref(listener_next(a, "ended"));
    json_decref(listener_next(again, "ended"));
    listener_wait_end(a);
    (void)listener_elected(b);
    /* The session is closed after the last event was sent; until then it is one without a candidate. */
    while (!strstr(http_ask(f->frontend, "/metrics", NULL, "")->body, "\ngavel_sessions 1\n"))
        if (clock_now() >= limit)
            fail_msg("the session stays");
    check_method(f, "POST", GROUP "/keepalive", "/groups/g/keepalive", body, "", 410);
    check_method(f, "POST", GROUP "/events", "/groups/g/events", body, "", 410);
    listener_expect(watch, "left", "candidate", "a");
    check_stream(f, "post", GROUP "/campaign", a);
    check_stream(f, "post", GROUP "/campaign", b);
    check_stream(f, "post", GROUP "/events", again);
    check_stream(f, "get", "/watch", watch);
    listener_leave(a);
    listener_leave(b);
    listener_leave(again);
    listener_leave(watch);
}

static void test_events_are_as_the_document_says(void **state)
{
    struct fixture *f = *state;
    json_t *schema =
        answer_schema(f->document, operation_of(f->document, "/events", "get"), 200, "text/event-stream");
    static char text[64 * 1024];
    int fd = raw_open(f->frontend);
    size_t count = 0;

#define PUT(name, word) (void)api_frontend_put(f->frontend, JOURNAL_##name, "n2", "text");
    JOURNAL_EVENT_MAP(PUT)
#undef PUT
    (void)api_frontend_put(f->frontend, JOURNAL_OPERATOR, "n1", "the last");
    raw_say(
        fd,
        "GET /events?after=1 HTTP/1.1\r\nHost: h\r\n\r\n"); /* of another incarnation: something is missed */
    (void)raw_hear(fd, text, sizeof text, "the last", 10000, NULL);
    (void)raw_hear(fd, text + strlen(text), sizeof text - strlen(text), "\n\n", 10000, NULL);
    for (const char *at = text; (at = strstr(at, "data: ")); at++) {
        json_error_t error;
        json_t *json = json_loads(at + 6, JSON_DISABLE_EOF_CHECK, &error);

        assert_non_null(json);
        check(f->document, schema, json, "/events");
        json_decref(json);
        count++;
    }
#define COUNT(name, word) +1
    assert_int_equal(count, 2 JOURNAL_EVENT_MAP(COUNT)); /* and "missed", and the last */
#undef COUNT
    (void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_call_is_in_the_document),
        TEST(test_everything_in_the_document_is_a_call),
        TEST(test_real_answers_are_as_the_document_says),
        TEST(test_real_answers_to_changes_are_as_the_document_says),
        TEST(test_bodies_are_as_the_document_says),
        TEST(test_groups_are_as_the_document_says),
        TEST(test_events_are_as_the_document_says),
    };

    return cmocka_run_group_tests_name("api openapi", tests, NULL, NULL);
}
