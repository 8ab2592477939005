/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a target over a directory of inputs, without libFuzzer: each as it is, cut
 * short at every byte, and with each of its bits turned over. So what fuzzing
 * has found once is tried in every run of the tests.
 *
 *     replay DIRECTORY
 */
#include "target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX (1u << 20)
/* Of a longer one the first so many bytes are tried out. */
#define TRIED_BYTES_MAX 2048

/* In memory of exactly that size, so that reading beyond it is found. */
static void try(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    (void)LLVMFuzzerTestOneInput(copy, size); /* always 0 */
    free(copy);
}

static void try_around(uint8_t *bytes, size_t size)
{
    size_t tried = size < TRIED_BYTES_MAX ? size : TRIED_BYTES_MAX;

    try(bytes, size);
    for (size_t length = 0; length < tried; length++)
        try(bytes, length);
    for (size_t bit = 0; bit < tried * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        try(bytes, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(int argc, char **argv)
{
    static uint8_t bytes[INPUT_BYTES_MAX];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;

    if (!directory) {
        fprintf(stderr, "replay: give a directory of inputs\n");
        return 2;
    }
    while ((entry = readdir(directory))) {
        char path[4096];
        size_t size;
        FILE *file;

        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        file = fopen(path, "rb");
        if (!file) {
            perror(path);
            return 1;
        }
        size = fread(bytes, 1, sizeof bytes, file);
        (void)fclose(file);
        try_around(bytes, size);
        count++;
    }
    (void)closedir(directory);
    printf("%u inputs and what is near to them\n", count);
    return count > 0 ? 0 : 1; /* an empty directory tests nothing */
}
