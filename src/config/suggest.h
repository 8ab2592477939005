/* SPDX-License-Identifier: Apache-2.0 */

/* "Did you mean …?" for mistyped words. */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include <stddef.h>

/* Finds the word closest to a mistyped one among those offered to it. */
struct suggestion {
    const char *typed;
    const char *best; /* NULL while nothing is close */
    size_t distance;
};

/* A word is close if at most a third of the letters differ, and never more than three. */
void suggestion_init(struct suggestion *suggestion, const char *typed);
void suggestion_offer(struct suggestion *suggestion, const char *word); /* borrowed */

#endif
