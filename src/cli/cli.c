/* SPDX-License-Identifier: Apache-2.0 */

/* What every command uses to read its flags and to end. */
#include "cli/cli.h"

#include "base/assert.h"
#include "config/duration.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *flag_value(const struct cli *cli, const char *name)
{
    const struct flag *flags = cli->command->flags;
    size_t i = 0;

    ASSERT(flags != NULL);
    while (flags[i].name && strcmp(flags[i].name, name) != 0)
        i++;
    ASSERT(flags[i].name != NULL);
    return cli->flag_texts[i];
}

bool cli_flag_is_set(const struct cli *cli, const char *name) { return flag_value(cli, name) != NULL; }

const char *cli_flag_text(const struct cli *cli, const char *name) { return flag_value(cli, name); }

gavel_ms cli_flag_duration(const struct cli *cli, const char *name, gavel_ms otherwise)
{
    const char *text = flag_value(cli, name);
    gavel_ms ms = otherwise;

    if (text && *text)
        ASSERT(duration_parse(text, &ms, NULL) == GAVEL_OK); /* args.c has refused any other */
    return ms;
}

int64_t cli_flag_number(const struct cli *cli, const char *name, int64_t otherwise)
{
    const char *text = flag_value(cli, name);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

const char *cli_flag_given(const struct cli *cli, const char *const *names)
{
    while (*names && !cli_flag_is_set(cli, *names))
        names++;
    return *names;
}

static void print_error_object(enum gavel_status status, const char *message)
{
    json_t *root = json_pack("{s:{s:i, s:s, s:s}}", "error", "code", (int)status, "name",
                             gavel_status_name(status), "message", message);

    if (!root) /* a message that is not UTF-8, because it quotes what the user typed */
        root = json_pack("{s:{s:i, s:s, s:s}}", "error", "code", (int)status, "name",
                         gavel_status_name(status), "message", gavel_status_text(status));
    if (root && !json_dumpf(root, stdout, JSON_COMPACT))
        putchar('\n');
    json_decref(root);
    fflush(stdout); /* the message on stderr remains if this fails */
}

int cli_fail(const struct cli *cli, enum gavel_status status, const char *format, ...)
{
    const char *name = cli->command ? cli->command->name : NULL;
    char message[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "gavel%s%s: %s\n", name ? " " : "", name ? name : "", message);
    if (cli->config.json)
        print_error_object(status, message);
    return exit_code_of(status);
}

int cli_finish(const struct cli *cli, int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    if (errno == EPIPE) /* the reader has seen enough, such as head(1) */
        return code ? code : CLI_EXIT_FAILURE;
    return cli_fail(cli, GAVEL_ERR_IO, "cannot write to stdout: %s", strerror(errno));
}
