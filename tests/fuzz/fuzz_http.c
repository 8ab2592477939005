/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as what a client of the HTTP API sends: the real server with the
 * real calls, on a socket of this process, driven by hand, so that each input
 * ends before the next begins. Its consensus thread agrees to everything at
 * once; behind the groups are a real frontend and a real table.
 *
 * Afterwards nothing may be left of the client, and every error was JSON.
 */
#include "target.h"

#include "../unit/daemon/api_cluster.h"
#include "base/assert.h"
#include "daemon/api/internal.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TURNS_MAX 2000

struct stage {
    struct daemon_config config;
    struct node_shared frontend;
    struct api *api;
    struct api_cluster cluster;
    struct sockaddr_un address;
    socklen_t address_size;
};

static void publish(struct stage *stage)
{
    struct view view = {
        .at = clock_now(), .id = 1, .leader = 1, .is_leader = true, .is_claimed = true, .deadline = NEVER};

    view.member_count = 1;
    view.members[0] = (struct view_member){.id = 1, .name = "n1", .api = "127.0.0.1:7501", .is_self = true};
    (void)snprintf(view.name, sizeof view.name, "n1");
    view_publish(&stage->frontend.view, &view);
}

static struct stage *set_up(void)
{
    struct stage *stage = calloc(1, sizeof *stage);
    int fd;

    ASSERT(stage);
    stage->frontend.config = &stage->config;
    stage->frontend.log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR};
    ASSERT(view_box_init(&stage->frontend.view) == GAVEL_OK);
    ASSERT(journal_new(1, &stage->frontend.journal) == GAVEL_OK);
    ASSERT(mailbox_init(&stage->frontend.requests) == GAVEL_OK);
    ASSERT(mailbox_init(&stage->frontend.forwardings) == GAVEL_OK);
    ASSERT(table_box_init(&stage->frontend.table) == GAVEL_OK);
    api_cluster_init(&stage->cluster, &stage->frontend);
    publish(stage);
    (void)journal_put(stage->frontend.journal,
                      &(struct journal_entry){.event = JOURNAL_STARTED, .node = "n1"});
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    stage->address.sun_family = AF_UNIX;
    ASSERT(bind(fd, (struct sockaddr *)&stage->address, sizeof(sa_family_t)) ==
           0); /* the kernel chooses a name */
    ASSERT(listen(fd, 16) == 0);
    stage->address_size = sizeof stage->address;
    ASSERT(getsockname(fd, (struct sockaddr *)&stage->address, &stage->address_size) == 0);
    ASSERT(api_new(&stage->frontend, fd, &stage->api, NULL) == GAVEL_OK);
    ASSERT(table_box_add_bell(&stage->frontend.table, stage->api->table_fd));
    api_connections_begin(stage->api);
    return stage;
}

static void agree(struct stage *stage)
{
    struct mail_link *letter;

    while ((letter = mailbox_take(&stage->frontend.requests))) {
        struct request *request = (struct request *)(void *)letter;

        ASSERT(request->target[0] == '\0' || peer_name_is_good(request->target));
        request->status = GAVEL_OK;
        mailbox_put(request->reply_to, &request->link);
    }
}

/* An answer that says 4xx or 5xx has an error in JSON, or no body (HEAD). */
static void check_answer(const char *text, size_t length)
{
    const char *body;
    int code = 0;

    if (length == 0)
        return;                             /* cut off, or never a whole request */
    ASSERT(strncmp(text, "HTTP/", 5) == 0); /* in the version of the client */
    ASSERT(sscanf(text, "HTTP/%*d.%*d %d", &code) == 1);
    ASSERT(code >= 100 && code < 600);
    body = strstr(text, "\r\n\r\n");
    if (body && body[4] != '\0' && code >= 400)
        ASSERT(strncmp(body + 4, "{\"error\":{\"code\":", 17) == 0);
}

static void turn(struct stage *stage)
{
    (void)event_base_loop(stage->api->base, EVLOOP_NONBLOCK);
    agree(stage);
    api_cluster_turn(&stage->cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct stage *stage;
    static char text[1 << 20];
    size_t length = 0;
    size_t sent = 0;
    bool is_closed = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (!stage)
        stage = set_up();
    publish(stage);
    ASSERT(fd >= 0);
    ASSERT(connect(fd, (struct sockaddr *)&stage->address, stage->address_size) == 0);
    for (int turns = 0; !is_closed; turns++) {
        ssize_t n = sent < size ? send(fd, bytes + sent, size - sent, MSG_NOSIGNAL) : 0;

        ASSERT(turns < TURNS_MAX);
        sent = n < 0 ? (turns > 100 ? size : sent) : sent + (size_t)n; /* it may not want more */
        if (sent == size)
            (void)shutdown(fd, SHUT_WR);
        turn(stage);
        n = recv(fd, text + length, sizeof text - 1 - length, 0);
        length += n > 0 ? (size_t)n : 0;
        if (length > sizeof text / 2)
            length = sizeof text / 2; /* enough was seen */
        is_closed = n == 0 || (n < 0 && turns > 0 && stage->api->connection_count == 0);
    }
    text[length] = '\0';
    check_answer(text, length);
    (void)close(fd);
    for (int turns = 0; stage->api->connection_count > 0 || stage->api->forwarding_count > 0; turns++) {
        ASSERT(turns < TURNS_MAX);
        turn(stage);
    }
    ASSERT(stage->api->pending_count == 0);
    ASSERT(stage->api->stream_count == 0);
    ASSERT(LIST_EMPTY(&stage->api->laters));
    ASSERT(LIST_EMPTY(&stage->api->campaigns));
    return 0;
}
