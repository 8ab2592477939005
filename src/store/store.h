/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store keeps mandates. One interface, many drivers; each passes the suite
 * in tests/store against the real thing.
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
    bool has_push;       /* store_wait() is told instead of looking again and again */
    /*
     * A renewal does not change the version: the store's steady clock alone tells that a lease runs. Such a
     * store carries out the writes of one object in the order they were begun, whatever becomes of their
     * answers: once one is answered, no earlier one can still arrive.
     */
    bool renews_silently;
};

#define STORE_ADDRESS_SIZE 46 /* of an address in numbers, without a port */

struct store_driver {
    const char *scheme;  /* "sqlite" */
    const char *summary; /* one line for --help */
    struct store_capabilities capabilities;
    /* Whether open() would take the URL, by its words alone: no server is asked, no credentials are read.
     * NULL: it shows when it is opened. */
    enum gavel_status (*check_url)(const char *rest, struct gavel_error *error);
    enum gavel_status (*open)(const char *rest, struct store **ret_store, struct gavel_error *error);
    /* Whether the server does what the driver relies on; NULL: nothing to look at. See store_probe(). */
    enum gavel_status (*probe)(struct store *store, struct gavel_error *error);
    /* See store_migrate() and store_backup(); NULL: there is nothing to migrate, no backup of its own. */
    enum gavel_status (*migrate)(struct store *store, char **ret_told, struct gavel_error *error);
    enum gavel_status (*backup)(struct store *store, const char *path, struct gavel_error *error);
    /* See store_own_address(); NULL: the store is on this host, or tells of changes itself. */
    bool (*own_address)(struct store *store, char ret_address[STORE_ADDRESS_SIZE]);
    void (*run)(struct store *store, const struct store_request *requests, struct store_reply *replies,
                size_t count);
    /* Waits until the group's record may differ from `version`, or until_ns; NULL: look again and again. */
    void (*wait)(struct store *store, const char *group, uint64_t version, gavel_ns until);
    void (*close)(struct store *store);
    /*
     * Push, of drivers with has_push; else NULL. These three may be called from another thread than run().
     * push_fd is readable while a watched group may have changed; changed() gives the name of one such and
     * takes it off, false if there is none (any more). More may be told than has changed; of renewals and
     * registrations nothing is told. A group that is watched twice is left alone after the second "off".
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
 * Opens the store of a URL. A plain path is taken as sqlite. Errors say what
 * is wrong with the store and what to do about it: ERR_INVALID (the URL),
 * ERR_STORE_UNSUPPORTED (unknown scheme, network file system), ERR_STORE_DENIED,
 * ERR_STORE_DAMAGED (not a database), ERR_STORE_TOO_NEW, ERR_STORE_FULL,
 * ERR_STORE_UNAVAILABLE.
 */
GAVEL_CHECKED enum gavel_status store_open(const char *url, struct store **ret_store,
                                           struct gavel_error *error);

/*
 * Makes sure that the store can keep mandates, before the first is claimed:
 * tables are made that are missing, and a server that would break the promise
 * is refused. Whoever is going to campaign calls it once; it may write. Those
 * who only look, and the guard of a dead process, need not.
 */
GAVEL_CHECKED enum gavel_status store_probe(struct store *store, struct gavel_error *error);

/*
 * Changes what others have made so that gavel can keep mandates in it: what store_probe() refuses to do
 * unasked. *ret_told is what was done, line by line, for people; the caller frees it. NULL: nothing was to be
 * done.
 */
GAVEL_CHECKED enum gavel_status store_migrate(struct store *store, char **ret_told,
                                              struct gavel_error *error);

/*
 * Writes a copy of the whole store, as of one moment, to a file that must not be there yet; candidates may go
 * on meanwhile. ERR_STORE_UNSUPPORTED: a store that is backed up by the means of its server.
 */
GAVEL_CHECKED enum gavel_status store_backup(struct store *store, const char *path,
                                             struct gavel_error *error);

/*
 * The address of this host on its way to the server, in numbers: where other
 * candidates of the same server most likely reach it. False if it is not known.
 */
bool store_own_address(struct store *store, char ret_address[STORE_ADDRESS_SIZE]);

/* Safe on NULL. */
void store_close(struct store *store);

const struct store_capabilities *store_capabilities(const struct store *store);

/* The capabilities of a URL's driver without opening it; NULL if there is no such driver. */
const struct store_capabilities *store_capabilities_of(const char *url);

/*
 * Carries out the requests, in order, each atomic by itself; drivers may put
 * them in one transaction. replies[i] is overwritten with the answer to
 * requests[i]; the caller frees it with store_reply_done().
 */
void store_run(struct store *store, const struct store_request *requests, struct store_reply *replies,
               size_t count);

/* One request. The caller frees the reply, also after a failure. */
GAVEL_CHECKED enum gavel_status store_call(struct store *store, const struct store_request *request,
                                           struct store_reply *reply);

/* Waits until the group's record may differ from `version` (0: none), or until that instant. May return
 * early. */
void store_wait(struct store *store, const char *group, uint64_t version, gavel_ns until);

/* Push (struct store_driver): -1 and nothing of drivers without it. */
int store_push_fd(struct store *store);
void store_watch(struct store *store, const char *group, bool is_on);
bool store_changed(struct store *store, char ret_group[NAME_MAX_BYTES + 1]);

/*
 * Whether this build has a driver for the URL, and the driver finds nothing wrong with it: ERR_INVALID if it
 * is empty or badly written, ERR_STORE_UNSUPPORTED if there is no driver; *error then says which option of
 * the build brings it. ERR_STORE_DENIED: a file that it names cannot be read. Nothing is opened.
 */
GAVEL_CHECKED enum gavel_status store_check_url(const char *url, struct gavel_error *error);

/* The drivers of this build, ending with NULL. */
extern const struct store_driver *const store_drivers[];

/* Every kind of store that gavel knows, whether this build has it or not; ends with a NULL scheme. */
struct store_kind {
    const char *scheme;
    const char *option; /* of Meson, that brings it; NULL: every build has it */
    const char *example;
};
extern const struct store_kind store_kinds[];

/* The driver of a scheme; NULL if this build has none. */
const struct store_driver *store_driver_of(const char *scheme);

#endif
