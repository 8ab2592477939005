/* SPDX-License-Identifier: Apache-2.0 */

/* gavel store: which of its actions is meant, and whether it is used as it should be. */
#include "cli/store/store_cli.h"

#include "config/suggest.h"

#include <string.h>

static int ping(const struct cli *cli, const char *argument)
{
    (void)argument; /* main.c has taken it for --store */
    return store_ping(cli);
}

static int list(const struct cli *cli, const char *argument)
{
    (void)argument;
    return store_list(cli);
}

static int migrate(const struct cli *cli, const char *argument)
{
    (void)argument; /* main.c has taken it for --store */
    return store_migrate_it(cli);
}

static const struct action {
    const char *name;
    const char *usage;
    int least; /* arguments */
    int most;
    int (*run)(const struct cli *cli, const char *argument);
} actions[] = {
    {"ping", " [URL]", 0, 1, ping},
    {"sql", " mysql", 1, 1, store_sql},
    {"list", "", 0, 0, list},
    {"migrate", " [URL]", 0, 1, migrate},
    {"backup", " FILE", 1, 1, store_backup_to},
};

#define ACTIONS (sizeof actions / sizeof actions[0])

static const struct action *action_find(const char *name)
{
    for (size_t i = 0; i < ACTIONS; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static int refuse_action(const struct cli *cli, const char *name)
{
    struct suggestion suggestion;

    suggestion_init(&suggestion, name);
    for (size_t i = 0; i < ACTIONS; i++)
        suggestion_offer(&suggestion, actions[i].name);
    if (suggestion.best)
        return cli_fail(cli, GAVEL_ERR_INVALID, "there is no `gavel store %.60s`; did you mean \"%s\"?", name,
                        suggestion.best);
    return cli_fail(cli, GAVEL_ERR_INVALID,
                    "there is no `gavel store %.60s`; the actions are ping, sql, list, migrate and backup",
                    name);
}

int command_store(const struct cli *cli, int argc, char **argv)
{
    const struct action *action;

    if (argc == 0)
        return cli_fail(cli, GAVEL_ERR_INVALID, "name an action: ping, sql, list, migrate or backup");
    action = action_find(argv[0]);
    if (!action)
        return refuse_action(cli, argv[0]);
    if (argc - 1 < action->least || argc - 1 > action->most)
        return cli_fail(cli, GAVEL_ERR_INVALID, "usage: gavel store %s%s", action->name, action->usage);
    return action->run(cli, argv[1]); /* argv ends with NULL */
}
