/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The referee: whether what the nodes of a cluster logged can all be true, if
 * gavel keeps its promises (S1, S3, S4). It uses nothing of src/, trusts no
 * node, and never asks one: when everything is over, it reads the logs and the
 * list of deeds, what the test did and saw.
 *
 *     n1   leads (3,1) ├──── lease … lease ────┤ work stopped
 *     n2                                          leads (4,1) ├─── lease ───┤ … node died
 *                                                                      time (CLOCK_BOOTTIME) ─►
 *
 * A claim is the interval from "leads" to the earliest of "work stopped", the
 * proven death of the node, and the end of the last lease that was logged. One
 * that has none of the three counts as going on for ever.
 *
 * Lines of nodes and guards (logfmt; others are skipped):
 *     msg=leads term= lease_epoch= at_ns= [until_ns=]
 *     msg=lease term= lease_epoch= at_ns= until_ns=
 *     msg="work stopped" term= lease_epoch= at_ns=
 *     msg="node died" at_ns=                or "node stopped", after an orderly end
 * Deeds:
 *     msg=killed node= at_ns=           guard and node are dead, as the test itself saw
 *     msg=struck node= at_ns=           SIGKILL was sent to the node: it does nothing from now on
 *     msg=paused node= at_ns=           about to stop the process …
 *     msg=resumed node= at_ns=          … and it goes on
 *     msg=slept at_ns= until_ns=        the machine, or a processor of it, did nothing
 *     msg=waited [node=] at_ns= until_ns= wait_ns=
 *                                       its processes, or those of all nodes, waited that long for a CPU
 *     msg=clock node= offset_ns=        its clock is ahead of the others' by this much
 *     msg=status node= at_ns= [heard_ns=] term= lease_epoch= has_lease= generation= commit= applied=
 *                revision= digest=
 */
#ifndef CHAOS_REFEREE_H
#define CHAOS_REFEREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum referee_rule {
    RULE_TERM,    /* two nodes lead in one term */
    RULE_OVERLAP, /* two claims overlap in time */
    RULE_TOKEN,   /* a later claim has no higher token {term, lease_epoch} */
    RULE_UNENDED, /* a node leads again without an end of its last claim */
    RULE_STRAY,   /* a lease or an end without a claim */
    RULE_LATE,    /* work stopped long after the lease was over, and neither a pause nor a wait explains it */
    RULE_BOAST,   /* a node says that it leads when it has no claim */
    RULE_DIGEST,  /* two nodes have applied the same entries and hold different tables */
    RULE_LOST,    /* a leader knows less to be committed than a node did before it */
    RULE_BAD_LINE, /* a line of the kinds above that is incomplete */
};
#define RULE_COUNT (RULE_BAD_LINE + 1)

struct referee;

struct referee *referee_new(void);
void referee_free(struct referee *referee);

/* How long after the end of a lease work may stop, besides the time it waited; default 100 ms. */
void referee_set_late_ms(struct referee *referee, int64_t late_ms);

/* One line of the log of a node; `origin` (file and line) names it for people. Both are copied. */
void referee_log_line(struct referee *referee, const char *node, const char *origin, const char *line);

/* One line of the deeds. Before referee_judge(), in any order with the logs. */
void referee_deed_line(struct referee *referee, const char *origin, const char *line);

/* Whole files; false (errno) if one cannot be read. */
bool referee_read_log(struct referee *referee, const char *node, const char *path);
bool referee_read_deeds(struct referee *referee, const char *path);

/* Once, when everything is read. */
void referee_judge(struct referee *referee);

size_t referee_claims(const struct referee *referee);
uint64_t referee_found(const struct referee *referee, enum referee_rule rule);
uint64_t referee_found_all(const struct referee *referee);

/* What was checked, and each contradiction with the two lines of it; every line begins with `# `. */
void referee_print(const struct referee *referee, FILE *out);

#endif
