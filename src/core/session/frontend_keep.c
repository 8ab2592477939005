/* SPDX-License-Identifier: Apache-2.0 */

/* Keep-alives: those of many clients come merged in one frame, and never enter the log. */
#include "core/session/frontend_internal.h"

#include "base/assert.h"
#include "base/planted.h"

#include <stdlib.h>

static bool may_keep(const Gavel__KeepAlive *keep_alive, size_t which, const struct table_session *session)
{
    return frontend_may_use(session, keep_alive->n_principals == keep_alive->n_sessions,
                            which < keep_alive->n_principals ? keep_alive->principals[which] : 0);
}

/*
 * A node merges the keep-alives of its clients, and reads the answer by session. So what one client asks of
 * another's session must not be answered as the end of it if the other asks in the same frame.
 */
static bool is_kept_by_another(const Gavel__KeepAlive *keep_alive, const struct table_session *session)
{
    if (PLANTED(ENDED_BY_ANOTHER))
        return false;
    for (size_t i = 0; i < keep_alive->n_sessions; i++)
        if (keep_alive->sessions[i] == session->id && may_keep(keep_alive, i, session))
            return true;
    return false;
}

/* Whether the session was kept. ERR_NO_MEMORY: it cannot be said of any. */
static enum gavel_status keep(struct frontend *frontend, gavel_ns now, const struct table_session *session,
                              bool *ret_is_kept)
{
    struct heard_session *heard = heard_of_session(&frontend->heard, session);
    bool is_closing;

    if (!heard && heard_reserve(&frontend->heard, frontend->table) != GAVEL_OK)
        return GAVEL_ERR_NO_MEMORY;
    heard = heard ? heard : heard_of_session(&frontend->heard, session);
    is_closing = frontend_is_closing(frontend, &heard->closing);
    if (PLANTED(KEPT_WHILE_ENDING))
        is_closing = false;
    if (!is_closing && !frontend_note_heard(frontend, now, session, heard))
        return GAVEL_ERR_NO_MEMORY;
    heard->keeps += !is_closing;
    *ret_is_kept = !is_closing;
    return GAVEL_OK;
}

/*
 * Those that are gone, and of the others which session they are, side by side with those that were asked for.
 * ERR_NO_MEMORY: nothing is known about any.
 */
static enum gavel_status keep_all(struct frontend *frontend, gavel_ns now, const Gavel__KeepAlive *keep_alive,
                                  uint64_t *ret_gone, size_t *ret_count, uint64_t *ret_revisions)
{
    size_t count = 0;

    for (size_t i = 0; i < keep_alive->n_sessions; i++) {
        struct table_session *session = table_session_find(frontend->table, keep_alive->sessions[i]);
        enum gavel_status status = GAVEL_OK;
        bool is_kept = false;

        if (session && !may_keep(keep_alive, i, session)) {
            if (is_kept_by_another(keep_alive, session))
                continue;
            session = NULL;
        }
        if (session)
            status = keep(frontend, now, session, &is_kept);
        if (status != GAVEL_OK)
            return status;
        if (is_kept)
            ret_revisions[i] = session->create_revision;
        else
            ret_gone[count++] = keep_alive->sessions[i];
    }
    ASSERT(count <= keep_alive->n_sessions);
    *ret_count = count;
    return GAVEL_OK;
}

void frontend_keep_alive(struct frontend *frontend, gavel_ns now, struct frontend_ticket ticket,
                         const Gavel__KeepAlive *keep_alive)
{
    Gavel__ClientFrame frame = GAVEL__CLIENT_FRAME__INIT;
    Gavel__Kept kept = GAVEL__KEPT__INIT;
    size_t count = keep_alive->n_sessions;
    uint64_t *room = calloc(2 * count + 1, sizeof *room);
    enum gavel_status status = GAVEL_ERR_NO_MEMORY;

    frontend->counts.keep_alives += count;
    if (room)
        status = keep_all(frontend, now, keep_alive, room, &kept.n_gone, room + count);
    kept.status = status;
    kept.tag = keep_alive->tag;
    if (status == GAVEL_OK) {
        kept.gone = room;
        kept.revisions = room + count;
        kept.n_revisions = count;
    }
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_KEPT;
    frame.kept = &kept;
    frontend_reply_frame(frontend, ticket, &frame);
    free(room);
}
