/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A TCP proxy on loopback that disturbs what passes through it, on command.
 * Commands are lines, each answered with "good" (or "bad") when it is in force:
 *
 *     pass           everything passes, at once; connections that lost bytes are cut
 *     delay UP DOWN  what comes from now on arrives so many milliseconds later, at server and client
 *     drop           connections are taken, and nothing passes in either direction
 *     cut            all connections there are end with a reset
 *     fin, rst       the server's side of all connections there are ends, with a FIN or a reset; the
 *                    client's side stays open and hears nothing more
 *     mute [N]       once the server has got N more bytes (0: now) nothing it says arrives
 *     snap [N]       likewise, and each connection is reset when the server answers on it
 *     refuse         new connections are refused; those there are live on
 *     count          answers "good UP DOWN OPENED": bytes that passed to the server and to the clients,
 *                    and connections taken so far
 *
 * "drop", "mute", "snap" and "refuse" last until "pass"; they, and "delay", may be in force together.
 */
#ifndef TESTS_SERVERS_RELAY_H
#define TESTS_SERVERS_RELAY_H

struct relay {
    int port;   /* where it listens, on 127.0.0.1 */
    int target; /* the port of the server, there as well */
    int in_fd;  /* of the commands */
    int out_fd; /* of the answers */
};

/* Says "good" when it listens, or "bad", and goes on until the commands end. Returns an exit code. */
int relay_run(const struct relay *relay);

#endif
