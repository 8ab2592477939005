/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs gavel with these words in the directory of the cluster, silently. */
static bool run_gavel(const struct cluster *cluster, const char *const words[])
{
    char *arguments[16] = {NULL};
    int status, count = 0;
    pid_t pid = fork();

    if (pid == 0) {
        arguments[count++] = strdup("gavel");
        for (; *words && count < 15; words++)
            arguments[count++] = strdup(*words);
        if (chdir(cluster->directory) || !freopen("gavel.out", "a", stdout) ||
            !freopen("gavel.err", "a", stderr))
            _exit(126);
        execv(cluster->gavel, arguments);
        _exit(126);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool write_config(const struct cluster *cluster, int node)
{
    char path[PATH_MAX + 64], address[32];
    const char *name = cluster->nodes[node].name;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.yaml", cluster->directory, name);
    file = fopen(path, "we");
    if (!file)
        return false;
    net_address(node, address, sizeof address);
    fprintf(file,
            "cluster: chaos\nnode: %s\nlisten: %s:7400\napi: 127.0.0.1:%d\ndata: %s/%s\nlog_level: debug\n"
            "snapshot_entries: 100\nclients: %s:7600\n",
            name, address, CLUSTER_API_PORT(node), cluster->directory, name, address);
    fprintf(file, "tls:\n  ca: %s/ca.crt\n  cert: %s/%s.crt\n  key: %s/%s.key\n  api: false\n",
            cluster->directory, cluster->directory, name, cluster->directory, name);
    fprintf(file, "secret: %s/cluster.secret\npeers:\n", cluster->directory);
    for (int i = 0; i < cluster->count; i++) {
        if (!cluster->nodes[i].is_founder && i != node)
            continue;
        net_address(i, address, sizeof address);
        fprintf(file, "  - {name: %s, address: \"%s:7400\", api: \"127.0.0.1:%d\", witness: %s}\n",
                cluster->nodes[i].name, address, CLUSTER_API_PORT(i),
                i == cluster->witness ? "true" : "false");
    }
    if (*cluster->beat)
        fprintf(file,
                "timing: {lease_ms: 450, election_timeout_min_ms: 450, election_timeout_max_ms: "
                "900}\nleader_commands:\n  stop_grace: 100ms\n  children:\n    - name: beat\n"
                "      command: [\"%s\", \"%s/beats\"]\n      environment: {BEAT_MEMBER: \"%d\"}\n",
                cluster->beat, cluster->directory, node);
    return fclose(file) == 0;
}

/* A node's certificate is for the address that clients know it by. */
static bool issue(struct cluster *cluster, int node)
{
    char address[64];

    net_address(node, address, sizeof address);
    return run_gavel(
        cluster, (const char *const[]){"cert", "issue", cluster->nodes[node].name, "--host", address, NULL});
}

void cluster_write_files(struct cluster *cluster)
{
    bool is_done = run_gavel(cluster, (const char *const[]){"cert", "init", "chaos", NULL}) &&
                   run_gavel(cluster, (const char *const[]){"cert", "issue", "candidate", "--client", NULL});

    for (int i = 0; is_done && i < cluster->count; i++)
        is_done = issue(cluster, i) && write_config(cluster, i);
    if (!is_done) {
        printf("Bail out! gavel cert failed; see gavel.err in %s\n", cluster->directory);
        exit(1);
    }
}

void cluster_set_witness(struct cluster *cluster, int node)
{
    cluster->witness = node;
    for (int i = 0; i < cluster->count; i++)
        if (!write_config(cluster, i)) {
            printf("Bail out! cannot write to %s\n", cluster->directory);
            exit(1);
        }
}
