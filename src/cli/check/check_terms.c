/* SPDX-License-Identifier: Apache-2.0 */

/* How long the session of a candidate lives: as the URL says, or as long as its lease needs. */
#include "cli/check/check.h"

#include "base/error.h"
#include "client/cluster.h"

#include <string.h>

#define SCHEME "gavel://"

/* What the URL asks for; 0: nothing. Its text has been checked, by the same parser. */
gavel_ms check_session_ttl_of(const char *url)
{
    struct cluster_link_target target = {0};

    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0 ||
        cluster_link_target_parse(url + strlen(SCHEME), &target, NULL) != GAVEL_OK)
        return 0;
    return target.ttl_ms;
}

enum gavel_status check_session_terms(const char *url, const struct gavel_settings *settings,
                                      struct session_terms *ret_terms, struct gavel_error *error)
{
    gavel_ms asked = check_session_ttl_of(url), ttl_ms = asked > 0 ? asked : session_ttl_ms(settings);

    if (ttl_ms < TABLE_TTL_MIN_MS || ttl_ms > TABLE_TTL_MAX_MS)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "a lease of %lld ms needs a session of %lld ms, and a cluster has them from %d to %d ms; choose another lease",
            (long long)settings->lease_ms, (long long)ttl_ms, TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS);
    session_terms_of(settings, ttl_ms, ret_terms);
    return session_terms_check(settings, ret_terms, error);
}
