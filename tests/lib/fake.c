/* SPDX-License-Identifier: Apache-2.0 */

/* The linker's --wrap decides the names of what stands in for store_open(). */

#include "fake.h"

#include "base/hash.h"
#include "os/clock.h"
#include "os/wakeup.h"

#include <stdlib.h>
#include <string.h>

struct fake_store {
    struct store store;
    struct fake *fake;
};

static struct fake *current;

/* The mutex is held, as with all of these. */
static struct fake_group *group_of(struct fake *fake, const char *name)
{
    size_t at = hash_text(HASH_BEGIN, name) % fake->capacity;

    while (fake->groups[at].name[0] != '\0' && strcmp(fake->groups[at].name, name) != 0)
        at = (at + 1) % fake->capacity;
    if (fake->groups[at].name[0] == '\0')
        strcpy(fake->groups[at].name, name); /* checked by the candidate */
    return &fake->groups[at];
}

static struct store_news *tell(struct fake *fake, enum store_news_kind kind)
{
    struct fake_told *told = calloc(1, sizeof *told);

    assert_non_null(told);
    told->news.kind = kind;
    told->news.session = fake->session;
    if (fake->last)
        fake->last->next = told;
    else
        fake->first = told;
    fake->last = told;
    return &told->news;
}

static void tell_group(struct fake *fake, enum store_news_kind kind, const char *name)
{
    const struct fake_group *group = group_of(fake, name);
    struct store_news *news = tell(fake, kind);

    strcpy(news->group, name);
    if (kind == STORE_NEWS_HINT)
        return;
    news->is_found = group->record.version != 0;
    news->is_ours = group->record.held && group->session == fake->session.number;
    news->revision = fake->revision;
    news->record = group->record;
}

static void end_mandate(struct fake *fake, struct fake_group *group, enum gavel_loss loss)
{
    group->record.version = ++fake->revision;
    group->record.held = false;
    group->record.loss = loss;
}

static void settle(struct fake *fake, struct fake_group *group, const char *id)
{
    if (group->record.held || group->record.done || !group->is_standing || fake->session.number == 0)
        return;
    group->record.epoch = group->record.version = ++fake->revision;
    group->record.held = true;
    strcpy(group->record.holder, id);
    group->session = fake->session.number;
}

static gavel_ns next_deadline(const struct fake *fake)
{
    return clock_now() + ns_from_ms(fake->lasts_ms - fake->late_ms);
}

static void change_session(struct fake *fake, uint64_t number)
{
    if (fake->session.number != 0)
        fake->session.former_deadline = fake->session.deadline;
    fake->session.number = number;
    fake->session.deadline = number != 0 ? next_deadline(fake) : 0;
    fake->session.lasts = ns_from_ms(fake->lasts_ms);
    for (size_t i = 0; i < fake->capacity; i++) {
        struct fake_group *group = &fake->groups[i];

        group->has_joined = group->is_standing = false;
        if (group->name[0] != '\0' && group->record.held && group->session != number)
            end_mandate(fake, group, GAVEL_LOSS_LAPSED);
    }
    tell(fake, STORE_NEWS_SESSION);
}

static void show(struct fake *fake, const struct fake_group *group, struct store_reply *reply)
{
    reply->found = group->record.version != 0;
    reply->is_ours = group->record.held && group->session == fake->session.number;
    reply->session = fake->session.number;
    reply->revision = fake->revision;
    reply->remaining_ms = -1;
    reply->record = group->record;
}

static void heartbeat(struct fake *fake, const struct store_request *request, struct fake_group *group)
{
    fake->heartbeats++;
    group->has_joined = true;
    group->is_standing = request->campaign.stands;
    settle(fake, group, request->registration.id);
}

static enum gavel_status release(struct fake *fake, const struct store_request *request,
                                 struct fake_group *group)
{
    if (!group->record.held || group->session != fake->session.number ||
        group->record.epoch != request->record.epoch)
        return GAVEL_ERR_NOT_HOLDER;
    if (request->leaves)
        group->has_joined = group->is_standing = false;
    end_mandate(fake, group, request->record.loss);
    group->record.done = request->record.done;
    settle(fake, group, request->record.holder);
    return GAVEL_OK;
}

static void list(const struct fake_group *group, struct store_reply *reply)
{
    if (!group->has_joined)
        return;
    reply->registrations = calloc(1, sizeof *reply->registrations);
    assert_non_null(reply->registrations);
    reply->registration_count = 1;
    reply->registrations[0] = (struct registration){.instance = 1, .beats = 1, .eligible = true};
    strcpy(reply->registrations[0].id, "x");
}

static bool may_say_none(enum store_op op)
{
    return op == STORE_READ || op == STORE_HEARTBEAT || op == STORE_CANDIDATES;
}

static void run_one(struct fake *fake, const struct store_request *request, struct store_reply *reply)
{
    struct fake_group *group = group_of(fake, request->group);

    fake->requests++;
    if (request->op == STORE_HEARTBEAT && fake->reopens_in_reply != 0) {
        change_session(fake, fake->reopens_in_reply);
        fake->reopens_in_reply = 0;
    } else if ((request->session != fake->session.number &&
                !(request->session == 0 && may_say_none(request->op))) ||
               (fake->session.number == 0 && request->op == STORE_HEARTBEAT)) {
        reply->status = GAVEL_ERR_SESSION_GONE;
        return;
    }
    reply->status = GAVEL_OK;
    if (request->op == STORE_HEARTBEAT)
        heartbeat(fake, request, group);
    if (request->op == STORE_RELEASE)
        reply->status = release(fake, request, group);
    if (request->op == STORE_LEAVE)
        group->has_joined = group->is_standing = false;
    if (request->op == STORE_DIED)
        fake->deaths++;
    if (request->op == STORE_CANDIDATES)
        list(group, reply);
    show(fake, group, reply);
}

static void ring(struct fake *fake)
{
    if (fake->first)
        wakeup_ring(fake->fd);
}

static void run(struct store *store, const struct store_request *requests, struct store_reply *replies,
                size_t count)
{
    struct fake *fake = ((struct fake_store *)store)->fake;

    pthread_mutex_lock(&fake->mutex);
    while (fake->hangs)
        pthread_cond_wait(&fake->gone_on, &fake->mutex);
    if ((int)count > fake->largest_batch)
        fake->largest_batch = (int)count;
    for (size_t i = 0; i < count; i++)
        run_one(fake, &requests[i], &replies[i]);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
}

static enum gavel_status open_session(struct store *store, const struct store_session_options *options,
                                      struct gavel_error *error)
{
    struct fake *fake = ((struct fake_store *)store)->fake;

    (void)error;
    pthread_mutex_lock(&fake->mutex);
    fake->options = *options;
    if (fake->refusal == GAVEL_OK)
        fake->opened++;
    if (fake->refusal == GAVEL_OK && !fake->waits)
        change_session(fake, 1);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
    return fake->refusal;
}

static bool news(struct store *store, struct store_news *ret_news)
{
    struct fake *fake = ((struct fake_store *)store)->fake;
    struct fake_told *told;

    pthread_mutex_lock(&fake->mutex);
    told = fake->first;
    if (told) {
        *ret_news = told->news;
        fake->first = told->next;
        if (!fake->first)
            fake->last = NULL;
        free(told);
    } else {
        wakeup_clear(fake->fd);
    }
    pthread_mutex_unlock(&fake->mutex);
    return told != NULL;
}

static int push_fd(struct store *store) { return ((struct fake_store *)store)->fake->fd; }

static void close_store(struct store *store) { free(store); }

static const struct store_driver driver = {
    .scheme = "fake",
    .capabilities = {.name = "fake",
                     .preset = "local",
                     .clock = STORE_CLOCK_STEADY,
                     .is_shared = true,
                     .has_push = true,
                     .has_sessions = true},
    .run = run,
    .open_session = open_session,
    .news = news,
    .push_fd = push_fd,
    .close = close_store,
};

enum gavel_status __real_store_open(const char *url, struct store **ret_store, struct gavel_error *error);
enum gavel_status __wrap_store_open(const char *url, struct store **ret_store, struct gavel_error *error);

enum gavel_status __wrap_store_open(const char *url, struct store **ret_store, struct gavel_error *error)
{
    struct fake_store *store;

    if (strcmp(url, FAKE_URL) != 0)
        return __real_store_open(url, ret_store, error);
    store = calloc(1, sizeof *store);
    if (!store)
        return GAVEL_ERR_NO_MEMORY;
    store->store.driver = &driver;
    store->fake = current;
    *ret_store = &store->store;
    return GAVEL_OK;
}

gavel_ms __real_store_session_ttl_of(const char *url);
gavel_ms __wrap_store_session_ttl_of(const char *url);

gavel_ms __wrap_store_session_ttl_of(const char *url)
{
    return strcmp(url, FAKE_URL) == 0 ? current->asked_ttl_ms : __real_store_session_ttl_of(url);
}

void fake_begin(struct fake *fake, size_t groups)
{
    *fake = (struct fake){.lasts_ms = 60000, .capacity = 2 * groups, .fd = wakeup_open()};
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->gone_on, NULL);
    fake->groups = calloc(fake->capacity, sizeof *fake->groups);
    assert_non_null(fake->groups);
    assert_true(fake->fd >= 0);
    current = fake;
}

void fake_end(struct fake *fake)
{
    while (fake->first) {
        struct fake_told *told = fake->first;

        fake->first = told->next;
        free(told);
    }
    free(fake->groups);
    wakeup_close(&fake->fd);
    pthread_cond_destroy(&fake->gone_on);
    pthread_mutex_destroy(&fake->mutex);
}

void fake_open(struct fake *fake, uint64_t number)
{
    pthread_mutex_lock(&fake->mutex);
    change_session(fake, number);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_prolong(struct fake *fake)
{
    pthread_mutex_lock(&fake->mutex);
    fake->session.deadline = next_deadline(fake);
    tell(fake, STORE_NEWS_DEADLINE);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
}

bool fake_comes_true(struct fake *fake, bool (*is_true)(void *argument), void *argument)
{
    int64_t until = gavel_now_ns() + ns_from_ms(LIMIT_MS);

    while (!comes_true(is_true, argument, 100)) {
        if (gavel_now_ns() >= until)
            return false;
        fake_prolong(fake);
    }
    return true;
}

void fake_show(struct fake *fake, const char *group)
{
    pthread_mutex_lock(&fake->mutex);
    tell_group(fake, STORE_NEWS_RECORD, group);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_hint(struct fake *fake, const char *group)
{
    pthread_mutex_lock(&fake->mutex);
    tell_group(fake, STORE_NEWS_HINT, group);
    ring(fake);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_give_away(struct fake *fake, const char *name)
{
    struct fake_group *group;

    pthread_mutex_lock(&fake->mutex);
    group = group_of(fake, name);
    group->record.epoch = group->record.version = ++fake->revision;
    group->record.held = true;
    strcpy(group->record.holder, "other");
    group->session = 0;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_set_process(struct fake *fake, const char *name, const struct process_id *process)
{
    pthread_mutex_lock(&fake->mutex);
    group_of(fake, name)->record.process = *process;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_go_on(struct fake *fake)
{
    pthread_mutex_lock(&fake->mutex);
    fake->hangs = false;
    pthread_cond_broadcast(&fake->gone_on);
    pthread_mutex_unlock(&fake->mutex);
}

bool fake_has_heard_of(struct fake *fake, const char *group)
{
    bool has_heard = false;

    pthread_mutex_lock(&fake->mutex);
    for (size_t i = 0; i < fake->capacity; i++)
        has_heard |= strcmp(fake->groups[i].name, group) == 0;
    pthread_mutex_unlock(&fake->mutex);
    return has_heard;
}

bool fake_is_in(struct fake *fake, const char *group)
{
    bool is_in;

    pthread_mutex_lock(&fake->mutex);
    is_in = group_of(fake, group)->has_joined;
    pthread_mutex_unlock(&fake->mutex);
    return is_in;
}

int fake_count(struct fake *fake, const int *counter)
{
    int count;

    pthread_mutex_lock(&fake->mutex);
    count = *counter;
    pthread_mutex_unlock(&fake->mutex);
    return count;
}

struct gavel_settings fake_settings(gavel_ms grace_ms)
{
    struct gavel_settings settings = quick_settings();

    settings.lease_ms = FAKE_LEASE_MS;
    settings.stop_grace_ms = grace_ms;
    settings.stop_margin_ms = 500;
    settings.call_timeout_ms = 20000; /* many wait for their turn */
    return settings;
}

struct gavel *fake_gavel(struct on_death *on_death)
{
    struct gavel_options options = GAVEL_OPTIONS_INIT;
    struct gavel_error error = {0};
    struct gavel *gavel = NULL;

    options.store = FAKE_URL;
    options.doorbell = "";
    if ((on_death ? gavel_open_guarded(&options, on_death, &gavel, &error)
                  : gavel_open(&options, &gavel, &error)) != GAVEL_OK)
        fail_msg("cannot open: %s", error.message);
    return gavel;
}

enum gavel_status fake_join(struct gavel *gavel, const char *group, const char *id,
                            const struct gavel_settings *settings, struct gavel_candidate **ret_candidate,
                            struct gavel_error *error)
{
    struct gavel_join_options options = GAVEL_JOIN_OPTIONS_INIT;

    options.group = group;
    options.candidate = id;
    options.settings = settings;
    return gavel_join(gavel, &options, ret_candidate, error);
}
