/* SPDX-License-Identifier: Apache-2.0 */

#include "ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS 600
#define FIRST_PORT 20000

static bool is_free(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((in_port_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    bool is_bound;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    is_bound = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return is_bound;
}

int test_ports_claim(int *ret_lock_fd)
{
    const char *temporary = getenv("TMPDIR");
    char folder[200];

    (void)snprintf(folder, sizeof folder, "%s/gavel-test-ports", temporary ? temporary : "/tmp");
    (void)mkdir(folder, 0777); /* it may be there */
    for (int i = 0; i < BLOCKS; i++) {
        int block = (i + (int)getpid()) % BLOCKS;
        int first = FIRST_PORT + block * TEST_PORTS;
        bool is_good = true;
        char file[240];
        int fd;

        (void)snprintf(file, sizeof file, "%s/%d", folder, block);
        fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        assert_true(fd >= 0);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            for (int port = first; port < first + TEST_PORTS; port++)
                is_good = is_good && is_free(port);
            if (is_good) {
                *ret_lock_fd = fd;
                return first;
            }
        }
        (void)close(fd);
    }
    fail_msg("no free ports");
    return 0;
}
