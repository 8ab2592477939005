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
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS 600
#define FIRST_PORT 20000
/* The ports are the machine's, so that their locks are, too: of all users, and whatever TMPDIR says. */
#define DIRECTORY "/tmp/gavel-test-ports"

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

/* The lock of that block; -1 if somebody else has it, or nobody can. */
static int lock_block(int block)
{
    char file[64];
    int fd;

    (void)snprintf(file, sizeof file, DIRECTORY "/%d", block);
    fd = open(file, O_RDONLY | O_CLOEXEC); /* the kernel may forbid O_CREAT for files of others */
    if (fd < 0) {
        fd = open(file, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0)
            (void)fchmod(fd, 0666); /* for others, whatever the mask says; it is our own file */
    }
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd); /* nothing was written to it */
    return -1;
}

int test_ports_claim(int *ret_lock_fd)
{
    if (mkdir(DIRECTORY, 0777) == 0)
        (void)chmod(DIRECTORY, 0777); /* as above */
    for (int i = 0; i < BLOCKS; i++) {
        int block = (i + (int)getpid()) % BLOCKS;
        int first = FIRST_PORT + block * TEST_PORTS;
        int fd = lock_block(block);
        bool is_good = true;

        if (fd < 0)
            continue;
        for (int port = first; port < first + TEST_PORTS; port++)
            is_good = is_good && is_free(port);
        if (is_good) {
            *ret_lock_fd = fd;
            return first;
        }
        (void)close(fd);
    }
    fail_msg("no free ports");
    return 0;
}
