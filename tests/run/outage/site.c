/* SPDX-License-Identifier: Apache-2.0 */

#include "site.h"

#include "proc.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_clock(const char *path, gavel_ns shift)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 || pwrite(fd, &shift, sizeof shift, 0) != sizeof shift || close(fd) < 0)
        die(path);
}

void site_shift_clock(struct site *site, size_t clock, gavel_ns shift)
{
    write_clock(site->clocks[clock], shift);
}

bool site_has_server_clock(const struct site *site)
{
    return site->server.kind == TEST_MARIADB || site->server.kind == TEST_RADOSGW;
}

/* With a clock that can be shifted, if it obeys. */
static void start_server(struct site *site, enum test_server_kind kind, const char *clock_shift)
{
    if (setenv("LD_PRELOAD", clock_shift, 1) < 0 ||
        setenv("CLOCK_SHIFT_FILE", site->clocks[SITE_SERVER], 1) < 0)
        die("setenv");
    test_server_start(&site->server, kind);
    (void)unsetenv("LD_PRELOAD"); /* fails for names that are none */
    (void)unsetenv("CLOCK_SHIFT_FILE");
    test_server_make(&site->server, SITE_STORE);
    test_server_url(&site->server, SITE_STORE, NULL, site->url, sizeof site->url);
}

void site_open(struct site *site, enum test_server_kind kind, const char *directory, const char *clock_shift)
{
    memset(site, 0, sizeof *site);
    for (size_t i = 0; i < SITE_CLOCKS; i++) {
        (void)snprintf(site->clocks[i], sizeof site->clocks[i], "%s/clock-%zu", directory, i);
        write_clock(site->clocks[i], 0);
    }
    start_server(site, kind, clock_shift);
    for (size_t i = 0; i < SITE_LINKS; i++) {
        test_proxy_start(&site->links[i], site->server.port);
        test_server_url(&site->server, SITE_STORE, site->links[i].address, site->urls[i],
                        sizeof site->urls[i]);
    }
}

void site_close(struct site *site)
{
    for (size_t i = 0; i < SITE_LINKS; i++)
        test_proxy_stop(&site->links[i]);
    test_server_stop(&site->server);
}

/* Its process, or the gateway's, as the directory of the server tells. */
static const char *const names[] = {
    [TEST_MARIADB] = "mariadb", [TEST_ETCD] = "etcd-0", [TEST_ETCD_CLUSTER] = "", [TEST_RADOSGW] = "rgw"};

/* The lines of a log that may tell why. */
static void show_log(const char *path)
{
    static const char *const signs[] = {"*** Caught", "what()", "FAILED", "[ERROR]", "panic", "fatal"};
    char line[300];
    FILE *file = fopen(path, "r");

    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (strstr(line, signs[i]))
                printf("# %s%s", line, strchr(line, '\n') ? "" : "\n");
    if (file)
        (void)fclose(file); /* only read from */
}

bool site_revive(struct site *site)
{
    const char *name = names[site->server.kind];
    char path[200], state;
    int pid = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s.pid", site->server.directory, name);
    file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        (void)fclose(file); /* only read from */
    state = pid > 0 ? proc_state(pid, NULL) : 0;
    if (state != 0 && state != 'Z')
        return false;
    printf("# %s has ended by itself, and is started again; its log says:\n", name);
    (void)snprintf(path, sizeof path, "%s/%s.log", site->server.directory, name);
    show_log(path);
    test_server_restart(&site->server);
    return true;
}

void site_say(struct site *site, size_t link, const char *format, ...)
{
    char command[64];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < SITE_LINKS; i++)
        if (link == SITE_ALL_LINKS || link == i)
            test_proxy_say(&site->links[i], "%s", command);
}
