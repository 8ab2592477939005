/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A service manager as far as sd_notify(3) goes: makes the socket that it is
 * given a path for and prints what arrives, each line as soon as it came.
 *
 *     manager SOCKET
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char text[4096];
    ssize_t length;

    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: manager SOCKET\n");
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address)) {
        perror(argv[1]);
        return 1;
    }
    while ((length = recv(fd, text, sizeof text - 1, 0)) >= 0) {
        text[length] = '\0';
        printf("%s\n", text);
        fflush(stdout);
    }
    perror("recv");
    return 1;
}
