/* SPDX-License-Identifier: Apache-2.0 */

/* Sending an obituary: everything that it needs is opened beforehand, and it goes out several times. */
#ifndef DAEMON_GUARD_OBITUARY_H
#define DAEMON_GUARD_OBITUARY_H

#include "base/time.h"
#include "daemon/shared/node_page.h"
#include "net/seal.h"
#include "wire/peer.h"

#define OBITUARY_TIMES 4

struct obituary_sender {
    int fds[2]; /* IPv4, IPv6; -1: this machine has none */
    struct node_page_peers peers;
    uint8_t bytes[OBITUARY_BYTES];
    size_t size;
    gavel_ns began_at;
    int sent; /* so many times; OBITUARY_TIMES: done */
};

/* Opens the sockets and signs once, so that nothing is loaded when it counts. */
void obituary_sender_open(struct obituary_sender *sender, const uint8_t key[SEAL_KEY_BYTES]);
void obituary_sender_close(struct obituary_sender *sender);

/* The node of this page is dead, and nothing of it is left: writes its obituary and sends it for the first
 * time. False if there is nobody to tell of, as it never came to an incarnation. */
bool obituary_sender_send(struct obituary_sender *sender, const struct node_page *page,
                          const uint8_t key[SEAL_KEY_BYTES], gavel_ns now);

/* Sends it again if it is time; call it at obituary_sender_due_at(), which is NEVER if it was sent often
 * enough. */
void obituary_sender_repeat(struct obituary_sender *sender, gavel_ns now);
gavel_ns obituary_sender_due_at(const struct obituary_sender *sender);

#endif
