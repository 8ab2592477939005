/* SPDX-License-Identifier: Apache-2.0 */

/* A configuration file that a test writes and loads, again and again. */
#ifndef TEST_YAML_FIXTURE_H
#define TEST_YAML_FIXTURE_H

#include "cli/settings/yaml_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char name[64];
    struct setting_values values;
    struct gavel_error error;
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fd;

    strcpy(f->name, "/tmp/gavel-test-XXXXXX");
    fd = mkstemp(f->name);
    if (fd < 0)
        return -1;
    close(fd);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    unlink(f->name);
    setting_values_done(&f->values);
    free(f);
    return 0;
}

/* Writes the bytes into the file and loads it. */
static inline enum gavel_status load(struct fixture *f, const char *bytes, size_t length)
{
    FILE *file;

    unlink(f->name); /* some file systems write a file to the disk at once when it replaces its own content */
    file = fopen(f->name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    setting_values_done(&f->values);
    f->error = (struct gavel_error){0};
    return yaml_file_load(f->name, &f->values, &f->error);
}

#endif
