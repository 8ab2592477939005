/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An attacker at the port of the peers, for tests: it speaks the protocol of the nodes with whatever
 * certificate it was given, calls itself a member and sends what it was told to, without the secret.
 *
 *     peer_attack PORT CLUSTER NAME TO ATTACK [CA CERT KEY]
 *
 * ATTACK: hello (only greets), generation (a greeting of generation 1000), term (an append of the last term
 * there is), write (an append with an entry), newer (says that it knows a later configuration, proves itself
 * by the key that everybody can make from the cluster's name, then writes). Prints what the node says, and
 * ends with 0 if it was refused.
 */
#include "net/prove.h"
#include "net/seal.h"
#include "wire/peer.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_MS 5000

struct line {
    int fd;
    SSL *ssl;
};

static int fail(const char *what)
{
    printf("cannot attack: %s\n", what);
    return 2;
}

static bool open_line(struct line *line, int port, char **files)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    SSL_CTX *context;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->fd < 0 || connect(line->fd, (struct sockaddr *)&address, sizeof address) != 0)
        return false;
    if (!files[0])
        return true;
    context = SSL_CTX_new(TLS_client_method());
    if (!context || SSL_CTX_load_verify_locations(context, files[0], NULL) != 1 ||
        SSL_CTX_use_certificate_chain_file(context, files[1]) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, files[2], SSL_FILETYPE_PEM) != 1)
        return false;
    line->ssl = SSL_new(context);
    SSL_CTX_free(context);
    return line->ssl && SSL_set_fd(line->ssl, line->fd) == 1 && SSL_connect(line->ssl) == 1;
}

static void say(struct line *line, const struct peer_frame *frame)
{
    uint8_t *bytes;
    size_t size;

    if (peer_frame_encode(frame, &bytes, &size) != GAVEL_OK)
        return;
    if (line->ssl)
        (void)SSL_write(line->ssl, bytes, (int)size);
    else
        (void)!write(line->fd, bytes, size); /* the node may have closed it already */
    free(bytes);
}

static bool take(struct line *line, uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct pollfd ready = {.fd = line->fd, .events = POLLIN};
        long got;

        if ((!line->ssl || SSL_pending(line->ssl) == 0) && poll(&ready, 1, LIMIT_MS) != 1)
            return false;
        got = line->ssl ? SSL_read(line->ssl, bytes + done, (int)(size - done))
                        : read(line->fd, bytes + done, size - done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* With the key of a cluster that has no secret. */
static void prove_by_name(struct line *line, const struct peer_hello *own, const struct peer_hello *other)
{
    struct peer_frame frame = {.kind = PEER_PROOF};
    uint8_t key[SEAL_KEY_BYTES];

    seal_key_of_name(own->cluster_name, key);
    prove_make(key, PROVE_DIALLED, own, other->nonce, frame.proof);
    say(line, &frame);
}

/* Until the node has refused us, closed the line, or said nothing for long. */
static int listen_to(struct line *line, const struct peer_hello *own, const struct peer_frame *message)
{
    static uint8_t bytes[PEER_FRAME_MAX];
    uint8_t length[PEER_LENGTH_BYTES];

    while (take(line, length, sizeof length)) {
        size_t size = peer_frame_length(length);
        struct peer_frame frame;
        const char *reason;

        if (size == 0 || size > sizeof bytes || !take(line, bytes, size) ||
            peer_frame_decode(bytes, size, &frame, &reason) != GAVEL_OK)
            break;
        if (frame.kind == PEER_REFUSAL)
            printf("refused: %s\n", frame.text);
        else if (frame.kind == PEER_WELCOME)
            printf("welcome\n");
        if (frame.kind == PEER_WELCOME && own->has_nonce) {
            prove_by_name(line, own, &frame.hello);
            say(line, message);
        }
        peer_frame_done(&frame);
        if (frame.kind == PEER_REFUSAL)
            return 0;
    }
    printf("the line is over\n");
    return 1;
}

int main(int argc, char **argv)
{
    struct peer_frame hello = {.kind = PEER_HELLO}, message = {.kind = PEER_MESSAGE};
    struct raft_entry entry = {
        .term = 1000, .kind = RAFT_ENTRY_DATA, .data = (const uint8_t *)"evil", .size = 4};
    struct line line = {0};
    int code;

    if (argc != 6 && argc != 9)
        return fail("wrong arguments");
    if (!open_line(&line, atoi(argv[1]), argc == 9 ? argv + 6 : (char *[]){NULL}))
        return fail("no connection");
    hello.hello = (struct peer_hello){.version_min = 1,
                                      .version_max = 1,
                                      .cluster = seal_id_of_name("cluster", argv[2]),
                                      .generation = strcmp(argv[5], "generation") == 0 ? 1000 : 1,
                                      .node = seal_id_of_name("node", argv[3]),
                                      .to = seal_id_of_name("node", argv[4]),
                                      .incarnation = 1000000,
                                      .process = 7};
    (void)snprintf(hello.hello.cluster_name, sizeof hello.hello.cluster_name, "%s", argv[2]);
    (void)snprintf(hello.hello.name, sizeof hello.hello.name, "%s", argv[3]);
    (void)snprintf(hello.hello.program, sizeof hello.hello.program, "attack");
    if (strcmp(argv[5], "newer") == 0) {
        hello.hello.has_nonce = true;
        hello.hello.config_index = RAFT_NUMBER_MAX - 1;
    }
    say(&line, &hello);
    message.message =
        (struct raft_message){.kind = RAFT_MSG_APPEND,
                              .from = hello.hello.node,
                              .to = hello.hello.to,
                              .cluster = hello.hello.cluster,
                              .generation = 1,
                              .incarnation = 1000000,
                              .term = strcmp(argv[5], "term") == 0 ? RAFT_NUMBER_MAX - 1 : 1000};
    if (strcmp(argv[5], "write") == 0 || strcmp(argv[5], "newer") == 0) {
        message.message.append.entries = &entry;
        message.message.append.entry_count = 1;
    }
    if (strcmp(argv[5], "term") == 0 || strcmp(argv[5], "write") == 0)
        say(&line, &message);
    code = listen_to(&line, &hello.hello, &message);
    SSL_free(line.ssl);
    (void)close(line.fd); /* whoever attacks does not wait */
    return code;
}
