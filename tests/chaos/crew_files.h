/* SPDX-License-Identifier: Apache-2.0 */

/* Certificates and configurations of a crew, as an operator makes them. */
#ifndef CHAOS_CREW_FILES_H
#define CHAOS_CREW_FILES_H

#include "crew.h"

/* Where the HTTP API of a node listens, on loopback of its namespace. */
#define CREW_API_PORT(node) (7501 + (node))

/* Ends the test if that fails. */
void crew_write_files(struct crew *crew);

#endif
