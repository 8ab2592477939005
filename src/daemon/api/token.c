/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/api/token.h"

#include "base/error.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum gavel_status check(const char *file, const char *line, size_t length, struct gavel_error *error)
{
    if (length < API_TOKEN_MIN || length > API_TOKEN_MAX)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "%s: the token has %zu characters; it needs %d to %d. Make one with: openssl rand -hex 32", file,
            length, API_TOKEN_MIN, API_TOKEN_MAX);
    for (size_t i = 0; i < length; i++)
        if (line[i] <= ' ' || line[i] > '~')
            return error_set(
                error, GAVEL_ERR_INVALID,
                "%s: character %zu of the token is not allowed in an HTTP header. Make one with: openssl rand -hex 32",
                file, i + 1);
    return GAVEL_OK;
}

enum gavel_status api_token_read(const char *file, struct api_token *ret_token, struct gavel_error *error)
{
    char line[API_TOKEN_MAX + 3] = "";
    enum gavel_status status;
    size_t length;
    FILE *stream;

    if (file[0] == '\0') {
        memset(ret_token, 0, sizeof *ret_token);
        return GAVEL_OK;
    }
    stream = fopen(file, "re");
    if (!stream)
        return error_set(error, GAVEL_ERR_IO, "%s: cannot read the token: %s", file, strerror(errno));
    if (!fgets(line, sizeof line, stream))
        line[0] = '\0';   /* an empty file; check() says so */
    (void)fclose(stream); /* it was only read */
    length = strcspn(line, "\r\n");
    status = check(file, line, length, error);
    if (status == GAVEL_OK) {
        memset(ret_token, 0, sizeof *ret_token);
        memcpy(ret_token->text, line, length);
        ret_token->length = length;
    }
    explicit_bzero(line, sizeof line);
    return status;
}

bool api_token_is_shown(const struct api_token *token, const char *authorization)
{
    char shown[API_TOKEN_MAX + 1] = "";
    volatile uint8_t difference;
    size_t length;

    if (token->length == 0)
        return true;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    authorization += 7;
    authorization += strspn(authorization, " ");
    length = strlen(authorization);
    if (length > API_TOKEN_MAX)
        return false;
    memcpy(shown, authorization, length);
    /* All of the buffer, whatever differs first: how long it takes tells nothing of the token. */
    difference = length != token->length;
    for (size_t i = 0; i < sizeof shown; i++)
        difference |= (uint8_t)(shown[i] ^ token->text[i]);
    return difference == 0;
}
