/* SPDX-License-Identifier: Apache-2.0 */

#include "nodes.h"

#include "servers/ports.h"
#include "store/conformance/conformance.h"
#include "store/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ports of a block: of the nodes, and for clients; TEST_CLUSTER_API are those of the API. */
enum { PORTS_PEERS = 0, PORTS_CLIENTS = 5 };

static void write_file(const struct test_cluster *cluster, int first, int node)
{
    char path[120];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/n%d.yaml", cluster->directory, node);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "cluster: test\nnode: n%d\ndata: %s/n%d\nrealtime: false\n", node, cluster->directory,
                  node);
    (void)fprintf(file, "listen: 127.0.0.1:%d\napi: 127.0.0.1:%d\n", first + PORTS_PEERS + node,
                  first + TEST_CLUSTER_API + node);
    (void)fprintf(file, "clients: 127.0.0.1:%d\nsocket: %s/n%d.sock\n", first + PORTS_CLIENTS + node,
                  cluster->directory, node);
    (void)fprintf(file, "peers:\n");
    for (int i = 0; i < TEST_NODES; i++)
        (void)fprintf(file, "  - {name: n%d, address: \"127.0.0.1:%d\", api: \"127.0.0.1:%d\"}\n", i,
                      first + PORTS_PEERS + i, first + TEST_CLUSTER_API + i);
    assert_int_equal(fclose(file), 0);
}

static pid_t start_node(const struct test_cluster *cluster, int node)
{
    const char *program = getenv("GAVELD");
    char config[120];
    char log[120];
    pid_t pid;

    if (!program)
        fail_msg("GAVELD must name the program gaveld");
    (void)snprintf(config, sizeof config, "%s/n%d.yaml", cluster->directory, node);
    (void)snprintf(log, sizeof log, "%s/n%d.log", cluster->directory, node);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* end with the test, also with one that fails */
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
            _exit(126);
        (void)execl(program, program, "--config", config, "--bootstrap", (char *)NULL);
        _exit(127);
    }
    return pid;
}

void test_cluster_start(struct test_cluster *cluster)
{
    struct scratch scratch;
    int first;

    scratch_make(&scratch);
    *cluster = (struct test_cluster){0};
    if (strlen(scratch.directory) + sizeof "/n0.sock" > sizeof cluster->directory)
        fail_msg("%s is too long for a socket in it; set TMPDIR to a shorter one", scratch.directory);
    (void)strcpy(cluster->directory, scratch.directory);
    first = cluster->first_port = test_ports_claim(&cluster->lock_fd);
    for (int node = 0; node < TEST_NODES; node++)
        write_file(cluster, first, node);
    for (int node = 0; node < TEST_NODES; node++)
        cluster->pids[node] = start_node(cluster, node);
    (void)snprintf(cluster->url, sizeof cluster->url, "gavel://%s/n0.sock,127.0.0.1:%d,127.0.0.1:%d",
                   cluster->directory, first + PORTS_CLIENTS + 1, first + PORTS_CLIENTS + 2);
}

size_t test_cluster_processes(const struct test_cluster *cluster, int node, pid_t *ret_pids, size_t most)
{
    char path[64];
    size_t count = 0;
    FILE *file;
    pid_t guard = cluster->pids[node];
    int pid;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)guard, (int)guard);
    file = fopen(path, "r");
    assert_non_null(file);
    while (count < most && fscanf(file, "%d", &pid) == 1)
        ret_pids[count++] = pid;
    (void)fclose(file); /* nothing was written */
    return count;
}

/* A node dies a moment after its guard; until then its port and its directory are not free. */
void test_cluster_kill(struct test_cluster *cluster, int node)
{
    struct pollfd fds[8];
    pid_t pids[8];
    size_t count;

    if (cluster->pids[node] == 0)
        return;
    count = test_cluster_processes(cluster, node, pids, 8);
    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = pidfd_open(pids[i], 0), .events = POLLIN}; /* -1: it is gone */
    (void)kill(cluster->pids[node], SIGKILL); /* a child of ours that is not reaped */
    (void)waitpid(cluster->pids[node], NULL, 0);
    cluster->pids[node] = 0;
    for (size_t i = 0; i < count; i++) {
        if (fds[i].fd < 0)
            continue;
        assert_int_equal(poll(&fds[i], 1, 60000), 1);
        (void)close(fds[i].fd);
    }
}

void test_cluster_restart(struct test_cluster *cluster, int node)
{
    assert_int_equal(cluster->pids[node], 0);
    cluster->pids[node] = start_node(cluster, node);
}

/* The guard first, and last: it takes a node that stands still for dead. */
void test_cluster_freeze(struct test_cluster *cluster, int node)
{
    pid_t pids[8];
    size_t count;

    assert_int_equal(kill(cluster->pids[node], SIGSTOP), 0);
    count = test_cluster_processes(cluster, node, pids, 8);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(kill(pids[i], SIGSTOP), 0);
}

void test_cluster_thaw(struct test_cluster *cluster, int node)
{
    pid_t pids[8];
    size_t count = test_cluster_processes(cluster, node, pids, 8);

    for (size_t i = 0; i < count; i++)
        assert_int_equal(kill(pids[i], SIGCONT), 0);
    assert_int_equal(kill(cluster->pids[node], SIGCONT), 0);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* A node dies a moment after its guard, and may write until then. */
static void remove_directory(const char *directory)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    gavel_ns limit = clock_now() + 10 * NS_PER_S;

    while (nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0) {
        assert_true(clock_now() < limit);
        (void)nanosleep(&pause, NULL);
    }
}

void test_cluster_stop(struct test_cluster *cluster)
{
    for (int node = 0; node < TEST_NODES; node++)
        test_cluster_kill(cluster, node);
    if (cluster->directory[0] != '\0') {
        remove_directory(cluster->directory);
        (void)close(cluster->lock_fd);
    }
    *cluster = (struct test_cluster){0};
}
