/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shared log: memory shared by all processes of a demonstration or a
 * measurement, in which each records what it did and when, on CLOCK_BOOTTIME.
 * It outlives all of them, however they die.
 *
 * Its log of beats is also the resource that the leader works on, and it is
 * fenced as S2 of docs/PROTOCOL.md asks: a beat is accepted only if no higher
 * epoch has been seen. The check and the write are one compare-and-swap, so
 * that a process that is killed or frozen at any point blocks no other.
 */
#ifndef BENCH_PROPS_SHARED_LOG_H
#define BENCH_PROPS_SHARED_LOG_H

#include "bench/props/timeline.h"

struct shared_log;

/*
 * In a memory file, *ret_fd, which is close-on-exec. Shared with all children
 * forked afterwards, and with every program that gets the descriptor and maps
 * it. The caller closes it. ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status shared_log_new(struct shared_log **ret_shared_log, int *ret_fd);

/* The same memory in another program. ERR_INVALID if the descriptor is not that of a shared log. */
GAVEL_CHECKED enum gavel_status shared_log_map(int fd, struct shared_log **ret_shared_log);

/* Unmaps it in this process only. Safe on NULL. */
void shared_log_free(struct shared_log *shared_log);

/* One act of the work. False: refused, because a higher epoch has been seen, or because the log is full. */
bool shared_log_beat(struct shared_log *shared_log, uint32_t member, uint64_t epoch, gavel_ns at);

/* The highest epoch that has written a beat; 0 if none has. */
uint64_t shared_log_highest_epoch(const struct shared_log *shared_log);

/* How many beats were refused for their epoch, and how many because the log was full. */
uint64_t shared_log_fenced(const struct shared_log *shared_log);
uint64_t shared_log_lost(const struct shared_log *shared_log);

/*
 * The beats in the order in which they were accepted. Valid until
 * shared_log_free(); a process may still be writing the last ones.
 */
const struct beat *shared_log_beats(const struct shared_log *shared_log, size_t *ret_count);

/* Records an edge and wakes those who wait. Marks that do not fit count as lost. */
void shared_log_mark(struct shared_log *shared_log, const struct mark *mark);

/* The marks in the order in which they were begun; one whose kind is NONE is not finished. */
const struct mark *shared_log_marks(const struct shared_log *shared_log, size_t *ret_count);

/* The kind of a mark that another process may be writing; read other fields only once it is not NONE. */
enum mark_kind mark_kind(const struct mark *mark);

/* How many marks are finished; for shared_log_wait(). */
uint32_t shared_log_finished(const struct shared_log *shared_log);

/* Waits until more marks than `seen` are finished, until `until`, or until a signal comes. */
void shared_log_wait(const struct shared_log *shared_log, uint32_t seen, gavel_ns until);

#endif
