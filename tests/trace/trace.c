/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the stories: reads a script, carries out its commands, compares or
 * rewrites what they print. The first command chooses the stage: `nodes` is a
 * story of the cluster, anything else one of candidates.
 */

#include "trace/cluster.h"
#include "trace/stage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (!file || getdelim(&text, &size, '\0', file) < 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    return text;
}

/* The stage of a story; exactly one of the two. */
struct theatre {
    struct stage *stage;
    struct cluster *cluster;
};

static void command(struct theatre *theatre, FILE *out, const char *text)
{
    if (!theatre->stage && !theatre->cluster) {
        if (strncmp(text + strspn(text, " "), "nodes ", 6) == 0)
            theatre->cluster = cluster_new(out);
        else
            theatre->stage = stage_new(out);
    }
    if (theatre->cluster)
        cluster_command(theatre->cluster, text);
    else
        stage_command(theatre->stage, text);
}

/* Some things may not be written down as expected: the first line of the output that says one; NULL if none
 * does. */
static const char *fault_in(const char *output)
{
    static const char *const faults[] = {"ALARM: ", "cannot be understood:"};

    for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n')
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            if (strncmp(line, faults[i], strlen(faults[i])) == 0)
                return line;
    return NULL;
}

/* Tells of a fault in what the command in this line of the script has printed, with the reason before it. */
static bool is_sound(const char *path, size_t line, const char *output)
{
    const char *fault = fault_in(output);

    if (!fault)
        return true;
    if (fault[0] == 'A')
        printf("# %s:%zu: %.*s\n", path, line, (int)strcspn(fault, "\n"), fault);
    else /* the line before it says why */
        printf("# %s:%zu: %.*s%s%.*s\n", path, line, (int)strcspn(fault, "\n"), fault,
               fault > output ? "; " : "", (int)strcspn(output, "\n") * (fault > output), output);
    return false;
}

/* What the script gives: its commands and comments as they stand, and the output of each command. */
static char *play(const char *path, const char *script, bool *ret_is_sound)
{
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    struct theatre theatre = {0};
    char *copy = strdup(script);
    char *rest = copy;
    char *line;
    size_t number = 0;

    *ret_is_sound = true;
    while ((line = strsep(&rest, "\n"))) {
        size_t before;

        number++;
        if (line[0] != '>' && line[0] != '#' && (line[0] != '\0' || !rest))
            continue;
        fprintf(out, "%s\n", line);
        if (line[0] != '>')
            continue;
        fflush(out);
        before = size;
        command(&theatre, out, line + 1);
        fflush(out);
        *ret_is_sound = *ret_is_sound && is_sound(path, number, result + before);
    }
    if (theatre.stage)
        stage_free(theatre.stage);
    if (theatre.cluster)
        cluster_free(theatre.cluster);
    free(copy);
    fclose(out);
    return result;
}

static void show_difference(const char *path, const char *expected, const char *actual)
{
    size_t line = 1;
    size_t start = 0;
    size_t i = 0;

    for (; expected[i] && expected[i] == actual[i]; i++) {
        if (expected[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    printf("# %s:%zu differs\n#   expected: %.*s\n#   happened: %.*s\n", path, line,
           (int)strcspn(expected + start, "\n"), expected + start, (int)strcspn(actual + start, "\n"),
           actual + start);
}

static bool rewrite(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool is_written = file && fputs(text, file) >= 0;

    if (file && fclose(file) != 0)
        is_written = false;
    return is_written;
}

int main(int argc, char **argv)
{
    bool is_rewriting = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    int first = is_rewriting ? 2 : 1;
    int failures = 0;

    if (first >= argc || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fprintf(first < argc ? stdout : stderr,
                "usage: trace story.txt …              compares what happens with what is written\n"
                "       trace --rewrite story.txt …    writes what happens into the stories\n");
        return first < argc ? 0 : 2;
    }
    printf("1..%d\n", argc - first);
    for (int i = first; i < argc; i++) {
        char *expected = read_file(argv[i]);
        bool is_all_sound;
        char *actual = play(argv[i], expected, &is_all_sound);
        bool is_same = strcmp(expected, actual) == 0;
        bool is_good = (is_same || (is_rewriting && rewrite(argv[i], actual))) && is_all_sound;

        if (!is_same && !is_rewriting)
            show_difference(argv[i], expected, actual);
        printf("%sok %d - %s\n", is_good ? "" : "not ", i - first + 1, argv[i]);
        failures += !is_good;
        free(actual);
        free(expected);
    }
    return failures > 0;
}
