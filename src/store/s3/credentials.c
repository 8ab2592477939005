/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who we are to an object store, from where the tools of that world look:
 *
 *     credentials=FILE or profile=NAME in the URL   that file, that profile
 *     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY      and AWS_SESSION_TOKEN
 *     AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE      ~/.aws/credentials, "default"
 *
 * No metadata service of a cloud is asked: it is a network call that can hang,
 * to a place that only exists there. What rotates is written to the file by
 * whatever rotates it; the file is read again when a call is refused.
 */
#include "store/s3/s3.h"

#include "base/error.h"
#include "os/clock.h"
#include "store/secret.h"
#include "store/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define READ_AGAIN_AFTER (1 * NS_PER_S)

void s3_credentials_source_done(struct s3_credentials_source *source)
{
    free(source->file);
    free(source->profile);
    *source = (struct s3_credentials_source){0};
}

/* NULL if it is not set or empty. */
static const char *environment(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

static char *default_file(void)
{
    const char *home = environment("HOME");
    char *path;

    if (environment("AWS_SHARED_CREDENTIALS_FILE"))
        return strdup(environment("AWS_SHARED_CREDENTIALS_FILE"));
    return asprintf(&path, "%s/.aws/credentials", home ? home : "") < 0 ? NULL : path;
}

enum gavel_status s3_credentials_find(const struct url *url, struct s3_credentials_source *ret_source,
                                      struct gavel_error *error)
{
    const char *file = url_option(url, "credentials");
    const char *profile = url_option(url, "profile");

    *ret_source = (struct s3_credentials_source){0};
    if ((file && !*file) || (profile && !*profile))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "credentials= names a file and profile= a part of it; in the URL of the store one of them is empty");
    if (!file && !profile && environment("AWS_ACCESS_KEY_ID")) {
        ret_source->is_environment = true;
        return GAVEL_OK;
    }
    if (!profile)
        profile = environment("AWS_PROFILE") ? environment("AWS_PROFILE") : "default";
    ret_source->file = file ? strdup(file) : default_file();
    ret_source->profile = strdup(profile);
    if (!ret_source->file || !ret_source->profile)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening an object store");
    return GAVEL_OK;
}

/* False: too long, or a character that would end a header or the key. */
static bool take(const char *value, const char *refused, char *to, size_t size)
{
    if (strlen(value) >= size)
        return false;
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr(refused, *c))
            return false;
    memcpy(to, value, strlen(value) + 1);
    return true;
}

static enum gavel_status refuse_form(const char *what, const char *from, struct gavel_error *error)
{
    return error_set(
        error, GAVEL_ERR_STORE_DENIED,
        "the %s for the object store from %.200s is too long or has a character that none has; write it as it was issued",
        what, from);
}

static enum gavel_status read_environment(struct s3_credentials *made, struct gavel_error *error)
{
    const char *key = environment("AWS_ACCESS_KEY_ID");
    const char *secret = environment("AWS_SECRET_ACCESS_KEY");
    const char *token = environment("AWS_SESSION_TOKEN");

    if (!key || !secret)
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set; set both");
    if (!take(key, ":", made->key, sizeof made->key))
        return refuse_form("access key", "AWS_ACCESS_KEY_ID", error);
    if (!take(secret, "", made->secret, sizeof made->secret))
        return refuse_form("secret", "AWS_SECRET_ACCESS_KEY", error);
    if (token && !take(token, "", made->token, sizeof made->token))
        return refuse_form("token", "AWS_SESSION_TOKEN", error);
    return GAVEL_OK;
}

/* Without the blanks around it; in place. */
static char *trim(char *text)
{
    size_t length;

    while (isspace((unsigned char)*text))
        text++;
    length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Whether "[…]" is the head of that profile; "[profile NAME]" is how the other file of that world writes
 * it. */
static bool is_head_of(char *line, const char *profile)
{
    char *end = strchr(line, ']');
    char *name;

    if (!end)
        return false;
    *end = '\0';
    name = trim(line + 1);
    if (strncmp(name, "profile ", 8) == 0)
        name = trim(name + 8);
    return strcmp(name, profile) == 0;
}

/* A line of the profile. */
static bool take_line(char *line, struct s3_credentials *made)
{
    char *value = strchr(line, '=');
    const char *name;

    if (!value)
        return true;
    *value++ = '\0';
    name = trim(line);
    value = trim(value);
    if (strcasecmp(name, "aws_access_key_id") == 0)
        return take(value, ":", made->key, sizeof made->key);
    if (strcasecmp(name, "aws_secret_access_key") == 0)
        return take(value, "", made->secret, sizeof made->secret);
    if (strcasecmp(name, "aws_session_token") == 0)
        return take(value, "", made->token, sizeof made->token);
    return true;
}

/* Cuts the text up. */
static enum gavel_status read_text(char *rest, const struct s3_credentials_source *source,
                                   struct s3_credentials *made, struct gavel_error *error)
{
    char *line;
    bool is_ours = false;
    bool is_found = false;
    bool is_good = true;

    while (is_good && (line = strsep(&rest, "\n"))) {
        char *text = trim(line);

        if (*text == '[') {
            is_ours = is_head_of(text, source->profile);
            is_found |= is_ours;
        } else if (is_ours && *text != '#' && *text != ';') {
            is_good = take_line(text, made);
        }
    }
    if (!is_good)
        return refuse_form("access key, secret or token", source->file, error);
    if (!is_found)
        return error_set(error, GAVEL_ERR_STORE_DENIED,
                         "there is no profile [%.60s] in %.200s; add it, or name another with profile=",
                         source->profile, source->file);
    if (!made->key[0] || !made->secret[0])
        return error_set(
            error, GAVEL_ERR_STORE_DENIED,
            "the profile [%.60s] in %.200s has no aws_access_key_id or no aws_secret_access_key; add both",
            source->profile, source->file);
    return GAVEL_OK;
}

static enum gavel_status refuse_file(const char *file, const char *why, struct gavel_error *error)
{
    if (environment("AWS_ACCESS_KEY_ID")) /* that is not asked: the URL names a file or a profile */
        return error_set(
            error, GAVEL_ERR_STORE_DENIED,
            "the credentials for the object store cannot be read from %.200s: %s; write them there, or leave credentials= and profile= out of the URL",
            file, why);
    return error_set(
        error, GAVEL_ERR_STORE_DENIED,
        "there are no credentials for the object store: AWS_ACCESS_KEY_ID is not set and %.200s cannot be read (%s); set it with AWS_SECRET_ACCESS_KEY, or name a file with credentials=",
        file, why);
}

enum gavel_status s3_credentials_read(const struct s3_credentials_source *source,
                                      struct s3_credentials *ret_credentials, struct gavel_error *error)
{
    struct s3_credentials made = {0};
    enum gavel_status status;
    struct secret file = {0};
    const char *why;

    if (source->is_environment) {
        status = read_environment(&made, error);
    } else {
        if (secret_read(source->file, &file, &why) != GAVEL_OK)
            return refuse_file(source->file, why, error);
        status = read_text(file.text, source, &made, error);
        secret_done(&file);
    }
    if (status == GAVEL_OK)
        *ret_credentials = made;
    explicit_bzero(&made, sizeof made);
    return status;
}

bool s3_credentials_renew(struct s3_store *s3, unsigned used)
{
    struct s3_credentials now = {0};
    gavel_ns at = clock_now();
    char pair[sizeof now.key + sizeof now.secret];
    bool is_other;

    if (used != s3->generation)
        return true; /* another call of the same batch was faster */
    if (s3->source.is_environment || (s3->credentials_at != 0 && at - s3->credentials_at < READ_AGAIN_AFTER))
        return false;
    s3->credentials_at = at;
    if (s3_credentials_read(&s3->source, &now, NULL) != GAVEL_OK)
        return false; /* what was refused stays in use until the file is whole again */
    is_other = strcmp(now.key, s3->credentials.key) != 0 || strcmp(now.secret, s3->credentials.secret) != 0 ||
               strcmp(now.token, s3->credentials.token) != 0;
    (void)snprintf(pair, sizeof pair, "%s:%s", now.key, now.secret);
    if (is_other && http_set_credentials(s3->http, pair) == GAVEL_OK) {
        s3->credentials = now;
        s3->generation++;
    } else {
        is_other = false;
    }
    explicit_bzero(pair, sizeof pair);
    explicit_bzero(&now, sizeof now);
    return is_other;
}
