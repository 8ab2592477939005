/* SPDX-License-Identifier: Apache-2.0 */

/* A CA and certificates for tests, in a directory that is removed at the end. */
#ifndef TESTS_NET_CERTS_H
#define TESTS_NET_CERTS_H

#include "net/tls.h"

#include <openssl/x509.h>

struct authority {
    X509 *cert;
    EVP_PKEY *key;
};

struct certs {
    char directory[64];
    struct authority ca;
    struct authority other_ca; /* of somebody else */
};

void certs_init(struct certs *certs);
void certs_done(struct certs *certs);

struct issue {
    const char *cluster; /* "test" if NULL */
    const char *node;
    const char *kind; /* "node" if NULL; "" none, as before 0.7.0 */
    bool is_of_other_ca;
    bool is_nowhere; /* it names no host; of a node: else localhost and its addresses */
    long from_s;     /* from now on, in seconds */
    long until_s;    /* 0: an hour */
};

/* Writes NODE.crt and NODE.key; the paths are written to `files` with those of ca.crt, and borrow from
 * `buffer`. */
struct paths {
    char ca[128];
    char cert[128];
    char key[128];
};
struct tls_files certs_issue(struct certs *certs, const struct issue *issue, struct paths *paths);

#endif
