/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is decided about candidates. Each has an object of its own, which only
 * it writes; that is conditional too, so that two processes with one id notice
 * each other. Who is silent shows by our own clock: for how long have we seen
 * the same number of beats?
 *
 * A list tells of each object its ETag and its size. Everybody beats all the
 * time, so all ETags are new each time, and if each new one were read, n
 * candidates would read n times n objects. So the size says whether there is
 * anything to read: it is padded to a length whose remainder is a hash of all
 * but the beats. Should two have the same, what has changed is seen a little
 * later, as everything is read after so many lists.
 */
#include "store/s3/s3.h"

#include "base/hash.h"
#include "os/clock.h"
#include "os/process.h"
#include "store/row_json.h"
#include "store/s3/cost.h"

#include <stdlib.h>
#include <string.h>

#define MARKS 1009 /* a prime: remainders of sizes are spread well */

void s3_registry_note(struct s3_store *s3, struct s3_entry *entry, const char *group)
{
    char *key;
    struct s3_entry *head;

    if (entry->is_in_group)
        return;
    key = s3_key_workers(&s3->target, group);
    head = key ? s3_cache_get(&s3->cache, key) : NULL;
    free(key);
    if (!head)
        return; /* out of memory: it is not removed by us */
    LIST_INSERT_HEAD(&head->workers, entry, in_group);
    entry->is_in_group = true;
}

/* Of all that is in a registration but its beats. */
static size_t mark_of(const struct registration *r)
{
    uint64_t hash = hash_bytes(HASH_BEGIN, &r->instance, sizeof r->instance);

    hash = hash_bytes(hash, &r->since_wall_ms, sizeof r->since_wall_ms);
    hash = hash_bytes(hash, &r->priority, sizeof r->priority);
    hash = hash_bytes(hash, &r->eligible, sizeof r->eligible);
    hash = hash_bytes(hash, &r->process.pid, sizeof r->process.pid);
    hash = hash_bytes(hash, &r->process.pid_ns, sizeof r->process.pid_ns);
    hash = hash_bytes(hash, &r->process.start_ticks, sizeof r->process.start_ticks);
    hash = hash_text(hash, r->process.boot_id);
    hash = hash_text(hash, r->address);
    return (size_t)(hash % MARKS);
}

/* The text with blanks at its end, so that its length tells the mark; it is taken over. */
static char *pad(char *text, size_t mark)
{
    size_t length = strlen(text);
    size_t blanks = (mark + MARKS - length % MARKS) % MARKS;
    char *padded = realloc(text, length + blanks + 1);

    if (!padded) {
        free(text);
        return NULL;
    }
    memset(padded + length, ' ', blanks);
    padded[length + blanks] = '\0';
    return padded;
}

bool s3_registry_is_beat(struct s3_entry *entry, const char *etag, size_t size)
{
    if (!entry->is_found || entry->is_own || entry->size == 0 || size == 0 ||
        entry->size % MARKS != size % MARKS || entry->unread + 1 >= S3_LISTS_PER_READ)
        return false;
    entry->unread++;
    entry->size = size;
    entry->write = (struct nonce){0}; /* it is another one, which we do not know */
    entry->worker.beats++;            /* at least; what matters is that it grows */
    entry->worker.last_wall_ms = clock_wall_ms();
    memcpy(entry->etag, etag, strlen(etag) + 1);
    return true;
}

static enum gavel_status decide(struct s3_edit *edit, char **ret_body)
{
    const struct store_request *request = edit->request;
    const struct s3_entry *entry = edit->entry;
    struct s3_store *s3 = edit->s3;
    gavel_ns now = clock_now();
    bool is_there = entry->is_known && entry->is_found;

    if (is_there) {
        struct registration_row row = {.registration = entry->worker};
        struct process_id process = process_within_sight(&entry->worker.process, &s3->self);

        row.beat_at = now - ns_from_ms(sightings_age(&s3->sightings, request->group, &entry->worker, now));
        if (!rules_heartbeat(&row, request, now, process_is_known_dead(&process, &s3->self), edit->reply))
            return GAVEL_ERR_ID_IN_USE;
    }
    edit->worker = request->registration;
    edit->worker.age_ms = -1;
    edit->worker.last_wall_ms = clock_wall_ms();
    if (edit->worker.since_wall_ms == 0)
        edit->worker.since_wall_ms = is_there && entry->worker.instance == edit->worker.instance
                                         ? entry->worker.since_wall_ms
                                         : edit->worker.last_wall_ms;
    *ret_body = registration_json_write(&edit->worker, edit->write);
    if (*ret_body)
        *ret_body = pad(*ret_body, mark_of(&edit->worker));
    if (!*ret_body)
        reply_fail(edit->reply, GAVEL_ERR_NO_MEMORY, "out of memory while writing to an object store");
    return *ret_body ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;
}

/* A later heartbeat of the same instance says all that this one would. */
static bool is_ours(const struct s3_edit *edit)
{
    return edit->entry->worker.instance == edit->request->registration.instance &&
           edit->entry->worker.beats >= edit->request->registration.beats;
}

static void conclude(struct s3_edit *edit, enum gavel_status status)
{
    const struct store_request *request = edit->request;

    if (status != GAVEL_OK)
        return; /* the reply says why */
    *edit->reply = (struct store_reply){0};
    if (request->op == STORE_LEAVE) {
        if (!edit->entry->is_found)
            sightings_forget(&edit->s3->sightings, request->group, request->registration.id);
        return;
    }
    (void)sightings_age(&edit->s3->sightings, request->group, &edit->entry->worker, clock_now()); /* noted */
    s3_registry_note(edit->s3, edit->entry, request->group);
}

const struct s3_kind s3_kind_worker = {
    .is_worker = true, .decide = decide, .is_ours = is_ours, .conclude = conclude};
