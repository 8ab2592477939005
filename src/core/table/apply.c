/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carries out commands: who asks, whether it was done before, and then one
 * operation after the other.
 */

#include "base/assert.h"
#include "base/planted.h"
#include "core/table/step.h"

#include <stdlib.h>

enum gavel_status step_refuse(struct step *step, enum gavel_status status, const char *why)
{
    step->why = why;
    return status;
}

Gavel__Change step_change(Gavel__Change__Kind kind, const struct table_group *group)
{
    Gavel__Change change;

    gavel__change__init(&change);
    change.kind = kind;
    if (group)
        change.group = group->name;
    return change;
}

void step_meet(const struct step *step, const struct table_process *process)
{
    struct table_outcome *outcome = step->outcome;
    size_t count = outcome->process_count;

    if (process->pid <= 0)
        return;
    if ((count & (count - 1)) == 0) { /* full: it has room for the next power of two */
        struct table_process *grown =
            realloc(outcome->processes, (count > 0 ? 2 * count : 1) * sizeof *grown);

        if (!grown)
            return; /* then only time tells of its death */
        outcome->processes = grown;
    }
    outcome->processes[outcome->process_count++] = *process;
}

void table_outcome_done(struct table_outcome *outcome)
{
    free(outcome->results);
    free(outcome->processes);
    *outcome = (struct table_outcome){0};
}

void step_tell(struct step *step, Gavel__Change *change)
{
    ASSERT(step->revision > step->table->revision);
    change->revision = step->revision;
    change->part = step->part++;
    if (step->table->history)
        history_push(step->table->history, change);
}

const char *table_op_group(const Gavel__Op *op)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_CAMPAIGN:
        return op->campaign->group;
    case GAVEL__OP__WHAT_WITHDRAW:
        return op->withdraw->group;
    case GAVEL__OP__WHAT_CLAIM:
        return op->claim->group;
    case GAVEL__OP__WHAT_RENEW:
        return op->renew->group;
    case GAVEL__OP__WHAT_RELEASE:
        return op->release->group;
    case GAVEL__OP__WHAT_WISH:
        return op->wish->group;
    case GAVEL__OP__WHAT_REOPEN:
        return op->reopen->group;
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        return op->register_candidate->group;
    case GAVEL__OP__WHAT_LEAVE:
        return op->leave->group;
    case GAVEL__OP__WHAT_LAPSE:
        return op->lapse->group;
    case GAVEL__OP__WHAT_PUT_NOTE:
        return op->put_note->group;
    case GAVEL__OP__WHAT_DELETE_NOTE:
        return op->delete_note->group;
    case GAVEL__OP__WHAT_REFUSED:
        return op->refused->group;
    case GAVEL__OP__WHAT_DIED:
        return op->died->group;
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        return op->remove_group->group;
    default:
        return "";
    }
}

static enum gavel_status carry_out(struct step *step, const Gavel__Op *op)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
        return session_open(step, op->open_session);
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        return session_close(step, op->close_session);
    case GAVEL__OP__WHAT_CAMPAIGN:
        return candidate_campaign(step, op->campaign);
    case GAVEL__OP__WHAT_WITHDRAW:
        return candidate_withdraw(step, op->withdraw);
    case GAVEL__OP__WHAT_CLAIM:
        return mandate_claim(step, op->claim);
    case GAVEL__OP__WHAT_RENEW:
        return mandate_renew(step, op->renew);
    case GAVEL__OP__WHAT_RELEASE:
        return mandate_release(step, op->release);
    case GAVEL__OP__WHAT_WISH:
        return mandate_wish(step, op->wish);
    case GAVEL__OP__WHAT_REOPEN:
        return mandate_reopen(step, op->reopen);
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        return candidate_register(step, op->register_candidate);
    case GAVEL__OP__WHAT_LEAVE:
        return candidate_leave(step, op->leave);
    case GAVEL__OP__WHAT_LAPSE:
        return mandate_lapse(step, op->lapse);
    case GAVEL__OP__WHAT_PUT_NOTE:
        return note_put(step, op->put_note);
    case GAVEL__OP__WHAT_DELETE_NOTE:
        return note_delete(step, op->delete_note);
    case GAVEL__OP__WHAT_REFUSED:
        return step_refuse(step, (enum gavel_status)op->refused->status, "");
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        return group_end(step, op->remove_group);
    default:
        return step_refuse(step, GAVEL_ERR_INVALID, "the operation is not known");
    }
}

/* One operation by itself. ERR_NO_MEMORY: it has changed nothing. */
static enum gavel_status apply_op(struct table *table, struct table_session **session,
                                  const Gavel__Command *command, const Gavel__Op *op,
                                  struct table_outcome *outcome, struct table_result *ret_result)
{
    struct step step = {
        .table = table,
        .session = *session,
        .wall_ms = command->wall_ms,
        .generation = command->generation,
        .version = command->table_version,
        .revision = table->revision + 1,
        .group = table_op_group(op),
        .outcome = outcome,
        .why = "",
    };
    enum gavel_status status = table_op_check(op, false, NULL);
    const struct table_group *group;

    if (status == GAVEL_OK)
        status = carry_out(&step, op);
    else
        step.why = "a name, a size or a duration is not valid";
    if (status == GAVEL_ERR_NO_MEMORY)
        return status;
    *session = step.session;
    /* A claim may have jumped ahead, so one more at least. */
    ASSERT(step.revision > table->revision);
    if (step.part > 0)
        ASSERT(step.has_changed); /* nobody is told of a change without a revision */
    if (step.has_changed)
        table->revision = step.revision;
    group = step.group[0] ? table_group_find(table, step.group) : NULL;
    *ret_result = (struct table_result){
        .status = status,
        .revision = table->revision,
        .version = group ? group->version : 0,
        .epoch = group ? group->epoch : 0,
        .why = step.why,
    };
    return GAVEL_OK;
}

/* What came of the newest request of a session, once more. */
static enum gavel_status repeat(const struct table_session *session, struct table_outcome *outcome)
{
    struct table_result *copy = calloc(session->result_count, sizeof *copy);

    if (!copy)
        return GAVEL_ERR_NO_MEMORY;
    memcpy(copy, session->results, session->result_count * sizeof *copy);
    ASSERT(session->result_count <= TABLE_OPS_MAX);
    outcome->results = copy;
    outcome->count = session->result_count;
    return GAVEL_OK;
}

/* An opening that comes again after other requests: the session is open, and nothing is recorded. */
static enum gavel_status confirm(const struct table *table, struct table_outcome *outcome)
{
    struct table_result *result = calloc(1, sizeof *result);

    if (!result)
        return GAVEL_ERR_NO_MEMORY;
    *result = (struct table_result){.status = GAVEL_OK, .revision = table->revision, .why = ""};
    outcome->results = result;
    outcome->count = 1;
    return GAVEL_OK;
}

/* Whether the command only opens the session that it is of. */
static bool is_opening(const Gavel__Command *command)
{
    return command->n_ops == 1 && command->ops[0]->what_case == GAVEL__OP__WHAT_OPEN_SESSION &&
           command->ops[0]->open_session->session == command->session;
}

/* What a majority that was lost had counted among itself is never counted again. */
static void begin_generation(struct table *table, uint64_t generation)
{
    uint64_t above =
        generation > 1 && generation <= TABLE_GENERATION_MAX ? (generation - 1) << TABLE_GENERATION_BITS : 0;

    if (table->revision < above)
        table->revision = above;
}

/* Carries out all operations. */
static enum gavel_status apply_all(struct table *table, const Gavel__Command *command,
                                   struct table_session *session, struct table_outcome *outcome)
{
    struct table_result *results = calloc(command->n_ops, sizeof *results);
    struct table_result *kept = calloc(command->n_ops, sizeof *kept);
    enum gavel_status status = results && kept ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;

    if (status == GAVEL_OK)
        begin_generation(table, command->generation);
    for (size_t i = 0; i < command->n_ops && status == GAVEL_OK; i++)
        status = apply_op(table, &session, command, command->ops[i], outcome, &results[i]);
    if (status != GAVEL_OK) {
        free(results);
        free(kept);
        return status;
    }
    if (command->session != 0 && !session && is_opening(command) && results[0].status == GAVEL_OK)
        session = table_session_find(table, command->session);
    if (session) {
        memcpy(kept, results, command->n_ops * sizeof *kept);
        session_keep_results(table, session, command->id, kept, command->n_ops);
    } else {
        free(kept);
    }
    outcome->results = results;
    outcome->count = command->n_ops;
    return GAVEL_OK;
}

/* Who asks, and whether it was done before. */
static enum gavel_status apply_command(struct table *table, const Gavel__Command *command,
                                       struct table_outcome *outcome)
{
    struct table_session *session =
        command->session != 0 ? table_session_find(table, command->session) : NULL;
    bool is_last = session && command->id == session->last_id;

    if (PLANTED(APPLIED_AGAIN))
        is_last = false;
    if (command->n_ops == 0 || command->n_ops > TABLE_OPS_MAX ||
        (command->session != 0) != (command->id != 0))
        return GAVEL_ERR_INVALID;
    if (command->session != 0 && !session && !is_opening(command))
        return GAVEL_ERR_SESSION_GONE;
    if (session && !table_session_is_meant(session, command->session_revision))
        return GAVEL_ERR_SESSION_GONE;
    if (is_last)
        return repeat(session, outcome);
    if (session && command->id < session->last_id && is_opening(command))
        return confirm(table, outcome);
    if (session && command->id < session->last_id)
        return GAVEL_ERR_STATE;
    if (session && !session_has_room(table, session, command->n_ops, command->table_version))
        return GAVEL_ERR_STORE_FULL;
    return apply_all(table, command, session, outcome);
}

/* The command was carried out, or refused by a rule that all replicas share: the index moves on. */
static enum gavel_status finish(struct table *table, uint64_t index, enum gavel_status status,
                                struct table_outcome *outcome, struct table_outcome *ret_outcome)
{
    if (status == GAVEL_ERR_NO_MEMORY) {
        table_outcome_done(outcome);
        return status;
    }
    if (outcome->count > 0)
        ASSERT(outcome->results);
    if (status != GAVEL_OK)
        ASSERT(!outcome->results);
    table->index = index;
    *ret_outcome = *outcome;
    return status;
}

static enum gavel_status apply_decoded(struct table *table, uint64_t index, const Gavel__Command *command,
                                       struct table_outcome *ret_outcome)
{
    const uint64_t revision_before = table->revision;
    struct table_outcome outcome = {0};
    enum gavel_status status;

    ASSERT(index > table->index);
    status = apply_command(table, command, &outcome);
    ASSERT(table->revision >= revision_before);
    return finish(table, index, status, &outcome, ret_outcome);
}

enum gavel_status table_apply_command(struct table *table, uint64_t index, const Gavel__Command *command,
                                      struct table_outcome *ret_outcome)
{
    ASSERT(command->table_version >= TABLE_VERSION);
    return apply_decoded(table, index, command, ret_outcome);
}

enum gavel_status table_apply_ops(struct table *table, uint64_t index, const uint8_t *bytes, size_t size,
                                  struct table_outcome *ret_outcome)
{
    struct table_command command;
    enum gavel_status status = table_command_decode(bytes, size, &command);
    struct table_outcome outcome = {0};
    ProtobufCMessage *message = NULL;

    ASSERT(index > table->index);
    if (status == GAVEL_OK && command.kind == TABLE_OPS) {
        status = command_unpack(command.value, command.value_size, &message);
        if (status == GAVEL_OK) {
            status = apply_decoded(table, index, (const Gavel__Command *)(const void *)message, ret_outcome);
            protobuf_c_message_free_unpacked(message, NULL);
            return status;
        }
    } else if (status == GAVEL_OK) {
        status = table_apply_plain(table, &command);
    }
    return finish(table, index, status, &outcome, ret_outcome);
}

enum gavel_status table_apply(struct table *table, uint64_t index, const uint8_t *bytes, size_t size)
{
    struct table_outcome outcome = {0};
    enum gavel_status status = table_apply_ops(table, index, bytes, size, &outcome);

    table_outcome_done(&outcome);
    return status;
}
