/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The seal of a certificate of Raft (an obituary or a release): HMAC-SHA-256
 * under a secret that the members of the cluster share, over all its fields,
 * the cluster and its generation. Every holder of the secret is a member and is
 * trusted not to lie about who is dead; nobody else can make a seal.
 */
#ifndef NET_SEAL_H
#define NET_SEAL_H

#include "core/raft/message.h"

#define SEAL_KEY_BYTES 32

struct seal {
    uint64_t cluster;
    uint64_t generation;
    uint8_t key[SEAL_KEY_BYTES];
};

/* Reads the key from the file of the secret (at least 32 bytes, hashed to the key). ERR_IO, ERR_INVALID, with
 * what to do. */
GAVEL_CHECKED enum gavel_status seal_key_read(const char *path, uint8_t ret_key[SEAL_KEY_BYTES],
                                              struct gavel_error *error);

/* The key of a cluster that runs on loopback without a secret, made from its name. It protects against
 * mistakes, not against people. */
void seal_key_of_name(const char *cluster_name, uint8_t ret_key[SEAL_KEY_BYTES]);

/* Fits raft_settings.sign and .verify; context is a struct seal. */
void seal_sign(void *context, struct raft_certificate *certificate);
bool seal_verify(void *context, const struct raft_certificate *certificate);

/* The first 8 bytes of SHA-256 of a text, never 0: ids of clusters and nodes from their names. */
uint64_t seal_id_of_name(const char *what, const char *name);

#endif
