/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How two nodes prove to each other that they have the secret of the cluster,
 * with TLS and without:
 *
 *     HELLO    nonce d                                    who dials
 *     WELCOME  nonce a, HMAC(key, a's greeting, d)        who was dialled (REFUSAL: the same)
 *     PROOF    HMAC(key, d's greeting, a)
 *
 * A proof covers who speaks, to whom, and the numbers of its greeting, so that
 * it is good for that connection and for nothing else. Nothing else is taken
 * from the one who dialled before its proof.
 *
 * The seal of a generation is a statement of its own, without a nonce: that
 * there is a generation of this number is true for ever, whoever repeats it.
 */
#ifndef NET_PROVE_H
#define NET_PROVE_H

#include "net/seal.h"
#include "wire/peer.h"

enum prove_role { PROVE_DIALLED = 1, PROVE_ACCEPTED = 2 };

/* What `speaker`, by its greeting, proves to the one whose nonce that is. */
void prove_make(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                const uint8_t nonce[PEER_NONCE_BYTES], uint8_t ret_proof[PEER_PROOF_BYTES]);
bool prove_check(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                 const uint8_t nonce[PEER_NONCE_BYTES], const uint8_t proof[PEER_PROOF_BYTES]);

/* Fills in hello->generation_seal. */
void prove_generation(const uint8_t key[SEAL_KEY_BYTES], struct peer_hello *hello);
bool prove_generation_check(const uint8_t key[SEAL_KEY_BYTES], const struct peer_hello *hello);

#endif
