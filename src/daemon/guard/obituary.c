/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/guard/obituary.h"

#include "net/seal.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the death: a datagram may be lost, or its reader be busy. */
static const gavel_ns delays[OBITUARY_TIMES] = {0, 2 * NS_PER_MS, 10 * NS_PER_MS, 50 * NS_PER_MS};

static void write_obituary(struct obituary_sender *sender, uint64_t cluster, uint64_t generation,
                           struct raft_certificate *certificate, const uint8_t key[SEAL_KEY_BYTES])
{
    struct seal seal = {.cluster = cluster, .generation = generation};

    memcpy(seal.key, key, sizeof seal.key);
    seal_sign(&seal, certificate);
    explicit_bzero(seal.key, sizeof seal.key);
    sender->size = obituary_encode(cluster, generation, certificate, sender->bytes);
}

void obituary_sender_open(struct obituary_sender *sender, const uint8_t key[SEAL_KEY_BYTES])
{
    struct raft_certificate nobody = {.kind = RAFT_CERT_OBITUARY, .node = 1, .incarnation = 1};

    *sender = (struct obituary_sender){.sent = OBITUARY_TIMES};
    sender->fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sender->fds[1] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    write_obituary(sender, 0, 0, &nobody, key);
    sender->size = 0;
}

void obituary_sender_close(struct obituary_sender *sender)
{
    for (size_t i = 0; i < 2; i++) {
        if (sender->fds[i] >= 0)
            (void)close(sender->fds[i]); /* what was sent is sent */
        sender->fds[i] = -1;
    }
}

static void send_once(struct obituary_sender *sender)
{
    for (uint32_t i = 0; i < sender->peers.count; i++) {
        const struct sockaddr_storage *address = &sender->peers.addresses[i];
        bool is_v6 = address->ss_family == AF_INET6;
        int fd = sender->fds[is_v6];

        if (fd < 0 || (address->ss_family != AF_INET && !is_v6))
            continue;
        /* One that does not leave now does so with the next repetition, or the time-out decides. */
        (void)sendto(fd, sender->bytes, sender->size, MSG_DONTWAIT | MSG_NOSIGNAL,
                     (const struct sockaddr *)address,
                     is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    sender->sent++;
}

bool obituary_sender_send(struct obituary_sender *sender, const struct shared_memory *memory,
                          const uint8_t key[SEAL_KEY_BYTES], gavel_ns now)
{
    struct raft_certificate certificate = {
        .kind = RAFT_CERT_OBITUARY,
        .node = atomic_load(&memory->node),
        .incarnation = atomic_load(&memory->incarnation),
    };

    sender->sent = OBITUARY_TIMES;
    if (certificate.incarnation == 0)
        return false;
    shared_memory_get_peers(memory, &sender->peers);
    write_obituary(sender, atomic_load(&memory->cluster), atomic_load(&memory->generation), &certificate,
                   key);
    sender->began_at = now;
    sender->sent = 0;
    send_once(sender);
    return true;
}

gavel_ns obituary_sender_due_at(const struct obituary_sender *sender)
{
    return sender->sent < OBITUARY_TIMES ? sender->began_at + delays[sender->sent] : NEVER;
}

void obituary_sender_repeat(struct obituary_sender *sender, gavel_ns now)
{
    if (now >= obituary_sender_due_at(sender))
        send_once(sender);
}
