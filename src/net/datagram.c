/* SPDX-License-Identifier: Apache-2.0 */

/* Receives obituaries, one datagram each. Anybody may send any datagram, and only the seal makes one worth
 * reading. So their rate is limited to what a cluster can need, and rubbish is not reported. */

#include "net/internal.h"

#include "os/clock.h"

#include <sys/socket.h>

#define AT_ONCE 32

void datagram_receive(evutil_socket_t fd, short events, void *context)
{
    struct transport *transport = context;
    uint8_t bytes[OBITUARY_BYTES + 1];

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct raft_message message = {.kind = RAFT_MSG_CERTIFICATE, .to = transport->settings.self.node};
        ssize_t size = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        const char *reason;

        if (size < 0)
            return;
        if (!obituary_decode(bytes, (size_t)size, &message.cluster, &message.generation,
                             &message.certificate) ||
            raft_message_check(&message, &reason) != GAVEL_OK)
            continue;
        if (!bucket_take(&transport->obituaries, clock_now()))
            continue;
        if (transport->events.message)
            transport->events.message(transport->events.user, &message);
    }
}
