/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The suite that every driver passes, against the real thing. A driver says how
 * to get an empty store and calls conformance_run(). Tests that do not apply to
 * its capabilities are skipped and named on standard output.
 */
#ifndef TESTS_STORE_CONFORMANCE_CONFORMANCE_H
#define TESTS_STORE_CONFORMANCE_CONFORMANCE_H

#include "os/clock.h"
#include "os/process.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct conformance_driver {
    const char *name; /* its scheme */
    /* Writes the URL of an empty store that nothing else uses. */
    void (*make_url)(char *url, size_t size);
    /* Removes what is behind a URL; NULL if closing does. */
    void (*remove_url)(const char *url);
    /* Marks the stored record of a group as written by a future version; NULL if nothing outlives the
     * process. */
    void (*write_future_record)(const char *url, const char *group);
    /* Makes the store behind a URL neither answer nor refuse, and ends that; NULL if that is not possible. */
    void (*freeze)(const char *url);
    void (*thaw)(const char *url);
    /* Every call goes to a server and takes some milliseconds: mere repetitions are done less often. */
    bool is_server;
    /*
     * It may restart a lease that it had reported as over: the next leader of a
     * cluster knows only that it was held.
     */
    bool may_count_anew;
};

/* What a test needs of a driver. */
enum conformance_needs {
    NEEDS_ELECTION = 1,  /* the leader is not assigned */
    NEEDS_PROCESSES = 2, /* shared between processes */
    NEEDS_CLOCK = 4,     /* leases expire on a clock of the store */
    NEEDS_FORMAT = 8,    /* records outlive the process */
    NEEDS_PUSH = 16,     /* changes are reported */
    NEEDS_NO_CLOCK = 32, /* they do not */
    NEEDS_FREEZE = 64,   /* it can be made to fall silent */
};

/* One store, opened twice. */
struct fixture {
    const struct conformance_driver *driver;
    char url[512];
    struct store *a;
    struct store *b;
};

struct conformance_test {
    const char *name;
    void (*run)(void **state);
    unsigned needs;
};

extern const struct conformance_test conformance_mandate_tests[]; /* each ends with a NULL name */
extern const struct conformance_test conformance_done_tests[];
extern const struct conformance_test conformance_registry_tests[];
extern const struct conformance_test conformance_name_tests[];
extern const struct conformance_test conformance_concurrent_tests[];
extern const struct conformance_test conformance_push_tests[];
extern const struct conformance_test conformance_late_tests[];

/* Runs all that applies; returns how many failed. */
int conformance_run(const struct conformance_driver *driver);

/* Requests with a generous deadline. The holder's nonce is made from its id and `n`. */
struct store_request ask_read(const char *group);
/* By a candidate that says its nonce: a store that hides nonces shows only this one. */
struct store_request ask_read_own(const char *group, const char *holder, uint64_t attempt);
struct store_request ask_claim(const char *group, const char *id, uint64_t n, uint64_t expected_version);
struct store_request ask_renew(const char *group, const char *id, uint64_t n, uint64_t epoch);
struct store_request ask_release(const char *group, const char *id, uint64_t n, uint64_t epoch);
struct store_request ask_wish(const char *group, uint64_t epoch, const char *successor);
struct store_request ask_heartbeat(const char *group, const char *id, uint64_t instance, uint64_t beats);
struct store_request ask_leave(const char *group, const char *id, uint64_t instance);
struct store_request ask_candidates(const char *group);

/* Makes one call, fails the test unless it ends as expected, and returns the reply without what it owns. */
struct store_reply expect(struct store *store, struct store_request request, enum gavel_status status);

/* Reads until the lease of a group has run out, up to a limit. */
void await_expiry(struct store *store, const char *group);

/* Claims what has expired for the given holder; must_be_expired is set. */
struct store_reply claim_expired(const struct fixture *fixture, struct store *store,
                                 struct store_request claim);

/* Epochs and versions of a group grow, by whatever step the store counts in: `number` is beyond `before`. */
uint64_t higher(uint64_t number, uint64_t before);

/* Fails the test with the reason if that does not work. */
struct store *open_store(const char *url);

/* Each is refused as invalid, with a message. */
void expect_bad_urls(const char *const *urls, size_t count);

/* Waits until the store reports that group, and discards other reports on the way. */
bool is_told(struct store *store, const char *group, gavel_ns limit);

/* A store may confirm a watch by reporting a change; from here on only true ones count. */
void settle(struct store *store, const char *group);

/* Makes the call in a child process and kills that with SIGKILL; the caller waits for it. */
pid_t call_and_die(const char *url, struct store_request request);

/* A forked child is told to open a store of its own, and does no harm. */
void expect_refused_in_a_child(struct store *store);

struct nonce test_nonce(const char *id, uint64_t n);

#endif
