/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel note: small values that the leader of a group leaves for the next one.
 * A write that names its epoch is refused once the group has a newer leader,
 * so a former one cannot overwrite what its successor has written.
 */
#include "cli/cluster/note.h"
#include "cli/cluster/group_cli.h"
#include "cli/cluster/group_view.h"
#include "cli/json_out.h"
#include "cli/output.h"

#include "base/error.h"
#include "base/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX (1u << 20) /* the nodes take less, and say how much */
#define PAGE 100
#define CELL_MAX 40

/* What a write was refused for, in the words of what to do now. */
static int fail_write(const struct note *note, const struct gavel_error *error)
{
    const struct cli *cli = note->cli;

    if (error->status == GAVEL_ERR_TERM_STALE) {
        (void)cli_fail(
            cli, error->status,
            "epoch %s is out of date: the group \"%s\" has a newer leader, and nothing was written; whoever works with this epoch must stop (%s)",
            cli_flag_text(cli, "epoch") ? cli_flag_text(cli, "epoch") : "?", note->group, error->message);
        return CLI_EXIT_STALE;
    }
    if (error->status == GAVEL_ERR_CONFLICT) {
        (void)cli_fail(cli, error->status, "the note \"%s\" is not as expected, and nothing was written: %s",
                       note->key, error->message);
        return CLI_EXIT_STALE;
    }
    return cli_fail(cli, error->status, "%s", error->message);
}

/* The path of the note, or that of all notes of the group. */
static enum gavel_status path_of(const struct note *note, const char *query,
                                 char path[static CLUSTER_PATH_MAX], struct gavel_error *error)
{
    enum gavel_status status = note->key
                                   ? cluster_path(path, "/groups/%s/notes/%s", note->group, note->key, NULL)
                                   : cluster_path(path, "/groups/%s/notes", note->group, NULL, NULL);

    if (status != GAVEL_OK || strlen(path) + strlen(query) >= CLUSTER_PATH_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "the name of the note is too long");
    strcat(path, query);
    return GAVEL_OK;
}

static int get(struct note *note)
{
    const struct cli *cli = note->cli;
    char path[CLUSTER_PATH_MAX];
    const struct cluster_ask ask = {.path = path, .may_repeat = true, .wants_bytes = true};
    struct cluster_reply reply = {0};
    struct gavel_error error = {0};
    json_t *json;
    int code;

    /* Where the last leader stopped: that has to be the newest there is. */
    if (path_of(note, "?fresh=true", path, &error) != GAVEL_OK ||
        cluster_send(&note->client, &ask, &reply, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (cli->config.json) {
        json = json_object();
        json_put_text(json, "group", note->group);
        json_put_text(json, "key", note->key);
        group_put_value(json, reply.bytes ? reply.bytes : "", reply.length);
        json_put_number(json, "revision", (int64_t)reply.revision);
        json_put_number(json, "created_revision", (int64_t)reply.created_revision);
        json_put(json, "epoch", reply.epoch ? json_integer((json_int_t)reply.epoch) : json_null());
        json_print_line(json);
        code = cli_finish(cli, CLI_EXIT_OK);
    } else {
        /* As it is, for programs; a person's prompt gets a line of its own. */
        if (reply.length)
            (void)fwrite(reply.bytes, 1, reply.length,
                         stdout); /* cli_finish() tells of what did not arrive */
        if (isatty(STDOUT_FILENO))
            putchar('\n');
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    cluster_reply_done(&reply);
    return code;
}

/* All of stdin. The caller frees it. */
static enum gavel_status read_stdin(char **ret_bytes, size_t *ret_length, struct gavel_error *error)
{
    char *bytes = malloc(VALUE_MAX + 1);
    size_t length;

    if (!bytes)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "out of memory");
    length = fread(bytes, 1, VALUE_MAX + 1, stdin);
    if (ferror(stdin)) {
        free(bytes);
        return error_set(error, GAVEL_ERR_IO, "cannot read the value from stdin: %s", strerror(errno));
    }
    if (length > VALUE_MAX) {
        free(bytes);
        return error_set(
            error, GAVEL_ERR_INVALID,
            "the value from stdin is longer than %u bytes; notes are small, so store a reference instead",
            VALUE_MAX);
    }
    *ret_bytes = bytes;
    *ret_length = length;
    return GAVEL_OK;
}

/* The conditions of a write, as headers. They point into *ret_lines. */
struct condition {
    char epoch[40];
    char match[48];
};

static enum gavel_status read_condition(const struct note *note, struct condition *ret_lines,
                                        const char *ret_headers[static 4], struct gavel_error *error)
{
    uint64_t epoch = 0, revision = 0;
    size_t count = 0;

    if (group_number(note->cli, "epoch", &epoch, error) != GAVEL_OK ||
        group_number(note->cli, "if-revision", &revision, error) != GAVEL_OK)
        return error->status;
    if (cli_flag_is_set(note->cli, "epoch") && !epoch)
        return error_set(error, GAVEL_ERR_INVALID,
                         "--epoch: no mandate has epoch 0; leave it out to write without one");
    if (cli_flag_is_set(note->cli, "if-revision") && !revision)
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--if-revision: no note has revision 0; use --create for a note that does not exist");
    if (cli_flag_is_set(note->cli, "create") && cli_flag_is_set(note->cli, "if-revision"))
        return error_set(
            error, GAVEL_ERR_INVALID,
            "--create requires that the note does not exist, --if-revision that it does: give one of them");
    if (cli_flag_is_set(note->cli, "epoch")) {
        (void)snprintf(ret_lines->epoch, sizeof ret_lines->epoch, "Epoch: %" PRIu64, epoch);
        ret_headers[count++] = ret_lines->epoch;
    }
    if (cli_flag_is_set(note->cli, "if-revision")) {
        (void)snprintf(ret_lines->match, sizeof ret_lines->match, "If-Match: \"%" PRIu64 "\"", revision);
        ret_headers[count++] = ret_lines->match;
    }
    if (cli_flag_is_set(note->cli, "create"))
        ret_headers[count++] = "If-None-Match: *";
    return GAVEL_OK;
}

static int change(struct note *note, struct cluster_ask ask)
{
    const struct cli *cli = note->cli;
    char path[CLUSTER_PATH_MAX];
    struct cluster_reply reply = {0};
    struct gavel_error error = {0};
    struct condition lines;
    int code;

    ask.path = path;
    if (path_of(note, "", path, &error) != GAVEL_OK ||
        read_condition(note, &lines, ask.headers, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else if (cluster_send(&note->client, &ask, &reply, &error) != GAVEL_OK) {
        code = fail_write(note, &error);
    } else {
        if (cli->config.json)
            json_print_line(json_incref(reply.call.body));
        else
            printf("%" JSON_INTEGER_FORMAT "\n",
                   json_integer_value(json_object_get(reply.call.body, "revision")));
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    cluster_reply_done(&reply);
    return code;
}

static int put(struct note *note)
{
    struct cluster_ask ask = {.method = "PUT", .type = "application/octet-stream"};
    struct gavel_error error = {0};
    char *read = NULL;
    int code;

    if (strcmp(note->value, "-") != 0) {
        ask.body = note->value;
        ask.length = strlen(note->value);
    } else if (read_stdin(&read, &ask.length, &error) != GAVEL_OK) {
        return cli_fail(note->cli, error.status, "%s", error.message);
    } else {
        ask.body = read;
    }
    code = change(note, ask);
    free(read);
    return code;
}

static int delete (struct note *note)
{
    struct cluster_ask ask = {.method = "DELETE"};

    return change(note, ask);
}

/* A value in a cell: its beginning, without what would spoil the terminal. */
static void value_cell(struct table *table, const json_t *item)
{
    size_t length = 0, used = 0;
    char *bytes = group_value(item, &length);
    char cell[CELL_MAX + 4] = "";

    if (!bytes || !group_is_text(bytes, length)) {
        table_cell(table, STYLE_DIM, "(not text)");
    } else {
        for (; used < length && used < CELL_MAX; used++)
            cell[used] = (char)((unsigned char)bytes[used] < ' ' || bytes[used] == 127 ? ' ' : bytes[used]);
        while (used < length && used > 0 && (bytes[used] & 0xc0) == 0x80)
            used--; /* not in the middle of a character */
        (void)snprintf(cell + used, sizeof cell - used, "%s", used < length ? "…" : "");
        table_cell(table, STYLE_PLAIN, "%s", cell);
    }
    free(bytes);
}

static void add_rows(struct table *table, const json_t *notes)
{
    const json_t *item;
    size_t position;

    json_array_foreach(notes, position, item) {
        table_cell(table, STYLE_PLAIN, "%s", json_get_text(item, "key"));
        table_cell(table, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(item, "revision")));
        if (json_is_integer(json_object_get(item, "epoch")))
            table_cell(table, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(item, "epoch")));
        else
            table_cell(table, STYLE_PLAIN, "-");
        table_cell(table, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT,
                   json_integer_value(json_object_get(item, "size")));
        value_cell(table, item);
    }
}

static void add_json(json_t *list, const json_t *notes)
{
    json_t *item;
    size_t position;

    json_array_foreach(notes, position, item) {
        size_t length = 0;
        char *bytes = group_value(item, &length);

        if (bytes) {
            (void)json_object_del(item, "value_base64");
            group_put_value(item, bytes, length);
        }
        json_array_append(list, item);
        free(bytes);
    }
}

static enum gavel_status fetch_all(struct note *note, struct table *table, json_t *list,
                                   struct gavel_error *error)
{
    const char *prefix = cli_flag_text(note->cli, "prefix");
    char path[CLUSTER_PATH_MAX], query[CLUSTER_PATH_MAX], limit[16], after[1024] = "";
    const struct cluster_ask ask = {.path = path, .may_repeat = true};
    enum gavel_status status;

    (void)snprintf(limit, sizeof limit, "%d", PAGE);
    do {
        struct cluster_reply reply = {0};

        status = cluster_path(query, "?fresh=true&prefix=%s&after=%s&limit=%s", prefix ? prefix : "", after,
                              limit);
        if (status != GAVEL_OK)
            return error_set(error, status, "--prefix: %s", gavel_status_text(status));
        status = path_of(note, query, path, error);
        if (status == GAVEL_OK)
            status = cluster_send(&note->client, &ask, &reply, error);
        if (status == GAVEL_OK) {
            add_rows(table, json_object_get(reply.call.body, "notes"));
            add_json(list, json_object_get(reply.call.body, "notes"));
        }
        (void)snprintf(after, sizeof after, "%s", json_get_text(reply.call.body, "next"));
        cluster_reply_done(&reply);
    } while (status == GAVEL_OK && *after);
    return status;
}

static int list(struct note *note)
{
    static const char *const headings[] = {"KEY", "REVISION", "EPOCH", "BYTES", "VALUE", NULL};
    const struct cli *cli = note->cli;
    struct gavel_error error = {0};
    json_t *json = json_object(), *items = json_array();
    struct table table;
    int code;

    table_init(&table, headings);
    json_put_text(json, "group", note->group);
    json_put(json, "notes", items);
    if (fetch_all(note, &table, items, &error) != GAVEL_OK) {
        code = cli_fail(cli, error.status, "%s", error.message);
    } else {
        if (cli->config.json)
            json_print_line(json_incref(json));
        else if (json_array_size(items) == 0)
            printf("The group \"%s\" has no such notes.\n", note->group);
        else
            table_print(&table, cli, stdout);
        code = cli_finish(cli, CLI_EXIT_OK);
    }
    json_decref(json);
    table_done(&table);
    return code;
}

static const struct action {
    const char *name;
    int least, most; /* arguments after the action */
    const char *usage;
    int (*run)(struct note *note);
} actions[] = {
    {"get", 2, 2, "gavel note get GROUP KEY", get},
    {"put", 3, 3, "gavel note put GROUP KEY VALUE, or - for a value from stdin", put},
    {"delete", 2, 2, "gavel note delete GROUP KEY", delete},
    {"list", 1, 1, "gavel note list GROUP", list},
    {"watch", 1, 2, "gavel note watch GROUP [KEY]", note_watch},
};
#define ACTION_COUNT (sizeof actions / sizeof actions[0])

int command_note(const struct cli *cli, int argc, char **argv)
{
    const struct action *action = NULL;
    struct note note = {.cli = cli};
    struct gavel_error error = {0};
    int code;

    for (size_t i = 0; i < ACTION_COUNT && argc > 0; i++)
        if (strcmp(actions[i].name, argv[0]) == 0)
            action = &actions[i];
    if (!action)
        return cli_fail(cli, GAVEL_ERR_INVALID,
                        "usage: gavel note get|put|delete|list|watch GROUP [KEY] [VALUE]");
    if (argc - 1 < action->least || argc - 1 > action->most)
        return cli_fail(cli, GAVEL_ERR_INVALID, "usage: %s", action->usage);
    note.group = argv[1];
    note.key = argc > 2 ? argv[2] : NULL;
    note.value = argc > 3 ? argv[3] : NULL;
    if (name_check("group name", note.group, &error) != GAVEL_OK ||
        (note.key && name_check("key", note.key, &error) != GAVEL_OK))
        return cli_fail(cli, GAVEL_ERR_INVALID, "%s", error.message);
    if (cluster_open(cli, &note.client, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = action->run(&note);
    cluster_client_done(&note.client);
    return code;
}
