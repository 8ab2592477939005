/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Certificates that are not taken any more, though their CA has signed them: a
 * file with the SHA-256 of one per line, as `gavel cert show` prints it and
 * `gavel cert revoke` writes it; the rest of a line, and what begins with #, is
 * for people. A list belongs to a context and goes with it.
 */
#ifndef NET_REVOKED_H
#define NET_REVOKED_H

#include <gavel/status.h>

#include <openssl/ssl.h>
#include <stdbool.h>

/* ERR_IO, ERR_INVALID with the file, the line and the next step: a list that cannot be read is no empty one,
 * and leaves the context with the one that it had. */
GAVEL_CHECKED enum gavel_status revoked_load(const char *path, SSL_CTX *context, struct gavel_error *error);

bool revoked_has(const SSL_CTX *context, const X509 *cert);

#endif
