/* SPDX-License-Identifier: Apache-2.0 */

/* Three nodes, and their answers. */
#include "bench/cluster/cluster.h"

#include "base/error.h"
#include "base/prng.h"
#include "os/clock.h"
#include "os/entropy.h"

#include <errno.h>
#include <jansson.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ASK_LIMIT_NS (2 * NS_PER_S)
#define LOOK_AGAIN_NS (10 * NS_PER_MS)
#define TAIL_BYTES 4096

enum gavel_status trial_cluster_open(struct cluster *cluster, struct gavel_error *error)
{
    const struct local_options options = {.gaveld = cluster->bench->gaveld,
                                          .base = cluster->rig->directory,
                                          .cluster = "bench",
                                          .serves_clients = cluster->serves_clients};

    cluster->cluster = (struct local_cluster){0};
    enum gavel_status status = local_cluster_start(CLUSTER_NODES, &options, &cluster->cluster, error);
    if (status != GAVEL_OK)
        return status;
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        http_line_init(&cluster->lines[i], local_cluster_node(&cluster->cluster, i)->api_port);
        cluster->streams[i] = (struct bench_cluster_stream){.fd = -1};
    }
    bench_cluster_forget(cluster);
    return GAVEL_OK;
}

void trial_cluster_close(struct cluster *cluster)
{
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        http_line_close(&cluster->lines[i]);
        if (cluster->streams[i].fd >= 0)
            (void)close(cluster->streams[i].fd); /* nothing of it is kept */
        cluster->streams[i].fd = -1;
    }
    local_cluster_stop(&cluster->cluster);
}

/* What the nodes said last, for who looks into a failure. */
static void print_logs(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->cluster.count; i++) {
        const struct local_node *node = local_cluster_node(&cluster->cluster, i);
        char tail[TAIL_BYTES + 1];
        FILE *file = fopen(node->log, "re");
        if (!file)
            continue;
        (void)fseek(file, -TAIL_BYTES, SEEK_END); /* fails on a shorter file, which is then read whole */
        size_t length = fread(tail, 1, TAIL_BYTES, file);
        tail[length] = '\0';
        (void)fprintf(stderr, "gavel bench: the end of the log of %s:\n%s", node->name, tail);
        (void)fclose(file); /* only read from */
    }
}

static enum gavel_status with_cluster(struct bench *bench, struct rig *rig, bench_cluster_run run, void *user,
                                      bool serves_clients)
{
    char program[PATH_MAX];
    struct gavel_error error = {0};
    struct cluster *cluster = calloc(1, sizeof *cluster);
    enum gavel_status status = cluster ? GAVEL_OK : GAVEL_ERR_NO_MEMORY;

    if (status == GAVEL_OK && !bench->gaveld)
        status = local_cluster_program(program, &error);
    if (status == GAVEL_ERR_NOT_FOUND) {
        report_note(&bench->report, "left out: %s", error.message);
        free(cluster);
        return GAVEL_OK;
    }
    if (status == GAVEL_OK) {
        cluster->bench = bench;
        cluster->rig = rig;
        cluster->user = user;
        cluster->serves_clients = serves_clients;
        if (getloadavg(&cluster->load, 1) != 1)
            cluster->load = -1;
        status = trial_cluster_open(cluster, &error);
    }
    if (status != GAVEL_OK) {
        report_note(&bench->report, "%s", error.message);
    } else {
        status = run(cluster);
        if (status != GAVEL_OK && status != GAVEL_ERR_STOPPED)
            print_logs(cluster);
        trial_cluster_close(cluster);
    }
    free(cluster);
    return status;
}

enum gavel_status bench_with_cluster(struct bench *bench, struct rig *rig, bench_cluster_run run)
{
    return with_cluster(bench, rig, run, NULL, false);
}

enum gavel_status bench_with_clients(struct bench *bench, struct rig *rig, bench_cluster_run run, void *user)
{
    return with_cluster(bench, rig, run, user, true);
}

static bool take_text(const json_t *root, const char *key, char *buffer, size_t size)
{
    const json_t *value = json_object_get(root, key);
    const char *text = json_is_null(value) ? "" : json_string_value(value);

    if (!text || strlen(text) >= size)
        return false;
    memcpy(buffer, text, strlen(text) + 1);
    return true;
}

static uint64_t take_number(const json_t *root, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(root, key)); /* 0 if there is none */
}

static size_t count_connected(const json_t *peers)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *peer = json_array_get(peers, i);
        count +=
            json_is_true(json_object_get(peer, "connected")) && !json_is_true(json_object_get(peer, "self"));
    }
    return count;
}

enum gavel_status bench_cluster_read_status(const struct http_answer *answer,
                                            struct bench_cluster_status *ret_status)
{
    struct bench_cluster_status status = {0};
    json_t *root = answer->code == 200 ? json_loads(answer->body, 0, NULL) : NULL;

    bool is_good = root && take_text(root, "leader_id", status.leader, sizeof status.leader) &&
                   json_is_boolean(json_object_get(root, "has_lease")) &&
                   json_is_integer(json_object_get(root, "pid"));
    if (is_good) {
        status.is_leader = json_is_true(json_object_get(root, "is_leader"));
        status.has_lease = json_is_true(json_object_get(root, "has_lease"));
        status.term = take_number(root, "term");
        status.pid = (pid_t)take_number(root, "pid");
        status.guard_pid = (pid_t)take_number(root, "guard_pid");
        status.uptime_ms = (int64_t)take_number(root, "uptime_ms");
        status.commit = take_number(root, "commit");
        status.applied = take_number(root, "applied");
        status.snapshot = take_number(root, "snapshot");
        status.late_heartbeats = take_number(json_object_get(root, "counters"), "late_heartbeats");
        status.connected = count_connected(json_object_get(root, "peers"));
        *ret_status = status;
    }
    json_decref(root);
    return is_good ? GAVEL_OK : GAVEL_ERR_IO;
}

enum gavel_status bench_cluster_read_leader(const struct http_answer *answer,
                                            char ret_name[static CLUSTER_NAME_MAX])
{
    if (answer->code == 503) {
        ret_name[0] = '\0';
        return GAVEL_OK;
    }
    json_t *root = answer->code == 200 ? json_loads(answer->body, 0, NULL) : NULL;
    bool is_good = root && take_text(root, "leader_id", ret_name, CLUSTER_NAME_MAX);
    json_decref(root);
    return is_good ? GAVEL_OK : GAVEL_ERR_IO;
}

enum gavel_status bench_cluster_ask_status(struct cluster *cluster, size_t node, gavel_ns until,
                                           struct bench_cluster_status *ret_status)
{
    enum gavel_status status = http_line_get(&cluster->lines[node], "/status", until, &cluster->answer);

    return status != GAVEL_OK ? status : bench_cluster_read_status(&cluster->answer, ret_status);
}

enum gavel_status bench_cluster_ask_leader(struct cluster *cluster, size_t node, gavel_ns until,
                                           char ret_name[static CLUSTER_NAME_MAX])
{
    enum gavel_status status = http_line_get(&cluster->lines[node], "/leader", until, &cluster->answer);

    return status != GAVEL_OK ? status : bench_cluster_read_leader(&cluster->answer, ret_name);
}

size_t bench_cluster_find(const struct cluster *cluster, const char *name)
{
    size_t i = 0;

    while (i < CLUSTER_NODES && strcmp(local_cluster_node(&cluster->cluster, i)->name, name) != 0)
        i++;
    return i;
}

/* The leader if all agree on it and nothing is under way; CLUSTER_NODES otherwise. */
static size_t look(struct cluster *cluster, gavel_ns settled, struct bench_cluster_status *statuses)
{
    size_t leader = CLUSTER_NODES, leaders = 0;

    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        if (bench_cluster_ask_status(cluster, i, clock_now() + ASK_LIMIT_NS, &statuses[i]) != GAVEL_OK)
            return CLUSTER_NODES;
        if (statuses[i].has_lease)
            leader = i, leaders++;
    }
    if (leaders != 1)
        return CLUSTER_NODES;
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        if (bench_cluster_find(cluster, statuses[i].leader) != leader ||
            statuses[i].term != statuses[leader].term || statuses[i].applied < statuses[leader].commit ||
            statuses[i].connected < CLUSTER_NODES - 1 || ns_from_ms(statuses[i].uptime_ms) < settled)
            return CLUSTER_NODES;
    return leader;
}

enum gavel_status bench_cluster_await_steady(struct cluster *cluster, gavel_ns settled, size_t *ret_leader,
                                             struct bench_cluster_status ret_statuses[static CLUSTER_NODES])
{
    gavel_ns until = clock_now() + CLUSTER_LIMIT_NS + settled;

    while (clock_now() < until) {
        if (rig_is_interrupted())
            return GAVEL_ERR_STOPPED;
        size_t leader = look(cluster, settled, ret_statuses);
        if (leader < CLUSTER_NODES) {
            *ret_leader = leader;
            return GAVEL_OK;
        }
        bench_cluster_listen(cluster, clock_now() + LOOK_AGAIN_NS);
    }
    return GAVEL_ERR_TIMEOUT;
}

void bench_cluster_pause(struct cluster *cluster, gavel_ns longest)
{
    struct prng prng;

    prng_seed(&prng, entropy_u64());
    gavel_ns until = clock_now() + prng_between(&prng, 0, longest);
    while (clock_now() < until && !rig_is_interrupted())
        bench_cluster_listen(cluster, until);
}

enum gavel_status bench_cluster_await_death(pid_t pid, gavel_ns until)
{
    struct pollfd death = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    gavel_ns left = ns_max(until - clock_now(), 0);

    if (death.fd < 0)
        return errno == ESRCH ? GAVEL_OK : GAVEL_ERR_IO;
    int ready = poll(&death, 1, (int)(left / NS_PER_MS));
    (void)close(death.fd);
    return ready == 1 ? GAVEL_OK : GAVEL_ERR_TIMEOUT;
}

void bench_cluster_note(struct cluster *cluster, size_t failed)
{
    static const struct {
        long type;
        const char *name;
    } kinds[] = {{EXT4_SUPER_MAGIC, "ext4"},
                 {XFS_SUPER_MAGIC, "xfs"},
                 {BTRFS_SUPER_MAGIC, "btrfs"},
                 {TMPFS_MAGIC, "tmpfs"},
                 {OVERLAYFS_SUPER_MAGIC, "overlay"}};
    struct statfs filesystem;
    const char *name = "another file system";

    if (statfs(cluster->rig->directory, &filesystem) == 0)
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if ((long)filesystem.f_type == kinds[i].type)
                name = kinds[i].name;
    report_note(&cluster->bench->report, "%d nodes on loopback without TLS, default settings, data on %s%s",
                CLUSTER_NODES, name,
                strcmp(name, "tmpfs") == 0 ? ", which is memory: set TMPDIR to a directory on disk" : "");
    if (cluster->bench->gaveld)
        report_note(&cluster->bench->report, "the nodes run %s", cluster->bench->gaveld);
    if (cluster->load >= 0)
        report_note(&cluster->bench->report, "load average before it began: %.2f, with %ld CPUs",
                    cluster->load, sysconf(_SC_NPROCESSORS_ONLN));
    if (failed)
        report_note(&cluster->bench->report, "%zu trials were not over within %lld s and count as that",
                    failed, (long long)(CLUSTER_LIMIT_NS / NS_PER_S));
}
