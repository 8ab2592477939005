/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TLS 1.3 with certificates on both sides: who a node is, is what its
 * certificate says. Subject O is the cluster, CN the node.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <gavel/status.h>

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct tls_files {
    const char *ca;   /* who may sign certificates of this cluster */
    const char *cert; /* ours, with those between it and the CA */
    const char *key;
};

/* One for dialling and accepting among nodes, one for the HTTP API (which asks clients for no certificate).
 */
enum tls_use { TLS_PEER, TLS_API };

/*
 * Reads the files into a context. ERR_IO, ERR_INVALID with the file, the reason and the next step: not
 * readable, key and certificate do not match, not signed by the CA, expired.
 */
GAVEL_CHECKED enum gavel_status tls_context_make(const struct tls_files *files, enum tls_use use,
                                                 SSL_CTX **ret_context, struct gavel_error *error);

#define TLS_NAME_MAX 64

/* Who is at the other end, once the handshake is done. False if there is no certificate. */
struct tls_identity {
    char cluster[TLS_NAME_MAX];
    char node[TLS_NAME_MAX];
    int64_t expires_wall_s; /* seconds since 1970 */
};
bool tls_identity_of(SSL *ssl, struct tls_identity *ret_identity);
/* The same of a file; for --check-config and warnings before the day. */
GAVEL_CHECKED enum gavel_status tls_identity_of_file(const char *cert, struct tls_identity *ret_identity,
                                                     struct gavel_error *error);

/* What OpenSSL says of the last failure on this thread, or of the verification of this connection, in words;
 * clears its queue. */
void tls_reason(SSL *ssl, char *buffer, size_t size);
/* The same of errors that somebody else has taken from the queue already, as libevent does; the newest last.
 */
void tls_reason_of(SSL *ssl, const unsigned long *errors, size_t count, char *buffer, size_t size);

/* Whether these errors mean that the other side does not speak TLS at all. */
bool tls_is_plain(const unsigned long *errors, size_t count);

#endif
