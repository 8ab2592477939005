/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the times add up. The sums are those of the Raft core, which has its own
 * names for them. Messages use the names that people wrote, and say which values
 * would do.
 */
#include "base/error.h"
#include "config/run_grace.h"
#include "daemon/config/draft.h"
#include "guard/spec.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* A tree of processes has to die in it. */
#define LEAST_GRACE_MS 50

/* What is proposed is a round number. */
#define STEP_MS 50

static const struct {
    const char *raft;
    const char *ours;
} words[] = {
    {"election_min", "election_timeout_min_ms"}, {"election_max", "election_timeout_max_ms"},
    {"heartbeat", "heartbeat_interval_ms"},      {"promise", "lease_ms"},
    {"transfer_timeout", "transfer_timeout_ms"},
};

static const char *ours_of(const char *word, size_t length, bool has_leader_commands)
{
    static const char margin[] = "stop_margin";

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].raft) == length && strncmp(words[i].raft, word, length) == 0)
            return words[i].ours;
    if (has_leader_commands && length == strlen(margin) && strncmp(margin, word, length) == 0)
        return "10 ms and leader_commands.stop_grace";
    return NULL;
}

/* The same sentence with our words in it. */
static void translate(const char *from, bool has_leader_commands, char *to, size_t size)
{
    size_t at = 0;

    while (*from && at + 1 < size) {
        size_t length = 1;
        const char *ours;

        if (isalpha((unsigned char)*from))
            length = strspn(from, "abcdefghijklmnopqrstuvwxyz_");
        length = length ? length : 1;
        ours = ours_of(from, length, has_leader_commands);
        at += (size_t)snprintf(to + at, size - at, "%.*s", ours ? (int)strlen(ours) : (int)length,
                               ours ? ours : from); /* cut at the end; at may then be beyond it */
        from += length;
    }
}

/* Longer times with which the rest adds up; false if they are not what is wrong. */
static bool find_longer(const struct raft_settings *settings, struct raft_settings *ret_longer)
{
    struct raft_settings longer = *settings;
    gavel_ns step = STEP_MS * NS_PER_MS;

    for (int i = 0; i < 2000; i++) {
        longer.promise += step - longer.promise % step;
        longer.election_min = ns_max(settings->election_min, longer.promise);
        longer.election_max = ns_max(settings->election_max, 2 * longer.election_min);
        if (raft_settings_check(&longer, NULL) == GAVEL_OK) {
            *ret_longer = longer;
            return true;
        }
    }
    return false;
}

static enum gavel_status blame(struct config_draft *draft, const struct gavel_error *cause)
{
    const struct raft_settings *raft = &draft->config.raft;
    char message[400] = "", origin[CONFIG_ORIGIN_MAX];
    struct raft_settings longer;

    translate(cause->message, draft->config.has_leader_commands, message, sizeof message);
    (void)config_origin(draft, CONFIG_OF_LEASE, origin);
    if (cause->status == GAVEL_ERR_BUDGET && raft->transfer_timeout > raft->stop_margin &&
        find_longer(raft, &longer))
        return error_set(draft->error, cause->status,
                         "%.150s: %.250s; timing: {lease_ms: %" PRId64 ", election_timeout_min_ms: %" PRId64
                         ", election_timeout_max_ms: %" PRId64 "} would do",
                         origin, message, ms_from_ns(longer.promise), ms_from_ns(longer.election_min),
                         ms_from_ns(longer.election_max));
    return error_set(draft->error, cause->status, "%.150s: %s", origin, message);
}

/* The children stop one after the other; the last part of the grace is for killing whoever did not. */
static enum gavel_status check_graces(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    gavel_ns grace = ns_from_ms(config->stop_grace_ms);
    gavel_ms budget = ms_from_ns(grace - guard_kill_lead(grace)), sum = 0;

    if (config->stop_grace_ms < LEAST_GRACE_MS)
        return config_wrong(draft, CONFIG_OF_STOP_GRACE,
                            "%" PRId64 " ms are too short for a tree of processes to die in; give %d or more",
                            config->stop_grace_ms, LEAST_GRACE_MS);
    for (size_t i = 0; i < config->children.count; i++)
        sum += ns_max(config->children.children[i].grace_ms, 0);
    if (sum > budget)
        return config_wrong(draft, CONFIG_OF_STOP_GRACE,
                            "the children stop one after the other, and their graces are %" PRId64
                            " ms together; a stop_grace of %" PRId64 " ms leaves %" PRId64
                            " ms before SIGKILL; give a longer one, or shorter graces",
                            sum, config->stop_grace_ms, budget);
    return GAVEL_OK;
}

enum gavel_status config_check_timing(struct config_draft *draft)
{
    struct gavel_error cause = {0};
    enum gavel_status status = GAVEL_OK;

    if (draft->config.has_leader_commands)
        status = check_graces(draft);
    if (status != GAVEL_OK)
        return status;
    return raft_settings_check(&draft->config.raft, &cause) != GAVEL_OK ? blame(draft, &cause) : GAVEL_OK;
}
