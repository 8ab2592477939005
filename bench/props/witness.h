/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The witness: memory shared by all processes of a demonstration or a
 * measurement, into which each writes down what it did and when, on
 * CLOCK_BOOTTIME. It outlives every one of them, however they die.
 *
 * Its log of beats is also the resource that the leader works on, and it is
 * fenced as S2 of docs/PROTOCOL.md asks: a beat is taken only if no higher
 * epoch has been seen. Deciding and taking is one compare-and-swap, so that a
 * process that is killed or frozen at any point holds up nobody.
 */
#ifndef BENCH_PROPS_WITNESS_H
#define BENCH_PROPS_WITNESS_H

#include "bench/props/timeline.h"

struct witness;

/*
 * In a file of memory, *ret_fd, which is closed on exec. Shared with all
 * children forked afterwards, and with every program that gets the descriptor
 * and maps it. The caller closes it. ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status witness_new(struct witness **ret_witness, int *ret_fd);

/* The same memory in another program. ERR_INVALID if the descriptor is not that of a witness. */
GAVEL_CHECKED enum gavel_status witness_map(int fd, struct witness **ret_witness);

/* Unmaps it in this process only. Safe on NULL. */
void witness_free(struct witness *witness);

/* One act of the work. False: refused, because a higher epoch has been seen, or because the log is full. */
bool witness_beat(struct witness *witness, uint32_t member, uint64_t epoch, gavel_ns at);

/* The highest epoch that has written a beat; 0 if none has. */
uint64_t witness_highest_epoch(const struct witness *witness);

/* How many beats were refused for their epoch, and how many for want of room. */
uint64_t witness_fenced(const struct witness *witness);
uint64_t witness_lost(const struct witness *witness);

/* The beats as taken, in that order. Valid until witness_free(); a process may still be writing the last
 * ones. */
const struct beat *witness_beats(const struct witness *witness, size_t *ret_count);

/* Writes down an edge and wakes whoever waits. Marks beyond the room there is count as lost. */
void witness_mark(struct witness *witness, const struct mark *mark);

/* The marks in the order in which they were begun; one whose kind is NONE is not finished. */
const struct mark *witness_marks(const struct witness *witness, size_t *ret_count);

/* The kind of a mark that another process may be writing; other fields are to be read only after it is not
 * NONE. */
enum mark_kind mark_kind(const struct mark *mark);

/* How many marks are finished; for witness_wait(). */
uint32_t witness_finished(const struct witness *witness);

/* Waits until more marks are finished than `seen`, until that instant, or until a signal comes. */
void witness_wait(const struct witness *witness, uint32_t seen, gavel_ns until);

#endif
