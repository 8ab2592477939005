/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TLS 1.3 with certificates on both sides. A certificate gives the identity:
 * subject O is the cluster, CN the name, and a URI among the alternative names
 * says whether it belongs to a node or a client:
 *
 *     urn:gavel:CLUSTER:node:NAME        urn:gavel:CLUSTER:client:NAME
 *
 * Only nodes may speak on the port of the peers, and only nodes may answer
 * clients. Certificates from before 0.7.0 have no such URI.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <gavel/status.h>

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct tls_files {
    const char *ca;   /* the CA that signs certificates of this cluster */
    const char *cert; /* ours, with any intermediate ones */
    const char *key;
    const char *revoked; /* the list of revoked certificates; NULL or "": none */
};

/* One for dialling and accepting among nodes, one for the HTTP API (which asks clients for no
 * certificate). */
enum tls_use { TLS_PEER, TLS_API };

/*
 * Reads the files into a context. ERR_IO, ERR_INVALID with the file, the reason and the next step: not
 * readable, key and certificate do not match, not signed by the CA, expired.
 */
GAVEL_CHECKED enum gavel_status tls_context_make(const struct tls_files *files, enum tls_use use,
                                                 SSL_CTX **ret_context, struct gavel_error *error);

#define TLS_NAME_MAX 64

enum tls_kind {
    TLS_KIND_UNKNOWN, /* it has no URI of ours, or one that does not fit its subject, or several */
    TLS_KIND_NODE,
    TLS_KIND_CLIENT,
};
#define TLS_URI_MAX 256
/* The URI that a certificate of this kind must have. Returns buffer. */
const char *tls_uri_write(enum tls_kind kind, const char *cluster, const char *name,
                          char buffer[static TLS_URI_MAX]);

/* Who is at the other end, once the handshake is done. False if there is no certificate. */
struct tls_identity {
    char cluster[TLS_NAME_MAX];
    char node[TLS_NAME_MAX]; /* or the client's name */
    enum tls_kind kind;
    bool is_revoked;        /* by the list of its context; never set for a file */
    int64_t expires_wall_s; /* seconds since 1970 */
};
bool tls_identity_of(SSL *ssl, struct tls_identity *ret_identity);
/* The same for a given certificate; is_revoked is not set. */
bool tls_identity_of_cert(const X509 *cert, struct tls_identity *ret_identity);
/* The same for a file; for --check-config and for warnings before it expires. */
GAVEL_CHECKED enum gavel_status tls_identity_of_file(const char *cert, struct tls_identity *ret_identity,
                                                     struct gavel_error *error);

/* Whether the list of that context has the certificate of the other side of this connection; either may be
 * NULL. */
bool tls_is_revoked(const SSL_CTX *context, const SSL *ssl);

/* Writes why the last OpenSSL call on this thread failed, or the verification of this connection, in words;
 * clears the error queue. */
void tls_reason(SSL *ssl, char *buffer, size_t size);
/* The same for errors that were already taken from the queue, as libevent does; the newest last. */
void tls_reason_of(SSL *ssl, const unsigned long *errors, size_t count, char *buffer, size_t size);

/* Whether these errors mean that the other side does not speak TLS at all. */
bool tls_is_plain(const unsigned long *errors, size_t count);

#endif
