/* SPDX-License-Identifier: Apache-2.0 */

#include "config/suggest.h"

#include <stdbool.h>
#include <string.h>

#define WORD_MAX 64
#define WORD_MORE 2 /* edits that a word more counts as; too many where only three letters were typed */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b; words longer than WORD_MAX are never
 * close. */
static size_t edits(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_before[j - 2] + 1 < now[j])
                now[j] = two_before[j - 2] + 1;
        }
    }
    return rows[la % 3][lb];
}

/* One of them is the other and a word more: token, token-file. */
static bool begins_with(const char *longer, const char *shorter)
{
    size_t length = strlen(shorter);

    return strncmp(longer, shorter, length) == 0 && (longer[length] == '-' || longer[length] == '_');
}

void suggestion_init(struct suggestion *suggestion, const char *typed)
{
    size_t limit = (strlen(typed) + 2) / 3;

    *suggestion = (struct suggestion){.typed = typed, .distance = (limit > 3 ? 3 : limit) + 1};
}

void suggestion_offer(struct suggestion *suggestion, const char *word)
{
    size_t distance = edits(suggestion->typed, word);

    if (distance > WORD_MORE &&
        (begins_with(word, suggestion->typed) || begins_with(suggestion->typed, word)))
        distance = WORD_MORE;
    if (distance < suggestion->distance) {
        suggestion->distance = distance;
        suggestion->best = word;
    }
}
