/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of groups as server-sent events, each once and in order, as this node's
 * table learns of them. The id of an event is REVISION.PART. A reader that returns,
 * here or at any other node, names the last event that it has seen (Last-Event-ID)
 * and misses nothing that is still kept. If something is lost, it is told so
 * ("missed"): it should then read the whole state and go on.
 *
 * A slow reader gets what it has missed from the history of the table; nothing is
 * kept for it here.
 */
#include "daemon/api/ask.h"

#include <errno.h>
#include <event2/keyvalq_struct.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under one hold of the lock so many changes are looked at, and so many copied. */
#define PAGE_LOOKS 256
#define PAGE_COPIES 32

struct watch {
    struct api_stream stream; /* first */
    struct table_cursor at;   /* the newest change that was looked at */
    bool has_group;           /* this one, else all that begin with it */
    char name[NAME_MAX_BYTES + 1];
};

struct copy {
    uint8_t *bytes;
    size_t size;
};

struct haul {
    struct copy copies[PAGE_COPIES];
    size_t count;
    bool has_more;
    bool is_forgotten;
    uint64_t revision;
};

static bool is_wanted(const struct watch *watch, const struct table_change *change)
{
    if (change->kind == GAVEL__CHANGE__KIND__SESSION_ENDED)
        return false; /* of no group */
    return watch->has_group ? strcmp(change->group, watch->name) == 0
                            : strncmp(change->group, watch->name, strlen(watch->name)) == 0;
}

/* The cursor goes past what was taken; without memory it stays before it, and the next change, or the reader,
 * comes back to it. */
static void take_haul(struct watch *watch, struct table_box *box, struct haul *haul)
{
    const struct table_change *change = NULL;
    bool is_full = false;
    bool has_memory = true;

    *haul = (struct haul){0};
    table_box_lock(box);
    haul->revision = box->table.revision;
    for (int i = 0; i < PAGE_LOOKS && !is_full; i++) {
        haul->is_forgotten = table_history_after(&box->table, watch->at, &change) != GAVEL_OK;
        if (haul->is_forgotten || !change)
            break;
        if (is_wanted(watch, change)) {
            struct copy *copy = &haul->copies[haul->count];

            copy->bytes = malloc(change->size + 1);
            has_memory = copy->bytes;
            if (!has_memory)
                break;
            memcpy(copy->bytes, change->bytes, change->size);
            copy->size = change->size;
            is_full = ++haul->count == PAGE_COPIES;
        }
        watch->at = change->at;
    }
    haul->has_more = change && !haul->is_forgotten && has_memory;
    table_box_unlock(box);
}

static const char *const kinds[] = {
    [GAVEL__CHANGE__KIND__ELECTED] = "elected",
    [GAVEL__CHANGE__KIND__VACANT] = "vacant",
    [GAVEL__CHANGE__KIND__WISHED] = "wished",
    [GAVEL__CHANGE__KIND__WISH_OVER] = "wish_over",
    [GAVEL__CHANGE__KIND__JOINED] = "joined",
    [GAVEL__CHANGE__KIND__LEFT] = "left",
    [GAVEL__CHANGE__KIND__CHANGED] = "changed",
    [GAVEL__CHANGE__KIND__DONE] = "done",
    [GAVEL__CHANGE__KIND__REOPENED] = "reopened",
    [GAVEL__CHANGE__KIND__NOTE_PUT] = "note_put",
    [GAVEL__CHANGE__KIND__NOTE_DELETED] = "note_deleted",
    [GAVEL__CHANGE__KIND__GROUP_GONE] = "group_gone",
};

/* What only some kinds have. */
static void add_rest(json_t *json, const Gavel__Change *change)
{
    bool is_note =
        change->kind == GAVEL__CHANGE__KIND__NOTE_PUT || change->kind == GAVEL__CHANGE__KIND__NOTE_DELETED;

    /* A key that does not go in for want of memory makes the object smaller. */
    if (change->kind == GAVEL__CHANGE__KIND__ELECTED)
        (void)json_object_set_new(json, "former_leader", json_text(change->previous_holder));
    if (change->kind == GAVEL__CHANGE__KIND__VACANT || change->kind == GAVEL__CHANGE__KIND__LEFT)
        (void)json_object_set_new(json, "reason", json_string(api_ending_name(change->why)));
    if (change->kind == GAVEL__CHANGE__KIND__WISHED) {
        (void)json_object_set_new(json, "successor", json_text(change->successor));
        (void)json_object_set_new(json, "force", json_boolean(change->is_forced));
    }
    if (is_note)
        (void)json_object_set_new(json, "key", json_words(change->key));
    if (change->kind == GAVEL__CHANGE__KIND__NOTE_PUT) {
        (void)json_object_set_new(json, "value_base64", json_base64(change->value.data, change->value.len));
        (void)json_object_set_new(json, "created_revision", json_u64(change->create_revision));
    }
}

static void tell(struct watch *watch, const Gavel__Change *change)
{
    json_t *json;
    char id[40];

    if ((size_t)change->kind >= sizeof kinds / sizeof *kinds || !kinds[change->kind])
        return; /* of a later version */
    (void)snprintf(id, sizeof id, "%" PRIu64 ".%" PRIu32, change->revision, change->part);
    json =
        json_pack("{s:o,s:o,s:o,s:o,s:o}", "revision", json_u64(change->revision), "group",
                  json_words(change->group), "candidate", json_text(change->holder), "address",
                  json_text(change->address), "epoch", change->epoch ? json_u64(change->epoch) : json_null());
    if (json)
        add_rest(json, change);
    api_stream_tell(&watch->stream, id, kinds[change->kind], json);
}

static void tell_missed(struct watch *watch, uint64_t revision)
{
    char id[24];

    watch->at = (struct table_cursor){.revision = revision, .part = UINT32_MAX};
    (void)snprintf(id, sizeof id, "%" PRIu64, revision);
    api_stream_tell(&watch->stream, id, "missed", json_pack("{s:o}", "revision", json_u64(revision)));
}

static void pump(struct api_stream *stream)
{
    struct watch *watch = (struct watch *)stream;
    struct haul haul = {.has_more = true};

    while (haul.has_more && api_stream_waiting(stream) < API_STREAM_BYTES_MAX) {
        take_haul(watch, &stream->connection->api->shared->table, &haul);
        for (size_t i = 0; i < haul.count; i++) {
            Gavel__Change *change = gavel__change__unpack(NULL, haul.copies[i].size, haul.copies[i].bytes);

            if (change) { /* no memory: it is lost, and the next one's id shows it */
                tell(watch, change);
                gavel__change__free_unpacked(change, NULL);
            }
            free(haul.copies[i].bytes);
        }
        if (haul.is_forgotten)
            tell_missed(watch, haul.revision);
    }
}

static void gone(struct api_stream *stream) { free(stream); }

/* The changes come when the disk answers again, so a reader may stay; it must not take silence for peace. */
static void blinded(struct api_stream *stream)
{
    struct watch *watch = (struct watch *)stream;
    bool is_blind = stream->connection->api->is_blind;
    json_t *json = json_pack("{s:o}", "revision", json_u64(watch->at.revision));

    if (json && is_blind)
        (void)json_object_set_new(json, "reason", json_string("disk_hangs")); /* no memory: without it */
    api_stream_tell(stream, NULL, is_blind ? "stale" : "fresh", json);
}

static const struct api_stream_kind kind = {.pump = pump, .gone = gone, .blinded = blinded};

/* "12.3", or "12" for all of revision 12. False: the call has been answered. */
static bool read_cursor(struct api_call *call, const char *text, struct table_cursor *ret_at)
{
    uint64_t revision;
    uint64_t part = UINT32_MAX;
    char *end;

    errno = 0;
    revision = strtoull(text, &end, 10);
    if (end != text && *end == '.' && end[1] >= '0' && end[1] <= '9')
        part = strtoull(end + 1, &end, 10);
    if (errno || *end != '\0' || text[0] < '0' || text[0] > '9' || revision > INT64_MAX ||
        part > UINT32_MAX) {
        api_reply_error(call, 400, GAVEL_ERR_INVALID,
                        "\"%.32s\" is not a place to start; write a revision, or the id of the last event",
                        text);
        return false;
    }
    *ret_at = (struct table_cursor){.revision = revision, .part = (uint32_t)part};
    return true;
}

/* False: the call has been answered. */
static bool read_query(struct api_call *call, struct watch *ret_watch)
{
    const char *seen = evhttp_find_header(evhttp_request_get_input_headers(call->http), "Last-Event-ID");
    struct evkeyvalq pairs;
    const char *prefix = "";
    const char *after;
    bool is_good =
        api_query_read(call, &pairs) && api_query_text(call, &pairs, "prefix", NAME_MAX_BYTES, &prefix);

    after = is_good ? evhttp_find_header(&pairs, "after") : NULL;
    if (is_good && (seen || after)) /* the header is what a browser sends when it comes back: it is newer */
        is_good = read_cursor(call, seen ? seen : after, &ret_watch->at);
    (void)snprintf(ret_watch->name, sizeof ret_watch->name, "%s",
                   ret_watch->has_group ? call->names.group : prefix);
    evhttp_clear_headers(&pairs);
    return is_good;
}

static void begin(struct api_call *call, bool has_group)
{
    static const char hello[] = "retry: 1000\n\n";
    struct table_box *box = &call->api->shared->table;
    struct watch *watch = calloc(1, sizeof *watch);
    char id[40];

    if (!watch) {
        api_reply_json(call, 500, NULL);
        return;
    }
    table_box_lock(box);
    watch->at = (struct table_cursor){.revision = box->table.revision, .part = UINT32_MAX};
    table_box_unlock(box);
    watch->has_group = has_group;
    if (!read_query(call, watch) || !api_stream_may_open(call)) {
        free(watch);
        return;
    }
    api_stream_open(call, &watch->stream, &kind);
    api_stream_push(&watch->stream, hello, sizeof hello - 1);
    if (watch->at.part == UINT32_MAX)
        (void)snprintf(id, sizeof id, "%" PRIu64, watch->at.revision);
    else
        (void)snprintf(id, sizeof id, "%" PRIu64 ".%" PRIu32, watch->at.revision, watch->at.part);
    api_stream_tell(&watch->stream, id, "watching",
                    json_pack("{s:o}", "revision", json_u64(watch->at.revision)));
    if (call->api->is_blind)
        blinded(&watch->stream);
    pump(&watch->stream);
}

void api_get_group_watch(struct api_call *call) { begin(call, true); }

void api_get_watch(struct api_call *call) { begin(call, false); }
