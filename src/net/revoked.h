/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Revoked certificates: refused although their CA has signed them. The list is a
 * file with one SHA-256 per line, as `gavel cert show` prints it and `gavel cert
 * revoke` writes it. The rest of a line, and lines that begin with #, are for
 * people. A list belongs to a context and is freed with it.
 */
#ifndef NET_REVOKED_H
#define NET_REVOKED_H

#include <gavel/status.h>

#include <openssl/ssl.h>
#include <stdbool.h>

/*
 * ERR_IO, ERR_INVALID, with the file, the line and the next step. A list that cannot be read does not count
 * as empty: the context keeps the one that it had.
 */
GAVEL_CHECKED enum gavel_status revoked_load(const char *path, SSL_CTX *context, struct gavel_error *error);

bool revoked_has(const SSL_CTX *context, const X509 *cert);

#endif
