/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/node/reload.h"

#include "base/error.h"
#include "daemon/realtime.h"

#include <string.h>

enum gavel_status certificates_read(const struct daemon_config *config, struct certificates *ret_certificates,
                                    struct gavel_error *error)
{
    const struct tls_files files = {.ca = config->tls_ca,
                                    .cert = config->tls_cert,
                                    .key = config->tls_key,
                                    .revoked = config->tls_revoked};
    struct certificates found = {0};
    enum gavel_status status = GAVEL_OK;

    if (config->has_tls)
        status = tls_context_make(&files, TLS_PEER, &found.context, error);
    if (config->has_tls && status == GAVEL_OK)
        status = tls_identity_of_file(files.cert, &found.identity, error);
    if (config->has_tls && status == GAVEL_OK &&
        (strcmp(found.identity.cluster, config->cluster) != 0 ||
         strcmp(found.identity.node, config->node) != 0))
        status = error_set(
            error, GAVEL_ERR_INVALID,
            "the certificate %.200s is for node \"%s\" of cluster \"%s\", not for this one; issue it with `gavel cert issue %s`",
            files.cert, found.identity.node, found.identity.cluster, config->node);
    if (config->has_tls && status == GAVEL_OK && found.identity.kind != TLS_KIND_NODE)
        status = error_set(error, GAVEL_ERR_INVALID,
                           "the certificate %.200s is not a node's; issue it with `gavel cert issue %s`",
                           files.cert, config->node);
    if (status != GAVEL_OK) {
        SSL_CTX_free(found.context);
        return status;
    }
    *ret_certificates = found;
    return GAVEL_OK;
}

enum gavel_status reload_init(struct reload *reload, const struct daemon_config *config)
{
    memset(reload, 0, sizeof *reload);
    reload->config = config;
    return mailbox_init(&reload->done);
}

static void *run(void *user)
{
    struct reload *reload = user;

    reload->status = certificates_read(reload->config, &reload->certificates, &reload->error);
    mailbox_put(&reload->done, &reload->message);
    return NULL;
}

bool reload_begin(struct reload *reload)
{
    if (reload->is_running) {
        reload->is_again = true;
        return true;
    }
    reload->is_running = realtime_thread(&reload->thread, "gaveld-reload", run, reload, REALTIME_NO) == 0;
    return reload->is_running;
}

void reload_take(struct reload *reload, struct certificates *ret_certificates)
{
    (void)mailbox_take(&reload->done);
    (void)pthread_join(reload->thread, NULL); /* it has nothing left to do */
    reload->is_running = false;
    *ret_certificates = reload->certificates;
    memset(&reload->certificates, 0, sizeof reload->certificates);
}

void reload_done(struct reload *reload)
{
    if (!reload->config)
        return;
    if (reload->is_running)
        (void)pthread_join(reload->thread, NULL); /* fails only for a thread that is none */
    SSL_CTX_free(reload->certificates.context);
    mailbox_done(&reload->done);
    memset(reload, 0, sizeof *reload);
}
