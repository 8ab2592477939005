/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sessions: clients that are alive. A session that ends takes all its
 * candidates and mandates with it, in one revision; each change is a part of
 * it, in the order in which it had joined the groups.
 *
 * One with very many groups leaves them by several operations, so that none of
 * them holds up the cluster. From the first of them on it is ending: nobody
 * finds it any more, it is granted nothing, and its id is not free yet. Whoever
 * leads the cluster goes on until nothing is left.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

#include <stdlib.h>

enum { SESSION_WEIGHT = 128, RESULT_WEIGHT = 40 };

static int compare(const struct table_session *a, const struct table_session *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_INTERNAL(table_sessions, table_session, by_id, compare, __attribute__((unused)) static)

struct table_session *table_session_find_any(const struct table *table, uint64_t id)
{
    struct table_session *session = RB_ROOT(&table->sessions);

    while (session && session->id != id)
        session = id < session->id ? RB_LEFT(session, by_id) : RB_RIGHT(session, by_id);
    return session;
}

struct table_session *table_session_find(const struct table *table, uint64_t id)
{
    struct table_session *session = table_session_find_any(table, id);

    return session && !session->is_ending ? session : NULL;
}

bool table_session_is_meant(const struct table_session *session, uint64_t revision)
{
    if (PLANTED(FORMER_REQUEST))
        return true;
    return revision == 0 || revision == session->create_revision;
}

struct table_session *table_session_first(const struct table *table)
{
    struct table_session *session = RB_ROOT(&table->sessions);

    while (session && RB_LEFT(session, by_id))
        session = RB_LEFT(session, by_id);
    return session;
}

struct table_session *table_session_next(struct table_session *session)
{
    return RB_NEXT(table_sessions, NULL, session);
}

void session_changed(struct table *table, struct table_session *session)
{
    uint64_t hash = hash_number(HASH_BEGIN, session->id);
    size_t weight = SESSION_WEIGHT + strlen(session->name) + session->result_count * RESULT_WEIGHT;

    process_ready(&session->process, &session->shown);
    hash = hash_number(hash, session->ttl_ms);
    hash = hash_number(hash, session->create_revision);
    hash = hash_number(hash, (uint64_t)session->since_wall_ms);
    hash = hash_number(hash, session->last_id);
    hash = hash_string(hash, session->name);
    hash = hash_process(hash, &session->process);
    if (session->is_ending) /* where none is, the digest is that of nodes of before 0.7.0 */
        hash = hash_number(hash, 1 + (uint64_t)session->ending);
    for (size_t i = 0; i < session->result_count; i++) {
        hash = hash_number(hash, (uint64_t)session->results[i].status);
        hash = hash_number(hash, session->results[i].revision);
        hash = hash_number(hash, session->results[i].version);
        hash = hash_number(hash, session->results[i].epoch);
    }
    table_account(table, &session->hash, &session->weight, hash_mix(hash), weight);
}

static void session_free(struct table *table, struct table_session *session)
{
    text_drop(session->name);
    free(session->results);
    slot_give(&table->session_slots, session->slot);
    free(session);
}

struct table_session *session_add(struct table *table, uint64_t id, const char *name)
{
    struct table_session *session = calloc(1, sizeof *session);

    if (!session || !slot_take(&table->session_slots, &session->slot)) {
        free(session);
        return NULL;
    }
    session->id = id;
    session->name = text_new(name);
    TAILQ_INIT(&session->candidates);
    if (!session->name || RB_INSERT(table_sessions, &table->sessions, session)) {
        session_free(table, session);
        return NULL;
    }
    table->session_count++;
    return session;
}

void session_set_ending(struct table *table, struct table_session *session, Gavel__Ending ending)
{
    ASSERT(!session->is_ending);
    session->is_ending = true;
    session->ending = ending;
    SLIST_INSERT_HEAD(&table->ending_sessions, session, in_ending);
    session_changed(table, session);
}

static void session_remove(struct table *table, struct table_session *session)
{
    ASSERT(table->session_count > 0);
    if (session->is_ending) /* they are few */
        SLIST_REMOVE(&table->ending_sessions, session, table_session, in_ending);
    RB_REMOVE(table_sessions, &table->sessions, session);
    table->session_count--;
    table_account(table, &session->hash, &session->weight, 0, 0);
    session_free(table, session);
}

size_t sessions_free_some(struct table *table, size_t count)
{
    size_t freed = 0;

    for (; freed < count && !RB_EMPTY(&table->sessions); freed++)
        session_remove(table, RB_ROOT(&table->sessions));
    return freed;
}

void sessions_done(struct table *table)
{
    (void)sessions_free_some(table, SIZE_MAX);
    ASSERT(table->session_count == 0);
}

enum gavel_status session_open(struct step *step, const Gavel__OpenSession *open)
{
    struct table *table = step->table;
    struct table_session *session = table_session_find_any(table, open->session);
    bool is_old = step->version < TABLE_VERSION_0_7;

    if (session && session->is_ending)
        return step_refuse(step, GAVEL_ERR_ID_IN_USE,
                           "a session with this id has ended and still leaves its groups; open another");
    if (session)
        return GAVEL_OK;
    if (table->session_count >= (is_old ? TABLE_SESSIONS_MAX_0_6 : TABLE_SESSIONS_MAX))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the cluster has reached its limit of sessions");
    if (!table_has_room(table, SESSION_WEIGHT + strlen(open->name) + RESULT_WEIGHT))
        return step_refuse(step, GAVEL_ERR_STORE_FULL, "the table of the cluster is full");
    session = session_add(table, open->session, open->name);
    if (!session)
        return GAVEL_ERR_NO_MEMORY;
    session->ttl_ms = open->ttl_ms;
    session->principal = open->principal;
    process_set(&session->process, open->process);
    session->create_revision = step->revision;
    session->since_wall_ms = step->wall_ms;
    ASSERT(session->last_id == 0);
    ASSERT(table->session_count <= TABLE_SESSIONS_MAX);
    step_meet(step, &session->process);
    session_changed(table, session);
    step->has_changed = true;
    return GAVEL_OK;
}

/* It leaves one group more, the one that it has been in for longest. */
static void leave_first(struct step *step, const struct table_session *session, Gavel__Ending ending)
{
    struct table_candidate *candidate = TAILQ_FIRST(&session->candidates);
    struct table_group *group = candidate->group;

    ASSERT(candidate->session == session);
    if (candidate_leads(candidate))
        election_end(step, group, ending, text_share(group->wish_successor));
    candidate_remove(step, candidate, ending);
    group_settle(step, group, NULL);
}

/* How many groups it may leave by this operation. */
static size_t part_of(const struct step *step, const Gavel__CloseSession *close)
{
    if (step->version < TABLE_VERSION_0_7)
        return SIZE_MAX;
    return close->groups_max > 0 && close->groups_max < TABLE_CLOSE_PART ? close->groups_max
                                                                         : TABLE_CLOSE_PART;
}

enum gavel_status session_close(struct step *step, const Gavel__CloseSession *close)
{
    struct table_session *session = table_session_find_any(step->table, close->session);
    Gavel__Change change = step_change(GAVEL__CHANGE__KIND__SESSION_ENDED, NULL);
    Gavel__Ending ending;
    bool was_ending;

    if (!session)
        return GAVEL_OK;
    was_ending = session->is_ending;
    ending = was_ending ? session->ending : close->ending;
    if (!was_ending && session->candidate_count > part_of(step, close))
        session_set_ending(step->table, session, ending);
    for (size_t left = part_of(step, close); left > 0 && !TAILQ_EMPTY(&session->candidates); left--)
        leave_first(step, session, ending);
    if (!was_ending) {
        change.session = session->id;
        change.why = ending;
        step_tell(step, &change);
    }
    if (step->session == session)
        step->session = NULL;
    step->has_changed = true;
    if (TAILQ_EMPTY(&session->candidates)) {
        ASSERT(session->candidate_count == 0);
        session_remove(step->table, session);
    }
    return GAVEL_OK;
}

bool session_has_room(const struct table *table, const struct table_session *session, size_t count,
                      uint32_t version)
{
    size_t more = count > session->result_count ? (count - session->result_count) * (size_t)RESULT_WEIGHT : 0;

    if (more == 0 || version < TABLE_VERSION_0_7)
        return more == 0 || table_has_room(table, more);
    return table->bytes + more <= (size_t)TABLE_BYTES_MAX + TABLE_RESERVE_BYTES;
}

void session_keep_results(struct table *table, struct table_session *session, uint64_t id,
                          struct table_result *results, size_t count)
{
    ASSERT(id > session->last_id || PLANTED(APPLIED_AGAIN));
    for (size_t i = 0; i < count; i++)
        results[i].why = "";
    free(session->results);
    session->results = results;
    session->result_count = count;
    session->last_id = id;
    ASSERT(session->result_count <= TABLE_OPS_MAX);
    session_changed(table, session);
}
