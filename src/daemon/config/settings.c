/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/config/settings.h"

#include "daemon/config/draft.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define AT(field) offsetof(struct config_draft, field)

/* clang-format off */
const struct config_setting config_settings[CONFIG_SETTINGS_COUNT] = {
    [CONFIG_OF_CLUSTER] = {"", "cluster", "cluster", CONFIG_NAME, AT(config.cluster), "NAME",
        "the name of the cluster, the same on all nodes"},
    [CONFIG_OF_NODE] = {"", "node", "node", CONFIG_NAME, AT(config.node), "NAME",
        "the name of this node, unique in the cluster"},
    [CONFIG_OF_LISTEN] = {"", "listen", "listen", CONFIG_ADDRESS, AT(config.listen), "HOST:PORT",
        "where other nodes reach it (default: its address in peers, or 127.0.0.1:7400)"},
    [CONFIG_OF_ADVERTISE] = {"", "advertise", "advertise", CONFIG_ADDRESS, AT(config.advertise), "HOST:PORT",
        "the address that other nodes use, if it differs from --listen"},
    [CONFIG_OF_API] = {"", "api", "api", CONFIG_API_ADDRESS, AT(config.api_listen), "HOST:PORT",
        "where the HTTP API listens (default: its api in peers, or 127.0.0.1:7500)"},
    [CONFIG_OF_API_ADVERTISE] = {"", "api_advertise", "api_advertise", CONFIG_API_ADDRESS,
        AT(config.api_advertise), "HOST:PORT", "the address of the API that clients are given"},
    [CONFIG_OF_CLIENTS] = {"", "clients", "clients", CONFIG_CLIENTS_ADDRESS, AT(config.clients_listen), "HOST:PORT",
        "where programs take part in elections, gavel://HOST:PORT (default: nowhere)"},
    [CONFIG_OF_CLIENTS_ADVERTISE] = {"", "clients_advertise", "clients_advertise", CONFIG_CLIENTS_ADDRESS,
        AT(config.clients_advertise), "HOST:PORT", "the address that clients are given, if it differs from --clients"},
    [CONFIG_OF_SOCKET] = {"", "socket", "socket", CONFIG_PATH, AT(config.socket), "PATH",
        "the same for programs on this machine, gavel:///PATH (default: none)"},
    [CONFIG_OF_DATA] = {"", "data", "data", CONFIG_PATH, AT(config.data), "DIRECTORY",
        "the data directory of this node"},
    [CONFIG_OF_DATA_MAX] = {"", "data_max", "data_max", CONFIG_BYTES, AT(config.data_bytes_max), "BYTES",
        "the most space that the data may take (default: 1GiB)"},
    [CONFIG_OF_TLS_CA] = {"tls", "ca", "tls_ca", CONFIG_PATH, AT(config.tls_ca), "FILE",
        "the CA certificate, which signs those of the nodes"},
    [CONFIG_OF_TLS_CERT] = {"tls", "cert", "tls_cert", CONFIG_PATH, AT(config.tls_cert), "FILE",
        "the certificate of this node"},
    [CONFIG_OF_TLS_KEY] = {"tls", "key", "tls_key", CONFIG_PATH, AT(config.tls_key), "FILE",
        "the key of that certificate"},
    [CONFIG_OF_TLS_API] = {"tls", "api", "tls_api", CONFIG_BOOL, AT(config.has_api_tls), NULL,
        "whether the API uses HTTPS, too (default: yes, with certificates)"},
    [CONFIG_OF_TLS_REVOKED] = {"tls", "revoked", "tls_revoked", CONFIG_PATH, AT(config.tls_revoked), "FILE",
        "a list of revoked certificates, one SHA-256 per line; read again on SIGHUP"},
    [CONFIG_OF_SECRET] = {"", "secret", "secret", CONFIG_PATH, AT(config.secret), "FILE",
        "the secret that all nodes share, to prove their identity and to seal obituaries"},
    [CONFIG_OF_TOKEN] = {"", "token", "token", CONFIG_PATH, AT(config.token), "FILE",
        "a file with the token that the API requires"},
    [CONFIG_OF_ELECTION_MIN] = {"timing", "election_timeout_min_ms", "election_timeout_min_ms", CONFIG_TIME,
        AT(config.raft.election_min), "MS", "the shortest time that a follower waits for its leader (default: 150)"},
    [CONFIG_OF_ELECTION_MAX] = {"timing", "election_timeout_max_ms", "election_timeout_max_ms", CONFIG_TIME,
        AT(config.raft.election_max), "MS", "the longest such time (default: 300)"},
    [CONFIG_OF_HEARTBEAT] = {"timing", "heartbeat_interval_ms", "heartbeat_interval_ms", CONFIG_TIME,
        AT(config.raft.heartbeat), "MS", "how often a leader sends heartbeats (default: 50)"},
    [CONFIG_OF_LEASE] = {"timing", "lease_ms", "lease_ms", CONFIG_TIME, AT(config.raft.promise), "MS",
        "how long a follower that heard the leader helps elect no other (default: 150)"},
    [CONFIG_OF_TRANSFER_TIMEOUT] = {"timing", "transfer_timeout_ms", "transfer_timeout_ms", CONFIG_TIME,
        AT(config.raft.transfer_timeout), "MS", "how long a hand-over may take (default: 30000)"},
    [CONFIG_OF_PRIORITY] = {"", "priority", "priority", CONFIG_PRIORITY, AT(priority), "NUMBER",
        "0 to 255: the higher, the sooner it stands for election; as in peers"},
    [CONFIG_OF_WITNESS] = {"", "witness", "witness", CONFIG_BOOL, AT(is_witness), NULL,
        "it votes, but never leads; as in peers"},
    [CONFIG_OF_AUTO_FAILOVER] = {"", "auto_failover", "auto_failover", CONFIG_BOOL, AT(config.auto_failover), NULL,
        "stand for election by itself when the leader is lost (default: yes)"},
    [CONFIG_OF_SNAPSHOT_ENTRIES] = {"", "snapshot_entries", "snapshot_entries", CONFIG_COUNT,
        AT(config.snapshot_entries), "NUMBER", "compact the log after this many entries (default: 10000)"},
    [CONFIG_OF_SNAPSHOT_BYTES] = {"", "snapshot_bytes", "snapshot_bytes", CONFIG_BYTES,
        AT(config.snapshot_bytes), "BYTES", "compact the log after this many bytes of entries (default: 64MiB)"},
    [CONFIG_OF_GROUP_RETENTION] = {"", "group_retention", "group_retention", CONFIG_RETENTION,
        AT(config.group_retention), "DURATION", "remove groups without notes that nobody has led or joined for this long, or never (default: 1d)"},
    [CONFIG_OF_REALTIME] = {"", "realtime", "realtime", CONFIG_BOOL, AT(config.realtime), NULL,
        "use real-time priority, if permitted (default: yes)"},
    [CONFIG_OF_LOG_LEVEL] = {"", "log_level", "log_level", CONFIG_LEVEL, AT(config.log_level), "LEVEL",
        "debug, info, warning or error (default: info)"},
    [CONFIG_OF_LOG_FORMAT] = {"", "log", "log", CONFIG_FORMAT, AT(config.log_format), "FORMAT",
        "log lines as human, logfmt or json (default: human on a terminal, else logfmt)"},
    [CONFIG_OF_BOOTSTRAP] = {"", "bootstrap", "bootstrap", CONFIG_BOOL, AT(bootstraps), NULL,
        "with an empty data directory: found a new cluster of the peers in the file"},
    [CONFIG_OF_STOP_GRACE] = {"leader_commands", "stop_grace", "stop_grace", CONFIG_GRACE, AT(config.stop_grace_ms),
        "DURATION", "how long all leader_commands together may take to stop (default: 500ms)"},
};
/* clang-format on */

/* Names that settings once had; they are still understood, and nowhere shown. */
static const struct {
    const char *former;
    const char *name;
} former_names[] = {{"log_format", "log"}};

static bool is_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        bool is_dash = (*a == '-' || *a == '_') && (*b == '-' || *b == '_');

        if (!is_dash && strncasecmp(a, b, 1) != 0)
            return false;
    }
    return *a == *b;
}

static const char *name_today(const char *name)
{
    for (size_t i = 0; i < sizeof former_names / sizeof *former_names; i++)
        if (is_same_name(former_names[i].former, name))
            return former_names[i].name;
    return name;
}

const struct config_setting *config_setting_by_key(const char *section, const char *key)
{
    key = name_today(key);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++)
        if (strcmp(config_settings[i].section, section) == 0 && strcmp(config_settings[i].key, key) == 0)
            return &config_settings[i];
    return NULL;
}

const struct config_setting *config_setting_by_name(const char *name)
{
    name = name_today(name);
    for (size_t i = 0; i < CONFIG_SETTINGS_COUNT; i++)
        if (is_same_name(config_settings[i].name, name))
            return &config_settings[i];
    return NULL;
}

const char *config_setting_flag(const struct config_setting *setting, char buffer[CONFIG_FLAG_MAX])
{
    (void)snprintf(buffer, CONFIG_FLAG_MAX, "--%s", setting->name); /* the longest fits */
    for (char *at = buffer; *at; at++)
        if (*at == '_')
            *at = '-';
    return buffer;
}
