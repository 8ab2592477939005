/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of candidates and of groups: ListObjectsV2, page by page, and then a
 * GET of each object that has changed since it was last read, many at once.
 */
#include "store/s3/s3.h"

#include "os/clock.h"
#include "os/process.h"

#include <stdlib.h>
#include <string.h>

#define CHANNELS 32
#define WORKERS_MAX (4 * STORE_CANDIDATES_MAX) /* looked at: most of them are silent if there are so many */

static bool is_of_groups(const struct s3_listing *listing) { return listing->request->op == STORE_GROUPS; }

static bool fail_short(struct s3_listing *listing)
{
    reply_fail(listing->reply, GAVEL_ERR_NO_MEMORY, "out of memory while listing an object store");
    listing->is_over = true;
    return false;
}

static bool fail_as_answered(struct s3_listing *listing, const struct s3_object *object)
{
    char message[256];
    enum gavel_status status = s3_explain(listing->s3, object, message, sizeof message);

    reply_fail(listing->reply, status, "%s", message);
    listing->is_over = true;
    return false;
}

static bool ask_page(struct s3_listing *listing)
{
    if (!s3_object_list(listing->s3, &listing->object, listing->asked ? listing->asked : listing->prefix,
                        is_of_groups(listing) ? "/" : "", listing->token))
        return fail_short(listing);
    return true;
}

bool s3_listing_start(struct s3_listing *listing)
{
    const struct s3_target *target = &listing->s3->target;

    listing->prefix =
        is_of_groups(listing) ? s3_key_groups(target) : s3_key_workers(target, listing->request->group);
    if (is_of_groups(listing) && listing->request->prefix)
        listing->asked = s3_key_group_prefix(target, listing->request->prefix);
    if (!listing->prefix || (is_of_groups(listing) && listing->request->prefix && !listing->asked))
        return fail_short(listing);
    if (strlen(listing->prefix) > S3_KEY_MAX) {
        reply_fail(
            listing->reply, GAVEL_ERR_INVALID,
            "the name of the group is too long for an object store: with the prefix of %.80s it makes a key of more than %d bytes; choose a shorter one",
            target->where, S3_KEY_MAX);
        listing->is_over = true;
        return false;
    }
    listing->object.call->give_up_at = listing->request->give_up_at;
    return ask_page(listing);
}

static bool add_item(struct s3_listing *listing, const char *key, const char *end, const char *etag,
                     size_t size)
{
    struct s3_item *item;
    struct text_buffer text = {0};

    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 16;
        struct s3_item *grown = reallocarray(listing->items, capacity, sizeof *grown);

        if (!grown)
            return false;
        listing->items = grown;
        listing->capacity = capacity;
    }
    text_buffer_add(&text, key, strlen(key));
    text_buffer_add(&text, end, strlen(end));
    if (!text.bytes)
        return false;
    item = &listing->items[listing->count++];
    *item = (struct s3_item){.key = text.bytes};
    s3_etag_bare(etag, item->etag);
    item->size = size;
    return true;
}

/* The objects or the groups of one page. False: out of memory. */
static bool take_page(struct s3_listing *listing, struct s3_span page)
{
    const char *element = is_of_groups(listing) ? "CommonPrefixes" : "Contents";
    size_t most = is_of_groups(listing) ? STORE_GROUPS_MAX : WORKERS_MAX;
    struct s3_span content;

    while (s3_xml_find(page, element, &content, &page)) {
        char key[3 * S3_KEY_MAX];
        char etag[S3_ETAG_MAX + 1] = "";
        char size[24] = "";

        if (listing->count == most) {
            listing->is_over = true;
            listing->reply->has_more = is_of_groups(listing);
            break;
        }
        if (!s3_xml_text(content, is_of_groups(listing) ? "Prefix" : "Key", key, sizeof key))
            continue;                 /* nothing of ours is that long */
        if (!is_of_groups(listing)) { /* without one of these the object is read */
            (void)s3_xml_text(content, "ETag", etag, sizeof etag);
            (void)s3_xml_text(content, "Size", size, sizeof size);
        }
        if (!add_item(listing, key, is_of_groups(listing) ? "state.json" : "", etag, strtoul(size, NULL, 10)))
            return false;
    }
    return true;
}

bool s3_listing_go_on(struct s3_listing *listing)
{
    enum s3_outcome outcome = s3_object_outcome(&listing->object);
    const struct http_call *call = listing->object.call;
    char truncated[8] = "";
    char token[sizeof listing->token] = "";
    struct s3_span page;

    if (outcome == S3_DENIED && !listing->has_new_credentials &&
        s3_credentials_renew(listing->s3, listing->object.generation)) {
        listing->has_new_credentials = true;
        return ask_page(listing);
    }
    if (outcome != S3_DONE)
        return fail_as_answered(listing, &listing->object);
    page = (struct s3_span){call->answer, call->answer_size};
    if (!s3_xml_text(page, "IsTruncated", truncated, sizeof truncated)) {
        reply_fail(listing->reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "the server of %s answers a ListObjectsV2 with something else; is it an S3 server?",
                   listing->s3->target.where);
        listing->is_over = true;
        return false;
    }
    if (!take_page(listing, page))
        return fail_short(listing);
    if (listing->is_over || strcmp(truncated, "true") != 0) {
        listing->is_over = true;
        return false;
    }
    if (!s3_xml_text(page, "NextContinuationToken", token, sizeof token) || !*token ||
        strcmp(token, listing->token) == 0) {
        reply_fail(listing->reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "the server of %s ends a list early without saying where to continue",
                   listing->s3->target.where);
        listing->is_over = true;
        return false;
    }
    memcpy(listing->token, token, sizeof token);
    return ask_page(listing);
}

/* The objects of all lists, as they are taken by whichever channel is free. */
struct reading {
    struct s3_store *s3;
    struct s3_listing *const *listings;
    size_t listing_count;
    size_t listing; /* the next one is this, */
    size_t item;    /* and this of it */
};

struct channel {
    struct reading *reading;
    struct s3_object object;
    struct s3_listing *listing;
    struct s3_item *item;
};

/* Whether the object need not be read to know it. */
static bool is_known(const struct s3_listing *listing, const struct s3_item *item)
{
    if (!item->etag[0] || !item->entry->is_known)
        return false;
    return strcmp(item->entry->etag, item->etag) == 0 ||
           (!is_of_groups(listing) && s3_registry_is_beat(item->entry, item->etag, item->size));
}

/* Prepares a GET of the next object that is not known as it is; false: none is left. */
static bool channel_next(struct channel *channel)
{
    struct reading *reading = channel->reading;

    for (; reading->listing < reading->listing_count; reading->listing++, reading->item = 0) {
        struct s3_listing *listing = reading->listings[reading->listing];

        while (listing->reply->status == GAVEL_OK && reading->item < listing->count) {
            struct s3_item *item = &listing->items[reading->item++];

            item->entry = s3_cache_get(&reading->s3->cache, item->key);
            if (!item->entry) {
                (void)fail_short(listing);
                break;
            }
            item->is_read = is_known(listing, item);
            if (item->is_read)
                continue;
            channel->listing = listing;
            channel->item = item;
            channel->object.call->give_up_at = listing->request->give_up_at;
            if (s3_object_get(reading->s3, &channel->object, item->key,
                              item->entry->is_known ? item->entry->etag : ""))
                return true;
            (void)fail_short(listing);
        }
    }
    return false;
}

static bool channel_go_on(struct http_call *call)
{
    struct channel *channel = call->user;
    struct s3_listing *listing = channel->listing;
    struct store_reply ignored = {0};

    channel->item->is_read = true;
    switch (s3_object_outcome(&channel->object)) {
    case S3_DONE:
        /* One that is damaged or of a newer gavel is left out; the others are listed. */
        if (!s3_entry_take(listing->s3, channel->item->entry, &channel->object, !is_of_groups(listing),
                           &ignored))
            channel->item->entry = NULL;
        break;
    case S3_UNCHANGED:
        break;
    case S3_ABSENT:
        s3_entry_absent(channel->item->entry);
        break;
    default:
        if (listing->reply->status == GAVEL_OK)
            (void)fail_as_answered(listing, &channel->object);
    }
    return channel_next(channel);
}

static void add_candidate(struct s3_listing *listing, const struct s3_item *item)
{
    struct s3_store *s3 = listing->s3;
    const struct store_request *request = listing->request;
    struct registration registration = item->entry->worker;
    char id[NAME_MAX_BYTES + 1];
    struct registration *slot;

    if (!s3_name_in_key(item->key, listing->prefix, ".json", id) || strcmp(id, registration.id) != 0)
        return; /* not what gavel wrote there */
    s3_registry_note(s3, item->entry, request->group);
    item->entry->looked_at = clock_now();
    registration.age_ms =
        sightings_age(&s3->sightings, request->group, &registration, item->entry->looked_at);
    registration.process = process_within_sight(&registration.process, &s3->self);
    if (registration.age_ms > request->candidate_timeout_ms) {
        reply_add_silent(listing->reply, &registration, registration.age_ms, request->candidate_timeout_ms);
        return;
    }
    if (process_is_known_dead(&registration.process, &s3->self)) {
        reply_add_silent(listing->reply, &registration, 0, 0);
        return;
    }
    slot = reply_add_registration(listing->reply);
    if (slot)
        *slot = registration;
}

static void add_group(struct s3_listing *listing, const struct s3_item *item)
{
    struct group_row *row;
    char group[NAME_MAX_BYTES + 1];

    if (!s3_name_in_key(item->key, listing->prefix, "/state.json", group))
        return;
    row = reply_add_group(listing->reply);
    if (!row)
        return;
    memcpy(row->group, group, sizeof group);
    row->record = item->entry->row.record;
    row->record.process = process_within_sight(&row->record.process, &listing->s3->self);
    row->expired = !row->record.held;
    row->remaining_ms = row->record.held ? -1 : 0;
}

static void make_reply(struct s3_listing *listing)
{
    struct store_reply *reply = listing->reply;

    for (size_t i = 0; reply->status == GAVEL_OK && i < listing->count; i++) {
        const struct s3_item *item = &listing->items[i];

        if (!item->is_read) {
            (void)fail_short(listing); /* http_run() gives up for nothing else */
            return;
        }
        if (!item->entry || !item->entry->is_known || !item->entry->is_found)
            continue; /* left out, or gone meanwhile */
        if (is_of_groups(listing))
            add_group(listing, item);
        else
            add_candidate(listing, item);
    }
    if (reply->registration_count > 0)
        qsort(reply->registrations, reply->registration_count, sizeof *reply->registrations,
              registration_order);
    if (reply->registration_count > STORE_CANDIDATES_MAX)
        reply->registration_count = STORE_CANDIDATES_MAX;
    if (reply->group_count > 0)
        qsort(reply->groups, reply->group_count, sizeof *reply->groups, group_order);
}

void s3_listings_finish(struct s3_store *s3, struct s3_listing *const *listings, size_t count)
{
    struct reading reading = {.s3 = s3, .listings = listings, .listing_count = count};
    struct channel channels[CHANNELS] = {0};
    struct http_call calls[CHANNELS] = {0};
    size_t used = 0;

    for (; used < CHANNELS; used++) {
        channels[used] = (struct channel){.reading = &reading, .object = {.call = &calls[used]}};
        calls[used].user = &channels[used];
        calls[used].on_done = channel_go_on;
        if (!channel_next(&channels[used]))
            break;
    }
    http_run(s3->http, calls, used);
    for (size_t i = 0; i < CHANNELS; i++)
        s3_object_done(&channels[i].object);
    for (size_t i = 0; i < count; i++)
        make_reply(listings[i]);
}

void s3_listing_done(struct s3_listing *listing)
{
    if (!listing)
        return;
    s3_object_done(&listing->object);
    for (size_t i = 0; i < listing->count; i++)
        free(listing->items[i].key);
    free(listing->items);
    free(listing->prefix);
    free(listing->asked);
    free(listing);
}
