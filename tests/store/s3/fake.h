/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An S3 server in a thread of the test, for what a real one does not do on
 * demand: ignore conditions, fail after it has written, refuse for any reason.
 * It does not check signatures; radosgw does that.
 */
#ifndef TESTS_STORE_S3_FAKE_H
#define TESTS_STORE_S3_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* What happens to a PUT. */
enum fake_trouble {
    FAKE_FINE,
    FAKE_REFUSES,          /* answers `status` with `code`, and writes nothing */
    FAKE_WRITES_AND_FAILS, /* writes, and answers `status` with `code` */
    FAKE_WRITES_AND_CUTS,  /* writes, and closes the connection */
    FAKE_CUTS,             /* writes nothing, and closes the connection */
};

struct fake_object {
    char *key;
    char *body;
    char etag[40]; /* without quotes */
};

struct fake_counts {
    int gets;
    int puts;
    int lists;
    int deletes;
};

/* A test changes settings between its calls, while there are no requests. */
struct s3_fake {
    pthread_mutex_t lock;
    pthread_t thread;
    int fd;
    int port;
    struct fake_object *objects; /* in the order of their keys */
    size_t count;

    bool ignores_if_none_match;
    bool ignores_if_match;
    bool wants_bare; /* an ETag without quotes */
    bool has_one_etag;
    bool is_no_s3; /* answers everything with a page for people */
    enum fake_trouble trouble;
    int troubles;     /* how many PUTs it happens to */
    int status;       /* of those, and of everything if is_denying */
    const char *code; /* "": no body */
    bool is_denying;  /* everything */
    const char *late; /* a PUT of a key with this in it is refused once another was carried out; NULL: none */
    int late_fd;
    const char *needed; /* text required in the Authorization header; NULL: none */
    struct fake_counts counts;
    char authorization[1024]; /* of the last request */
    char token[256];          /* likewise */
};

void s3_fake_start(struct s3_fake *fake);
void s3_fake_stop(struct s3_fake *fake);

/* "s3://bucket/p?endpoint=http://127.0.0.1:PORT" */
void s3_fake_url(const struct s3_fake *fake, char *url, size_t size);

/* The next `troubles` PUTs meet this. */
void s3_fake_trouble(struct s3_fake *fake, enum fake_trouble trouble, int troubles, int status,
                     const char *code);

/* Counts since the last time. */
struct fake_counts s3_fake_counts(struct s3_fake *fake);

/* Writes an object, as another authorized client. */
void s3_fake_write(struct s3_fake *fake, const char *key, const char *body);

#endif
