/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plots are made by gnuplot from a script that stays beside the data, so
 * that whoever wants another picture can change it and run it again. A series
 * that was not measured leaves no CSV and is left out of its plot. What grows
 * with the number of groups is no share of trials: it has a plot of its own.
 */
#include "bench/plot.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char curves[] =
    "# SPDX-License-Identifier: Apache-2.0\n"
    "# Cumulative shares of the latencies measured by `gavel bench --out`. Run it in this directory: gnuplot "
    "plot.gp\n"
    "set datafile separator ','\n"
    "set terminal svg size 900,540 dynamic background rgb 'white'\n"
    "set key below left Left reverse maxrows 6\n"
    "set grid\n"
    "set logscale x\n"
    "set yrange [0:1]\n"
    "set ylabel 'share of trials'\n"
    "# cluster-kill-all begins like cluster-kill, and is another section\n"
    "other(section) = section eq 'cluster-kill' ? 'cluster-kill-all-' : 'plot'\n"
    "list(section) = system(\"ls \" . section . \"-*.csv 2>/dev/null | grep -v '^\" . other(section) . "
    "\"'\")\n"
    "do for [section in 'failover run handover store cluster-kill cluster-kill-all cluster-freeze "
    "cluster-transfer "
    "cluster-cold cluster-lookups sessions-kill sessions-standbys sessions-many sessions-resign sessions-freeze sessions-node sessions-leader sessions-host "
    "sessions-lookups sessions-writes sessions-http stores-kill stores-freeze'] {\n"
    "    files = list(section)\n"
    "    if (words(files) > 0) {\n"
    "        set output section . '.svg'\n"
    "        set title section\n"
    "        set xlabel section eq 'store' || section eq 'sessions-writes' || \\\n"
    "            section[strlen(section) - 6:] eq 'lookups' ? 'microseconds' : 'milliseconds'\n"
    "        plot for [file in files] file every ::1 using 1:2 with steps linewidth 2 \\\n"
    "            title file[strlen(section) + 2:strlen(file) - 4] noenhanced\n"
    "        unset output\n"
    "    }\n"
    "}\n";

static const char bars[] =
    "# One bar for each load of a server\n"
    "if (system('ls load-stores.csv 2>/dev/null') ne '') {\n"
    "    set output 'stores-load.svg'\n"
    "    set title 'requests per minute when nothing happens'\n"
    "    unset logscale x\n"
    "    unset xlabel\n"
    "    unset ylabel\n"
    "    unset key\n"
    "    set lmargin 50\n"
    "    set xrange [0:*]\n"
    "    set yrange [*:*] reverse\n"
    "    set style fill solid\n"
    "    plot 'load-stores.csv' every ::1 using 2:0:(0):2:($0 - 0.4):($0 + 0.4):ytic(1) with boxxyerror\n"
    "    unset output\n"
    "    unset lmargin\n"
    "    set yrange [0:1] noreverse\n"
    "    set logscale x\n"
    "}\n";

static const char growth_of_sessions[] =
    "# What grows with the number of groups: one picture each, by the columns of growth-sessions.csv\n"
    "if (system('ls growth-sessions.csv 2>/dev/null') ne '') {\n"
    "    set output 'sessions-groups.svg'\n"
    "    set multiplot layout 2,2 title 'groups on one cluster'\n"
    "    set xrange [50:100000]\n"
    "    set xlabel 'groups'\n"
    "    unset ylabel\n"
    "    unset key\n"
    "    # seconds at the end, milliseconds at the beginning\n"
    "    set logscale y\n"
    "    set yrange [*:*]\n"
    "    set title 'milliseconds until all are led'\n"
    "    plot 'growth-sessions.csv' every ::1 using 1:2 with linespoints linewidth 2 pointtype 7\n"
    "    unset logscale y\n"
    "    set yrange [0:*]\n"
    "    set title 'CPU of three nodes at rest, % of a core'\n"
    "    plot 'growth-sessions.csv' every ::1 using 1:3 with linespoints linewidth 2 pointtype 7\n"
    "    set title 'RSS of a node and its guard, MiB'\n"
    "    plot 'growth-sessions.csv' every ::1 using 1:4 with linespoints linewidth 2 pointtype 7\n"
    "    set title 'milliseconds until the last of 1,000 has its next leader'\n"
    "    plot 'growth-sessions.csv' every ::1 using 1:5 with linespoints linewidth 2 pointtype 7\n"
    "    unset multiplot\n"
    "    unset output\n"
    "}\n";

static const char growth_of_library[] =
    "# The same for one process with libgavel, by the columns of growth-library.csv\n"
    "if (system('ls growth-library.csv 2>/dev/null') ne '') {\n"
    "    set output 'sessions-library.svg'\n"
    "    set multiplot layout 2,2 title 'groups led by one process with libgavel'\n"
    "    set logscale x\n"
    "    set xrange [*:*]\n"
    "    set xlabel 'groups'\n"
    "    unset ylabel\n"
    "    unset key\n"
    "    set logscale y\n"
    "    set yrange [*:*]\n"
    "    set title 'milliseconds until all are led'\n"
    "    plot 'growth-library.csv' every ::1 using 1:2 with linespoints linewidth 2 pointtype 7\n"
    "    unset logscale y\n"
    "    set yrange [0:*]\n"
    "    set key inside top left\n"
    "    set title 'CPU at rest, % of a core'\n"
    "    plot 'growth-library.csv' every ::1 using 1:3 title 'three nodes' with linespoints linewidth 2 pointtype 7, \\\n"
    "        '' every ::1 using 1:7 title 'without groups' with lines dashtype 2, \\\n"
    "        '' every ::1 using 1:4 title 'client' with linespoints linewidth 2 pointtype 7, \\\n"
    "        '' every ::1 using 1:8 title 'without groups' with lines dashtype 2\n"
    "    # What is linear shows as a line only on an axis that is\n"
    "    unset key\n"
    "    unset logscale x\n"
    "    set xrange [0:*]\n"
    "    set title 'RSS of a node and its guard, MiB'\n"
    "    plot 'growth-library.csv' every ::1 using 1:5 with linespoints linewidth 2 pointtype 7\n"
    "    set title 'RSS of the client, MiB'\n"
    "    plot 'growth-library.csv' every ::1 using 1:6 with linespoints linewidth 2 pointtype 7\n"
    "    unset multiplot\n"
    "    unset output\n"
    "}\n";

static const char *const scripts[] = {curves, bars, growth_of_sessions, growth_of_library};

static bool write_script(const char *directory)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/plot.gp", directory);

    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool is_written = true;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        is_written = fputs(scripts[i], file) != EOF && is_written;
    return fclose(file) == 0 && is_written;
}

/* The exit code of gnuplot, or -1 if it could not be started. */
static int run_gnuplot(const char *directory)
{
    char name[] = "gnuplot", argument[] = "plot.gp";
    char *const arguments[] = {name, argument, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    if (posix_spawn_file_actions_addchdir_np(&actions, directory) == 0 &&
        posix_spawnp(&pid, name, &actions, NULL, arguments, environ) == 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
}

void bench_plot(const char *directory)
{
    if (!write_script(directory)) {
        (void)fprintf(stderr, "gavel bench: cannot write %s/plot.gp: %s\n", directory, strerror(errno));
        return;
    }
    int code = run_gnuplot(directory);
    if (code == 0)
        (void)fprintf(stderr, "gavel bench: the plots are in %s\n", directory);
    else if (code < 0 || code == 127)
        (void)fprintf(stderr,
                      "gavel bench: no plots, since there is no gnuplot: install it (gnuplot-nox) and run "
                      "\"gnuplot plot.gp\" in %s\n",
                      directory);
    else
        (void)fprintf(stderr, "gavel bench: gnuplot failed on %s/plot.gp\n", directory);
}
