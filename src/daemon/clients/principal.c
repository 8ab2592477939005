/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who owns a connection. Only the client that opened a session may use it: its node
 * writes the number of the owner into every request, the table keeps that of the
 * opening, and the leader compares (frontend_may_use()).
 *
 *     the client sent a secret in its hello      its digest; the same over any connection to any node
 *     else, over TLS                             kind and name of the certificate
 *     else, on the socket of this machine        the user
 *     else                                       0: nobody; its sessions are open to anybody with their ids
 *
 * A session's id is shown only to a connection that has named it first.
 */
#include "daemon/clients/internal.h"

#include "net/seal.h"
#include "net/tls.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SECRET_MIN 16
#define SECRET_MAX 64

static uint64_t of_secret(const ProtobufCBinaryData *secret)
{
    char text[2 * SECRET_MAX + 1] = "";

    for (size_t i = 0; i < secret->len; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", secret->data[i]);
    return seal_id_of_name("principal by secret", text);
}

static uint64_t of_certificate(SSL *ssl)
{
    struct tls_identity identity;
    char text[2 * TLS_NAME_MAX];

    if (!tls_identity_of(ssl, &identity))
        return 0;
    (void)snprintf(text, sizeof text, "%d/%s", (int)identity.kind, identity.node); /* a name is shorter */
    return seal_id_of_name("principal by certificate", text);
}

static uint64_t of_user(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    char text[32];

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return 0;
    (void)snprintf(text, sizeof text, "%u", (unsigned)peer.uid);
    return seal_id_of_name("principal by user", text);
}

void clients_principal_find(struct clients_connection *connection, const Gavel__ClientHello *hello)
{
    if (hello->secret.len >= SECRET_MIN && hello->secret.len <= SECRET_MAX)
        connection->principal = of_secret(&hello->secret);
    else if (connection->ssl)
        connection->principal = of_certificate(connection->ssl);
    else if (connection->is_unix)
        connection->principal = of_user(bufferevent_getfd(connection->stream));
}

bool clients_principal_knows(const struct clients_connection *connection, uint64_t session)
{
    for (size_t i = 0; i < CLIENTS_SESSIONS_KNOWN; i++)
        if (connection->sessions[i] == session)
            return true;
    return false;
}

static void know(struct clients_connection *connection, uint64_t session)
{
    if (session != 0 && !clients_principal_knows(connection, session))
        connection->sessions[connection->session_count++ % CLIENTS_SESSIONS_KNOWN] = session;
}

static void stamp_request(struct clients_connection *connection, Gavel__Request *request)
{
    request->has_principal = true;
    request->principal = connection->principal;
    know(connection, request->session);
    for (size_t i = 0; i < request->n_ops; i++) {
        if (request->ops[i]->what_case != GAVEL__OP__WHAT_OPEN_SESSION)
            continue;
        request->ops[i]->open_session->principal = connection->principal;
        know(connection, request->ops[i]->open_session->session);
    }
}

void clients_principal_stamp(struct clients_connection *connection, Gavel__ClientFrame *frame)
{
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REQUEST) {
        stamp_request(connection, frame->request);
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE) {
        frame->keep_alive->has_principal = true;
        frame->keep_alive->principal = connection->principal;
        for (size_t i = 0; i < frame->keep_alive->n_sessions && i < CLIENTS_SESSIONS_KNOWN; i++)
            know(connection, frame->keep_alive->sessions[i]);
    } else if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_WATCH) {
        know(connection, frame->watch->session);
    }
}

bool clients_principal_is_foreign(struct clients_connection *connection, uint64_t id)
{
    struct table_box *box = &connection->clients->shared->table;
    const struct table_session *session;
    bool is_foreign;

    table_box_lock(box);
    session = table_session_find(&box->table, id);
    is_foreign = session && session->principal != 0 && session->principal != connection->principal;
    table_box_unlock(box);
    return is_foreign;
}
