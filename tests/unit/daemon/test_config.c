/* SPDX-License-Identifier: Apache-2.0 */

/* The configuration of gaveld: what is read from where, and that every mistake is told with its place. */
#include "config/whole_file.h"
#include "daemon/config/read.h"
#include "daemon/config/settings.h"
#include "net/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define GOOD                                                                                                 \
    "cluster: demo\n"                                                                                        \
    "node: n1\n"                                                                                             \
    "data: d1\n"
#define PEERS                                                                                                \
    "peers:\n"                                                                                               \
    "  - {name: n1, address: 127.0.0.1:7401, api: 127.0.0.1:7501}\n"                                         \
    "  - {name: n2, address: 127.0.0.1:7402, api: 127.0.0.1:7502}\n"                                         \
    "  - {name: n3, address: 127.0.0.1:7403, api: 127.0.0.1:7503}\n"

struct fixture {
    char directory[64];
    char name[80]; /* of the file */
    struct config_input input;
    struct daemon_config config;
    struct config_warnings warnings;
    struct gavel_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    (void)snprintf(f->directory, sizeof f->directory, "/tmp/gaveld-test-XXXXXX");
    if (!mkdtemp(f->directory))
        return -1;
    (void)snprintf(f->name, sizeof f->name, "%s/gaveld.yaml", f->directory);
    f->input.file = f->name;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = {"gaveld.yaml", "secret", "token", "program"};
    struct fixture *f = *state;
    char path[128];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", f->directory, files[i]);
        (void)unlink(path);
    }
    config_done(&f->config);
    (void)rmdir(f->directory);
    free(f);
    return 0;
}

static void write_file(struct fixture *f, const char *name, const char *text, mode_t mode)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", f->directory, name);
    (void)unlink(path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static enum gavel_status load(struct fixture *f, const char *text)
{
    write_file(f, "gaveld.yaml", text, 0600);
    config_done(&f->config);
    f->config = (struct daemon_config){0};
    f->error = (struct gavel_error){0};
    return config_read(&f->input, &f->config, &f->warnings, &f->error);
}

static void assert_good(struct fixture *f, const char *text)
{
    if (load(f, text) != GAVEL_OK)
        fail_msg("%s", f->error.message);
}

/* Refused, beginning with "file:line: " if there is a line, and with these words. */
static void assert_refused(struct fixture *f, const char *text, int line, const char *words)
{
    char prefix[128] = "";

    if (line)
        (void)snprintf(prefix, sizeof prefix, "%s:%d: ", f->name, line);
    if (load(f, text) == GAVEL_OK)
        fail_msg("taken, but should not be: %s", text);
    if (strncmp(f->error.message, prefix, strlen(prefix)) != 0 || !strstr(f->error.message, words))
        fail_msg("line %d, \"%s\": %s", line, words, f->error.message);
}

static void set_flag(struct fixture *f, const char *name, const char *text)
{
    f->input.flags[f->input.flag_count].setting = config_setting_by_name(name);
    assert_non_null(f->input.flags[f->input.flag_count].setting);
    f->input.flags[f->input.flag_count++].text = text;
}

static const struct daemon_peer *peer_of(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->config.peer_count; i++)
        if (strcmp(f->config.peers[i].name, name) == 0)
            return &f->config.peers[i];
    return NULL;
}

static const char everything[] = "cluster: demo\n"
                                 "node: n1\n"
                                 "listen: 127.0.0.1:7401\n"
                                 "advertise: 127.0.0.1:7401\n"
                                 "api: 127.0.0.1:7501\n"
                                 "api_advertise: 127.0.0.1:7501\n"
                                 "data: d1\n"
                                 "data_max: 64MiB\n"
                                 "secret: secret\n"
                                 "token: token\n"
                                 "priority: 7\n"
                                 "witness: false\n"
                                 "auto_failover: false\n"
                                 "snapshot_entries: 500\n"
                                 "snapshot_bytes: 8MiB\n"
                                 "group_retention: 7d\n"
                                 "realtime: no\n"
                                 "log_level: debug\n"
                                 "log: json\n"
                                 "bootstrap: true\n"
                                 "timing:\n"
                                 "  election_timeout_min_ms: 1000\n"
                                 "  election_timeout_max_ms: 2s\n"
                                 "  heartbeat_interval_ms: 100\n"
                                 "  lease_ms: 900\n"
                                 "  transfer_timeout_ms: 5000\n"
                                 "peers:\n"
                                 "  - {name: n1, address: 127.0.0.1:7401, api: 127.0.0.1:7501, priority: 7}\n"
                                 "  - name: n2\n"
                                 "    address: 127.0.0.1:7402\n"
                                 "    witness: true\n"
                                 "  - {name: n3, address: 127.0.0.2}\n"
                                 "leader_commands:\n"
                                 "  stop_grace: 200ms\n"
                                 "  children:\n"
                                 "    - {name: one, command: [/bin/sleep, 10]}\n";

static void test_every_key_is_read(void **state)
{
    struct fixture *f = *state;
    struct daemon_config *c = &f->config;
    const struct daemon_peer *peer;
    char path[128];

    write_file(f, "secret", "0123456789abcdef0123456789abcdef0123", 0600);
    write_file(f, "token", "a-token-of-some-length\n", 0600);
    assert_good(f, everything);
    assert_string_equal(c->file, f->name);
    assert_string_equal(c->cluster, "demo");
    assert_string_equal(c->node, "n1");
    assert_true(c->cluster_id == seal_id_of_name("cluster", "demo"));
    assert_true(c->id == seal_id_of_name("node", "n1"));
    assert_string_equal(c->listen, "127.0.0.1:7401");
    assert_string_equal(c->api_listen, "127.0.0.1:7501");
    (void)snprintf(path, sizeof path, "%s/d1", f->directory); /* from where the file is */
    assert_string_equal(c->data, path);
    assert_true(c->data_bytes_max == 64u << 20);
    (void)snprintf(path, sizeof path, "%s/secret", f->directory);
    assert_string_equal(c->secret, path);
    assert_false(c->auto_failover);
    assert_int_equal(c->snapshot_entries, 500);
    assert_true(c->snapshot_bytes == 8u << 20);
    assert_true(c->group_retention == 7 * 86400 * NS_PER_S);
    assert_false(c->realtime);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->log_format, LOG_JSON);
    assert_int_equal(c->start, START_BOOTSTRAP);
    assert_true(c->raft.election_min == 1000 * NS_PER_MS);
    assert_true(c->raft.election_max == 2000 * NS_PER_MS);
    assert_true(c->raft.heartbeat == 100 * NS_PER_MS);
    assert_true(c->raft.promise == 900 * NS_PER_MS);
    assert_true(c->raft.transfer_timeout == 5000 * NS_PER_MS);
    assert_true(c->raft.stop_margin == 210 * NS_PER_MS);
    assert_true(c->has_leader_commands);
    assert_int_equal(c->children.count, 1);
    assert_int_equal(c->stop_grace_ms, 200);
    assert_int_equal(c->peer_count, 3);
    peer = peer_of(f, "n2");
    assert_non_null(peer);
    assert_true(peer->is_witness);
    assert_true(peer->id == seal_id_of_name("node", "n2"));
    assert_string_equal(peer_of(f, "n3")->address, "127.0.0.2:7400");
    assert_int_equal(peer_of(f, "n1")->priority, 7);
    for (size_t i = 1; i < c->peer_count; i++)
        assert_true(c->peers[i - 1].id < c->peers[i].id);
}

static void test_defaults_are_those_of_the_manual(void **state)
{
    struct fixture *f = *state;
    struct daemon_config *c = &f->config;

    assert_good(f, GOOD);
    assert_string_equal(c->listen, "127.0.0.1:7400");
    assert_string_equal(c->advertise, "127.0.0.1:7400");
    assert_string_equal(c->api_listen, "127.0.0.1:7500");
    assert_int_equal(c->start, START_AGAIN);
    assert_true(c->raft.election_min == 150 * NS_PER_MS);
    assert_true(c->raft.election_max == 300 * NS_PER_MS);
    assert_true(c->raft.heartbeat == 50 * NS_PER_MS);
    assert_true(c->raft.promise == 150 * NS_PER_MS);
    assert_true(c->raft.transfer_timeout == 30 * NS_PER_S);
    assert_true(c->raft.stop_margin == 10 * NS_PER_MS);
    assert_true(c->auto_failover);
    assert_true(c->realtime);
    assert_false(c->has_tls);
    assert_false(c->has_api_tls);
    assert_true(c->data_bytes_max == 1u << 30);
    assert_int_equal(c->snapshot_entries, 10000);
    assert_true(c->snapshot_bytes == 64u << 20);
    assert_true(c->group_retention == 86400 * NS_PER_S);
    assert_int_equal(c->peer_count, 1);
    assert_string_equal(c->peers[0].name, "n1");
    assert_string_equal(c->peers[0].api, "127.0.0.1:7500");
}

static void test_addresses_come_from_the_list_of_peers(void **state)
{
    struct fixture *f = *state;

    assert_good(f, GOOD PEERS);
    assert_string_equal(f->config.listen, "127.0.0.1:7401");
    assert_string_equal(f->config.advertise, "127.0.0.1:7401");
    assert_string_equal(f->config.api_listen, "127.0.0.1:7501");
    assert_string_equal(f->config.api_advertise, "127.0.0.1:7501");
}

static void test_flags_beat_variables_and_those_the_file(void **state)
{
    char *environment[] = {(char[]){"PATH=/bin"},
                           (char[]){"GAVELD_LOG_LEVEL=warning"},
                           (char[]){"GAVELD_DATA=/var/tmp/from-variable"},
                           (char[]){"GAVELD_CONFIG=ignored.yaml"},
                           (char[]){"GAVELD_TOKEN="},
                           (char[]){"GAVELD_LEASE_MS=140"},
                           NULL};
    struct fixture *f = *state;

    f->input.environment = environment;
    set_flag(f, "log-level", "error");
    set_flag(f, "NODE", "n9");
    assert_good(f, GOOD "log_level: debug\n");
    assert_int_equal(f->config.log_level, LOG_ERROR);
    assert_string_equal(f->config.data, "/var/tmp/from-variable");
    assert_string_equal(f->config.node, "n9");
    assert_true(f->config.raft.promise == 140 * NS_PER_MS);
    assert_string_equal(f->config.token, "");
}

static void test_former_name_of_the_log_is_understood(void **state)
{
    char *environment[] = {(char[]){"GAVELD_LOG_FORMAT=json"}, NULL};
    struct fixture *f = *state;

    assert_good(f, GOOD);
    assert_int_equal(f->config.log_format, LOG_AUTO);
    config_done(&f->config);
    assert_good(f, GOOD "log_format: logfmt\n");
    assert_int_equal(f->config.log_format, LOG_LOGFMT);
    config_done(&f->config);
    f->input.environment = environment;
    assert_good(f, GOOD "log: logfmt\n");
    assert_int_equal(f->config.log_format, LOG_JSON);
    config_done(&f->config);
    set_flag(f, "log-format", "human");
    assert_good(f, GOOD);
    assert_int_equal(f->config.log_format, LOG_HUMAN);
}

static void test_mistakes_of_variables_and_flags_are_named(void **state)
{
    char *unknown[] = {(char[]){"GAVELD_LOG_LEVL=info"}, NULL};
    char *wrong[] = {(char[]){"GAVELD_PRIORITY=300"}, NULL};
    struct fixture *f = *state;

    f->input.environment = unknown;
    assert_refused(f, GOOD, 0, "GAVELD_LOG_LEVL, which sets nothing; did you mean GAVELD_LOG_LEVEL?");
    f->input.environment = wrong;
    assert_refused(f, GOOD, 0, "GAVELD_PRIORITY: 300 is not from 0 to 255");
    f->input.environment = NULL;
    set_flag(f, "election_timeout_min_ms", "soon");
    assert_refused(f, GOOD, 0, "--election-timeout-min-ms: ");
}

static void test_no_file_is_needed(void **state)
{
    struct fixture *f = *state;

    f->input.file = NULL;
    assert_int_equal(config_read(&f->input, &f->config, &f->warnings, &f->error), GAVEL_ERR_INVALID);
    assert_non_null(strstr(f->error.message, "there is no configuration file; name one with -c FILE"));
    set_flag(f, "cluster", "demo");
    set_flag(f, "node", "n1");
    set_flag(f, "data", "/var/tmp/n1");
    f->input.joins = true;
    assert_int_equal(config_read(&f->input, &f->config, &f->warnings, &f->error), GAVEL_OK);
    assert_string_equal(f->config.file, "");
    assert_int_equal(f->config.start, START_JOIN);
    f->input.file = "/does/not/exist.yaml";
    assert_int_equal(config_read(&f->input, &f->config, &f->warnings, &f->error), GAVEL_ERR_IO);
    assert_non_null(strstr(f->error.message, "cannot read the configuration file /does/not/exist.yaml"));
}

static void test_shapes_that_are_no_configuration(void **state)
{
    struct fixture *f = *state;
    char *large = malloc(CONFIG_FILE_MAX + 2);

    assert_refused(f, "", 0, "the cluster has no name");
    assert_refused(f, "cluster: a\n", 0, "this node has no name");
    assert_refused(f, "cluster: a\nnode: b\n", 0, "no directory for the data");
    assert_refused(f, "just words\n", 1, "must be lines of the form");
    assert_refused(f, "cluster: [\n", 2, "this is not valid YAML");
    assert_refused(f, GOOD "---\ncluster: x\n", 5, "a second document begins here");
    assert_refused(f, GOOD "[a, b]: c\n", 4, "a key must be one plain word");
    memset(large, ' ', CONFIG_FILE_MAX + 1);
    large[CONFIG_FILE_MAX + 1] = '\0';
    assert_refused(f, large, 0, "larger than 1 MiB");
    free(large);
}

static void test_unknown_and_repeated_keys_have_their_line(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD "lissen: 127.0.0.1:1\n", 4,
                   "there is no key \"lissen\"; did you mean \"listen\"?");
    assert_refused(f, GOOD "timing: {lease: 300}\n", 4,
                   "there is no key \"lease\"; did you mean \"lease_ms\"?");
    assert_refused(f, GOOD "pears: []\n", 4, "did you mean \"peers\"?");
    assert_refused(f, GOOD "lease_ms: 150\n", 4, "is written as timing: {lease_ms: …}");
    assert_refused(f, GOOD "ca: x\n", 4, "is written as tls: {ca: …}");
    assert_refused(f, GOOD "timing: {cluster: x}\n", 4, "not in timing");
    assert_refused(f, GOOD "quite_else: 1\n", 4, "gaveld.yaml(5) lists them");
    assert_refused(f, GOOD "timing:\n  lease_m: 150\n", 5, "did you mean \"lease_ms\"?");
    assert_refused(f, GOOD "tls: {certs: x}\n", 4, "did you mean \"cert\"?");
    assert_refused(f, GOOD "node: n2\n", 4, "node is on line 2 already");
    assert_refused(f, GOOD PEERS "peers: []\n", 8, "peers is on line 4 already");
    assert_refused(f, GOOD "peers:\n  - {name: a, addres: b}\n", 5, "did you mean \"address\"?");
    assert_refused(f, GOOD "leader_commands: {childs: []}\n", 4, "\"childs\"");
}

static void test_values_that_are_none(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "cluster: -a\n", 1, "cluster: \"-a\" is not a valid name");
    assert_refused(f, "cluster: a b\n", 1, "is not a valid name");
    assert_refused(f, "node: äöü\n", 1, "is not a valid name");
    assert_refused(f, "node:\n", 1, "node has no value");
    assert_refused(f, "node: [a]\n", 1, "node must be one plain value");
    assert_refused(f, "data: ''\n", 1, "data: it is empty");
    assert_refused(f, "data_max: 10\n", 1, "is not a size from 1MiB to 16TiB");
    assert_refused(f, "data_max: 1 PiB\n", 1, "is not a size");
    assert_refused(f, "data_max: 99999999999T\n", 1, "is not a size");
    assert_refused(f, "auto_failover: maybe\n", 1, "neither true nor false");
    assert_refused(f, "snapshot_entries: 1\n", 1, "1 is not from 10 to");
    assert_refused(f, "priority: 256\n", 1, "256 is not from 0 to 255");
    assert_refused(f, "log_level: loud\n", 1, "none of debug, info, warning, error");
    assert_refused(f, "log: xml\n", 1, "log: \"xml\" is none of auto, human, logfmt, json");
    assert_refused(f, "log: json\nlog_format: json\n", 2, "log_format is on line 1 already");
    assert_refused(f, "timing: {lease_ms: 0}\n", 1, "not from 1 ms to an hour");
    assert_refused(f, "timing: {lease_ms: 2h}\n", 1, "not from 1 ms to an hour");
    assert_refused(f, "timing: {lease_ms: -5}\n", 1, "lease_ms: ");
    assert_refused(f, "timing: 5\n", 1, "timing must be lines of the form");
}

static void test_addresses_that_are_none(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, "listen: ':7400'\n", 1, "has no host; write 0.0.0.0:7400");
    assert_refused(f, "listen: '::1'\n", 1, "write [::1]:7400");
    assert_refused(f, "listen: 'host:'\n", 1, "no port from 1 to 65535");
    assert_refused(f, "listen: 'host:0'\n", 1, "no port from 1 to 65535");
    assert_refused(f, "listen: host:65536\n", 1, "no port from 1 to 65535");
    assert_refused(f, "listen: host:http\n", 1, "no port from 1 to 65535");
    assert_refused(f, "listen: a b:1\n", 1, "is not an address");
    assert_refused(f, "listen: '[::g]:1'\n", 1, "is not an address");
    assert_refused(f, GOOD "listen: 0.0.0.0:7400\n", 4, "set `advertise: HOST:PORT`");
    assert_refused(f, GOOD "api: 0.0.0.0\n", 4, "set `api_advertise: HOST:PORT`");
    assert_refused(f, GOOD "advertise: '[::]:5'\n", 4, "nobody can be reached at [::]:5");
    assert_refused(f, GOOD "peers:\n  - {name: n1, address: 0.0.0.0}\n", 5, "nobody can be reached at");
    assert_refused(f, GOOD "listen: no-such-host.invalid:7400\n", 4, "no-such-host.invalid");
    assert_refused(f, GOOD "listen: 127.0.0.1:7500\n", 0, "127.0.0.1:7500");
    assert_good(f, GOOD "listen: '[::1]'\napi: localhost\n");
    assert_string_equal(f->config.listen, "[::1]:7400");
    assert_string_equal(f->config.api_listen, "localhost:7500");
}

static void test_peers_that_do_not_fit_together(void **state)
{
    struct fixture *f = *state;
    char text[2048] = GOOD "peers:\n";

    assert_refused(f, GOOD "peers: {}\n", 4, "peers must be a list");
    assert_refused(f, GOOD "peers: []\n", 4, "peers is an empty list");
    assert_refused(f, GOOD "peers:\n  - {name: n1}\n", 5, "this peer has no address");
    assert_refused(f, GOOD "peers:\n  - {address: x:1}\n", 5, "this peer has no name");
    assert_refused(f, GOOD "peers:\n  - {name: n2, address: 127.0.0.1}\n", 5,
                   "peers does not have this node, \"n1\"");
    assert_refused(f, GOOD "peers:\n  - {name: n1, address: x, priority: z}\n", 5, "priority: ");
    assert_refused(f, GOOD "peers:\n  - {name: n1, address: x, witness: z}\n", 5, "witness: ");
    assert_refused(f, GOOD PEERS "  - {name: n2, address: 127.0.0.1:7404}\n", 8,
                   "the name n2 is taken by the peer on line 6");
    assert_refused(f, GOOD PEERS "  - {name: n4, address: 127.0.0.1:7402}\n", 8,
                   "the address 127.0.0.1:7402 is taken");
    assert_refused(f, GOOD PEERS "  - {name: n4, address: 127.0.0.1:7404, api: 127.0.0.1:7502}\n", 8,
                   "the api 127.0.0.1:7502 is taken");
    assert_refused(f, GOOD PEERS "  - {name: n4, address: 127.0.0.1:7502}\n", 8,
                   "address and api of two peers");
    assert_refused(f, GOOD PEERS "  - {name: n4, address: 127.0.0.1:7409, api: 127.0.0.1:7409}\n", 8,
                   "they need a port each");
    assert_refused(f, GOOD "peers:\n  - {name: n1, address: 127.0.0.1, witness: true}\n", 5,
                   "all peers are witnesses");
    for (int i = 1; i <= 10; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "  - {name: n%d, address: 127.0.0.%d}\n", i, i);
    assert_refused(f, text, 14, "at most 9 voters");
    assert_refused(f, GOOD "bootstrap: true\n", 4, "there are no peers");
}

static void test_what_the_list_says_of_this_node_must_be_true(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD "listen: 127.0.0.1:7409\n" PEERS, 6,
                   "peers lists this node, n1, at 127.0.0.1:7401, but its own address is 127.0.0.1:7409");
    assert_refused(f, GOOD "api: 127.0.0.1:7509\n" PEERS, 6, "peers lists the API of this node");
    assert_refused(f, GOOD "priority: 3\n" PEERS, 4, "priority: it is 3, but 0 in peers, line 6");
    assert_refused(f, GOOD "witness: true\n" PEERS, 4, "witness: it is true, but false in peers, line 6");
    assert_good(f, GOOD "listen: localhost:7401\n" PEERS); /* another name of the same */
    assert_good(f, GOOD "listen: 127.0.0.1:7409\nadvertise: 127.0.0.1:7401\n" PEERS);
}

static bool has_warning(const struct fixture *f, const char *text)
{
    for (size_t i = 0; i < f->warnings.count; i++)
        if (strstr(f->warnings.texts[i], text))
            return true;
    return false;
}

static void test_beyond_loopback_nobody_speaks_in_the_clear(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD "listen: 192.0.2.1:7400\n", 4, "nodes need TLS");
    assert_refused(f, GOOD "api: 192.0.2.1:7500\n", 4, "the API needs TLS");
    assert_refused(f, GOOD "listen: 0.0.0.0\nadvertise: 192.0.2.1\n", 4, "nodes need TLS");
    write_file(f, "token", "a-token-of-some-length\n", 0600);
    assert_good(f, GOOD "api: 192.0.2.1:7500\ntoken: token\n");
    assert_int_equal(f->warnings.count, 2);
    assert_true(has_warning(f, "is not encrypted"));
    assert_true(has_warning(f, "neither tls nor a secret: every user of this machine can act as a node"));
}

static void test_clients_are_served_where_that_is_safe(void **state)
{
    struct fixture *f = *state;
    char line[256];

    assert_good(f, GOOD);
    assert_string_equal(f->config.clients_listen, "");
    assert_string_equal(f->config.socket, "");
    assert_good(f, GOOD "clients: localhost\nsocket: s.sock\n");
    assert_string_equal(f->config.clients_listen, "localhost:7600");
    assert_string_equal(f->config.clients_advertise, "localhost:7600");
    assert_non_null(strstr(f->config.socket, "s.sock"));
    assert_good(f, GOOD "clients: localhost\nclients_advertise: 10.0.0.1:7777\n");
    assert_string_equal(f->config.clients_advertise, "10.0.0.1:7777");
    assert_refused(f, GOOD "clients: 192.0.2.1:7600\n", 4, "clients need TLS");
    assert_refused(f, GOOD "clients: 127.0.0.1:7500\n", 4, "for something else");
    (void)snprintf(line, sizeof line, GOOD "socket: /%0120d\n", 0);
    assert_refused(f, line, 4, "a socket has room for 107");
}

static void test_files_must_be_there_and_be_what_they_should(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD "secret: nowhere\n", 4, "No such file");
    assert_refused(f, GOOD "token: nowhere\n", 4, "No such file");
    assert_refused(f, GOOD "token: .\n", 4, "is a directory");
    write_file(f, "token", "short\n", 0600);
    assert_refused(f, GOOD "token: token\n", 4, "the token has 5 characters; it needs 16 to 255");
    write_file(f, "token", "a token with spaces in it\n", 0600);
    assert_refused(f, GOOD "token: token\n", 4, "character 2 of the token is not allowed in an HTTP header");
    write_file(f, "secret", "too short", 0600);
    assert_refused(f, GOOD "secret: secret\n", 4, "secret: ");
    assert_refused(f, GOOD "tls: {ca: nowhere, cert: b, key: c}\n", 4, "ca: cannot read");
    assert_refused(f, GOOD "tls: {ca: gaveld.yaml}\n", 0, "tls needs ca, cert and key");
    assert_refused(f, GOOD "tls: {ca: gaveld.yaml, cert: gaveld.yaml, key: gaveld.yaml}\n", 4, "cert: ");
    assert_refused(f, GOOD "tls: {api: true}\n", 4, "there are no certificates");
    assert_refused(f, "cluster: a\nnode: b\ndata: gaveld.yaml\n", 3, "is a file; the data need a directory");
    write_file(f, "secret", "0123456789abcdef0123456789abcdef0123", 0644);
    assert_good(f, GOOD "secret: secret\n");
    assert_int_equal(f->warnings.count, 1);
    assert_non_null(strstr(f->warnings.texts[0], "chmod 600"));
}

static void test_times_must_add_up_and_what_would_do_is_said(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD "timing: {lease_ms: 100}\n", 4, "2 * heartbeat_interval_ms 50");
    assert_int_equal(f->error.status, GAVEL_ERR_BUDGET);
    assert_refused(f, GOOD "timing: {lease_ms: 200}\n", 4,
                   "lease_ms (200 ms) must be at most election_timeout_min_ms (150 ms)");
    assert_non_null(
        strstr(f->error.message, "election_timeout_min_ms: 250, election_timeout_max_ms: 500} would do"));
    assert_refused(f, GOOD "timing: {election_timeout_max_ms: 150}\n", 0,
                   "election_timeout_min_ms (150 ms) must be less than election_timeout_max_ms");
    assert_refused(f, GOOD "timing: {transfer_timeout_ms: 5}\n", 0,
                   "transfer_timeout_ms (5 ms) must be longer");
    assert_refused(f, GOOD "leader_commands:\n  children: [{command: 'true'}]\n", 0,
                   "10 ms and leader_commands.stop_grace 510");
    assert_non_null(strstr(
        f->error.message,
        "timing: {lease_ms: 650, election_timeout_min_ms: 650, election_timeout_max_ms: 1300} would do"));
    assert_good(f,
                GOOD "timing: {lease_ms: 650, election_timeout_min_ms: 650, election_timeout_max_ms: 1300}\n"
                     "leader_commands:\n  children: [{command: 'true'}]\n");
}

#define SLOW "timing: {lease_ms: 950, election_timeout_min_ms: 1000, election_timeout_max_ms: 2000}\n"

static void test_children_are_looked_up_before_anything_starts(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, GOOD SLOW "leader_commands: {}\n", 5, "leader_commands has no children");
    assert_refused(f, GOOD SLOW "leader_commands: {children: 5}\n", 5, "children must be a list");
    assert_refused(f, GOOD SLOW "leader_commands:\n  children: []\n", 6, "children is an empty list");
    assert_refused(f, GOOD SLOW "leader_commands:\n  children:\n    - {name: x}\n", 7,
                   "this child has no command");
    assert_refused(f, GOOD SLOW "leader_commands:\n  children:\n    - {command: [no-such-program]}\n", 7,
                   "no-such-program");
    assert_refused(f,
                   GOOD SLOW "leader_commands:\n  children:\n    - {command: 'true', user: no-such-user}\n",
                   7, "no-such-user");
    assert_refused(f,
                   GOOD SLOW "leader_commands:\n  children:\n    - {command: 'true', directory: /nowhere}\n",
                   7, "/nowhere");
    assert_refused(f,
                   GOOD SLOW
                   "leader_commands:\n  children:\n    - {command: 'true', environment: {GAVEL_EPOCH: 1}}\n",
                   7, "GAVEL_EPOCH is set by gavel itself");
    assert_refused(f, GOOD SLOW "leader_commands:\n  stop_grace: 10ms\n  children: [{command: 'true'}]\n", 6,
                   "too short for a tree of processes");
    assert_refused(f, GOOD SLOW "leader_commands:\n  stop_grace: 500\n  children: [{command: 'true'}]\n", 6,
                   "did you mean 500ms?");
    assert_refused(
        f, GOOD SLOW "leader_commands:\n  stop_grace: 100ms\n  children: [{command: 'true', grace: 90ms}]\n",
        6, "their graces are 90 ms together");
}

static void test_former_name_of_leader_commands_is_understood_and_said(void **state)
{
    struct fixture *f = *state;
    size_t warnings;

    assert_good(f, GOOD SLOW "leader_commands:\n  children: [{command: 'true'}]\n");
    warnings = f->warnings.count;
    config_done(&f->config);
    assert_good(f, GOOD SLOW "coordinator:\n  stop_grace: 200ms\n  children: [{command: 'true'}]\n");
    assert_true(f->config.has_leader_commands);
    assert_int_equal(f->config.children.count, 1);
    assert_int_equal(f->config.stop_grace_ms, 200);
    assert_int_equal(f->warnings.count, warnings + 1);
    assert_non_null(strstr(f->warnings.texts[0], "coordinator is called leader_commands now; rename it"));
    config_done(&f->config);
    assert_refused(f,
                   GOOD SLOW "coordinator: {children: [{command: 'true'}]}\n"
                             "leader_commands: {children: [{command: 'true'}]}\n",
                   6, "leader_commands is given already");
    assert_refused(f, GOOD "coordinater: {}\n", 4,
                   "there is no key \"coordinater\"; gaveld.yaml(5) lists them");
}

static void test_a_node_that_joins_needs_no_list(void **state)
{
    struct fixture *f = *state;

    f->input.joins = true;
    assert_good(f, GOOD "priority: 4\n");
    assert_int_equal(f->config.start, START_JOIN);
    assert_int_equal(f->config.peers[0].priority, 4);
    assert_good(f, GOOD "peers: [{name: n2, address: 127.0.0.1:7402}]\n"); /* it is not in there yet */
    assert_int_equal(f->config.peer_count, 2);
    assert_good(f, GOOD "bootstrap: true\n" PEERS); /* which the file may say for good */
    assert_int_equal(f->config.start, START_JOIN);
    set_flag(f, "bootstrap", "true");
    assert_refused(f, GOOD PEERS, 0, "--bootstrap: --join is given, too");
    f->input.joins = false;
    f->input.flag_count = 0;
    f->input.forces = true;
    assert_good(f, GOOD PEERS);
    assert_int_equal(f->config.start, START_FORCE);
    assert_good(f, GOOD "peers:\n  - {name: n2, address: 127.0.0.1:7402}\n"); /* it was added later */
}

static void test_an_even_number_of_voters_is_worth_a_word(void **state)
{
    struct fixture *f = *state;

    assert_good(f, GOOD PEERS "  - {name: n4, address: 127.0.0.1:7404}\n");
    assert_true(has_warning(f, "an odd number is better"));
    assert_good(f, GOOD PEERS);
    assert_false(has_warning(f, "an odd number is better"));
}

static void test_a_peer_that_cannot_be_found_now_stops_nobody(void **state)
{
    struct fixture *f = *state;

    assert_good(f, GOOD PEERS "  - {name: n4, address: no-such-host.invalid:7404}\n"
                              "  - {name: n5, address: 127.0.0.1:7405}\n");
    assert_true(has_warning(f, "the peer n4 cannot be found now"));
}

/* Garbage gives an error or a configuration, never anything worse. */
static void test_damaged_files_are_survived(void **state)
{
    static const char text[] =
        GOOD SLOW PEERS "leader_commands:\n  children:\n    - {command: 'true', grace: 1ms}\n";
    struct fixture *f = *state;
    char damaged[sizeof text];
    unsigned seed = 1;
    int taken = 0;

    for (int i = 0; i < 1000; i++) {
        memcpy(damaged, text, sizeof text);
        for (int j = 0; j < 3; j++) {
            seed = seed * 1103515245u + 12345u;
            damaged[(seed >> 8) % (sizeof text - 1)] = "\n :-[]{}'\"#&*!|>%@`\1\377a0"[(seed >> 24) % 23];
        }
        taken += load(f, damaged) == GAVEL_OK;
    }
    assert_true(taken < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_every_key_is_read),
        TEST(test_defaults_are_those_of_the_manual),
        TEST(test_addresses_come_from_the_list_of_peers),
        TEST(test_flags_beat_variables_and_those_the_file),
        TEST(test_former_name_of_leader_commands_is_understood_and_said),
        TEST(test_former_name_of_the_log_is_understood),
        TEST(test_mistakes_of_variables_and_flags_are_named),
        TEST(test_no_file_is_needed),
        TEST(test_shapes_that_are_no_configuration),
        TEST(test_unknown_and_repeated_keys_have_their_line),
        TEST(test_values_that_are_none),
        TEST(test_addresses_that_are_none),
        TEST(test_peers_that_do_not_fit_together),
        TEST(test_what_the_list_says_of_this_node_must_be_true),
        TEST(test_beyond_loopback_nobody_speaks_in_the_clear),
        TEST(test_clients_are_served_where_that_is_safe),
        TEST(test_files_must_be_there_and_be_what_they_should),
        TEST(test_times_must_add_up_and_what_would_do_is_said),
        TEST(test_children_are_looked_up_before_anything_starts),
        TEST(test_a_node_that_joins_needs_no_list),
        TEST(test_an_even_number_of_voters_is_worth_a_word),
        TEST(test_a_peer_that_cannot_be_found_now_stops_nobody),
        TEST(test_damaged_files_are_survived),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
