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
#define LIMIT_MS 20000

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
    struct api_desk *desk = *state;
    gavel_ns limit = clock_now() + ns_from_ms(LIMIT_MS);
    static char value[LARGE + 1];
    struct listener *watch;

    memset(value, 'x', LARGE);
    assert_int_equal(http_ask_method(desk, "PUT", "/groups/g/notes/large", value, "")->code, 200);
    refusals = 0;
    refused_from = LARGE;
    watch = listener_get(desk, "/groups/g/watch?after=0", "");
    while (refusals == 0) {
        assert_true(clock_now() < limit);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(http_ask(desk, "/health", NULL, "")->code, 200); /* the thread is not lost in it */
    refused_from = SIZE_MAX;
    assert_int_equal(http_ask_method(desk, "PUT", "/groups/g/notes/small", "v", "")->code, 200);
    listener_expect(watch, "note_put", "key", "large");
    listener_expect(watch, "note_put", "key", "small");
    listener_leave(watch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_desk_setup, api_desk_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_watch_without_memory_goes_on_when_there_is_some),
    };

    return cmocka_run_group_tests_name("api memory", tests, NULL, NULL);
}
