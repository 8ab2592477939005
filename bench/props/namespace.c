/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/props/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t namespace_fork(void)
{
    int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

    if (own < 0)
        return -1;
    if (unshare(CLONE_NEWPID) < 0) {
        int why = errno;
        (void)close(own); /* nothing was written */
        errno = why;
        return -1;
    }
    pid_t pid = fork();
    int why = errno;
    if (pid != 0)
        (void)setns(own, CLONE_NEWPID); /* who may unshare may go back: later children are siblings again */
    (void)close(own);
    errno = why;
    return pid;
}

enum gavel_status namespace_mount_proc(void)
{
    /* Private first, or the machine's own /proc would be covered, too. */
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return errno == EPERM || errno == EACCES ? GAVEL_ERR_DENIED : GAVEL_ERR_IO;
    return GAVEL_OK;
}

/* The exit code of a child; 1 if there is none. */
static int exit_code_of(pid_t pid)
{
    int status;

    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool namespace_is_allowed(void)
{
    pid_t pid = namespace_fork();

    if (pid == 0)
        _exit(namespace_mount_proc() == GAVEL_OK ? 0 : 1);
    return exit_code_of(pid) == 0;
}
