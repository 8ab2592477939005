/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store with sessions, `fake:`, whose sessions the test opens, prolongs and
 * ends. In between it grants: a group that nobody leads is led by whoever
 * stands in the open session. There is one, of one store object.
 */
#ifndef TESTS_LIB_FAKE_H
#define TESTS_LIB_FAKE_H

#include "harness.h"
#include "lib/guard/on_death.h"
#include "store/store.h"

#include <pthread.h>

#define FAKE_URL "fake:"
#define FAKE_LEASE_MS 60000 /* of fake_settings() */

struct fake_group {
    char name[NAME_MAX_BYTES + 1];
    bool has_joined;
    bool is_standing;
    uint64_t session; /* that holds it */
    struct record record;
};

struct fake_told {
    struct fake_told *next;
    struct store_news news;
};

struct fake {
    pthread_mutex_t mutex;
    int fd; /* readable while there is news */

    /* what the test says, before the store is opened */
    enum gavel_status refusal; /* of store_open_session() */
    gavel_ms asked_ttl_ms;     /* as store_session_ttl_of() says; it changes nothing else here */
    bool waits;                /* no session opens by itself */
    bool hangs;                /* calls are not answered until fake_go_on() */
    pthread_cond_t gone_on;
    gavel_ms lasts_ms; /* of one; it is not kept alive by itself */
    gavel_ms late_ms;  /* so long ago the keep-alives were sent that are answered now */
    uint64_t
        reopens_in_reply; /* the next heartbeat is answered in this session, which was opened just before */

    /* what was seen */
    struct store_session_options options;
    int opened;
    int heartbeats;
    int requests;
    int largest_batch;
    int deaths; /* of other leaders that a candidate has seen */

    struct store_session session;
    uint64_t revision;
    struct fake_told *first;
    struct fake_told *last;
    struct fake_group *groups; /* by the hash of the name */
    size_t capacity;
};

/* Makes the store that the next gavel_open() of FAKE_URL finds; for up to so many groups. */
void fake_begin(struct fake *fake, size_t groups);
void fake_end(struct fake *fake);

/* Another session is open, from now on for lasts_ms; 0: none is. */
void fake_open(struct fake *fake, uint64_t number);
/* A keep-alive was answered: the session is open for lasts_ms from now on. */
void fake_prolong(struct fake *fake);
/* Like comes_true(), with keep-alives meanwhile: a slow machine may take longer than a session lasts. */
bool fake_comes_true(struct fake *fake, bool (*is_true)(void *argument), void *argument);
/* The store shows a group unasked. */
void fake_show(struct fake *fake, const char *group);
void fake_hint(struct fake *fake, const char *group);
/* Somebody else holds the mandate. */
void fake_give_away(struct fake *fake, const char *group);
/* What is shown as the process of its leader. */
void fake_set_process(struct fake *fake, const char *group, const struct process_id *process);

void fake_go_on(struct fake *fake);
/* Whether any call about it has come. */
bool fake_has_heard_of(struct fake *fake, const char *group);
/* Whether somebody of ours is in it. */
bool fake_is_in(struct fake *fake, const char *group);

int fake_count(struct fake *fake, const int *counter);

/* Those of a patient candidate. */
struct gavel_settings fake_settings(gavel_ms grace_ms);
/* Opens the store or fails the test; with on_death: gavel_open_guarded(). */
struct gavel *fake_gavel(struct on_death *on_death);
/* Joins without a subscriber; the error is the caller's. */
enum gavel_status fake_join(struct gavel *gavel, const char *group, const char *id,
                            const struct gavel_settings *settings, struct gavel_candidate **ret_candidate,
                            struct gavel_error *error);

#endif
