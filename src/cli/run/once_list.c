/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gavel once --list: the keys of a store, what came of each, and who runs one
 * now. A record of before 0.7.0, or of an attempt that died, has no outcome: then
 * only who and when are known.
 */
#include "base/error.h"
#include "base/outcome.h"
#include "cli/group/leadership.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/run/once.h"
#include "config/duration.h"
#include "os/clock.h"

#include <string.h>

struct key {
    const char *name;
    struct leadership leadership;
    struct outcome outcome;
    bool has_outcome;
};

static struct key key_of(const struct onlooker *onlooker, const struct group_row *row)
{
    struct key key = {.name = row->group + strlen(ONCE_PREFIX),
                      .leadership = {.state = leadership_judge(onlooker, &row->record, true, row->expired),
                                     .record = row->record}};

    key.has_outcome = !row->record.held && outcome_read(row->record.successor, &key.outcome);
    return key;
}

/* "done", "failed", "running", "died", "forgotten". */
static const char *state_of(const struct key *key)
{
    switch (key->leadership.state) {
    case LEADERSHIP_DONE:
        return "done";
    case LEADERSHIP_HELD:
        return "running";
    case LEADERSHIP_EXPIRED:
    case LEADERSHIP_DEAD:
    case LEADERSHIP_KILLED:
    case LEADERSHIP_LAPSED:
        return "died";
    default:
        if (!key->has_outcome)
            return "stopped";
        return key->outcome.exit_code == 0 ? "forgotten" : "failed";
    }
}

static enum style style_of(const struct key *key)
{
    switch (key->leadership.state) {
    case LEADERSHIP_DONE:
        return STYLE_GREEN;
    case LEADERSHIP_HELD:
        return STYLE_CYAN;
    default:
        return STYLE_YELLOW;
    }
}

/* A clock that was behind at the end of the work does not count, as in the stores that delete records. */
static int64_t keep_until(const struct key *key)
{
    int64_t began = key->leadership.record.since_wall_ms, ended = key->outcome.ended_wall_ms;

    return (ended > began ? ended : began) + key->outcome.keep_s * 1000;
}

static json_t *json_of(const struct key *key)
{
    json_t *json = json_object();

    json_put_text(json, "key", key->name);
    json_put_text(json, "state", state_of(key));
    json_put_text_or_null(json, "by", key->leadership.record.holder);
    json_put_number(json, "epoch", (int64_t)key->leadership.record.epoch);
    json_put_time(json, "began", key->leadership.record.since_wall_ms);
    json_put_time(json, "ended", key->has_outcome ? key->outcome.ended_wall_ms : 0);
    json_put(json, "took_ms", key->has_outcome ? json_integer(key->outcome.took_ms) : json_null());
    json_put(json, "exit_code", key->has_outcome ? json_integer(key->outcome.exit_code) : json_null());
    json_put(json, "attempts", key->has_outcome ? json_integer(key->outcome.attempts) : json_null());
    json_put_time(json, "keep_until",
                  key->has_outcome && key->leadership.state == LEADERSHIP_DONE ? keep_until(key) : 0);
    return json;
}

static void add_row(struct table *table, const struct key *key, int64_t now)
{
    char text[AGO_TEXT_MAX];
    char took[DURATION_TEXT_MAX];

    table_cell(table, STYLE_PLAIN, "%s", key->name);
    table_cell(table, style_of(key), "%s", state_of(key));
    table_cell(table, STYLE_PLAIN, "%s", key->leadership.record.holder);
    table_cell(
        table, STYLE_PLAIN, "%s",
        ago(key->has_outcome ? key->outcome.ended_wall_ms : key->leadership.record.since_wall_ms, now, text));
    if (!key->has_outcome) {
        table_cell(table, STYLE_PLAIN, "-");
        table_cell(table, STYLE_PLAIN, "-");
        table_cell(table, STYLE_PLAIN, "-");
        return;
    }
    table_cell(table, STYLE_PLAIN, "%s", duration_rough(key->outcome.took_ms, took));
    table_cell(table, STYLE_PLAIN, "%d", key->outcome.exit_code);
    table_cell(table, STYLE_PLAIN, "%u", (unsigned)key->outcome.attempts);
}

/* All groups of the reply are keys that begin with `prefix`. */
static int show(const struct cli *cli, const struct onlooker *onlooker, const struct store_reply *reply,
                const char *prefix)
{
    static const char *const headings[] = {"KEY", "STATE", "BY", "WHEN", "TOOK", "EXIT", "ATTEMPTS", NULL};
    json_t *root = json_object(), *list = json_array();
    struct table table;

    table_init(&table, headings);
    for (size_t i = 0; i < reply->group_count; i++) {
        struct key key = key_of(onlooker, &reply->groups[i]);

        add_row(&table, &key, clock_wall_ms());
        json_array_append_new(list, json_of(&key));
    }
    json_put(root, "keys", list);
    json_put(root, "has_more", json_boolean(reply->has_more));
    if (cli->config.json)
        json_print_line(json_incref(root));
    else if (reply->group_count == 0)
        printf("The store %s has no keys%s%s.\n", cli->config.store, *prefix ? " that begin with " : "",
               prefix);
    else
        table_print(&table, cli, stdout);
    if (reply->has_more && !cli->config.json)
        printf("There are more keys than these %zu; see the others by --prefix.\n", reply->group_count);
    json_decref(root);
    table_done(&table);
    return cli_finish(cli, CLI_EXIT_OK);
}

int once_list(const struct cli *cli, const char *prefix)
{
    char begin[2 * NAME_MAX_BYTES];
    struct store_request request = {.op = STORE_GROUPS, .group = cli->config.group, .prefix = begin};
    struct store_reply reply = {0};
    struct onlooker onlooker = {0};
    struct gavel_error error = {0};
    int code;

    if (!prefix)
        prefix = "";
    (void)snprintf(begin, sizeof begin, ONCE_PREFIX "%s", prefix); /* too long stays too long */
    if (onlooker_open(cli, 0, 0, &onlooker, &error) != GAVEL_OK)
        return cli_fail(cli, error.status, "%s", error.message);
    if (onlooker_call(&onlooker, &request, &reply, &error) != GAVEL_OK)
        code = cli_fail(cli, error.status, "%s", error.message);
    else
        code = show(cli, &onlooker, &reply, prefix);
    store_reply_done(&reply);
    onlooker_close(&onlooker);
    return code;
}
