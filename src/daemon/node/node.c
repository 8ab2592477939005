/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a node process: what the disk holds, threads and sockets, the
 * loop, and the end. The calling thread becomes the consensus thread.
 */
#include "daemon/node/consensus.h"
#include "daemon/realtime.h"

#include "base/error.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/terminal.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* With fewer, what the node keeps for itself is a large part of them. */
#define DESCRIPTORS_WANTED 1024

static enum gavel_status begin_raft(struct consensus *c, struct disk *disk, struct gavel_error *error)
{
    struct raft_restore restore = {0};
    struct raft_settings settings = c->config->raft;
    enum gavel_status status = disk_begin(disk, &restore, error);

    if (status != GAVEL_OK)
        return status;
    c->seal.cluster = restore.state.cluster;
    c->seal.generation = restore.state.generation;
    if (c->config->secret[0])
        status = seal_key_read(c->config->secret, c->seal.key, error);
    else
        seal_key_of_name(c->config->cluster, c->seal.key);
    settings.verify = seal_verify;
    settings.sign = seal_sign;
    settings.context = &c->seal;
    settings.auto_failover = c->config->auto_failover;
    restore.seed = entropy_u64();
    if (status == GAVEL_OK)
        status = node_init(&c->node, c->table, &settings, &restore, clock_now(), error);
    if (status == GAVEL_OK)
        c->node.frontend.retention = c->config->group_retention;
    if (status == GAVEL_OK && node_actions_init(&c->actions) != GAVEL_OK)
        status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    disk_restore_done(&restore);
    return status;
}

static enum gavel_status begin_transport(struct consensus *c, struct gavel_error *error)
{
    struct transport_settings settings = {.listen = c->config->listen};
    struct transport_events events = consensus_transport_events;
    enum gavel_status status = certificates_read(c->config, &c->tls.certificates, error);

    if (status != GAVEL_OK)
        return status;
    settings.tls = c->tls.certificates.context;
    memcpy(settings.key, c->seal.key, sizeof settings.key);
    settings.has_secret = c->config->secret[0] != '\0';
    consensus_make_hello(c, &settings.self);
    events.user = c;
    return transport_new(c->loop.base, &settings, &events, &c->transport, error);
}

/* What never changes while it runs. */
static void begin_view(struct consensus *c, bool has_guard)
{
    struct view *v = &c->draft;

    (void)snprintf(v->cluster_name, sizeof v->cluster_name, "%s", c->config->cluster);
    (void)snprintf(v->name, sizeof v->name, "%s", c->config->node);
    v->cluster = c->node.raft.state.cluster;
    v->generation = c->node.raft.state.generation;
    v->id = c->config->id;
    v->incarnation = c->node.raft.state.incarnation;
    v->pid = getpid();
    v->guard_pid = has_guard ? getppid() : 0;
    v->started_wall_ms = clock_wall_ms();
    v->started_at = clock_now();
    v->heartbeat = c->config->raft.heartbeat;
    v->election_max = c->config->raft.election_max;
}

/* The guard must know who dies before anybody can hear from us. */
static void begin_memory(struct consensus *c)
{
    atomic_store(&c->memory->cluster, c->node.raft.state.cluster);
    atomic_store(&c->memory->generation, c->node.raft.state.generation);
    atomic_store(&c->memory->node, c->node.raft.state.id);
    atomic_store(&c->memory->incarnation, c->node.raft.state.incarnation);
    atomic_store(&c->memory->directory, c->node.raft.state.directory);
}

static void say_hello(struct consensus *c, bool is_first, bool is_locked)
{
    consensus_note(c, JOURNAL_STARTED, c->config->id, "incarnation %" PRIu64, c->node.raft.state.incarnation);
    logger_line(&c->logger, LOG_INFO, "gaveld runs", LOG_STR("version", GAVEL_VERSION),
                LOG_STR("cluster", c->config->cluster), LOG_STR("node", c->config->node),
                LOG_U64("generation", c->node.raft.state.generation),
                LOG_U64("incarnation", c->node.raft.state.incarnation), LOG_STR("peers", c->config->listen),
                LOG_STR("api", c->config->api_listen), LOG_STR("clients", c->config->clients_listen),
                LOG_STR("socket", c->config->socket), LOG_BOOL("tls", c->config->has_tls),
                LOG_BOOL("realtime", is_first), LOG_BOOL("memory_locked", is_locked), LOG_END);
    if (c->node.raft.config.count == 0)
        logger_line(&c->logger, LOG_INFO, "waits to be added: `gavel member add NAME ADDRESS` at the cluster",
                    LOG_STR("name", c->config->node), LOG_STR("address", c->config->advertise), LOG_END);
}

/* The API has raised the limit as far as it may be. */
static void check_descriptors(struct consensus *c)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_WANTED)
        return;
    logger_line(
        &c->logger, LOG_WARNING,
        "the limit of open files is low, so few clients can connect; raise it with LimitNOFILE=16384, or `ulimit -n 16384`",
        LOG_U64("limit", limit.rlim_cur), LOG_I64("for_clients", clients_fd_limit()), LOG_END);
}

static raft_id id_of_node(const char *name) { return seal_id_of_name("node", name); }

static void introduce(struct consensus *c)
{
    const struct daemon_config *config = c->config;
    struct node_described nodes[RAFT_MEMBERS_MAX + 1];
    size_t count = 0;

    for (; count < config->peer_count; count++) {
        const struct daemon_peer *peer = &config->peers[count];

        nodes[count] = (struct node_described){
            .id = peer->id, .name = peer->name, .address = peer->address, .api = peer->api};
    }
    nodes[count++] = (struct node_described){.id = config->id,
                                             .name = config->node,
                                             .address = config->advertise,
                                             .api = config->api_advertise,
                                             .table_version = TABLE_VERSION};
    node_introduce(&c->node, id_of_node, nodes, count);
}

static enum gavel_status begin(struct consensus *c, struct disk *disk, bool has_guard,
                               struct gavel_error *error)
{
    enum gavel_status status = begin_raft(c, disk, error);

    if (status != GAVEL_OK)
        return status;
    begin_memory(c);
    if (table_keep_history(c->table) != GAVEL_OK)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    introduce(c);
    if (!node_version_is_known(&c->node))
        return error_set(error, GAVEL_ERR_STORE_UNSUPPORTED, "%s", CONSENSUS_TOO_OLD_TEXT);
    c->told.table_version = c->node.members.version;
    detector_init(&c->detector);
    begin_view(c, has_guard);
    status = journal_new(c->node.raft.state.incarnation, &c->shared->journal);
    if (status != GAVEL_OK)
        return error_set(error, status, "out of memory");
    status = writer_start(&c->writer, disk, c->config->realtime);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot start the disk thread: %s", gavel_status_text(status));
    c->loop.base = event_base_new();
    if (!c->loop.base)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "cannot start the loop of events");
    if (reload_init(&c->tls.reload, c->config) != GAVEL_OK)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory or descriptors");
    status = snapshotter_start(&c->builder, SNAPSHOTTER_BUILDS, false);
    if (status == GAVEL_OK)
        status = snapshotter_start(&c->decoder, SNAPSHOTTER_DECODES, c->config->realtime);
    if (status != GAVEL_OK)
        return error_set(error, status, "cannot start a snapshot thread: %s", gavel_status_text(status));
    status = begin_transport(c, error);
    if (status == GAVEL_OK)
        status = consensus_begin_sessions(c, error);
    if (status == GAVEL_OK)
        status = consensus_begin_events(c, error);
    if (status != GAVEL_OK)
        return status;
    c->told.config_index = c->node.raft.config_index;
    c->told.generation = c->node.raft.state.generation;
    c->told.is_member = raft_config_find(&c->node.raft.config, c->config->id);
    consensus_set_peers(c);
    consensus_publish(c);
    status = clients_start(c->shared, &c->clients, error);
    return status == GAVEL_OK ? api_start(c->shared, &c->api, error) : status;
}

/* Signals that come while it starts wait until there is somebody to take them. */
static void hold_signals(bool is_held)
{
    sigset_t set;

    (void)sigemptyset(&set); /* with valid signals none of these fails */
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(is_held ? SIG_SETMASK : SIG_UNBLOCK, &set, NULL);
}

static void run(struct consensus *c)
{
    bool is_locked = c->config->realtime && realtime_lock_memory();
    bool is_first = c->config->realtime && realtime_take(REALTIME_FIRST);

    say_hello(c, is_first, is_locked);
    check_descriptors(c);
    hold_signals(false);
    atomic_store(&c->memory->alive_at, clock_now());
    atomic_store(&c->memory->is_up, 1);
    consensus_feed(c, (struct raft_event){.kind = RAFT_TIMER});
    if (!c->ending.is_over)
        (void)event_base_dispatch(c->loop.base); /* ends by consensus_end() */
}

/* Backwards; safe however far it came. */
static void end(struct consensus *c)
{
    if (c->transport)
        transport_flush(c->transport); /* our last words first: the others may be waiting for them */
    consensus_answer_all(c);
    api_stop(c->api);
    clients_stop(c->clients);
    consensus_end_events(c);
    consensus_end_sessions(c);
    c->ending.is_disk_left = !writer_stop(&c->writer);
    if (c->ending.is_disk_left && atomic_load(&c->writer.is_settling))
        logger_line(
            &c->logger, LOG_WARNING,
            "the disk is too slow to put the data directory in order; nothing is lost, but an older gavel refuses the directory until this node was started and stopped once more",
            LOG_STR("data", c->config->data), LOG_END);
    else if (c->ending.is_disk_left)
        logger_line(&c->logger, LOG_ERROR,
                    "the disk does not answer; pending writes are dropped, as after a crash", LOG_END);
    consensus_end_snapshots(c);
    reload_done(&c->tls.reload);
    transport_free(c->transport);
    if (c->loop.base)
        event_base_free(c->loop.base);
    SSL_CTX_free(c->tls.certificates.context);
    node_done(&c->node);
    node_actions_done(&c->actions);
    free(c->unsent.numbers);
}

/* A failure that another start would meet again is final; one that may pass is not. */
static int exit_code_of(enum gavel_status status)
{
    switch (status) {
    case GAVEL_ERR_STATE:
        return NODE_EXIT_BUSY;
    case GAVEL_ERR_IO:
    case GAVEL_ERR_STORE_FULL:
        return NODE_EXIT_BUSY;
    case GAVEL_ERR_NO_MEMORY:
        return 1;
    default:
        return NODE_EXIT_CONFIG;
    }
}

static int fail(struct consensus *c, const struct gavel_error *error)
{
    logger_line(&c->logger, LOG_ERROR, "cannot start", LOG_STR("reason", error->message), LOG_END);
    return exit_code_of(error->status);
}

static int live(struct consensus *c, bool has_guard)
{
    struct gavel_error error = {0};
    struct disk *disk = NULL;
    int exit_code;

    if (node_open_disk(c->config, c->memory, &disk, &error) != GAVEL_OK) {
        exit_code = fail(c, &error);
        if (error.status == GAVEL_ERR_NOT_FOUND) /* of check_same() */
            exit_code = NODE_EXIT_LOST;
    } else if (begin(c, disk, has_guard, &error) != GAVEL_OK) {
        exit_code = fail(c, &error);
    } else {
        run(c);
        exit_code = c->ending.exit_code;
    }
    end(c);
    if (!c->ending.is_disk_left)
        disk_close(disk);
    return exit_code;
}

/* The children's guard is forked first, while there is only one thread. */
static int live_with_children(struct consensus *c, struct node_shared *shared, bool has_guard)
{
    static struct leader_commands commands; /* must not move, and is too large for a stack */
    struct gavel_error error = {0};
    int exit_code;

    if (c->config->has_leader_commands) {
        if (leader_commands_start(&commands, c->config, c->memory, &error) != GAVEL_OK) {
            log_line(&shared->log, clock_wall_ms(), LOG_ERROR, "cannot start",
                     LOG_STR("reason", error.message), LOG_END);
            return exit_code_of(error.status);
        }
        c->commands = &commands;
    }
    if (logger_start(&c->logger, &shared->log, c->config->realtime) != GAVEL_OK)
        return 1;
    exit_code = live(c, has_guard);
    logger_stop(&c->logger);
    if (c->commands)
        leader_commands_finish(c->commands);
    if (c->ending.is_disk_left || c->ending.is_thread_left)
        _exit(exit_code); /* a thread is in the middle of its work, and nothing of it may be freed */
    return exit_code;
}

int node_run(const struct daemon_config *config, struct shared_memory *memory)
{
    struct consensus *c = calloc(1, sizeof *c);
    struct node_shared *shared = calloc(1, sizeof *shared);
    struct shared_memory *own_memory = NULL;
    int exit_code = 1;

    hold_signals(true);
    (void)signal(SIGPIPE, SIG_IGN);
    if (c && shared && (memory || shared_memory_new(&own_memory) == GAVEL_OK) &&
        view_box_init(&shared->view) == GAVEL_OK && mailbox_init(&shared->requests) == GAVEL_OK &&
        mailbox_init(&shared->forwardings) == GAVEL_OK && table_box_init(&shared->table) == GAVEL_OK) {
        shared->config = config;
        shared->log = terminal_log(STDERR_FILENO, config->log_level, config->log_format);
        c->config = config;
        c->shared = shared;
        c->table = &shared->table.table;
        c->memory = memory ? memory : own_memory;
        c->loop.timer_fd = -1;
        exit_code = live_with_children(c, shared, memory != NULL);
        table_box_done(&shared->table);
        mailbox_done(&shared->forwardings);
        mailbox_done(&shared->requests);
        view_box_done(&shared->view);
        journal_free(shared->journal);
    }
    shared_memory_free(own_memory);
    free(shared);
    free(c);
    return exit_code;
}
