/* SPDX-License-Identifier: Apache-2.0 */

#include "base/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD "outcome "
#define WALL_MAX_MS (INT64_C(1) << 53)

void outcome_write(const struct outcome *outcome, char ret_text[OUTCOME_BYTES])
{
    (void)snprintf(ret_text, OUTCOME_BYTES,
                   HEAD "exit=%d ended=%" PRId64 " took=%" PRId64 " attempts=%" PRIu32 " keep=%" PRId64,
                   outcome->exit_code, outcome->ended_wall_ms, outcome->took_ms, outcome->attempts,
                   outcome->keep_s);
}

bool outcome_is(const char *text) { return strncmp(text, HEAD, strlen(HEAD)) == 0; }

/* A decimal number up to the end of the field; false: it is none, or not within the bounds. */
static bool read_number(const char *text, size_t length, int64_t most, int64_t *ret_number)
{
    int64_t number = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (text[i] - '0');
        if (number > most)
            return false;
    }
    *ret_number = number;
    return length > 0;
}

bool outcome_read(const char *text, struct outcome *ret_outcome)
{
    int64_t numbers[5] = {-1, -1, -1, -1, -1};
    static const struct {
        const char *name;
        int64_t most;
    } fields[] = {{"exit=", 255},
                  {"ended=", WALL_MAX_MS},
                  {"took=", WALL_MAX_MS},
                  {"attempts=", UINT32_MAX},
                  {"keep=", OUTCOME_KEEP_MAX_S}};
    const char *at = text + strlen(HEAD);

    if (!outcome_is(text))
        return false;
    while (*at) {
        size_t length = strcspn(at, " ");

        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            size_t name = strlen(fields[i].name);

            if (strncmp(at, fields[i].name, name) == 0 &&
                !read_number(at + name, length - name, fields[i].most, &numbers[i]))
                return false;
        }
        at += length + (at[length] == ' ');
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i] < 0)
            return false;
    }
    *ret_outcome = (struct outcome){.exit_code = (int)numbers[0],
                                    .ended_wall_ms = numbers[1],
                                    .took_ms = numbers[2],
                                    .attempts = (uint32_t)numbers[3],
                                    .keep_s = numbers[4]};
    return true;
}
