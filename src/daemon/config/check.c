/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the parts of a configuration fit together. Values that follow from others
 * are filled in first, then everything is checked as a whole. files.c checks files,
 * timing.c times.
 */
#include "base/error.h"
#include "daemon/config/draft.h"
#include "net/seal.h"
#include "net/transport.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

/* Whether it is there; those of a node that joins need not name it. */
static bool find_self(struct config_draft *draft)
{
    struct daemon_config *config = &draft->config;

    for (size_t i = 0; i < config->peer_count; i++)
        if (strcmp(config->peers[i].name, config->node) == 0) {
            draft->self = i;
            return true;
        }
    return false;
}

/* Without a file the first thing to say is how to name one. */
static enum gavel_status without_file(struct config_draft *draft)
{
    return error_set(
        draft->error, GAVEL_ERR_INVALID,
        "there is no configuration file; name one with -c FILE or GAVELD_CONFIG, or give at least --cluster NAME, --node NAME and --data DIRECTORY");
}

static enum gavel_status check_names(struct config_draft *draft)
{
    if (!draft->config.file[0] &&
        (!config_is_set(draft, CONFIG_OF_CLUSTER) || !config_is_set(draft, CONFIG_OF_NODE) ||
         !config_is_set(draft, CONFIG_OF_DATA)))
        return without_file(draft);
    if (!config_is_set(draft, CONFIG_OF_CLUSTER))
        return error_set(
            draft->error, GAVEL_ERR_INVALID,
            "the cluster has no name; write `cluster: NAME` into the file, or give --cluster NAME");
    if (!config_is_set(draft, CONFIG_OF_NODE))
        return error_set(draft->error, GAVEL_ERR_INVALID,
                         "this node has no name; write `node: NAME` into the file, or give --node NAME");
    if (!config_is_set(draft, CONFIG_OF_DATA))
        return error_set(
            draft->error, GAVEL_ERR_INVALID,
            "there is no directory for the data; write `data: DIRECTORY` into the file, or give --data DIRECTORY");
    return GAVEL_OK;
}

/* The first of those that says something. */
static void choose(char ret_address[PEER_ADDRESS_MAX + 1], const char *first, const char *second,
                   const char *third)
{
    const char *chosen = *first ? first : *second ? second : third;

    if (chosen != ret_address)
        (void)snprintf(ret_address, PEER_ADDRESS_MAX + 1, "%s", chosen); /* of the same length */
}

/* Where we are, from what the file says of us in one place or the other. */
static enum gavel_status fill_addresses(struct config_draft *draft, const struct daemon_peer *listed)
{
    struct daemon_config *config = &draft->config;

    choose(config->listen, config->listen, listed ? listed->address : "", "127.0.0.1:" CONFIG_PEER_PORT);
    choose(config->advertise, config->advertise, config_address_is_any(config->listen) ? "" : config->listen,
           listed ? listed->address : "");
    choose(config->api_listen, config->api_listen, listed ? listed->api : "", "127.0.0.1:" CONFIG_API_PORT);
    choose(config->api_advertise, config->api_advertise,
           config_address_is_any(config->api_listen) ? "" : config->api_listen, listed ? listed->api : "");
    if (!config->advertise[0])
        return config_wrong(
            draft, CONFIG_OF_LISTEN,
            "nobody can be reached at %s; set `advertise: HOST:PORT` to where others find this node",
            config->listen);
    if (!config->api_advertise[0])
        return config_wrong(
            draft, CONFIG_OF_API,
            "nobody can be reached at %s; set `api_advertise: HOST:PORT` to where others find the API",
            config->api_listen);
    choose(config->clients_advertise, config->clients_advertise,
           config_address_is_any(config->clients_listen) ? "" : config->clients_listen, "");
    if (config_address_is_any(config->advertise))
        return config_wrong(draft, CONFIG_OF_ADVERTISE, "nobody can be reached at %s", config->advertise);
    if (config_address_is_any(config->api_advertise))
        return config_wrong(draft, CONFIG_OF_API_ADVERTISE, "nobody can be reached at %s",
                            config->api_advertise);
    return GAVEL_OK;
}

/* A node that is in no list, as one that joins or has joined, is alone in it. */
static void add_self(struct config_draft *draft)
{
    struct daemon_config *config = &draft->config;
    struct daemon_peer *self = &config->peers[config->peer_count];

    *self = (struct daemon_peer){.priority = draft->priority, .is_witness = draft->is_witness};
    (void)snprintf(self->name, sizeof self->name, "%s", config->node); /* all of the same length */
    (void)snprintf(self->address, sizeof self->address, "%s", config->advertise);
    draft->self = config->peer_count++;
}

enum gavel_status config_fill_in(struct config_draft *draft)
{
    struct daemon_config *config = &draft->config;
    enum gavel_status status = check_names(draft);
    bool is_listed;

    if (status != GAVEL_OK)
        return status;
    is_listed = find_self(draft);
    if (draft->peers_line && !is_listed && config->start != START_JOIN && config->start != START_FORCE)
        return config_wrong_line(
            draft, draft->peers_line,
            "peers does not have this node, \"%s\": add it to the list on every node; or, if it was added with `gavel member add`, give --join, which is harmless later",
            config->node);
    if (config->start == START_BOOTSTRAP && !draft->peers_line)
        return config_wrong(
            draft, CONFIG_OF_BOOTSTRAP,
            "there are no peers, and a new cluster needs them; list them in the file, including this node, or give --join");
    status = fill_addresses(draft, is_listed ? &config->peers[draft->self] : NULL);
    if (status != GAVEL_OK)
        return status;
    if (!is_listed)
        add_self(draft);
    if (!config->peers[draft->self].api[0])
        choose(config->peers[draft->self].api, config->api_advertise, "", "");
    config->has_tls = config_is_set(draft, CONFIG_OF_TLS_CA) || config_is_set(draft, CONFIG_OF_TLS_CERT) ||
                      config_is_set(draft, CONFIG_OF_TLS_KEY);
    if (!config->has_tls && config->has_api_tls && config_is_set(draft, CONFIG_OF_TLS_API))
        return config_wrong(draft, CONFIG_OF_TLS_API,
                            "there are no certificates; give ca, cert and key, too");
    config->has_api_tls = config->has_api_tls && config->has_tls;
    config->cluster_id = seal_id_of_name("cluster", config->cluster);
    config->id = seal_id_of_name("node", config->node);
    for (size_t i = 0; i < config->peer_count; i++)
        config->peers[i].id = seal_id_of_name("node", config->peers[i].name);
    config->raft.stop_margin = ns_from_ms(CONFIG_STOP_MARGIN_MS);
    if (config->has_leader_commands)
        config->raft.stop_margin += ns_from_ms(config->stop_grace_ms);
    else
        config->stop_grace_ms = 0;
    return GAVEL_OK;
}

/* What the list and the rest of the file say of this node must be the same. */
static enum gavel_status check_self(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    const struct daemon_peer *self = &config->peers[draft->self];

    if (!draft->peers_line)
        return GAVEL_OK;
    if (!config_address_is_same(self->address, config->advertise))
        return config_wrong_line(
            draft, draft->peer_lines[draft->self],
            "peers lists this node, %s, at %s, but its own address is %s; write the same in both, or set advertise",
            self->name, self->address, config->advertise);
    if (!config_address_is_same(self->api, config->api_advertise))
        return config_wrong_line(
            draft, draft->peer_lines[draft->self],
            "peers lists the API of this node, %s, at %s, but its own address is %s; write the same in both, or set api_advertise",
            self->name, self->api, config->api_advertise);
    if (config_is_set(draft, CONFIG_OF_PRIORITY) && draft->priority != self->priority)
        return config_wrong(draft, CONFIG_OF_PRIORITY,
                            "it is %u, but %u in peers, line %d; write the same in both, on all nodes",
                            draft->priority, self->priority, draft->peer_lines[draft->self]);
    if (config_is_set(draft, CONFIG_OF_WITNESS) && draft->is_witness != self->is_witness)
        return config_wrong(draft, CONFIG_OF_WITNESS,
                            "it is %s, but %s in peers, line %d; write the same in both, on all nodes",
                            draft->is_witness ? "true" : "false", self->is_witness ? "true" : "false",
                            draft->peer_lines[draft->self]);
    return GAVEL_OK;
}

static enum gavel_status check_pair(struct config_draft *draft, size_t first, size_t second)
{
    const struct daemon_peer *a = &draft->config.peers[first], *b = &draft->config.peers[second];
    int line = draft->peer_lines[second], first_line = draft->peer_lines[first];

    if (strcmp(a->name, b->name) == 0)
        return config_wrong_line(draft, line, "the name %s is taken by the peer on line %d; choose another",
                                 b->name, first_line);
    if (a->id == b->id)
        return config_wrong_line(draft, line,
                                 "the names %s and %s (line %d) give the same id; choose another name",
                                 b->name, a->name, first_line);
    if (strcmp(a->address, b->address) == 0)
        return config_wrong_line(draft, line, "the address %s is taken by the peer on line %d", b->address,
                                 first_line);
    if (*a->api && strcmp(a->api, b->api) == 0)
        return config_wrong_line(draft, line, "the api %s is taken by the peer on line %d", b->api,
                                 first_line);
    if (strcmp(a->address, b->api) == 0 || strcmp(a->api, b->address) == 0)
        return config_wrong_line(draft, line, "address and api of two peers are the same; see line %d",
                                 first_line);
    return GAVEL_OK;
}

static enum gavel_status check_peers(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    enum gavel_status status = GAVEL_OK;
    size_t witnesses = 0;

    for (size_t i = 0; i < config->peer_count; i++) {
        witnesses += config->peers[i].is_witness;
        for (size_t j = 0; j < i && status == GAVEL_OK; j++)
            status = check_pair(draft, j, i);
        if (status == GAVEL_OK && draft->peers_line &&
            strcmp(config->peers[i].address, config->peers[i].api) == 0)
            status = config_wrong_line(draft, draft->peer_lines[i],
                                       "address and api of %s are the same; they need a port each",
                                       config->peers[i].name);
        if (status != GAVEL_OK)
            return status;
    }
    if (draft->peers_line && witnesses == config->peer_count)
        return config_wrong_line(
            draft, draft->peers_line,
            "all peers are witnesses, which never lead; at least one must not be a witness");
    if (draft->peers_line && config->peer_count % 2 == 0 && config->start != START_JOIN)
        config_warn(draft, "%zu voters survive no more failures than %zu do; an odd number is better",
                    config->peer_count, config->peer_count - 1);
    return GAVEL_OK;
}

static enum gavel_status check_reach(struct config_draft *draft, enum config_id id, const char *address,
                                     bool *ret_is_loopback)
{
    struct sockaddr_storage resolved;
    struct gavel_error cause = {0};
    socklen_t length;

    if (address_resolve(address, &resolved, &length, &cause) != GAVEL_OK)
        return config_wrong(draft, id, "%s", cause.message);
    *ret_is_loopback = address_is_loopback(&resolved);
    return GAVEL_OK;
}

/* Others may come back later than we do, and their names with them. */
static void warn_of_unknown_peers(struct config_draft *draft)
{
    for (size_t i = 0; i < draft->config.peer_count; i++) {
        struct sockaddr_storage resolved;
        struct gavel_error cause = {0};
        socklen_t length;

        if (i != draft->self &&
            address_resolve(draft->config.peers[i].address, &resolved, &length, &cause) != GAVEL_OK)
            config_warn(draft, "the peer %s cannot be found now: %s", draft->config.peers[i].name,
                        cause.message);
    }
}

static enum gavel_status check_clients(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    size_t room = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    bool is_loopback = false;
    enum gavel_status status;

    if (strlen(config->socket) > room)
        return config_wrong(draft, CONFIG_OF_SOCKET, "the path has %zu bytes, and a socket has room for %zu",
                            strlen(config->socket), room);
    if (!config->clients_listen[0])
        return GAVEL_OK;
    status = check_reach(draft, CONFIG_OF_CLIENTS, config->clients_listen, &is_loopback);
    if (status != GAVEL_OK)
        return status;
    if (!is_loopback && !config->has_tls)
        return config_wrong(
            draft, CONFIG_OF_CLIENTS,
            "%s is not on loopback, so clients need TLS; give tls: {ca, cert, key}, which `gavel cert` creates",
            config->clients_listen);
    if (strcmp(config->clients_listen, config->listen) == 0 ||
        strcmp(config->clients_listen, config->api_listen) == 0)
        return config_wrong(draft, CONFIG_OF_CLIENTS,
                            "the node listens on %s for something else; choose another port",
                            config->clients_listen);
    return GAVEL_OK;
}

static enum gavel_status check_security(struct config_draft *draft)
{
    const struct daemon_config *config = &draft->config;
    bool is_loopback = false, is_api_loopback = false;
    enum gavel_status status = check_reach(draft, CONFIG_OF_LISTEN, config->listen, &is_loopback);

    if (status == GAVEL_OK)
        status = check_reach(draft, CONFIG_OF_API, config->api_listen, &is_api_loopback);
    if (status != GAVEL_OK)
        return status;
    if (!is_loopback && !config->has_tls)
        return config_wrong(
            draft, CONFIG_OF_LISTEN,
            "%s is not on loopback, so the nodes need TLS; give tls: {ca, cert, key}, which `gavel cert` creates",
            config->listen);
    if (!is_loopback && !config->secret[0])
        return config_wrong(
            draft, CONFIG_OF_LISTEN,
            "%s is not on loopback, so the nodes need a secret that seals obituaries; give secret: FILE, the same on all nodes (`gavel cert init` makes one)",
            config->listen);
    if (!config->has_tls && !config->secret[0])
        config_warn(
            draft,
            "there is neither tls nor a secret: every user of this machine can act as a node of cluster %s; `gavel cert secret` creates one, the same for all nodes",
            config->cluster);
    if (!is_api_loopback && !config->has_api_tls && !config->token[0])
        return config_wrong(
            draft, CONFIG_OF_API,
            "%s is not on loopback, so the API needs TLS (tls: {…, api: true}) or a token (token: FILE)",
            config->api_listen);
    if (!is_api_loopback && !config->has_api_tls)
        config_warn(draft, "the API at %s is not encrypted, so its token can be read on the way",
                    config->api_listen);
    if (strcmp(config->listen, config->api_listen) == 0)
        return config_wrong(draft, CONFIG_OF_API, "the node listens on %s for its peers; choose another port",
                            config->api_listen);
    return check_clients(draft);
}

static int by_id(const void *left, const void *right)
{
    const struct daemon_peer *a = left, *b = right;

    return (a->id > b->id) - (a->id < b->id);
}

enum gavel_status config_check(struct config_draft *draft)
{
    enum gavel_status status = check_self(draft);

    if (status == GAVEL_OK)
        status = check_peers(draft);
    if (status == GAVEL_OK)
        status = config_check_timing(draft);
    if (status == GAVEL_OK)
        status = check_security(draft);
    if (status == GAVEL_OK)
        status = config_check_files(draft);
    if (status == GAVEL_OK)
        status = config_check_children(draft);
    if (status != GAVEL_OK)
        return status;
    warn_of_unknown_peers(draft);
    qsort(draft->config.peers, draft->config.peer_count, sizeof draft->config.peers[0], by_id);
    return GAVEL_OK;
}
