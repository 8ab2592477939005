/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether we may write where a candidate does. Who may only read would
 * otherwise take part and never lead, and nobody would be told why.
 *
 * Each question is a transaction that would put a key, on a condition that does
 * not hold: etcd looks at the rights for all that a transaction might do before
 * it compares anything. So nothing is left behind, and nobody sees a change.
 */
#include "store/etcd/etcd.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define FAMILIES 3

struct finding {
    enum gavel_status status;
    char message[256];
};

static bool take_finding(struct etcd_call *call)
{
    struct finding *finding = call->user;

    finding->status = call->status;
    (void)snprintf(finding->message, sizeof finding->message, "%s", call->message);
    return false;
}

enum gavel_status etcd_probe(struct store *store, struct gavel_error *error)
{
    static const enum etcd_family families[FAMILIES] = {ETCD_GROUPS, ETCD_WISHES, ETCD_CANDIDATES};
    struct etcd_store *etcd = (struct etcd_store *)store;
    struct finding findings[FAMILIES] = {0};
    struct etcd_call calls[FAMILIES] = {0};
    char group[64];

    if (push_is_forked(&etcd->push))
        return error_set(error, GAVEL_ERR_STATE,
                         "%s was opened before this process was forked; open it again in the child",
                         etcd->where);
    (void)snprintf(group, sizeof group, "gavel-probe-%016" PRIx64 "%016" PRIx64, entropy_u64(),
                   entropy_u64());
    for (size_t i = 0; i < FAMILIES; i++) {
        char key[ETCD_KEY_SIZE];
        const struct etcd_put put = {.compared = key, .revision = INT64_MAX, .key = key, .value = "{}"};

        etcd_key(etcd, families[i], group, families[i] == ETCD_CANDIDATES ? group : NULL, key);
        calls[i].give_up_at = clock_now() + STORE_OPEN_PATIENCE;
        calls[i].on_answer = take_finding;
        calls[i].user = &findings[i];
        etcd_ask(&calls[i], "/v3/kv/txn", etcd_body_put(&put, key, NULL), false);
    }
    etcd_calls_run(etcd, etcd->http, calls, FAMILIES);
    for (size_t i = 0; i < FAMILIES; i++) {
        enum gavel_status status = findings[i].status;

        if (status == GAVEL_ERR_TIMEOUT)
            status = GAVEL_ERR_STORE_UNAVAILABLE; /* callers try that again */
        if (status != GAVEL_OK)
            return error_set(error, status, "%s", findings[i].message);
    }
    return GAVEL_OK;
}
