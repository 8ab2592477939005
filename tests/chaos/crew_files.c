/* SPDX-License-Identifier: Apache-2.0 */

#include "crew_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs gavel with these words in the folder of the crew, silently. */
static bool run_gavel(const struct crew *crew, const char *const words[])
{
    char *arguments[16] = {NULL};
    int status, count = 0;
    pid_t pid = fork();

    if (pid == 0) {
        arguments[count++] = strdup("gavel");
        for (; *words && count < 15; words++)
            arguments[count++] = strdup(*words);
        if (chdir(crew->folder) || !freopen("gavel.out", "a", stdout) || !freopen("gavel.err", "a", stderr))
            _exit(126);
        execv(crew->gavel, arguments);
        _exit(126);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool write_config(const struct crew *crew, int node)
{
    char path[PATH_MAX + 64], address[32];
    const char *name = crew->members[node].name;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.yaml", crew->folder, name);
    file = fopen(path, "we");
    if (!file)
        return false;
    net_address(node, address, sizeof address);
    fprintf(file,
            "cluster: chaos\nnode: %s\nlisten: %s:7400\napi: 127.0.0.1:%d\ndata: %s/%s\nlog_level: debug\n"
            "snapshot_entries: 100\nclients: %s:7600\n",
            name, address, CREW_API_PORT(node), crew->folder, name, address);
    fprintf(file, "tls:\n  ca: %s/ca.crt\n  cert: %s/%s.crt\n  key: %s/%s.key\n  api: false\n", crew->folder,
            crew->folder, name, crew->folder, name);
    fprintf(file, "secret: %s/cluster.secret\npeers:\n", crew->folder);
    for (int i = 0; i < crew->count; i++) {
        if (!crew->members[i].is_founder && i != node)
            continue;
        net_address(i, address, sizeof address);
        fprintf(file, "  - {name: %s, address: \"%s:7400\", api: \"127.0.0.1:%d\", witness: %s}\n",
                crew->members[i].name, address, CREW_API_PORT(i), i == crew->witness ? "true" : "false");
    }
    if (*crew->beat)
        fprintf(file,
                "timing: {lease_ms: 450, election_timeout_min_ms: 450, election_timeout_max_ms: "
                "900}\nleader_commands:\n  stop_grace: 100ms\n  children:\n    - name: beat\n"
                "      command: [\"%s\", \"%s/beats\"]\n      environment: {BEAT_MEMBER: \"%d\"}\n",
                crew->beat, crew->folder, node);
    return fclose(file) == 0;
}

/* A node's certificate is for the address that clients know it by. */
static bool issue(struct crew *crew, int node)
{
    char address[64];

    net_address(node, address, sizeof address);
    return run_gavel(
        crew, (const char *const[]){"cert", "issue", crew->members[node].name, "--host", address, NULL});
}

void crew_write_files(struct crew *crew)
{
    bool is_done = run_gavel(crew, (const char *const[]){"cert", "init", "chaos", NULL}) &&
                   run_gavel(crew, (const char *const[]){"cert", "issue", "guest", "--client", NULL});

    for (int i = 0; is_done && i < crew->count; i++)
        is_done = issue(crew, i) && write_config(crew, i);
    if (!is_done) {
        printf("Bail out! gavel cert failed; see gavel.err in %s\n", crew->folder);
        exit(1);
    }
}

void crew_set_witness(struct crew *crew, int node)
{
    crew->witness = node;
    for (int i = 0; i < crew->count; i++)
        if (!write_config(crew, i)) {
            printf("Bail out! cannot write to %s\n", crew->folder);
            exit(1);
        }
}
