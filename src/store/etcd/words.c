/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys, questions and answers. Keys and values are bytes to etcd, so the
 * gateway wants them in base64; numbers of 64 bits stand in strings.
 *
 * A slash in a name is written as %2F (and a percent sign as %25), so that no
 * two keys are the same and none of another family or prefix looks like ours.
 */
#include "store/etcd/etcd.h"

#include <openssl/evp.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE64_SIZE(bytes) (((bytes) + 2) / 3 * 4 + 1)
#define VALUE_MAX (64 * 1024) /* a longer one is none of ours */

static const char *const families[] = {
    [ETCD_GROUPS] = "groups", [ETCD_WISHES] = "wishes", [ETCD_CANDIDATES] = "candidates"};

static size_t append_name(char *key, size_t used, const char *name)
{
    for (; *name; name++) {
        if (*name == '/' || *name == '%')
            used += (size_t)snprintf(key + used, ETCD_KEY_SIZE - used, "%%%02X", (unsigned char)*name);
        else
            key[used++] = *name;
    }
    key[used] = '\0';
    return used;
}

void etcd_key(const struct etcd_store *etcd, enum etcd_family family, const char *group, const char *id,
              char ret_key[ETCD_KEY_SIZE])
{
    size_t used = (size_t)snprintf(ret_key, ETCD_KEY_SIZE, "%s/%s/", etcd->prefix, families[family]);

    if (!group)
        return;
    used = append_name(ret_key, used, group);
    if (family != ETCD_CANDIDATES)
        return;
    ret_key[used++] = '/';
    ret_key[used] = '\0';
    if (id)
        (void)append_name(ret_key, used, id);
}

static bool read_name(const char *text, char ret_name[NAME_MAX_BYTES + 1])
{
    size_t used = 0;

    for (; *text; text++) {
        char letter = *text;

        if (letter == '/' || used == NAME_MAX_BYTES)
            return false;
        if (letter == '%') {
            bool is_slash = strncmp(text, "%2F", 3) == 0;

            if (!is_slash && strncmp(text, "%25", 3) != 0)
                return false;
            letter = is_slash ? '/' : '%';
            text += 2;
        }
        ret_name[used++] = letter;
    }
    ret_name[used] = '\0';
    return name_check("name", ret_name, NULL) == GAVEL_OK;
}

bool etcd_key_read(const struct etcd_store *etcd, enum etcd_family family, const char *group, const char *key,
                   char ret_name[NAME_MAX_BYTES + 1])
{
    char first[ETCD_KEY_SIZE];

    etcd_key(etcd, family, group, NULL, first);
    return strncmp(key, first, strlen(first)) == 0 && read_name(key + strlen(first), ret_name);
}

/* Bytes as a JSON string in base64; NULL when out of memory. */
static json_t *encode(const char *bytes, size_t size)
{
    char *text = malloc(BASE64_SIZE(size));
    json_t *string = NULL;

    if (text) {
        int length = EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes, (int)size);

        string = json_stringn_nocheck(text, (size_t)length);
    }
    free(text);
    return string;
}

json_t *etcd_encode(const char *text) { return encode(text, strlen(text)); }

/* The first key behind all that begin with `first`. Its last byte is never the highest: it is UTF-8. */
static json_t *behind(const char *first)
{
    char end[ETCD_KEY_SIZE];
    size_t size = strlen(first);

    memcpy(end, first, size);
    end[size - 1]++;
    return encode(end, size);
}

static json_t *number_json(uint64_t number) { return json_sprintf("%" PRIu64, number); }

static char *dump(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object); /* safe on NULL */
    return text;
}

/* What is to be done with up to two keys; NULL (also of an operation before) is passed on. */
static json_t *read_ops(json_t *ops, const char *first, const char *second)
{
    const char *const keys[] = {first, second};

    for (size_t i = 0; ops && i < 2; i++) {
        if (keys[i] &&
            json_array_append_new(ops, json_pack("{s{so}}", "request_range", "key", etcd_encode(keys[i])))) {
            json_decref(ops);
            return NULL;
        }
    }
    return ops;
}

char *etcd_body_read(const char *first, const char *second)
{
    return dump(json_pack("{so}", "success", read_ops(json_array(), first, second)));
}

static json_t *put_op(const struct etcd_put *put)
{
    if (!put->value)
        return json_pack("{s{so}}", "request_delete_range", "key", etcd_encode(put->key));
    return json_pack("{s{so so so}}", "request_put", "key", etcd_encode(put->key), "value",
                     etcd_encode(put->value), "lease", number_json(put->lease));
}

static json_t *compare_ops(const struct etcd_put *put)
{
    json_t *by_revision = json_pack("{ss ss so so}", "target", "MOD", "result", "EQUAL", "key",
                                    etcd_encode(put->compared), "mod_revision", number_json(put->revision));

    if (!put->was)
        return json_pack("[o]", by_revision);
    return json_pack("[o {ss ss so so}]", by_revision, "target", "VALUE", "result", "EQUAL", "key",
                     etcd_encode(put->compared), "value", etcd_encode(put->was));
}

char *etcd_body_put(const struct etcd_put *put, const char *first, const char *second)
{
    json_t *ops = json_array();

    if (ops && json_array_append_new(ops, put_op(put))) {
        json_decref(ops);
        ops = NULL;
    }
    return dump(json_pack("{so so so}", "compare", compare_ops(put), "success", read_ops(ops, first, second),
                          "failure", read_ops(json_array(), first, second)));
}

char *etcd_body_page(const char *first, const char *after, unsigned limit)
{
    /* The key right after another is that one and a NUL. */
    json_t *from = *after ? encode(after, strlen(after) + 1) : etcd_encode(first);

    return dump(
        json_pack("{so so so}", "key", from, "range_end", behind(first), "limit", number_json(limit)));
}

char *etcd_body_lease(uint64_t lease) { return dump(json_pack("{so}", "ID", number_json(lease))); }

char *etcd_body_grant(gavel_ms ttl_ms)
{
    return dump(json_pack("{so}", "TTL", number_json((uint64_t)(ttl_ms + 999) / 1000)));
}

char *etcd_body_user(const char *user, const char *password)
{
    return dump(json_pack("{ss ss}", "name", user, "password", password));
}

bool etcd_body_watch(char **text, const char *key, bool is_prefix)
{
    char *question = dump(json_pack("{s{so so*}}", "create_request", "key", etcd_encode(key), "range_end",
                                    is_prefix ? behind(key) : NULL));
    size_t used = *text ? strlen(*text) : 0;
    char *grown = question ? realloc(*text, used + strlen(question) + 2) : NULL;

    if (grown) {
        *text = grown;
        (void)sprintf(grown + used, "%s\n", question);
    }
    free(question);
    return grown;
}

uint64_t etcd_number(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    const char *text = json_string_value(value);
    char *end;
    uint64_t number;

    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtoull(text, &end, 10);
    return errno || *end ? 0 : number;
}

/* Exactly; the caller frees it. A NUL is put behind. */
static enum gavel_status decode(const char *text, size_t size, char **ret_bytes, size_t *ret_size)
{
    char *bytes;
    int length;

    if (size % 4 || size > BASE64_SIZE((size_t)VALUE_MAX))
        return GAVEL_ERR_STORE_UNSUPPORTED;
    bytes = malloc(size / 4 * 3 + 1);
    if (!bytes)
        return GAVEL_ERR_NO_MEMORY;
    length = size ? EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)size) : 0;
    if (length < 0) {
        free(bytes);
        return GAVEL_ERR_STORE_UNSUPPORTED;
    }
    for (size_t i = 1; i <= 2 && i <= size && text[size - i] == '='; i++)
        length--; /* it does not count what was filled up */
    bytes[length] = '\0';
    *ret_bytes = bytes;
    *ret_size = (size_t)length;
    return GAVEL_OK;
}

enum gavel_status etcd_kv_read(const json_t *json, struct etcd_kv *ret_kv)
{
    const json_t *key = json_object_get(json, "key");
    const json_t *value = json_object_get(json, "value");
    enum gavel_status status;
    char *bytes = NULL;
    size_t size;

    *ret_kv = (struct etcd_kv){.revision = etcd_number(json, "mod_revision")};
    if (ret_kv->revision == 0 || !json_is_string(key))
        return GAVEL_ERR_STORE_UNSUPPORTED;
    status = decode(json_string_value(key), json_string_length(key), &bytes, &size);
    if (status != GAVEL_OK)
        return status;
    /* A longer one is none of ours: what is left of it is still too long for a name. */
    name_copy(ret_kv->key, sizeof ret_kv->key, bytes);
    free(bytes);
    /* One that is too long is no record: it is taken as what it is, nothing that makes sense. */
    status = decode(json_string_value(value), json_string_length(value), &ret_kv->value, &ret_kv->size);
    if (status == GAVEL_ERR_STORE_UNSUPPORTED) {
        ret_kv->value = strdup("");
        status = ret_kv->value ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
    }
    ret_kv->is_found = status == GAVEL_OK;
    return status;
}

void etcd_kv_done(struct etcd_kv *kv)
{
    free(kv->value);
    kv->value = NULL;
    kv->size = 0;
}

bool etcd_has_put(const json_t *answer) { return json_is_true(json_object_get(answer, "succeeded")); }

uint64_t etcd_revision(const json_t *answer)
{
    return etcd_number(json_object_get(answer, "header"), "revision");
}

/* Whatever was put or deleted stands before what was read. */
enum gavel_status etcd_answer_kv(const json_t *answer, size_t n, struct etcd_kv *ret_kv)
{
    const json_t *responses = json_object_get(answer, "responses");
    const json_t *one;
    size_t i;

    *ret_kv = (struct etcd_kv){0};
    json_array_foreach(responses, i, one) {
        const json_t *range = json_object_get(one, "response_range");

        if (!range || n-- > 0)
            continue;
        one = json_array_get(json_object_get(range, "kvs"), 0);
        return one ? etcd_kv_read(one, ret_kv) : GAVEL_OK;
    }
    return GAVEL_ERR_STORE_UNSUPPORTED;
}

char *etcd_wish_write(const struct record *record, struct nonce write)
{
    char number[33];

    (void)snprintf(number, sizeof number, "%016" PRIx64 "%016" PRIx64, write.high, write.low);
    return dump(json_pack("{si sI sb ss ss}", "format", ROW_JSON_FORMAT, "epoch",
                          (json_int_t)record->wish_epoch, "force", record->wish_force, "successor",
                          record->wish_successor, "write", number));
}

void etcd_wish_read(const struct etcd_kv *kv, struct record *record, struct nonce *ret_write)
{
    json_t *wish = kv->is_found ? json_loadb(kv->value, kv->size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *successor;
    const char *write;
    json_int_t format;
    json_int_t epoch;
    int force;

    *ret_write = (struct nonce){0};
    record->wish_epoch = 0;
    record->wish_force = false;
    record->wish_successor[0] = '\0';
    if (wish &&
        json_unpack(wish, "{sI sI sb ss ss}", "format", &format, "epoch", &epoch, "force", &force,
                    "successor", &successor, "write", &write) == 0 &&
        format == ROW_JSON_FORMAT && epoch > 0 && strlen(successor) <= NAME_MAX_BYTES &&
        (!*successor || name_check("successor", successor, NULL) == GAVEL_OK) &&
        sscanf(write, "%16" SCNx64 "%16" SCNx64, &ret_write->high, &ret_write->low) == 2) {
        record->wish_epoch = (uint64_t)epoch;
        record->wish_force = force;
        name_copy(record->wish_successor, sizeof record->wish_successor, successor);
    }
    json_decref(wish); /* safe on NULL */
}
