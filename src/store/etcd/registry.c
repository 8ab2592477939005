/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The candidates of a group in etcd. All registrations of a store object hang
 * on one lease of etcd, which its heartbeats keep alive: those of a process
 * that is gone vanish by themselves after three time-outs. Who is silent is
 * seen before that, by the beats that stand still.
 */
#include "store/etcd/etcd.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define TXN_PATH "/v3/kv/txn"
#define TRIES_MAX 8
#define LEASE_TIMEOUTS 3 /* so long silent ones are told of, see reply_add_silent() */
#define TTL_MAX_S ((uint64_t)LEASE_TIMEOUTS * STORE_DURATION_MAX_MS / 1000) /* more is never asked for */

static bool take_put(struct etcd_job *job);
static bool take_delete(struct etcd_job *job);

static void own_key(const struct etcd_job *job, char ret_key[ETCD_KEY_SIZE])
{
    etcd_key(job->etcd, ETCD_CANDIDATES, job->request->group, job->request->registration.id, ret_key);
}

/* ---- the lease ---- */

bool etcd_lease_is_due(const struct etcd_store *etcd)
{
    return etcd->lease != 0 && clock_now() - etcd->lease_kept_at > ns_from_ms(etcd->lease_ms / 3);
}

/* A lease that is not kept alive shows at the next put, which then gets a new one. */
static bool take_keep_alive(struct etcd_call *call)
{
    struct etcd_store *etcd = call->user;
    uint64_t ttl = etcd_number(json_object_get(call->answer, "result"), "TTL");

    if (call->status == GAVEL_OK && ttl == 0)
        etcd->lease = 0;
    else if (call->status == GAVEL_OK)
        etcd->lease_kept_at = clock_now();
    return false;
}

void etcd_begin_keep_alive(struct etcd_store *etcd, struct etcd_call *call, gavel_ns give_up_at)
{
    *call = (struct etcd_call){.give_up_at = give_up_at, .on_answer = take_keep_alive, .user = etcd};
    /* Asking twice does no harm. */
    etcd_ask(call, "/v3/lease/keepalive", etcd_body_lease(etcd->lease), false);
}

/* etcd rounds up to its own least time to live, and says so. */
static gavel_ms wanted_lease_ms(const struct etcd_job *job)
{
    return LEASE_TIMEOUTS * job->request->candidate_timeout_ms;
}

/* ---- heartbeats ---- */

static bool ask_put(struct etcd_job *job)
{
    struct registration registration = job->request->registration;
    char key[ETCD_KEY_SIZE];
    struct etcd_put put = {.compared = key, .key = key, .revision = job->revision, .lease = job->etcd->lease};
    char *value;

    job->write = etcd_new_nonce(job->etcd);
    job->lease = job->etcd->lease;
    job->next = take_put;
    registration.last_wall_ms = clock_wall_ms();
    if (job->since_wall_ms == 0)
        job->since_wall_ms =
            registration.since_wall_ms ? registration.since_wall_ms : registration.last_wall_ms;
    registration.since_wall_ms = job->since_wall_ms;
    own_key(job, key);
    value = registration_json_write(&registration, job->write);
    put.value = value;
    etcd_ask(job->call, TXN_PATH, value ? etcd_body_put(&put, key, NULL) : NULL, true);
    free(value);
    return true;
}

static bool take_grant(struct etcd_job *job)
{
    struct etcd_store *etcd = job->etcd;
    uint64_t ttl_s = etcd_number(job->call->answer, "TTL");

    if (job->call->status != GAVEL_OK)
        return etcd_job_fail(job);
    etcd->lease = etcd_number(job->call->answer, "ID");
    etcd->lease_ms = (gavel_ms)(ttl_s < TTL_MAX_S ? ttl_s : TTL_MAX_S) * 1000;
    etcd->lease_kept_at = clock_now();
    if (etcd->lease == 0) {
        reply_fail(job->reply, GAVEL_ERR_STORE_UNSUPPORTED, "%s gives no lease; is it etcd?", etcd->where);
        return false;
    }
    return ask_put(job);
}

/* A lease that is granted and not used goes away by itself, so asking twice does no harm. */
static bool ask_grant(struct etcd_job *job)
{
    job->next = take_grant;
    etcd_ask(job->call, "/v3/lease/grant", etcd_body_grant(wanted_lease_ms(job)), false);
    return true;
}

/* It is there, with our write. */
static bool finish_beat(struct etcd_job *job, uint64_t revision)
{
    struct etcd_store *etcd = job->etcd;
    char key[ETCD_KEY_SIZE];
    struct etcd_known *known;

    own_key(job, key);
    known = etcd_known_get(&etcd->registrations, key);
    if (known) {
        known->revision = revision;
        known->instance = job->request->registration.instance;
        known->since_wall_ms = job->since_wall_ms;
    }
    (void)sightings_age(&etcd->sightings, job->request->group, &job->request->registration, clock_now());
    return false;
}

static bool refuse(struct etcd_job *job, enum row_json_kind kind)
{
    const char *id = job->request->registration.id;

    if (kind == ROW_JSON_TOO_NEW)
        reply_fail(job->reply, GAVEL_ERR_STORE_TOO_NEW,
                   "candidate \"%.60s\" of group \"%.60s\" was registered by a newer gavel; update this one",
                   id, job->request->group);
    else
        reply_fail(job->reply, GAVEL_ERR_STORE_DAMAGED,
                   "the registration of \"%.60s\" in group \"%.60s\" is not valid; who else writes there? "
                   "Delete that key, or choose another id",
                   id, job->request->group);
    return false;
}

/* Another revision stands there: ours, nobody's, or somebody else's who may be gone. */
static bool judge_other(struct etcd_job *job, const struct etcd_kv *kv)
{
    struct registration_row row = {0};
    gavel_ns now = clock_now();
    struct nonce write;
    enum row_json_kind kind;

    job->revision = kv->revision;
    if (!kv->is_found)
        return ask_put(job);
    kind = registration_json_read(kv->value, kv->size, &row.registration, &write);
    if (kind != ROW_JSON_GOOD)
        return refuse(job, kind);
    if (nonce_equal(write, job->write))
        return finish_beat(job, kv->revision);
    row.registration.process = process_within_sight(&row.registration.process, &job->etcd->self);
    row.beat_at =
        now - ns_from_ms(sightings_age(&job->etcd->sightings, job->request->group, &row.registration, now));
    if (!rules_heartbeat(&row, job->request, now,
                         process_is_known_dead(&row.registration.process, &job->etcd->self), job->reply))
        return false;
    if (row.registration.instance == job->request->registration.instance)
        job->since_wall_ms = row.registration.since_wall_ms;
    if (job->tries++ == TRIES_MAX) {
        reply_fail(job->reply, GAVEL_ERR_STORE_UNAVAILABLE,
                   "candidate \"%.60s\" in %s changes faster than it can be written; try again later",
                   row.registration.id, job->etcd->where);
        return false;
    }
    return ask_put(job);
}

static bool read_back_beat(struct etcd_job *job)
{
    struct registration registration;
    struct nonce write = {0};
    struct etcd_kv kv = {0};
    bool is_ours = job->call->status == GAVEL_OK && etcd_answer_kv(job->call->answer, 0, &kv) == GAVEL_OK &&
                   kv.is_found &&
                   registration_json_read(kv.value, kv.size, &registration, &write) == ROW_JSON_GOOD &&
                   nonce_equal(write, job->write);

    etcd_kv_done(&kv);
    return is_ours ? finish_beat(job, kv.revision) : etcd_job_fail_doubt(job);
}

static bool take_put(struct etcd_job *job)
{
    char key[ETCD_KEY_SIZE];
    struct etcd_kv kv;
    bool goes_on;

    if (job->call->status == GAVEL_ERR_NOT_FOUND && job->tries++ < TRIES_MAX) {
        if (job->etcd->lease == job->lease)
            job->etcd->lease = 0;
        return job->etcd->lease ? ask_put(job) : ask_grant(job);
    }
    if (job->call->status != GAVEL_OK && !job->call->may_be_applied)
        return etcd_job_fail(job);
    if (job->call->status != GAVEL_OK) {
        etcd_job_doubt(job);
        own_key(job, key);
        job->next = read_back_beat;
        etcd_ask(job->call, TXN_PATH, etcd_body_read(key, NULL), false);
        return true;
    }
    if (etcd_has_put(job->call->answer))
        return finish_beat(job, etcd_revision(job->call->answer));
    if (etcd_answer_kv(job->call->answer, 0, &kv) != GAVEL_OK) {
        reply_fail(job->reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "%s does not answer as etcd does; is something else there?", job->etcd->where);
        goes_on = false;
    } else {
        goes_on = judge_other(job, &kv);
    }
    etcd_kv_done(&kv);
    return goes_on;
}

void etcd_begin_heartbeat(struct etcd_job *job)
{
    struct etcd_store *etcd = job->etcd;
    struct etcd_known *known;
    char key[ETCD_KEY_SIZE];

    own_key(job, key);
    known = etcd_known_find(&etcd->registrations, key);
    if (known && known->instance == job->request->registration.instance) {
        job->revision = known->revision;
        job->since_wall_ms = known->since_wall_ms;
    }
    if (etcd->lease == 0 || etcd->lease_ms < wanted_lease_ms(job))
        (void)ask_grant(job); /* which it always does */
    else
        (void)ask_put(job); /* likewise */
}

/* ---- leaving ---- */

static bool take_revoke(struct etcd_job *job)
{
    (void)job; /* the registration is gone; a lease that is left goes away by itself */
    return false;
}

/* Nothing of ours stands there any more. The lease goes with the last registration. */
static bool finish_leave(struct etcd_job *job)
{
    struct etcd_store *etcd = job->etcd;
    uint64_t lease = etcd->lease;
    char key[ETCD_KEY_SIZE];

    own_key(job, key);
    etcd_known_drop(&etcd->registrations, key);
    sightings_forget(&etcd->sightings, job->request->group, job->request->registration.id);
    if (lease == 0 || !RB_EMPTY(&etcd->registrations))
        return false;
    etcd->lease = 0;
    job->next = take_revoke;
    etcd_ask(job->call, "/v3/lease/revoke", etcd_body_lease(lease), false);
    return true;
}

static bool ask_delete(struct etcd_job *job)
{
    char key[ETCD_KEY_SIZE];
    const struct etcd_put put = {.compared = key, .key = key, .revision = job->revision};

    own_key(job, key);
    job->next = take_delete;
    /* If it is sent twice, or late, the revision is another. */
    etcd_ask(job->call, TXN_PATH, etcd_body_put(&put, key, NULL), false);
    return true;
}

static bool take_delete(struct etcd_job *job)
{
    struct registration registration;
    struct etcd_kv kv;
    bool is_ours;

    if (job->call->status != GAVEL_OK)
        return etcd_job_fail(job);
    if (etcd_answer_kv(job->call->answer, 0, &kv) != GAVEL_OK) {
        reply_fail(job->reply, GAVEL_ERR_STORE_UNSUPPORTED,
                   "%s does not answer as etcd does; is something else there?", job->etcd->where);
        etcd_kv_done(&kv);
        return false;
    }
    is_ours = kv.is_found &&
              registration_json_read(kv.value, kv.size, &registration, NULL) == ROW_JSON_GOOD &&
              registration.instance == job->request->registration.instance;
    etcd_kv_done(&kv);
    if (!is_ours)
        return finish_leave(job);
    job->revision = kv.revision;
    if (job->tries++ < TRIES_MAX)
        return ask_delete(job);
    reply_fail(job->reply, GAVEL_ERR_STORE_UNAVAILABLE,
               "candidate \"%.60s\" in %s changes faster than it can be deleted; try again later",
               registration.id, job->etcd->where);
    return false;
}

/* Without knowing a revision it asks with one that cannot be, and learns what is there. */
void etcd_begin_leave(struct etcd_job *job)
{
    struct etcd_known *known;
    char key[ETCD_KEY_SIZE];

    own_key(job, key);
    known = etcd_known_find(&job->etcd->registrations, key);
    if (known && known->instance == job->request->registration.instance)
        job->revision = known->revision;
    (void)ask_delete(job); /* which it always does */
}
