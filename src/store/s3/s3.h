/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store `s3://bucket/prefix`: an object store that supports a conditional
 * PUT. This header is shared by the files of the driver.
 *
 *     <prefix>/plugin=coordinator/namespace=<group>/state.json            the mandate
 *                                                  /workers/worker=<id>.json   a candidate
 *                                                  /metadata.json         what this is, for people
 *
 *     s3.c          opening, closing, the probe; the keys for signing (store/http.c)
 *     target.c      URL, environment: where it is
 *     credentials.c who we are
 *     canonical.c   keys, URLs and hashes in the one form that can be signed
 *     object.c      one request for an object or a list, and its outcome
 *     error.c       what a refusal means, in words
 *     xml.c         the few elements of an answer that matter
 *     cache.c       the last known state of an object
 *     foreign.c     namespaces of s3db.js
 *     edit.c        fetch, decide, put if nothing has changed, read back
 *     mandate.c     what is decided about mandates
 *     registry.c    what is decided about candidates
 *     list.c        lists of candidates and of groups
 *     chores.c      optional work
 *     run.c         a batch: what runs in parallel, what waits for what
 *
 * Every write is conditional on the ETag that was read, and carries a number of
 * its own (`write`), so that two writes never have the same ETag, and a write
 * whose answer was lost is recognized when it is read back. Nothing depends on
 * a clock: not ours, not the server's.
 */
#ifndef STORE_S3_S3_H
#define STORE_S3_S3_H

#include "store/driver.h"
#include "store/http.h"
#include "store/rules.h"
#include "store/sightings.h"
#include "store/text_buffer.h"

#include <sys/queue.h>
#include <sys/types.h>

#define S3_KEY_MAX 1024   /* bytes, on all servers */
#define S3_ETAG_MAX 159   /* as http.h keeps them */
#define S3_PAGE_SIZE 1000 /* of a list; the maximum of servers */

/* Whether the ETag of If-Match is quoted: the standard requires it, radosgw wants it bare. */
enum s3_quoting {
    S3_QUOTED,
    S3_BARE,
};

struct s3_credentials {
    char key[129];
    char secret[257];
    char token[4097]; /* "": none */
};

/* Where credentials come from, so that they can be read again. */
struct s3_credentials_source {
    bool is_environment;
    char *file;    /* owned */
    char *profile; /* owned */
};

/* The last known state of an object. */
struct s3_entry {
    struct s3_entry *next; /* in its slot */
    char *key;
    uint64_t hash;
    bool is_known;              /* false: never read, or not reliable */
    bool is_found;              /* false: there is no such object */
    bool is_foreign;            /* a state of s3db.js, see foreign.h */
    char etag[S3_ETAG_MAX + 1]; /* without quotes; "" if there is no object */
    struct nonce write;         /* of the last write */
    bool is_in_group;
    LIST_ENTRY(s3_entry) in_group;
    LIST_HEAD(, s3_entry) workers; /* of the entry of a group: those of its candidates */
    gavel_ns pruned_at;            /* likewise */
    size_t size;                   /* of a registration, in bytes; 0: unknown */
    int unread;                    /* lists in which it had changed but was not read */
    bool is_own;                   /* it was written here */
    gavel_ns looked_at;            /* when it was last listed */
    union {
        struct mandate_row row;     /* of a state */
        struct registration worker; /* of a candidate */
    };
};

struct s3_cache {
    struct s3_entry **slots;
    size_t capacity; /* a power of two; 0: nothing yet */
    size_t count;
};

/* Where the bucket is. */
struct s3_target {
    char *where;  /* "s3://bucket/prefix", for messages */
    char *root;   /* "https://host/bucket" or "https://bucket.host", no slash at the end */
    char *prefix; /* of all keys: "prefix/plugin=coordinator/" */
    char *region;
    char *ca_file; /* NULL: the system's */
};

struct s3_store {
    struct store store;
    pid_t pid;
    struct process_id self;
    struct s3_target target;
    struct s3_credentials_source source;
    struct s3_credentials credentials;
    gavel_ns credentials_at; /* when they were read again; 0: not yet */
    unsigned generation;     /* of the credentials */
    struct http *http;
    enum s3_quoting quoting;
    bool is_quoting_known;
    size_t page_size;
    struct s3_cache cache;
    struct sightings sightings;
    gavel_ns forgot_at; /* when old sightings were last dropped */
};

/* ---- target.c, credentials.c ---- */

struct url;

/* Safe on a zeroed struct. */
void s3_target_done(struct s3_target *target);
void s3_credentials_source_done(struct s3_credentials_source *source);

/* From the URL and the environment. ERR_INVALID says what is wrong. The caller frees it, also after a
 * failure. */
GAVEL_CHECKED enum gavel_status s3_target_find(const struct url *url, struct s3_target *ret_target,
                                               struct gavel_error *error);
GAVEL_CHECKED enum gavel_status s3_credentials_find(const struct url *url,
                                                    struct s3_credentials_source *ret_source,
                                                    struct gavel_error *error);

/* Reads them again each time. ERR_STORE_DENIED: there are none. */
GAVEL_CHECKED enum gavel_status s3_credentials_read(const struct s3_credentials_source *source,
                                                    struct s3_credentials *ret_credentials,
                                                    struct gavel_error *error);

/*
 * After a call with credentials of generation `used` was refused: whether there
 * are others now, which the next call uses. A file is read at most once a
 * second.
 */
bool s3_credentials_renew(struct s3_store *s3, unsigned used);

/* ---- canonical.c ---- */

/* One parameter of a query. */
struct s3_parameter {
    const char *name;
    const char *value;
};

/* Percent-encodes everything but A-Z a-z 0-9 - . _ ~ and the characters in `keep`. */
void s3_text_add_encoded(struct text_buffer *text, const char *bytes, const char *keep);

/* The keys of objects; NULL when out of memory. The caller frees them. */
char *s3_key_state(const struct s3_target *target, const char *group);
char *s3_key_metadata(const struct s3_target *target, const char *group);
char *s3_key_worker(const struct s3_target *target, const char *group, const char *id);
char *s3_key_workers(const struct s3_target *target, const char *group);      /* the prefix of all of them */
char *s3_key_groups(const struct s3_target *target);                          /* likewise of all groups */
char *s3_key_group_prefix(const struct s3_target *target, const char *begin); /* of those that begin so */

/* The name between `before` and `after` in a key; false if there is none. */
bool s3_name_in_key(const char *key, const char *before, const char *after,
                    char ret_name[NAME_MAX_BYTES + 1]);

/* The URL of a key ("" for the bucket itself), with the parameters in order. NULL when out of memory. */
char *s3_url(const struct s3_target *target, const char *key, const struct s3_parameter *parameters,
             size_t count);

/* As 64 hexadecimal digits. */
void s3_body_hash(const void *body, size_t size, char ret_hex[65]);

/* ---- xml.c ---- */

/* A piece of a text. */
struct s3_span {
    const char *at;
    size_t length;
};

/* The content of the first element of that name in `in`, and what follows it; false if there is none. */
bool s3_xml_find(struct s3_span in, const char *name, struct s3_span *ret_content, struct s3_span *ret_rest);

/* The text of such an element that has no elements in it; false if there is none or it is too long. */
bool s3_xml_text(struct s3_span in, const char *name, char *ret_text, size_t size);

/* ---- object.c ---- */

/* The outcome of a request. */
enum s3_outcome {
    S3_DONE,
    S3_UNCHANGED, /* GET: the object still has that ETag */
    S3_ABSENT,
    S3_REFUSED, /* PUT: the condition did not hold, or no longer holds because it was carried out twice */
    S3_UNKNOWN, /* it is unknown whether it was carried out */
    S3_DENIED,  /* the credentials are not (or no longer) valid */
    S3_FAILED,  /* it was certainly not carried out */
};

/* One request, sent by `call`; the call, its deadline and its callbacks belong to the sender. */
struct s3_object {
    struct http_call *call;
    char *url; /* owned, as the body, the headers and the answer are */
    char *body;
    unsigned generation; /* of the credentials */
};

/*
 * Each prepares what http_run() sends; false when out of memory. Frees the
 * previous request. An ETag is given without quotes. GET: the one that is
 * already known, or "". PUT: the one that the object must have; "": the object
 * must not exist. Takes over the body, also after a failure.
 */
bool s3_object_get(struct s3_store *s3, struct s3_object *object, const char *key, const char *etag);
bool s3_object_put(struct s3_store *s3, struct s3_object *object, const char *key, char *body,
                   const char *etag, enum s3_quoting quoting);
bool s3_object_delete(struct s3_store *s3, struct s3_object *object, const char *key);
bool s3_object_list(struct s3_store *s3, struct s3_object *object, const char *prefix, const char *delimiter,
                    const char *token);
void s3_object_done(struct s3_object *object); /* safe on one without a call */

enum s3_outcome s3_object_outcome(const struct s3_object *object);

/* The ETag of the answer without quotes; "" if there is none. */
void s3_object_etag(const struct s3_object *object, char ret_etag[S3_ETAG_MAX + 1]);
/* The same for any ETag. */
void s3_etag_bare(const char *etag, char ret_etag[S3_ETAG_MAX + 1]);

/* ---- error.c ---- */

/* What a failed request means: the status, and a message of at most 255 bytes. */
enum gavel_status s3_explain(const struct s3_store *s3, const struct s3_object *object, char *ret_message,
                             size_t size);

/* ---- cache.c ---- */

void s3_cache_done(struct s3_cache *cache);
/* The entry of a key; a new one is not is_known. NULL when out of memory. */
struct s3_entry *s3_cache_get(struct s3_cache *cache, const char *key);
void s3_cache_drop(struct s3_cache *cache, struct s3_entry *entry);
/* Empties it if it has become too large. Only between batches, since entries must last for one. */
void s3_cache_trim(struct s3_cache *cache);

/* ---- edit.c ---- */

struct s3_edit;

/* What is done with an object: about mandates or about candidates. */
struct s3_kind {
    bool is_worker;
    /*
     * Decides from the current object. OK: *ret_body is to be written (the
     * caller frees it); it stands for edit->row or edit->worker. Otherwise the
     * edit is over with that status; but if the entry is not fresh, it is read
     * and this called again.
     */
    enum gavel_status (*decide)(struct s3_edit *edit, char **ret_body);
    /* Whether our write is in what is there now, possibly below a later write. */
    bool (*is_ours)(const struct s3_edit *edit);
    /* The edit is over with that status, and the entry is up to date: makes the reply. */
    void (*conclude)(struct s3_edit *edit, enum gavel_status status);
};

enum s3_step {
    S3_STEP_GET,
    S3_STEP_PUT,
    S3_STEP_DELETE,
    S3_STEP_WORKERS, /* lists those of a namespace of s3db.js */
    S3_STEP_STATE,   /* before the first heartbeat: whose namespace it is */
};

struct s3_edit {
    struct s3_object object;
    struct s3_store *s3;
    const struct s3_kind *kind;
    const struct store_request *request;
    struct store_reply *reply;
    char *key; /* owned */
    struct s3_entry *entry;
    enum s3_step step;
    bool is_over;
    bool is_fresh;          /* the entry was read during this edit */
    bool has_created;       /* there was no object before */
    size_t workers;         /* of a namespace of s3db.js */
    struct s3_entry *state; /* HEARTBEAT: of its group */
    bool has_new_credentials;
    int rounds;
    /* What was put, and the answer, while it is read back. */
    bool has_put;
    bool has_turned; /* the other quoting was tried */
    enum s3_quoting quoting;
    enum s3_outcome put_outcome;
    struct nonce write;
    char base[S3_ETAG_MAX + 1]; /* the ETag it was conditional on; "": that nothing exists */
    enum gavel_status trouble_status;
    char trouble[256];
    struct mandate_row row; /* what it stands for */
    struct registration worker;
};

/*
 * Starts: true if a request is ready, false if it is already over. The caller
 * has set s3, kind, request, reply and key; all else is zero.
 */
bool s3_edit_start(struct s3_edit *edit);
/* Handles an answer; true: another request is ready. */
bool s3_edit_go_on(struct s3_edit *edit);
/* Call it at the end: an edit that is not over by then has failed. */
void s3_edit_done(struct s3_edit *edit);

/* Updates the entry from a GET. False: the object cannot be used, and the reply says why. */
bool s3_entry_take(const struct s3_store *s3, struct s3_entry *entry, const struct s3_object *object,
                   bool is_worker, struct store_reply *reply);
void s3_entry_absent(struct s3_entry *entry);

extern const struct s3_kind s3_kind_mandate;
extern const struct s3_kind s3_kind_worker;

/* ---- registry.c ---- */

/* Notes that the entry belongs to a candidate of the group. */
void s3_registry_note(struct s3_store *s3, struct s3_entry *entry, const char *group);

/*
 * Whether an object whose ETag has changed is the registration that we know,
 * with nothing new but another beat. It is then noted as such and need not be
 * read.
 */
bool s3_registry_is_beat(struct s3_entry *entry, const char *etag, size_t size);

/* ---- chores.c ---- */

/* Something to do if there is time. */
struct s3_chore {
    char *key;  /* owned */
    char *body; /* owned; NULL: the object is removed */
    char group[NAME_MAX_BYTES + 1];
    struct s3_entry *entry; /* of the object that is removed */
};

struct s3_chores {
    struct s3_store *s3;
    struct s3_chore *chores;
    size_t count;
    size_t capacity;
    size_t next;
};

/* After a heartbeat: removes the registrations of its group that have been silent for long. */
void s3_chores_prune(struct s3_chores *chores, const struct store_request *request);
/* After the first claim on a group: writes its description, for people. */
void s3_chores_describe(struct s3_chores *chores, const char *group);

/* Runs them in parallel until `until`; what is not done by then is dropped. Call it once. */
void s3_chores_run(struct s3_chores *chores, gavel_ns until);
void s3_chores_done(struct s3_chores *chores);

/* ---- list.c ---- */

struct s3_item {
    char *key;                  /* of a state or of a registration */
    char etag[S3_ETAG_MAX + 1]; /* "": not given */
    size_t size;                /* likewise 0 */
    struct s3_entry *entry;     /* once it is looked at; NULL if it cannot be used */
    bool is_read;
};

/* A list of candidates or of groups under construction. The object's call is set by the caller. */
struct s3_listing {
    struct s3_object object;
    struct s3_store *s3;
    const struct store_request *request;
    struct store_reply *reply;
    char *prefix; /* owned, as is the next; names in keys begin behind it */
    char *asked;  /* what the keys begin with; NULL: with the prefix */
    char token[1025];
    struct s3_item *items;
    size_t count;
    size_t capacity;
    bool has_new_credentials;
    bool is_over; /* all pages are there, or it has failed */
};

/* As for an edit: the first page, and those that follow. */
bool s3_listing_start(struct s3_listing *listing);
bool s3_listing_go_on(struct s3_listing *listing);
/* Reads the unknown objects of all those lists, and makes their replies. */
void s3_listings_finish(struct s3_store *s3, struct s3_listing *const *listings, size_t count);
void s3_listing_done(struct s3_listing *listing); /* safe on NULL; frees it */

/* ---- run.c ---- */

void s3_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
            size_t count);

#endif
