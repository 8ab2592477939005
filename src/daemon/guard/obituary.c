/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/guard/obituary.h"

#include "net/seal.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the death: a datagram may be lost, or its reader be busy. */
static const gavel_ns delays[OBITUARY_TIMES] = {0, 2 * NS_PER_MS, 10 * NS_PER_MS, 50 * NS_PER_MS};

static void write_obituary(struct obituary_post *post, uint64_t cluster, uint64_t generation,
                           struct raft_certificate *certificate, const uint8_t key[SEAL_KEY_BYTES])
{
    struct seal seal = {.cluster = cluster, .generation = generation};

    memcpy(seal.key, key, sizeof seal.key);
    seal_sign(&seal, certificate);
    explicit_bzero(seal.key, sizeof seal.key);
    post->size = obituary_encode(cluster, generation, certificate, post->bytes);
}

void obituary_post_open(struct obituary_post *post, const uint8_t key[SEAL_KEY_BYTES])
{
    struct raft_certificate nobody = {.kind = RAFT_CERT_OBITUARY, .node = 1, .incarnation = 1};

    *post = (struct obituary_post){.sent = OBITUARY_TIMES};
    post->fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    post->fds[1] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    write_obituary(post, 0, 0, &nobody, key);
    post->size = 0;
}

void obituary_post_close(struct obituary_post *post)
{
    for (size_t i = 0; i < 2; i++) {
        if (post->fds[i] >= 0)
            (void)close(post->fds[i]); /* what was sent is sent */
        post->fds[i] = -1;
    }
}

static void send_once(struct obituary_post *post)
{
    for (uint32_t i = 0; i < post->peers.count; i++) {
        const struct sockaddr_storage *address = &post->peers.addresses[i];
        bool is_v6 = address->ss_family == AF_INET6;
        int fd = post->fds[is_v6];

        if (fd < 0 || (address->ss_family != AF_INET && !is_v6))
            continue;
        /* One that does not leave now does so with the next repetition, or the time-out decides. */
        (void)sendto(fd, post->bytes, post->size, MSG_DONTWAIT | MSG_NOSIGNAL,
                     (const struct sockaddr *)address,
                     is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    post->sent++;
}

bool obituary_post_send(struct obituary_post *post, const struct page *page,
                        const uint8_t key[SEAL_KEY_BYTES], gavel_ns now)
{
    struct raft_certificate certificate = {
        .kind = RAFT_CERT_OBITUARY,
        .node = atomic_load(&page->node),
        .incarnation = atomic_load(&page->incarnation),
    };

    post->sent = OBITUARY_TIMES;
    if (certificate.incarnation == 0)
        return false;
    page_get_peers(page, &post->peers);
    write_obituary(post, atomic_load(&page->cluster), atomic_load(&page->generation), &certificate, key);
    post->began_at = now;
    post->sent = 0;
    send_once(post);
    return true;
}

gavel_ns obituary_post_due_at(const struct obituary_post *post)
{
    return post->sent < OBITUARY_TIMES ? post->began_at + delays[post->sent] : NEVER;
}

void obituary_post_repeat(struct obituary_post *post, gavel_ns now)
{
    if (now >= obituary_post_due_at(post))
        send_once(post);
}
