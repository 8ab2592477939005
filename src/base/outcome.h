/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What came of an attempt at work that is to be done once (`gavel once`): a short
 * text that the release of its mandate leaves in the record.
 *
 *     outcome exit=0 ended=1763468400000 took=300123 attempts=2 keep=7776000
 *
 * It is where a release may name a successor, which such an attempt never does.
 * So every store keeps it already, in the write that gives the mandate up. As the
 * name of a successor it is nobody's: whoever does not know it goes on as if none
 * were named.
 */
#ifndef BASE_OUTCOME_H
#define BASE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#define OUTCOME_BYTES 160
#define OUTCOME_KEEP_S (90 * INT64_C(86400)) /* unless somebody says otherwise */
#define OUTCOME_KEEP_MAX_S (100 * INT64_C(366) * 86400)

struct outcome {
    int exit_code;         /* 128 + n: killed by signal n */
    int64_t ended_wall_ms; /* on the clock of whoever did it, which may be wrong */
    int64_t took_ms;
    uint32_t attempts; /* with this one; those that died without a word are not counted */
    int64_t keep_s;    /* how long after its end the record of a success must stay */
};

/* Fits always. */
void outcome_write(const struct outcome *outcome, char ret_text[OUTCOME_BYTES]);

/* False: the text is none, or out of bounds. Fields that are not known are skipped. */
bool outcome_read(const char *text, struct outcome *ret_outcome);

/* Whether it says that it is one. */
bool outcome_is(const char *text);

#endif
