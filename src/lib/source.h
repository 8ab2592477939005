/* SPDX-License-Identifier: Apache-2.0 */

/* A descriptor in the loop's epoll set and what to do when it is readable. */
#ifndef LIB_SOURCE_H
#define LIB_SOURCE_H

struct gavel;

struct source {
    int fd; /* -1: none */
    void (*ready)(struct gavel *gavel, struct source *source);
};

#endif
