/* SPDX-License-Identifier: Apache-2.0 */

/* What wakes the consensus thread, besides its peers: time, the disk, requests, children, signals. */
#include "daemon/node/consensus.h"

#include "base/error.h"
#include "daemon/shared/loop.h"
#include "os/clock.h"
#include "os/wakeup.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TICK_MS 100
#define STATUS_EVERY (250 * NS_PER_MS)
/* A leader that is asked to end hands over first, but nobody waits for that for ever. */
#define STOP_LIMIT (5 * NS_PER_S)
#define LEAVE_LIMIT (500 * NS_PER_MS) /* of the sessions that the API closes */

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;

    (void)what;
    wakeup_clear(fd);
    c->loop.armed_at = 0;
    consensus_feed(c, (struct raft_event){.kind = RAFT_TIMER});
}

static void begin_stopping(struct consensus *c);

static void disk_failed(struct consensus *c)
{
    logger_line(
        &c->logger, LOG_ERROR,
        "the disk failed; the node ends, and must not be started again before the disk is known to be good",
        LOG_STR("reason", c->writer.error.message), LOG_END);
    consensus_feed(c, (struct raft_event){.kind = RAFT_DISK_FAILED});
    c->ending.is_stopping = true; /* once nothing of the work is left */
    c->ending.exit_code = NODE_EXIT_DISK;
    (void)consensus_step(c, (struct node_event){.kind = NODE_STOP, .stop.timeout = STOP_LIMIT});
}

/*
 * What we write from now on is gone with this process: the next one would have forgotten votes and entries
 * that the others count on. While it runs it knows them, so a leader can still hand over in order.
 */
static void directory_lost(struct consensus *c)
{
    if (c->ending.is_stopping)
        return;
    consensus_note(
        c, JOURNAL_DIRECTORY_LOST, c->config->id,
        "%.100s was deleted or replaced while this node ran: it ends. Put it back, or replace the member: "
        "gavel member remove, gavel member add, --join",
        c->config->data);
    logger_line(
        &c->logger, LOG_ERROR,
        "the data directory was deleted or replaced; the node hands over, ends, and must not be started with an empty one. Replace the member: gavel member remove, gavel member add, --join",
        LOG_STR("data", c->config->data), LOG_STR("node", c->config->node), LOG_END);
    c->ending.exit_code = NODE_EXIT_LOST;
    begin_stopping(c);
}

static void on_writer(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;
    enum writer_state before = c->disk_state;

    (void)what;
    wakeup_clear(fd);
    if (c->ending.is_over)
        return;
    c->disk_state = atomic_load(&c->writer.state);
    atomic_store(&c->memory->written, atomic_load(&c->writer.written));
    if (atomic_load(&c->writer.is_lost))
        directory_lost(c);
    consensus_feed(c, (struct raft_event){.kind = RAFT_PERSISTED, .seq = atomic_load(&c->writer.durable)});
    consensus_look_at_incoming(c);
    if (c->hang.is_disk_hung || c->hang.is_commit_hung)
        consensus_check_hangs(c);
    if (c->disk_state == before)
        return;
    if (c->disk_state == WRITER_FAILED) {
        disk_failed(c);
    } else if (c->disk_state == WRITER_FULL) {
        c->draft.counters.disk_fulls++;
        consensus_note(
            c, JOURNAL_DISK_FULL, c->config->id,
            "there is no space left in %.150s: this node cannot lead; free some space, or raise data_max",
            c->config->data);
        if (c->node.raft.role == RAFT_LEADER)
            consensus_feed(c, (struct raft_event){.kind = RAFT_STEP_DOWN});
    } else {
        consensus_note(c, JOURNAL_DISK_ROOM, c->config->id, "there is space again");
    }
}

static void on_snapshots(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    consensus_take_snapshots(user);
}

static void on_requests(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    consensus_take_requests(user);
}

static void on_forwardings(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    consensus_take_forwardings(user);
}

/* Whoever kept the children is dead, and a guard is forked before there are threads: by the next
 * incarnation. */
static void start_anew(struct consensus *c)
{
    if (c->ending.is_stopping)
        return;
    c->ending.exit_code = 1;
    begin_stopping(c);
}

static void tell_children(struct consensus *c, const struct leader_commands_event *event)
{
    static const char *const said[] = {
        [LEADER_COMMANDS_RUNS] = "children run",
        [LEADER_COMMANDS_RESTARTED] = "a child was started again",
        [LEADER_COMMANDS_STOPPED] = "children stopped",
        [LEADER_COMMANDS_GAVE_UP] = "the children gave up",
        [LEADER_COMMANDS_LOST] = "the guard of the children died; the node starts again",
    };
    bool is_good = event->news <= LEADER_COMMANDS_STOPPED && event->late_by_ms == 0;

    logger_line(&c->logger, is_good ? LOG_INFO : LOG_ERROR, said[event->news], LOG_U64("epoch", event->epoch),
                LOG_STR("child", event->child), LOG_STR("text", event->text),
                LOG_I64("late_by_ms", event->late_by_ms), LOG_END);
}

static void gave_up(struct consensus *c, uint64_t epoch)
{
    struct node_event event = {.kind = NODE_WORK_FAILED};

    shared_memory_token(epoch, &event.failed.term, &event.failed.lease_epoch);
    (void)consensus_step(c, event);
}

static void on_commands(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;
    struct leader_commands_event event;

    (void)fd;
    (void)what;
    while (leader_commands_look(c->commands, &event)) {
        tell_children(c, &event);
        if (event.news == LEADER_COMMANDS_GAVE_UP)
            gave_up(c, event.epoch);
        else if (event.news == LEADER_COMMANDS_LOST)
            start_anew(c);
    }
    if (c->node.raft.work == RAFT_WORK_STOPPING && leader_commands_has_stopped(c->commands, c->work.epoch)) {
        consensus_work_stopped(c);
        consensus_feed(c, (struct raft_event){.kind = RAFT_WORK_STOPPED});
    }
}

/* Ends when there is nothing left to hand over, to stop or to wait for. */
static void go_on_stopping(struct consensus *c)
{
    gavel_ns now = clock_now();

    if (node_has_left(&c->node, now) && (api_has_left(c->api) || now >= c->ending.leave_until))
        consensus_end(c, c->ending.exit_code);
}

/* A leader hands over first. */
static void begin_stopping(struct consensus *c)
{
    gavel_ns timeout = ns_min(c->config->raft.transfer_timeout, STOP_LIMIT + c->config->raft.stop_margin);

    c->ending.is_stopping = true;
    c->ending.leave_until = clock_now() + LEAVE_LIMIT;
    api_leave(c->api);
    consensus_note(c, JOURNAL_STOPPING, c->config->id, "%s",
                   c->node.raft.role == RAFT_LEADER ? "hands over first" : "");
    (void)consensus_step(c, (struct node_event){.kind = NODE_STOP, .stop.timeout = timeout});
    go_on_stopping(c);
}

static void reload(struct consensus *c)
{
    if (!reload_begin(&c->tls.reload))
        logger_line(&c->logger, LOG_ERROR, "out of memory; the certificates are not read again", LOG_END);
    api_reload(c->api);
    clients_reload(c->clients);
}

static void stop(struct consensus *c)
{
    bool was_asked = c->ending.is_stopping && c->ending.exit_code != 1;

    if (c->ending.exit_code == 1)
        c->ending.exit_code = NODE_EXIT_DONE; /* it was to be started again; now it is not */
    if (was_asked)
        consensus_end(c, c->ending.exit_code); /* twice */
    else if (!c->ending.is_stopping)
        begin_stopping(c);
}

static void on_reloaded(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;
    struct certificates found;

    (void)fd;
    (void)what;
    reload_take(&c->tls.reload, &found);
    if (c->tls.reload.status == GAVEL_OK) {
        SSL_CTX_free(c->tls.certificates.context);
        c->tls.certificates = found;
        c->tls.is_expiry_told = c->tls.is_expired_told = false;
        if (found.context)
            transport_set_tls(c->transport, found.context);
        logger_line(&c->logger, LOG_INFO, "certificates were read again", LOG_END);
    } else {
        logger_line(&c->logger, LOG_ERROR, "the new certificates are not used; the old ones stay",
                    LOG_STR("reason", c->tls.reload.error.message), LOG_END);
    }
    if (c->tls.reload.is_again) {
        c->tls.reload.is_again = false;
        reload(c);
    }
}

static void on_signal(evutil_socket_t signal_number, short what, void *user)
{
    struct consensus *c = user;

    (void)what;
    if (signal_number == SIGHUP)
        reload(c);
    else
        stop(c);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
    struct consensus *c = user;
    gavel_ns now = clock_now();

    (void)fd;
    (void)what;
    atomic_store(&c->memory->alive_at, now); /* the guard feels it (pulse.h) */
    if (c->ending.is_stopping)
        go_on_stopping(c);
    if (c->ending.is_over)
        return;
    if (now >= c->told.status_at) {
        c->told.status_at = now + STATUS_EVERY;
        consensus_send_status(c);
        consensus_publish_peers(c);
        consensus_check_certificate(c);
    }
    consensus_check_hangs(c);
    consensus_check_bindings(c);
    consensus_tell_members(c);
    consensus_compact(c);
    consensus_refresh_members(c);
    process_watch_tick(&c->sessions.process_watch);
    consensus_tick_sessions(c);
    consensus_publish(c);
}

enum gavel_status consensus_begin_events(struct consensus *c, struct gavel_error *error)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct timeval tick = {.tv_usec = TICK_MS * 1000};
    bool is_good = true;

    c->loop.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    c->loop.timer_event = loop_watch(c->loop.base, c->loop.timer_fd, on_timer, c);
    c->loop.writer_event = loop_watch(c->loop.base, c->writer.fd, on_writer, c);
    c->loop.request_event = loop_watch(c->loop.base, c->shared->requests.fd, on_requests, c);
    c->loop.forwarding_event = loop_watch(c->loop.base, c->shared->forwardings.fd, on_forwardings, c);
    c->loop.reload_event = loop_watch(c->loop.base, c->tls.reload.done.fd, on_reloaded, c);
    c->loop.builder_event = loop_watch(c->loop.base, c->builder.done.fd, on_snapshots, c);
    c->loop.decoder_event = loop_watch(c->loop.base, c->decoder.done.fd, on_snapshots, c);
    c->loop.tick_event = event_new(c->loop.base, -1, EV_PERSIST, on_tick, c);
    is_good = c->loop.timer_event && c->loop.writer_event && c->loop.request_event &&
              c->loop.forwarding_event && c->loop.reload_event && c->loop.builder_event &&
              c->loop.decoder_event && c->loop.tick_event && event_add(c->loop.tick_event, &tick) == 0;
    if (c->commands) {
        c->loop.commands_event = loop_watch(c->loop.base, c->commands->fd, on_commands, c);
        is_good = is_good && c->loop.commands_event;
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        c->loop.signal_events[i] = evsignal_new(c->loop.base, signals[i], on_signal, c);
        is_good = is_good && c->loop.signal_events[i] && event_add(c->loop.signal_events[i], NULL) == 0;
    }
    return is_good ? GAVEL_OK : error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory or descriptors");
}

void consensus_end_events(struct consensus *c)
{
    loop_drop(&c->loop.timer_event);
    loop_drop(&c->loop.tick_event);
    loop_drop(&c->loop.writer_event);
    loop_drop(&c->loop.request_event);
    loop_drop(&c->loop.forwarding_event);
    loop_drop(&c->loop.commands_event);
    loop_drop(&c->loop.reload_event);
    loop_drop(&c->loop.builder_event);
    loop_drop(&c->loop.decoder_event);
    for (size_t i = 0; i < sizeof c->loop.signal_events / sizeof *c->loop.signal_events; i++)
        loop_drop(&c->loop.signal_events[i]);
    wakeup_close(&c->loop.timer_fd); /* a timer has nothing to lose either */
}
