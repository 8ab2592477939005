/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Certificates for a cluster, for people who have no CA of their own: keys on
 * the curve P-256, one CA per cluster, one certificate per node and per client.
 *
 *     subject   O = the cluster, CN = the name              who it is
 *     SAN URI   urn:gavel:CLUSTER:node:NAME or …:client:…   what it is (net/tls.h)
 *     SAN       host names and addresses of a node          where clients reach it
 *     EKU       server and client for a node, client only for a client
 */
#ifndef CLI_CERT_CERT_MAKE_H
#define CLI_CERT_CERT_MAKE_H

#include <gavel/settings.h>
#include <gavel/status.h>

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

#define CERT_HOSTS_MAX 32
#define CERT_NAME_MAX 64

/* A certificate and its key. Zeroed, it is empty; cert_pair_done() frees. */
struct cert_pair {
    X509 *certificate;
    EVP_PKEY *key;
};

void cert_pair_done(struct cert_pair *pair);

/* A self-signed CA. */
GAVEL_CHECKED enum gavel_status cert_make_ca(const char *cluster, gavel_ms valid_ms,
                                             struct cert_pair *ret_pair, struct gavel_error *error);

/*
 * The certificate of a node. It expires no later than that of the CA. Hosts are
 * names or addresses. ERR_INVALID for a host that is neither.
 */
GAVEL_CHECKED enum gavel_status cert_make_node(const struct cert_pair *ca, const char *node,
                                               const char *const *hosts, size_t host_count, gavel_ms valid_ms,
                                               struct cert_pair *ret_pair, struct gavel_error *error);

/* The certificate of a client: a program that connects to nodes and accepts no connections. */
GAVEL_CHECKED enum gavel_status cert_make_client(const struct cert_pair *ca, const char *name,
                                                 gavel_ms valid_ms, struct cert_pair *ret_pair,
                                                 struct gavel_error *error);

/* Reads PEM. ERR_IO, ERR_INVALID. The caller frees with X509_free() and EVP_PKEY_free(). */
GAVEL_CHECKED enum gavel_status cert_read(const char *path, X509 **ret_certificate,
                                          struct gavel_error *error);
GAVEL_CHECKED enum gavel_status cert_read_key(const char *path, EVP_PKEY **ret_key,
                                              struct gavel_error *error);

/* As PEM; the caller frees. NULL: no memory. */
char *cert_pem(X509 *certificate);
char *cert_key_pem(EVP_PKEY *key);

/* "O" or "CN" of the subject, or of the issuer; "" if it has none. Returns buffer. */
const char *cert_subject(const X509 *certificate, int nid, char buffer[static CERT_NAME_MAX + 1]);
const char *cert_issuer(const X509 *certificate, int nid, char buffer[static CERT_NAME_MAX + 1]);

/* An instant of a certificate as milliseconds since 1970. */
int64_t cert_wall_ms(const ASN1_TIME *time);

#endif
