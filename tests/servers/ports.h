/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ports on loopback that no other test uses: the holder of the lock of a block
 * owns its ports. They are below those that the system gives to clients.
 * ports.sh does the same for shell scripts.
 */
#ifndef TESTS_SERVERS_PORTS_H
#define TESTS_SERVERS_PORTS_H

#define TEST_PORTS 20 /* in a block */

/* The first port of a free block, which is the caller's until it closes *ret_lock_fd; fails the test if there
 * is none. */
int test_ports_claim(int *ret_lock_fd);

#endif
