/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cluster/local.h"

#include "cli/companion.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/entropy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Below those that the kernel gives to connections, which would take them from us between now and then. */
#define PORT_FIRST 10000
#define PORT_COUNT 10000
#define PORT_TRIES 200

#define LEAVE_LIMIT_MS 5000
#define REMOVE_TRIES 100

static bool is_program(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* In the directories of PATH, as a shell would find it. */
static bool find_in_path(char ret_path[static PATH_MAX])
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t length = strcspn(at, ":");
        int written = snprintf(ret_path, PATH_MAX, "%.*s/gaveld", (int)length, at);

        if (length > 0 && written > 0 && written < PATH_MAX && is_program(ret_path))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

enum gavel_status local_cluster_program(char ret_path[static PATH_MAX], struct gavel_error *error)
{
    char path[PATH_MAX];

    if (companion_find("gaveld", path)) {
        strcpy(ret_path, path);
        return GAVEL_OK;
    }
    if (!find_in_path(path))
        return error_set(error, GAVEL_ERR_NOT_FOUND,
                         "gaveld is neither beside this program nor in PATH; install it, or build it first");
    strcpy(ret_path, path);
    return GAVEL_OK;
}

/* A socket with that port, which nobody else has; -1: somebody has. */
static int bind_alone(int kind, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/*
 * Makes the port ours for as long as the cluster exists, if nobody uses it: TCP
 * for connections, UDP for obituaries. From now on only who sets SO_REUSEADDR can
 * bind to it, as gaveld does; it is not asked for before we have it alone.
 */
static bool reserve(struct local_cluster *cluster, uint16_t port)
{
    int datagrams = bind_alone(SOCK_DGRAM, port);
    int fd = datagrams < 0 ? -1 : bind_alone(SOCK_STREAM, port);
    int yes = 1;

    if (datagrams >= 0)
        (void)close(datagrams);
    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* a socket of ours: it cannot fail */
    ASSERT(cluster->reserved_count < 3 * LOCAL_NODES_MAX);
    cluster->reserved[cluster->reserved_count++] = fd;
    return true;
}

static enum gavel_status take_port(struct local_cluster *cluster, uint16_t *ret_port,
                                   struct gavel_error *error)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + entropy_u64() % PORT_COUNT);

        if (!reserve(cluster, port))
            continue;
        *ret_port = port;
        return GAVEL_OK;
    }
    return error_set(error, GAVEL_ERR_IO, "no free port on loopback was found");
}

static enum gavel_status name_node(struct local_cluster *cluster, size_t position, bool serves_clients,
                                   struct gavel_error *error)
{
    struct local_node *node = &cluster->nodes[position];
    unsigned number = (unsigned)position % LOCAL_NODES_MAX + 1;
    char directory[LOCAL_DIRECTORY_MAX];
    enum gavel_status status;

    strcpy(directory, cluster->directory);
    node->pidfd = -1;
    (void)snprintf(node->name, sizeof node->name, "n%u", number);
    (void)snprintf(node->directory, sizeof node->directory, "%s/n%u", directory, number);
    (void)snprintf(node->log, sizeof node->log, "%s/n%u.log", directory, number);
    (void)snprintf(node->config, sizeof node->config, "%s/n%u.yaml", directory, number);
    status = take_port(cluster, &node->port, error);
    if (status == GAVEL_OK)
        status = take_port(cluster, &node->api_port, error);
    if (status == GAVEL_OK && serves_clients) {
        (void)snprintf(node->socket, sizeof node->socket, "%s/n%u.sock", directory, number);
        status = take_port(cluster, &node->client_port, error);
    }
    (void)snprintf(node->url, sizeof node->url, "http://127.0.0.1:%u", node->api_port);
    return status;
}

/* By which the nodes know each other: other users of the machine are kept out. */
static enum gavel_status write_secret(const struct local_cluster *cluster, struct gavel_error *error)
{
    char path[LOCAL_DIRECTORY_MAX + 16], text[65];
    bool is_written;
    int fd;

    (void)snprintf(path, sizeof path, "%s/secret", cluster->directory);
    for (size_t i = 0; i < 4; i++)
        (void)snprintf(text + 16 * i, 17, "%016llx", (unsigned long long)entropy_u64());
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    is_written = fd >= 0 && write(fd, text, 64) == 64;
    if (fd >= 0)
        is_written = close(fd) == 0 && is_written;
    return is_written ? GAVEL_OK
                      : error_set(error, GAVEL_ERR_IO, "cannot write %s: %s", path, strerror(errno));
}

static enum gavel_status write_config(const struct local_cluster *cluster, const struct local_node *node,
                                      const struct local_options *options, struct gavel_error *error)
{
    FILE *file = fopen(node->config, "we");

    if (!file)
        return error_set(error, GAVEL_ERR_IO, "cannot write %s: %s", node->config, strerror(errno));
    fprintf(file,
            "cluster: %s\nnode: %s\nlisten: 127.0.0.1:%u\napi: 127.0.0.1:%u\ndata: %s\nbootstrap: true\n",
            cluster->name, node->name, node->port, node->api_port, node->directory);
    fprintf(file, "secret: %s/secret\n", cluster->directory);
    fprintf(file, "log_level: %s\npeers:\n", options->log_level ? options->log_level : "info");
    for (size_t i = 0; i < cluster->count; i++)
        fprintf(file, "  - {name: %s, address: \"127.0.0.1:%u\", api: \"127.0.0.1:%u\"}\n",
                cluster->nodes[i].name, cluster->nodes[i].port, cluster->nodes[i].api_port);
    if (options->serves_clients)
        fprintf(file, "clients: 127.0.0.1:%u\nsocket: %s\n", node->client_port, node->socket);
    fputs(options->extra ? options->extra : "", file);
    if (fclose(file))
        return error_set(error, GAVEL_ERR_IO, "cannot write %s: %s", node->config, strerror(errno));
    return GAVEL_OK;
}

const struct local_node *local_cluster_node(const struct local_cluster *cluster, size_t position)
{
    ASSERT(position < cluster->count);
    return &cluster->nodes[position];
}

const char *local_cluster_urls(const struct local_cluster *cluster, char buffer[static LOCAL_URLS_MAX])
{
    size_t used = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < cluster->count; i++)
        used += (size_t)snprintf(buffer + used, LOCAL_URLS_MAX - used, "%s127.0.0.1:%u", i ? "," : "",
                                 cluster->nodes[i].api_port);
    return buffer;
}

/* What the user has set is for what the user runs. */
static void clear_environment(void)
{
    char name[256];

    for (char **entry = environ; *entry;) {
        size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "GAVEL", 5) == 0 && length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            (void)unsetenv(name); /* moves the others up */
        } else {
            entry++;
        }
    }
    (void)unsetenv("NOTIFY_SOCKET");
}

static _Noreturn void become_guard(const struct local_cluster *cluster, const struct local_node *node,
                                   pid_t parent)
{
    const char *argv[] = {cluster->gaveld, "--config", node->config, NULL};
    int log = open(node->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || log < 0 || nothing < 0)
        _exit(126);      /* the parent died before the line above, or there is nowhere to say anything */
    (void)setpgid(0, 0); /* Ctrl-C is for whoever started us */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    clear_environment();
    (void)execv(cluster->gaveld, (char *const *)(uintptr_t)argv);
    (void)dprintf(STDERR_FILENO, "cannot execute %s: %s\n", cluster->gaveld, strerror(errno));
    _exit(127);
}

enum gavel_status local_cluster_start_node(struct local_cluster *cluster, size_t position,
                                           struct gavel_error *error)
{
    struct local_node *node = &cluster->nodes[position];
    pid_t parent = getpid(), pid;

    ASSERT(position < cluster->count);
    if (node->guard)
        return error_set(error, GAVEL_ERR_STATE, "%s runs already", node->name);
    pid = fork();
    if (pid == 0)
        become_guard(cluster, node, parent);
    if (pid < 0)
        return error_set(error, GAVEL_ERR_IO, "cannot start a process: %s", strerror(errno));
    node->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (node->pidfd < 0) {
        enum gavel_status status =
            error_set(error, GAVEL_ERR_IO, "cannot watch a process: %s", strerror(errno));

        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return status;
    }
    node->guard = pid;
    return GAVEL_OK;
}

static enum gavel_status make_directory(struct local_cluster *cluster, const char *base,
                                        struct gavel_error *error)
{
    int length;

    if (!base)
        base = getenv("TMPDIR");
    if (!base || !*base)
        base = P_tmpdir;
    length = snprintf(cluster->directory, sizeof cluster->directory, "%s/gavel-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof cluster->directory)
        return error_set(error, GAVEL_ERR_INVALID, "the path in TMPDIR is too long: set a shorter one");
    if (!mkdtemp(cluster->directory)) {
        cluster->directory[0] = '\0';
        return error_set(error, GAVEL_ERR_IO,
                         "cannot create a directory in %s: %s; set TMPDIR to another place", base,
                         strerror(errno));
    }
    return GAVEL_OK;
}

enum gavel_status local_cluster_start(size_t count, const struct local_options *options,
                                      struct local_cluster *ret_cluster, struct gavel_error *error)
{
    struct local_cluster *cluster = ret_cluster;
    enum gavel_status status = GAVEL_OK;

    ASSERT(count >= 1 && count <= LOCAL_NODES_MAX);
    *cluster = (struct local_cluster){0};
    for (size_t i = 0; i < LOCAL_NODES_MAX; i++)
        cluster->nodes[i].pidfd = -1;
    (void)snprintf(cluster->name, sizeof cluster->name, "%s", options->cluster ? options->cluster : "local");
    if (options->gaveld)
        (void)snprintf(cluster->gaveld, sizeof cluster->gaveld, "%s", options->gaveld);
    else
        status = local_cluster_program(cluster->gaveld, error);
    if (status == GAVEL_OK)
        status = make_directory(cluster, options->base, error);
    for (; status == GAVEL_OK && cluster->count < count; cluster->count++)
        status = name_node(cluster, cluster->count, options->serves_clients, error);
    if (status == GAVEL_OK)
        status = write_secret(cluster, error);
    for (size_t i = 0; status == GAVEL_OK && i < count; i++)
        status = write_config(cluster, &cluster->nodes[i], options, error);
    for (size_t i = 0; status == GAVEL_OK && i < count; i++)
        status = local_cluster_start_node(cluster, i, error);
    if (status != GAVEL_OK)
        local_cluster_stop(cluster);
    return status;
}

enum gavel_status local_cluster_signal(const struct local_cluster *cluster, size_t position, int number)
{
    const struct local_node *node = local_cluster_node(cluster, position);

    if (!node->guard)
        return GAVEL_ERR_STATE;
    return kill(node->guard, number) ? GAVEL_ERR_IO : GAVEL_OK; /* not collected yet, so it is ours */
}

enum gavel_status local_cluster_await_end(struct local_cluster *cluster, size_t position, gavel_ns until,
                                          int *ret_status)
{
    struct local_node *node = &cluster->nodes[position];
    struct pollfd death = {.fd = node->pidfd, .events = POLLIN};
    int status = 0;

    ASSERT(position < cluster->count);
    if (!node->guard)
        return GAVEL_ERR_STATE;
    for (;;) {
        gavel_ns left = until - clock_now();

        if (poll(&death, 1, left > 0 ? (int)(ns_min(left, NS_PER_S) / NS_PER_MS + 1) : 0) > 0)
            break;
        if (left <= 0)
            return GAVEL_ERR_TIMEOUT;
    }
    (void)waitpid(node->guard, &status, 0); /* it is dead: this collects it */
    (void)close(node->pidfd);
    node->guard = 0;
    node->pidfd = -1;
    if (ret_status)
        *ret_status = status;
    return GAVEL_OK;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

/* A node that was killed a moment ago may still be writing. */
static void remove_directory(const char *path)
{
    for (int i = 0; i < REMOVE_TRIES && nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0; i++)
        (void)poll(NULL, 0, 10);
}

void local_cluster_stop(struct local_cluster *cluster)
{
    gavel_ns until = clock_now() + ns_from_ms(LEAVE_LIMIT_MS);

    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].guard) {
            (void)kill(cluster->nodes[i].guard, SIGTERM);
            (void)kill(cluster->nodes[i].guard, SIGCONT); /* one that is stopped could not leave */
        }
    for (size_t i = 0; i < cluster->count; i++) {
        enum gavel_status status = local_cluster_await_end(cluster, i, until, NULL);

        while (status == GAVEL_ERR_TIMEOUT) {
            (void)kill(cluster->nodes[i].guard, SIGKILL); /* not collected yet, so it is ours */
            status = local_cluster_await_end(cluster, i, clock_now() + NS_PER_S, NULL);
        }
    }
    for (size_t i = 0; i < cluster->reserved_count; i++)
        (void)close(cluster->reserved[i]); /* nothing was sent by it */
    if (cluster->directory[0])
        remove_directory(cluster->directory);
    *cluster = (struct local_cluster){0};
}
