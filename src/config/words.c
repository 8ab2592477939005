/* SPDX-License-Identifier: Apache-2.0 */

#include "config/words.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The position of text in a list of words that ends with NULL; -1 if it is not there. */
static int word_index(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

enum gavel_status word_read_bool(const char *text, bool *ret_value, struct gavel_error *error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1", NULL};

    for (int i = 0; words[i]; i++)
        if (strcasecmp(words[i], text) == 0) {
            *ret_value = i % 2;
            return GAVEL_OK;
        }
    return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is neither true nor false", text);
}

enum gavel_status word_read_int(const char *text, int *ret_value, struct gavel_error *error)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || text[0] == ' ')
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is not a whole number", text);
    if (errno || value < INT32_MIN || value > INT32_MAX)
        return error_set(error, GAVEL_ERR_INVALID, "%.60s is too large a number", text);
    *ret_value = (int)value;
    return GAVEL_OK;
}

enum gavel_status word_read_real(const char *text, double *ret_value, struct gavel_error *error)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || text[0] == ' ' || !isfinite(value))
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is not a number", text);
    *ret_value = value;
    return GAVEL_OK;
}

/* A word of a list whose position is the value. */
enum gavel_status word_read(const char *const *words, const char *choices, const char *text, int *ret_value,
                            struct gavel_error *error)
{
    int i = word_index(words, text);

    if (i < 0)
        return error_set(error, GAVEL_ERR_INVALID, "\"%.60s\" is none of %s", text, choices);
    *ret_value = i;
    return GAVEL_OK;
}

static const char *const on_exit_words[] = {
    [ON_EXIT_STOP] = "stop", [ON_EXIT_RESIGN] = "resign", [ON_EXIT_RESTART] = "restart", NULL};
enum gavel_status on_exit_parse(const char *text, enum on_exit *ret_on_exit, struct gavel_error *error)
{
    int word = 0;

    if (word_read(on_exit_words, "stop, resign, restart", text, &word, error) != GAVEL_OK)
        return GAVEL_ERR_INVALID;
    *ret_on_exit = (enum on_exit)word;
    return GAVEL_OK;
}

enum gavel_status signal_parse(const char *text, int *ret_signal, struct gavel_error *error)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    bool is_number = *text && strlen(text) <= 2 && strspn(text, "0123456789") == strlen(text);
    int number = is_number ? (int)strtol(text, NULL, 10) : 0;

    for (int i = 1; !number && i < SIGRTMIN; i++)
        if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
            number = i;
    if (number < 1 || number > SIGRTMAX)
        return error_set(error, GAVEL_ERR_INVALID,
                         "\"%.60s\" is not a signal; write TERM, INT, QUIT, … or a number", text);
    if (number == SIGKILL || number == SIGSTOP || number == SIGCONT)
        return error_set(error, GAVEL_ERR_INVALID,
                         "%s cannot ask a process to stop; choose one that it can catch, such as TERM or INT",
                         sigabbrev_np(number));
    *ret_signal = number;
    return GAVEL_OK;
}

const char *on_exit_name(enum on_exit on_exit) { return on_exit_words[on_exit]; }
