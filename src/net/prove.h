/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How two nodes prove to each other that they have the secret of the cluster,
 * with TLS and without:
 *
 *     HELLO    nonce d                                    the side that dials
 *     WELCOME  nonce a, HMAC(key, a's greeting, d)        the side that accepts (REFUSAL: the same)
 *     PROOF    HMAC(key, d's greeting, a)                 the side that dials
 *
 * A proof covers the speaker, the listener and the numbers of the greeting, so
 * it is valid for that connection only. Before its proof, nothing else is
 * accepted from the side that dials.
 *
 * The seal of a generation is a separate statement, without a nonce: that a
 * generation of this number exists stays true, whoever repeats it.
 */
#ifndef NET_PROVE_H
#define NET_PROVE_H

#include "net/seal.h"
#include "wire/peer.h"

enum prove_role { PROVE_DIALLED = 1, PROVE_ACCEPTED = 2 };

/* The proof of `speaker`, by its greeting, to the side that chose the nonce. */
void prove_make(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                const uint8_t nonce[PEER_NONCE_BYTES], uint8_t ret_proof[PEER_PROOF_BYTES]);
bool prove_check(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                 const uint8_t nonce[PEER_NONCE_BYTES], const uint8_t proof[PEER_PROOF_BYTES]);

/* Fills in hello->generation_seal. */
void prove_generation(const uint8_t key[SEAL_KEY_BYTES], struct peer_hello *hello);
bool prove_generation_check(const uint8_t key[SEAL_KEY_BYTES], const struct peer_hello *hello);

#endif
