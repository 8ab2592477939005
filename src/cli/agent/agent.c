/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel agent: takes part in a group on behalf of a program that only speaks
 * HTTP. The work is done by that program, so two things are not as in a
 * program that has the library inside:
 *
 *   - The program learns that it must stop by asking or by listening, and the
 *     agent cannot know that it has. So it is told (POST /stopped), and gives
 *     the mandate up only then, or when its deadline has come.
 *   - The agent's death is not the program's. It therefore frees nothing: the
 *     lease decides, and what the program was told last stays true.
 *   - The agent's life is not the program's. With --alive-within the program
 *     says that it lives; while it does not the candidate is not eligible.
 *
 * With --no-drain a hand-over and the agent's death free the group at once, and
 * only the epoch keeps a program that has not looked for a while from writing.
 */
#include "cli/agent/agent.h"

#include "base/error.h"
#include "cli/json_out.h"
#include "cli/run/beginning.h"
#include "cli/run/candidate_id.h"
#include "cli/run/event_json.h"
#include "cli/run/leaving.h"
#include "cli/settings/store_location.h"
#include "lib/guard/on_death.h"
#include "os/clock.h"
#include "os/wakeup.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FLUSH_MS 200 /* in the end, for the last answers */
#define ALIVE_WITHIN_MIN_MS 100
#define EXTENSIONS_PER_LEASE 16

static void on_elected(struct gavel_candidate *candidate, uint64_t epoch, void *user)
{
    struct agent *agent = user;

    (void)candidate;
    drain_elected(&agent->drain, epoch);
}

/* The mandate is given up when this returns. */
static void on_demoted(struct gavel_candidate *candidate, enum gavel_reason reason, void *user)
{
    struct agent *agent = user;
    gavel_ns stop_at, deadline = clock_now() + ns_from_ms(agent->cli->config.settings.stop_grace_ms);
    struct drain_view view;

    (void)candidate;
    (void)reason;
    drain_lost(&agent->drain);
    if (!agent->waits_for_program)
        return;
    drain_look(&agent->drain, &view);
    if (agent->on_death && !on_death_read_mandate(agent->on_death, &agent->on_death->entries[0], view.first,
                                                  &stop_at, &deadline))
        return;                                /* it is over already: nothing is gained by waiting */
    (void)drain_wait(&agent->drain, deadline); /* the library tells of an overrun, if it is one */
}

static void on_event(struct gavel_candidate *candidate, const struct gavel_event *event, void *user)
{
    struct agent *agent = user;

    (void)candidate;
    switch (event->kind) {
    case GAVEL_EVENT_BECAME_LEADER:
    case GAVEL_EVENT_ELECTION_CHECK:
        atomic_store(&agent->has_looked, true);
        break;
    case GAVEL_EVENT_MANDATE_RENEWED:
        drain_renewed(&agent->drain, event->epoch);
        break;
    case GAVEL_EVENT_LOST_LEADERSHIP:
        drain_lost(&agent->drain); /* whoever hears of it may say at once that it has stopped */
        break;
    case GAVEL_EVENT_HEARTBEAT:
        if (event->epoch)
            atomic_store(&agent->is_beating, true);
        break;
    case GAVEL_EVENT_STOPPED:
        agent->ended = event->status;
        (void)snprintf(agent->ended_message, sizeof agent->ended_message, "%s", event->message);
        atomic_store(&agent->has_ended, true);
        break;
    default:
        break;
    }
    json_t *json = event_json(event, clock_now(), clock_wall_ms());
    char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    if (text)
        agent_news_put(&agent->news, event->kind, text);
    else
        agent_news_wake(&agent->news); /* no memory: the streams have one less, what is kept above counts */
}

/* What an operator wants to find in the log. */
static void log_item(const struct agent *agent, const struct agent_news_item *item)
{
    static const struct {
        enum gavel_event_kind kind;
        enum log_level level;
        const char *words;
    } lines[] = {
        {GAVEL_EVENT_BECAME_LEADER, LOG_INFO, "leads"},
        {GAVEL_EVENT_LOST_LEADERSHIP, LOG_INFO, "no longer leads"},
        {GAVEL_EVENT_OVERRUN, LOG_WARNING, "the program did not report by the deadline that it had stopped"},
        {GAVEL_EVENT_BREAKER_OPEN, LOG_WARNING, "the store fails"},
        {GAVEL_EVENT_BREAKER_CLOSED, LOG_INFO, "the store answers again"},
    };
    json_t *json = item->json ? json_loads(item->json, 0, NULL) : NULL;
    const json_t *why = json_object_get(json, item->kind == GAVEL_EVENT_BREAKER_OPEN ? "message" : "reason");
    const char *words = json_string_value(why);

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (lines[i].kind == item->kind)
            log_line(&agent->cli->log, clock_wall_ms(), lines[i].level, lines[i].words,
                     LOG_STR("group", agent->cli->config.group), LOG_STR("candidate", agent->id),
                     LOG_I64("epoch", json_integer_value(json_object_get(json, "epoch"))),
                     words && *words ? LOG_STR("reason", words) : LOG_END, LOG_END);
    json_decref(json);
}

static void log_news(struct agent *agent)
{
    struct agent_news_item item;
    bool has_missed;

    while (agent_news_next(&agent->news, agent->logged, &item, &has_missed)) {
        agent->logged = item.id;
        log_item(agent, &item);
        free(item.json);
    }
}

static void *close_library(void *user)
{
    struct agent *agent = user;

    (void)gavel_close(agent->gavel); /* not from a callback, so it does not fail */
    wakeup_ring(agent->closed_fd);
    return NULL;
}

/* The library leaves on a thread of its own: meanwhile the program is served, and may say that it has
 * stopped. */
static void begin_to_leave(struct agent *agent)
{
    if (agent->is_leaving)
        return;
    agent->is_leaving = true;
    agent->has_closer = pthread_create(&agent->closer, NULL, close_library, agent) == 0;
    if (!agent->has_closer)
        (void)close_library(agent); /* nobody is served meanwhile; the deadlines end it */
}

static void on_news(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;

    (void)what;
    wakeup_clear(fd);
    log_news(agent);
    agent_streams_pump(agent);
    if (atomic_exchange(&agent->is_beating, false))
        agent_streams_renewed(agent);
    if (atomic_load(&agent->has_ended))
        begin_to_leave(agent);
}

static void on_signal(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    struct signalfd_siginfo info;

    (void)what;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    agent->signal_number = (int)info.ssi_signo;
    begin_to_leave(agent); /* its thread is made before: a second signal is for this one */
    leaving_let_through(&agent->signals);
}

static void on_closed(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    struct timeval flush = {.tv_usec = FLUSH_MS * 1000};

    (void)what;
    wakeup_clear(fd);
    agent->is_closed = true;
    agent_http_stop_listening(agent);
    log_news(agent);
    agent_streams_pump(agent);
    agent_streams_end(agent);
    (void)event_base_loopexit(agent->base, agent_is_answering(agent) ? &flush : NULL);
}

static void on_beat(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    agent_streams_beat(user);
}

/* A program that is frozen or dead leads nothing. What it was told holds until the deadline, and so does the
 * mandate. */
static void on_look(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    gavel_ns silent = clock_now() - agent->heard_at;

    (void)fd;
    (void)what;
    if (agent->is_mute || agent->is_leaving || silent <= agent->alive_within)
        return;
    agent->is_mute = gavel_set_eligible(agent->candidate, false) == GAVEL_OK;
    if (agent->is_mute)
        log_line(&agent->cli->log, clock_wall_ms(), LOG_WARNING,
                 "the program has not reported for too long that it is alive; it does not lead until it does",
                 LOG_STR("group", agent->cli->config.group), LOG_STR("candidate", agent->id),
                 LOG_I64("silent_ms", ms_from_ns(silent)), LOG_END);
}

/*
 * Keep-alives of a session extend the mandate without a word of the library. A
 * program that only listens must hear of the later deadline, or it would stop.
 */
static void on_extended(evutil_socket_t fd, short what, void *user)
{
    struct agent *agent = user;
    int64_t until;

    (void)fd;
    (void)what;
    if (!agent_leads(agent) || gavel_answer(agent->candidate, &until) == GAVEL_NOT_LEADER ||
        until <= agent->told_until)
        return;
    agent->told_until = until;
    agent_streams_renewed(agent);
}

static bool watch(struct agent *agent, int fd, event_callback_fn callback, const struct timeval *every)
{
    short what = (short)((fd >= 0 ? EV_READ : 0) | EV_PERSIST);
    struct event *event = event_new(agent->base, fd, what, callback, agent);

    if (!event)
        return false;
    agent->events[agent->event_count++] = event;
    return event_add(event, every) == 0;
}

/* How often to look whether the mandate was extended; 0: events tell. */
static gavel_ns extended_every(const struct config *config)
{
    const struct store_capabilities *store =
        config->enabled ? store_capabilities_of(beginning_store(config)) : NULL;

    return store && store->has_sessions ? ns_from_ms(config->settings.lease_ms) / EXTENSIONS_PER_LEASE : 0;
}

static struct timeval timeval_of(gavel_ns pace)
{
    return (struct timeval){.tv_sec = pace / NS_PER_S, .tv_usec = pace % NS_PER_S / NS_PER_US};
}

static enum gavel_status join(struct agent *agent, struct gavel_error *error)
{
    const struct config *config = &agent->cli->config;
    const struct gavel_options options = {
        .store = beginning_store(config), .threaded = true, .doorbell = config->doorbell};
    struct gavel_join_options join = GAVEL_JOIN_OPTIONS_INIT;
    enum gavel_status status;

    if (agent->waits_for_program && config->enabled && on_death_new(1, &agent->on_death) != GAVEL_OK)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    status = agent->on_death ? gavel_open_guarded(&options, agent->on_death, &agent->gavel, error)
                             : gavel_open(&options, &agent->gavel, error);
    if (status != GAVEL_OK)
        return status;
    join.group = config->group;
    join.candidate = agent->id;
    join.settings = &config->settings;
    join.priority = config->priority;
    join.eligible = config->eligible && !agent->is_mute;
    join.enabled = config->enabled;
    join.overrun = GAVEL_OVERRUN_REPORT; /* our end would not stop the work, which is somebody else's */
    join.subscriber.on_elected = on_elected;
    join.subscriber.on_demoted = on_demoted;
    join.subscriber.on_event = on_event;
    join.subscriber.user = agent;
    status = gavel_join(agent->gavel, &join, &agent->candidate, error);
    if (status != GAVEL_OK)
        (void)gavel_close(agent->gavel); /* nothing was joined */
    return status;
}

static void tell_beginning(const struct agent *agent, const struct store_location *location)
{
    const struct cli *cli = agent->cli;
    json_t *json;

    beginning_log(cli, agent->id, location);
    log_line(&cli->log, clock_wall_ms(), LOG_INFO, "listens", LOG_STR("group", cli->config.group),
             LOG_STR("candidate", agent->id), LOG_STR("url", agent->endpoint.url), LOG_END);
    if (!cli->config.json)
        return;
    json = json_object();
    json_put_text(json, "url", agent->endpoint.url);
    json_put_text(json, "group", cli->config.group);
    json_put_text(json, "candidate", agent->id);
    json_print_line(json);
    (void)fflush(stdout); /* whoever does not read it has the log */
}

/* Everything but the library, which is opened last: whoever leads has to be reachable. */
static enum gavel_status prepare(struct agent *agent, struct gavel_error *error)
{
    const char *listen = cli_flag_text(agent->cli, "listen"),
               *token = cli_flag_text(agent->cli, "token-file");
    struct timeval beat = {.tv_sec = AGENT_BEAT_S};
    gavel_ns extended = extended_every(&agent->cli->config);
    struct timeval look = timeval_of(agent->alive_within / 8), extended_look = timeval_of(extended);
    enum gavel_status status = token ? agent_token_read(token, agent->token, error) : GAVEL_OK;

    if (status == GAVEL_OK)
        status = agent_listen(listen ? listen : AGENT_LISTEN, *agent->token, &agent->endpoint, error);
    if (status != GAVEL_OK)
        return status;
    agent->base = event_base_new();
    agent->closed_fd = wakeup_open();
    if (!agent->base || agent->closed_fd < 0 || agent_http_open(agent) != GAVEL_OK ||
        !watch(agent, agent->news.fd, on_news, NULL) || !watch(agent, agent->signal_fd, on_signal, NULL) ||
        !watch(agent, agent->closed_fd, on_closed, NULL) || !watch(agent, -1, on_beat, &beat) ||
        (agent->alive_within && !watch(agent, -1, on_look, &look)) ||
        (extended > 0 && !watch(agent, -1, on_extended, &extended_look)))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no room for the server's own parts");
    return GAVEL_OK;
}

static int take_part(struct agent *agent)
{
    const struct cli *cli = agent->cli;
    struct gavel_error error = {0};
    struct store_location location;

    if (prepare(agent, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    store_location_look(beginning_store(&cli->config), &location);
    if (join(agent, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    tell_beginning(agent, &location);
    (void)event_base_dispatch(agent->base);
    if (!agent->is_leaving) /* the loop failed, which it does only for want of memory */
        begin_to_leave(agent);
    if (agent->has_closer)
        (void)pthread_join(agent->closer, NULL);
    return leaving_conclude(cli, agent->id, agent->signal_number, agent->ended, agent->ended_message);
}

static void done(struct agent *agent)
{
    agent_http_close(agent);
    agent_listen_end(&agent->endpoint);
    for (size_t i = 0; i < agent->event_count; i++)
        event_free(agent->events[i]);
    if (agent->base)
        event_base_free(agent->base);
    wakeup_close(&agent->closed_fd);
    agent_news_done(&agent->news);
    drain_done(&agent->drain);
    explicit_bzero(agent->token, sizeof agent->token);
}

/* What the flags ask for. Not OK: the code to end with. */
static int read_flags(const struct cli *cli, struct agent *agent)
{
    gavel_ms alive_within_ms = cli_flag_duration(cli, "alive-within", 0);
    bool is_given = cli_flag_text(cli, "alive-within");

    agent->waits_for_program = !cli_flag_is_set(cli, "no-drain");
    if (!agent->waits_for_program && cli_flag_is_set(cli, "drain"))
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--drain and --no-drain contradict each other; leave one out");
    if (is_given && alive_within_ms < ALIVE_WITHIN_MIN_MS)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--alive-within must be at least %d ms, or live programs are taken for dead",
                        ALIVE_WITHIN_MIN_MS);
    if (is_given && !(cli->config.enabled && cli->config.eligible))
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--alive-within needs a candidate that can be elected, and this one cannot");
    agent->alive_within = ns_from_ms(alive_within_ms);
    agent->is_mute = is_given; /* until its program has said something */
    return 0;
}

int command_agent(const struct cli *cli, int argc, char **argv)
{
    struct agent *agent = calloc(1, sizeof *agent);
    int code;

    (void)argc;
    (void)argv;
    if (!agent)
        return cli_fail(cli, GAVEL_ERR_NO_MEMORY, "out of memory");
    agent->cli = cli;
    code = read_flags(cli, agent);
    if (code) {
        free(agent);
        return code;
    }
    agent->closed_fd = agent->endpoint.fd = -1;
    candidate_id_choose(&cli->config, agent->id);
    drain_init(&agent->drain);
    agent->signal_fd = leaving_begin(&agent->signals);
    if (!agent_news_init(&agent->news) || agent->signal_fd < 0)
        code = cli_fail(cli, GAVEL_ERR_IO, "cannot get a descriptor: %s; raise the limit (ulimit -n)",
                        strerror(errno));
    else
        code = take_part(agent);
    done(agent);
    if (agent->signal_fd >= 0)
        (void)close(agent->signal_fd); /* nothing is in it that matters */
    free(agent);
    return code;
}
