/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the forwarder answers: with the tag that the question had, and of a
 * keep-alive that was merged each client with what concerns its own sessions.
 */

#include "core/session/forwarder_internal.h"

#include "base/assert.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

/* protobuf-c has no const; whoever gets the frame does not write. */
static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

/* Hands over the frame; NULL: there was no memory for it. */
static void hand_over(struct forwarder *forwarder, struct forwarder_answer **answer, uint64_t client,
                      Gavel__ClientFrame *frame)
{
    ASSERT(*answer);
    (*answer)->client = client;
    (*answer)->frame = frame;
    STAILQ_INSERT_TAIL(&forwarder->answers, *answer, next);
    *answer = NULL;
}

static void say(struct forwarder *forwarder, struct forwarder_answer **answer, uint64_t client,
                const Gavel__ClientFrame *frame)
{
    hand_over(forwarder, answer, client, client_frame_copy(frame));
}

struct forwarder_answer *forwarder_take_answer(struct forwarder *forwarder)
{
    struct forwarder_answer *answer = STAILQ_FIRST(&forwarder->answers);

    if (answer)
        STAILQ_REMOVE_HEAD(&forwarder->answers, next);
    return answer;
}

void forwarder_answer_free(struct forwarder_answer *answer)
{
    if (!answer)
        return;
    client_frame_free(answer->frame);
    free(answer);
}

void forwarder_fail(struct forwarder *forwarder, struct forwarder_answer **answer, uint64_t client,
                    uint64_t tag, Gavel__ClientFrame__WhatCase question, enum gavel_status status,
                    const char *message)
{
    Gavel__ClientFrame frame;
    Gavel__Reply reply;
    Gavel__Kept kept;
    Gavel__Answer read;

    gavel__client_frame__init(&frame);
    if (question == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE) {
        gavel__kept__init(&kept);
        kept.tag = tag;
        kept.status = (uint32_t)status;
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
        frame.kept = &kept;
    } else if (question == GAVEL__CLIENT_FRAME__WHAT_ASK) {
        gavel__answer__init(&read);
        read.tag = tag;
        read.status = (uint32_t)status;
        read.message = text_of(message);
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ANSWER;
        frame.answer = &read;
    } else {
        gavel__reply__init(&reply);
        reply.tag = tag;
        reply.status = (uint32_t)status;
        reply.message = text_of(message);
        frame.what_case = GAVEL__CLIENT_FRAME__WHAT_REPLY;
        frame.reply = &reply;
    }
    say(forwarder, answer, client, &frame);
}

void forwarder_fail_forwarding(struct forwarder *forwarder, struct forwarder_forwarding *forwarding,
                               enum gavel_status status, const char *message)
{
    for (size_t i = 0; i < forwarding->part_count; i++) {
        struct forwarder_part *part = &forwarding->parts[i];

        if (!part->is_gone)
            forwarder_fail(forwarder, &part->answer, part->client, part->tag,
                           GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE, status, message);
    }
    if (forwarding->part_count == 0 && !forwarding->is_gone)
        forwarder_fail(forwarder, &forwarding->answer, forwarding->client, forwarding->tag, forwarding->what,
                       status, message);
}

bool forwarder_status_of(const struct forwarder_forwarding *forwarding, const Gavel__ClientFrame *answer,
                         enum gavel_status *ret_status)
{
    Gavel__ClientFrame__WhatCase question = forwarding->what;

    if (question == GAVEL__CLIENT_FRAME__WHAT_REQUEST && answer->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY)
        *ret_status = (enum gavel_status)answer->reply->status;
    else if (question == GAVEL__CLIENT_FRAME__WHAT_KEEP_ALIVE &&
             answer->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT)
        *ret_status = (enum gavel_status)answer->kept->status;
    else if (question == GAVEL__CLIENT_FRAME__WHAT_ASK &&
             answer->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER)
        *ret_status = (enum gavel_status)answer->answer->status;
    else
        return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* `gone` is in order; `room` has space for all sessions of the part. Those of `revisions` stand where the
 * sessions do; NULL: which sessions they are is not told. */
static void tell_kept(struct forwarder *forwarder, const struct forwarder_forwarding *forwarding,
                      struct forwarder_part *part, const uint64_t *gone, size_t gone_count, uint64_t *room,
                      uint64_t *revisions)
{
    Gavel__ClientFrame frame;
    Gavel__Kept kept;

    gavel__client_frame__init(&frame);
    gavel__kept__init(&kept);
    kept.tag = part->tag;
    kept.gone = room;
    for (size_t i = part->first; gone_count > 0 && i < part->first + part->count; i++)
        if (bsearch(&forwarding->sessions[i], gone, gone_count, sizeof *gone, compare))
            room[kept.n_gone++] = forwarding->sessions[i];
    if (revisions) {
        kept.n_revisions = part->count;
        kept.revisions = revisions + part->first;
    }
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    say(forwarder, &part->answer, part->client, &frame);
}

static void share_kept(struct forwarder *forwarder, struct forwarder_forwarding *forwarding,
                       const Gavel__Kept *kept)
{
    uint64_t *gone = malloc((kept->n_gone + forwarding->session_count + 1) * sizeof *gone);
    uint64_t *revisions = kept->n_revisions == forwarding->session_count ? kept->revisions : NULL;

    if (!gone) {
        forwarder_fail_forwarding(forwarder, forwarding, GAVEL_ERR_NO_MEMORY, "");
        return;
    }
    if (kept->n_gone > 0)
        memcpy(gone, kept->gone, kept->n_gone * sizeof *gone);
    qsort(gone, kept->n_gone, sizeof *gone, compare);
    for (size_t i = 0; i < forwarding->part_count; i++)
        if (!forwarding->parts[i].is_gone)
            tell_kept(forwarder, forwarding, &forwarding->parts[i], gone, kept->n_gone, gone + kept->n_gone,
                      revisions);
    free(gone);
}

void forwarder_answer_forwarding(struct forwarder *forwarder, struct forwarder_forwarding *forwarding,
                                 Gavel__ClientFrame **answer)
{
    Gavel__ClientFrame *frame = *answer;

    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_KEPT) {
        if (frame->kept->status == GAVEL_OK)
            share_kept(forwarder, forwarding, frame->kept);
        else
            forwarder_fail_forwarding(forwarder, forwarding, (enum gavel_status)frame->kept->status, "");
        return;
    }
    if (forwarding->is_gone)
        return;
    if (frame->what_case == GAVEL__CLIENT_FRAME__WHAT_REPLY)
        frame->reply->tag = forwarding->tag;
    else
        frame->answer->tag = forwarding->tag;
    *answer = NULL;
    hand_over(forwarder, &forwarding->answer, forwarding->client, frame);
}

static bool make_room(void **array, size_t *capacity, size_t wanted, size_t size)
{
    size_t larger = *capacity > 0 ? *capacity : 16;
    void *grown;

    if (wanted <= *capacity)
        return true;
    while (larger < wanted)
        larger *= 2;
    grown = realloc(*array, larger * size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

enum gavel_status forwarder_merge(struct forwarder_forwarding *forwarding, uint64_t client,
                                  const Gavel__KeepAlive *keep_alive, struct forwarder_answer **answer)
{
    void *parts = forwarding->parts, *sessions = forwarding->sessions, *principals = forwarding->principals;
    size_t count = keep_alive->n_sessions;
    bool has_room =
        make_room(&parts, &forwarding->part_capacity, forwarding->part_count + 1, sizeof *forwarding->parts);

    forwarding->parts = parts;
    if (has_room)
        has_room = make_room(&sessions, &forwarding->session_capacity, forwarding->session_count + count,
                             sizeof *forwarding->sessions);
    forwarding->sessions = sessions;
    if (has_room)
        has_room = make_room(&principals, &forwarding->principal_capacity, forwarding->session_count + count,
                             sizeof *forwarding->principals);
    forwarding->principals = principals;
    if (!has_room)
        return GAVEL_ERR_NO_MEMORY;
    forwarding->parts[forwarding->part_count++] = (struct forwarder_part){.client = client,
                                                                          .tag = keep_alive->tag,
                                                                          .first = forwarding->session_count,
                                                                          .count = count,
                                                                          .answer = *answer};
    *answer = NULL;
    if (count > 0)
        memcpy(forwarding->sessions + forwarding->session_count, keep_alive->sessions,
               count * sizeof *forwarding->sessions);
    for (size_t i = 0; i < count; i++)
        forwarding->principals[forwarding->session_count + i] = keep_alive->principal;
    forwarding->tells_no_principals = forwarding->tells_no_principals || !keep_alive->has_principal;
    forwarding->session_count += count;
    return GAVEL_OK;
}
