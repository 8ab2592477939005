/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who leads a group, asked of one node, which answers from its own table: by
 * HTTP and by the client protocol, beside a bare TCP echo, in turns. The node
 * leads the cluster, and its table has many groups.
 */
#include "bench/http/load.h"
#include "bench/sessions/sessions.h"

#include "os/clock.h"
#include "wire/client.h"

#include <stdlib.h>
#include <string.h>

#define GROUPS 10000
#define GROUPS_QUICK 100
#define HOLDERS 10
#define PREFIX "asked"
#define ROUNDS 3
#define ROUND_NS NS_PER_S
#define QUICK_NS (NS_PER_S / 4)
#define ACQUIRE_LIMIT_NS (60 * NS_PER_S)

enum { HOLDER };

enum { ONE, MANY, WIDTHS };
static const unsigned widths[WIDTHS] = {[ONE] = 1, [MANY] = 16};

enum { SERVER_ECHO, SERVER_HTTP, SERVER_CLIENT, SERVERS };
static const char *const names[SERVERS] = {[SERVER_ECHO] = "floor: TCP echo",
                                           [SERVER_HTTP] = "GET /groups/{g}/leader",
                                           [SERVER_CLIENT] = "client protocol"};

static bool is_held(const char *answer, size_t size)
{
    Gavel__ClientFrame *frame;
    const char *ignored;

    if (client_frame_unpack((const uint8_t *)answer + CLIENT_LENGTH_BYTES, size - CLIENT_LENGTH_BYTES, &frame,
                            &ignored) != GAVEL_OK)
        return false;
    bool is_good = frame->what_case == GAVEL__CLIENT_FRAME__WHAT_ANSWER &&
                   frame->answer->status == GAVEL_OK && frame->answer->n_groups == 1 &&
                   frame->answer->groups[0]->is_held;
    client_frame_free(frame);
    return is_good;
}

static enum gavel_status put(const Gavel__ClientFrame *frame, char *bytes, size_t *ret_size)
{
    uint8_t *packed;
    size_t size;
    enum gavel_status status = client_frame_pack(frame, &packed, &size);

    if (status != GAVEL_OK)
        return status;
    if (size <= LOAD_REQUEST_MAX) {
        memcpy(bytes, packed, size);
        *ret_size = size;
    } else {
        status = GAVEL_ERR_TOO_LARGE;
    }
    free(packed);
    return status;
}

/* A greeting and a question, as bytes that are sent again and again. */
static enum gavel_status plan_frames(struct load_plan *plan, char *group)
{
    char program[] = "gavel bench";
    Gavel__ClientHello hello;
    Gavel__ClientFrame frame;
    Gavel__Ask ask;

    gavel__client_frame__init(&frame);
    gavel__client_hello__init(&hello);
    gavel__ask__init(&ask);
    hello.version_min = CLIENT_VERSION_MIN;
    hello.version_max = CLIENT_VERSION_MAX;
    hello.program = program;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_HELLO;
    frame.hello = &hello;
    enum gavel_status status = put(&frame, plan->greeting, &plan->greeting_bytes);
    if (status != GAVEL_OK)
        return status;
    ask.tag = 1;
    ask.kind = GAVEL__ASK__KIND__GROUP;
    ask.is_local = true;
    ask.group = group;
    frame.what_case = GAVEL__CLIENT_FRAME__WHAT_ASK;
    frame.ask = &ask;
    plan->judge = is_held;
    return put(&frame, plan->request, &plan->request_bytes);
}

static enum gavel_status plan(struct load_rig *rig, size_t server, size_t node, unsigned connections)
{
    static const enum load_kind kinds[SERVERS] = {
        [SERVER_ECHO] = LOAD_ECHO, [SERVER_HTTP] = LOAD_HTTP, [SERVER_CLIENT] = LOAD_FRAMES};
    const struct local_node *about = local_cluster_node(&rig->cluster->cluster, node);
    const uint16_t ports[SERVERS] = {[SERVER_ECHO] = rig->echo_port,
                                     [SERVER_HTTP] = about->api_port,
                                     [SERVER_CLIENT] = about->client_port};
    char group[] = PREFIX "000042", path[64];

    rig->plan = (struct load_plan){.port = ports[server],
                                   .connections = connections,
                                   .kind = kinds[server],
                                   .duration = rig->cluster->bench->is_quick ? QUICK_NS : ROUND_NS};
    (void)snprintf(path, sizeof path, "/groups/%s/leader", group);
    load_plan_get(&rig->plan, path);
    return server == SERVER_CLIENT ? plan_frames(&rig->plan, group) : GAVEL_OK;
}

static void tell(struct load_rig *rig, struct load_tally tallies[SERVERS][WIDTHS])
{
    struct report *report = &rig->cluster->bench->report;

    for (size_t width = 0; width < WIDTHS; width++) {
        char how[32], name[96];
        (void)snprintf(how, sizeof how, "%u connection%s", widths[width], widths[width] > 1 ? "s" : "");
        for (size_t server = SERVERS; server-- > 0;)
            load_tell(rig, names[server], how, &tallies[server][width]);
        for (size_t server = SERVER_HTTP; server < SERVERS; server++) {
            (void)snprintf(name, sizeof name, "%s beside the echo, %s", names[server], how);
            report_value(report, name,
                         load_per_second(&tallies[server][width]) /
                             load_per_second(&tallies[SERVER_ECHO][width]),
                         "of its rate", (struct aim){0});
        }
    }
}

static enum gavel_status hold(struct cluster *cluster, struct client_load_plan *plan)
{
    struct mark ignored;
    enum gavel_status status = sessions_start(cluster->rig, HOLDER, "holder", plan);

    return status != GAVEL_OK ? status
                              : sessions_tell(cluster->rig, HOLDER, CLIENT_LOAD_CAMPAIGN, CLIENT_LOAD_HOLDS,
                                              ACQUIRE_LIMIT_NS, &ignored);
}

static enum gavel_status measure(struct load_rig *rig, size_t leader)
{
    struct load_tally tallies[SERVERS][WIDTHS] = {0};
    size_t rounds = rig->cluster->bench->is_quick ? 1 : ROUNDS;
    enum gavel_status status = GAVEL_OK;

    for (size_t i = 0; i < rounds * WIDTHS * SERVERS && status == GAVEL_OK; i++) {
        size_t server = i % SERVERS, width = i / SERVERS % WIDTHS;
        status = plan(rig, server, leader, widths[width]);
        if (status == GAVEL_OK)
            status = load_rig_run(rig, &tallies[server][width]);
    }
    if (status == GAVEL_OK)
        tell(rig, tallies);
    for (size_t i = 0; i < SERVERS * WIDTHS; i++)
        samples_done(&tallies[i / WIDTHS][i % WIDTHS].latency);
    return status;
}

static enum gavel_status run(struct cluster *cluster)
{
    struct client_load_plan holder = {
        .target_count = 1,
        .connections = HOLDERS,
        .ttl_ms = SESSIONS_TTL_MS,
        .tells_process = true,
        .own = {.prefix = PREFIX, .count = cluster->bench->is_quick ? GROUPS_QUICK : GROUPS}};
    struct bench_cluster_status said[CLUSTER_NODES];
    struct load_rig rig;
    size_t leader;
    enum gavel_status status = load_rig_open(&rig, cluster);

    sessions_target(cluster, false, holder.targets[0]);
    if (status == GAVEL_OK)
        status = bench_cluster_await_steady(cluster, 0, &leader, said);
    if (status == GAVEL_OK)
        status = hold(cluster, &holder);
    if (status == GAVEL_OK)
        status = measure(&rig, leader);
    report_note(
        &cluster->bench->report,
        "answers of the cluster's leader from its own table, of %zu groups; plain TCP on loopback; one process makes the load, on one CPU and at nice %d",
        holder.own.count, LOAD_NICE);
    bench_cluster_note(cluster, 0);
    sessions_end(cluster->rig, HOLDER);
    load_rig_close(&rig);
    return status;
}

enum gavel_status bench_sessions_lookups(struct bench *bench, struct rig *rig)
{
    return bench_with_clients(bench, rig, run, NULL);
}
