/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading certificates, at the start and again on SIGHUP. Files may be slow,
 * so while the node runs a thread of its own reads them, and the consensus
 * thread gets what it found as a message.
 */
#ifndef DAEMON_NODE_RELOAD_H
#define DAEMON_NODE_RELOAD_H

#include "daemon/config/config.h"
#include "daemon/shared/mailbox.h"
#include "net/tls.h"

struct certificates {
    SSL_CTX *context; /* for peers; NULL without TLS */
    struct tls_identity identity;
};

/* ERR_IO, ERR_INVALID, with what to do. OK and nothing in it if there is no TLS. */
GAVEL_CHECKED enum gavel_status certificates_read(const struct daemon_config *config,
                                                  struct certificates *ret_certificates,
                                                  struct gavel_error *error);

struct reload {
    const struct daemon_config *config;
    struct mailbox done; /* its fd is readable when there is a result */
    pthread_t thread;
    bool is_running;
    bool is_again; /* asked for while one was running */
    struct mail_link message;
    struct certificates certificates;
    enum gavel_status status;
    struct gavel_error error;
};

GAVEL_CHECKED enum gavel_status reload_init(struct reload *reload, const struct daemon_config *config);

/* Begins to read; once more afterwards, if it is under way already. False if no thread could be started. */
bool reload_begin(struct reload *reload);

/* What was read, when done.fd is readable: status, error and, handed over, certificates. */
void reload_take(struct reload *reload, struct certificates *ret_certificates);

/* Waits for the thread. Safe on a zeroed struct. */
void reload_done(struct reload *reload);

#endif
