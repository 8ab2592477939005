/* SPDX-License-Identifier: Apache-2.0 */

#include "net/seal.h"

#include "base/assert.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define SECRET_BYTES_MIN 32
#define SECRET_BYTES_MAX 4096

_Static_assert(SEAL_KEY_BYTES == SHA256_DIGEST_LENGTH, "a key is a digest");
_Static_assert(RAFT_MAC_BYTES == SHA256_DIGEST_LENGTH, "a mac is a digest");

enum gavel_status seal_key_read(const char *path, uint8_t ret_key[SEAL_KEY_BYTES], struct gavel_error *error)
{
    uint8_t secret[SECRET_BYTES_MAX + 1];
    FILE *file = fopen(path, "rbe");
    size_t size;

    if (!file)
        return error_set(
            error, GAVEL_ERR_IO,
            "the secret %s cannot be read: %s; every node needs the file cluster.secret that \"gavel cert init\" has written",
            path, strerror(errno));
    size = fread(secret, 1, sizeof secret, file);
    if (ferror(file)) {
        (void)fclose(file); /* it was only read */
        return error_set(error, GAVEL_ERR_IO, "the secret %s cannot be read: %s", path, strerror(errno));
    }
    (void)fclose(file);
    if (size > SECRET_BYTES_MAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the secret %s is longer than %d bytes; is it the right file?", path,
                         SECRET_BYTES_MAX);
    /* An editor may have added the end of a line on one node and not on another. */
    while (size > 0 && isspace(secret[size - 1]))
        size--;
    if (size < SECRET_BYTES_MIN)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the secret %s has %zu bytes and needs at least %d; write one with \"gavel cert secret\" and copy it to all nodes",
            path, size, SECRET_BYTES_MIN);
    (void)SHA256(secret, size, ret_key); /* returns where it wrote */
    OPENSSL_cleanse(secret, sizeof secret);
    return GAVEL_OK;
}

/* SHA-256 over two texts and what keeps them apart. */
static void digest_names(const char *what, const char *name, uint8_t ret_digest[SHA256_DIGEST_LENGTH])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_done;

    ASSERT(context);
    is_done = EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, what, strlen(what) + 1) == 1 &&
              EVP_DigestUpdate(context, name, strlen(name)) == 1 &&
              EVP_DigestFinal_ex(context, ret_digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    ASSERT(is_done);
}

void seal_key_of_name(const char *cluster_name, uint8_t ret_key[SEAL_KEY_BYTES])
{
    digest_names("gavel seal without a secret", cluster_name, ret_key);
}

uint64_t seal_id_of_name(const char *what, const char *name)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    uint64_t id = 0;

    digest_names(what, name, digest);
    for (int i = 0; i < 8; i++)
        id = id << 8 | digest[i];
    return id != 0 ? id : 1;
}

static void compute(const struct seal *seal, const struct raft_certificate *certificate,
                    uint8_t ret_mac[RAFT_MAC_BYTES])
{
    static const char label[16] = "gavel seal 1";
    const uint64_t fields[] = {seal->cluster,
                               seal->generation,
                               (uint64_t)certificate->kind,
                               certificate->node,
                               certificate->incarnation,
                               certificate->term,
                               certificate->lease_epoch,
                               certificate->target,
                               certificate->commit};
    uint8_t bytes[sizeof label + sizeof fields];
    uint8_t *at = bytes + sizeof label;
    unsigned length = 0;

    memcpy(bytes, label, sizeof label);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (int shift = 56; shift >= 0; shift -= 8)
            *at++ = (uint8_t)(fields[i] >> shift);
    ASSERT(HMAC(EVP_sha256(), seal->key, SEAL_KEY_BYTES, bytes, sizeof bytes, ret_mac, &length));
    ASSERT(length == RAFT_MAC_BYTES);
}

void seal_sign(void *context, struct raft_certificate *certificate)
{
    compute(context, certificate, certificate->mac);
}

bool seal_verify(void *context, const struct raft_certificate *certificate)
{
    uint8_t mac[RAFT_MAC_BYTES];

    compute(context, certificate, mac);
    return CRYPTO_memcmp(mac, certificate->mac, sizeof mac) == 0;
}
