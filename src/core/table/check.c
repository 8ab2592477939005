/* SPDX-License-Identifier: Apache-2.0 */

/* Whether an operation can be carried out at all: what it names, how long, how large, and who says it. */

#include "base/error.h"
#include "base/record.h"
#include "base/utf8.h"
#include "core/table/step.h"

static enum gavel_status check_group(const char *group, struct gavel_error *error)
{
    return name_check("group name", group, error);
}

/* A text that may be empty. */
static enum gavel_status check_text(const char *what, const char *text, size_t most,
                                    struct gavel_error *error)
{
    size_t size = strlen(text);

    if (size == 0)
        return GAVEL_OK;
    if (size > most)
        return error_set(error, GAVEL_ERR_INVALID, "the %s has %zu bytes; shorten it to at most %zu", what,
                         size, most);
    return name_check(what, text, error);
}

static enum gavel_status check_process(const Gavel__Process *process, struct gavel_error *error)
{
    if (!process)
        return GAVEL_OK;
    if (process->pid < 0)
        return error_set(error, GAVEL_ERR_INVALID, "process %d is not valid; give a pid, or 0",
                         (int)process->pid);
    return check_text("boot id", process->boot_id, sizeof((struct table_process *)NULL)->boot_id - 1, error);
}

static enum gavel_status check_range(const char *what, int64_t number, int64_t least, int64_t most,
                                     struct gavel_error *error)
{
    if (number >= least && number <= most)
        return GAVEL_OK;
    return error_set(error, GAVEL_ERR_INVALID, "the %s is %lld ms; choose %lld to %lld", what,
                     (long long)number, (long long)least, (long long)most);
}

static enum gavel_status check_open(const Gavel__OpenSession *open, struct gavel_error *error)
{
    enum gavel_status status;

    if (open->session == 0)
        return error_set(error, GAVEL_ERR_INVALID, "the session has no number; draw one at random, not 0");
    status = check_range("time to live", open->ttl_ms, TABLE_TTL_MIN_MS, TABLE_TTL_MAX_MS, error);
    if (status == GAVEL_OK)
        status = check_text("name of the program", open->name, NAME_MAX_BYTES, error);
    return status == GAVEL_OK ? check_process(open->process, error) : status;
}

static enum gavel_status check_close(const Gavel__CloseSession *close, bool is_from_client,
                                     struct gavel_error *error)
{
    if (close->ending != GAVEL__ENDING__ENDING_CLOSED && close->ending != GAVEL__ENDING__ENDING_EXPIRED &&
        close->ending != GAVEL__ENDING__ENDING_DEAD)
        return error_set(error, GAVEL_ERR_INVALID, "a session cannot end with reason %d", (int)close->ending);
    /* That its work is dead, whoever ended it may say: the guard of a program, which uses the session as its
     * own. */
    if (is_from_client && close->ending == GAVEL__ENDING__ENDING_EXPIRED)
        return error_set(error, GAVEL_ERR_INVALID, "only a node may give that reason");
    return GAVEL_OK;
}

static enum gavel_status check_campaign(const Gavel__Campaign *campaign, struct gavel_error *error)
{
    enum gavel_status status = check_group(campaign->group, error);

    if (status == GAVEL_OK)
        status = name_check("candidate id", campaign->id, error);
    if (status == GAVEL_OK)
        status = check_text("address", campaign->address, TABLE_ADDRESS_BYTES_MAX, error);
    if (status == GAVEL_OK)
        status = check_range("minimum mandate", campaign->min_mandate_ms, 0, TABLE_TTL_MAX_MS, error);
    if (status == GAVEL_OK)
        status = check_range("time-out", campaign->timeout_ms, 0, TABLE_LEASE_MAX_MS, error);
    if (status != GAVEL_OK)
        return status;
    if (campaign->metadata.len > TABLE_METADATA_BYTES_MAX)
        return error_set(error, GAVEL_ERR_TOO_LARGE, "the metadata has %zu bytes; shorten it to at most %d",
                         campaign->metadata.len, TABLE_METADATA_BYTES_MAX);
    if ((unsigned)campaign->policy > GAVEL__POLICY__POLICY_BALANCED)
        return error_set(error, GAVEL_ERR_INVALID, "policy %d is not known; there are 1 to 4",
                         (int)campaign->policy);
    return GAVEL_OK;
}

static enum gavel_status check_withdraw(const Gavel__Withdraw *withdraw, struct gavel_error *error)
{
    enum gavel_status status = check_group(withdraw->group, error);

    if (status == GAVEL_OK)
        status = check_text("successor", withdraw->successor, NAME_MAX_BYTES, error);
    if (status == GAVEL_OK)
        status = check_text("candidate id", withdraw->id, NAME_MAX_BYTES, error);
    if (status != GAVEL_OK)
        return status;
    if (withdraw->is_done && withdraw->epoch == 0)
        return error_set(error, GAVEL_ERR_INVALID,
                         "the epoch of the mandate that has done the work is missing");
    if (withdraw->ending != GAVEL__ENDING__ENDING_CLOSED &&
        withdraw->ending != GAVEL__ENDING__ENDING_LAPSED && withdraw->ending != GAVEL__ENDING__ENDING_DEAD)
        return error_set(error, GAVEL_ERR_INVALID, "nobody gives up a mandate with reason %d",
                         (int)withdraw->ending);
    return GAVEL_OK;
}

static enum gavel_status check_died(const Gavel__Died *died, bool is_from_client, struct gavel_error *error)
{
    enum gavel_status status = check_group(died->group, error);

    if (status != GAVEL_OK)
        return status;
    if (!is_from_client) /* the leader has made it the end of a session */
        return error_set(error, GAVEL_ERR_INVALID, "only a client asks for that");
    if (died->epoch == 0 || !died->process || died->process->pid <= 0)
        return error_set(error, GAVEL_ERR_INVALID, "the mandate and the dead process are missing");
    return check_process(died->process, error);
}

static enum gavel_status check_claim(const Gavel__Claim *claim, struct gavel_error *error)
{
    enum gavel_status status = check_group(claim->group, error);

    if (status == GAVEL_OK)
        status = name_check("candidate id", claim->holder, error);
    if (status == GAVEL_OK)
        status = check_text("address", claim->address, TABLE_ADDRESS_BYTES_MAX, error);
    if (status == GAVEL_OK)
        status = check_range("lease", claim->lease_ms, 1, TABLE_LEASE_MAX_MS, error);
    return status == GAVEL_OK ? check_process(claim->process, error) : status;
}

static enum gavel_status check_renew(const Gavel__Renew *renew, struct gavel_error *error)
{
    enum gavel_status status = check_group(renew->group, error);

    if (status == GAVEL_OK)
        status = name_check("candidate id", renew->holder, error);
    return status == GAVEL_OK ? check_range("lease", renew->lease_ms, 1, TABLE_LEASE_MAX_MS, error) : status;
}

static enum gavel_status check_release(const Gavel__Release *release, bool is_from_client,
                                       struct gavel_error *error)
{
    enum gavel_status status = check_group(release->group, error);

    if (status == GAVEL_OK)
        status = check_text("successor", release->successor, NAME_MAX_BYTES, error);
    if (status != GAVEL_OK)
        return status;
    if (release->is_dead && is_from_client)
        return error_set(error, GAVEL_ERR_INVALID, "only a node may report that a process is dead");
    if (release->is_dead && release->epoch == 0)
        return error_set(error, GAVEL_ERR_INVALID, "the mandate of the dead process is missing");
    return release->is_dead ? GAVEL_OK : name_check("candidate id", release->holder, error);
}

/* Epoch 0 of a client stands for the present mandate; whoever proposes it fills it in. */
static enum gavel_status check_wish(const Gavel__Wish *wish, bool is_from_client, struct gavel_error *error)
{
    enum gavel_status status = check_group(wish->group, error);

    if (status == GAVEL_OK)
        status = check_text("successor", wish->successor, NAME_MAX_BYTES, error);
    if (status == GAVEL_OK)
        status = check_range("time-out", wish->timeout_ms, 0, TABLE_TTL_MAX_MS, error);
    if (status == GAVEL_OK && wish->epoch == 0 && !is_from_client)
        return error_set(error, GAVEL_ERR_INVALID, "the epoch of the mandate to end is missing");
    return status;
}

static enum gavel_status check_register(const Gavel__Register *registration, struct gavel_error *error)
{
    enum gavel_status status = check_group(registration->group, error);

    if (status == GAVEL_OK)
        status = name_check("candidate id", registration->id, error);
    if (status == GAVEL_OK)
        status = check_text("address", registration->address, TABLE_ADDRESS_BYTES_MAX, error);
    if (status == GAVEL_OK) /* others are forgotten after several times this */
        status = check_range("time-out", registration->timeout_ms, 0, TABLE_LEASE_MAX_MS, error);
    return status == GAVEL_OK ? check_process(registration->process, error) : status;
}

static enum gavel_status check_note(const char *group, const char *key, struct gavel_error *error)
{
    enum gavel_status status = check_group(group, error);

    if (status == GAVEL_OK)
        status = name_check("key", key, error);
    return status == GAVEL_OK ? check_text("key", key, TABLE_NOTE_KEY_BYTES_MAX, error) : status;
}

static enum gavel_status check_put(const Gavel__PutNote *put, struct gavel_error *error)
{
    if (put->value.len > TABLE_NOTE_BYTES_MAX)
        return error_set(error, GAVEL_ERR_TOO_LARGE, "the note has %zu bytes; shorten it to at most %u",
                         put->value.len, TABLE_NOTE_BYTES_MAX);
    return check_note(put->group, put->key, error);
}

static enum gavel_status check_refused(const Gavel__Refused *refused, bool is_from_client,
                                       struct gavel_error *error)
{
    if (is_from_client)
        return error_set(error, GAVEL_ERR_INVALID, "only a node may report that an operation is refused");
    if (refused->status == GAVEL_OK || refused->status == GAVEL_ERR_NO_MEMORY || refused->status > UINT16_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "nothing is refused with status %u",
                         (unsigned)refused->status);
    return refused->group[0] ? check_group(refused->group, error) : GAVEL_OK;
}

static enum gavel_status check_remove(const Gavel__RemoveGroup *remove, bool is_from_client,
                                      struct gavel_error *error)
{
    if (is_from_client && remove->has_lapsed)
        return error_set(error, GAVEL_ERR_INVALID, "only a node may report that a lease has run out");
    if (!is_from_client && remove->revision == 0)
        return error_set(error, GAVEL_ERR_INVALID, "the revision of the group to remove is missing");
    return check_group(remove->group, error);
}

static enum gavel_status check_pair(const char *group, const char *id, struct gavel_error *error)
{
    enum gavel_status status = check_group(group, error);

    return status == GAVEL_OK ? name_check("candidate id", id, error) : status;
}

enum gavel_status table_op_check(const Gavel__Op *op, bool is_from_client, struct gavel_error *error)
{
    switch (op->what_case) {
    case GAVEL__OP__WHAT_OPEN_SESSION:
        return check_open(op->open_session, error);
    case GAVEL__OP__WHAT_CLOSE_SESSION:
        return check_close(op->close_session, is_from_client, error);
    case GAVEL__OP__WHAT_CAMPAIGN:
        return check_campaign(op->campaign, error);
    case GAVEL__OP__WHAT_WITHDRAW:
        return check_withdraw(op->withdraw, error);
    case GAVEL__OP__WHAT_DIED:
        return check_died(op->died, is_from_client, error);
    case GAVEL__OP__WHAT_CLAIM:
        return check_claim(op->claim, error);
    case GAVEL__OP__WHAT_RENEW:
        return check_renew(op->renew, error);
    case GAVEL__OP__WHAT_RELEASE:
        return check_release(op->release, is_from_client, error);
    case GAVEL__OP__WHAT_WISH:
        return check_wish(op->wish, is_from_client, error);
    case GAVEL__OP__WHAT_REOPEN:
        return check_group(op->reopen->group, error);
    case GAVEL__OP__WHAT_REGISTER_CANDIDATE:
        return check_register(op->register_candidate, error);
    case GAVEL__OP__WHAT_LEAVE:
        return check_pair(op->leave->group, op->leave->id, error);
    case GAVEL__OP__WHAT_LAPSE:
        if (is_from_client)
            return error_set(error, GAVEL_ERR_INVALID, "only a node may report that a lease has run out");
        return check_group(op->lapse->group, error);
    case GAVEL__OP__WHAT_PUT_NOTE:
        return check_put(op->put_note, error);
    case GAVEL__OP__WHAT_DELETE_NOTE:
        return check_note(op->delete_note->group, op->delete_note->key, error);
    case GAVEL__OP__WHAT_REFUSED:
        return check_refused(op->refused, is_from_client, error);
    case GAVEL__OP__WHAT_REMOVE_GROUP:
        return check_remove(op->remove_group, is_from_client, error);
    default:
        return error_set(error, GAVEL_ERR_INVALID,
                         "the operation is not known; is the client newer than the node?");
    }
}
