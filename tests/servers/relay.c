/* SPDX-License-Identifier: Apache-2.0 */

#include "relay.h"

#include "commands.h"
#include "os/clock.h"
#include "relay_links.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct state {
    const struct relay *relay;
    int listen_fd; /* -1: refuses */
    bool is_over;
    struct relay_links links;
    struct commands commands;
};

static bool start_listening(struct state *state)
{
    struct sockaddr_in address = relay_address(state->relay->port);
    int one = 1;
    int fd;

    if (state->listen_fd >= 0)
        return true;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) || listen(fd, RELAY_LINKS_MAX)) {
        (void)close(fd);
        return false;
    }
    state->listen_fd = fd;
    return true;
}

static void stop_listening(struct state *state)
{
    if (state->listen_fd >= 0)
        (void)close(state->listen_fd);
    state->listen_fd = -1;
}

static void accept_one(struct state *state)
{
    int fd = accept4(state->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        relay_links_add(&state->links, fd);
}

static bool pass(struct state *state)
{
    struct relay_links *links = &state->links;

    links->drops = links->mutes = links->snaps = false;
    links->delay_ms[UP] = links->delay_ms[DOWN] = 0;
    relay_links_cut(links, true);
    relay_links_hurry(links);
    return start_listening(state);
}

/* Cuts a line into its word and up to two numbers; returns how many parts there are, 0 if they are no
 * good. */
static int parse(char *line, const char **ret_word, unsigned ret_numbers[2])
{
    char *rest = NULL;
    int count = 0;

    for (char *part = strtok_r(line, " ", &rest); part; part = strtok_r(NULL, " ", &rest), count++) {
        size_t digits = strspn(part, "0123456789");

        if (count > 2 || (count > 0 && (digits == 0 || digits > 9 || part[digits])))
            return 0;
        if (count == 0)
            *ret_word = part;
        else
            ret_numbers[count - 1] = (unsigned)strtoul(part, NULL, 10);
    }
    return count;
}

/* Carries out one command; ret_rest is what the answer says besides. */
static bool carry_out(struct state *state, char *line, char ret_rest[64])
{
    struct relay_links *links = &state->links;
    const char *word = "";
    unsigned numbers[2] = {0};
    int count = parse(line, &word, numbers);

    if (strcmp(word, "delay") == 0 && count == 3) {
        links->delay_ms[UP] = numbers[0];
        links->delay_ms[DOWN] = numbers[1];
    } else if ((strcmp(word, "mute") == 0 || strcmp(word, "snap") == 0) && (count == 1 || count == 2)) {
        links->mutes = word[0] == 'm';
        links->snaps = word[0] == 's';
        links->silent_after = links->passed[UP] + numbers[0];
    } else if (count != 1) {
        return false;
    } else if (strcmp(word, "pass") == 0) {
        return pass(state);
    } else if (strcmp(word, "drop") == 0) {
        links->drops = true;
    } else if (strcmp(word, "cut") == 0) {
        relay_links_cut(links, false);
    } else if (strcmp(word, "fin") == 0 || strcmp(word, "rst") == 0) {
        relay_links_leave_server(links, word[0] == 'r');
    } else if (strcmp(word, "refuse") == 0) {
        stop_listening(state);
    } else if (strcmp(word, "count") == 0) {
        (void)snprintf(ret_rest, 64, " %" PRIu64 " %" PRIu64 " %" PRIu64, links->passed[UP],
                       links->passed[DOWN], links->opened);
    } else {
        return false;
    }
    return true;
}

static void answer(const struct state *state, bool is_good, const char *rest)
{
    char text[80];
    int length = snprintf(text, sizeof text, "%s%s\n", is_good ? "good" : "bad", rest);

    (void)!write(state->relay->out_fd, text, (size_t)length); /* who has gone needs none */
}

static void obey(void *user, char *line)
{
    struct state *state = user;
    char rest[64] = "";
    bool is_good = carry_out(state, line, rest);

    answer(state, is_good, rest);
}

/* One round: waits for anything to do, and does it. */
static void turn(struct state *state)
{
    bool has_room = state->links.count < RELAY_LINKS_MAX;
    struct pollfd fds[2 + 2 * RELAY_LINKS_MAX] = {
        {.fd = state->relay->in_fd, .events = POLLIN},
        {.fd = has_room ? state->listen_fd : -1, .events = POLLIN},
    };
    gavel_ns now = clock_now();
    gavel_ns until = now + 3600 * NS_PER_S;
    size_t count = relay_links_poll(&state->links, fds + 2, now, &until);

    if (poll(fds, 2 + count, (int)(ns_max(until - now, 0) / NS_PER_MS) + 1) < 0) {
        state->is_over = errno != EINTR;
        return;
    }
    relay_links_turn(&state->links, fds + 2);
    if (fds[1].revents)
        accept_one(state);
    if (fds[0].revents && !commands_read(&state->commands, state->relay->in_fd, obey, state))
        state->is_over = true;
}

int relay_run(const struct relay *relay)
{
    struct state state = {.relay = relay, .listen_fd = -1, .links.target = relay->target};
    bool is_good;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
    (void)signal(SIGPIPE, SIG_IGN);
    is_good = start_listening(&state);
    answer(&state, is_good, "");
    while (is_good && !state.is_over && !state.links.is_out_of_memory)
        turn(&state);
    relay_links_cut(&state.links, false);
    stop_listening(&state);
    return is_good ? 0 : 1;
}
