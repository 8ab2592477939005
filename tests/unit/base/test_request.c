/* SPDX-License-Identifier: Apache-2.0 */

/* Calls to a store: what they are called, and who owns what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/request.h"

static void test_every_operation_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int op = 0; op <= STORE_GROUPS; op++) {
        assert_string_not_equal(store_op_name((enum store_op)op), "unknown");
        for (int other = 0; other < op; other++)
            assert_string_not_equal(store_op_name((enum store_op)op), store_op_name((enum store_op)other));
    }
    assert_string_equal(store_op_name(STORE_DIED), "died");
    assert_string_equal(store_op_name((enum store_op)(STORE_GROUPS + 1)), "unknown");
}

static void test_a_reply_frees_what_it_owns_and_may_be_freed_again(void **state)
{
    struct store_reply reply = {.registration_count = 1, .group_count = 1};

    (void)state;
    reply.registrations = calloc(1, sizeof *reply.registrations);
    reply.groups = calloc(1, sizeof *reply.groups);
    store_reply_done(&reply);
    assert_null(reply.registrations);
    assert_int_equal(reply.group_count, 0);
    store_reply_done(&reply);
    store_reply_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_name_of_its_own),
        cmocka_unit_test(test_a_reply_frees_what_it_owns_and_may_be_freed_again),
    };

    return cmocka_run_group_tests_name("base: requests", tests, NULL, NULL);
}
