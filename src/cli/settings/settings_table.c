/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/settings/settings_table.h"

#include <ctype.h>
#include <string.h>

#define COMMON OPTIONS_COMMON
#define STORE OPTIONS_STORE
#define STORE_ALL OPTIONS_STORE_ALL
#define LISTING (OPTIONS_LISTING | OPTIONS_SETTINGS)
#define SETTINGS OPTIONS_SETTINGS
#define CALLS OPTIONS_CALLS
#define CANDIDATE OPTIONS_CANDIDATE
#define WORK OPTIONS_WORK
#define RUN OPTIONS_RUN
#define CLUSTER OPTIONS_CLUSTER
#define GROUP OPTIONS_GROUP
#define NODES OPTIONS_NODES
#define AT(field) offsetof(struct config, field)

/* clang-format off */
const struct setting settings_table[] = {
    {"store", 's', SETTING_TEXT, STORE | STORE_ALL | NODES, AT(store), "GAVEL_STORE", "store", "URL",
     "where mandates are kept (default: a SQLite file of this user)"},
    {"group", 'g', SETTING_TEXT, STORE | GROUP, AT(group), "GAVEL_GROUP", "group", "NAME",
     "the group to look at or take part in (default: \"default\")"},
    {"cluster", 0, SETTING_TEXT, CLUSTER, AT(cluster), "GAVEL_CLUSTER", "cluster", "[URLS]",
     "API addresses of the nodes of a gaveld cluster, separated by commas; one that answers is enough. "
     "Without URLS: those of GAVEL_CLUSTER, or of the store if that is gavel://…"},
    {"ca", 0, SETTING_TEXT, CLUSTER, AT(cluster_ca), "GAVEL_CA", "ca", "FILE",
     "the CA certificate of the nodes; URLs without a scheme then mean https"},
    {"revoked", 0, SETTING_TEXT, CLUSTER, AT(cluster_revoked), "GAVEL_REVOKED", "revoked", "FILE",
     "a list of revoked certificates, as `gavel cert revoke` writes it"},
    {"token-file", 0, SETTING_TEXT, CLUSTER, AT(token_file), "GAVEL_TOKEN_FILE", "token_file", "FILE",
     "a file with the token that the nodes require"},
    {"cluster-timeout", 0, SETTING_DURATION, CLUSTER, AT(cluster_timeout_ms), "GAVEL_CLUSTER_TIMEOUT",
     "cluster_timeout", "DURATION", "how long a node may take to answer (default: 2s)"},
    {"id", 'i', SETTING_TEXT, CANDIDATE, AT(candidate), "GAVEL_CANDIDATE", "candidate", "NAME",
     "the candidate's id, unique in the group (default: host name and process id)"},
    {"eligible", 0, SETTING_BOOL, CANDIDATE, AT(eligible), "GAVEL_ELIGIBLE", "eligible", NULL,
     "be able to lead (default); with --no-eligible, only observe and never lead"},
    {"election", 0, SETTING_BOOL, CANDIDATE, AT(enabled), "GAVEL_ENABLED", "enabled", NULL,
     "take part in an election (default); with --no-election, lead at once without one: single-instance mode"},
    {"priority", 0, SETTING_INT, CANDIDATE, AT(priority), "GAVEL_PRIORITY", "priority", "NUMBER",
     "rank for --policy priority; the candidate with the highest number leads (default: 0)"},
    {"doorbell", 0, SETTING_TEXT, CANDIDATE, AT(doorbell), "GAVEL_DOORBELL", "doorbell", "ADDRESS",
     "address or address:port on which other candidates can tell this one to look at the store now (default: the address from which this host reaches the store's server, else 127.0.0.1); '' for none"},
    {"preset", 'p', SETTING_TEXT, LISTING | CALLS, AT(preset), "GAVEL_PRESET", "preset", "NAME",
     "settings to start from: local, cluster, database, coordinator, object-store or frugal (default: the one that suits the store)"},

    {"heartbeat", 0, SETTING_DURATION, SETTINGS, AT(settings.heartbeat_ms), "GAVEL_HEARTBEAT", "heartbeat",
     "DURATION", "how often a candidate registers in the store and a leader renews its mandate"},
    {"heartbeat-jitter", 0, SETTING_DURATION, SETTINGS, AT(settings.heartbeat_jitter_ms), "GAVEL_HEARTBEAT_JITTER",
     "heartbeat_jitter", "DURATION", "random extra time per heartbeat, so that candidates do not all call the store at once"},
    {"lease", 0, SETTING_DURATION, SETTINGS, AT(settings.lease_ms), "GAVEL_LEASE", "lease", "DURATION",
     "how long a mandate lasts without a renewal"},
    {"candidate-timeout", 0, SETTING_DURATION, LISTING, AT(settings.candidate_timeout_ms),
     "GAVEL_CANDIDATE_TIMEOUT", "candidate_timeout", "DURATION", "a candidate that has sent no heartbeat for this long is no longer listed as active"},
    {"election-interval", 0, SETTING_DURATION, SETTINGS, AT(settings.election_interval_ms),
     "GAVEL_ELECTION_INTERVAL", "election_interval", "DURATION", "how often a standby checks whether the group has a leader"},
    {"observation", 0, SETTING_DURATION, SETTINGS, AT(settings.observation_ms), "GAVEL_OBSERVATION", "observation",
     "DURATION", "how long a new candidate only watches the group before it takes part"},
    {"preparation", 0, SETTING_DURATION, SETTINGS, AT(settings.preparation_ms), "GAVEL_PREPARATION", "preparation",
     "DURATION", "how long a new leader waits before its work starts"},
    {"min-mandate", 0, SETTING_DURATION, SETTINGS, AT(settings.min_mandate_ms), "GAVEL_MIN_MANDATE", "min_mandate",
     "DURATION", "the shortest time that a new leader leads before it hands over, on request or because of --preempt"},
    {"max-mandate", 0, SETTING_DURATION, SETTINGS, AT(settings.max_mandate_ms), "GAVEL_MAX_MANDATE", "max_mandate",
     "DURATION", "how long a leader keeps the same epoch; after that it goes on with a new one (0: no limit)"},
    {"takeover-delay", 0, SETTING_DURATION, SETTINGS, AT(settings.takeover_delay_ms), "GAVEL_TAKEOVER_DELAY",
     "takeover_delay", "DURATION", "how long to wait before replacing a leader that was lost; it does not delay a hand-over"},
    {"start-jitter-min", 0, SETTING_DURATION, SETTINGS, AT(settings.start_jitter_min_ms), "GAVEL_START_JITTER_MIN",
     "start_jitter_min", "DURATION", "the shortest random wait before the first call to the store"},
    {"start-jitter-max", 0, SETTING_DURATION, SETTINGS, AT(settings.start_jitter_max_ms), "GAVEL_START_JITTER_MAX",
     "start_jitter_max", "DURATION", "the longest random wait before the first call to the store"},
    {"call-timeout", 0, SETTING_DURATION, SETTINGS | CALLS, AT(settings.call_timeout_ms), "GAVEL_CALL_TIMEOUT",
     "call_timeout", "DURATION", "how long a call to the store may take"},
    {"stop-grace", 0, SETTING_DURATION, SETTINGS, AT(settings.stop_grace_ms), "GAVEL_STOP_GRACE", "stop_grace",
     "DURATION", "how long the work may take to stop (older names: --grace and, at the top level of a file, grace:; the grace: of a child is another setting)"},
    {"stop-margin", 0, SETTING_DURATION, SETTINGS, AT(settings.stop_margin_ms), "GAVEL_STOP_MARGIN", "stop_margin",
     "DURATION", "safety margin: the work must have stopped this long before the lease ends, in case timers fire late"},
    {"stagger", 0, SETTING_DURATION, SETTINGS, AT(settings.stagger_ms), "GAVEL_STAGGER", "stagger", "DURATION",
     "wait before claiming a vacant group, multiplied by the number of candidates that --policy ranks higher"},
    {"epoch-grace", 0, SETTING_DURATION, SETTINGS, AT(settings.epoch_grace_ms), "GAVEL_EPOCH_GRACE", "epoch_grace",
     "DURATION", "for programs that use libgavel: how long gavel_epoch_valid() still accepts the previous epoch"},
    {"breaker-reset", 0, SETTING_DURATION, SETTINGS, AT(settings.breaker_reset_ms), "GAVEL_BREAKER_RESET",
     "breaker_reset", "DURATION", "how long the circuit breaker blocks calls to a failing store before it tries again. While nobody leads, it blocks them for at most --election-interval; it never blocks the renewals of a leader"},
    {"breaker-threshold", 0, SETTING_INT, SETTINGS, AT(settings.breaker_threshold), "GAVEL_BREAKER_THRESHOLD",
     "breaker_threshold", "NUMBER", "how many calls to the store must fail in a row before the circuit breaker blocks further calls"},
    {"breaker-attempts", 0, SETTING_INT, SETTINGS, AT(settings.breaker_attempts), "GAVEL_BREAKER_ATTEMPTS",
     "breaker_attempts", "NUMBER", "how many calls the circuit breaker lets through to find out whether the store is back"},
    {"contention-threshold", 0, SETTING_REAL, SETTINGS, AT(settings.contention_threshold),
     "GAVEL_CONTENTION_THRESHOLD", "contention_threshold", "NUMBER",
     "report contention if two heartbeats are more than this many heartbeat intervals apart"},
    {"contention-every", 0, SETTING_DURATION, SETTINGS, AT(settings.contention_every_ms), "GAVEL_CONTENTION_EVERY",
     "contention_every", "DURATION", "the shortest time between two reports of contention"},
    {"drift-ppm", 0, SETTING_INT, SETTINGS, AT(settings.drift_ppm), "GAVEL_DRIFT_PPM", "drift_ppm", "NUMBER",
     "how much the clock rates of two hosts may differ, in parts per million"},
    {"policy", 0, SETTING_POLICY, SETTINGS, AT(settings.policy), "GAVEL_POLICY", "policy", "NAME",
     "who claims a vacant group: first (whoever claims it first; no ranking), lexicographic (the lowest id), priority (the highest --priority) or balanced (whoever leads the fewest groups; with gavel:// only)"},
    {"preempt", 0, SETTING_BOOL, SETTINGS, AT(settings.preempt), "GAVEL_PREEMPT", "preempt", NULL,
     "hand over to a candidate that --policy prefers, once --min-mandate has passed"},
    {"trust-store-clock", 0, SETTING_BOOL, SETTINGS, AT(settings.trust_store_clock), "GAVEL_TRUST_STORE_CLOCK",
     "trust_store_clock", NULL, "take over as soon as the store's clock says that the lease has expired, without also waiting for a whole lease on this host's clock"},

    {"on-exit", 0, SETTING_ON_EXIT, RUN, AT(run.on_exit), "GAVEL_ON_EXIT", "on_exit", "WHAT",
     "what to do when the command ends by itself: stop (exit with its exit code), resign (let another candidate lead) or "
     "restart (run it again). Default: stop; for the children of a file: restart"},
    {"term-signal", 0, SETTING_SIGNAL, WORK, AT(run.term_signal), "GAVEL_TERM_SIGNAL", "term_signal", "NAME",
     "the signal that asks the command to stop (default: TERM)"},
    {"orphan-grace", 0, SETTING_DURATION, WORK, AT(run.orphan_grace_ms), "GAVEL_ORPHAN_GRACE", "orphan_grace",
     "DURATION", "if gavel itself is killed: how long the command may take to stop after the term signal, before SIGKILL (default: 0, SIGKILL at once)"},
    {"restart-limit", 0, SETTING_INT, RUN, AT(run.restart_limit), "GAVEL_RESTART_LIMIT", "restart_limit", "NUMBER",
     "restarts allowed per --restart-window; one more makes the candidate resign, so that another leads (default: 3)"},
    {"restart-window", 0, SETTING_DURATION, RUN, AT(run.restart_window_ms), "GAVEL_RESTART_WINDOW",
     "restart_window", "DURATION", "the time over which restarts are counted (default: 5s)"},
    {"cool-down", 0, SETTING_DURATION, RUN, AT(run.cool_down_ms), "GAVEL_COOL_DOWN", "cool_down", "DURATION",
     "how long the candidate does not try to lead again after too many restarts, a child that was not ready in time or a failed --on-elected (default: 10s)"},
    {"healthy", 0, SETTING_TEXT, WORK, AT(run.healthy), "GAVEL_HEALTHY", "healthy", "COMMAND",
     "the health check, a shell command that exits with 0 if this place is healthy; an unhealthy candidate does not lead"},
    {"healthy-every", 0, SETTING_DURATION, WORK, AT(run.healthy_every_ms), "GAVEL_HEALTHY_EVERY", "healthy_every",
     "DURATION", "how often to run the health check (default: 5s)"},
    {"healthy-timeout", 0, SETTING_DURATION, WORK, AT(run.healthy_timeout_ms), "GAVEL_HEALTHY_TIMEOUT",
     "healthy_timeout", "DURATION", "how long a health check may take before it counts as failed (default: 2s)"},
    {"healthy-failures", 0, SETTING_INT, WORK, AT(run.healthy_failures), "GAVEL_HEALTHY_FAILURES",
     "healthy_failures", "NUMBER", "how many health checks in a row must fail before the candidate counts as unhealthy (default: 2)"},
    {"on-elected", 0, SETTING_TEXT, WORK, AT(run.on_elected), "GAVEL_ON_ELECTED", "on_elected", "COMMAND",
     "a shell command to run when this candidate is elected, before the main command; if it fails, the main command is not started"},
    {"on-demoted", 0, SETTING_TEXT, WORK, AT(run.on_demoted), "GAVEL_ON_DEMOTED", "on_demoted", "COMMAND",
     "a shell command to run after the main command has stopped, if the mandate has not ended yet"},
    {"hook-timeout", 0, SETTING_DURATION, WORK, AT(run.hook_timeout_ms), "GAVEL_HOOK_TIMEOUT", "hook_timeout",
     "DURATION", "how long --on-elected and --on-demoted may each take; neither outlasts the mandate (default: 10s)"},
    {"prefix", 0, SETTING_BOOL, RUN, AT(run.prefix), "GAVEL_PREFIX", "prefix", NULL,
     "put a name before each line of output: the name of the child in the file or, for a COMMAND, the name of its program (default: off)"},
    {"contain", 0, SETTING_CONTAIN, WORK, AT(run.contain), "GAVEL_CONTAIN", "contain", "HOW",
     "how to find all processes of the command in order to kill them: cgroup, walk (through all descendants) or auto (cgroup if one is delegated to gavel, otherwise walk) (default: auto)"},

    {"config", 'c', SETTING_TEXT, COMMON, AT(file), "GAVEL_CONFIG", NULL, "FILE",
     "a YAML file with any of these settings and, for gavel run, the list of children, see gavel.yaml(5); -f is the same"},
    {"json", 0, SETTING_SWITCH, COMMON, AT(json), NULL, NULL, NULL, "print results as JSON, and a failure also as JSON on stdout"},
    {"color", 0, SETTING_COLOR, COMMON, AT(color), "GAVEL_COLOR", NULL, "WHEN",
     "when to print colours: auto, always or never; NO_COLOR is honoured (default: auto)"},
    {"log", 0, SETTING_LOG_FORMAT, COMMON, AT(log_format), "GAVEL_LOG", "log", "FORMAT",
     "format of the log on stderr: human, logfmt or json (default: human on a terminal, else logfmt)"},
    {"log-level", 0, SETTING_LOG_LEVEL, COMMON, AT(log_level), "GAVEL_LOG_LEVEL", "log_level", "LEVEL",
     "debug, info, warning or error (default: info)"},
};
/* clang-format on */

const size_t settings_count = sizeof settings_table / sizeof settings_table[0];

_Static_assert(sizeof settings_table / sizeof settings_table[0] <= SETTINGS_MAX, "SETTINGS_MAX is too small");

const struct other_name other_names[] = {
    {"grace", 0, "GAVEL_GRACE", "grace", "stop-grace"},
    {"log-format", 0, "GAVEL_LOG_FORMAT", "log_format", "log"},
    {NULL, 'f', NULL, NULL, "config"},
    {0},
};

_Static_assert(sizeof other_names / sizeof other_names[0] <= OTHER_NAMES_MAX, "OTHER_NAMES_MAX is too small");

const struct setting *setting_by_flag(const char *flag)
{
    for (size_t i = 0; i < settings_count; i++)
        if (strcmp(settings_table[i].flag, flag) == 0)
            return &settings_table[i];
    for (const struct other_name *other = other_names; other->of; other++)
        if (other->flag && strcmp(other->flag, flag) == 0)
            return setting_by_flag(other->of);
    return NULL;
}

const struct setting *setting_by_letter(char letter)
{
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].letter == letter && letter)
            return &settings_table[i];
    for (const struct other_name *other = other_names; other->of; other++)
        if (other->letter == letter && letter)
            return setting_by_flag(other->of);
    return NULL;
}

const struct setting *setting_by_key(const char *key)
{
    for (size_t i = 0; i < settings_count; i++)
        if (settings_table[i].key && strcmp(settings_table[i].key, key) == 0)
            return &settings_table[i];
    for (const struct other_name *other = other_names; other->of; other++)
        if (other->key && strcmp(other->key, key) == 0)
            return setting_by_flag(other->of);
    return NULL;
}

const struct setting *setting_meant(const char *word)
{
    char flag[64];
    size_t length = strlen(word);

    if (length >= sizeof flag)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        flag[i] = (char)(word[i] == '_' ? '-' : tolower((unsigned char)word[i]));
    return setting_by_flag(flag);
}

bool setting_takes_value(const struct setting *setting)
{
    return setting->kind != SETTING_SWITCH && setting->kind != SETTING_BOOL;
}

bool setting_needs_words(const struct setting *setting)
{
    return setting->kind == SETTING_TEXT &&
           (strcmp(setting->argument, "FILE") == 0 || strcmp(setting->argument, "[URLS]") == 0);
}
