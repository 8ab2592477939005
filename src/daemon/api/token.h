/* SPDX-License-Identifier: Apache-2.0 */

/* The token that callers of the API must show, read from a file. */
#ifndef DAEMON_API_TOKEN_H
#define DAEMON_API_TOKEN_H

#include <gavel/status.h>

#include <stdbool.h>
#include <stddef.h>

#define API_TOKEN_MIN 16
#define API_TOKEN_MAX 255

struct api_token {
    size_t length; /* 0: none is asked for */
    char text[API_TOKEN_MAX + 1];
};

/* Reads the first line of the file. "" gives a token of length 0. ERR_IO, ERR_INVALID with the next step. */
GAVEL_CHECKED enum gavel_status api_token_read(const char *file, struct api_token *ret_token,
                                               struct gavel_error *error);

/* Whether an Authorization header (NULL if there is none) shows it. A wrong one takes as long as the right
 * one. */
bool api_token_is_shown(const struct api_token *token, const char *authorization);

#endif
