/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the file of servers, line by line. */
#include "bench/stores/servers.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Cuts the first word off; *rest begins with what follows it. */
static char *take_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    char *end = word + strcspn(word, " \t");

    *rest = *end ? end + 1 : end;
    *end = '\0';
    *rest += strspn(*rest, " \t");
    return word;
}

/* False if it is empty or does not fit. */
static bool copy(const char *text, char *buffer, size_t size)
{
    size_t length = strlen(text);

    if (!length || length >= size)
        return false;
    memcpy(buffer, text, length + 1);
    return true;
}

static struct server_store *find_store(struct servers *servers, const char *name)
{
    for (size_t i = 0; i < servers->store_count; i++)
        if (strcmp(servers->stores[i].name, name) == 0)
            return &servers->stores[i];
    return NULL;
}

/* What is wrong with the line; NULL if nothing is. */
static const char *add_store(struct servers *servers, const char *name, const char *url)
{
    struct server_store *store = &servers->stores[servers->store_count];

    if (find_store(servers, name))
        return "there is a store of that name already";
    if (servers->store_count == SERVERS_MAX)
        return "there are too many stores";
    if (!copy(name, store->name, sizeof store->name))
        return "the name of a store has 1 to 15 letters";
    if (!copy(url, store->url, sizeof store->url))
        return "the URL of the store is missing or too long";
    servers->store_count++;
    return NULL;
}

static const char *add_rival(struct servers *servers, const struct server_store *store, char *rest)
{
    struct server_rival *rival = &servers->rivals[servers->rival_count];
    char *colon = strstr(rest, ": ");

    if (servers->rival_count == RIVALS_MAX)
        return "there are too many rivals";
    if (!colon)
        return "a rival is written as TITLE: COMMAND";
    *colon = '\0';
    if (!copy(rest, rival->title, sizeof rival->title))
        return "the title of the rival is missing or too long";
    if (!copy(colon + strspn(colon + 1, " ") + 1, rival->command, sizeof rival->command))
        return "the command of the rival is missing or too long";
    rival->store = (size_t)(store - servers->stores);
    servers->rival_count++;
    return NULL;
}

static const char *take_line(struct servers *servers, char *line)
{
    char *rest = line;
    const char *kind = take_word(&rest);

    if (!*kind || *kind == '#')
        return NULL;
    const char *name = take_word(&rest);
    if (strcmp(kind, "store") == 0)
        return add_store(servers, name, rest);
    if (strcmp(kind, "count") != 0 && strcmp(kind, "rival") != 0)
        return "a line begins with store, count or rival";
    struct server_store *store = find_store(servers, name);
    if (!store)
        return "there is no store of that name above it";
    if (strcmp(kind, "rival") == 0)
        return add_rival(servers, store, rest);
    return copy(rest, store->count, sizeof store->count) ? NULL : "the command is missing or too long";
}

enum gavel_status servers_read(const char *path, struct servers *ret_servers, struct gavel_error *error)
{
    struct servers *servers = calloc(1, sizeof *servers);
    FILE *file = servers ? fopen(path, "re") : NULL;
    char *line = NULL;
    const char *wrong = NULL;
    enum gavel_status status = GAVEL_OK;
    size_t size = 0, number = 0;

    if (!servers)
        return error_set(error, GAVEL_ERR_NO_MEMORY, "no memory for the list of servers");
    if (!file) {
        status = error_set(error, GAVEL_ERR_IO, "cannot read %s: %s; name a file of servers with --servers",
                           path, strerror(errno));
        goto out;
    }
    while (!wrong && getline(&line, &size, file) >= 0) {
        number++;
        line[strcspn(line, "\r\n")] = '\0';
        wrong = take_line(servers, line);
    }
    if (wrong)
        status =
            error_set(error, GAVEL_ERR_INVALID, "%s, line %zu: %s; see gavel-bench(1)", path, number, wrong);
    else if (ferror(file))
        status = error_set(error, GAVEL_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    else if (servers->store_count == 0)
        status = error_set(error, GAVEL_ERR_INVALID, "there is no store in %s; see gavel-bench(1)", path);
    else
        *ret_servers = *servers;
out:
    free(line);
    if (file)
        (void)fclose(file); /* only read from */
    free(servers);
    return status;
}
