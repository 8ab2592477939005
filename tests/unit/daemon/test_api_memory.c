/* SPDX-License-Identifier: Apache-2.0 */

/* A node without memory: nobody waits for ever, and nothing turns round and round. */
#include "api_listener.h"

#include "os/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LARGE 50000
#define LIMIT_MS 60000

/* The linker's --wrap decides these names. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static _Atomic size_t refused_from = SIZE_MAX; /* bytes */
static _Atomic int refusals;

void *__wrap_malloc(size_t size)
{
    if (size < refused_from)
        return __real_malloc(size);
    refusals++;
    return NULL;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static void test_a_watch_without_memory_goes_on_when_there_is_some(void **state)
{
    struct api_frontend *frontend = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    static char value[LARGE + 1];
    struct listener *watch;

    memset(value, 'x', LARGE);
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/large", value, "")->code, 200);
    refusals = 0;
    refused_from = LARGE;
    watch = listener_get(frontend, "/groups/g/watch?after=0", "");
    while (refusals == 0) {
        assert_true(clock_now() < limit);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(http_ask(frontend, "/health", NULL, "")->code, 200); /* the thread is not lost in it */
    refused_from = SIZE_MAX;
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/small", "v", "")->code, 200);
    listener_expect(watch, "note_put", "key", "large");
    listener_expect(watch, "note_put", "key", "small");
    listener_leave(watch);
}

static void test_an_answer_is_sent_without_memory(void **state)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Reply reply;
    struct forwarding_stock stock = {0};
    struct mailbox box;
    struct forwarding *message;

    (void)state;
    gavel__reply__init(&reply);
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
    frame.reply = &reply;
    assert_int_equal(mailbox_init(&box), GAVEL_OK);
    for (int i = 0; i < 2; i++) {
        message = forwarding_new(7, &box, client_frame_copy(&frame));
        assert_non_null(message);
        forwarding_stock_keep(&stock, message);
    }
    refused_from = 0;
    forwarding_answer(&stock, 9, &box, NULL);
    refused_from = SIZE_MAX;
    forwarding_answer(&stock, 10, &box, client_frame_copy(&frame));
    assert_int_equal(stock.count, 0);
    message = (struct forwarding *)(void *)mailbox_take(&box);
    assert_non_null(message);
    assert_int_equal(message->client, 9);
    assert_null(message->frame);
    forwarding_free(message);
    message = (struct forwarding *)(void *)mailbox_take(&box);
    assert_non_null(message);
    assert_int_equal(message->client, 10);
    assert_non_null(message->frame);
    forwarding_stock_keep(&stock, message);
    forwarding_stock_clear(&stock);
    assert_int_equal(stock.count, 0);
    mailbox_done(&box);
}

/* Every kind of forwarding; what a session needs is asked again. */
static void test_whoever_is_owed_an_answer_hears_that_there_is_none(void **state)
{
    struct api_frontend *frontend = *state;

    frontend->cluster.is_poor = true;
    assert_true(http_ask_method(frontend, "PUT", "/groups/g/notes/k", "v", "")->code >= 500);
    assert_true(http_ask(frontend, "/groups?fresh=true", NULL, "")->code >= 500);
    assert_true(http_ask(frontend, "/groups/g/campaign", "{\"candidate\":\"a\"}", "")->code >= 500);
    assert_true(http_ask(frontend, "/groups/g/keepalive", "{\"session\":\"0123456789abcdef\"}", "")->code >=
                500);
    assert_true(http_ask(frontend, "/groups/g/resign", "{\"session\":\"0123456789abcdef\"}", "")->code >=
                500);
    frontend->cluster.is_poor = false;
    assert_int_equal(http_ask_method(frontend, "PUT", "/groups/g/notes/k", "v", "")->code, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_frontend_setup, api_frontend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_watch_without_memory_goes_on_when_there_is_some),
        cmocka_unit_test(test_an_answer_is_sent_without_memory),
        TEST(test_whoever_is_owed_an_answer_hears_that_there_is_none),
    };

    return cmocka_run_group_tests_name("api memory", tests, NULL, NULL);
}
