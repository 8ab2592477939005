/* SPDX-License-Identifier: Apache-2.0 */

/*
 * referee [--deeds FILE] [--claims N] [--late-ms N] NODE=LOG…: reads the logs of nodes and guards and says
 * whether they can all be true. Exit code 0 if they can, 1 if two lines contradict each other, 2 if it could
 * not read them or found fewer than N claims (1 unless told): who has seen nothing has proven nothing.
 */
#include "referee.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fprintf(stderr, "referee: usage: referee [--deeds FILE] [--claims N] [--late-ms N] NODE=LOG...\n");
    return 2;
}

static bool read_logs(struct referee *referee, char **arguments)
{
    for (; *arguments; arguments++) {
        char *path = strchr(*arguments, '=');

        if (!path) {
            fprintf(stderr, "referee: %s: say whose log it is, as in n1=n1.log\n", *arguments);
            return false;
        }
        *path++ = '\0';
        if (!referee_read_log(referee, *arguments, path)) {
            fprintf(stderr, "referee: %s: %s\n", path, strerror(errno));
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"deeds", required_argument, NULL, 'd'},
                                            {"claims", required_argument, NULL, 'c'},
                                            {"late-ms", required_argument, NULL, 'l'},
                                            {0}};
    struct referee *referee = referee_new();
    size_t claims = 1;
    int option, code = 2;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd' && !referee_read_deeds(referee, optarg)) {
            fprintf(stderr, "referee: %s: %s\n", optarg, strerror(errno));
            goto out;
        }
        if (option == 'c')
            claims = strtoul(optarg, NULL, 10);
        if (option == 'l')
            referee_set_late_ms(referee, strtol(optarg, NULL, 10));
        if (option == '?') {
            (void)usage();
            goto out;
        }
    }
    if (optind == argc) {
        (void)usage();
        goto out;
    }
    if (!read_logs(referee, argv + optind))
        goto out;
    referee_judge(referee);
    referee_print(referee, stdout);
    code = referee_found_all(referee) ? 1 : 0;
    if (!code && referee_claims(referee) < claims) {
        fprintf(stderr, "referee: %zu claims are fewer than %zu: this proves nothing\n",
                referee_claims(referee), claims);
        code = 2;
    }
out:
    referee_free(referee);
    return code;
}
