/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-node DIRECTORY: answers HTTP on a free port of loopback, which it writes
 * to DIRECTORY/port, with what lies in the directory: a GET of /status gets the file
 * GET-status. Its first line is the code, for a redirect followed by the
 * location; the rest is the body. A first line of "hang" never answers, "close"
 * ends the connection. What was asked is appended to DIRECTORY/asked.
 *
 * For what real nodes do not do on demand: two leaders at once, answers that
 * are no answers. One connection at a time, until it is killed.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 65536

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static int listen_somewhere(const char *directory)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[4096], part[4104];
    FILE *file;

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, length) || listen(fd, 64) ||
        getsockname(fd, (struct sockaddr *)&address, &length))
        die("listen");
    (void)snprintf(path, sizeof path, "%s/port", directory);
    (void)snprintf(part, sizeof part, "%s.part", path);
    file = fopen(part, "w");
    if (!file || fprintf(file, "%d\n", ntohs(address.sin_port)) < 0 || fclose(file) || rename(part, path))
        die(path);
    return fd;
}

/* A whole request, with the body that its header announces; 0 if the other side went away. */
static size_t read_request(int fd, char *request)
{
    size_t length = 0;

    for (;;) {
        ssize_t got = read(fd, request + length, REQUEST_MAX - 1 - length);
        const char *end, *header;

        if (got <= 0)
            return 0;
        length += (size_t)got;
        request[length] = '\0';
        end = strstr(request, "\r\n\r\n");
        if (!end)
            continue;
        header = strcasestr(request, "\r\nContent-Length:");
        if (!header || length >= (size_t)(end + 4 - request) + strtoul(header + 17, NULL, 10))
            return length;
    }
}

static void note(const char *directory, const char *request)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/asked", directory);
    file = fopen(path, "a");
    if (!file || fprintf(file, "%s\n", request) < 0 || fclose(file))
        die(path);
}

static FILE *answer_of(const char *directory, const char *request)
{
    char method[16] = "", name[64] = "", path[4096];

    if (sscanf(request, "%15[A-Z] /%63[a-z]", method, name) < 1)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s-%s", directory, method, name);
    return fopen(path, "r");
}

static void answer(int fd, FILE *file)
{
    char head[512] = "404\n", *body = calloc(1, REQUEST_MAX);
    size_t length = 0;
    int code;

    if (!body)
        die("calloc");
    if (file) {
        if (!fgets(head, sizeof head, file))
            head[0] = '\0';
        length = fread(body, 1, REQUEST_MAX, file);
    }
    if (strcmp(head, "hang\n") == 0)
        (void)pause(); /* until it is killed */
    code = atoi(head);
    if (code) {
        const char *location = strchr(head, ' ');

        head[strcspn(head, "\n")] = '\0';
        (void)dprintf(fd, "HTTP/1.1 %d Said\r\nContent-Length: %zu\r\nConnection: close\r\n%s%s%s\r\n", code,
                      length, location ? "Location:" : "", location ? location : "", location ? "\r\n" : "");
        if (write(fd, body, length) < 0)
            perror("write");
    }
    free(body);
}

int main(int argc, char **argv)
{
    static char request[REQUEST_MAX];
    int listener;

    if (argc != 2)
        return 2;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_IGN);
    listener = listen_somewhere(argv[1]);
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            die("accept");
        if (read_request(fd, request) > 0) {
            FILE *file = answer_of(argv[1], request);

            note(argv[1], request);
            answer(fd, file);
            if (file)
                (void)fclose(file); /* it was only read */
        }
        (void)close(fd);
    }
}
