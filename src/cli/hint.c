/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/hint.h"

#include <stdio.h>
#include <string.h>

/* What a shell takes as it is; everything else is put between quotes. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+[]"

/* Adds " --option value", or " --option" without one; whole or not at all. */
static void add(struct hint *hint, const char *option, const char *value)
{
    size_t used = strlen(hint->text), room = sizeof hint->text - used;
    const char *quote = value && (!*value || value[strspn(value, PLAIN)]) ? "'" : "";
    int length;

    if (value && strchr(value, '\''))
        return; /* nobody should copy what we cannot quote */
    length = snprintf(hint->text + used, room, " %s%s%s%s%s", option, value ? " " : "", quote,
                      value ? value : "", quote);
    if (length < 0 || (size_t)length >= room)
        hint->text[used] = '\0';
}

static struct hint begin(const struct cli *cli, const char *words)
{
    const struct config *config = &cli->config;
    struct hint hint = {0};

    (void)snprintf(hint.text, sizeof hint.text, "gavel %s", words); /* fits: words are ours */
    if (config->is_store_given && config->store && (!config->cluster || config->cluster == config->store))
        add(&hint, "--store", config->store);
    if (config->is_cluster_given && config->cluster)
        add(&hint, "--cluster", config->cluster);
    return hint;
}

/* Without a value it would take the next word for one, so it comes last. */
static struct hint end(const struct cli *cli, struct hint hint)
{
    if (cli->config.cluster && cli->config.wants_cluster)
        add(&hint, "--cluster", NULL);
    return hint;
}

struct hint hint_group(const struct cli *cli, const char *words)
{
    struct hint hint = begin(cli, words);

    add(&hint, "--group", cli->config.group);
    return end(cli, hint);
}

struct hint hint_all(const struct cli *cli, const char *words) { return end(cli, begin(cli, words)); }
