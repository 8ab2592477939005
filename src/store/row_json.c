/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading is strict: anybody who may write to the bucket or the key can put
 * something else there, and a record that is taken at its word could free a
 * group or block it for ever. So every member that decides something must be
 * there and make sense; what is only for people must at least be well formed.
 */
#include "store/row_json.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "store/driver.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX (16 * 1024)                 /* three names, all of them escaped, are far below */
#define WALL_MAX_MS INT64_C(253402300799999) /* the last instant whose year has four digits */
#define TIME_SIZE sizeof "2026-11-16T14:00:15.000Z"

struct hex {
    char text[33];
};

static struct hex nonce_hex(struct nonce nonce)
{
    struct hex hex;

    (void)snprintf(hex.text, sizeof hex.text, "%016" PRIx64 "%016" PRIx64, nonce.high, nonce.low);
    return hex;
}

struct wall {
    char text[TIME_SIZE];
};

static struct wall wall_text(int64_t wall_ms)
{
    struct wall wall;
    struct tm parts;
    time_t seconds;

    wall_ms = wall_ms < 0 ? 0 : wall_ms > WALL_MAX_MS ? WALL_MAX_MS : wall_ms;
    seconds = (time_t)(wall_ms / 1000);
    (void)gmtime_r(&seconds, &parts); /* cannot fail for a year of four digits */
    (void)snprintf(wall.text, sizeof wall.text, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                   (unsigned)(parts.tm_year + 1900) % 10000, (unsigned)(parts.tm_mon + 1) % 100,
                   (unsigned)parts.tm_mday % 100, (unsigned)parts.tm_hour % 100, (unsigned)parts.tm_min % 100,
                   (unsigned)parts.tm_sec % 100, (unsigned)(wall_ms % 1000));
    return wall;
}

/* An address or a boot id is a hint; one that JSON cannot carry is left out. */
static const char *plain(const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t character;
        size_t size = utf8_decode(at, &character);

        if (size == 0)
            return "";
        at += size;
    }
    return text;
}

static json_t *process_json(const struct process_id *process)
{
    return json_pack("{ss si sI sI}", "bootId", plain(process->boot_id), "pid", process->pid, "pidNamespace",
                     (json_int_t)process->pid_ns, "startTicks", (json_int_t)process->start_ticks);
}

/* Takes over the object; NULL is passed on. */
static char *dump(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object); /* safe on NULL */
    return text;
}

/* The members that are not always there; false: out of memory. */
static bool add_more(json_t *object, const struct record *record, const struct row_json_number *number)
{
    int failed = 0;

    if (record->wish_epoch > 0)
        failed |=
            json_object_set_new(object, "wish",
                                json_pack("{sI sb ss}", "epoch", (json_int_t)record->wish_epoch, "force",
                                          record->wish_force, "successor", record->wish_successor));
    if (!record->held && record->loss != GAVEL_LOSS_NONE)
        failed |= json_object_set_new(object, "loss", json_string(gavel_loss_name(record->loss)));
    if (record->process.pid > 0)
        failed |= json_object_set_new(object, "process", process_json(&record->process));
    if (number)
        failed |= json_object_set_new(object, "epochOffset", json_integer((json_int_t)number->epoch_offset));
    else
        failed |= json_object_set_new(object, "version", json_integer((json_int_t)record->version));
    return failed == 0;
}

char *row_json_write_numbered(const struct mandate_row *row, struct nonce write,
                              const struct row_json_number *number)
{
    const struct record *record = &row->record;
    bool is_untold = number && number->is_claim;
    json_t *object;

    ASSERT(row->is_found);
    object =
        json_pack("{si ss sI ss ss sb sb ss sI ss ss ss ss}", "format", ROW_JSON_FORMAT, "leaderId",
                  record->holder, "epoch", (json_int_t)(is_untold ? 0 : record->epoch), "nonce",
                  nonce_hex(record->nonce).text, "write", nonce_hex(write).text, "held", record->held, "done",
                  record->done, "address", plain(record->address), "leaseMs", (json_int_t)record->lease_ms,
                  "leaseExpiresAt", wall_text(record->renewed_wall_ms + record->lease_ms).text, "since",
                  wall_text(record->since_wall_ms).text, "renewedAt", wall_text(record->renewed_wall_ms).text,
                  "successor", record->successor);
    if (object && !add_more(object, record, number)) {
        json_decref(object);
        return NULL;
    }
    return dump(object);
}

char *row_json_write(const struct mandate_row *row, struct nonce write)
{
    return row_json_write_numbered(row, write, NULL);
}

char *registration_json_write(const struct registration *registration, struct nonce write)
{
    char instance[17];

    (void)snprintf(instance, sizeof instance, "%016" PRIx64, registration->instance);
    return dump(json_pack("{si ss ss sI ss si sb ss ss ss so*}", "format", ROW_JSON_FORMAT, "id",
                          registration->id, "instance", instance, "beats", (json_int_t)registration->beats,
                          "address", plain(registration->address), "priority", registration->priority,
                          "eligible", registration->eligible, "since",
                          wall_text(registration->since_wall_ms).text, "lastHeartbeat",
                          wall_text(registration->last_wall_ms).text, "write", nonce_hex(write).text,
                          "process", process_json(&registration->process)));
}

static bool read_integer(const json_t *object, const char *name, int64_t lowest, int64_t highest,
                         int64_t *ret_value)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value) || json_integer_value(value) < lowest || json_integer_value(value) > highest)
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

/* All 64 bits of it: jansson has signed numbers only. */
static bool read_bits(const json_t *object, const char *name, uint64_t *ret_value)
{
    int64_t value;

    if (!read_integer(object, name, INT64_MIN, INT64_MAX, &value))
        return false;
    *ret_value = (uint64_t)value;
    return true;
}

static bool read_bool(const json_t *object, const char *name, bool *ret_value)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_boolean(value))
        return false;
    *ret_value = json_is_true(value);
    return true;
}

static bool read_text(const json_t *object, const char *name, char *to, size_t size)
{
    const char *value = json_string_value(json_object_get(object, name)); /* NULL if it is none */

    if (!value || strlen(value) >= size)
        return false;
    memcpy(to, value, strlen(value) + 1);
    return true;
}

static bool read_name(const json_t *object, const char *member, bool may_be_empty,
                      char ret_name[NAME_MAX_BYTES + 1])
{
    if (!read_text(object, member, ret_name, NAME_MAX_BYTES + 1))
        return false;
    return ret_name[0] ? name_check("name", ret_name, NULL) == GAVEL_OK : may_be_empty;
}

/* Exactly 16 lower-case digits. */
static bool parse_hex(const char *digits, uint64_t *ret_value)
{
    static const char alphabet[] = "0123456789abcdef";
    uint64_t value = 0;

    for (size_t i = 0; i < 16; i++) {
        const char *digit = digits[i] ? strchr(alphabet, digits[i]) : NULL;

        if (!digit)
            return false;
        value = value << 4 | (uint64_t)(digit - alphabet);
    }
    *ret_value = value;
    return true;
}

static bool read_nonce(const json_t *object, const char *name, struct nonce *ret_nonce)
{
    char text[33];

    return read_text(object, name, text, sizeof text) && strlen(text) == 32 &&
           parse_hex(text, &ret_nonce->high) && parse_hex(text + 16, &ret_nonce->low);
}

static bool read_wall(const json_t *object, const char *name, int64_t *ret_ms)
{
    char text[TIME_SIZE];
    struct tm parts = {0};
    int ms = 0;
    int length = 0;
    int64_t seconds;

    if (!read_text(object, name, text, sizeof text) ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &ms, &length) != 7 ||
        length != (int)TIME_SIZE - 1)
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    seconds = timegm(&parts); /* brings what is out of range back into it; it is only for people */
    if (seconds < 0 || ms < 0)
        return false;
    *ret_ms = seconds * 1000 + ms;
    return true;
}

/* Of somebody who told of no process there is none. */
static bool read_process(const json_t *object, struct process_id *ret_process)
{
    const json_t *process = json_object_get(object, "process");
    int64_t pid;

    if (!process)
        return true;
    if (!read_text(process, "bootId", ret_process->boot_id, sizeof ret_process->boot_id) ||
        !read_integer(process, "pid", 0, INT32_MAX, &pid) ||
        !read_bits(process, "pidNamespace", &ret_process->pid_ns) ||
        !read_bits(process, "startTicks", &ret_process->start_ticks))
        return false;
    ret_process->pid = (int32_t)pid;
    return true;
}

static bool read_wish(const json_t *object, struct record *record)
{
    const json_t *wish = json_object_get(object, "wish");
    int64_t epoch;

    if (!wish)
        return true;
    if (!read_integer(wish, "epoch", 1, (int64_t)RULES_NUMBER_MAX, &epoch) ||
        !read_bool(wish, "force", &record->wish_force) ||
        !read_name(wish, "successor", true, record->wish_successor))
        return false;
    record->wish_epoch = (uint64_t)epoch;
    return true;
}

/* How a mandate ended that was not given up; 0.6.0 writes nothing, and a later release perhaps another
 * word. */
static bool read_loss(const json_t *object, struct record *record)
{
    const json_t *loss = json_object_get(object, "loss");
    int number = 0;

    if (!loss)
        return true;
    if (!json_is_string(loss) || record->held || record->done)
        return false;
    while (number < GAVEL_LOSS_COUNT &&
           strcmp(json_string_value(loss), gavel_loss_name((enum gavel_loss)number)) != 0)
        number++;
    record->loss = rules_loss(number);
    return true;
}

/* The epoch and the version, which the store may know better. */
static bool read_numbers(const json_t *object, struct record *record, struct row_json_number *number)
{
    int64_t epoch;
    int64_t version;
    int64_t offset;

    if (!number) {
        if (!read_integer(object, "epoch", 1, (int64_t)RULES_NUMBER_MAX, &epoch) ||
            !read_integer(object, "version", 1, (int64_t)RULES_NUMBER_MAX, &version))
            return false;
        record->epoch = (uint64_t)epoch;
        record->version = (uint64_t)version;
        return true;
    }
    if (number->revision == 0 || number->revision > RULES_NUMBER_MAX ||
        !read_integer(object, "epoch", 0, (int64_t)RULES_NUMBER_MAX, &epoch) ||
        !read_integer(object, "epochOffset", 0, (int64_t)(RULES_NUMBER_MAX - number->revision), &offset))
        return false;
    number->is_claim = epoch == 0;
    number->epoch_offset = (uint64_t)offset;
    record->epoch = number->is_claim ? number->revision + number->epoch_offset : (uint64_t)epoch;
    record->version = number->revision;
    return true;
}

/* What was read is an object of our format; the caller frees it. NULL: not so, *ret_kind says why. */
static json_t *open_text(const char *text, size_t size, enum row_json_kind *ret_kind)
{
    json_t *object = size <= TEXT_MAX ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int64_t format;

    *ret_kind = ROW_JSON_DAMAGED;
    if (read_integer(object, "format", 1, INT64_MAX, &format)) {
        *ret_kind = format == ROW_JSON_FORMAT ? ROW_JSON_GOOD : ROW_JSON_TOO_NEW;
        if (format == ROW_JSON_FORMAT)
            return object;
    }
    json_decref(object); /* safe on NULL */
    return NULL;
}

enum row_json_kind row_json_read_numbered(const char *text, size_t size, struct mandate_row *ret_row,
                                          struct nonce *ret_write, struct row_json_number *number)
{
    struct mandate_row row = {.is_found = true};
    struct record *record = &row.record;
    struct nonce write;
    enum row_json_kind kind;
    json_t *object = open_text(text, size, &kind);

    if (!object)
        return kind;
    if (!read_name(object, "leaderId", false, record->holder) || !read_numbers(object, record, number) ||
        !read_nonce(object, "nonce", &record->nonce) || !read_nonce(object, "write", &write) ||
        !read_bool(object, "held", &record->held) || !read_bool(object, "done", &record->done) ||
        (record->held && record->done) ||
        !read_text(object, "address", record->address, sizeof record->address) ||
        !read_integer(object, "leaseMs", 1, STORE_DURATION_MAX_MS, &record->lease_ms) ||
        !read_wall(object, "since", &record->since_wall_ms) ||
        !read_wall(object, "renewedAt", &record->renewed_wall_ms) ||
        !read_name(object, "successor", true, record->successor) || !read_wish(object, record) ||
        !read_loss(object, record) || !read_process(object, &record->process))
        kind = ROW_JSON_DAMAGED;
    json_decref(object);
    if (kind == ROW_JSON_GOOD) {
        *ret_row = row;
        if (ret_write)
            *ret_write = write;
    }
    return kind;
}

enum row_json_kind row_json_read(const char *text, size_t size, struct mandate_row *ret_row,
                                 struct nonce *ret_write)
{
    return row_json_read_numbered(text, size, ret_row, ret_write, NULL);
}

enum row_json_kind registration_json_read(const char *text, size_t size,
                                          struct registration *ret_registration, struct nonce *ret_write)
{
    struct registration r = {.age_ms = -1};
    struct nonce write;
    char instance[17];
    int64_t priority;
    enum row_json_kind kind;
    json_t *object = open_text(text, size, &kind);

    if (!object)
        return kind;
    if (!read_name(object, "id", false, r.id) || !read_text(object, "instance", instance, sizeof instance) ||
        !parse_hex(instance, &r.instance) || !read_bits(object, "beats", &r.beats) ||
        !read_text(object, "address", r.address, sizeof r.address) ||
        !read_integer(object, "priority", INT32_MIN, INT32_MAX, &priority) ||
        !read_bool(object, "eligible", &r.eligible) || !read_wall(object, "since", &r.since_wall_ms) ||
        !read_wall(object, "lastHeartbeat", &r.last_wall_ms) || !read_nonce(object, "write", &write) ||
        !read_process(object, &r.process))
        kind = ROW_JSON_DAMAGED;
    json_decref(object);
    if (kind == ROW_JSON_GOOD) {
        r.priority = (int32_t)priority;
        *ret_registration = r;
        if (ret_write)
            *ret_write = write;
    }
    return kind;
}
