/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks the bytes of a frame before protobuf-c unpacks them. It finds what can be
 * refused without allocating memory, and what protobuf-c would accept: text with a
 * NUL in it, and the same thing said twice.
 */
#ifndef WIRE_CLIENT_SURVEY_H
#define WIRE_CLIENT_SURVEY_H

#include "core/table/table.h"

#include <stddef.h>
#include <stdint.h>

/* What is wrong with the payload of a frame (static); NULL if nothing was found. */
const char *client_survey(const uint8_t *bytes, size_t size);

/*
 * The operations of a Request as they stand in the payload of a frame in which nothing was found wrong:
 * returns their number, but tells of no more than `most`. 0: there are none. They borrow from the payload.
 */
size_t client_survey_ops(const uint8_t *bytes, size_t size, struct table_packed *ret_ops, size_t most);

#endif
