/* SPDX-License-Identifier: Apache-2.0 */

/* Sends an obituary, several times. Everything that it needs is opened in advance. */
#ifndef DAEMON_GUARD_OBITUARY_H
#define DAEMON_GUARD_OBITUARY_H

#include "base/time.h"
#include "daemon/shared/shared_memory.h"
#include "net/seal.h"
#include "wire/peer.h"

#define OBITUARY_TIMES 4

struct obituary_sender {
    int fds[2]; /* IPv4, IPv6; -1: this machine has none */
    struct shared_memory_peers peers;
    uint8_t bytes[OBITUARY_BYTES];
    size_t size;
    gavel_ns began_at;
    int sent; /* how many times; OBITUARY_TIMES: done */
};

/* Opens the sockets and signs once, so that nothing has to be loaded when time matters. */
void obituary_sender_open(struct obituary_sender *sender, const uint8_t key[SEAL_KEY_BYTES]);
void obituary_sender_close(struct obituary_sender *sender);

/* The node that shares this memory is dead, and nothing of it is left: writes its obituary and sends it for
 * the first time. False if there is nobody to tell of, as it never came to an incarnation. */
bool obituary_sender_send(struct obituary_sender *sender, const struct shared_memory *memory,
                          const uint8_t key[SEAL_KEY_BYTES], gavel_ns now);

/* Sends it again if due. Call it at obituary_sender_due_at(), which is NEVER after the last time. */
void obituary_sender_repeat(struct obituary_sender *sender, gavel_ns now);
gavel_ns obituary_sender_due_at(const struct obituary_sender *sender);

#endif
