/* SPDX-License-Identifier: Apache-2.0 */

/* How long the session of a candidate lives: as the URL says, or as long as its lease needs. */
#include "cli/check/check.h"

#include "base/error.h"
#include "core/table/table.h"

_Static_assert(SESSION_TTL_MAX_MS == TABLE_TTL_MAX_MS, "what is proposed, a cluster keeps");

enum gavel_status check_session_terms(const char *url, const struct gavel_settings *settings,
                                      struct session_terms *ret_terms, struct gavel_error *error)
{
    struct session_terms terms;

    session_terms_of(settings, store_session_ttl_of(url), &terms);
    if (terms.ttl_ms < TABLE_TTL_MIN_MS || terms.ttl_ms > TABLE_TTL_MAX_MS)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "a lease of %lld ms needs a session of %lld ms, and a cluster has them from %d to %d ms; choose another lease",
            (long long)settings->lease_ms, (long long)terms.ttl_ms, TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
    *ret_terms = terms;
    return GAVEL_OK;
}
