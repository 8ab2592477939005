/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `gavel run` as members of a rig, each with a command that beats (beat.h):
 * starts them, waits until they stand by, and kills their parts.
 *
 *   driver ─┬─ gavel run (elector) ── guard ── beat    leads
 *           ├─ gavel run (elector) ── guard            stands by
 *           └─ …
 */
#ifndef BENCH_PROPS_RUNS_H
#define BENCH_PROPS_RUNS_H

#include "bench/props/rig.h"

#include <limits.h>

#define RUNS_GROUP "demo"

struct runs {
    struct rig *rig;
    char gavel[PATH_MAX];
    char beat[PATH_MAX]; /* the one that beats */
};

/* Borrows the rig. ERR_IO if this program cannot find its own path. */
GAVEL_CHECKED enum gavel_status runs_init(struct runs *runs, struct rig *rig, struct gavel_error *error);

/* Starts one that beats every `every`; 0: once. */
GAVEL_CHECKED enum gavel_status runs_start(const struct runs *runs, uint32_t member, const char *name,
                                           gavel_ns every, struct gavel_error *error);

/* Makes the command that beats as this member; `text` holds its words. */
#define RUNS_BEAT_WORDS 4
struct beat_words {
    char shared_log[16];
    char member[16];
    char every[24];
};
void runs_beat_words(const struct runs *runs, uint32_t member, gavel_ns every, struct beat_words *text,
                     char *ret_argv[RUNS_BEAT_WORDS]);

/*
 * Waits until the member has reported that another leads with that epoch or a
 * later one. Like rig_expect().
 */
GAVEL_CHECKED enum gavel_status runs_await_standby(const struct runs *runs, uint32_t member, uint64_t epoch,
                                                   gavel_ns until);

enum run_part { PART_ELECTOR, PART_GUARD, PART_COMMAND };

/* "elector", "guard", "command". */
const char *run_part_name(enum run_part part);

/*
 * Sends SIGKILL to a part of the leader; *ret_sent_at is right before that.
 * ERR_STATE if it has already ended.
 */
GAVEL_CHECKED enum gavel_status runs_kill(const struct runs *runs, const struct mark *leader,
                                          enum run_part part, gavel_ns *ret_sent_at);

/* Waits for the end of a member after a part of it was killed, however it ends. */
GAVEL_CHECKED enum gavel_status runs_bury(const struct runs *runs, uint32_t member, gavel_ns until);

/* Starts `gavel handover` as a member; *ret_sent_at is right before that. Call runs_bury() afterwards. */
GAVEL_CHECKED enum gavel_status runs_handover(const struct runs *runs, uint32_t member,
                                              gavel_ns *ret_sent_at);

/* Prints the end of the output of the members below `count`, for the analysis of a failure. */
void runs_print_logs(const struct runs *runs, uint32_t count, FILE *file);

#endif
