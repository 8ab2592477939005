/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an election costs its server when nothing happens: requests per minute
 * with one leader and ten standbys, by the server's own count (the command of
 * its `count` line). Each server has several loads, one after the other:
 *
 *   gavel run    eleven of them
 *   rivals       eleven of each
 *   plugins      three processes with ten parts each that want to know who
 *                leads: all in one group, so that one loop serves them, or
 *                each in a group of its own; on object stores only, where
 *                requests are what people pay for
 *
 * Servers do not see each other's requests, so they are loaded at the same
 * time.
 */
#include "bench/stores/stores.h"

#include "os/clock.h"

#include <gavel/gavel.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS 11
#define HOSTS 3
#define PARTS 10
#define LOADS_MAX (1 + RIVALS_MAX + 2)
#define KINDS_MAX 16

#define WINDOW_NS (60 * NS_PER_S)
#define WINDOW_QUICK_NS NS_PER_S

/* What a start causes is over by then: two heartbeats of every preset that fits a server. */
#define SETTLE_NS (12 * NS_PER_S)
#define SETTLE_QUICK_NS (NS_PER_S / 4)
#define ELECTION_LIMIT_NS (60 * NS_PER_S)
#define MINUTE_S 60

enum load_kind { LOAD_RUN, LOAD_RIVAL, LOAD_PLUGINS };

struct plugins {
    const char *store;
    size_t groups; /* 1 or PARTS */
};

struct load {
    enum load_kind kind;
    const struct server_rival *rival;
    struct plugins plugins;
    char title[160];
    double per_minute;
    bool is_measured;
};

/* What a server has counted: a sum and its parts. */
struct tally {
    size_t count;
    struct {
        char name[32];
        int64_t value;
    } kinds[KINDS_MAX];
    gavel_ns at;
};

/* A server and what it is loaded with. */
struct loaded {
    const struct server_store *server;
    struct load loads[LOADS_MAX];
    size_t load_count;
    struct field field;  /* of the present load */
    struct tally before; /* when the present window began */
    struct tally idle;   /* what counting itself adds */
    enum gavel_status status;
};

struct loading {
    struct servers list;
    struct loaded servers[SERVERS_MAX];
    size_t count;
    size_t rounds; /* loads of the server that has most */
};

static enum gavel_status count(const struct server_store *server, struct tally *ret_tally)
{
    struct tally tally = {0};
    char line[256];
    FILE *pipe = popen(server->count, "re"); /* NOLINT(cert-env33-c): a command of the shell is what it is */

    if (!pipe)
        return GAVEL_ERR_IO;
    while (tally.count < KINDS_MAX && fgets(line, sizeof line, pipe)) {
        int64_t value;
        if (sscanf(line, "%31s %" SCNd64, tally.kinds[tally.count].name, &value) == 2)
            tally.kinds[tally.count++].value = value;
    }
    while (fgets(line, sizeof line, pipe))
        ; /* to the end, so that it does not fail for want of a reader */
    tally.at = clock_now();
    if (pclose(pipe) != 0 || !tally.count)
        return GAVEL_ERR_IO;
    *ret_tally = tally;
    return GAVEL_OK;
}

static int64_t value_of(const struct tally *tally, const char *name)
{
    for (size_t i = 0; i < tally->count; i++)
        if (strcmp(tally->kinds[i].name, name) == 0)
            return tally->kinds[i].value;
    return 0;
}

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    (void)candidate;
    member_mark(user, MARK_ELECTED, epoch, clock_now(), 0);
}

/* A program with parts that each want to know whether they may work. */
static int plugins_run(const struct member_context *context, void *user)
{
    const struct plugins *plugins = user;
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    struct gavel_candidate *candidate = NULL;
    struct gavel *gavel = NULL;
    union {
        const struct member_context *in;
        void *out; /* user data of the library is not const */
    } self = {.in = context};
    char group[32];

    options.store = plugins->store;
    join.candidate = context->name;
    join.group = group;
    join.subscriber = (struct gavel_subscriber){.on_elected = on_elected, .user = self.out};
    enum gavel_status status = gavel_open(&options, &gavel, NULL);
    for (size_t i = 0; i < PARTS && status == GAVEL_OK; i++) {
        (void)snprintf(group, sizeof group, "plugins-%zu-of-%zu", i % plugins->groups, plugins->groups);
        status = i < plugins->groups ? gavel_join(gavel, &join, &candidate, NULL)
                                     : gavel_subscribe(candidate, &join.subscriber, NULL);
    }
    if (status != GAVEL_OK)
        member_mark(context, MARK_FAILED, 0, clock_now(), status);
    while (status == GAVEL_OK && member_listen(context, clock_now() + NS_PER_S) != RIG_QUIT)
        ;
    (void)gavel_close(gavel); /* not from a callback, so it cannot be refused */
    return status != GAVEL_OK ? 1 : 0;
}

static enum gavel_status start_rivals(struct field *field, const struct server_rival *rival)
{
    enum gavel_status status = GAVEL_OK;
    char program[] = "/bin/sh", option[] = "-c", command[SERVER_COMMAND_MAX + 64], name[32];

    for (uint32_t i = 0; i < MEMBERS && status == GAVEL_OK; i++) {
        char *argv[] = {program, option, command, NULL};
        (void)snprintf(name, sizeof name, "rival-%u", (unsigned)i);
        (void)snprintf(command, sizeof command, "export KEY=load-%d ID=%s; exec %s", (int)getpid(), name,
                       rival->command);
        status = rig_start_program(&field->rig, i, name, argv, NULL);
    }
    return status;
}

/* All parts of one of the processes have been told that they lead; nobody marks anything else but a
 * failure. */
static enum gavel_status await_parts(const struct field *field)
{
    enum gavel_status status = GAVEL_OK;
    struct mark mark;

    for (size_t i = 0; i < PARTS && status == GAVEL_OK; i++) {
        struct mark_query query = {.kind = MARK_ELECTED, .member = ANY_MEMBER, .from = i};
        status = rig_expect(&field->rig, &query, clock_now() + ELECTION_LIMIT_NS, &mark);
    }
    return status;
}

static enum gavel_status start_load(struct field *field, struct load *load)
{
    enum gavel_status status = GAVEL_OK;

    if (load->kind == LOAD_RUN)
        return field_assemble(field, MEMBERS);
    if (load->kind == LOAD_RIVAL)
        return start_rivals(field, load->rival);
    for (uint32_t i = 0; i < HOSTS && status == GAVEL_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "host-%u", (unsigned)i);
        status = rig_start(&field->rig, i, name, plugins_run, &load->plugins, NULL);
    }
    return status != GAVEL_OK ? status : await_parts(field);
}

/* Whether all are still there; who ended before makes the figure worthless. */
static enum gavel_status check_load(struct field *field)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (field->rig.members[i].pid && rig_await(&field->rig, i, clock_now()) != GAVEL_ERR_TIMEOUT)
            return GAVEL_ERR_STATE;
    return GAVEL_OK;
}

static void tell_load(struct bench *bench, const struct loaded *loaded, struct load *load,
                      const struct tally *after)
{
    const struct tally *before = &loaded->before, *idle = &loaded->idle;
    double minutes = (double)(after->at - before->at) / NS_PER_S / MINUTE_S;
    char text[512];
    size_t length = 0;

    for (size_t i = 0; i < after->count; i++) {
        const char *name = after->kinds[i].name;
        double rate =
            (double)(after->kinds[i].value - value_of(before, name) - value_of(idle, name)) / minutes;
        if (i == 0)
            load->per_minute = rate;
        else if (rate >= 0.5 && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %.0f", length ? ", " : "",
                                       name, rate);
    }
    load->is_measured = true;
    report_value(&bench->report, load->title, load->per_minute, "per min", (struct aim){0});
    if (length)
        report_note(&bench->report, "%s: %s", load->title, text);
}

static void add_load(struct loaded *loaded, enum load_kind kind, const char *what, const char *title)
{
    struct load *load = &loaded->loads[loaded->load_count++];

    load->kind = kind;
    (void)snprintf(load->title, sizeof load->title, "%s on %s, %s", what, loaded->server->name, title);
}

static void list_loads(struct loaded *loaded, const struct servers *servers)
{
    const struct server_store *store = loaded->server;
    char title[64];

    add_load(loaded, LOAD_RUN, "gavel run", "1 leader, 10 standbys");
    for (size_t i = 0; i < servers->rival_count; i++)
        if (&servers->stores[servers->rivals[i].store] == store) {
            add_load(loaded, LOAD_RIVAL, servers->rivals[i].title, "1 leader, 10 standbys");
            loaded->loads[loaded->load_count - 1].rival = &servers->rivals[i];
        }
    if (strncmp(store->url, "s3:", 3) != 0)
        return;
    for (size_t groups = 1; groups <= PARTS; groups += PARTS - 1) {
        (void)snprintf(title, sizeof title, "%d hosts, %d subscribers, %zu group%s", HOSTS, PARTS, groups,
                       groups > 1 ? "s" : "");
        add_load(loaded, LOAD_PLUGINS, "libgavel", title);
        loaded->loads[loaded->load_count - 1].plugins =
            (struct plugins){.store = store->url, .groups = groups};
    }
}

static void let_pass(const struct rig *rig, gavel_ns duration)
{
    gavel_ns until = clock_now() + duration;

    while (clock_now() < until && !rig_is_interrupted())
        shared_log_wait(rig->shared_log, shared_log_finished(rig->shared_log), until);
}

/* The steps of a load. Each load has a rig of its own, so that nobody of the one before is left. */
typedef enum gavel_status (*load_step)(struct bench *bench, struct loaded *loaded, struct load *load);

static enum gavel_status begin(struct bench *bench, struct loaded *loaded, struct load *load)
{
    field_open(&loaded->field, bench, loaded->server);
    return loaded->field.status != GAVEL_OK ? loaded->field.status : start_load(&loaded->field, load);
}

static enum gavel_status open_window(struct bench *bench, struct loaded *loaded, struct load *load)
{
    (void)bench;
    (void)load;
    return count(loaded->server, &loaded->before);
}

static enum gavel_status close_window(struct bench *bench, struct loaded *loaded, struct load *load)
{
    struct tally after;
    enum gavel_status status = count(loaded->server, &after);

    if (status == GAVEL_OK)
        status = check_load(&loaded->field);
    if (status == GAVEL_OK)
        tell_load(bench, loaded, load, &after);
    return status;
}

static enum gavel_status end(struct bench *bench, struct loaded *loaded, struct load *load)
{
    (void)bench;
    (void)load;
    field_close(&loaded->field);
    return GAVEL_OK;
}

/* Takes a step of the n-th load on each server; one on which it fails goes no further. */
static void on_each(struct bench *bench, struct loading *loading, size_t n, load_step step)
{
    for (size_t i = 0; i < loading->count; i++) {
        struct loaded *loaded = &loading->servers[i];
        if (n >= loaded->load_count || (loaded->status != GAVEL_OK && step != end))
            continue;
        enum gavel_status status =
            rig_is_interrupted() && step != end ? GAVEL_ERR_STOPPED : step(bench, loaded, &loaded->loads[n]);
        if (status == GAVEL_OK)
            continue;
        loaded->status = status;
        field_fail(&loaded->field, bench, status);
    }
}

/* The n-th load of every server, all at the same time. */
static void take_round(struct bench *bench, const struct rig *rig, struct loading *loading, size_t n)
{
    on_each(bench, loading, n, begin);
    let_pass(rig, bench->is_quick ? SETTLE_QUICK_NS : SETTLE_NS);
    on_each(bench, loading, n, open_window);
    let_pass(rig, bench->is_quick ? WINDOW_QUICK_NS : WINDOW_NS);
    on_each(bench, loading, n, close_window);
    on_each(bench, loading, n, end);
}

/* For the plot: one bar each. */
static void write_csv(struct bench *bench, const struct loading *loading)
{
    char path[PATH_MAX];
    int length = bench->out ? snprintf(path, sizeof path, "%s/load-stores.csv", bench->out) : -1;
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "we") : NULL;

    if (!file)
        return; /* the directory was made; what cannot be written there shows with the other files */
    (void)fprintf(file, "load,per_minute\n");
    for (size_t i = 0; i < loading->count; i++)
        for (size_t n = 0; n < loading->servers[i].load_count; n++)
            if (loading->servers[i].loads[n].is_measured)
                (void)fprintf(file, "\"%s\",%.1f\n", loading->servers[i].loads[n].title,
                              loading->servers[i].loads[n].per_minute);
    if (fclose(file) != 0)
        report_note(&bench->report, "cannot write %s: %s", path, strerror(errno));
}

/* The servers that are counted, with what counting itself adds. */
static enum gavel_status prepare(struct bench *bench, struct loading *loading)
{
    enum gavel_status status = stores_list(bench, &loading->list);

    for (size_t i = 0; i < loading->list.store_count && status == GAVEL_OK; i++) {
        struct loaded *loaded = &loading->servers[loading->count];
        struct tally first;
        loaded->server = &loading->list.stores[i];
        if (!loaded->server->count[0])
            continue;
        list_loads(loaded, &loading->list);
        loading->count++;
        if (loading->rounds < loaded->load_count)
            loading->rounds = loaded->load_count;
        status = count(loaded->server, &first);
        if (status == GAVEL_OK)
            status = count(loaded->server, &loaded->idle);
        for (size_t k = 0; k < loaded->idle.count && status == GAVEL_OK; k++)
            loaded->idle.kinds[k].value -= value_of(&first, loaded->idle.kinds[k].name);
        if (status != GAVEL_OK)
            report_note(&bench->report, "%s: its count prints no name with a number, or fails: %s",
                        loaded->server->name, loaded->server->count);
    }
    return status;
}

enum gavel_status bench_stores_load(struct bench *bench, struct rig *rig)
{
    struct loading *loading = calloc(1, sizeof *loading);
    enum gavel_status status = loading ? prepare(bench, loading) : GAVEL_ERR_NO_MEMORY;

    if (status == GAVEL_OK) {
        for (size_t n = 0; n < loading->rounds && !rig_is_interrupted(); n++)
            take_round(bench, rig, loading, n);
        write_csv(bench, loading);
        report_note(&bench->report, "by the servers' own counts over %lld s, without what counting adds",
                    (long long)((bench->is_quick ? WINDOW_QUICK_NS : WINDOW_NS) / NS_PER_S));
    }
    for (size_t i = 0; loading && i < loading->count && status == GAVEL_OK; i++)
        status = loading->servers[i].status;
    free(loading);
    return status == GAVEL_ERR_NOT_FOUND ? GAVEL_OK : status;
}
