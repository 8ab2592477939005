/* SPDX-License-Identifier: Apache-2.0 */

/* For `gavel once`: what came of the work. */
#ifndef LIB_OUTCOME_H
#define LIB_OUTCOME_H

#include "base/outcome.h"

#include <gavel/gavel.h>

/*
 * Before gavel_finish(), gavel_leave() or gavel_close(): the release that follows leaves this in the record,
 * with the number of attempts, in the same write. ERR_STATE if there is no election, ERR_STOPPED,
 * ERR_NO_MEMORY.
 */
GAVEL_CHECKED enum gavel_status lib_tell_outcome(struct gavel_candidate *candidate,
                                                 const struct outcome *outcome);

#endif
