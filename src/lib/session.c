/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/candidate/session_bounds.h"
#include "lib/candidate.h"
#include "lib/handle.h"
#include "os/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* News that are looked through for a later deadline before those that came first are taken in. */
#define AHEAD 64

/* So much news in one pass; timers and descriptors come in between. */
#define NEWS_PER_PASS 1024

enum gavel_status lib_session_open(struct gavel *gavel, const char *url)
{
    struct handle_session *session = &gavel->session;

    if (!gavel->capabilities.has_sessions)
        return GAVEL_OK;
    session->asked_ttl_ms = store_session_ttl_of(url);
    session->queue = calloc(AHEAD, sizeof *session->queue);
    if (!session->queue)
        return GAVEL_ERR_NO_MEMORY;
    return publish_session_slot(&gavel->publish, &session->published);
}

void lib_session_close(struct gavel *gavel)
{
    free(gavel->session.queue);
    timers_done(&gavel->session.ends);
    pthread_mutex_destroy(&gavel->session.begin_lock);
}

static enum gavel_status begin(struct gavel *gavel, const struct gavel_settings *settings,
                               struct gavel_error *error)
{
    struct handle_session *session = &gavel->session;
    const struct store_session_options options = {
        .lease_ms = settings->lease_ms,
        .drift_ppm = settings->drift_ppm,
        .names_process = !gavel->is_guarded,
        .key = gavel->on_death ? &gavel->on_death->key : NULL,
    };
    enum gavel_status status = store_open_session(gavel->store, &options, error);

    if (status != GAVEL_OK)
        return status;
    session->is_begun = true;
    session->lease_ms = settings->lease_ms;
    session->drift_ppm = settings->drift_ppm;
    return GAVEL_OK;
}

static enum gavel_status compare(const struct gavel *gavel, const struct gavel_settings *settings,
                                 struct gavel_error *error)
{
    const struct handle_session *session = &gavel->session;

    if (settings->lease_ms != session->lease_ms)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "lease is %lld ms, and %lld ms in the group that this handle joined first; in %.60s all groups of a handle share one session, which their mandates last as long as: use the same lease, or open another handle",
            (long long)settings->lease_ms, (long long)session->lease_ms, gavel->store_url);
    if (settings->drift_ppm > session->drift_ppm)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "drift_ppm is %d, and %d in the group that this handle joined first; in %.60s all groups of a handle share one session: use at most that, or open another handle",
            settings->drift_ppm, session->drift_ppm, gavel->store_url);
    return GAVEL_OK;
}

/* Whether a mandate of it lasts; the session counts on the drift that it was begun with. */
static enum gavel_status check_terms(const struct gavel *gavel, const struct gavel_settings *settings,
                                     struct gavel_error *error)
{
    const struct handle_session *session = &gavel->session;
    struct gavel_settings own = *settings;
    struct session_terms terms;

    if (session->is_begun)
        own.drift_ppm = session->drift_ppm;
    session_terms_of(&own, session->asked_ttl_ms, &terms);
    return session_terms_check(&own, &terms, error);
}

enum gavel_status lib_session_begin(struct gavel *gavel, const struct gavel_settings *settings,
                                    struct gavel_error *error)
{
    enum gavel_status status = GAVEL_OK;

    if (!gavel->capabilities.has_sessions)
        return GAVEL_OK;
    pthread_mutex_lock(&gavel->session.begin_lock);
    if (gavel->session.is_begun)
        status = compare(gavel, settings, error);
    if (status == GAVEL_OK)
        status = check_terms(gavel, settings, error);
    if (status == GAVEL_OK && !gavel->session.is_begun)
        status = begin(gavel, settings, error);
    pthread_mutex_unlock(&gavel->session.begin_lock);
    return status;
}

enum gavel_status lib_session_reserve(struct gavel *gavel, size_t count)
{
    return gavel->capabilities.has_sessions ? timers_reserve(&gavel->session.ends, count) : GAVEL_OK;
}

/* The watchdog and the guard know of a deadline before anyone may act on it. */
static void note_deadline(struct gavel *gavel)
{
    const struct store_session *now = &gavel->session.now;

    watchdog_move_session(&gavel->watchdog, now->deadline);
    on_death_note_session(gavel->on_death, now->number, now->deadline);
}

/*
 * The same session, for longer: no candidate is stepped. Only if another node
 * is asked now, which sees the deaths of our machine, or does not, they are
 * told in their turn: whether they must watch the leaders themselves.
 */
static void prolong(struct gavel *gavel, const struct store_session *told)
{
    struct handle_session *session = &gavel->session;

    ASSERT(told->number == session->now.number);
    if (told->sees_deaths != session->now.sees_deaths)
        session->to_tell = lib_candidate_after(gavel, NULL);
    session->now.sees_deaths = told->sees_deaths;
    if (told->deadline <= session->now.deadline && told->lasts == session->now.lasts)
        return;
    session->now.deadline = ns_max(session->now.deadline, told->deadline);
    session->now.lasts = told->lasts;
    if (!session->is_telling)
        note_deadline(gavel);
    publish_session(session->published, &session->now);
}

static struct store_news *queued(struct handle_session *session, size_t index)
{
    return &session->queue[(session->first + index) % AHEAD];
}

void lib_session_look_ahead(struct gavel *gavel)
{
    struct handle_session *session = &gavel->session;

    while (session->queue && session->count < AHEAD) {
        struct store_news *news = queued(session, session->count);

        if (!store_news(gavel->store, news))
            return;
        if (news->session.number != session->now.number)
            session->has_another = true;
        if (!session->has_another)
            prolong(gavel, &news->session);
        if (session->has_another || news->kind != STORE_NEWS_DEADLINE)
            session->count++;
    }
}

/* What is queued behind the news of another session may be of that one. */
static void look_through(struct gavel *gavel)
{
    struct handle_session *session = &gavel->session;

    session->has_another = false;
    for (size_t i = 0; i < session->count && !session->has_another; i++) {
        const struct store_news *news = queued(session, i);

        session->has_another = news->session.number != session->now.number;
        if (!session->has_another)
            prolong(gavel, &news->session);
    }
}

static struct gavel_candidate *candidate_of_end(struct timer *end)
{
    return (struct gavel_candidate *)(void *)((char *)end - offsetof(struct gavel_candidate, end));
}

static void feed(struct gavel_candidate *candidate, enum candidate_event_kind kind, bool waits)
{
    struct candidate_event event = {.kind = kind, .waits = waits};

    lib_candidate_feed(candidate, &event);
}

/* Those that lead: none of them can be granted a mandate again before all were told. They join the next
 * session in their turn, as the others do. */
static void tell_holders(struct gavel *gavel)
{
    struct timers *ends = &gavel->session.ends;
    struct timer *first;

    while ((first = timers_first(ends))) {
        feed(candidate_of_end(first), CANDIDATE_TICK, true);
        ASSERT(first->index == TIMER_OUT);
        lib_session_look_ahead(gavel); /* its keep-alives are taken note of meanwhile */
    }
}

void lib_session_tell_waiting(struct gavel *gavel)
{
    struct handle_session *session = &gavel->session;

    while (session->to_tell && gavel->jobs < LIB_JOBS_WANTED) {
        struct gavel_candidate *candidate = session->to_tell;
        const struct store_session *known = &candidate->machine.session;

        session->to_tell = lib_candidate_after(gavel, candidate);
        if (!candidate->is_started)
            continue;
        if (known->number == session->now.number && candidate->machine.waits)
            feed(candidate, CANDIDATE_GO_ON, false);
        else if (known->number != session->now.number || known->sees_deaths != session->now.sees_deaths)
            feed(candidate, CANDIDATE_TICK, false);
    }
}

/* Another session is open, or none. */
static void change(struct gavel *gavel, const struct store_session *told)
{
    struct handle_session *session = &gavel->session;

    session->now = *told;
    session->is_telling = true;
    publish_session(session->published, told);
    look_through(gavel);
    tell_holders(gavel);
    session->is_telling = false;
    note_deadline(gavel);
    session->to_tell = lib_candidate_after(gavel, NULL);
    lib_session_tell_waiting(gavel);
}

/* The store shows a group. */
static void tell_record(struct gavel *gavel, const struct store_news *news)
{
    struct gavel_candidate *candidate = lib_candidate_first_of(gavel, news->group);

    for (; candidate; candidate = candidate->next_in_bucket) {
        struct candidate_event event = {.kind = CANDIDATE_TOLD};

        if (strcmp(candidate->group, news->group) != 0 || !candidate->is_started)
            continue;
        event.told.record = &news->record;
        event.told.is_found = news->is_found;
        event.told.is_ours = news->is_ours;
        event.told.revision = news->revision;
        lib_candidate_feed(candidate, &event);
    }
}

/* Takes in the first in the queue. */
static void take_in(struct gavel *gavel)
{
    struct handle_session *session = &gavel->session;
    const struct store_news news = *queued(session, 0); /* its place is needed for others */

    session->first = (session->first + 1) % AHEAD;
    session->count--;
    if (news.session.number != session->now.number)
        change(gavel, &news.session);
    if (news.kind == STORE_NEWS_RECORD)
        tell_record(gavel, &news);
    else if (news.kind == STORE_NEWS_HINT)
        lib_candidate_doorbell_all(gavel, news.group);
}

bool lib_session_take_news(struct gavel *gavel)
{
    struct handle_session *session = &gavel->session;

    if (!session->queue)
        return true;
    for (int i = 0; i < NEWS_PER_PASS; i++) {
        lib_session_look_ahead(gavel);
        if (session->count == 0)
            return true;
        if (lib_session_stop_at(gavel) <= clock_now())
            lib_candidate_demote_lapsed(gavel);
        take_in(gavel);
    }
    return false;
}

bool lib_session_has_news(const struct gavel *gavel) { return gavel->session.count > 0; }

void lib_session_note(struct gavel_candidate *candidate)
{
    const struct candidate *machine = &candidate->machine;
    bool holds = machine->state == CANDIDATE_PREPARING || machine->state == CANDIDATE_LEADING;

    if (machine->has_sessions)
        timers_set(&candidate->gavel->session.ends, &candidate->end,
                   holds ? -candidate_stop_lead(machine) : NEVER);
}

gavel_ns lib_session_stop_at(const struct gavel *gavel)
{
    const struct timer *first = timers_first(&gavel->session.ends);

    return first ? gavel->session.now.deadline + first->at : NEVER;
}

/* Their deadlines are about the same; who needs longest to stop comes first. */
static void note_lapsed(struct timer *timer, void *argument)
{
    struct gavel_candidate *candidate = candidate_of_end(timer);
    struct gavel *gavel = argument;
    gavel_ns stop_at, deadline;

    candidate_times_in(&candidate->machine, &gavel->session.now, &stop_at, &deadline);
    timers_set(&gavel->lapsed, &candidate->lapse, stop_at);
}

void lib_session_note_lapsed(struct gavel *gavel, gavel_ns now)
{
    timers_visit_due(&gavel->session.ends, now - gavel->session.now.deadline, note_lapsed, gavel);
}
