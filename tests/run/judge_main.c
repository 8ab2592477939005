/* SPDX-License-Identifier: Apache-2.0 */

/*
 * judge LOG: reads a log of beats and says what is wrong with it. Exit code 0
 * if nothing is, 1 if something is, 2 if it could not be read or is empty.
 */
#include "judge.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct judge judge;
    struct beat_reader reader;

    if (argc != 2) {
        fprintf(stderr, "judge: say which log\n");
        return 2;
    }
    if (access(argv[1], R_OK) < 0 || !beat_reader_open(&reader, argv[1])) {
        fprintf(stderr, "judge: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    judge_init(&judge);
    judge_read(&judge, &reader);
    beat_reader_close(&reader);
    judge_print(&judge, stdout);
    if (judge.beats == 0)
        return 2;
    return judge_found(&judge) ? 1 : 0;
}
