/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks the bytes of a frame before protobuf-c unpacks them. It finds what can be
 * refused without allocating memory, and what protobuf-c would accept: text with a
 * NUL in it, and the same thing said twice.
 */
#ifndef WIRE_CLIENT_SURVEY_H
#define WIRE_CLIENT_SURVEY_H

#include <stddef.h>
#include <stdint.h>

/* What is wrong with the payload of a frame (static); NULL if nothing was found. */
const char *client_survey(const uint8_t *bytes, size_t size);

#endif
