/* SPDX-License-Identifier: Apache-2.0 */

/* What a client load asks of the cluster, and what it hears from it. */
#include "bench/sessions/client_load_internal.h"

#include "base/assert.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of one request; the others of the connection go after it. */
#define BATCH 500
#define PAGE 1000

/* An operation with all that it points to. */
struct item {
    Gavel__Op op;
    union {
        Gavel__Campaign campaign;
        Gavel__Withdraw withdraw;
        Gavel__PutNote put;
    };
    char group[CLIENT_LOAD_NAME_BYTES];
};

static void name_group(const struct client_load_set *set, size_t number,
                       char name[static CLIENT_LOAD_NAME_BYTES])
{
    (void)snprintf(name, CLIENT_LOAD_NAME_BYTES, "%s%06u", set->prefix, (unsigned)number);
}

/* The set of the group of that name and its number in it; NULL if it is none of ours. */
static struct client_load_groups *find_group(struct client_load *client_load, const char *name,
                                             size_t *ret_number)
{
    for (size_t i = 0; i < CLIENT_LOAD_SETS; i++) {
        struct client_load_groups *groups = &client_load->groups[i];
        size_t length = strlen(groups->set.prefix);
        char *end;

        if (!groups->set.count || strncmp(name, groups->set.prefix, length) != 0)
            continue;
        size_t number = strtoul(name + length, &end, 10);
        if (*end || end == name + length || number >= groups->set.count)
            continue;
        *ret_number = number;
        return groups;
    }
    return NULL;
}

static void fill_campaign(struct item *item, const struct client_load_set *set, size_t number, char *id)
{
    gavel__op__init(&item->op);
    gavel__campaign__init(&item->campaign);
    name_group(set, number, item->group);
    item->campaign.group = item->group;
    item->campaign.id = id;
    item->op.what_case = GAVEL__OP__WHAT_CAMPAIGN;
    item->op.campaign = &item->campaign;
}

static void fill_withdrawal(struct item *item, const struct client_load_set *set, size_t number)
{
    gavel__op__init(&item->op);
    gavel__withdraw__init(&item->withdraw);
    name_group(set, number, item->group);
    item->withdraw.group = item->group;
    item->op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    item->op.withdraw = &item->withdraw;
}

static void fill_note(struct item *item, const struct client_load_set *set, size_t number)
{
    static char key[] = "note";
    static uint8_t value[] = "up to line 17";

    gavel__op__init(&item->op);
    gavel__put_note__init(&item->put);
    name_group(set, number, item->group);
    item->put.group = item->group;
    item->put.key = key;
    item->put.value = (ProtobufCBinaryData){.len = sizeof value - 1, .data = value};
    item->op.what_case = GAVEL__OP__WHAT_PUT_NOTE;
    item->op.put_note = &item->put;
}

/* Its candidates are called so in every group. */
static void name_connection(const struct client_load_connection *connection,
                            char name[static CLIENT_LOAD_NAME_BYTES])
{
    (void)snprintf(name, CLIENT_LOAD_NAME_BYTES, "%.16s-%u", connection->client_load->context->name,
                   (unsigned)connection->number);
}

/* Told by the answer to its campaign, and by the change: whichever comes first counts. */
static void hold(struct client_load_groups *groups, size_t number, uint64_t epoch)
{
    if (!groups->epochs[number])
        groups->held++;
    groups->epochs[number] = epoch;
}

/* Whoever holds all that it campaigned for says so once; of the groups of others it is enough to be in
 * line. */
static void look_whether_done(const struct client_load_groups *groups)
{
    const struct client_load *client_load = groups->client_load;
    bool is_own = groups == &client_load->groups[CLIENT_LOAD_OWN];

    if (groups->answered == groups->set.count && (!is_own || groups->held == groups->set.count))
        client_load_tell(client_load, is_own ? CLIENT_LOAD_HOLDS : CLIENT_LOAD_STANDS, (int64_t)groups->held);
}

static void on_campaigned(void *user, enum gavel_status status, const char *message,
                          const Gavel__OpResult *const *results, size_t count)
{
    struct client_load_job *job = user;
    const struct client_load *client_load = job->groups->client_load;

    if (status != GAVEL_OK) {
        client_load_fail(job->connection->client_load, status, "cannot campaign", message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (results[i]->status) {
            client_load_fail(job->connection->client_load, (enum gavel_status)results[i]->status,
                             "a campaign was refused", results[i]->message);
            return;
        }
        if (client_load->plan->is_candidate)
            member_mark(client_load->context, MARK_KNOWS, results[i]->epoch, clock_now(), 0);
        else if (results[i]->epoch == results[i]->revision)
            hold(job->groups, job->next, results[i]->epoch);
        job->next += client_load->plan->connections;
    }
    job->groups->answered += count;
    look_whether_done(job->groups);
}

/* Asks for the same in every group of the set that is the connection's. */
static void submit(struct client_load_connection *connection, struct client_load_groups *groups,
                   bool is_withdrawal, cluster_link_result_cb callback)
{
    struct client_load *client_load = connection->client_load;
    struct item *items = calloc(BATCH, sizeof *items);
    const Gavel__Op *ops[BATCH];
    char id[CLIENT_LOAD_NAME_BYTES];
    size_t count = 0, step = client_load->plan->connections;

    if (!items) {
        client_load_fail(client_load, GAVEL_ERR_NO_MEMORY, "cannot ask for anything", "");
        return;
    }
    name_connection(connection, id);
    for (size_t i = connection->number; i < groups->set.count; i += step) {
        if (is_withdrawal)
            fill_withdrawal(&items[count], &groups->set, i);
        else
            fill_campaign(&items[count], &groups->set, i, id);
        ops[count] = &items[count].op;
        if (++count == BATCH || i + step >= groups->set.count) {
            cluster_link_submit(connection->cluster, ops, count, NEVER, callback,
                                &connection->jobs[groups - client_load->groups]);
            count = 0;
        }
    }
    free(items);
}

void client_load_campaign(struct client_load_connection *connection, struct client_load_groups *groups)
{
    submit(connection, groups, false, on_campaigned);
}

static void on_left(void *user, enum gavel_status status, const char *message,
                    const Gavel__OpResult *const *results, size_t count)
{
    struct client_load_job *job = user;
    struct client_load_groups *groups = job->groups;

    (void)results; /* who is not there has left */
    if (status != GAVEL_OK) {
        client_load_fail(job->connection->client_load, status, "cannot leave", message);
        return;
    }
    groups->answered -= count;
    if (groups->answered == 0)
        client_load_tell(groups->client_load, CLIENT_LOAD_LEFT, 0);
}

void client_load_leave(struct client_load_connection *connection, struct client_load_groups *groups)
{
    /* What is held no longer counts from here on, so that its end is no loss. */
    for (size_t i = connection->number; i < groups->set.count;
         i += connection->client_load->plan->connections) {
        groups->held -= groups->epochs[i] != 0;
        groups->epochs[i] = 0;
    }
    connection->jobs[groups - connection->client_load->groups].next = connection->number;
    submit(connection, groups, true, on_left);
}

static void on_resigned(void *user, enum gavel_status status, const char *message,
                        const Gavel__OpResult *const *results, size_t count)
{
    struct client_load_connection *connection = user;

    (void)results; /* one that does not lead any more has nothing to give up */
    (void)count;
    if (status != GAVEL_OK)
        client_load_fail(connection->client_load, status, "cannot resign", message);
}

void client_load_resign(struct client_load_connection *connection)
{
    struct client_load_groups *groups = &connection->client_load->groups[CLIENT_LOAD_OWN];
    Gavel__Withdraw withdraw;
    Gavel__Op op;
    const Gavel__Op *ops[] = {&op};
    char group[CLIENT_LOAD_NAME_BYTES];

    gavel__withdraw__init(&withdraw);
    gavel__op__init(&op);
    name_group(&groups->set, 0, group);
    withdraw.group = group;
    withdraw.epoch = groups->epochs[0];
    withdraw.stays = true;
    op.what_case = GAVEL__OP__WHAT_WITHDRAW;
    op.withdraw = &withdraw;
    member_mark(connection->client_load->context, MARK_RESIGN, groups->epochs[0], clock_now(), 0);
    cluster_link_submit(connection->cluster, ops, 1, NEVER, on_resigned, connection);
    /* Its own work has ended when it says so. */
    member_mark(connection->client_load->context, MARK_STOPPED, groups->epochs[0], clock_now(), 0);
}

static void note_answer(const struct client_load_connection *connection, gavel_ns now)
{
    struct client_load_board *board = connection->client_load->plan->board;
    size_t count = atomic_load(&board->latency_count);

    if (count < CLIENT_LOAD_LATENCIES_MAX) {
        board->latencies[count] = now - connection->sent_at;
        atomic_store(&board->latency_count, count + 1); /* the driver reads what is below it */
    }
    if (connection->sent_at >= atomic_load(&board->since) &&
        !atomic_load(&board->answered_at[connection->number])) {
        atomic_store(&board->answered_at[connection->number], now);
        client_load_tell(connection->client_load, CLIENT_LOAD_ANSWERED, (int64_t)connection->number);
    }
}

static void on_written(void *user, enum gavel_status status, const char *message,
                       const Gavel__OpResult *const *results, size_t count)
{
    struct client_load_connection *connection = user;
    struct client_load *client_load = connection->client_load;

    if (status == GAVEL_OK && count && results[0]->status != GAVEL_OK)
        status = (enum gavel_status)results[0]->status;
    if (status != GAVEL_OK) {
        client_load_fail(client_load, status, "a write was refused", message);
        return;
    }
    note_answer(connection, clock_now());
    connection->sent_at = 0;
    if (!client_load->is_writing)
        return;
    if (client_load->plan->pace && !client_load->is_hurried)
        client_load_write_later(connection, client_load->plan->pace);
    else
        client_load_write(connection);
}

void client_load_write_later(struct client_load_connection *connection, gavel_ns pause)
{
    struct timeval after = {.tv_sec = pause / NS_PER_S,
                            .tv_usec = (suseconds_t)(pause % NS_PER_S / NS_PER_US)};

    (void)evtimer_add(connection->pace, &after); /* there is room for it since evtimer_new() */
}

void client_load_write(struct client_load_connection *connection)
{
    struct item item;
    const Gavel__Op *ops[] = {&item.op};
    char id[CLIENT_LOAD_NAME_BYTES];
    const struct client_load_plan *plan = connection->client_load->plan;

    ASSERT(connection->number < plan->own.count);
    if (plan->writes_notes) {
        fill_note(&item, &plan->own, connection->number);
    } else {
        name_connection(connection, id);
        fill_campaign(&item, &plan->own, connection->number, id);
        item.campaign.priority = connection->priority = !connection->priority;
    }
    connection->sent_at = clock_now();
    cluster_link_submit(connection->cluster, ops, 1, NEVER, on_written, connection);
}

static void hear_own_election(struct client_load *client_load, struct client_load_groups *groups,
                              size_t number, const Gavel__Change *change)
{
    bool was_held = groups->epochs[number] == change->epoch;

    hold(groups, number, change->epoch);
    if (client_load->plan->is_candidate)
        member_mark(client_load->context, MARK_ELECTED, change->epoch, clock_now(), getpid());
    if (was_held)
        return;
    if (groups == &client_load->groups[CLIENT_LOAD_OWN]) {
        look_whether_done(groups);
        return;
    }
    if (groups->held == (groups->set.count + 1) / 2)
        client_load_tell(client_load, CLIENT_LOAD_HALF, 0);
    if (groups->held == groups->set.count)
        client_load_tell(client_load, CLIENT_LOAD_FOLLOWED, 0);
}

void client_load_heard(struct client_load_connection *connection, const Gavel__Change *change)
{
    struct client_load *client_load = connection->client_load;
    size_t number;
    struct client_load_groups *groups = find_group(client_load, change->group, &number);
    bool is_ours = groups && number % client_load->plan->connections == connection->number;

    if (!is_ours || change->kind != GAVEL__CHANGE__KIND__ELECTED)
        return;
    if (change->session == cluster_link_session(connection->cluster)) {
        hear_own_election(client_load, groups, number, change);
        return;
    }
    if (groups->epochs[number]) {
        groups->epochs[number] = 0;
        groups->held--;
        if (client_load->plan->board)
            atomic_fetch_add(&client_load->plan->board->lost, 1);
    }
    if (client_load->plan->is_candidate)
        member_mark(client_load->context, MARK_KNOWS, change->epoch, clock_now(), 0);
}

static void ask_page(struct client_load *client_load);

static void on_page(void *user, enum gavel_status status, const char *message, const Gavel__Answer *answer)
{
    struct client_load *client_load = user;
    const struct client_load_groups *own = &client_load->groups[CLIENT_LOAD_OWN];

    if (status == GAVEL_OK && answer->status != GAVEL_OK)
        status = (enum gavel_status)answer->status;
    if (status != GAVEL_OK) {
        client_load_fail(client_load, status, "cannot list the groups", message);
        return;
    }
    for (size_t i = 0; i < answer->n_groups; i++) {
        const Gavel__Group *group = answer->groups[i];
        size_t number;

        (void)snprintf(client_load->survey.after, sizeof client_load->survey.after, "%s", group->name);
        if (find_group(client_load, group->name, &number) != own)
            continue;
        client_load->survey.seen++;
        client_load->survey.wrong += !group->is_held || group->epoch != own->epochs[number];
    }
    if (answer->has_more && answer->n_groups)
        ask_page(client_load);
    else
        client_load_tell(client_load, CLIENT_LOAD_VERIFIED,
                         (int64_t)(client_load->survey.wrong + own->set.count - client_load->survey.seen));
}

static void ask_page(struct client_load *client_load)
{
    Gavel__Ask ask;

    gavel__ask__init(&ask);
    ask.kind = GAVEL__ASK__KIND__GROUPS;
    ask.prefix = client_load->groups[CLIENT_LOAD_OWN].set.prefix;
    ask.after = client_load->survey.after;
    ask.limit = PAGE;
    cluster_link_ask(client_load->connections[0].cluster, &ask, NEVER, on_page, client_load);
}

void client_load_verify(struct client_load *client_load)
{
    client_load->survey.seen = client_load->survey.wrong = 0;
    client_load->survey.after[0] = '\0';
    ask_page(client_load);
}
