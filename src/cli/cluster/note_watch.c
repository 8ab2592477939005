/* SPDX-License-Identifier: Apache-2.0 */

/* gavel note watch: a line for each change of the notes of a group. */
#include "cli/cluster/note.h"

#include "cli/cluster/group_cli.h"
#include "cli/cluster/group_stream.h"
#include "cli/cluster/group_view.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "os/clock.h"
#include "os/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watcher {
    const struct note *note;
    const char *prefix;
    int64_t wanted; /* lines; 0: no end */
    int64_t printed;
    int code;
};

static bool is_wanted(const struct watcher *watcher, const char *kind, const char *key)
{
    if (strcmp(kind, "note_put") != 0 && strcmp(kind, "note_deleted") != 0)
        return false;
    if (watcher->note->key)
        return strcmp(key, watcher->note->key) == 0;
    return strncmp(key, watcher->prefix, strlen(watcher->prefix)) == 0;
}

static void print_json(const char *kind, const json_t *change, const char *bytes, size_t length)
{
    json_t *json = json_copy((json_t *)(uintptr_t)change);

    json_put_text(json, "event", kind);
    if (bytes) {
        (void)json_object_del(json, "value_base64");
        group_put_value(json, bytes, length);
    }
    json_print_line(json);
}

static bool on_change(const char *kind, const json_t *change, void *user)
{
    struct watcher *watcher = user;
    const struct cli *cli = watcher->note->cli;
    const char *key = json_get_text(change, "key");
    bool is_put = strcmp(kind, "note_put") == 0;
    size_t length = 0;
    char *bytes;

    if (strcmp(kind, "missed") == 0) {
        fprintf(stderr,
                "gavel note: some changes are no longer remembered; `gavel note list` shows all there is\n");
        return true;
    }
    if (!is_wanted(watcher, kind, key))
        return true;
    bytes = is_put ? group_value(change, &length) : NULL;
    if (cli->config.json) {
        print_json(kind, change, bytes, length);
    } else {
        printf("%s%" JSON_INTEGER_FORMAT "%s  %s %s%s", style_begin(cli, STYLE_DIM),
               json_integer_value(json_object_get(change, "revision")), style_end(cli, STYLE_DIM),
               is_put ? "put" : "delete", key, is_put ? " " : "");
        if (bytes && group_is_text(bytes, length))
            (void)fwrite(bytes, 1, length, stdout); /* cli_finish() tells of what did not arrive */
        else if (bytes)
            printf("(%zu bytes that are not text)", length);
        putchar('\n');
    }
    free(bytes);
    watcher->printed++;
    watcher->code = cli_finish(cli, CLI_EXIT_OK);
    return !watcher->code && (!watcher->wanted || watcher->printed < watcher->wanted);
}

int note_watch(struct note *note)
{
    const struct cli *cli = note->cli;
    const char *prefix = cli_flag_text(cli, "prefix");
    gavel_ms limit_ms = cli_flag_duration(cli, "timeout", 0);
    struct watcher watcher = {
        .note = note, .prefix = prefix ? prefix : "", .wanted = cli_flag_number(cli, "count", 0)};
    struct group_stream stream = {.group = note->group,
                                  .has_after = cli_flag_is_set(cli, "after"),
                                  .until = limit_ms ? clock_now() + ns_from_ms(limit_ms) : NEVER,
                                  .stop = &is_interrupted,
                                  .cb = on_change,
                                  .user = &watcher};
    struct gavel_error error = {0};

    if (group_number(cli, "after", &stream.after, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (cli_flag_number(cli, "count", 1) == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "--count must be at least 1; leave it out to watch without an end");
    interrupt_catch(0);
    if (group_stream_run(&note->client, &stream, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (!watcher.code && watcher.wanted && watcher.printed < watcher.wanted && !is_interrupted)
        return cli_fail(cli, GAVEL_ERR_TIMEOUT, "only %" PRId64 " of %" PRId64 " changes came in time",
                        watcher.printed, watcher.wanted);
    return watcher.code;
}
