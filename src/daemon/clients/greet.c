/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which clients are accepted. Over TLS, the handshake has checked that the CA signed
 * the certificate; it must also be of this cluster, whoever holds it. Then both
 * sides need a common version of the protocol. A client that is refused is told why,
 * in words.
 */
#include "daemon/clients/internal.h"

#include <stdio.h>
#include <string.h>

#define CLIENTS_URL_MAX (sizeof "https://" + PEER_ADDRESS_MAX)

void clients_greet_tls(struct clients_connection *connection)
{
    const char *cluster = connection->clients->shared->config->cluster;
    struct tls_identity identity;
    char text[256];

    if (!tls_identity_of(connection->ssl, &identity)) {
        clients_connection_cut(
            connection,
            "the certificate does not say whose it is: it needs O = cluster and CN = name, as `gavel cert issue` writes them");
    } else if (strcmp(identity.cluster, cluster) != 0) {
        (void)snprintf(text, sizeof text, "the certificate is for cluster \"%s\", and this is \"%s\"",
                       identity.cluster, cluster);
        clients_connection_cut(connection, text);
    } else if (identity.is_revoked ||
               tls_is_revoked(connection->clients->certificates.context, connection->ssl)) {
        /* by the list of when the handshake began, or of now */
        clients_connection_cut(connection, CLIENTS_REVOKED);
    }
}

/* Bytes where a length should be: who might have sent them? */
const char *clients_explain(const uint8_t bytes[CLIENT_LENGTH_BYTES])
{
    if ((bytes[0] == 0x16 || bytes[0] == 0x15) && bytes[1] == 3)
        return "one side speaks TLS and the other does not; on this socket clients speak without";
    if (memcmp(bytes, "GET ", 4) == 0 || memcmp(bytes, "POST", 4) == 0 || memcmp(bytes, "HTTP", 4) == 0)
        return "this is HTTP; the port of the API is another";
    return client_frame_length(bytes) == 0 ? "a frame of no length"
                                           : "a frame that is too long, or bytes that are none";
}

static uint64_t revision_now(struct clients *clients)
{
    uint64_t revision;

    table_box_lock(&clients->shared->table);
    revision = clients->shared->table.table.revision;
    table_box_unlock(&clients->shared->table);
    return revision;
}

/* Where this node's clients find it; nobody else's address is known here. */
static void find_address(const struct clients *clients, char *buffer, size_t size)
{
    const struct daemon_config *config = clients->shared->config;
    const char *listen = config->clients_listen;
    const char *colon = strrchr(listen, ':');

    if (config->clients_advertise[0])
        (void)snprintf(buffer, size, "%s", config->clients_advertise);
    else if (colon) /* the port may have been 0: any */
        (void)snprintf(buffer, size, "%.*s:%u", (int)(colon - listen), listen, clients->port);
    else
        buffer[0] = '\0';
}

/* Where the API of each node is; one that is not yet known as a member tells its own. */
static size_t find_apis(const struct clients *clients, char ret_urls[RAFT_MEMBERS_MAX][CLIENTS_URL_MAX])
{
    const struct daemon_config *config = clients->shared->config;
    char apis[RAFT_MEMBERS_MAX][PEER_ADDRESS_MAX + 1];
    size_t count = view_apis_read(&clients->shared->view, apis);

    if (count == 0 && config->api_advertise[0]) {
        (void)snprintf(apis[0], sizeof apis[0], "%s", config->api_advertise);
        count = 1;
    }
    for (size_t i = 0; i < count; i++)
        (void)snprintf(ret_urls[i], CLIENTS_URL_MAX, "%s://%s", config->has_api_tls ? "https" : "http",
                       apis[i]);
    return count;
}

/* Whoever runs there need not tell us of processes that die; process_watch.h. False: we see none. */
static bool find_sight(struct clients *clients, Gavel__Process *ret_sees)
{
    struct process_id *self = &clients->self;

    gavel__process__init(ret_sees);
    if (self->pid == 0 || !process_has_true_boot_id(self))
        return false;
    ret_sees->boot_id = self->boot_id;
    ret_sees->pid_ns = self->pid_ns;
    return true;
}

static void welcome(struct clients_connection *connection, uint32_t version)
{
    struct clients *clients = connection->clients;
    const struct daemon_config *config = clients->shared->config;
    Gavel__ClientWelcome welcome;
    Gavel__ClientFrame frame;
    char address[PEER_ADDRESS_MAX + 8];
    char *addresses[] = {address};
    char urls[RAFT_MEMBERS_MAX][CLIENTS_URL_MAX];
    char *api_urls[RAFT_MEMBERS_MAX];
    Gavel__Process sees;

    gavel__client_welcome__init(&welcome);
    gavel__client_frame__init(&frame);
    find_address(clients, address, sizeof address);
    welcome.version = version;
    welcome.cluster = clients_text(config->cluster);
    welcome.node = clients_text(config->node);
    welcome.program = clients_text("gaveld " GAVEL_VERSION);
    welcome.revision = revision_now(clients);
    welcome.n_addresses = address[0] ? 1 : 0;
    welcome.addresses = addresses;
    welcome.n_api_urls = find_apis(clients, urls);
    for (size_t i = 0; i < welcome.n_api_urls; i++)
        api_urls[i] = urls[i];
    welcome.api_urls = api_urls;
    welcome.drift_ppm = (uint32_t)config->raft.drift_ppm;
    welcome.sees = find_sight(clients, &sees) ? &sees : NULL;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_WELCOME;
    frame.welcome = &welcome;
    connection->phase = CLIENTS_UP;
    clients_write(connection, &frame);
}

void clients_greet(struct clients_connection *connection, const Gavel__ClientFrame *frame)
{
    const Gavel__ClientHello *hello = frame->hello;
    char text[256];

    if (frame->what_case != GAVEL__CLIENT_FRAME__WHAT_HELLO) {
        clients_connection_cut(connection, "it does not begin with a hello");
        return;
    }
    if (hello->version_max < hello->version_min || hello->version_max < CLIENT_VERSION_MIN ||
        hello->version_min > CLIENT_VERSION_MAX) {
        (void)snprintf(
            text, sizeof text,
            "this node speaks versions %d to %d of the client protocol, the client versions %u to %u; upgrade the %s",
            CLIENT_VERSION_MIN, CLIENT_VERSION_MAX, hello->version_min, hello->version_max,
            hello->version_min > CLIENT_VERSION_MAX ? "node" : "client");
        clients_connection_cut(connection, text);
        return;
    }
    if (atomic_load(&connection->clients->shared->is_blind)) {
        clients_connection_cut(connection, CLIENTS_BLIND);
        return;
    }
    clients_principal_find(connection, hello);
    welcome(connection, hello->version_max < CLIENT_VERSION_MAX ? hello->version_max : CLIENT_VERSION_MAX);
}
