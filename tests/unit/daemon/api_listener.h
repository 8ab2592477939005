/* SPDX-License-Identifier: Apache-2.0 */

/* A client of a stream: keeps everything it received, and waits for what it should receive. */
#ifndef TESTS_API_LISTENER_H
#define TESTS_API_LISTENER_H

#include "api_frontend.h"

struct listener {
    int fd;
    bool is_closed;
    size_t heard; /* events up to here were asked for */
    size_t length;
    char text[256 * 1024];
};

/* Sends the request, and has seen that it became a stream. Freed with listener_leave(). */
struct listener *listener_post(struct api_frontend *frontend, const char *path, const char *body);
struct listener *listener_get(struct api_frontend *frontend, const char *path, const char *header);
/* Goes away at once. */
void listener_leave(struct listener *listener);

/* The next event of this name, whatever comes before it: its data, as JSON that the caller frees. */
json_t *listener_next(struct listener *listener, const char *event);
/* Waits for the next event of this name and asserts that a key has this text ("" for null). */
void listener_expect(struct listener *listener, const char *event, const char *key, const char *text);
/* Until the other side has closed. */
void listener_wait_end(struct listener *listener);

/* A campaign in a group, which the node keeps alive unless `more` says otherwise; `more` is the rest of the
 * body, such as ",\"priority\":1". */
struct listener *listener_campaign(struct api_frontend *frontend, const char *group, const char *candidate,
                                   const char *more);
/* Resigns, which leaves the group, and goes away. */
void listener_resign(struct api_frontend *frontend, struct listener *listener, const char *group);
/* The session that it was told first, as the caller's buffer. */
void listener_session(struct listener *listener, char session[17]);
/* Waits until it is elected; the epoch. */
uint64_t listener_elected(struct listener *listener);

#endif
