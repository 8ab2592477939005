/* SPDX-License-Identifier: Apache-2.0 */

/* The proxy of relay.h as a program, for shell tests: proxy PORT TARGET_PORT; commands on standard input. */
#include "relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int port_of(const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);

    return *text && !*end && port > 0 && port < 65536 ? (int)port : 0;
}

int main(int argc, char **argv)
{
    struct relay relay = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO};

    if (argc == 3) {
        relay.port = port_of(argv[1]);
        relay.target = port_of(argv[2]);
    }
    if (relay.port == 0 || relay.target == 0) {
        (void)fprintf(stderr, "usage: proxy PORT TARGET_PORT\n");
        return 2;
    }
    return relay_run(&relay);
}
