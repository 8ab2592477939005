/* SPDX-License-Identifier: Apache-2.0 */

#include "net/prove.h"

#include "base/assert.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define LABEL_BYTES 24
#define FIELDS_MAX 13

_Static_assert(PEER_PROOF_BYTES == SEAL_KEY_BYTES, "a proof is a digest, and so is a key");

static void hash(const uint8_t key[SEAL_KEY_BYTES], const char *label, const uint64_t *fields, size_t count,
                 const uint8_t *nonces, size_t size, uint8_t ret_mac[PEER_PROOF_BYTES])
{
    uint8_t bytes[LABEL_BYTES + FIELDS_MAX * 8 + 2 * PEER_NONCE_BYTES] = {0};
    uint8_t *at = bytes + LABEL_BYTES;
    unsigned length = 0;

    ASSERT(count <= FIELDS_MAX);
    ASSERT(strlen(label) < LABEL_BYTES);
    memcpy(bytes, label, strlen(label));
    for (size_t i = 0; i < count; i++)
        for (int shift = 56; shift >= 0; shift -= 8)
            *at++ = (uint8_t)(fields[i] >> shift);
    if (size > 0)
        memcpy(at, nonces, size);
    at += size;
    ASSERT(HMAC(EVP_sha256(), key, SEAL_KEY_BYTES, bytes, (size_t)(at - bytes), ret_mac, &length));
    ASSERT(length == PEER_PROOF_BYTES);
}

void prove_make(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                const uint8_t nonce[PEER_NONCE_BYTES], uint8_t ret_proof[PEER_PROOF_BYTES])
{
    const uint64_t fields[] = {(uint64_t)role,     speaker->cluster,      speaker->node,
                               speaker->to,        speaker->generation,   speaker->incarnation,
                               speaker->process,   speaker->config_index, speaker->directory,
                               speaker->bound_at,  speaker->began_at,     speaker->founding,
                               speaker->is_founded};
    uint8_t nonces[2 * PEER_NONCE_BYTES];

    memcpy(nonces, nonce, PEER_NONCE_BYTES);
    memcpy(nonces + PEER_NONCE_BYTES, speaker->nonce, PEER_NONCE_BYTES);
    hash(key, "gavel proof 1", fields, sizeof fields / sizeof fields[0], nonces, sizeof nonces, ret_proof);
}

bool prove_check(const uint8_t key[SEAL_KEY_BYTES], enum prove_role role, const struct peer_hello *speaker,
                 const uint8_t nonce[PEER_NONCE_BYTES], const uint8_t proof[PEER_PROOF_BYTES])
{
    uint8_t wanted[PEER_PROOF_BYTES];

    prove_make(key, role, speaker, nonce, wanted);
    return CRYPTO_memcmp(wanted, proof, sizeof wanted) == 0;
}

static void seal_generation(const uint8_t key[SEAL_KEY_BYTES], const struct peer_hello *hello,
                            uint8_t ret_seal[PEER_PROOF_BYTES])
{
    const uint64_t fields[] = {hello->cluster, hello->generation, hello->node};

    hash(key, "gavel generation 1", fields, sizeof fields / sizeof fields[0], NULL, 0, ret_seal);
}

void prove_generation(const uint8_t key[SEAL_KEY_BYTES], struct peer_hello *hello)
{
    seal_generation(key, hello, hello->generation_seal);
    hello->has_generation_seal = true;
}

bool prove_generation_check(const uint8_t key[SEAL_KEY_BYTES], const struct peer_hello *hello)
{
    uint8_t wanted[PEER_PROOF_BYTES];

    seal_generation(key, hello, wanted);
    return hello->has_generation_seal && CRYPTO_memcmp(wanted, hello->generation_seal, sizeof wanted) == 0;
}
