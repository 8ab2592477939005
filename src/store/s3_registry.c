/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is decided about candidates. Each has an object of its own, which only
 * it writes; that is conditional too, so that two processes with one id notice
 * each other. Who is silent shows by our own clock: for how long have we seen
 * the same number of beats?
 *
 * Objects of those long silent are removed by the others, after a heartbeat,
 * when lists and heartbeats are at hand anyway. A removal cannot be made
 * conditional everywhere; if it hits one that has just come back to life, that
 * one registers anew with its next heartbeat, and nothing else is at stake.
 */
#include "store/s3.h"

#include "os/clock.h"
#include "os/process.h"
#include "store/row_json.h"

#include <stdlib.h>
#include <string.h>

#define PRUNE_AFTER 10 /* time-outs of silence */
#define PRUNE_MAX 32   /* at a time */
#define PRUNE_PATIENCE (1 * NS_PER_S)

void s3_registry_note(struct s3_store *s3, struct s3_entry *entry, const char *group)
{
    char *key;
    struct s3_entry *head;

    if (entry->is_in_group)
        return;
    key = s3_key_workers(&s3->place, group);
    head = key ? s3_cache_get(&s3->cache, key) : NULL;
    free(key);
    if (!head)
        return; /* out of memory: it is not removed by us */
    LIST_INSERT_HEAD(&head->workers, entry, in_group);
    entry->is_in_group = true;
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

    if (status)
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

/* Those of the group that have been silent for long; returns how many. */
static size_t find_silent(struct s3_store *s3, const struct store_request *request, struct s3_entry *head,
                          struct s3_entry **ret_entries)
{
    gavel_ns now = clock_now();
    struct s3_entry *entry;
    size_t count = 0;

    LIST_FOREACH(entry, &head->workers, in_group)
    {
        if (count == PRUNE_MAX)
            break;
        if (entry->is_known && entry->is_found && strcmp(entry->worker.id, request->registration.id) != 0 &&
            sightings_age(&s3->sightings, request->group, &entry->worker, now) >
                PRUNE_AFTER * request->candidate_timeout_ms)
            ret_entries[count++] = entry;
    }
    return count;
}

static void remove_all(struct s3_store *s3, const struct store_request *request, struct s3_entry **entries,
                       size_t count)
{
    struct s3_object objects[PRUNE_MAX] = {0};
    struct http_call calls[PRUNE_MAX] = {0};
    size_t asked = 0;

    for (; asked < count; asked++) {
        objects[asked].call = &calls[asked];
        calls[asked].give_up_at = ns_min(request->give_up_at, clock_now() + PRUNE_PATIENCE);
        if (!s3_object_delete(s3, &objects[asked], entries[asked]->key))
            break; /* out of memory: another time */
    }
    http_run(s3->http, calls, asked);
    for (size_t i = 0; i < asked; i++) {
        enum s3_outcome outcome = s3_object_outcome(&objects[i]);

        if (outcome != S3_DONE && outcome != S3_ABSENT)
            continue; /* another time */
        sightings_forget(&s3->sightings, request->group, entries[i]->worker.id);
        s3_cache_drop(&s3->cache, entries[i]);
    }
    for (size_t i = 0; i < count; i++)
        s3_object_done(&objects[i]);
}

void s3_registry_prune(struct s3_store *s3, const struct store_request *request)
{
    struct s3_entry *silent[PRUNE_MAX];
    char *key = s3_key_workers(&s3->place, request->group);
    struct s3_entry *head = key ? s3_cache_get(&s3->cache, key) : NULL;
    gavel_ns now = clock_now();
    size_t count;

    free(key);
    /* Nobody becomes silent for long in less than a time-out. */
    if (!head || (head->pruned_at != 0 && now - head->pruned_at < ns_from_ms(request->candidate_timeout_ms)))
        return;
    head->pruned_at = now;
    count = find_silent(s3, request, head, silent);
    if (count > 0)
        remove_all(s3, request, silent, count);
}
