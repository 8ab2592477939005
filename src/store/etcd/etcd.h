/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver `etcd`: an etcd cluster as a store, through the JSON gateway of
 * its v3 API.
 *
 *     <prefix>/groups/<group>            the record; without a lease, never deleted
 *     <prefix>/wishes/<group>            a wish, separate so that the version stays
 *     <prefix>/candidates/<group>/<id>   a registration, on the lease of its process
 *
 * Each write is one transaction: "if the key still has this mod revision, put".
 * The mod revision is the version, and that of a claim is its epoch, so both
 * grow by themselves. If a record turns out to be older than what others know
 * (the cluster was restored from a backup), an offset is added.
 *
 *     run() ── jobs ──► calls ──► http ──► the endpoint that worked last, else the next
 *     watch thread ── one stream ────────► the same endpoint
 *
 * etcd's own leases decide nothing about mandates (docs/decisions/0024):
 * standbys time a lease by seeing that the version does not change. etcd's
 * leases only remove the registrations of processes that are gone.
 */
#ifndef STORE_ETCD_ETCD_H
#define STORE_ETCD_ETCD_H

#include "base/prng.h"
#include "store/http.h"
#include "store/push.h"
#include "store/row_json.h"
#include "store/sightings.h"
#include "store/text_buffer.h"
#include "store/url.h"

#include <bsd/sys/tree.h>
#include <jansson.h>
#include <sys/queue.h>
#include <sys/types.h>

#define ETCD_PREFIX_MAX 255
/* A prefix, a word, and two names with every byte escaped. */
#define ETCD_KEY_SIZE (ETCD_PREFIX_MAX + sizeof "/candidates//" + 6 * (size_t)NAME_MAX_BYTES)

/* What this store object remembers of a key that it has written or read. */
struct etcd_known {
    RB_ENTRY(etcd_known) by_key;
    uint64_t revision;
    char *value;            /* of a group: as stored */
    struct mandate_row row; /* likewise, without its wish */
    uint64_t epoch_offset;
    uint64_t instance; /* of a registration of ours */
    int64_t since_wall_ms;
    char key[];
};
RB_HEAD(etcd_known_tree, etcd_known);

struct etcd_endpoint {
    char base[300]; /* "https://h1:2379" */
};

struct etcd_store {
    struct push push; /* its lock guards what is shared with the watch thread */

    /* fixed once opened */
    char where[100];
    char prefix[ETCD_PREFIX_MAX + 1];
    struct etcd_endpoint endpoints[URL_HOSTS_MAX];
    size_t endpoint_count;
    char *ca_file;
    char *cert_file;
    char *key_file;
    char *credentials_file; /* NULL: none */
    bool has_given_user;    /* in the URL, so a file has only the password */
    struct process_id self;

    /* of the thread that calls run() */
    struct http *http;
    struct prng prng;
    struct etcd_known_tree groups;
    size_t group_count;
    struct etcd_known_tree registrations;
    struct sightings sightings;
    uint64_t lease; /* 0: none */
    gavel_ms lease_ms;
    gavel_ns lease_kept_at;

    /* shared with the watch thread; guarded by the lock of `push` */
    size_t current; /* the endpoint that worked last */
    char *user;     /* NULL: anonymous */
    char *password;
    char *token; /* NULL: none */
    bool has_thread;
    bool is_closing;
    bool is_stream_old; /* the stream must be opened again */
    pthread_t thread;
    struct http *stream; /* the open one; NULL: none */
    size_t stream_endpoint;
};

/* ---- words.c: keys, questions and answers as JSON ---- */

enum etcd_family { ETCD_GROUPS, ETCD_WISHES, ETCD_CANDIDATES };

/*
 * A key in plain text. `group` NULL: the prefix of all keys of the family; `id`
 * NULL: that of a group's keys.
 */
void etcd_key(const struct etcd_store *etcd, enum etcd_family family, const char *group, const char *id,
              char ret_key[ETCD_KEY_SIZE]);

/* The name of the group in a key, or of the candidate; false if the key is not of that family. */
bool etcd_key_read(const struct etcd_store *etcd, enum etcd_family family, const char *group, const char *key,
                   char ret_name[NAME_MAX_BYTES + 1]);

/* A text in base64, as the gateway wants it; NULL when out of memory. */
json_t *etcd_encode(const char *text);

/* A conditional write. The bodies below are NULL when out of memory. */
struct etcd_put {
    const char *compared; /* this key still has this revision; 0: it does not exist */
    uint64_t revision;
    const char *was; /* and this value, if not NULL: a cluster restored from a backup repeats revisions */
    const char *key;
    const char *value; /* NULL: the key is deleted */
    uint64_t lease;    /* 0: none */
};

/* Reads one or two keys at one instant; `second` may be NULL. */
char *etcd_body_read(const char *first, const char *second);
/* Puts if the comparison holds; either way also reads, at the same instant, what etcd_body_read() would. */
char *etcd_body_put(const struct etcd_put *put, const char *first, const char *second);
/* A page of all keys that begin with `first`, after the key `after` ("" from the start). */
char *etcd_body_page(const char *first, const char *after, unsigned limit);
/* {"ID": …} */
char *etcd_body_lease(uint64_t lease);
char *etcd_body_grant(gavel_ms ttl_ms);
char *etcd_body_user(const char *user, const char *password);
/* Adds the request for events of a key, or of all that begin with it, to a text; false: out of memory. */
bool etcd_body_watch(char **text, const char *key, bool is_prefix);

/* A key and its value from an answer; the value ends with a NUL that does not count. */
struct etcd_kv {
    bool is_found;
    uint64_t revision;
    char key[ETCD_KEY_SIZE];
    char *value;
    size_t size;
};

/*
 * ERR_STORE_UNSUPPORTED if it is not an answer of etcd, ERR_NO_MEMORY. The
 * caller frees it, also after a failure.
 */
GAVEL_CHECKED enum gavel_status etcd_kv_read(const json_t *json, struct etcd_kv *ret_kv);
void etcd_kv_done(struct etcd_kv *kv);

/* Of a transaction: whether it was carried out, and the n-th key that was read. */
bool etcd_has_put(const json_t *answer);
uint64_t etcd_revision(const json_t *answer); /* of the store; 0 if absent */
GAVEL_CHECKED enum gavel_status etcd_answer_kv(const json_t *answer, size_t n, struct etcd_kv *ret_kv);

/* A number, possibly written as a string; 0 if it is not a number. */
uint64_t etcd_number(const json_t *json, const char *name);

/* A wish: {"format", "epoch", "force", "successor", "write"}. An invalid one counts as none. */
char *etcd_wish_write(const struct record *record, struct nonce write);
void etcd_wish_read(const struct etcd_kv *kv, struct record *record, struct nonce *ret_write);

/* ---- call.c: a request to the cluster ---- */

struct etcd_call {
    /* asked; see etcd_ask() */
    const char *path; /* "/v3/kv/txn" */
    char *body;       /* owned */
    bool is_write;    /* it must not be sent twice; if its outcome is unknown, the call says so */
    gavel_ns give_up_at;
    /* Takes the answer, which is freed afterwards. True: it has asked something else, go on. */
    bool (*on_answer)(struct etcd_call *call);
    void *user;

    /* answered */
    enum gavel_status status; /* OK; ERR_NOT_FOUND: the lease; or a failure, with its message */
    bool may_be_applied;      /* of a failed write */
    json_t *answer;           /* borrowed */
    char message[256];

    /* for call.c */
    struct etcd_store *etcd;
    char url[340];
    struct curl_slist *headers;
    size_t endpoint;
    gavel_ns sent_at; /* of this try */
    gavel_ns until;   /* likewise */
    unsigned tries;
    unsigned refusals; /* endpoints that certainly have not carried it out */
    bool has_logged_in;
    bool is_logging_in; /* the call is asking for a token */
    char *login;        /* owned: the body for that */
};

/* Asks something, or something else from on_answer(). Takes over the body; NULL: out of memory. */
void etcd_ask(struct etcd_call *call, const char *path, char *body, bool is_write);
/* Carries them out in parallel, until none asks anything more. */
void etcd_calls_run(struct etcd_store *etcd, struct http *http, struct etcd_call *calls, size_t count);
/* The headers of a call, with the token if there is one and it is wanted. NULL when out of memory. */
struct curl_slist *etcd_headers(struct etcd_store *etcd, bool with_token);
GAVEL_CHECKED enum gavel_status etcd_http_new(const struct etcd_store *etcd, struct http **ret_http);

/* ---- user.c: who asks ---- */

GAVEL_CHECKED enum gavel_status etcd_user_take(struct etcd_store *etcd, const struct url *url,
                                               struct gavel_error *error);
void etcd_user_done(struct etcd_store *etcd);
/* The request for a token; there must be a user. NULL when out of memory. */
char *etcd_user_login(struct etcd_store *etcd);

/* ---- probe.c: whether we may write ---- */

GAVEL_CHECKED enum gavel_status etcd_probe(struct store *store, struct gavel_error *error);

/* ---- run.c: a batch, and one request of it ---- */

struct etcd_job {
    struct etcd_store *etcd;
    struct etcd_call *call;
    const struct store_request *request;
    struct store_reply *reply;
    bool (*next)(struct etcd_job *job); /* takes the answer; true: asks something else */
    unsigned tries;                     /* writes that came too late */
    struct nonce write;                 /* of the write under way */
    /* The key as it was last seen. */
    uint64_t revision;
    char *value; /* owned; NULL: not known, or there is none */
    struct mandate_row row;
    struct nonce row_write;
    uint64_t epoch_offset;
    /* A write whose outcome is unknown. */
    enum gavel_status doubt;
    char doubt_message[256];
    char after[ETCD_KEY_SIZE]; /* the last key of the page before */
    char stale[ETCD_KEY_SIZE]; /* a registration to be removed */
    int64_t since_wall_ms;
    uint64_t lease;
};

void etcd_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
              size_t count);
struct nonce etcd_new_nonce(struct etcd_store *etcd);
/* Puts into the reply why the call failed. Returns false, as the result of a `next`. */
bool etcd_job_fail(struct etcd_job *job);
/* The write may have been applied: the reply will say this, unless reading back shows that it was. */
void etcd_job_doubt(struct etcd_job *job);
bool etcd_job_fail_doubt(struct etcd_job *job);
/* Passes the keys of a page to `take`; false if the reply has failed. *ret_is_last: no page follows. */
bool etcd_job_take_page(struct etcd_job *job, bool (*take)(struct etcd_job *job, const struct etcd_kv *kv),
                        bool *ret_is_last);

/* ---- mandate.c, registry.c, list.c: the first question of a job ---- */

void etcd_begin_mandate(struct etcd_job *job);
void etcd_begin_groups(struct etcd_job *job);
void etcd_begin_heartbeat(struct etcd_job *job);
void etcd_begin_leave(struct etcd_job *job);
void etcd_begin_candidates(struct etcd_job *job);
/* Whether the lease has to be kept alive now; and the request for that. */
bool etcd_lease_is_due(const struct etcd_store *etcd);
void etcd_begin_keep_alive(struct etcd_store *etcd, struct etcd_call *call, gavel_ns give_up_at);

/* The record of a group from a key; ERR_STORE_TOO_NEW, ERR_STORE_DAMAGED. */
GAVEL_CHECKED enum gavel_status etcd_row_read(const struct etcd_kv *kv, struct mandate_row *ret_row,
                                              struct nonce *ret_write, uint64_t *ret_offset);

/* ---- known.c ---- */

struct etcd_known *etcd_known_find(struct etcd_known_tree *tree, const char *key);
/* NULL when out of memory, or when there are too many. */
struct etcd_known *etcd_known_get(struct etcd_known_tree *tree, const char *key);
void etcd_known_drop(struct etcd_known_tree *tree, const char *key);
void etcd_known_clear(struct etcd_known_tree *tree);

/* ---- watch.c and stream.c ---- */

extern const struct push_hooks etcd_push_hooks;
/* We wrote this ourselves, so it is no news. */
void etcd_watch_own(struct etcd_store *etcd, const char *group, const struct record *record);
/* Ends the thread, if there is one. The lock must not be held. */
void etcd_stream_stop(struct etcd_store *etcd);

#endif
