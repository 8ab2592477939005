/* SPDX-License-Identifier: Apache-2.0 */

/* Candidates on the stores of servers. */
#include "bench/stores/stores.h"

#include "base/error.h"
#include "os/clock.h"

#include <string.h>

/* A lease of an object store, twice, and a machine that is busy. */
#define TRIAL_LIMIT_NS (60 * NS_PER_S)

enum gavel_status stores_list(struct bench *bench, struct servers *ret_servers)
{
    struct gavel_error error = {0};

    if (!bench->servers) {
        report_note(
            &bench->report,
            "left out: name servers with --servers FILE (see gavel-bench(1)), or let `make bench ARGS='--only stores'` start some");
        return GAVEL_ERR_NOT_FOUND;
    }
    enum gavel_status status = servers_read(bench->servers, ret_servers, &error);
    if (status != GAVEL_OK)
        report_note(&bench->report, "%s", error.message);
    return status;
}

void field_open(struct field *field, struct bench *bench, const struct server_store *server)
{
    struct gavel_error error = {0};

    *field = (struct field){.server = server};
    (void)snprintf(field->name, sizeof field->name, "%s", server ? server->name : "sqlite");
    field->status = rig_open(&field->rig, &error);
    field->is_open = field->status == GAVEL_OK;
    if (field->status == GAVEL_OK)
        field->status = runs_init(&field->runs, &field->rig, &error);
    if (field->status == GAVEL_OK && server)
        (void)snprintf(field->rig.store, sizeof field->rig.store, "%s", server->url);
    if (field->status != GAVEL_OK)
        report_note(&bench->report, "%s: %s", field->name, error.message);
}

void field_close(struct field *field)
{
    if (field->is_open)
        rig_close(&field->rig);
    samples_done(&field->latency);
    field->is_open = false;
}

enum gavel_status field_start(struct field *field, uint32_t member)
{
    char name[32];

    (void)snprintf(name, sizeof name, "member-%u", (unsigned)member);
    return runs_start(&field->runs, member, name, 0, NULL);
}

enum gavel_status field_await_leader(struct field *field)
{
    struct mark_query query = {
        .kind = MARK_ELECTED, .member = ANY_MEMBER, .epoch_at_least = field->leader.epoch + 1};

    return rig_expect(&field->rig, &query, clock_now() + TRIAL_LIMIT_NS, &field->leader);
}

enum gavel_status field_await_standbys(struct field *field, uint32_t count)
{
    gavel_ns until = clock_now() + TRIAL_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < count && status == GAVEL_OK; i++)
        if (i != field->leader.member)
            status = runs_await_standby(&field->runs, i, field->leader.epoch, until);
    return status;
}

static bool has_ended(const struct field *field, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (rig_is_dead(field->rig.members[i].pid))
            return true;
    return false;
}

enum gavel_status field_assemble(struct field *field, uint32_t count)
{
    struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER};
    gavel_ns until = clock_now() + TRIAL_LIMIT_NS;
    enum gavel_status status = GAVEL_OK;

    for (uint32_t i = 0; i < count && status == GAVEL_OK; i++)
        status = field_start(field, i);
    while (status == GAVEL_OK) {
        status = rig_expect(&field->rig, &query, clock_now() + BENCH_LOOK_NS, &field->leader);
        if (status == GAVEL_OK)
            return field_await_standbys(field, count);
        if (has_ended(field, count)) /* one that the store refuses says so and ends */
            return GAVEL_ERR_STATE;
        if (status == GAVEL_ERR_TIMEOUT && clock_now() < until)
            status = GAVEL_OK;
    }
    return status;
}

void field_fail(struct field *field, struct bench *bench, enum gavel_status status)
{
    field->status = status;
    if (status == GAVEL_ERR_STOPPED)
        return;
    report_note(&bench->report, "%s is not measured to the end: %s", field->name, gavel_status_text(status));
    if (field->is_open)
        runs_print_logs(&field->runs, RIG_MAX, stderr);
}
