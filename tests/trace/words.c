/* SPDX-License-Identifier: Apache-2.0 */

#include "trace/words.h"

#include <stdlib.h>
#include <string.h>

size_t words_split(char *text, char *words[static WORDS_MAX])
{
    size_t count = 0;
    char *word;

    while ((word = strsep(&text, " ")) && count < WORDS_MAX)
        if (word[0] != '\0')
            words[count++] = word;
    return count;
}

gavel_ns words_duration(const char *text)
{
    char *unit;
    double value = strtod(text, &unit);

    if (strcmp(unit, "ms") == 0)
        return (gavel_ns)(value * (double)NS_PER_MS);
    if (strcmp(unit, "h") == 0)
        return (gavel_ns)(value * 3600 * (double)NS_PER_S);
    return (gavel_ns)(value * (double)NS_PER_S);
}

bool words_take_duration(FILE *out, const char *text, gavel_ns *ret_duration)
{
    char *unit;
    double value = strtod(text, &unit);

    if (unit == text || !(value >= 0) ||
        (strcmp(unit, "ms") != 0 && strcmp(unit, "s") != 0 && strcmp(unit, "h") != 0)) {
        fprintf(out, "\"%s\" is no length of time; 50ms, 2s and 1h are\n", text);
        return false;
    }
    *ret_duration = words_duration(text);
    return true;
}
