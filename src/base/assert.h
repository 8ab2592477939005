/* SPDX-License-Identifier: Apache-2.0 */

/* Assertions for our own mistakes. Always compiled in; never for input. One condition each. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

_Noreturn void assert_failed(const char *condition, const char *file, int line);

#define ASSERT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            assert_failed(#condition, __FILE__, __LINE__);                                                   \
    } while (0)

#endif
