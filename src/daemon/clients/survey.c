/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In which groups a session was a candidate at some revision, from what the table
 * knows of it now and what the history says since. If the first change of a group
 * is that the session left, it was a candidate there; if it is that the session
 * joined, it was not. In all other groups, what holds now held then.
 */
#include "daemon/clients/internal.h"

#include <stdlib.h>
#include <string.h>

/* More changes to look through than this, or more bytes of names, and others have their turn first. */
#define LONG_LOOK 4096
#define LONG_LIST 65536

/* What the session did first in a group. */
struct deed {
    RB_ENTRY(deed) by_name;
    SLIST_ENTRY(deed) next;
    bool was_leaving;
    char name[];
};
RB_HEAD(deeds, deed);

/* The names of groups, one after the other, each with its NUL. */
struct names {
    char *bytes;
    size_t size;
    size_t capacity;
};

struct survey {
    struct clients *clients;
    uint64_t session;
    struct deeds deeds; /* since then */
    SLIST_HEAD(, deed) all;
    struct names names; /* of the groups in which it is a candidate now */
    uint64_t now;       /* the revision of both */
    size_t looked;      /* changes that were looked through */
};

static int compare(const struct deed *a, const struct deed *b) { return strcmp(a->name, b->name); }

CLIENTS_TREE(deeds, deed, by_name, compare)

static bool remember(struct survey *survey, const char *name, bool was_leaving)
{
    size_t length = strlen(name) + 1;
    struct deed *deed = malloc(sizeof *deed + length);

    if (!deed)
        return false;
    deed->was_leaving = was_leaving;
    memcpy(deed->name, name, length);
    if (RB_INSERT(deeds, &survey->deeds, deed))
        free(deed); /* there was an earlier one */
    else
        SLIST_INSERT_HEAD(&survey->all, deed, next);
    return true;
}

static bool has_deed(const struct deeds *deeds, const char *name)
{
    const struct deed *deed = RB_ROOT(deeds);

    while (deed) {
        int order = strcmp(name, deed->name);

        if (order == 0)
            return true;
        deed = order < 0 ? RB_LEFT(deed, by_name) : RB_RIGHT(deed, by_name);
    }
    return false;
}

/* Under the lock: what it is a candidate of now. Returns the room that is needed, whether or not there is. */
static size_t copy_names(const struct table *table, uint64_t id, struct names *names)
{
    const struct table_session *session = table_session_find(table, id);
    const struct table_candidate *candidate;
    size_t size = 0;

    if (session) {
        TAILQ_FOREACH(candidate, &session->candidates, in_session) {
            size_t length = strlen(candidate->group->name) + 1;

            if (names->bytes && size + length <= names->capacity)
                memcpy(names->bytes + size, candidate->group->name, length);
            size += length;
        }
    }
    names->size = size;
    return size;
}

static enum gavel_status look_through(struct survey *survey, struct table_cursor *cursor)
{
    const struct clients_slice *slice = &survey->clients->slice;
    enum gavel_status status;

    do {
        status = clients_slice_read(survey->clients, *cursor);
        if (status != GAVEL_OK)
            return status;
        for (size_t i = 0; i < slice->count; i++) {
            bool was_leaving = slice->changes[i].kind == GAVEL__CHANGE__KIND__LEFT;

            if (slice->changes[i].session == survey->session &&
                (was_leaving || slice->changes[i].kind == GAVEL__CHANGE__KIND__JOINED) &&
                !remember(survey, slice->changes[i].group, was_leaving))
                return GAVEL_ERR_NO_MEMORY;
        }
        survey->looked += slice->count;
        *cursor = slice->end;
    } while (!slice->is_last);
    return GAVEL_OK;
}

/* Both halves as of one revision. */
static enum gavel_status find_out(struct survey *survey, struct table_cursor from)
{
    struct table_box *box = &survey->clients->shared->table;
    struct names *names = &survey->names;
    struct table_cursor cursor = from;
    bool is_whole = false;

    while (!is_whole) {
        enum gavel_status status = look_through(survey, &cursor);
        size_t wanted = 0;

        if (status != GAVEL_OK)
            return status;
        table_box_lock(box);
        survey->now = box->table.revision;
        if (box->table.revision <= cursor.revision) { /* else there is more to look through, meanwhile */
            wanted = copy_names(&box->table, survey->session, names);
            is_whole = wanted <= names->capacity;
        }
        table_box_unlock(box);
        if (wanted > names->capacity) {
            char *bytes = realloc(names->bytes, 2 * wanted);

            if (!bytes)
                return GAVEL_ERR_NO_MEMORY;
            names->bytes = bytes;
            names->capacity = 2 * wanted;
        }
    }
    return GAVEL_OK;
}

static enum gavel_status add_interests(struct clients_watch *watch, const struct survey *survey)
{
    const struct names *names = &survey->names;
    enum gavel_status status = GAVEL_OK;
    const struct deed *deed;

    for (size_t at = 0; at < names->size && status == GAVEL_OK; at += strlen(names->bytes + at) + 1)
        if (!has_deed(&survey->deeds, names->bytes + at))
            status = clients_interest_add(watch, CLIENTS_GROUP, 0, names->bytes + at);
    SLIST_FOREACH(deed, &survey->all, next)
        if (deed->was_leaving && status == GAVEL_OK)
            status = clients_interest_add(watch, CLIENTS_GROUP, 0, deed->name);
    return status;
}

enum gavel_status clients_survey(struct clients_watch *watch, uint64_t session)
{
    struct survey survey = {.clients = watch->connection->clients, .session = session};
    enum gavel_status status = find_out(&survey, watch->from);
    struct deed *deed;

    if (status == GAVEL_OK) {
        status = add_interests(watch, &survey);
        if (survey.now < watch->from.revision) /* it begins in the future: followed from now on */
            watch->known_at = (struct table_cursor){survey.now, UINT32_MAX};
    }
    if (survey.looked > LONG_LOOK || survey.names.size > LONG_LIST)
        watch->connection->is_tired = true;
    while ((deed = SLIST_FIRST(&survey.all))) {
        SLIST_REMOVE_HEAD(&survey.all, next);
        free(deed);
    }
    free(survey.names.bytes);
    return status;
}
