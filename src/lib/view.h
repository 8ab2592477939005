/* SPDX-License-Identifier: Apache-2.0 */

/* What a candidate knows about its group, for callers. */
#ifndef LIB_VIEW_H
#define LIB_VIEW_H

#include <gavel/gavel.h>

/* The leader as last seen; false leaves *ret_leader untouched. The candidate's lock is held. */
bool view_leader_locked(const struct gavel_candidate *candidate, struct gavel_leader_info *ret_leader);

#endif
