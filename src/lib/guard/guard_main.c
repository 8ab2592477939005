/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel-guard: waits for the death of the program that started it, then
 * releases what it led, or closes its session; own_guard.h has the picture.
 * People have no use for it.
 *
 * It ends without a release when the program says that its handle was closed.
 * When the line is cut without a word the program has executed another one, or
 * closed what is not its own: the mandates then run out, since nobody can
 * renew them, and the guard goes with the last of them.
 */
#include "lib/guard/on_death.h"
#include "lib/guard/own_guard.h"
#include "os/clock.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the last deadline others may lead on their own account; a store that comes back later needs no
 * help. */
#define PATIENCE (60 * NS_PER_S)

static enum gavel_status say(enum guard_word word, const char *text)
{
    struct guard_message message = {.word = word};

    (void)snprintf(message.text, sizeof message.text, "%s", text); /* cut off if too long */
    return send(GUARD_FD_LINE, &message, sizeof message, MSG_NOSIGNAL) < 0 ? GAVEL_ERR_IO : GAVEL_OK;
}

/* Whether the program says goodbye; *ret_is_cut if it can say nothing any more. */
static bool hears_goodbye(bool *ret_is_cut)
{
    struct guard_message message;
    ssize_t got = recv(GUARD_FD_LINE, &message, sizeof message, MSG_DONTWAIT);

    *ret_is_cut = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return got > 0 && message.word == GUARD_BYE;
}

/* True if the program is dead, false if the guard is not needed any more. */
static bool watch(const struct on_death *on_death)
{
    struct pollfd fds[] = {{.fd = GUARD_FD_PROGRAM, .events = POLLIN},
                           {.fd = GUARD_FD_LINE, .events = POLLIN}};
    bool is_cut = false;

    for (;;) {
        gavel_ns left = on_death_last_deadline(on_death) - clock_now();
        int timeout_ms = is_cut ? (int)ns_min(left / NS_PER_MS + 1, 60000) : -1;

        if (is_cut && left <= 0)
            return false;
        if (poll(fds, is_cut ? 1 : 2, timeout_ms) < 0)
            continue; /* signals are blocked: only memory can be short, for a moment */
        /* Goodbye comes first: a program that has said it may end right after. */
        if (!is_cut && fds[1].revents && hears_goodbye(&is_cut))
            return false;
        if (fds[0].revents & POLLIN)
            return true;
        if (fds[0].revents & POLLNVAL)
            return false; /* not started by the library */
    }
}

static int serve(const struct on_death *on_death)
{
    struct gavel_error error = {0};
    struct store *store = NULL;
    int code = 0;

    if (store_open(on_death->store, &store, &error) != GAVEL_OK) {
        (void)say(GUARD_FAILED, error.message); /* if nobody listens there is nobody to tell */
        return 1;
    }
    (void)say(GUARD_READY, ""); /* if nobody listens, that is no proof of anything */
    if (watch(on_death))
        code =
            on_death_release(on_death, store, on_death_give_up_at(on_death, PATIENCE), NULL, NULL) == GAVEL_OK
                ? 0
                : 1;
    store_close(store);
    return code;
}

int main(void)
{
    const struct on_death *on_death;
    sigset_t all;
    int code;

    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* cannot fail with these */
    if (on_death_map_file(GUARD_FD_ON_DEATH, &on_death) != GAVEL_OK) {
        if (say(GUARD_FAILED, "the library is of another release than the guard; install both of the same") !=
            GAVEL_OK)
            (void)fprintf(
                stderr,
                "gavel-guard is started by libgavel, see gavel_options.guard; by hand it does nothing\n");
        return 2;
    }
    code = serve(on_death);
    on_death_free(on_death);
    return code;
}
