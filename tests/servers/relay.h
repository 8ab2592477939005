/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A TCP proxy on loopback that disturbs what passes through it, on command.
 * Commands are lines, each answered with "good" (or "bad") when it is in force:
 *
 *     pass           everything passes, at once; connections that lost bytes are cut
 *     delay UP DOWN  from now on data arrives UP milliseconds later at the server and DOWN at the client
 *     drop           connections are accepted, but nothing passes in either direction
 *     cut            all existing connections end with a reset
 *     fin, rst       the server's side of all existing connections ends, with a FIN or a reset; the
 *                    client's side stays open and hears nothing more
 *     mute [N]       once the server has got N more bytes (0: now) nothing it says arrives
 *     snap [N]       likewise, and each connection is reset when the server answers on it
 *     refuse         new connections are refused; existing ones live on
 *     count          answers "good UP DOWN OPENED": bytes passed to the server and to the clients,
 *                    and connections accepted so far
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
