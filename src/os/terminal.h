/* SPDX-License-Identifier: Apache-2.0 */

/* Output for people at a terminal. */
#ifndef OS_TERMINAL_H
#define OS_TERMINAL_H

#include "base/log.h"

/* Whether fd is a terminal that shows colours: neither NO_COLOR nor TERM=dumb is set. */
bool terminal_has_color(int fd);

/*
 * A log of `format` to fd: LOG_AUTO means human lines on a terminal and logfmt
 * elsewhere. People read local time, in colour where terminal_has_color().
 */
struct log terminal_log(int fd, enum log_level level, enum log_format format);

#endif
