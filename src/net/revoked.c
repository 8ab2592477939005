/* SPDX-License-Identifier: Apache-2.0 */

#include "net/revoked.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MAX 65536
#define DIGITS (2 * SHA256_DIGEST_LENGTH)

struct list {
    size_t count;
    size_t capacity;
    uint8_t (*digests)[SHA256_DIGEST_LENGTH];
};

static int slot = -1; /* of a context: where its list is */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void list_free(struct list *list)
{
    if (!list)
        return;
    free(list->digests);
    free(list);
}

static void free_cb(void *parent, void *list, CRYPTO_EX_DATA *data, int index, long number, void *pointer)
{
    (void)parent;
    (void)data;
    (void)index;
    (void)number;
    (void)pointer;
    list_free(list);
}

static void make_slot(void) { slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_cb); }

static int value_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit = (char)tolower((unsigned char)digit);
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* 64 hexadecimal digits, colons between them allowed, and then the end or a space. */
static bool take_digest(const char *line, uint8_t ret_digest[SHA256_DIGEST_LENGTH])
{
    size_t digits = 0;

    for (; *line && !isspace((unsigned char)*line); line++) {
        int value = value_of(*line);

        if (*line == ':')
            continue;
        if (value < 0 || digits == DIGITS)
            return false;
        ret_digest[digits / 2] = (uint8_t)(digits % 2 ? ret_digest[digits / 2] | value : value << 4);
        digits++;
    }
    return digits == DIGITS;
}

static bool add(struct list *list, const uint8_t digest[SHA256_DIGEST_LENGTH])
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        void *grown = realloc(list->digests, capacity * sizeof *list->digests);

        if (!grown)
            return false;
        list->digests = grown;
        list->capacity = capacity;
    }
    memcpy(list->digests[list->count++], digest, SHA256_DIGEST_LENGTH);
    return true;
}

static enum gavel_status read_lines(FILE *file, const char *path, struct list *list,
                                    struct gavel_error *error)
{
    char *line = NULL;
    size_t size = 0;
    enum gavel_status status = GAVEL_OK;

    for (int number = 1; status == GAVEL_OK && getline(&line, &size, file) > 0; number++) {
        uint8_t digest[SHA256_DIGEST_LENGTH];
        const char *text = line + strspn(line, " \t\r\n");

        if (!*text || *text == '#')
            continue;
        if (!take_digest(text, digest))
            status = error_set(
                error, GAVEL_ERR_INVALID,
                "line %d of %.200s is not the SHA-256 of a certificate; \"gavel cert revoke\" writes them, \"gavel cert show\" prints them",
                number, path);
        else if (list->count == LISTED_MAX)
            status = error_set(error, GAVEL_ERR_INVALID,
                               "%.200s names more than %d certificates; a new CA is better by now", path,
                               LISTED_MAX);
        else if (!add(list, digest))
            status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    }
    if (status == GAVEL_OK && ferror(file))
        status = error_set(error, GAVEL_ERR_IO, "the list %.200s cannot be read: %s", path, strerror(errno));
    free(line);
    return status;
}

enum gavel_status revoked_load(const char *path, SSL_CTX *context, struct gavel_error *error)
{
    struct list *list = calloc(1, sizeof *list), *old = NULL;
    FILE *file = list ? fopen(path, "re") : NULL;
    enum gavel_status status;

    if (!list)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    if (file)
        status = read_lines(file, path, list, error);
    else
        status = error_set(
            error, GAVEL_ERR_IO,
            "the list of revoked certificates %.200s cannot be read: %s; an empty file revokes none", path,
            strerror(errno));
    if (file)
        (void)fclose(file);               /* it was only read */
    (void)pthread_once(&once, make_slot); /* fails only for what is no pthread_once_t */
    if (slot >= 0)
        old = SSL_CTX_get_ex_data(context, slot);
    if (status == GAVEL_OK && (slot < 0 || SSL_CTX_set_ex_data(context, slot, list) != 1))
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    list_free(status == GAVEL_OK ? old : list);
    return status;
}

bool revoked_has(const SSL_CTX *context, const X509 *cert)
{
    const struct list *list = slot >= 0 ? SSL_CTX_get_ex_data(context, slot) : NULL;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (!list || X509_digest(cert, EVP_sha256(), digest, &length) != 1)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(list->digests[i], digest, SHA256_DIGEST_LENGTH) == 0)
            return true;
    return false;
}
