/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every test program in C is linked with this. Before main() it makes the
 * world what tests count on, whatever whoever started them has left behind:
 * every signal has its default, none is blocked, and the three standard
 * descriptors are open. A test of something else sets that itself.
 *
 * What gavel and gaveld do with a world that is not calm is tested where they
 * run as programs of their own (tests/e2e/signals.sh, tests/e2e/cluster/signals.sh).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/* Whoever runs for hours under nohup, or as a job in the background, was told so on purpose. */
static bool is_meant(int number)
{
    return IS_LONG && (number == SIGHUP || number == SIGINT || number == SIGQUIT);
}

__attribute__((constructor)) static void calm_down(void)
{
    sigset_t none;
    int fd;

    for (int number = 1; number < SIGRTMAX; number++) {
        struct sigaction action;

        /* A sanitizer has handlers of its own by now. */
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN && !is_meant(number))
            (void)signal(number, SIG_DFL); /* a signal that can be ignored, so it cannot fail */
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd); /* nothing was written to it */
}
