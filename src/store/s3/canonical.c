/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys, URLs and hashes in the one form that can be signed. libcurl signs
 * what it is given, as it is given; the server signs what it makes of it. Both
 * agree only on the canonical form of Signature Version 4: every byte of a
 * path but the unreserved ones and the slash is percent-encoded (an equals
 * sign too), parameters are sorted by name and each has its "=".
 *
 * Names are percent-encoded once before that, inside the key, so that a slash
 * or a ".." in a group's name cannot make it another key, and a key is plain
 * ASCII for whatever lies between here and the disk.
 */
#include "store/s3/s3.h"

#include "base/assert.h"

#include <openssl/evp.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 8

static void add(struct text_buffer *text, const char *bytes) { text_buffer_add(text, bytes, strlen(bytes)); }

/* Not isalnum(): that depends on the locale. */
static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void s3_text_add_encoded(struct text_buffer *text, const char *bytes, const char *keep)
{
    for (; *bytes; bytes++) {
        char code[4];

        if (is_unreserved(*bytes) || strchr(keep, *bytes)) {
            text_buffer_add(text, bytes, 1);
            continue;
        }
        (void)snprintf(code, sizeof code, "%%%02X", (unsigned)(unsigned char)*bytes);
        text_buffer_add(text, code, 3);
    }
}

static char *group_key(const struct s3_target *target, const char *group, const char *end)
{
    struct text_buffer text = {0};

    add(&text, target->prefix);
    add(&text, "namespace=");
    s3_text_add_encoded(&text, group, "");
    add(&text, end);
    return text.bytes;
}

char *s3_key_state(const struct s3_target *target, const char *group)
{
    return group_key(target, group, "/state.json");
}

char *s3_key_metadata(const struct s3_target *target, const char *group)
{
    return group_key(target, group, "/metadata.json");
}

char *s3_key_workers(const struct s3_target *target, const char *group)
{
    return group_key(target, group, "/workers/worker=");
}

char *s3_key_worker(const struct s3_target *target, const char *group, const char *id)
{
    struct text_buffer text = {0};

    add(&text, target->prefix);
    add(&text, "namespace=");
    s3_text_add_encoded(&text, group, "");
    add(&text, "/workers/worker=");
    s3_text_add_encoded(&text, id, "");
    add(&text, ".json");
    return text.bytes;
}

char *s3_key_group_prefix(const struct s3_target *target, const char *begin)
{
    return group_key(target, begin, "");
}

char *s3_key_groups(const struct s3_target *target)
{
    struct text_buffer text = {0};

    add(&text, target->prefix);
    add(&text, "namespace=");
    return text.bytes;
}

bool s3_name_in_key(const char *key, const char *before, const char *after, char ret_name[NAME_MAX_BYTES + 1])
{
    size_t begin = strlen(before);
    size_t end = strlen(key);
    size_t used = 0;

    if (end < begin + strlen(after) || strncmp(key, before, begin) != 0 ||
        strcmp(key + end - strlen(after), after) != 0)
        return false;
    end -= strlen(after);
    for (size_t i = begin; i < end; i++) {
        char character = key[i];

        if (character == '%') {
            char digits[3] = {0};

            memcpy(digits, key + i + 1, i + 2 < end ? 2 : 0);
            if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
                return false;
            character = (char)strtol(digits, NULL, 16);
            i += 2;
        } else if (!is_unreserved(character)) {
            return false; /* not a name that we wrote */
        }
        if (used == NAME_MAX_BYTES)
            return false;
        ret_name[used++] = character;
    }
    ret_name[used] = '\0';
    return name_check("name", ret_name, NULL) == GAVEL_OK;
}

static int compare_parameters(const void *a, const void *b)
{
    return strcmp(((const struct s3_parameter *)a)->name, ((const struct s3_parameter *)b)->name);
}

char *s3_url(const struct s3_target *target, const char *key, const struct s3_parameter *parameters,
             size_t count)
{
    struct s3_parameter sorted[PARAMETERS_MAX];
    struct text_buffer text = {0};

    ASSERT(count <= PARAMETERS_MAX);
    add(&text, target->root);
    add(&text, "/");
    s3_text_add_encoded(&text, key, "/");
    if (count > 0) {
        memcpy(sorted, parameters, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_parameters);
    }
    for (size_t i = 0; i < count; i++) {
        add(&text, i == 0 ? "?" : "&");
        s3_text_add_encoded(&text, sorted[i].name, "");
        add(&text, "="); /* also if there is no value */
        s3_text_add_encoded(&text, sorted[i].value, "");
    }
    return text.bytes;
}

void s3_body_hash(const void *body, size_t size, char ret_hex[65])
{
    unsigned char hash[EVP_MAX_MD_SIZE] = {0};
    unsigned length = 32;

    /* Only fails when out of memory; the server then refuses a hash that is none. */
    (void)EVP_Digest(body ? body : "", size, hash, &length, EVP_sha256(), NULL);
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(ret_hex + 2 * i, 3, "%02x", (unsigned)hash[i]);
}
