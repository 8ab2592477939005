/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* In brackets, because error.h may have a macro of that name. */
enum gavel_status(error_set)(struct gavel_error *error, enum gavel_status status, const char *format, ...)
{
    va_list arguments;

    if (!error)
        return status;
    error->status = status;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments); /* cut off if too long */
    va_end(arguments);
    return status;
}
