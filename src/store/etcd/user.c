/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who the driver logs in as: the user of the URL, else of the file, else of the
 * environment. A file is read again for each login, so that a password can be
 * changed while gavel runs.
 */
#include "store/etcd/etcd.h"

#include "base/error.h"
#include "store/secret.h"

#include <stdlib.h>
#include <string.h>

void etcd_user_done(struct etcd_store *etcd)
{
    free(etcd->user);
    secret_free(etcd->password);
    secret_free(etcd->token);
    free(etcd->credentials_file);
}

/* Replaces both, or none. */
static bool set(struct etcd_store *etcd, const char *user, const char *password)
{
    char *new_user = strdup(user);
    char *new_password = strdup(password);

    if (!new_user || !new_password) {
        free(new_user);
        secret_free(new_password);
        return false;
    }
    free(etcd->user);
    secret_free(etcd->password);
    etcd->user = new_user;
    etcd->password = new_password;
    return true;
}

/* "user:password" in the first line; given_user NULL: that of the file. */
static enum gavel_status read_file(struct etcd_store *etcd, const char *given_user, struct gavel_error *error)
{
    const char *path = etcd->credentials_file;
    struct secret file = {0};
    const char *why;
    char *colon;
    enum gavel_status status = secret_read(path, &file, &why);

    if (status != GAVEL_OK)
        return error_set(error, status, "the file of credentials %.120s cannot be read: %s", path, why);
    file.text[strcspn(file.text, "\r\n")] = '\0';
    colon = strchr(file.text, ':');
    if (!colon || colon == file.text) {
        status = error_set(error, GAVEL_ERR_INVALID,
                           "the file of credentials %.120s does not begin with a line user:password", path);
    } else {
        *colon = '\0';
        if (!set(etcd, given_user ? given_user : file.text, colon + 1))
            status = error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", etcd->where);
    }
    secret_done(&file);
    return status;
}

enum gavel_status etcd_user_take(struct etcd_store *etcd, const struct url *url, struct gavel_error *error)
{
    const char *path = url_option(url, "credentials");
    const char *user = url->user ? url->user : url_option(url, "user");
    const char *password = secure_getenv("GAVEL_ETCD_PASSWORD");

    etcd->has_given_user = user != NULL;
    if (path) {
        etcd->credentials_file = strdup(path);
        if (!etcd->credentials_file)
            return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", etcd->where);
        return read_file(etcd, user, error);
    }
    if (!user)
        user = secure_getenv("GAVEL_ETCD_USER");
    if (!user || !*user)
        return GAVEL_OK;
    if (!password)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "there is no password for user \"%.60s\" of etcd; set GAVEL_ETCD_PASSWORD, or name a file by credentials=",
            user);
    if (!set(etcd, user, password))
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory while opening %s", etcd->where);
    return GAVEL_OK;
}

char *etcd_user_login(struct etcd_store *etcd)
{
    char *body;

    pthread_mutex_lock(&etcd->push.lock);
    /* If it cannot be read now, what it said before is still the best guess. */
    if (etcd->credentials_file)
        (void)!read_file(etcd, etcd->has_given_user ? etcd->user : NULL, NULL);
    body = etcd_body_user(etcd->user, etcd->password);
    pthread_mutex_unlock(&etcd->push.lock);
    return body;
}
