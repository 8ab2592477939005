/* SPDX-License-Identifier: Apache-2.0 */

/*
 * beat_referee LOG: reads a log of beats and says what is wrong with it. Exit code 0
 * if nothing is, 1 if something is, 2 if it could not be read or is empty.
 */
#include "beat_referee.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct beat_referee referee;
    struct beat_reader reader;

    if (argc != 2) {
        fprintf(stderr, "beat_referee: say which log\n");
        return 2;
    }
    if (access(argv[1], R_OK) < 0 || !beat_reader_open(&reader, argv[1])) {
        fprintf(stderr, "beat_referee: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    beat_referee_init(&referee);
    beat_referee_read(&referee, &reader);
    beat_reader_close(&reader);
    beat_referee_print(&referee, stdout);
    if (referee.beats == 0)
        return 2;
    return beat_referee_found(&referee) ? 1 : 0;
}
