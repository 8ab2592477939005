/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP API of a node, on a thread and an event base of its own, so that no
 * load on it delays a heartbeat. routes.c has the table of calls.
 */
#ifndef DAEMON_API_API_H
#define DAEMON_API_API_H

#include "daemon/node/node.h"

struct api;

/* Binds and starts the thread. ERR_INVALID, ERR_IO (the port is taken and so on), with the next step. */
GAVEL_CHECKED enum gavel_status api_start(struct node_shared *shared, struct api **ret_api,
                                          struct gavel_error *error);

/* The port it listens on. */
uint16_t api_port(const struct api *api);

/* Reads certificates and token again. Any thread. Errors are logged, and the old ones stay. */
void api_reload(struct api *api);

/*
 * The node will end: tells the candidates that campaign here, and ends their streams. Their sessions live on,
 * because they continue at another node; only those that have resigned are still closed. The consensus thread
 * must keep running until api_has_left(). Any thread; safe on NULL.
 */
void api_leave(struct api *api);
bool api_has_left(const struct api *api);

/* Ends the streams, answers what is under way, joins the thread. Safe on NULL. */
void api_stop(struct api *api);

#endif
