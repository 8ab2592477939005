/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store keeps mandates. One interface, many drivers; each passes the suite in
 * tests/store against the real store.
 *
 * A store is named by a URL:
 *
 *     sqlite:/var/lib/gavel/gavel.db     one host, one file
 *     memory:name                        one process, for tests
 *     static:web-1                       a fixed assignment; static:web-1?epoch=3
 *     gavel://h1:7600,h2:7600,h3:7600    a gaveld cluster; gavel:///run/gavel/n1.sock
 *     mysql://user@host:3306/database    MariaDB or MySQL; docs/STORES.md has all options
 *     s3://bucket/prefix?endpoint=URL    an object store
 *     etcd://h1:2379,h2:2379/prefix      an etcd cluster
 *
 * Calls block, up to the deadline in each request. A store object is used by
 * one thread at a time; several may be open on the same URL.
 */
#ifndef STORE_H
#define STORE_H

#include "base/request.h"

struct store;

/* What a driver can do; the candidate and `gavel check` read it. */
struct store_capabilities {
    const char *name;   /* "sqlite" */
    const char *preset; /* settings that fit: "local" */
    enum store_clock clock;
    bool is_shared;      /* between processes */
    bool is_fixed;       /* the leader is assigned, not elected */
    bool sees_processes; /* records carry a process that others can watch */
    bool has_push;       /* store_wait() is notified instead of polling */
    /*
     * A renewal does not change the version: only the store's steady clock
     * shows that a lease is running. Such a store carries out the writes of one
     * object in the order they were begun, whatever happens to their answers:
     * once one is answered, no earlier one can still arrive.
     */
    bool renews_silently;
    /*
     * A store object has a session, which its keep-alives keep open. Mandates
     * last as long as the session of their holder, and the store grants them:
     * CLAIM and RENEW are never asked of it. See base/request.h. Writes of one
     * object are carried out in the order they were begun, each at most once.
     */
    bool has_sessions;
};

#define STORE_ADDRESS_SIZE 46 /* of a numeric address without a port */
#define STORE_SECRET_BYTES 16

/*
 * Names the session of a store object, and proves that it is ours. The driver
 * writes it before the request that opens that session is sent, so that a guard
 * with which it shares this memory finds it whenever the process dies.
 */
struct store_session_key {
    uint8_t secret[STORE_SECRET_BYTES];
    _Atomic uint32_t is_known; /* the rest was written */
    _Atomic uint64_t session;  /* its name in the store; no number of struct store_session */
};

/* Of the session of a store object. */
struct store_session_options {
    gavel_ms lease_ms; /* its mandates last at least so long, by our clock, from the send of a keep-alive */
    int drift_ppm;
    /* The store is told which process has it, and may end it when that process is dead. */
    bool names_process;
    struct store_session_key *key; /* borrowed until store_close(); NULL: nobody closes it for us */
};

/* What a store with sessions tells unasked, in the order in which it happened. */
enum store_news_kind {
    STORE_NEWS_SESSION,  /* another session is open, or none */
    STORE_NEWS_DEADLINE, /* the same session is known to be open for longer */
    STORE_NEWS_RECORD,   /* a group as the store shows it, in this session */
    STORE_NEWS_HINT,     /* the group may have changed: read it */
};

struct store_news {
    enum store_news_kind kind;
    struct store_session session; /* as it stands at this point in the order, with every kind */
    char group[NAME_MAX_BYTES + 1];
    /* RECORD: see CANDIDATE_TOLD in core/candidate/candidate.h */
    bool is_found;
    bool is_ours;
    uint64_t revision;
    struct record record;
};

struct store_driver {
    const char *scheme;  /* "sqlite" */
    const char *summary; /* one line for --help */
    struct store_capabilities capabilities;
    /*
     * Whether open() would accept the URL, judged by its text alone: no server
     * is asked, no credentials are read. NULL: only open() can say.
     */
    enum gavel_status (*check_url)(const char *rest, struct gavel_error *error);
    /* See store_session_ttl_of(); NULL: it never says one. */
    gavel_ms (*session_ttl)(const char *rest);
    /* See store_caution(); NULL: nothing can be unwise there. */
    void (*caution)(const char *rest, char *ret_text, size_t size);
    enum gavel_status (*open)(const char *rest, struct store **ret_store, struct gavel_error *error);
    /* Whether the server does what the driver relies on; NULL: nothing to check. See store_probe(). */
    enum gavel_status (*probe)(struct store *store, struct gavel_error *error);
    /* See store_migrate() and store_backup(); NULL: nothing to migrate; no backup of its own. */
    enum gavel_status (*migrate)(struct store *store, char **ret_told, struct gavel_error *error);
    enum gavel_status (*backup)(struct store *store, const char *path, struct gavel_error *error);
    /* See store_remove(); NULL: it keeps no records, or removes those that nobody uses by itself. */
    enum gavel_status (*remove)(struct store *store, const char *group, uint64_t version, gavel_ns until,
                                struct gavel_error *error);
    /* See store_own_address(); NULL: the store is on this host, or reports changes itself. */
    bool (*own_address)(struct store *store, char ret_address[STORE_ADDRESS_SIZE]);
    void (*run)(struct store *store, const struct store_request *requests, struct store_reply *replies,
                size_t count);
    /*
     * Waits until the group's record may differ from `version`, or until
     * `until`; NULL: store_wait() polls.
     */
    void (*wait)(struct store *store, const char *group, uint64_t version, gavel_ns until);
    /* See store_open_session(), store_news() and store_close_dead(); NULL without has_sessions. */
    enum gavel_status (*open_session)(struct store *store, const struct store_session_options *options,
                                      struct gavel_error *error);
    bool (*news)(struct store *store, struct store_news *ret_news);
    enum gavel_status (*close_dead)(struct store *store, const struct store_session_key *key,
                                    gavel_ns give_up_at, struct gavel_error *error);
    void (*close)(struct store *store);
    /*
     * Push, for drivers with has_push; else NULL. These three may be called
     * from another thread than run(). push_fd is readable while a watched group
     * may have changed; changed() returns the name of one and removes it from
     * the list, false if there is none left. Changes may be reported that did
     * not happen; renewals and registrations are not reported. A group that is
     * watched twice stays watched until the second "off".
     */
    int (*push_fd)(struct store *store);
    void (*watch)(struct store *store, const char *group, bool is_on);
    bool (*changed)(struct store *store, char ret_group[NAME_MAX_BYTES + 1]);
};

/* Each driver's own struct begins with this. */
struct store {
    const struct store_driver *driver;
};

/*
 * Opens the store at a URL. A plain path means sqlite. Errors say what is wrong
 * with the store and what to do about it: ERR_INVALID (the URL),
 * ERR_STORE_UNSUPPORTED (unknown scheme, network file system),
 * ERR_STORE_DENIED, ERR_STORE_DAMAGED (not a database), ERR_STORE_TOO_NEW,
 * ERR_STORE_FULL, ERR_STORE_UNAVAILABLE.
 */
GAVEL_CHECKED enum gavel_status store_open(const char *url, struct store **ret_store,
                                           struct gavel_error *error);

/*
 * Makes sure that the store can keep mandates, before the first is claimed:
 * creates missing tables, and refuses a server that would break the promise. A
 * process that is going to campaign calls it once; it may write. Those that
 * only look, and the guard of a dead process, need not.
 */
GAVEL_CHECKED enum gavel_status store_probe(struct store *store, struct gavel_error *error);

/*
 * Changes tables made by others so that gavel can keep mandates in them, which
 * store_probe() refuses to do unasked. *ret_told says what was done, line by
 * line, for people; the caller frees it. NULL: there was nothing to do.
 */
GAVEL_CHECKED enum gavel_status store_migrate(struct store *store, char **ret_told,
                                              struct gavel_error *error);

/*
 * Writes a consistent copy of the whole store to a file that must not exist
 * yet; candidates may go on meanwhile. ERR_STORE_UNSUPPORTED: the store is
 * backed up by the means of its server.
 */
GAVEL_CHECKED enum gavel_status store_backup(struct store *store, const char *path,
                                             struct gavel_error *error);

/*
 * Removes the record of a group that the caller has seen released, with this
 * version. If it has another one by now nothing happens, except in an object
 * store, which may not take a condition. The epochs of the group may begin anew, so this is for
 * one whose epochs fence nothing and whose mandates protect nothing: that of
 * `gavel store ping`.
 */
GAVEL_CHECKED enum gavel_status store_remove(struct store *store, const char *group, uint64_t version,
                                             gavel_ns until, struct gavel_error *error);

/*
 * The numeric address of this host on its connection to the server: where other
 * candidates of the same server most likely reach it. False if it is unknown.
 */
bool store_own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE]);

#define STORE_CAUTION_MAX 400

/*
 * What is allowed about the place of a URL and unwise, as it is now: a sentence
 * for people; "" if nothing is. Judged by files of this machine: no server is
 * asked, and nothing is created.
 */
void store_caution(const char *url, char ret_text[static STORE_CAUTION_MAX]);

/* Safe on NULL. */
void store_close(struct store *store);

const struct store_capabilities *store_capabilities(const struct store *store);

/* The capabilities of a URL's driver without opening it; NULL if there is no such driver. */
const struct store_capabilities *store_capabilities_of(const char *url);

/* The time to live of sessions that a URL says, by its text; 0: none, so it follows from the lease. */
gavel_ms store_session_ttl_of(const char *url);

/*
 * Carries out the requests in order, each atomic by itself; drivers may combine
 * them into one transaction. replies[i] is overwritten with the answer to
 * requests[i]; the caller frees it with store_reply_done().
 */
void store_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count);

/* One request. The caller frees the reply, also after a failure. */
GAVEL_CHECKED enum gavel_status store_call(struct store *store, const struct store_request *request,
                                           struct store_reply *reply);

/* Waits until the group's record may differ from `version` (0: none), or until `until`. May return early. */
void store_wait(struct store *store, const char *group, uint64_t version, gavel_ns until);

/*
 * Begins the session of this store object, which store_close() ends; news tell
 * when it is open. If it is lost another is opened by itself. Once per object.
 * ERR_INVALID: no such session can be had; *error says why. ERR_STATE: it was
 * begun already. ERR_STORE_UNSUPPORTED: the store has no sessions.
 */
GAVEL_CHECKED enum gavel_status store_open_session(struct store *store,
                                                   const struct store_session_options *options,
                                                   struct gavel_error *error);

/*
 * Takes the next piece of news; false: there is none. From one thread, which
 * may be another than that of store_run(); store_push_fd() is readable while
 * there is some. What is shown by a reply to store_run() is also told before
 * that reply, as far as it concerns the session.
 *
 * Keep-alives go on only while their news are taken, so that a process that
 * hangs does not keep what it cannot lead.
 *
 * Groups in which a candidate of the session takes part need not be watched.
 * Those that are watched besides are news, too, and store_changed() reports
 * nothing. Of each group what is newest waits to be taken, whatever came before.
 */
bool store_news(struct store *store, struct store_news *ret_news);

/*
 * Ends the session of a dead process, whose guard has its key: what it held is
 * told to be lost, and granted to others. Must be called only when nothing of
 * the work is left. OK: it is closed, also if it was so before. Blocks until
 * `give_up_at` at the latest.
 */
GAVEL_CHECKED enum gavel_status store_close_dead(struct store *store, const struct store_session_key *key,
                                                 gavel_ns give_up_at, struct gavel_error *error);

/* Push (struct store_driver). For drivers without it: -1, and nothing happens. */
int store_push_fd(struct store *store);
void store_watch(struct store *store, const char *group, bool is_on);
bool store_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1]);

/*
 * Whether this build has a driver for the URL, and the driver finds nothing
 * wrong with it: ERR_INVALID if it is empty or badly written,
 * ERR_STORE_UNSUPPORTED if there is no driver; *error then names the build
 * option that adds it. ERR_STORE_DENIED: a file that it names cannot be read.
 * Nothing is opened.
 */
GAVEL_CHECKED enum gavel_status store_check_url(const char *url, struct gavel_error *error);

/* The drivers of this build, ending with NULL. */
extern const struct store_driver *const store_drivers[];

/* Every kind of store that gavel knows, whether this build has it or not; ends with a NULL scheme. */
struct store_kind {
    const char *scheme;
    const char *option; /* of Meson, that adds it; NULL: every build has it */
    const char *example;
};
extern const struct store_kind store_kinds[];

/* The driver of a scheme; NULL if this build has none. */
const struct store_driver *store_driver_of(const char *scheme);

#endif
