/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is worth doing after a batch is answered, and may be left undone.
 *
 * Objects of candidates that have been silent for long are removed by the
 * others, after a heartbeat: that is when somebody is there who has watched
 * them. A removal cannot be made conditional everywhere; if it hits one that
 * has just come back to life, that one registers anew with its next heartbeat,
 * and nothing else is at stake. The state of a group is never removed.
 *
 * A group that was claimed for the first time gets a metadata.json, which says
 * to people who look into the bucket what they see. Nothing depends on it.
 */
#include "store/s3/s3.h"

#include "os/clock.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHANNELS 32
#define CHORES_MAX 1024 /* the rest another time */

/* NULL: there are enough, or out of memory. */
static struct s3_chore *add(struct s3_chores *chores)
{
    if (chores->count == CHORES_MAX)
        return NULL;
    if (chores->count == chores->capacity) {
        size_t capacity = chores->capacity ? 2 * chores->capacity : 8;
        struct s3_chore *grown = reallocarray(chores->chores, capacity, sizeof *grown);

        if (!grown)
            return NULL;
        chores->chores = grown;
        chores->capacity = capacity;
    }
    return memset(&chores->chores[chores->count++], 0, sizeof *chores->chores);
}

/*
 * For how long nothing new was seen of a candidate, up to the last look: one
 * who has not looked for long (asleep, cut off) knows nothing of the others. Of
 * what was written here it is known without looking.
 */
static gavel_ms silence_of(struct s3_store *s3, const char *group, const struct s3_entry *entry, gavel_ns now)
{
    gavel_ms age_ms = sightings_age(&s3->sightings, group, &entry->worker, now);

    return entry->is_own ? age_ms : age_ms - ms_from_ns(now - entry->looked_at);
}

void s3_chores_prune(struct s3_chores *chores, const struct store_request *request)
{
    struct s3_store *s3 = chores->s3;
    char *key = s3_key_workers(&s3->target, request->group);
    struct s3_entry *head = key ? s3_cache_get(&s3->cache, key) : NULL;
    gavel_ns now = clock_now();
    struct s3_entry *entry;

    free(key);
    /* Nobody becomes silent for long in less than a time-out. */
    if (!head || (head->pruned_at != 0 && now - head->pruned_at < ns_from_ms(request->candidate_timeout_ms)))
        return;
    head->pruned_at = now;
    LIST_FOREACH(entry, &head->workers, in_group) {
        struct s3_chore *chore;

        if (!entry->is_known || !entry->is_found || strcmp(entry->worker.id, request->registration.id) == 0 ||
            silence_of(s3, request->group, entry, now) <=
                STORE_PRUNE_TIMEOUTS * request->candidate_timeout_ms)
            continue;
        chore = add(chores);
        if (!chore)
            return;
        chore->key = strdup(entry->key);
        chore->entry = entry;
        entry->is_known = false; /* if it stays it is read again; and nobody else removes it now */
        name_copy(chore->group, sizeof chore->group, request->group);
    }
}

void s3_chores_describe(struct s3_chores *chores, const char *group)
{
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct s3_chore *chore = add(chores);
    struct tm parts = {0};
    char created[32];
    json_t *about;

    if (!chore || !gmtime_r(&now, &parts) || strftime(created, sizeof created, "%FT%TZ", &parts) == 0)
        return;
    about =
        json_pack("{si ss ss ss s{ss ss}}", "format", 1, "group", group, "createdAt", created, "by",
                  "gavel " GAVEL_VERSION, "layout", "state.json", "the mandate: who leads, with which epoch",
                  "workers/worker=<id>.json", "a candidate each; <id> is percent-encoded");
    chore->body = about ? json_dumps(about, JSON_INDENT(2)) : NULL;
    if (chore->body) /* else it would be a removal */
        chore->key = s3_key_metadata(&chores->s3->target, group);
    json_decref(about);
}

struct channel {
    struct s3_chores *chores;
    struct s3_object object;
    struct s3_chore *chore;
};

static bool channel_next(struct channel *channel)
{
    struct s3_chores *chores = channel->chores;

    while (chores->next < chores->count) {
        struct s3_chore *chore = channel->chore = &chores->chores[chores->next++];
        char *body = chore->body;

        if (!chore->key)
            continue;
        chore->body = NULL; /* handed over */
        if (body ? s3_object_put(chores->s3, &channel->object, chore->key, body, "", S3_QUOTED)
                 : s3_object_delete(chores->s3, &channel->object, chore->key))
            return true;
    }
    return false;
}

static bool channel_go_on(struct http_call *call)
{
    struct channel *channel = call->user;
    struct s3_store *s3 = channel->chores->s3;
    struct s3_chore *chore = channel->chore;
    enum s3_outcome outcome = s3_object_outcome(&channel->object);

    if (chore->entry && (outcome == S3_DONE || outcome == S3_ABSENT)) {
        sightings_forget(&s3->sightings, chore->group, chore->entry->worker.id);
        s3_cache_drop(&s3->cache, chore->entry);
        chore->entry = NULL;
    }
    return channel_next(channel);
}

void s3_chores_run(struct s3_chores *chores, gavel_ns until)
{
    struct channel channels[CHANNELS] = {0};
    struct http_call calls[CHANNELS] = {0};
    size_t used = 0;

    for (; used < CHANNELS; used++) {
        channels[used] = (struct channel){.chores = chores, .object = {.call = &calls[used]}};
        calls[used] =
            (struct http_call){.user = &channels[used], .on_done = channel_go_on, .give_up_at = until};
        if (!channel_next(&channels[used]))
            break;
    }
    http_run(chores->s3->http, calls, used);
    for (size_t i = 0; i < CHANNELS; i++)
        s3_object_done(&channels[i].object);
}

void s3_chores_done(struct s3_chores *chores)
{
    for (size_t i = 0; i < chores->count; i++) {
        free(chores->chores[i].key);
        free(chores->chores[i].body);
    }
    free(chores->chores);
    *chores = (struct s3_chores){0};
}
