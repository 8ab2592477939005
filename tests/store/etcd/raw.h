/* SPDX-License-Identifier: Apache-2.0 */

/* etcd without the driver: what tests set up there, and look at behind its back. */
#ifndef TESTS_STORE_ETCD_RAW_H
#define TESTS_STORE_ETCD_RAW_H

#include "store/conformance/conformance.h"

#include <jansson.h>

/*
 * Sends a request to a port of 127.0.0.1 and fails the test unless it is
 * answered; the caller frees the answer.
 */
json_t *etcd_raw(int port, const char *token, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same if the answer does not matter. */
void etcd_raw_do(int port, const char *token, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts a text over the record of a group. */
void etcd_raw_overwrite(const char *url, const char *group, const char *text);

/* How many keys begin with `first`, which ends with a slash. */
size_t etcd_raw_count(int port, const char *first);

#endif
