/* SPDX-License-Identifier: Apache-2.0 */

/* Sending an obituary: everything that it needs is opened beforehand, and it goes out several times. */
#ifndef DAEMON_GUARD_OBITUARY_H
#define DAEMON_GUARD_OBITUARY_H

#include "base/time.h"
#include "daemon/shared/page.h"
#include "net/seal.h"
#include "wire/peer.h"

#define OBITUARY_TIMES 4

struct obituary_post {
    int fds[2]; /* IPv4, IPv6; -1: this machine has none */
    struct page_peers peers;
    uint8_t bytes[OBITUARY_BYTES];
    size_t size;
    gavel_ns began_at;
    int sent; /* so many times; OBITUARY_TIMES: done */
};

/* Opens the sockets and signs once, so that nothing is loaded when it counts. */
void obituary_post_open(struct obituary_post *post, const uint8_t key[SEAL_KEY_BYTES]);
void obituary_post_close(struct obituary_post *post);

/* The node of this page is dead, and nothing of it is left: writes its obituary and sends it for the first
 * time. False if there is nobody to mourn, as it never came to an incarnation. */
bool obituary_post_send(struct obituary_post *post, const struct page *page,
                        const uint8_t key[SEAL_KEY_BYTES], gavel_ns now);

/* Sends it again if it is time; call it at obituary_post_due_at(), which is NEVER if it was sent often
 * enough. */
void obituary_post_repeat(struct obituary_post *post, gavel_ns now);
gavel_ns obituary_post_due_at(const struct obituary_post *post);

#endif
