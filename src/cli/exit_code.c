/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/exit_code.h"

#include <stddef.h>

enum cli_exit exit_code_of(enum gavel_status status)
{
    switch (status) {
    case GAVEL_OK:
        return CLI_EXIT_OK;
    case GAVEL_ERR_INVALID:
        return CLI_EXIT_USAGE;
    case GAVEL_ERR_SPLIT_BRAIN:
        return CLI_EXIT_SPLIT_BRAIN;
    case GAVEL_ERR_NO_LEADER:
    case GAVEL_ERR_DONE: /* nor will it ever have one */
        return CLI_EXIT_NO_LEADER;
    case GAVEL_ERR_STORE_UNAVAILABLE:
    case GAVEL_ERR_STORE_DENIED:
    case GAVEL_ERR_DENIED: /* by a cluster: a wrong token, as a wrong password of a store */
    case GAVEL_ERR_STORE_FULL:
    case GAVEL_ERR_STORE_DAMAGED:
    case GAVEL_ERR_STORE_TOO_NEW:
    case GAVEL_ERR_STORE_UNSUPPORTED:
        return CLI_EXIT_STORE;
    case GAVEL_ERR_ID_IN_USE:
        return CLI_EXIT_ID_IN_USE;
    case GAVEL_ERR_TIMEOUT:
        return CLI_EXIT_TIMEOUT;
    case GAVEL_ERR_BUDGET:
        return CLI_EXIT_BUDGET;
    default:
        return CLI_EXIT_FAILURE;
    }
}
