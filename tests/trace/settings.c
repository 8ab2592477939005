/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of Raft by the names that stories use: those of struct raft_settings, times in ms. */

#include "trace/command.h"

#include <stdlib.h>
#include <string.h>

static bool take_number(const char *value, unsigned long long most, unsigned long long *ret_number)
{
    if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0' || strlen(value) > 12)
        return false;
    *ret_number = strtoull(value, NULL, 10);
    return *ret_number <= most;
}

static bool take_yes(const char *value, bool *ret_is_so)
{
    *ret_is_so = strcmp(value, "yes") == 0;
    return *ret_is_so || strcmp(value, "no") == 0;
}

bool settings_take(struct raft_settings *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        gavel_ns *time;
    } times[] = {
        {"election_min", &s->election_min},   {"election_max", &s->election_max},
        {"heartbeat", &s->heartbeat},         {"promise", &s->promise},
        {"stop_margin", &s->stop_margin},     {"transfer_timeout", &s->transfer_timeout},
        {"prefers_after", &s->prefers_after}, {"catch_up_timeout", &s->catch_up_timeout},
        {"vote_refill", &s->vote_refill},     {"disk_patience", &s->disk_patience},
    };
    const struct {
        const char *key;
        uint32_t *number;
    } numbers[] = {
        {"batch_bytes", &s->batch_bytes},
        {"batch_entries", &s->batch_entries},
        {"inflight_max", &s->inflight_max},
        {"uncommitted_entries", &s->uncommitted_entries},
        {"uncommitted_bytes", &s->uncommitted_bytes},
        {"vote_burst", &s->vote_burst},
    };
    unsigned long long number;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (strcmp(key, times[i].key) == 0) {
            if (!take_number(value, 1000000000, &number))
                return false;
            *times[i].time = ns_from_ms((int64_t)number);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            if (!take_number(value, UINT32_MAX, &number))
                return false;
            *numbers[i].number = (uint32_t)number;
            return true;
        }
    }
    if (strcmp(key, "prefers_priority") == 0)
        return take_yes(value, &s->prefers_priority);
    if (strcmp(key, "auto_failover") == 0)
        return take_yes(value, &s->auto_failover);
    if (strcmp(key, "drift_ppm") == 0 && take_number(value, 1000000, &number)) {
        s->drift_ppm = (int)number;
        return true;
    }
    return false;
}
