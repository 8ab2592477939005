/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one table of settings with a single value. The file, the environment, the
 * flags and --help all use it, so that none of them can lack a setting. Settings
 * with parts (peers, children) are in the file only.
 */
#ifndef DAEMON_CONFIG_SETTINGS_H
#define DAEMON_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

enum config_kind {
    CONFIG_NAME,            /* char[PEER_NAME_MAX + 1] */
    CONFIG_ADDRESS,         /* char[PEER_ADDRESS_MAX + 1], of peers */
    CONFIG_API_ADDRESS,     /* the same, of the API, with another default port */
    CONFIG_CLIENTS_ADDRESS, /* the same, of clients, likewise */
    CONFIG_PATH,            /* char[PATH_MAX] */
    CONFIG_BOOL,            /* bool */
    CONFIG_TIME,            /* gavel_ns, written in milliseconds or as a duration */
    CONFIG_GRACE,           /* gavel_ms, likewise */
    CONFIG_RETENTION,       /* gavel_ns, a duration of a second or more; 0 is written as "never" */
    CONFIG_BYTES,           /* uint64_t, with KiB, MiB, GiB */
    CONFIG_COUNT,           /* uint32_t */
    CONFIG_PRIORITY,        /* uint8_t */
    CONFIG_LEVEL,           /* enum log_level */
    CONFIG_FORMAT,          /* enum log_format */
};

enum config_id {
    CONFIG_OF_CLUSTER,
    CONFIG_OF_NODE,
    CONFIG_OF_LISTEN,
    CONFIG_OF_ADVERTISE,
    CONFIG_OF_API,
    CONFIG_OF_API_ADVERTISE,
    CONFIG_OF_CLIENTS,
    CONFIG_OF_CLIENTS_ADVERTISE,
    CONFIG_OF_SOCKET,
    CONFIG_OF_DATA,
    CONFIG_OF_DATA_MAX,
    CONFIG_OF_TLS_CA,
    CONFIG_OF_TLS_CERT,
    CONFIG_OF_TLS_KEY,
    CONFIG_OF_TLS_API,
    CONFIG_OF_TLS_REVOKED,
    CONFIG_OF_SECRET,
    CONFIG_OF_TOKEN,
    CONFIG_OF_ELECTION_MIN,
    CONFIG_OF_ELECTION_MAX,
    CONFIG_OF_HEARTBEAT,
    CONFIG_OF_LEASE,
    CONFIG_OF_TRANSFER_TIMEOUT,
    CONFIG_OF_PRIORITY,
    CONFIG_OF_WITNESS,
    CONFIG_OF_AUTO_FAILOVER,
    CONFIG_OF_SNAPSHOT_ENTRIES,
    CONFIG_OF_SNAPSHOT_BYTES,
    CONFIG_OF_GROUP_RETENTION,
    CONFIG_OF_REALTIME,
    CONFIG_OF_LOG_LEVEL,
    CONFIG_OF_LOG_FORMAT,
    CONFIG_OF_BOOTSTRAP,
    CONFIG_OF_STOP_GRACE,
    CONFIG_SETTINGS_COUNT,
};

struct config_setting {
    const char *section; /* of the file: "", "tls", "timing", "leader_commands" */
    const char *key;     /* in that section */
    const char *name;    /* with dashes it is the flag, in capitals after GAVELD_ the variable */
    enum config_kind kind;
    size_t offset;        /* in struct config_draft */
    const char *argument; /* what --help calls the value; NULL: --name says true, --no-name false */
    const char *help;
};

extern const struct config_setting config_settings[CONFIG_SETTINGS_COUNT];

/* By section and key of the file, or by a former key; NULL if there is none. */
const struct config_setting *config_setting_by_key(const char *section, const char *key);

/* By name or former name, ignoring case and the kind of dash: "LOG_LEVEL", "log-level". */
const struct config_setting *config_setting_by_name(const char *name);

/* The flag of a setting, with its dashes, for display. Returns buffer. */
#define CONFIG_FLAG_MAX 40
const char *config_setting_flag(const struct config_setting *setting, char buffer[CONFIG_FLAG_MAX]);

#endif
