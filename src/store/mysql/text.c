/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SQL from a statement with words in braces, such as
 *
 *     UPDATE {locks} SET lease_ms = {lease_ms} WHERE lock_key = {group}
 *
 * Strings are written as hexadecimal literals: no quote, backslash, sql_mode
 * or character set of the session can change what they mean.
 */
#include "base/assert.h"
#include "store/mysql/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* See is_expired() for the last part. */
#define IF_EXPIRED                                                                                           \
    "(held <> 1 OR COALESCE(" MYSQL_LEFT_US ", 0) <= 0 OR " MYSQL_LEFT_US                                    \
    " > CAST(lease_ms * 1000 + {ahead_us} AS SIGNED))"

static void add_hex(struct text_buffer *text, const char *bytes)
{
    static const char digits[] = "0123456789abcdef";

    text_buffer_add(text, "x'", 2);
    for (; *bytes; bytes++) {
        const char pair[2] = {digits[(unsigned char)*bytes >> 4], digits[(unsigned char)*bytes & 15]};

        text_buffer_add(text, pair, sizeof pair);
    }
    text_buffer_add(text, "'", 1);
}

static void add_string(struct text_buffer *text, const char *string)
{
    text_buffer_add(text, "_utf8mb4 ", 9);
    add_hex(text, string);
}

static void add_process(struct text_buffer *text, const struct process_id *process)
{
    char line[128] = "";

    if (process->pid != 0)
        (void)snprintf(line, sizeof line, "%s %d %" PRIu64 " %" PRIu64, process->boot_id, (int)process->pid,
                       process->pid_ns, process->start_ticks);
    add_string(text, line);
}

/* Words that come from a request as they are. */
static bool add_string_word(struct text_buffer *text, const struct store_request *r, const char *word)
{
    const struct {
        const char *word;
        const char *value;
    } words[] = {
        {"group", r->group},
        {"holder", r->record.holder},
        {"address", r->record.address},
        {"successor", r->record.successor},
        {"wish_successor", r->record.wish_successor},
        {"id", r->registration.id},
        {"candidate_address", r->registration.address},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].word, word) == 0) {
            add_string(text, words[i].value);
            return true;
        }
    }
    return false;
}

struct number_word {
    const char *word;
    uint64_t value;
};

static bool add_one_of(struct text_buffer *text, const struct number_word *words, size_t count,
                       const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i].word, word) == 0) {
            text_buffer_print(text, "%" PRIu64, words[i].value);
            return true;
        }
    }
    return false;
}

/* Of the two that share their place in a request only the one that is there may be read. */
static bool add_number_word(struct text_buffer *text, const struct mysql_call *call, const char *word)
{
    const struct store_request *r = call->request;
    bool has_registration = r->op == STORE_HEARTBEAT || r->op == STORE_LEAVE;
    static const struct store_request nothing;
    const struct record record = has_registration ? nothing.record : r->record;
    const struct registration registration = has_registration ? r->registration : nothing.registration;
    uint64_t timeout_us = (uint64_t)r->candidate_timeout_ms * 1000;
    const struct number_word words[] = {
        {"epoch", record.epoch},
        {"version", r->expected_version},
        {"lease_ms", (uint64_t)record.lease_ms},
        {"lease_us", (uint64_t)record.lease_ms * 1000},
        {"wish_epoch", record.wish_epoch},
        {"wish_force", record.wish_force},
        {"held_after", record.done ? 2 : 0},
        {"wish_after", record.done ? 0 : (uint64_t)rules_wish_column(&record)},
        {"instance", registration.instance},
        {"replaces", call->replaces},
        {"beats", registration.beats},
        {"eligible", registration.eligible},
        {"timeout_us", timeout_us},
        {"silent_us", timeout_us * STORE_SILENT_TIMEOUTS},
        {"prune_us", timeout_us * STORE_PRUNE_TIMEOUTS},
        {"ahead_us", MYSQL_AHEAD_US},
        {"max", RULES_NUMBER_MAX},
        {"lease_max", STORE_DURATION_MAX_MS},
        {"lease_unknown", MYSQL_LEASE_UNKNOWN_MS},
        {"rows_max", STORE_GROUPS_MAX + 1}, /* one more, to know whether there is one */
        {"format", MYSQL_ROW_FORMAT},
    };

    return add_one_of(text, words, sizeof words / sizeof *words, word);
}

/* Byte by byte, whatever the collation of the column takes for equal. */
static void add_prefix(struct text_buffer *text, const char *prefix)
{
    if (!prefix || !*prefix) {
        text_buffer_print(text, "TRUE");
        return;
    }
    text_buffer_print(text, "LEFT(CAST(CONVERT(lock_key USING utf8mb4) AS BINARY), %zu) = ", strlen(prefix));
    add_hex(text, prefix);
}

static void add_word(struct text_buffer *text, const struct mysql_store *mysql, const struct mysql_call *call,
                     const char *word)
{
    const struct store_request *r = call->request;
    const char *table = mysql->target.table;

    if (strcmp(word, "locks") == 0)
        text_buffer_print(text, "`%s`", table);
    else if (strcmp(word, "epochs") == 0 || strcmp(word, "candidates") == 0)
        text_buffer_print(text, "`%s_%s`", table, word);
    else if (strcmp(word, "group_bytes") == 0)
        add_hex(text, r->group);
    else if (strcmp(word, "holder_bytes") == 0)
        add_hex(text, r->record.holder);
    else if (strcmp(word, "nonce") == 0)
        text_buffer_print(text, "x'%016" PRIx64 "%016" PRIx64 "'", r->record.nonce.high, r->record.nonce.low);
    else if (strcmp(word, "process") == 0)
        add_process(text, &r->record.process);
    else if (strcmp(word, "candidate_process") == 0)
        add_process(text, &r->registration.process);
    else if (strcmp(word, "priority") == 0)
        text_buffer_print(text, "%" PRIi32, r->registration.priority);
    else if (strcmp(word, "since_ms") == 0)
        text_buffer_print(text, "%" PRIi64, r->registration.since_wall_ms);
    else if (strcmp(word, "if_prefix") == 0)
        add_prefix(text, r->prefix);
    else if (strcmp(word, "if_expired") == 0)
        mysql_text_fill(text, mysql, call, r->must_be_expired ? IF_EXPIRED : "TRUE");
    else if (strcmp(word, "if_epoch") == 0 && r->record.epoch == 0)
        text_buffer_print(text, "TRUE");
    else if (strcmp(word, "if_epoch") == 0)
        text_buffer_print(text, "epoch = %" PRIu64, r->record.epoch);
    else
        ASSERT(add_string_word(text, r, word) || add_number_word(text, call, word));
}

void mysql_text_fill(struct text_buffer *text, const struct mysql_store *mysql, const struct mysql_call *call,
                     const char *statement)
{
    const char *at = statement;

    while (*at) {
        size_t plain = strcspn(at, "{");
        char word[32];

        text_buffer_add(text, at, plain);
        at += plain;
        if (*at == '{') {
            size_t length = strcspn(at + 1, "}");

            ASSERT(length < sizeof word);
            memcpy(word, at + 1, length);
            word[length] = '\0';
            add_word(text, mysql, call, word);
            at += length + 2;
        }
    }
}
