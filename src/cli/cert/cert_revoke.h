/* SPDX-License-Identifier: Apache-2.0 */

/* gavel cert revoke: the list of certificates that nodes no longer accept (net/revoked.h). */
#ifndef CLI_CERT_CERT_REVOKE_H
#define CLI_CERT_CERT_REVOKE_H

#include "cli/cli.h"

#include <openssl/x509.h>

/* Adds the certificate in that file to the list, unless it is there already. */
int cert_revoke(const struct cli *cli, const char *path);

/* "node", "client", "" for neither (net/tls.h), or for a CA. */
const char *cert_kind(const X509 *certificate);

#endif
